/*
 * The store's file: who may open it, whether it is ours, and the new incarnation.
 *
 * Order matters:
 *
 *   1. Our own locks, on PATH.lock and on the database file itself. SQLite's locks say nothing
 *      about a process that is merely idle; ours are held until we close them or die, by whatever
 *      death. The lock file is never removed: removing it would let two processes lock two
 *      different files of one name. It guards the name and the log files beside it; the lock on
 *      the database guards the file under whatever other name it is mounted. A second hard link is
 *      refused outright: whoever opened that name would look for another log. They are BSD locks,
 *      which live apart from SQLite's own; but closing any descriptor of the database drops those,
 *      so ours is closed after the connections.
 *   2. Whose file is it? Asked before anything is written to it.
 *   3. A full checkpoint. An earlier process may have died after a failed flush, when the system's
 *      cache still showed what the disk never got. Checkpointing writes the log's content again
 *      and flushes it; what is there afterwards is there for good.
 *   4. One transaction: schema if new, configuration compared, incarnation + 1. Only when it is
 *      durable may anything be decided, and then every earlier lease is over.
 */
#include "store/sqlite/sqlite_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bug.h"
#include "store/sqlite/schema.h"

#define BUSY_TIMEOUT_MS 1000
#define LOCK_SUFFIX     ".lock"
#define DIGEST_HEX_MAX  (2 * IDEM_DIGEST_SIZE + 1)

/* Makes the file if it is absent, and opens it. Gives its absolute name. */
static enum idem_err file_make(struct idem_sqlite_file *file,
                               const char *path,
                               char **ret_path,
                               struct idem_error *reterr)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        return idem_error_set(reterr, IDEM_E_STORE, "%s is not a file; name a file for the store",
                              path);
    }
    file->database_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file->database_fd < 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "cannot open the store %s: %s", path,
                              strerror(errno));
    }
    *ret_path = realpath(path, NULL);
    if (*ret_path == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "cannot resolve %s: %s", path,
                              strerror(errno));
    }
    return IDEM_OK;
}

static enum idem_err directory_sync(const char *path, struct idem_error *reterr)
{
    char *directory = strdup(path);
    if (directory == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    char *slash = strrchr(directory, '/');
    IDEM_ASSERT(slash != NULL); /* The path is absolute. */
    slash[slash == directory ? 1 : 0] = '\0';

    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    int cause = errno;
    if (fd >= 0) {
        (void)close(fd); /* It was only read. */
    }
    free(directory);
    return synced ? IDEM_OK
                  : idem_error_set(reterr, IDEM_E_SYSTEM, "cannot flush the directory of %s: %s",
                                   path, strerror(cause));
}

/* Takes the lock on an open file, which is called `name`, of the store `path`. */
static enum idem_err lock_take(int fd,
                               const char *name,
                               const char *path,
                               struct idem_error *reterr)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        return IDEM_OK;
    }
    return errno == EWOULDBLOCK
               ? idem_error_set(reterr, IDEM_E_STORE, "another process serves %s; stop it first",
                                path)
               : idem_error_set(reterr, IDEM_E_SYSTEM, "cannot lock %s: %s", name, strerror(errno));
}

static enum idem_err name_lock(struct idem_sqlite_file *file,
                               const char *path,
                               struct idem_error *reterr)
{
    size_t size = strlen(path) + sizeof(LOCK_SUFFIX);
    char *name = malloc(size);
    if (name == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    (void)snprintf(name, size, "%s%s", path, LOCK_SUFFIX); /* It fits: the size is counted. */
    file->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    enum idem_err err =
        file->lock_fd < 0
            ? idem_error_set(reterr, IDEM_E_SYSTEM, "cannot open %s: %s", name, strerror(errno))
            : lock_take(file->lock_fd, name, path, reterr);
    free(name);
    return err;
}

/* The file itself, under whatever name. */
static enum idem_err database_lock(struct idem_sqlite_file *file,
                                   const char *path,
                                   struct idem_error *reterr)
{
    struct stat info;
    if (fstat(file->database_fd, &info) != 0) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "cannot look at %s: %s", path,
                              strerror(errno));
    }
    if (info.st_nlink > 1) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "%s has %llu names (hard links), and its log is found by only one "
                              "of them; remove the others, or serve a copy",
                              path, (unsigned long long)info.st_nlink);
    }
    return lock_take(file->database_fd, path, path, reterr);
}

static enum idem_err database_error(sqlite3 *handle, const char *what, struct idem_error *reterr)
{
    return idem_error_set(reterr, IDEM_E_STORE, "%s: %s", what, sqlite3_errmsg(handle));
}

static enum idem_err database_exec(sqlite3 *handle,
                                   const char *sql,
                                   const char *what,
                                   struct idem_error *reterr)
{
    int rc = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? IDEM_OK : database_error(handle, what, reterr);
}

/*
 * The first column of the first row: as a number, and as text if `ret_text` is given. No row
 * leaves both as they are.
 */
static int value_read(sqlite3 *handle,
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
        idem_buf_add(ret_text, idem_str_from(text));
    }
    if (rc == SQLITE_ROW && ret_number != NULL) {
        *ret_number = sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_finalize(statement); /* Repeats the step's error. */
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static enum idem_err database_open(const char *path,
                                   int flags,
                                   sqlite3 **ret_handle,
                                   struct idem_error *reterr)
{
    int rc = sqlite3_open_v2(path, ret_handle, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (*ret_handle == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    if (rc != SQLITE_OK) {
        return database_error(*ret_handle, "cannot open the store", reterr);
    }
    /* These fail only on misuse. */
    (void)sqlite3_extended_result_codes(*ret_handle, 1);
    (void)sqlite3_busy_timeout(*ret_handle, BUSY_TIMEOUT_MS);
    (void)sqlite3_db_config(*ret_handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return IDEM_OK;
}

/* Reads the file, so it stands behind the question whose file it is. */
static enum idem_err cache_setup(sqlite3 *handle, struct idem_error *reterr)
{
    return database_exec(handle, "PRAGMA cache_size = -65536", "cannot set up the store", reterr);
}

/* Ours, or empty and about to be. */
static enum idem_err owner_check(sqlite3 *handle,
                                 const char *path,
                                 bool *ret_new,
                                 struct idem_error *reterr)
{
    int64_t application_id = 0;
    int64_t objects = 0;
    int64_t version = 0;
    int rc = value_read(handle, "SELECT count(*) FROM sqlite_schema", &objects, NULL);
    if (rc == SQLITE_OK) {
        rc = value_read(handle, "PRAGMA application_id", &application_id, NULL);
    }
    if ((rc & 0xff) == SQLITE_NOTADB || (rc & 0xff) == SQLITE_CORRUPT) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "%s is damaged or not a store of idem; name another file or restore "
                              "a backup",
                              path);
    }
    if (rc != SQLITE_OK) {
        return database_error(handle, "cannot read the store", reterr);
    }
    if (application_id != IDEM_SQLITE_APPLICATION_ID && (objects > 0 || application_id != 0)) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "%s is a database of another program; name another file", path);
    }
    *ret_new = objects == 0;
    if (*ret_new) {
        return IDEM_OK;
    }
    rc = value_read(handle, "SELECT value FROM meta WHERE key = 'schema_version'", &version, NULL);
    if (rc != SQLITE_OK) {
        return database_error(handle, "cannot read the store's version", reterr);
    }
    if (version != IDEM_SQLITE_SCHEMA_VERSION) {
        return idem_error_set(
            reterr, IDEM_E_STORE,
            "%s has schema version %lld and this idem knows %d; use the idem that "
            "wrote it or a newer one",
            path, (long long)version, IDEM_SQLITE_SCHEMA_VERSION);
    }
    return IDEM_OK;
}

/* Log mode and flushing for the writing connection. */
static enum idem_err writer_setup(sqlite3 *handle, struct idem_error *reterr)
{
    char memory[16];
    struct idem_buf mode;
    idem_buf_init(&mode, memory, sizeof(memory));

    enum idem_err err = database_exec(handle, "PRAGMA page_size = 4096;",
                                      "cannot set the store's page size", reterr);
    if (err != IDEM_OK) {
        return err;
    }
    int rc = value_read(handle, "PRAGMA journal_mode = WAL", NULL, &mode);
    if (rc != SQLITE_OK || !idem_str_equal(idem_buf_str(&mode), IDEM_STR("wal"))) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "the store's write-ahead log cannot be used here: %s",
                              sqlite3_errmsg(handle));
    }
    return database_exec(handle,
                         "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                         "PRAGMA temp_store = MEMORY;",
                         "cannot set up the store", reterr);
}

static enum idem_err checkpoint_fully(sqlite3 *handle, struct idem_error *reterr)
{
    int rc = sqlite3_wal_checkpoint_v2(handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if ((rc & 0xff) == SQLITE_BUSY) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "another program reads or writes the store; close it first");
    }
    return rc == SQLITE_OK
               ? IDEM_OK
               : database_error(handle, "cannot bring the store up to date on disk", reterr);
}

static enum idem_err meta_write(sqlite3 *handle,
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
    return rc == SQLITE_DONE ? IDEM_OK : database_error(handle, "cannot write the store", reterr);
}

static struct idem_str digest_print(const struct idem_digest *digest, struct idem_buf *buf)
{
    idem_buf_add_hex(buf, digest->bytes, sizeof(digest->bytes));
    return idem_buf_str(buf);
}

static enum idem_err schema_make(sqlite3 *handle,
                                 const struct idem_store_options *options,
                                 struct idem_error *reterr)
{
    char sql[64];
    char memory[DIGEST_HEX_MAX];
    struct idem_buf check;
    idem_buf_init(&check, memory, sizeof(memory));
    (void)snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", IDEM_SQLITE_APPLICATION_ID);

    enum idem_err err = database_exec(handle, sql, "cannot make the store", reterr);
    for (size_t i = 0; i < idem_sqlite_schema_count && err == IDEM_OK; i++) {
        err =
            database_exec(handle, idem_sqlite_schema[i], "cannot make the store's tables", reterr);
    }
    if (err == IDEM_OK) {
        (void)snprintf(sql, sizeof(sql), "%d", IDEM_SQLITE_SCHEMA_VERSION);
        err = meta_write(handle, "schema_version", idem_str_from(sql), reterr);
    }
    if (err == IDEM_OK) {
        struct idem_str text = digest_print(&options->effect_secret_check, &check);
        err = meta_write(handle, "effect_secret_check", text, reterr);
    }
    if (err == IDEM_OK) {
        err = meta_write(handle, "scope_rule", options->scope_rule, reterr);
    }
    if (err == IDEM_OK) {
        idem_buf_reset(&check);
        idem_buf_add_i64(&check, idem_clock_wall_us(options->clock));
        err = meta_write(handle, "created_us", idem_buf_str(&check), reterr);
    }
    return err;
}

/* The configuration is the one that the records were made under. */
static enum idem_err options_check(sqlite3 *handle,
                                   const struct idem_store_options *options,
                                   struct idem_error *reterr)
{
    char stored_memory[256];
    char asked_memory[DIGEST_HEX_MAX];
    struct idem_buf stored;
    struct idem_buf asked;
    idem_buf_init(&stored, stored_memory, sizeof(stored_memory));
    idem_buf_init(&asked, asked_memory, sizeof(asked_memory));

    int rc = value_read(handle, "SELECT value FROM meta WHERE key = 'effect_secret_check'", NULL,
                        &stored);
    if (rc != SQLITE_OK) {
        return database_error(handle, "cannot read the store", reterr);
    }
    struct idem_str asked_text = digest_print(&options->effect_secret_check, &asked);
    if (!idem_str_equal(idem_buf_str(&stored), asked_text)) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "effect_secret is not the one this store was made with: every key in "
                              "it would be new to the providers; configure the former secret");
    }
    idem_buf_reset(&stored);
    rc = value_read(handle, "SELECT value FROM meta WHERE key = 'scope_rule'", NULL, &stored);
    if (rc != SQLITE_OK) {
        return database_error(handle, "cannot read the store", reterr);
    }
    if (!idem_str_equal(idem_buf_str(&stored), options->scope_rule)) {
        return idem_error_set(
            reterr, IDEM_E_STORE,
            "scope is \"%.*s\" but this store was made with \"%.*s\": every key in "
            "it would be new; configure the former scope",
            (int)options->scope_rule.len, options->scope_rule.data, (int)stored.len, stored.data);
    }
    return IDEM_OK;
}

static enum idem_err incarnation_raise(struct idem_sqlite_file *file, struct idem_error *reterr)
{
    char memory[32];
    struct idem_buf text;
    int64_t former = 0;
    idem_buf_init(&text, memory, sizeof(memory));

    int rc =
        value_read(file->writer, "SELECT value FROM meta WHERE key = 'incarnation'", &former, NULL);
    if (rc != SQLITE_OK) {
        return database_error(file->writer, "cannot read the store", reterr);
    }
    file->incarnation = former + 1;
    idem_buf_add_i64(&text, file->incarnation);
    return meta_write(file->writer, "incarnation", idem_buf_str(&text), reterr);
}

/* A store that was made without a birth time has none: 0. */
static enum idem_err created_read(struct idem_sqlite_file *file, struct idem_error *reterr)
{
    int rc = value_read(file->writer, "SELECT value FROM meta WHERE key = 'created_us'",
                        &file->created_us, NULL);
    return rc == SQLITE_OK ? IDEM_OK
                           : database_error(file->writer, "cannot read the store", reterr);
}

/* One transaction: schema if new, configuration compared, new incarnation. */
static enum idem_err incarnation_begin(struct idem_sqlite_file *file,
                                       const struct idem_store_options *options,
                                       bool is_new,
                                       struct idem_error *reterr)
{
    enum idem_err err =
        database_exec(file->writer, "BEGIN IMMEDIATE", "cannot write the store", reterr);
    if (err == IDEM_OK && is_new) {
        err = schema_make(file->writer, options, reterr);
    }
    if (err == IDEM_OK) {
        err = options_check(file->writer, options, reterr);
    }
    if (err == IDEM_OK) {
        err = incarnation_raise(file, reterr);
    }
    if (err == IDEM_OK) {
        err = database_exec(file->writer, "COMMIT", "cannot write the store", reterr);
    }
    if (err == IDEM_OK && is_new) {
        /* Into the file itself: without its log it must not look like one that is yet to begin. */
        err = checkpoint_fully(file->writer, reterr);
    }
    return err; /* Closing the connection undoes what was not committed. */
}

/* The last rows in order of insertion: among them is the newest time, or one just before it. */
static enum idem_err newest_find(struct idem_sqlite_file *file, struct idem_error *reterr)
{
    static const char sql[] =
        "SELECT max(at_us) FROM ("
        " SELECT * FROM (SELECT at_us FROM events ORDER BY row DESC LIMIT 256)"
        " UNION ALL"
        " SELECT * FROM (SELECT updated_us FROM intents ORDER BY row DESC LIMIT 256))";
    int rc = value_read(file->writer, sql, &file->newest_us, NULL);
    return rc == SQLITE_OK ? IDEM_OK
                           : database_error(file->writer, "cannot read the store", reterr);
}

enum idem_err idem_sqlite_file_open(struct idem_sqlite_file *file,
                                    const char *path,
                                    const struct idem_store_options *options,
                                    struct idem_error *reterr)
{
    char *absolute = NULL;
    bool is_new = false;
    *file = (struct idem_sqlite_file){ .lock_fd = -1, .database_fd = -1 };

    enum idem_err err = file_make(file, path, &absolute, reterr);
    if (err == IDEM_OK) {
        IDEM_ASSERT(absolute != NULL);
        err = name_lock(file, absolute, reterr);
    }
    if (err == IDEM_OK) {
        err = database_lock(file, absolute, reterr);
    }
    if (err == IDEM_OK) {
        err = directory_sync(absolute, reterr);
    }
    if (err == IDEM_OK) {
        err = database_open(absolute, SQLITE_OPEN_READWRITE, &file->writer, reterr);
    }
    if (err == IDEM_OK) {
        err = owner_check(file->writer, absolute, &is_new, reterr);
    }
    if (err == IDEM_OK) {
        err = writer_setup(file->writer, reterr);
    }
    if (err == IDEM_OK) {
        err = cache_setup(file->writer, reterr);
    }
    if (err == IDEM_OK) {
        err = checkpoint_fully(file->writer, reterr);
    }
    if (err == IDEM_OK) {
        err = incarnation_begin(file, options, is_new, reterr);
    }
    if (err == IDEM_OK) {
        err = created_read(file, reterr);
    }
    if (err == IDEM_OK) {
        err = newest_find(file, reterr);
    }
    if (err == IDEM_OK) {
        err = database_open(absolute, SQLITE_OPEN_READONLY, &file->reader, reterr);
    }
    if (err == IDEM_OK) {
        err = cache_setup(file->reader, reterr);
    }
    free(absolute);
    return err;
}

void idem_sqlite_file_close(struct idem_sqlite_file *file)
{
    (void)sqlite3_close(file->reader); /* No statement is open, so they close. NULL is accepted. */
    (void)sqlite3_close(file->writer);
    file->reader = NULL;
    file->writer = NULL;
    if (file->database_fd >= 0) {
        (void)close(file->database_fd); /* Gives the lock back, and drops all of SQLite's. */
        file->database_fd = -1;
    }
    if (file->lock_fd >= 0) {
        (void)close(file->lock_fd); /* Gives the lock back. */
        file->lock_fd = -1;
    }
}
