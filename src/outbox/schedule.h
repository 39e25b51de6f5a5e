/*
 * schedule.h - when a post that failed is tried again: the schedule of Standard Webhooks.
 *
 * At once, and after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h: ten attempts in a
 * good three days, each up to a tenth later than that, so that what failed together does not come
 * back together. Pure.
 */
#ifndef IDEM_OUTBOX_SCHEDULE_H
#define IDEM_OUTBOX_SCHEDULE_H

#include <stdint.h>

#include "base/clock.h"

#define IDEM_ATTEMPTS_MAX       10
#define IDEM_RETRY_AFTER_MAX_US IDEM_US_PER_DAY

/*
 * How long to wait for the next attempt, after number `attempt` (from 1) failed; 0: that was the
 * last one. The receiver's Retry-After (0: none) can make it later, by a day at most, not earlier.
 */
int64_t idem_schedule_pause_us(uint32_t attempt, int64_t retry_after_us, uint64_t noise);

#endif /* IDEM_OUTBOX_SCHEDULE_H */
