/*
 * journal_internal.h - what the files of the journal share. The contract is journal.h.
 *
 *   journal.c          opening, closing, what SQLite's errors mean
 *   journal_file.c     the files: whose they are, who may read them, their locks
 *   journal_schema.c   the connection: schema, statements
 *   journal_columns.c  a record in and out of statements
 *   journal_read.c     find, next, the latest wall time
 *   journal_write.c    transactions
 */
#ifndef IDEM_CLIENT_JOURNAL_INTERNAL_H
#define IDEM_CLIENT_JOURNAL_INTERNAL_H

#include <sqlite3.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "client/fail.h"
#include "client/journal.h"

#define IDEM_CLIENT_JOURNAL_APPLICATION_ID 1768187242 /* "idej" */
#define IDEM_CLIENT_JOURNAL_VERSION        1
#define IDEM_CLIENT_JOURNAL_BUSY_MS        5000

enum idem_client_statement {
    IDEM_CLIENT_SQL_BEGIN = 0,
    IDEM_CLIENT_SQL_COMMIT,
    IDEM_CLIENT_SQL_ROLLBACK,
    IDEM_CLIENT_SQL_FIND,
    IDEM_CLIENT_SQL_INSERT,
    IDEM_CLIENT_SQL_REPEAT,
    IDEM_CLIENT_SQL_NOTE,
    IDEM_CLIENT_SQL_END,
    IDEM_CLIENT_SQL_RENEW,
    IDEM_CLIENT_SQL_FORMER,
    IDEM_CLIENT_SQL_NEXT,
    IDEM_CLIENT_SQL_NEXT_PENDING,
    IDEM_CLIENT_SQL_FORGET,
    IDEM_CLIENT_SQL_FORGET_PART,
    IDEM_CLIENT_SQL_HIGH,
    IDEM_CLIENT_SQL_HIGH_RAISE,
    IDEM_CLIENT_SQL_SERIAL,
    IDEM_CLIENT_SQL_SERIAL_RAISE,
    IDEM_CLIENT_SQL_COUNT
};

struct idem_client_journal {
    char *path; /* Absolute, links resolved. */
    sqlite3 *handle;
    sqlite3_stmt *statements[IDEM_CLIENT_SQL_COUNT];
    struct idem_digester *digester;
    int lock_fd;           /* -1: not open. */
    struct stat file;      /* As they were when they were opened: */
    struct stat lock_file; /* others in their places are not ours. */
    int64_t high_us;
};

/* journal.c */

/* "`what`: what SQLite and the system say (PATH)". */
enum idem_client_err idem_client_journal_sqlite_fail(struct idem_client_journal *journal,
                                                     const char *what,
                                                     struct idem_client_error *reterr);

/* The file does not hold what was written. */
enum idem_client_err idem_client_journal_damaged(struct idem_client_journal *journal,
                                                 struct idem_client_error *reterr);

/* journal_file.c */

/* Makes the file if there is none; refuses what is not ours, unread and unchanged. */
enum idem_client_err idem_client_journal_file_make(struct idem_client_journal *journal,
                                                   const char *path,
                                                   struct idem_client_error *reterr);

/* Opens the lock file and holds back other openings until file_unlock(). */
enum idem_client_err idem_client_journal_file_lock(struct idem_client_journal *journal,
                                                   struct idem_client_error *reterr);
void idem_client_journal_file_unlock(struct idem_client_journal *journal);

/* The files that were opened still stand under their names. */
enum idem_client_err idem_client_journal_in_place(struct idem_client_journal *journal,
                                                  struct idem_client_error *reterr);

/* journal_serial.c */

/* Inside a transaction that is about to commit: the number of this change. */
enum idem_client_err idem_client_journal_serial_raise(struct idem_client_journal *journal,
                                                      int64_t *ret_serial,
                                                      struct idem_client_error *reterr);

/* It is committed. */
void idem_client_journal_serial_publish(struct idem_client_journal *journal, int64_t serial);

/* At opening, with the opening's lock: nothing that was committed is missing. */
enum idem_client_err idem_client_journal_serial_check(struct idem_client_journal *journal,
                                                      struct idem_client_error *reterr);

/* journal_schema.c */

/* Connects, makes the tables if there are none, prepares the statements. */
enum idem_client_err idem_client_journal_connect(struct idem_client_journal *journal,
                                                 struct idem_client_error *reterr);
void idem_client_journal_disconnect(struct idem_client_journal *journal);

/* journal_columns.c: each binds from parameter `index` on and returns the next free one. */

int idem_client_journal_bind_text(sqlite3_stmt *statement, int index, struct idem_str text);
int idem_client_journal_bind_i64(sqlite3_stmt *statement, int index, int64_t value);
int idem_client_journal_bind_request(sqlite3_stmt *statement,
                                     int index,
                                     const struct idem_client_record *record);
int idem_client_journal_bind_run(sqlite3_stmt *statement,
                                 int index,
                                 const struct idem_client_record *record);
int idem_client_journal_bind_verdict(sqlite3_stmt *statement,
                                     int index,
                                     const struct idem_client_record *record);

/* The row that FIND stands on. */
enum idem_client_err idem_client_journal_read_record(struct idem_client_journal *journal,
                                                     sqlite3_stmt *statement,
                                                     struct idem_client_record *ret_record,
                                                     struct idem_client_error *reterr);

/* Bytes of the statement's row; false: there was no memory for them. */
bool idem_client_journal_column(sqlite3_stmt *statement, int index, struct idem_str *ret_text);

#endif /* IDEM_CLIENT_JOURNAL_INTERNAL_H */
