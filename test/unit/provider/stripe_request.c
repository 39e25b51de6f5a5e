/*
 * Stripe: what is stored of an effect, and what is sent for it.
 *
 * Goal: stored requests and the requests of each step are these bytes and no others; what Stripe
 * does not take is refused without asking. Method: golden bytes.
 */
#include "provider/stripe.h"

#include "base/clock.h"
#include "lib/test.h"
#include "provider/stripe_internal.h"
#include "unit/provider/stripe_scene.h"

#define PAYMENT(id, amount, currency, capture)                                 \
    "1\namount=" amount "&currency=" currency "&capture_method=" capture       \
    "&payment_method=pm_card_visa&automatic_payment_methods%5Benabled%5D=true" \
    "&automatic_payment_methods%5Ballow_redirects%5D=never"                    \
    "&metadata%5Bidem_id%5D=" id "&metadata%5Border_no%5D=o%2F1"

static void what_is_stored_are_these_bytes(void **state)
{
    (void)state;
    struct scene scene;

    scene_fill(&scene, IDEM_EFFECT_KIND_CHARGE);
    EXPECT_TEXT(scene.effect.request, PAYMENT(CHARGE, "10000", "eur", "automatic"));
    scene_fill(&scene, IDEM_EFFECT_KIND_AUTHORIZE);
    EXPECT_TEXT(scene.effect.request, PAYMENT(AUTHORIZE, "10000", "eur", "manual"));
    scene_fill(&scene, IDEM_EFFECT_KIND_CAPTURE);
    EXPECT_TEXT(scene.effect.request, "1 pi_1 " AUTHORIZE
                                      "\namount_to_capture=10000"
                                      "&metadata%5Bidem_capture%5D=" CAPTURE);
    scene_fill(&scene, IDEM_EFFECT_KIND_CANCEL);
    EXPECT_TEXT(scene.effect.request, "1 pi_1 " AUTHORIZE "\n");
    scene_fill(&scene, IDEM_EFFECT_KIND_REFUND);
    EXPECT_TEXT(scene.effect.request,
                "1 pi_1 " AUTHORIZE
                "\namount=10000&payment_intent=pi_1&metadata%5Bidem_id%5D=" REFUND
                "&metadata%5Bidem_payment%5D=" AUTHORIZE "&metadata%5Border_no%5D=o%2F1");

    scene_fill(&scene, IDEM_EFFECT_KIND_CHARGE);
    scene.order.description = IDEM_STR("a&b=\xe8\x8c\xb6 \r\n%");
    scene_encode(&scene);
    struct idem_str form = scene.effect.request;
    (void)idem_str_next(&form, '\n');
    assert_int_equal(idem_str_find(form, '\n'), form.len);
    assert_non_null(strstr(scene.request, "&description=a%26b%3D%E8%8C%B6%20%0D%0A%25&metadata"));

    scene.effect.currency = IDEM_STR("UGX");
    scene_encode(&scene);
    EXPECT_TEXT(scene.effect.request, "0 amount_or_currency_not_supported\n");
    scene_fill(&scene, IDEM_EFFECT_KIND_REFUND);
    static const char *const others[] = {
        "pi_1/../x", "", "pi_", "pi1", "ch_1", "PI_1", "by-hand"
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(others); i++) { /* As a person may type it. */
        scene.order.payment_reference = idem_str_from(others[i]);
        scene_encode(&scene);
        EXPECT_TEXT(scene.effect.request, "0 payment_reference_not_known\n");
    }
}

static void the_longest_order_fits_the_stored_request(void **state)
{
    (void)state;
    struct scene scene;
    char filler[IDEM_DESCRIPTION_MAX];

    memset(filler, 1, sizeof(filler)); /* Three bytes each. */
    struct idem_str text = { .data = filler, .len = sizeof(filler) };
    for (unsigned kind = IDEM_EFFECT_KIND_CHARGE; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        scene_fill(&scene, (enum idem_effect_kind)kind);
        scene.effect.amount_minor = INT64_MAX;
        scene.order.order_no = idem_str_slice(text, 0, IDEM_ORDER_NO_MAX);
        scene.order.method = idem_str_slice(text, 0, IDEM_METHOD_MAX);
        scene.order.description = text;
        scene_encode(&scene);
    }
}

/* "POST /path key=... body" of a step, or "nothing". A star: harmless. */
static void expect_request(struct scene *scene,
                           enum idem_call_kind call,
                           unsigned step,
                           const char *expected)
{
    struct idem_buf buf;
    struct idem_wire_request request = { .header_count = 0 };
    char shown_memory[IDEM_REQUEST_MAX];
    struct idem_buf shown;

    scene_call(scene, call, step);
    idem_buf_init(&buf, scene->text, sizeof(scene->text));
    idem_buf_init(&shown, shown_memory, sizeof(shown_memory));
    if (!idem_stripe_adapter.steps->request(&scene->course, IDEM_STR("sk_1"), &buf, &request)) {
        assert_string_equal(expected, "nothing");
        return;
    }
    assert_false(buf.full);
    idem_buf_printf(&shown, "%s%s %.*s", request.harmless ? "*" : "", request.method,
                    (int)request.path.len, request.path.data);
    bool authorized = false;
    bool versioned = false;
    for (size_t i = 0; i < request.header_count; i++) {
        struct idem_str value = request.headers[i];
        struct idem_str name = idem_str_next(&value, ':');
        authorized |= idem_str_equal(request.headers[i], IDEM_STR("Authorization: Bearer sk_1"));
        versioned |=
            idem_str_equal(request.headers[i], IDEM_STR("Stripe-Version: " IDEM_STRIPE_VERSION));
        if (idem_str_equal(name, IDEM_STR("Idempotency-Key"))) {
            idem_buf_printf(&shown, " key=%.*s", (int)value.len - 1, value.data + 1);
        }
    }
    assert_true(authorized && versioned);
    struct idem_str body = request.body;
    idem_buf_printf(&shown, " %.*s", (int)body.len, body.data);
    EXPECT_TEXT(idem_buf_str(&shown), expected);
}

#define SEARCH \
    "*GET /v1/payment_intents/search?limit=2&query=metadata%5B%27idem_id%27%5D%3A%27" CHARGE "%27 "

static void each_step_has_its_request(void **state)
{
    (void)state;
    struct scene scene;

    scene_fill(&scene, IDEM_EFFECT_KIND_CHARGE);
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_CONFIRM,
                   "POST /v1/payment_intents/pi_1/confirm key=" CHARGE "-confirm ");
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_LOOK, "*GET /v1/payment_intents/pi_1 ");
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_LOOK_REFUSED,
                   "*GET /v1/payment_intents/pi_1 ");
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_CANCEL,
                   "*POST /v1/payment_intents/pi_1/cancel key=" CHARGE "-cancel ");
    expect_request(&scene, IDEM_CALL_QUERY, IDEM_STRIPE_BEGIN, SEARCH);
    expect_request(&scene, IDEM_CALL_CLOSE, IDEM_STRIPE_BEGIN, "nothing");

    scene.effect.reference = IDEM_STR("pi_7");
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_BEGIN,
                   "POST /v1/payment_intents/pi_7/confirm key=" CHARGE "-confirm ");
    expect_request(&scene, IDEM_CALL_QUERY, IDEM_STRIPE_BEGIN, "*GET /v1/payment_intents/pi_7 ");
    expect_request(&scene, IDEM_CALL_CLOSE, IDEM_STRIPE_BEGIN,
                   "*POST /v1/payment_intents/pi_7/cancel key=" CHARGE "-cancel ");

    scene_fill(&scene, IDEM_EFFECT_KIND_CAPTURE);
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_BEGIN, "*GET /v1/payment_intents/pi_1 ");
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_ACT,
                   "POST /v1/payment_intents/pi_1/capture key=" CAPTURE
                   " amount_to_capture=10000&metadata%5Bidem_capture%5D=" CAPTURE);
    expect_request(&scene, IDEM_CALL_QUERY, IDEM_STRIPE_BEGIN, "*GET /v1/payment_intents/pi_1 ");

    scene_fill(&scene, IDEM_EFFECT_KIND_CANCEL);
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_BEGIN, "*GET /v1/payment_intents/pi_1 ");
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_ACT,
                   "POST /v1/payment_intents/pi_1/cancel key=" CANCEL " ");
    expect_request(&scene, IDEM_CALL_CLOSE, IDEM_STRIPE_BEGIN, "nothing");

    scene_fill(&scene, IDEM_EFFECT_KIND_REFUND);
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_BEGIN, "*GET /v1/payment_intents/pi_1 ");
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_ACT,
                   "POST /v1/refunds key=" REFUND
                   " amount=10000&payment_intent=pi_1&metadata%5Bidem_id%5D=" REFUND
                   "&metadata%5Bidem_payment%5D=" AUTHORIZE "&metadata%5Border_no%5D=o%2F1");
    expect_request(&scene, IDEM_CALL_QUERY, IDEM_STRIPE_BEGIN,
                   "*GET /v1/refunds?limit=10&payment_intent=pi_1 ");
    scene.effect.reference = IDEM_STR("re_1");
    expect_request(&scene, IDEM_CALL_QUERY, IDEM_STRIPE_BEGIN, "*GET /v1/refunds/re_1 ");
}

static void what_begins_a_send_is_harmless_and_nothing_that_acts_on_money(void **state)
{
    (void)state;
    for (unsigned kind = IDEM_EFFECT_KIND_CHARGE; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        struct scene scene;
        struct idem_buf buf;
        struct idem_wire_request request = { .header_count = 0 };
        scene_fill(&scene, (enum idem_effect_kind)kind);
        bool pays = idem_effect_kind_makes_payment((enum idem_effect_kind)kind);
        for (int acts = 0; acts < 2; acts++) {
            unsigned second = pays ? IDEM_STRIPE_CONFIRM : IDEM_STRIPE_ACT;
            scene_call(&scene, IDEM_CALL_SEND, acts ? second : IDEM_STRIPE_BEGIN);
            idem_buf_init(&buf, scene.text, sizeof(scene.text));
            assert_true(
                idem_stripe_adapter.steps->request(&scene.course, IDEM_STR("sk"), &buf, &request));
            assert_int_equal(request.harmless, !acts);
        }
    }
}

static void what_cannot_be_sent_is_refused_without_a_request(void **state)
{
    (void)state;
    struct scene scene;

    scene_fill(&scene, IDEM_EFFECT_KIND_CHARGE);
    scene.effect.currency = IDEM_STR("UGX");
    scene_encode(&scene);
    expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_BEGIN, "nothing");
    assert_int_equal(scene.course.so_far.outcome, IDEM_OUTCOME_REFUSED_FINAL);
    EXPECT_TEXT(scene.course.so_far.effect_id, CHARGE);
    EXPECT_TEXT(scene.course.so_far.code, "amount_or_currency_not_supported");
    expect_request(&scene, IDEM_CALL_QUERY, IDEM_STRIPE_BEGIN, "nothing"); /* As the send. */
    assert_int_equal(scene.course.so_far.outcome, IDEM_OUTCOME_REFUSED_FINAL);
    EXPECT_TEXT(scene.course.so_far.effect_id, CHARGE);
    expect_request(&scene, IDEM_CALL_CLOSE, IDEM_STRIPE_BEGIN, "nothing");
    assert_int_equal(scene.course.so_far.outcome, IDEM_OUTCOME_UNKNOWN);

    static const char *const unreadable[] = { "", "2\nx", "1 pi/1 x\n", "0 ", "{}" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(unreadable); i++) { /* Another adapter's, or damaged. */
        scene.effect.request = idem_str_from(unreadable[i]);
        expect_request(&scene, IDEM_CALL_SEND, IDEM_STRIPE_BEGIN, "nothing");
        assert_int_equal(scene.course.so_far.outcome, IDEM_OUTCOME_UNKNOWN);
    }
}

static void nothing_is_promised_that_stripe_does_not(void **state)
{
    (void)state;
    const struct idem_adapter_promises *promises = idem_stripe_adapter.promises;

    for (unsigned kind = IDEM_EFFECT_KIND_CHARGE; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        const struct idem_capability *capability = &promises->capability[kind];
        bool pays = idem_effect_kind_makes_payment((enum idem_effect_kind)kind);
        assert_int_equal(capability->dedup_window_us - capability->dedup_margin_us,
                         INT64_C(23) * 3600 * IDEM_US_PER_SECOND);
        assert_int_equal(capability->dedup_window_us, INT64_C(24) * 3600 * IDEM_US_PER_SECOND);
        assert_int_equal(capability->close_is_final, pays);
    }
    assert_int_equal(promises->partial_capture, IDEM_PARTIAL_ONCE);
    assert_false(promises->listing);
    assert_string_equal(idem_stripe_adapter.base_url, "https://api.stripe.com");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_promised_that_stripe_does_not),
        cmocka_unit_test(what_is_stored_are_these_bytes),
        cmocka_unit_test(the_longest_order_fits_the_stored_request),
        cmocka_unit_test(each_step_has_its_request),
        cmocka_unit_test(what_begins_a_send_is_harmless_and_nothing_that_acts_on_money),
        cmocka_unit_test(what_cannot_be_sent_is_refused_without_a_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
