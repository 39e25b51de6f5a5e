/*
 * One table of texts says what each may be; the rest is numbers between two others.
 */
#include "local/command.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "local/fail.h"

#define LEASE_DEFAULT_MS     INT64_C(60000)
#define LEASE_MIN_MS         INT64_C(1000)
#define LEASE_MAX_MS         INT64_C(86400000)
#define RETENTION_DEFAULT_MS (30 * INT64_C(86400000))
#define RETENTION_MIN_MS     INT64_C(3600000)
#define RETENTION_MAX_MS     (3660 * INT64_C(86400000))
#define STATUS_MAX           999

enum alphabet {
    NAME,  /* 0x21 to 0x7e */
    WORDS, /* UTF-8 without control characters */
    TEXT   /* UTF-8; a terminated text has no zero byte */
};

struct rule {
    const char *what;
    size_t min;
    size_t max;
    enum alphabet alphabet;
};

static const struct rule principal_rule = { "principal", 1, IDEM_LOCAL_PRINCIPAL_MAX, NAME };
static const struct rule endpoint_rule = { "endpoint", 1, IDEM_LOCAL_ENDPOINT_MAX, NAME };
static const struct rule key_rule = { "key", 1, IDEM_LOCAL_KEY_MAX, NAME };
static const struct rule effect_rule = { "effect", 0, IDEM_LOCAL_EFFECT_MAX, NAME };
static const struct rule step_rule = { "step.name", 1, IDEM_LOCAL_STEP_MAX, NAME };
static const struct rule headers_rule = { "headers", 0, IDEM_LOCAL_HEADERS_MAX, TEXT };
static const struct rule by_rule = { "by", 1, IDEM_LOCAL_BY_MAX, WORDS };
static const struct rule reason_rule = { "reason", 1, IDEM_LOCAL_REASON_MAX, WORDS };
static const struct rule fingerprint_rule = { "fingerprint", 1, IDEM_LOCAL_FINGERPRINT_MAX, TEXT };
static const struct rule data_rule = { "step.data", 0, IDEM_LOCAL_STEP_DATA_MAX, TEXT };
static const struct rule body_rule = { "body", 0, IDEM_LOCAL_BODY_MAX, TEXT };

static bool byte_fits(unsigned char byte, enum alphabet alphabet)
{
    switch (alphabet) {
    case NAME:
        return byte >= 0x21 && byte <= 0x7e;
    case WORDS:
        return byte >= 0x20 && byte != 0x7f;
    case TEXT:
        return true;
    }
    return false;
}

static bool text_fits(struct idem_str text, const struct rule *rule)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!byte_fits((unsigned char)text.data[i], rule->alphabet)) {
            return false;
        }
    }
    return text.len >= rule->min && text.len <= rule->max && idem_utf8_valid(text);
}

static enum idem_local_err text_read(const char *text,
                                     const struct rule *rule,
                                     struct idem_str *ret_text,
                                     struct idem_local_error *reterr)
{
    static const char *const names[] = {
        [NAME] = "visible ASCII",
        [WORDS] = "UTF-8 without control characters",
        [TEXT] = "UTF-8",
    };
    struct idem_str found = idem_str_from(text);
    if (!text_fits(found, rule)) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                               "%s must have %zu to %zu bytes of %s; nothing was written",
                               rule->what, rule->min, rule->max, names[rule->alphabet]);
    }
    *ret_text = found;
    return IDEM_LOCAL_OK;
}

static enum idem_local_err bytes_read(const void *bytes,
                                      size_t size,
                                      const struct rule *rule,
                                      struct idem_str *ret_bytes,
                                      struct idem_local_error *reterr)
{
    if ((bytes == NULL && size > 0) || size < rule->min || size > rule->max) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                               "%s must have %zu to %zu bytes; nothing was written", rule->what,
                               rule->min, rule->max);
    }
    *ret_bytes = (struct idem_str){ .data = size > 0 ? bytes : "", .len = size };
    return IDEM_LOCAL_OK;
}

/* Zero is the default. */
static enum idem_local_err number_check(
    const char *what, int64_t number, int64_t min, int64_t max, struct idem_local_error *reterr)
{
    return number == 0 || (number >= min && number <= max)
               ? IDEM_LOCAL_OK
               : idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                                 "%s must be %lld to %lld; nothing was written", what,
                                 (long long)min, (long long)max);
}

static enum idem_local_err sizeless(const char *what, struct idem_local_error *reterr)
{
    return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                           "%s must be given with its size filled in; nothing was written", what);
}

static enum idem_local_err scope_read(const char *principal,
                                      const char *endpoint,
                                      const char *key,
                                      struct idem_local_scope *ret_scope,
                                      struct idem_local_error *reterr)
{
    struct idem_local_scope scope = { .key = { .len = 0 } };
    enum idem_local_err err = text_read(principal, &principal_rule, &scope.principal, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = text_read(endpoint, &endpoint_rule, &scope.endpoint, reterr);
    }
    if (err == IDEM_LOCAL_OK) {
        err = text_read(key, &key_rule, &scope.key, reterr);
    }
    if (err == IDEM_LOCAL_OK) {
        *ret_scope = scope;
    }
    return err;
}

enum idem_local_err idem_local_command_name(const struct idem_local_name *name,
                                            struct idem_local_scope *ret_scope,
                                            struct idem_local_error *reterr)
{
    if (name == NULL || name->size != sizeof(*name)) {
        return sizeless("name", reterr);
    }
    return scope_read(name->principal, name->endpoint, name->key, ret_scope, reterr);
}

enum idem_local_err idem_local_command_lease(int64_t lease_ms,
                                             struct idem_local_command *command,
                                             struct idem_local_error *reterr)
{
    enum idem_local_err err =
        number_check("lease_ms", lease_ms, LEASE_MIN_MS, LEASE_MAX_MS, reterr);
    if (err == IDEM_LOCAL_OK) {
        command->lease_us = (lease_ms == 0 ? LEASE_DEFAULT_MS : lease_ms) * IDEM_US_PER_MS;
    }
    return err;
}

enum idem_local_err idem_local_command_claim(const struct idem_local_claim *claim,
                                             struct idem_local_command *ret_command,
                                             struct idem_local_error *reterr)
{
    struct idem_local_command command = { .verb = IDEM_LOCAL_CLAIM };
    if (claim == NULL || claim->size != sizeof(*claim)) {
        return sizeless("claim", reterr);
    }
    command.local_only = claim->local_only;
    enum idem_local_err err =
        scope_read(claim->principal, claim->endpoint, claim->key, &command.scope, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = bytes_read(claim->fingerprint, claim->fingerprint_size, &fingerprint_rule,
                         &command.fingerprint, reterr);
    }
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_command_lease(claim->lease_ms, &command, reterr);
    }
    *ret_command = command;
    return err;
}

enum idem_local_err idem_local_command_attempt(enum idem_local_verb verb,
                                               const struct idem_local_token *token,
                                               struct idem_local_command *ret_command,
                                               struct idem_local_error *reterr)
{
    *ret_command = (struct idem_local_command){ .verb = verb };
    if (token != NULL) {
        memcpy(ret_command->token.bytes, token->bytes, sizeof(ret_command->token.bytes));
    }
    return !idem_uid_is_zero(ret_command->token)
               ? IDEM_LOCAL_OK
               : idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                                 "there is no token: only a claim that is to execute has one; "
                                 "nothing was written");
}

enum idem_local_err idem_local_command_effect(const char *effect,
                                              struct idem_local_command *command,
                                              struct idem_local_error *reterr)
{
    enum idem_local_err err = text_read(effect, &effect_rule, &command->effect, reterr);
    return err == IDEM_LOCAL_OK && idem_str_find(command->effect, ':') < command->effect.len
               ? idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                                 "effect must have no colon; nothing was written")
               : err;
}

enum idem_local_err idem_local_command_step(const struct idem_local_step *step,
                                            struct idem_local_command *command,
                                            struct idem_local_error *reterr)
{
    if (step == NULL || step->size != sizeof(*step)) {
        return sizeless("step", reterr);
    }
    enum idem_local_err err = text_read(step->name, &step_rule, &command->step, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_command_lease(step->lease_ms, command, reterr);
    }
    return err == IDEM_LOCAL_OK
               ? bytes_read(step->data, step->data_size, &data_rule, &command->step_data, reterr)
               : err;
}

enum idem_local_err idem_local_command_answer(const struct idem_local_answer *answer,
                                              struct idem_local_command *command,
                                              struct idem_local_error *reterr)
{
    if (answer == NULL || answer->size != sizeof(*answer)) {
        return sizeless("answer", reterr);
    }
    if (answer->verdict != IDEM_LOCAL_VERDICT_SUCCEEDED &&
        answer->verdict != IDEM_LOCAL_VERDICT_FAILED) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                               "an answer says SUCCEEDED or FAILED; nothing was written");
    }
    command->verdict = answer->verdict;
    command->status = answer->status;
    enum idem_local_err err = number_check("retention_ms", answer->retention_ms, RETENTION_MIN_MS,
                                           RETENTION_MAX_MS, reterr);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    command->retention_us =
        (answer->retention_ms == 0 ? RETENTION_DEFAULT_MS : answer->retention_ms) * IDEM_US_PER_MS;
    err = number_check("status", answer->status, 0, STATUS_MAX, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = text_read(answer->headers, &headers_rule, &command->headers, reterr);
    }
    return err == IDEM_LOCAL_OK
               ? bytes_read(answer->body, answer->body_size, &body_rule, &command->body, reterr)
               : err;
}

enum idem_local_err idem_local_command_settle(const struct idem_local_evidence *evidence,
                                              struct idem_local_command *ret_command,
                                              struct idem_local_error *reterr)
{
    struct idem_local_command command = { .verb = IDEM_LOCAL_SETTLE };
    if (evidence == NULL || evidence->size != sizeof(*evidence)) {
        return sizeless("evidence", reterr);
    }
    command.verdict = evidence->answer.verdict;
    enum idem_local_err err = idem_local_command_name(&evidence->name, &command.scope, reterr);
    if (err == IDEM_LOCAL_OK) {
        err = text_read(evidence->by, &by_rule, &command.by, reterr);
    }
    if (err == IDEM_LOCAL_OK) {
        err = text_read(evidence->reason, &reason_rule, &command.reason, reterr);
    }
    if (err == IDEM_LOCAL_OK) {
        err = idem_local_command_effect(evidence->effect, &command, reterr);
    }
    if (err == IDEM_LOCAL_OK && command.verdict == IDEM_LOCAL_VERDICT_EXECUTED) {
        err = idem_local_command_step(&evidence->step, &command, reterr);
    } else if (err == IDEM_LOCAL_OK && command.verdict != IDEM_LOCAL_VERDICT_NOT_EXECUTED) {
        err = idem_local_command_answer(&evidence->answer, &command, reterr);
    }
    *ret_command = command;
    return err;
}
