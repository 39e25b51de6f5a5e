/*
 * Pauses and the budget of repeats.
 *
 * Full jitter, and not "half fixed, half random": what brings clients together is that they failed
 * together, and only a draw from the whole range pulls them apart again. The bound doubles, so that
 * a short fault is passed quickly and a long one is asked rarely.
 *
 * Jitter spreads what comes; it does not make it less. That is the budget's work, and it is shared
 * by all intents of a client because an outage is: each of ten thousand intents that allowed itself
 * "only three repeats" would quadruple the load at the moment when the server can bear it least.
 *
 *        a first send: + percent/100          a second: + 1, up to the reserve only
 *                     \                        /
 *                      [ balance <= reserve + percent/100 of IDEM_BUDGET_BURST ] --> a repeat: - 1
 *
 * Two maxima: a day of first sends must not become a day's worth of repeats in one burst, and a
 * night of silence must not become even a burst.
 */
#include "client/pace.h"

#include "base/bug.h"

#define REPEAT           100   /* Hundredths. */
#define US_PER_HUNDREDTH 10000 /* One repeat a second. */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* first_us doubled `failures` - 1 times, at most max_us. */
static int64_t doubled(const struct idem_pause_bounds *bounds, unsigned failures)
{
    int64_t bound = bounds->first_us;
    for (unsigned i = 1; i < failures && bound > 0 && bound < bounds->max_us; i++) {
        bound = bound > bounds->max_us / 2 ? bounds->max_us : bound * 2;
    }
    return smaller(bound, bounds->max_us);
}

int64_t idem_pause_us(const struct idem_pause_bounds *bounds, unsigned failures, uint64_t dice)
{
    IDEM_ASSERT(bounds->first_us >= 0);
    IDEM_ASSERT(bounds->max_us >= 0);
    IDEM_ASSERT(failures > 0);

    int64_t wish = larger(bounds->retry_after_us, 0);
    int64_t bound = doubled(bounds, failures);
    if (wish > 0) {
        bound = smaller(larger(wish / 2, bounds->first_us), bounds->max_us);
    }
    int64_t draw = (int64_t)(dice % ((uint64_t)bound + 1));
    return wish > INT64_MAX - draw ? INT64_MAX : wish + draw;
}

static void budget_check(const struct idem_budget *budget)
{
    IDEM_ASSERT(budget->balance >= 0);
    IDEM_ASSERT(budget->balance <= budget->max);
    IDEM_ASSERT(budget->trickle_max <= budget->max);
}

void idem_budget_init(struct idem_budget *budget,
                      uint32_t percent,
                      uint32_t reserve,
                      int64_t now_us)
{
    int64_t trickle_max = larger(reserve, 1) * REPEAT;
    *budget = (struct idem_budget){
        .balance = (int64_t)reserve * REPEAT,
        .max = trickle_max + (int64_t)percent * IDEM_BUDGET_BURST,
        .trickle_max = trickle_max,
        .percent = percent,
        .filled_us = now_us,
    };
    budget_check(budget);
}

static void trickle(struct idem_budget *budget, int64_t now_us)
{
    int64_t room = budget->trickle_max - budget->balance;
    if (now_us <= budget->filled_us) {
        return;
    }
    int64_t drops = (now_us - budget->filled_us) / US_PER_HUNDREDTH;
    if (drops >= room) { /* Also if there is no room: what runs over is not owed. */
        budget->balance += larger(room, 0);
        budget->filled_us = now_us;
        return;
    }
    budget->balance += drops;
    budget->filled_us += drops * US_PER_HUNDREDTH;
}

void idem_budget_earn(struct idem_budget *budget, int64_t now_us)
{
    trickle(budget, now_us);
    budget->balance = smaller(budget->balance + budget->percent, budget->max);
    budget_check(budget);
}

bool idem_budget_allows(struct idem_budget *budget, int64_t now_us)
{
    trickle(budget, now_us);
    budget_check(budget);
    return budget->balance >= REPEAT;
}

void idem_budget_spend(struct idem_budget *budget, int64_t now_us)
{
    trickle(budget, now_us);
    IDEM_ASSERT(budget->balance >= REPEAT);
    budget->balance -= REPEAT;
    budget_check(budget);
}
