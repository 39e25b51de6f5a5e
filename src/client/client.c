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
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/crash.h"
#include "client/client_internal.h"

#define ROUNDS_MAX   64  /* Of one perform; the rest is for the next. */
#define TOGETHER_MAX 256 /* Verdicts in one transaction. */

enum idem_client_err idem_client_fail(struct idem_client_error *reterr,
                                      enum idem_client_err err,
                                      const char *format,
                                      ...)
{
    if (reterr != NULL) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(reterr->text, sizeof(reterr->text), format, arguments);
        va_end(arguments);
    }
    return err;
}

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

static size_t running_count(const struct idem_client *client)
{
    size_t count = 0;
    for (enum idem_client_place i = IDEM_PLACE_READY; i < IDEM_PLACE_COUNT; i++) {
        count += client->places[i].count;
    }
    return count;
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
    bool recorded =
        idem_client_journal_end(client->journal, records, count, &error) == IDEM_CLIENT_OK;
    idem_crash_point("client-end-durable");
    for (size_t i = 0; i < count; i++) {
        struct idem_client_intent *intent = first_of(client, IDEM_PLACE_ENDED);
        idem_client_journal_unlock(client->journal, intent->record.name);
        idem_verdict_from_record(intent, recorded);
        idem_client_place(intent, IDEM_PLACE_FINISHED);
    }
    return true;
}

static void on_due(uv_timer_t *timer)
{
    (void)timer; /* It only ends the loop's waiting. */
}

/* The loop wakes up for the next pause or deadline that ends. */
static void due_arm(struct idem_client *client, int64_t now_us)
{
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
    (void)uv_run(&client->loop, mode); /* Whether handles are left is not of interest. */
    int64_t now_us = idem_clock_mono_us(client->clock);
    bool any = calls_reap(client);
    any |= place_wake(client, IDEM_PLACE_PAUSING, now_us);
    any |= place_wake(client, IDEM_PLACE_READY, now_us);
    any |= ready_go(client);
    any |= ended_write(client);
    due_arm(client, now_us);
    return any || stirs != idem_http_client_stirs(client->http);
}

static void settle(struct idem_client *client)
{
    for (unsigned i = 0; i < ROUNDS_MAX && turn(client, UV_RUN_NOWAIT); i++) {
    }
}

static bool is_waiting(struct idem_client *client)
{
    return client->places[IDEM_PLACE_FINISHED].count == 0 && running_count(client) > 0;
}

void idem_client_perform(struct idem_client *client, int wait_ms)
{
    settle(client);
    if (wait_ms == 0 || !is_waiting(client)) {
        return;
    }
    int64_t end_us = idem_clock_mono_us(client->clock) + wait_ms * IDEM_US_PER_MS;
    if (wait_ms > 0) {
        uv_update_time(&client->loop);
        (void)uv_timer_start(&client->wait, on_due, (uint64_t)wait_ms, 0);
    }
    while (is_waiting(client) && (wait_ms < 0 || idem_clock_mono_us(client->clock) < end_us)) {
        (void)turn(client, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&client->wait);
    settle(client);
}

int idem_client_fd(const struct idem_client *client)
{
    return uv_backend_fd(&client->loop);
}

int idem_client_timeout_ms(const struct idem_client *client)
{
    return uv_backend_timeout(&client->loop);
}

/* Submitting, reaping, stopping. */

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

/* Why these cannot run now; OK: they can. */
static enum idem_client_err submit_check(const struct idem_client *client,
                                         struct idem_client_intent *const *intents,
                                         size_t count,
                                         struct idem_client_error *reterr)
{
    if (count > IDEM_CLIENT_RUNS_MAX - running_count(client)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_LIMIT,
                                "more than %d intents at once; nothing was sent",
                                IDEM_CLIENT_RUNS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        IDEM_ASSERT(intents[i]->client == client);
        if (intents[i]->place != IDEM_PLACE_NONE ||
            idem_client_runs(client, intents[i]->record.name)) {
            return idem_client_fail(reterr, IDEM_CLIENT_E_BUSY,
                                    "%s is being run already; nothing more was sent",
                                    intents[i]->name);
        }
    }
    return IDEM_CLIENT_OK;
}

/* The records that have to be written before they run; the locks of their names are taken. */
struct entrants {
    struct idem_client *client;
    struct idem_client_record **records;
    struct idem_client_intent **intents;
    size_t count;
};

static void entrants_unlock(struct entrants *entrants)
{
    for (size_t i = 0; i < entrants->count; i++) {
        idem_client_journal_unlock(entrants->client->journal, entrants->records[i]->name);
    }
}

static enum idem_client_err entrants_lock(struct entrants *entrants,
                                          struct idem_client_intent *const *intents,
                                          size_t count,
                                          struct idem_client_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        if (intents[i]->record.over) {
            continue;
        }
        enum idem_client_err err =
            idem_client_journal_lock(entrants->client->journal, intents[i]->record.name, reterr);
        if (err != IDEM_CLIENT_OK) {
            entrants_unlock(entrants);
            return err;
        }
        entrants->intents[entrants->count] = intents[i];
        entrants->records[entrants->count] = &intents[i]->record;
        entrants->count += 1;
    }
    return IDEM_CLIENT_OK;
}

/* Something of this key may have been carried out. A key that was brought: by its owner. */
static bool known_before(const struct idem_client_record *record)
{
    return record->doubt || !record->key_own;
}

/* Durable, with their doubt; what was known before is in the intents' courses. */
static enum idem_client_err entrants_write(struct entrants *entrants,
                                           struct idem_client_error *reterr)
{
    struct idem_moment now = idem_moment_now(entrants->client->clock);

    for (size_t i = 0; i < entrants->count; i++) {
        struct idem_client_intent *intent = entrants->intents[i];
        intent->before = intent->record;
        intent->record.doubt = true;
        intent->record.begun_us = now.wall_us;
        /* Without doubt nothing of this key is anywhere: this is its first run. */
        if (intent->record.first.wall_us == 0 || !known_before(&intent->before)) {
            intent->record.first = now;
        }
    }
    idem_crash_point("client-begin-before");
    enum idem_client_err err = idem_client_journal_begin(
        entrants->client->journal, entrants->records, entrants->count, reterr);
    if (err == IDEM_CLIENT_OK) {
        idem_crash_point("client-begin-durable");
        return IDEM_CLIENT_OK;
    }
    for (size_t i = 0; i < entrants->count; i++) {
        entrants->intents[i]->record = entrants->intents[i]->before;
    }
    entrants_unlock(entrants);
    return err;
}

static void entrants_begin(struct entrants *entrants)
{
    for (size_t i = 0; i < entrants->count; i++) {
        struct idem_client_intent *intent = entrants->intents[i];
        idem_run_begin(intent, known_before(&intent->before));
    }
}

static enum idem_client_err submit_all(struct entrants *entrants,
                                       struct idem_client_intent *const *intents,
                                       size_t count,
                                       struct idem_client_error *reterr)
{
    enum idem_client_err err = entrants_lock(entrants, intents, count, reterr);
    if (err == IDEM_CLIENT_OK && entrants->count > 0) {
        err = entrants_write(entrants, reterr);
    }
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    entrants_begin(entrants);
    for (size_t i = 0; i < count; i++) {
        if (intents[i]->place == IDEM_PLACE_NONE) { /* Over: its verdict is there. */
            idem_client_place(intents[i], IDEM_PLACE_FINISHED);
        }
    }
    return IDEM_CLIENT_OK;
}

enum idem_client_err idem_client_submit(struct idem_client *client,
                                        struct idem_client_intent *const *intents,
                                        size_t count,
                                        struct idem_client_error *reterr)
{
    enum idem_client_err err = submit_check(client, intents, count, reterr);
    if (err != IDEM_CLIENT_OK || count == 0) {
        return err;
    }
    struct entrants entrants = {
        .client = client,
        .records = calloc(count, sizeof(struct idem_client_record *)),
        .intents = calloc(count, sizeof(struct idem_client_intent *)),
    };
    if (entrants.records == NULL || entrants.intents == NULL) {
        err = idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory; nothing was sent");
    } else {
        err = submit_all(&entrants, intents, count, reterr);
    }
    free(entrants.records);
    free(entrants.intents);
    return err;
}

struct idem_client_intent *idem_client_reap(struct idem_client *client)
{
    struct idem_client_intent *intent = first_of(client, IDEM_PLACE_FINISHED);
    if (intent != NULL) {
        idem_client_place(intent, IDEM_PLACE_NONE);
    }
    return intent;
}

void idem_client_stop(struct idem_client_intent *intent)
{
    switch (intent->place) {
    case IDEM_PLACE_BUSY:
        intent->stopping = true;
        idem_http_client_cancel(intent->client->http, &intent->slot->call);
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

enum idem_client_err idem_client_run(struct idem_client_intent *intent,
                                     struct idem_client_error *reterr)
{
    enum idem_client_err err = idem_client_submit(intent->client, &intent, 1, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
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
    return idem_client_journal_next(client->journal, position, pending, ret_entry, reterr);
}

enum idem_client_err idem_client_forget(struct idem_client *client,
                                        const char *name,
                                        struct idem_client_error *reterr)
{
    struct idem_str text = idem_str_from(name);
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
