/*
 * reaper.h - the worker that lets retention end: answers become tombstones, and tombstones without
 * a payment go.
 *
 * It decides nothing: it reads what retention has reached and submits each as a command on the one
 * path, in bounded batches that stay small beside load. Where several instances share a store, the
 * store tells each of them its share; what another one has done meanwhile is found done.
 *
 * It does not believe the clock by itself. Its horizon is a time of its own that stands in the
 * store, never passes the wall clock and gains at most two seconds in a second of monotonic time: a
 * clock that jumps ahead makes it late, not forgetful. Whenever the two are further apart than a
 * clock can drift, `clock_apart` says so.
 *
 * Threads: the engine's. Never waits; call idem_reaper_step() after idem_engine_step().
 */
#ifndef IDEM_WORKER_REAPER_H
#define IDEM_WORKER_REAPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"

struct idem_reaper;

struct idem_reaper_options {
    struct idem_engine *engine; /* Borrowed, as the clock. */
    struct idem_clock *clock;
    int64_t horizon_us; /* As the store has it. */
};

struct idem_reaper_stats {
    uint64_t expired; /* Answers that became tombstones. */
    uint64_t removed; /* Tombstones that went. */
    int64_t horizon_us;
    bool clock_apart; /* An alarm: the wall clock is a day ahead of the horizon, or behind it. */
};

enum idem_err idem_reaper_create(const struct idem_reaper_options *options,
                                 struct idem_reaper **ret_reaper) IDEM_MUST_CHECK;

void idem_reaper_step(struct idem_reaper *reaper);

/* Monotonic time at which a step is needed even if nothing happens. */
int64_t idem_reaper_wake_us(const struct idem_reaper *reaper);

struct idem_reaper_stats idem_reaper_stats(const struct idem_reaper *reaper);

/* Begins nothing more. */
void idem_reaper_stop(struct idem_reaper *reaper);

/* The engine is idle. Accepts NULL. */
void idem_reaper_destroy(struct idem_reaper *reaper);

#endif /* IDEM_WORKER_REAPER_H */
