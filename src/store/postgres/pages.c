/*
 * Pages of what several tables hold together: cases with their operations, deliveries with message
 * and webhook, effects with their payments; and webhooks.
 *
 * Bounded as everything that a reader asks for (look.c). An answer has the tables' columns one
 * behind the other; each part has its own handle, but for what is only shown.
 */
#include <libpq-fe.h>

#include "store/postgres/rows_internal.h"

/* How many handles of intents one statement goes over: a page of rare ones is not one long wait. */
#define SPAN 65536

static enum idem_rows_step ask(struct idem_rows *rows,
                               enum idem_postgres_statement index,
                               const struct idem_postgres_args *args,
                               PGresult **ret_result)
{
    return idem_postgres_ask(idem_postgres_connection_of(rows), index, args, ret_result);
}

/* Newest first: where a page begins. */
static int64_t before_row(const struct idem_read *read)
{
    return read->after_row == 0 ? INT64_MAX : read->after_row;
}

/* Parts that stand side by side in one row. */
static bool parts_fit(const PGresult *result,
                      const struct idem_postgres_part *parts,
                      size_t count,
                      const struct idem_buf *buf)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += idem_postgres_part_size(result, parts[i]);
    }
    return size <= buf->max - buf->len;
}

/* False in `*ret_fits`: it is for the next page. */
static enum idem_rows_step case_add(
    struct idem_rows *rows, const PGresult *result, int row, struct idem_read *read, bool *ret_fits)
{
    const struct idem_postgres_part parts[] = {
        { .row = row, .first = 1, .table = &idem_table_cases },
        { .row = row,
          .first = 1 + (int)idem_table_cases.column_count,
          .table = &idem_table_entries },
    };
    struct idem_entry *entry = &read->entries[read->entry_count];
    *ret_fits = read->entry_count < IDEM_READ_ENTRIES_MAX &&
                parts_fit(result, parts, IDEM_ARRAY_COUNT(parts), rows->kept);
    if (!*ret_fits) {
        return IDEM_ROWS_OK;
    }
    *entry = (struct idem_entry){ .row = idem_postgres_number(result, row, 0) };
    read->entry_count += 1;
    return idem_postgres_part_read(result, parts[0], &entry->opened, rows->kept) &&
                   idem_postgres_part_read(result, parts[1], entry, rows->kept)
               ? IDEM_ROWS_OK
               : IDEM_ROWS_DAMAGED;
}

enum idem_rows_step idem_postgres_find_case_list(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    bool fits = true;
    idem_postgres_arg_i64(&args, before_row(read));
    idem_postgres_arg_i64(&args, (int64_t)read->case_kind);
    enum idem_rows_step step =
        ask(rows, read->open_only ? IDEM_POSTGRES_CASE_LIST_OPEN : IDEM_POSTGRES_CASE_LIST, &args,
            &result);
    read->entry_count = 0;
    for (int row = 0; row < PQntuples(result) && fits && step == IDEM_ROWS_OK; row++) {
        step = case_add(rows, result, row, read, &fits);
    }
    read->more = !fits;
    PQclear(result);
    return step;
}

enum idem_rows_step idem_postgres_find_webhooks(struct idem_rows *rows, struct idem_read *read)
{
    struct idem_postgres_args args = { .count = 0 };
    enum idem_postgres_statement index = IDEM_POSTGRES_WEBHOOKS_PAGE;
    PGresult *result = NULL;
    bool ours = true;
    int row = 0;
    idem_postgres_arg_i64(&args, read->after_row);
    idem_postgres_arg_i64(&args, IDEM_READ_WEBHOOKS_MAX + 1);
    if (read->principal.len > 0) {
        index = IDEM_POSTGRES_WEBHOOKS_PAGE_OF;
        idem_postgres_arg_text(&args, read->principal);
    }
    enum idem_rows_step step = ask(rows, index, &args, &result);
    read->webhook_count = 0;
    while (row < PQntuples(result) && ours && read->webhook_count < IDEM_READ_WEBHOOKS_MAX &&
           idem_postgres_row_fits(result, row, &idem_table_webhooks, rows->kept)) {
        struct idem_webhook *webhook = &read->webhooks[read->webhook_count];
        webhook->row = idem_postgres_number(result, row, 0);
        ours = idem_postgres_row_read(result, row, &idem_table_webhooks, webhook, rows->kept);
        read->webhook_count += 1;
        row += 1;
    }
    read->more = row < PQntuples(result);
    PQclear(result);
    return ours ? step : IDEM_ROWS_DAMAGED;
}

static enum idem_rows_step post_add(
    struct idem_rows *rows, const PGresult *result, int row, struct idem_read *read, bool *ret_fits)
{
    const int message = 1 + (int)idem_table_deliveries.column_count;
    const int webhook = message + 1 + (int)idem_table_messages.column_count;
    const struct idem_postgres_part parts[] = {
        { .row = row, .first = 1, .table = &idem_table_deliveries },
        { .row = row, .first = message + 1, .table = &idem_table_messages },
        { .row = row, .first = webhook + 1, .table = &idem_table_webhooks },
    };
    struct idem_post *post = &read->posts[read->post_count];
    *ret_fits = read->post_count < IDEM_READ_POSTS_MAX &&
                parts_fit(result, parts, IDEM_ARRAY_COUNT(parts), rows->kept);
    if (!*ret_fits) {
        return IDEM_ROWS_OK;
    }
    post->delivery.row = idem_postgres_number(result, row, 0);
    post->message.row = idem_postgres_number(result, row, message);
    post->webhook.row = idem_postgres_number(result, row, webhook);
    read->post_count += 1;
    return idem_postgres_part_read(result, parts[0], &post->delivery, rows->kept) &&
                   idem_postgres_part_read(result, parts[1], &post->message, rows->kept) &&
                   idem_postgres_part_read(result, parts[2], &post->webhook, rows->kept)
               ? IDEM_ROWS_OK
               : IDEM_ROWS_DAMAGED;
}

/* Of this instance's share, by the database's clock; what another one left lying is anybody's. */
static enum idem_rows_step due_posts_ask(struct idem_rows *rows,
                                         const struct idem_read *read,
                                         PGresult **ret_result)
{
    const struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_args args = { .count = 0 };
    char memory[IDEM_READ_SKIP_MAX * 20];
    struct idem_buf skip;
    IDEM_ASSERT(read->skip_count <= IDEM_READ_SKIP_MAX);
    idem_buf_init(&skip, memory, sizeof(memory));
    for (size_t i = 0; i < read->skip_count; i++) {
        idem_buf_add(&skip, i == 0 ? IDEM_STR("") : IDEM_STR(","));
        idem_buf_add_i64(&skip, read->skip[i]);
    }
    IDEM_ASSERT(!skip.full);
    idem_postgres_arg_i64(&args, connection->settings->silence_us);
    idem_postgres_arg_i64(&args, connection->instance.id);
    idem_postgres_arg_i64(&args,
                          connection->settings->clock_is_ours ? read->now_us : connection->now_us);
    idem_postgres_arg_text(&args, idem_buf_str(&skip));
    return ask(rows, IDEM_POSTGRES_POSTS, &args, ret_result);
}

/* What is rare has an index of its own; the rest is found by webhook, or by messages. */
static enum idem_postgres_statement page_of(const struct idem_read *read)
{
    if (read->delivery_state == IDEM_DELIVERY_PENDING) {
        return IDEM_POSTGRES_DELIVERIES_PENDING;
    }
    if (read->delivery_state == IDEM_DELIVERY_DEAD) {
        return IDEM_POSTGRES_DELIVERIES_DEAD;
    }
    if (!idem_uid_is_zero(read->id)) {
        return IDEM_POSTGRES_DELIVERIES_TO;
    }
    return read->principal.len > 0 ? IDEM_POSTGRES_DELIVERIES_OF : IDEM_POSTGRES_DELIVERIES;
}

static enum idem_rows_step deliveries_ask(struct idem_rows *rows,
                                          const struct idem_read *read,
                                          PGresult **ret_result)
{
    struct idem_postgres_args args = { .count = 0 };
    enum idem_postgres_statement index = page_of(read);
    idem_postgres_arg_i64(&args, before_row(read));
    idem_postgres_arg_i64(&args, (int64_t)read->delivery_state);
    if (index != IDEM_POSTGRES_DELIVERIES && index != IDEM_POSTGRES_DELIVERIES_OF) {
        idem_postgres_arg_bytes(&args, &read->id, sizeof(read->id));
    }
    if (index != IDEM_POSTGRES_DELIVERIES) {
        idem_postgres_arg_text(&args, read->principal);
    }
    return ask(rows, index, &args, ret_result);
}

enum idem_rows_step idem_postgres_find_posts(struct idem_rows *rows, struct idem_read *read)
{
    PGresult *result = NULL;
    bool fits = true;
    enum idem_rows_step step = read->kind == IDEM_READ_POSTS ? due_posts_ask(rows, read, &result)
                                                             : deliveries_ask(rows, read, &result);
    read->post_count = 0;
    for (int row = 0; row < PQntuples(result) && fits && step == IDEM_ROWS_OK; row++) {
        step = post_add(rows, result, row, read, &fits);
    }
    read->more = !fits;
    PQclear(result);
    return step;
}

/* Adds what the statement found. False in `*ret_fits`: the rest is for the next page. */
static bool effects_add(const PGresult *result,
                        struct idem_buf *kept,
                        struct idem_read *read,
                        bool *ret_fits)
{
    bool ours = true;
    int row = 0;
    while (row < PQntuples(result) && ours && read->effect_count < IDEM_READ_EFFECTS_MAX &&
           idem_postgres_row_fits(result, row, &idem_table_effects, kept)) {
        struct idem_effect_line *line = &read->effects[read->effect_count];
        line->row = idem_postgres_number(result, row, 0);
        ours = idem_postgres_row_read(result, row, &idem_table_effects, line, kept);
        read->effect_count += 1;
        row += 1;
    }
    *ret_fits = row == PQntuples(result);
    return ours;
}

/* Of handles behind `after` up to `last`. */
static enum idem_rows_step effects_ask(
    struct idem_rows *rows, int64_t after, int64_t last, struct idem_read *read, bool *ret_fits)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    idem_postgres_arg_i64(&args, after);
    idem_postgres_arg_i64(&args, last);
    idem_postgres_arg_text(&args, read->entry);
    idem_postgres_arg_i64(&args, read->from_us);
    idem_postgres_arg_i64(&args, read->to_us);
    idem_postgres_arg_i64(&args, (int64_t)(IDEM_READ_EFFECTS_MAX + 1 - read->effect_count));
    enum idem_rows_step step = ask(rows, IDEM_POSTGRES_EFFECTS, &args, &result);
    if (step == IDEM_ROWS_OK && !effects_add(result, rows->kept, read, ret_fits)) {
        step = IDEM_ROWS_DAMAGED;
    }
    PQclear(result);
    return step;
}

/* The last handle that can be asked for. */
static enum idem_rows_step last_find(struct idem_rows *rows,
                                     const struct idem_read *read,
                                     int64_t *ret_last)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    if (read->until_row != 0) {
        *ret_last = read->until_row - 1;
        return IDEM_ROWS_OK;
    }
    enum idem_rows_step step = ask(rows, IDEM_POSTGRES_LAST, &args, &result);
    if (step == IDEM_ROWS_OK) {
        *ret_last = idem_postgres_number(result, 0, 0);
        PQclear(result);
    }
    return step;
}

enum idem_rows_step idem_postgres_find_effects(struct idem_rows *rows, struct idem_read *read)
{
    int64_t last = 0;
    bool fits = true;
    enum idem_rows_step step = last_find(rows, read, &last);
    read->effect_count = 0;
    int64_t at = read->after_row;
    while (at < last && fits && step == IDEM_ROWS_OK) {
        int64_t end = last - at > SPAN ? at + SPAN : last;
        step = effects_ask(rows, at, end, read, &fits);
        at = end;
    }
    read->more = !fits;
    return step;
}

enum idem_rows_step idem_postgres_find_created(struct idem_rows *rows,
                                               int64_t from_row,
                                               int64_t *ret_row,
                                               int64_t *ret_created_us)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    idem_postgres_arg_i64(&args, from_row);
    enum idem_rows_step step = ask(rows, IDEM_POSTGRES_CREATED, &args, &result);
    if (step == IDEM_ROWS_OK) {
        bool there = PQntuples(result) > 0;
        *ret_row = there ? idem_postgres_number(result, 0, 0) : 0;
        *ret_created_us = there ? idem_postgres_number(result, 0, 1) : 0;
        PQclear(result);
    }
    return step;
}
