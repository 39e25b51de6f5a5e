/* Stripe, as docs/stripe.md has it. */
#include "conform/adapter.h"
#include "provider/stripe.h"

#include "base/attr.h"

#define INTENT(status, capture, received, capturable, metadata)                              \
    "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"status\":\"" status                    \
    "\",\"amount\":10000,\"amount_received\":" received ",\"amount_capturable\":" capturable \
    ",\"currency\":\"eur\",\"created\":1764400000,\"capture_method\":\"" capture             \
    "\",\"metadata\":{" metadata "}}"
#define OURS     "\"idem_id\":\"" CHARGE "\",\"order_no\":\"o-1\""
#define HELD     "\"idem_id\":\"" AUTHORIZE "\",\"order_no\":\"o-1\""
#define TAKEN    HELD ",\"idem_capture\":\"" CAPTURE "\""
#define CREATED  INTENT("requires_confirmation", "automatic", "0", "0", OURS)
#define PAID     INTENT("succeeded", "automatic", "10000", "0", OURS)
#define ENDED    INTENT("canceled", "automatic", "0", "0", OURS)
#define WAITS    INTENT("processing", "automatic", "0", "0", OURS)
#define FAILED   INTENT("requires_payment_method", "automatic", "0", "0", OURS)
#define OPENED   INTENT("requires_confirmation", "manual", "0", "0", HELD)
#define READY    INTENT("requires_capture", "manual", "0", "10000", HELD)
#define CAPTURED INTENT("succeeded", "manual", "10000", "0", TAKEN)
#define RELEASED INTENT("canceled", "manual", "0", "0", HELD)
#define REFUNDED                                                                             \
    "{\"id\":\"re_1\",\"object\":\"refund\",\"status\":\"succeeded\",\"amount\":10000,"      \
    "\"currency\":\"eur\",\"created\":1764400100,\"payment_intent\":\"pi_1\",\"metadata\":{" \
    "\"idem_id\":\"" REFUND "\",\"idem_payment\":\"" AUTHORIZE "\",\"order_no\":\"o-1\"}}"
#define LIST(more, data) "{\"object\":\"list\",\"has_more\":" more ",\"data\":[" data "]}"

static const struct adapter_scene scenes[] = {
    { IDEM_CALL_SEND, IDEM_EFFECT_KIND_CHARGE, NULL, { CREATED, PAID }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_SEND, IDEM_EFFECT_KIND_AUTHORIZE, NULL, { OPENED, READY }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_SEND, IDEM_EFFECT_KIND_CAPTURE, NULL, { READY, CAPTURED }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_SEND, IDEM_EFFECT_KIND_CANCEL, NULL, { READY, RELEASED }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_SEND, IDEM_EFFECT_KIND_REFUND, NULL, { CAPTURED, REFUNDED }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_QUERY, IDEM_EFFECT_KIND_CHARGE, "pi_1", { PAID }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_QUERY,
      IDEM_EFFECT_KIND_REFUND,
      NULL,
      { LIST("false", REFUNDED) },
      IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_CLOSE, IDEM_EFFECT_KIND_CHARGE, "pi_1", { ENDED }, IDEM_OUTCOME_CLOSED_UNPAID },
};

#define ERROR(type) "{\"error\":{\"type\":\"" type "\",\"message\":\"no\"}}"
#define INVALID     ERROR("invalid_request_error")
#define CARD        ERROR("card_error")
#define RATE        ERROR("rate_limit_error")
#define CLASH       ERROR("idempotency_error")
#define BROKEN      ERROR("api_error")

#define FIRST       1U
#define SECOND      2U
#define ONLY_CHARGE (1U << IDEM_EFFECT_KIND_CHARGE)
#define ANY_KIND    (PAYS | ACTS)

/* What acts on a payment begins with a look at it: not there, or another's, is final. */
static const struct adapter_belief beliefs[] = {
    { INVALID, SEND, PAYS, FIRST, { 400, 402 }, IDEM_OUTCOME_REFUSED_FINAL },
    { INVALID, SEND, ANY_KIND, SECOND, { 401, 403, 429 }, IDEM_OUTCOME_NOT_EXECUTED },
    { INVALID, SEND, ACTS, FIRST, { 404 }, IDEM_OUTCOME_REFUSED_FINAL },
    { CARD, SEND, PAYS, FIRST, { 400, 402 }, IDEM_OUTCOME_REFUSED_FINAL },
    { CARD, SEND, ANY_KIND, SECOND, { 401, 403 }, IDEM_OUTCOME_NOT_EXECUTED },
    { CARD, SEND, ACTS, FIRST, { 404 }, IDEM_OUTCOME_REFUSED_FINAL },
    { RATE, SEND, ANY_KIND, SECOND, { 401, 403, 429 }, IDEM_OUTCOME_NOT_EXECUTED },
    { RATE, SEND, ACTS, FIRST, { 404 }, IDEM_OUTCOME_REFUSED_FINAL },
    { CLASH, SEND, ANY_KIND, SECOND, { 401, 403 }, IDEM_OUTCOME_NOT_EXECUTED },
    { CLASH, SEND, ACTS, FIRST, { 404 }, IDEM_OUTCOME_REFUSED_FINAL },
    { BROKEN, SEND, ANY_KIND, SECOND, { 401, 403 }, IDEM_OUTCOME_NOT_EXECUTED },
    { BROKEN, SEND, ACTS, FIRST, { 404 }, IDEM_OUTCOME_REFUSED_FINAL },
    { ENDED, SEND, ONLY_CHARGE, FIRST | SECOND, { 200 }, IDEM_OUTCOME_REFUSED_FINAL },
    { ENDED, SEND, ACTS, FIRST, { 200 }, IDEM_OUTCOME_REFUSED_FINAL },
    { ENDED, QUERY, ONLY_CHARGE, FIRST, { 200 }, IDEM_OUTCOME_CLOSED_UNPAID },
    { WAITS, SEND, ONLY_CHARGE, FIRST | SECOND, { 200 }, IDEM_OUTCOME_PROCESSING },
    { WAITS, SEND, ACTS, FIRST, { 200 }, IDEM_OUTCOME_REFUSED_FINAL },
    { WAITS, QUERY | CLOSE, ONLY_CHARGE, FIRST, { 200 }, IDEM_OUTCOME_PROCESSING },
    { FAILED, SEND, ACTS, FIRST, { 200 }, IDEM_OUTCOME_REFUSED_FINAL },
};

static const char *const heads[] = {
    "",
    "Idempotent-Replayed: true\n",
    "Stripe-Should-Retry: true\n",
    "Stripe-Should-Retry: false\n",
    NULL,
};

static const struct adapter_page pages[] = {
    { "", LIST("true", CAPTURED "," PAID), 3, true },
    { "p:pi_0", LIST("false", PAID), 1, true },
    { "r", LIST("false", REFUNDED), 1, false },
};

static const struct adapter_change spoils[] = {
    { "\"amount\":", "\"amount\":-" },
    { "\"amount\":10000", "\"amount\":\"10000\"" },
    { "\"currency\":\"eur\"", "\"currency\":\"EUR\"" },
    { "\"object\":\"payment_intent\"", "\"object\":\"charge\"" },
    { "\"id\":\"", "\"id\":\"../" },
    { "\"created\":", "\"created\":null,\"x\":" },
};

static const struct adapter_change event_spoils[] = {
    { "\"id\":\"evt_1\",", "" },
    { "\"idem_id\":", "\"id_of_another\":" },
    { "payment_intent.succeeded", "payment_intent.succeeding" },
    { "\"status\":\"succeeded\"", "\"status\":\"succeeding\"" },
    { "\"amount_received\":10000", "\"amount_received\":\"10000\"" },
    { "\"currency\":\"eur\",", "" },
    { "\"livemode\":false", "\"livemode\":true" }, /* The key is one for tests. */
};

const struct adapter_fixture adapter_fixture = {
    .adapter = &idem_stripe_adapter,
    .payment_reference = "pi_1",
    .scenes = scenes,
    .scene_count = IDEM_ARRAY_COUNT(scenes),
    .beliefs = beliefs,
    .belief_count = IDEM_ARRAY_COUNT(beliefs),
    .heads = heads,
    .amount = { ":10000", ":1000" },
    .currency = { "\"eur\"", "\"usd\"" },
    .state = "\"status\":\"",
    .pages = pages,
    .page_count = IDEM_ARRAY_COUNT(pages),
    .spoils = spoils,
    .spoil_count = IDEM_ARRAY_COUNT(spoils),
    .event =
        "{\"id\":\"evt_1\",\"object\":\"event\",\"type\":\"payment_intent.succeeded\","
        "\"livemode\":false,\"created\":1764399990,\"request\":null,"
        "\"data\":{\"object\":" PAID "}}",
    .event_spoils = event_spoils,
    .event_spoil_count = IDEM_ARRAY_COUNT(event_spoils),
    .event_field = "Stripe-Signature",
    .tolerance_s = 300,
    .event_sign = adapter_sign_time_and_body,
};
