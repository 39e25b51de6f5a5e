/*
 * The interface: arguments, which database, and the shape of what comes back. No rule is here.
 */
#include <string.h>

#include "base/bug.h"
#include "idem/idem.h"
#include "local/applied.h"
#include "local/command.h"
#include "local/fail.h"

#define LIMIT_MAX 10000

/* NULL: it is not one connection. */
static const struct idem_local_ops *database_of(const struct idem_local *local)
{
    if (local == NULL || local->size != sizeof(*local) || local->wait_ms < 0 ||
        (local->sqlite == NULL) == (local->postgres == NULL)) {
        return NULL;
    }
    return local->sqlite != NULL ? &idem_local_sqlite_ops : &idem_local_postgres_ops;
}

static enum idem_local_err no_database(struct idem_local_error *reterr)
{
    return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                           "idem_local must have its size, and one connection: sqlite or "
                           "postgres; nothing was written");
}

static enum idem_local_err missing(struct idem_local_error *reterr)
{
    return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                           "there is no place for the result, or it has no size; nothing was "
                           "written");
}

/* Every verb but claim. `err` is what came of its arguments. */
static enum idem_local_err apply(const struct idem_local *local,
                                 enum idem_local_err err,
                                 const struct idem_local_command *command,
                                 struct idem_local_result *ret_result,
                                 struct idem_local_error *reterr)
{
    const struct idem_local_ops *ops = database_of(local);
    struct idem_local_applied applied = { .outcome = IDEM_LOCAL_NO_OUTCOME };
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    if (ret_result == NULL || ret_result->size != sizeof(*ret_result)) {
        return missing(reterr);
    }
    if (ops == NULL) {
        return no_database(reterr);
    }
    err = ops->enter(local, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = ops->apply(local, command, &applied, reterr);
    }
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    IDEM_ASSERT(applied.outcome != IDEM_LOCAL_NO_OUTCOME && applied.record == NULL);
    ret_result->outcome = applied.outcome;
    memcpy(ret_result->effect_id, applied.effect_id, sizeof(ret_result->effect_id));
    return IDEM_LOCAL_OK;
}

enum idem_local_err idem_local_install(const struct idem_local *local,
                                       struct idem_local_error *reterr)
{
    const struct idem_local_ops *ops = database_of(local);
    if (ops == NULL) {
        return no_database(reterr);
    }
    enum idem_local_err err = ops->enter(local, reterr);
    return err == IDEM_LOCAL_OK ? ops->install(local, reterr) : err;
}

enum idem_local_err idem_local_claim(const struct idem_local *local,
                                     const struct idem_local_claim *claim,
                                     struct idem_local_record **ret_record,
                                     struct idem_local_error *reterr)
{
    const struct idem_local_ops *ops = database_of(local);
    struct idem_local_command command;
    struct idem_local_applied applied = { .outcome = IDEM_LOCAL_NO_OUTCOME };
    if (ret_record == NULL) {
        return missing(reterr);
    }
    if (ops == NULL) {
        return no_database(reterr);
    }
    enum idem_local_err err = idem_local_command_claim(claim, &command, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = ops->enter(local, reterr);
    }
    if (err == IDEM_LOCAL_OK) {
        err = ops->apply(local, &command, &applied, reterr);
    }
    if (err == IDEM_LOCAL_OK) {
        IDEM_ASSERT(applied.record != NULL && applied.record->outcome == applied.outcome);
        *ret_record = applied.record;
    }
    return err;
}

enum idem_local_err idem_local_dispatch(const struct idem_local *local,
                                        const struct idem_local_token *token,
                                        const char *effect,
                                        struct idem_local_result *ret_result,
                                        struct idem_local_error *reterr)
{
    struct idem_local_command command;
    enum idem_local_err err =
        idem_local_command_attempt(IDEM_LOCAL_DISPATCH, token, &command, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_command_effect(effect, &command, reterr);
    }
    return apply(local, err, &command, ret_result, reterr);
}

enum idem_local_err idem_local_heartbeat(const struct idem_local *local,
                                         const struct idem_local_token *token,
                                         int64_t lease_ms,
                                         struct idem_local_result *ret_result,
                                         struct idem_local_error *reterr)
{
    struct idem_local_command command;
    enum idem_local_err err =
        idem_local_command_attempt(IDEM_LOCAL_HEARTBEAT, token, &command, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_command_lease(lease_ms, &command, reterr);
    }
    return apply(local, err, &command, ret_result, reterr);
}

enum idem_local_err idem_local_mark(const struct idem_local *local,
                                    const struct idem_local_token *token,
                                    const struct idem_local_step *step,
                                    struct idem_local_result *ret_result,
                                    struct idem_local_error *reterr)
{
    struct idem_local_command command;
    enum idem_local_err err = idem_local_command_attempt(IDEM_LOCAL_MARK, token, &command, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_command_step(step, &command, reterr);
    }
    return apply(local, err, &command, ret_result, reterr);
}

enum idem_local_err idem_local_complete(const struct idem_local *local,
                                        const struct idem_local_token *token,
                                        const struct idem_local_answer *answer,
                                        struct idem_local_result *ret_result,
                                        struct idem_local_error *reterr)
{
    struct idem_local_command command;
    enum idem_local_err err =
        idem_local_command_attempt(IDEM_LOCAL_COMPLETE, token, &command, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_command_answer(answer, &command, reterr);
    }
    return apply(local, err, &command, ret_result, reterr);
}

enum idem_local_err idem_local_release(const struct idem_local *local,
                                       const struct idem_local_token *token,
                                       bool not_executed,
                                       struct idem_local_result *ret_result,
                                       struct idem_local_error *reterr)
{
    struct idem_local_command command;
    enum idem_local_err err =
        idem_local_command_attempt(IDEM_LOCAL_RELEASE, token, &command, reterr);
    command.not_executed = not_executed;
    return apply(local, err, &command, ret_result, reterr);
}

enum idem_local_err idem_local_settle(const struct idem_local *local,
                                      const struct idem_local_evidence *evidence,
                                      struct idem_local_result *ret_result,
                                      struct idem_local_error *reterr)
{
    struct idem_local_command command;
    enum idem_local_err err = idem_local_command_settle(evidence, &command, reterr);
    return apply(local, err, &command, ret_result, reterr);
}

enum idem_local_err idem_local_lookup(const struct idem_local *local,
                                      const struct idem_local_name *name,
                                      struct idem_local_record **ret_record,
                                      struct idem_local_error *reterr)
{
    const struct idem_local_ops *ops = database_of(local);
    struct idem_local_scope scope;
    if (ret_record == NULL) {
        return missing(reterr);
    }
    if (ops == NULL) {
        return no_database(reterr);
    }
    enum idem_local_err err = idem_local_command_name(name, &scope, reterr);
    return err == IDEM_LOCAL_OK ? ops->lookup(local, &scope, ret_record, reterr) : err;
}

static enum idem_local_err limit_check(int limit, struct idem_local_error *reterr)
{
    return limit >= 1 && limit <= LIMIT_MAX
               ? IDEM_LOCAL_OK
               : idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                                 "limit must be 1 to %d; nothing was written", LIMIT_MAX);
}

enum idem_local_err idem_local_due(const struct idem_local *local,
                                   int limit,
                                   struct idem_local_list **ret_list,
                                   struct idem_local_error *reterr)
{
    const struct idem_local_ops *ops = database_of(local);
    if (ret_list == NULL) {
        return missing(reterr);
    }
    if (ops == NULL) {
        return no_database(reterr);
    }
    enum idem_local_err err = limit_check(limit, reterr);
    return err == IDEM_LOCAL_OK ? ops->due(local, limit, ret_list, reterr) : err;
}

enum idem_local_err idem_local_reap(const struct idem_local *local,
                                    int limit,
                                    struct idem_local_reaped *ret_reaped,
                                    struct idem_local_error *reterr)
{
    const struct idem_local_ops *ops = database_of(local);
    if (ret_reaped == NULL || ret_reaped->size != sizeof(*ret_reaped)) {
        return missing(reterr);
    }
    if (ops == NULL) {
        return no_database(reterr);
    }
    enum idem_local_err err = limit_check(limit, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = ops->enter(local, reterr);
    }
    return err == IDEM_LOCAL_OK ? ops->reap(local, limit, ret_reaped, reterr) : err;
}

const char *idem_local_outcome_name(enum idem_local_outcome outcome)
{
    static const char *const names[] = {
        [IDEM_LOCAL_NO_OUTCOME] = "none",
        [IDEM_LOCAL_EXECUTE] = "execute",
        [IDEM_LOCAL_REPLAY] = "replay",
        [IDEM_LOCAL_IN_PROGRESS] = "in_progress",
        [IDEM_LOCAL_UNKNOWN] = "unknown",
        [IDEM_LOCAL_MISMATCH] = "mismatch",
        [IDEM_LOCAL_EXPIRED] = "expired",
        [IDEM_LOCAL_DONE] = "ok",
        [IDEM_LOCAL_ALREADY] = "already",
        [IDEM_LOCAL_SUPERSEDED] = "superseded",
        [IDEM_LOCAL_BUSY] = "busy",
        [IDEM_LOCAL_CONTRADICTION] = "contradiction",
        [IDEM_LOCAL_OTHER_EFFECT] = "other_effect",
        [IDEM_LOCAL_LOCAL_ONLY] = "local_only",
        [IDEM_LOCAL_NOT_PROVEN] = "not_proven",
        [IDEM_LOCAL_ABSENT] = "absent",
    };
    return (size_t)outcome < IDEM_ARRAY_COUNT(names) ? names[outcome] : "none";
}

const char *idem_local_state_name(enum idem_local_state state)
{
    static const char *const names[] = {
        [IDEM_LOCAL_STATE_NONE] = "none",       [IDEM_LOCAL_CLAIMED] = "claimed",
        [IDEM_LOCAL_DISPATCHED] = "dispatched", [IDEM_LOCAL_IN_DOUBT] = "unknown",
        [IDEM_LOCAL_RELEASED] = "released",     [IDEM_LOCAL_SUCCEEDED] = "succeeded",
        [IDEM_LOCAL_FAILED] = "failed",         [IDEM_LOCAL_FORGOTTEN] = "expired",
    };
    return (size_t)state < IDEM_ARRAY_COUNT(names) ? names[state] : "none";
}
