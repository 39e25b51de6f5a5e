/*
 * Counting, and one order of questions for each kind of use. The list of entries is short and
 * fixed, so it is walked.
 *
 * A ticket without a place counts at every entry: whatever entry it is for has room for it, since
 * each was asked. That may hold back others for the time of one commit, and never lets one too many
 * through.
 *
 * Back-off: a provider that names a time (Retry-After) is left alone by first sends for that long,
 * but no longer than its limits believe. One that refuses without naming any is left alone for
 * PAUSE_FIRST_US, doubling to PAUSE_LAST_US while it goes on refusing.
 */
#include "engine/budget.h"

#include <stdlib.h>

#include "base/bug.h"
#include "base/clock.h"

#define PAUSE_FIRST_US (100 * IDEM_US_PER_MS)
#define PAUSE_LAST_US  IDEM_US_PER_SECOND

enum idem_err idem_budgets_init(struct idem_budgets *budgets,
                                const struct idem_rules *rules,
                                int64_t now_us)
{
    *budgets = (struct idem_budgets){ .rules = rules };
    budgets->all = calloc(rules->provider_count + 1, sizeof(*budgets->all));
    if (budgets->all == NULL) {
        return IDEM_E_SYSTEM;
    }
    budgets->count = rules->provider_count;
    for (size_t i = 0; i < budgets->count; i++) {
        struct idem_budget *budget = &budgets->all[i];
        budget->limits = rules->providers[i].limits;
        idem_bucket_init(&budget->bucket, budget->limits.rate_per_s, now_us);
        idem_breaker_init(&budget->breaker, &budget->limits.breaker, now_us);
    }
    return IDEM_OK;
}

void idem_budgets_deinit(struct idem_budgets *budgets)
{
    free(budgets->all);
    *budgets = (struct idem_budgets){ .count = 0 };
}

struct idem_budget *idem_budgets_find(const struct idem_budgets *budgets, struct idem_str entry)
{
    const struct idem_provider_rules *provider = idem_rules_provider(budgets->rules, entry);
    return provider != NULL ? &budgets->all[provider - budgets->rules->providers] : NULL;
}

bool idem_budget_full(const struct idem_budgets *budgets, const struct idem_budget *budget)
{
    return budget->limits.sends_max > 0 &&
           budget->sends + budgets->unplaced >= budget->limits.sends_max;
}

static bool workers_have_room(const struct idem_budgets *budgets,
                              const struct idem_budget *budget,
                              bool is_send)
{
    size_t max = budget->limits.recoveries_max;
    size_t sends_max = max > 1 ? max / 2 : max;
    if (max == 0) {
        return true;
    }
    if (is_send && budget->recovery_sends + budgets->unplaced_recoveries >= sends_max) {
        return false;
    }
    return budget->recoveries + budgets->unplaced_recoveries < max;
}

static bool first_may_go(const struct idem_budgets *budgets,
                         struct idem_budget *budget,
                         bool by_worker,
                         int64_t now_us)
{
    if (now_us < budget->paused_until_us || !idem_breaker_lets(&budget->breaker, now_us)) {
        return false;
    }
    if (by_worker && !workers_have_room(budgets, budget, true)) {
        return false;
    }
    return !idem_budget_full(budgets, budget) &&
           idem_bucket_has(&budget->bucket, (int64_t)budgets->unplaced + 1, now_us);
}

static bool anywhere_may_go(const struct idem_budgets *budgets, bool by_worker, int64_t now_us)
{
    for (size_t i = 0; i < budgets->count; i++) {
        struct idem_budget *budget = &budgets->all[i];
        bool lets = first_may_go(budgets, budget, by_worker, now_us);
        if (!lets || budget->breaker.state != IDEM_BREAKER_CLOSED) { /* A probe has a place. */
            return false;
        }
    }
    return true;
}

static bool may_go(const struct idem_budgets *budgets, struct idem_ticket wanted, int64_t now_us)
{
    if (wanted.budget == NULL) {
        IDEM_ASSERT(wanted.use == IDEM_USE_FIRST);
        return anywhere_may_go(budgets, wanted.by_worker, now_us);
    }
    switch (wanted.use) {
    case IDEM_USE_FIRST:
        return first_may_go(budgets, wanted.budget, wanted.by_worker, now_us);
    case IDEM_USE_AGAIN:
        return !wanted.by_worker || workers_have_room(budgets, wanted.budget, true);
    case IDEM_USE_ASK:
        return !wanted.by_worker || workers_have_room(budgets, wanted.budget, false);
    case IDEM_USE_NONE:
    case IDEM_USE_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void count(struct idem_ticket *ticket, int64_t now_us)
{
    struct idem_budget *budget = ticket->budget;
    budget->sends += ticket->use == IDEM_USE_FIRST ? 1 : 0;
    budget->recoveries += ticket->by_worker ? 1 : 0;
    budget->recovery_sends += ticket->by_worker && ticket->use != IDEM_USE_ASK ? 1 : 0;
    idem_bucket_take(&budget->bucket, now_us);
    ticket->is_probe = ticket->use == IDEM_USE_FIRST && idem_breaker_go(&budget->breaker, now_us);
}

static void uncount(struct idem_budgets *budgets, struct idem_ticket *ticket, int64_t now_us)
{
    struct idem_budget *budget = ticket->budget;
    if (budget == NULL) {
        budgets->unplaced -= 1;
        budgets->unplaced_recoveries -= ticket->by_worker ? 1 : 0;
    } else {
        budget->sends -= ticket->use == IDEM_USE_FIRST ? 1 : 0;
        budget->recoveries -= ticket->by_worker ? 1 : 0;
        budget->recovery_sends -= ticket->by_worker && ticket->use != IDEM_USE_ASK ? 1 : 0;
    }
    if (ticket->is_probe) {
        idem_breaker_probe_over(&budget->breaker, now_us);
    }
    *ticket = (struct idem_ticket){ .use = IDEM_USE_NONE };
}

bool idem_budgets_take(struct idem_budgets *budgets,
                       struct idem_ticket wanted,
                       int64_t now_us,
                       struct idem_ticket *ret_ticket)
{
    if (!may_go(budgets, wanted, now_us)) {
        return false;
    }
    if (wanted.budget == NULL) {
        budgets->unplaced += 1;
        budgets->unplaced_recoveries += wanted.by_worker ? 1 : 0;
    } else {
        count(&wanted, now_us);
    }
    *ret_ticket = wanted;
    return true;
}

void idem_budgets_place(struct idem_budgets *budgets,
                        struct idem_ticket *ticket,
                        struct idem_ticket wanted,
                        int64_t now_us)
{
    IDEM_ASSERT(ticket->use == IDEM_USE_FIRST && ticket->budget == NULL);
    IDEM_ASSERT(wanted.budget != NULL);
    uncount(budgets, ticket, now_us);
    count(&wanted, now_us);
    *ticket = wanted;
}

void idem_budgets_return(struct idem_budgets *budgets, struct idem_ticket *ticket, int64_t now_us)
{
    if (ticket->use == IDEM_USE_NONE) {
        return;
    }
    if (ticket->budget != NULL) {
        idem_bucket_put_back(&ticket->budget->bucket);
    }
    uncount(budgets, ticket, now_us);
}

/* How long the provider wishes to be left alone, or is anyway; 0: not at all. */
static int64_t wish_us(const struct idem_budget *budget, const struct idem_evidence *evidence)
{
    bool refused = evidence->outcome == IDEM_OUTCOME_NOT_EXECUTED;
    bool is_wish = refused || evidence->outcome == IDEM_OUTCOME_UNKNOWN;
    if (is_wish && evidence->retry_after_us > 0) {
        return evidence->retry_after_us;
    }
    if (!refused) {
        return 0;
    }
    int64_t pause_us = PAUSE_FIRST_US;
    for (unsigned i = 1; i < budget->refusals && pause_us < PAUSE_LAST_US; i++) {
        pause_us *= 2;
    }
    return pause_us < PAUSE_LAST_US ? pause_us : PAUSE_LAST_US;
}

static void pause_as_wished(struct idem_budget *budget,
                            const struct idem_evidence *evidence,
                            int64_t now_us)
{
    int64_t pause_us = wish_us(budget, evidence);
    int64_t max_us = budget->limits.pause_max_us;
    int64_t until_us = now_us + (pause_us < max_us ? pause_us : max_us);
    budget->paused_until_us =
        until_us > budget->paused_until_us ? until_us : budget->paused_until_us;
    idem_breaker_held(&budget->breaker, budget->paused_until_us);
}

void idem_budgets_over(struct idem_budgets *budgets,
                       struct idem_ticket *ticket,
                       const struct idem_evidence *evidence,
                       int64_t left_us,
                       int64_t now_us)
{
    struct idem_budget *budget = ticket->budget;
    bool is_send = ticket->use == IDEM_USE_FIRST || ticket->use == IDEM_USE_AGAIN;
    bool refused = evidence->outcome == IDEM_OUTCOME_NOT_EXECUTED;
    if (ticket->use == IDEM_USE_NONE) {
        return;
    }
    IDEM_ASSERT(budget != NULL);
    if (is_send) {
        budget->refusals = refused ? budget->refusals + 1 : 0;
    }
    if (is_send && !refused) { /* What was not executed says nothing of silence. */
        idem_breaker_heard(&budget->breaker, evidence->outcome == IDEM_OUTCOME_UNKNOWN, left_us,
                           now_us);
    }
    pause_as_wished(budget, evidence, now_us);
    uncount(budgets, ticket, now_us);
}

int64_t idem_budget_next_us(const struct idem_budget *budget, int64_t now_us)
{
    int64_t next_us = idem_bucket_next_us(&budget->bucket, now_us);
    int64_t breaker_us = idem_breaker_next_us(&budget->breaker, now_us);
    next_us = breaker_us > next_us ? breaker_us : next_us;
    return budget->paused_until_us > next_us ? budget->paused_until_us : next_us;
}
