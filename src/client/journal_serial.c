/*
 * Whether the database still has all that was ever committed to it.
 *
 * What was written last may lie only in the log ("-wal"). If somebody removes or cuts that file, or
 * a bit of it turns, SQLite goes on with what is left and says nothing; an older copy in the place
 * of the database looks whole, too; and so does an empty one that is made anew. The next run of a
 * name that is forgotten would take a second key. So each change has a number, kept in the database
 * and, after its commit, in the first bytes of the lock file, which is never removed. A database
 * whose number is smaller has lost something.
 *
 * The number in the lock file is not flushed: after a power cut it may be smaller than the
 * database's, which proves nothing and is let through. Two processes may write it in the other
 * order, with the same result.
 */
#include <unistd.h>

#include "client/journal_internal.h"

#define SERIAL_SIZE 8

/* The number in the first column of the statement's first row. */
static enum idem_client_err number_step(struct idem_client_journal *journal,
                                        enum idem_client_statement which,
                                        int64_t *ret_number,
                                        struct idem_client_error *reterr)
{
    sqlite3_stmt *statement = journal->statements[which];
    enum idem_client_err err = IDEM_CLIENT_OK;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        *ret_number = sqlite3_column_int64(statement, 0);
    } else {
        err = idem_client_journal_sqlite_fail(journal, "the journal cannot be used", reterr);
    }
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    return err;
}

enum idem_client_err idem_client_journal_serial_raise(struct idem_client_journal *journal,
                                                      int64_t *ret_serial,
                                                      struct idem_client_error *reterr)
{
    return number_step(journal, IDEM_CLIENT_SQL_SERIAL_RAISE, ret_serial, reterr);
}

void idem_client_journal_serial_publish(struct idem_client_journal *journal, int64_t serial)
{
    uint8_t bytes[SERIAL_SIZE];
    for (size_t i = 0; i < SERIAL_SIZE; i++) {
        bytes[i] = (uint8_t)((uint64_t)serial >> (8 * i));
    }
    ssize_t written = pwrite(journal->lock_fd, bytes, sizeof(bytes), 0);
    (void)written; /* Less than all, or nothing: less is noticed later, no more. */
}

static int64_t published(const struct idem_client_journal *journal)
{
    uint8_t bytes[SERIAL_SIZE];
    uint64_t serial = 0;
    if (pread(journal->lock_fd, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return 0;
    }
    for (size_t i = 0; i < SERIAL_SIZE; i++) {
        serial |= (uint64_t)bytes[i] << (8 * i);
    }
    return (int64_t)serial;
}

enum idem_client_err idem_client_journal_serial_check(struct idem_client_journal *journal,
                                                      struct idem_client_error *reterr)
{
    int64_t serial = 0;
    int64_t wanted = published(journal); /* First: others may commit meanwhile. */
    enum idem_client_err err = number_step(journal, IDEM_CLIENT_SQL_SERIAL, &serial, reterr);
    if (err == IDEM_CLIENT_OK && serial < wanted) {
        err = idem_client_fail(
            reterr, IDEM_CLIENT_E_JOURNAL,
            "the journal has lost its last %lld changes: its log was removed or damaged, or it is "
            "an older copy, or new in the place of another. What it forgot would be sent again "
            "under new keys. Find out what was sent since, and then remove its \"-lock\" (%s)",
            (long long)(wanted - serial), journal->path);
    }
    return err;
}
