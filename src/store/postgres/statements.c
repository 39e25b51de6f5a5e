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
static_assert(offsetof(struct idem_webhook, row) == 0, "handles come first");
static_assert(offsetof(struct idem_delivery, row) == 0, "handles come first");
static_assert(IDEM_DELIVERY_PENDING == 1, "schema.c, deliveries.due_us; MESSAGE_FOR, SWEEP");
static_assert(IDEM_DELIVERY_DEAD == 3, "schema.c, deliveries_dead; DELIVERIES_DROP");
static_assert(IDEM_DELIVERY_COUNT == 4, "schema.c, deliveries.state");
static_assert(IDEM_POST_ORDERED_MAX == 5, "BEHIND");
static_assert(IDEM_WEBHOOKS_PRINCIPAL_MAX <= 64, "schema.h, FAN_OUT");
/* A limit that the planner can read. */
static_assert(IDEM_READ_POSTS_MAX + 1 == 17, "POSTS, DELIVERIES");
static_assert(IDEM_READ_ENTRIES_MAX + 1 == 33, "CASE_LIST, CASE_LIST_OPEN");
static_assert(IDEM_ROWS_SWEEP_MAX == 256, "SWEEP_INBOX, SWEEP_MESSAGES");

#define NOW_US "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
#define ALIVE  "ended_us = 0 AND seen_us > " NOW_US " - $1"
/* And the asker itself. By index: a scan is forbidden, and its price would hide all others. */
#define LIVING     " FROM idem.instances WHERE id > 0 AND (id = $2 OR (" ALIVE "))"
#define META(name) "coalesce((SELECT value FROM idem.meta WHERE key = '" name "'), '0')::bigint"
#define STUBS      "(SELECT count(*) FROM (SELECT 1 FROM idem.stubs LIMIT 1024) s)"
#define MARKS      META(IDEM_META_RESTORED) "," META(IDEM_META_RESTORED_AT)
#define BIRTH      META(IDEM_META_MEMORY_SINCE) "," META("created_us")
#define SCHEMA     META(IDEM_META_SCHEMA_MIN)
#define SOMEBODY   "EXISTS (SELECT 1 FROM idem.webhooks)"
#define STANDBYS   "current_setting('synchronous_standby_names') <> ''"
#define OF_SCOPES  "scope = ANY($1::bytea[])"
/* Each that lives has a share, by a number that is a row's own. */
#define IS_MINE "% (SELECT count(*)" LIVING ") = (SELECT count(*)" LIVING " AND id < $2)"
#define NOBODY  "'\\x00000000000000000000000000000000'::bytea"
#define TOLD    "disabled_us = 0"
/* An earlier one to the same webhook about the same payment, while it is worth waiting for. */
#define BEHIND                                                                              \
    "(e.payment_id <> " NOBODY                                                              \
    " AND EXISTS (SELECT 1 FROM idem.deliveries b"                                          \
    " WHERE b.due_us > 0 AND b.webhook_row = e.webhook_row AND b.payment_id = e.payment_id" \
    " AND b.message_row < e.message_row AND b.attempts <= 5))"
/*
 * Of a page: state (0: any); webhook, principal. By CASE, of which the planner thinks that it holds
 * for many: a page is then walked in its order, and not made by sorting all there is.
 */
#define IN_PAGE                                                           \
    "d.row < $1 AND d.message_row <= $1::bigint / " IDEM_POSTGRES_FAN_OUT \
    " AND CASE WHEN $2::bigint = 0 THEN true ELSE d.state = $2::bigint END"
#define OF_WHOM                          \
    " AND CASE WHEN $3::bytea = " NOBODY \
    " THEN true ELSE w.id = $3 END"      \
    " AND CASE WHEN $4::text = '' THEN true ELSE m.principal = $4 END"
/*
 * Walked by messages, the newest first, each with the webhooks that it may have gone to. OFFSET 0
 * keeps the planner from turning that inside out.
 */
#define BY_MESSAGE(whose)                                                                 \
    "(d.webhook_row, d.message_row) IN (SELECT k.webhook_row, n.row FROM idem.messages n" \
    " CROSS JOIN LATERAL (SELECT d.webhook_row, d.row FROM idem.webhooks v"               \
    " JOIN idem.deliveries d ON d.webhook_row = v.row AND d.message_row = n.row"          \
    " WHERE v.principal = n.principal AND " IN_PAGE                                       \
    " OFFSET 0) k"                                                                        \
    " WHERE n.row <= $1 / " IDEM_POSTGRES_FAN_OUT whose                                   \
    " ORDER BY n.row DESC, k.row DESC LIMIT 17)"
#define NEWEST_POSTS " ORDER BY d.message_row DESC, d.row DESC LIMIT 17"
/*
 * So many that a batch can wait for them, the newest first: nothing is left that waits behind what
 * is gone. What somebody has in hand is left for the next time.
 */
#define DROP(whom, when)                                                                     \
    "WITH held AS (SELECT webhook_row, message_row FROM idem.deliveries WHERE " whom         \
    " ORDER BY message_row DESC LIMIT 4096 FOR UPDATE SKIP LOCKED) UPDATE idem.deliveries d" \
    " SET state = 3, due_us = 0, finished_us = " when                                        \
    ", version = version + 1 FROM held"                                                      \
    " WHERE d.webhook_row = held.webhook_row AND d.message_row = held.message_row"
/*
 * When the first of a payment's deliveries to a webhook is put off, those behind it are put off as
 * long: a receiver that is down would have them all in front of what can be posted, at each look.
 * Whether one may be posted is still said by BEHIND. Nobody waits for a lock here: what is passed
 * over keeps its time, which is found late at worst.
 */
#define UNTRIED "attempts = 0 AND token = " NOBODY
#define PUT_OFF(webhook)                                                              \
    "greatest($5, (SELECT max(b.due_us) FROM (SELECT e.due_us FROM idem.deliveries e" \
    " WHERE $4 <> " NOBODY " AND e.due_us > 0 AND e.webhook_row = " webhook           \
    " AND e.payment_id = $4 AND e.attempts BETWEEN 1 AND 5 AND e.token = " NOBODY     \
    " FOR SHARE SKIP LOCKED) b))"
#define MESSAGE_FOR(whom)                                                                      \
    "WITH told AS (SELECT row, row_number() OVER (ORDER BY row) - 1 AS place"                  \
    " FROM idem.webhooks WHERE " whom " LIMIT " IDEM_POSTGRES_FAN_OUT                          \
    "),"                                                                                       \
    " message AS (INSERT INTO idem.messages (id, type, principal, payment_id, at_us, data)"    \
    " SELECT $1::bytea, $2::bigint, $3::text, $4::bytea, $5::bigint, $6::bytea"                \
    " WHERE EXISTS (SELECT 1 FROM told) ON CONFLICT (id) DO NOTHING RETURNING row)"            \
    " INSERT INTO idem.deliveries (row, version, message_row, webhook_row, payment_id, state," \
    " attempts, due_us, token, last_status, last_error, created_us, finished_us)"              \
    " SELECT m.row * " IDEM_POSTGRES_FAN_OUT                                                   \
    " + t.place, 1, m.row, t.row, $4, 1, 0,"                                                   \
    " " PUT_OFF("t.row") ", " NOBODY ", 0, '', $5, 0 FROM message m, told t"
#define HANDLES(table) \
    "SELECT nextval('idem." table "_row_seq') FROM generate_series(1, $1::bigint)"

enum sql_shape {
    SQL_PLAIN = 0,     /* The tail is all of it. */
    SQL_SELECT,        /* Handle and columns of the table; tail: the condition. */
    SQL_SELECT_BELOW,  /* Handle of the intent and columns of a table below intents. */
    SQL_INSERT,        /* The row's handle, then the columns; tail: ON CONFLICT. */
    SQL_INSERT_BELOW,  /* Handle of the intent, then the columns. */
    SQL_SELECT_CASE,   /* A case `c` and the entry of its intent `i`; tail: the condition. */
    SQL_SELECT_PAIR,   /* Ids of message `m` and webhook `w`, and their delivery `d`; likewise. */
    SQL_SELECT_POST,   /* The delivery, and all of them; likewise. */
    SQL_SELECT_EFFECT, /* Handle of `intents`, columns that say whose they are; tail: FROM. */
    SQL_UPDATE         /* Columns that are not fixed; tail: the guard, by @1, @2 behind them. */
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
    [IDEM_POSTGRES_INTENT_BY_CASE] = { SQL_SELECT, &idem_table_intents,
                                       "row = (SELECT intent_row FROM idem.cases WHERE id = $1)" },
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
                             " WHERE reap_us > 0 AND reap_us <= $3 AND row " IS_MINE
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
                                   "SELECT kind, decided_us = 0 FROM idem.cases"
                                   " WHERE intent_row = $1" },
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
                                " (SELECT count(*) FROM idem.deliveries WHERE due_us > 0),"
                                " (SELECT count(*) FROM idem.deliveries WHERE state = 3),"
                                " coalesce((SELECT min(created_us) FROM idem.deliveries"
                                " WHERE due_us > 0), 0),"
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
    [IDEM_POSTGRES_CASE_LIST] = { SQL_SELECT_CASE, &idem_table_cases,
                                  "c.row < $1 AND ($2::bigint = 0 OR c.kind = $2::bigint)"
                                  " ORDER BY c.row DESC LIMIT 33" },
    [IDEM_POSTGRES_CASE_LIST_OPEN] = { SQL_SELECT_CASE, &idem_table_cases,
                                       "c.decided_us = 0 AND c.row < $1"
                                       " AND ($2::bigint = 0 OR c.kind = $2::bigint)"
                                       " ORDER BY c.row DESC LIMIT 33" },
    [IDEM_POSTGRES_EVENT_SEEN] = { SQL_PLAIN, NULL,
                                   "SELECT 1 FROM idem.inbox WHERE entry = $1 AND event_id = $2" },
    [IDEM_POSTGRES_LISTENED] = { SQL_PLAIN, NULL,
                                 "SELECT 1 FROM idem.webhooks WHERE principal = $1 AND " TOLD
                                 " LIMIT 1" },
    [IDEM_POSTGRES_WEBHOOK_BY_ROW] = { SQL_SELECT, &idem_table_webhooks, "row = $1" },
    [IDEM_POSTGRES_WEBHOOK_BY_ID] = { SQL_SELECT, &idem_table_webhooks,
                                      "id = $1 AND principal = $2" },
    [IDEM_POSTGRES_WEBHOOK_BY_ANY_ID] = { SQL_SELECT, &idem_table_webhooks, "id = $1" },
    [IDEM_POSTGRES_WEBHOOKS_COUNT] = { SQL_PLAIN, NULL,
                                       "SELECT count(*) FROM idem.webhooks WHERE principal = $1" },
    [IDEM_POSTGRES_WEBHOOKS_PAGE] = { SQL_SELECT, &idem_table_webhooks,
                                      "row > $1 ORDER BY row LIMIT $2" },
    [IDEM_POSTGRES_WEBHOOKS_PAGE_OF] = { SQL_SELECT, &idem_table_webhooks,
                                         "row > $1 AND principal = $3 ORDER BY row LIMIT $2" },
    [IDEM_POSTGRES_DELIVERY] = { SQL_SELECT_PAIR, &idem_table_deliveries,
                                 "m.id = $1 AND w.id = $2" },
    /* Webhook by webhook: a merchant who is slow, or away, holds up nobody else's. */
    [IDEM_POSTGRES_POSTS] = { SQL_SELECT_POST, &idem_table_deliveries,
                              "(d.webhook_row, d.message_row) IN (WITH RECURSIVE busy(row) AS"
                              " ((SELECT webhook_row FROM idem.deliveries WHERE due_us > 0"
                              " ORDER BY webhook_row LIMIT 1) UNION ALL SELECT (SELECT webhook_row"
                              " FROM idem.deliveries WHERE due_us > 0 AND webhook_row > busy.row"
                              " ORDER BY webhook_row LIMIT 1) FROM busy WHERE row IS NOT NULL)"
                              " SELECT n.webhook_row, n.message_row FROM busy"
                              " JOIN idem.webhooks v ON v.row = busy.row AND v." TOLD
                              " AND NOT v.row = ANY(string_to_array($4, ',')::bigint[])"
                              " CROSS JOIN LATERAL (SELECT e.webhook_row, e.message_row, e.due_us,"
                              " e.row FROM idem.deliveries e WHERE e.webhook_row = v.row"
                              " AND e.due_us > 0 AND e.due_us <= $3"
                              /* A minute late: anybody's. By CASE as above. */
                              " AND CASE WHEN e.due_us <= $3 - 60000000 THEN true"
                              " ELSE (e.webhook_row + e.message_row) " IS_MINE " END"
                              " AND CASE WHEN " BEHIND " THEN false ELSE true END"
                              " ORDER BY e.due_us, e.row LIMIT 17) n"
                              " ORDER BY n.due_us, n.row LIMIT 17)"
                              " ORDER BY d.due_us, d.row" },
    [IDEM_POSTGRES_DELIVERIES] = { SQL_SELECT_POST, &idem_table_deliveries,
                                   BY_MESSAGE("") NEWEST_POSTS },
    [IDEM_POSTGRES_DELIVERIES_OF] = { SQL_SELECT_POST, &idem_table_deliveries,
                                      BY_MESSAGE(" AND n.principal = $3") NEWEST_POSTS },
    [IDEM_POSTGRES_DELIVERIES_TO] = { SQL_SELECT_POST, &idem_table_deliveries,
                                      "d.webhook_row = (SELECT row FROM idem.webhooks"
                                      " WHERE id = $3) AND " IN_PAGE OF_WHOM NEWEST_POSTS },
    /* All that are pending are sorted: no index has them in this order. */
    [IDEM_POSTGRES_DELIVERIES_PENDING] = { SQL_SELECT_POST, &idem_table_deliveries,
                                           "d.due_us > 0 AND " IN_PAGE OF_WHOM
                                           " ORDER BY d.message_row + 0 DESC, d.row DESC"
                                           " LIMIT 17" },
    [IDEM_POSTGRES_DELIVERIES_DEAD] = { SQL_SELECT_POST, &idem_table_deliveries,
                                        "d.state = 3 AND " IN_PAGE OF_WHOM NEWEST_POSTS },
    [IDEM_POSTGRES_EFFECTS] = { SQL_SELECT_EFFECT, &idem_table_effects,
                                "FROM idem.intents LEFT JOIN idem.payments"
                                " ON payments.row = intents.payment_row"
                                " WHERE intents.row > $1 AND intents.row <= $2"
                                " AND intents.entry = $3 AND intents.effect_kind > 0"
                                " AND intents.created_us >= $4 AND intents.created_us < $5"
                                " ORDER BY intents.row LIMIT $6" },
    [IDEM_POSTGRES_LAST] = { SQL_PLAIN, NULL, "SELECT coalesce(max(row), 0) FROM idem.intents" },
    [IDEM_POSTGRES_CREATED] = { SQL_PLAIN, NULL,
                                "SELECT row, created_us FROM idem.intents"
                                " WHERE row >= $1 ORDER BY row LIMIT 1" },
    [IDEM_POSTGRES_LOCK_SHARED] = { SQL_PLAIN, NULL,
                                    "SELECT 1 FROM pg_advisory_xact_lock_shared"
                                    "(" IDEM_POSTGRES_LOCKS ", 1)" },
    [IDEM_POSTGRES_LOCK_ALONE] = { SQL_PLAIN, NULL,
                                   "SELECT 1 FROM pg_advisory_xact_lock"
                                   "(" IDEM_POSTGRES_LOCKS ", 1)" },
    [IDEM_POSTGRES_AHEAD_KNOWLEDGE] = { SQL_PLAIN, NULL,
                                        "SELECT " NOW_US ", pg_is_in_recovery()," STUBS "," MARKS
                                        "," BIRTH "," SCHEMA "," STANDBYS "," SOMEBODY },
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
    [IDEM_POSTGRES_AHEAD_LISTENED] = { SQL_PLAIN, NULL,
                                       "SELECT p, EXISTS (SELECT 1 FROM idem.webhooks"
                                       " WHERE principal = p AND " TOLD ") FROM (SELECT"
                                       " p COLLATE \"C\" FROM unnest($2::text[]) a(p) UNION"
                                       " SELECT principal FROM idem.intents"
                                       " WHERE " OF_SCOPES ") n(p) WHERE " SOMEBODY },
    [IDEM_POSTGRES_AHEAD_EVENTS] = { SQL_PLAIN, NULL,
                                     "SELECT entry, event_id FROM idem.inbox"
                                     " WHERE (entry, event_id) IN (SELECT n COLLATE \"C\", e"
                                     " FROM unnest($1::text[], $2::bytea[]) a(n, e))" },
    [IDEM_POSTGRES_AHEAD_WEBHOOKS] = { SQL_SELECT, &idem_table_webhooks,
                                       "id = ANY($1::bytea[]) ORDER BY id" },
    [IDEM_POSTGRES_AHEAD_DELIVERIES] = { SQL_SELECT_PAIR, &idem_table_deliveries,
                                         "(m.id, w.id) IN (SELECT * FROM"
                                         " unnest($1::bytea[], $2::bytea[]))"
                                         " ORDER BY d.row FOR UPDATE OF d" },
    [IDEM_POSTGRES_HANDLES_INTENTS] = { SQL_PLAIN, NULL, HANDLES("intents") },
    [IDEM_POSTGRES_HANDLES_PAYMENTS] = { SQL_PLAIN, NULL, HANDLES("payments") },
    [IDEM_POSTGRES_HANDLES_REFUNDS] = { SQL_PLAIN, NULL, HANDLES("refunds") },
    [IDEM_POSTGRES_HANDLES_STUBS] = { SQL_PLAIN, NULL, HANDLES("stubs") },
    [IDEM_POSTGRES_HANDLES_CREDENTIALS] = { SQL_PLAIN, NULL, HANDLES("credentials") },
    [IDEM_POSTGRES_HANDLES_WEBHOOKS] = { SQL_PLAIN, NULL, HANDLES("webhooks") },
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
    [IDEM_POSTGRES_INBOX_INSERT] = { SQL_PLAIN, NULL,
                                     "INSERT INTO idem.inbox (entry, event_id, first_us, last_us,"
                                     " count, known) VALUES ($1, $2, $3, $3, 1, $4)"
                                     " ON CONFLICT DO NOTHING" },
    [IDEM_POSTGRES_INBOX_UPDATE] = { SQL_PLAIN, NULL,
                                     "UPDATE idem.inbox SET count = count + 1,"
                                     " last_us = greatest(last_us, $3), known = known OR $4"
                                     " WHERE entry = $1 AND event_id = $2" },
    [IDEM_POSTGRES_MESSAGE_ADD] = { SQL_PLAIN, NULL,
                                    MESSAGE_FOR("principal = $3::text AND " TOLD
                                                " AND types >> $2::bigint::integer & 1 = 1") },
    [IDEM_POSTGRES_MESSAGE_ADD_TO] = { SQL_PLAIN, NULL, MESSAGE_FOR("row = $7") },
    [IDEM_POSTGRES_WEBHOOK_INSERT] = { SQL_INSERT, &idem_table_webhooks, "ON CONFLICT DO NOTHING" },
    [IDEM_POSTGRES_WEBHOOK_UPDATE] = { SQL_UPDATE, &idem_table_webhooks,
                                       "row = @1 AND version = @2" },
    [IDEM_POSTGRES_DELIVERY_UPDATE] = { SQL_UPDATE, &idem_table_deliveries,
                                        "webhook_row = @1 AND message_row = @2 AND version = @3" },
    [IDEM_POSTGRES_DELIVERIES_TAKE_ALONG] = { SQL_PLAIN, NULL,
                                              "WITH behind AS (SELECT webhook_row, message_row"
                                              " FROM idem.deliveries WHERE webhook_row = $1"
                                              " AND payment_id = $2 AND message_row > $3"
                                              " AND due_us > 0 AND due_us < $4 AND " UNTRIED
                                              " FOR UPDATE SKIP LOCKED)"
                                              " UPDATE idem.deliveries d SET due_us = $4"
                                              " FROM behind b"
                                              " WHERE d.webhook_row = b.webhook_row"
                                              " AND d.message_row = b.message_row" },
    [IDEM_POSTGRES_DELIVERY_NEXT] = { SQL_PLAIN, NULL,
                                      "WITH next AS (SELECT webhook_row, message_row"
                                      " FROM idem.deliveries WHERE webhook_row = $1"
                                      " AND payment_id = $2 AND message_row > $3 AND due_us > 0"
                                      " ORDER BY message_row LIMIT 1 FOR UPDATE SKIP LOCKED)"
                                      " UPDATE idem.deliveries d SET due_us = created_us"
                                      " FROM next n WHERE d.webhook_row = n.webhook_row"
                                      " AND d.message_row = n.message_row"
                                      " AND due_us > created_us AND " UNTRIED },
    [IDEM_POSTGRES_DELIVERIES_DROP] = { SQL_PLAIN, NULL,
                                        DROP("webhook_row = $1 AND due_us > 0", "$2") },
    [IDEM_POSTGRES_SWEEP_DROPPED] = { SQL_PLAIN, NULL,
                                      DROP("webhook_row = (SELECT v.row FROM idem.webhooks v"
                                           " WHERE v.disabled_us > 0 AND EXISTS (SELECT 1"
                                           " FROM idem.deliveries e WHERE e.webhook_row = v.row"
                                           " AND e.due_us > 0) LIMIT 1) AND due_us > 0",
                                           "(SELECT disabled_us FROM idem.webhooks v"
                                           " WHERE v.row = d.webhook_row)") },
    [IDEM_POSTGRES_SWEEP_INBOX] = { SQL_PLAIN, NULL,
                                    "WITH old AS (SELECT entry, event_id FROM idem.inbox"
                                    " WHERE last_us < $1 ORDER BY last_us LIMIT 256"
                                    " FOR UPDATE SKIP LOCKED) DELETE FROM idem.inbox i USING old"
                                    " WHERE i.entry = old.entry AND i.event_id = old.event_id" },
    /* Whoever replayed one meanwhile is seen once its delivery is locked. */
    [IDEM_POSTGRES_SWEEP_MESSAGES] = { SQL_PLAIN, NULL,
                                       "WITH old AS (SELECT row, principal FROM idem.messages m"
                                       " WHERE at_us < $1 AND NOT EXISTS (SELECT 1"
                                       " FROM idem.webhooks w JOIN idem.deliveries d"
                                       " ON d.webhook_row = w.row WHERE w.principal = m.principal"
                                       " AND d.message_row = m.row AND d.state = 1)"
                                       " ORDER BY at_us, row LIMIT 256 FOR UPDATE SKIP LOCKED),"
                                       " held AS (SELECT d.message_row, d.webhook_row, d.due_us"
                                       " FROM old JOIN idem.webhooks w USING (principal)"
                                       " JOIN idem.deliveries d ON d.webhook_row = w.row"
                                       " AND d.message_row = old.row ORDER BY d.row"
                                       " FOR UPDATE OF d), past AS (SELECT row FROM old"
                                       " WHERE NOT EXISTS (SELECT 1 FROM held"
                                       " WHERE message_row = old.row AND due_us > 0)),"
                                       " below AS (DELETE FROM idem.deliveries d"
                                       " USING held JOIN past ON past.row = held.message_row"
                                       " WHERE d.webhook_row = held.webhook_row"
                                       " AND d.message_row = held.message_row)"
                                       " DELETE FROM idem.messages m USING past"
                                       " WHERE m.row = past.row" },
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

static void columns_print(const struct idem_table *table, const char *of, struct idem_buf *buf)
{
    for (size_t i = 0; i < table->column_count; i++) {
        idem_buf_printf(buf, ",%s%s", of, table->columns[i].name);
    }
}

static void select_print(const struct sql *sql, struct idem_buf *buf)
{
    idem_buf_printf(buf, sql->shape == SQL_SELECT ? "SELECT row" : "SELECT intent_row");
    columns_print(sql->table, "", buf);
    idem_buf_printf(buf, " FROM idem.%s WHERE %s", sql->table->name, sql->tail);
}

static void case_print(const struct sql *sql, struct idem_buf *buf)
{
    idem_buf_printf(buf, "SELECT c.row");
    columns_print(&idem_table_cases, "c.", buf);
    columns_print(&idem_table_entries, "i.", buf);
    idem_buf_printf(buf, " FROM idem.cases c JOIN idem.intents i ON i.row = c.intent_row WHERE %s",
                    sql->tail);
}

/* A delivery is of a message, to a webhook. */
static void delivery_print(const struct sql *sql, struct idem_buf *buf)
{
    idem_buf_printf(buf, sql->shape == SQL_SELECT_PAIR ? "SELECT d.row,m.id,w.id" : "SELECT d.row");
    columns_print(&idem_table_deliveries, "d.", buf);
    if (sql->shape == SQL_SELECT_POST) {
        idem_buf_printf(buf, ",m.row");
        columns_print(&idem_table_messages, "m.", buf);
        idem_buf_printf(buf, ",w.row");
        columns_print(&idem_table_webhooks, "w.", buf);
    }
    idem_buf_printf(buf,
                    " FROM idem.deliveries d JOIN idem.messages m ON m.row = d.message_row"
                    " JOIN idem.webhooks w ON w.row = d.webhook_row WHERE %s",
                    sql->tail);
}

static void effect_print(const struct sql *sql, struct idem_buf *buf)
{
    idem_buf_printf(buf, "SELECT intents.row");
    columns_print(sql->table, "", buf);
    idem_buf_printf(buf, " %s", sql->tail);
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
    case SQL_SELECT_CASE:
        case_print(sql, buf);
        return;
    case SQL_SELECT_PAIR:
    case SQL_SELECT_POST:
        delivery_print(sql, buf);
        return;
    case SQL_SELECT_EFFECT:
        effect_print(sql, buf);
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
