/*
 * One SQLite connection behind the rows port.
 *
 * The SQL is made from the column tables once, when the connection opens, and prepared for as long
 * as it lives (preparing per call halves the rate). No statement stays open between calls: rows are
 * copied out and the statement is reset, so a transaction never hangs on a forgotten cursor.
 *
 * What a failing statement means is decided here and nowhere else:
 *
 *   a constraint       MISS: the row is there already, or the number is taken. A CHECK too: the
 *                      command that ran into it is then found by running alone.
 *   anything else      REFUSED. Nothing is durable before COMMIT, so whether this is harmless only
 *                      depends on the rollback, which asks SQLite itself whether it is over.
 *   COMMIT, not done   LOST. Its frames may be in the log or not.
 */
#include "store/sqlite/sqlite_internal.h"

#include <assert.h>
#include <string.h>

#include "base/bug.h"
#include "store/columns.h"
#include "store/sqlite/schema.h"

static_assert(IDEM_PAYMENT_FAILED == 7, "schema.h, HOLDS_ORDER");
static_assert(IDEM_PAYMENT_CANCELED == 8, "schema.h, HOLDS_ORDER");
static_assert(IDEM_REFUND_FAILED == 3, "schema.h, HOLDS_REFUND");
static_assert(IDEM_INTENT_COUNT == 8, "schema.h, intents.state");
static_assert(IDEM_PAYMENT_COUNT == 10, "schema.h, payments.state");
static_assert(IDEM_REFUND_COUNT == 4, "schema.h, refunds.state");
static_assert(IDEM_SEND_COUNT == 5, "schema.h, sends.state");
static_assert(offsetof(struct idem_intent, row) == 0, "handles come first");
static_assert(offsetof(struct idem_payment, row) == 0, "handles come first");
static_assert(offsetof(struct idem_refund, row) == 0, "handles come first");

#define SQL_MAX 2048

enum sql_shape {
    SQL_PLAIN = 0,    /* The tail is all of it. */
    SQL_SELECT,       /* Handle and columns of the table; tail: the condition. */
    SQL_SELECT_BELOW, /* Columns of a table below intents. */
    SQL_INSERT,       /* Columns of the table; tail: ON CONFLICT. */
    SQL_INSERT_BELOW, /* Handle of the intent, then the columns. */
    SQL_UPDATE        /* Columns that are not fixed; tail: the guard. */
};

struct sql {
    enum sql_shape shape;
    const struct idem_table *table;
    const char *tail;
};

static const struct sql sqls[IDEM_SQLITE_STATEMENT_COUNT] = {
    [IDEM_SQLITE_BEGIN] = { SQL_PLAIN, NULL, "BEGIN" },
    [IDEM_SQLITE_COMMIT] = { SQL_PLAIN, NULL, "COMMIT" },
    [IDEM_SQLITE_ROLLBACK] = { SQL_PLAIN, NULL, "ROLLBACK" },
    [IDEM_SQLITE_INCARNATION] = { SQL_PLAIN, NULL,
                                  "SELECT value FROM meta WHERE key = 'incarnation'" },
    [IDEM_SQLITE_INTENT_BY_ROW] = { SQL_SELECT, &idem_table_intents, "row = ? AND scope = ?" },
    [IDEM_SQLITE_INTENT_BY_ID] = { SQL_SELECT, &idem_table_intents, "id = ? AND principal = ?" },
    [IDEM_SQLITE_INTENT_BY_SCOPE] = { SQL_SELECT, &idem_table_intents, "scope = ?" },
    [IDEM_SQLITE_PAYMENT_BY_ROW] = { SQL_SELECT, &idem_table_payments, "row = ?" },
    [IDEM_SQLITE_PAYMENT_BY_ID] = { SQL_SELECT, &idem_table_payments, "id = ? AND principal = ?" },
    [IDEM_SQLITE_PAYMENT_HOLDER] = { SQL_SELECT, &idem_table_payments,
                                     "principal = ? AND order_no = ?"
                                     " AND " IDEM_SQLITE_HOLDS_ORDER },
    [IDEM_SQLITE_PAYMENT_PAST] = { SQL_SELECT, &idem_table_payments,
                                   "principal = ? AND order_no = ?"
                                   " AND " IDEM_SQLITE_PAST_ORDER " ORDER BY row DESC LIMIT 1" },
    [IDEM_SQLITE_REFUND_BY_ROW] = { SQL_SELECT, &idem_table_refunds, "row = ?" },
    [IDEM_SQLITE_REFUND_BY_ID] = { SQL_SELECT, &idem_table_refunds, "id = ? AND principal = ?" },
    [IDEM_SQLITE_REFUND_HOLDER] = { SQL_SELECT, &idem_table_refunds,
                                    "payment_row = ? AND refund_no = ?"
                                    " AND " IDEM_SQLITE_HOLDS_REFUND },
    [IDEM_SQLITE_SENDS] = { SQL_SELECT_BELOW, &idem_table_sends, "intent_row = ? ORDER BY no" },
    [IDEM_SQLITE_EVENTS] = { SQL_SELECT_BELOW, &idem_table_events,
                             "intent_row = ? ORDER BY row DESC" },
    [IDEM_SQLITE_EVENTS_TOTAL] = { SQL_PLAIN, NULL,
                                   "SELECT count(*) FROM events WHERE intent_row = ?" },
    [IDEM_SQLITE_DUE] = { SQL_PLAIN, NULL,
                          "SELECT row, due_us, scope FROM intents INDEXED BY intents_due"
                          " WHERE due_us > 0 AND due_us <= ? ORDER BY due_us, row LIMIT ?" },
    [IDEM_SQLITE_DUE_NEXT] = { SQL_PLAIN, NULL,
                               "SELECT due_us FROM intents INDEXED BY intents_due"
                               " WHERE due_us > 0 AND due_us > ? ORDER BY due_us LIMIT 1" },
    /* Whatever is not final has a due time: the index of those is the short way. */
    [IDEM_SQLITE_LEFT] = { SQL_PLAIN, NULL,
                           "SELECT row, due_us, scope FROM intents INDEXED BY intents_due"
                           " WHERE due_us > 0 AND lease_end_us > 0 AND incarnation <> ?"
                           " AND row > ? ORDER BY row LIMIT ?" },
    [IDEM_SQLITE_INTENT_INSERT] = { SQL_INSERT, &idem_table_intents, "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_INTENT_UPDATE] = { SQL_UPDATE, &idem_table_intents, "row = ? AND version = ?" },
    [IDEM_SQLITE_PAYMENT_INSERT] = { SQL_INSERT, &idem_table_payments, "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_PAYMENT_UPDATE] = { SQL_UPDATE, &idem_table_payments, "row = ? AND version = ?" },
    [IDEM_SQLITE_REFUND_INSERT] = { SQL_INSERT, &idem_table_refunds, "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_REFUND_UPDATE] = { SQL_UPDATE, &idem_table_refunds, "row = ? AND version = ?" },
    [IDEM_SQLITE_SEND_INSERT] = { SQL_INSERT_BELOW, &idem_table_sends, "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_SEND_UPDATE] = { SQL_UPDATE, &idem_table_sends, "intent_row = ? AND no = ?" },
    [IDEM_SQLITE_EVENT_INSERT] = { SQL_INSERT_BELOW, &idem_table_events, "" },
    [IDEM_SQLITE_CASE_INSERT] = { SQL_INSERT_BELOW, &idem_table_cases,
                                  "ON CONFLICT (id) DO NOTHING" },
};

static struct idem_sqlite_connection *connection_of(struct idem_rows *rows)
{
    return IDEM_CONTAINER_OF(rows, struct idem_sqlite_connection, rows);
}

static void select_print(const struct sql *sql, struct idem_buf *buf)
{
    const char *comma = sql->shape == SQL_SELECT ? "SELECT row," : "SELECT ";
    for (size_t i = 0; i < sql->table->column_count; i++) {
        idem_buf_printf(buf, "%s%s", comma, sql->table->columns[i].name);
        comma = ",";
    }
    idem_buf_printf(buf, " FROM %s WHERE %s", sql->table->name, sql->tail);
}

static void insert_print(const struct sql *sql, struct idem_buf *buf)
{
    bool below = sql->shape == SQL_INSERT_BELOW;
    idem_buf_printf(buf, "INSERT INTO %s (%s", sql->table->name, below ? "intent_row" : "");
    const char *comma = below ? "," : "";
    for (size_t i = 0; i < sql->table->column_count; i++) {
        idem_buf_printf(buf, "%s%s", comma, sql->table->columns[i].name);
        comma = ",";
    }
    idem_buf_printf(buf, ") VALUES (?");
    for (size_t i = below ? 0 : 1; i < sql->table->column_count; i++) {
        idem_buf_printf(buf, ",?");
    }
    idem_buf_printf(buf, ") %s", sql->tail);
}

static void update_print(const struct sql *sql, struct idem_buf *buf)
{
    idem_buf_printf(buf, "UPDATE %s SET ", sql->table->name);
    const char *comma = "";
    for (size_t i = 0; i < sql->table->column_count; i++) {
        if (!sql->table->columns[i].fixed) {
            idem_buf_printf(buf, "%s%s=?", comma, sql->table->columns[i].name);
            comma = ",";
        }
    }
    idem_buf_printf(buf, " WHERE %s", sql->tail);
}

static void sql_print(const struct sql *sql, struct idem_buf *buf)
{
    switch (sql->shape) {
    case SQL_PLAIN:
        idem_buf_printf(buf, "%s", sql->tail);
        return;
    case SQL_SELECT:
    case SQL_SELECT_BELOW:
        select_print(sql, buf);
        return;
    case SQL_INSERT:
    case SQL_INSERT_BELOW:
        insert_print(sql, buf);
        return;
    case SQL_UPDATE:
        update_print(sql, buf);
        return;
    }
}

static enum idem_err statement_prepare(struct idem_sqlite_connection *connection,
                                       enum idem_sqlite_statement index,
                                       struct idem_error *reterr)
{
    struct sql sql = sqls[index];
    if (index == IDEM_SQLITE_BEGIN && connection->writes) {
        sql.tail = "BEGIN IMMEDIATE";
    }
    char memory[SQL_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    sql_print(&sql, &buf);
    IDEM_ASSERT(!buf.full);

    int rc = sqlite3_prepare_v3(connection->handle, memory, (int)buf.len, SQLITE_PREPARE_PERSISTENT,
                                &connection->statements[index], NULL);
    if (rc != SQLITE_OK) {
        return idem_error_set(reterr, IDEM_E_STORE, "the store's tables cannot be used: %s",
                              sqlite3_errmsg(connection->handle));
    }
    return IDEM_OK;
}

/* Steps a statement that returns no rows. */
static enum idem_rows_step statement_run(sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    if (rc == SQLITE_DONE) {
        return IDEM_ROWS_OK;
    }
    return (rc & 0xff) == SQLITE_CONSTRAINT ? IDEM_ROWS_MISS : IDEM_ROWS_REFUSED;
}

/* Binding fails only for an index that is not there or for want of memory; the step then tells. */
static void text_bind(sqlite3_stmt *statement, int index, struct idem_str text)
{
    (void)sqlite3_bind_text(statement, index, text.len > 0 ? text.data : "", (int)text.len,
                            SQLITE_STATIC);
}

static void bytes_bind(sqlite3_stmt *statement, int index, const void *bytes, int size)
{
    (void)sqlite3_bind_blob(statement, index, bytes, size, SQLITE_STATIC);
}

static void i64_bind(sqlite3_stmt *statement, int index, int64_t value)
{
    (void)sqlite3_bind_int64(statement, index, value);
}

static void column_bind(sqlite3_stmt *statement,
                        int index,
                        const struct idem_column *column,
                        const void *row)
{
    const void *at = (const char *)row + column->offset;
    switch (column->kind) {
    case IDEM_COLUMN_I64:
        i64_bind(statement, index, *(const int64_t *)at);
        return;
    case IDEM_COLUMN_U32:
        i64_bind(statement, index, *(const uint32_t *)at);
        return;
    case IDEM_COLUMN_U16:
        i64_bind(statement, index, *(const uint16_t *)at);
        return;
    case IDEM_COLUMN_BOOL:
        i64_bind(statement, index, *(const bool *)at ? 1 : 0);
        return;
    case IDEM_COLUMN_BYTES_16:
        bytes_bind(statement, index, at, 16);
        return;
    case IDEM_COLUMN_BYTES_32:
        bytes_bind(statement, index, at, 32);
        return;
    case IDEM_COLUMN_TEXT:
        text_bind(statement, index, *(const struct idem_str *)at);
        return;
    case IDEM_COLUMN_NONE:
    case IDEM_COLUMN_KIND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* Binds from parameter `index` on; returns the next free one. */
static int columns_bind(sqlite3_stmt *statement,
                        int index,
                        const struct idem_table *table,
                        const void *row,
                        bool fixed_too)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (fixed_too || !table->columns[i].fixed) {
            column_bind(statement, index, &table->columns[i], row);
            index += 1;
        }
    }
    return index;
}

static bool bytes_read(sqlite3_stmt *statement, int index, void *ret_bytes, int size)
{
    const void *bytes = sqlite3_column_blob(statement, index);
    if (bytes == NULL || sqlite3_column_bytes(statement, index) != size) {
        return false;
    }
    memcpy(ret_bytes, bytes, (size_t)size);
    return true;
}

static struct idem_str text_read(sqlite3_stmt *statement, int index)
{
    const void *text = sqlite3_column_text(statement, index);
    int len = sqlite3_column_bytes(statement, index);
    return (struct idem_str){ .data = text, .len = text == NULL ? 0 : (size_t)len };
}

static bool number_read(const struct idem_column *column, int64_t value, void *at)
{
    switch (column->kind) {
    case IDEM_COLUMN_I64:
        *(int64_t *)at = value;
        return true;
    case IDEM_COLUMN_U32:
        *(uint32_t *)at = (uint32_t)value;
        return value >= 0 && value <= UINT32_MAX;
    case IDEM_COLUMN_U16:
        *(uint16_t *)at = (uint16_t)value;
        return value >= 0 && value <= UINT16_MAX;
    case IDEM_COLUMN_BOOL:
        *(bool *)at = value != 0;
        return true;
    case IDEM_COLUMN_BYTES_16:
    case IDEM_COLUMN_BYTES_32:
    case IDEM_COLUMN_TEXT:
    case IDEM_COLUMN_NONE:
    case IDEM_COLUMN_KIND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* False: the value is not one that we wrote. */
static bool column_read(sqlite3_stmt *statement,
                        int index,
                        const struct idem_column *column,
                        void *row,
                        struct idem_buf *kept)
{
    void *at = (char *)row + column->offset;
    if (column->kind == IDEM_COLUMN_BYTES_16) {
        return bytes_read(statement, index, at, 16);
    }
    if (column->kind == IDEM_COLUMN_BYTES_32) {
        return bytes_read(statement, index, at, 32);
    }
    if (column->kind == IDEM_COLUMN_TEXT) {
        *(struct idem_str *)at = idem_buf_keep(kept, text_read(statement, index));
        return true;
    }
    return number_read(column, sqlite3_column_int64(statement, index), at);
}

static bool columns_read(sqlite3_stmt *statement,
                         int index,
                         const struct idem_table *table,
                         void *ret_row,
                         struct idem_buf *kept)
{
    bool ours = true;
    for (size_t i = 0; i < table->column_count && ours; i++) {
        ours = column_read(statement, index + (int)i, &table->columns[i], ret_row, kept);
    }
    return ours;
}

/* One row with its handle, or nothing. */
static enum idem_rows_step row_find(struct idem_sqlite_connection *connection,
                                    sqlite3_stmt *statement,
                                    const struct idem_table *table,
                                    void *ret_row)
{
    int rc = sqlite3_step(statement);
    bool ours = true;
    if (rc == SQLITE_ROW) {
        *(int64_t *)ret_row = sqlite3_column_int64(statement, 0);
        ours = columns_read(statement, 1, table, ret_row, connection->rows.kept);
    }
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    bool answered = rc == SQLITE_ROW || rc == SQLITE_DONE;
    return answered && ours ? IDEM_ROWS_OK : IDEM_ROWS_REFUSED;
}

/* This opening is still the newest: nobody else has opened the file since. */
static enum idem_rows_step incarnation_check(struct idem_sqlite_connection *connection)
{
    sqlite3_stmt *statement = connection->statements[IDEM_SQLITE_INCARNATION];
    int rc = sqlite3_step(statement);
    bool ours = rc == SQLITE_ROW && sqlite3_column_int64(statement, 0) == connection->incarnation;
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return IDEM_ROWS_REFUSED;
    }
    return ours ? IDEM_ROWS_OK : IDEM_ROWS_WRONG_NODE;
}

static enum idem_rows_step rows_begin(struct idem_rows *rows)
{
    struct idem_sqlite_connection *connection = connection_of(rows);
    IDEM_ASSERT(sqlite3_get_autocommit(connection->handle) != 0);
    enum idem_rows_step step = statement_run(connection->statements[IDEM_SQLITE_BEGIN]);
    if (step != IDEM_ROWS_OK || !connection->writes) {
        return step;
    }
    return incarnation_check(connection);
}

static enum idem_rows_step rows_commit(struct idem_rows *rows)
{
    struct idem_sqlite_connection *connection = connection_of(rows);
    if (statement_run(connection->statements[IDEM_SQLITE_COMMIT]) != IDEM_ROWS_OK) {
        return IDEM_ROWS_LOST;
    }
    IDEM_ASSERT(sqlite3_get_autocommit(connection->handle) != 0);
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_rollback(struct idem_rows *rows)
{
    struct idem_sqlite_connection *connection = connection_of(rows);
    if (sqlite3_get_autocommit(connection->handle) == 0) {
        /* If this fails, the next line finds out. */
        (void)statement_run(connection->statements[IDEM_SQLITE_ROLLBACK]);
    }
    return sqlite3_get_autocommit(connection->handle) != 0 ? IDEM_ROWS_OK : IDEM_ROWS_LOST;
}

static enum idem_rows_step rows_find_intent(struct idem_rows *rows,
                                            enum idem_find find,
                                            const struct idem_rows_key *key,
                                            struct idem_intent *ret_intent)
{
    struct idem_sqlite_connection *connection = connection_of(rows);
    sqlite3_stmt *statement = NULL;

    if (find == IDEM_FIND_BY_ROW) {
        statement = connection->statements[IDEM_SQLITE_INTENT_BY_ROW];
        i64_bind(statement, 1, key->row);
        bytes_bind(statement, 2, &key->scope, 16);
    } else if (find == IDEM_FIND_BY_SCOPE) {
        statement = connection->statements[IDEM_SQLITE_INTENT_BY_SCOPE];
        bytes_bind(statement, 1, &key->scope, 16);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_BY_ID);
        statement = connection->statements[IDEM_SQLITE_INTENT_BY_ID];
        bytes_bind(statement, 1, &key->id, 16);
        text_bind(statement, 2, key->principal);
    }
    return row_find(connection, statement, &idem_table_intents, ret_intent);
}

static enum idem_rows_step rows_find_payment(struct idem_rows *rows,
                                             enum idem_find find,
                                             const struct idem_rows_key *key,
                                             struct idem_payment *ret_payment)
{
    struct idem_sqlite_connection *connection = connection_of(rows);
    sqlite3_stmt *statement = NULL;

    if (find == IDEM_FIND_BY_ROW) {
        statement = connection->statements[IDEM_SQLITE_PAYMENT_BY_ROW];
        i64_bind(statement, 1, key->row);
    } else if (find == IDEM_FIND_BY_ID) {
        statement = connection->statements[IDEM_SQLITE_PAYMENT_BY_ID];
        bytes_bind(statement, 1, &key->id, 16);
        text_bind(statement, 2, key->principal);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_HOLDER || find == IDEM_FIND_NEWEST_PAST);
        statement = connection->statements[find == IDEM_FIND_HOLDER ? IDEM_SQLITE_PAYMENT_HOLDER
                                                                    : IDEM_SQLITE_PAYMENT_PAST];
        text_bind(statement, 1, key->principal);
        text_bind(statement, 2, key->number);
    }
    return row_find(connection, statement, &idem_table_payments, ret_payment);
}

static enum idem_rows_step rows_find_refund(struct idem_rows *rows,
                                            enum idem_find find,
                                            const struct idem_rows_key *key,
                                            struct idem_refund *ret_refund)
{
    struct idem_sqlite_connection *connection = connection_of(rows);
    sqlite3_stmt *statement = NULL;

    if (find == IDEM_FIND_BY_ROW) {
        statement = connection->statements[IDEM_SQLITE_REFUND_BY_ROW];
        i64_bind(statement, 1, key->row);
    } else if (find == IDEM_FIND_BY_ID) {
        statement = connection->statements[IDEM_SQLITE_REFUND_BY_ID];
        bytes_bind(statement, 1, &key->id, 16);
        text_bind(statement, 2, key->principal);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_HOLDER);
        statement = connection->statements[IDEM_SQLITE_REFUND_HOLDER];
        i64_bind(statement, 1, key->row);
        text_bind(statement, 2, key->number);
    }
    return row_find(connection, statement, &idem_table_refunds, ret_refund);
}

/* How a walk over rows ended; resets the statement. */
static enum idem_rows_step walk_end(sqlite3_stmt *statement, int rc, bool ours)
{
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    bool answered = rc == SQLITE_ROW || rc == SQLITE_DONE;
    return answered && ours ? IDEM_ROWS_OK : IDEM_ROWS_REFUSED;
}

static enum idem_rows_step rows_find_sends(struct idem_rows *rows,
                                           int64_t intent_row,
                                           struct idem_send *ret_sends,
                                           size_t *ret_count)
{
    sqlite3_stmt *statement = connection_of(rows)->statements[IDEM_SQLITE_SENDS];
    size_t count = 0;
    bool ours = true;

    i64_bind(statement, 1, intent_row);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && count < IDEM_SENDS_MAX) {
        ours = columns_read(statement, 0, &idem_table_sends, &ret_sends[count], rows->kept);
        count += 1;
        rc = sqlite3_step(statement);
    }
    /* More sends than there can be: whoever decides must not overlook one. */
    ours = ours && rc != SQLITE_ROW;
    *ret_count = count;
    return walk_end(statement, rc, ours);
}

static enum idem_rows_step events_total(struct idem_rows *rows,
                                        int64_t intent_row,
                                        size_t *ret_total)
{
    sqlite3_stmt *statement = connection_of(rows)->statements[IDEM_SQLITE_EVENTS_TOTAL];
    i64_bind(statement, 1, intent_row);
    int rc = sqlite3_step(statement);
    *ret_total = rc == SQLITE_ROW ? (size_t)sqlite3_column_int64(statement, 0) : 0;
    return walk_end(statement, rc, rc == SQLITE_ROW);
}

static bool text_fits(const struct idem_buf *buf, int len)
{
    return (size_t)len <= buf->max - buf->len;
}

static void events_reverse(struct idem_read *read)
{
    for (size_t i = 0; i < read->event_count / 2; i++) {
        struct idem_event other = read->events[i];
        read->events[i] = read->events[read->event_count - 1 - i];
        read->events[read->event_count - 1 - i] = other;
    }
}

static enum idem_rows_step rows_find_events(struct idem_rows *rows,
                                            int64_t intent_row,
                                            struct idem_read *read)
{
    enum idem_rows_step step = events_total(rows, intent_row, &read->event_total);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    sqlite3_stmt *statement = connection_of(rows)->statements[IDEM_SQLITE_EVENTS];
    int detail = (int)idem_table_events.column_count - 1;
    bool ours = true;

    read->event_count = 0;
    i64_bind(statement, 1, intent_row);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && read->event_count < IDEM_READ_EVENTS_MAX &&
           text_fits(rows->kept, sqlite3_column_bytes(statement, detail))) {
        struct idem_event *event = &read->events[read->event_count];
        ours = columns_read(statement, 0, &idem_table_events, event, rows->kept);
        read->event_count += 1;
        rc = sqlite3_step(statement);
    }
    events_reverse(read);
    return walk_end(statement, rc, ours);
}

/* Rows of (row, due_us, scope) into `read->due`. */
static enum idem_rows_step due_walk(sqlite3_stmt *statement, struct idem_read *read)
{
    bool ours = true;
    read->due_count = 0;
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && read->due_count < IDEM_READ_DUE_MAX) {
        struct idem_due *due = &read->due[read->due_count];
        due->row = sqlite3_column_int64(statement, 0);
        due->due_us = sqlite3_column_int64(statement, 1);
        ours = bytes_read(statement, 2, due->scope.bytes, 16);
        read->due_count += 1;
        rc = sqlite3_step(statement);
    }
    return walk_end(statement, rc, ours);
}

static enum idem_rows_step rows_find_due(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_sqlite_connection *connection = connection_of(rows);
    sqlite3_stmt *statement = connection->statements[IDEM_SQLITE_DUE];
    i64_bind(statement, 1, read->now_us);
    i64_bind(statement, 2, IDEM_READ_DUE_MAX);
    enum idem_rows_step step = due_walk(statement, read);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    statement = connection->statements[IDEM_SQLITE_DUE_NEXT];
    i64_bind(statement, 1, read->now_us);
    int rc = sqlite3_step(statement);
    read->next_due_us = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    return walk_end(statement, rc, true);
}

static enum idem_rows_step rows_find_left(struct idem_rows *rows,
                                          int64_t incarnation,
                                          struct idem_read *read)
{
    sqlite3_stmt *statement = connection_of(rows)->statements[IDEM_SQLITE_LEFT];
    i64_bind(statement, 1, incarnation);
    i64_bind(statement, 2, read->after_row);
    i64_bind(statement, 3, IDEM_READ_DUE_MAX);
    return due_walk(statement, read);
}

/* A write that must change exactly one row. */
static enum idem_rows_step guarded_run(struct idem_sqlite_connection *connection,
                                       sqlite3_stmt *statement)
{
    enum idem_rows_step step = statement_run(statement);
    if (step == IDEM_ROWS_OK && sqlite3_changes(connection->handle) != 1) {
        return IDEM_ROWS_MISS;
    }
    return step;
}

static enum idem_rows_step row_insert(struct idem_sqlite_connection *connection,
                                      enum idem_sqlite_statement insert,
                                      const struct idem_table *table,
                                      void *row)
{
    sqlite3_stmt *statement = connection->statements[insert];
    (void)columns_bind(statement, 1, table, row, true);
    enum idem_rows_step step = guarded_run(connection, statement);
    if (step == IDEM_ROWS_OK) {
        *(int64_t *)row = sqlite3_last_insert_rowid(connection->handle);
    }
    return step;
}

/* `version` is the new one; the row must still have the one before it. */
static enum idem_rows_step row_update(struct idem_sqlite_connection *connection,
                                      enum idem_sqlite_statement update,
                                      const struct idem_table *table,
                                      const void *row,
                                      uint32_t version)
{
    int64_t handle = *(const int64_t *)row;
    IDEM_ASSERT(handle > 0);
    IDEM_ASSERT(version > 1);
    sqlite3_stmt *statement = connection->statements[update];
    int index = columns_bind(statement, 1, table, row, false);
    i64_bind(statement, index, handle);
    i64_bind(statement, index + 1, (int64_t)version - 1);
    return guarded_run(connection, statement);
}

static enum idem_rows_step rows_write_intent(struct idem_rows *rows,
                                             struct idem_intent_write *write)
{
    struct idem_sqlite_connection *connection = connection_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        return row_insert(connection, IDEM_SQLITE_INTENT_INSERT, &idem_table_intents, &write->row);
    }
    return row_update(connection, IDEM_SQLITE_INTENT_UPDATE, &idem_table_intents, &write->row,
                      write->row.version);
}

static enum idem_rows_step rows_write_payment(struct idem_rows *rows,
                                              struct idem_payment_write *write)
{
    struct idem_sqlite_connection *connection = connection_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        return row_insert(connection, IDEM_SQLITE_PAYMENT_INSERT, &idem_table_payments,
                          &write->row);
    }
    return row_update(connection, IDEM_SQLITE_PAYMENT_UPDATE, &idem_table_payments, &write->row,
                      write->row.version);
}

static enum idem_rows_step rows_write_refund(struct idem_rows *rows,
                                             struct idem_refund_write *write)
{
    struct idem_sqlite_connection *connection = connection_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        return row_insert(connection, IDEM_SQLITE_REFUND_INSERT, &idem_table_refunds, &write->row);
    }
    return row_update(connection, IDEM_SQLITE_REFUND_UPDATE, &idem_table_refunds, &write->row,
                      write->row.version);
}

static enum idem_rows_step rows_write_send(struct idem_rows *rows,
                                           int64_t intent_row,
                                           const struct idem_send_write *write)
{
    struct idem_sqlite_connection *connection = connection_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        sqlite3_stmt *statement = connection->statements[IDEM_SQLITE_SEND_INSERT];
        i64_bind(statement, 1, intent_row);
        (void)columns_bind(statement, 2, &idem_table_sends, &write->row, true);
        return guarded_run(connection, statement);
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    sqlite3_stmt *statement = connection->statements[IDEM_SQLITE_SEND_UPDATE];
    int index = columns_bind(statement, 1, &idem_table_sends, &write->row, false);
    i64_bind(statement, index, intent_row);
    i64_bind(statement, index + 1, write->row.no);
    return guarded_run(connection, statement);
}

static enum idem_rows_step rows_add_event(struct idem_rows *rows,
                                          int64_t intent_row,
                                          const struct idem_event *event)
{
    sqlite3_stmt *statement = connection_of(rows)->statements[IDEM_SQLITE_EVENT_INSERT];
    i64_bind(statement, 1, intent_row);
    (void)columns_bind(statement, 2, &idem_table_events, event, true);
    return statement_run(statement);
}

static enum idem_rows_step rows_add_case(struct idem_rows *rows,
                                         int64_t intent_row,
                                         const struct idem_case *opened)
{
    sqlite3_stmt *statement = connection_of(rows)->statements[IDEM_SQLITE_CASE_INSERT];
    i64_bind(statement, 1, intent_row);
    (void)columns_bind(statement, 2, &idem_table_cases, opened, true);
    return statement_run(statement);
}

static const struct idem_rows_ops rows_ops = {
    .begin = rows_begin,
    .commit = rows_commit,
    .rollback = rows_rollback,
    .find_intent = rows_find_intent,
    .find_payment = rows_find_payment,
    .find_refund = rows_find_refund,
    .find_sends = rows_find_sends,
    .find_events = rows_find_events,
    .find_due = rows_find_due,
    .find_left = rows_find_left,
    .write_intent = rows_write_intent,
    .write_payment = rows_write_payment,
    .write_refund = rows_write_refund,
    .write_send = rows_write_send,
    .add_event = rows_add_event,
    .add_case = rows_add_case,
};

enum idem_err idem_sqlite_connection_init(struct idem_sqlite_connection *connection,
                                          sqlite3 *handle,
                                          int64_t incarnation,
                                          struct idem_error *reterr)
{
    *connection = (struct idem_sqlite_connection){
        .rows = { .ops = &rows_ops },
        .handle = handle,
        .writes = sqlite3_db_readonly(handle, "main") == 0,
        .incarnation = incarnation,
    };
    int count = connection->writes ? IDEM_SQLITE_STATEMENT_COUNT : IDEM_SQLITE_INTENT_INSERT;
    enum idem_err err = IDEM_OK;
    for (int i = 0; i < count && err == IDEM_OK; i++) {
        err = statement_prepare(connection, (enum idem_sqlite_statement)i, reterr);
    }
    return err;
}

void idem_sqlite_connection_deinit(struct idem_sqlite_connection *connection)
{
    for (size_t i = 0; i < IDEM_SQLITE_STATEMENT_COUNT; i++) {
        (void)sqlite3_finalize(connection->statements[i]); /* Repeats the last step's error. */
        connection->statements[i] = NULL;
    }
    int rc = sqlite3_close(connection->handle); /* Accepts NULL. */
    IDEM_ASSERT(rc == SQLITE_OK);               /* Not OK only while statements are left. */
    connection->handle = NULL;
}
