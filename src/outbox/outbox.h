/*
 * outbox.h - the worker that delivers: it posts what merchants are to be told, and records what
 * became of it.
 *
 * It decides nothing about a delivery: it reads which are due, takes each by a command on the one
 * path, posts only after that is durable, and submits the result as a command. So every delivery is
 * posted at least once, by one worker at a time; one that dies in between leaves a delivery that is
 * due again when its lease ends.
 *
 * At most `posts_max` at once and IDEM_OUTBOX_WEBHOOK_MAX of one webhook, so that a receiver that
 * does not answer holds up its own and nobody else's.
 *
 * It also lets the store forget messages and providers' events that are old, some every few
 * seconds.
 *
 * Threads: the engine's. Never waits; call idem_outbox_step() after idem_engine_step().
 */
#ifndef IDEM_OUTBOX_OUTBOX_H
#define IDEM_OUTBOX_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "engine/engine.h"
#include "outbox/post.h"

#define IDEM_OUTBOX_WEBHOOK_MAX 4
#define IDEM_OUTBOX_POSTS_MAX   ((size_t)IDEM_OUTBOX_WEBHOOK_MAX * IDEM_READ_SKIP_MAX)
#define IDEM_OUTBOX_LEASE_US    (60 * IDEM_US_PER_SECOND)

struct idem_outbox;

struct idem_outbox_options {
    struct idem_engine *engine; /* All borrowed. */
    struct idem_post_port *port;
    struct idem_clock *clock;
    struct idem_random *random;
    size_t posts_max; /* At most IDEM_OUTBOX_POSTS_MAX, and what the port has room for. */
    int64_t keep_us;  /* Messages and events of the inbox that are older are forgotten. */
};

/* Since the start; each is counted once it is durable. */
struct idem_outbox_stats {
    uint64_t delivered;
    uint64_t failed; /* Attempts, the last ones and those of `gone` as well. */
    uint64_t dead;   /* Given up after the last attempt. */
    uint64_t gone;   /* Of these attempts, answered with 410: the webhook was disabled. */
    size_t in_hand;  /* Now. */
};

enum idem_err idem_outbox_create(const struct idem_outbox_options *options,
                                 struct idem_outbox **ret_outbox) IDEM_MUST_CHECK;

void idem_outbox_step(struct idem_outbox *outbox);

/* Monotonic time at which a step is needed even if nothing happens. */
int64_t idem_outbox_wake_us(const struct idem_outbox *outbox);

struct idem_outbox_stats idem_outbox_stats(const struct idem_outbox *outbox);

/* Begins nothing more. Posts that are under way end, and are recorded. */
void idem_outbox_stop(struct idem_outbox *outbox);

/* Stopped: ends them now. They are due again at once. */
void idem_outbox_hurry(struct idem_outbox *outbox);

/* Nothing of its own is with engine or port. */
bool idem_outbox_idle(const struct idem_outbox *outbox);

/* Idle. Accepts NULL. */
void idem_outbox_destroy(struct idem_outbox *outbox);

#endif /* IDEM_OUTBOX_OUTBOX_H */
