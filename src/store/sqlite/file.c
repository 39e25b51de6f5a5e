/*
 * The store's file: whether it is ours, what it knows of itself, and the new incarnation.
 *
 * Order matters:
 *
 *   1. Our own locks (lock.c).
 *   2. Whose file is it, and of which version? Asked before anything is written to it.
 *   3. A full checkpoint. An earlier process may have died after a failed flush, when the system's
 *      cache still showed what the disk never got. The log was made durable before it was first
 *      looked at (log_renew.c, between 1 and 2). Checkpointing writes its content again, into the
 *      file, and flushes that; what is there afterwards is there for good.
 *   4. One transaction: schema if new, configuration compared, the restored mode if asked for,
 *      the marks about time, incarnation + 1. Only when it is durable may anything be decided, and
 *      then every earlier lease is over.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/bug.h"
#include "store/sqlite/file_internal.h"
#include "store/sqlite/schema.h"

#define DIGEST_HEX_MAX (2 * IDEM_DIGEST_SIZE + 1)

/*
 * These read the file, so they stand behind the question whose file it is. The system's cache has
 * the pages as well: a larger one here gains next to nothing. Nothing is written before COMMIT:
 * log_file.c says why. A batch that changes more pages than fit has more for its time.
 */
#define WRITER_SETUP "PRAGMA cache_size = -16384; PRAGMA cache_spill = OFF"
#define READER_SETUP "PRAGMA cache_size = -2048"
/* It has a log to work on only once it has read the file. */
#define CHECKPOINTER_SETUP "PRAGMA synchronous = FULL; PRAGMA cache_size = -64"

static enum idem_err cache_setup(sqlite3 *handle, const char *sql, struct idem_error *reterr)
{
    return idem_sqlite_database_exec(handle, sql, "cannot set up the store", reterr);
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

    enum idem_err err = idem_sqlite_database_exec(handle, sql, "cannot make the store", reterr);
    for (size_t i = 0; i < idem_sqlite_schema_count && err == IDEM_OK; i++) {
        err = idem_sqlite_database_exec(handle, idem_sqlite_schema[i],
                                        "cannot make the store's tables", reterr);
    }
    if (err == IDEM_OK) {
        (void)snprintf(sql, sizeof(sql), "%d", IDEM_SQLITE_SCHEMA_VERSION);
        err = idem_sqlite_meta_write(handle, "schema_version", idem_str_from(sql), reterr);
    }
    if (err == IDEM_OK) {
        struct idem_str text = digest_print(&options->effect_secret_check, &check);
        err = idem_sqlite_meta_write(handle, "effect_secret_check", text, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sqlite_meta_write(handle, "scope_rule", options->scope_rule, reterr);
    }
    if (err == IDEM_OK) {
        idem_buf_reset(&check);
        idem_buf_add_i64(&check, idem_clock_wall_us(options->clock));
        err = idem_sqlite_meta_write(handle, "created_us", idem_buf_str(&check), reterr);
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

    int rc = idem_sqlite_value_read(
        handle, "SELECT value FROM meta WHERE key = 'effect_secret_check'", NULL, &stored);
    if (rc != SQLITE_OK) {
        return idem_sqlite_database_error(handle, "cannot read the store", reterr);
    }
    struct idem_str asked_text = digest_print(&options->effect_secret_check, &asked);
    if (!idem_str_equal(idem_buf_str(&stored), asked_text)) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "effect_secret is not the one this store was made with: every key in "
                              "it would be new to the providers; configure the former secret");
    }
    idem_buf_reset(&stored);
    rc = idem_sqlite_value_read(handle, "SELECT value FROM meta WHERE key = 'scope_rule'", NULL,
                                &stored);
    if (rc != SQLITE_OK) {
        return idem_sqlite_database_error(handle, "cannot read the store", reterr);
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

    int rc = idem_sqlite_value_read(
        file->writer, "SELECT value FROM meta WHERE key = 'incarnation'", &former, NULL);
    if (rc != SQLITE_OK) {
        return idem_sqlite_database_error(file->writer, "cannot read the store", reterr);
    }
    file->incarnation = former + 1;
    idem_buf_add_i64(&text, file->incarnation);
    return idem_sqlite_meta_write(file->writer, "incarnation", idem_buf_str(&text), reterr);
}

/* A number of the store's own; 0 if it is not there. */
static enum idem_err meta_number(sqlite3 *handle,
                                 const char *name,
                                 int64_t *ret_number,
                                 struct idem_error *reterr)
{
    char sql[96];
    *ret_number = 0;
    (void)snprintf(sql, sizeof(sql), "SELECT value FROM meta WHERE key = '%s'", name);
    int rc = idem_sqlite_value_read(handle, sql, ret_number, NULL);
    return rc == SQLITE_OK ? IDEM_OK
                           : idem_sqlite_database_error(handle, "cannot read the store", reterr);
}

static enum idem_err rows_count(sqlite3 *handle,
                                const char *sql,
                                int64_t *ret_count,
                                struct idem_error *reterr)
{
    int rc = idem_sqlite_value_read(handle, sql, ret_count, NULL);
    return rc == SQLITE_OK ? IDEM_OK
                           : idem_sqlite_database_error(handle, "cannot read the store", reterr);
}

static enum idem_err knowledge_read(struct idem_sqlite_file *file, struct idem_error *reterr)
{
    int64_t restored = 0;
    int64_t memory_since_us = 0;
    int64_t old_effect_ids = 0;
    const struct {
        const char *name;
        int64_t *number;
    } numbers[] = {
        { "created_us", &file->created_us },
        { IDEM_META_REAP_HORIZON, &file->marks.horizon_us },
        { IDEM_META_CLOCK_SEEN, &file->marks.seen_us },
        { IDEM_META_RESTORED_FROM, &file->restored_from_us },
        { IDEM_META_RESTORED_AT, &file->restored_at_us },
        { IDEM_META_MEMORY_SINCE, &memory_since_us },
        { IDEM_META_RESTORED, &restored },
        { IDEM_META_OLD_EFFECTS, &old_effect_ids },
    };
    enum idem_err err = idem_sqlite_newest_find(file->writer, &file->newest_us, reterr);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(numbers) && err == IDEM_OK; i++) {
        err = meta_number(file->writer, numbers[i].name, numbers[i].number, reterr);
    }
    file->restored = restored != 0;
    file->memory_since_us = memory_since_us > file->created_us ? memory_since_us : file->created_us;
    file->old_effect_ids = old_effect_ids != 0;
    if (err == IDEM_OK) {
        err = rows_count(file->writer, "SELECT count(*) FROM stubs", &file->stub_count, reterr);
    }
    return err == IDEM_OK ? rows_count(file->writer, "SELECT count(*) FROM webhooks",
                                       &file->webhook_count, reterr)
                          : err;
}

static enum idem_err meta_number_write(sqlite3 *handle,
                                       const char *name,
                                       int64_t number,
                                       struct idem_error *reterr)
{
    char memory[32];
    struct idem_buf text;
    idem_buf_init(&text, memory, sizeof(memory));
    idem_buf_add_i64(&text, number);
    return idem_sqlite_meta_write(handle, name, idem_buf_str(&text), reterr);
}

/*
 * In the mode already: what the copy has missed begins where it began, and the clock of that moment
 * is the one that its newest time is compared with. A later one may have caught up with a time that
 * was never true.
 */
static enum idem_err restored_begin(struct idem_sqlite_file *file, struct idem_error *reterr)
{
    if (file->restored) {
        return IDEM_OK;
    }
    file->restored = true;
    file->restored_from_us = file->newest_us;
    file->restored_at_us = file->opened_us;
    enum idem_err err = meta_number_write(file->writer, IDEM_META_RESTORED, 1, reterr);
    if (err == IDEM_OK) {
        err = meta_number_write(file->writer, IDEM_META_RESTORED_FROM, file->newest_us, reterr);
    }
    if (err == IDEM_OK) {
        err = meta_number_write(file->writer, IDEM_META_RESTORED_AT, file->opened_us, reterr);
    }
    return err;
}

static enum idem_err marks_begin(struct idem_sqlite_file *file, struct idem_error *reterr)
{
    file->marks = idem_run_marks_open(file->marks, file->newest_us, file->opened_us);
    enum idem_err err =
        meta_number_write(file->writer, IDEM_META_REAP_HORIZON, file->marks.horizon_us, reterr);
    return err == IDEM_OK
               ? meta_number_write(file->writer, IDEM_META_CLOCK_SEEN, file->marks.seen_us, reterr)
               : err;
}

/* One transaction: schema if new, configuration compared, marks, new incarnation. */
static enum idem_err incarnation_begin(struct idem_sqlite_file *file,
                                       const struct idem_store_options *options,
                                       bool is_new,
                                       struct idem_error *reterr)
{
    enum idem_err err = idem_sqlite_database_exec(file->writer, "BEGIN IMMEDIATE",
                                                  "cannot write the store", reterr);
    file->opened_us = idem_clock_wall_us(options->clock);
    if (err == IDEM_OK && is_new) {
        err = schema_make(file->writer, options, reterr);
    }
    if (err == IDEM_OK) {
        err = options_check(file->writer, options, reterr);
    }
    if (err == IDEM_OK) {
        err = knowledge_read(file, reterr);
    }
    if (err == IDEM_OK && options->restored) {
        err = restored_begin(file, reterr);
    }
    if (err == IDEM_OK) {
        err = marks_begin(file, reterr);
    }
    if (err == IDEM_OK) {
        err = incarnation_raise(file, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sqlite_database_exec(file->writer, "COMMIT", "cannot write the store", reterr);
    }
    if (err == IDEM_OK && is_new) {
        /* Into the file itself: without its log it must not look like one that is yet to begin. */
        err = idem_sqlite_checkpoint_fully(file->writer, reterr);
    }
    return err; /* Closing the connection undoes what was not committed. */
}

/* What this program can serve. */
static enum idem_err version_check(const char *path,
                                   int64_t version,
                                   const struct idem_store_options *options,
                                   struct idem_error *reterr)
{
    if (version == 0 && options->restored) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "%s is empty: --restored is for a copy of a store that was put back",
                              path);
    }
    if (version > 0 && version < IDEM_SQLITE_SCHEMA_VERSION) {
        return idem_error_set(reterr, IDEM_E_STORE,
                              "%s has schema version %lld and this idem needs %d; make a backup, "
                              "then run: idem migrate --store sqlite:%s",
                              path, (long long)version, IDEM_SQLITE_SCHEMA_VERSION, path);
    }
    if (version > IDEM_SQLITE_SCHEMA_VERSION) {
        return idem_error_set(
            reterr, IDEM_E_STORE,
            "%s has schema version %lld and this idem knows %d; use the idem that "
            "wrote it or a newer one",
            path, (long long)version, IDEM_SQLITE_SCHEMA_VERSION);
    }
    return IDEM_OK;
}

static enum idem_err writer_open(struct idem_sqlite_file *file,
                                 const char *path,
                                 const struct idem_store_options *options,
                                 struct idem_error *reterr)
{
    int64_t version = 0;
    enum idem_err err = idem_sqlite_batch_writer_open(path, &file->writer, reterr);
    if (err == IDEM_OK) {
        err = idem_sqlite_owner_check(file->writer, path, &version, reterr);
    }
    if (err == IDEM_OK) {
        err = version_check(path, version, options, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sqlite_writer_setup(file->writer, version == 0, reterr);
    }
    if (err == IDEM_OK) {
        err = cache_setup(file->writer, WRITER_SETUP, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sqlite_checkpoint_fully(file->writer, reterr);
    }
    return err == IDEM_OK ? incarnation_begin(file, options, version == 0, reterr) : err;
}

enum idem_err idem_sqlite_file_open(struct idem_sqlite_file *file,
                                    const char *path,
                                    const struct idem_store_options *options,
                                    struct idem_error *reterr)
{
    char *absolute = NULL;
    enum idem_err err = idem_sqlite_file_lock(file, path, true, &absolute, reterr);
    if (err == IDEM_OK) {
        err = idem_sqlite_log_renew(absolute, file->database_fd, reterr);
    }
    if (err == IDEM_OK) {
        err = writer_open(file, absolute, options, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sqlite_database_open(absolute, SQLITE_OPEN_READONLY, &file->reader, reterr);
    }
    if (err == IDEM_OK) {
        err = cache_setup(file->reader, READER_SETUP, reterr);
    }
    if (err == IDEM_OK) {
        err =
            idem_sqlite_database_open(absolute, SQLITE_OPEN_READWRITE, &file->checkpointer, reterr);
    }
    if (err == IDEM_OK) {
        err = cache_setup(file->checkpointer, CHECKPOINTER_SETUP, reterr);
    }
    free(absolute);
    return err;
}
