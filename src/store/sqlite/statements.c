/*
 * The SQL of every statement.
 *
 * It is made from the column tables once, when a connection opens, and prepared for as long as that
 * lives: preparing per call halves the rate. What a reader lists is chosen by partial indexes that
 * hold only what is not over, so a million finished records cost it nothing; the tests ask SQLite's
 * planner whether that is so.
 */
#include <assert.h>

#include "store/sqlite/rows_internal.h"
#include "store/sqlite/schema.h"

static_assert(IDEM_PAYMENT_FAILED == 7, "schema.h, HOLDS_ORDER");
static_assert(IDEM_PAYMENT_CANCELED == 8, "schema.h, HOLDS_ORDER");
static_assert(IDEM_REFUND_FAILED == 3, "schema.h, HOLDS_REFUND");
static_assert(IDEM_INTENT_COUNT == 8, "schema.h, intents.state");
static_assert(IDEM_PAYMENT_COUNT == 10, "schema.h, payments.state");
static_assert(IDEM_REFUND_COUNT == 4, "schema.h, refunds.state");
static_assert(IDEM_SEND_COUNT == 5, "schema.h, sends.state");
static_assert(offsetof(struct idem_intent, row) == 0, "handles come first");
static_assert(offsetof(struct idem_payment, row) == 0, "handles come first");
static_assert(offsetof(struct idem_refund, row) == 0, "handles come first");
static_assert(offsetof(struct idem_stub, row) == 0, "handles come first");
static_assert(offsetof(struct idem_credential_row, row) == 0, "handles come first");
static_assert(offsetof(struct idem_entry, row) == 0, "handles come first");
static_assert(IDEM_EFFECT_KIND_CHARGE == 1, "schema.h, MAKES_PAYMENT");
static_assert(IDEM_EFFECT_KIND_AUTHORIZE == 2, "schema.h, MAKES_PAYMENT");
static_assert(IDEM_EFFECT_KIND_COUNT == 6, "schema.h, stubs.kind");
static_assert(IDEM_ROLE_COUNT == 3, "schema.h, credentials.role");
static_assert(offsetof(struct idem_webhook, row) == 0, "handles come first");
static_assert(offsetof(struct idem_delivery, row) == 0, "handles come first");
static_assert(offsetof(struct idem_effect_line, row) == 0, "handles come first");
static_assert(IDEM_DELIVERY_PENDING == 1, "schema.h, IS_PENDING");
static_assert(IDEM_DELIVERY_DEAD == 3, "DELIVERIES_DEAD, DELIVERIES_DROP");
static_assert(IDEM_DELIVERY_COUNT == 4, "schema.h, deliveries.state");
static_assert(IDEM_INTENT_UNKNOWN == 3, "UNKNOWN_SINCE");
static_assert(IDEM_INTENT_PARKED == 4, "UNKNOWN_SINCE");

#define SQL_MAX 2048

enum sql_shape {
    SQL_PLAIN = 0,    /* The tail is all of it. */
    SQL_SELECT,       /* Handle and columns of the table; tail: the condition. */
    SQL_SELECT_BELOW, /* Columns of a table below intents. */
    SQL_SELECT_CASES, /* Handle, the intent's, and columns; tail: FROM and the condition. */
    SQL_SELECT_POSTS, /* Handle and columns of `d`, then columns of `m` and `w`; likewise. */
    SQL_SELECT_LINES, /* Of intents with their payments; tail: the condition. */
    SQL_INSERT,       /* Columns of the table; tail: ON CONFLICT. */
    SQL_INSERT_BELOW, /* Handle of the intent, then the columns. */
    SQL_INSERT_AT,    /* The row's own handle, then the columns. */
    SQL_UPDATE        /* Columns that are not fixed; tail: the guard. */
};

struct sql {
    enum sql_shape shape;
    const struct idem_table *table;
    const char *tail;
};

#define POST_TABLES                                   \
    " CROSS JOIN messages m ON m.row = d.message_row" \
    " CROSS JOIN webhooks w ON w.row = d.webhook_row"

/* Sixteen parameters that a handle is none of. */
#define SKIP_16 "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?"
static_assert(IDEM_READ_SKIP_MAX == 32, "POSTS_DUE");

/* The first webhook behind `row` that something is due for, now or later. */
#define WEBHOOK_BEHIND(row)                                                            \
    "(SELECT x.webhook_row FROM deliveries x INDEXED BY deliveries_due"                \
    " WHERE x." IDEM_SQLITE_IS_PENDING IDEM_SQLITE_IS_NEXT " AND x.webhook_row > " row \
    " ORDER BY x.webhook_row LIMIT 1)"

/* Webhooks that something is due for, stepped through by the index. */
#define BUSY                                                                                      \
    "WITH RECURSIVE h (row) AS (SELECT " WEBHOOK_BEHIND("0") " UNION ALL SELECT " WEBHOOK_BEHIND( \
        "h.row") " FROM h WHERE h.row IS NOT NULL)"

/*
 * The earliest of each webhook, and of these the earliest: one with much to do, or with much that
 * is not given up yet since it was disabled, costs the others nothing.
 */
#define POSTS_DUE                                                                         \
    " FROM deliveries d" POST_TABLES " WHERE d.row IN (" BUSY                             \
    "  SELECT p.row FROM h CROSS JOIN webhooks v ON v.row = h.row AND v.disabled_us = 0"  \
    "  CROSS JOIN deliveries p ON p.row IN"                                               \
    "   (SELECT x.row FROM deliveries x INDEXED BY deliveries_due"                        \
    "    WHERE x." IDEM_SQLITE_IS_PENDING IDEM_SQLITE_IS_NEXT                             \
    "    AND x.webhook_row = h.row AND x.due_us <= ?1 ORDER BY x.due_us, x.row LIMIT ?2)" \
    "  WHERE h.row NOT IN (" SKIP_16 "," SKIP_16                                          \
    "))"                                                                                  \
    " ORDER BY d.due_us, d.row LIMIT ?2"

/* The newest of a page among those of each state of some webhooks, each found by an index. */
#define POSTS_OF(webhooks)                                                          \
    " FROM deliveries d" POST_TABLES                                                \
    " WHERE d.row IN (SELECT p.row FROM webhooks h"                                 \
    "  CROSS JOIN (SELECT 1 AS state UNION ALL SELECT 2 UNION ALL SELECT 3) states" \
    "  CROSS JOIN deliveries p ON p.row IN"                                         \
    "   (SELECT x.row FROM deliveries x INDEXED BY deliveries_webhook"              \
    "    WHERE x.webhook_row = h.row AND x.state = states.state AND x.row < ?1"     \
    "    ORDER BY x.row DESC LIMIT ?2)"                                             \
    "  WHERE " webhooks                                                             \
    " AND states.state BETWEEN ?4 AND ?5)"                                          \
    " ORDER BY d.row DESC LIMIT ?2"

/* An earlier message of the payment is still to be told there, and was not tried too often. */
#define HELD(webhook_row, payment_id, message_row)                         \
    "(" payment_id                                                         \
    " <> zeroblob(16) AND EXISTS"                                          \
    " (SELECT 1 FROM deliveries e INDEXED BY deliveries_order"             \
    " WHERE e." IDEM_SQLITE_IS_PENDING " AND e.webhook_row = " webhook_row \
    " AND e.payment_id = " payment_id " AND e.message_row < " message_row " AND e.attempts <= 5))"
static_assert(IDEM_POST_ORDERED_MAX == 5, "HELD");

/* A delivery that is new; the rest of the statement says to whom. */
#define DELIVERY_INSERT                                                                       \
    "INSERT INTO deliveries (version, message_row, webhook_row, payment_id, state, attempts," \
    " due_us, token, last_status, last_error, created_us, finished_us, held)"                 \
    " SELECT 1, ?1, webhooks.row, ?2, 1, 0, ?3, zeroblob(16), 0, '', ?3, 0, " HELD(           \
        "webhooks.row", "?2", "?1") " FROM webhooks WHERE "

/* Old messages of which nothing is still to be delivered; each is asked by its own deliveries. */
#define SWEPT                                                                 \
    "(SELECT m.row FROM messages m INDEXED BY messages_at WHERE m.at_us < ?1" \
    " AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_row = m.row" \
    " AND +d." IDEM_SQLITE_IS_PENDING ") ORDER BY m.at_us, m.row LIMIT ?2)"

static const struct sql sqls[IDEM_SQLITE_STATEMENT_COUNT] = {
    [IDEM_SQLITE_BEGIN] = { SQL_PLAIN, NULL, "BEGIN" },
    [IDEM_SQLITE_COMMIT] = { SQL_PLAIN, NULL, "COMMIT" },
    [IDEM_SQLITE_ROLLBACK] = { SQL_PLAIN, NULL, "ROLLBACK" },
    [IDEM_SQLITE_INCARNATION] = { SQL_PLAIN, NULL,
                                  "SELECT value FROM meta WHERE key = 'incarnation'" },
    [IDEM_SQLITE_INTENT_BY_ROW] = { SQL_SELECT, &idem_table_intents, "row = ? AND scope = ?" },
    [IDEM_SQLITE_INTENT_BY_ANY_ID] = { SQL_SELECT, &idem_table_intents, "id = ?" },
    [IDEM_SQLITE_INTENT_BY_ID] = { SQL_SELECT, &idem_table_intents, "id = ? AND principal = ?" },
    [IDEM_SQLITE_INTENT_BY_SCOPE] = { SQL_SELECT, &idem_table_intents, "scope = ?" },
    [IDEM_SQLITE_INTENT_BY_CASE] = { SQL_SELECT, &idem_table_intents,
                                     "row = (SELECT intent_row FROM cases WHERE id = ?)" },
    [IDEM_SQLITE_PAYMENT_BY_ROW] = { SQL_SELECT, &idem_table_payments, "row = ?" },
    [IDEM_SQLITE_PAYMENT_BY_ANY_ID] = { SQL_SELECT, &idem_table_payments, "id = ?" },
    [IDEM_SQLITE_PAYMENT_BY_ID] = { SQL_SELECT, &idem_table_payments, "id = ? AND principal = ?" },
    [IDEM_SQLITE_PAYMENT_HOLDER] = { SQL_SELECT, &idem_table_payments,
                                     "principal = ? AND order_no = ?"
                                     " AND " IDEM_SQLITE_HOLDS_ORDER },
    [IDEM_SQLITE_PAYMENT_PAST] = { SQL_SELECT, &idem_table_payments,
                                   "principal = ? AND order_no = ?"
                                   " AND " IDEM_SQLITE_PAST_ORDER " ORDER BY row DESC LIMIT 1" },
    [IDEM_SQLITE_REFUND_BY_ROW] = { SQL_SELECT, &idem_table_refunds, "row = ?" },
    [IDEM_SQLITE_REFUND_BY_ID] = { SQL_SELECT, &idem_table_refunds, "id = ? AND principal = ?" },
    [IDEM_SQLITE_REFUND_HOLDER] = { SQL_SELECT, &idem_table_refunds,
                                    "payment_row = ? AND refund_no = ?"
                                    " AND " IDEM_SQLITE_HOLDS_REFUND },
    [IDEM_SQLITE_SENDS] = { SQL_SELECT_BELOW, &idem_table_sends, "intent_row = ? ORDER BY no" },
    [IDEM_SQLITE_EVENTS] = { SQL_SELECT_BELOW, &idem_table_events,
                             "intent_row = ? ORDER BY row DESC" },
    [IDEM_SQLITE_EVENTS_TOTAL] = { SQL_PLAIN, NULL,
                                   "SELECT count(*) FROM events WHERE intent_row = ?" },
    [IDEM_SQLITE_DUE] = { SQL_PLAIN, NULL,
                          "SELECT row, due_us, scope FROM intents INDEXED BY intents_due"
                          " WHERE due_us > 0 AND due_us <= ? ORDER BY due_us, row LIMIT ?" },
    [IDEM_SQLITE_DUE_NEXT] = { SQL_PLAIN, NULL,
                               "SELECT due_us FROM intents INDEXED BY intents_due"
                               " WHERE due_us > 0 AND due_us > ? ORDER BY due_us LIMIT 1" },
    /* Whatever is not final has a due time: the index of those is the short way. */
    [IDEM_SQLITE_LEFT] = { SQL_PLAIN, NULL,
                           "SELECT row, due_us, scope FROM intents INDEXED BY intents_due"
                           " WHERE due_us > 0 AND lease_end_us > 0 AND incarnation <> ?"
                           " AND row > ? ORDER BY row LIMIT ?" },
    [IDEM_SQLITE_REAP] = { SQL_PLAIN, NULL,
                           "SELECT row, reap_us, scope FROM intents INDEXED BY intents_reap"
                           " WHERE reap_us > 0 AND reap_us <= ? ORDER BY reap_us, row LIMIT ?" },
    [IDEM_SQLITE_REAP_NEXT] = { SQL_PLAIN, NULL,
                                "SELECT reap_us FROM intents INDEXED BY intents_reap"
                                " WHERE reap_us > 0 AND reap_us > ? ORDER BY reap_us LIMIT 1" },
    [IDEM_SQLITE_CASES] = { SQL_SELECT_BELOW, &idem_table_cases,
                            "intent_row = ? ORDER BY row DESC" },
    [IDEM_SQLITE_CASE_OPEN] = { SQL_SELECT_BELOW, &idem_table_cases,
                                "intent_row = ? AND decided_us = 0 ORDER BY row DESC LIMIT 1" },
    [IDEM_SQLITE_CASE_KINDS] = { SQL_PLAIN, NULL,
                                 "SELECT kind, decided_us FROM cases WHERE intent_row = ?" },
    /* The rows of a page are chosen in the index alone; only they are fetched. */
    [IDEM_SQLITE_ENTRIES] = { SQL_SELECT, &idem_table_entries,
                              "row IN (SELECT row FROM intents INDEXED BY intents_due"
                              " WHERE due_us > 0 AND row > ? AND state BETWEEN ? AND ?"
                              " ORDER BY row LIMIT ?) ORDER BY row" },
    [IDEM_SQLITE_ENTRIES_CASES] = { SQL_SELECT, &idem_table_entries,
                                    "row IN (SELECT DISTINCT intent_row FROM cases"
                                    " INDEXED BY cases_open WHERE decided_us = 0"
                                    " AND intent_row > ? ORDER BY intent_row LIMIT ?)"
                                    " ORDER BY row" },
    [IDEM_SQLITE_ENTRIES_PAYMENT] = { SQL_SELECT, &idem_table_entries,
                                      "payment_row > 0 AND payment_row = ? AND row > ?"
                                      " ORDER BY row LIMIT ?" },
    [IDEM_SQLITE_ENTRY_BY_ROW] = { SQL_SELECT, &idem_table_entries, "row = ?" },
    [IDEM_SQLITE_CASES_PAGE] = { SQL_SELECT_CASES, &idem_table_cases,
                                 " FROM cases WHERE row < ? AND kind BETWEEN ? AND ?"
                                 " ORDER BY row DESC LIMIT ?" },
    [IDEM_SQLITE_CASES_PAGE_OPEN] = { SQL_SELECT_CASES, &idem_table_cases,
                                      " FROM cases WHERE row IN (SELECT row FROM cases"
                                      " INDEXED BY cases_open WHERE decided_us = 0 AND row < ?)"
                                      " AND kind BETWEEN ? AND ? ORDER BY row DESC LIMIT ?" },
    [IDEM_SQLITE_CREATED] = { SQL_PLAIN, NULL,
                              "SELECT row, created_us FROM intents WHERE row >= ?"
                              " ORDER BY row LIMIT 1" },
    [IDEM_SQLITE_EFFECTS] = { SQL_SELECT_LINES, &idem_table_effects,
                              "intents.row > ? AND intents.row < ? AND intents.created_us >= ?"
                              " AND intents.created_us < ? AND intents.effect_kind > 0"
                              " AND intents.entry = ? ORDER BY intents.row LIMIT ?" },
    [IDEM_SQLITE_CREDENTIALS_PAGE] = { SQL_SELECT, &idem_table_credentials,
                                       "row > ? ORDER BY row LIMIT ?" },
    [IDEM_SQLITE_PLACES] = { SQL_PLAIN, NULL,
                             "SELECT DISTINCT entry, account, region FROM payments LIMIT ?" },
    [IDEM_SQLITE_STATES] = { SQL_PLAIN, NULL,
                             "SELECT state, count(*) FROM intents INDEXED BY intents_due"
                             " WHERE due_us > 0 GROUP BY state" },
    [IDEM_SQLITE_UNKNOWN_SINCE] = { SQL_PLAIN, NULL,
                                    "SELECT min(unknown_since_us) FROM intents"
                                    " INDEXED BY intents_due WHERE due_us > 0"
                                    " AND state IN (3, 4) AND unknown_since_us > 0" },
    [IDEM_SQLITE_CASES_OPEN] = { SQL_PLAIN, NULL,
                                 "SELECT count(*) FROM cases INDEXED BY cases_open"
                                 " WHERE decided_us = 0" },
    [IDEM_SQLITE_DELIVERIES_PENDING] = { SQL_PLAIN, NULL,
                                         "SELECT count(*) FROM deliveries"
                                         " INDEXED BY deliveries_state"
                                         " WHERE " IDEM_SQLITE_IS_PENDING },
    [IDEM_SQLITE_DELIVERIES_DEAD] = { SQL_PLAIN, NULL,
                                      "SELECT count(*) FROM deliveries"
                                      " INDEXED BY deliveries_state WHERE state = 3" },
    [IDEM_SQLITE_DELIVERY_OLDEST] = { SQL_PLAIN, NULL,
                                      "SELECT created_us FROM deliveries"
                                      " INDEXED BY deliveries_state"
                                      " WHERE " IDEM_SQLITE_IS_PENDING " ORDER BY row LIMIT 1" },
    [IDEM_SQLITE_STUBS_COUNT] = { SQL_PLAIN, NULL, "SELECT count(*) FROM stubs" },
    [IDEM_SQLITE_PAGES] = { SQL_PLAIN, NULL, "PRAGMA page_count" },
    [IDEM_SQLITE_PAGES_FREE] = { SQL_PLAIN, NULL, "PRAGMA freelist_count" },
    [IDEM_SQLITE_STUB_BY_SCOPE] = { SQL_SELECT, &idem_table_stubs, "scope = ?" },
    [IDEM_SQLITE_STUB_HOLDER] = { SQL_SELECT, &idem_table_stubs,
                                  "order_no = ? AND scope <> ? AND " IDEM_SQLITE_MAKES_PAYMENT
                                  " ORDER BY row LIMIT 1" },
    [IDEM_SQLITE_STUBS_OF_PAYMENT] = { SQL_SELECT, &idem_table_stubs,
                                       "payment_effect_id = ? ORDER BY happened_us, row LIMIT ?" },
    [IDEM_SQLITE_CREDENTIAL_BY_ID] = { SQL_SELECT, &idem_table_credentials, "id = ?" },
    [IDEM_SQLITE_CREDENTIAL_BY_SECRET] = { SQL_SELECT, &idem_table_credentials,
                                           "secret_sha256 = ?" },
    [IDEM_SQLITE_EVENT_SEEN] = { SQL_PLAIN, NULL,
                                 "SELECT 1 FROM inbox WHERE entry = ? AND event_id = ?" },
    [IDEM_SQLITE_LISTENED] = { SQL_PLAIN, NULL,
                               "SELECT 1 FROM webhooks WHERE principal = ? AND disabled_us = 0"
                               " LIMIT 1" },
    [IDEM_SQLITE_WEBHOOK_BY_ROW] = { SQL_SELECT, &idem_table_webhooks, "row = ?" },
    [IDEM_SQLITE_WEBHOOK_BY_ANY_ID] = { SQL_SELECT, &idem_table_webhooks, "id = ?" },
    [IDEM_SQLITE_WEBHOOK_BY_ID] = { SQL_SELECT, &idem_table_webhooks, "id = ? AND principal = ?" },
    [IDEM_SQLITE_WEBHOOKS_COUNT] = { SQL_PLAIN, NULL,
                                     "SELECT count(*) FROM webhooks WHERE principal = ?" },
    [IDEM_SQLITE_WEBHOOKS_PAGE] = { SQL_SELECT, &idem_table_webhooks,
                                    "row > ? ORDER BY row LIMIT ?" },
    [IDEM_SQLITE_WEBHOOKS_PAGE_OF] = { SQL_SELECT, &idem_table_webhooks,
                                       "principal = ? AND row > ? ORDER BY row LIMIT ?" },
    [IDEM_SQLITE_DELIVERY] = { SQL_SELECT, &idem_table_deliveries,
                               "message_row = (SELECT row FROM messages WHERE id = ?)"
                               " AND webhook_row = (SELECT row FROM webhooks WHERE id = ?)" },
    [IDEM_SQLITE_POSTS_DUE] = { SQL_SELECT_POSTS, NULL, POSTS_DUE },
    [IDEM_SQLITE_DISABLED_NEXT] = { SQL_PLAIN, NULL,
                                    BUSY " SELECT v.row, v.disabled_us FROM h"
                                         " CROSS JOIN webhooks v ON v.row = h.row"
                                         " WHERE v.disabled_us > 0 LIMIT 1" },
    [IDEM_SQLITE_POSTS_ALL] = { SQL_SELECT_POSTS, NULL,
                                " FROM deliveries d" POST_TABLES
                                " WHERE d.row < ? ORDER BY d.row DESC LIMIT ?" },
    [IDEM_SQLITE_POSTS_STATE] = { SQL_SELECT_POSTS, NULL,
                                  " FROM deliveries d INDEXED BY deliveries_state" POST_TABLES
                                  " WHERE d.row < ? AND d.state = ?"
                                  " ORDER BY d.row DESC LIMIT ?" },
    [IDEM_SQLITE_POSTS_WEBHOOK] = { SQL_SELECT_POSTS, NULL, POSTS_OF("h.row = ?3") },
    [IDEM_SQLITE_POSTS_PRINCIPAL] = { SQL_SELECT_POSTS, NULL, POSTS_OF("h.principal = ?3") },
    [IDEM_SQLITE_META] = { SQL_PLAIN, NULL, "SELECT value FROM meta WHERE key = ?" },
    [IDEM_SQLITE_INTENT_INSERT] = { SQL_INSERT, &idem_table_intents, "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_INTENT_UPDATE] = { SQL_UPDATE, &idem_table_intents, "row = ? AND version = ?" },
    [IDEM_SQLITE_INTENT_DELETE] = { SQL_PLAIN, NULL,
                                    "DELETE FROM intents WHERE row = ? AND version = ?" },
    [IDEM_SQLITE_INTENT_PUT_BACK] = { SQL_INSERT_AT, &idem_table_intents, "" },
    [IDEM_SQLITE_SENDS_DELETE] = { SQL_PLAIN, NULL, "DELETE FROM sends WHERE intent_row = ?" },
    [IDEM_SQLITE_EVENTS_DELETE] = { SQL_PLAIN, NULL,
                                    "DELETE FROM events WHERE intent_row = ? AND cause <> ?" },
    [IDEM_SQLITE_CASES_DELETE] = { SQL_PLAIN, NULL, "DELETE FROM cases WHERE intent_row = ?" },
    [IDEM_SQLITE_PAYMENT_INSERT] = { SQL_INSERT, &idem_table_payments, "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_PAYMENT_UPDATE] = { SQL_UPDATE, &idem_table_payments, "row = ? AND version = ?" },
    [IDEM_SQLITE_REFUND_INSERT] = { SQL_INSERT, &idem_table_refunds, "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_REFUND_UPDATE] = { SQL_UPDATE, &idem_table_refunds, "row = ? AND version = ?" },
    [IDEM_SQLITE_SEND_INSERT] = { SQL_INSERT_BELOW, &idem_table_sends, "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_SEND_UPDATE] = { SQL_UPDATE, &idem_table_sends, "intent_row = ? AND no = ?" },
    [IDEM_SQLITE_EVENT_INSERT] = { SQL_INSERT_BELOW, &idem_table_events, "" },
    [IDEM_SQLITE_CASE_INSERT] = { SQL_INSERT_BELOW, &idem_table_cases,
                                  "ON CONFLICT (id) DO NOTHING" },
    [IDEM_SQLITE_CASES_DECIDE] = { SQL_UPDATE, &idem_table_cases,
                                   "intent_row = ? AND decided_us = 0" },
    [IDEM_SQLITE_STUB_INSERT] = { SQL_INSERT, &idem_table_stubs, "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_STUB_UPDATE] = { SQL_UPDATE, &idem_table_stubs, "row = ? AND scope = ?" },
    [IDEM_SQLITE_STUB_DELETE] = { SQL_PLAIN, NULL,
                                  "DELETE FROM stubs WHERE row = ? AND scope = ?" },
    [IDEM_SQLITE_STUBS_APPLY] = { SQL_PLAIN, NULL,
                                  "UPDATE stubs SET applied = 1 WHERE payment_effect_id = ?"
                                  " AND applied = 0" },
    [IDEM_SQLITE_CREDENTIAL_INSERT] = { SQL_INSERT, &idem_table_credentials,
                                        "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_CREDENTIAL_UPDATE] = { SQL_UPDATE, &idem_table_credentials,
                                        "row = ? AND revoked_us = 0" },
    [IDEM_SQLITE_INBOX_INSERT] = { SQL_PLAIN, NULL,
                                   "INSERT INTO inbox"
                                   " (entry, event_id, first_us, last_us, count, known)"
                                   " VALUES (?1, ?2, ?3, ?3, 1, ?4) ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_INBOX_UPDATE] = { SQL_PLAIN, NULL,
                                   "UPDATE inbox SET last_us = max(last_us, ?3),"
                                   " count = count + 1, known = max(known, ?4)"
                                   " WHERE entry = ?1 AND event_id = ?2" },
    [IDEM_SQLITE_INBOX_SWEEP] = { SQL_PLAIN, NULL,
                                  "DELETE FROM inbox WHERE (entry, event_id) IN"
                                  " (SELECT entry, event_id FROM inbox INDEXED BY inbox_last"
                                  " WHERE last_us < ? ORDER BY last_us LIMIT ?)" },
    [IDEM_SQLITE_WEBHOOK_INSERT] = { SQL_INSERT, &idem_table_webhooks, "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_WEBHOOK_UPDATE] = { SQL_UPDATE, &idem_table_webhooks, "row = ? AND version = ?" },
    [IDEM_SQLITE_MESSAGE_INSERT] = { SQL_INSERT, &idem_table_messages, "ON CONFLICT DO NOTHING" },
    [IDEM_SQLITE_MESSAGE_DELETE] = { SQL_PLAIN, NULL, "DELETE FROM messages WHERE row = ?" },
    [IDEM_SQLITE_MESSAGES_SWEEP] = { SQL_PLAIN, NULL, "DELETE FROM messages WHERE row IN " SWEPT },
    [IDEM_SQLITE_DELIVERIES_INSERT] = { SQL_PLAIN, NULL,
                                        DELIVERY_INSERT "principal = ?4 AND disabled_us = 0"
                                                        " AND (types >> ?5) & 1 = 1 ORDER BY row" },
    [IDEM_SQLITE_DELIVERY_INSERT] = { SQL_PLAIN, NULL, DELIVERY_INSERT "row = ?4" },
    [IDEM_SQLITE_DELIVERY_UPDATE] = { SQL_UPDATE, &idem_table_deliveries,
                                      "row = ? AND version = ?" },
    [IDEM_SQLITE_DELIVERIES_HOLD] = { SQL_PLAIN, NULL,
                                      "UPDATE deliveries INDEXED BY deliveries_order"
                                      " SET held = 1 - held WHERE " IDEM_SQLITE_IS_PENDING
                                      " AND webhook_row = ? AND payment_id = ? AND held <> " HELD(
                                          "deliveries.webhook_row",
                                          "deliveries.payment_id",
                                          "deliveries.message_row") },
    /* The newest first: what is left waits for none that is given up. */
    [IDEM_SQLITE_DELIVERIES_DROP] = { SQL_PLAIN, NULL,
                                      "UPDATE deliveries SET state = 3, due_us = 0,"
                                      " finished_us = ?2, version = version + 1"
                                      " WHERE row IN (SELECT x.row FROM deliveries x"
                                      " INDEXED BY deliveries_webhook WHERE x.webhook_row = ?1"
                                      " AND x." IDEM_SQLITE_IS_PENDING
                                      " ORDER BY x.row DESC LIMIT ?3)" },
    [IDEM_SQLITE_DELIVERIES_SWEEP] = { SQL_PLAIN, NULL,
                                       "DELETE FROM deliveries WHERE message_row IN " SWEPT },
    [IDEM_SQLITE_META_WRITE] = { SQL_PLAIN, NULL,
                                 "INSERT INTO meta (key, value) VALUES (?, ?)"
                                 " ON CONFLICT (key) DO UPDATE SET value = excluded.value" },
    [IDEM_SQLITE_GIVE_BACK] = { SQL_PLAIN, NULL, "PRAGMA incremental_vacuum(64)" },
};

/* Behind `comma` each column, with the name of its table before it. */
static void columns_print(const struct idem_table *table,
                          const char *comma,
                          const char *prefix,
                          struct idem_buf *buf)
{
    for (size_t i = 0; i < table->column_count; i++) {
        idem_buf_printf(buf, "%s%s%s", comma, prefix, table->columns[i].name);
        comma = ",";
    }
}

static void select_print(const struct sql *sql, struct idem_buf *buf)
{
    columns_print(sql->table, sql->shape == SQL_SELECT ? "SELECT row," : "SELECT ", "", buf);
    idem_buf_printf(buf, " FROM %s WHERE %s", sql->table->name, sql->tail);
}

static void posts_print(const struct sql *sql, struct idem_buf *buf)
{
    columns_print(&idem_table_deliveries, "SELECT d.row,", "d.", buf);
    columns_print(&idem_table_messages, ",", "m.", buf);
    columns_print(&idem_table_webhooks, ",", "w.", buf);
    idem_buf_printf(buf, "%s", sql->tail);
}

/* The handle that stands before the columns, or nothing. */
static const char *insert_handle(enum sql_shape shape)
{
    if (shape == SQL_INSERT_BELOW) {
        return "intent_row";
    }
    return shape == SQL_INSERT_AT ? "row" : "";
}

static void insert_print(const struct sql *sql, struct idem_buf *buf)
{
    const char *handle = insert_handle(sql->shape);
    bool handled = handle[0] != '\0';
    idem_buf_printf(buf, "INSERT INTO %s (%s", sql->table->name, handle);
    const char *comma = handled ? "," : "";
    for (size_t i = 0; i < sql->table->column_count; i++) {
        idem_buf_printf(buf, "%s%s", comma, sql->table->columns[i].name);
        comma = ",";
    }
    idem_buf_printf(buf, ") VALUES (?");
    for (size_t i = handled ? 0 : 1; i < sql->table->column_count; i++) {
        idem_buf_printf(buf, ",?");
    }
    idem_buf_printf(buf, ") %s", sql->tail);
}

static void update_print(const struct sql *sql, struct idem_buf *buf)
{
    idem_buf_printf(buf, "UPDATE %s SET ", sql->table->name);
    const char *comma = "";
    for (size_t i = 0; i < sql->table->column_count; i++) {
        if (!sql->table->columns[i].fixed) {
            idem_buf_printf(buf, "%s%s=?", comma, sql->table->columns[i].name);
            comma = ",";
        }
    }
    idem_buf_printf(buf, " WHERE %s", sql->tail);
}

static void sql_print(const struct sql *sql, struct idem_buf *buf)
{
    switch (sql->shape) {
    case SQL_PLAIN:
        idem_buf_printf(buf, "%s", sql->tail);
        return;
    case SQL_SELECT:
    case SQL_SELECT_BELOW:
        select_print(sql, buf);
        return;
    case SQL_SELECT_CASES:
        columns_print(sql->table, "SELECT row,intent_row,", "", buf);
        idem_buf_printf(buf, "%s", sql->tail);
        return;
    case SQL_SELECT_POSTS:
        posts_print(sql, buf);
        return;
    case SQL_SELECT_LINES:
        columns_print(sql->table, "SELECT intents.row,", "", buf);
        idem_buf_printf(buf,
                        " FROM intents LEFT JOIN payments ON payments.row = intents.payment_row"
                        " WHERE %s",
                        sql->tail);
        return;
    case SQL_INSERT:
    case SQL_INSERT_BELOW:
    case SQL_INSERT_AT:
        insert_print(sql, buf);
        return;
    case SQL_UPDATE:
        update_print(sql, buf);
        return;
    }
}

enum idem_err idem_sqlite_prepare(struct idem_sqlite_connection *connection,
                                  enum idem_sqlite_statement index,
                                  struct idem_error *reterr)
{
    struct sql sql = sqls[index];
    if (index == IDEM_SQLITE_BEGIN && connection->writes) {
        sql.tail = "BEGIN IMMEDIATE";
    }
    char memory[SQL_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    sql_print(&sql, &buf);
    IDEM_ASSERT(!buf.full);

    int rc = sqlite3_prepare_v3(connection->handle, memory, (int)buf.len, SQLITE_PREPARE_PERSISTENT,
                                &connection->statements[index], NULL);
    if (rc != SQLITE_OK) {
        return idem_error_set(reterr, IDEM_E_STORE, "the store's tables cannot be used: %s",
                              sqlite3_errmsg(connection->handle));
    }
    return IDEM_OK;
}
