/*
 * schema.h - the tables of version 2, as SQL.
 *
 * Rowid tables with handles in order of insertion: a row that settles soon after it was accepted
 * lies on a page that is still warm. Random order is confined to two narrow unique indexes (scope,
 * order number). Numbers in index conditions are values of the core's enums; statements.c asserts
 * that they agree.
 *
 * What a list or a worker looks for lies in partial indexes, so that records that are over cost
 * them nothing. `intents_due` has exactly what is not final, and the state beside it: counts and
 * pages by state need no table row.
 *
 * The CHECKs are the last line of defence for P10, not the policy: the core decides so that they
 * never fire.
 */
#ifndef IDEM_STORE_SQLITE_SCHEMA_H
#define IDEM_STORE_SQLITE_SCHEMA_H

#define IDEM_SQLITE_SCHEMA_VERSION 2
#define IDEM_SQLITE_APPLICATION_ID 1768187245 /* "idem" */

/* Payments that hold their order number; refunds that hold their number. */
#define IDEM_SQLITE_HOLDS_ORDER  "state NOT IN (7, 8)"
#define IDEM_SQLITE_PAST_ORDER   "state IN (7, 8)"
#define IDEM_SQLITE_HOLDS_REFUND "refund_no <> '' AND state <> 3"

/* Stubs that made a payment, and so hold an order number, whatever the entry. */
#define IDEM_SQLITE_MAKES_PAYMENT "kind IN (1, 2)"

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

#include <stddef.h>

/* Statements in the order they are run. */
extern const char *const idem_sqlite_schema[];
extern const size_t idem_sqlite_schema_count;

#endif /* IDEM_STORE_SQLITE_SCHEMA_H */
