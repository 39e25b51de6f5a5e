/*
 * What was fetched ahead (ahead.c), handed out: each fact once, to the command that it was fetched
 * for. Whoever finds nothing here asks the server.
 */
#include "store/postgres/ahead.h"

#include <libpq-fe.h>
#include <string.h>

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
    if (find == IDEM_FIND_BY_ID && idem_postgres_names_payment(command) &&
        idem_uid_equal(accept->payment_id, key->id) && hand_out(ahead, ahead->payment_used)) {
        found.row = named_find(ahead, key, &found) ? found.row : -1;
        *ret_found = found;
        return true;
    }
    if (find == IDEM_FIND_HOLDER && idem_postgres_makes_payment(command) &&
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

/* Every principal that was asked about has a row. */
bool idem_postgres_ahead_listened(const struct idem_postgres_ahead *ahead,
                                  struct idem_str principal,
                                  bool *ret_listened)
{
    for (int row = 0; row < PQntuples(ahead->listened); row++) { /* Accepts NULL. */
        if (idem_str_equal(idem_postgres_text(ahead->listened, row, 0), principal)) {
            *ret_listened = idem_postgres_number(ahead->listened, row, 1) != 0;
            return true;
        }
    }
    return false;
}

bool idem_postgres_ahead_event(struct idem_postgres_ahead *ahead,
                               struct idem_str entry,
                               struct idem_str event_id,
                               bool *ret_seen)
{
    if (ahead->current >= ahead->count) {
        return false;
    }
    const struct idem_command *command = &ahead->items[ahead->current]->command;
    bool asked = idem_postgres_names_event(command) &&
                 idem_str_equal(command->evidence.entry, entry) &&
                 idem_str_equal(command->evidence.event_id, event_id);
    if (!asked || !hand_out(ahead, ahead->event_used)) {
        return false;
    }
    *ret_seen = false;
    for (int row = 0; row < PQntuples(ahead->events); row++) {
        bool same = idem_str_equal(idem_postgres_text(ahead->events, row, 0), entry) &&
                    idem_str_equal(idem_postgres_text(ahead->events, row, 1), event_id);
        *ret_seen = *ret_seen || same;
    }
    return true;
}

bool idem_postgres_ahead_webhook(const struct idem_postgres_ahead *ahead,
                                 struct idem_uid id,
                                 struct idem_postgres_found *ret_found)
{
    int column = column_of(&idem_table_webhooks, "id");
    return row_find(ahead->webhooks, column, &id, sizeof(id), ret_found);
}

/* The letter's place among those that were asked for; false: it was not, or was handed out. */
static bool letter_take(struct idem_postgres_ahead *ahead,
                        struct idem_uid message_id,
                        struct idem_uid webhook_id)
{
    bool *used = NULL;
    for (size_t i = 0; i < ahead->letter_count; i++) {
        const struct idem_delivery_change *letter = ahead->letters[i];
        if (idem_uid_equal(letter->message_id, message_id) &&
            idem_uid_equal(letter->webhook_id, webhook_id)) {
            used = used == NULL ? &ahead->letter_used[i] : used; /* The first of its like. */
        }
    }
    if (used == NULL || *used) {
        return false;
    }
    *used = true;
    return true;
}

bool idem_postgres_ahead_delivery(struct idem_postgres_ahead *ahead,
                                  struct idem_uid message_id,
                                  struct idem_uid webhook_id,
                                  struct idem_postgres_found *ret_found)
{
    const PGresult *found = ahead->deliveries;
    if (!letter_take(ahead, message_id, webhook_id)) {
        return false;
    }
    *ret_found = (struct idem_postgres_found){ .result = found, .row = -1 };
    for (int row = 0; row < PQntuples(found) && ret_found->row < 0; row++) {
        bool same = memcmp(PQgetvalue(found, row, 1), &message_id, sizeof(message_id)) == 0 &&
                    memcmp(PQgetvalue(found, row, 2), &webhook_id, sizeof(webhook_id)) == 0;
        ret_found->row = same ? row : -1;
    }
    return true;
}
