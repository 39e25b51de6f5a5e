/*
 * What a batch will ask for, fetched in one round, in the order in which everybody takes locks.
 *
 *   1. the batches' own lock: shared, or alone for those that write what others only look up
 *      (stubs, marks). Both would otherwise decide on the absence of what the other one writes.
 *   2. the clock, before any wait for a row; what others may have changed of the store
 *   3. intents by scope: plain for callers' requests, most of which only look; FOR UPDATE for what
 *      moves an intent on, so that two instances that found the same one due take turns
 *   4. their payments, the payments that requests name, refunds, sends, holders of order numbers
 *   5. handles for the rows that may be inserted
 *
 * Each statement sees what was committed when it began. What was fetched earlier may have moved by
 * then; whoever writes on it is stopped by the row's version, or by a unique index.
 *
 * A fact is handed out once: a second look may come after the transaction's own write and asks the
 * server. Where two commands of a batch name the same thing (the engine keeps them apart) nothing
 * is fetched at all.
 */
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "store/postgres/rows_internal.h"
#include "store/postgres/schema.h"

#define OID_BYTEA  17
#define OID_TEXT   25
#define HEADER     20
#define SCOPES_MAX (HEADER + IDEM_STORE_BATCH_MAX * 20)
#define NAMES_MAX  (HEADER + IDEM_STORE_BATCH_MAX * (4 + IDEM_ORDER_NO_MAX + IDEM_PRINCIPAL_MAX))

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
    size_t handles[IDEM_POSTGRES_HANDLE_COUNT];
    bool writes_shared; /* Stubs or marks. */
    char memory[4][SCOPES_MAX];
    char names[2][NAMES_MAX];
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
    return command->kind != IDEM_COMMAND_CREDENTIAL && command->kind != IDEM_COMMAND_MARK;
}

/* It may insert an intent, and mostly finds none or one that it does not move. */
static bool is_request(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_ACCEPT || command->kind == IDEM_COMMAND_ABANDON;
}

static bool writes_shared(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_MARK || command->kind == IDEM_COMMAND_RESOLVE ||
           (command->kind == IDEM_COMMAND_EVIDENCE &&
            command->evidence.source == IDEM_SOURCE_LISTING);
}

static bool makes_payment(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_ACCEPT &&
           command->accept.endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE;
}

static bool names_payment(const struct idem_command *command)
{
    return command->kind == IDEM_COMMAND_ACCEPT && !idem_uid_is_zero(command->accept.payment_id);
}

/* No scope, order number or payment twice. Batches are short, and most have one kind of request. */
static bool pair_is_apart(const struct idem_command *one, const struct idem_command *two)
{
    if (memcmp(&one->scope, &two->scope, sizeof(one->scope)) == 0) {
        return false;
    }
    if (makes_payment(one) && makes_payment(two)) {
        return !idem_str_equal(one->accept.order_no, two->accept.order_no) ||
               !idem_str_equal(one->accept.principal, two->accept.principal);
    }
    return !names_payment(one) || !names_payment(two) ||
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
    if (makes_payment(command)) {
        wanted->handles[IDEM_POSTGRES_HANDLE_PAYMENT] += 1;
        array_add(&wanted->principals, accept->principal.data, accept->principal.len);
        array_add(&wanted->orders, accept->order_no.data, accept->order_no.len);
    }
    if (names_payment(command)) {
        bool refunds = accept->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE;
        wanted->handles[IDEM_POSTGRES_HANDLE_REFUND] += refunds ? 1 : 0;
        array_add(&wanted->named, &accept->payment_id, sizeof(accept->payment_id));
    }
}

static void wanted_init(struct wanted *wanted)
{
    memset(wanted->handles, 0, sizeof(wanted->handles));
    wanted->writes_shared = false;
    array_init(&wanted->plain, wanted->memory[0], SCOPES_MAX, OID_BYTEA);
    array_init(&wanted->held, wanted->memory[1], SCOPES_MAX, OID_BYTEA);
    array_init(&wanted->all, wanted->memory[2], SCOPES_MAX, OID_BYTEA);
    array_init(&wanted->named, wanted->memory[3], SCOPES_MAX, OID_BYTEA);
    array_init(&wanted->principals, wanted->names[0], NAMES_MAX, OID_TEXT);
    array_init(&wanted->orders, wanted->names[1], NAMES_MAX, OID_TEXT);
}

/* Takes the items, in order of scope, and notes what they want. */
static void items_want(struct idem_postgres_ahead *ahead,
                       struct wanted *wanted,
                       struct idem_list_node *first,
                       size_t count)
{
    struct idem_list_node *node = first;
    ahead->count = 0;
    wanted_init(wanted);
    for (size_t i = 0; i < count; i++) {
        struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        wanted->writes_shared = wanted->writes_shared || writes_shared(&item->command);
        if (has_intent(&item->command)) {
            ahead->items[ahead->count] = item;
            ahead->count += 1;
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
    if (wanted->orders.count > 0) {
        struct idem_postgres_args args = { .count = 0 };
        arg_array(&args, &wanted->principals);
        arg_array(&args, &wanted->orders);
        idem_postgres_queue(connection, IDEM_POSTGRES_AHEAD_HOLDERS, &args,
                            (struct idem_postgres_pending){ .result = &ahead->holders });
    }
}

static void handles_ask(struct idem_postgres_connection *connection,
                        const struct wanted *wanted,
                        PGresult **results)
{
    for (int kind = 0; kind < IDEM_POSTGRES_HANDLE_COUNT; kind++) {
        struct idem_postgres_args args = { .count = 0 };
        size_t there = connection->handles[kind].count;
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
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(results); i++) {
        PQclear(results[i]); /* Accepts NULL. */
    }
    *ahead = (struct idem_postgres_ahead){ .count = 0 };
}

static int column_of(const struct idem_table *table, const char *name)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (strcmp(table->columns[i].name, name) == 0) {
            return (int)i + 1; /* Behind the handle. */
        }
    }
    IDEM_UNREACHABLE();
}

/* The first row whose `column` is not below `key`, of rows in that order. */
static int row_search(const PGresult *result, int column, const void *key, size_t size)
{
    int first = 0;
    int last = PQntuples(result); /* Accepts NULL. */
    while (first < last) {
        int middle = first + (last - first) / 2;
        if (memcmp(PQgetvalue(result, middle, column), key, size) < 0) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return first;
}

/* True if it is there; then it stands in `*ret_found`. */
static bool row_find(const PGresult *result,
                     int column,
                     const void *key,
                     size_t size,
                     struct idem_postgres_found *ret_found)
{
    int row = row_search(result, column, key, size);
    if (row == PQntuples(result) || memcmp(PQgetvalue(result, row, column), key, size) != 0) {
        return false;
    }
    *ret_found = (struct idem_postgres_found){ .result = result, .row = row };
    return true;
}

static void big_endian(int64_t value, char bytes[8])
{
    for (int i = 0; i < 8; i++) {
        bytes[i] = (char)((uint64_t)value >> (56 - 8 * i));
    }
}

static bool item_find(const struct idem_postgres_ahead *ahead,
                      const struct idem_scope *scope,
                      size_t *ret_index)
{
    size_t first = 0;
    size_t last = ahead->count;
    while (first < last) {
        size_t middle = first + (last - first) / 2;
        int order = memcmp(&ahead->items[middle]->command.scope, scope, sizeof(*scope));
        if (order == 0) {
            *ret_index = middle;
            return true;
        }
        first = order < 0 ? middle + 1 : first;
        last = order < 0 ? last : middle;
    }
    return false;
}

/* Marks the current item's fact as handed out. False: it was before. */
static bool hand_out(const struct idem_postgres_ahead *ahead, bool *used)
{
    bool first = ahead->current < ahead->count && !used[ahead->current];
    if (first) {
        used[ahead->current] = true;
    }
    return first;
}

bool idem_postgres_ahead_intent(struct idem_postgres_ahead *ahead,
                                const struct idem_scope *scope,
                                struct idem_postgres_found *ret_found)
{
    int column = column_of(&idem_table_intents, "scope");
    size_t index = 0;
    if (!item_find(ahead, scope, &index) || ahead->intent_used[index]) {
        return false;
    }
    ahead->current = index;
    ahead->intent_used[index] = true;
    if (!row_find(ahead->intents[1], column, scope, sizeof(*scope), ret_found) &&
        !row_find(ahead->intents[0], column, scope, sizeof(*scope), ret_found)) {
        *ret_found = (struct idem_postgres_found){ .row = -1 };
    }
    return true;
}

bool idem_postgres_ahead_sends(struct idem_postgres_ahead *ahead,
                               int64_t intent_row,
                               struct idem_postgres_found *ret_found)
{
    char key[8];
    if (ahead->current >= ahead->count || !ahead->intent_used[ahead->current] ||
        !hand_out(ahead, ahead->sends_used)) {
        return false;
    }
    big_endian(intent_row, key);
    *ret_found = (struct idem_postgres_found){
        .result = ahead->sends,
        .row = row_search(ahead->sends, 0, key, sizeof(key)),
    };
    return true;
}

static bool holder_find(const struct idem_postgres_ahead *ahead,
                        const struct idem_rows_key *key,
                        struct idem_postgres_found *ret_found)
{
    int principal = column_of(&idem_table_payments, "principal");
    int order_no = column_of(&idem_table_payments, "order_no");
    for (int row = 0; row < PQntuples(ahead->holders); row++) {
        if (idem_str_equal(idem_postgres_text(ahead->holders, row, order_no), key->number) &&
            idem_str_equal(idem_postgres_text(ahead->holders, row, principal), key->principal)) {
            *ret_found = (struct idem_postgres_found){ .result = ahead->holders, .row = row };
            return true;
        }
    }
    return false;
}

static bool named_find(const struct idem_postgres_ahead *ahead,
                       const struct idem_rows_key *key,
                       struct idem_postgres_found *ret_found)
{
    int principal = column_of(&idem_table_payments, "principal");
    int id = column_of(&idem_table_payments, "id");
    return row_find(ahead->payments[2], id, &key->id, sizeof(key->id), ret_found) &&
           idem_str_equal(idem_postgres_text(ret_found->result, ret_found->row, principal),
                          key->principal);
}

/* Of the intent found last: its own, held or plain. */
static bool payment_of_intent(struct idem_postgres_ahead *ahead,
                              int64_t row,
                              struct idem_postgres_found *ret_found)
{
    char key[8];
    big_endian(row, key);
    return (row_find(ahead->payments[1], 0, key, sizeof(key), ret_found) ||
            row_find(ahead->payments[0], 0, key, sizeof(key), ret_found)) &&
           hand_out(ahead, ahead->payment_used);
}

bool idem_postgres_ahead_payment(struct idem_postgres_ahead *ahead,
                                 enum idem_find find,
                                 const struct idem_rows_key *key,
                                 struct idem_postgres_found *ret_found)
{
    if (ahead->current >= ahead->count) {
        return false;
    }
    const struct idem_command *command = &ahead->items[ahead->current]->command;
    const struct idem_accept *accept = &command->accept;
    struct idem_postgres_found found = { .row = -1 };
    if (find == IDEM_FIND_BY_ROW) {
        return payment_of_intent(ahead, key->row, ret_found);
    }
    if (find == IDEM_FIND_BY_ID && names_payment(command) &&
        idem_uid_equal(accept->payment_id, key->id) && hand_out(ahead, ahead->payment_used)) {
        found.row = named_find(ahead, key, &found) ? found.row : -1;
        *ret_found = found;
        return true;
    }
    if (find == IDEM_FIND_HOLDER && makes_payment(command) &&
        idem_str_equal(accept->order_no, key->number) &&
        idem_str_equal(accept->principal, key->principal) && hand_out(ahead, ahead->holder_used)) {
        (void)holder_find(ahead, key, &found); /* Or it stays -1. */
        *ret_found = found;
        return true;
    }
    return false;
}

bool idem_postgres_ahead_refund(struct idem_postgres_ahead *ahead,
                                int64_t row,
                                struct idem_postgres_found *ret_found)
{
    char key[8];
    big_endian(row, key);
    return row_find(ahead->refunds, 0, key, sizeof(key), ret_found) &&
           hand_out(ahead, ahead->refund_used);
}
