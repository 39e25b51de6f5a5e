/*
 * Rows that a decision rests on. Each look-up goes by a unique index or a narrow one.
 */
#include "store/sqlite/rows_internal.h"

enum idem_rows_step idem_sqlite_find_intent(struct idem_rows *rows,
                                            enum idem_find find,
                                            const struct idem_rows_key *key,
                                            struct idem_intent *ret_intent)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    sqlite3_stmt *statement = NULL;

    if (find == IDEM_FIND_BY_ROW) {
        statement = connection->statements[IDEM_SQLITE_INTENT_BY_ROW];
        idem_sqlite_bind_i64(statement, 1, key->row);
        idem_sqlite_bind_bytes(statement, 2, &key->scope, 16);
    } else if (find == IDEM_FIND_BY_SCOPE) {
        statement = connection->statements[IDEM_SQLITE_INTENT_BY_SCOPE];
        idem_sqlite_bind_bytes(statement, 1, &key->scope, 16);
    } else if (find == IDEM_FIND_BY_ANY_ID || find == IDEM_FIND_BY_CASE) {
        statement =
            connection->statements[find == IDEM_FIND_BY_CASE ? IDEM_SQLITE_INTENT_BY_CASE
                                                             : IDEM_SQLITE_INTENT_BY_ANY_ID];
        idem_sqlite_bind_bytes(statement, 1, &key->id, 16);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_BY_ID);
        statement = connection->statements[IDEM_SQLITE_INTENT_BY_ID];
        idem_sqlite_bind_bytes(statement, 1, &key->id, 16);
        idem_sqlite_bind_text(statement, 2, key->principal);
    }
    return idem_sqlite_find_row(rows, statement, &idem_table_intents, ret_intent);
}

enum idem_rows_step idem_sqlite_find_payment(struct idem_rows *rows,
                                             enum idem_find find,
                                             const struct idem_rows_key *key,
                                             struct idem_payment *ret_payment)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    sqlite3_stmt *statement = NULL;

    if (find == IDEM_FIND_BY_ROW) {
        statement = connection->statements[IDEM_SQLITE_PAYMENT_BY_ROW];
        idem_sqlite_bind_i64(statement, 1, key->row);
    } else if (find == IDEM_FIND_BY_ANY_ID) {
        statement = connection->statements[IDEM_SQLITE_PAYMENT_BY_ANY_ID];
        idem_sqlite_bind_bytes(statement, 1, &key->id, 16);
    } else if (find == IDEM_FIND_BY_ID) {
        statement = connection->statements[IDEM_SQLITE_PAYMENT_BY_ID];
        idem_sqlite_bind_bytes(statement, 1, &key->id, 16);
        idem_sqlite_bind_text(statement, 2, key->principal);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_HOLDER || find == IDEM_FIND_NEWEST_PAST);
        statement = connection->statements[find == IDEM_FIND_HOLDER ? IDEM_SQLITE_PAYMENT_HOLDER
                                                                    : IDEM_SQLITE_PAYMENT_PAST];
        idem_sqlite_bind_text(statement, 1, key->principal);
        idem_sqlite_bind_text(statement, 2, key->number);
    }
    return idem_sqlite_find_row(rows, statement, &idem_table_payments, ret_payment);
}

enum idem_rows_step idem_sqlite_find_refund(struct idem_rows *rows,
                                            enum idem_find find,
                                            const struct idem_rows_key *key,
                                            struct idem_refund *ret_refund)
{
    struct idem_sqlite_connection *connection = idem_sqlite_connection_of(rows);
    sqlite3_stmt *statement = NULL;

    if (find == IDEM_FIND_BY_ROW) {
        statement = connection->statements[IDEM_SQLITE_REFUND_BY_ROW];
        idem_sqlite_bind_i64(statement, 1, key->row);
    } else if (find == IDEM_FIND_BY_ID) {
        statement = connection->statements[IDEM_SQLITE_REFUND_BY_ID];
        idem_sqlite_bind_bytes(statement, 1, &key->id, 16);
        idem_sqlite_bind_text(statement, 2, key->principal);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_HOLDER);
        statement = connection->statements[IDEM_SQLITE_REFUND_HOLDER];
        idem_sqlite_bind_i64(statement, 1, key->row);
        idem_sqlite_bind_text(statement, 2, key->number);
    }
    return idem_sqlite_find_row(rows, statement, &idem_table_refunds, ret_refund);
}
enum idem_rows_step idem_sqlite_find_sends(struct idem_rows *rows,
                                           int64_t intent_row,
                                           struct idem_send *ret_sends,
                                           size_t *ret_count)
{
    sqlite3_stmt *statement = idem_sqlite_connection_of(rows)->statements[IDEM_SQLITE_SENDS];
    size_t count = 0;
    bool ours = true;

    idem_sqlite_bind_i64(statement, 1, intent_row);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && count < IDEM_SENDS_MAX) {
        ours = idem_sqlite_read_row(statement, 0, &idem_table_sends, &ret_sends[count], rows->kept);
        count += 1;
        rc = sqlite3_step(statement);
    }
    /* More sends than there can be: whoever decides must not overlook one. */
    ours = ours && rc != SQLITE_ROW;
    *ret_count = count;
    return idem_sqlite_walk_end(statement, rc, ours);
}

enum idem_rows_step idem_sqlite_find_stub(struct idem_rows *rows,
                                          enum idem_find find,
                                          const struct idem_rows_key *key,
                                          struct idem_stub *ret_stub)
{
    sqlite3_stmt *statement = NULL;
    if (find == IDEM_FIND_BY_SCOPE) {
        statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_STUB_BY_SCOPE);
        idem_sqlite_bind_bytes(statement, 1, &key->scope, 16);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_HOLDER);
        statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_STUB_HOLDER);
        idem_sqlite_bind_text(statement, 1, key->number);
        idem_sqlite_bind_bytes(statement, 2, &key->scope, 16);
    }
    return idem_sqlite_find_row(rows, statement, &idem_table_stubs, ret_stub);
}

enum idem_rows_step idem_sqlite_find_payment_stubs(struct idem_rows *rows,
                                                   struct idem_str payment_effect_id,
                                                   struct idem_facts *facts)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_STUBS_OF_PAYMENT);
    bool ours = true;
    size_t count = 0;

    idem_sqlite_bind_text(statement, 1, payment_effect_id);
    idem_sqlite_bind_i64(statement, 2, IDEM_PAYMENT_STUBS_MAX + 1);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours && count < IDEM_PAYMENT_STUBS_MAX) {
        struct idem_stub *stub = &facts->payment_stubs[count];
        stub->row = sqlite3_column_int64(statement, 0);
        ours = idem_sqlite_read_row(statement, 1, &idem_table_stubs, stub, rows->kept);
        count += 1;
        rc = sqlite3_step(statement);
    }
    facts->payment_stub_count = count;
    facts->payment_stubs_full = rc == SQLITE_ROW;
    return idem_sqlite_walk_end(statement, rc, ours);
}

enum idem_rows_step idem_sqlite_find_case_kinds(struct idem_rows *rows,
                                                int64_t intent_row,
                                                uint32_t *ret_open,
                                                uint32_t *ret_decided)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_CASE_KINDS);
    uint32_t kinds[2] = { 0, 0 }; /* Open, decided. */
    bool ours = true;

    idem_sqlite_bind_i64(statement, 1, intent_row);
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && ours) {
        int64_t kind = sqlite3_column_int64(statement, 0);
        bool decided = sqlite3_column_int64(statement, 1) != 0;
        ours = kind > IDEM_CASE_NONE && kind < IDEM_CASE_KIND_COUNT;
        kinds[decided ? 1 : 0] |= ours ? UINT32_C(1) << kind : 0;
        rc = ours ? sqlite3_step(statement) : rc;
    }
    *ret_open = kinds[0];
    *ret_decided = kinds[1];
    return idem_sqlite_walk_end(statement, rc, ours);
}

enum idem_rows_step idem_sqlite_find_credential(struct idem_rows *rows,
                                                enum idem_find find,
                                                const struct idem_rows_key *key,
                                                struct idem_credential_row *ret_credential)
{
    sqlite3_stmt *statement = NULL;
    if (find == IDEM_FIND_BY_ANY_ID) {
        statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_CREDENTIAL_BY_ID);
        idem_sqlite_bind_bytes(statement, 1, &key->id, 16);
    } else {
        IDEM_ASSERT(find == IDEM_FIND_BY_SECRET);
        statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_CREDENTIAL_BY_SECRET);
        idem_sqlite_bind_bytes(statement, 1, &key->secret, IDEM_DIGEST_SIZE);
    }
    return idem_sqlite_find_row(rows, statement, &idem_table_credentials, ret_credential);
}

enum idem_rows_step idem_sqlite_find_meta(struct idem_rows *rows,
                                          const char *name,
                                          struct idem_str *ret_value)
{
    sqlite3_stmt *statement = idem_sqlite_statement_of(rows, IDEM_SQLITE_META);
    idem_sqlite_bind_text(statement, 1, idem_str_from(name));
    int rc = sqlite3_step(statement);
    bool ours = true;
    *ret_value = (struct idem_str){ .len = 0 };
    if (rc == SQLITE_ROW) {
        struct idem_str text;
        ours = idem_sqlite_read_text(statement, 0, &text);
        *ret_value = idem_buf_keep(rows->kept, text);
    }
    return idem_sqlite_walk_end(statement, rc, ours);
}
