/*
 * Stripe's events: what arrives at a webhook endpoint, and what it says about effects of ours.
 *
 * An event carries the object as it was then. Which effect it is about stands in our metadata; only
 * a cancel, which has no room for metadata, is found by the idempotency key of the request that
 * caused the event.
 *
 *     type                     object is            about      means
 *     payment_intent.
 *       succeeded              succeeded            charge     SUCCESS: amount_received
 *                              ... by hand          capture    SUCCESS: amount_received
 *                              ... not by ours      authorize  SUCCESS: amount
 *       amount_capturable_     requires_capture     authorize  SUCCESS: amount_capturable
 *         updated
 *       processing             processing           either     PROCESSING
 *       payment_failed         any                  either     UNKNOWN: it can still be paid
 *       canceled               canceled, by ours    cancel     SUCCESS: amount
 *                              never authorized     either     CLOSED_UNPAID
 *                              automatic, expired   authorize  REVERSED: amount
 *     refund.created,
 *     refund.updated,
 *     refund.failed,
 *     charge.refund.updated    succeeded            refund     SUCCESS: amount
 *                              pending,             refund     PROCESSING
 *                                requires_action
 *                              canceled             refund     REFUSED_FINAL
 *                              failed, was pending  refund     REFUSED_FINAL
 *                              failed, otherwise    refund     REVERSED: amount
 *     any other, charge.       -                    -          ignored
 *       refunded as well
 *
 * What is not in the table, of a type that is, is UNKNOWN. An intent that was authorized and that
 * somebody else canceled is UNKNOWN too: a person did that, and our own cancel may be on its way.
 * "Authorized once" is a charge without an error of the last attempt: a canceled intent does not
 * say any more what could have been captured.
 *
 * A refund that failed gives no hint whether it had succeeded before, except as the previous value
 * in an event that it was updated. Most succeed at once and fail days later, so without the hint
 * that is assumed; in both cases nothing has been given back in the end.
 *
 * An event of another mode or of a connected account is ignored: it is about other money.
 */
#include "provider/stripe_internal.h"

#include "base/attr.h"
#include "base/bug.h"
#include "base/clock.h"
#include "base/json.h"
#include "provider/signature.h"
#include "provider/wire.h"

#define TOKENS_MAX 4096 /* Of an event; a longer one is unreadable. */

/* One event being read. */
struct reading {
    const struct idem_callback_place *place;
    struct idem_buf *buf;
    struct idem_json json;
    struct idem_str type;
    size_t object_at; /* Indexes of members; 0: absent. */
    size_t previous_at;
    struct idem_str request_key; /* Of the request that caused it; empty: none. */
    struct idem_stripe_object object;
    struct idem_evidence evidence;
};

static size_t member(const struct reading *reading, size_t object, const char *name)
{
    if (object >= reading->json.count || reading->json.tokens[object].kind != IDEM_JSON_OBJECT) {
        return 0;
    }
    return idem_json_member(&reading->json, object, idem_str_from(name));
}

static bool text_read(struct reading *reading,
                      size_t object,
                      const char *name,
                      struct idem_str *ret_text)
{
    return idem_wire_text_read(&reading->json, member(reading, object, name), reading->buf,
                               ret_text);
}

static enum idem_effect_kind kind_of(struct idem_str effect_id)
{
    struct idem_scope scope;
    return idem_effect_id_scope(effect_id, &scope) ? idem_effect_kind_from_letter(effect_id.data[0])
                                                   : IDEM_EFFECT_KIND_NONE;
}

/* What each type says. The object is there, is ours, and the evidence is UNKNOWN about our id. */

static void says(struct reading *reading, enum idem_outcome_kind outcome)
{
    reading->evidence.outcome = outcome;
}

static void says_amount(struct reading *reading,
                        enum idem_outcome_kind outcome,
                        int64_t amount_minor)
{
    reading->evidence.outcome = outcome;
    reading->evidence.amount_minor = amount_minor;
    reading->evidence.currency = reading->object.currency;
}

/* The same about another effect, which acted on this payment. */
static void says_of(struct reading *reading, struct idem_str effect_id, int64_t amount_minor)
{
    reading->evidence.payment_effect_id = reading->object.our_id;
    reading->evidence.effect_id = effect_id;
    says_amount(reading, IDEM_OUTCOME_SUCCESS, amount_minor);
}

static void succeeded_read(struct reading *reading)
{
    const struct idem_stripe_object *object = &reading->object;

    if (object->status != IDEM_STRIPE_SUCCEEDED) {
        return;
    }
    if (!object->captures_by_hand) {
        says_amount(reading, IDEM_OUTCOME_SUCCESS, object->received_minor);
        return;
    }
    if (kind_of(object->our_capture) == IDEM_EFFECT_KIND_CAPTURE) {
        says_of(reading, object->our_capture, object->received_minor);
        return;
    }
    says_amount(reading, IDEM_OUTCOME_SUCCESS, object->amount_minor);
}

static void capturable_read(struct reading *reading)
{
    const struct idem_stripe_object *object = &reading->object;
    if (object->status == IDEM_STRIPE_REQUIRES_CAPTURE && object->captures_by_hand) {
        says_amount(reading, IDEM_OUTCOME_SUCCESS, object->capturable_minor);
    }
}

static void processing_read(struct reading *reading)
{
    if (reading->object.status == IDEM_STRIPE_PROCESSING) {
        says(reading, IDEM_OUTCOME_PROCESSING);
    }
}

/* Why an attempt failed is for people, so what is odd about it does not matter. */
static void failed_read(struct reading *reading)
{
    size_t error = member(reading, reading->object_at, "last_payment_error");
    struct idem_evidence *evidence = &reading->evidence;

    if (!text_read(reading, error, "decline_code", &evidence->code) || evidence->code.len == 0) {
        (void)text_read(reading, error, "code", &evidence->code);
    }
    (void)text_read(reading, error, "message", &evidence->message);
}

static bool was_authorized(const struct reading *reading)
{
    const struct idem_json_token *tokens = reading->json.tokens;
    size_t charge = member(reading, reading->object_at, "latest_charge");
    size_t error = member(reading, reading->object_at, "last_payment_error");
    bool charged = charge != 0 && tokens[charge].kind != IDEM_JSON_NULL;
    bool failed = error != 0 && tokens[error].kind != IDEM_JSON_NULL;
    return reading->object.captures_by_hand && charged && !failed;
}

static void canceled_read(struct reading *reading)
{
    const struct idem_stripe_object *object = &reading->object;
    struct idem_str reason = { .len = 0 };

    if (object->status != IDEM_STRIPE_CANCELED || object->received_minor > 0 ||
        !text_read(reading, reading->object_at, "cancellation_reason", &reason)) {
        return;
    }
    if (kind_of(reading->request_key) == IDEM_EFFECT_KIND_CANCEL) {
        says_of(reading, reading->request_key, object->amount_minor);
        return;
    }
    if (!was_authorized(reading)) {
        says(reading, IDEM_OUTCOME_CLOSED_UNPAID);
        return;
    }
    if (idem_str_equal(reason, IDEM_STR("automatic")) ||
        idem_str_equal(reason, IDEM_STR("expired"))) {
        reading->evidence.code = reason;
        says_amount(reading, IDEM_OUTCOME_REVERSED, object->amount_minor);
    }
}

/* True: the event says that the refund had not yet succeeded before it. */
static bool was_pending(struct reading *reading)
{
    struct idem_str status = { .len = 0 };
    return text_read(reading, reading->previous_at, "status", &status) &&
           (idem_str_equal(status, IDEM_STR("pending")) ||
            idem_str_equal(status, IDEM_STR("requires_action")));
}

static void refund_read(struct reading *reading)
{
    const struct idem_stripe_object *object = &reading->object;

    switch (object->status) {
    case IDEM_STRIPE_SUCCEEDED:
        says_amount(reading, IDEM_OUTCOME_SUCCESS, object->amount_minor);
        return;
    case IDEM_STRIPE_PROCESSING:
    case IDEM_STRIPE_REQUIRES_ACTION:
        says(reading, IDEM_OUTCOME_PROCESSING);
        return;
    case IDEM_STRIPE_CANCELED:
        says(reading, IDEM_OUTCOME_REFUSED_FINAL);
        return;
    case IDEM_STRIPE_FAILED:
        (void)text_read(reading, reading->object_at, "failure_reason", &reading->evidence.code);
        if (was_pending(reading)) {
            says(reading, IDEM_OUTCOME_REFUSED_FINAL);
            return;
        }
        says_amount(reading, IDEM_OUTCOME_REVERSED, object->amount_minor);
        return;
    case IDEM_STRIPE_STATUS_NONE:
    case IDEM_STRIPE_REQUIRES_CAPTURE:
    case IDEM_STRIPE_REQUIRES_CONFIRMATION:
    case IDEM_STRIPE_REQUIRES_METHOD:
        return;
    case IDEM_STRIPE_STATUS_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static const struct event_type {
    const char *name;
    bool of_refund;
    void (*read)(struct reading *reading);
} types[] = {
    { "payment_intent.succeeded", false, succeeded_read },
    { "payment_intent.amount_capturable_updated", false, capturable_read },
    { "payment_intent.processing", false, processing_read },
    { "payment_intent.payment_failed", false, failed_read },
    { "payment_intent.canceled", false, canceled_read },
    { "refund.created", true, refund_read },
    { "refund.updated", true, refund_read },
    { "refund.failed", true, refund_read },
    { "charge.refund.updated", true, refund_read },
};

static const struct event_type *type_find(struct idem_str name)
{
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(types); i++) {
        if (idem_str_equal(idem_str_from(types[i].name), name)) {
            return &types[i];
        }
    }
    return NULL;
}

/* The envelope. */

/* False: it is not an event. Another object than an event has no type that we know. */
static bool envelope_read(struct reading *reading)
{
    struct idem_str object = { .len = 0 };
    int64_t created_s = 0;
    size_t created = member(reading, 0, "created");
    size_t data = member(reading, 0, "data");

    if (!text_read(reading, 0, "id", &reading->evidence.event_id) ||
        reading->evidence.event_id.len == 0 || !text_read(reading, 0, "type", &reading->type) ||
        reading->type.len == 0 || !text_read(reading, 0, "object", &object) ||
        !text_read(reading, member(reading, 0, "request"), "idempotency_key",
                   &reading->request_key)) {
        return false;
    }
    if (!idem_str_equal(object, IDEM_STR("event"))) {
        reading->type = object;
        return true;
    }
    if (created == 0 || reading->json.tokens[created].kind != IDEM_JSON_NUMBER ||
        !idem_str_to_i64(reading->json.tokens[created].raw, &created_s) ||
        created_s > INT64_MAX / IDEM_US_PER_SECOND) {
        return false;
    }
    reading->evidence.happened_us = created_s * IDEM_US_PER_SECOND;
    reading->object_at = member(reading, data, "object");
    reading->previous_at = member(reading, data, "previous_attributes");
    return true;
}

/* Whether a key says its mode itself, and then another one than the event's. */
static bool mode_differs(struct idem_str key, bool live)
{
    bool says_live =
        idem_str_starts(key, IDEM_STR("sk_live_")) || idem_str_starts(key, IDEM_STR("rk_live_"));
    bool says_test =
        idem_str_starts(key, IDEM_STR("sk_test_")) || idem_str_starts(key, IDEM_STR("rk_test_"));
    return live ? says_test : says_live;
}

/* Mode and account; OK: they may be those of the entry. */
static enum idem_callback_verdict place_judge(struct reading *reading)
{
    const struct idem_json_token *tokens = reading->json.tokens;
    size_t live = member(reading, 0, "livemode");
    struct idem_str account = { .len = 0 };

    if (live == 0 ||
        (tokens[live].kind != IDEM_JSON_TRUE && tokens[live].kind != IDEM_JSON_FALSE) ||
        !text_read(reading, 0, "account", &account)) {
        return IDEM_CALLBACK_UNREADABLE;
    }
    bool other = account.len > 0 && !idem_str_equal(account, reading->place->account);
    return other || mode_differs(reading->place->credential, tokens[live].kind == IDEM_JSON_TRUE)
               ? IDEM_CALLBACK_IGNORED
               : IDEM_CALLBACK_OK;
}

/* Of the metadata alone, so that what is not ours may be of any form. */
static bool object_is_ours(struct reading *reading, bool of_refund)
{
    size_t metadata = member(reading, reading->object_at, "metadata");
    struct idem_str our_id = { .len = 0 };

    if (!text_read(reading, metadata, "idem_id", &our_id)) {
        return false;
    }
    enum idem_effect_kind kind = kind_of(our_id);
    return of_refund ? kind == IDEM_EFFECT_KIND_REFUND
                     : kind != IDEM_EFFECT_KIND_NONE && idem_effect_kind_makes_payment(kind);
}

static enum idem_callback_verdict object_read(struct reading *reading,
                                              const struct event_type *type)
{
    struct idem_stripe_object *object = &reading->object;
    struct idem_evidence *evidence = &reading->evidence;

    if (!idem_stripe_object_read(&reading->json, reading->object_at, reading->buf, object) ||
        object->is_refund != type->of_refund) {
        return IDEM_CALLBACK_UNREADABLE;
    }
    evidence->outcome = IDEM_OUTCOME_UNKNOWN;
    evidence->effect_id = object->our_id;
    evidence->reference = object->id;
    evidence->order_no = object->order_no;
    evidence->payment_effect_id = object->our_payment;
    bool by_hand = kind_of(object->our_id) == IDEM_EFFECT_KIND_AUTHORIZE;
    if (type->of_refund || object->captures_by_hand == by_hand) {
        type->read(reading);
    }
    return IDEM_CALLBACK_OK;
}

static enum idem_callback_verdict event_read(struct reading *reading)
{
    if (!envelope_read(reading)) {
        return IDEM_CALLBACK_UNREADABLE;
    }
    const struct event_type *type = type_find(reading->type);
    if (type == NULL) {
        return IDEM_CALLBACK_IGNORED;
    }
    enum idem_callback_verdict verdict = place_judge(reading);
    if (verdict != IDEM_CALLBACK_OK) {
        return verdict;
    }
    return object_is_ours(reading, type->of_refund) ? object_read(reading, type)
                                                    : IDEM_CALLBACK_IGNORED;
}

static enum idem_callback_verdict stripe_verify(const struct idem_callback_in *in,
                                                const struct idem_callback_place *place,
                                                struct idem_buf *buf,
                                                struct idem_evidence *ret_evidence)
{
    struct idem_json_token tokens[TOKENS_MAX];
    struct idem_json_fault fault; /* What is wrong does not matter: it is not read. */
    struct reading reading = { .place = place, .buf = buf, .evidence = { .amount_minor = -1 } };
    int64_t signed_s = 0;

    enum idem_callback_verdict verdict =
        idem_signature_judge(in, place, IDEM_STR("Stripe-Signature"), &signed_s);
    if (verdict != IDEM_CALLBACK_OK) {
        return verdict;
    }
    idem_json_init(&reading.json, tokens, TOKENS_MAX);
    if (!idem_json_parse(&reading.json, in->body, &fault)) {
        return IDEM_CALLBACK_UNREADABLE;
    }
    verdict = event_read(&reading);
    if (verdict == IDEM_CALLBACK_OK) {
        *ret_evidence = reading.evidence;
    }
    return verdict;
}

const struct idem_adapter_callbacks idem_stripe_callbacks = {
    .verify = stripe_verify,
    .replies = {
        [IDEM_CALLBACK_TAKEN] = { 200, "application/json", "{\"received\":true}" },
        [IDEM_CALLBACK_REFUSED] = { 400, "application/json", "{\"received\":false}" },
        [IDEM_CALLBACK_LATER] = { 503, "application/json", "{\"received\":false}" },
    },
};
