/*
 * sqlite_file.h - the caller's SQLite file: its tables, its time, its errors.
 */
#ifndef IDEM_LOCAL_SQLITE_FILE_H
#define IDEM_LOCAL_SQLITE_FILE_H

#include <sqlite3.h>

#include "base/attr.h"
#include "idem/idem.h"

/* Files of ours in which the tables must not be: `idem serve`'s and an idem_client's. */
#define IDEM_LOCAL_SERVED_ID  1768187245
#define IDEM_LOCAL_JOURNAL_ID 1768187242

/* One call's way through the file. Begins with a handle and a place for the error. */
struct idem_local_visit {
    sqlite3 *handle;
    struct idem_local_error *reterr;
    int64_t now_us; /* No earlier than anything that the file has seen. */
    bool busy;      /* Another transaction is in the way, and nothing was done. */
};

/* A transaction is open, in a file that can be written. */
enum idem_local_err idem_local_sqlite_enter(const struct idem_local *local,
                                            struct idem_local_error *reterr);
enum idem_local_err idem_local_sqlite_install(const struct idem_local *local,
                                              struct idem_local_error *reterr);

/*
 * Takes the write lock, by writing the time down: what is read afterwards stays as it is.
 * `busy`: it could not be had within the connection's busy timeout.
 */
enum idem_local_err idem_local_sqlite_lock(struct idem_local_visit *visit) IDEM_MUST_CHECK;

/* For looks: reads the time and writes nothing. */
enum idem_local_err idem_local_sqlite_look(struct idem_local_visit *visit) IDEM_MUST_CHECK;

/* NULL and an error, or a statement to be finalized. */
enum idem_local_err idem_local_sqlite_prepare(struct idem_local_visit *visit,
                                              const char *sql,
                                              sqlite3_stmt **ret_statement) IDEM_MUST_CHECK;

/* What `rc`, which is not OK, ROW or DONE, means; with what became of the transaction. */
enum idem_local_err idem_local_sqlite_fail(struct idem_local_visit *visit, int rc);

/* PRAGMA synchronous is FULL at least, so that what is committed is kept. */
enum idem_local_err idem_local_sqlite_durable(struct idem_local_visit *visit) IDEM_MUST_CHECK;

#endif /* IDEM_LOCAL_SQLITE_FILE_H */
