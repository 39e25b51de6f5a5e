/*
 * schema.h - the tables of version 1, as SQL.
 *
 * Rowid tables with handles in order of insertion: a row that settles soon after it was accepted
 * lies on a page that is still warm. Random order is confined to two narrow unique indexes (scope,
 * order number). Numbers in index conditions are values of the core's enums; connection.c asserts
 * that they agree.
 *
 * The CHECKs are the last line of defence for P10, not the policy: the core decides so that they
 * never fire.
 */
#ifndef IDEM_STORE_SQLITE_SCHEMA_H
#define IDEM_STORE_SQLITE_SCHEMA_H

#define IDEM_SQLITE_SCHEMA_VERSION 1
#define IDEM_SQLITE_APPLICATION_ID 1768187245 /* "idem" */

/* Payments that hold their order number; refunds that hold their number. */
#define IDEM_SQLITE_HOLDS_ORDER  "state NOT IN (7, 8)"
#define IDEM_SQLITE_PAST_ORDER   "state IN (7, 8)"
#define IDEM_SQLITE_HOLDS_REFUND "refund_no <> '' AND state <> 3"

#include <stddef.h>

/* Statements in the order they are run. */
extern const char *const idem_sqlite_schema[];
extern const size_t idem_sqlite_schema_count;

#endif /* IDEM_STORE_SQLITE_SCHEMA_H */
