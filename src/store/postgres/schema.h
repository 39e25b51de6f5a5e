/*
 * schema.h - the tables, version by version, as SQL, in a schema of their own: `idem`.
 *
 * The columns are those of columns.c. What a caller or an operator names a record by is text, by
 * bytes ("C"), so that no update of the system's collations can break an index. What came from
 * outside and is only kept (answers, requests, a provider's words) is bytea: a text column refuses
 * bytes that are not its encoding, and then the record of what happened could never be written.
 *
 * The CHECKs and unique indexes are the last line of defence for P10, not the policy.
 *
 * A newer version is one more list of statements in schema.c; versions are never changed.
 */
#ifndef IDEM_STORE_POSTGRES_SCHEMA_H
#define IDEM_STORE_POSTGRES_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#define IDEM_POSTGRES_SCHEMA_VERSION 2

/* Of advisory locks: all of idem's have this as their first number. */
#define IDEM_POSTGRES_LOCKS "1768187245" /* "idem" */

/*
 * Payments that hold their order number; refunds that hold their number; stubs that made one. The
 * first is a column made from the state: an index that named the state would have to be written at
 * every move of every payment.
 */
#define IDEM_POSTGRES_HOLDS         "state NOT IN (7, 8)"
#define IDEM_POSTGRES_HOLDS_ORDER   "holds_order"
#define IDEM_POSTGRES_PAST_ORDER    "NOT holds_order"
#define IDEM_POSTGRES_HOLDS_REFUND  "refund_no <> '' AND state <> 3"
#define IDEM_POSTGRES_MAKES_PAYMENT "kind IN (1, 2)"

/* A message's deliveries have the handles from its own times this on: they are in its order. */
#define IDEM_POSTGRES_FAN_OUT "64"

/* How long a migration may be silent. */
#define IDEM_POSTGRES_MIGRATION_US (INT64_C(6) * 3600 * 1000000)

/* What leads from the version before to this one, in order. */
struct idem_postgres_migration {
    const char *const *statements;
    size_t count;
    /*
     * The oldest version whose program may go on working on this one. What only adds (a table, an
     * index, a column with a default) leaves it; what an older program would write wrongly or not
     * understand raises it to its own.
     */
    int64_t min_version;
};

struct idem_postgres_schema {
    const struct idem_postgres_migration *migrations; /* Of version `i + 1`. */
    int64_t version;
};

extern const struct idem_postgres_schema idem_postgres_schema;

struct idem_postgres_settings;

/* This program's, or the one that a test gave it. */
const struct idem_postgres_schema *idem_postgres_schema_of(
    const struct idem_postgres_settings *settings);

#endif /* IDEM_STORE_POSTGRES_SCHEMA_H */
