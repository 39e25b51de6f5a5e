/*
 * One connection as the rows port: its transactions.
 *
 *   begin_batch   lock, clock, knowledge, facts: one round (ahead.c)
 *   find          from what was fetched; else a round of its own, behind the queued writes
 *   write         queued
 *   flush         a round: did every guard hold?
 *   commit        a round
 *
 * Until COMMIT was sent nothing of a transaction can be there, whatever happened to the connection:
 * the server undoes what it does not hear the end of. From then on only one answer proves anything:
 * COMMIT, without a WARNING (a wait for the standby that somebody cancelled is a WARNING). Anything
 * else is LOST: the connection is thrown away, and the next one finds out by running the same
 * commands again. That may wait for the first run's locks, or for its standby.
 *
 * A round that failed ends the transaction. What is asked of it afterwards is answered by what
 * ended it.
 */
#include <libpq-fe.h>
#include <string.h>

#include "base/crash.h"
#include "store/postgres/ahead.h"

static const struct idem_postgres_args no_args = { .count = 0 };

static const char begin_batch[] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
static const char begin_snapshot[] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

static enum idem_rows_step round_take(struct idem_postgres_connection *connection)
{
    struct idem_postgres_wire *wire = &connection->wire;
    enum idem_postgres_end end = idem_postgres_wire_round(wire);
    memset(connection->asked, 0, sizeof(connection->asked));
    if (end == IDEM_POSTGRES_END_GONE) {
        connection->is_open = false;
    }
    if (end == IDEM_POSTGRES_END_MISS || strncmp(wire->state, "40", 2) == 0) {
        connection->rows.moved = true;
    }
    return idem_postgres_step_of(end, wire->state, connection->alone);
}

enum idem_rows_step idem_postgres_round(struct idem_postgres_connection *connection)
{
    if (connection->failed == IDEM_ROWS_OK) {
        connection->failed = round_take(connection);
    }
    return connection->failed;
}

/*
 * Prepares the statement where it is first used, in the same round. What came behind an error was
 * not prepared, whatever was asked: only the server's own word counts.
 */
static void statement_prepare(struct idem_postgres_connection *connection,
                              enum idem_postgres_statement index,
                              const char *name)
{
    char memory[IDEM_POSTGRES_SQL_MAX];
    struct idem_buf sql;
    if (connection->prepared[index] || connection->asked[index]) {
        return;
    }
    idem_buf_init(&sql, memory, sizeof(memory) - 1);
    idem_postgres_statement_print(index, &sql);
    IDEM_ASSERT(!sql.full);
    memory[sql.len] = '\0';
    connection->asked[index] = true;
    idem_postgres_wire_prepare(&connection->wire, name, memory, &connection->prepared[index]);
}

void idem_postgres_queue(struct idem_postgres_connection *connection,
                         enum idem_postgres_statement index,
                         const struct idem_postgres_args *args,
                         struct idem_postgres_pending pending)
{
    char name[IDEM_POSTGRES_NAME_MAX];
    if (connection->wire.pending_count + 2 > IDEM_POSTGRES_PENDING_MAX) {
        (void)idem_postgres_round(connection); /* Kept in `failed`. */
    }
    if (connection->failed != IDEM_ROWS_OK) {
        return;
    }
    connection->wrote = connection->wrote || index >= IDEM_POSTGRES_INTENT_INSERT;
    idem_postgres_statement_name(index, name);
    statement_prepare(connection, index, name);
    idem_postgres_wire_queue(&connection->wire, name, args, pending);
}

enum idem_rows_step idem_postgres_ask(struct idem_postgres_connection *connection,
                                      enum idem_postgres_statement index,
                                      const struct idem_postgres_args *args,
                                      PGresult **ret_result)
{
    PGresult *result = NULL;
    idem_postgres_queue(connection, index, args,
                        (struct idem_postgres_pending){ .result = &result });
    enum idem_rows_step step = idem_postgres_round(connection);
    if (step != IDEM_ROWS_OK) {
        PQclear(result); /* A write before it may have missed: then it is there, or NULL. */
        return step;
    }
    IDEM_ASSERT(result != NULL);
    *ret_result = result;
    return IDEM_ROWS_OK;
}

static void transaction_reset(struct idem_postgres_connection *connection)
{
    IDEM_ASSERT(!connection->is_open);
    connection->failed = IDEM_ROWS_OK;
    connection->rows.moved = false;
    connection->alone = false;
    connection->wrote = false;
    idem_postgres_ahead_clear(&connection->ahead);
}

/* A reader's: one snapshot, of a server that is not a standby. */
static enum idem_rows_step snapshot_begin(struct idem_postgres_connection *connection)
{
    PGresult *result = NULL;
    transaction_reset(connection);
    enum idem_rows_step step = idem_postgres_session(connection);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    connection->is_open = true;
    idem_postgres_wire_say(&connection->wire, begin_snapshot, NULL);
    step = idem_postgres_ask(connection, IDEM_POSTGRES_NOW, &no_args, &result);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    connection->now_us = idem_postgres_number(result, 0, 0);
    connection->has_standbys = idem_postgres_number(result, 0, 2) != 0;
    bool standby = idem_postgres_number(result, 0, 1) != 0;
    PQclear(result);
    return standby ? IDEM_ROWS_WRONG_NODE : IDEM_ROWS_OK;
}

/*
 * A connection that lay idle may have ended meanwhile, with its server or on the way. Nothing was
 * asked of it yet: another one may be.
 */
static bool was_stale(const struct idem_postgres_connection *connection, bool was_connected)
{
    return was_connected && connection->wire.handle == NULL &&
           connection->failed == IDEM_ROWS_REFUSED;
}

static enum idem_rows_step rows_begin(struct idem_rows *rows)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    bool was_connected = connection->wire.handle != NULL;
    enum idem_rows_step step = snapshot_begin(connection);
    return was_stale(connection, was_connected) ? snapshot_begin(connection) : step;
}

static enum idem_rows_step batch_begin(struct idem_postgres_connection *connection,
                                       struct idem_list_node *first,
                                       size_t count)
{
    transaction_reset(connection);
    enum idem_rows_step step = idem_postgres_session(connection);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    connection->alone = count == 1;
    connection->is_open = true;
    connection->mono_us = idem_clock_mono_us(connection->clock); /* Before the server's time. */
    idem_postgres_wire_say(&connection->wire, begin_batch, NULL);
    idem_postgres_ahead_fetch(connection, first, count);
    idem_crash_point("batch-begun"); /* Its facts are here, and nothing is written. */
    return connection->failed;
}

static enum idem_rows_step rows_begin_batch(struct idem_rows *rows,
                                            struct idem_list_node *first,
                                            size_t count)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    bool was_connected = connection->wire.handle != NULL;
    enum idem_rows_step step = batch_begin(connection, first, count);
    return was_stale(connection, was_connected) ? batch_begin(connection, first, count) : step;
}

/*
 * What only looked tells what it saw, and what it saw may be there because somebody cancelled the
 * wait for the standby that its commit was in. So it waits for the standby itself.
 */
static enum idem_rows_step rows_flush(struct idem_rows *rows)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    if (connection->has_standbys && !connection->wrote && connection->failed == IDEM_ROWS_OK) {
        idem_postgres_wire_say(&connection->wire, IDEM_POSTGRES_PROOF, NULL);
    }
    return connection->wire.pending_count == 0 ? connection->failed
                                               : idem_postgres_round(connection);
}

static enum idem_rows_step rows_commit(struct idem_rows *rows)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_wire *wire = &connection->wire;
    PGresult *result = NULL;
    IDEM_ASSERT(connection->failed == IDEM_ROWS_OK);
    IDEM_ASSERT(wire->pending_count == 0);

    wire->warned = false;
    wire->point = "commit-sent";
    idem_postgres_wire_say(wire, "COMMIT", &result);
    enum idem_postgres_end end = idem_postgres_wire_round(wire);
    wire->point = NULL;
    bool clean =
        end == IDEM_POSTGRES_END_OK && !wire->warned && strcmp(PQcmdStatus(result), "COMMIT") == 0;
    PQclear(result);
    connection->is_open = false;
    if (clean) {
        return IDEM_ROWS_OK;
    }
    connection->lost = true;
    idem_postgres_wire_close(wire);
    return IDEM_ROWS_LOST;
}

/* Nothing of it is there: COMMIT was not sent. */
static enum idem_rows_step rows_rollback(struct idem_rows *rows)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_wire *wire = &connection->wire;
    idem_postgres_ahead_clear(&connection->ahead);
    if (connection->is_open && wire->handle != NULL) {
        if (wire->pending_count == IDEM_POSTGRES_PENDING_MAX) {
            (void)idem_postgres_wire_round(wire); /* It is undone either way. */
        }
        idem_postgres_wire_say(wire, "ROLLBACK", NULL);
        /* What was queued and never answered does not matter any more, but for its errors. */
        enum idem_postgres_end end = idem_postgres_wire_round(wire);
        memset(connection->asked, 0, sizeof(connection->asked));
        if (end == IDEM_POSTGRES_END_ERROR) {
            idem_postgres_wire_close(wire);
        }
    }
    connection->is_open = false;
    return IDEM_ROWS_OK;
}

/* As rows_flush() does for a batch. */
static enum idem_rows_step rows_prove(struct idem_rows *rows)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_wire *wire = &connection->wire;
    if (!connection->has_standbys) {
        return IDEM_ROWS_OK;
    }
    wire->warned = false;
    idem_postgres_wire_say(wire, IDEM_POSTGRES_PROOF, NULL);
    if (idem_postgres_wire_round(wire) == IDEM_POSTGRES_END_OK && !wire->warned) {
        return IDEM_ROWS_OK;
    }
    idem_postgres_wire_close(wire);
    return IDEM_ROWS_REFUSED;
}

static const struct idem_rows_ops rows_ops = {
    .begin = rows_begin,
    .prove = rows_prove,
    .flush = rows_flush,
    .commit = rows_commit,
    .rollback = rows_rollback,
    .find_intent = idem_postgres_find_intent,
    .find_payment = idem_postgres_find_payment,
    .find_refund = idem_postgres_find_refund,
    .find_sends = idem_postgres_find_sends,
    .find_events = idem_postgres_find_events,
    .find_cases = idem_postgres_find_cases,
    .find_due = idem_postgres_find_due,
    .find_left = idem_postgres_find_left,
    .find_reap = idem_postgres_find_reap,
    .find_entries = idem_postgres_find_entries,
    .find_credentials = idem_postgres_find_credentials,
    .find_places = idem_postgres_find_places,
    .find_summary = idem_postgres_find_summary,
    .find_waited = idem_postgres_find_waited,
    .find_case_kinds = idem_postgres_find_case_kinds,
    .find_case_list = idem_postgres_find_case_list,
    .find_event = idem_postgres_find_event,
    .find_listened = idem_postgres_find_listened,
    .find_webhook = idem_postgres_find_webhook,
    .count_webhooks = idem_postgres_count_webhooks,
    .find_delivery = idem_postgres_find_delivery,
    .find_webhooks = idem_postgres_find_webhooks,
    .find_posts = idem_postgres_find_posts,
    .find_effects = idem_postgres_find_effects,
    .find_created = idem_postgres_find_created,
    .find_stub = idem_postgres_find_stub,
    .find_payment_stubs = idem_postgres_find_payment_stubs,
    .find_credential = idem_postgres_find_credential,
    .find_meta = idem_postgres_find_meta,
    .begin_batch = rows_begin_batch,
    .write_intent = idem_postgres_write_intent,
    .write_payment = idem_postgres_write_payment,
    .write_refund = idem_postgres_write_refund,
    .write_send = idem_postgres_write_send,
    .add_event = idem_postgres_add_event,
    .add_case = idem_postgres_add_case,
    .decide_cases = idem_postgres_decide_cases,
    .forget_history = idem_postgres_forget_history,
    .write_stub = idem_postgres_write_stub,
    .apply_stubs = idem_postgres_apply_stubs,
    .write_credential = idem_postgres_write_credential,
    .write_inbox = idem_postgres_write_inbox,
    .add_message = idem_postgres_add_message,
    .write_webhook = idem_postgres_write_webhook,
    .write_delivery = idem_postgres_write_delivery,
    .drop_deliveries = idem_postgres_drop_deliveries,
    .sweep = idem_postgres_sweep,
    .write_meta = idem_postgres_write_meta,
};

void idem_postgres_connection_init(struct idem_postgres_connection *connection,
                                   const struct idem_postgres_settings *settings,
                                   struct idem_clock *clock)
{
    connection->rows.ops = &rows_ops;
    connection->settings = settings;
    connection->clock = clock;
    connection->wire.wait_us = settings->wait_us;
}

void idem_postgres_connection_deinit(struct idem_postgres_connection *connection)
{
    idem_postgres_ahead_clear(&connection->ahead);
    idem_postgres_wire_close(&connection->wire);
}
