/*
 * Records in the caller's SQLite file.
 *
 *   lock    the write lock and the time (sqlite_file.c); from here on nobody else writes
 *   insert  claims only: the unique constraint says whether the key has a record
 *   find    by scope, or by token
 *   decide  rules.c
 *   write   one UPDATE of that row and version, if the rules changed it
 *
 * So a call writes one row of records or none. A statement that fails undoes itself (SQLite's
 * statement journal), and the caller's transaction goes on or is rolled back as a whole.
 */
#include "local/sqlite_file.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/random.h"
#include "local/applied.h"
#include "local/fail.h"
#include "local/result.h"
#include "local/rules.h"
#include "local/sqlite_row.h"

#define TABLE  "main.idem_local_records"
#define SELECT "SELECT row, " IDEM_LOCAL_SQLITE_FIXED ", " IDEM_LOCAL_SQLITE_MOVING " FROM " TABLE

/* For busy databases and for leases that are nearly over: at least this. */
#define RETRY_MIN_US IDEM_US_PER_SECOND

static enum idem_local_err damaged(struct idem_local_visit *visit)
{
    return idem_local_fail(visit->reterr, IDEM_LOCAL_E_DATABASE,
                           "a record in this file is not one that this library wrote, or there is "
                           "no memory to read it: roll back, and have the file looked at");
}

static enum idem_local_err no_memory(struct idem_local_visit *visit)
{
    return idem_local_fail(visit->reterr, IDEM_LOCAL_E_SYSTEM,
                           "no memory for the answer: roll back, and run the transaction again");
}

/* Runs a statement that gives no rows; `*ret_changes` of it. Finalizes it. */
static enum idem_local_err run(struct idem_local_visit *visit,
                               sqlite3_stmt *statement,
                               int *ret_changes)
{
    int rc = sqlite3_step(statement);
    enum idem_local_err err = IDEM_LOCAL_OK;
    if (rc == SQLITE_DONE) {
        *ret_changes = sqlite3_changes(visit->handle);
    } else {
        err = idem_local_sqlite_fail(visit, rc);
    }
    (void)sqlite3_finalize(statement); /* Repeats the step's error. */
    return err;
}

static enum idem_local_err insert(struct idem_local_visit *visit,
                                  const struct idem_local_row *row,
                                  bool *ret_inserted)
{
    sqlite3_stmt *statement = NULL;
    int changes = 0;
    enum idem_local_err err = idem_local_sqlite_prepare(
        visit,
        "INSERT INTO " TABLE " (" IDEM_LOCAL_SQLITE_FIXED ", " IDEM_LOCAL_SQLITE_MOVING
        ") VALUES (" IDEM_LOCAL_SQLITE_FIXED_VALUES ", " IDEM_LOCAL_SQLITE_MOVING_VALUES
        ") ON CONFLICT (principal, endpoint, key) DO NOTHING",
        &statement);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    (void)idem_local_sqlite_bind_moving(statement, idem_local_sqlite_bind_fixed(statement, 1, row),
                                        row);
    err = run(visit, statement, &changes);
    *ret_inserted = changes == 1;
    return err;
}

static enum idem_local_err update(struct idem_local_visit *visit, const struct idem_local_row *row)
{
    sqlite3_stmt *statement = NULL;
    int changes = 0;
    enum idem_local_err err = idem_local_sqlite_prepare(
        visit,
        "UPDATE " TABLE " SET (" IDEM_LOCAL_SQLITE_MOVING ") = (" IDEM_LOCAL_SQLITE_MOVING_VALUES
        ") WHERE row = ? AND version = ?",
        &statement);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    int index = idem_local_sqlite_bind_moving(statement, 1, row);
    (void)sqlite3_bind_int64(statement, index, row->row);
    (void)sqlite3_bind_int64(statement, index + 1, row->version - 1);
    err = run(visit, statement, &changes);
    return err == IDEM_LOCAL_OK && changes != 1 ? damaged(visit) : err;
}

/* The statement that finds the command's record. */
static enum idem_local_err find(struct idem_local_visit *visit,
                                const struct idem_local_command *command,
                                sqlite3_stmt **ret_statement)
{
    const bool named = command->verb == IDEM_LOCAL_CLAIM || command->verb == IDEM_LOCAL_SETTLE;
    enum idem_local_err err =
        idem_local_sqlite_prepare(visit,
                                  named ? SELECT " WHERE principal = ? AND endpoint = ? AND key = ?"
                                        : SELECT " WHERE token = ?",
                                  ret_statement);
    if (err == IDEM_LOCAL_OK && named) {
        (void)idem_local_sqlite_bind_scope(*ret_statement, 1, &command->scope);
    } else if (err == IDEM_LOCAL_OK) {
        (void)sqlite3_bind_blob(*ret_statement, 1, command->token.bytes,
                                sizeof(command->token.bytes), SQLITE_STATIC);
    }
    return err;
}

/* What the caller is given. A claim that finds somebody there is told when to come again. */
static enum idem_local_err tell(struct idem_local_visit *visit,
                                struct idem_local_row *row,
                                const struct idem_local_command *command,
                                struct idem_local_applied *applied)
{
    if (command->verb == IDEM_LOCAL_CLAIM) {
        if (row->retry_after_us < RETRY_MIN_US) {
            row->retry_after_us = RETRY_MIN_US;
        }
        idem_local_row_mask(row, applied->outcome);
        applied->record = idem_local_record_make(row);
        return applied->record != NULL ? IDEM_LOCAL_OK : no_memory(visit);
    }
    if (command->verb == IDEM_LOCAL_DISPATCH &&
        (applied->outcome == IDEM_LOCAL_DONE || applied->outcome == IDEM_LOCAL_ALREADY)) {
        struct idem_buf effect_id;
        idem_buf_init(&effect_id, applied->effect_id, sizeof(applied->effect_id) - 1);
        idem_local_effect_id_print(row, &effect_id);
        IDEM_ASSERT(!effect_id.full);
    }
    return IDEM_LOCAL_OK;
}

/* The row that `statement` stands on. */
static enum idem_local_err change(struct idem_local_visit *visit,
                                  sqlite3_stmt *statement,
                                  const struct idem_local_command *command,
                                  struct idem_local_applied *applied)
{
    struct idem_local_row row;
    enum idem_local_err err = IDEM_LOCAL_OK;
    if (!idem_local_sqlite_read(statement, &row)) {
        return damaged(visit);
    }
    const int64_t version = row.version;
    applied->outcome = idem_local_decide(&row, command, visit->now_us);
    if (row.version != version) {
        err = update(visit, &row);
    }
    return err == IDEM_LOCAL_OK ? tell(visit, &row, command, applied) : err;
}

static enum idem_local_err change_found(struct idem_local_visit *visit,
                                        const struct idem_local_command *command,
                                        struct idem_local_applied *applied)
{
    sqlite3_stmt *statement = NULL;
    enum idem_local_err err = find(visit, command, &statement);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        err = change(visit, statement, command, applied);
    } else if (rc != SQLITE_DONE) {
        err = idem_local_sqlite_fail(visit, rc);
    } else if (command->verb == IDEM_LOCAL_CLAIM) {
        err = damaged(visit); /* It was there when the insert found it. */
    } else {
        applied->outcome =
            command->verb == IDEM_LOCAL_SETTLE ? IDEM_LOCAL_ABSENT : IDEM_LOCAL_SUPERSEDED;
    }
    (void)sqlite3_finalize(statement); /* Repeats the step's error. */
    return err;
}

/* A key that nobody has claimed, and if it has a record, that record. */
static enum idem_local_err claim(struct idem_local_visit *visit,
                                 const struct idem_local_command *asked,
                                 struct idem_local_applied *applied)
{
    struct idem_random random;
    struct idem_local_command command = *asked;
    struct idem_local_row row;
    bool inserted = false;
    idem_random_init_system(&random);
    command.id = idem_uid_make(visit->now_us, &random);
    command.token = idem_uid_make_token(&random);
    idem_local_row_begin(&command, visit->now_us, &row);
    enum idem_local_err err = insert(visit, &row, &inserted);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    if (!inserted) {
        return change_found(visit, &command, applied);
    }
    applied->outcome = IDEM_LOCAL_EXECUTE;
    return tell(visit, &row, &command, applied);
}

static enum idem_local_err apply(const struct idem_local *local,
                                 const struct idem_local_command *command,
                                 struct idem_local_applied *ret_applied,
                                 struct idem_local_error *reterr)
{
    struct idem_local_visit visit = { .handle = local->sqlite, .reterr = reterr };
    struct idem_local_applied applied = { .outcome = IDEM_LOCAL_NO_OUTCOME };
    enum idem_local_err err =
        command->verb == IDEM_LOCAL_DISPATCH ? idem_local_sqlite_durable(&visit) : IDEM_LOCAL_OK;
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_sqlite_lock(&visit);
    }
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    if (visit.busy) {
        struct idem_local_row nothing = { .row = 0 };
        applied.outcome =
            command->verb == IDEM_LOCAL_CLAIM ? IDEM_LOCAL_IN_PROGRESS : IDEM_LOCAL_BUSY;
        err = tell(&visit, &nothing, command, &applied);
    } else if (command->verb == IDEM_LOCAL_CLAIM) {
        err = claim(&visit, command, &applied);
    } else {
        err = change_found(&visit, command, &applied);
    }
    if (err == IDEM_LOCAL_OK) {
        *ret_applied = applied;
    }
    return err;
}

/* --- looks ---------------------------------------------------------------------------------- */

/* As it is at that moment, and what of it is shown. */
static struct idem_local_record *show(struct idem_local_row *row, int64_t now_us)
{
    row->state = idem_local_state_now(row, now_us);
    row->token = (struct idem_uid){ .bytes = { 0 } };
    if (row->state == IDEM_LOCAL_FORGOTTEN) {
        idem_local_row_forget(row);
    }
    return idem_local_record_make(row);
}

static enum idem_local_err lookup(const struct idem_local *local,
                                  const struct idem_local_scope *scope,
                                  struct idem_local_record **ret_record,
                                  struct idem_local_error *reterr)
{
    struct idem_local_visit visit = { .handle = local->sqlite, .reterr = reterr };
    struct idem_local_record *record = NULL;
    struct idem_local_row row;
    sqlite3_stmt *statement = NULL;
    enum idem_local_err err = idem_local_sqlite_look(&visit);
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_sqlite_prepare(
            &visit, SELECT " WHERE principal = ? AND endpoint = ? AND key = ?", &statement);
    }
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    (void)idem_local_sqlite_bind_scope(statement, 1, scope);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW && !idem_local_sqlite_read(statement, &row)) {
        err = damaged(&visit);
    } else if (rc == SQLITE_ROW) {
        row.since_us = 0;
        record = show(&row, visit.now_us);
        err = record != NULL ? IDEM_LOCAL_OK : no_memory(&visit);
    } else if (rc != SQLITE_DONE) {
        err = idem_local_sqlite_fail(&visit, rc);
    }
    (void)sqlite3_finalize(statement); /* Repeats the step's error. */
    if (err == IDEM_LOCAL_OK) {
        *ret_record = record;
    }
    return err;
}

/* One record of the list. */
static enum idem_local_err due_add(struct idem_local_visit *visit,
                                   sqlite3_stmt *statement,
                                   struct idem_local_list *list)
{
    struct idem_local_row row;
    if (!idem_local_sqlite_read(statement, &row)) {
        return damaged(visit);
    }
    struct idem_local_record *record = show(&row, visit->now_us);
    if (record == NULL) {
        return no_memory(visit);
    }
    idem_local_list_add(list, record);
    return IDEM_LOCAL_OK;
}

static enum idem_local_err due_read(struct idem_local_visit *visit,
                                    sqlite3_stmt *statement,
                                    struct idem_local_list *list)
{
    enum idem_local_err err = IDEM_LOCAL_OK;
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW && err == IDEM_LOCAL_OK) {
        err = due_add(visit, statement, list);
        rc = err == IDEM_LOCAL_OK ? sqlite3_step(statement) : rc;
    }
    return err == IDEM_LOCAL_OK && rc != SQLITE_DONE ? idem_local_sqlite_fail(visit, rc) : err;
}

static enum idem_local_err due(const struct idem_local *local,
                               int limit,
                               struct idem_local_list **ret_list,
                               struct idem_local_error *reterr)
{
    struct idem_local_visit visit = { .handle = local->sqlite, .reterr = reterr };
    sqlite3_stmt *statement = NULL;
    enum idem_local_err err = idem_local_sqlite_look(&visit);
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_sqlite_prepare(
            &visit, SELECT " WHERE due_us > 0 AND due_us <= ? ORDER BY due_us, row LIMIT ?",
            &statement);
    }
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    struct idem_local_list *list = idem_local_list_make(limit);
    (void)sqlite3_bind_int64(statement, 1, visit.now_us);
    (void)sqlite3_bind_int64(statement, 2, limit);
    err = list != NULL ? due_read(&visit, statement, list) : no_memory(&visit);
    (void)sqlite3_finalize(statement); /* Repeats the step's error. */
    if (err == IDEM_LOCAL_OK) {
        *ret_list = list;
    } else {
        idem_local_list_free(list);
    }
    return err;
}

/* --- room ----------------------------------------------------------------------------------- */

/* Of `sql`, which has a time and a number of rows. */
static enum idem_local_err reap_step(
    struct idem_local_visit *visit, const char *sql, int64_t until_us, int limit, int *ret_changes)
{
    sqlite3_stmt *statement = NULL;
    enum idem_local_err err = idem_local_sqlite_prepare(visit, sql, &statement);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    (void)sqlite3_bind_int64(statement, 1, until_us);
    (void)sqlite3_bind_int64(statement, 2, limit);
    return run(visit, statement, ret_changes);
}

static enum idem_local_err reap(const struct idem_local *local,
                                int limit,
                                struct idem_local_reaped *ret_reaped,
                                struct idem_local_error *reterr)
{
    struct idem_local_visit visit = { .handle = local->sqlite, .reterr = reterr };
    int expired = 0;
    int deleted = 0;
    enum idem_local_err err = idem_local_sqlite_lock(&visit);
    if (err == IDEM_LOCAL_OK && visit.busy) {
        return idem_local_fail(
            reterr, IDEM_LOCAL_E_BUSY,
            "another transaction has the database: nothing was forgotten; later");
    }
    if (err == IDEM_LOCAL_OK) {
        err = reap_step(&visit,
                        "DELETE FROM " TABLE
                        " WHERE row IN"
                        " (SELECT row FROM " TABLE
                        " WHERE state = 7 AND expires_us <= ?"
                        "  ORDER BY expires_us LIMIT ?)",
                        visit.now_us - IDEM_LOCAL_DELETE_US, limit, &deleted);
    }
    if (err == IDEM_LOCAL_OK) {
        err = reap_step(&visit,
                        "UPDATE " TABLE
                        " SET state = 7, version = version + 1, status = 0,"
                        " headers = '', body = x'', step_data = x'' WHERE row IN"
                        " (SELECT row FROM " TABLE
                        " WHERE state IN (5, 6) AND expires_us <= ?"
                        "  ORDER BY expires_us LIMIT ?)",
                        visit.now_us, limit - deleted, &expired);
    }
    if (err == IDEM_LOCAL_OK) {
        ret_reaped->expired = expired;
        ret_reaped->deleted = deleted;
    }
    return err;
}

const struct idem_local_ops idem_local_sqlite_ops = {
    .install = idem_local_sqlite_install,
    .enter = idem_local_sqlite_enter,
    .apply = apply,
    .lookup = lookup,
    .due = due,
    .reap = reap,
};
