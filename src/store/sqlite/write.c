/*
 * Guarded writes. Each changes exactly one row, or the guard did not hold: MISS. What hangs below
 * an intent is guarded by the intent's own write in the same transaction.
 */
#include "store/sqlite/rows_internal.h"

/* Sends, events but those of cause `kept`, and cases. */
static enum idem_rows_step history_delete(struct idem_sqlite_connection *connection,
                                          int64_t intent_row,
                                          enum idem_cause kept)
{
    sqlite3_stmt *sends = connection->statements[IDEM_SQLITE_SENDS_DELETE];
    sqlite3_stmt *events = connection->statements[IDEM_SQLITE_EVENTS_DELETE];

    idem_sqlite_bind_i64(sends, 1, intent_row);
    enum idem_rows_step step = idem_sqlite_run(sends);
    if (step == IDEM_ROWS_OK) {
        idem_sqlite_bind_i64(events, 1, intent_row);
        idem_sqlite_bind_i64(events, 2, (int64_t)kept);
        step = idem_sqlite_run(events);
    }
    return step;
}

static enum idem_rows_step intent_take(struct idem_sqlite_connection *connection,
                                       const struct idem_intent *intent)
{
    IDEM_ASSERT(intent->row > 0);
    sqlite3_stmt *statement = connection->statements[IDEM_SQLITE_INTENT_DELETE];
    idem_sqlite_bind_i64(statement, 1, intent->row);
    idem_sqlite_bind_i64(statement, 2, (int64_t)intent->version - 1);
    return idem_sqlite_guarded_run(connection, statement);
}

/*
 * A tombstone is much smaller than its record was. An UPDATE would leave the rest of the page empty
 * for ever, since new rows come at the end; taking it out and putting it back under the same handle
 * lets SQLite join pages that have become empty.
 */
static enum idem_rows_step intent_shrink(struct idem_sqlite_connection *connection,
                                         const struct idem_intent *intent)
{
    sqlite3_stmt *statement = connection->statements[IDEM_SQLITE_INTENT_PUT_BACK];
    enum idem_rows_step step = intent_take(connection, intent);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    idem_sqlite_bind_i64(statement, 1, intent->row);
    (void)idem_sqlite_bind_row(statement, 2, &idem_table_intents, intent, true);
    return idem_sqlite_guarded_run(connection, statement);
}

static enum idem_rows_step intent_delete(struct idem_sqlite_connection *connection,
                                         const struct idem_intent *intent)
{
    sqlite3_stmt *statement = NULL;
    enum idem_rows_step step = intent_take(connection, intent);
    if (step == IDEM_ROWS_OK) {
        step = history_delete(connection, intent->row, IDEM_CAUSE_NONE);
    }
    if (step == IDEM_ROWS_OK) {
        statement = connection->statements[IDEM_SQLITE_CASES_DELETE];
        idem_sqlite_bind_i64(statement, 1, intent->row);
        step = idem_sqlite_run(statement);
    }
    return step;
}

enum idem_rows_step idem_sqlite_write_intent(struct idem_rows *rows,
                                             struct idem_intent_write *write)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        return idem_sqlite_row_insert(connection, IDEM_SQLITE_INTENT_INSERT, &idem_table_intents,
                                      &write->row);
    }
    if (write->write == IDEM_WRITE_DELETE) {
        return intent_delete(connection, &write->row);
    }
    if (idem_intent_is_tombstone(&write->row)) {
        return intent_shrink(connection, &write->row);
    }
    return idem_sqlite_row_update(connection, IDEM_SQLITE_INTENT_UPDATE, &idem_table_intents,
                                  &write->row, write->row.version);
}

enum idem_rows_step idem_sqlite_write_payment(struct idem_rows *rows,
                                              struct idem_payment_write *write)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        return idem_sqlite_row_insert(connection, IDEM_SQLITE_PAYMENT_INSERT, &idem_table_payments,
                                      &write->row);
    }
    return idem_sqlite_row_update(connection, IDEM_SQLITE_PAYMENT_UPDATE, &idem_table_payments,
                                  &write->row, write->row.version);
}

enum idem_rows_step idem_sqlite_write_refund(struct idem_rows *rows,
                                             struct idem_refund_write *write)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        return idem_sqlite_row_insert(connection, IDEM_SQLITE_REFUND_INSERT, &idem_table_refunds,
                                      &write->row);
    }
    return idem_sqlite_row_update(connection, IDEM_SQLITE_REFUND_UPDATE, &idem_table_refunds,
                                  &write->row, write->row.version);
}

enum idem_rows_step idem_sqlite_write_send(struct idem_rows *rows,
                                           int64_t intent_row,
                                           const struct idem_send_write *write)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        sqlite3_stmt *statement = connection->statements[IDEM_SQLITE_SEND_INSERT];
        idem_sqlite_bind_i64(statement, 1, intent_row);
        (void)idem_sqlite_bind_row(statement, 2, &idem_table_sends, &write->row, true);
        return idem_sqlite_guarded_run(connection, statement);
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    sqlite3_stmt *statement = connection->statements[IDEM_SQLITE_SEND_UPDATE];
    int index = idem_sqlite_bind_row(statement, 1, &idem_table_sends, &write->row, false);
    idem_sqlite_bind_i64(statement, index, intent_row);
    idem_sqlite_bind_i64(statement, index + 1, write->row.no);
    return idem_sqlite_guarded_run(connection, statement);
}

enum idem_rows_step idem_sqlite_add_event(struct idem_rows *rows,
                                          int64_t intent_row,
                                          const struct idem_event *event)
{
    sqlite3_stmt *statement = idem_sqlite_connection_of(rows)->statements[IDEM_SQLITE_EVENT_INSERT];
    idem_sqlite_bind_i64(statement, 1, intent_row);
    (void)idem_sqlite_bind_row(statement, 2, &idem_table_events, event, true);
    return idem_sqlite_run(statement);
}

enum idem_rows_step idem_sqlite_add_case(struct idem_rows *rows,
                                         int64_t intent_row,
                                         const struct idem_case *opened)
{
    sqlite3_stmt *statement = idem_sqlite_connection_of(rows)->statements[IDEM_SQLITE_CASE_INSERT];
    idem_sqlite_bind_i64(statement, 1, intent_row);
    (void)idem_sqlite_bind_row(statement, 2, &idem_table_cases, opened, true);
    return idem_sqlite_run(statement);
}

enum idem_rows_step idem_sqlite_decide_cases(struct idem_rows *rows,
                                             int64_t intent_row,
                                             const struct idem_case *decided)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_CASES_DECIDE);
    int index = idem_sqlite_bind_row(statement, 1, &idem_table_cases, decided, false);
    idem_sqlite_bind_i64(statement, index, intent_row);
    return idem_sqlite_run(statement);
}

enum idem_rows_step idem_sqlite_forget_history(struct idem_rows *rows, int64_t intent_row)
{
    return history_delete(idem_sqlite_connection_of(rows), intent_row, IDEM_CAUSE_OPERATOR);
}

enum idem_rows_step idem_sqlite_write_stub(struct idem_rows *rows, struct idem_stub_write *write)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        return idem_sqlite_row_insert(connection, IDEM_SQLITE_STUB_INSERT, &idem_table_stubs,
                                      &write->row);
    }
    int index = 1;
    sqlite3_stmt *statement = connection->statements[IDEM_SQLITE_STUB_DELETE];
    if (write->write == IDEM_WRITE_UPDATE) {
        statement = connection->statements[IDEM_SQLITE_STUB_UPDATE];
        index = idem_sqlite_bind_row(statement, 1, &idem_table_stubs, &write->row, false);
    }
    idem_sqlite_bind_i64(statement, index, write->row.row);
    idem_sqlite_bind_bytes(statement, index + 1, &write->row.scope, 16);
    return idem_sqlite_guarded_run(connection, statement);
}

enum idem_rows_step idem_sqlite_apply_stubs(struct idem_rows *rows,
                                            struct idem_str payment_effect_id)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_STUBS_APPLY);
    idem_sqlite_bind_text(statement, 1, payment_effect_id);
    return idem_sqlite_run(statement);
}

enum idem_rows_step idem_sqlite_write_credential(struct idem_rows *rows,
                                                 struct idem_credential_write *write)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        return idem_sqlite_row_insert(connection, IDEM_SQLITE_CREDENTIAL_INSERT,
                                      &idem_table_credentials, &write->row);
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    sqlite3_stmt *statement = connection->statements[IDEM_SQLITE_CREDENTIAL_UPDATE];
    int index = idem_sqlite_bind_row(statement, 1, &idem_table_credentials, &write->row, false);
    idem_sqlite_bind_i64(statement, index, write->row.row);
    return idem_sqlite_guarded_run(connection, statement);
}

enum idem_rows_step idem_sqlite_write_meta(struct idem_rows *rows,
                                           const char *name,
                                           struct idem_str value)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_META_WRITE);
    idem_sqlite_bind_text(statement, 1, idem_str_from(name));
    idem_sqlite_bind_text(statement, 2, value);
    return idem_sqlite_run(statement);
}
