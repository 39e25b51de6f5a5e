/*
 * SQL on one connection, outside of any batch: what opening, migrating and copying need.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/bug.h"
#include "store/sqlite/file_internal.h"
#include "store/sqlite/log_file.h"
#include "store/sqlite/schema.h"

#define BUSY_TIMEOUT_MS 1000

enum idem_err idem_sqlite_database_error(sqlite3 *handle,
                                         const char *what,
                                         struct idem_error *reterr)
{
    int primary = sqlite3_errcode(handle) & 0xff;
    bool damaged = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
    return idem_error_set(reterr, IDEM_E_STORE, "%s: %s%s", what, sqlite3_errmsg(handle),
                          damaged ? "; restore a backup" : "");
}

enum idem_err idem_sqlite_database_exec(sqlite3 *handle,
                                        const char *sql,
                                        const char *what,
                                        struct idem_error *reterr)
{
    int rc = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? IDEM_OK : idem_sqlite_database_error(handle, what, reterr);
}

/*
 * The first column of the first row: as a number, and as text if `ret_text` is given. No row
 * leaves both as they are.
 */
int idem_sqlite_value_read(sqlite3 *handle,
                           const char *sql,
                           int64_t *ret_number,
                           struct idem_buf *ret_text)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
    }
    if (rc == SQLITE_ROW && ret_text != NULL) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        if (text == NULL) { /* We store no NULL: there was no memory for it. */
            rc = SQLITE_NOMEM;
        } else {
            idem_buf_add(ret_text, idem_str_from(text));
        }
    }
    if (rc == SQLITE_ROW && ret_number != NULL) {
        *ret_number = sqlite3_column_int64(statement, 0);
    }
    /* What writes and has said its row ends here: PRAGMA journal_mode flushes now. */
    int end = sqlite3_finalize(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? end : rc;
}

/* Once a process, before SQLite is first used; later both are harmless and change nothing. */
static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static int process_rc;

static void process_setup(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* A count that nobody reads has a lock. */
    process_rc = idem_sqlite_log_file_register();
}

static enum idem_err open_through(
    const char *vfs, const char *path, int flags, sqlite3 **ret_handle, struct idem_error *reterr)
{
    int rc = pthread_once(&process_once, process_setup);
    IDEM_ASSERT(rc == 0); /* It has no way to fail. */
    if (process_rc != SQLITE_OK) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "SQLite did not start");
    }
    rc = sqlite3_open_v2(path, ret_handle, flags | SQLITE_OPEN_NOMUTEX, vfs);
    if (*ret_handle == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    if (rc != SQLITE_OK) {
        return idem_sqlite_database_error(*ret_handle, "cannot open the store", reterr);
    }
    /* These fail only on misuse. */
    (void)sqlite3_extended_result_codes(*ret_handle, 1);
    (void)sqlite3_busy_timeout(*ret_handle, BUSY_TIMEOUT_MS);
    (void)sqlite3_db_config(*ret_handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return IDEM_OK;
}

enum idem_err idem_sqlite_database_open(const char *path,
                                        int flags,
                                        sqlite3 **ret_handle,
                                        struct idem_error *reterr)
{
    return open_through(NULL, path, flags, ret_handle, reterr);
}

enum idem_err idem_sqlite_batch_writer_open(const char *path,
                                            sqlite3 **ret_handle,
                                            struct idem_error *reterr)
{
    return open_through(IDEM_SQLITE_LOG_FILE_VFS, path, SQLITE_OPEN_READWRITE, ret_handle, reterr);
}

static enum idem_err damage_error(const char *path, struct idem_error *reterr)
{
    return idem_error_set(reterr, IDEM_E_STORE,
                          "%s is damaged or not a store of idem; name another file or restore "
                          "a backup",
                          path);
}

/* Ours, or empty and about to be. */
enum idem_err idem_sqlite_owner_check(sqlite3 *handle,
                                      const char *path,
                                      int64_t *ret_version,
                                      struct idem_error *reterr)
{
    int64_t application_id = 0;
    int64_t objects = 0;
    int rc = idem_sqlite_value_read(handle, "SELECT count(*) FROM sqlite_schema", &objects, NULL);
    if (rc == SQLITE_OK) {
        rc = idem_sqlite_value_read(handle, "PRAGMA application_id", &application_id, NULL);
    }
    if ((rc & 0xff) == SQLITE_NOTADB || (rc & 0xff) == SQLITE_CORRUPT) {
        return damage_error(path, reterr);
    }
    if (rc != SQLITE_OK) {
        return idem_sqlite_database_error(handle, "cannot read the store", reterr);
    }
    if (application_id != IDEM_SQLITE_APPLICATION_ID && (objects > 0 || application_id != 0)) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "%s is a database of another program; name another file", path);
    }
    *ret_version = 0;
    if (objects == 0) {
        return IDEM_OK;
    }
    rc = idem_sqlite_value_read(handle, "SELECT value FROM meta WHERE key = 'schema_version'",
                                ret_version, NULL);
    if (rc != SQLITE_OK) {
        return idem_sqlite_database_error(handle, "cannot read the store's version", reterr);
    }
    return *ret_version > 0 ? IDEM_OK : damage_error(path, reterr);
}

enum idem_err idem_sqlite_writer_setup(sqlite3 *handle, bool is_new, struct idem_error *reterr)
{
    char memory[16];
    struct idem_buf mode;
    idem_buf_init(&mode, memory, sizeof(memory));

    if (is_new) { /* Later it would need a rewrite of the whole file. */
        enum idem_err err = idem_sqlite_database_exec(
            handle, "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL;",
            "cannot set up the new store", reterr);
        if (err != IDEM_OK) {
            return err;
        }
    }
    int rc = idem_sqlite_value_read(handle, "PRAGMA journal_mode = WAL", NULL, &mode);
    if (rc != SQLITE_OK || !idem_str_equal(idem_buf_str(&mode), IDEM_STR("wal"))) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "the store's write-ahead log cannot be used here: %s",
                              sqlite3_errmsg(handle));
    }
    return idem_sqlite_database_exec(handle,
                                     "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                                     "PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON;",
                                     "cannot set up the store", reterr);
}

enum idem_err idem_sqlite_checkpoint_fully(sqlite3 *handle, struct idem_error *reterr)
{
    int rc = sqlite3_wal_checkpoint_v2(handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if ((rc & 0xff) == SQLITE_BUSY) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "another program reads or writes the store; close it first");
    }
    return rc == SQLITE_OK ? IDEM_OK
                           : idem_sqlite_database_error(
                                 handle, "cannot bring the store up to date on disk", reterr);
}

enum idem_err idem_sqlite_meta_write(sqlite3 *handle,
                                     const char *key,
                                     struct idem_str value,
                                     struct idem_error *reterr)
{
    static const char sql[] =
        "INSERT INTO meta (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        /* A bind that fails shows at the step: NULL is refused. */
        (void)sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(statement, 2, value.data, (int)value.len, SQLITE_STATIC);
        rc = sqlite3_step(statement);
    }
    (void)sqlite3_finalize(statement); /* Repeats the step's error. */
    return rc == SQLITE_DONE ? IDEM_OK
                             : idem_sqlite_database_error(handle, "cannot write the store", reterr);
}

/* The last rows in order of insertion: among them is the newest time, or one just before it. */
enum idem_err idem_sqlite_newest_find(sqlite3 *handle,
                                      int64_t *ret_newest_us,
                                      struct idem_error *reterr)
{
    static const char sql[] =
        "SELECT max(at_us) FROM ("
        " SELECT * FROM (SELECT at_us FROM events ORDER BY row DESC LIMIT 256)"
        " UNION ALL"
        " SELECT * FROM (SELECT updated_us FROM intents ORDER BY row DESC LIMIT 256))";
    int rc = idem_sqlite_value_read(handle, sql, ret_newest_us, NULL);
    return rc == SQLITE_OK ? IDEM_OK
                           : idem_sqlite_database_error(handle, "cannot read the store", reterr);
}
