/*
 * Places on the wire: who gets one now, and who waits for one.
 *
 *   request --ticket--> claimed and dispatched in one commit (without a flight: claimed and due)
 *      |--place to wait in--> claimed; waits here ---------ticket---> DUE: dispatched by a commit
 *      |--backlog--> waits here without a record, up to its deadline            of its own
 *      '--none of these--> `unavailable`, and nothing was written
 *
 *   due row --ticket without a place--> DUE, which may send
 *      '--none--> DUE, which may ask and close. What it says waits for a place gets a ticket
 *                 of its entry, or waits here.
 *
 * What waits here stands in the store as claimed and due, so whoever finds it there next, this
 * process or another, goes on with it. But workers read a bounded number of due rows, the earliest
 * first: if all of them waited for one provider, they would hide everybody else's questions. So the
 * places to wait in are half of what such a read brings (DEFERRALS_MAX), and whatever is due beyond
 * them is granted, refused here as by a port that has no room, and by that planned for later.
 *
 * Nobody overtakes: behind a claim that waits, requests for the same entry wait too.
 */
#include "engine/engine_internal.h"

#include "base/bug.h"

#define REFUSED_PAUSE_US IDEM_US_PER_SECOND

enum idem_err idem_slots_init(struct idem_engine *engine)
{
    int64_t now_us = idem_clock_mono_us(engine->options.clock);
    for (size_t i = 0; i < IDEM_DEFERRALS_MAX; i++) {
        idem_list_push(&engine->free_deferrals, &engine->deferrals[i].node);
    }
    return idem_budgets_init(&engine->budgets, engine->options.rules, now_us);
}

void idem_slots_deinit(struct idem_engine *engine)
{
    for (size_t i = 0; i < engine->budgets.count; i++) {
        struct idem_list_node *node = NULL;
        while ((node = idem_list_pop(&engine->budgets.all[i].waiting)) != NULL) {
            idem_slot_forget(engine, IDEM_CONTAINER_OF(node, struct idem_deferral, node));
        }
    }
    idem_budgets_deinit(&engine->budgets);
}

static int64_t now_of(const struct idem_engine *engine)
{
    return idem_clock_mono_us(engine->options.clock);
}

/* ---- places to wait in ---- */

/* All entries together leave some for what has no place before its facts are read. */
static size_t deferrals_share(const struct idem_engine *engine)
{
    size_t count = engine->budgets.count;
    size_t share = IDEM_DEFERRALS_MAX / (count + 1);
    return count == 1 ? IDEM_DEFERRALS_MAX : share > 0 ? share : 1;
}

/* `budget` NULL: it is not known yet. */
static struct idem_deferral *deferral_take(struct idem_engine *engine, struct idem_budget *budget)
{
    if (budget != NULL && budget->deferrals >= deferrals_share(engine)) {
        return NULL;
    }
    struct idem_list_node *node = idem_list_pop(&engine->free_deferrals);
    if (node == NULL) {
        return NULL;
    }
    struct idem_deferral *deferral = IDEM_CONTAINER_OF(node, struct idem_deferral, node);
    deferral->budget = budget;
    if (budget != NULL) {
        budget->deferrals += 1;
    }
    return deferral;
}

static void deferral_give_back(struct idem_engine *engine, struct idem_deferral *deferral)
{
    if (deferral->budget != NULL) {
        deferral->budget->deferrals -= 1;
    }
    deferral->budget = NULL;
    idem_list_push(&engine->free_deferrals, &deferral->node);
}

void idem_slot_give_back(struct idem_engine *engine, struct idem_request *request)
{
    if (request->deferral != NULL) {
        deferral_give_back(engine, request->deferral);
        request->deferral = NULL;
    }
}

/*
 * The intent waits from now on; the live table knows it. It may wait here already: a worker may
 * read a claim whose commit was not answered yet, and both are told to wait.
 */
static void defer(struct idem_engine *engine,
                  struct idem_deferral *deferral,
                  struct idem_budget *budget,
                  const struct idem_intent *intent)
{
    const struct idem_live *known = idem_live_find(engine->live, &intent->scope);
    if (known != NULL && known->deferred) {
        deferral_give_back(engine, deferral);
        return;
    }
    if (deferral->budget == NULL) {
        budget->deferrals += 1;
    }
    deferral->budget = budget;
    deferral->scope = intent->scope;
    deferral->row = intent->row;
    idem_live_get(engine->live, &intent->scope)->deferred = true;
    idem_list_push(&budget->waiting, &deferral->node);
    budget->deferred += 1;
}

void idem_slot_forget(struct idem_engine *engine, struct idem_deferral *deferral)
{
    struct idem_scope scope = deferral->scope;
    struct idem_live *live = idem_live_find(engine->live, &scope);
    IDEM_ASSERT(live != NULL && live->deferred);
    live->deferred = false;
    idem_live_drop(engine->live, &scope);
    deferral_give_back(engine, deferral);
}

/* ---- requests ---- */

/* Of the entry that the request names; NULL: only the facts know. */
static struct idem_budget *budget_of(const struct idem_engine *engine,
                                     const struct idem_request *request)
{
    return idem_budgets_find(&engine->budgets, request->item.command.accept.entry);
}

/*
 * A place on the wire, or one to wait in, is the request's; false: there is neither. Where only
 * flights are wanting, it needs none: the worker finds the claim, and sends.
 */
static bool place_take(struct idem_engine *engine, struct idem_request *request)
{
    struct idem_budget *budget = budget_of(engine, request);
    const struct idem_ticket wanted = { .use = IDEM_USE_FIRST, .budget = budget };
    struct idem_ticket ticket;
    bool in_turn = budget == NULL || budget->waiting.count == 0;
    if (!in_turn || !idem_budgets_take(&engine->budgets, wanted, now_of(engine), &ticket)) {
        request->deferral = deferral_take(engine, budget);
        return request->deferral != NULL;
    }
    struct idem_flight *flight = idem_flight_take(engine, false);
    if (flight == NULL) {
        idem_budgets_return(&engine->budgets, &ticket, now_of(engine));
        return true;
    }
    flight->ticket = ticket;
    request->flight = flight;
    return true;
}

static void turn_away(struct idem_engine *engine, struct idem_request *request)
{
    struct idem_budget *budget = budget_of(engine, request);
    int64_t wait_us = 0;
    if (budget != NULL) {
        int64_t next_us = idem_budget_next_us(budget, now_of(engine));
        wait_us = next_us != INT64_MAX ? next_us - now_of(engine) : 0;
        budget->turned_away += 1;
    }
    idem_request_finish_problem(engine, request, IDEM_PROBLEM_UNAVAILABLE);
    request->retry_after_us = wait_us > request->retry_after_us ? wait_us : request->retry_after_us;
}

bool idem_slot_admit(struct idem_engine *engine, struct idem_request *request)
{
    struct idem_budget *budget = budget_of(engine, request);
    struct idem_list *backlog = budget != NULL ? &budget->backlog : &engine->backlog;
    if (backlog->count == 0 && place_take(engine, request)) {
        return true;
    }
    if (backlog->count >= engine->options.requests_max / 4) {
        turn_away(engine, request);
        return false;
    }
    idem_list_push(backlog, &request->item.node);
    return false;
}

/* The claim is durable, or it was none after all. True: it waits here. */
bool idem_slot_claimed(struct idem_engine *engine, struct idem_request *request)
{
    const struct idem_intent *intent = &request->outcome.intent;
    struct idem_deferral *deferral = request->deferral;
    struct idem_budget *budget = NULL;
    if (deferral == NULL) {
        return false;
    }
    if (request->claimed && idem_slot_is_wanted(intent, request->item.command.now_us)) {
        budget = idem_budgets_find(&engine->budgets, intent->effect.entry);
    }
    bool fits = budget != NULL &&
                (deferral->budget == budget || budget->deferrals < deferrals_share(engine));
    if (!fits) { /* The worker finds it. */
        idem_slot_give_back(engine, request);
        return false;
    }
    request->deferral = NULL;
    defer(engine, deferral, budget, intent);
    return true;
}

/* It leaves the backlog; what its caller has waited already is over. */
static void queue_from_backlog(struct idem_engine *engine,
                               struct idem_list *backlog,
                               struct idem_request *request)
{
    struct idem_accept *accept = &request->item.command.accept;
    int64_t left_us = request->deadline_us - now_of(engine);
    if (accept->wait_us > 0) {
        accept->wait_us = left_us > 0 ? left_us : 1;
    }
    idem_list_remove(backlog, &request->item.node);
    idem_request_queue(engine, request);
}

static void backlog_move(struct idem_engine *engine, struct idem_list *backlog)
{
    while (backlog->first != NULL) {
        struct idem_store_item *item =
            IDEM_CONTAINER_OF(backlog->first, struct idem_store_item, node);
        struct idem_request *request = IDEM_CONTAINER_OF(item, struct idem_request, item);
        bool joins = idem_live_find(engine->live, &item->command.scope) != NULL;
        if (!joins && !place_take(engine, request)) {
            return;
        }
        queue_from_backlog(engine, backlog, request);
    }
}

/* Everybody whose deadline is not later than `until_us`: nothing was written for them. */
static void backlog_end(struct idem_engine *engine, struct idem_list *backlog, int64_t until_us)
{
    struct idem_list_node *node = backlog->first;
    while (node != NULL) {
        struct idem_list_node *next = node->next;
        struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        struct idem_request *request = IDEM_CONTAINER_OF(item, struct idem_request, item);
        if (request->deadline_us <= until_us) {
            idem_list_remove(backlog, node);
            idem_request_finish_problem(engine, request, IDEM_PROBLEM_UNAVAILABLE);
        }
        node = next;
    }
}

void idem_slot_end_backlog(struct idem_engine *engine, int64_t until_us)
{
    for (size_t i = 0; i < engine->budgets.count; i++) {
        backlog_end(engine, &engine->budgets.all[i].backlog, until_us);
    }
    backlog_end(engine, &engine->backlog, until_us);
}

bool idem_slot_has_backlog(const struct idem_engine *engine)
{
    size_t count = engine->backlog.count;
    for (size_t i = 0; i < engine->budgets.count; i++) {
        count += engine->budgets.all[i].backlog.count;
    }
    return count > 0;
}

/* ---- flights ---- */

bool idem_slot_is_wanted(const struct idem_intent *intent, int64_t now_us)
{
    bool unsent = intent->state == IDEM_INTENT_CLAIMED || intent->state == IDEM_INTENT_UNKNOWN;
    return unsent && intent->lease_end_us == 0 && intent->step == IDEM_STEP_SEND &&
           intent->due_us <= now_us;
}

bool idem_slot_ask_any(struct idem_engine *engine, struct idem_flight *flight)
{
    const struct idem_ticket wanted = { .use = IDEM_USE_FIRST, .by_worker = true };
    return idem_budgets_take(&engine->budgets, wanted, now_of(engine), &flight->ticket);
}

bool idem_slot_run_again(struct idem_engine *engine, struct idem_flight *flight)
{
    const struct idem_intent *intent = &flight->outcome.intent;
    const struct idem_command *command = &flight->item.command;
    bool asked = command->kind == IDEM_COMMAND_DUE && !command->slot && !engine->draining;
    struct idem_budget *budget = idem_budgets_find(&engine->budgets, intent->effect.entry);
    if (!asked || !idem_slot_is_wanted(intent, command->now_us) || budget == NULL) {
        return false;
    }
    bool is_first = intent->state == IDEM_INTENT_CLAIMED;
    const struct idem_ticket wanted = {
        .use = is_first ? IDEM_USE_FIRST : IDEM_USE_AGAIN,
        .budget = budget,
        .by_worker = flight->is_recovery,
    };
    bool in_turn = !is_first || budget->waiting.count == 0;
    bool granted =
        in_turn && idem_budgets_take(&engine->budgets, wanted, now_of(engine), &flight->ticket);
    struct idem_deferral *deferral = is_first && !granted ? deferral_take(engine, budget) : NULL;
    if (deferral != NULL) {
        defer(engine, deferral, budget, intent);
        return false;
    }
    const struct idem_due due = { .scope = intent->scope, .row = intent->row };
    idem_flight_recover(engine, flight, &due, true);
    return true;
}

/* What kind of use the call is that a decision has released. */
static enum idem_use use_of(const struct idem_outcome *outcome)
{
    if (outcome->release.kind != IDEM_RELEASE_SEND) {
        return IDEM_USE_ASK;
    }
    return outcome->intent.state == IDEM_INTENT_DISPATCHED ? IDEM_USE_FIRST : IDEM_USE_AGAIN;
}

bool idem_slot_use(struct idem_engine *engine, struct idem_flight *flight, int64_t *ret_pause_us)
{
    struct idem_ticket *ticket = &flight->ticket;
    int64_t now_us = now_of(engine);
    const struct idem_ticket wanted = {
        .use = use_of(&flight->outcome),
        .budget = idem_budgets_find(&engine->budgets, flight->outcome.intent.effect.entry),
        .by_worker = flight->is_recovery,
    };
    if (wanted.budget == NULL) { /* Only a port of its own mind calls there. */
        idem_budgets_return(&engine->budgets, ticket, now_us);
        return true;
    }
    if (ticket->use == IDEM_USE_FIRST && ticket->budget == NULL) {
        idem_budgets_place(&engine->budgets, ticket, wanted, now_us);
        return true;
    }
    if (ticket->use == wanted.use && ticket->budget == wanted.budget) {
        return true;
    }
    idem_budgets_return(&engine->budgets, ticket, now_us); /* It was for something else. */
    if (idem_budgets_take(&engine->budgets, wanted, now_us, ticket)) {
        return true;
    }
    int64_t next_us = idem_budget_next_us(wanted.budget, now_us);
    bool by_time = wanted.use == IDEM_USE_FIRST && next_us != INT64_MAX;
    int64_t pause_us = by_time ? next_us - now_us : 0;
    *ret_pause_us = pause_us > REFUSED_PAUSE_US ? pause_us : REFUSED_PAUSE_US;
    return false;
}

void idem_slot_over(struct idem_engine *engine, struct idem_flight *flight)
{
    idem_budgets_over(&engine->budgets, &flight->ticket, &flight->call.evidence, flight->called_us,
                      now_of(engine));
}

/* ---- rounds ---- */

/* Whoever waits longest goes first. */
static void waiting_move(struct idem_engine *engine, struct idem_budget *budget)
{
    const struct idem_ticket wanted = { .use = IDEM_USE_FIRST, .budget = budget };
    struct idem_ticket ticket;
    while (budget->waiting.first != NULL && engine->free_sends.count > 0 &&
           idem_budgets_take(&engine->budgets, wanted, now_of(engine), &ticket)) {
        struct idem_deferral *deferral =
            IDEM_CONTAINER_OF(idem_list_pop(&budget->waiting), struct idem_deferral, node);
        const struct idem_due due = { .scope = deferral->scope, .row = deferral->row };
        struct idem_flight *flight = idem_flight_take(engine, false);
        flight->ticket = ticket;
        idem_flight_recover(engine, flight, &due, true);
        idem_slot_forget(engine, deferral);
    }
}

void idem_slot_step(struct idem_engine *engine)
{
    struct idem_budgets *budgets = &engine->budgets;
    if (engine->reserve_low) { /* What is not claimed yet is not claimed any more. */
        idem_slot_end_backlog(engine, INT64_MAX);
    }
    engine->slot_turn += 1; /* Where flights are scarce, each entry is the first one in turn. */
    for (size_t i = 0; i < budgets->count && !engine->draining; i++) {
        struct idem_budget *budget = &budgets->all[(engine->slot_turn + i) % budgets->count];
        waiting_move(engine, budget);
        backlog_move(engine, &budget->backlog);
    }
    backlog_move(engine, &engine->backlog);
}

int64_t idem_slot_wake_us(const struct idem_engine *engine)
{
    int64_t wake_us = INT64_MAX;
    if (engine->free_sends.count == 0 || engine->draining) {
        return wake_us; /* A flight that ends is a step. */
    }
    for (size_t i = 0; i < engine->budgets.count; i++) {
        const struct idem_budget *budget = &engine->budgets.all[i];
        bool waits = budget->waiting.count + budget->backlog.count > 0;
        if (waits && !idem_budget_full(&engine->budgets, budget)) {
            int64_t next_us = idem_budget_next_us(budget, now_of(engine));
            wake_us = next_us < wake_us ? next_us : wake_us;
        }
    }
    return wake_us;
}

struct idem_budget_stats idem_engine_budget_stats(const struct idem_engine *engine, size_t provider)
{
    IDEM_ASSERT(provider < engine->budgets.count);
    const struct idem_budget *budget = &engine->budgets.all[provider];
    int64_t now_us = now_of(engine);
    return (struct idem_budget_stats){
        .limits = &budget->limits,
        .sends = budget->sends,
        .recoveries = budget->recoveries,
        .waiting = budget->waiting.count,
        .backlog = budget->backlog.count,
        .tokens = idem_bucket_tokens(&budget->bucket, now_us),
        .pause_us = budget->paused_until_us > now_us ? budget->paused_until_us - now_us : 0,
        .breaker = idem_breaker_state(&budget->breaker, now_us),
        .openings = budget->breaker.openings,
        .deferred = budget->deferred,
        .turned_away = budget->turned_away,
    };
}
