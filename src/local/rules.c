/*
 * The rules.
 *
 *   absent --claim--> CLAIMED --dispatch--> DISPATCHED --complete--> SUCCEEDED | FAILED
 *                      ^  | \                 |  |  \                      |
 *              claim   |  |  \--complete--+   |  |   \--mark--> CLAIMED    | retention
 *                      |  | release       |   |  | lease over             v
 *                     RELEASED <--release-|---+  |                    FORGOTTEN
 *                      ^  not executed    v      v
 *                      |            SUCCEEDED   IN_DOUBT --complete, mark, release, settle--> ...
 *                      +---settle: executed------+
 *
 * Invariants
 *   1. Only takeover() gives a token, and only to one claimer: of a key that has no record
 *      (row_begin), of a RELEASED one, of a CLAIMED one that is local only and over.
 *   2. A timer leads to IN_DOUBT and never out of it. What leaves it is the attempt's own word or
 *      evidence.
 *   3. A final verdict and its answer never change; what says otherwise stands beside it, once.
 *   4. Nothing of a record is shown, or changed by a claim, before the fingerprint was compared.
 *   5. Evidence of an outside step counts for the effect that was dispatched and no other, so that
 *      a late copy never turns the work back.
 *
 * The state that is stored may be older than the state that is: leases end without anybody writing
 * it. idem_local_state_now() is what decides; a claim that finds IN_DOUBT writes it.
 */
#include "local/rules.h"

#include "base/bug.h"

static bool is_open(const struct idem_local_row *row)
{
    return row->state == IDEM_LOCAL_CLAIMED || row->state == IDEM_LOCAL_DISPATCHED ||
           row->state == IDEM_LOCAL_IN_DOUBT;
}

static bool is_final(const struct idem_local_row *row)
{
    return row->state == IDEM_LOCAL_SUCCEEDED || row->state == IDEM_LOCAL_FAILED ||
           row->state == IDEM_LOCAL_FORGOTTEN;
}

static bool is_over(const struct idem_local_row *row, int64_t now_us)
{
    return row->lease_end_us <= now_us;
}

enum idem_local_state idem_local_state_now(const struct idem_local_row *row, int64_t now_us)
{
    switch (row->state) {
    case IDEM_LOCAL_CLAIMED:
        return is_over(row, now_us) && !row->local_only ? IDEM_LOCAL_IN_DOUBT : row->state;
    case IDEM_LOCAL_DISPATCHED:
        return is_over(row, now_us) ? IDEM_LOCAL_IN_DOUBT : row->state;
    case IDEM_LOCAL_SUCCEEDED:
    case IDEM_LOCAL_FAILED:
        return row->expires_us <= now_us ? IDEM_LOCAL_FORGOTTEN : row->state;
    case IDEM_LOCAL_STATE_NONE:
    case IDEM_LOCAL_IN_DOUBT:
    case IDEM_LOCAL_RELEASED:
    case IDEM_LOCAL_FORGOTTEN:
        break;
    }
    return row->state;
}

int64_t idem_local_due_us(const struct idem_local_row *row)
{
    if (is_open(row)) {
        return row->lease_end_us;
    }
    return row->state == IDEM_LOCAL_RELEASED && row->step.len > 0 ? row->updated_us : 0;
}

/* Every change ends here. */
static enum idem_local_outcome written(struct idem_local_row *row,
                                       int64_t now_us,
                                       enum idem_local_outcome outcome)
{
    row->version++;
    row->updated_us = now_us;
    return outcome;
}

static void effect_clear(struct idem_local_row *row)
{
    row->sent = false;
    row->effect = (struct idem_str){ .len = 0 };
}

static bool effect_is(const struct idem_local_row *row, struct idem_str effect)
{
    return row->sent && idem_str_equal(row->effect, effect);
}

/* --- claims --------------------------------------------------------------------------------- */

void idem_local_row_begin(const struct idem_local_command *command,
                          int64_t now_us,
                          struct idem_local_row *ret_row)
{
    *ret_row = (struct idem_local_row){
        .id = command->id,
        .scope = command->scope,
        .fingerprint = command->fingerprint,
        .state = IDEM_LOCAL_CLAIMED,
        .version = 1,
        .local_only = command->local_only,
        .epoch = 1,
        .token = command->token,
        .lease_end_us = now_us + command->lease_us,
        .created_us = now_us,
        .updated_us = now_us,
    };
}

static enum idem_local_outcome takeover(struct idem_local_row *row,
                                        const struct idem_local_command *command,
                                        int64_t now_us)
{
    IDEM_ASSERT(row->state == IDEM_LOCAL_RELEASED ||
                (row->state == IDEM_LOCAL_CLAIMED && row->local_only && is_over(row, now_us)));
    row->state = IDEM_LOCAL_CLAIMED;
    row->local_only = command->local_only;
    row->epoch++;
    row->token = command->token;
    row->lease_end_us = now_us + command->lease_us;
    return written(row, now_us, IDEM_LOCAL_EXECUTE);
}

static enum idem_local_outcome doubt(struct idem_local_row *row, int64_t now_us)
{
    if (row->state == IDEM_LOCAL_IN_DOUBT) {
        return IDEM_LOCAL_UNKNOWN;
    }
    row->state = IDEM_LOCAL_IN_DOUBT;
    return written(row, now_us, IDEM_LOCAL_UNKNOWN);
}

static enum idem_local_outcome claim(struct idem_local_row *row,
                                     const struct idem_local_command *command,
                                     int64_t now_us)
{
    if (!idem_str_equal(row->fingerprint, command->fingerprint)) {
        return IDEM_LOCAL_MISMATCH;
    }
    switch (idem_local_state_now(row, now_us)) {
    case IDEM_LOCAL_CLAIMED:
    case IDEM_LOCAL_DISPATCHED:
        if (!is_over(row, now_us)) {
            row->retry_after_us = row->lease_end_us - now_us;
            return IDEM_LOCAL_IN_PROGRESS;
        }
        return takeover(row, command, now_us);
    case IDEM_LOCAL_IN_DOUBT:
        return doubt(row, now_us);
    case IDEM_LOCAL_RELEASED:
        return takeover(row, command, now_us);
    case IDEM_LOCAL_SUCCEEDED:
    case IDEM_LOCAL_FAILED:
        return IDEM_LOCAL_REPLAY;
    case IDEM_LOCAL_FORGOTTEN:
        return IDEM_LOCAL_EXPIRED;
    case IDEM_LOCAL_STATE_NONE:
        break;
    }
    IDEM_UNREACHABLE();
}

/* --- attempts ------------------------------------------------------------------------------- */

static enum idem_local_outcome dispatch(struct idem_local_row *row,
                                        const struct idem_local_command *command,
                                        int64_t now_us)
{
    if (is_over(row, now_us) ||
        (row->state != IDEM_LOCAL_CLAIMED && row->state != IDEM_LOCAL_DISPATCHED)) {
        return IDEM_LOCAL_SUPERSEDED;
    }
    if (row->local_only) {
        return IDEM_LOCAL_LOCAL_ONLY;
    }
    if (row->state == IDEM_LOCAL_DISPATCHED) {
        return effect_is(row, command->effect) ? IDEM_LOCAL_ALREADY : IDEM_LOCAL_OTHER_EFFECT;
    }
    row->state = IDEM_LOCAL_DISPATCHED;
    row->sent = true;
    row->effect = command->effect;
    return written(row, now_us, IDEM_LOCAL_DONE);
}

static void lease_extend(struct idem_local_row *row,
                         const struct idem_local_command *command,
                         int64_t now_us)
{
    const int64_t end_us = now_us + command->lease_us;
    row->lease_end_us = row->lease_end_us < end_us ? end_us : row->lease_end_us;
}

static enum idem_local_outcome heartbeat(struct idem_local_row *row,
                                         const struct idem_local_command *command,
                                         int64_t now_us)
{
    if (is_over(row, now_us) ||
        (row->state != IDEM_LOCAL_CLAIMED && row->state != IDEM_LOCAL_DISPATCHED)) {
        return IDEM_LOCAL_SUPERSEDED;
    }
    lease_extend(row, command, now_us);
    return written(row, now_us, IDEM_LOCAL_DONE);
}

/* Needs no live lease: whoever knows that the step is done knows it also later. */
static enum idem_local_outcome mark(struct idem_local_row *row,
                                    const struct idem_local_command *command,
                                    int64_t now_us)
{
    if (!is_open(row)) {
        return IDEM_LOCAL_SUPERSEDED;
    }
    if (idem_str_equal(row->step, command->step)) {
        return IDEM_LOCAL_ALREADY;
    }
    row->state = IDEM_LOCAL_CLAIMED;
    effect_clear(row);
    row->step = command->step;
    row->step_data = command->step_data;
    lease_extend(row, command, now_us);
    return written(row, now_us, IDEM_LOCAL_DONE);
}

static enum idem_local_outcome finish(struct idem_local_row *row,
                                      const struct idem_local_command *command,
                                      int64_t now_us)
{
    row->state =
        command->verdict == IDEM_LOCAL_VERDICT_SUCCEEDED ? IDEM_LOCAL_SUCCEEDED : IDEM_LOCAL_FAILED;
    row->verdict = command->verdict;
    row->status = command->status;
    row->headers = command->headers;
    row->body = command->body;
    row->finished_us = now_us;
    row->expires_us = now_us + command->retention_us;
    return written(row, now_us, IDEM_LOCAL_DONE);
}

/* Somebody says something about a record that is over. `verdict` is what it comes down to. */
static enum idem_local_outcome compare(struct idem_local_row *row,
                                       const struct idem_local_command *command,
                                       enum idem_local_verdict verdict,
                                       int64_t now_us)
{
    IDEM_ASSERT(is_final(row));
    if (row->verdict == verdict) {
        return IDEM_LOCAL_ALREADY;
    }
    if (row->contradiction != IDEM_LOCAL_NO_VERDICT) {
        return IDEM_LOCAL_CONTRADICTION;
    }
    const bool attempt = command->verb == IDEM_LOCAL_COMPLETE;
    row->contradiction = command->verdict;
    row->contradiction_by = attempt ? IDEM_STR("attempt") : command->by;
    row->contradiction_reason = attempt ? IDEM_STR("completed after the end") : command->reason;
    row->contradiction_us = now_us;
    return written(row, now_us, IDEM_LOCAL_CONTRADICTION);
}

static enum idem_local_outcome complete(struct idem_local_row *row,
                                        const struct idem_local_command *command,
                                        int64_t now_us)
{
    if (is_final(row)) {
        return compare(row, command, command->verdict, now_us);
    }
    return is_open(row) ? finish(row, command, now_us) : IDEM_LOCAL_SUPERSEDED;
}

static enum idem_local_outcome release(struct idem_local_row *row,
                                       const struct idem_local_command *command,
                                       int64_t now_us)
{
    if (row->state == IDEM_LOCAL_RELEASED) {
        return IDEM_LOCAL_ALREADY;
    }
    if (!is_open(row)) {
        return IDEM_LOCAL_SUPERSEDED;
    }
    if (row->state != IDEM_LOCAL_CLAIMED && !command->not_executed) {
        return IDEM_LOCAL_NOT_PROVEN;
    }
    row->state = IDEM_LOCAL_RELEASED;
    return written(row, now_us, IDEM_LOCAL_DONE);
}

/* --- evidence ------------------------------------------------------------------------------- */

/* The outside step is done. The attempt that sent it has no authority any more. */
static enum idem_local_outcome settle_step(struct idem_local_row *row,
                                           const struct idem_local_command *command,
                                           int64_t now_us)
{
    const bool unnamed_doubt =
        !row->sent && idem_local_state_now(row, now_us) == IDEM_LOCAL_IN_DOUBT;
    if (idem_str_equal(row->step, command->step)) {
        return IDEM_LOCAL_ALREADY;
    }
    if (!effect_is(row, command->effect) && !unnamed_doubt) {
        return IDEM_LOCAL_OTHER_EFFECT;
    }
    row->state = IDEM_LOCAL_RELEASED;
    row->token = (struct idem_uid){ .bytes = { 0 } };
    effect_clear(row);
    row->step = command->step;
    row->step_data = command->step_data;
    row->by = command->by;
    row->reason = command->reason;
    return written(row, now_us, IDEM_LOCAL_DONE);
}

/* Nothing happened. While an attempt can still send, nobody can know that. */
static enum idem_local_outcome settle_nothing(struct idem_local_row *row,
                                              const struct idem_local_command *command,
                                              int64_t now_us)
{
    if (row->state == IDEM_LOCAL_RELEASED) {
        return IDEM_LOCAL_ALREADY;
    }
    if (idem_local_state_now(row, now_us) != IDEM_LOCAL_IN_DOUBT) {
        return IDEM_LOCAL_NOT_PROVEN;
    }
    row->state = IDEM_LOCAL_RELEASED;
    row->token = (struct idem_uid){ .bytes = { 0 } };
    row->by = command->by;
    row->reason = command->reason;
    return written(row, now_us, IDEM_LOCAL_DONE);
}

/* What evidence comes down to beside a final verdict. */
static enum idem_local_verdict verdict_of(const struct idem_local_command *command)
{
    if (command->verdict == IDEM_LOCAL_VERDICT_EXECUTED) {
        return IDEM_LOCAL_VERDICT_SUCCEEDED;
    }
    return command->verdict == IDEM_LOCAL_VERDICT_NOT_EXECUTED ? IDEM_LOCAL_VERDICT_FAILED
                                                               : command->verdict;
}

static enum idem_local_outcome settle(struct idem_local_row *row,
                                      const struct idem_local_command *command,
                                      int64_t now_us)
{
    if (is_final(row)) {
        return compare(row, command, verdict_of(command), now_us);
    }
    if (command->verdict == IDEM_LOCAL_VERDICT_EXECUTED) {
        return settle_step(row, command, now_us);
    }
    if (command->effect.len > 0 && !effect_is(row, command->effect)) {
        return IDEM_LOCAL_OTHER_EFFECT;
    }
    if (command->verdict == IDEM_LOCAL_VERDICT_NOT_EXECUTED) {
        return settle_nothing(row, command, now_us);
    }
    row->by = command->by;
    row->reason = command->reason;
    return finish(row, command, now_us);
}

enum idem_local_outcome idem_local_decide(struct idem_local_row *row,
                                          const struct idem_local_command *command,
                                          int64_t now_us)
{
    switch (command->verb) {
    case IDEM_LOCAL_CLAIM:
        return claim(row, command, now_us);
    case IDEM_LOCAL_DISPATCH:
        return dispatch(row, command, now_us);
    case IDEM_LOCAL_HEARTBEAT:
        return heartbeat(row, command, now_us);
    case IDEM_LOCAL_MARK:
        return mark(row, command, now_us);
    case IDEM_LOCAL_COMPLETE:
        return complete(row, command, now_us);
    case IDEM_LOCAL_RELEASE:
        return release(row, command, now_us);
    case IDEM_LOCAL_SETTLE:
        return settle(row, command, now_us);
    case IDEM_LOCAL_VERB_NONE:
        break;
    }
    IDEM_UNREACHABLE();
}

/* --- what is shown, what is forgotten -------------------------------------------------------- */

void idem_local_row_forget(struct idem_local_row *row)
{
    row->state = IDEM_LOCAL_FORGOTTEN;
    row->status = 0;
    row->headers = (struct idem_str){ .len = 0 };
    row->body = (struct idem_str){ .len = 0 };
    row->step_data = (struct idem_str){ .len = 0 };
}

void idem_local_row_mask(struct idem_local_row *row, enum idem_local_outcome outcome)
{
    struct idem_local_row shown = { .outcome = outcome };
    if (outcome == IDEM_LOCAL_IN_PROGRESS) {
        shown.retry_after_us = row->retry_after_us;
    }
    if (outcome == IDEM_LOCAL_EXECUTE) {
        shown.id = row->id;
        shown.token = row->token;
        shown.epoch = row->epoch;
        shown.step = row->step;
        shown.step_data = row->step_data;
    }
    if (outcome == IDEM_LOCAL_REPLAY || outcome == IDEM_LOCAL_EXPIRED) {
        shown.id = row->id;
        shown.verdict = row->verdict;
    }
    if (outcome == IDEM_LOCAL_REPLAY) {
        shown.status = row->status;
        shown.headers = row->headers;
        shown.body = row->body;
    }
    if (outcome == IDEM_LOCAL_UNKNOWN) {
        shown.id = row->id;
        shown.sent = row->sent;
        shown.effect = row->effect;
    }
    *row = shown;
}
