/*
 * The life of an intent (docs/design.md, section 5). Each arrow names the function that makes it.
 *
 *   absent --accept--> CLAIMED --perform--> DISPATCHED --settle--> SUCCEEDED | FAILED
 *      \                  |   ^                |   \--silence, lapse--> UNKNOWN --settle--> ...
 *       \--accept (slot)--|---|--------------->|                          |  \--park--> PARKED
 *                         |   +----retry-------+                          |               |
 *                         v        (every send proven not executed)       v               v
 *                      RELEASED <------------- release --------------- (likewise)      settle
 *                         |  \--reclaim--> CLAIMED | DISPATCHED
 *                         \--abandon, due--> FAILED
 *
 *   SUCCEEDED | FAILED --expire--> the same, as a tombstone --remove--> absent (without a payment)
 *   absent, but listed by the provider --found--> SUCCEEDED | PARKED
 *
 * A person's word settles as the provider's does (resolve).
 *
 *   accept, reclaim   decide_accept.c        perform, lapse    decide_due.c
 *   settle, release, retry, silence, park    decide_evidence.c
 *   abandon           decide_abandon.c    resolve          decide_resolve.c
 *   expire, remove    decide_reap.c       found            decide_stub.c
 *
 * What must hold in each state is in idem_intent_check().
 */
#include "core/intent.h"

#include "base/bug.h"

bool idem_intent_is_final(enum idem_intent_state state)
{
    return state == IDEM_INTENT_SUCCEEDED || state == IDEM_INTENT_FAILED;
}

bool idem_intent_is_open(enum idem_intent_state state)
{
    return state != IDEM_INTENT_NONE && !idem_intent_is_final(state);
}

bool idem_intent_is_over(enum idem_intent_state state)
{
    return state == IDEM_INTENT_RELEASED || idem_intent_is_final(state);
}

const char *idem_intent_state_name(enum idem_intent_state state)
{
    static const char *const names[IDEM_INTENT_COUNT] = {
        [IDEM_INTENT_NONE] = "absent",           [IDEM_INTENT_CLAIMED] = "claimed",
        [IDEM_INTENT_DISPATCHED] = "dispatched", [IDEM_INTENT_UNKNOWN] = "unknown",
        [IDEM_INTENT_PARKED] = "parked",         [IDEM_INTENT_SUCCEEDED] = "succeeded",
        [IDEM_INTENT_FAILED] = "failed",         [IDEM_INTENT_RELEASED] = "released",
    };
    IDEM_ASSERT(state < IDEM_INTENT_COUNT);
    return names[state];
}

const char *idem_operation_state_name(enum idem_intent_state state)
{
    if (state == IDEM_INTENT_CLAIMED || state == IDEM_INTENT_DISPATCHED) {
        return "processing";
    }
    return idem_intent_state_name(state);
}

static const char *const endpoint_names[IDEM_ENDPOINT_COUNT] = {
    [IDEM_ENDPOINT_NONE] = "none",
    [IDEM_ENDPOINT_PAYMENTS_CREATE] = "payments.create",
    [IDEM_ENDPOINT_PAYMENTS_CAPTURE] = "payments.capture",
    [IDEM_ENDPOINT_PAYMENTS_CANCEL] = "payments.cancel",
    [IDEM_ENDPOINT_REFUNDS_CREATE] = "refunds.create",
};

const char *idem_endpoint_name(enum idem_endpoint endpoint)
{
    IDEM_ASSERT(endpoint < IDEM_ENDPOINT_COUNT);
    return endpoint_names[endpoint];
}

enum idem_endpoint idem_endpoint_from(struct idem_str name)
{
    for (unsigned i = IDEM_ENDPOINT_NONE + 1; i < IDEM_ENDPOINT_COUNT; i++) {
        if (idem_str_equal(name, idem_str_from(endpoint_names[i]))) {
            return (enum idem_endpoint)i;
        }
    }
    return IDEM_ENDPOINT_NONE;
}

const char *idem_effect_kind_name(enum idem_effect_kind kind)
{
    static const char *const names[IDEM_EFFECT_KIND_COUNT] = {
        [IDEM_EFFECT_KIND_NONE] = "none",           [IDEM_EFFECT_KIND_CHARGE] = "charge",
        [IDEM_EFFECT_KIND_AUTHORIZE] = "authorize", [IDEM_EFFECT_KIND_CAPTURE] = "capture",
        [IDEM_EFFECT_KIND_CANCEL] = "cancel",       [IDEM_EFFECT_KIND_REFUND] = "refund",
    };
    IDEM_ASSERT(kind < IDEM_EFFECT_KIND_COUNT);
    return names[kind];
}

char idem_effect_kind_letter(enum idem_effect_kind kind)
{
    static const char letters[IDEM_EFFECT_KIND_COUNT] = {
        [IDEM_EFFECT_KIND_CHARGE] = 'c',  [IDEM_EFFECT_KIND_AUTHORIZE] = 'a',
        [IDEM_EFFECT_KIND_CAPTURE] = 'k', [IDEM_EFFECT_KIND_CANCEL] = 'v',
        [IDEM_EFFECT_KIND_REFUND] = 'r',
    };
    IDEM_ASSERT(kind > IDEM_EFFECT_KIND_NONE);
    IDEM_ASSERT(kind < IDEM_EFFECT_KIND_COUNT);
    return letters[kind];
}

bool idem_effect_kind_makes_payment(enum idem_effect_kind kind)
{
    return kind == IDEM_EFFECT_KIND_CHARGE || kind == IDEM_EFFECT_KIND_AUTHORIZE;
}

enum idem_effect_kind idem_effect_kind_from_letter(char letter)
{
    for (unsigned i = IDEM_EFFECT_KIND_NONE + 1; i < IDEM_EFFECT_KIND_COUNT; i++) {
        if (idem_effect_kind_letter((enum idem_effect_kind)i) == letter) {
            return (enum idem_effect_kind)i;
        }
    }
    return IDEM_EFFECT_KIND_NONE;
}

bool idem_effect_id_scope(struct idem_str effect_id, struct idem_scope *ret_scope)
{
    if (effect_id.len != IDEM_EFFECT_ID_LEN ||
        idem_effect_kind_from_letter(effect_id.data[0]) == IDEM_EFFECT_KIND_NONE) {
        return false;
    }
    struct idem_str tail = idem_str_slice(effect_id, 1, effect_id.len - 1);
    return idem_base32_read(tail, ret_scope->bytes, sizeof(ret_scope->bytes));
}

bool idem_intent_is_tombstone(const struct idem_intent *intent)
{
    return idem_intent_is_final(intent->state) && intent->answer.status == 0;
}

enum idem_problem idem_intent_end_problem(const struct idem_intent *intent)
{
    IDEM_ASSERT(idem_intent_is_over(intent->state));
    if (intent->state == IDEM_INTENT_RELEASED) {
        return IDEM_PROBLEM_NOT_EXECUTED;
    }
    if (!idem_intent_is_tombstone(intent)) {
        return IDEM_PROBLEM_NONE;
    }
    return intent->problem == IDEM_PROBLEM_ABANDONED ? IDEM_PROBLEM_ABANDONED
                                                     : IDEM_PROBLEM_ANSWER_EXPIRED;
}

const char *idem_step_name(enum idem_step step)
{
    static const char *const names[IDEM_STEP_COUNT] = {
        [IDEM_STEP_NONE] = "none",
        [IDEM_STEP_SEND] = "send",
        [IDEM_STEP_ASK] = "ask",
        [IDEM_STEP_CLOSE] = "close",
    };
    IDEM_ASSERT(step < IDEM_STEP_COUNT);
    return names[step];
}

/* Nothing of the request or the answer is left; the key is kept while its payment is (P12). */
static void tombstone_check(const struct idem_intent *intent)
{
    IDEM_ASSERT(intent->answer.headers.len == 0);
    IDEM_ASSERT(intent->answer.body.len == 0);
    IDEM_ASSERT(intent->effect.request.len == 0);
    IDEM_ASSERT(intent->trace.len == 0);
    IDEM_ASSERT((intent->reap_us == 0) == (intent->payment_row != 0));
}

static void final_check(const struct idem_intent *intent)
{
    IDEM_ASSERT(intent->due_us == 0); /* Nobody must look again ... */
    IDEM_ASSERT(intent->lease_end_us == 0);
    IDEM_ASSERT(intent->expires_us > intent->finished_us);
    if (idem_intent_is_tombstone(intent)) {
        tombstone_check(intent);
    } else { /* ... and everybody gets this answer (P4), until retention comes. */
        IDEM_ASSERT(intent->reap_us >= intent->expires_us);
    }
    bool succeeded = intent->state == IDEM_INTENT_SUCCEEDED;
    IDEM_ASSERT(succeeded == (intent->problem == IDEM_PROBLEM_NONE));
    IDEM_ASSERT(!succeeded || intent->effect.kind != IDEM_EFFECT_KIND_NONE);
}

static void open_check(const struct idem_intent *intent)
{
    IDEM_ASSERT(intent->due_us > 0); /* P8. */
    IDEM_ASSERT(intent->reap_us == 0);
    IDEM_ASSERT(intent->answer.status == 0);
    IDEM_ASSERT(intent->effect.kind != IDEM_EFFECT_KIND_NONE);
    bool dispatched = intent->state == IDEM_INTENT_DISPATCHED;
    IDEM_ASSERT(!dispatched || intent->send_count > 0); /* P1. */
    IDEM_ASSERT(!dispatched || intent->lease_end_us > 0);
}

void idem_intent_check(const struct idem_intent *intent)
{
    IDEM_ASSERT(intent->state > IDEM_INTENT_NONE);
    IDEM_ASSERT(intent->state < IDEM_INTENT_COUNT);
    IDEM_ASSERT(intent->version > 0);
    IDEM_ASSERT(intent->send_count <= IDEM_SENDS_MAX);
    IDEM_ASSERT(intent->updated_us >= intent->created_us);
    if (idem_intent_is_final(intent->state)) {
        final_check(intent);
    } else {
        open_check(intent);
    }
}
