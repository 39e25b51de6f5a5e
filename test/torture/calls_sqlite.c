/*
 * What idem asks of SQLite and may be told that it did not work: steps, statements without a step
 * of their own, checkpoints. The linker sends idem's own calls here (--wrap, meson.build).
 *
 * SQLite's rules are kept: resetting or finalizing repeats what the last step said, and the
 * connection names the same code until it does something else.
 */
#include <sqlite3.h>

#include "base/attr.h"
#include "torture/fault.h"

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
int __real_sqlite3_step(sqlite3_stmt *statement);
int __real_sqlite3_reset(sqlite3_stmt *statement);
int __real_sqlite3_finalize(sqlite3_stmt *statement);
int __real_sqlite3_exec(
    sqlite3 *handle, const char *sql, sqlite3_callback callback, void *context, char **ret_error);
int __real_sqlite3_prepare_v2(sqlite3 *handle,
                              const char *sql,
                              int size,
                              sqlite3_stmt **ret_statement,
                              const char **ret_tail);
int __real_sqlite3_wal_checkpoint_v2(
    sqlite3 *handle, const char *name, int mode, int *ret_frames, int *ret_done);
int __real_sqlite3_backup_step(sqlite3_backup *backup, int pages);
int __real_sqlite3_errcode(sqlite3 *handle);
int __real_sqlite3_extended_errcode(sqlite3 *handle);

int __wrap_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_reset(sqlite3_stmt *statement);
int __wrap_sqlite3_finalize(sqlite3_stmt *statement);
int __wrap_sqlite3_exec(
    sqlite3 *handle, const char *sql, sqlite3_callback callback, void *context, char **ret_error);
int __wrap_sqlite3_prepare_v2(sqlite3 *handle,
                              const char *sql,
                              int size,
                              sqlite3_stmt **ret_statement,
                              const char **ret_tail);
int __wrap_sqlite3_wal_checkpoint_v2(
    sqlite3 *handle, const char *name, int mode, int *ret_frames, int *ret_done);
int __wrap_sqlite3_backup_step(sqlite3_backup *backup, int pages);
int __wrap_sqlite3_errcode(sqlite3 *handle);
int __wrap_sqlite3_extended_errcode(sqlite3 *handle);

/* The last thing that was said to have failed and did not: a connection has one thread. */
static _Thread_local struct {
    sqlite3 *handle;
    sqlite3_stmt *statement;
    int code;
} said;

/* 0: really do it. */
static int lie(sqlite3 *handle, sqlite3_stmt *statement)
{
    int code = torture_fires(TORTURE_CALL_STEP);
    said.handle = code != 0 ? handle : NULL;
    said.statement = code != 0 ? statement : NULL;
    said.code = code == TORTURE_AFTER ? SQLITE_IOERR_WRITE : code;
    return code;
}

/* What it is told to have been, after `rc` or instead of it. */
static int told(int rc)
{
    if (rc == SQLITE_ROW || (rc != SQLITE_OK && rc != SQLITE_DONE)) {
        said.handle = NULL; /* It has something to say itself. */
        said.statement = NULL;
        return rc;
    }
    return said.code;
}

int __wrap_sqlite3_step(sqlite3_stmt *statement)
{
    int code = lie(sqlite3_db_handle(statement), statement);
    if (code == TORTURE_AFTER) {
        return told(__real_sqlite3_step(statement));
    }
    return code != 0 ? said.code : __real_sqlite3_step(statement);
}

int __wrap_sqlite3_reset(sqlite3_stmt *statement)
{
    int rc = __real_sqlite3_reset(statement);
    if (statement == NULL || said.statement != statement) {
        return rc;
    }
    said.statement = NULL;
    return said.code;
}

int __wrap_sqlite3_finalize(sqlite3_stmt *statement)
{
    int rc = __real_sqlite3_finalize(statement);
    if (statement == NULL || said.statement != statement) {
        return rc;
    }
    said.statement = NULL;
    return said.code;
}

int __wrap_sqlite3_exec(
    sqlite3 *handle, const char *sql, sqlite3_callback callback, void *context, char **ret_error)
{
    int code = lie(handle, NULL);
    if (code == TORTURE_AFTER) {
        return told(__real_sqlite3_exec(handle, sql, callback, context, ret_error));
    }
    return code != 0 ? said.code : __real_sqlite3_exec(handle, sql, callback, context, ret_error);
}

/* Nothing that is done can be told to have failed here: there is a statement, or there is none. */
int __wrap_sqlite3_prepare_v2(
    sqlite3 *handle, const char *sql, int size, sqlite3_stmt **ret_statement, const char **ret_tail)
{
    *ret_statement = NULL;
    return lie(handle, NULL) != 0
               ? said.code
               : __real_sqlite3_prepare_v2(handle, sql, size, ret_statement, ret_tail);
}

int __wrap_sqlite3_wal_checkpoint_v2(
    sqlite3 *handle, const char *name, int mode, int *ret_frames, int *ret_done)
{
    int code = lie(handle, NULL);
    if (code == TORTURE_AFTER) {
        return told(__real_sqlite3_wal_checkpoint_v2(handle, name, mode, ret_frames, ret_done));
    }
    return code != 0 ? said.code
                     : __real_sqlite3_wal_checkpoint_v2(handle, name, mode, ret_frames, ret_done);
}

int __wrap_sqlite3_backup_step(sqlite3_backup *backup, int pages)
{
    return lie(NULL, NULL) != 0 ? said.code : __real_sqlite3_backup_step(backup, pages);
}

int __wrap_sqlite3_errcode(sqlite3 *handle)
{
    return handle != NULL && said.handle == handle ? said.code : __real_sqlite3_errcode(handle);
}

int __wrap_sqlite3_extended_errcode(sqlite3 *handle)
{
    return handle != NULL && said.handle == handle ? said.code
                                                   : __real_sqlite3_extended_errcode(handle);
}
// NOLINTEND(readability-identifier-naming)
