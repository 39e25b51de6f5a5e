/*
 * The client: one loop of its own, a few slots for requests, and lists of intents.
 *
 * turn() is the whole machine: let the loop run, take what calls have come back, wake what is due,
 * give idle slots to whoever is ready, write down what has ended. Nobody is told of an end before
 * the journal has it, or has refused it (`recorded`).
 *
 * The loop is libuv's, inside a descriptor that is readable when it has something to do. libuv
 * tells the system of a new socket only at the beginning of its next round; so perform() goes on
 * until a round has changed nothing, and what the caller polls is complete.
 */
#include <stdlib.h>

#include "base/bug.h"
#include "base/crash.h"
#include "client/client_internal.h"
#include "client/pipe_guard.h"

#define ROUNDS_MAX   64  /* Of one perform; the rest is for the next. */
#define TOGETHER_MAX 256 /* Verdicts in one transaction. */

#define FORGET_MIN_MS INT64_C(86400000) /* A day: a retry of yesterday still finds its name. */

void idem_client_place(struct idem_client_intent *intent, enum idem_client_place place)
{
    struct idem_client *client = intent->client;

    if (intent->place != IDEM_PLACE_NONE) {
        idem_list_remove(&client->places[intent->place], &intent->node);
    }
    intent->place = place;
    if (place != IDEM_PLACE_NONE) {
        idem_list_push(&client->places[place], &intent->node);
    }
}

static struct idem_client_intent *first_of(struct idem_client *client, enum idem_client_place place)
{
    struct idem_list_node *node = client->places[place].first;
    return node == NULL ? NULL : IDEM_CONTAINER_OF(node, struct idem_client_intent, node);
}

size_t idem_client_running(const struct idem_client *client)
{
    size_t count = 0;
    for (enum idem_client_place i = IDEM_PLACE_READY; i < IDEM_PLACE_COUNT; i++) {
        count += client->places[i].count;
    }
    return count;
}

void idem_client_note_due(struct idem_client_intent *intent)
{
    intent->client->notes_due += intent->note_due ? 0 : 1;
    intent->note_due = true;
}

void idem_client_note_done(struct idem_client_intent *intent)
{
    intent->client->notes_due -= intent->note_due ? 1 : 0;
    intent->note_due = false;
}

/* One turn. */

static bool calls_reap(struct idem_client *client)
{
    struct idem_list done = { .count = 0 };
    struct idem_list_node *node;
    bool any = false;

    idem_http_client_reap(client->http, &done);
    while ((node = idem_list_pop(&done)) != NULL) {
        struct idem_http_call *call = IDEM_CONTAINER_OF(node, struct idem_http_call, node);
        struct idem_client_slot *slot = IDEM_CONTAINER_OF(call, struct idem_client_slot, call);
        idem_run_answered(slot->intent);
        any = true;
    }
    return any;
}

/* Wakes what is due in one place. */
static bool place_wake(struct idem_client *client, enum idem_client_place place, int64_t now_us)
{
    bool any = false;
    struct idem_list_node *next;
    for (struct idem_list_node *node = client->places[place].first; node != NULL; node = next) {
        next = node->next;
        struct idem_client_intent *intent =
            IDEM_CONTAINER_OF(node, struct idem_client_intent, node);
        if (idem_run_due_us(intent) <= now_us) {
            idem_run_wake(intent);
            any = true;
        }
    }
    return any;
}

static bool ready_go(struct idem_client *client)
{
    bool any = false;
    struct idem_client_intent *intent;
    while (client->idle.count > 0 && (intent = first_of(client, IDEM_PLACE_READY)) != NULL) {
        struct idem_client_slot *slot =
            IDEM_CONTAINER_OF(client->idle.first, struct idem_client_slot, node);
        if (slot->answer_room == NULL) {
            slot->answer_room = malloc(client->options.answer_max);
        }
        if (slot->answer_room == NULL) {
            break; /* Later, or at the deadline: nothing was sent. */
        }
        idem_run_go(intent, slot);
        any = true;
    }
    return any;
}

/* Where to ask for what runs, many in one transaction. Losing it costs a question by key. */
static void notes_write(struct idem_client *client)
{
    struct idem_client_record *records[TOGETHER_MAX];
    size_t count = 0;

    if (client->notes_due == 0) {
        return;
    }
    IDEM_LIST_FOREACH (node, &client->intents) {
        struct idem_client_intent *intent = IDEM_CONTAINER_OF(node, struct idem_client_intent, kin);
        if (intent->note_due && count < TOGETHER_MAX) {
            idem_client_note_done(intent);
            records[count] = &intent->record;
            count += 1;
        }
    }
    struct idem_client_error error;
    enum idem_client_err err = idem_client_journal_note(client->journal, records, count, &error);
    (void)err;
}

/* Writes one verdict, after the whole lot was refused because of one of them. */
static bool ended_write_one(struct idem_client *client, struct idem_client_record *record)
{
    struct idem_client_error error;
    return idem_client_journal_end(client->journal, &record, 1, &error) == IDEM_CLIENT_OK;
}

/* Writes down what has ended, many in one transaction, and lets it be reaped. */
static bool ended_write(struct idem_client *client)
{
    struct idem_client_record *records[TOGETHER_MAX];
    size_t count = 0;
    struct idem_list *ended = &client->places[IDEM_PLACE_ENDED];

    for (struct idem_list_node *node = ended->first; node != NULL && count < TOGETHER_MAX;
         node = node->next) {
        records[count] = &IDEM_CONTAINER_OF(node, struct idem_client_intent, node)->record;
        count += 1;
    }
    if (count == 0) {
        return false;
    }
    struct idem_client_error error;
    idem_crash_point("client-end-before");
    enum idem_client_err err = idem_client_journal_end(client->journal, records, count, &error);
    idem_crash_point("client-end-durable");
    for (size_t i = 0; i < count; i++) {
        struct idem_client_intent *intent = first_of(client, IDEM_PLACE_ENDED);
        bool recorded = err == IDEM_CLIENT_OK ||
                        (err == IDEM_CLIENT_E_BUSY && ended_write_one(client, &intent->record));
        idem_client_journal_unlock(client->journal, intent->record.name);
        /* What is not written down is found out again, and what was done counts in that run. */
        intent->record.doubt = intent->record.doubt || !recorded;
        idem_verdict_from_record(intent, recorded);
        idem_client_place(intent, IDEM_PLACE_FINISHED);
    }
    return true;
}

static void on_due(uv_timer_t *timer)
{
    (void)timer; /* It only ends the loop's waiting. */
}

static void on_waited(uv_timer_t *timer)
{
    struct idem_client *client = timer->data;
    client->waited = true;
}

void idem_client_arm(struct idem_client *client)
{
    int64_t now_us = idem_clock_mono_us(client->clock);
    int64_t due_us = INT64_MAX;
    const enum idem_client_place places[] = { IDEM_PLACE_READY, IDEM_PLACE_PAUSING };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(places); i++) {
        struct idem_list_node *node;
        for (node = client->places[places[i]].first; node != NULL; node = node->next) {
            int64_t own_us =
                idem_run_due_us(IDEM_CONTAINER_OF(node, struct idem_client_intent, node));
            due_us = own_us < due_us ? own_us : due_us;
        }
    }
    if (due_us == INT64_MAX) {
        (void)uv_timer_stop(&client->due); /* Cannot fail. */
        return;
    }
    int64_t left_us = due_us > now_us ? due_us - now_us : 0;
    uv_update_time(&client->loop);
    /* Never too early, and it cannot fail with a callback. */
    (void)uv_timer_start(&client->due, on_due, (uint64_t)(left_us / IDEM_US_PER_MS) + 1, 0);
}

/* True if anything has changed. */
static bool turn(struct idem_client *client, uv_run_mode mode)
{
    uint64_t stirs = idem_http_client_stirs(client->http);
    struct idem_pipe_guard guard;
    idem_pipe_guard_begin(&guard);
    (void)uv_run(&client->loop, mode); /* Whether handles are left is not of interest. */
    int64_t now_us = idem_clock_mono_us(client->clock);
    bool any = calls_reap(client);
    any |= place_wake(client, IDEM_PLACE_PAUSING, now_us);
    any |= place_wake(client, IDEM_PLACE_READY, now_us);
    any |= ready_go(client);
    idem_pipe_guard_end(&guard);
    notes_write(client);
    any |= ended_write(client);
    idem_client_arm(client);
    return any || stirs != idem_http_client_stirs(client->http);
}

static void settle(struct idem_client *client)
{
    for (unsigned i = 0; i < ROUNDS_MAX && turn(client, UV_RUN_NOWAIT); i++) {
    }
}

static bool is_waiting(struct idem_client *client)
{
    return client->places[IDEM_PLACE_FINISHED].count == 0 && idem_client_running(client) > 0;
}

void idem_client_perform(struct idem_client *client, int wait_ms)
{
    if (!idem_client_is_own(client)) {
        return; /* The other process's runs are not touched. */
    }
    settle(client);
    if (wait_ms == 0 || !is_waiting(client)) {
        return;
    }
    client->waited = false;
    client->wait.data = client;
    if (wait_ms > 0) {
        uv_update_time(&client->loop);
        /* Fails only without callback. */
        (void)uv_timer_start(&client->wait, on_waited, (uint64_t)wait_ms, 0);
    }
    while (is_waiting(client) && !client->waited) {
        (void)turn(client, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&client->wait);
    settle(client);
}

int idem_client_fd(const struct idem_client *client)
{
    return uv_backend_fd(&client->loop);
}

int idem_client_timeout_ms(struct idem_client *client)
{
    const struct idem_list *places = client->places;
    bool ready = places[IDEM_PLACE_READY].count > 0 && client->idle.count > 0;
    if (ready || places[IDEM_PLACE_ENDED].count > 0 || places[IDEM_PLACE_FINISHED].count > 0) {
        return 0;
    }
    if (idem_client_running(client) == 0) {
        return -1;
    }
    uv_update_time(&client->loop);
    return uv_backend_timeout(&client->loop);
}

bool idem_client_runs(const struct idem_client *client, struct idem_str name)
{
    IDEM_LIST_FOREACH (node, &client->intents) {
        const struct idem_client_intent *other =
            IDEM_CONTAINER_OF(node, struct idem_client_intent, kin);
        if (other->place != IDEM_PLACE_NONE && other->place != IDEM_PLACE_FINISHED &&
            idem_str_equal(other->record.name, name)) {
            return true;
        }
    }
    return false;
}

struct idem_client_intent *idem_client_reap(struct idem_client *client)
{
    struct idem_client_intent *intent = first_of(client, IDEM_PLACE_FINISHED);
    if (intent != NULL) {
        idem_client_place(intent, IDEM_PLACE_NONE);
    }
    return intent;
}

/* Ends it as far as that can be done here; the rest is the next turn's. */
static void stop(struct idem_client_intent *intent)
{
    struct idem_pipe_guard guard;

    switch (intent->place) {
    case IDEM_PLACE_BUSY:
        intent->stopping = true;
        idem_pipe_guard_begin(&guard);
        idem_http_client_cancel(intent->client->http, &intent->slot->call);
        idem_pipe_guard_end(&guard);
        return;
    case IDEM_PLACE_READY:
    case IDEM_PLACE_PAUSING:
        idem_run_cut(intent, IDEM_CLIENT_STOPPED);
        return;
    case IDEM_PLACE_NONE:
    case IDEM_PLACE_ENDED:
    case IDEM_PLACE_FINISHED:
    case IDEM_PLACE_COUNT:
        return;
    }
}

void idem_client_stop(struct idem_client_intent *intent)
{
    stop(intent);
    idem_client_arm(intent->client);
}

enum idem_client_err idem_client_run(struct idem_client_intent *intent,
                                     struct idem_client_error *reterr)
{
    enum idem_client_err err = idem_client_submit(intent->client, &intent, 1, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    settle(intent->client); /* It has begun before anything is waited for. */
    while (intent->place != IDEM_PLACE_FINISHED) {
        (void)turn(intent->client, UV_RUN_ONCE); /* A timer wakes it at the deadline at last. */
    }
    idem_client_place(intent, IDEM_PLACE_NONE);
    return IDEM_CLIENT_OK;
}

/* The journal's list. */

enum idem_client_err idem_client_next(struct idem_client *client,
                                      int64_t position,
                                      bool pending,
                                      struct idem_client_entry *ret_entry,
                                      struct idem_client_error *reterr)
{
    if (!idem_client_is_own(client)) {
        return idem_client_foreign(reterr);
    }
    return idem_client_journal_next(client->journal, position, pending, ret_entry, reterr);
}

enum idem_client_err idem_client_forget(struct idem_client *client,
                                        const char *name,
                                        struct idem_client_error *reterr)
{
    struct idem_str text = idem_str_from(name);
    if (!idem_client_is_own(client)) {
        return idem_client_foreign(reterr);
    }
    if (idem_client_runs(client, text)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_BUSY, "%s is being run", name);
    }
    enum idem_client_err err = idem_client_journal_lock(client->journal, text, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    err = idem_client_journal_forget(client->journal, text, reterr);
    idem_client_journal_unlock(client->journal, text);
    return err;
}

enum idem_client_err idem_client_forget_older(struct idem_client *client,
                                              int64_t age_ms,
                                              int64_t *ret_count,
                                              struct idem_client_error *reterr)
{
    *ret_count = 0;
    if (!idem_client_is_own(client)) {
        return idem_client_foreign(reterr);
    }
    if (age_ms < FORGET_MIN_MS) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "what is forgotten by its age is at least a day old");
    }
    enum idem_client_err err = idem_client_journal_high_read(client->journal, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    int64_t now_us = idem_client_now(client).wall_us;
    int64_t high_us = idem_client_journal_high_us(client->journal);
    int64_t latest_ms = (now_us < high_us ? now_us : high_us) / IDEM_US_PER_MS;
    if (age_ms >= latest_ms) {
        return IDEM_CLIENT_OK;
    }
    /* Nobody runs what is over, and a handle of it finds out by its version that it is gone. */
    int64_t until_us = (latest_ms - age_ms) * IDEM_US_PER_MS;
    return idem_client_journal_forget_until(client->journal, until_us, ret_count, reterr);
}
