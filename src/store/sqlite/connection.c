/*
 * One SQLite connection behind the rows port: its transactions, and its statements from the opening
 * to the closing.
 *
 * A COMMIT that was not done is LOST: its frames may be in the log or not. Anything before it
 * leaves nothing, as long as the rollback worked, which asks SQLite itself whether the transaction
 * is over.
 */
#include "store/sqlite/rows_internal.h"

/* This opening is still the newest: nobody else has opened the file since. */
static enum idem_rows_step incarnation_check(struct idem_sqlite_connection *connection)
{
    sqlite3_stmt *statement = connection->statements[IDEM_SQLITE_INCARNATION];
    int rc = sqlite3_step(statement);
    bool ours = rc == SQLITE_ROW && sqlite3_column_int64(statement, 0) == connection->incarnation;
    enum idem_rows_step step = idem_sqlite_walk_end(statement, rc, true);
    return step == IDEM_ROWS_OK && !ours ? IDEM_ROWS_WRONG_NODE : step;
}

static enum idem_rows_step rows_commit(struct idem_rows *rows)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    if (idem_sqlite_run(connection->statements[IDEM_SQLITE_COMMIT]) != IDEM_ROWS_OK) {
        return IDEM_ROWS_LOST;
    }
    IDEM_ASSERT(sqlite3_get_autocommit(connection->handle) != 0);
    return IDEM_ROWS_OK;
}

static enum idem_rows_step rows_rollback(struct idem_rows *rows)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    if (sqlite3_get_autocommit(connection->handle) == 0) {
        /* If this fails, the next line finds out. */
        (void)idem_sqlite_run(connection->statements[IDEM_SQLITE_ROLLBACK]);
    }
    return sqlite3_get_autocommit(connection->handle) != 0 ? IDEM_ROWS_OK : IDEM_ROWS_LOST;
}

/* A transaction whose rollback failed, for want of memory say, is ended before the next begins. */
static enum idem_rows_step rows_begin(struct idem_rows *rows)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    enum idem_rows_step step = rows_rollback(rows);
    if (step == IDEM_ROWS_OK) {
        step = idem_sqlite_run(connection->statements[IDEM_SQLITE_BEGIN]);
    }
    if (step != IDEM_ROWS_OK || !connection->writes) {
        return step;
    }
    return incarnation_check(connection);
}

static const struct idem_rows_ops rows_ops = {
    .begin = rows_begin,
    .commit = rows_commit,
    .rollback = rows_rollback,
    .find_intent = idem_sqlite_find_intent,
    .find_payment = idem_sqlite_find_payment,
    .find_refund = idem_sqlite_find_refund,
    .find_sends = idem_sqlite_find_sends,
    .find_events = idem_sqlite_find_events,
    .find_cases = idem_sqlite_find_cases,
    .find_due = idem_sqlite_find_due,
    .find_left = idem_sqlite_find_left,
    .find_reap = idem_sqlite_find_reap,
    .find_entries = idem_sqlite_find_entries,
    .find_credentials = idem_sqlite_find_credentials,
    .find_places = idem_sqlite_find_places,
    .find_summary = idem_sqlite_find_summary,
    .find_case_kinds = idem_sqlite_find_case_kinds,
    .find_stub = idem_sqlite_find_stub,
    .find_payment_stubs = idem_sqlite_find_payment_stubs,
    .find_credential = idem_sqlite_find_credential,
    .find_event = idem_sqlite_find_event,
    .find_listened = idem_sqlite_find_listened,
    .find_webhook = idem_sqlite_find_webhook,
    .count_webhooks = idem_sqlite_count_webhooks,
    .find_delivery = idem_sqlite_find_delivery,
    .find_webhooks = idem_sqlite_find_webhooks,
    .find_posts = idem_sqlite_find_posts,
    .find_effects = idem_sqlite_find_effects,
    .find_case_list = idem_sqlite_find_case_list,
    .find_created = idem_sqlite_find_created,
    .find_meta = idem_sqlite_find_meta,
    .write_intent = idem_sqlite_write_intent,
    .write_payment = idem_sqlite_write_payment,
    .write_refund = idem_sqlite_write_refund,
    .write_send = idem_sqlite_write_send,
    .add_event = idem_sqlite_add_event,
    .add_case = idem_sqlite_add_case,
    .decide_cases = idem_sqlite_decide_cases,
    .forget_history = idem_sqlite_forget_history,
    .write_stub = idem_sqlite_write_stub,
    .apply_stubs = idem_sqlite_apply_stubs,
    .write_credential = idem_sqlite_write_credential,
    .write_inbox = idem_sqlite_write_inbox,
    .add_message = idem_sqlite_add_message,
    .write_webhook = idem_sqlite_write_webhook,
    .write_delivery = idem_sqlite_write_delivery,
    .drop_deliveries = idem_sqlite_drop_deliveries,
    .sweep = idem_sqlite_sweep,
    .write_meta = idem_sqlite_write_meta,
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
        err = idem_sqlite_prepare(connection, (enum idem_sqlite_statement)i, reterr);
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
