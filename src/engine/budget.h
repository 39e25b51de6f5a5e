/*
 * budget.h - what one provider entry may take of what all share: places on the wire, calls a
 * second, and whether anything new should go there at all.
 *
 * Whoever wants to put something on the wire asks for a ticket and gets it or not; nothing here
 * waits. A ticket comes back exactly once: as returned, if its call never left, or as over, with
 * what became of it.
 *
 *   FIRST   a send that nothing unresolved stands before. Every limit holds for it.
 *   AGAIN   a second send of recovery: by workers only, at most half of their places. Neither
 *           breaker nor rate nor pause holds for it.
 *   ASK     a question or a close: by workers, every place of theirs.
 *
 * Which entry a command leads to is known only from its facts, for some. Such a one takes a FIRST
 * ticket without a place: as much as one place at every entry, until it is placed. Where one entry
 * has none to give, it gets no ticket; it must be claimed first, by one commit more, and then only
 * its own entry counts.
 *
 * Pure: monotonic time in, a ticket out. Threads: one.
 */
#ifndef IDEM_ENGINE_BUDGET_H
#define IDEM_ENGINE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "core/command.h"
#include "core/rules.h"
#include "engine/breaker.h"
#include "engine/bucket.h"

enum idem_use {
    IDEM_USE_NONE = 0,
    IDEM_USE_FIRST,
    IDEM_USE_AGAIN,
    IDEM_USE_ASK,
    IDEM_USE_COUNT
};

struct idem_budget {
    struct idem_provider_limits limits;
    struct idem_bucket bucket;
    struct idem_breaker breaker;
    size_t sends;            /* Tickets FIRST. */
    size_t recoveries;       /* Tickets of workers ... */
    size_t recovery_sends;   /* ... FIRST and AGAIN of them. */
    int64_t paused_until_us; /* The provider wishes to be left alone. */
    unsigned refusals;       /* Sends that it did not execute, one after the other. */

    /* The engine's, which sees to it that nobody overtakes. */
    struct idem_list waiting; /* Claims that wait for a place. */
    size_t deferrals; /* Places to wait in that are taken, also by what is not claimed yet. */
    struct idem_list backlog; /* Requests that wait for such a place. */
    uint64_t deferred;        /* Claims that had to wait. */
    uint64_t turned_away;     /* Requests for which nothing was left to wait in. */
};

/* One for every entry of the rules' providers, in their order. */
struct idem_budgets {
    struct idem_budget *all;
    size_t count;
    const struct idem_rules *rules;
    size_t unplaced;            /* Tickets without a place yet ... */
    size_t unplaced_recoveries; /* ... of workers. */
};

struct idem_ticket {
    enum idem_use use;          /* NONE: this is none. */
    struct idem_budget *budget; /* NULL: without a place. */
    bool by_worker;
    bool is_probe;
};

enum idem_err idem_budgets_init(struct idem_budgets *budgets,
                                const struct idem_rules *rules,
                                int64_t now_us) IDEM_MUST_CHECK;
void idem_budgets_deinit(struct idem_budgets *budgets);

/* That of `entry`, or NULL. */
struct idem_budget *idem_budgets_find(const struct idem_budgets *budgets, struct idem_str entry);

/*
 * A ticket for `wanted` (use, budget, by_worker), or none: false. Without a budget: FIRST, for
 * whichever entry it will be.
 */
bool idem_budgets_take(struct idem_budgets *budgets,
                       struct idem_ticket wanted,
                       int64_t now_us,
                       struct idem_ticket *ret_ticket) IDEM_MUST_CHECK;

/* Where a ticket without a place has led. */
void idem_budgets_place(struct idem_budgets *budgets,
                        struct idem_ticket *ticket,
                        struct idem_ticket wanted,
                        int64_t now_us);

/* Nothing left under it. A ticket that is none is left alone; afterwards it is none. */
void idem_budgets_return(struct idem_budgets *budgets, struct idem_ticket *ticket, int64_t now_us);

/* The call that left under it at `left_us` ended like this. */
void idem_budgets_over(struct idem_budgets *budgets,
                       struct idem_ticket *ticket,
                       const struct idem_evidence *evidence,
                       int64_t left_us,
                       int64_t now_us);

/*
 * When time alone may let a first send through: not later than `now_us` if nothing but places is
 * wanting; INT64_MAX: time will not.
 */
int64_t idem_budget_next_us(const struct idem_budget *budget, int64_t now_us);

/* Every place for first sends is taken. */
bool idem_budget_full(const struct idem_budgets *budgets, const struct idem_budget *budget);

#endif /* IDEM_ENGINE_BUDGET_H */
