/*
 * instance.h - one process: a real engine with its real workers, on a clock, a store and a port of
 * the run's.
 *
 * It is stepped as the daemon's loop does it: after whatever woke it, and not before the time it
 * asked for. It may stand still, be overtaken by another, die at any moment, or be stopped.
 */
#ifndef IDEM_SIM_INSTANCE_H
#define IDEM_SIM_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "outbox/outbox.h"
#include "sim/dice.h"
#include "worker/reaper.h"
#include "worker/recovery.h"
#include "worker/restore.h"

struct sim_port;
struct sim_post_port;
struct sim_store;
struct sim_world;

struct sim_clock {
    struct idem_clock base; /* First. */
    struct sim_world *world;
    int64_t born_us;   /* True time when its machine started. */
    int64_t drift_ppm; /* How much it is too fast. */
    int64_t after_us;  /* Time that passes for the dead only. */
};

struct sim_instance {
    struct sim_world *world; /* Borrowed. */
    int no;
    struct sim_clock clock;
    struct sim_random random;
    struct sim_store *store;
    struct sim_port *port;
    struct idem_engine *engine;
    struct idem_recovery *recovery;
    struct idem_reaper *reaper;
    struct idem_restore *restore;
    struct sim_post_port *post_port;
    struct idem_outbox *outbox; /* NULL: nobody is told anything in this run. */
    int64_t step_us;            /* True time of its next step. */
    int64_t paused_us;          /* It stands still until then. */
    bool doomed;                /* It was overtaken: it dies soon. */
    bool stopping;
    bool dead;
    struct idem_list done_tasks; /* Of operators: struct sim_verdict. */
    struct idem_list done_notices;
    struct idem_list done_changes; /* Of webhooks. */
};

/* Starts one in a free place; NULL: there is none. */
struct sim_instance *sim_instance_start(struct sim_world *world);

/* Something happened that it should look at. */
void sim_instance_wake(struct sim_instance *instance);

/* True time of its next step; INT64_MAX: it stands still or is dead. */
int64_t sim_instance_next_us(const struct sim_instance *instance);

void sim_instance_step(struct sim_instance *instance);

/* It takes requests. */
bool sim_instance_serves(const struct sim_instance *instance);

/* It stands still for a while, perhaps for longer than its lease. */
void sim_instance_pause(struct sim_instance *instance);

/* Another opens its store while it stands still; later it dies. Nothing if that cannot be now. */
void sim_instance_overtake(struct sim_instance *instance);

/* It is gone at once, with everything in its memory. */
void sim_instance_crash(struct sim_instance *instance);

/* Crashes, pauses, stops, takeovers: from now on, again and again. */
void sim_chaos_begin(struct sim_world *world);

/* Enough processes run, nobody stands still. */
void sim_chaos_end(struct sim_world *world);

#endif /* IDEM_SIM_INSTANCE_H */
