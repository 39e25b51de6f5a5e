/*
 * Stripe's events.
 *
 * Goal: every type in docs/stripe.md means what stands there, about the effect that the metadata or
 * the request's key names; everything else is ignored, UNKNOWN or unreadable, and never a claim
 * about money.
 *
 * Method: a table of types and objects as Stripe renders them (shortened), then one thing wrong at
 * a time.
 */
#include "provider/stripe.h"

#include "lib/test.h"
#include "unit/provider/callback_scene.h"

#define INTENT_BEGIN                                                                        \
    "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"amount\":10000,\"currency\":\"eur\"," \
    "\"created\":1764399000,\"client_secret\":null,"
#define CHARGE_META    "\"metadata\":{\"idem_id\":\"" SCENE_CHARGE "\",\"order_no\":\"o-1\"}"
#define AUTHORIZE_META "\"metadata\":{\"idem_id\":\"" SCENE_AUTHORIZE "\",\"order_no\":\"o-1\"}"
#define CAPTURE_META                               \
    "\"metadata\":{\"idem_id\":\"" SCENE_AUTHORIZE \
    "\","                                          \
    "\"idem_capture\":\"" SCENE_CAPTURE "\",\"order_no\":\"o-1\"}"
#define MONEY(received, capturable) \
    "\"amount_received\":" received ",\"amount_capturable\":" capturable ","
#define AUTO           "\"capture_method\":\"automatic\","
#define BY_HAND        "\"capture_method\":\"manual\","
#define PAID           "\"status\":\"succeeded\"," MONEY("10000", "0")
#define UNPAID(status) "\"status\":\"" status "\"," MONEY("0", "0")
#define HELD           "\"latest_charge\":\"ch_1\",\"last_payment_error\":null,"
#define REASON(word)   "\"cancellation_reason\":\"" word "\","
#define DECLINED                                                                  \
    "\"latest_charge\":\"ch_1\",\"last_payment_error\":{\"type\":\"card_error\"," \
    "\"code\":\"card_declined\",\"decline_code\":\"insufficient_funds\",\"message\":\"No.\"},"
#define END "}"

#define REFUND(status, more)                                                             \
    "{\"id\":\"re_1\",\"object\":\"refund\",\"amount\":2500,\"currency\":\"eur\","       \
    "\"created\":1764399000,\"payment_intent\":\"pi_1\",\"status\":\"" status "\"," more \
    "\"metadata\":{\"idem_id\":\"" SCENE_REFUND "\",\"idem_payment\":\"" SCENE_CHARGE    \
    "\","                                                                                \
    "\"order_no\":\"o-1\"}}"

#define OURS   " ref=pi_1 order=o-1"
#define GIVEN  " ref=re_1 order=o-1 payment=" SCENE_CHARGE
#define BEHIND " event=evt_1 at=1764399990"

struct row {
    const char *type;
    const char *object;
    const char *beside; /* Of the object, in `data`. */
    const char *key;    /* JSON: of the request that caused it. */
    const char *evidence;
};

static const struct row rows[] = {
    { "payment_intent.succeeded", INTENT_BEGIN PAID AUTO CHARGE_META END, "", "null",
      "success " SCENE_CHARGE " 100.00 EUR" OURS BEHIND },
    { "payment_intent.succeeded", INTENT_BEGIN PAID BY_HAND CAPTURE_META END, "", "null",
      "success " SCENE_CAPTURE " 100.00 EUR" OURS " payment=" SCENE_AUTHORIZE BEHIND },
    { "payment_intent.succeeded", /* Captured in part, and by somebody else. */
      INTENT_BEGIN "\"status\":\"succeeded\"," MONEY("4000", "0") BY_HAND AUTHORIZE_META END, "",
      "null", "success " SCENE_AUTHORIZE " 100.00 EUR" OURS BEHIND },
    { "payment_intent.succeeded", INTENT_BEGIN UNPAID("processing") AUTO CHARGE_META END, "",
      "null", "no usable answer " SCENE_CHARGE OURS BEHIND },
    { "payment_intent.succeeded", INTENT_BEGIN PAID BY_HAND CHARGE_META END, "", "null",
      "no usable answer " SCENE_CHARGE OURS BEHIND },
    { "payment_intent.succeeded", INTENT_BEGIN PAID AUTO AUTHORIZE_META END, "", "null",
      "no usable answer " SCENE_AUTHORIZE OURS BEHIND },

    { "payment_intent.amount_capturable_updated",
      INTENT_BEGIN "\"status\":\"requires_capture\"," MONEY("0", "10000")
          BY_HAND AUTHORIZE_META END,
      "", "null", "success " SCENE_AUTHORIZE " 100.00 EUR" OURS BEHIND },
    { "payment_intent.amount_capturable_updated", INTENT_BEGIN PAID BY_HAND AUTHORIZE_META END, "",
      "null", "no usable answer " SCENE_AUTHORIZE OURS BEHIND },

    { "payment_intent.processing", INTENT_BEGIN UNPAID("processing") AUTO CHARGE_META END, "",
      "null", "processing " SCENE_CHARGE OURS BEHIND },
    { "payment_intent.processing", INTENT_BEGIN UNPAID("odd") AUTO CHARGE_META END, "", "null",
      "no usable answer " SCENE_CHARGE OURS BEHIND },

    /* It can still be paid. */
    { "payment_intent.payment_failed",
      INTENT_BEGIN UNPAID("requires_payment_method") DECLINED AUTO CHARGE_META END, "", "null",
      "no usable answer " SCENE_CHARGE OURS " code=insufficient_funds message=No." BEHIND },
    { "payment_intent.payment_failed",
      INTENT_BEGIN UNPAID(
          "requires_payment_method") "\"last_payment_error\":{\"code\":\"card_declined\"}," AUTO
          CHARGE_META END,
      "", "null", "no usable answer " SCENE_CHARGE OURS " code=card_declined" BEHIND },

    { "payment_intent.canceled",
      INTENT_BEGIN UNPAID("canceled") DECLINED REASON("abandoned") AUTO CHARGE_META END, "",
      "\"" SCENE_CHARGE "-cancel\"", "closed, unpaid " SCENE_CHARGE OURS BEHIND },
    { "payment_intent.canceled",
      INTENT_BEGIN UNPAID("canceled") DECLINED REASON("automatic") BY_HAND AUTHORIZE_META END, "",
      "null", "closed, unpaid " SCENE_AUTHORIZE OURS BEHIND },
    { "payment_intent.canceled", INTENT_BEGIN UNPAID("canceled") BY_HAND AUTHORIZE_META END, "",
      "null", "closed, unpaid " SCENE_AUTHORIZE OURS BEHIND },
    { "payment_intent.canceled",
      INTENT_BEGIN UNPAID("canceled") HELD REASON("automatic") BY_HAND AUTHORIZE_META END, "",
      "null", "reversed " SCENE_AUTHORIZE " 100.00 EUR" OURS " code=automatic" BEHIND },
    { "payment_intent.canceled",
      INTENT_BEGIN UNPAID("canceled") HELD REASON("expired") BY_HAND AUTHORIZE_META END, "", "null",
      "reversed " SCENE_AUTHORIZE " 100.00 EUR" OURS " code=expired" BEHIND },
    { "payment_intent.canceled", /* By a person, or by us without the key. */
      INTENT_BEGIN UNPAID("canceled") HELD REASON("requested_by_customer")
          BY_HAND AUTHORIZE_META END,
      "", "null", "no usable answer " SCENE_AUTHORIZE OURS BEHIND },
    { "payment_intent.canceled", INTENT_BEGIN UNPAID("canceled") HELD BY_HAND AUTHORIZE_META END,
      "", "\"" SCENE_CANCEL "\"",
      "success " SCENE_CANCEL " 100.00 EUR" OURS " payment=" SCENE_AUTHORIZE BEHIND },
    { "payment_intent.canceled", /* Canceled, and yet it was paid. */
      INTENT_BEGIN "\"status\":\"canceled\"," MONEY("1", "0") AUTO CHARGE_META END, "", "null",
      "no usable answer " SCENE_CHARGE OURS BEHIND },

    { "refund.created", REFUND("pending", ""), "", "null",
      "processing " SCENE_REFUND GIVEN BEHIND },
    { "refund.created", REFUND("succeeded", ""), "", "null",
      "success " SCENE_REFUND " 25.00 EUR" GIVEN BEHIND },
    { "refund.updated", REFUND("succeeded", ""),
      ",\"previous_attributes\":{\"status\":\"pending\"}", "null",
      "success " SCENE_REFUND " 25.00 EUR" GIVEN BEHIND },
    { "refund.updated", REFUND("requires_action", ""), "", "null",
      "processing " SCENE_REFUND GIVEN BEHIND },
    { "refund.updated", REFUND("canceled", ""), "", "null", "refused " SCENE_REFUND GIVEN BEHIND },
    { "refund.updated", REFUND("odd", ""), "", "null",
      "no usable answer " SCENE_REFUND GIVEN BEHIND },
    { "charge.refund.updated", REFUND("failed", "\"failure_reason\":\"expired_or_canceled_card\","),
      ",\"previous_attributes\":{\"status\":\"succeeded\"}", "null",
      "reversed " SCENE_REFUND " 25.00 EUR" GIVEN " code=expired_or_canceled_card" BEHIND },
    { "refund.failed", REFUND("failed", ""), "", "null",
      "reversed " SCENE_REFUND " 25.00 EUR" GIVEN BEHIND },
    { "refund.updated", REFUND("failed", ""), ",\"previous_attributes\":{\"status\":\"pending\"}",
      "null", "refused " SCENE_REFUND GIVEN BEHIND },
};

/* An event; `more` stands among its members. */
static void event_print(const struct row *row, const char *more, struct idem_buf *buf)
{
    buf->len = 0;
    idem_buf_printf(buf,
                    "{\"id\":\"evt_1\",\"object\":\"event\",\"api_version\":\"2026-10-28.endive\","
                    "\"created\":1764399990,\"livemode\":false,\"pending_webhooks\":1,%s"
                    "\"request\":{\"id\":\"req_1\",\"idempotency_key\":%s},\"type\":\"%s\","
                    "\"data\":{\"object\":%s%s}}",
                    more, row->key, row->type, row->object, row->beside);
    idem_buf_add_char(buf, '\0');
    assert_false(buf->full);
}

static void every_type_says_what_the_table_says(void **state)
{
    (void)state;
    char body_memory[4096];
    struct idem_buf body;
    struct callback_scene scene;
    callback_scene_open(&scene, &idem_stripe_adapter, "Stripe-Signature");
    idem_buf_init(&body, body_memory, sizeof(body_memory));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        char memory[512];
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        event_print(&rows[i], "", &body);
        enum idem_callback_verdict verdict = callback_scene_tell(&scene, body.data);
        if (verdict != IDEM_CALLBACK_OK) {
            print_error("%s: got %s\n", body.data, idem_callback_verdict_name(verdict));
            fail();
        }
        callback_scene_describe(&scene, &buf);
        if (!idem_str_equal(idem_buf_str(&buf), idem_str_from(rows[i].evidence))) {
            print_error("row %zu, %s\n", i, rows[i].type);
        }
        EXPECT_TEXT(idem_buf_str(&buf), rows[i].evidence);
    }
    callback_scene_close(&scene);
}

/* Other types, and objects that are not ours, of whatever form. */
static void what_is_not_about_an_effect_is_ignored(void **state)
{
    (void)state;
    static const struct row others[] = {
        { "charge.refunded", "{\"object\":\"charge\"}", "", "null", NULL },
        { "payment_intent.created", INTENT_BEGIN PAID AUTO CHARGE_META END, "", "null", NULL },
        { "payment_intent.succeeded.v2", INTENT_BEGIN PAID AUTO CHARGE_META END, "", "null", NULL },
        { "customer.created", "7", "", "null", NULL },
        { "payment_intent.succeeded", "{\"object\":\"payment_intent\",\"metadata\":{}}", "", "null",
          NULL },
        { "payment_intent.succeeded", "{\"currency\":\"xxx\",\"metadata\":null}", "", "null",
          NULL },
        { "payment_intent.succeeded", "{\"metadata\":{\"idem_id\":\"order-7\"}}", "", "null",
          NULL },
        { "payment_intent.succeeded", "{\"metadata\":{\"idem_id\":7}}", "", "null", NULL },
        { "payment_intent.succeeded", REFUND("succeeded", ""), "", "null", NULL },
        { "refund.created", INTENT_BEGIN PAID AUTO CHARGE_META END, "", "null", NULL },
        { "payment_intent.succeeded", "7", "", "null", NULL },
    };
    char body_memory[4096];
    struct idem_buf body;
    struct callback_scene scene;
    callback_scene_open(&scene, &idem_stripe_adapter, "Stripe-Signature");
    idem_buf_init(&body, body_memory, sizeof(body_memory));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(others); i++) {
        event_print(&others[i], "", &body);
        enum idem_callback_verdict verdict = callback_scene_tell(&scene, body.data);
        if (verdict != IDEM_CALLBACK_IGNORED) {
            print_error("%s: got %s\n", body.data, idem_callback_verdict_name(verdict));
            fail();
        }
    }
    assert_int_equal(callback_scene_tell(&scene,
                                         "{\"id\":\"evt_1\",\"object\":\"v2.core.event\","
                                         "\"type\":\"payment_intent.succeeded\"}"),
                     IDEM_CALLBACK_IGNORED);
    callback_scene_close(&scene);
}

/* Five bytes in the place of "false". */
static void mode_set(char *body, const char *mode)
{
    char *place = strstr(body, "\"livemode\":") + strlen("\"livemode\":");
    for (size_t i = 0; mode[i] != '\0'; i++) {
        place[i] = mode[i];
    }
}

static void another_mode_or_account_is_other_money(void **state)
{
    (void)state;
    static const struct {
        const char *credential;
        const char *account; /* A member, or nothing. */
        enum idem_callback_verdict verdict;
    } places[] = {
        /* The event is of test mode. */
        { "sk_test_1", "", IDEM_CALLBACK_OK },
        { "rk_test_1", "", IDEM_CALLBACK_OK },
        { "sk_live_1", "", IDEM_CALLBACK_IGNORED },
        { "rk_live_1", "", IDEM_CALLBACK_IGNORED },
        { "mk_1", "", IDEM_CALLBACK_OK }, /* It does not say. */
        { "sk_test_1", "\"account\":\"acct_1\",", IDEM_CALLBACK_OK },
        { "sk_test_1", "\"account\":null,", IDEM_CALLBACK_OK },
        { "sk_test_1", "\"account\":\"acct_2\",", IDEM_CALLBACK_IGNORED },
        { "sk_test_1", "\"account\":2,", IDEM_CALLBACK_UNREADABLE },
    };
    char body_memory[4096];
    struct idem_buf body;
    struct callback_scene scene;
    callback_scene_open(&scene, &idem_stripe_adapter, "Stripe-Signature");
    idem_buf_init(&body, body_memory, sizeof(body_memory));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(places); i++) {
        scene.entry.credential = places[i].credential;
        event_print(&rows[0], places[i].account, &body);
        assert_int_equal(callback_scene_tell(&scene, body.data), places[i].verdict);
    }
    event_print(&rows[0], "", &body);
    mode_set(body.data, "true ");
    assert_int_equal(callback_scene_tell(&scene, body.data), IDEM_CALLBACK_IGNORED);
    scene.entry.credential = "sk_live_1";
    assert_int_equal(callback_scene_tell(&scene, body.data), IDEM_CALLBACK_OK);
    mode_set(body.data, "null ");
    assert_int_equal(callback_scene_tell(&scene, body.data), IDEM_CALLBACK_UNREADABLE);
    callback_scene_close(&scene);
}

/* What is ours must be of Stripe's form. */
static void what_is_odd_is_unreadable(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "",
        "[]",
        "{}",
        "{\"id\":\"evt_1\",\"object\":\"event\"}",
        "{\"id\":\"\",\"object\":\"event\",\"type\":\"x\",\"created\":1,\"livemode\":false}",
        "{\"id\":7,\"object\":\"event\",\"type\":\"x\",\"created\":1,\"livemode\":false}",
        "{\"id\":\"evt_1\",\"object\":\"event\",\"type\":\"x\",\"created\":\"1\"}",
        "{\"id\":\"evt_1\",\"object\":\"event\",\"type\":\"x\",\"created\":9223372036854775807}",
        "{\"id\":\"e\",\"object\":\"event\",\"type\":\"x\",\"request\":{\"idempotency_key\":1}}",
        "{\"id\":\"evt_1\",\"object\":\"event\",\"type\":\"x\",\"created\":1,\"created\":1}",
    };
    static const struct row odd[] = {
        { "payment_intent.succeeded", "{" CHARGE_META "}", "", "null", NULL },
        { "payment_intent.succeeded",
          INTENT_BEGIN "\"status\":\"succeeded\"," MONEY("\"1\"", "0") AUTO CHARGE_META END, "",
          "null", NULL },
        { "payment_intent.succeeded", INTENT_BEGIN PAID AUTO PAID CHARGE_META END, "", "null",
          NULL },
        { "refund.created", "{\"metadata\":{\"idem_id\":\"" SCENE_REFUND "\"}}", "", "null", NULL },
    };
    char body_memory[4096];
    struct idem_buf body;
    struct callback_scene scene;
    callback_scene_open(&scene, &idem_stripe_adapter, "Stripe-Signature");
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(bodies); i++) {
        if (callback_scene_tell(&scene, bodies[i]) != IDEM_CALLBACK_UNREADABLE) {
            print_error("%s\n", bodies[i]);
            fail();
        }
    }
    idem_buf_init(&body, body_memory, sizeof(body_memory));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(odd); i++) {
        event_print(&odd[i], "", &body);
        assert_int_equal(callback_scene_tell(&scene, body.data), IDEM_CALLBACK_UNREADABLE);
    }
    callback_scene_close(&scene);
}

static void a_signature_comes_before_everything(void **state)
{
    (void)state;
    char body_memory[4096];
    struct idem_buf body;
    struct callback_scene scene;
    callback_scene_open(&scene, &idem_stripe_adapter, "Stripe-Signature");
    idem_buf_init(&body, body_memory, sizeof(body_memory));
    event_print(&rows[0], "", &body);
    struct idem_str text = idem_str_from(body.data);
    callback_scene_sign(&scene, "secret-two", SCENE_NOW_S, text);
    assert_int_equal(callback_scene_read(&scene, text), IDEM_CALLBACK_FORGED);
    callback_scene_sign(&scene, "secret-one", SCENE_NOW_S - 301, text);
    assert_int_equal(callback_scene_read(&scene, text), IDEM_CALLBACK_STALE);
    callback_scene_sign(&scene, "secret-one", SCENE_NOW_S + 301, text);
    assert_int_equal(callback_scene_read(&scene, text), IDEM_CALLBACK_FUTURE);
    callback_scene_sign(&scene, "secret-one", SCENE_NOW_S, text);
    scene.field_said = "Bridge-Signature";
    assert_int_equal(callback_scene_read(&scene, text), IDEM_CALLBACK_FORGED);
    callback_scene_close(&scene);
}

/* The last of the vectors is an event of ours. */
static void what_stripes_library_signs_is_read(void **state)
{
    static const struct {
        const char *secret;
        int64_t signed_s;
        const char *signature;
        const char *body;
    } vectors[] = {
#define VECTOR(the_secret, the_time, the_signature, the_body) \
    { (the_secret), (the_time), (the_signature), (the_body) },
#include "stripe_vectors.def"
#undef VECTOR
    };
    size_t last = IDEM_ARRAY_COUNT(vectors) - 1;
    char memory[512];
    struct idem_buf buf;
    struct callback_scene scene;

    (void)state;
    callback_scene_open(&scene, &idem_stripe_adapter, "Stripe-Signature");
    assert_int_equal(vectors[last].signed_s, SCENE_NOW_S);
    scene.secrets.secrets[0] = idem_str_from(vectors[last].secret);
    (void)snprintf(scene.field_memory, sizeof(scene.field_memory), "%s", vectors[last].signature);
    assert_int_equal(callback_scene_read(&scene, idem_str_from(vectors[last].body)),
                     IDEM_CALLBACK_OK);
    idem_buf_init(&buf, memory, sizeof(memory));
    callback_scene_describe(&scene, &buf);
    EXPECT_TEXT(idem_buf_str(&buf), "success " SCENE_CHARGE
                                    " 100.00 EUR ref=pi_1 "
                                    "order=o-\xe8\x8c\xb6 event=evt_5 at=1764399990");
    callback_scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_says_what_the_table_says),
        cmocka_unit_test(what_is_not_about_an_effect_is_ignored),
        cmocka_unit_test(another_mode_or_account_is_other_money),
        cmocka_unit_test(what_is_odd_is_unreadable),
        cmocka_unit_test(a_signature_comes_before_everything),
        cmocka_unit_test(what_stripes_library_signs_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
