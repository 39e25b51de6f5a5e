/*
 * The tables, made in the caller's transaction; the file's time; what SQLite's codes mean here.
 *
 * Time. The row of idem_local_meta has the highest time that anybody has written by. Every writing
 * call begins by raising it to the machine's clock and going on with what stands there: so time
 * never goes back behind a stored lease, the write lock is taken before anything is read (a
 * transaction that reads first may be refused the lock later: SQLITE_BUSY_SNAPSHOT), and a file
 * without tables, or with those of another version, is found out by the same statement.
 */
#include "local/sqlite_file.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "local/fail.h"
#include "local/sqlite_row.h"

#define AGAIN "nothing was written; roll back, and run the transaction again"

static const char schema[] =
    "CREATE TABLE idem_local_meta ("
    "  one INTEGER PRIMARY KEY CHECK (one = 1),"
    "  version INTEGER NOT NULL,"
    "  high_us INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE idem_local_records ("
    "  row INTEGER PRIMARY KEY,"
    "  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),"
    "  principal TEXT NOT NULL,"
    "  endpoint TEXT NOT NULL,"
    "  key TEXT NOT NULL,"
    "  fingerprint BLOB NOT NULL,"
    "  created_us INTEGER NOT NULL,"
    "  state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 7),"
    "  version INTEGER NOT NULL CHECK (version > 0),"
    "  local_only INTEGER NOT NULL CHECK (local_only IN (0, 1)),"
    "  epoch INTEGER NOT NULL CHECK (epoch > 0),"
    "  token BLOB UNIQUE CHECK (length(token) = 16)," /* NULL: evidence took it away. */
    "  lease_end_us INTEGER NOT NULL,"
    "  effect TEXT," /* NULL: none is dispatched and not marked; '': it has no name. */
    "  step TEXT NOT NULL,"
    "  step_data BLOB NOT NULL,"
    "  verdict INTEGER NOT NULL CHECK (verdict BETWEEN 0 AND 2),"
    "  status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 999),"
    "  headers TEXT NOT NULL,"
    "  updated_us INTEGER NOT NULL,"
    "  finished_us INTEGER NOT NULL,"
    "  expires_us INTEGER NOT NULL,"
    "  evidence_by TEXT NOT NULL,"
    "  evidence_reason TEXT NOT NULL,"
    "  contradiction INTEGER NOT NULL CHECK (contradiction BETWEEN 0 AND 4),"
    "  contradiction_by TEXT NOT NULL,"
    "  contradiction_reason TEXT NOT NULL,"
    "  contradiction_us INTEGER NOT NULL,"
    "  due_us INTEGER NOT NULL,"
    "  body BLOB NOT NULL," /* Last: what does not need it does not read it. */
    "  UNIQUE (principal, endpoint, key),"
    "  CHECK ((state < 5) = (verdict = 0))"
    ") STRICT;"
    "CREATE INDEX idem_local_records_due ON idem_local_records (due_us) WHERE due_us > 0;"
    "CREATE INDEX idem_local_records_retention ON idem_local_records (expires_us)"
    "  WHERE state IN (5, 6);"
    "CREATE INDEX idem_local_records_expired ON idem_local_records (expires_us) WHERE state = 7;"
    "INSERT INTO idem_local_meta (one, version, high_us) VALUES (1, 1, 0);";

static bool is_busy(int rc, int extended)
{
    return ((rc & 0xff) == SQLITE_BUSY && extended != SQLITE_BUSY_SNAPSHOT) ||
           extended == SQLITE_LOCKED_SHAREDCACHE;
}

enum idem_local_err idem_local_sqlite_fail(struct idem_local_visit *visit, int rc)
{
    const int extended = sqlite3_extended_errcode(visit->handle);
    const char *text = sqlite3_errmsg(visit->handle);
    if (extended == SQLITE_BUSY_SNAPSHOT) {
        return idem_local_fail(visit->reterr, IDEM_LOCAL_E_BUSY,
                               "this transaction began by reading, and another one has written "
                               "since: " AGAIN ", this time with BEGIN IMMEDIATE");
    }
    if (is_busy(rc, extended)) {
        return idem_local_fail(visit->reterr, IDEM_LOCAL_E_BUSY,
                               "another transaction has the database: " AGAIN);
    }
    if ((rc & 0xff) == SQLITE_NOMEM) {
        return idem_local_fail(visit->reterr, IDEM_LOCAL_E_SYSTEM, "SQLite has no memory: " AGAIN);
    }
    return idem_local_fail(
        visit->reterr, IDEM_LOCAL_E_DATABASE, "%s (SQLite %d): %s", text, extended,
        sqlite3_get_autocommit(visit->handle) != 0 ? "SQLite has rolled back the whole transaction"
                                                   : AGAIN);
}

enum idem_local_err idem_local_sqlite_enter(const struct idem_local *local,
                                            struct idem_local_error *reterr)
{
    if (sqlite3_get_autocommit(local->sqlite) != 0) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_NO_TRANSACTION,
                               "no transaction is open: BEGIN IMMEDIATE first; nothing was "
                               "written");
    }
    if (sqlite3_db_readonly(local->sqlite, "main") != 0) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                               "the file is open for reading only; nothing was written");
    }
    return IDEM_LOCAL_OK;
}

enum idem_local_err idem_local_sqlite_prepare(struct idem_local_visit *visit,
                                              const char *sql,
                                              sqlite3_stmt **ret_statement)
{
    int rc = sqlite3_prepare_v2(visit->handle, sql, -1, ret_statement, NULL);
    return rc == SQLITE_OK ? IDEM_LOCAL_OK : idem_local_sqlite_fail(visit, rc);
}

/* The first number of the first row; there must be one. */
static enum idem_local_err number_read(struct idem_local_visit *visit,
                                       const char *sql,
                                       int64_t *ret_number)
{
    sqlite3_stmt *statement = NULL;
    enum idem_local_err err = idem_local_sqlite_prepare(visit, sql, &statement);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        *ret_number = sqlite3_column_int64(statement, 0);
    } else {
        err = idem_local_sqlite_fail(visit, rc);
    }
    (void)sqlite3_finalize(statement); /* Repeats the step's error. */
    return err;
}

enum idem_local_err idem_local_sqlite_durable(struct idem_local_visit *visit)
{
    int64_t level = 0;
    enum idem_local_err err = number_read(visit, "PRAGMA main.synchronous", &level);
    if (err == IDEM_LOCAL_OK && level < 2) {
        return idem_local_fail(visit->reterr, IDEM_LOCAL_E_INVALID,
                               "PRAGMA synchronous is weaker than FULL: a loss of power could lose "
                               "this dispatch after the outside was called, and it would be called "
                               "again; nothing was written");
    }
    return err;
}

static enum idem_local_err version_check(struct idem_local_visit *visit, int64_t version)
{
    if (version == IDEM_LOCAL_SQLITE_VERSION) {
        return IDEM_LOCAL_OK;
    }
    return idem_local_fail(
        visit->reterr, IDEM_LOCAL_E_INSTALL,
        version > IDEM_LOCAL_SQLITE_VERSION
            ? "the tables idem_local_* are of version %lld and this library knows %d: use the "
              "newer library; nothing was written"
            : "the tables idem_local_* are of version %lld and this library needs %d: call "
              "idem_local_install; nothing was written",
        (long long)version, IDEM_LOCAL_SQLITE_VERSION);
}

static enum idem_local_err not_installed(struct idem_local_visit *visit)
{
    return idem_local_fail(visit->reterr, IDEM_LOCAL_E_INSTALL,
                           "the tables idem_local_* are not in this file: call idem_local_install; "
                           "nothing was written");
}

/* Whether it is prepared: not if the tables are missing. */
static enum idem_local_err time_prepare(struct idem_local_visit *visit,
                                        const char *sql,
                                        sqlite3_stmt **ret_statement)
{
    int rc = sqlite3_prepare_v2(visit->handle, sql, -1, ret_statement, NULL);
    if (rc == SQLITE_OK) {
        return IDEM_LOCAL_OK;
    }
    if (is_busy(rc, sqlite3_extended_errcode(visit->handle))) {
        visit->busy = true;
        return IDEM_LOCAL_OK;
    }
    return rc == SQLITE_ERROR && strstr(sqlite3_errmsg(visit->handle), "no such ") != NULL
               ? not_installed(visit)
               : idem_local_sqlite_fail(visit, rc);
}

/* Version and time, of which `now_us` is no earlier. */
static enum idem_local_err time_run(struct idem_local_visit *visit, const char *sql)
{
    struct idem_clock clock;
    sqlite3_stmt *statement = NULL;
    enum idem_local_err err = time_prepare(visit, sql, &statement);
    if (err != IDEM_LOCAL_OK || visit->busy) {
        return err;
    }
    idem_clock_init_system(&clock);
    (void)sqlite3_bind_int64(statement, 1, idem_clock_wall_us(&clock));
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        visit->now_us = sqlite3_column_int64(statement, 1);
        err = version_check(visit, sqlite3_column_int64(statement, 0));
        rc = sqlite3_step(statement); /* To its end: a write counts from there on. */
    } else if (rc == SQLITE_DONE) {
        err = not_installed(visit);
    }
    if (rc != SQLITE_DONE && is_busy(rc, sqlite3_extended_errcode(visit->handle))) {
        visit->busy = true;
    } else if (rc != SQLITE_DONE && err == IDEM_LOCAL_OK) {
        err = idem_local_sqlite_fail(visit, rc);
    }
    (void)sqlite3_finalize(statement); /* Repeats the step's error. */
    return err;
}

enum idem_local_err idem_local_sqlite_lock(struct idem_local_visit *visit)
{
    return time_run(visit,
                    "UPDATE main.idem_local_meta SET high_us = max(high_us, ?1) WHERE one = 1"
                    " RETURNING version, high_us");
}

enum idem_local_err idem_local_sqlite_look(struct idem_local_visit *visit)
{
    enum idem_local_err err =
        time_run(visit, "SELECT version, max(high_us, ?1) FROM main.idem_local_meta WHERE one = 1");
    return err == IDEM_LOCAL_OK && visit->busy
               ? idem_local_fail(visit->reterr, IDEM_LOCAL_E_BUSY,
                                 "another transaction has the database: look again")
               : err;
}

/* --- install -------------------------------------------------------------------------------- */

static enum idem_local_err foreign_check(struct idem_local_visit *visit)
{
    int64_t application_id = 0;
    enum idem_local_err err = number_read(visit, "PRAGMA main.application_id", &application_id);
    if (err == IDEM_LOCAL_OK && application_id == IDEM_LOCAL_SERVED_ID) {
        return idem_local_fail(visit->reterr, IDEM_LOCAL_E_INSTALL,
                               "`idem serve` keeps its payments in this file: use one of your own; "
                               "nothing was written");
    }
    if (err == IDEM_LOCAL_OK && application_id == IDEM_LOCAL_JOURNAL_ID) {
        return idem_local_fail(
            visit->reterr, IDEM_LOCAL_E_INSTALL,
            "this file is an idem_client's journal: use one of your own; nothing "
            "was written");
    }
    return err;
}

static enum idem_local_err tables_make(struct idem_local_visit *visit)
{
    int rc = sqlite3_exec(visit->handle, schema, NULL, NULL, NULL);
    return rc == SQLITE_OK ? IDEM_LOCAL_OK : idem_local_sqlite_fail(visit, rc);
}

enum idem_local_err idem_local_sqlite_install(const struct idem_local *local,
                                              struct idem_local_error *reterr)
{
    struct idem_local_visit visit = { .handle = local->sqlite, .reterr = reterr };
    int64_t tables = 0;
    enum idem_local_err err = foreign_check(&visit);
    if (err == IDEM_LOCAL_OK) {
        err = number_read(&visit,
                          "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table'"
                          " AND name = 'idem_local_meta'",
                          &tables);
    }
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    /* The write lock tells whether the version fits; version 1 has no earlier one to bring up. */
    err = tables == 0 ? tables_make(&visit) : idem_local_sqlite_lock(&visit);
    return err == IDEM_LOCAL_OK && visit.busy
               ? idem_local_fail(reterr, IDEM_LOCAL_E_BUSY,
                                 "another transaction has the database: " AGAIN)
               : err;
}
