/*
 * The connection: its settings, the tables, the statements.
 *
 * Tables, application id and version are made in one transaction with a rollback journal, and only
 * then does the file change to a write-ahead log: so from its first page on the file itself says
 * what it is, and journal_file.c can tell before it is opened as a database. Openings of one
 * journal happen one after the other (file_lock), since SQLite does not wait for that change.
 *
 * The checkpoint at each opening is for a process that died after a failed flush: the system may
 * still show what the disk never got. A checkpoint writes it again.
 *
 * `id` is an AUTOINCREMENT: a number that is used again would let a stale record, whose intent was
 * forgotten, match another one of the same version.
 */
#include <assert.h>
#include <stdio.h>

#include "base/bug.h"
#include "client/journal_columns.h"
#include "client/journal_internal.h"

static_assert(IDEM_CLIENT_REFUSED == 2, "it stands in SQL and in files");
static_assert(IDEM_CLIENT_UNKNOWN == 3 && IDEM_CLIENT_DECIDED == 8, "the ranges in the schema");

/* Long values last: a list that does not need them does not read them. */
static const char schema[] =
    "CREATE TABLE meta ("
    "  name TEXT PRIMARY KEY,"
    "  value INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE intents ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  version INTEGER NOT NULL CHECK (version > 0),"
    "  generation INTEGER NOT NULL CHECK (generation > 0)," /* Keys it has had. */
    "  name TEXT NOT NULL UNIQUE,"
    "  key TEXT NOT NULL,"
    "  key_own INTEGER NOT NULL CHECK (key_own IN (0, 1)),"
    "  dialect TEXT NOT NULL,"
    "  method TEXT NOT NULL,"
    "  url TEXT NOT NULL,"
    "  status_url TEXT NOT NULL,"
    "  deadline_us INTEGER NOT NULL,"
    "  window_us INTEGER NOT NULL,"
    "  created_us INTEGER NOT NULL,"
    "  first_wall_us INTEGER NOT NULL,"
    "  first_mono_us INTEGER NOT NULL,"
    "  first_boot TEXT NOT NULL,"
    "  begun_us INTEGER NOT NULL,"
    "  asker TEXT NOT NULL," /* Digest of the credential. */
    "  doubt INTEGER NOT NULL CHECK (doubt IN (0, 1)),"
    "  outcome INTEGER NOT NULL DEFAULT 0 CHECK (outcome BETWEEN 0 AND 3),"
    "  reason INTEGER NOT NULL DEFAULT 0 CHECK (reason BETWEEN 0 AND 8),"
    "  over INTEGER NOT NULL DEFAULT 0 CHECK (over IN (0, 1)),"
    "  replayed INTEGER NOT NULL DEFAULT 0 CHECK (replayed IN (0, 1)),"
    "  answer_status INTEGER NOT NULL DEFAULT 0,"
    "  expires_us INTEGER NOT NULL DEFAULT 0,"
    "  ended_us INTEGER NOT NULL DEFAULT 0,"
    "  operation_url TEXT NOT NULL DEFAULT '',"
    "  message TEXT NOT NULL DEFAULT '',"
    "  answer_headers BLOB NOT NULL DEFAULT x'',"
    "  headers BLOB NOT NULL,"
    "  body BLOB NOT NULL,"
    "  answer_body BLOB NOT NULL DEFAULT x''"
    ") STRICT;"
    "CREATE UNIQUE INDEX intents_key ON intents (key, method, url);" /* One name a key. */
    "CREATE INDEX intents_pending ON intents (over) WHERE over = 0;"
    "CREATE TABLE former_keys ("
    "  intent INTEGER NOT NULL REFERENCES intents (id) ON DELETE CASCADE,"
    "  generation INTEGER NOT NULL,"
    "  key TEXT NOT NULL,"
    "  request_digest BLOB NOT NULL CHECK (length(request_digest) = 32),"
    "  outcome INTEGER NOT NULL,"
    "  reason INTEGER NOT NULL,"
    "  message TEXT NOT NULL,"
    "  ended_us INTEGER NOT NULL,"
    "  PRIMARY KEY (intent, generation)"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO meta (name, value) VALUES ('high_us', 0), ('serial', 0);";

/* The last verdict goes. Until when the server knows the key is not part of it. */
#define NO_VERDICT                                                   \
    "outcome = 0, reason = 0, over = 0, replayed = 0, message = ''," \
    " answer_status = 0, answer_headers = x'', answer_body = x'', ended_us = 0"
#define THIS_VERSION "version = version + 1 WHERE id = ? AND version = ?"
#define NEXT_COLUMNS                                                                 \
    "SELECT name, key, method, url, status_url, operation_url, id, outcome, reason," \
    " over, answer_status, created_us, ended_us, dialect FROM intents"

/*
 * A run is in doubt from its beginning: that is written here, whatever the caller hands in. A run
 * that is not the first finds its key and its request here, or does not begin.
 */
static const char *const sqls[IDEM_CLIENT_SQL_COUNT] = {
    [IDEM_CLIENT_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [IDEM_CLIENT_SQL_COMMIT] = "COMMIT",
    [IDEM_CLIENT_SQL_ROLLBACK] = "ROLLBACK",
    [IDEM_CLIENT_SQL_FIND] =
        "SELECT id, version, name, " IDEM_CLIENT_REQUEST_COLUMNS ", " IDEM_CLIENT_RUN_COLUMNS
        ", " IDEM_CLIENT_VERDICT_COLUMNS ", generation FROM intents WHERE name = ?",
    [IDEM_CLIENT_SQL_INSERT] =
        "INSERT INTO intents (version, generation, doubt, name, " IDEM_CLIENT_REQUEST_COLUMNS
        ", " IDEM_CLIENT_RUN_COLUMNS ") VALUES (1, 1, 1, ?, " IDEM_CLIENT_REQUEST_VALUES
        ", " IDEM_CLIENT_RUN_VALUES ") ON CONFLICT (name) DO NOTHING",
    [IDEM_CLIENT_SQL_REPEAT] =
        "UPDATE intents SET (" IDEM_CLIENT_RUN_COLUMNS ") = (" IDEM_CLIENT_RUN_VALUES
        "), doubt = 1, " NO_VERDICT ", " THIS_VERSION " AND key = ?",
    [IDEM_CLIENT_SQL_NOTE] = "UPDATE intents SET operation_url = ?, " THIS_VERSION,
    [IDEM_CLIENT_SQL_END] = "UPDATE intents SET (" IDEM_CLIENT_VERDICT_COLUMNS
                            ") = (" IDEM_CLIENT_VERDICT_VALUES "), " THIS_VERSION,
    [IDEM_CLIENT_SQL_RENEW] =
        "UPDATE intents SET (" IDEM_CLIENT_REQUEST_COLUMNS ", " IDEM_CLIENT_RUN_COLUMNS
        ") = (" IDEM_CLIENT_REQUEST_VALUES ", " IDEM_CLIENT_RUN_VALUES
        "), doubt = ?, operation_url = '', expires_us = 0, generation = generation + 1, " NO_VERDICT
        ", " THIS_VERSION,
    [IDEM_CLIENT_SQL_FORMER] =
        "INSERT INTO former_keys"
        " SELECT id, generation, key, ?, outcome, reason, message, ended_us FROM intents"
        " WHERE id = ? AND version = ?",
    [IDEM_CLIENT_SQL_NEXT] = NEXT_COLUMNS " WHERE id > ? ORDER BY id LIMIT 1",
    [IDEM_CLIENT_SQL_NEXT_PENDING] = NEXT_COLUMNS " WHERE over = 0 AND id > ? ORDER BY id LIMIT 1",
    [IDEM_CLIENT_SQL_FORGET] =
        "DELETE FROM intents WHERE name = ?"
        " AND (over = 1 OR (outcome = 2 AND doubt = 0))",
    /*
     * Of the next 256 those before which there are less than 2 MiB: the first one always. What is
     * deleted is overwritten, and others wait for it. RETURNING, so that the next part begins
     * behind this one.
     */
    [IDEM_CLIENT_SQL_FORGET_PART] =
        "DELETE FROM intents WHERE id IN (SELECT id FROM (SELECT id, sum(size) OVER"
        " (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ahead"
        " FROM (SELECT id, length(body) + length(answer_body) AS size FROM intents"
        " WHERE id > ? AND over = 1 AND ended_us BETWEEN 1 AND ? ORDER BY id LIMIT 256))"
        " WHERE ahead IS NULL OR ahead < 2097152) RETURNING id",
    [IDEM_CLIENT_SQL_HIGH] = "SELECT value FROM meta WHERE name = 'high_us'",
    [IDEM_CLIENT_SQL_SERIAL] = "SELECT value FROM meta WHERE name = 'serial'",
    [IDEM_CLIENT_SQL_SERIAL_RAISE] =
        "UPDATE meta SET value = value + 1 WHERE name = 'serial' RETURNING value",
    [IDEM_CLIENT_SQL_HIGH_RAISE] =
        "UPDATE meta SET value = ?1 WHERE name = 'high_us' AND value < ?1",
};

static enum idem_client_err exec(struct idem_client_journal *journal,
                                 const char *sql,
                                 struct idem_client_error *reterr)
{
    int rc = sqlite3_exec(journal->handle, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK
               ? IDEM_CLIENT_OK
               : idem_client_journal_sqlite_fail(journal, "the journal cannot be opened", reterr);
}

/* The number in the first column of the first row. */
static enum idem_client_err number_read(struct idem_client_journal *journal,
                                        const char *sql,
                                        int64_t *ret_number,
                                        struct idem_client_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(journal->handle, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
    }
    if (rc == SQLITE_ROW) {
        *ret_number = sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_finalize(statement); /* Repeats the step's error. */
    return rc == SQLITE_ROW
               ? IDEM_CLIENT_OK
               : idem_client_journal_sqlite_fail(journal, "the journal cannot be read", reterr);
}

/* Inside a transaction: ours, or empty and made now. */
static enum idem_client_err tables_make(struct idem_client_journal *journal,
                                        struct idem_client_error *reterr)
{
    int64_t application_id = 0;
    int64_t version = 0;
    int64_t objects = 0;
    enum idem_client_err err =
        number_read(journal, "SELECT count(*) FROM sqlite_schema", &objects, reterr);
    if (err == IDEM_CLIENT_OK) {
        err = number_read(journal, "PRAGMA application_id", &application_id, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = number_read(journal, "PRAGMA user_version", &version, reterr);
    }
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    if (objects == 0 && application_id == 0 && version == 0) {
        char sql[96];
        (void)snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
                       IDEM_CLIENT_JOURNAL_APPLICATION_ID, IDEM_CLIENT_JOURNAL_VERSION);
        err = exec(journal, sql, reterr);
        return err == IDEM_CLIENT_OK ? exec(journal, schema, reterr) : err;
    }
    if (application_id != IDEM_CLIENT_JOURNAL_APPLICATION_ID ||
        version != IDEM_CLIENT_JOURNAL_VERSION) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                "%s has become another database; name another file", journal->path);
    }
    return IDEM_CLIENT_OK;
}

static enum idem_client_err schema_make(struct idem_client_journal *journal,
                                        struct idem_client_error *reterr)
{
    enum idem_client_err err = exec(journal, "BEGIN IMMEDIATE", reterr);
    if (err == IDEM_CLIENT_OK) {
        err = tables_make(journal, reterr);
    }
    return err == IDEM_CLIENT_OK ? exec(journal, "COMMIT", reterr) : err;
}

/* Where shared memory cannot be had, SQLite stays with the mode that it has and says so. */
static enum idem_client_err log_choose(struct idem_client_journal *journal,
                                       struct idem_client_error *reterr)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(journal->handle, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
    }
    struct idem_str mode = { .len = 0 };
    bool chosen = rc == SQLITE_ROW && idem_client_journal_column(statement, 0, &mode) &&
                  idem_str_equal(mode, IDEM_STR("wal"));
    bool done = sqlite3_finalize(statement) == SQLITE_OK; /* Here it flushes. */
    return chosen && done
               ? IDEM_CLIENT_OK
               : idem_client_journal_sqlite_fail(
                     journal, "the journal's write-ahead log cannot be used here", reterr);
}

/* Another one that does the same, or a disk without room, changes nothing about what is there. */
static enum idem_client_err checkpoint(struct idem_client_journal *journal,
                                       struct idem_client_error *reterr)
{
    int rc =
        sqlite3_wal_checkpoint_v2(journal->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    int primary = rc & 0xff;
    return primary == SQLITE_OK || primary == SQLITE_BUSY || primary == SQLITE_FULL
               ? IDEM_CLIENT_OK
               : idem_client_journal_sqlite_fail(
                     journal, "the journal cannot be brought up to date on the disk", reterr);
}

static enum idem_client_err statements_prepare(struct idem_client_journal *journal,
                                               struct idem_client_error *reterr)
{
    for (size_t i = 0; i < IDEM_CLIENT_SQL_COUNT; i++) {
        int rc = sqlite3_prepare_v3(journal->handle, sqls[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &journal->statements[i], NULL);
        if (rc != SQLITE_OK) {
            return idem_client_journal_sqlite_fail(journal, "the journal cannot be read", reterr);
        }
    }
    return IDEM_CLIENT_OK;
}

static enum idem_client_err handle_open(struct idem_client_journal *journal,
                                        struct idem_client_error *reterr)
{
    int rc = sqlite3_open_v2(journal->path, &journal->handle,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (journal->handle == NULL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory");
    }
    if (rc != SQLITE_OK) {
        return idem_client_journal_sqlite_fail(journal, "the journal cannot be opened", reterr);
    }
    /* These fail only on misuse. What is refused below is closed without a checkpoint. */
    (void)sqlite3_extended_result_codes(journal->handle, 1);
    (void)sqlite3_busy_timeout(journal->handle, IDEM_CLIENT_JOURNAL_BUSY_MS);
    (void)sqlite3_db_config(journal->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(journal->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (sqlite3_db_readonly(journal->handle, "main") != 0) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                "the journal cannot be written: it is read-only (%s)",
                                journal->path);
    }
    return IDEM_CLIENT_OK;
}

enum idem_client_err idem_client_journal_connect(struct idem_client_journal *journal,
                                                 struct idem_client_error *reterr)
{
    enum idem_client_err err = handle_open(journal, reterr);
    if (err == IDEM_CLIENT_OK) {
        err = exec(journal,
                   "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
                   "PRAGMA secure_delete = ON;",
                   reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = schema_make(journal, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = log_choose(journal, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        (void)sqlite3_db_config(journal->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        err = checkpoint(journal, reterr);
    }
    return err == IDEM_CLIENT_OK ? statements_prepare(journal, reterr) : err;
}

void idem_client_journal_disconnect(struct idem_client_journal *journal)
{
    for (size_t i = 0; i < IDEM_CLIENT_SQL_COUNT; i++) {
        (void)sqlite3_finalize(journal->statements[i]); /* Repeats the last step's error. */
        journal->statements[i] = NULL;
    }
    int rc = sqlite3_close(journal->handle); /* Accepts NULL. */
    IDEM_ASSERT(rc == SQLITE_OK);            /* Not OK only while statements are left. */
    journal->handle = NULL;
}
