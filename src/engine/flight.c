/*
 * Flights: one intent each, from a granted call to the commit of what came of it.
 *
 * A flight is taken before the command that may need it is queued, so a granted send always has its
 * place on the wire and its place in the queue for settling: nothing that was dispatched can find
 * the engine full. A settle is repeated until it is durable; the call never is (R26).
 *
 * A settle that the store refuses although it was alone (CONFLICT) must not be in the way of
 * others: in one batch with them it would have each of them run on its own. It is set apart: from
 * then on it runs in a batch of its own, each time after a longer pause, and is never dropped.
 */
#include "engine/engine_internal.h"

#include "base/bug.h"
#include "base/crash.h"

#define APART_FIRST_US (20 * IDEM_US_PER_MS)
#define APART_MAX_US   (60 * IDEM_US_PER_SECOND)

struct idem_flight *idem_flight_take(struct idem_engine *engine, bool is_recovery)
{
    struct idem_list *pool = is_recovery ? &engine->free_recoveries : &engine->free_sends;
    struct idem_list_node *node = idem_list_pop(pool);
    if (node == NULL) {
        return NULL;
    }
    struct idem_flight *flight = IDEM_CONTAINER_OF(node, struct idem_flight, node);
    IDEM_ASSERT(flight->state == IDEM_FLIGHT_FREE);
    IDEM_ASSERT(flight->is_recovery == is_recovery);
    flight->state = IDEM_FLIGHT_HELD;
    engine->stats.flights += 1;
    return flight;
}

static void not_refused(struct idem_engine *engine, struct idem_flight *flight)
{
    engine->stats.settles_stuck -= flight->refusals > 0 ? 1 : 0;
    flight->refusals = 0;
}

void idem_flight_give_back(struct idem_engine *engine, struct idem_flight *flight)
{
    IDEM_ASSERT(flight->state == IDEM_FLIGHT_HELD || flight->state == IDEM_FLIGHT_SETTLING);
    struct idem_live *live = idem_live_find(engine->live, &flight->scope);
    if (live != NULL && live->flight == flight) {
        live->flight = NULL;
        if (live->waiters.count > 0) { /* From now on others may end it. */
            idem_watch_joined(engine);
        }
        idem_live_drop(engine->live, &flight->scope);
    }
    not_refused(engine, flight);
    idem_budgets_return(&engine->budgets, &flight->ticket,
                        idem_clock_mono_us(engine->options.clock));
    flight->state = IDEM_FLIGHT_FREE;
    flight->scope = (struct idem_scope){ .bytes = { 0 } };
    /* In front: so many are ever touched as were in use at once. Likewise in ports. */
    idem_list_push_front(flight->is_recovery ? &engine->free_recoveries : &engine->free_sends,
                         &flight->node);
    engine->stats.flights -= 1;
}

void idem_flight_attach(struct idem_engine *engine,
                        struct idem_flight *flight,
                        const struct idem_scope *scope)
{
    flight->scope = *scope;
    struct idem_live *live = idem_live_get(engine->live, scope);
    live->flight = flight;
}

static void queue_command(struct idem_engine *engine, struct idem_flight *flight)
{
    idem_engine_seed(engine, &flight->item.command);
    flight->item.owner = IDEM_OWNER_FLIGHT;
    flight->item.outcome = &flight->outcome;
    flight->unknown = false;
    flight->state = IDEM_FLIGHT_SETTLING;
    idem_engine_queue(engine, &flight->item);
}

/* The evidence in flight->call becomes a command. */
static void queue_evidence(struct idem_engine *engine, struct idem_flight *flight)
{
    const struct idem_intent *intent = &flight->outcome.intent;
    struct idem_command command = {
        .kind = IDEM_COMMAND_EVIDENCE,
        .scope = flight->scope,
        .intent_row = intent->row,
        .subject_payment_id = intent->payment_id,
        .evidence = flight->call.evidence,
    };
    command.evidence.token = intent->token;
    command.evidence.asked_us = flight->asked_us;
    if (flight->call.kind == IDEM_CALL_SEND) {
        command.evidence.send_no = flight->outcome.release.send_no;
    }
    flight->item.command = command;
    queue_command(engine, flight);
}

static enum idem_call_kind call_kind(enum idem_release_kind kind)
{
    switch (kind) {
    case IDEM_RELEASE_SEND:
        return IDEM_CALL_SEND;
    case IDEM_RELEASE_QUERY:
        return IDEM_CALL_QUERY;
    case IDEM_RELEASE_CLOSE:
        return IDEM_CALL_CLOSE;
    case IDEM_RELEASE_NONE:
    case IDEM_RELEASE_REPLY:
    case IDEM_RELEASE_WAIT:
    case IDEM_RELEASE_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/*
 * The entry's budget or the port had no room, so no byte left: that is proof for a send, and
 * nothing for a question. `pause_us`: not again before; 0: as ever after such an end. Text is kept
 * in the call's memory, as a port does: the outcome's is refilled when the evidence is decided.
 */
static void call_refused(struct idem_engine *engine, struct idem_flight *flight, int64_t pause_us)
{
    idem_budgets_return(&engine->budgets, &flight->ticket,
                        idem_clock_mono_us(engine->options.clock));
    const struct idem_effect *effect = &flight->outcome.intent.effect;
    struct idem_buf kept;
    idem_buf_init(&kept, flight->call.memory, sizeof(flight->call.memory));
    flight->call.evidence = (struct idem_evidence){
        .source = idem_call_source(flight->call.kind),
        .outcome =
            flight->call.kind == IDEM_CALL_SEND ? IDEM_OUTCOME_NOT_EXECUTED : IDEM_OUTCOME_UNKNOWN,
        .entry = idem_buf_keep(&kept, effect->entry),
        .account = idem_buf_keep(&kept, effect->account),
        .region = idem_buf_keep(&kept, effect->region),
        .amount_minor = -1,
        .code = IDEM_STR("not_sent"),
        .retry_after_us = pause_us,
    };
    IDEM_ASSERT(!kept.full);
    queue_evidence(engine, flight);
}

void idem_flight_call(struct idem_engine *engine, struct idem_flight *flight)
{
    const struct idem_release *release = &flight->outcome.release;
    const struct idem_command *command = &flight->item.command;
    IDEM_ASSERT(command->mono_us > 0);
    flight->call.kind = call_kind(release->kind);
    flight->call.effect = flight->outcome.intent.effect;
    flight->call.trace = flight->outcome.intent.trace;
    flight->call.evidence = (struct idem_evidence){ .source = IDEM_SOURCE_NONE };
    /*
     * Monotonic time was read before the granting transaction began, so this errs to the early
     * side.
     */
    int64_t granted_end_us =
        release->not_after_us != 0 ? release->not_after_us : flight->outcome.intent.lease_end_us;
    flight->call.not_after_us = command->mono_us + (granted_end_us - command->now_us);
    flight->called_us = idem_clock_mono_us(engine->options.clock);
    /* In the time of the stamps, which may be another machine's: it is compared with them. */
    flight->asked_us = command->now_us + (flight->called_us - command->mono_us);

    int64_t pause_us = 0;
    if (!idem_slot_use(engine, flight, &pause_us)) {
        call_refused(engine, flight, pause_us);
        return;
    }
    if (flight->call.kind == IDEM_CALL_SEND) {
        engine->stats.sends += 1;
        idem_crash_point("send-before");
    } else {
        engine->stats.queries += 1;
        idem_crash_point("ask-before");
    }
    flight->state = IDEM_FLIGHT_CALLING;
    if (idem_port_submit(engine->options.port, &flight->call) != IDEM_OK) {
        call_refused(engine, flight, 0);
        return;
    }
    idem_list_push(&engine->calling, &flight->node);
}

void idem_flight_reap_calls(struct idem_engine *engine)
{
    struct idem_list done = { .count = 0 };
    idem_port_reap(engine->options.port, &done);
    struct idem_list_node *node = NULL;
    while ((node = idem_list_pop(&done)) != NULL) {
        struct idem_call *call = IDEM_CONTAINER_OF(node, struct idem_call, node);
        struct idem_flight *flight = IDEM_CONTAINER_OF(call, struct idem_flight, call);
        IDEM_ASSERT(flight->state == IDEM_FLIGHT_CALLING);
        IDEM_ASSERT(call->evidence.source == idem_call_source(call->kind));
        idem_tally_call(engine, flight);
        idem_slot_over(engine, flight);
        idem_list_remove(&engine->calling, &flight->node);
        idem_crash_point(call->kind == IDEM_CALL_SEND ? "answer-received" : "ask-answered");
        queue_evidence(engine, flight);
    }
}

void idem_flight_recover(struct idem_engine *engine,
                         struct idem_flight *flight,
                         const struct idem_due *due,
                         bool slot)
{
    idem_flight_attach(engine, flight, &due->scope);
    flight->item.command = (struct idem_command){
        .kind = IDEM_COMMAND_DUE,
        .scope = due->scope,
        .intent_row = due->row,
        .slot = slot,
    };
    queue_command(engine, flight);
}

static void act_on_release(struct idem_engine *engine, struct idem_flight *flight)
{
    switch (flight->outcome.release.kind) {
    case IDEM_RELEASE_NONE:
    case IDEM_RELEASE_WAIT:
        if (!idem_slot_run_again(engine, flight)) {
            idem_flight_give_back(engine, flight);
        }
        return;
    case IDEM_RELEASE_REPLY:
        idem_crash_point("settle-durable");
        idem_request_notify(engine, &flight->outcome);
        idem_flight_give_back(engine, flight);
        return;
    case IDEM_RELEASE_SEND:
    case IDEM_RELEASE_QUERY:
    case IDEM_RELEASE_CLOSE:
        idem_flight_call(engine, flight);
        return;
    case IDEM_RELEASE_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

size_t idem_flight_form_apart(struct idem_engine *engine, struct idem_engine_batch *batch)
{
    int64_t now_us = idem_clock_mono_us(engine->options.clock);
    struct idem_flight *flight = NULL;
    IDEM_LIST_FOREACH (node, &engine->apart) {
        flight = IDEM_CONTAINER_OF(node, struct idem_flight, item.node);
        if (flight->again_us <= now_us || engine->options.store->broken) {
            break;
        }
        flight = NULL;
    }
    if (flight == NULL) {
        return 0;
    }
    struct idem_list alone = { .count = 0 };
    idem_list_remove(&engine->apart, &flight->item.node);
    idem_list_push(&alone, &flight->item.node);
    flight->item.again_us = now_us; /* It ran before, and its time has come. */
    size_t count = idem_batch_form(batch, engine->batches, engine->batch_count, &alone, now_us);
    if (count == 0) { /* Somebody has its subject at the moment. */
        flight->again_us = now_us + APART_FIRST_US;
        idem_list_join(&engine->apart, &alone);
    }
    return count;
}

int64_t idem_flight_apart_us(const struct idem_engine *engine)
{
    int64_t at_us = INT64_MAX;
    IDEM_LIST_FOREACH (node, &engine->apart) {
        const struct idem_flight *flight = IDEM_CONTAINER_OF(node, struct idem_flight, item.node);
        at_us = flight->again_us < at_us ? flight->again_us : at_us;
    }
    return at_us;
}

void idem_flight_leave_apart(struct idem_engine *engine)
{
    struct idem_list_node *node = NULL;
    while ((node = idem_list_pop(&engine->apart)) != NULL) {
        idem_flight_give_back(engine, IDEM_CONTAINER_OF(node, struct idem_flight, item.node));
    }
}

static void set_apart(struct idem_engine *engine, struct idem_flight *flight)
{
    int64_t pause_us = APART_FIRST_US;
    for (unsigned i = 0; i < flight->refusals && pause_us < APART_MAX_US; i++) {
        pause_us *= 2;
    }
    engine->stats.settles_stuck += flight->refusals == 0 ? 1 : 0;
    flight->refusals += 1;
    flight->again_us = idem_clock_mono_us(engine->options.clock) +
                       (pause_us < APART_MAX_US ? pause_us : APART_MAX_US);
    idem_list_push(&engine->apart, &flight->item.node);
}

void idem_flight_settled(struct idem_engine *engine, struct idem_flight *flight)
{
    IDEM_ASSERT(flight->state == IDEM_FLIGHT_SETTLING);
    enum idem_store_answer answer = flight->item.answer;
    if (answer == IDEM_STORE_DURABLE) {
        not_refused(engine, flight);
        idem_engine_note_due(engine, &flight->outcome.intent);
        act_on_release(engine, flight);
        return;
    }
    if (engine->options.store->broken) {
        idem_flight_give_back(engine, flight); /* The next process finds what is left here. */
        return;
    }
    struct idem_command *command = &flight->item.command;
    flight->unknown = flight->unknown || answer == IDEM_STORE_UNKNOWN;
    if (command->kind == IDEM_COMMAND_DUE && !flight->unknown) {
        if (engine->draining) {
            idem_flight_give_back(engine, flight); /* It stays due. */
            return;
        }
        idem_engine_seed(engine, command); /* Nothing was written: as if it came now. */
        command->now_us = 0;
    }
    if (answer != IDEM_STORE_CONFLICT) {
        idem_engine_again(engine, &flight->item);
        return;
    }
    set_apart(engine, flight);
    if (engine->hurried) {
        idem_flight_leave_apart(engine);
    }
}
