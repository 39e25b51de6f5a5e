/*
 * The SQL of every statement, made from the column tables and prepared once a connection,
 * where it is first used.
 *
 * Numbers are sent as bigint, whatever the column is: an assignment narrows them, and a value that
 * does not fit is refused. Rows for the facts of a batch come in a fixed order, so that whoever
 * holds them (FOR UPDATE) takes them in the order in which everybody does.
 *
 * A row's incarnation changes with its token only: whoever writes an intent of which another living
 * instance has the lease sees that lease as one of its own time (find.c), and must not make it one.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "store/postgres/rows_internal.h"
#include "store/postgres/schema.h"

static_assert(IDEM_PAYMENT_FAILED == 7, "schema.h, HOLDS_ORDER");
static_assert(IDEM_PAYMENT_CANCELED == 8, "schema.h, HOLDS_ORDER");
static_assert(IDEM_REFUND_FAILED == 3, "schema.h, HOLDS_REFUND");
static_assert(IDEM_INTENT_COUNT == 8, "schema.c, intents.state");
static_assert(IDEM_PAYMENT_COUNT == 10, "schema.c, payments.state");
static_assert(IDEM_REFUND_COUNT == 4, "schema.c, refunds.state");
static_assert(IDEM_SEND_COUNT == 5, "schema.c, sends.state");
static_assert(offsetof(struct idem_intent, row) == 0, "handles come first");
static_assert(offsetof(struct idem_payment, row) == 0, "handles come first");
static_assert(offsetof(struct idem_refund, row) == 0, "handles come first");
static_assert(offsetof(struct idem_stub, row) == 0, "handles come first");
static_assert(offsetof(struct idem_credential_row, row) == 0, "handles come first");
static_assert(offsetof(struct idem_entry, row) == 0, "handles come first");
static_assert(IDEM_EFFECT_KIND_CHARGE == 1, "schema.h, MAKES_PAYMENT");
static_assert(IDEM_EFFECT_KIND_AUTHORIZE == 2, "schema.h, MAKES_PAYMENT");
static_assert(IDEM_EFFECT_KIND_COUNT == 6, "schema.c, stubs.kind");
static_assert(IDEM_ROLE_COUNT == 3, "schema.c, credentials.role");
static_assert(IDEM_INTENT_UNKNOWN == 3, "NUMBERS");
static_assert(IDEM_INTENT_PARKED == 4, "NUMBERS");
static_assert(IDEM_INTENT_SUCCEEDED == 5, "WAITED");
static_assert(IDEM_INTENT_FAILED == 6, "WAITED");
static_assert(IDEM_INTENT_RELEASED == 7, "WAITED");

#define NOW_US     "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
#define ALIVE      "ended_us = 0 AND seen_us > " NOW_US " - $1"
#define LIVING     " FROM idem.instances WHERE (id = $2 OR (" ALIVE "))" /* And the asker itself. */
#define META(name) "coalesce((SELECT value FROM idem.meta WHERE key = '" name "'), '0')::bigint"
#define STUBS      "(SELECT count(*) FROM (SELECT 1 FROM idem.stubs LIMIT 1024) s)"
#define MARKS      META(IDEM_META_RESTORED) "," META(IDEM_META_RESTORED_AT)
#define BIRTH      META(IDEM_META_MEMORY_SINCE) "," META("created_us")
#define SCHEMA     META(IDEM_META_SCHEMA_MIN)
#define STANDBYS   "current_setting('synchronous_standby_names') <> ''"
#define OF_SCOPES  "scope = ANY($1::bytea[])"
#define HANDLES(table) \
    "SELECT nextval('idem." table "_row_seq') FROM generate_series(1, $1::bigint)"

enum sql_shape {
    SQL_PLAIN = 0,    /* The tail is all of it. */
    SQL_SELECT,       /* Handle and columns of the table; tail: the condition. */
    SQL_SELECT_BELOW, /* Handle of the intent and columns of a table below intents. */
    SQL_INSERT,       /* The row's handle, then the columns; tail: ON CONFLICT. */
    SQL_INSERT_BELOW, /* Handle of the intent, then the columns. */
    SQL_UPDATE        /* Columns that are not fixed; tail: the guard, by @1, @2 behind them. */
};

struct sql {
    enum sql_shape shape;
    const struct idem_table *table;
    const char *tail;
};

static const struct sql sqls[IDEM_POSTGRES_STATEMENT_COUNT] = {
    [IDEM_POSTGRES_NOW] = { SQL_PLAIN, NULL, "SELECT " NOW_US ", pg_is_in_recovery(), " STANDBYS },
    [IDEM_POSTGRES_INTENT_BY_ROW] = { SQL_SELECT, &idem_table_intents, "row = $1 AND scope = $2" },
    [IDEM_POSTGRES_INTENT_BY_ANY_ID] = { SQL_SELECT, &idem_table_intents, "id = $1" },
    [IDEM_POSTGRES_INTENT_BY_ID] = { SQL_SELECT, &idem_table_intents,
                                     "id = $1 AND principal = $2" },
    [IDEM_POSTGRES_INTENT_BY_SCOPE] = { SQL_SELECT, &idem_table_intents, "scope = $1" },
    [IDEM_POSTGRES_PAYMENT_BY_ROW] = { SQL_SELECT, &idem_table_payments, "row = $1" },
    [IDEM_POSTGRES_PAYMENT_BY_ANY_ID] = { SQL_SELECT, &idem_table_payments, "id = $1" },
    [IDEM_POSTGRES_PAYMENT_BY_ID] = { SQL_SELECT, &idem_table_payments,
                                      "id = $1 AND principal = $2" },
    [IDEM_POSTGRES_PAYMENT_HOLDER] = { SQL_SELECT, &idem_table_payments,
                                       "principal = $1 AND order_no = $2"
                                       " AND " IDEM_POSTGRES_HOLDS_ORDER },
    [IDEM_POSTGRES_PAYMENT_PAST] = { SQL_SELECT, &idem_table_payments,
                                     "principal = $1 AND order_no = $2"
                                     " AND " IDEM_POSTGRES_PAST_ORDER
                                     " ORDER BY row DESC LIMIT 1" },
    [IDEM_POSTGRES_REFUND_BY_ROW] = { SQL_SELECT, &idem_table_refunds, "row = $1" },
    [IDEM_POSTGRES_REFUND_BY_ID] = { SQL_SELECT, &idem_table_refunds,
                                     "id = $1 AND principal = $2" },
    [IDEM_POSTGRES_REFUND_HOLDER] = { SQL_SELECT, &idem_table_refunds,
                                      "payment_row = $1 AND refund_no = $2"
                                      " AND " IDEM_POSTGRES_HOLDS_REFUND },
    [IDEM_POSTGRES_SENDS] = { SQL_SELECT_BELOW, &idem_table_sends, "intent_row = $1 ORDER BY no" },
    [IDEM_POSTGRES_EVENTS] = { SQL_SELECT_BELOW, &idem_table_events,
                               "intent_row = $1 ORDER BY row DESC LIMIT $2" },
    [IDEM_POSTGRES_EVENTS_TOTAL] = { SQL_PLAIN, NULL,
                                     "SELECT count(*) FROM idem.events WHERE intent_row = $1" },
    [IDEM_POSTGRES_DUE] = { SQL_PLAIN, NULL,
                            "SELECT row, due_us, scope FROM idem.intents"
                            " WHERE due_us > 0 AND due_us <= $1 ORDER BY due_us, row LIMIT $2" },
    [IDEM_POSTGRES_DUE_NEXT] = { SQL_PLAIN, NULL,
                                 "SELECT due_us FROM idem.intents"
                                 " WHERE due_us > 0 AND due_us > $1 ORDER BY due_us LIMIT 1" },
    [IDEM_POSTGRES_LEFT] = { SQL_PLAIN, NULL,
                             "SELECT row, due_us, scope FROM idem.intents"
                             " WHERE due_us > 0 AND lease_end_us > 0 AND incarnation <> $2"
                             " AND NOT EXISTS (SELECT 1 FROM idem.instances"
                             " WHERE id = incarnation AND " ALIVE ")"
                             " AND row > $3 ORDER BY row LIMIT $4" },
    [IDEM_POSTGRES_REAP] = { SQL_PLAIN, NULL,
                             "SELECT i.row, i.reap_us, i.scope FROM (SELECT row FROM idem.intents"
                             " WHERE reap_us > 0 AND reap_us <= $3"
                             " AND row % (SELECT count(*)" LIVING ") = (SELECT count(*)" LIVING
                             " AND id < $2)"
                             " ORDER BY reap_us, row LIMIT $4) mine"
                             " JOIN idem.intents i ON i.row = mine.row"
                             " ORDER BY i.reap_us, i.row" },
    [IDEM_POSTGRES_REAP_NEXT] = { SQL_PLAIN, NULL,
                                  "SELECT reap_us FROM idem.intents"
                                  " WHERE reap_us > 0 AND reap_us > $1 ORDER BY reap_us LIMIT 1" },
    [IDEM_POSTGRES_CASES] = { SQL_SELECT_BELOW, &idem_table_cases,
                              "intent_row = $1 ORDER BY row DESC LIMIT $2" },
    [IDEM_POSTGRES_CASE_OPEN] = { SQL_SELECT_BELOW, &idem_table_cases,
                                  "intent_row = $1 AND decided_us = 0 ORDER BY row DESC LIMIT 1" },
    [IDEM_POSTGRES_CASE_KINDS] = { SQL_PLAIN, NULL,
                                   "SELECT kind FROM idem.cases WHERE intent_row = $1"
                                   " AND decided_us = 0" },
    [IDEM_POSTGRES_ENTRIES] = { SQL_SELECT, &idem_table_entries,
                                "due_us > 0 AND row > $1"
                                " AND state BETWEEN $2::bigint AND $3::bigint"
                                " ORDER BY row LIMIT $4" },
    [IDEM_POSTGRES_ENTRIES_CASES] = { SQL_SELECT, &idem_table_entries,
                                      "row IN (SELECT DISTINCT intent_row FROM idem.cases"
                                      " WHERE decided_us = 0 AND intent_row > $1"
                                      " ORDER BY intent_row LIMIT $2) ORDER BY row" },
    [IDEM_POSTGRES_ENTRIES_PAYMENT] = { SQL_SELECT, &idem_table_entries,
                                        "payment_row > 0 AND payment_row = $1 AND row > $2"
                                        " ORDER BY row LIMIT $3" },
    [IDEM_POSTGRES_CREDENTIALS_PAGE] = { SQL_SELECT, &idem_table_credentials,
                                         "row > $1 ORDER BY row LIMIT $2" },
    [IDEM_POSTGRES_PLACES] = { SQL_PLAIN, NULL,
                               "SELECT DISTINCT entry, account, region FROM idem.payments"
                               " ORDER BY entry, account, region LIMIT $1" },
    [IDEM_POSTGRES_STATES] = { SQL_PLAIN, NULL,
                               "SELECT state, count(*) FROM idem.intents"
                               " WHERE due_us > 0 GROUP BY state" },
    [IDEM_POSTGRES_NUMBERS] = { SQL_PLAIN, NULL,
                                "SELECT coalesce((SELECT min(unknown_since_us) FROM idem.intents"
                                " WHERE due_us > 0 AND state IN (3, 4)"
                                " AND unknown_since_us > 0), 0),"
                                " coalesce((SELECT min(due_us) FROM idem.intents"
                                " WHERE due_us > 0), 0),"
                                " (SELECT count(*) FROM idem.cases WHERE decided_us = 0),"
                                " (SELECT count(*) FROM idem.stubs),"
                                " (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class"
                                " WHERE relnamespace = 'idem'::regnamespace AND relkind = 'r')" },
    [IDEM_POSTGRES_STUB_BY_SCOPE] = { SQL_SELECT, &idem_table_stubs, "scope = $1" },
    [IDEM_POSTGRES_STUB_HOLDER] = { SQL_SELECT, &idem_table_stubs,
                                    "order_no = $1 AND scope <> $2"
                                    " AND " IDEM_POSTGRES_MAKES_PAYMENT " ORDER BY row LIMIT 1" },
    [IDEM_POSTGRES_STUBS_OF_PAYMENT] = { SQL_SELECT, &idem_table_stubs,
                                         "payment_effect_id = $1"
                                         " ORDER BY happened_us, row LIMIT $2" },
    [IDEM_POSTGRES_CREDENTIAL_BY_ID] = { SQL_SELECT, &idem_table_credentials, "id = $1" },
    [IDEM_POSTGRES_CREDENTIAL_BY_SECRET] = { SQL_SELECT, &idem_table_credentials,
                                             "secret_sha256 = $1" },
    [IDEM_POSTGRES_META] = { SQL_PLAIN, NULL, "SELECT value FROM idem.meta WHERE key = $1" },
    [IDEM_POSTGRES_WAITED] = { SQL_PLAIN, NULL,
                               "SELECT row FROM idem.intents"
                               " WHERE row = ANY(string_to_array($1, ',')::bigint[])"
                               " AND state < 5 ORDER BY row" },
    [IDEM_POSTGRES_LOCK_SHARED] = { SQL_PLAIN, NULL,
                                    "SELECT 1 FROM pg_advisory_xact_lock_shared"
                                    "(" IDEM_POSTGRES_LOCKS ", 1)" },
    [IDEM_POSTGRES_LOCK_ALONE] = { SQL_PLAIN, NULL,
                                   "SELECT 1 FROM pg_advisory_xact_lock"
                                   "(" IDEM_POSTGRES_LOCKS ", 1)" },
    [IDEM_POSTGRES_AHEAD_KNOWLEDGE] = { SQL_PLAIN, NULL,
                                        "SELECT " NOW_US ", pg_is_in_recovery()," STUBS "," MARKS
                                        "," BIRTH "," SCHEMA "," STANDBYS },
    [IDEM_POSTGRES_AHEAD_ALIVE] = { SQL_PLAIN, NULL,
                                    "SELECT id FROM idem.instances WHERE " ALIVE
                                    " AND id <> $2 ORDER BY id LIMIT 64" },
    [IDEM_POSTGRES_AHEAD_INTENTS] = { SQL_SELECT, &idem_table_intents,
                                      OF_SCOPES " ORDER BY scope" },
    [IDEM_POSTGRES_AHEAD_INTENTS_HELD] = { SQL_SELECT, &idem_table_intents,
                                           OF_SCOPES " ORDER BY scope FOR UPDATE" },
    [IDEM_POSTGRES_AHEAD_PAYMENTS] = { SQL_SELECT, &idem_table_payments,
                                       "row IN (SELECT payment_row FROM idem.intents"
                                       " WHERE payment_row > 0 AND " OF_SCOPES ") ORDER BY row" },
    [IDEM_POSTGRES_AHEAD_PAYMENTS_HELD] = { SQL_SELECT, &idem_table_payments,
                                            "row IN (SELECT payment_row FROM idem.intents"
                                            " WHERE payment_row > 0 AND " OF_SCOPES ")"
                                            " ORDER BY row FOR UPDATE" },
    [IDEM_POSTGRES_AHEAD_PAYMENTS_NAMED] = { SQL_SELECT, &idem_table_payments,
                                             "id = ANY($1::bytea[]) ORDER BY id" },
    [IDEM_POSTGRES_AHEAD_HOLDERS] = { SQL_SELECT, &idem_table_payments,
                                      "(principal, order_no) IN (SELECT p COLLATE \"C\","
                                      " o COLLATE \"C\" FROM unnest($1::text[], $2::text[])"
                                      " n(p, o)) AND " IDEM_POSTGRES_HOLDS_ORDER },
    [IDEM_POSTGRES_AHEAD_REFUNDS] = { SQL_SELECT, &idem_table_refunds,
                                      "row IN (SELECT refund_row FROM idem.intents"
                                      " WHERE refund_row > 0 AND " OF_SCOPES ") ORDER BY row" },
    [IDEM_POSTGRES_AHEAD_SENDS] = { SQL_SELECT_BELOW, &idem_table_sends,
                                    "intent_row IN (SELECT row FROM idem.intents"
                                    " WHERE " OF_SCOPES ") ORDER BY intent_row, no" },
    [IDEM_POSTGRES_HANDLES_INTENTS] = { SQL_PLAIN, NULL, HANDLES("intents") },
    [IDEM_POSTGRES_HANDLES_PAYMENTS] = { SQL_PLAIN, NULL, HANDLES("payments") },
    [IDEM_POSTGRES_HANDLES_REFUNDS] = { SQL_PLAIN, NULL, HANDLES("refunds") },
    [IDEM_POSTGRES_HANDLES_STUBS] = { SQL_PLAIN, NULL, HANDLES("stubs") },
    [IDEM_POSTGRES_HANDLES_CREDENTIALS] = { SQL_PLAIN, NULL, HANDLES("credentials") },
    [IDEM_POSTGRES_INTENT_INSERT] = { SQL_INSERT, &idem_table_intents, "ON CONFLICT DO NOTHING" },
    [IDEM_POSTGRES_INTENT_UPDATE] = { SQL_UPDATE, &idem_table_intents,
                                      "row = @1 AND version = @2" },
    [IDEM_POSTGRES_INTENT_DELETE] = { SQL_PLAIN, NULL,
                                      "DELETE FROM idem.intents WHERE row = $1 AND version = $2" },
    [IDEM_POSTGRES_SENDS_DELETE] = { SQL_PLAIN, NULL,
                                     "DELETE FROM idem.sends WHERE intent_row = $1" },
    [IDEM_POSTGRES_EVENTS_DELETE] = { SQL_PLAIN, NULL,
                                      "DELETE FROM idem.events WHERE intent_row = $1"
                                      " AND cause <> $2::bigint" },
    [IDEM_POSTGRES_CASES_DELETE] = { SQL_PLAIN, NULL,
                                     "DELETE FROM idem.cases WHERE intent_row = $1" },
    [IDEM_POSTGRES_PAYMENT_INSERT] = { SQL_INSERT, &idem_table_payments, "ON CONFLICT DO NOTHING" },
    [IDEM_POSTGRES_PAYMENT_UPDATE] = { SQL_UPDATE, &idem_table_payments,
                                       "row = @1 AND version = @2" },
    [IDEM_POSTGRES_REFUND_INSERT] = { SQL_INSERT, &idem_table_refunds, "ON CONFLICT DO NOTHING" },
    [IDEM_POSTGRES_REFUND_UPDATE] = { SQL_UPDATE, &idem_table_refunds,
                                      "row = @1 AND version = @2" },
    [IDEM_POSTGRES_SEND_INSERT] = { SQL_INSERT_BELOW, &idem_table_sends, "ON CONFLICT DO NOTHING" },
    [IDEM_POSTGRES_SEND_UPDATE] = { SQL_UPDATE, &idem_table_sends,
                                    "intent_row = @1 AND no = @2::bigint" },
    [IDEM_POSTGRES_EVENT_INSERT] = { SQL_INSERT_BELOW, &idem_table_events, "" },
    [IDEM_POSTGRES_CASE_INSERT] = { SQL_INSERT_BELOW, &idem_table_cases,
                                    "ON CONFLICT (id) DO NOTHING" },
    [IDEM_POSTGRES_CASES_DECIDE] = { SQL_UPDATE, &idem_table_cases,
                                     "intent_row = @1 AND decided_us = 0" },
    [IDEM_POSTGRES_STUB_INSERT] = { SQL_INSERT, &idem_table_stubs, "ON CONFLICT DO NOTHING" },
    [IDEM_POSTGRES_STUB_UPDATE] = { SQL_UPDATE, &idem_table_stubs, "row = @1 AND scope = @2" },
    [IDEM_POSTGRES_STUB_DELETE] = { SQL_PLAIN, NULL,
                                    "DELETE FROM idem.stubs WHERE row = $1 AND scope = $2" },
    [IDEM_POSTGRES_STUBS_APPLY] = { SQL_PLAIN, NULL,
                                    "UPDATE idem.stubs SET applied = true"
                                    " WHERE payment_effect_id = $1 AND NOT applied" },
    [IDEM_POSTGRES_CREDENTIAL_INSERT] = { SQL_INSERT, &idem_table_credentials,
                                          "ON CONFLICT DO NOTHING" },
    [IDEM_POSTGRES_CREDENTIAL_UPDATE] = { SQL_UPDATE, &idem_table_credentials,
                                          "row = @1 AND revoked_us = 0" },
    [IDEM_POSTGRES_META_WRITE] = { SQL_PLAIN, NULL,
                                   "INSERT INTO idem.meta (key, value) VALUES ($1, $2)"
                                   " ON CONFLICT (key) DO UPDATE SET value = excluded.value" },
};

static const char *cast_of(enum idem_column_kind kind)
{
    switch (kind) {
    case IDEM_COLUMN_I64:
    case IDEM_COLUMN_U32:
    case IDEM_COLUMN_U16:
        return "::bigint";
    case IDEM_COLUMN_BOOL:
        return "::boolean";
    case IDEM_COLUMN_BYTES_16:
    case IDEM_COLUMN_BYTES_32:
    case IDEM_COLUMN_TEXT: /* What it is there. */
        return "";
    case IDEM_COLUMN_NONE:
    case IDEM_COLUMN_KIND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void select_print(const struct sql *sql, struct idem_buf *buf)
{
    idem_buf_printf(buf, sql->shape == SQL_SELECT ? "SELECT row" : "SELECT intent_row");
    for (size_t i = 0; i < sql->table->column_count; i++) {
        idem_buf_printf(buf, ",%s", sql->table->columns[i].name);
    }
    idem_buf_printf(buf, " FROM idem.%s WHERE %s", sql->table->name, sql->tail);
}

static void insert_print(const struct sql *sql, struct idem_buf *buf)
{
    idem_buf_printf(buf, "INSERT INTO idem.%s (%s", sql->table->name,
                    sql->shape == SQL_INSERT ? "row" : "intent_row");
    for (size_t i = 0; i < sql->table->column_count; i++) {
        idem_buf_printf(buf, ",%s", sql->table->columns[i].name);
    }
    idem_buf_printf(buf, ") VALUES ($1");
    for (size_t i = 0; i < sql->table->column_count; i++) {
        idem_buf_printf(buf, ",$%zu%s", i + 2, cast_of(sql->table->columns[i].kind));
    }
    idem_buf_printf(buf, ") %s", sql->tail);
}

/* Which parameter of an UPDATE a column is; 0: none, it is fixed. */
static size_t parameter_of(const struct idem_table *table, const char *name)
{
    size_t number = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        number += table->columns[i].fixed ? 0 : 1;
        if (strcmp(table->columns[i].name, name) == 0) {
            return table->columns[i].fixed ? 0 : number;
        }
    }
    return 0;
}

static void guard_print(const char *tail, size_t number, struct idem_buf *buf)
{
    for (; *tail != '\0'; tail++) {
        if (*tail == '@') {
            tail++;
            idem_buf_printf(buf, "$%zu", number + (size_t)(*tail - '1'));
        } else {
            idem_buf_add_char(buf, *tail);
        }
    }
}

static void update_print(const struct sql *sql, struct idem_buf *buf)
{
    const struct idem_table *table = sql->table;
    size_t number = 1;
    idem_buf_printf(buf, "UPDATE idem.%s SET ", table->name);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct idem_column *column = &table->columns[i];
        if (column->fixed) {
            continue;
        }
        idem_buf_printf(buf, "%s%s=", number == 1 ? "" : ",", column->name);
        if (strcmp(column->name, "incarnation") == 0) {
            idem_buf_printf(buf, "CASE token WHEN $%zu THEN incarnation ELSE $%zu::bigint END",
                            parameter_of(table, "token"), number);
        } else {
            idem_buf_printf(buf, "$%zu%s", number, cast_of(column->kind));
        }
        number += 1;
    }
    idem_buf_printf(buf, " WHERE ");
    guard_print(sql->tail, number, buf);
}

void idem_postgres_statement_print(enum idem_postgres_statement index, struct idem_buf *buf)
{
    const struct sql *sql = &sqls[index];
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

void idem_postgres_statement_name(enum idem_postgres_statement index,
                                  char name[IDEM_POSTGRES_NAME_MAX])
{
    (void)snprintf(name, IDEM_POSTGRES_NAME_MAX, "idem%d", (int)index);
}
