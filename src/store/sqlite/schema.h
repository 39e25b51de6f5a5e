/*
 * schema.h - the tables of version 3, as SQL.
 *
 * Rowid tables with handles in order of insertion: a row that settles soon after it was accepted
 * lies on a page that is still warm. Random order is confined to two narrow unique indexes (scope,
 * order number). Numbers in index conditions are values of the core's enums; statements.c asserts
 * that they agree.
 *
 * What a list or a worker looks for lies in partial indexes, so that records that are over cost
 * them nothing; likewise deliveries that are still to be made. `intents_due` has exactly what is
 * not final, and the state beside it: counts and pages by state need no table row.
 *
 * The CHECKs are the last line of defence for P10, not the policy: the core decides so that they
 * never fire.
 */
#ifndef IDEM_STORE_SQLITE_SCHEMA_H
#define IDEM_STORE_SQLITE_SCHEMA_H

#define IDEM_SQLITE_SCHEMA_VERSION 3
#define IDEM_SQLITE_APPLICATION_ID 1768187245 /* "idem" */

/* Payments that hold their order number; refunds that hold their number. */
#define IDEM_SQLITE_HOLDS_ORDER  "state NOT IN (7, 8)"
#define IDEM_SQLITE_PAST_ORDER   "state IN (7, 8)"
#define IDEM_SQLITE_HOLDS_REFUND "refund_no <> '' AND state <> 3"

/* Stubs that made a payment, and so hold an order number, whatever the entry. */
#define IDEM_SQLITE_MAKES_PAYMENT "kind IN (1, 2)"

/*
 * Deliveries that are still to be made; and of these the ones that no earlier message of their
 * payment goes before. That is kept with each (`held`), since whoever looks for what is due would
 * otherwise walk over all that waits behind an endpoint that is down.
 */
#define IDEM_SQLITE_IS_PENDING "state = 1"
#define IDEM_SQLITE_IS_NEXT    " AND held = 0"

/* Tables that a migration makes too. */
#define IDEM_SQLITE_STUBS                                        \
    "CREATE TABLE stubs ("                                       \
    "  row INTEGER PRIMARY KEY,"                                 \
    "  scope BLOB NOT NULL UNIQUE CHECK (length(scope) = 16),"   \
    "  kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 5),"      \
    "  effect_id TEXT NOT NULL,"                                 \
    "  entry TEXT NOT NULL,"                                     \
    "  account TEXT NOT NULL,"                                   \
    "  region TEXT NOT NULL,"                                    \
    "  order_no TEXT NOT NULL,"                                  \
    "  payment_effect_id TEXT NOT NULL,"                         \
    "  amount_minor INTEGER NOT NULL CHECK (amount_minor >= 0)," \
    "  currency TEXT NOT NULL,"                                  \
    "  reference TEXT NOT NULL,"                                 \
    "  happened_us INTEGER NOT NULL,"                            \
    "  found_us INTEGER NOT NULL,"                               \
    "  applied INTEGER NOT NULL"                                 \
    ") STRICT;"
#define IDEM_SQLITE_STUBS_ORDER   "CREATE INDEX stubs_order ON stubs (order_no);"
#define IDEM_SQLITE_STUBS_PAYMENT "CREATE INDEX stubs_payment ON stubs (payment_effect_id);"
#define IDEM_SQLITE_CREDENTIALS                                                \
    "CREATE TABLE credentials ("                                               \
    "  row INTEGER PRIMARY KEY,"                                               \
    "  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),"                       \
    "  principal TEXT NOT NULL,"                                               \
    "  role INTEGER NOT NULL CHECK (role BETWEEN 1 AND 2),"                    \
    "  secret_sha256 BLOB NOT NULL UNIQUE CHECK (length(secret_sha256) = 32)," \
    "  providers TEXT NOT NULL,"                                               \
    "  label TEXT NOT NULL,"                                                   \
    "  created_us INTEGER NOT NULL,"                                           \
    "  created_by TEXT NOT NULL,"                                              \
    "  revoked_us INTEGER NOT NULL CHECK (revoked_us >= 0),"                   \
    "  revoked_by TEXT NOT NULL"                                               \
    ") STRICT;"
#define IDEM_SQLITE_INBOX                         \
    "CREATE TABLE inbox ("                        \
    "  entry TEXT NOT NULL,"                      \
    "  event_id TEXT NOT NULL,"                   \
    "  first_us INTEGER NOT NULL,"                \
    "  last_us INTEGER NOT NULL,"                 \
    "  count INTEGER NOT NULL CHECK (count > 0)," \
    "  known INTEGER NOT NULL,"                   \
    "  PRIMARY KEY (entry, event_id)"             \
    ") STRICT, WITHOUT ROWID;"
#define IDEM_SQLITE_INBOX_LAST "CREATE INDEX inbox_last ON inbox (last_us);"
#define IDEM_SQLITE_WEBHOOKS                                   \
    "CREATE TABLE webhooks ("                                  \
    "  row INTEGER PRIMARY KEY,"                               \
    "  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),"       \
    "  version INTEGER NOT NULL,"                              \
    "  principal TEXT NOT NULL,"                               \
    "  url TEXT NOT NULL,"                                     \
    "  types INTEGER NOT NULL,"                                \
    "  generation INTEGER NOT NULL CHECK (generation > 0),"    \
    "  rotated_us INTEGER NOT NULL,"                           \
    "  created_us INTEGER NOT NULL,"                           \
    "  created_by TEXT NOT NULL,"                              \
    "  disabled_us INTEGER NOT NULL CHECK (disabled_us >= 0)," \
    "  disabled_by TEXT NOT NULL"                              \
    ") STRICT;"
#define IDEM_SQLITE_WEBHOOKS_PRINCIPAL "CREATE INDEX webhooks_principal ON webhooks (principal);"
/* A merchant is told a message's handle: none is used again, though the newest be swept away. */
#define IDEM_SQLITE_MESSAGES                                      \
    "CREATE TABLE messages ("                                     \
    "  row INTEGER PRIMARY KEY AUTOINCREMENT,"                    \
    "  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),"          \
    "  type INTEGER NOT NULL CHECK (type > 0),"                   \
    "  principal TEXT NOT NULL,"                                  \
    "  payment_id BLOB NOT NULL CHECK (length(payment_id) = 16)," \
    "  at_us INTEGER NOT NULL,"                                   \
    "  data TEXT NOT NULL"                                        \
    ") STRICT;"
#define IDEM_SQLITE_MESSAGES_AT "CREATE INDEX messages_at ON messages (at_us);"
#define IDEM_SQLITE_DELIVERIES                                    \
    "CREATE TABLE deliveries ("                                   \
    "  row INTEGER PRIMARY KEY,"                                  \
    "  version INTEGER NOT NULL,"                                 \
    "  message_row INTEGER NOT NULL CHECK (message_row > 0),"     \
    "  webhook_row INTEGER NOT NULL CHECK (webhook_row > 0),"     \
    "  payment_id BLOB NOT NULL CHECK (length(payment_id) = 16)," \
    "  state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 3),"     \
    "  attempts INTEGER NOT NULL,"                                \
    "  due_us INTEGER NOT NULL,"                                  \
    "  token BLOB NOT NULL,"                                      \
    "  last_status INTEGER NOT NULL,"                             \
    "  last_error TEXT NOT NULL,"                                 \
    "  created_us INTEGER NOT NULL,"                              \
    "  finished_us INTEGER NOT NULL,"                             \
    "  held INTEGER NOT NULL CHECK (held IN (0, 1)),"             \
    "  UNIQUE (message_row, webhook_row)"                         \
    ") STRICT;"
#define IDEM_SQLITE_DELIVERIES_DUE                                    \
    "CREATE INDEX deliveries_due ON deliveries (webhook_row, due_us)" \
    "  WHERE " IDEM_SQLITE_IS_PENDING IDEM_SQLITE_IS_NEXT ";"
#define IDEM_SQLITE_DELIVERIES_ORDER                                                     \
    "CREATE INDEX deliveries_order ON deliveries (webhook_row, payment_id, message_row)" \
    "  WHERE " IDEM_SQLITE_IS_PENDING ";"
#define IDEM_SQLITE_DELIVERIES_STATE "CREATE INDEX deliveries_state ON deliveries (state);"
#define IDEM_SQLITE_DELIVERIES_WEBHOOK \
    "CREATE INDEX deliveries_webhook ON deliveries (webhook_row, state);"

#include <stddef.h>

/* Statements in the order they are run. */
extern const char *const idem_sqlite_schema[];
extern const size_t idem_sqlite_schema_count;

#endif /* IDEM_STORE_SQLITE_SCHEMA_H */
