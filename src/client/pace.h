/*
 * pace.h - how long to pause before a repeat, and how many repeats all intents together may make.
 *
 * Pause: exponential back-off with full jitter (random between zero and the bound), so that those
 * who failed together do not come back together. Budget: a token bucket that every first send fills
 * by `percent` hundredths and every repeat empties by one, so that in an outage repeats add at most
 * that share to the load; a reserve and a trickle of one a second let few callers repeat at all.
 *
 * Pure: time and dice are arguments. A budget belongs to one thread.
 */
#ifndef IDEM_CLIENT_PACE_H
#define IDEM_CLIENT_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* So many first sends earn in full without a repeat between them; what is beyond is forgotten. */
#define IDEM_BUDGET_BURST 8192

struct idem_pause_bounds {
    int64_t first_us;
    int64_t max_us;
    int64_t retry_after_us; /* The server's wish; the pause is never shorter. 0: none. */
};

/*
 * `failures` counts from 1. Without a wish: up to first_us, doubled with every failure up to
 * max_us. With a wish: the wish, and up to half as much more (at least first_us, at most max_us),
 * because a server that turns many away tells all of them the same.
 */
int64_t idem_pause_us(const struct idem_pause_bounds *bounds, unsigned failures, uint64_t dice);

struct idem_budget {
    int64_t balance; /* Hundredths of a repeat. */
    int64_t max;
    int64_t trickle_max; /* The trickle fills no further: the reserve, at least one repeat. */
    int64_t percent;
    int64_t filled_us; /* Monotonic: up to when the trickle was counted. */
};

void idem_budget_init(struct idem_budget *budget,
                      uint32_t percent,
                      uint32_t reserve,
                      int64_t now_us);

/* A first send of a run. */
void idem_budget_earn(struct idem_budget *budget, int64_t now_us);

bool idem_budget_allows(struct idem_budget *budget, int64_t now_us);

/* A repeat, which idem_budget_allows() has just allowed. */
void idem_budget_spend(struct idem_budget *budget, int64_t now_us);

#endif /* IDEM_CLIENT_PACE_H */
