/*
 * Records in the caller's PostgreSQL database: the functions of sql/idem.sql, called in the
 * caller's transaction. What they answer is what the rules say (rules.c has them for SQLite), so
 * there is no rule here: words become enums, columns become members.
 *
 * Times go as microseconds and come as microseconds since 1970.
 */
#include <libpq-fe.h>
#include <string.h>

#include "base/bug.h"
#include "base/clock.h"
#include "local/applied.h"
#include "local/fail.h"
#include "local/postgres_wire.h"
#include "local/result.h"

#define INTERVAL(number) number "::int8 * interval '1 microsecond'"
#define US(column)       "(extract(epoch FROM " column ") * 1000000)::int8"

static enum idem_local_err strange(struct idem_local_error *reterr)
{
    return idem_local_fail(reterr, IDEM_LOCAL_E_INSTALL,
                           "the functions in this database answer in words that this library does "
                           "not know: they are of another version; roll back");
}

static enum idem_local_err no_memory(struct idem_local_error *reterr)
{
    return idem_local_fail(reterr, IDEM_LOCAL_E_SYSTEM,
                           "no memory for the answer: roll back, and run the transaction again");
}

/* --- words ---------------------------------------------------------------------------------- */

static enum idem_local_outcome outcome_read(struct idem_str word)
{
    enum idem_local_outcome outcome = IDEM_LOCAL_EXECUTE;
    while (outcome <= IDEM_LOCAL_ABSENT &&
           !idem_str_equal(word, idem_str_from(idem_local_outcome_name(outcome)))) {
        outcome++;
    }
    return outcome <= IDEM_LOCAL_ABSENT ? outcome : IDEM_LOCAL_NO_OUTCOME;
}

static enum idem_local_state state_read(struct idem_str word)
{
    enum idem_local_state state = IDEM_LOCAL_CLAIMED;
    while (state <= IDEM_LOCAL_FORGOTTEN &&
           !idem_str_equal(word, idem_str_from(idem_local_state_name(state)))) {
        state++;
    }
    return state <= IDEM_LOCAL_FORGOTTEN ? state : IDEM_LOCAL_STATE_NONE;
}

static const char *const verdicts[] = {
    [IDEM_LOCAL_NO_VERDICT] = "",
    [IDEM_LOCAL_VERDICT_SUCCEEDED] = "succeeded",
    [IDEM_LOCAL_VERDICT_FAILED] = "failed",
    [IDEM_LOCAL_VERDICT_EXECUTED] = "executed",
    [IDEM_LOCAL_VERDICT_NOT_EXECUTED] = "not_executed",
};

static enum idem_local_verdict verdict_read(struct idem_str word)
{
    enum idem_local_verdict verdict = IDEM_LOCAL_VERDICT_NOT_EXECUTED;
    while (verdict > IDEM_LOCAL_NO_VERDICT &&
           !idem_str_equal(word, idem_str_from(verdicts[verdict]))) {
        verdict--;
    }
    return verdict;
}

/* An effect's name out of its id: what stands behind the colon, if there is one. */
static void effect_read(struct idem_str effect_id, struct idem_local_row *row)
{
    const size_t colon = idem_str_find(effect_id, ':');
    row->sent = effect_id.len > 0;
    row->effect = idem_str_slice(effect_id, colon + 1, effect_id.len);
}

static struct idem_uid uid_read(struct idem_str text)
{
    struct idem_uid uid = { .bytes = { 0 } };
    return idem_uid_parse(text, &uid) ? uid : (struct idem_uid){ .bytes = { 0 } };
}

/* --- the transaction ------------------------------------------------------------------------ */

static enum idem_local_err connection_check(const struct idem_local *local,
                                            struct idem_local_error *reterr)
{
    const char *encoding = PQparameterStatus(local->postgres, "client_encoding");
    if (PQstatus(local->postgres) != CONNECTION_OK) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_DATABASE,
                               "the connection is lost; nothing was written");
    }
    if (PQpipelineStatus(local->postgres) != PQ_PIPELINE_OFF ||
        PQtransactionStatus(local->postgres) == PQTRANS_ACTIVE) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                               "the connection is in pipeline mode or has a statement under way; "
                               "nothing was written");
    }
    return encoding != NULL && strcmp(encoding, "UTF8") == 0
               ? IDEM_LOCAL_OK
               : idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                                 "client_encoding must be UTF8; nothing was written");
}

static enum idem_local_err enter(const struct idem_local *local, struct idem_local_error *reterr)
{
    enum idem_local_err err = connection_check(local, reterr);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    switch (PQtransactionStatus(local->postgres)) {
    case PQTRANS_INTRANS:
        return IDEM_LOCAL_OK;
    case PQTRANS_INERROR:
        return idem_local_fail(reterr, IDEM_LOCAL_E_NO_TRANSACTION,
                               "the transaction has failed before: roll back; nothing was written");
    case PQTRANS_IDLE:
    case PQTRANS_ACTIVE:
    case PQTRANS_UNKNOWN:
        break;
    }
    return idem_local_fail(reterr, IDEM_LOCAL_E_NO_TRANSACTION,
                           "no transaction is open: BEGIN first; nothing was written");
}

static enum idem_local_err install(const struct idem_local *local, struct idem_local_error *reterr)
{
    static const char sql[] =
        "SELECT to_regprocedure('idem.claim(text,text,text,bytea,interval,boolean)') IS NOT NULL"
        " AND to_regprocedure('idem.mark(uuid,text,bytea,interval)') IS NOT NULL"
        " AND to_regprocedure('idem.reap(integer)') IS NOT NULL";
    struct idem_local_params params = { .count = 0 };
    PGresult *result = NULL;
    enum idem_local_err err = idem_local_postgres_ask(local, sql, &params, &result, reterr);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    const bool installed = idem_local_postgres_i64(result, 0, 0) == 1;
    PQclear(result);
    return installed ? IDEM_LOCAL_OK
                     : idem_local_fail(reterr, IDEM_LOCAL_E_INSTALL,
                                       "the functions of this library are not in this database, or "
                                       "this role may not use them: psql -f idem.sql as its owner, "
                                       "GRANT idem_caller to this role");
}

/* --- commands ------------------------------------------------------------------------------- */

static void scope_add(struct idem_local_params *params, const struct idem_local_scope *scope)
{
    idem_local_params_add_text(params, scope->principal);
    idem_local_params_add_text(params, scope->endpoint);
    idem_local_params_add_text(params, scope->key);
}

static void answer_add(struct idem_local_params *params, const struct idem_local_command *command)
{
    idem_local_params_add_text(params, idem_str_from(verdicts[command->verdict]));
    idem_local_params_add_i64(params, command->status);
    idem_local_params_add_text(params, command->headers);
    idem_local_params_add_bytes(params, command->body);
    idem_local_params_add_i64(params, command->retention_us);
}

static const char *claim_write(const struct idem_local_command *command,
                               struct idem_local_params *params)
{
    scope_add(params, &command->scope);
    idem_local_params_add_bytes(params, command->fingerprint);
    idem_local_params_add_i64(params, command->lease_us);
    idem_local_params_add_i64(params, command->local_only ? 1 : 0);
    return "SELECT outcome, effect_id, token::text, epoch::int8, id::text, step, step_data,"
           " verdict, status::int8, headers, body, retry_after::int8"
           " FROM idem.claim($1, $2, $3, $4, " INTERVAL("$5") ", $6::int8 = 1)";
}

static const char *settle_write(const struct idem_local_command *command,
                                struct idem_local_params *params)
{
    struct idem_local_command said = *command;
    if (said.retention_us == 0) {
        said.retention_us =
            IDEM_US_PER_DAY; /* There is no answer; it must only be in its limits. */
    }
    scope_add(params, &said.scope);
    answer_add(params, &said);
    idem_local_params_add_text(params, said.by);
    idem_local_params_add_text(params, said.reason);
    idem_local_params_add_option(params, said.step);
    idem_local_params_add_bytes(params, said.step_data);
    idem_local_params_add_option(params, said.effect);
    return "SELECT outcome FROM idem.settle($1, $2, $3, verdict => $4, status => $5::int,"
           " headers => $6, body => $7, retention => " INTERVAL("$8") ", by => $9, reason => $10,"
           " step => $11, step_data => $12, effect => $13) AS outcome";
}

/* The statement; its first column is the outcome, its second one an effect id. */
static const char *command_write(const struct idem_local_command *command,
                                 struct idem_local_params *params)
{
    if (command->verb == IDEM_LOCAL_CLAIM) {
        return claim_write(command, params);
    }
    if (command->verb == IDEM_LOCAL_SETTLE) {
        return settle_write(command, params);
    }
    idem_local_params_add_uid(params, command->token);
    switch (command->verb) {
    case IDEM_LOCAL_DISPATCH:
        idem_local_params_add_option(params, command->effect);
        return "SELECT outcome, effect_id FROM idem.dispatch($1::uuid, $2)";
    case IDEM_LOCAL_HEARTBEAT:
        idem_local_params_add_i64(params, command->lease_us);
        return "SELECT outcome FROM idem.heartbeat($1::uuid, " INTERVAL("$2") ") AS outcome";
    case IDEM_LOCAL_MARK:
        idem_local_params_add_text(params, command->step);
        idem_local_params_add_bytes(params, command->step_data);
        idem_local_params_add_i64(params, command->lease_us);
        return "SELECT outcome FROM idem.mark($1::uuid, $2, $3, " INTERVAL("$4") ") AS outcome";
    case IDEM_LOCAL_COMPLETE:
        answer_add(params, command);
        return "SELECT outcome FROM idem.complete($1::uuid, $2, $3::int, $4, $5, " INTERVAL(
            "$6") ") AS outcome";
    case IDEM_LOCAL_RELEASE:
        idem_local_params_add_i64(params, command->not_executed ? 1 : 0);
        return "SELECT outcome FROM idem.release($1::uuid, $2::int8 = 1) AS outcome";
    case IDEM_LOCAL_VERB_NONE:
    case IDEM_LOCAL_CLAIM:
    case IDEM_LOCAL_SETTLE:
        break;
    }
    IDEM_UNREACHABLE();
}

/* In the columns of claim_write(). */
static struct idem_local_record *claim_read(const PGresult *result, enum idem_local_outcome outcome)
{
    struct idem_local_row row = {
        .outcome = outcome,
        .token = uid_read(idem_local_postgres_text(result, 0, 2)),
        .epoch = idem_local_postgres_i64(result, 0, 3),
        .id = uid_read(idem_local_postgres_text(result, 0, 4)),
        .step = idem_local_postgres_text(result, 0, 5),
        .step_data = idem_local_postgres_text(result, 0, 6),
        .verdict = verdict_read(idem_local_postgres_text(result, 0, 7)),
        .status = idem_local_postgres_i64(result, 0, 8),
        .headers = idem_local_postgres_text(result, 0, 9),
        .body = idem_local_postgres_text(result, 0, 10),
        .retry_after_us = idem_local_postgres_i64(result, 0, 11) * IDEM_US_PER_SECOND,
    };
    effect_read(idem_local_postgres_text(result, 0, 1), &row);
    return idem_local_record_make(&row);
}

static enum idem_local_err command_read(const PGresult *result,
                                        const struct idem_local_command *command,
                                        struct idem_local_applied *applied,
                                        struct idem_local_error *reterr)
{
    applied->outcome = outcome_read(idem_local_postgres_text(result, 0, 0));
    if (PQntuples(result) != 1 || applied->outcome == IDEM_LOCAL_NO_OUTCOME) {
        return strange(reterr);
    }
    if (command->verb == IDEM_LOCAL_DISPATCH) {
        const struct idem_str effect_id = idem_local_postgres_text(result, 0, 1);
        if (effect_id.len >= sizeof(applied->effect_id)) {
            return strange(reterr);
        }
        memcpy(applied->effect_id, effect_id.data, effect_id.len);
    }
    if (command->verb == IDEM_LOCAL_CLAIM) {
        applied->record = claim_read(result, applied->outcome);
        return applied->record != NULL ? IDEM_LOCAL_OK : no_memory(reterr);
    }
    return IDEM_LOCAL_OK;
}

static enum idem_local_err apply(const struct idem_local *local,
                                 const struct idem_local_command *command,
                                 struct idem_local_applied *ret_applied,
                                 struct idem_local_error *reterr)
{
    struct idem_local_params params = { .count = 0 };
    struct idem_local_applied applied = { .outcome = IDEM_LOCAL_NO_OUTCOME };
    PGresult *result = NULL;
    const char *sql = command_write(command, &params);
    enum idem_local_err err = idem_local_postgres_ask(local, sql, &params, &result, reterr);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    err = command_read(result, command, &applied, reterr);
    PQclear(result);
    if (err == IDEM_LOCAL_OK) {
        *ret_applied = applied;
    }
    return err;
}

/* --- looks ---------------------------------------------------------------------------------- */

static enum idem_local_err lookup(const struct idem_local *local,
                                  const struct idem_local_scope *scope,
                                  struct idem_local_record **ret_record,
                                  struct idem_local_error *reterr)
{
    static const char sql[] =
        "SELECT id::text, state, version, local_only, epoch::int8, " US("lease_end")
        ", effect_id, step, step_data, fingerprint, verdict, status::int8, headers, body,"
        " evidence_by, evidence_reason, contradiction, contradiction_by, contradiction_reason, "
        US("contradiction_at") ", " US("created") ", " US("updated") ", " US("finished") ", "
        US("expires") " FROM idem.lookup($1, $2, $3)";
    struct idem_local_params params = { .count = 0 };
    struct idem_local_record *record = NULL;
    PGresult *result = NULL;
    enum idem_local_err err = connection_check(local, reterr);
    scope_add(&params, scope);
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_postgres_ask(local, sql, &params, &result, reterr);
    }
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    if (PQntuples(result) > 0) {
        struct idem_local_row row = {
            .id = uid_read(idem_local_postgres_text(result, 0, 0)),
            .scope = *scope,
            .state = state_read(idem_local_postgres_text(result, 0, 1)),
            .version = idem_local_postgres_i64(result, 0, 2),
            .local_only = idem_local_postgres_i64(result, 0, 3) == 1,
            .epoch = idem_local_postgres_i64(result, 0, 4),
            .lease_end_us = idem_local_postgres_i64(result, 0, 5),
            .step = idem_local_postgres_text(result, 0, 7),
            .step_data = idem_local_postgres_text(result, 0, 8),
            .fingerprint = idem_local_postgres_text(result, 0, 9),
            .verdict = verdict_read(idem_local_postgres_text(result, 0, 10)),
            .status = idem_local_postgres_i64(result, 0, 11),
            .headers = idem_local_postgres_text(result, 0, 12),
            .body = idem_local_postgres_text(result, 0, 13),
            .by = idem_local_postgres_text(result, 0, 14),
            .reason = idem_local_postgres_text(result, 0, 15),
            .contradiction = verdict_read(idem_local_postgres_text(result, 0, 16)),
            .contradiction_by = idem_local_postgres_text(result, 0, 17),
            .contradiction_reason = idem_local_postgres_text(result, 0, 18),
            .contradiction_us = idem_local_postgres_i64(result, 0, 19),
            .created_us = idem_local_postgres_i64(result, 0, 20),
            .updated_us = idem_local_postgres_i64(result, 0, 21),
            .finished_us = idem_local_postgres_i64(result, 0, 22),
            .expires_us = idem_local_postgres_i64(result, 0, 23),
        };
        effect_read(idem_local_postgres_text(result, 0, 6), &row);
        record = idem_local_record_make(&row);
        err = record != NULL ? IDEM_LOCAL_OK : no_memory(reterr);
    }
    PQclear(result);
    if (err == IDEM_LOCAL_OK) {
        *ret_record = record;
    }
    return err;
}

static struct idem_local_record *due_read(const PGresult *result, int at)
{
    struct idem_local_row row = {
        .id = uid_read(idem_local_postgres_text(result, at, 0)),
        .scope = { .principal = idem_local_postgres_text(result, at, 1),
                   .endpoint = idem_local_postgres_text(result, at, 2),
                   .key = idem_local_postgres_text(result, at, 3) },
        .fingerprint = idem_local_postgres_text(result, at, 4),
        .state = state_read(idem_local_postgres_text(result, at, 5)),
        .step = idem_local_postgres_text(result, at, 7),
        .step_data = idem_local_postgres_text(result, at, 8),
        .since_us = idem_local_postgres_i64(result, at, 9),
    };
    effect_read(idem_local_postgres_text(result, at, 6), &row);
    return idem_local_record_make(&row);
}

static enum idem_local_err due_collect(const PGresult *result,
                                       struct idem_local_list **ret_list,
                                       struct idem_local_error *reterr)
{
    const int count = PQntuples(result);
    struct idem_local_list *list = idem_local_list_make(count);
    for (int i = 0; list != NULL && i < count; i++) {
        struct idem_local_record *record = due_read(result, i);
        if (record == NULL) {
            idem_local_list_free(list);
            return no_memory(reterr);
        }
        idem_local_list_add(list, record);
    }
    if (list == NULL) {
        return no_memory(reterr);
    }
    *ret_list = list;
    return IDEM_LOCAL_OK;
}

static enum idem_local_err due(const struct idem_local *local,
                               int limit,
                               struct idem_local_list **ret_list,
                               struct idem_local_error *reterr)
{
    static const char sql[] =
        "SELECT id::text, principal, endpoint, key, fingerprint, state, effect_id, step,"
        " step_data, " US("since") " FROM idem.due($1::int)";
    struct idem_local_params params = { .count = 0 };
    PGresult *result = NULL;
    enum idem_local_err err = connection_check(local, reterr);
    idem_local_params_add_i64(&params, limit);
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_postgres_ask(local, sql, &params, &result, reterr);
    }
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    err = due_collect(result, ret_list, reterr);
    PQclear(result);
    return err;
}

static enum idem_local_err reap(const struct idem_local *local,
                                int limit,
                                struct idem_local_reaped *ret_reaped,
                                struct idem_local_error *reterr)
{
    struct idem_local_params params = { .count = 0 };
    PGresult *result = NULL;
    idem_local_params_add_i64(&params, limit);
    enum idem_local_err err = idem_local_postgres_ask(
        local, "SELECT expired::int8, deleted::int8 FROM idem.reap($1::int)", &params, &result,
        reterr);
    if (err == IDEM_LOCAL_OK) {
        ret_reaped->expired = (int)idem_local_postgres_i64(result, 0, 0);
        ret_reaped->deleted = (int)idem_local_postgres_i64(result, 0, 1);
        PQclear(result);
    }
    return err;
}

const struct idem_local_ops idem_local_postgres_ops = {
    .install = install,
    .enter = enter,
    .apply = apply,
    .lookup = lookup,
    .due = due,
    .reap = reap,
};
