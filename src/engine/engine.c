/*
 * The engine's rounds.
 *
 *   submit -> queue -> batch -> store -> done --REPLY-> reply (and everybody who waits)
 *                ^                          |--WAIT--> waiters of the intent
 *                |                          '--SEND, QUERY, CLOSE--> port -> evidence --+
 *                +-----------------------------------------------------------------------+
 *
 * Tasks go the same way without a reply: queue -> batch -> store -> their submitter's list.
 *
 * One step takes what the store and the port have finished, forms the next batches from what is
 * queued, and lets go whoever has waited long enough. Commands that arrive while a batch is being
 * written form the next one: there is no timer, and batches grow exactly when the disk is slow.
 *
 * What is certain here:
 *   - a reply, a call or a 202 leaves only after a DURABLE item: from complete(), from a flight's
 *     settling or from a task that came back (P1, P2);
 *   - after UNKNOWN the same command runs again before anything else of its intent, since it goes
 *     to the front of the queue and batches never hold two commands of one subject. Until one of
 *     its runs is DURABLE it stays unknown, whatever the later ones say: the first may have been
 *     written, and may still hold the locks that the others wait for;
 *   - what the store refuses pauses by itself, and runs again beside the others (batch.h);
 *   - whoever waits has a deadline and is on `waiting` in its order (P8).
 */
#include "engine/engine.h"

#include <stdlib.h>

#include "base/bug.h"
#include "base/crash.h"
#include "engine/engine_internal.h"

#define RETRY_PAUSE_FIRST_US (20 * IDEM_US_PER_MS)
#define RETRY_PAUSE_MAX_US   (2 * IDEM_US_PER_SECOND)
#define CLAIM_WAIT_US        (10 * IDEM_US_PER_SECOND) /* For the commit of the impatient. */
#define QUEUE_LOOK_US        (100 * IDEM_US_PER_MS)

struct idem_engine_options idem_engine_options_default(void)
{
    return (struct idem_engine_options){
        .requests_max = 1024,
        .waiters_per_key_max = 128,
        .sends_max = 256,
        .recoveries_max = 64,
        .cache_entries = 4096,
    };
}

static void flights_init(struct idem_engine *engine)
{
    for (size_t i = 0; i < engine->flight_count; i++) {
        struct idem_flight *flight = &engine->flights[i];
        flight->is_recovery = i >= engine->options.sends_max;
        idem_list_push(flight->is_recovery ? &engine->free_recoveries : &engine->free_sends,
                       &flight->node);
    }
}

enum idem_err idem_engine_create(const struct idem_engine_options *options,
                                 struct idem_engine **ret_engine,
                                 struct idem_error *reterr)
{
    IDEM_ASSERT(options->recoveries_max > 0);
    struct idem_engine *engine = calloc(1, sizeof(*engine));
    if (engine == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for the engine");
    }
    engine->options = *options;
    engine->due_hint_us = INT64_MAX;
    engine->again_at_us = INT64_MAX;
    engine->batch_count = options->store->batches_in_flight_max;
    engine->flight_count = options->sends_max + options->recoveries_max;
    engine->batches = calloc(engine->batch_count, sizeof(*engine->batches));
    engine->flights = calloc(engine->flight_count, sizeof(*engine->flights));
    engine->call_stats = calloc(options->rules->provider_count + 1, sizeof(*engine->call_stats));
    engine->news = calloc(options->news_max + 1, sizeof(*engine->news));
    bool has_memory = engine->batches != NULL && engine->flights != NULL &&
                      engine->call_stats != NULL && engine->news != NULL;
    enum idem_err err = has_memory ? IDEM_OK : IDEM_E_SYSTEM;
    if (err == IDEM_OK) {
        err = idem_cache_create(options->cache_entries, &engine->cache);
    }
    if (err == IDEM_OK) {
        size_t most = options->requests_max + engine->flight_count + IDEM_DEFERRALS_MAX;
        err = idem_live_create(most, &engine->live);
    }
    if (err == IDEM_OK) {
        err = idem_slots_init(engine);
    }
    if (err == IDEM_OK) {
        err = idem_watch_create(options->store->shared, &engine->watch);
    }
    if (err != IDEM_OK) {
        idem_engine_destroy(engine);
        return idem_error_set(reterr, err, "no memory for the engine's limits");
    }
    flights_init(engine);
    *ret_engine = engine;
    return IDEM_OK;
}

void idem_engine_destroy(struct idem_engine *engine)
{
    if (engine == NULL) {
        return;
    }
    IDEM_ASSERT(engine->stats.requests == 0);
    IDEM_ASSERT(engine->tasks == 0);
    idem_watch_destroy(engine->watch);
    idem_slots_deinit(engine);
    idem_live_destroy(engine->live);
    idem_cache_destroy(engine->cache);
    free(engine->news);
    free(engine->call_stats);
    free(engine->flights);
    free(engine->batches);
    free(engine);
}

void idem_engine_seed(struct idem_engine *engine, struct idem_command *command)
{
    struct idem_random *random = engine->options.random;
    int64_t wall_us = idem_clock_wall_us(engine->options.clock);
    command->token = idem_uid_make_token(random);
    command->intent_id = idem_uid_make(wall_us, random);
    command->resource_id = idem_uid_make(wall_us, random);
    command->case_id = idem_uid_make(wall_us, random);
    command->message_id = idem_uid_make(wall_us, random);
    idem_random_fill(random, &command->noise, sizeof(command->noise));
}

void idem_engine_queue(struct idem_engine *engine, struct idem_store_item *item)
{
    item->answer = IDEM_STORE_NONE;
    item->again_us = 0;
    item->refusals = 0;
    idem_list_push(&engine->queue, &item->node);
}

void idem_engine_again(struct idem_engine *engine, struct idem_store_item *item)
{
    int64_t pause_us = RETRY_PAUSE_FIRST_US;
    for (unsigned i = 0; i < item->refusals && pause_us < RETRY_PAUSE_MAX_US; i++) {
        pause_us *= 2;
    }
    pause_us = pause_us < RETRY_PAUSE_MAX_US ? pause_us : RETRY_PAUSE_MAX_US;
    item->refusals += 1;
    item->again_us = idem_clock_mono_us(engine->options.clock) + pause_us;
    engine->again_at_us =
        item->again_us < engine->again_at_us ? item->again_us : engine->again_at_us;
    idem_list_push_front(&engine->queue, &item->node);
}

void idem_engine_note_due(struct idem_engine *engine, const struct idem_intent *intent)
{
    bool planned = idem_intent_is_open(intent->state) && intent->lease_end_us == 0;
    if (planned && intent->due_us < engine->due_hint_us) {
        engine->due_hint_us = intent->due_us;
    }
}

static bool serve_from_cache(struct idem_engine *engine, struct idem_request *request)
{
    if (request->item.command.kind != IDEM_COMMAND_ACCEPT) {
        return false;
    }
    enum idem_cache_verdict verdict =
        idem_cache_get(engine->cache, &request->item.command,
                       idem_clock_wall_us(engine->options.clock), &request->outcome);
    switch (verdict) {
    case IDEM_CACHE_MISS:
        return false;
    case IDEM_CACHE_REPLAY:
        engine->stats.replayed_from_memory += 1;
        idem_request_finish_reply(engine, request);
        return true;
    case IDEM_CACHE_REUSED:
        idem_request_finish_problem(engine, request, IDEM_PROBLEM_KEY_REUSED);
        return true;
    }
    IDEM_UNREACHABLE();
}

bool idem_engine_can_record(const struct idem_engine *engine)
{
    const struct idem_store *store = engine->options.store;
    return !engine->draining && !store->broken && !store->stopped;
}

bool idem_engine_takes_work(const struct idem_engine *engine)
{
    return idem_engine_can_record(engine) && !engine->reserve_low;
}

static bool may_admit(const struct idem_engine *engine, const struct idem_request *request)
{
    bool is_claim = request->item.command.kind == IDEM_COMMAND_ACCEPT;
    bool fits = is_claim ? idem_engine_takes_work(engine) : idem_engine_can_record(engine);
    return fits && engine->stats.requests <= engine->options.requests_max;
}

void idem_engine_submit(struct idem_engine *engine, struct idem_request *request)
{
    struct idem_command *command = &request->item.command;
    IDEM_ASSERT(command->kind == IDEM_COMMAND_ACCEPT || command->kind == IDEM_COMMAND_ABANDON);
    request->reply = IDEM_REPLY_NONE;
    request->problem = IDEM_PROBLEM_NONE;
    request->replayed = false;
    request->identified = false;
    request->claimed = false;
    request->retry_after_us = 0;
    request->flight = NULL;
    request->deferral = NULL;
    request->unknown = false;
    engine->late = true;
    engine->stats.requests += 1;
    engine->stats.accepted += 1;

    if (serve_from_cache(engine, request)) {
        return;
    }
    if (!may_admit(engine, request)) {
        idem_request_finish_problem(engine, request, IDEM_PROBLEM_UNAVAILABLE);
        return;
    }
    idem_engine_seed(engine, command);
    command->now_us = 0; /* The store stamps it. */
    int64_t wait_us = command->accept.wait_us > 0 ? command->accept.wait_us : CLAIM_WAIT_US;
    request->deadline_us = idem_clock_mono_us(engine->options.clock) + wait_us;
    bool may_claim = command->kind == IDEM_COMMAND_ACCEPT &&
                     idem_live_find(engine->live, &command->scope) == NULL;
    if (!may_claim || idem_slot_admit(engine, request)) {
        idem_request_queue(engine, request);
    }
}

enum idem_err idem_engine_recover(struct idem_engine *engine, const struct idem_due *due)
{
    const struct idem_live *live = idem_live_find(engine->live, &due->scope);
    if (live != NULL && (live->flight != NULL || live->deferred)) {
        return IDEM_OK;
    }
    struct idem_flight *flight = idem_flight_take(engine, true);
    if (flight == NULL) {
        return IDEM_E_LIMIT;
    }
    bool slot = idem_slot_ask_any(engine, flight);
    idem_flight_recover(engine, flight, due, slot);
    return IDEM_OK;
}

int64_t idem_engine_take_due_hint(struct idem_engine *engine)
{
    int64_t due_us = engine->due_hint_us;
    engine->due_hint_us = INT64_MAX;
    return due_us;
}

bool idem_engine_take_post_hint(struct idem_engine *engine)
{
    bool hint = engine->post_hint;
    engine->post_hint = false;
    return hint;
}

size_t idem_engine_recovery_room(const struct idem_engine *engine)
{
    return engine->free_recoveries.count;
}

/* The request's command is durable: act on what it released. */
static void complete(struct idem_engine *engine, struct idem_request *request)
{
    const struct idem_outcome *outcome = &request->outcome;
    const struct idem_command *command = &request->item.command;
    request->claimed = idem_uid_equal(outcome->intent.last_command, command->token);
    engine->stats.claimed += request->claimed && command->kind == IDEM_COMMAND_ACCEPT ? 1 : 0;
    if (!idem_slot_claimed(engine, request)) {
        idem_engine_note_due(engine, &outcome->intent);
    }
    switch (outcome->release.kind) {
    case IDEM_RELEASE_REPLY:
        idem_cache_put(engine->cache, outcome);
        idem_request_finish_reply(engine, request);
        return;
    case IDEM_RELEASE_WAIT:
        idem_request_join(engine, request);
        return;
    case IDEM_RELEASE_SEND: {
        struct idem_flight *flight = request->flight;
        IDEM_ASSERT(flight != NULL);
        idem_crash_point("accept-durable");
        request->flight = NULL;
        idem_outcome_copy(&flight->outcome, outcome);
        flight->item.command = *command; /* Its stamps say when the grant began. */
        idem_flight_attach(engine, flight, &command->scope);
        idem_request_join(engine, request);
        idem_flight_call(engine, flight);
        return;
    }
    case IDEM_RELEASE_NONE:
    case IDEM_RELEASE_QUERY:
    case IDEM_RELEASE_CLOSE:
    case IDEM_RELEASE_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* Nobody knows whether it was written: as long as somebody waits, it is found out. */
static void find_out(struct idem_engine *engine, struct idem_request *request)
{
    bool late = request->deadline_us <= idem_clock_mono_us(engine->options.clock);
    if (engine->options.store->broken || late) {
        idem_request_finish_problem(engine, request, IDEM_PROBLEM_OUTCOME_UNKNOWN);
        return;
    }
    idem_engine_again(engine, &request->item);
}

static void request_came_back(struct idem_engine *engine, struct idem_request *request)
{
    switch (request->item.answer) {
    case IDEM_STORE_DURABLE:
        complete(engine, request);
        return;
    case IDEM_STORE_UNKNOWN:
        request->unknown = true;
        find_out(engine, request);
        return;
    case IDEM_STORE_CONFLICT:
    case IDEM_STORE_NOTHING:
    case IDEM_STORE_WRONG_NODE:
    case IDEM_STORE_DOWN:
        if (request->unknown) {
            find_out(engine, request);
            return;
        }
        idem_request_finish_problem(engine, request, IDEM_PROBLEM_UNAVAILABLE);
        return;
    case IDEM_STORE_NONE:
    case IDEM_STORE_ANSWER_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void item_came_back(struct idem_engine *engine, struct idem_store_item *item)
{
    if (item->answer == IDEM_STORE_DURABLE && engine->options.store->broken) {
        item->answer = IDEM_STORE_UNKNOWN; /* Durable in what may be no store any more. */
    }
    engine->stats.answers[item->answer] += 1;
    if (item->answer == IDEM_STORE_DURABLE) {
        idem_tally_durable(engine, item);
        engine->post_hint = engine->post_hint || item->outcome->to_post;
        idem_news_tell(engine, item);
    }
    switch ((enum idem_owner)item->owner) {
    case IDEM_OWNER_REQUEST:
        request_came_back(engine, IDEM_CONTAINER_OF(item, struct idem_request, item));
        return;
    case IDEM_OWNER_FLIGHT:
        idem_flight_settled(engine, IDEM_CONTAINER_OF(item, struct idem_flight, item));
        return;
    case IDEM_OWNER_TASK:
        idem_task_came_back(engine, IDEM_CONTAINER_OF(item, struct idem_task, item));
        return;
    case IDEM_OWNER_NONE:
    case IDEM_OWNER_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void route_read(struct idem_engine *engine, struct idem_read *read)
{
    engine->reads -= 1;
    idem_list_push(read->done, &read->node);
}

static void batch_came_back(struct idem_engine *engine, struct idem_engine_batch *batch)
{
    struct idem_list_node *node = NULL;
    batch->busy = false;
    idem_histogram_add(&engine->stats.commit_us,
                       idem_clock_mono_us(engine->options.clock) - batch->submitted_us);
    while ((node = idem_list_pop(&batch->store.items)) != NULL) {
        item_came_back(engine, IDEM_CONTAINER_OF(node, struct idem_store_item, node));
    }
}

static void reap_store(struct idem_engine *engine)
{
    struct idem_list batches = { .count = 0 };
    struct idem_list reads = { .count = 0 };
    struct idem_list_node *node = NULL;
    idem_store_reap(engine->options.store, &batches, &reads);
    while ((node = idem_list_pop(&reads)) != NULL) {
        route_read(engine, IDEM_CONTAINER_OF(node, struct idem_read, node));
    }
    while ((node = idem_list_pop(&batches)) != NULL) {
        struct idem_store_batch *batch = IDEM_CONTAINER_OF(node, struct idem_store_batch, node);
        batch_came_back(engine, IDEM_CONTAINER_OF(batch, struct idem_engine_batch, store));
    }
}

static struct idem_engine_batch *free_batch(struct idem_engine *engine)
{
    for (size_t i = 0; i < engine->batch_count; i++) {
        if (!engine->batches[i].busy) {
            return &engine->batches[i];
        }
    }
    return NULL;
}

static void submit_batch(struct idem_engine *engine, struct idem_engine_batch *batch)
{
    size_t count = batch->store.items.count;
    batch->busy = true;
    batch->submitted_us = idem_clock_mono_us(engine->options.clock);
    batch->store.answer = IDEM_STORE_NONE;
    engine->stats.batches += 1;
    engine->stats.commands += count;
    idem_histogram_add(&engine->stats.batch_commands, (int64_t)count);
    idem_store_submit(engine->options.store, &batch->store);
}

static void submit_batches(struct idem_engine *engine)
{
    int64_t now_us = idem_clock_mono_us(engine->options.clock);
    while (engine->queue.count + engine->apart.count > 0 &&
           idem_store_has_room(engine->options.store)) {
        struct idem_engine_batch *batch = free_batch(engine);
        if (batch == NULL) {
            return;
        }
        size_t count = idem_flight_form_apart(engine, batch);
        if (count == 0) {
            count = idem_batch_form(batch, engine->batches, engine->batch_count, &engine->queue,
                                    now_us);
        }
        if (count == 0) {
            return; /* Everything waits for a batch that is under way, or for its time. */
        }
        submit_batch(engine, batch);
    }
}

/*
 * Takes a request out of the queue if its time has ended; an unknown commit stays unknown. A task
 * has no time, but ends with the store.
 */
static void end_if_late(struct idem_engine *engine, struct idem_store_item *item, int64_t now_us)
{
    if (item->owner == IDEM_OWNER_TASK && engine->options.store->broken) {
        idem_task_end_queued(engine, IDEM_CONTAINER_OF(item, struct idem_task, item));
    }
    if (item->owner != IDEM_OWNER_REQUEST) {
        return;
    }
    struct idem_request *request = IDEM_CONTAINER_OF(item, struct idem_request, item);
    if (request->deadline_us > now_us && !engine->options.store->broken) {
        return;
    }
    idem_list_remove(&engine->queue, &item->node);
    idem_request_finish_problem(engine, request,
                                request->unknown ? IDEM_PROBLEM_OUTCOME_UNKNOWN
                                                 : IDEM_PROBLEM_UNAVAILABLE);
}

static void end_queued(struct idem_engine *engine)
{
    int64_t now_us = idem_clock_mono_us(engine->options.clock);
    if (now_us < engine->queue_look_us && !engine->options.store->broken) {
        return; /* Walking a long queue at every step would cost more than it frees. */
    }
    engine->queue_look_us = now_us + QUEUE_LOOK_US;
    idem_slot_end_backlog(engine, engine->options.store->broken ? INT64_MAX : now_us);
    struct idem_list_node *node = engine->queue.first;
    while (node != NULL) {
        struct idem_list_node *next = node->next;
        end_if_late(engine, IDEM_CONTAINER_OF(node, struct idem_store_item, node), now_us);
        node = next;
    }
}

/* What may run again now and does not waits for a batch, whose end is a step. */
static void note_again(struct idem_engine *engine)
{
    int64_t now_us = idem_clock_mono_us(engine->options.clock);
    if (engine->again_at_us > now_us) {
        return;
    }
    engine->again_at_us = INT64_MAX;
    IDEM_LIST_FOREACH (node, &engine->queue) {
        int64_t again_us = IDEM_CONTAINER_OF(node, struct idem_store_item, node)->again_us;
        if (again_us > now_us && again_us < engine->again_at_us) {
            engine->again_at_us = again_us;
        }
    }
}

void idem_engine_step(struct idem_engine *engine)
{
    engine->late = false;
    reap_store(engine);
    idem_flight_reap_calls(engine);
    idem_slot_step(engine);
    submit_batches(engine);
    reap_store(engine); /* A store that answers at once need not wait for the next step. */
    submit_batches(engine);
    end_queued(engine);
    note_again(engine);
    idem_watch_step(engine);
    idem_request_end_waits(engine, idem_clock_mono_us(engine->options.clock));
    engine->stats.queued = engine->queue.count;
}

int64_t idem_engine_wake_us(const struct idem_engine *engine)
{
    if (engine->late) {
        return 0;
    }
    int64_t wake_us = INT64_MAX;
    if (engine->waiting.first != NULL) {
        wake_us = IDEM_CONTAINER_OF(engine->waiting.first, struct idem_request, node)->deadline_us;
    }
    wake_us = engine->again_at_us < wake_us ? engine->again_at_us : wake_us;
    int64_t watch_us = idem_watch_wake_us(engine);
    wake_us = watch_us < wake_us ? watch_us : wake_us;
    int64_t apart_us = idem_flight_apart_us(engine);
    wake_us = apart_us < wake_us ? apart_us : wake_us;
    int64_t slot_us = idem_slot_wake_us(engine);
    wake_us = slot_us < wake_us ? slot_us : wake_us;
    bool queued = engine->queue.count > 0 || idem_slot_has_backlog(engine);
    if (queued && engine->queue_look_us < wake_us) {
        wake_us = engine->queue_look_us;
    }
    return wake_us;
}

void idem_engine_read(struct idem_engine *engine, struct idem_read *read)
{
    IDEM_ASSERT(read->done != NULL);
    engine->reads += 1;
    idem_store_read(engine->options.store, read);
}

void idem_engine_reap(struct idem_engine *engine, struct idem_list *ret_requests)
{
    idem_list_join(ret_requests, &engine->done_requests);
}

void idem_engine_set_reserve_low(struct idem_engine *engine, bool low)
{
    engine->reserve_low = low;
}

bool idem_engine_shares_store(const struct idem_engine *engine)
{
    return engine->options.store->shared;
}

void idem_engine_drain(struct idem_engine *engine)
{
    engine->draining = true;
    idem_slot_end_backlog(engine, INT64_MAX);
}

static void end_queued_tasks(struct idem_engine *engine)
{
    struct idem_list_node *node = engine->queue.first;
    while (node != NULL) {
        struct idem_list_node *next = node->next;
        struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        if (item->owner == IDEM_OWNER_TASK) {
            idem_task_end_queued(engine, IDEM_CONTAINER_OF(item, struct idem_task, item));
        }
        node = next;
    }
}

void idem_engine_hurry(struct idem_engine *engine)
{
    IDEM_ASSERT(engine->draining);
    engine->hurried = true;
    idem_request_end_waits(engine, INT64_MAX);
    idem_flight_leave_apart(engine);
    end_queued_tasks(engine);
    IDEM_LIST_FOREACH (node, &engine->calling) {
        idem_port_cancel(engine->options.port,
                         &IDEM_CONTAINER_OF(node, struct idem_flight, node)->call);
    }
}

bool idem_engine_quiet(const struct idem_engine *engine)
{
    return engine->stats.requests == 0 && engine->stats.flights == 0 && engine->tasks == 0;
}

bool idem_engine_idle(const struct idem_engine *engine)
{
    return idem_engine_quiet(engine) && engine->reads == 0;
}

const struct idem_engine_stats *idem_engine_stats(const struct idem_engine *engine)
{
    return &engine->stats;
}

const struct idem_call_stats *idem_engine_call_stats(const struct idem_engine *engine)
{
    return engine->call_stats;
}
