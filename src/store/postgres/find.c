/*
 * Rows that a decision rests on: those that were fetched ahead, or a question of their own.
 *
 * An intent whose lease another living instance has is shown as if it were of this incarnation: the
 * lease then counts until it ends. What an instance left that stopped or fell silent keeps its own,
 * and its lease is over at once. statements.c keeps the shown value from being written.
 */
#include <libpq-fe.h>
#include <string.h>

#include "store/postgres/ahead.h"

/* The first row of `result`, if there is one. Takes `result`. */
static enum idem_rows_step row_take(struct idem_rows *rows,
                                    PGresult *result,
                                    const struct idem_table *table,
                                    void *ret_row)
{
    bool ours = true;
    if (PQntuples(result) > 0) {
        *(int64_t *)ret_row = idem_postgres_number(result, 0, 0);
        ours = idem_postgres_row_read(result, 0, table, ret_row, rows->kept);
    }
    PQclear(result);
    return ours ? IDEM_ROWS_OK : IDEM_ROWS_DAMAGED;
}

static enum idem_rows_step row_ask(struct idem_rows *rows,
                                   enum idem_postgres_statement index,
                                   const struct idem_postgres_args *args,
                                   const struct idem_table *table,
                                   void *ret_row)
{
    PGresult *result = NULL;
    enum idem_rows_step step =
        idem_postgres_ask(idem_postgres_connection_of(rows), index, args, &result);
    return step == IDEM_ROWS_OK ? row_take(rows, result, table, ret_row) : step;
}

static enum idem_rows_step found_read(struct idem_rows *rows,
                                      struct idem_postgres_found found,
                                      const struct idem_table *table,
                                      void *ret_row)
{
    if (found.row < 0) {
        return IDEM_ROWS_OK;
    }
    *(int64_t *)ret_row = idem_postgres_number(found.result, found.row, 0);
    return idem_postgres_row_read(found.result, found.row, table, ret_row, rows->kept)
               ? IDEM_ROWS_OK
               : IDEM_ROWS_DAMAGED;
}

static void incarnation_show(const struct idem_postgres_connection *connection,
                             struct idem_intent *intent)
{
    for (size_t i = 0; i < connection->alive_count; i++) {
        if (connection->alive[i] == intent->incarnation) {
            intent->incarnation = connection->incarnation;
            return;
        }
    }
}

static enum idem_rows_step intent_ask(struct idem_rows *rows,
                                      enum idem_find find,
                                      const struct idem_rows_key *key,
                                      struct idem_intent *ret_intent)
{
    struct idem_postgres_args args = { .count = 0 };
    enum idem_postgres_statement index = IDEM_POSTGRES_INTENT_BY_ID;
    if (find == IDEM_FIND_BY_ROW) {
        index = IDEM_POSTGRES_INTENT_BY_ROW;
        idem_postgres_arg_i64(&args, key->row);
        idem_postgres_arg_bytes(&args, &key->scope, sizeof(key->scope));
    } else if (find == IDEM_FIND_BY_SCOPE) {
        index = IDEM_POSTGRES_INTENT_BY_SCOPE;
        idem_postgres_arg_bytes(&args, &key->scope, sizeof(key->scope));
    } else if (find == IDEM_FIND_BY_ANY_ID || find == IDEM_FIND_BY_CASE) {
        index = find == IDEM_FIND_BY_CASE ? IDEM_POSTGRES_INTENT_BY_CASE
                                          : IDEM_POSTGRES_INTENT_BY_ANY_ID;
        idem_postgres_arg_bytes(&args, &key->id, sizeof(key->id));
    } else {
        IDEM_ASSERT(find == IDEM_FIND_BY_ID);
        idem_postgres_arg_bytes(&args, &key->id, sizeof(key->id));
        idem_postgres_arg_text(&args, key->principal);
    }
    return row_ask(rows, index, &args, &idem_table_intents, ret_intent);
}

enum idem_rows_step idem_postgres_find_intent(struct idem_rows *rows,
                                              enum idem_find find,
                                              const struct idem_rows_key *key,
                                              struct idem_intent *ret_intent)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_found found = { .row = -1 };
    bool by_scope = find == IDEM_FIND_BY_ROW || find == IDEM_FIND_BY_SCOPE;
    enum idem_rows_step step = IDEM_ROWS_OK;

    if (by_scope && idem_postgres_ahead_intent(&connection->ahead, &key->scope, &found)) {
        bool other = find == IDEM_FIND_BY_ROW && found.row >= 0 &&
                     idem_postgres_number(found.result, found.row, 0) != key->row;
        found.row = other ? -1 : found.row;
        step = found_read(rows, found, &idem_table_intents, ret_intent);
    } else {
        step = intent_ask(rows, find, key, ret_intent);
    }
    if (step == IDEM_ROWS_OK && ret_intent->row != 0) {
        incarnation_show(connection, ret_intent);
    }
    return step;
}

enum idem_rows_step idem_postgres_find_payment(struct idem_rows *rows,
                                               enum idem_find find,
                                               const struct idem_rows_key *key,
                                               struct idem_payment *ret_payment)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_args args = { .count = 0 };
    struct idem_postgres_found found;
    enum idem_postgres_statement index = IDEM_POSTGRES_PAYMENT_BY_ROW;

    if (idem_postgres_ahead_payment(&connection->ahead, find, key, &found)) {
        return found_read(rows, found, &idem_table_payments, ret_payment);
    }
    if (find == IDEM_FIND_BY_ROW) {
        idem_postgres_arg_i64(&args, key->row);
    } else if (find == IDEM_FIND_BY_ANY_ID) {
        index = IDEM_POSTGRES_PAYMENT_BY_ANY_ID;
        idem_postgres_arg_bytes(&args, &key->id, sizeof(key->id));
    } else if (find == IDEM_FIND_BY_ID) {
        index = IDEM_POSTGRES_PAYMENT_BY_ID;
        idem_postgres_arg_bytes(&args, &key->id, sizeof(key->id));
        idem_postgres_arg_text(&args, key->principal);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_HOLDER || find == IDEM_FIND_NEWEST_PAST);
        index =
            find == IDEM_FIND_HOLDER ? IDEM_POSTGRES_PAYMENT_HOLDER : IDEM_POSTGRES_PAYMENT_PAST;
        idem_postgres_arg_text(&args, key->principal);
        idem_postgres_arg_text(&args, key->number);
    }
    return row_ask(rows, index, &args, &idem_table_payments, ret_payment);
}

enum idem_rows_step idem_postgres_find_refund(struct idem_rows *rows,
                                              enum idem_find find,
                                              const struct idem_rows_key *key,
                                              struct idem_refund *ret_refund)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_args args = { .count = 0 };
    struct idem_postgres_found found;
    enum idem_postgres_statement index = IDEM_POSTGRES_REFUND_BY_ROW;

    if (find == IDEM_FIND_BY_ROW) {
        if (idem_postgres_ahead_refund(&connection->ahead, key->row, &found)) {
            return found_read(rows, found, &idem_table_refunds, ret_refund);
        }
        idem_postgres_arg_i64(&args, key->row);
    } else if (find == IDEM_FIND_BY_ID) {
        index = IDEM_POSTGRES_REFUND_BY_ID;
        idem_postgres_arg_bytes(&args, &key->id, sizeof(key->id));
        idem_postgres_arg_text(&args, key->principal);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_HOLDER);
        index = IDEM_POSTGRES_REFUND_HOLDER;
        idem_postgres_arg_i64(&args, key->row);
        idem_postgres_arg_text(&args, key->number);
    }
    return row_ask(rows, index, &args, &idem_table_refunds, ret_refund);
}

/* Sends of the intent, from `first` on. */
static enum idem_rows_step sends_read(struct idem_rows *rows,
                                      struct idem_postgres_found first,
                                      int64_t intent_row,
                                      struct idem_send *ret_sends,
                                      size_t *ret_count)
{
    size_t count = 0;
    bool ours = true;
    for (int row = first.row; row < PQntuples(first.result) && ours; row++) {
        if (idem_postgres_number(first.result, row, 0) != intent_row) {
            break;
        }
        /* More than there can be: whoever decides must not overlook one. */
        ours =
            count < IDEM_SENDS_MAX && idem_postgres_row_read(first.result, row, &idem_table_sends,
                                                             &ret_sends[count], rows->kept);
        count += 1;
    }
    *ret_count = count;
    return ours ? IDEM_ROWS_OK : IDEM_ROWS_DAMAGED;
}

enum idem_rows_step idem_postgres_find_sends(struct idem_rows *rows,
                                             int64_t intent_row,
                                             struct idem_send *ret_sends,
                                             size_t *ret_count)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_args args = { .count = 0 };
    struct idem_postgres_found found = { .row = 0 };
    PGresult *result = NULL;

    if (idem_postgres_ahead_sends(&connection->ahead, intent_row, &found)) {
        return sends_read(rows, found, intent_row, ret_sends, ret_count);
    }
    idem_postgres_arg_i64(&args, intent_row);
    enum idem_rows_step step = idem_postgres_ask(connection, IDEM_POSTGRES_SENDS, &args, &result);
    if (step == IDEM_ROWS_OK) {
        found.result = result;
        step = sends_read(rows, found, intent_row, ret_sends, ret_count);
        PQclear(result);
    }
    return step;
}

enum idem_rows_step idem_postgres_find_stub(struct idem_rows *rows,
                                            enum idem_find find,
                                            const struct idem_rows_key *key,
                                            struct idem_stub *ret_stub)
{
    struct idem_postgres_args args = { .count = 0 };
    enum idem_postgres_statement index = IDEM_POSTGRES_STUB_BY_SCOPE;
    if (find == IDEM_FIND_HOLDER) {
        index = IDEM_POSTGRES_STUB_HOLDER;
        idem_postgres_arg_text(&args, key->number);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_BY_SCOPE);
    }
    idem_postgres_arg_bytes(&args, &key->scope, sizeof(key->scope));
    return row_ask(rows, index, &args, &idem_table_stubs, ret_stub);
}

enum idem_rows_step idem_postgres_find_payment_stubs(struct idem_rows *rows,
                                                     struct idem_str payment_effect_id,
                                                     struct idem_facts *facts)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    bool ours = true;
    idem_postgres_arg_text(&args, payment_effect_id);
    idem_postgres_arg_i64(&args, IDEM_PAYMENT_STUBS_MAX + 1);
    enum idem_rows_step step = idem_postgres_ask(idem_postgres_connection_of(rows),
                                                 IDEM_POSTGRES_STUBS_OF_PAYMENT, &args, &result);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    size_t count = (size_t)PQntuples(result);
    facts->payment_stubs_full = count > IDEM_PAYMENT_STUBS_MAX;
    count = facts->payment_stubs_full ? IDEM_PAYMENT_STUBS_MAX : count;
    for (size_t i = 0; i < count && ours; i++) {
        struct idem_stub *stub = &facts->payment_stubs[i];
        stub->row = idem_postgres_number(result, (int)i, 0);
        ours = idem_postgres_row_read(result, (int)i, &idem_table_stubs, stub, rows->kept);
    }
    facts->payment_stub_count = count;
    PQclear(result);
    return ours ? IDEM_ROWS_OK : IDEM_ROWS_DAMAGED;
}

enum idem_rows_step idem_postgres_find_case_kinds(struct idem_rows *rows,
                                                  int64_t intent_row,
                                                  uint32_t *ret_open,
                                                  uint32_t *ret_decided)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    uint32_t kinds[2] = { 0, 0 }; /* Decided, open. */
    bool ours = true;
    idem_postgres_arg_i64(&args, intent_row);
    enum idem_rows_step step = idem_postgres_ask(idem_postgres_connection_of(rows),
                                                 IDEM_POSTGRES_CASE_KINDS, &args, &result);
    if (step != IDEM_ROWS_OK) {
        return step;
    }
    for (int row = 0; row < PQntuples(result) && ours; row++) {
        int64_t kind = idem_postgres_number(result, row, 0);
        ours = kind > IDEM_CASE_NONE && kind < IDEM_CASE_KIND_COUNT;
        bool is_open = idem_postgres_number(result, row, 1) != 0;
        kinds[is_open ? 1 : 0] |= ours ? UINT32_C(1) << kind : 0;
    }
    *ret_open = kinds[1];
    *ret_decided = kinds[0];
    PQclear(result);
    return ours ? IDEM_ROWS_OK : IDEM_ROWS_DAMAGED;
}

enum idem_rows_step idem_postgres_find_credential(struct idem_rows *rows,
                                                  enum idem_find find,
                                                  const struct idem_rows_key *key,
                                                  struct idem_credential_row *ret_credential)
{
    struct idem_postgres_args args = { .count = 0 };
    enum idem_postgres_statement index = IDEM_POSTGRES_CREDENTIAL_BY_ID;
    if (find == IDEM_FIND_BY_ANY_ID) {
        idem_postgres_arg_bytes(&args, &key->id, sizeof(key->id));
    } else {
        IDEM_ASSERT(find == IDEM_FIND_BY_SECRET);
        index = IDEM_POSTGRES_CREDENTIAL_BY_SECRET;
        idem_postgres_arg_bytes(&args, &key->secret, sizeof(key->secret));
    }
    return row_ask(rows, index, &args, &idem_table_credentials, ret_credential);
}

/* Whether the statement finds a row. */
static enum idem_rows_step there_ask(struct idem_rows *rows,
                                     enum idem_postgres_statement index,
                                     const struct idem_postgres_args *args,
                                     bool *ret_there)
{
    PGresult *result = NULL;
    enum idem_rows_step step =
        idem_postgres_ask(idem_postgres_connection_of(rows), index, args, &result);
    if (step == IDEM_ROWS_OK) {
        *ret_there = PQntuples(result) > 0;
        PQclear(result);
    }
    return step;
}

enum idem_rows_step idem_postgres_find_event(struct idem_rows *rows,
                                             struct idem_str entry,
                                             struct idem_str event_id,
                                             bool *ret_seen)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_args args = { .count = 0 };
    if (idem_postgres_ahead_event(&connection->ahead, entry, event_id, ret_seen)) {
        return IDEM_ROWS_OK;
    }
    idem_postgres_arg_text(&args, entry);
    idem_postgres_arg_text(&args, event_id);
    return there_ask(rows, IDEM_POSTGRES_EVENT_SEEN, &args, ret_seen);
}

enum idem_rows_step idem_postgres_find_listened(struct idem_rows *rows,
                                                struct idem_str principal,
                                                bool *ret_listened)
{
    const struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_args args = { .count = 0 };
    if (idem_postgres_ahead_listened(&connection->ahead, principal, ret_listened)) {
        return IDEM_ROWS_OK;
    }
    idem_postgres_arg_text(&args, principal);
    return there_ask(rows, IDEM_POSTGRES_LISTENED, &args, ret_listened);
}

enum idem_rows_step idem_postgres_find_webhook(struct idem_rows *rows,
                                               enum idem_find find,
                                               const struct idem_rows_key *key,
                                               struct idem_webhook *ret_webhook)
{
    const struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_args args = { .count = 0 };
    struct idem_postgres_found found;
    enum idem_postgres_statement index = IDEM_POSTGRES_WEBHOOK_BY_ANY_ID;
    if (find == IDEM_FIND_BY_ANY_ID &&
        idem_postgres_ahead_webhook(&connection->ahead, key->id, &found)) {
        return found_read(rows, found, &idem_table_webhooks, ret_webhook);
    }
    if (find == IDEM_FIND_BY_ROW) {
        index = IDEM_POSTGRES_WEBHOOK_BY_ROW;
        idem_postgres_arg_i64(&args, key->row);
    } else if (find == IDEM_FIND_BY_ID) {
        index = IDEM_POSTGRES_WEBHOOK_BY_ID;
        idem_postgres_arg_bytes(&args, &key->id, sizeof(key->id));
        idem_postgres_arg_text(&args, key->principal);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_BY_ANY_ID);
        idem_postgres_arg_bytes(&args, &key->id, sizeof(key->id));
    }
    return row_ask(rows, index, &args, &idem_table_webhooks, ret_webhook);
}

enum idem_rows_step idem_postgres_count_webhooks(struct idem_rows *rows,
                                                 struct idem_str principal,
                                                 size_t *ret_count)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    idem_postgres_arg_text(&args, principal);
    enum idem_rows_step step = idem_postgres_ask(idem_postgres_connection_of(rows),
                                                 IDEM_POSTGRES_WEBHOOKS_COUNT, &args, &result);
    if (step == IDEM_ROWS_OK) {
        *ret_count = (size_t)idem_postgres_number(result, 0, 0);
        PQclear(result);
    }
    return step;
}

enum idem_rows_step idem_postgres_find_delivery(struct idem_rows *rows,
                                                struct idem_uid message_id,
                                                struct idem_uid webhook_id,
                                                struct idem_delivery *ret_delivery)
{
    struct idem_postgres_connection *connection = idem_postgres_connection_of(rows);
    struct idem_postgres_args args = { .count = 0 };
    struct idem_postgres_found found;
    if (idem_postgres_ahead_delivery(&connection->ahead, message_id, webhook_id, &found)) {
        return found_read(rows, found, &idem_table_deliveries, ret_delivery);
    }
    idem_postgres_arg_bytes(&args, &message_id, sizeof(message_id));
    idem_postgres_arg_bytes(&args, &webhook_id, sizeof(webhook_id));
    return row_ask(rows, IDEM_POSTGRES_DELIVERY, &args, &idem_table_deliveries, ret_delivery);
}

enum idem_rows_step idem_postgres_find_meta(struct idem_rows *rows,
                                            const char *name,
                                            struct idem_str *ret_value)
{
    struct idem_postgres_args args = { .count = 0 };
    PGresult *result = NULL;
    *ret_value = (struct idem_str){ .len = 0 };
    idem_postgres_arg_text(&args, idem_str_from(name));
    enum idem_rows_step step =
        idem_postgres_ask(idem_postgres_connection_of(rows), IDEM_POSTGRES_META, &args, &result);
    if (step == IDEM_ROWS_OK && PQntuples(result) > 0) {
        *ret_value = idem_buf_keep(rows->kept, idem_postgres_text(result, 0, 0));
    }
    PQclear(result);
    return step;
}
