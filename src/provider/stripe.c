/*
 * The adapter for Stripe: what its answers mean.
 *
 * A payment is created first and confirmed then, each under a key of its own. So a lost answer to
 * the creation is nothing that anybody has paid, and whatever happens after the confirmation can be
 * asked by Stripe's own number, which answers for what is, not for what once was said:
 *
 *     create --200--> confirm --200 succeeded, requires_capture--> SUCCESS
 *        |               |--400 402--> look --still payable--> cancel --canceled--> REFUSED_FINAL
 *        |               |--409 5xx, replayed, odd--> look --> what it is; UNKNOWN while open
 *        |               |                              '--failed, payable--> cancel, as above
 *        |               |--401 403 429--> NOT_EXECUTED
 *        |               '--no answer----> UNKNOWN
 *        |--400 402--> REFUSED_FINAL
 *        '--anything else, also nothing--> NOT_EXECUTED: no confirmation has left
 *
 *     look --our payment, our currency--> capture, cancel, refund: as a confirmation; after a
 *        |                                refusal they look, too, for an earlier copy may be what
 *        |                                it stumbled over
 *        |--another, or none--> REFUSED_FINAL: nothing was sent
 *        '--anything else, also nothing--> NOT_EXECUTED
 *
 * Three things that Stripe says about itself rest under this (docs/stripe.md has the sources): an
 * answer is stored with its key and replayed, a 500 as well, so a replayed answer is old news and
 * a 500 is no answer; an intent in requires_payment_method can still be paid, so it is canceled
 * before anybody is told that it failed; `Stripe-Should-Retry: true` on a refusal means that it is
 * none.
 *
 * Every answer must name our metadata id and the object that was asked about. Amount and currency
 * of a success are passed on as Stripe says them: the core compares.
 */
#include "provider/stripe.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/json.h"
#include "provider/stripe_internal.h"

#define TOKENS_MAX 2048 /* Of an answer; a longer one is unreadable. */

static const struct idem_str no_text = { .data = NULL, .len = 0 };

/* What an answer to a POST says, before anybody looks at what is in it. */
enum verdict {
    VERDICT_DONE,
    VERDICT_NOT_EXECUTED, /* Refused before execution, and not remembered. */
    VERDICT_REFUSED,      /* The content, or the card. */
    VERDICT_CLASH,        /* Our key, and another content: nobody knows what that was. */
    VERDICT_UNSURE
};

#define ANY_TYPE NULL
#define ANY_CODE NULL

static const struct {
    const char *type; /* Of the error. */
    const char *code;
    uint16_t status;
    enum verdict verdict;
} verdicts[] = {
    { "idempotency_error", ANY_CODE, 400, VERDICT_CLASH },
    { "invalid_request_error", ANY_CODE, 400, VERDICT_REFUSED },
    { "card_error", ANY_CODE, 400, VERDICT_REFUSED },
    { "card_error", ANY_CODE, 402, VERDICT_REFUSED },
    { "invalid_request_error", ANY_CODE, 402, VERDICT_REFUSED },
    { ANY_TYPE, ANY_CODE, 401, VERDICT_NOT_EXECUTED },
    { ANY_TYPE, ANY_CODE, 403, VERDICT_NOT_EXECUTED },
    { "rate_limit_error", ANY_CODE, 429, VERDICT_NOT_EXECUTED },
    { "invalid_request_error", ANY_CODE, 429, VERDICT_NOT_EXECUTED },
    { ANY_TYPE, "rate_limit", 429, VERDICT_NOT_EXECUTED },
    { ANY_TYPE, "lock_timeout", 429, VERDICT_NOT_EXECUTED },
};

/* What a payment intent in this state says about each kind of effect, to whoever asks now. */
static const enum idem_outcome_kind meanings[IDEM_STRIPE_STATUS_COUNT][IDEM_EFFECT_KIND_COUNT] = {
    [IDEM_STRIPE_SUCCEEDED] = {
        [IDEM_EFFECT_KIND_CHARGE] = IDEM_OUTCOME_SUCCESS,
        [IDEM_EFFECT_KIND_AUTHORIZE] = IDEM_OUTCOME_SUCCESS,
        [IDEM_EFFECT_KIND_CAPTURE] = IDEM_OUTCOME_SUCCESS,
        [IDEM_EFFECT_KIND_CANCEL] = IDEM_OUTCOME_REFUSED_FINAL,
    },
    [IDEM_STRIPE_REQUIRES_CAPTURE] = {
        [IDEM_EFFECT_KIND_AUTHORIZE] = IDEM_OUTCOME_SUCCESS,
        [IDEM_EFFECT_KIND_CAPTURE] = IDEM_OUTCOME_NOT_FOUND,
        [IDEM_EFFECT_KIND_CANCEL] = IDEM_OUTCOME_NOT_FOUND,
    },
    [IDEM_STRIPE_PROCESSING] = {
        [IDEM_EFFECT_KIND_CHARGE] = IDEM_OUTCOME_PROCESSING,
        [IDEM_EFFECT_KIND_AUTHORIZE] = IDEM_OUTCOME_PROCESSING,
        [IDEM_EFFECT_KIND_CAPTURE] = IDEM_OUTCOME_PROCESSING,
        [IDEM_EFFECT_KIND_CANCEL] = IDEM_OUTCOME_PROCESSING,
    },
    [IDEM_STRIPE_REQUIRES_ACTION] = {
        [IDEM_EFFECT_KIND_CHARGE] = IDEM_OUTCOME_PROCESSING,
        [IDEM_EFFECT_KIND_AUTHORIZE] = IDEM_OUTCOME_PROCESSING,
        [IDEM_EFFECT_KIND_CANCEL] = IDEM_OUTCOME_NOT_FOUND,
    },
    [IDEM_STRIPE_REQUIRES_CONFIRMATION] = {
        [IDEM_EFFECT_KIND_CHARGE] = IDEM_OUTCOME_NOT_FOUND,
        [IDEM_EFFECT_KIND_AUTHORIZE] = IDEM_OUTCOME_NOT_FOUND,
        [IDEM_EFFECT_KIND_CANCEL] = IDEM_OUTCOME_NOT_FOUND,
    },
    [IDEM_STRIPE_REQUIRES_METHOD] = {
        [IDEM_EFFECT_KIND_CANCEL] = IDEM_OUTCOME_NOT_FOUND,
    },
    [IDEM_STRIPE_CANCELED] = {
        [IDEM_EFFECT_KIND_CHARGE] = IDEM_OUTCOME_CLOSED_UNPAID,
        [IDEM_EFFECT_KIND_AUTHORIZE] = IDEM_OUTCOME_CLOSED_UNPAID,
        [IDEM_EFFECT_KIND_CAPTURE] = IDEM_OUTCOME_REFUSED_FINAL,
        [IDEM_EFFECT_KIND_CANCEL] = IDEM_OUTCOME_SUCCESS,
    },
};

static const enum idem_outcome_kind refund_meanings[IDEM_STRIPE_STATUS_COUNT] = {
    [IDEM_STRIPE_SUCCEEDED] = IDEM_OUTCOME_SUCCESS,
    [IDEM_STRIPE_PROCESSING] = IDEM_OUTCOME_PROCESSING,
    [IDEM_STRIPE_REQUIRES_ACTION] = IDEM_OUTCOME_PROCESSING,
    [IDEM_STRIPE_FAILED] = IDEM_OUTCOME_REFUSED_FINAL,
    [IDEM_STRIPE_CANCELED] = IDEM_OUTCOME_REFUSED_FINAL,
};

/* One answer being read. */
struct reading {
    struct idem_wire_course *course;
    const struct idem_wire_answer *answer;
    struct idem_buf *buf;
    struct idem_json json;
    struct idem_stripe_order order;
    struct idem_stripe_object object;
    enum idem_outcome_kind found; /* What the object says; NONE: there is none. */
};

static bool makes_payment(const struct reading *reading)
{
    return idem_effect_kind_makes_payment(reading->course->effect->kind);
}

/* The head's field `name: value`, the name without case. */
static bool head_says(struct idem_str head, struct idem_str name, struct idem_str value)
{
    while (head.len > 0) {
        struct idem_str field = idem_str_next(&head, '\n');
        struct idem_str left = idem_str_next(&field, ':');
        if (idem_str_equal_nocase(idem_str_trim(left), name)) {
            return idem_str_equal_nocase(idem_str_trim(field), value);
        }
    }
    return false;
}

static bool is_replayed(const struct reading *reading)
{
    return head_says(reading->answer->head, IDEM_STR("Idempotent-Replayed"), IDEM_STR("true"));
}

/* Objects. */

/* Whether the intent is the one that this effect is about, as far as it says itself. */
static bool intent_is_ours(const struct reading *reading)
{
    const struct idem_stripe_object *object = &reading->object;
    const struct idem_effect *effect = reading->course->effect;
    bool told = reading->course->so_far.reference.len > 0;
    struct idem_str known = told ? reading->course->so_far.reference : effect->reference;

    if (object->is_refund) {
        return false;
    }
    if (makes_payment(reading)) {
        bool by_hand = effect->kind == IDEM_EFFECT_KIND_AUTHORIZE;
        return object->our_id.len > 0 && object->captures_by_hand == by_hand &&
               (known.len == 0 || idem_str_equal(object->id, known));
    }
    return idem_str_equal(object->id, reading->order.intent) &&
           idem_str_equal(object->our_id, reading->order.payment_id);
}

static bool refund_is_ours(const struct reading *reading)
{
    const struct idem_stripe_object *object = &reading->object;
    bool told = reading->course->so_far.reference.len > 0;
    struct idem_str known =
        told ? reading->course->so_far.reference : reading->course->effect->reference;

    return object->is_refund && object->our_id.len > 0 &&
           idem_str_equal(object->intent, reading->order.intent) &&
           (known.len == 0 || idem_str_equal(object->id, known));
}

static bool object_is_ours(const struct reading *reading)
{
    bool refund = reading->course->effect->kind == IDEM_EFFECT_KIND_REFUND;
    return refund ? refund_is_ours(reading) : intent_is_ours(reading);
}

static int64_t intent_amount(const struct reading *reading)
{
    const struct idem_stripe_object *object = &reading->object;
    enum idem_effect_kind kind = reading->course->effect->kind;

    if (kind == IDEM_EFFECT_KIND_CHARGE || kind == IDEM_EFFECT_KIND_CAPTURE) {
        return object->received_minor;
    }
    if (kind == IDEM_EFFECT_KIND_AUTHORIZE && object->status == IDEM_STRIPE_REQUIRES_CAPTURE) {
        return object->capturable_minor;
    }
    return object->amount_minor;
}

/* Under which of our ids it was done: a capture of another's is told as that payment's own. */
static struct idem_str named_id(const struct reading *reading)
{
    const struct idem_stripe_object *object = &reading->object;

    switch (reading->course->effect->kind) {
    case IDEM_EFFECT_KIND_CHARGE:
    case IDEM_EFFECT_KIND_AUTHORIZE:
    case IDEM_EFFECT_KIND_REFUND:
        return object->our_id;
    case IDEM_EFFECT_KIND_CAPTURE:
        return object->our_capture.len > 0 ? object->our_capture : object->our_id;
    case IDEM_EFFECT_KIND_CANCEL:
        return reading->course->effect->id;
    case IDEM_EFFECT_KIND_NONE:
    case IDEM_EFFECT_KIND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static enum idem_outcome_kind object_meaning(const struct reading *reading)
{
    const struct idem_stripe_object *object = &reading->object;
    enum idem_effect_kind kind = reading->course->effect->kind;
    bool refund = kind == IDEM_EFFECT_KIND_REFUND;
    enum idem_outcome_kind outcome =
        refund ? refund_meanings[object->status] : meanings[object->status][kind];

    if (!object_is_ours(reading) || outcome == IDEM_OUTCOME_NONE) {
        return IDEM_OUTCOME_UNKNOWN;
    }
    if (object->status == IDEM_STRIPE_CANCELED && object->received_minor > 0) {
        return IDEM_OUTCOME_UNKNOWN; /* Canceled, and yet it was paid. */
    }
    bool ours = idem_str_equal(named_id(reading), reading->course->effect->id);
    return ours || outcome == IDEM_OUTCOME_SUCCESS || kind == IDEM_EFFECT_KIND_CAPTURE
               ? outcome
               : IDEM_OUTCOME_UNKNOWN;
}

/* Reads the object at `index` and what it says. */
static void object_take(struct reading *reading, size_t index)
{
    reading->found = IDEM_OUTCOME_UNKNOWN;
    if (!idem_stripe_object_read(&reading->json, index, reading->buf, &reading->object)) {
        return;
    }
    reading->found = object_meaning(reading);
    if (object_is_ours(reading)) {
        reading->course->so_far.reference = reading->object.id;
    }
}

/* Of a list of at most a page, the one object that is ours. */
static void list_take(struct reading *reading)
{
    size_t count = 0;
    bool more = false;
    size_t index = idem_stripe_list_read(&reading->json, &count, &more);
    size_t ours = 0;

    reading->found = IDEM_OUTCOME_UNKNOWN;
    if (index == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct idem_stripe_object object = { .is_refund = false };
        if (!idem_stripe_object_read(&reading->json, index, reading->buf, &object)) {
            return;
        }
        if (idem_str_equal(object.our_id, reading->course->effect->id)) {
            object_take(reading, index);
            ours += 1;
        }
        index = reading->json.tokens[index].next;
    }
    if (ours > 1) { /* Then one of them is not known to us, and nobody knows which. */
        reading->found = IDEM_OUTCOME_UNKNOWN;
        reading->course->so_far.reference = no_text;
    }
    if (ours == 0 && !more && !makes_payment(reading)) { /* A search may be behind. */
        reading->found = IDEM_OUTCOME_NOT_FOUND;
    }
}

/* Endings: each says what holds, and that nothing follows. */

static bool end_as(struct reading *reading, enum idem_outcome_kind outcome)
{
    struct idem_evidence *so_far = &reading->course->so_far;

    so_far->outcome = outcome;
    if (outcome != IDEM_OUTCOME_UNKNOWN && outcome != IDEM_OUTCOME_NOT_EXECUTED) {
        so_far->effect_id = reading->course->effect->id;
    }
    return false;
}

static bool end_with_success(struct reading *reading)
{
    struct idem_evidence *so_far = &reading->course->so_far;

    so_far->outcome = IDEM_OUTCOME_SUCCESS;
    so_far->effect_id = named_id(reading);
    so_far->currency = reading->object.currency;
    so_far->amount_minor = reading->course->effect->kind == IDEM_EFFECT_KIND_REFUND
                               ? reading->object.amount_minor
                               : intent_amount(reading);
    so_far->code = no_text;
    so_far->message = no_text;
    return false;
}

static bool go_on(struct reading *reading, enum idem_stripe_step step)
{
    reading->course->step = step;
    return true;
}

/* What the object says, as the answer to a send: there a question's words would be wrong. */
static bool end_of_send(struct reading *reading)
{
    switch (reading->found) {
    case IDEM_OUTCOME_SUCCESS:
        return end_with_success(reading);
    case IDEM_OUTCOME_CLOSED_UNPAID:
    case IDEM_OUTCOME_REFUSED_FINAL:
        return end_as(reading, IDEM_OUTCOME_REFUSED_FINAL);
    case IDEM_OUTCOME_PROCESSING:
        return end_as(reading, IDEM_OUTCOME_PROCESSING);
    case IDEM_OUTCOME_NONE:
    case IDEM_OUTCOME_UNKNOWN:
    case IDEM_OUTCOME_NOT_EXECUTED:
    case IDEM_OUTCOME_NOT_FOUND:
    case IDEM_OUTCOME_REVERSED: /* Only an event says so. */
        return end_as(reading, IDEM_OUTCOME_UNKNOWN);
    case IDEM_OUTCOME_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* Answers to a POST. */

static bool word_fits(const char *wanted, struct idem_str word)
{
    return wanted == NULL || idem_str_equal(idem_str_from(wanted), word);
}

/* The table's word, unless its answer says otherwise in the head. */
static enum verdict verdict_weigh(const struct reading *reading, enum verdict verdict)
{
    bool again =
        head_says(reading->answer->head, IDEM_STR("Stripe-Should-Retry"), IDEM_STR("true"));
    bool remembered = verdict == VERDICT_NOT_EXECUTED && is_replayed(reading);
    return (verdict == VERDICT_REFUSED && again) || remembered ? VERDICT_UNSURE : verdict;
}

static enum verdict verdict_find(struct reading *reading)
{
    struct idem_stripe_error error = { .type = no_text };

    if (reading->answer->status == 200) {
        return VERDICT_DONE;
    }
    if (!idem_stripe_error_read(&reading->json, reading->buf, &error)) {
        return VERDICT_UNSURE; /* Somebody on the way may have said it. */
    }
    reading->course->so_far.code = error.code;
    reading->course->so_far.message = error.message;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(verdicts); i++) {
        if (verdicts[i].status == reading->answer->status &&
            word_fits(verdicts[i].type, error.type) && word_fits(verdicts[i].code, error.code)) {
            return verdict_weigh(reading, verdicts[i].verdict);
        }
    }
    return VERDICT_UNSURE;
}

/* True: what was made is what was asked for, so that it may be paid. */
static bool creation_fits(const struct reading *reading)
{
    const struct idem_stripe_object *object = &reading->object;
    const struct idem_effect *effect = reading->course->effect;

    return intent_is_ours(reading) && idem_str_equal(object->our_id, effect->id) &&
           object->amount_minor == effect->amount_minor &&
           idem_str_equal(object->currency, effect->currency);
}

static bool created(struct reading *reading, enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_DONE:
        object_take(reading, 0);
        if (reading->object.id.len == 0) { /* Unreadable, and nothing was confirmed. */
            return end_as(reading, IDEM_OUTCOME_NOT_EXECUTED);
        }
        if (!creation_fits(reading)) {
            reading->course->so_far.reference = no_text;
            reading->course->so_far.code = IDEM_STR("other_than_asked_for");
            return end_as(reading, IDEM_OUTCOME_UNKNOWN);
        }
        (void)end_as(reading, IDEM_OUTCOME_NOT_EXECUTED); /* If the confirmation never leaves. */
        return go_on(reading, IDEM_STRIPE_CONFIRM);
    case VERDICT_REFUSED:
        return end_as(reading, IDEM_OUTCOME_REFUSED_FINAL);
    case VERDICT_CLASH:
        return end_as(reading, IDEM_OUTCOME_UNKNOWN);
    case VERDICT_NOT_EXECUTED:
    case VERDICT_UNSURE:
        return end_as(reading, IDEM_OUTCOME_NOT_EXECUTED);
    }
    IDEM_UNREACHABLE();
}

/*
 * The look at what a capture, cancel or refund is to act on. Its number may be what a person typed,
 * so it is the payment's own, or nothing is sent.
 */
static bool begun(struct reading *reading)
{
    struct idem_stripe_error error = { .type = no_text };
    bool refused = idem_stripe_error_read(&reading->json, reading->buf, &error);
    bool missing = refused && reading->answer->status == 404;
    bool read = reading->answer->status == 200 &&
                idem_stripe_object_read(&reading->json, 0, reading->buf, &reading->object);

    if (!missing && !read) {
        reading->course->so_far.code = error.code;
        reading->course->so_far.message = error.message;
        return end_as(reading, IDEM_OUTCOME_NOT_EXECUTED);
    }
    if (read && intent_is_ours(reading) &&
        idem_str_equal(reading->object.currency, reading->course->effect->currency)) {
        (void)end_as(reading, IDEM_OUTCOME_NOT_EXECUTED); /* If it never leaves. */
        return go_on(reading, IDEM_STRIPE_ACT);
    }
    reading->course->so_far.code = IDEM_STR("payment_reference_of_another");
    reading->course->so_far.message =
        IDEM_STR("Stripe was only asked: that number is not this payment's.");
    return end_as(reading, IDEM_OUTCOME_REFUSED_FINAL);
}

/* Replayed: it was done once, and it can have been undone since. */
static bool is_past(const struct reading *reading)
{
    enum idem_effect_kind kind = reading->course->effect->kind;
    return is_replayed(reading) && reading->found == IDEM_OUTCOME_SUCCESS &&
           (kind == IDEM_EFFECT_KIND_AUTHORIZE || kind == IDEM_EFFECT_KIND_REFUND);
}

/* A confirmation, a capture, a cancel, a refund. */
static bool acted(struct reading *reading, enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_DONE:
        object_take(reading, 0);
        if (is_past(reading)) {
            (void)end_as(reading, IDEM_OUTCOME_UNKNOWN);
            return go_on(reading, IDEM_STRIPE_LOOK);
        }
        (void)end_of_send(reading);
        if (reading->found == IDEM_OUTCOME_SUCCESS ||
            (reading->found == IDEM_OUTCOME_PROCESSING && !is_replayed(reading))) {
            return false;
        }
        /* Old news, or failed after all. */
        return go_on(reading, reading->object.status == IDEM_STRIPE_REQUIRES_METHOD
                                  ? IDEM_STRIPE_LOOK_REFUSED
                                  : IDEM_STRIPE_LOOK);
    case VERDICT_NOT_EXECUTED:
        return end_as(reading, IDEM_OUTCOME_NOT_EXECUTED);
    case VERDICT_REFUSED:
        (void)end_as(reading, IDEM_OUTCOME_UNKNOWN);
        return go_on(reading, IDEM_STRIPE_LOOK_REFUSED);
    case VERDICT_CLASH:
    case VERDICT_UNSURE:
        (void)end_as(reading, IDEM_OUTCOME_UNKNOWN);
        return go_on(reading, IDEM_STRIPE_LOOK);
    }
    IDEM_UNREACHABLE();
}

/* The cancel of what was refused. Only a confirmed one makes the refusal final. */
static bool canceled(struct reading *reading)
{
    if (reading->answer->status == 200) {
        object_take(reading, 0);
        if (reading->found == IDEM_OUTCOME_CLOSED_UNPAID) {
            return end_of_send(reading);
        }
    }
    (void)end_as(reading, IDEM_OUTCOME_UNKNOWN);
    return go_on(reading, IDEM_STRIPE_LOOK_LAST);
}

/* Looks. */

static bool look_take(struct reading *reading)
{
    if (reading->answer->status != 200) {
        return false;
    }
    if (reading->json.tokens[0].kind == IDEM_JSON_OBJECT &&
        idem_json_member(&reading->json, 0, IDEM_STR("data")) != 0) {
        list_take(reading);
    } else {
        object_take(reading, 0);
    }
    return true;
}

/* Our own payment, and it stands so. */
static bool payment_stands(const struct reading *reading, enum idem_stripe_status status)
{
    return makes_payment(reading) && reading->object.status == status && intent_is_ours(reading) &&
           idem_str_equal(reading->object.our_id, reading->course->effect->id);
}

/* Nobody knows what Stripe did, and this is how things stand. A payment that failed is closed. */
static bool looked(struct reading *reading)
{
    if (!look_take(reading)) {
        return false;
    }
    if (payment_stands(reading, IDEM_STRIPE_REQUIRES_METHOD)) {
        (void)end_as(reading, IDEM_OUTCOME_UNKNOWN);
        return go_on(reading, IDEM_STRIPE_CANCEL);
    }
    return end_of_send(reading);
}

/* Stripe said no, and this is how things stand: is it over? */
static bool looked_after_refusal(struct reading *reading)
{
    if (!look_take(reading)) {
        return false;
    }
    if (payment_stands(reading, IDEM_STRIPE_REQUIRES_METHOD) ||
        payment_stands(reading, IDEM_STRIPE_REQUIRES_CONFIRMATION)) {
        return go_on(reading, IDEM_STRIPE_CANCEL);
    }
    enum idem_effect_kind kind = reading->course->effect->kind;
    if (reading->found == IDEM_OUTCOME_NOT_FOUND &&
        (kind == IDEM_EFFECT_KIND_CAPTURE || kind == IDEM_EFFECT_KIND_REFUND)) {
        return end_as(reading, IDEM_OUTCOME_REFUSED_FINAL);
    }
    return end_of_send(reading);
}

/* A question: what it is now is the answer. */
static bool asked(struct reading *reading)
{
    bool unnumbered = makes_payment(reading) && reading->course->effect->reference.len == 0;
    bool searched = unnumbered && reading->course->step == IDEM_STRIPE_BEGIN;

    if (!look_take(reading)) {
        return end_as(reading, IDEM_OUTCOME_UNKNOWN);
    }
    if (searched) { /* It names the object, and nothing more: it may be behind. */
        (void)end_as(reading, IDEM_OUTCOME_UNKNOWN);
        return reading->course->so_far.reference.len > 0 && go_on(reading, IDEM_STRIPE_LOOK);
    }
    if (reading->found == IDEM_OUTCOME_SUCCESS) {
        return end_with_success(reading);
    }
    /* A search names one of ours. Another may exist, and be what this one is not. */
    bool counts = !unnumbered || reading->found == IDEM_OUTCOME_PROCESSING;
    return end_as(reading, counts ? reading->found : IDEM_OUTCOME_UNKNOWN);
}

static bool closed(struct reading *reading)
{
    bool usable = look_take(reading) && reading->found != IDEM_OUTCOME_NOT_FOUND;
    if (usable && reading->found == IDEM_OUTCOME_SUCCESS) {
        return end_with_success(reading);
    }
    return end_as(reading, usable ? reading->found : IDEM_OUTCOME_UNKNOWN);
}

static bool sent(struct reading *reading)
{
    switch ((enum idem_stripe_step)reading->course->step) {
    case IDEM_STRIPE_BEGIN:
        return makes_payment(reading) ? created(reading, verdict_find(reading)) : begun(reading);
    case IDEM_STRIPE_ACT:
    case IDEM_STRIPE_CONFIRM:
        return acted(reading, verdict_find(reading));
    case IDEM_STRIPE_CANCEL:
        return canceled(reading);
    case IDEM_STRIPE_LOOK:
        return looked(reading);
    case IDEM_STRIPE_LOOK_LAST:
        return look_take(reading) && end_of_send(reading);
    case IDEM_STRIPE_LOOK_REFUSED:
        return looked_after_refusal(reading);
    }
    IDEM_UNREACHABLE();
}

/* Not even readable: a question learns nothing; of what was sent, the status still speaks. */
static void tape_clear(struct idem_json *json, struct idem_json_token *tokens)
{
    struct idem_json_fault fault; /* There is none. */
    idem_json_init(json, tokens, TOKENS_MAX);
    bool parsed = idem_json_parse(json, IDEM_STR("null"), &fault);
    IDEM_ASSERT(parsed);
}

static bool stripe_decode(struct idem_wire_course *course,
                          const struct idem_wire_answer *answer,
                          struct idem_buf *buf)
{
    struct idem_json_token tokens[TOKENS_MAX];
    struct idem_json_fault fault; /* What is wrong does not matter. */
    struct reading reading = { .course = course, .answer = answer, .buf = buf };

    idem_json_init(&reading.json, tokens, TOKENS_MAX);
    course->so_far.retry_after_us = answer->retry_after_us;
    if (!idem_json_parse(&reading.json, answer->body, &fault)) {
        tape_clear(&reading.json, tokens);
    }
    bool readable = idem_stripe_order_read(course->effect->request, &reading.order);
    IDEM_ASSERT(readable); /* Or nothing would have been asked. */
    switch (course->kind) {
    case IDEM_CALL_SEND:
        return sent(&reading);
    case IDEM_CALL_QUERY:
        return asked(&reading);
    case IDEM_CALL_CLOSE:
        return closed(&reading);
    case IDEM_CALL_NONE:
    case IDEM_CALL_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static const struct idem_wire_steps stripe_steps = {
    .request = idem_stripe_request,
    .decode = stripe_decode,
};

/* Keys may be forgotten after 24 hours; this stops an hour earlier. */
#define DEDUPLICATES                                                                  \
    .dedup_window_us = IDEM_US_PER_DAY, .dedup_margin_us = 3600 * IDEM_US_PER_SECOND, \
    .query = IDEM_QUERY_AT_ONCE

static const struct idem_adapter_promises stripe_promises = {
    .capability = {
        [IDEM_EFFECT_KIND_CHARGE] = { DEDUPLICATES, .close_is_final = true },
        [IDEM_EFFECT_KIND_AUTHORIZE] = { DEDUPLICATES, .close_is_final = true },
        [IDEM_EFFECT_KIND_CAPTURE] = { DEDUPLICATES },
        [IDEM_EFFECT_KIND_CANCEL] = { DEDUPLICATES },
        [IDEM_EFFECT_KIND_REFUND] = { DEDUPLICATES },
    },
    .partial_capture = IDEM_PARTIAL_ONCE,
    .listing = false, /* Cancels have no place for our id: see docs/stripe.md. */
};

const struct idem_adapter idem_stripe_adapter = {
    .name = "stripe",
    .base_url = "https://api.stripe.com",
    .promises = &stripe_promises,
    .steps = &stripe_steps,
    .encode = idem_stripe_encode,
    .list_request = idem_stripe_list_request,
    .list_decode = idem_stripe_list_decode,
    .callbacks = &idem_stripe_callbacks,
};
