/*
 * The journal: opening and closing.
 *
 * What it is for, in the order of one run, and what a crash leaves at each point:
 *
 *     begin()   not durable: no record, or the former one; nothing was sent.
 *               durable: the record, in doubt, although nothing was sent yet. That is the side on
 *               which to err: a doubt too many costs one repetition under the same key.
 *     sending   the record, in doubt.
 *     end()     not durable: the record, in doubt; the verdict is found out again by the same key.
 *               durable: the verdict, which whoever asks again is told without a request.
 *
 * One flush a transaction: SQLite's write-ahead log with synchronous=FULL. Any error inside a
 * transaction undoes it. An error of COMMIT itself is undone as well, as far as this and any other
 * open connection can see, and the next transaction writes over what was left of it in the log; but
 * should the machine die before that, the log may be read back with it. A begin that appears so is
 * a doubt too many, an end or a note that appears so is true, and a renewal is one under whose new
 * key nothing was sent. None of them is a lie, and so COMMIT's errors need no treatment of their
 * own: the connection stays in use.
 */
#include "client/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bug.h"
#include "client/journal_internal.h"

#define ASKER_SIZE 16 /* Bytes of the digest; as hexadecimal digits they fit. */

enum idem_client_err idem_client_journal_damaged(struct idem_client_journal *journal,
                                                 struct idem_client_error *reterr)
{
    return idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                            "the journal is damaged; restore a backup (%s)", journal->path);
}

/* An I/O error for want of room: of the disk, a quota or a limit. */
static bool system_is_full(struct idem_client_journal *journal)
{
    if ((sqlite3_errcode(journal->handle) & 0xff) != SQLITE_IOERR) {
        return false;
    }
    int cause = sqlite3_system_errno(journal->handle);
    return cause == ENOSPC || cause == EDQUOT || cause == EFBIG;
}

enum idem_client_err idem_client_journal_sqlite_fail(struct idem_client_journal *journal,
                                                     const char *what,
                                                     struct idem_client_error *reterr)
{
    int primary = sqlite3_errcode(journal->handle) & 0xff;
    if (primary == SQLITE_NOMEM) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory");
    }
    if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) {
        return idem_client_journal_damaged(journal, reterr);
    }
    if (primary == SQLITE_BUSY) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                "%s: another process has been writing it for %d seconds (%s)", what,
                                IDEM_CLIENT_JOURNAL_BUSY_MS / 1000, journal->path);
    }
    if (sqlite3_extended_errcode(journal->handle) == SQLITE_CONSTRAINT_UNIQUE) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_MISMATCH,
                                "the key belongs to another name in the journal, for the same "
                                "method and URL: one key, one name. Nothing was sent");
    }
    if (primary == SQLITE_FULL || system_is_full(journal)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL, "%s: no room: make some (%s)", what,
                                journal->path);
    }
    /* Of other errors the system's word may be that of an earlier one. */
    int cause = primary == SQLITE_CANTOPEN ? sqlite3_system_errno(journal->handle) : 0;
    return idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL, "%s: %s%s%s (%s)", what,
                            sqlite3_errmsg(journal->handle), cause != 0 ? ": " : "",
                            cause != 0 ? strerror(cause) : "", journal->path);
}

static enum idem_client_err digester_make(struct idem_client_journal *journal,
                                          struct idem_client_error *reterr)
{
    struct idem_error error;
    return idem_digester_create(&journal->digester, &error) == IDEM_OK
               ? IDEM_CLIENT_OK
               : idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "%s", error.text);
}

enum idem_client_err idem_client_journal_open(const char *path,
                                              struct idem_client_journal **ret_journal,
                                              struct idem_client_error *reterr)
{
    struct idem_client_journal *journal = calloc(1, sizeof(*journal));
    if (journal == NULL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory");
    }
    journal->lock_fd = -1;
    enum idem_client_err err = digester_make(journal, reterr);
    if (err == IDEM_CLIENT_OK) {
        err = idem_client_journal_file_make(journal, path, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = idem_client_journal_file_lock(journal, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = idem_client_journal_connect(journal, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = idem_client_journal_high_read(journal, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = idem_client_journal_serial_check(journal, reterr);
    }
    if (err != IDEM_CLIENT_OK) {
        idem_client_journal_close(journal);
        return err;
    }
    idem_client_journal_file_unlock(journal);
    *ret_journal = journal;
    return IDEM_CLIENT_OK;
}

void idem_client_journal_close(struct idem_client_journal *journal)
{
    if (journal == NULL) {
        return;
    }
    idem_client_journal_disconnect(journal);
    if (journal->lock_fd >= 0) {
        (void)close(journal->lock_fd); /* Gives all locks back. */
    }
    idem_digester_destroy(journal->digester);
    free(journal->path);
    free(journal);
}

void idem_client_journal_asker(struct idem_client_journal *journal,
                               struct idem_str key,
                               struct idem_str credential,
                               char ret_asker[IDEM_BOOT_ID_LEN + 1])
{
    ret_asker[0] = '\0';
    if (credential.len == 0) {
        return;
    }
    idem_hmac_begin(journal->digester, key);
    idem_hmac_add(journal->digester, credential);
    struct idem_digest digest = idem_hmac_end(journal->digester);
    struct idem_buf buf;
    idem_buf_init(&buf, ret_asker, IDEM_BOOT_ID_LEN);
    idem_buf_add_hex(&buf, digest.bytes, ASKER_SIZE);
    ret_asker[buf.len] = '\0';
}

int64_t idem_client_journal_high_us(const struct idem_client_journal *journal)
{
    return journal->high_us;
}
