/*
 * migrate.h - brings a database's schema to the version of this program: forward only.
 *
 * All versions in between are one transaction: whatever happens, the database has the version from
 * before or the new one, with every row. Each version stands in the table idem.migrations, with the
 * oldest program that may still work on it.
 *
 * Instances may serve meanwhile: where they may go on working on the new version they wait for the
 * locks and do. Where they may not, the migration is refused as long as one of them lives; one that
 * stood still and wakes up later is told by its next batch (WRONG_NODE), and writes nothing.
 */
#ifndef IDEM_STORE_POSTGRES_MIGRATE_H
#define IDEM_STORE_POSTGRES_MIGRATE_H

#include <stdint.h>

#include "base/error.h"
#include "store/postgres/postgres.h"

struct idem_postgres_schema;
struct idem_postgres_wire;

struct idem_postgres_migrated {
    int64_t from; /* Schema versions; equal: there was nothing to do. */
    int64_t to;
};

/* A database without a store is refused: there is nothing to migrate. */
enum idem_err idem_postgres_migrate(const struct idem_postgres_settings *settings,
                                    struct idem_postgres_migrated *ret_migrated,
                                    struct idem_error *reterr) IDEM_MUST_CHECK;

/*
 * For opening.c, which makes a store from nothing (0): inside its transaction, from version `from`
 * to the schema's own.
 */
enum idem_err idem_postgres_versions_run(struct idem_postgres_wire *wire,
                                         const struct idem_postgres_schema *schema,
                                         int64_t from,
                                         struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_STORE_POSTGRES_MIGRATE_H */
