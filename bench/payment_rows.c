/*
 * The statements are written out here and not borrowed from the store: this is the yardstick, and a
 * yardstick that shares the code it measures shrinks with it. Only the schema is the store's own.
 * Columns that are not named below get zero, no text or no bytes, so a schema that grows does not
 * break the bench; what the service writes into them then has to be written here as well.
 *
 * Parameters have one meaning in all statements; each statement is bound only what it names.
 */
#include "bench/payment_rows.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/wire.h"
#include "core/event.h"
#include "core/intent.h"
#include "core/payment.h"
#include "store/sqlite/schema.h"

static_assert(IDEM_INTENT_DISPATCHED == 2 && IDEM_INTENT_SUCCEEDED == 5, "written out below");
static_assert(IDEM_PAYMENT_PENDING == 1 && IDEM_PAYMENT_CAPTURED == 4, "written out below");
static_assert(IDEM_SEND_OPEN == 1 && IDEM_SEND_ANSWERED == 4, "written out below");
static_assert(IDEM_EVENT_DISPATCHED == 2 && IDEM_EVENT_SUCCEEDED == 14, "written out below");
static_assert(IDEM_EVENT_PAYMENT_MOVED == 20, "written out below");

#define SQL_MAX    4096
#define LEASE_US   INT64_C(60000000)
#define KEEP_US    (INT64_C(30) * 86400 * 1000000)
#define VALUES_MAX 20

/* What a number after '?' stands for. */
enum value {
    VALUE_NONE = 0,
    VALUE_INTENT_ID,
    VALUE_PAYMENT_ID,
    VALUE_SCOPE,
    VALUE_KEY,
    VALUE_ORDER_NO,
    VALUE_NOW_US,
    VALUE_LEASE_END_US,
    VALUE_EFFECT_ID,
    VALUE_TOKEN,
    VALUE_REQUEST,
    VALUE_FINGERPRINT,
    VALUE_METADATA,
    VALUE_INTENT_ROW,
    VALUE_PAYMENT_ROW,
    VALUE_HEADERS,
    VALUE_BODY,
    VALUE_REFERENCE,
    VALUE_EXPIRES_US,
    VALUE_COUNT
};

static_assert(VALUE_COUNT <= VALUES_MAX, "statements remember which values they name");

struct column {
    const char *name;
    const char *value;
};

static const struct column payment_columns[] = {
    { "id", "?2" },
    { "version", "1" },
    { "state", "1" },
    { "principal", "'bench'" },
    { "order_no", "?5" },
    { "capture_mode", "1" },
    { "amount_minor", "10000" },
    { "currency", "'CNY'" },
    { "entry", "'bench'" },
    { "effect_id", "?8" },
    { "method", "'tok_ok'" },
    { "description", "'One pair of shoes'" },
    { "metadata", "?12" },
    { "created_us", "?6" },
    { "updated_us", "?6" },
    { NULL, NULL },
};

static const struct column intent_columns[] = {
    { "id", "?1" },
    { "scope", "?3" },
    { "principal", "'bench'" },
    { "key", "?4" },
    { "endpoint", "1" },
    { "state", "2" },
    { "version", "1" },
    { "rule_id", "1" },
    { "secret_id", "1" },
    { "fingerprint", "?11" },
    { "epoch", "1" },
    { "token", "?9" },
    { "last_command", "?9" },
    { "step", "1" },
    { "incarnation", "1" },
    { "lease_end_us", "?7" },
    { "due_us", "?7" },
    { "send_count", "1" },
    { "created_us", "?6" },
    { "updated_us", "?6" },
    { "patience_us", "?7" },
    { "effect_kind", "1" },
    { "effect_id", "?8" },
    { "entry", "'bench'" },
    { "amount_minor", "10000" },
    { "currency", "'CNY'" },
    { "payment_row", "?14" },
    { "payment_id", "?2" },
    { "refund_id", "zeroblob(16)" },
    { "request", "?10" },
    { NULL, NULL },
};

static const struct column send_columns[] = {
    { "intent_row", "?13" }, { "no", "1" },          { "epoch", "1" },
    { "token", "?9" },       { "granted_us", "?6" }, { "not_after_us", "?7" },
    { "state", "1" },        { NULL, NULL },
};

static const struct column dispatched_columns[] = {
    { "intent_row", "?13" }, { "kind", "2" },    { "cause", "1" }, { "at_us", "?6" },
    { "epoch", "1" },        { "send_no", "1" }, { NULL, NULL },
};

static const struct column moved_columns[] = {
    { "intent_row", "?13" }, { "kind", "20" }, { "cause", "2" },
    { "at_us", "?6" },       { "epoch", "1" }, { "detail", "'pending -> captured'" },
    { NULL, NULL },
};

static const struct column succeeded_columns[] = {
    { "intent_row", "?13" }, { "kind", "14" },   { "cause", "2" },       { "at_us", "?6" },
    { "epoch", "1" },        { "send_no", "1" }, { "detail", "'send'" }, { NULL, NULL },
};

enum statement {
    LOOK_INTENT_BY_SCOPE = 0,
    LOOK_ORDER,
    LOOK_INTENT,
    LOOK_SENDS,
    LOOK_PAYMENT,
    INSERT_PAYMENT,
    INSERT_INTENT,
    INSERT_SEND,
    INSERT_DISPATCHED,
    INSERT_MOVED,
    INSERT_SUCCEEDED,
    UPDATE_PAYMENT,
    UPDATE_INTENT,
    UPDATE_SEND,
    STATEMENT_COUNT
};

/* A table with its columns, or SQL as it is. */
struct source {
    const char *table;
    const struct column *columns;
    const char *sql;
};

static const struct source sources[STATEMENT_COUNT] = {
    [LOOK_INTENT_BY_SCOPE] = { .sql = "SELECT * FROM intents WHERE scope = ?3" },
    [LOOK_ORDER] = { .sql = "SELECT * FROM payments WHERE principal = 'bench' AND order_no = ?5"
                            " AND " IDEM_SQLITE_HOLDS_ORDER },
    [LOOK_INTENT] = { .sql = "SELECT * FROM intents WHERE row = ?13 AND scope = ?3" },
    [LOOK_SENDS] = { .sql = "SELECT * FROM sends WHERE intent_row = ?13 ORDER BY no" },
    [LOOK_PAYMENT] = { .sql = "SELECT * FROM payments WHERE row = ?14" },
    [INSERT_PAYMENT] = { .table = "payments", .columns = payment_columns },
    [INSERT_INTENT] = { .table = "intents", .columns = intent_columns },
    [INSERT_SEND] = { .table = "sends", .columns = send_columns },
    [INSERT_DISPATCHED] = { .table = "events", .columns = dispatched_columns },
    [INSERT_MOVED] = { .table = "events", .columns = moved_columns },
    [INSERT_SUCCEEDED] = { .table = "events", .columns = succeeded_columns },
    [UPDATE_PAYMENT] = { .sql = "UPDATE payments SET version = 2, state = 4,"
                                " authorized_minor = 10000, captured_minor = 10000,"
                                " reference = ?17, updated_us = ?6"
                                " WHERE row = ?14 AND version = 1" },
    [UPDATE_INTENT] = { .sql = "UPDATE intents SET version = 2, state = 5, last_command = ?9,"
                               " step = 0, lease_end_us = 0, due_us = 0, updated_us = ?6,"
                               " finished_us = ?6, expires_us = ?18, reference = ?17,"
                               " answer_status = 201, answer_headers = ?15, answer_body = ?16"
                               " WHERE row = ?13 AND version = 1" },
    [UPDATE_SEND] = { .sql = "UPDATE sends SET state = 4 WHERE intent_row = ?13 AND no = 1" },
};

struct prepared {
    sqlite3_stmt *handle;
    uint32_t named; /* One bit a value. */
};

/* One payment's values, as long as its statements run. */
struct values {
    uint8_t intent_id[16];
    uint8_t payment_id[16];
    uint8_t scope[16];
    uint8_t token[16];
    uint8_t fingerprint[32];
    char key[64];
    char order_no[32];
    char effect_id[32];
    char metadata[64];
    char request[256];
    char headers[128];
    char body[640];
    char reference[32];
    int64_t now_us;
    int64_t intent_row;
    int64_t payment_row;
};

struct bench_rows {
    sqlite3 *database;
    uint32_t seed;
    struct prepared prepared[STATEMENT_COUNT];
    struct values values;
};

static void fail(sqlite3 *database, const char *what)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, sqlite3_errmsg(database));
    exit(1);
}

void bench_sql(sqlite3 *database, const char *sql)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail(database, sql);
    }
}

void bench_done(sqlite3 *database, sqlite3_stmt *statement)
{
    if (sqlite3_step(statement) != SQLITE_DONE) {
        fail(database, sqlite3_sql(statement));
    }
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
}

/* The value of a column that the list does not name. */
static const char *value_of(const struct column *columns, const char *name, const char *type)
{
    for (const struct column *column = columns; column->name != NULL; column++) {
        if (strcmp(column->name, name) == 0) {
            return column->value;
        }
    }
    if (strcmp(type, "INTEGER") == 0) {
        return "0";
    }
    return strcmp(type, "TEXT") == 0 ? "''" : "x''";
}

/* INSERT with a value for each column of the table but the handle. */
static void insert_print(sqlite3 *database, const struct source *source, char sql[SQL_MAX])
{
    char names[SQL_MAX / 2] = "";
    char values[SQL_MAX / 2] = "";
    char pragma[64];
    sqlite3_stmt *info = NULL;
    (void)snprintf(pragma, sizeof(pragma), "PRAGMA table_info(%s)", source->table);
    if (sqlite3_prepare_v2(database, pragma, -1, &info, NULL) != SQLITE_OK) {
        fail(database, pragma);
    }
    while (sqlite3_step(info) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(info, 1);
        const char *type = (const char *)sqlite3_column_text(info, 2);
        if (strcmp(name, "row") == 0) {
            continue;
        }
        const char *value = value_of(source->columns, name, type);
        size_t used = strlen(names);
        (void)snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? "," : "", name);
        used = strlen(values);
        (void)snprintf(values + used, sizeof(values) - used, "%s%s", used > 0 ? "," : "", value);
    }
    (void)sqlite3_finalize(info); /* Only repeats what the step said. */
    (void)snprintf(sql, SQL_MAX, "INSERT INTO %s (%s) VALUES (%s)", source->table, names, values);
}

static void statement_prepare(struct bench_rows *rows, enum statement index)
{
    const struct source *source = &sources[index];
    struct prepared *prepared = &rows->prepared[index];
    char sql[SQL_MAX];
    if (source->sql != NULL) {
        (void)snprintf(sql, sizeof(sql), "%s", source->sql);
    } else {
        insert_print(rows->database, source, sql);
    }
    if (sqlite3_prepare_v3(rows->database, sql, -1, SQLITE_PREPARE_PERSISTENT, &prepared->handle,
                           NULL) != SQLITE_OK) {
        fail(rows->database, sql);
    }
    for (int i = 1; i < VALUE_COUNT; i++) {
        if (sqlite3_bind_parameter_name(prepared->handle, i) != NULL) {
            prepared->named |= UINT32_C(1) << i;
        }
    }
}

static void bytes_bind(sqlite3_stmt *statement, int index, const void *bytes, int size)
{
    (void)sqlite3_bind_blob(statement, index, bytes, size, SQLITE_STATIC); /* The step tells. */
}

static void text_bind(sqlite3_stmt *statement, int index, const char *text)
{
    (void)sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC); /* Likewise. */
}

static void value_bind(const struct values *values, sqlite3_stmt *statement, int index)
{
    switch ((enum value)index) {
    case VALUE_INTENT_ID:
        bytes_bind(statement, index, values->intent_id, 16);
        return;
    case VALUE_PAYMENT_ID:
        bytes_bind(statement, index, values->payment_id, 16);
        return;
    case VALUE_SCOPE:
        bytes_bind(statement, index, values->scope, 16);
        return;
    case VALUE_TOKEN:
        bytes_bind(statement, index, values->token, 16);
        return;
    case VALUE_FINGERPRINT:
        bytes_bind(statement, index, values->fingerprint, 32);
        return;
    case VALUE_KEY:
        text_bind(statement, index, values->key);
        return;
    case VALUE_ORDER_NO:
        text_bind(statement, index, values->order_no);
        return;
    case VALUE_EFFECT_ID:
        text_bind(statement, index, values->effect_id);
        return;
    case VALUE_REQUEST:
        text_bind(statement, index, values->request);
        return;
    case VALUE_METADATA:
        text_bind(statement, index, values->metadata);
        return;
    case VALUE_HEADERS:
        text_bind(statement, index, values->headers);
        return;
    case VALUE_BODY:
        text_bind(statement, index, values->body);
        return;
    case VALUE_REFERENCE:
        text_bind(statement, index, values->reference);
        return;
    case VALUE_NOW_US:
        (void)sqlite3_bind_int64(statement, index, values->now_us);
        return;
    case VALUE_LEASE_END_US:
        (void)sqlite3_bind_int64(statement, index, values->now_us + LEASE_US);
        return;
    case VALUE_EXPIRES_US:
        (void)sqlite3_bind_int64(statement, index, values->now_us + KEEP_US);
        return;
    case VALUE_INTENT_ROW:
        (void)sqlite3_bind_int64(statement, index, values->intent_row);
        return;
    case VALUE_PAYMENT_ROW:
        (void)sqlite3_bind_int64(statement, index, values->payment_row);
        return;
    case VALUE_NONE:
    case VALUE_COUNT:
        break;
    }
    abort();
}

static sqlite3_stmt *bound(struct bench_rows *rows, enum statement index)
{
    const struct prepared *prepared = &rows->prepared[index];
    for (uint32_t left = prepared->named; left != 0; left &= left - 1) {
        value_bind(&rows->values, prepared->handle, __builtin_ctz(left));
    }
    return prepared->handle;
}

static void run(struct bench_rows *rows, enum statement index)
{
    bench_done(rows->database, bound(rows, index));
}

/* Reads one row, or none, to the last column. */
static void look_at(struct bench_rows *rows, enum statement index)
{
    sqlite3_stmt *statement = bound(rows, index);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        int count = sqlite3_column_count(statement);
        for (int i = 0; i < count; i++) {
            (void)sqlite3_column_bytes(statement, i); /* Decodes it, which is what is to be paid. */
        }
    }
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
}

static int64_t wall_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* It always exists. */
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void bytes_fill(uint8_t *bytes, uint64_t high, uint64_t low)
{
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(high >> (56 - 8 * i));
        bytes[8 + i] = (uint8_t)(low >> (56 - 8 * i));
    }
}

/* Ids begin with the time, as UUIDv7 do; scope and order number lie anywhere. */
static void names_fill(struct bench_rows *rows, uint64_t number)
{
    struct values *values = &rows->values;
    uint64_t named = (uint64_t)rows->seed << 32 ^ number;
    uint64_t mixed = bench_mix(named);
    values->now_us = wall_us();
    bytes_fill(values->scope, bench_mix(mixed), mixed);
    bytes_fill(values->token, mixed, bench_mix(mixed + 1));
    bytes_fill(values->fingerprint, mixed, number);
    bytes_fill(values->fingerprint + 16, number, mixed);
    bytes_fill(values->intent_id, (uint64_t)values->now_us, mixed);
    bytes_fill(values->payment_id, (uint64_t)values->now_us, ~mixed);
}

static void texts_fill(struct bench_rows *rows, uint64_t number)
{
    struct values *values = &rows->values;
    uint64_t mixed = bench_mix((uint64_t)rows->seed << 32 ^ number);
    (void)snprintf(values->key, sizeof(values->key), "bench-%08" PRIx32 "-%016" PRIx64, rows->seed,
                   number);
    (void)snprintf(values->order_no, sizeof(values->order_no), "o-%016" PRIx64, mixed);
    (void)snprintf(values->effect_id, sizeof(values->effect_id), "c%08" PRIx32 "00%016" PRIx64,
                   rows->seed, mixed);
    (void)snprintf(values->metadata, sizeof(values->metadata), "{\"cart\":\"%016" PRIx64 "\"}",
                   number);
    (void)snprintf(values->request, sizeof(values->request),
                   "{\"id\":\"%s\",\"kind\":\"charge\",\"amount\":\"100.00\",\"currency\":\"CNY\","
                   "\"order_no\":\"%s\",\"method\":\"tok_ok\","
                   "\"description\":\"One pair of shoes\"}",
                   values->effect_id, values->order_no);
}

/* A stored answer has the length of a real one: 95 bytes of headers, 488 of body. */
static void answer_fill(struct values *values, uint64_t number)
{
    (void)snprintf(values->reference, sizeof(values->reference), "bench-%011" PRIu64, number);
    (void)snprintf(values->headers, sizeof(values->headers),
                   "Content-Type: application/json\nLocation: /v1/payments/%036" PRIx64 "\n",
                   number);
    (void)snprintf(values->body, sizeof(values->body), "{\"id\":\"%036" PRIx64 "\"%440s}\n", number,
                   "");
}

struct bench_rows *bench_rows_create(sqlite3 *database, uint32_t seed)
{
    struct bench_rows *rows = calloc(1, sizeof(*rows));
    if (rows == NULL) {
        (void)fputs("bench: no memory\n", stderr);
        exit(1);
    }
    rows->database = database;
    rows->seed = seed;
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        statement_prepare(rows, (enum statement)i);
    }
    return rows;
}

void bench_rows_destroy(struct bench_rows *rows)
{
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        (void)sqlite3_finalize(rows->prepared[i].handle); /* Repeats the last step's error. */
    }
    free(rows);
}

void bench_rows_accept(struct bench_rows *rows,
                       uint64_t number,
                       bool look,
                       struct bench_payment *ret_payment)
{
    names_fill(rows, number);
    texts_fill(rows, number);
    if (look) {
        look_at(rows, LOOK_INTENT_BY_SCOPE);
        look_at(rows, LOOK_ORDER);
    }
    run(rows, INSERT_PAYMENT);
    rows->values.payment_row = sqlite3_last_insert_rowid(rows->database);
    run(rows, INSERT_INTENT);
    rows->values.intent_row = sqlite3_last_insert_rowid(rows->database);
    run(rows, INSERT_SEND);
    run(rows, INSERT_DISPATCHED);
    *ret_payment = (struct bench_payment){
        .number = number,
        .intent_row = rows->values.intent_row,
        .payment_row = rows->values.payment_row,
    };
}

void bench_rows_settle(struct bench_rows *rows, const struct bench_payment *payment, bool look)
{
    names_fill(rows, payment->number);
    answer_fill(&rows->values, payment->number);
    rows->values.intent_row = payment->intent_row;
    rows->values.payment_row = payment->payment_row;
    if (look) {
        look_at(rows, LOOK_INTENT);
        look_at(rows, LOOK_SENDS);
        look_at(rows, LOOK_PAYMENT);
    }
    run(rows, UPDATE_PAYMENT);
    run(rows, UPDATE_INTENT);
    run(rows, UPDATE_SEND);
    run(rows, INSERT_MOVED);
    run(rows, INSERT_SUCCEEDED);
}
