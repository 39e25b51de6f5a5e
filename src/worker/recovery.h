/*
 * recovery.h - the worker that looks for open intents whose time has come and hands them to the
 * engine.
 *
 * It decides nothing: it reads due rows from the store and submits each as a command on the one
 * path. First, at start, everything that an earlier process left under a lease; from then on
 * whatever is due. Due times live in the store, so a worker that dies forgets nothing (P8).
 *
 * Threads: the engine's. Never waits; call idem_recovery_step() after idem_engine_step().
 */
#ifndef IDEM_WORKER_RECOVERY_H
#define IDEM_WORKER_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"

struct idem_recovery;

/* `engine` and `clock` are borrowed as long as the worker. */
enum idem_err idem_recovery_create(struct idem_engine *engine,
                                   struct idem_clock *clock,
                                   struct idem_recovery **ret_recovery) IDEM_MUST_CHECK;

void idem_recovery_step(struct idem_recovery *recovery);

/* Monotonic time at which a step is needed even if nothing happens. */
int64_t idem_recovery_wake_us(const struct idem_recovery *recovery);

/* Everything that an earlier process left was handed to the engine. */
bool idem_recovery_caught_up(const struct idem_recovery *recovery);

/* Looks for nothing more. What is read already is dropped: it stays due. */
void idem_recovery_stop(struct idem_recovery *recovery);

/* Its read has come back (idem_engine_idle() says so). Accepts NULL. */
void idem_recovery_destroy(struct idem_recovery *recovery);

#endif /* IDEM_WORKER_RECOVERY_H */
