/*
 * schedule.h - reconciliation by itself: `idem reconcile` run by the service, entry by entry.
 *
 * Sorting millions of rows has no place on the loop, and a reconciliation is a client of the admin
 * API as anybody may write one. So the service starts its own program as a child, which asks it as
 * an operator would (docs/decisions/0024). Its credential is made at the start, lives in memory
 * only, and is handed over as an open file that has no name.
 *
 * One child at a time, and each for so long only: then it is asked to end, and ended. An entry is
 * due when a period of it has ended `lag` ago; after a start that is the latest one, and one that
 * failed is tried again. A period begins early enough to overlap the one before, since what touches
 * an edge is not judged.
 *
 * Threads: the loop's.
 */
#ifndef IDEM_DAEMON_SCHEDULE_H
#define IDEM_DAEMON_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/random.h"

struct idem_config;
struct idem_schedule;
struct uv_loop_s;

struct idem_schedule_options {
    struct uv_loop_s *loop;           /* All borrowed as long as the schedule. */
    const struct idem_config *config; /* Its providers; where it listens. */
    struct idem_clock *clock;
    struct idem_random *random;
    struct idem_digester *digester; /* Used at creation only. */
};

enum idem_err idem_schedule_create(const struct idem_schedule_options *options,
                                   struct idem_schedule **ret_schedule,
                                   struct idem_error *reterr) IDEM_MUST_CHECK;

/* Of the children's bearer: an operator's. Zeros: no entry is scheduled, so nobody has it. */
struct idem_digest idem_schedule_secret(const struct idem_schedule *schedule);

/* Starts what is due. `port`: where the service listens. Call it now and then. */
void idem_schedule_look(struct idem_schedule *schedule, uint16_t port);

/* What came of its children, by provider as configured. Borrowed as long as the schedule. */
const struct idem_api_reconciled *idem_schedule_told(const struct idem_schedule *schedule);

/* Starts nothing more, and ends the child: it is gone a few seconds later, whatever it does. */
void idem_schedule_stop(struct idem_schedule *schedule);

/* No child, and nothing of its own is on the loop. Accepts NULL, which is idle. */
bool idem_schedule_idle(const struct idem_schedule *schedule);

/* Idle. Accepts NULL. */
void idem_schedule_destroy(struct idem_schedule *schedule);

#endif /* IDEM_DAEMON_SCHEDULE_H */
