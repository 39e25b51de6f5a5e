/*
 * Requests: how each ends, and how it waits.
 *
 * Every request ends in exactly one of the finish functions, which give back the flight that it
 * held and did not need, and put it on the done list. Who waits is on two lists at once: the
 * waiters of its intent, so that the outcome finds it, and `waiting` in the order of deadlines, so
 * that time does (P8).
 */
#include "engine/engine_internal.h"

#include "base/bug.h"
#include "base/crash.h"

#define BUSY_RETRY_AFTER_US IDEM_US_PER_SECOND

void idem_request_queue(struct idem_engine *engine, struct idem_request *request)
{
    request->item.command.slot = request->flight != NULL;
    request->item.owner = IDEM_OWNER_REQUEST;
    request->item.outcome = &request->outcome;
    idem_crash_point("accept-queued");
    idem_engine_queue(engine, &request->item);
}

static void finish(struct idem_engine *engine, struct idem_request *request)
{
    IDEM_ASSERT(request->reply != IDEM_REPLY_NONE);
    request->replayed = !request->claimed;
    if (request->flight != NULL) { /* Held, and not needed after all. */
        idem_flight_give_back(engine, request->flight);
        request->flight = NULL;
    }
    idem_slot_give_back(engine, request);
    engine->stats.requests -= 1;
    idem_list_push(&engine->done_requests, &request->node);
}

void idem_request_finish_problem(struct idem_engine *engine,
                                 struct idem_request *request,
                                 enum idem_problem problem)
{
    request->reply = IDEM_REPLY_PROBLEM;
    request->problem = problem;
    engine->stats.problems[problem] += 1;
    if (problem == IDEM_PROBLEM_UNAVAILABLE || problem == IDEM_PROBLEM_OUTCOME_UNKNOWN ||
        problem == IDEM_PROBLEM_IN_PROGRESS) {
        request->retry_after_us = BUSY_RETRY_AFTER_US;
    }
    finish(engine, request);
}

void idem_request_finish_operation(struct idem_engine *engine, struct idem_request *request)
{
    request->reply = IDEM_REPLY_OPERATION;
    engine->stats.operations += 1;
    request->retry_after_us = BUSY_RETRY_AFTER_US;
    finish(engine, request);
}

/* request->outcome is a REPLY. */
void idem_request_finish_reply(struct idem_engine *engine, struct idem_request *request)
{
    const struct idem_release *release = &request->outcome.release;
    IDEM_ASSERT(release->kind == IDEM_RELEASE_REPLY);
    request->identified = request->outcome.intent.row != 0;
    if (release->problem != IDEM_PROBLEM_NONE) {
        request->retry_after_us = release->retry_after_us;
        idem_request_finish_problem(engine, request, release->problem);
        return;
    }
    request->reply = IDEM_REPLY_ANSWER;
    engine->stats.replayed += request->claimed ? 0 : 1;
    finish(engine, request);
}

void idem_request_notify(struct idem_engine *engine, const struct idem_outcome *outcome)
{
    IDEM_ASSERT(outcome->release.kind == IDEM_RELEASE_REPLY);
    idem_cache_put(engine->cache, outcome);
    struct idem_live *live = idem_live_find(engine->live, &outcome->intent.scope);
    if (live == NULL) {
        return;
    }
    struct idem_list_node *node = NULL;
    while ((node = idem_list_pop(&live->waiters)) != NULL) {
        struct idem_request *request = IDEM_CONTAINER_OF(node, struct idem_request, wait_node);
        idem_list_remove(&engine->waiting, &request->node);
        /* Another process may have released its claim, and somebody else claimed again. */
        request->claimed =
            request->claimed && outcome->intent.patience_us == request->outcome.intent.patience_us;
        idem_outcome_copy(&request->outcome, outcome);
        idem_request_finish_reply(engine, request);
    }
    idem_live_drop(engine->live, &outcome->intent.scope);
}

/* By deadline; most have the same patience, so the place is near the end. */
static void insert_by_deadline(struct idem_engine *engine, struct idem_request *request)
{
    struct idem_list_node *before = engine->waiting.last;
    while (before != NULL && IDEM_CONTAINER_OF(before, struct idem_request, node)->deadline_us >
                                 request->deadline_us) {
        before = before->prev;
    }
    idem_list_insert_after(&engine->waiting, before, &request->node);
}

void idem_request_join(struct idem_engine *engine, struct idem_request *request)
{
    const struct idem_scope *scope = &request->item.command.scope;
    request->identified = true;
    bool will_not_wait = request->respond_async || request->item.command.accept.wait_us == 0;
    if (will_not_wait || (!request->claimed && request->in_flight == IDEM_IN_FLIGHT_ACCEPT)) {
        idem_request_finish_operation(engine, request);
        return;
    }
    if (!request->claimed && request->in_flight == IDEM_IN_FLIGHT_CONFLICT) {
        idem_request_finish_problem(engine, request, IDEM_PROBLEM_IN_PROGRESS);
        return;
    }
    struct idem_live *live = idem_live_find(engine->live, scope);
    if (live != NULL && live->waiters.count >= engine->options.waiters_per_key_max) {
        idem_request_finish_operation(engine, request);
        return;
    }
    if (request->deadline_us <= idem_clock_mono_us(engine->options.clock)) {
        idem_request_finish_operation(engine, request);
        return;
    }
    if (request->flight != NULL) {
        idem_flight_give_back(engine, request->flight);
        request->flight = NULL;
    }
    live = idem_live_get(engine->live, scope);
    idem_list_push(&live->waiters, &request->wait_node);
    insert_by_deadline(engine, request);
    if (live->flight == NULL) {
        idem_watch_joined(engine);
    }
}

/*
 * False once another process may have released the claim of `request`, and somebody else claimed
 * again: then nobody is told that it is first, rather than two (P3). Nobody else touches it while
 * its lease lives and a flight here acts on it.
 */
static bool claim_lasts(const struct idem_engine *engine,
                        const struct idem_live *live,
                        const struct idem_request *request)
{
    const struct idem_flight *flight = live->flight;
    const struct idem_command *command = &request->item.command;
    if (!engine->options.store->shared) {
        return true;
    }
    int64_t lease_us = request->outcome.intent.lease_end_us - command->now_us;
    return flight != NULL && !flight->is_recovery &&
           idem_clock_mono_us(engine->options.clock) < command->mono_us + lease_us;
}

void idem_request_end_waits(struct idem_engine *engine, int64_t until_us)
{
    while (engine->waiting.first != NULL) {
        struct idem_request *request =
            IDEM_CONTAINER_OF(engine->waiting.first, struct idem_request, node);
        if (request->deadline_us > until_us) {
            return;
        }
        struct idem_scope scope = request->item.command.scope;
        struct idem_live *live = idem_live_find(engine->live, &scope);
        IDEM_ASSERT(live != NULL);
        request->claimed = request->claimed && claim_lasts(engine, live, request);
        idem_list_remove(&live->waiters, &request->wait_node);
        idem_list_remove(&engine->waiting, &request->node);
        idem_request_finish_operation(engine, request);
        idem_live_drop(engine->live, &scope);
    }
}
