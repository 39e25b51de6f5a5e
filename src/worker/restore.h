/*
 * restore.h - the worker that learns what an older copy of the store has missed.
 *
 * While the store is in the restored mode nothing is sent and nothing new is claimed. This worker
 * waits until nothing that an earlier process sent can still arrive, then reads every provider's
 * listing from the copy's newest time on (less a margin) and submits each effect as evidence on the
 * one path: it settles what is open here and becomes a stub where nothing is. When every provider
 * has been read to the end, the mode is over (IDEM_MARK_RESTORED_OVER). What no listing can tell
 * keeps the mode until an operator ends it: a provider without one, payments at an account that is
 * not configured any more, effects under ids from before ids named scopes.
 *
 * Threads: the engine's. Never waits; call idem_restore_step() after idem_engine_step().
 */
#ifndef IDEM_WORKER_RESTORE_H
#define IDEM_WORKER_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"

struct idem_restore;

struct idem_restore_options {
    struct idem_engine *engine; /* All borrowed. */
    struct idem_port *port;
    struct idem_store *store; /* Whether it is restored, its newest time and when it was opened. */
    const struct idem_rules *rules;
    struct idem_clock *clock;
};

struct idem_restore_stats {
    bool restored;       /* The mode lasts. */
    bool needs_operator; /* Not everything can be listed: the worker will not end the mode. */
    int64_t from_us;     /* Listed from here on. */
    int64_t begins_us;   /* Wall time before which nothing is read: something may still arrive. */
    uint64_t listed;     /* Effects read so far ... */
    uint64_t foreign;    /* ... and of these, under an id that is not ours: left alone. */
    uint64_t failures;   /* Pages, and effects of pages, that had to be tried again. */
};

enum idem_err idem_restore_create(const struct idem_restore_options *options,
                                  struct idem_restore **ret_restore) IDEM_MUST_CHECK;

void idem_restore_step(struct idem_restore *restore);

/* Monotonic time at which a step is needed even if nothing happens. */
int64_t idem_restore_wake_us(const struct idem_restore *restore);

struct idem_restore_stats idem_restore_stats(const struct idem_restore *restore);

/* Begins nothing more. */
void idem_restore_stop(struct idem_restore *restore);

/* Nothing of its own is with engine or port. */
bool idem_restore_idle(const struct idem_restore *restore);

/* Idle. Accepts NULL. */
void idem_restore_destroy(struct idem_restore *restore);

#endif /* IDEM_WORKER_RESTORE_H */
