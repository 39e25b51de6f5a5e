/*
 * A theme says all of a run's swarm, how its processes and clocks are, and its providers where they
 * matter:
 *
 *   QUIET      A clock is known by what was recorded, and by a mark once a minute. A process that
 *              cannot read any more does nothing about what is open, so only the marks say what
 *              time it is; it dies, the clock is put back, and a window seems to be open still.
 *   OVERTAKEN  What an earlier process may yet send is known by its own clock. The next one's is
 *              far ahead, and a person says soon that it did not happen.
 *   CLAIMS     A caller waits in one process for its claim, the other one releases it, and somebody
 *              else claims again in the first one while he waits.
 */
#include "sim/theme.h"

#include <stdbool.h>

#include "base/bug.h"
#include "sim/world.h"

#define THEME_PER_MILLE 120
#define RATES_MAX       8

struct rate {
    enum sim_fault_kind kind;
    uint16_t per_mille; /* 0: no more of them. */
};

struct theme {
    const char *name;
    bool twins;
    bool clocks_ok;
    enum sim_profile profile; /* SIM_PROFILE_COUNT: as drawn. */
    int64_t wait_us;          /* How long every other caller waits; 0: as drawn. */
    int64_t ask_every_us;     /* How often they ask; 0: as usual. */
    struct rate rates[RATES_MAX];
};

static const struct theme themes[SIM_THEME_COUNT] = {
    [SIM_THEME_NONE] = { .name = "none", .profile = SIM_PROFILE_COUNT },
    [SIM_THEME_QUIET] = {
        .name = "quiet",
        .profile = SIM_PROFILE_WINDOW,
        .ask_every_us = 600 * SIM_SECOND,
        .rates = {
            { SIM_FAULT_STORE_BLIND, 100 },
            { SIM_FAULT_ANSWER_LOST, 600 },
            { SIM_FAULT_CLOCK_BACK, 700 },
            { SIM_FAULT_CRASH, 5 },
        },
    },
    [SIM_THEME_OVERTAKEN] = {
        .name = "overtaken",
        .profile = SIM_PROFILE_PLAIN,
        .rates = {
            { SIM_FAULT_SEND_OVERTAKEN, 300 },
            { SIM_FAULT_CLOCK_AHEAD, 700 },
            { SIM_FAULT_OPERATOR_RESOLVES, 900 },
            { SIM_FAULT_SEND_LATE, 300 },
        },
    },
    [SIM_THEME_CLAIMS] = {
        .name = "claims",
        .twins = true,
        .clocks_ok = true,
        .profile = SIM_PROFILE_COUNT,
        .wait_us = 40 * SIM_SECOND,
        .rates = {
            { SIM_FAULT_PROVIDER_BUSY, 800 },
            { SIM_FAULT_CLIENT_PARALLEL, 300 },
            { SIM_FAULT_PAUSE, 30 },
            { SIM_FAULT_STEP_LATE, 100 },
        },
    },
};

enum sim_theme sim_theme_draw(uint64_t seed)
{
    struct sim_dice dice;
    sim_dice_init(&dice, ~seed);
    if (!sim_dice_chance(&dice, THEME_PER_MILLE)) {
        return SIM_THEME_NONE;
    }
    return (enum sim_theme)sim_dice_between(&dice, SIM_THEME_NONE + 1, SIM_THEME_COUNT - 1);
}

const char *sim_theme_name(enum sim_theme theme)
{
    IDEM_ASSERT(theme < SIM_THEME_COUNT);
    return themes[theme].name;
}

void sim_theme_apply(struct sim_world *world)
{
    const struct theme *theme = &themes[world->theme];
    world->ask_every_us = theme->ask_every_us;
    world->wait_us = theme->wait_us;
    if (world->theme == SIM_THEME_NONE) {
        return;
    }
    world->twins = theme->twins;
    world->clocks_ok = theme->clocks_ok;
    for (size_t i = 0; i < SIM_ENTRIES && theme->profile != SIM_PROFILE_COUNT; i++) {
        world->provider.profiles[i] = theme->profile;
    }
    sim_faults_clear(&world->faults);
    for (size_t i = 0; i < RATES_MAX && theme->rates[i].per_mille > 0; i++) {
        sim_faults_set(&world->faults, theme->rates[i].kind, theme->rates[i].per_mille);
    }
}
