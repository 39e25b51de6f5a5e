/*
 * Provider events that came in, and what merchants are told: webhooks, messages and deliveries.
 *
 * A message and its deliveries are one step inside the transaction of the change that it tells.
 * What is still to be delivered lies in partial indexes; what is over costs whoever looks for it
 * nothing, and neither does what waits behind an earlier message (schema.h, IS_NEXT).
 */
#include "store/sqlite/rows_internal.h"

/* The statement has a row. */
static enum idem_rows_step row_ask(sqlite3_stmt *statement, bool *ret_there)
{
    int rc = sqlite3_step(statement);
    *ret_there = rc == SQLITE_ROW;
    return idem_sqlite_walk_end(statement, rc, true);
}

enum idem_rows_step idem_sqlite_find_event(struct idem_rows *rows,
                                           struct idem_str entry,
                                           struct idem_str event_id,
                                           bool *ret_seen)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_EVENT_SEEN);
    idem_sqlite_bind_text(statement, 1, entry);
    idem_sqlite_bind_text(statement, 2, event_id);
    return row_ask(statement, ret_seen);
}

enum idem_rows_step idem_sqlite_find_listened(struct idem_rows *rows,
                                              struct idem_str principal,
                                              bool *ret_listened)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_LISTENED);
    idem_sqlite_bind_text(statement, 1, principal);
    return row_ask(statement, ret_listened);
}

enum idem_rows_step idem_sqlite_find_webhook(struct idem_rows *rows,
                                             enum idem_find find,
                                             const struct idem_rows_key *key,
                                             struct idem_webhook *ret_webhook)
{
    sqlite3_stmt *statement = NULL;
    if (find == IDEM_FIND_BY_ROW) {
        statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_WEBHOOK_BY_ROW);
        idem_sqlite_bind_i64(statement, 1, key->row);
    } else if (find == IDEM_FIND_BY_ANY_ID) {
        statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_WEBHOOK_BY_ANY_ID);
        idem_sqlite_bind_bytes(statement, 1, &key->id, 16);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_BY_ID);
        statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_WEBHOOK_BY_ID);
        idem_sqlite_bind_bytes(statement, 1, &key->id, 16);
        idem_sqlite_bind_text(statement, 2, key->principal);
    }
    return idem_sqlite_find_row(rows, statement, &idem_table_webhooks, ret_webhook);
}

enum idem_rows_step idem_sqlite_count_webhooks(struct idem_rows *rows,
                                               struct idem_str principal,
                                               size_t *ret_count)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_WEBHOOKS_COUNT);
    int64_t count = 0;
    idem_sqlite_bind_text(statement, 1, principal);
    enum idem_rows_step step = idem_sqlite_find_i64(statement, &count);
    *ret_count = (size_t)count;
    return step;
}

enum idem_rows_step idem_sqlite_find_delivery(struct idem_rows *rows,
                                              struct idem_uid message_id,
                                              struct idem_uid webhook_id,
                                              struct idem_delivery *ret_delivery)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_DELIVERY);
    idem_sqlite_bind_bytes(statement, 1, &message_id, 16);
    idem_sqlite_bind_bytes(statement, 2, &webhook_id, 16);
    return idem_sqlite_find_row(rows, statement, &idem_table_deliveries, ret_delivery);
}

enum idem_rows_step idem_sqlite_find_webhooks(struct idem_rows *rows, struct idem_read *read)
{
    bool all = read->principal.len == 0;
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, all ? IDEM_SQLITE_WEBHOOKS_PAGE
                                                                 : IDEM_SQLITE_WEBHOOKS_PAGE_OF);
    int index = 1;
    bool ours = true;

    read->webhook_count = 0;
    if (!all) {
        idem_sqlite_bind_text(statement, index, read->principal);
        index += 1;
    }
    idem_sqlite_bind_i64(statement, index, read->after_row);
    idem_sqlite_bind_i64(statement, index + 1, IDEM_READ_WEBHOOKS_MAX + 1);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && read->webhook_count < IDEM_READ_WEBHOOKS_MAX &&
           idem_sqlite_row_fits(statement, 1, &idem_table_webhooks, rows->kept)) {
        struct idem_webhook *webhook = &read->webhooks[read->webhook_count];
        webhook->row = sqlite3_column_int64(statement, 0);
        ours = idem_sqlite_read_row(statement, 1, &idem_table_webhooks, webhook, rows->kept);
        read->webhook_count += 1;
        rc = sqlite3_step(statement);
    }
    read->more = rc == SQLITE_ROW;
    return idem_sqlite_walk_end(statement, rc, ours);
}

/* Where a post's parts begin in its row; its handle comes first. */
static int message_index(void)
{
    return 1 + (int)idem_table_deliveries.column_count;
}

static int webhook_index(void)
{
    return message_index() + (int)idem_table_messages.column_count;
}

static bool post_fits(sqlite3_stmt *statement, const struct idem_buf *kept)
{
    size_t size = idem_sqlite_row_size(statement, 1, &idem_table_deliveries) +
                  idem_sqlite_row_size(statement, message_index(), &idem_table_messages) +
                  idem_sqlite_row_size(statement, webhook_index(), &idem_table_webhooks);
    return size <= kept->max - kept->len;
}

static bool post_read(sqlite3_stmt *statement, struct idem_post *post, struct idem_buf *kept)
{
    post->delivery.row = sqlite3_column_int64(statement, 0);
    bool ours = idem_sqlite_read_row(statement, 1, &idem_table_deliveries, &post->delivery, kept) &&
                idem_sqlite_read_row(statement, message_index(), &idem_table_messages,
                                     &post->message, kept) &&
                idem_sqlite_read_row(statement, webhook_index(), &idem_table_webhooks,
                                     &post->webhook, kept);
    post->message.row = post->delivery.message_row;
    post->webhook.row = post->delivery.webhook_row;
    return ours;
}

static enum idem_rows_step posts_walk(struct idem_rows *rows,
                                      sqlite3_stmt *statement,
                                      struct idem_read *read)
{
    bool ours = true;
    read->post_count = 0;
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && read->post_count < IDEM_READ_POSTS_MAX &&
           post_fits(statement, rows->kept)) {
        ours = post_read(statement, &read->posts[read->post_count], rows->kept);
        read->post_count += 1;
        rc = sqlite3_step(statement);
    }
    read->more = rc == SQLITE_ROW;
    return idem_sqlite_walk_end(statement, rc, ours);
}

static sqlite3_stmt *due_statement(struct idem_rows *rows, const struct idem_read *read)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_POSTS_DUE);
    IDEM_ASSERT(read->skip_count <= IDEM_READ_SKIP_MAX);
    idem_sqlite_bind_i64(statement, 1, read->now_us);
    idem_sqlite_bind_i64(statement, 2, IDEM_READ_POSTS_MAX + 1);
    for (size_t i = 0; i < IDEM_READ_SKIP_MAX; i++) {
        int64_t row = i < read->skip_count ? read->skip[i] : 0; /* 0: no handle is. */
        idem_sqlite_bind_i64(statement, 3 + (int)i, row);
    }
    return statement;
}

/* Of everybody. */
static sqlite3_stmt *page_statement(struct idem_rows *rows, const struct idem_read *read)
{
    bool all = read->delivery_state == IDEM_DELIVERY_NONE;
    sqlite3_stmt *statement =
        idem_sqlite_statement_of(rows, all ? IDEM_SQLITE_POSTS_ALL : IDEM_SQLITE_POSTS_STATE);
    int index = 1;
    idem_sqlite_bind_i64(statement, index, read->after_row == 0 ? INT64_MAX : read->after_row);
    if (!all) {
        index += 1;
        idem_sqlite_bind_i64(statement, index, (int64_t)read->delivery_state);
    }
    idem_sqlite_bind_i64(statement, index + 1, IDEM_READ_POSTS_MAX + 1);
    return statement;
}

/* Of one webhook, or those of the principal. */
static sqlite3_stmt *page_of_statement(struct idem_rows *rows,
                                       const struct idem_read *read,
                                       int64_t webhook_row)
{
    bool all = read->delivery_state == IDEM_DELIVERY_NONE;
    sqlite3_stmt *statement = idem_sqlite_statement_of(
        rows, webhook_row != 0 ? IDEM_SQLITE_POSTS_WEBHOOK : IDEM_SQLITE_POSTS_PRINCIPAL);
    idem_sqlite_bind_i64(statement, 1, read->after_row == 0 ? INT64_MAX : read->after_row);
    idem_sqlite_bind_i64(statement, 2, IDEM_READ_POSTS_MAX + 1);
    if (webhook_row != 0) {
        idem_sqlite_bind_i64(statement, 3, webhook_row);
    } else {
        idem_sqlite_bind_text(statement, 3, read->principal);
    }
    idem_sqlite_bind_i64(statement, 4, all ? IDEM_DELIVERY_PENDING : (int)read->delivery_state);
    idem_sqlite_bind_i64(statement, 5, all ? IDEM_DELIVERY_DEAD : (int)read->delivery_state);
    return statement;
}

enum idem_rows_step idem_sqlite_find_posts(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_rows_key key = { .id = read->id, .principal = read->principal };
    enum idem_find find = key.principal.len == 0 ? IDEM_FIND_BY_ANY_ID : IDEM_FIND_BY_ID;
    struct idem_webhook webhook = { .row = 0 };

    if (read->kind == IDEM_READ_POSTS) {
        return posts_walk(rows, due_statement(rows, read), read);
    }
    if (idem_uid_is_zero(key.id)) {
        bool everybody = key.principal.len == 0;
        return posts_walk(
            rows, everybody ? page_statement(rows, read) : page_of_statement(rows, read, 0), read);
    }
    enum idem_rows_step step = idem_sqlite_find_webhook(rows, find, &key, &webhook);
    if (step != IDEM_ROWS_OK || webhook.row == 0) {
        return step;
    }
    return posts_walk(rows, page_of_statement(rows, read, webhook.row), read);
}

enum idem_rows_step idem_sqlite_write_inbox(struct idem_rows *rows,
                                            const struct idem_inbox_write *write)
{
    bool insert = write->write == IDEM_WRITE_INSERT;
    IDEM_ASSERT(insert || write->write == IDEM_WRITE_UPDATE);
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, insert ? IDEM_SQLITE_INBOX_INSERT
                                                                    : IDEM_SQLITE_INBOX_UPDATE);
    idem_sqlite_bind_text(statement, 1, write->entry);
    idem_sqlite_bind_text(statement, 2, write->event_id);
    idem_sqlite_bind_i64(statement, 3, write->at_us);
    idem_sqlite_bind_i64(statement, 4, write->known ? 1 : 0);
    return idem_sqlite_guarded_run(idem_sqlite_connection_of(rows), statement);
}

static sqlite3_stmt *deliveries_statement(struct idem_rows *rows,
                                          int64_t webhook_row,
                                          const struct idem_message *message)
{
    bool alone = webhook_row != 0;
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, alone ? IDEM_SQLITE_DELIVERY_INSERT
                                                                   : IDEM_SQLITE_DELIVERIES_INSERT);
    int64_t message_row = sqlite3_last_insert_rowid(idem_sqlite_connection_of(rows)->handle);
    idem_sqlite_bind_i64(statement, 1, message_row);
    idem_sqlite_bind_bytes(statement, 2, &message->payment_id, 16);
    idem_sqlite_bind_i64(statement, 3, message->at_us);
    if (alone) {
        idem_sqlite_bind_i64(statement, 4, webhook_row);
    } else {
        idem_sqlite_bind_text(statement, 4, message->principal);
        idem_sqlite_bind_i64(statement, 5, (int64_t)message->type);
    }
    return statement;
}

enum idem_rows_step idem_sqlite_add_message(struct idem_rows *rows,
                                            int64_t webhook_row,
                                            const struct idem_message *message)
{
    sqlite3 *handle = idem_sqlite_connection_of(rows)->handle;
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_MESSAGE_INSERT);
    (void)idem_sqlite_bind_row(statement, 1, &idem_table_messages, message, true);
    enum idem_rows_step step = idem_sqlite_run(statement);
    if (step != IDEM_ROWS_OK || sqlite3_changes(handle) == 0) {
        return step; /* It is there already. */
    }
    int64_t message_row = sqlite3_last_insert_rowid(handle);
    step = idem_sqlite_run(deliveries_statement(rows, webhook_row, message));
    if (step != IDEM_ROWS_OK || sqlite3_changes(handle) > 0) {
        return step;
    }
    statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_MESSAGE_DELETE);
    idem_sqlite_bind_i64(statement, 1, message_row);
    return idem_sqlite_run(statement);
}

enum idem_rows_step idem_sqlite_write_webhook(struct idem_rows *rows,
                                              struct idem_webhook_write *write)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    if (write->write == IDEM_WRITE_INSERT) {
        return idem_sqlite_row_insert(connection, IDEM_SQLITE_WEBHOOK_INSERT, &idem_table_webhooks,
                                      &write->row);
    }
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    return idem_sqlite_row_update(connection, IDEM_SQLITE_WEBHOOK_UPDATE, &idem_table_webhooks,
                                  &write->row, write->row.version);
}

/* What it went before may go now, or waits for it again. */
enum idem_rows_step idem_sqlite_write_delivery(struct idem_rows *rows,
                                               struct idem_delivery_write *write)
{
    IDEM_ASSERT(write->write == IDEM_WRITE_UPDATE);
    enum idem_rows_step step =
        idem_sqlite_row_update(idem_sqlite_connection_of(rows), IDEM_SQLITE_DELIVERY_UPDATE,
                               &idem_table_deliveries, &write->row, write->row.version);
    if (step != IDEM_ROWS_OK || idem_uid_is_zero(write->row.payment_id)) {
        return step;
    }
    sqlite3_stmt *hold = idem_sqlite_statement_of(rows, IDEM_SQLITE_DELIVERIES_HOLD);
    idem_sqlite_bind_i64(hold, 1, write->row.webhook_row);
    idem_sqlite_bind_bytes(hold, 2, &write->row.payment_id, 16);
    return idem_sqlite_run(hold);
}

enum idem_rows_step idem_sqlite_drop_deliveries(struct idem_rows *rows,
                                                int64_t webhook_row,
                                                int64_t now_us)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_DELIVERIES_DROP);
    idem_sqlite_bind_i64(statement, 1, webhook_row);
    idem_sqlite_bind_i64(statement, 2, now_us);
    idem_sqlite_bind_i64(statement, 3, IDEM_ROWS_SWEEP_MAX);
    return idem_sqlite_run(statement);
}

/* Sets `*ret_more` if that was as many rows as may go at a time. */
static enum idem_rows_step some_remove(struct idem_rows *rows,
                                       enum idem_sqlite_statement which,
                                       int64_t before_us,
                                       bool *ret_more)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, which);
    idem_sqlite_bind_i64(statement, 1, before_us);
    idem_sqlite_bind_i64(statement, 2, IDEM_ROWS_SWEEP_MAX);
    enum idem_rows_step step = idem_sqlite_run(statement);
    bool is_full = sqlite3_changes(idem_sqlite_connection_of(rows)->handle) >= IDEM_ROWS_SWEEP_MAX;
    *ret_more = *ret_more || (step == IDEM_ROWS_OK && is_full);
    return step;
}

/* Of one webhook: where there was something, the next one may have something too. */
static enum idem_rows_step dropped_sweep(struct idem_rows *rows, bool *ret_more)
{
    sqlite3_stmt *next = idem_sqlite_statement_of(rows, IDEM_SQLITE_DISABLED_NEXT);
    int rc = sqlite3_step(next);
    bool is_there = rc == SQLITE_ROW;
    int64_t webhook_row = is_there ? sqlite3_column_int64(next, 0) : 0;
    int64_t disabled_us = is_there ? sqlite3_column_int64(next, 1) : 0;
    enum idem_rows_step step = idem_sqlite_walk_end(next, rc, true);
    if (step != IDEM_ROWS_OK || !is_there) {
        return step;
    }
    *ret_more = true;
    return idem_sqlite_drop_deliveries(rows, webhook_row, disabled_us);
}

/* Deliveries first: which messages may go is said by the deliveries that are still to be made. */
enum idem_rows_step idem_sqlite_sweep(struct idem_rows *rows, int64_t before_us, bool *ret_more)
{
    bool deliveries_more = false; /* The messages say it. */
    *ret_more = false;
    enum idem_rows_step step = some_remove(rows, IDEM_SQLITE_INBOX_SWEEP, before_us, ret_more);
    if (step == IDEM_ROWS_OK) {
        step = some_remove(rows, IDEM_SQLITE_DELIVERIES_SWEEP, before_us, &deliveries_more);
    }
    if (step == IDEM_ROWS_OK) {
        step = some_remove(rows, IDEM_SQLITE_MESSAGES_SWEEP, before_us, ret_more);
    }
    return step == IDEM_ROWS_OK ? dropped_sweep(rows, ret_more) : step;
}
