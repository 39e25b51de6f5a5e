/*
 * theme.h - circumstances that matter only together, drawn together.
 *
 * Some mistakes show where four or five rare things meet, of which a swarm draws each by itself. A
 * run in about eight has a theme: then this is its swarm, and nothing else goes wrong. The dice for
 * it are its own, so that a run without one is what it was before there were themes.
 */
#ifndef IDEM_SIM_THEME_H
#define IDEM_SIM_THEME_H

#include <stdint.h>

struct sim_world;

enum sim_theme {
    SIM_THEME_NONE = 0,
    SIM_THEME_QUIET,     /* Nothing is recorded for minutes, then a clock is put back. */
    SIM_THEME_OVERTAKEN, /* Something is yet to be sent, and the next process's clock is ahead. */
    SIM_THEME_CLAIMS,    /* Twins, patient callers, and a provider that is busy. */
    SIM_THEME_COUNT
};

/* Which one a seed has. */
enum sim_theme sim_theme_draw(uint64_t seed);

const char *sim_theme_name(enum sim_theme theme);

/* Makes the run's: after its swarm and its providers were drawn, before their rules are made. */
void sim_theme_apply(struct sim_world *world);

#endif /* IDEM_SIM_THEME_H */
