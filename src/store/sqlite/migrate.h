/*
 * migrate.h - brings a store's file to the schema version of this program: forward only.
 *
 * Takes the same locks as serving, so nobody serves it meanwhile. All versions in between are one
 * transaction: whatever happens, the file has the version from before or the new one, with every
 * row. Then the file is rewritten once if it cannot give free pages back yet; that may fail for
 * want of disk and be done later, by running it again.
 */
#ifndef IDEM_STORE_SQLITE_MIGRATE_H
#define IDEM_STORE_SQLITE_MIGRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Told while it runs, for a person. */
struct idem_sqlite_listener {
    void (*say)(void *context, const char *line);
    void *context;
};

struct idem_sqlite_migrated {
    int64_t from; /* Schema versions; equal: there was nothing to do. */
    int64_t to;
    bool rewritten;
};

enum idem_err idem_sqlite_migrate(const char *path,
                                  const struct idem_sqlite_listener *listener,
                                  struct idem_sqlite_migrated *ret_migrated,
                                  struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_STORE_SQLITE_MIGRATE_H */
