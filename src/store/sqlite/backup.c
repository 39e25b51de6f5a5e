/*
 * VACUUM INTO: one read transaction, so all of it is of one moment, and what comes out is a whole
 * file without free pages and without a log. Whatever was acknowledged before it began is in it.
 *
 * Any schema version can be copied: a backup stands before a migration.
 */
#include "store/sqlite/backup.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/bug.h"
#include "store/sqlite/file_internal.h"

static enum idem_err copy_make(sqlite3 *handle, const char *to, struct idem_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(handle, "VACUUM INTO ?", -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        /* A bind that fails shows at the step: NULL is refused. */
        (void)sqlite3_bind_text(statement, 1, to, -1, SQLITE_STATIC);
        rc = sqlite3_step(statement);
    }
    enum idem_err err = rc == SQLITE_DONE
                            ? IDEM_OK
                            : idem_sqlite_database_error(handle, "cannot copy the store", reterr);
    (void)sqlite3_finalize(statement); /* Repeats the step's error. */
    return err;
}

static enum idem_err quick_check(sqlite3 *handle, struct idem_error *reterr)
{
    char memory[256];
    struct idem_buf text;
    idem_buf_init(&text, memory, sizeof(memory));
    int rc = idem_sqlite_value_read(handle, "PRAGMA quick_check(1)", NULL, &text);
    if (rc != SQLITE_OK) {
        return idem_sqlite_database_error(handle, "cannot check the copy", reterr);
    }
    struct idem_str said = idem_buf_str(&text);
    return idem_str_equal(said, IDEM_STR("ok"))
               ? IDEM_OK
               : idem_error_set(reterr, IDEM_E_STORE, "the copy is damaged: %.*s", (int)said.len,
                                said.data);
}

static enum idem_err copy_describe(sqlite3 *handle,
                                   struct idem_sqlite_copied *copied,
                                   struct idem_error *reterr)
{
    struct idem_buf text;
    idem_buf_init(&text, copied->effect_secret_check, sizeof(copied->effect_secret_check) - 1);
    int rc = idem_sqlite_value_read(
        handle, "SELECT value FROM meta WHERE key = 'effect_secret_check'", NULL, &text);
    if (rc != SQLITE_OK) {
        return idem_sqlite_database_error(handle, "cannot read the copy", reterr);
    }
    copied->effect_secret_check[text.len] = '\0';
    return idem_sqlite_newest_find(handle, &copied->newest_us, reterr);
}

static enum idem_err copy_check(const char *to,
                                struct idem_sqlite_copied *ret_copied,
                                struct idem_error *reterr)
{
    sqlite3 *handle = NULL;
    struct stat info;
    enum idem_err err = idem_sqlite_database_open(to, SQLITE_OPEN_READONLY, &handle, reterr);
    if (err == IDEM_OK) {
        err = quick_check(handle, reterr);
    }
    if (err == IDEM_OK) {
        err = copy_describe(handle, ret_copied, reterr);
    }
    (void)sqlite3_close(handle); /* No statement is open. */
    ret_copied->bytes = err == IDEM_OK && stat(to, &info) == 0 ? (int64_t)info.st_size : 0;
    return err;
}

enum idem_err idem_sqlite_copy(const char *path,
                               const char *to,
                               struct idem_sqlite_copied *ret_copied,
                               struct idem_error *reterr)
{
    sqlite3 *handle = NULL;
    int64_t version = 0;
    struct idem_sqlite_copied copied = { .newest_us = 0 };
    enum idem_err err = idem_sqlite_database_open(path, SQLITE_OPEN_READONLY, &handle, reterr);
    if (err == IDEM_OK) {
        err = idem_sqlite_owner_check(handle, path, &version, reterr);
    }
    if (err == IDEM_OK && version == 0) {
        err = idem_error_set(reterr, IDEM_E_STORE, "%s is empty: there is nothing to copy", path);
    }
    if (err == IDEM_OK) {
        err = copy_make(handle, to, reterr);
    }
    (void)sqlite3_close(handle); /* No statement is open. */
    if (err == IDEM_OK) {
        err = copy_check(to, &copied, reterr);
    }
    if (err == IDEM_OK) {
        *ret_copied = copied;
    }
    return err;
}
