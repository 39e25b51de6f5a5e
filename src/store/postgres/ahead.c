/*
 * What a batch will ask for, fetched in one round, in the order in which everybody takes locks.
 *
 *   1. the batches' own lock: shared, or alone for those that write what others only look up
 *      (stubs, marks, webhooks). Both would otherwise decide on the absence of what the other one
 *      writes.
 *   2. the clock, before any wait for a row; what others may have changed of the store
 *   3. intents by scope: plain for callers' requests, most of which only look; FOR UPDATE for what
 *      moves an intent on, so that two instances that found the same one due take turns
 *   4. their payments, the payments that requests name, refunds, sends, holders of order numbers
 *   5. deliveries by handle, FOR UPDATE; which principals have a webhook, which events came before
 *   6. handles for the rows that may be inserted
 *
 * Each statement sees what was committed when it began. What was fetched earlier may have moved by
 * then; whoever writes on it is stopped by the row's version, or by a unique index.
 *
 * A fact is handed out once (ahead_find.c): a second look may come after the transaction's own
 * write and asks the server. Where two commands of a batch name the same thing (the engine keeps
 * them apart) nothing is fetched at all. Webhooks change only under the lock alone: what is known
 * of them stands for a whole batch, unless that batch changes them.
 *
 * Handles that were not used stay for the next batch, but not for long: records are read in order
 * of time by their handles (IDEM_EFFECTS_SKEW_US).
 */
#include "store/postgres/ahead.h"

#include <assert.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "store/postgres/schema.h"

#define OID_BYTEA  17
#define OID_TEXT   25
#define HEADER     20
#define SCOPES_MAX (HEADER + IDEM_STORE_BATCH_MAX * 20)
#define NAMES_MAX  (HEADER + IDEM_STORE_BATCH_MAX * (4 + IDEM_EVENT_ID_MAX))

#define HANDLES_AGE_US (INT64_C(60) * IDEM_US_PER_SECOND)

static_assert(HANDLES_AGE_US < IDEM_EFFECTS_SKEW_US / 2, "what is late is less than that");
static_assert(IDEM_EVENT_ID_MAX >= IDEM_PRINCIPAL_MAX, "NAMES_MAX");
static_assert(IDEM_EVENT_ID_MAX >= IDEM_ORDER_NO_MAX, "NAMES_MAX");
static_assert(IDEM_EVENT_ID_MAX >= IDEM_ENTRY_MAX, "NAMES_MAX");

/* A parameter that is an array, in the server's binary form. */
struct array {
    struct idem_buf buf;
    uint32_t count;
    uint32_t oid;
};

/* What is asked for by a batch. */
struct wanted {
    struct array plain;
    struct array held;
    struct array all;
    struct array named;
    struct array principals;
    struct array orders;
    struct array askers; /* Principals of requests. */
    struct array entries;
    struct array events;
    struct array messages;
    struct array webhooks;
    size_t handles[IDEM_POSTGRES_HANDLE_COUNT];
    bool writes_shared;    /* Stubs, marks or webhooks. */
    bool changes_webhooks; /* So nothing that is known of them ahead would stand. */
    char memory[6][SCOPES_MAX];
    char names[5][NAMES_MAX];
};

static void number_put(char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (char)(value >> (24 - 8 * i));
    }
}

static void array_init(struct array *array, char *memory, size_t max, uint32_t oid)
{
    static const char header[HEADER];
    idem_buf_init(&array->buf, memory, max);
    idem_buf_add_bytes(&array->buf, header, sizeof(header)); /* Filled in at the end. */
    array->count = 0;
    array->oid = oid;
}

static void array_add(struct array *array, const void *bytes, size_t size)
{
    char length[4];
    number_put(length, (uint32_t)size);
    idem_buf_add_bytes(&array->buf, length, sizeof(length));
    idem_buf_add_bytes(&array->buf, bytes, size);
    array->count += 1;
}

static void arg_array(struct idem_postgres_args *args, struct array *array)
{
    IDEM_ASSERT(!array->buf.full);
    char *header = array->buf.data;
    number_put(header, array->count == 0 ? 0 : 1); /* Dimensions. */
    number_put(header + 4, 0);                     /* No NULL in it. */
    number_put(header + 8, array->oid);
    number_put(header + 12, array->count);
    number_put(header + 16, 1); /* Counted from one. */
    idem_postgres_arg_bytes(args, header, array->count == 0 ? 12 : array->buf.len);
}

static int by_scope(const void *left, const void *right)
{
    const struct idem_store_item *const *one = left;
    const struct idem_store_item *const *two = right;
    return memcmp(&(*one)->command.scope, &(*two)->command.scope, sizeof(struct idem_scope));
}

static bool has_intent(const struct idem_command *command)
{
    return command->kind != IDEM_COMMAND_CREDENTIAL && command->kind != IDEM_COMMAND_MARK &&
           command->kind != IDEM_COMMAND_WEBHOOK && command->kind != IDEM_COMMAND_DELIVERY;
}

/* It may insert an intent, and mostly finds none or one that it does not move. */
static bool is_request(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_ACCEPT || command->kind == IDEM_COMMAND_ABANDON;
}

static bool changes_webhooks(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_WEBHOOK ||
           (command->kind == IDEM_COMMAND_DELIVERY &&
            command->delivery.word == IDEM_DELIVERY_WORD_GONE);
}

static bool writes_shared(const struct idem_command *command)
{
    bool marks =
        command->kind == IDEM_COMMAND_MARK && command->mark.kind != IDEM_MARK_SWEPT; /* No mark. */
    return marks || changes_webhooks(command) || command->kind == IDEM_COMMAND_RESOLVE ||
           (command->kind == IDEM_COMMAND_EVIDENCE &&
            command->evidence.source == IDEM_SOURCE_LISTING);
}

bool idem_postgres_makes_payment(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_ACCEPT &&
           command->accept.endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE;
}

bool idem_postgres_names_payment(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_ACCEPT && !idem_uid_is_zero(command->accept.payment_id);
}

bool idem_postgres_names_event(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_EVIDENCE &&
           command->evidence.source == IDEM_SOURCE_CALLBACK;
}

/* No scope, order number or payment twice. Batches are short, and most have one kind of request. */
static bool pair_is_apart(const struct idem_command *one, const struct idem_command *two)
{
    if (memcmp(&one->scope, &two->scope, sizeof(one->scope)) == 0) {
        return false;
    }
    if (idem_postgres_makes_payment(one) && idem_postgres_makes_payment(two)) {
        return !idem_str_equal(one->accept.order_no, two->accept.order_no) ||
               !idem_str_equal(one->accept.principal, two->accept.principal);
    }
    return !idem_postgres_names_payment(one) || !idem_postgres_names_payment(two) ||
           !idem_uid_equal(one->accept.payment_id, two->accept.payment_id);
}

static bool is_apart(const struct idem_postgres_ahead *ahead, size_t index)
{
    for (size_t i = index + 1; i < ahead->count; i++) {
        if (!pair_is_apart(&ahead->items[index]->command, &ahead->items[i]->command)) {
            return false;
        }
    }
    return true;
}

static bool items_are_apart(const struct idem_postgres_ahead *ahead)
{
    bool apart = true;
    for (size_t i = 0; i < ahead->count && apart; i++) {
        apart = is_apart(ahead, i);
    }
    return apart;
}

static void command_want(struct wanted *wanted, const struct idem_command *command, bool alone)
{
    const struct idem_accept *accept = &command->accept;
    bool plain = is_request(command) && !alone;
    array_add(plain ? &wanted->plain : &wanted->held, &command->scope, sizeof(command->scope));
    array_add(&wanted->all, &command->scope, sizeof(command->scope));
    wanted->handles[IDEM_POSTGRES_HANDLE_INTENT] += is_request(command) ? 1 : 0;
    if (idem_postgres_makes_payment(command)) {
        wanted->handles[IDEM_POSTGRES_HANDLE_PAYMENT] += 1;
        array_add(&wanted->principals, accept->principal.data, accept->principal.len);
        array_add(&wanted->orders, accept->order_no.data, accept->order_no.len);
    }
    if (idem_postgres_names_payment(command)) {
        bool refunds = accept->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE;
        wanted->handles[IDEM_POSTGRES_HANDLE_REFUND] += refunds ? 1 : 0;
        array_add(&wanted->named, &accept->payment_id, sizeof(accept->payment_id));
    }
    if (command->kind == IDEM_COMMAND_ACCEPT) {
        array_add(&wanted->askers, accept->principal.data, accept->principal.len);
    }
    if (idem_postgres_names_event(command)) {
        const struct idem_evidence *evidence = &command->evidence;
        array_add(&wanted->entries, evidence->entry.data, evidence->entry.len);
        array_add(&wanted->events, evidence->event_id.data, evidence->event_id.len);
    }
}

static void delivery_want(struct wanted *wanted, const struct idem_delivery_change *delivery)
{
    array_add(&wanted->messages, &delivery->message_id, sizeof(delivery->message_id));
    array_add(&wanted->webhooks, &delivery->webhook_id, sizeof(delivery->webhook_id));
}

static void wanted_init(struct wanted *wanted)
{
    memset(wanted->handles, 0, sizeof(wanted->handles));
    wanted->writes_shared = false;
    wanted->changes_webhooks = false;
    array_init(&wanted->plain, wanted->memory[0], SCOPES_MAX, OID_BYTEA);
    array_init(&wanted->held, wanted->memory[1], SCOPES_MAX, OID_BYTEA);
    array_init(&wanted->all, wanted->memory[2], SCOPES_MAX, OID_BYTEA);
    array_init(&wanted->named, wanted->memory[3], SCOPES_MAX, OID_BYTEA);
    array_init(&wanted->principals, wanted->names[0], NAMES_MAX, OID_TEXT);
    array_init(&wanted->orders, wanted->names[1], NAMES_MAX, OID_TEXT);
    array_init(&wanted->askers, wanted->names[2], NAMES_MAX, OID_TEXT);
    array_init(&wanted->entries, wanted->names[3], NAMES_MAX, OID_TEXT);
    array_init(&wanted->events, wanted->names[4], NAMES_MAX, OID_BYTEA);
    array_init(&wanted->messages, wanted->memory[4], SCOPES_MAX, OID_BYTEA);
    array_init(&wanted->webhooks, wanted->memory[5], SCOPES_MAX, OID_BYTEA);
}

/* Takes the items, in order of scope, and notes what they want. */
static void items_want(struct idem_postgres_ahead *ahead,
                       struct wanted *wanted,
                       struct idem_list_node *first,
                       size_t count)
{
    struct idem_list_node *node = first;
    ahead->count = 0;
    ahead->letter_count = 0;
    wanted_init(wanted);
    for (size_t i = 0; i < count; i++) {
        struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        const struct idem_command *command = &item->command;
        wanted->writes_shared = wanted->writes_shared || writes_shared(command);
        wanted->changes_webhooks = wanted->changes_webhooks || changes_webhooks(command);
        if (has_intent(command)) {
            ahead->items[ahead->count] = item;
            ahead->count += 1;
        } else if (command->kind == IDEM_COMMAND_DELIVERY) {
            ahead->letters[ahead->letter_count] = &command->delivery;
            ahead->letter_count += 1;
            delivery_want(wanted, &command->delivery);
        }
        node = node->next;
    }
    qsort(ahead->items, ahead->count, sizeof(void *), by_scope);
    if (!items_are_apart(ahead)) {
        ahead->count = 0;
    }
    for (size_t i = 0; i < ahead->count; i++) {
        command_want(wanted, &ahead->items[i]->command, count == 1);
    }
}

static void ask_array(struct idem_postgres_connection *connection,
                      enum idem_postgres_statement index,
                      struct array *array,
                      PGresult **result)
{
    struct idem_postgres_args args = { .count = 0 };
    if (array->count > 0) {
        arg_array(&args, array);
        idem_postgres_queue(connection, index, &args,
                            (struct idem_postgres_pending){ .result = result });
    }
}

/* What a batch needs to know of two arrays' pairs. */
static void ask_pairs(struct idem_postgres_connection *connection,
                      enum idem_postgres_statement index,
                      struct array *left,
                      struct array *right,
                      PGresult **result)
{
    struct idem_postgres_args args = { .count = 0 };
    IDEM_ASSERT(left->count == right->count);
    if (left->count > 0) {
        arg_array(&args, left);
        arg_array(&args, right);
        idem_postgres_queue(connection, index, &args,
                            (struct idem_postgres_pending){ .result = result });
    }
}

/* What came from providers, and what merchants are told. */
static void mail_ask(struct idem_postgres_connection *connection, struct wanted *wanted)
{
    struct idem_postgres_ahead *ahead = &connection->ahead;
    ask_pairs(connection, IDEM_POSTGRES_AHEAD_DELIVERIES, &wanted->messages, &wanted->webhooks,
              &ahead->deliveries);
    ask_pairs(connection, IDEM_POSTGRES_AHEAD_EVENTS, &wanted->entries, &wanted->events,
              &ahead->events);
    if (wanted->changes_webhooks) {
        return;
    }
    ask_array(connection, IDEM_POSTGRES_AHEAD_WEBHOOKS, &wanted->webhooks, &ahead->webhooks);
    if (wanted->all.count > 0) {
        struct idem_postgres_args args = { .count = 0 };
        arg_array(&args, &wanted->all);
        arg_array(&args, &wanted->askers);
        idem_postgres_queue(connection, IDEM_POSTGRES_AHEAD_LISTENED, &args,
                            (struct idem_postgres_pending){ .result = &ahead->listened });
    }
}

static void facts_ask(struct idem_postgres_connection *connection, struct wanted *wanted)
{
    struct idem_postgres_ahead *ahead = &connection->ahead;
    ask_array(connection, IDEM_POSTGRES_AHEAD_INTENTS_HELD, &wanted->held, &ahead->intents[1]);
    ask_array(connection, IDEM_POSTGRES_AHEAD_PAYMENTS_HELD, &wanted->held, &ahead->payments[1]);
    ask_array(connection, IDEM_POSTGRES_AHEAD_INTENTS, &wanted->plain, &ahead->intents[0]);
    ask_array(connection, IDEM_POSTGRES_AHEAD_PAYMENTS, &wanted->plain, &ahead->payments[0]);
    ask_array(connection, IDEM_POSTGRES_AHEAD_PAYMENTS_NAMED, &wanted->named, &ahead->payments[2]);
    ask_array(connection, IDEM_POSTGRES_AHEAD_REFUNDS, &wanted->all, &ahead->refunds);
    ask_array(connection, IDEM_POSTGRES_AHEAD_SENDS, &wanted->all, &ahead->sends);
    ask_pairs(connection, IDEM_POSTGRES_AHEAD_HOLDERS, &wanted->principals, &wanted->orders,
              &ahead->holders);
    mail_ask(connection, wanted);
}

/* How many are there that may still be used. */
static size_t handles_keep(struct idem_postgres_handles *handles)
{
    if (idem_postgres_mono_us() - handles->taken_us > HANDLES_AGE_US) {
        handles->count = 0;
    }
    return handles->count;
}

static void handles_ask(struct idem_postgres_connection *connection,
                        const struct wanted *wanted,
                        PGresult **results)
{
    for (int kind = 0; kind < IDEM_POSTGRES_HANDLE_COUNT; kind++) {
        struct idem_postgres_args args = { .count = 0 };
        size_t there = handles_keep(&connection->handles[kind]);
        results[kind] = NULL;
        if (wanted->handles[kind] <= there) {
            continue;
        }
        idem_postgres_arg_i64(&args, (int64_t)(wanted->handles[kind] - there));
        idem_postgres_queue(connection,
                            (enum idem_postgres_statement)(IDEM_POSTGRES_HANDLES_INTENTS + kind),
                            &args, (struct idem_postgres_pending){ .result = &results[kind] });
    }
}

static void handles_note(struct idem_postgres_handles *handles, const PGresult *result)
{
    memmove(handles->rows, handles->rows + handles->first, handles->count * sizeof(int64_t));
    handles->first = 0;
    if (handles->count == 0) {
        handles->taken_us = idem_postgres_mono_us();
    }
    for (int i = 0; i < PQntuples(result); i++) { /* Accepts NULL. */
        IDEM_ASSERT(handles->count < IDEM_POSTGRES_HANDLES_MAX);
        handles->rows[handles->count] = idem_postgres_number(result, i, 0);
        handles->count += 1;
    }
}

/* The database's time, and what any instance may have changed. */
static void knowledge_note(struct idem_postgres_connection *connection, const PGresult *said)
{
    int64_t now_us = idem_postgres_number(said, 0, 0);
    int64_t memory_since_us = idem_postgres_number(said, 0, 5);
    int64_t created_us = idem_postgres_number(said, 0, 6);
    connection->now_us = now_us < connection->floor_us ? connection->floor_us : now_us;
    connection->floor_us = connection->now_us;
    connection->has_standbys = idem_postgres_number(said, 0, 8) != 0;
    bool is_too_old =
        idem_postgres_number(said, 0, 7) > idem_postgres_schema_of(connection->settings)->version;
    if (idem_postgres_number(said, 0, 1) != 0 || is_too_old) {
        connection->failed = IDEM_ROWS_WRONG_NODE;
    }
    if (connection->run != NULL) {
        connection->run->stub_count = idem_postgres_number(said, 0, 2);
        connection->run->webhook_count = idem_postgres_number(said, 0, 9);
        connection->run->restored = idem_postgres_number(said, 0, 3) != 0;
        connection->run->opening.restored_at_us = idem_postgres_number(said, 0, 4);
        connection->run->opening.memory_since_us =
            memory_since_us > created_us ? memory_since_us : created_us;
    }
}

static void alive_note(struct idem_postgres_connection *connection, const PGresult *alive)
{
    connection->alive_count = (size_t)PQntuples(alive);
    IDEM_ASSERT(connection->alive_count <= IDEM_POSTGRES_ALIVE_MAX);
    for (size_t i = 0; i < connection->alive_count; i++) {
        connection->alive[i] = idem_postgres_number(alive, (int)i, 0);
    }
}

void idem_postgres_ahead_fetch(struct idem_postgres_connection *connection,
                               struct idem_list_node *first,
                               size_t count)
{
    static const struct idem_postgres_args no_args = { .count = 0 };
    struct idem_postgres_args alive_args = { .count = 0 };
    struct wanted wanted;
    PGresult *said = NULL;
    PGresult *alive = NULL;
    PGresult *handles[IDEM_POSTGRES_HANDLE_COUNT];

    items_want(&connection->ahead, &wanted, first, count);
    idem_postgres_queue(connection,
                        wanted.writes_shared ? IDEM_POSTGRES_LOCK_ALONE : IDEM_POSTGRES_LOCK_SHARED,
                        &no_args, (struct idem_postgres_pending){ .result = NULL });
    idem_postgres_queue(connection, IDEM_POSTGRES_AHEAD_KNOWLEDGE, &no_args,
                        (struct idem_postgres_pending){ .result = &said });
    idem_postgres_arg_i64(&alive_args, connection->settings->silence_us);
    idem_postgres_arg_i64(&alive_args, connection->incarnation);
    idem_postgres_queue(connection, IDEM_POSTGRES_AHEAD_ALIVE, &alive_args,
                        (struct idem_postgres_pending){ .result = &alive });
    facts_ask(connection, &wanted);
    handles_ask(connection, &wanted, handles);
    if (idem_postgres_round(connection) != IDEM_ROWS_OK) {
        return;
    }
    knowledge_note(connection, said);
    alive_note(connection, alive);
    for (int kind = 0; kind < IDEM_POSTGRES_HANDLE_COUNT; kind++) {
        handles_note(&connection->handles[kind], handles[kind]);
        PQclear(handles[kind]);
    }
    PQclear(said);
    PQclear(alive);
}

void idem_postgres_ahead_clear(struct idem_postgres_ahead *ahead)
{
    PGresult *const results[] = {
        ahead->intents[0],  ahead->intents[1], ahead->payments[0], ahead->payments[1],
        ahead->payments[2], ahead->holders,    ahead->refunds,     ahead->sends,
        ahead->listened,    ahead->events,     ahead->webhooks,    ahead->deliveries,
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(results); i++) {
        PQclear(results[i]); /* Accepts NULL. */
    }
    *ahead = (struct idem_postgres_ahead){ .count = 0 };
}
