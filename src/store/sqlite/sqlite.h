/*
 * sqlite.h - the embedded store: one SQLite file, one process.
 *
 * WAL, synchronous=FULL, one writer thread that owns the only writing connection and runs
 * batches, one reader thread. A second process on the same file is refused. Opening checkpoints
 * fully and commits a new incarnation before any decision, so that leases of a dead process are
 * over and what an earlier process may have written without flushing is flushed or gone.
 *
 * After a COMMIT that was not answered cleanly the store is `broken`: it answers UNKNOWN, decides
 * nothing more, and the process must exit; the next start finds the truth. Likewise after
 * WRONG_NODE: another process has opened the file since.
 */
#ifndef IDEM_STORE_SQLITE_SQLITE_H
#define IDEM_STORE_SQLITE_SQLITE_H

#include "store/store.h"

/* Gives a store; destroy it with idem_store_destroy(). `path` is created if it is absent. */
enum idem_err idem_sqlite_open(const char *path,
                               const struct idem_store_options *options,
                               struct idem_store **ret_store,
                               struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_STORE_SQLITE_SQLITE_H */
