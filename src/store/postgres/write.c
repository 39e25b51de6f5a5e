/*
 * Guarded writes, queued. Each changes exactly one row, or its guard did not hold; that is known at
 * the next round, and at the flush before COMMIT at the latest. What hangs below an intent is
 * guarded by the intent's own write in the same transaction.
 *
 * A row's handle is taken from the sequence before it is inserted, so that nothing waits for it.
 */
#include <libpq-fe.h>
#include <stdlib.h>

#include "store/postgres/rows_internal.h"

static const struct idem_postgres_pending unguarded = { .guarded = false };
static const struct idem_postgres_pending guarded = { .guarded = true };

static enum idem_rows_step write_queue(struct idem_rows *rows,
                                       enum idem_postgres_statement index,
                                       const struct idem_postgres_args *args,
                                       struct idem_postgres_pending pending)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    idem_postgres_queue(connection, index, args, pending);
    return connection->failed;
}

/* A handle that nobody else has. What was fetched ahead is enough for almost every batch. */
static enum idem_rows_step handle_take(struct idem_postgres_connection *connection,
                                       enum idem_postgres_handle_kind kind,
                                       int64_t *ret_row)
{
    struct idem_postgres_handles *handles = &connection->handles[kind];
    if (handles->count == 0) {
        struct idem_postgres_args args = { .count = 0 };
        PGresult *result = NULL;
        idem_postgres_arg_i64(&args, 1);
        enum idem_rows_step step = idem_postgres_ask(
            connection, (enum idem_postgres_statement)(IDEM_POSTGRES_HANDLES_INTENTS + (int)kind),
            &args, &result);
        if (step != IDEM_ROWS_OK) {
            return step;
        }
        handles->rows[0] = idem_postgres_number(result, 0, 0);
        handles->first = 0;
        handles->count = 1;
        PQclear(result);
    }
    *ret_row = handles->rows[handles->first];
    handles->first += 1;
    handles->count -= 1;
    return IDEM_ROWS_OK;
}

static enum idem_rows_step row_insert(struct idem_rows *rows,
                                      enum idem_postgres_handle_kind kind,
                                      enum idem_postgres_statement insert,
                                      const struct idem_table *table,
                                      void *row)
{
    struct idem_postgres_args args = { .count = 0 };
    int64_t handle = 0;
    enum idem_rows_step step = handle_take(idem_postgres_connection_of(rows), kind, &handle);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    idem_postgres_arg_i64(&args, handle);
    idem_postgres_arg_row(&args, table, row, true);
    *(int64_t *)row = handle;
    return write_queue(rows, insert, &args, guarded);
}

/* `version` is the new one; the row must still have the one before it. */
static enum idem_rows_step row_update(struct idem_rows *rows,
                                      enum idem_postgres_statement update,
                                      const struct idem_table *table,
                                      const void *row,
                                      uint32_t version)
{
    struct idem_postgres_args args = { .count = 0 };
    int64_t handle = *(const int64_t *)row;
    IDEM_ASSERT(handle > 0);
    IDEM_ASSERT(version > 1);
    idem_postgres_arg_row(&args, table, row, false);
    idem_postgres_arg_i64(&args, handle);
    idem_postgres_arg_i64(&args, (int64_t)version - 1);
    return write_queue(rows, update, &args, guarded);
}

/* Everything of one kind that hangs below an intent. */
static enum idem_rows_step below_delete(struct idem_rows *rows,
                                        enum idem_postgres_statement index,
                                        int64_t intent_row)
{
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_i64(&args, intent_row);
    return write_queue(rows, index, &args, unguarded);
}

/* Sends, and events but those of cause `kept`. */
static enum idem_rows_step history_delete(struct idem_rows *rows,
                                          int64_t intent_row,
                                          enum idem_cause kept)
{
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_i64(&args, intent_row);
    idem_postgres_arg_i64(&args, (int64_t)kept);
    enum idem_rows_step step = below_delete(rows, IDEM_POSTGRES_SENDS_DELETE, intent_row);
    return step == IDEM_ROWS_OK ? write_queue(rows, IDEM_POSTGRES_EVENTS_DELETE, &args, unguarded)
                                : step;
}

static enum idem_rows_step intent_delete(struct idem_rows *rows, const struct idem_intent *intent)
{
    struct idem_postgres_args args = { .count = 0 };
    IDEM_ASSERT(intent->row > 0);
    idem_postgres_arg_i64(&args, intent->row);
    idem_postgres_arg_i64(&args, (int64_t)intent->version - 1);
    enum idem_rows_step step = write_queue(rows, IDEM_POSTGRES_INTENT_DELETE, &args, guarded);
    if (step == IDEM_ROWS_OK) {
        step = history_delete(rows, intent->row, IDEM_CAUSE_NONE);
    }
    return step == IDEM_ROWS_OK ? below_delete(rows, IDEM_POSTGRES_CASES_DELETE, intent->row)
                                : step;
}

enum idem_rows_step idem_postgres_write_intent(struct idem_rows *rows,
                                               struct idem_intent_write *write)
{
    if (write->write == IDEM_WRITE_INSERT) {
        return row_insert(rows, IDEM_POSTGRES_HANDLE_INTENT, IDEM_POSTGRES_INTENT_INSERT,
                          &idem_table_intents, &write->row);
    }
    if (write->write == IDEM_WRITE_DELETE) {
        return intent_delete(rows, &write->row);
    }
    return row_update(rows, IDEM_POSTGRES_INTENT_UPDATE, &idem_table_intents, &write->row,
                      write->row.version);
}

enum idem_rows_step idem_postgres_write_payment(struct idem_rows *rows,
                                                struct idem_payment_write *write)
{
    if (write->write == IDEM_WRITE_INSERT) {
        return row_insert(rows, IDEM_POSTGRES_HANDLE_PAYMENT, IDEM_POSTGRES_PAYMENT_INSERT,
                          &idem_table_payments, &write->row);
    }
    return row_update(rows, IDEM_POSTGRES_PAYMENT_UPDATE, &idem_table_payments, &write->row,
                      write->row.version);
}

enum idem_rows_step idem_postgres_write_refund(struct idem_rows *rows,
                                               struct idem_refund_write *write)
{
    if (write->write == IDEM_WRITE_INSERT) {
        return row_insert(rows, IDEM_POSTGRES_HANDLE_REFUND, IDEM_POSTGRES_REFUND_INSERT,
                          &idem_table_refunds, &write->row);
    }
    return row_update(rows, IDEM_POSTGRES_REFUND_UPDATE, &idem_table_refunds, &write->row,
                      write->row.version);
}

enum idem_rows_step idem_postgres_write_send(struct idem_rows *rows,
                                             int64_t intent_row,
                                             const struct idem_send_write *write)
{
    struct idem_postgres_args args = { .count = 0 };
    if (write->write == IDEM_WRITE_INSERT) {
        idem_postgres_arg_i64(&args, intent_row);
        idem_postgres_arg_row(&args, &idem_table_sends, &write->row, true);
        return write_queue(rows, IDEM_POSTGRES_SEND_INSERT, &args, guarded);
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    idem_postgres_arg_row(&args, &idem_table_sends, &write->row, false);
    idem_postgres_arg_i64(&args, intent_row);
    idem_postgres_arg_i64(&args, write->row.no);
    return write_queue(rows, IDEM_POSTGRES_SEND_UPDATE, &args, guarded);
}

enum idem_rows_step idem_postgres_add_event(struct idem_rows *rows,
                                            int64_t intent_row,
                                            const struct idem_event *event)
{
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_i64(&args, intent_row);
    idem_postgres_arg_row(&args, &idem_table_events, event, true);
    return write_queue(rows, IDEM_POSTGRES_EVENT_INSERT, &args, unguarded);
}

enum idem_rows_step idem_postgres_add_case(struct idem_rows *rows,
                                           int64_t intent_row,
                                           const struct idem_case *opened)
{
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_i64(&args, intent_row);
    idem_postgres_arg_row(&args, &idem_table_cases, opened, true);
    return write_queue(rows, IDEM_POSTGRES_CASE_INSERT, &args, unguarded);
}

enum idem_rows_step idem_postgres_decide_cases(struct idem_rows *rows,
                                               int64_t intent_row,
                                               const struct idem_case *decided)
{
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_row(&args, &idem_table_cases, decided, false);
    idem_postgres_arg_i64(&args, intent_row);
    return write_queue(rows, IDEM_POSTGRES_CASES_DECIDE, &args, unguarded);
}

enum idem_rows_step idem_postgres_forget_history(struct idem_rows *rows, int64_t intent_row)
{
    return history_delete(rows, intent_row, IDEM_CAUSE_OPERATOR);
}

enum idem_rows_step idem_postgres_write_stub(struct idem_rows *rows, struct idem_stub_write *write)
{
    struct idem_postgres_args args = { .count = 0 };
    enum idem_postgres_statement index = IDEM_POSTGRES_STUB_DELETE;
    if (write->write == IDEM_WRITE_INSERT) {
        return row_insert(rows, IDEM_POSTGRES_HANDLE_STUB, IDEM_POSTGRES_STUB_INSERT,
                          &idem_table_stubs, &write->row);
    }
    if (write->write == IDEM_WRITE_UPDATE) {
        index = IDEM_POSTGRES_STUB_UPDATE;
        idem_postgres_arg_row(&args, &idem_table_stubs, &write->row, false);
    }
    idem_postgres_arg_i64(&args, write->row.row);
    idem_postgres_arg_bytes(&args, &write->row.scope, sizeof(write->row.scope));
    return write_queue(rows, index, &args, guarded);
}

enum idem_rows_step idem_postgres_apply_stubs(struct idem_rows *rows,
                                              struct idem_str payment_effect_id)
{
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_text(&args, payment_effect_id);
    return write_queue(rows, IDEM_POSTGRES_STUBS_APPLY, &args, unguarded);
}

enum idem_rows_step idem_postgres_write_credential(struct idem_rows *rows,
                                                   struct idem_credential_write *write)
{
    struct idem_postgres_args args = { .count = 0 };
    if (write->write == IDEM_WRITE_INSERT) {
        return row_insert(rows, IDEM_POSTGRES_HANDLE_CREDENTIAL, IDEM_POSTGRES_CREDENTIAL_INSERT,
                          &idem_table_credentials, &write->row);
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    idem_postgres_arg_row(&args, &idem_table_credentials, &write->row, false);
    idem_postgres_arg_i64(&args, write->row.row);
    return write_queue(rows, IDEM_POSTGRES_CREDENTIAL_UPDATE, &args, guarded);
}

enum idem_rows_step idem_postgres_write_inbox(struct idem_rows *rows,
                                              const struct idem_inbox_write *write)
{
    struct idem_postgres_args args = { .count = 0 };
    bool inserts = write->write == IDEM_WRITE_INSERT;
    IDEM_ASSERT(inserts || write->write == IDEM_WRITE_UPDATE);
    idem_postgres_arg_text(&args, write->entry);
    idem_postgres_arg_text(&args, write->event_id);
    idem_postgres_arg_i64(&args, write->at_us);
    idem_postgres_arg_bool(&args, write->known);
    return write_queue(rows, inserts ? IDEM_POSTGRES_INBOX_INSERT : IDEM_POSTGRES_INBOX_UPDATE,
                       &args, guarded);
}

/* How many deliveries come with it is the webhooks' affair: none is no miss. */
enum idem_rows_step idem_postgres_add_message(struct idem_rows *rows,
                                              int64_t webhook_row,
                                              const struct idem_message *message)
{
    struct idem_postgres_args args = { .count = 0 };
    enum idem_postgres_statement index = IDEM_POSTGRES_MESSAGE_ADD;
    idem_postgres_arg_row(&args, &idem_table_messages, message, true);
    if (webhook_row != 0) {
        index = IDEM_POSTGRES_MESSAGE_ADD_TO;
        idem_postgres_arg_i64(&args, webhook_row);
    }
    return write_queue(rows, index, &args, unguarded);
}

enum idem_rows_step idem_postgres_write_webhook(struct idem_rows *rows,
                                                struct idem_webhook_write *write)
{
    if (write->write == IDEM_WRITE_INSERT) {
        return row_insert(rows, IDEM_POSTGRES_HANDLE_WEBHOOK, IDEM_POSTGRES_WEBHOOK_INSERT,
                          &idem_table_webhooks, &write->row);
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    return row_update(rows, IDEM_POSTGRES_WEBHOOK_UPDATE, &idem_table_webhooks, &write->row,
                      write->row.version);
}

/* Of those behind it: all wait as long, or the next one waits no longer. */
static enum idem_rows_step behind_write(struct idem_rows *rows,
                                        const struct idem_delivery *delivery)
{
    struct idem_postgres_args args = { .count = 0 };
    bool is_pending = delivery->state == IDEM_DELIVERY_PENDING;
    bool holds = is_pending && delivery->attempts <= IDEM_POST_ORDERED_MAX;
    bool was_put_off = holds && delivery->attempts > 0 && idem_uid_is_zero(delivery->token);
    if (idem_uid_is_zero(delivery->payment_id) || (holds && !was_put_off)) {
        return IDEM_ROWS_OK;
    }
    idem_postgres_arg_i64(&args, delivery->webhook_row);
    idem_postgres_arg_bytes(&args, &delivery->payment_id, sizeof(delivery->payment_id));
    idem_postgres_arg_i64(&args, delivery->message_row);
    if (was_put_off) {
        idem_postgres_arg_i64(&args, delivery->due_us);
    }
    return write_queue(
        rows, was_put_off ? IDEM_POSTGRES_DELIVERIES_TAKE_ALONG : IDEM_POSTGRES_DELIVERY_NEXT,
        &args, unguarded);
}

enum idem_rows_step idem_postgres_write_delivery(struct idem_rows *rows,
                                                 struct idem_delivery_write *write)
{
    struct idem_postgres_args args = { .count = 0 };
    const struct idem_delivery *delivery = &write->row;
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    IDEM_ASSERT(delivery->version > 1);
    idem_postgres_arg_row(&args, &idem_table_deliveries, delivery, false);
    idem_postgres_arg_i64(&args, delivery->webhook_row);
    idem_postgres_arg_i64(&args, delivery->message_row);
    idem_postgres_arg_i64(&args, (int64_t)delivery->version - 1);
    enum idem_rows_step step = write_queue(rows, IDEM_POSTGRES_DELIVERY_UPDATE, &args, guarded);
    return step == IDEM_ROWS_OK ? behind_write(rows, delivery) : step;
}

/* As many as a batch can wait for. The rest is not posted any more, and swept in parts. */
enum idem_rows_step idem_postgres_drop_deliveries(struct idem_rows *rows,
                                                  int64_t webhook_row,
                                                  int64_t now_us)
{
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_i64(&args, webhook_row);
    idem_postgres_arg_i64(&args, now_us);
    return write_queue(rows, IDEM_POSTGRES_DELIVERIES_DROP, &args, unguarded);
}

static int64_t changed_count(PGresult *result)
{
    return (int64_t)strtoll(PQcmdTuples(result), NULL, 10); /* Empty: none. */
}

/* Whether there is more is only known of what came back: a round of its own, now and then. */
enum idem_rows_step idem_postgres_sweep(struct idem_rows *rows, int64_t before_us, bool *ret_more)
{
    static const enum idem_postgres_statement sweeps[] = {
        IDEM_POSTGRES_SWEEP_INBOX,
        IDEM_POSTGRES_SWEEP_MESSAGES,
        IDEM_POSTGRES_SWEEP_DROPPED,
    };
    static const int64_t enough[] = { IDEM_ROWS_SWEEP_MAX, IDEM_ROWS_SWEEP_MAX, 1 };
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    PGresult *results[IDEM_ARRAY_COUNT(sweeps)] = { NULL };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sweeps); i++) {
        struct idem_postgres_args args = { .count = 0 };
        if (sweeps[i] != IDEM_POSTGRES_SWEEP_DROPPED) {
            idem_postgres_arg_i64(&args, before_us);
        }
        idem_postgres_queue(connection, sweeps[i], &args,
                            (struct idem_postgres_pending){ .result = &results[i] });
    }
    enum idem_rows_step step = idem_postgres_round(connection);
    *ret_more = false;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sweeps); i++) {
        *ret_more = *ret_more || (step == IDEM_ROWS_OK && changed_count(results[i]) >= enough[i]);
        PQclear(results[i]);
    }
    return step;
}

enum idem_rows_step idem_postgres_write_meta(struct idem_rows *rows,
                                             const char *name,
                                             struct idem_str value)
{
    struct idem_postgres_args args = { .count = 0 };
    idem_postgres_arg_text(&args, idem_str_from(name));
    idem_postgres_arg_text(&args, value);
    return write_queue(rows, IDEM_POSTGRES_META_WRITE, &args, unguarded);
}
