/*
 * backup.h - a consistent copy of a store's file, while it is served.
 *
 * For a process of its own: the one that serves must not open the file a second time (closing a
 * descriptor drops SQLite's locks). It reads one snapshot on a read-only connection and takes no
 * lock of ours; the service goes on, with a log that grows until the copy is done.
 */
#ifndef IDEM_STORE_SQLITE_BACKUP_H
#define IDEM_STORE_SQLITE_BACKUP_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct idem_sqlite_copied {
    int64_t newest_us; /* What happened later is not in the copy; 0: there is nothing in it. */
    int64_t bytes;
    char effect_secret_check[80]; /* Terminated: which effect secret it was made under. */
};

/*
 * Writes the copy to `to`, which is absent or an empty file, and checks it. Flushing and giving it
 * its name is the caller's.
 */
enum idem_err idem_sqlite_copy(const char *path,
                               const char *to,
                               struct idem_sqlite_copied *ret_copied,
                               struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_STORE_SQLITE_BACKUP_H */
