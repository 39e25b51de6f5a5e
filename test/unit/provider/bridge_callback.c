/*
 * Callbacks of the bridge protocol.
 *
 * Goal: what is signed well and in time is read as docs/bridge.md says, and nothing else is
 * believed: not before its signature, not with one member wrong, not with a byte changed.
 *
 * Method: a table of bodies and what each is; then a good event with every byte changed, signed
 * before and signed after the change.
 */
#include "provider/bridge.h"

#include "lib/test.h"
#include "unit/provider/callback_scene.h"

#define ID SCENE_CHARGE

#define GOOD                                              \
    "{\"event\":\"ev-1\",\"id\":\"" ID                    \
    "\",\"outcome\":\"succeeded\",\"amount\":\"100.00\"," \
    "\"currency\":\"CNY\"}"

/* A body that begins with an event and an id, and goes on like this. */
#define EVENT(rest) "{\"event\":\"ev-1\",\"id\":\"" ID "\"" rest "}"

#define AT_SIGNING " event=ev-1 at=1764400000"

static const struct {
    const char *body;
    const char *evidence; /* NULL: there is none, but `verdict`. */
    enum idem_callback_verdict verdict;
} rows[] = {
    { GOOD, "success " ID " 100.00 CNY" AT_SIGNING, IDEM_CALLBACK_OK },
    { EVENT(",\"outcome\":\"succeeded\",\"amount\":\"7\",\"currency\":\"JPY\","
            "\"order_no\":\"o-1\",\"reference\":\"p-7\",\"account\":\"acct_2\",\"code\":\"c\","
            "\"message\":\"m \\u8336\",\"happened\":\"2025-11-29T07:06:40+08:00\""),
      "success " ID " 7 JPY ref=p-7 order=o-1 account=acct_2 code=c message=m \xe8\x8c\xb6 "
      "event=ev-1 at=1764371200",
      IDEM_CALLBACK_OK },
    { EVENT(",\"outcome\":\"reversed\",\"amount\":\"0.01\",\"currency\":\"EUR\""),
      "reversed " ID " 0.01 EUR" AT_SIGNING, IDEM_CALLBACK_OK },
    { EVENT(",\"outcome\":\"refused\",\"code\":\"declined\""),
      "refused " ID " code=declined" AT_SIGNING, IDEM_CALLBACK_OK },
    { EVENT(",\"outcome\":\"closed\""), "closed, unpaid " ID AT_SIGNING, IDEM_CALLBACK_OK },
    { EVENT(",\"outcome\":\"processing\""), "processing " ID AT_SIGNING, IDEM_CALLBACK_OK },
    { EVENT(",\"outcome\":\"settling\""), "no usable answer " ID AT_SIGNING, IDEM_CALLBACK_OK },
    { EVENT(",\"outcome\":\"Succeeded\""), "no usable answer " ID AT_SIGNING, IDEM_CALLBACK_OK },
    { EVENT(",\"outcome\":\"closed\",\"account\":\"acct_1\",\"new\":[1,{}],\"code\":null"),
      "closed, unpaid " ID AT_SIGNING, IDEM_CALLBACK_OK },

    /* What moves money says how much. */
    { EVENT(",\"outcome\":\"succeeded\""), NULL, IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":\"succeeded\",\"amount\":\"1.00\""), NULL, IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":\"succeeded\",\"currency\":\"CNY\""), NULL, IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":\"reversed\",\"currency\":\"CNY\""), NULL, IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":\"succeeded\",\"amount\":\"0.00\",\"currency\":\"CNY\""), NULL,
      IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":\"succeeded\",\"amount\":100,\"currency\":\"CNY\""), NULL,
      IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":\"succeeded\",\"amount\":\"100\",\"currency\":\"CNY\""), NULL,
      IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":\"closed\",\"amount\":\"1.0\",\"currency\":\"CNY\""), NULL,
      IDEM_CALLBACK_UNREADABLE },

    { EVENT(""), NULL, IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":null"), NULL, IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":\"\""), NULL, IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":true"), NULL, IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":\"closed\",\"outcome\":\"closed\""), NULL, IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":\"closed\",\"order_no\":7"), NULL, IDEM_CALLBACK_UNREADABLE },
    { EVENT(",\"outcome\":\"closed\",\"happened\":\"yesterday\""), NULL, IDEM_CALLBACK_UNREADABLE },
    { "{\"id\":\"" ID "\",\"outcome\":\"closed\"}", NULL, IDEM_CALLBACK_UNREADABLE },
    { "{\"event\":\"\",\"id\":\"" ID "\",\"outcome\":\"closed\"}", NULL, IDEM_CALLBACK_UNREADABLE },
    { "{\"event\":\"ev-1\",\"outcome\":\"closed\"}", NULL, IDEM_CALLBACK_UNREADABLE },
    { "[" GOOD "]", NULL, IDEM_CALLBACK_UNREADABLE },
    { GOOD " x", NULL, IDEM_CALLBACK_UNREADABLE },
    { "\xef\xbb\xbf" GOOD, NULL, IDEM_CALLBACK_UNREADABLE },
    { "", NULL, IDEM_CALLBACK_UNREADABLE },

    /* Nobody's business. */
    { "{\"event\":\"ev-1\",\"id\":\"order-7\",\"outcome\":\"closed\"}", NULL,
      IDEM_CALLBACK_IGNORED },
    { "{\"event\":\"ev-1\",\"id\":\"x0123456789abcdefghjkmnpqrs\",\"outcome\":\"closed\"}", NULL,
      IDEM_CALLBACK_IGNORED },
};

static void events_are_read_by_the_table(void **state)
{
    (void)state;
    struct callback_scene scene;
    callback_scene_open(&scene, &idem_bridge_adapter, "Bridge-Signature");
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        char memory[512];
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        enum idem_callback_verdict verdict = callback_scene_tell(&scene, rows[i].body);
        if (verdict != rows[i].verdict) {
            print_error("%s: expected %s, got %s\n", rows[i].body,
                        idem_callback_verdict_name(rows[i].verdict),
                        idem_callback_verdict_name(verdict));
            fail();
        }
        if (rows[i].evidence != NULL) {
            callback_scene_describe(&scene, &buf);
            EXPECT_TEXT(idem_buf_str(&buf), rows[i].evidence);
        }
    }
    callback_scene_close(&scene);
}

/* Signed over time and body, under one of the secrets, near our time; judged in this order. */
static void a_signature_comes_before_everything(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        const char *secret;
        int64_t later_s;
        const char *body;
        enum idem_callback_verdict verdict;
    } signs[] = {
        { "Bridge-Signature", "secret-one", 0, GOOD, IDEM_CALLBACK_OK },
        { "bridge-signature", "secret-one", 300, GOOD, IDEM_CALLBACK_OK },
        { "Bridge-Signature", "secret-one", -300, GOOD, IDEM_CALLBACK_OK },
        { "Bridge-Signature", "secret-one", -301, GOOD, IDEM_CALLBACK_STALE },
        { "Bridge-Signature", "secret-one", 301, GOOD, IDEM_CALLBACK_FUTURE },
        { "Bridge-Signature", "secret-one", -301, "{", IDEM_CALLBACK_STALE },
        { "Bridge-Signature", "secret-one", 0, "{", IDEM_CALLBACK_UNREADABLE },
        { "Bridge-Signature", "secret-two", 0, GOOD, IDEM_CALLBACK_OK },
        { "Bridge-Signature", "secret-three", 0, GOOD, IDEM_CALLBACK_FORGED },
        { "Bridge-Signature", "secret-three", 999, "{", IDEM_CALLBACK_FORGED },
        { "Bridge-Signature", "", 0, GOOD, IDEM_CALLBACK_FORGED },
        { "Stripe-Signature", "secret-one", 0, GOOD, IDEM_CALLBACK_FORGED },
    };
    struct callback_scene scene;
    callback_scene_open(&scene, &idem_bridge_adapter, "Bridge-Signature");
    scene.secrets.secrets[1] = IDEM_STR("secret-two"); /* While it is being changed. */
    scene.secrets.count = 2;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(signs); i++) {
        struct idem_str body = idem_str_from(signs[i].body);
        scene.field_said = signs[i].field;
        callback_scene_sign(&scene, signs[i].secret, SCENE_NOW_S + signs[i].later_s, body);
        enum idem_callback_verdict verdict = callback_scene_read(&scene, body);
        if (verdict != signs[i].verdict) {
            print_error("row %zu: got %s\n", i, idem_callback_verdict_name(verdict));
            fail();
        }
    }
    scene.secrets.count = 1; /* It is changed. */
    scene.field_said = scene.field_name;
    callback_scene_sign(&scene, "secret-two", SCENE_NOW_S, IDEM_STR(GOOD));
    assert_int_equal(callback_scene_read(&scene, IDEM_STR(GOOD)), IDEM_CALLBACK_FORGED);
    callback_scene_close(&scene);
}

static void every_byte_is_signed(void **state)
{
    (void)state;
    char body[] = GOOD;
    struct idem_str text = { .data = body, .len = sizeof(body) - 1 };
    struct callback_scene scene;
    callback_scene_open(&scene, &idem_bridge_adapter, "Bridge-Signature");
    callback_scene_sign(&scene, "secret-one", SCENE_NOW_S, text);
    for (size_t i = 0; i < text.len; i++) {
        body[i] = (char)(body[i] ^ 1);
        assert_int_equal(callback_scene_read(&scene, text), IDEM_CALLBACK_FORGED);
        body[i] = (char)(body[i] ^ 1);
        assert_int_equal(callback_scene_read(&scene, idem_str_slice(text, 0, i)),
                         IDEM_CALLBACK_FORGED);
    }
    callback_scene_close(&scene);
}

/* A success names an amount and a currency, and everything an effect of ours and an event. */
static void expect_whole(const struct idem_evidence *evidence)
{
    bool moved = evidence->outcome == IDEM_OUTCOME_SUCCESS;
    assert_true(moved || evidence->outcome == IDEM_OUTCOME_UNKNOWN);
    assert_true(!moved || (evidence->amount_minor > 0 && evidence->currency.len == 3));
    assert_int_equal(evidence->effect_id.len, IDEM_EFFECT_ID_LEN);
    assert_true(evidence->event_id.len > 0);
}

/* Whoever may sign may say anything, but nothing that is half read. */
static void damage_is_seen_or_is_another_word(void **state)
{
    (void)state;
    char body[] = GOOD;
    struct idem_str text = { .data = body, .len = sizeof(body) - 1 };
    struct callback_scene scene;
    size_t read = 0;
    callback_scene_open(&scene, &idem_bridge_adapter, "Bridge-Signature");
    for (size_t i = 0; i < text.len * 256; i++) {
        char *byte = &body[i / 256];
        char before = *byte;
        *byte = (char)(i % 256);
        callback_scene_sign(&scene, "secret-one", SCENE_NOW_S, text);
        if (callback_scene_read(&scene, text) == IDEM_CALLBACK_OK) {
            expect_whole(&scene.event.evidence);
            read += 1;
        }
        *byte = before;
    }
    assert_true(read > 1000); /* Other ids, amounts, names. */
    callback_scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_read_by_the_table),
        cmocka_unit_test(a_signature_comes_before_everything),
        cmocka_unit_test(every_byte_is_signed),
        cmocka_unit_test(damage_is_seen_or_is_another_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
