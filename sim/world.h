/*
 * world.h - one run: everything that a seed makes, and the time that it passes in.
 *
 * True time is the world's. What a process believes about it is its clock's (instance.h). All that
 * is made during a run is taken from the run's memory and goes with it, so nothing that an event
 * points to is ever gone.
 *
 * Threads: one.
 */
#ifndef IDEM_SIM_WORLD_H
#define IDEM_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/digest.h"
#include "core/rules.h"
#include "sim/auditor.h"
#include "sim/caller.h"
#include "sim/dice.h"
#include "sim/fault.h"
#include "sim/instance.h"
#include "sim/merchant.h"
#include "sim/notice.h"
#include "sim/provider.h"
#include "sim/schedule.h"
#include "sim/store.h"
#include "sim/theme.h"
#include "sim/wire.h"

#define SIM_SECOND        IDEM_US_PER_SECOND
#define SIM_ENTRIES       2
#define SIM_INSTANCES_MAX 4

struct sim_block; /* Of the run's memory. */

/* What a run is asked for. */
struct sim_order {
    uint64_t seed;
    uint64_t steps; /* Of the phase in which things go wrong. */
    bool trace;     /* Print what happens. */
    bool digest;    /* Sum up what happens, to compare two runs. */
    /* Where the run counts its steps, for whoever is left when it aborts; NULL: nowhere. */
    volatile uint64_t *ret_step;
};

struct sim_world {
    struct sim_order order;
    struct sim_dice dice;
    struct sim_faults faults;
    struct sim_schedule schedule;
    struct sim_block *blocks;
    int64_t start_us;
    int64_t now_us; /* True time since 1970. */
    uint64_t steps;
    uint64_t digest;

    bool twins;          /* Several processes at once under one incarnation; else one at a time. */
    bool clocks_ok;      /* No machine's clock is ever put far off. */
    int64_t put_back_us; /* When one was last put back far; true time. */
    enum sim_theme theme;
    int64_t ask_every_us; /* Of the theme; 0: as usual. */
    int64_t wait_us;      /* Of every other caller; likewise. */
    struct idem_provider_rules entries[SIM_ENTRIES];
    struct idem_rules rules;
    struct idem_digester *digester; /* Borrowed. */

    struct sim_disk disk;
    struct sim_provider provider;
    struct sim_instance *instances[SIM_INSTANCES_MAX]; /* NULL: none. */
    struct sim_callers callers;
    struct sim_notices notices;
    struct sim_merchants merchants;
    struct sim_auditor auditor;
};

/* What came of a run. */
struct sim_result {
    uint64_t steps;
    int64_t passed_us; /* Simulated. */
    uint64_t digest;
    uint64_t violations;
    uint64_t first_step; /* Of the first of them. */
    char first[SIM_VIOLATION_MAX];
    uint64_t fired[SIM_FAULT_COUNT];
    uint64_t executions;
    uint64_t replies;
};

struct sim_result sim_run(const struct sim_order *order, struct idem_digester *digester);

/* Zeros; lives as long as the run. */
void *sim_world_take(struct sim_world *world, size_t size);

/* `happen(what)` in `delay_us` from now. */
void sim_world_later(struct sim_world *world,
                     int64_t delay_us,
                     void (*happen)(void *what),
                     void *what);

/* One line of the trace. */
void sim_trace(struct sim_world *world, const char *format, ...) IDEM_PRINTF(2, 3);

#endif /* IDEM_SIM_WORLD_H */
