/*
 * Stripe: what is believed of what comes back.
 *
 * Goal: each state, error and header of Stripe's means what the table says, and what is not in it
 * is UNKNOWN; a payment that can still be paid is canceled before it counts as refused; no damage
 * to a good answer makes another claim about money.
 *
 * Method: a table of answers to each step, written from docs/stripe.md and not from the code; and
 * good answers with every byte changed to every other, read by a second JSON reader (jansson) where
 * the damage yields another readable answer.
 */
#include "provider/stripe.h"

#include <jansson.h>
#include <strings.h>

#include "lib/test.h"
#include "provider/stripe_internal.h"
#include "unit/provider/stripe_scene.h"

#define INTENT(id, status, money, capture, metadata)                                    \
    "{\"id\":\"" id "\",\"object\":\"payment_intent\",\"status\":\"" status "\"," money \
    ",\"currency\":\"eur\",\"created\":1764400000,\"capture_method\":\"" capture        \
    "\",\"metadata\":{" metadata "},\"next\":{\"new\":[1,2]}}"
#define SUMS(amount, received, capturable) \
    "\"amount\":" amount ",\"amount_received\":" received ",\"amount_capturable\":" capturable

#define OPEN     SUMS("10000", "0", "0")
#define HELD     SUMS("10000", "0", "10000")
#define PAID     SUMS("10000", "10000", "0")
#define OURS(id) "\"idem_id\":\"" id "\",\"order_no\":\"o/1\""

#define C(status, money) INTENT("pi_1", status, money, "automatic", OURS(CHARGE))
#define A(status, money) INTENT("pi_1", status, money, "manual", OURS(AUTHORIZE))
#define K(status, money) \
    INTENT("pi_1", status, money, "manual", OURS(AUTHORIZE) ",\"idem_capture\":\"" CAPTURE "\"")
#define REFUNDED(intent, status, id)                                                             \
    "{\"id\":\"re_1\",\"object\":\"refund\",\"status\":\"" status                                \
    "\",\"amount\":10000,\"currency\":\"eur\",\"created\":1764400000,"                           \
    "\"payment_intent\":\"" intent "\",\"metadata\":{" OURS(id) ",\"idem_payment\":\"" AUTHORIZE \
                                                                "\"}}"
#define R(status)               REFUNDED("pi_1", status, REFUND)
#define NUMBER_2(status, money) INTENT("pi_2", status, money, "manual", OURS(AUTHORIZE))
#define IN_USD                                                                      \
    "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"status\":\"succeeded\"," PAID \
    ",\"currency\":\"usd\",\"created\":1764400000,"                                 \
    "\"capture_method\":\"manual\",\"metadata\":{" OURS(AUTHORIZE) "}}"
#define LIST(more, data)  "{\"object\":\"list\",\"has_more\":" more ",\"data\":[" data "]}"
#define ERROR(type, more) "{\"error\":{\"type\":\"" type "\",\"message\":\"m\"" more "}}"

#define INVALID  ERROR("invalid_request_error", ",\"code\":\"odd\"")
#define DECLINED ERROR("card_error", ",\"code\":\"card_declined\",\"decline_code\":\"no\"")
#define AGAIN    "Stripe-Should-Retry: true\n"
#define NOT_SO   "Stripe-Should-Retry: false\n"
#define REPLAYED "Request-Id: r\nIDEMPOTENT-REPLAYED:true\n"

#define BEGIN   IDEM_STRIPE_BEGIN
#define ACT     IDEM_STRIPE_ACT
#define CONFIRM IDEM_STRIPE_CONFIRM
#define LOOK    IDEM_STRIPE_LOOK
#define REFUSED IDEM_STRIPE_LOOK_REFUSED
#define CLOSING IDEM_STRIPE_CANCEL
#define LAST    IDEM_STRIPE_LOOK_LAST

/*
 * Kind and call ("c" send of a charge, "c?" question, "c#" the same with Stripe's number known
 * before, "c!" close), step, answer; and what holds then: S success, R refused, N not executed,
 * P processing, 0 not found, C closed, ? unknown, followed by the next step: act, confirm, look,
 * refusal looked at, cancel, last look; or a point.
 */
static const struct {
    const char *call;
    unsigned step;
    uint16_t status;
    const char *head;
    const char *body;
    const char *expected;
} answers[] = {
    /* The creation: whatever is said, nothing was confirmed. */
    { "c", BEGIN, 200, "", C("requires_confirmation", OPEN), "N confirm" },
    { "c", BEGIN, 200, REPLAYED, C("requires_confirmation", OPEN), "N confirm" },
    { "a", BEGIN, 200, "", A("requires_confirmation", OPEN), "N confirm" },
    { "c", BEGIN, 200, "", A("requires_confirmation", OPEN), "? ." },
    { "a", BEGIN, 200, "", C("requires_confirmation", OPEN), "? ." },
    { "c", BEGIN, 200, "", INTENT("pi_1", "requires_confirmation", OPEN, "automatic", ""), "? ." },
    { "c", BEGIN, 200, "", C("requires_confirmation", SUMS("9999", "0", "0")), "? ." },
    { "c", BEGIN, 200, "", "{}", "N ." },
    { "c", BEGIN, 200, "", "<html>", "N ." },
    { "c", BEGIN, 201, "", C("requires_confirmation", OPEN), "N ." },
    { "c", BEGIN, 400, "", INVALID, "R ." },
    { "c", BEGIN, 402, "", DECLINED, "R ." },
    { "c", BEGIN, 400, AGAIN, INVALID, "N ." },
    { "c", BEGIN, 400, NOT_SO, INVALID, "R ." },
    { "c", BEGIN, 400, "", ERROR("idempotency_error", ""), "? ." },
    { "c", BEGIN, 400, "", ERROR("api_error", ""), "N ." },
    { "c", BEGIN, 400, "", "", "N ." },
    { "c", BEGIN, 401, "", INVALID, "N ." },
    { "c", BEGIN, 403, "", INVALID, "N ." },
    { "c", BEGIN, 404, "", INVALID, "N ." },
    { "c", BEGIN, 409, "", ERROR("idempotency_error", ""), "N ." },
    { "c", BEGIN, 429, "", ERROR("rate_limit_error", ""), "N ." },
    { "c", BEGIN, 500, REPLAYED, ERROR("api_error", ""), "N ." },
    { "c", BEGIN, 503, "", "", "N ." },

    /* The confirmation. */
    { "c", CONFIRM, 200, "", C("succeeded", PAID), "S ." },
    { "c", CONFIRM, 200, REPLAYED, C("succeeded", PAID), "S ." },
    { "c", CONFIRM, 200, "", C("succeeded", SUMS("10000", "9000", "0")), "S ." },
    { "c", CONFIRM, 200, "", C("requires_capture", HELD), "? look" },
    { "a", CONFIRM, 200, "", A("requires_capture", HELD), "S ." },
    { "c", CONFIRM, 200, "", C("processing", OPEN), "P ." },
    { "c", CONFIRM, 200, REPLAYED, C("processing", OPEN), "P look" },
    { "c", CONFIRM, 200, "", C("requires_action", OPEN), "P ." },
    { "c", CONFIRM, 200, REPLAYED, C("requires_action", OPEN), "P look" },
    { "c", CONFIRM, 200, "", C("requires_confirmation", OPEN), "? look" },
    { "c", CONFIRM, 200, "", C("requires_payment_method", OPEN), "? refusal" },
    { "c", CONFIRM, 200, "", C("canceled", OPEN), "R look" },
    { "c", CONFIRM, 200, "", C("settling", OPEN), "? look" },
    { "c", CONFIRM, 200, "", INTENT("pi_2", "succeeded", PAID, "automatic", OURS(CHARGE)),
      "? look" },
    { "c", CONFIRM, 200, "", INTENT("pi_1", "succeeded", PAID, "automatic", OURS(OTHER)), "S ." },
    { "c", CONFIRM, 200, "", INTENT("pi_1", "processing", PAID, "automatic", OURS(OTHER)),
      "? look" },
    { "c", CONFIRM, 200, "", INTENT("pi_1", "succeeded", PAID, "automatic", ""), "? look" },
    { "c", CONFIRM, 200, "", R("succeeded"), "? look" },
    { "c", CONFIRM, 200, "", "", "? look" },
    { "c", CONFIRM, 202, "", C("succeeded", PAID), "? look" },
    { "c", CONFIRM, 402, "", DECLINED, "? refusal" },
    { "c", CONFIRM, 402, REPLAYED, DECLINED, "? refusal" },
    { "c", CONFIRM, 402, AGAIN, DECLINED, "? look" },
    { "c", CONFIRM, 402, "", "", "? look" },
    { "c", CONFIRM, 400, "", INVALID, "? refusal" },
    { "c", CONFIRM, 400, "", ERROR("idempotency_error", ""), "? look" },
    { "c", CONFIRM, 400, "", ERROR("new_error", ""), "? look" },
    { "c", CONFIRM, 401, "", INVALID, "N ." },
    { "c", CONFIRM, 403, "", INVALID, "N ." },
    { "c", CONFIRM, 429, "", INVALID, "N ." },
    { "c", CONFIRM, 429, "", ERROR("rate_limit_error", ",\"code\":\"lock_timeout\""), "N ." },
    { "c", CONFIRM, 429, NOT_SO, INVALID, "N ." },
    { "c", CONFIRM, 429, "", ERROR("api_error", ",\"code\":\"rate_limit\""), "N ." },
    { "c", CONFIRM, 429, "", ERROR("api_error", ",\"code\":\"lock_timeout\""), "N ." },
    { "c", CONFIRM, 429, "", ERROR("api_error", ""), "? look" },
    { "c", CONFIRM, 429, "", ERROR("card_error", ",\"code\":\"card_declined\""), "? look" },
    { "c", CONFIRM, 429, REPLAYED, INVALID, "? look" },
    { "c", CONFIRM, 401, REPLAYED, INVALID, "? look" },
    { "c", CONFIRM, 403, REPLAYED, INVALID, "? look" },
    { "a", CONFIRM, 200, REPLAYED, A("requires_capture", HELD), "? look" },
    { "a", CONFIRM, 200, REPLAYED, A("succeeded", PAID), "? look" },
    { "c", CONFIRM, 429, "", "<html>", "? look" },
    { "c", CONFIRM, 401, "", "{}", "? look" },
    { "c", CONFIRM, 404, "", INVALID, "? look" },
    { "c", CONFIRM, 409, "", ERROR("idempotency_error", ""), "? look" },
    { "c", CONFIRM, 424, "", ERROR("api_error", ""), "? look" },
    { "c", CONFIRM, 500, "", ERROR("api_error", ""), "? look" },
    { "c", CONFIRM, 500, REPLAYED, ERROR("api_error", ""), "? look" },
    { "c", CONFIRM, 500, NOT_SO, ERROR("api_error", ""), "? look" },
    { "c", CONFIRM, 502, "", "", "? look" },
    { "c", CONFIRM, 504, "", ERROR("invalid_request_error", ""), "? look" },

    /* Looks during a send. */
    { "c", LOOK, 200, "", C("succeeded", PAID), "S ." },
    { "c", LOOK, 200, "", C("processing", OPEN), "P ." },
    { "c", LOOK, 200, "", C("requires_action", OPEN), "P ." },
    { "c", LOOK, 200, "", C("requires_confirmation", OPEN), "? ." },
    { "c", LOOK, 200, "", C("requires_payment_method", OPEN), "? cancel" },
    { "a", LOOK, 200, "", A("requires_payment_method", OPEN), "? cancel" },
    { "c", LOOK, 200, "",
      INTENT("pi_2", "requires_payment_method", OPEN, "automatic", OURS(CHARGE)), "? ." },
    { "c", LOOK, 200, "", INTENT("pi_1", "requires_payment_method", OPEN, "automatic", OURS(OTHER)),
      "? ." },
    { "a", LOOK, 200, "", A("canceled", OPEN), "R ." },
    { "c", LOOK, 200, "", C("canceled", OPEN), "R ." },
    { "c", LOOK, 200, "", C("canceled", PAID), "? ." },
    { "c", LOOK, 404, "", INVALID, "? ." },
    { "c", LOOK, 429, "", INVALID, "? ." },
    { "c", LOOK, 500, "", "", "? ." },
    { "c", REFUSED, 200, "", C("requires_payment_method", OPEN), "? cancel" },
    { "c", REFUSED, 200, "", C("requires_confirmation", OPEN), "? cancel" },
    { "a", REFUSED, 200, "", A("requires_payment_method", OPEN), "? cancel" },
    { "c", REFUSED, 200, "",
      INTENT("pi_2", "requires_payment_method", OPEN, "automatic", OURS(CHARGE)), "? ." },
    { "c", REFUSED, 200, "",
      INTENT("pi_1", "requires_payment_method", OPEN, "automatic", OURS(OTHER)), "? ." },
    { "c", REFUSED, 200, "", C("succeeded", PAID), "S ." },
    { "a", REFUSED, 200, "", A("requires_capture", HELD), "S ." },
    { "c", REFUSED, 200, "", C("processing", OPEN), "P ." },
    { "c", REFUSED, 200, "", C("canceled", OPEN), "R ." },
    { "c", REFUSED, 500, "", "", "? ." },
    { "c", CLOSING, 200, "", C("canceled", OPEN), "R ." },
    { "c", CLOSING, 200, "", C("canceled", PAID), "? last" },
    { "c", CLOSING, 200, "", C("requires_payment_method", OPEN), "? last" },
    { "c", CLOSING, 200, "", C("succeeded", PAID), "? last" },
    { "c", CLOSING, 400, "", INVALID, "? last" },
    { "c", CLOSING, 429, "", INVALID, "? last" },
    { "c", CLOSING, 500, "", "", "? last" },
    { "c", LAST, 200, "", C("requires_payment_method", OPEN), "? ." },
    { "c", LAST, 200, "", C("succeeded", PAID), "S ." },
    { "c", LAST, 200, "", C("canceled", OPEN), "R ." },
    { "c", LAST, 500, "", "", "? ." },

    /* Is it the payment that is to be captured, canceled, refunded? */
    { "k", BEGIN, 200, "", A("requires_capture", HELD), "N act" },
    { "k", BEGIN, 200, "", C("requires_capture", HELD), "R ." },
    { "k", BEGIN, 200, "", INTENT("pi_1", "requires_capture", HELD, "manual", ""), "R ." },
    { "k", BEGIN, 200, "", NUMBER_2("requires_capture", HELD), "R ." },
    { "k", BEGIN, 200, "", IN_USD, "R ." },
    { "k", BEGIN, 200, "", R("succeeded"), "R ." },
    { "k", BEGIN, 404, "", INVALID, "R ." },
    { "k", BEGIN, 404, "", "<html>", "N ." },
    { "k", BEGIN, 200, "", "<html>", "N ." },
    { "k", BEGIN, 401, "", INVALID, "N ." },
    { "k", BEGIN, 400, "", INVALID, "N ." },
    { "k", BEGIN, 429, "", INVALID, "N ." },
    { "k", BEGIN, 500, "", "", "N ." },
    { "v", BEGIN, 200, "", A("requires_capture", HELD), "N act" },
    { "v", BEGIN, 200, "", C("requires_capture", HELD), "R ." },
    { "r", BEGIN, 200, "", A("succeeded", PAID), "N act" },
    { "r", BEGIN, 200, "", C("succeeded", PAID), "R ." },
    { "r", BEGIN, 200, "", IN_USD, "R ." },
    { "r", BEGIN, 404, "", INVALID, "R ." },
    { "r", BEGIN, 503, "", INVALID, "N ." },

    /* Captures. */
    { "k", ACT, 200, "", K("succeeded", PAID), "S ." },
    { "k", ACT, 200, "", K("succeeded", SUMS("10000", "1", "0")), "S ." },
    { "k", ACT, 200, "", K("processing", HELD), "P ." },
    { "k", ACT, 200, "", K("requires_capture", HELD), "? look" },
    { "k", ACT, 200, "", A("succeeded", PAID), "S ." }, /* Named as the payment's own. */
    { "k", ACT, 200, "", C("succeeded", PAID), "? look" },
    { "k", ACT, 200, "", NUMBER_2("succeeded", PAID), "? look" },
    { "k", ACT, 400, "", INVALID, "? refusal" },
    { "k", ACT, 402, "", DECLINED, "? refusal" },
    { "k", ACT, 404, "", INVALID, "? look" },
    { "k", ACT, 409, "", ERROR("idempotency_error", ""), "? look" },
    { "k", ACT, 429, "", INVALID, "N ." },
    { "k", ACT, 401, "", INVALID, "N ." },
    { "k", ACT, 500, REPLAYED, ERROR("api_error", ""), "? look" },
    { "k", LOOK, 200, "", K("succeeded", PAID), "S ." },
    { "k", LOOK, 200, "", A("requires_capture", HELD), "? ." },
    { "k", LOOK, 200, "", A("canceled", OPEN), "R ." },
    { "k", REFUSED, 200, "", K("succeeded", PAID), "S ." },
    { "k", REFUSED, 200, "", A("requires_capture", HELD), "R ." },
    { "k", REFUSED, 200, "", A("canceled", OPEN), "R ." },
    { "k", REFUSED, 200, "", A("requires_payment_method", OPEN), "? ." },

    /* Cancels of an authorization. */
    { "v", ACT, 200, "", A("canceled", OPEN), "S ." },
    { "v", ACT, 200, "", A("requires_capture", HELD), "? look" },
    { "v", ACT, 200, "", NUMBER_2("canceled", OPEN), "? look" },
    { "v", ACT, 200, "", INTENT("pi_1", "canceled", OPEN, "manual", OURS(OTHER)), "? look" },
    { "v", ACT, 400, "", INVALID, "? refusal" },
    { "v", ACT, 409, "", ERROR("idempotency_error", ""), "? look" },
    { "v", ACT, 429, "", INVALID, "N ." },
    { "v", ACT, 500, "", "", "? look" },
    { "v", LOOK, 200, "", A("canceled", OPEN), "S ." },
    { "v", LOOK, 200, "", A("requires_capture", HELD), "? ." },
    { "v", LOOK, 200, "", A("succeeded", PAID), "R ." },
    { "v", REFUSED, 200, "", A("canceled", OPEN), "S ." },
    { "v", REFUSED, 200, "", A("succeeded", PAID), "R ." },
    { "v", REFUSED, 200, "", A("requires_capture", HELD), "? ." },

    /* Refunds. */
    { "r", ACT, 200, "", R("succeeded"), "S ." },
    { "r", ACT, 200, "", R("pending"), "P ." },
    { "r", ACT, 200, REPLAYED, R("pending"), "P look" },
    { "r", ACT, 200, REPLAYED, R("succeeded"), "? look" },
    { "k", ACT, 200, REPLAYED, K("succeeded", PAID), "S ." },
    { "v", ACT, 200, REPLAYED, A("canceled", OPEN), "S ." },
    { "r", ACT, 200, "", R("requires_action"), "P ." },
    { "r", ACT, 200, "", R("failed"), "R look" },
    { "r", ACT, 200, "", R("canceled"), "R look" },
    { "r", ACT, 200, "", R("processing"), "? look" },
    { "r", ACT, 200, "", R("new"), "? look" },
    { "r", ACT, 200, "", A("succeeded", PAID), "? look" },
    { "r", ACT, 200, "", REFUNDED("pi_2", "succeeded", REFUND), "? look" },
    { "r", ACT, 200, "", REFUNDED("pi_1", "succeeded", OTHER), "S ." }, /* Told as the other's. */
    { "r", ACT, 200, "", REFUNDED("pi_1", "failed", OTHER), "? look" },
    { "r", ACT, 200, "", REFUNDED("pi_1", "succeeded", ""), "? look" },
    { "r", ACT, 400, "", INVALID, "? refusal" },
    { "r", ACT, 402, "", DECLINED, "? refusal" },
    { "r", ACT, 409, "", ERROR("idempotency_error", ""), "? look" },
    { "r", ACT, 429, "", INVALID, "N ." },
    { "r", ACT, 500, "", "", "? look" },
    { "r", LOOK, 200, "", R("succeeded"), "S ." },
    { "r", LOOK, 200, "", R("failed"), "R ." },
    { "r", LOOK, 200, "", LIST("false", R("succeeded")), "S ." },
    { "r", LOOK, 200, "", LIST("false", ""), "? ." },
    { "r", REFUSED, 200, "", LIST("false", R("succeeded")), "S ." },
    { "r", REFUSED, 200, "", LIST("false", R("failed")), "R ." },
    { "r", REFUSED, 200, "", LIST("false", ""), "R ." },
    { "r", REFUSED, 200, "", LIST("true", ""), "? ." },
    { "r", REFUSED, 200, "", LIST("false", "{}"), "? ." },
    { "r", REFUSED, 500, "", "", "? ." },

    /* Questions. */
    { "c?", BEGIN, 200, "", LIST("false", ""), "? ." },
    { "c?", BEGIN, 200, "", LIST("false", C("succeeded", PAID)), "? look" },
    { "c?", BEGIN, 200, "", LIST("false", C("succeeded", PAID) "," C("canceled", OPEN)), "? ." },
    { "c?", BEGIN, 200, "", LIST("false", A("succeeded", PAID)), "? ." },
    { "c?", BEGIN, 400, "", INVALID, "? ." },
    { "c?", LOOK, 200, "", C("succeeded", PAID), "S ." },
    { "c?", LOOK, 200, "", LIST("false", ""), "? ." },
    { "c?", LOOK, 200, "", C("processing", OPEN), "P ." },
    { "c?", LOOK, 200, "", C("requires_action", OPEN), "P ." },
    { "c?", LOOK, 200, "", C("requires_confirmation", OPEN), "? ." },
    { "c#", BEGIN, 200, "", C("requires_confirmation", OPEN), "0 ." },
    { "c?", LOOK, 200, "", C("requires_payment_method", OPEN), "? ." },
    { "c?", LOOK, 200, "", C("canceled", OPEN), "? ." },
    { "c#", BEGIN, 200, "", C("canceled", OPEN), "C ." },
    { "c#", BEGIN, 200, "", C("succeeded", PAID), "S ." },
    { "c#", BEGIN, 200, "", C("processing", OPEN), "P ." },
    { "c#", BEGIN, 200, "", C("requires_payment_method", OPEN), "? ." },
    { "c?", LOOK, 200, "", C("canceled", PAID), "? ." },
    { "c?", LOOK, 200, "", C("new_status", OPEN), "? ." },
    { "a?", LOOK, 200, "", A("requires_capture", HELD), "S ." },
    { "a?", LOOK, 200, "", A("succeeded", SUMS("10000", "1", "0")), "S ." },
    { "a?", LOOK, 200, "", A("canceled", OPEN), "? ." },
    { "a#", BEGIN, 200, "", A("canceled", OPEN), "C ." },
    { "c?", LOOK, 404, "", INVALID, "? ." },
    { "c?", LOOK, 401, "", INVALID, "? ." },
    { "k?", BEGIN, 200, "", K("succeeded", PAID), "S ." },
    { "k?", BEGIN, 200, "", A("requires_capture", HELD), "0 ." },
    { "k?", BEGIN, 200, "", A("canceled", OPEN), "R ." },
    { "k?", BEGIN, 404, "", INVALID, "? ." },
    { "v?", BEGIN, 200, "", A("canceled", OPEN), "S ." },
    { "v?", BEGIN, 200, "", A("requires_capture", HELD), "0 ." },
    { "v?", BEGIN, 200, "", A("succeeded", PAID), "R ." },
    { "r?", BEGIN, 200, "", LIST("false", R("succeeded")), "S ." },
    { "r?", BEGIN, 200, "", LIST("true", R("pending")), "P ." },
    { "r?", BEGIN, 200, "", LIST("false", ""), "0 ." },
    { "r?", BEGIN, 200, "", LIST("true", ""), "? ." },
    { "r?", BEGIN, 200, "", LIST("false", R("succeeded") "," R("failed")), "? ." },
    { "r?", BEGIN, 200, "", "{\"data\":[]}", "? ." },
    { "r?", BEGIN, 500, "", "", "? ." },

    /* Closes. */
    { "c!", BEGIN, 200, "", C("canceled", OPEN), "C ." },
    { "c!", BEGIN, 200, "", C("succeeded", PAID), "S ." },
    { "c!", BEGIN, 200, "", C("requires_confirmation", OPEN), "? ." },
    { "c!", BEGIN, 400, "", INVALID, "? ." },
};

static const char outcome_letters[IDEM_OUTCOME_COUNT] = {
    [IDEM_OUTCOME_UNKNOWN] = '?',       [IDEM_OUTCOME_SUCCESS] = 'S',
    [IDEM_OUTCOME_NOT_EXECUTED] = 'N',  [IDEM_OUTCOME_REFUSED_FINAL] = 'R',
    [IDEM_OUTCOME_PROCESSING] = 'P',    [IDEM_OUTCOME_NOT_FOUND] = '0',
    [IDEM_OUTCOME_CLOSED_UNPAID] = 'C',
};

static const char *const step_words[] = {
    [IDEM_STRIPE_ACT] = "act",       [IDEM_STRIPE_CONFIRM] = "confirm",
    [IDEM_STRIPE_LOOK] = "look",     [IDEM_STRIPE_LOOK_REFUSED] = "refusal",
    [IDEM_STRIPE_CANCEL] = "cancel", [IDEM_STRIPE_LOOK_LAST] = "last",
};

static enum idem_call_kind call_of(const char *text)
{
    if (text[1] == '\0') {
        return IDEM_CALL_SEND;
    }
    return text[1] == '!' ? IDEM_CALL_CLOSE : IDEM_CALL_QUERY;
}

static void scene_for(struct scene *scene, const char *call, unsigned step)
{
    scene_fill(scene, idem_effect_kind_from_letter(call[0]));
    scene_call(scene, call_of(call), step);
    if (call[1] == '!' || call[1] == '#') {
        scene->effect.reference = IDEM_STR("pi_1");
    }
}

static bool scene_answer(struct scene *scene,
                         uint16_t status,
                         const char *head,
                         struct idem_str body)
{
    struct idem_wire_answer answer = {
        .status = status,
        .head = idem_str_from(head),
        .body = body,
        .retry_after_us = 7,
    };
    struct idem_buf buf;

    idem_buf_init(&buf, scene->text, sizeof(scene->text));
    bool more = idem_stripe_adapter.steps->decode(&scene->course, &answer, &buf);
    assert_false(buf.full);
    assert_int_equal(scene->course.so_far.retry_after_us, 7);
    return more;
}

static void an_answer_means_what_the_table_says_and_nothing_else(void **state)
{
    (void)state;
    unsigned wrong = 0;

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(answers); i++) {
        struct scene scene;
        char got[32];
        scene_for(&scene, answers[i].call, answers[i].step);
        bool more = scene_answer(&scene, answers[i].status, answers[i].head,
                                 idem_str_from(answers[i].body));
        (void)snprintf(got, sizeof(got), "%c %s", outcome_letters[scene.course.so_far.outcome],
                       more ? step_words[scene.course.step] : ".");
        if (strcmp(got, answers[i].expected) != 0) {
            print_error("%s step %u, %u %s%s: expected %s, got %s\n", answers[i].call,
                        answers[i].step, answers[i].status, answers[i].head, answers[i].body,
                        answers[i].expected, got);
            wrong += 1;
        }
    }
    assert_int_equal(wrong, 0);
}

/* A final word names our id; a success names what Stripe says, whatever it is. */
static void what_is_final_names_the_id_and_the_money(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(answers); i++) {
        struct scene scene;
        scene_for(&scene, answers[i].call, answers[i].step);
        (void)scene_answer(&scene, answers[i].status, answers[i].head,
                           idem_str_from(answers[i].body));
        const struct idem_evidence *so_far = &scene.course.so_far;
        if (so_far->outcome == IDEM_OUTCOME_SUCCESS) {
            assert_true(so_far->effect_id.len > 0);
            assert_true(so_far->amount_minor >= 0);
            EXPECT_TEXT(so_far->currency, "EUR");
            assert_true(so_far->reference.len > 0);
            continue;
        }
        assert_int_equal(so_far->amount_minor, -1);
        if (so_far->outcome == IDEM_OUTCOME_REFUSED_FINAL ||
            so_far->outcome == IDEM_OUTCOME_CLOSED_UNPAID) {
            assert_true(idem_str_equal(so_far->effect_id, scene.effect.id));
        }
    }
}

static void expect_success(
    const char *call, unsigned step, const char *body, const char *id, int64_t amount_minor)
{
    struct scene scene;
    scene_for(&scene, call, step);
    assert_false(scene_answer(&scene, 200, "", idem_str_from(body)));
    assert_int_equal(scene.course.so_far.outcome, IDEM_OUTCOME_SUCCESS);
    EXPECT_TEXT(scene.course.so_far.effect_id, id);
    assert_int_equal(scene.course.so_far.amount_minor, amount_minor);
}

static void a_success_is_told_with_the_sum_that_moved(void **state)
{
    (void)state;
    expect_success("c", CONFIRM, C("succeeded", SUMS("10000", "9000", "0")), CHARGE, 9000);
    expect_success("c", CONFIRM, INTENT("pi_1", "succeeded", PAID, "automatic", OURS(OTHER)), OTHER,
                   10000);
    expect_success("a", CONFIRM, A("requires_capture", SUMS("10000", "0", "8000")), AUTHORIZE,
                   8000);
    expect_success("a?", LOOK, A("succeeded", SUMS("10000", "1", "0")), AUTHORIZE, 10000);
    expect_success("k", ACT, K("succeeded", SUMS("10000", "1", "0")), CAPTURE, 1);
    expect_success("k", ACT, A("succeeded", PAID), AUTHORIZE, 10000); /* Another captured it. */
    expect_success("v", ACT, A("canceled", OPEN), CANCEL, 10000);
    expect_success("r", ACT, R("succeeded"), REFUND, 10000);
}

/* The words of the refusal stay, over the look and the cancel that follow it. */
static void a_decline_is_closed_before_it_is_told(void **state)
{
    (void)state;
    struct scene scene;

    scene_for(&scene, "c", BEGIN);
    assert_true(scene_answer(&scene, 200, "", IDEM_STR(C("requires_confirmation", OPEN))));
    EXPECT_TEXT(scene.course.so_far.reference, "pi_1");
    scene.course.so_far.reference = IDEM_STR("pi_1"); /* As the port keeps it. */
    assert_true(scene_answer(&scene, 402, "", IDEM_STR(DECLINED)));
    EXPECT_TEXT(scene.course.so_far.code, "no");
    scene.course.so_far.code = IDEM_STR("no");
    scene.course.so_far.message = IDEM_STR("m");
    assert_true(scene_answer(&scene, 200, "", IDEM_STR(C("requires_payment_method", OPEN))));
    assert_int_equal(scene.course.step, IDEM_STRIPE_CANCEL);
    assert_int_equal(scene.course.so_far.outcome, IDEM_OUTCOME_UNKNOWN);
    scene.course.so_far.reference = IDEM_STR("pi_1");
    assert_false(scene_answer(&scene, 200, "", IDEM_STR(C("canceled", OPEN))));
    assert_int_equal(scene.course.so_far.outcome, IDEM_OUTCOME_REFUSED_FINAL);
    EXPECT_TEXT(scene.course.so_far.effect_id, CHARGE);
    EXPECT_TEXT(scene.course.so_far.code, "no");
    EXPECT_TEXT(scene.course.so_far.message, "m");
}

/* Damage. */

static const json_t *one_of(const json_t *root)
{
    const json_t *data = json_object_get(root, "data");
    return data == NULL ? root : json_array_get(data, 0);
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? "" : text;
}

static const char *const success_words[] = { "succeeded", "requires_capture", "canceled" };

/* A success is claimed only if another reader finds one in the bytes, with the same money. */
static void expect_honest(const char *call, unsigned step, struct idem_str body)
{
    struct scene scene;

    scene_for(&scene, call, step);
    (void)scene_answer(&scene, 200, "", body);
    const struct idem_evidence *so_far = &scene.course.so_far;
    if (so_far->outcome != IDEM_OUTCOME_SUCCESS) {
        return;
    }
    json_t *root = json_loadb(body.data, body.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    const json_t *object = one_of(root);
    const json_t *metadata = json_object_get(object, "metadata");
    bool same = false;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(success_words); i++) {
        same = same || strcmp(text_of(object, "status"), success_words[i]) == 0;
    }
    same = same && so_far->currency.len == 3 &&
           strncasecmp(text_of(object, "currency"), so_far->currency.data, 3) == 0;
    same = same &&
           (idem_str_equal(so_far->effect_id, idem_str_from(text_of(metadata, "idem_id"))) ||
            idem_str_equal(so_far->effect_id, idem_str_from(text_of(metadata, "idem_capture"))) ||
            call[0] == 'v');
    bool amount = false;
    static const char *const sums[] = { "amount", "amount_received", "amount_capturable" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(sums); i++) {
        amount =
            amount || json_integer_value(json_object_get(object, sums[i])) == so_far->amount_minor;
    }
    if (!same || !amount) {
        print_error("%.*s\n", (int)body.len, body.data);
        fail();
    }
    json_decref(root);
}

struct good {
    const char *call;
    unsigned step;
    const char *body;
};

static void expect_honest_with_any_byte(const struct good *good, size_t at)
{
    struct idem_str text = idem_str_from(good->body);
    char *copy = malloc(text.len); /* Of its own size, so that a read past it is noticed. */
    struct scene scene;
    assert_non_null(copy);

    memcpy(copy, text.data, text.len);
    scene_for(&scene, good->call, good->step);
    (void)scene_answer(&scene, 200, "", (struct idem_str){ .data = copy, .len = at });
    assert_int_not_equal(scene.course.so_far.outcome, IDEM_OUTCOME_SUCCESS); /* Cut there. */
    for (unsigned byte = 0; byte < 256; byte++) {
        copy[at] = (char)byte;
        expect_honest(good->call, good->step, (struct idem_str){ .data = copy, .len = text.len });
    }
    free(copy);
}

static void no_damage_makes_a_success_of_other_money(void **state)
{
    (void)state;
    static const struct good good[] = {
        { "c?", LOOK, C("succeeded", PAID) },
        { "c?", LOOK, C("processing", OPEN) },
        { "a", CONFIRM, A("requires_capture", HELD) },
        { "k", ACT, K("succeeded", PAID) },
        { "v", LOOK, A("canceled", OPEN) },
        { "r?", BEGIN, LIST("false", R("succeeded")) },
    };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(good); i++) {
        for (size_t at = 0; at < strlen(good[i].body); at++) {
            expect_honest_with_any_byte(&good[i], at);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_means_what_the_table_says_and_nothing_else),
        cmocka_unit_test(what_is_final_names_the_id_and_the_money),
        cmocka_unit_test(a_success_is_told_with_the_sum_that_moved),
        cmocka_unit_test(a_decline_is_closed_before_it_is_told),
        cmocka_unit_test(no_damage_makes_a_success_of_other_money),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
