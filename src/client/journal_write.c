/*
 * Writing: each call is one transaction that takes the write lock first (BEGIN IMMEDIATE), so that
 * what it looks at is still so when it writes.
 *
 * Every change names the version that it was made from; a row that has moved on undoes all of the
 * call, and so do files that no longer stand under their names (journal_file.c). A begin changes
 * neither a known record's key nor its request. Records are changed only after COMMIT, but for the
 * id of a new one, which is known earlier and is taken back. version 0 marks new ones until then.
 */
#include <string.h>
#include <time.h>

#include "base/bug.h"
#include "client/journal_internal.h"
#include "client/request.h"

#define CANNOT_WRITE "the journal cannot be written"
#define CHANGED      "it was changed since this handle was made; release it and take it again"
#define METHOD_MAX   (sizeof(((struct idem_client_entry *)0)->method) - 1)
#define KEY_MAX      (sizeof(((struct idem_client_entry *)0)->key) - 1)
#define DIALECT_MAX  32

/* Between two parts: who waits for the lock looks for it every 100 ms at the latest. */
#define PART_PAUSE_NS 10000000L

static enum idem_client_err run(struct idem_client_journal *journal,
                                enum idem_client_statement which,
                                struct idem_client_error *reterr)
{
    sqlite3_stmt *statement = journal->statements[which];
    int rc = sqlite3_step(statement);
    enum idem_client_err err = rc == SQLITE_DONE
                                   ? IDEM_CLIENT_OK
                                   : idem_client_journal_sqlite_fail(journal, CANNOT_WRITE, reterr);
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    return err;
}

/* Runs a guarded change, which must hit its row. */
static enum idem_client_err run_guarded(struct idem_client_journal *journal,
                                        enum idem_client_statement which,
                                        struct idem_client_error *reterr)
{
    enum idem_client_err err = run(journal, which, reterr);
    if (err == IDEM_CLIENT_OK && sqlite3_changes(journal->handle) != 1) {
        err = idem_client_fail(reterr, IDEM_CLIENT_E_BUSY, CHANGED);
    }
    return err;
}

/* Ends the transaction, if one is open: commits it if `err` is OK, else undoes it. */
static enum idem_client_err finish(struct idem_client_journal *journal,
                                   enum idem_client_err err,
                                   struct idem_client_error *reterr)
{
    int64_t serial = 0;
    if (err == IDEM_CLIENT_OK) {
        err = idem_client_journal_serial_raise(journal, &serial, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = run(journal, IDEM_CLIENT_SQL_COMMIT, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        idem_client_journal_serial_publish(journal, serial);
    }
    if (err != IDEM_CLIENT_OK && sqlite3_get_autocommit(journal->handle) == 0) {
        /* If this fails, SQLite is still inside, and the next BEGIN says so. */
        (void)run(journal, IDEM_CLIENT_SQL_ROLLBACK, NULL);
    }
    return err;
}

static int64_t latest(int64_t left_us, int64_t right_us)
{
    return left_us > right_us ? left_us : right_us;
}

static enum idem_client_err high_raise(struct idem_client_journal *journal,
                                       int64_t wall_us,
                                       struct idem_client_error *reterr)
{
    sqlite3_stmt *statement = journal->statements[IDEM_CLIENT_SQL_HIGH_RAISE];
    (void)idem_client_journal_bind_i64(statement, 1, wall_us);
    return run(journal, IDEM_CLIENT_SQL_HIGH_RAISE, reterr);
}

static enum idem_client_err request_check(const struct idem_client_record *record,
                                          struct idem_client_error *reterr)
{
    const struct {
        size_t len;
        size_t max;
        const char *what;
    } texts[] = {
        { record->key.len, KEY_MAX, "key" },
        { record->dialect.len, DIALECT_MAX, "dialect" },
        { record->method.len, METHOD_MAX, "method" },
        { record->url.len, IDEM_CLIENT_URL_MAX, "URL" },
        { record->status_url.len, IDEM_CLIENT_URL_MAX, "status URL" },
        { record->headers.len, IDEM_CLIENT_HEADER_SIZE, "headers together" },
        { record->body.len, IDEM_CLIENT_BODY_MAX, "body" },
    };
    if (!idem_request_text(record->name, IDEM_CLIENT_NAME_MAX)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "a name is 1 to %d bytes of UTF-8 without control characters",
                                IDEM_CLIENT_NAME_MAX);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(texts); i++) {
        if (texts[i].len > texts[i].max) {
            return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID, "%s: longer than %zu bytes",
                                    texts[i].what, texts[i].max);
        }
    }
    return IDEM_CLIENT_OK;
}

static int bind_guard(sqlite3_stmt *statement, int index, const struct idem_client_record *record)
{
    index = idem_client_journal_bind_i64(statement, index, record->id);
    return idem_client_journal_bind_i64(statement, index, record->version);
}

static enum idem_client_err record_insert(struct idem_client_journal *journal,
                                          struct idem_client_record *record,
                                          struct idem_client_error *reterr)
{
    sqlite3_stmt *statement = journal->statements[IDEM_CLIENT_SQL_INSERT];
    int index = idem_client_journal_bind_text(statement, 1, record->name);
    index = idem_client_journal_bind_request(statement, index, record);
    (void)idem_client_journal_bind_run(statement, index, record);
    enum idem_client_err err = run_guarded(journal, IDEM_CLIENT_SQL_INSERT, reterr);
    if (err == IDEM_CLIENT_OK) {
        record->id = sqlite3_last_insert_rowid(journal->handle);
    }
    return err;
}

/* Why a record that was known is not as it was: it is gone, or another one has changed it. */
static enum idem_client_err stale_fail(struct idem_client_journal *journal,
                                       const struct idem_client_record *record,
                                       struct idem_client_error *reterr)
{
    struct idem_client_record found;
    struct idem_client_error error;
    enum idem_client_err err = idem_client_journal_find(journal, record->name, &found, &error);
    if (err == IDEM_CLIENT_E_UNKNOWN) {
        return idem_client_fail(reterr, err, "%.*s: " IDEM_CLIENT_FORGOTTEN, (int)record->name.len,
                                record->name.data);
    }
    if (err == IDEM_CLIENT_OK) {
        idem_client_record_clear(&found);
    }
    return idem_client_fail(reterr, IDEM_CLIENT_E_BUSY, CHANGED);
}

static enum idem_client_err record_begin(struct idem_client_journal *journal,
                                         struct idem_client_record *record,
                                         struct idem_client_error *reterr)
{
    enum idem_client_err err = request_check(record, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    if (record->version == 0) {
        return record_insert(journal, record, reterr);
    }
    sqlite3_stmt *statement = journal->statements[IDEM_CLIENT_SQL_REPEAT];
    int index = idem_client_journal_bind_run(statement, 1, record);
    index = bind_guard(statement, index, record);
    (void)idem_client_journal_bind_text(statement, index, record->key);
    err = run_guarded(journal, IDEM_CLIENT_SQL_REPEAT, reterr);
    return err == IDEM_CLIENT_E_BUSY ? stale_fail(journal, record, reterr) : err;
}

static enum idem_client_err record_note(struct idem_client_journal *journal,
                                        struct idem_client_record *record,
                                        struct idem_client_error *reterr)
{
    sqlite3_stmt *statement = journal->statements[IDEM_CLIENT_SQL_NOTE];
    int index = idem_client_journal_bind_text(statement, 1, record->operation_url);
    (void)bind_guard(statement, index, record);
    return run_guarded(journal, IDEM_CLIENT_SQL_NOTE, reterr);
}

static enum idem_client_err record_end(struct idem_client_journal *journal,
                                       struct idem_client_record *record,
                                       struct idem_client_error *reterr)
{
    sqlite3_stmt *statement = journal->statements[IDEM_CLIENT_SQL_END];
    int index = idem_client_journal_bind_verdict(statement, 1, record);
    (void)bind_guard(statement, index, record);
    return run_guarded(journal, IDEM_CLIENT_SQL_END, reterr);
}

/* All records or none, and the latest wall time of them. */
static enum idem_client_err write_all(struct idem_client_journal *journal,
                                      struct idem_client_record *const *records,
                                      size_t count,
                                      enum idem_client_err (*write)(struct idem_client_journal *,
                                                                    struct idem_client_record *,
                                                                    struct idem_client_error *),
                                      struct idem_client_error *reterr)
{
    int64_t high_us = 0;
    enum idem_client_err err = idem_client_journal_in_place(journal, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    err = run(journal, IDEM_CLIENT_SQL_BEGIN, reterr);
    for (size_t i = 0; i < count && err == IDEM_CLIENT_OK; i++) {
        err = write(journal, records[i], reterr);
        high_us = latest(high_us, latest(records[i]->first.wall_us, records[i]->begun_us));
        high_us = latest(high_us, latest(records[i]->created_us, records[i]->ended_us));
    }
    if (err == IDEM_CLIENT_OK) {
        err = high_raise(journal, high_us, reterr);
    }
    err = finish(journal, err, reterr);
    for (size_t i = 0; i < count; i++) {
        if (err == IDEM_CLIENT_OK) {
            records[i]->version += 1;
        } else if (records[i]->version == 0) {
            records[i]->id = 0;
        }
    }
    if (err == IDEM_CLIENT_OK) {
        journal->high_us = latest(journal->high_us, high_us);
    }
    return err;
}

enum idem_client_err idem_client_journal_begin(struct idem_client_journal *journal,
                                               struct idem_client_record *const *records,
                                               size_t count,
                                               struct idem_client_error *reterr)
{
    return write_all(journal, records, count, record_begin, reterr);
}

enum idem_client_err idem_client_journal_note(struct idem_client_journal *journal,
                                              struct idem_client_record *const *records,
                                              size_t count,
                                              struct idem_client_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        IDEM_ASSERT(records[i]->id > 0 && records[i]->version > 0);
    }
    return write_all(journal, records, count, record_note, reterr);
}

enum idem_client_err idem_client_journal_end(struct idem_client_journal *journal,
                                             struct idem_client_record *const *records,
                                             size_t count,
                                             struct idem_client_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        IDEM_ASSERT(records[i]->id > 0 && records[i]->version > 0);
    }
    return write_all(journal, records, count, record_end, reterr);
}

/*
 * Of a request's fields, each with its length. The key is no secret: it only says what is hashed.
 * The former request's digest and not its bytes: who still has them can show that they are the
 * ones, and a body, which is personal data, is kept once.
 */
static struct idem_digest request_digest(struct idem_client_journal *journal,
                                         const struct idem_client_record *record)
{
    struct idem_digester *digester = journal->digester;
    idem_hmac_begin(digester, IDEM_STR("idem-former-request"));
    idem_hmac_add_field(digester, record->dialect);
    idem_hmac_add_field(digester, record->method);
    idem_hmac_add_field(digester, record->url);
    idem_hmac_add_field(digester, record->headers);
    idem_hmac_add_field(digester, record->body);
    return idem_hmac_end(digester);
}

/* Inside the transaction: what the journal has is what the caller wants to replace, and may be. */
static enum idem_client_err renew_check(const struct idem_client_record *former,
                                        const struct idem_client_record *record,
                                        struct idem_client_error *reterr)
{
    if (former->id != record->id || former->version != record->version) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_BUSY, CHANGED);
    }
    if (former->outcome != IDEM_CLIENT_REFUSED) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_REFUSED,
                                "its last verdict is not REFUSED: under the present key it "
                                "may still happen");
    }
    return IDEM_CLIENT_OK;
}

static enum idem_client_err former_keep(struct idem_client_journal *journal,
                                        const struct idem_client_record *record,
                                        struct idem_client_error *reterr)
{
    struct idem_client_record former;
    enum idem_client_err err = idem_client_journal_find(journal, record->name, &former, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    struct idem_digest digest = request_digest(journal, &former);
    err = renew_check(&former, record, reterr);
    idem_client_record_clear(&former);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    sqlite3_stmt *statement = journal->statements[IDEM_CLIENT_SQL_FORMER];
    /* If it fails there is no digest, and the row is refused. */
    (void)sqlite3_bind_blob(statement, 1, digest.bytes, sizeof(digest.bytes), SQLITE_TRANSIENT);
    (void)bind_guard(statement, 2, record);
    return run_guarded(journal, IDEM_CLIENT_SQL_FORMER, reterr);
}

static enum idem_client_err record_renew(struct idem_client_journal *journal,
                                         struct idem_client_record *record,
                                         struct idem_client_error *reterr)
{
    enum idem_client_err err = request_check(record, reterr);
    if (err == IDEM_CLIENT_OK) {
        err = former_keep(journal, record, reterr);
    }
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    sqlite3_stmt *statement = journal->statements[IDEM_CLIENT_SQL_RENEW];
    int index = idem_client_journal_bind_request(statement, 1, record);
    index = idem_client_journal_bind_run(statement, index, record);
    index = idem_client_journal_bind_i64(statement, index, record->doubt ? 1 : 0);
    (void)bind_guard(statement, index, record);
    return run_guarded(journal, IDEM_CLIENT_SQL_RENEW, reterr);
}

enum idem_client_err idem_client_journal_renew(struct idem_client_journal *journal,
                                               struct idem_client_record *record,
                                               struct idem_client_error *reterr)
{
    IDEM_ASSERT(record->id > 0 && record->version > 0);
    return write_all(journal, &record, 1, record_renew, reterr);
}

enum idem_client_err idem_client_journal_forget(struct idem_client_journal *journal,
                                                struct idem_str name,
                                                struct idem_client_error *reterr)
{
    struct idem_client_record record;
    enum idem_client_err err = idem_client_journal_in_place(journal, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    err = run(journal, IDEM_CLIENT_SQL_BEGIN, reterr);
    if (err == IDEM_CLIENT_OK) {
        err = idem_client_journal_find(journal, name, &record, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        bool harmless = record.outcome == IDEM_CLIENT_REFUSED && !record.doubt;
        bool forgettable = record.over || harmless;
        idem_client_record_clear(&record);
        if (!forgettable) {
            err = idem_client_fail(reterr, IDEM_CLIENT_E_REFUSED,
                                   "it may have happened: only its name leads back to it");
        }
    }
    if (err == IDEM_CLIENT_OK) {
        sqlite3_stmt *statement = journal->statements[IDEM_CLIENT_SQL_FORGET];
        (void)idem_client_journal_bind_text(statement, 1, name);
        err = run_guarded(journal, IDEM_CLIENT_SQL_FORGET, reterr);
    }
    return finish(journal, err, reterr);
}

/* Deletes the next part behind `*position`, which becomes its last. Zero of them: the end. */
static enum idem_client_err part_forget(struct idem_client_journal *journal,
                                        int64_t until_us,
                                        int64_t *position,
                                        int64_t *ret_count,
                                        struct idem_client_error *reterr)
{
    sqlite3_stmt *statement = journal->statements[IDEM_CLIENT_SQL_FORGET_PART];
    enum idem_client_err err = IDEM_CLIENT_OK;
    int64_t last = *position;
    int64_t count = 0;
    int rc;
    (void)idem_client_journal_bind_i64(statement, 1, *position);
    (void)idem_client_journal_bind_i64(statement, 2, until_us);
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        last = latest(last, sqlite3_column_int64(statement, 0)); /* In any order. */
        count += 1;
    }
    if (rc != SQLITE_DONE) {
        err = idem_client_journal_sqlite_fail(journal, CANNOT_WRITE, reterr);
    }
    (void)sqlite3_reset(statement); /* Only repeats what the step said. */
    if (err == IDEM_CLIENT_OK) {
        *position = last;
        *ret_count = count;
    }
    return err;
}

enum idem_client_err idem_client_journal_forget_until(struct idem_client_journal *journal,
                                                      int64_t until_us,
                                                      int64_t *ret_count,
                                                      struct idem_client_error *reterr)
{
    enum idem_client_err err;
    int64_t position = 0;
    int64_t total = 0;
    int64_t count;
    do {
        count = 0;
        err = idem_client_journal_in_place(journal, reterr);
        if (err == IDEM_CLIENT_OK) {
            err = run(journal, IDEM_CLIENT_SQL_BEGIN, reterr);
        }
        if (err == IDEM_CLIENT_OK) {
            err = part_forget(journal, until_us, &position, &count, reterr);
            err = finish(journal, err, reterr);
        }
        if (err == IDEM_CLIENT_OK && count > 0) {
            total += count;
            const struct timespec pause = { .tv_nsec = PART_PAUSE_NS };
            (void)nanosleep(&pause, NULL); /* Shorter does not matter. */
        }
    } while (err == IDEM_CLIENT_OK && count > 0);
    *ret_count = total;
    return err;
}
