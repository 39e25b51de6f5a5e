/*
 * The reader of callbacks: from an entry's name to evidence.
 *
 * Goal: an event is judged by the adapter and the secrets of the entry it came to and by no other;
 * what an adapter reads has a bound; each provider is answered in its own words.
 *
 * Method: entries with the real bridge and with an adapter that says what a test wants.
 */
#include "provider/callback.h"

#include "provider/bridge.h"
#include "provider/stripe.h"

#include "lib/test.h"
#include "unit/provider/callback_scene.h"

#define LONG_MAX_TEXT 600

/* What the adapter of these tests says. */
static enum idem_callback_verdict said;
static struct idem_evidence said_evidence;

static enum idem_callback_verdict said_verify(const struct idem_callback_in *in,
                                              const struct idem_callback_place *place,
                                              struct idem_buf *buf,
                                              struct idem_evidence *ret_evidence)
{
    (void)in;
    EXPECT_TEXT(place->account, "acct_1");
    EXPECT_TEXT(place->credential, "sk_test_1");
    assert_int_equal(place->secret_count, 1);
    assert_int_equal(buf->len, 0);
    *ret_evidence = said_evidence;
    return said;
}

/* As Alipay and WeChat Pay want to hear it: a word, or nothing. */
static const struct idem_adapter_callbacks said_callbacks = {
    .verify = said_verify,
    .replies = {
        [IDEM_CALLBACK_TAKEN] = { 200, "text/plain", "success" },
        [IDEM_CALLBACK_REFUSED] = { 401, "application/json", "{\"code\":\"FAIL\"}" },
        [IDEM_CALLBACK_LATER] = { 204, NULL, NULL },
    },
};

static const struct idem_adapter said_adapter = { .name = "said", .callbacks = &said_callbacks };

static struct idem_evidence short_evidence(void)
{
    return (struct idem_evidence){
        .outcome = IDEM_OUTCOME_SUCCESS,
        .effect_id = IDEM_STR(SCENE_REFUND),
        .payment_effect_id = IDEM_STR(SCENE_CHARGE),
        .amount_minor = 100,
        .currency = IDEM_STR("EUR"),
        .event_id = IDEM_STR("ev-1"),
        .happened_us = 7,
    };
}

static void an_entry_that_does_not_listen_is_none(void **state)
{
    (void)state;
    static const struct idem_adapter silent = { .name = "silent" };
    struct callback_scene scene;
    said = IDEM_CALLBACK_IGNORED;
    callback_scene_open(&scene, &said_adapter, "Sig");
    assert_int_equal(callback_scene_tell(&scene, "x"), IDEM_CALLBACK_IGNORED);
    assert_ptr_equal(scene.event.replies, said_callbacks.replies);

    scene.secrets.count = 0; /* No secret: anybody could speak. */
    assert_int_equal(callback_scene_tell(&scene, "x"), IDEM_CALLBACK_NO_ENTRY);
    assert_null(scene.event.replies);
    scene.secrets.count = 1;
    scene.entry.callback_secrets = NULL;
    assert_int_equal(callback_scene_tell(&scene, "x"), IDEM_CALLBACK_NO_ENTRY);
    scene.entry.callback_secrets = &scene.secrets;
    scene.entry.adapter = &silent;
    assert_int_equal(callback_scene_tell(&scene, "x"), IDEM_CALLBACK_NO_ENTRY);
    scene.entry.adapter = &said_adapter;

    const struct idem_callback_in in = { .body = IDEM_STR("x") };
    scene.reader->read(scene.reader, IDEM_STR("e-2"), &in, &scene.event);
    assert_int_equal(scene.event.verdict, IDEM_CALLBACK_NO_ENTRY);
    scene.reader->read(scene.reader, IDEM_STR(""), &in, &scene.event);
    assert_int_equal(scene.event.verdict, IDEM_CALLBACK_NO_ENTRY);
    callback_scene_close(&scene);
}

static void evidence_is_the_entrys_and_owns_its_text(void **state)
{
    (void)state;
    char memory[512];
    char message[] = "said once";
    struct idem_buf buf;
    struct idem_scope payment_scope;
    struct callback_scene scene;

    callback_scene_open(&scene, &said_adapter, "Sig");
    said = IDEM_CALLBACK_OK;
    said_evidence = short_evidence();
    said_evidence.message = idem_str_from(message);
    assert_int_equal(callback_scene_tell(&scene, "x"), IDEM_CALLBACK_OK);
    memset(message, 'x', sizeof(message) - 1);
    idem_buf_init(&buf, memory, sizeof(memory));
    callback_scene_describe(&scene, &buf);
    EXPECT_TEXT(idem_buf_str(&buf), "success " SCENE_REFUND " 1.00 EUR payment=" SCENE_CHARGE
                                    " message=said once event=ev-1 at=0");
    EXPECT_TEXT(scene.event.evidence.account, "acct_1");
    assert_true(idem_effect_id_scope(IDEM_STR(SCENE_CHARGE), &payment_scope));
    assert_memory_equal(&scene.event.evidence.payment_scope, &payment_scope, sizeof(payment_scope));

    said_evidence.account = IDEM_STR("acct_2"); /* The core will see that it is another. */
    said_evidence.payment_effect_id = IDEM_STR("c-7");
    assert_int_equal(callback_scene_tell(&scene, "x"), IDEM_CALLBACK_OK);
    EXPECT_TEXT(scene.event.evidence.account, "acct_2");
    payment_scope = (struct idem_scope){ { 0 } };
    assert_memory_equal(&scene.event.evidence.payment_scope, &payment_scope, sizeof(payment_scope));
    callback_scene_close(&scene);
}

static void what_is_too_long_is_unreadable_or_cut(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        size_t max;
        bool is_cut;
    } texts[] = {
        { offsetof(struct idem_evidence, event_id), IDEM_EVENT_ID_MAX, false },
        { offsetof(struct idem_evidence, currency), 3, false },
        { offsetof(struct idem_evidence, reference), IDEM_REFERENCE_MAX, false },
        { offsetof(struct idem_evidence, order_no), IDEM_ORDER_NO_MAX, false },
        { offsetof(struct idem_evidence, account), IDEM_ACCOUNT_MAX, false },
        { offsetof(struct idem_evidence, payment_effect_id), IDEM_EFFECT_ID_LEN, false },
        { offsetof(struct idem_evidence, code), IDEM_CODE_MAX, true },
        { offsetof(struct idem_evidence, message), IDEM_MESSAGE_MAX, true },
    };
    char filler[LONG_MAX_TEXT];
    struct callback_scene scene;

    callback_scene_open(&scene, &said_adapter, "Sig");
    said = IDEM_CALLBACK_OK;
    memset(filler, 'x', sizeof(filler));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(texts); i++) {
        struct idem_str *said_text = (void *)((char *)&said_evidence + texts[i].offset);
        const struct idem_str *kept = (void *)((char *)&scene.event.evidence + texts[i].offset);
        said_evidence = short_evidence();
        *said_text = (struct idem_str){ .data = filler, .len = texts[i].max };
        assert_int_equal(callback_scene_tell(&scene, "x"), IDEM_CALLBACK_OK);
        assert_int_equal(kept->len, texts[i].max);
        said_text->len += 1;
        enum idem_callback_verdict verdict = callback_scene_tell(&scene, "x");
        assert_int_equal(verdict, texts[i].is_cut ? IDEM_CALLBACK_OK : IDEM_CALLBACK_UNREADABLE);
        assert_true(!texts[i].is_cut || kept->len == texts[i].max);
    }
    said_evidence = short_evidence();
    said_evidence.event_id = IDEM_STR(""); /* Then nobody could know it again. */
    assert_int_equal(callback_scene_tell(&scene, "x"), IDEM_CALLBACK_UNREADABLE);
    callback_scene_close(&scene);
}

static void a_body_beyond_the_bound_is_unreadable(void **state)
{
    (void)state;
    static char body[IDEM_CALLBACK_BODY_MAX + 200];
    struct callback_scene scene;
    struct idem_buf buf;

    callback_scene_open(&scene, &idem_bridge_adapter, "Bridge-Signature");
    idem_buf_init(&buf, body, sizeof(body));
    idem_buf_add(&buf, IDEM_STR("{\"event\":\"e\",\"id\":\"" SCENE_CHARGE
                                "\",\"outcome\":\"closed\",\"message\":\""));
    while (buf.len < IDEM_CALLBACK_BODY_MAX) {
        idem_buf_add_char(&buf, 'm');
    }
    idem_buf_add(&buf, IDEM_STR("\"}"));
    callback_scene_sign(&scene, "secret-one", SCENE_NOW_S, idem_buf_str(&buf));
    assert_int_equal(callback_scene_read(&scene, idem_buf_str(&buf)), IDEM_CALLBACK_OK);
    buf.len -= 2;
    idem_buf_add(&buf, IDEM_STR("mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm\"}"));
    callback_scene_sign(&scene, "secret-one", SCENE_NOW_S, idem_buf_str(&buf));
    assert_int_equal(callback_scene_read(&scene, idem_buf_str(&buf)), IDEM_CALLBACK_UNREADABLE);
    callback_scene_close(&scene);
}

static void every_adapter_has_its_own_words(void **state)
{
    (void)state;
    const struct idem_adapter *const adapters[] = { &idem_bridge_adapter, &idem_stripe_adapter };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(adapters); i++) {
        const struct idem_callback_reply *replies = adapters[i]->callbacks->replies;
        assert_int_equal(replies[IDEM_CALLBACK_TAKEN].status, 200);
        assert_string_equal(replies[IDEM_CALLBACK_TAKEN].body, "{\"received\":true}");
        assert_int_equal(replies[IDEM_CALLBACK_REFUSED].status, 400);
        assert_int_equal(replies[IDEM_CALLBACK_LATER].status, 503);
    }
    for (unsigned i = 0; i < IDEM_CALLBACK_VERDICT_COUNT; i++) {
        assert_non_null(idem_callback_verdict_name((enum idem_callback_verdict)i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_that_does_not_listen_is_none),
        cmocka_unit_test(evidence_is_the_entrys_and_owns_its_text),
        cmocka_unit_test(what_is_too_long_is_unreadable_or_cut),
        cmocka_unit_test(a_body_beyond_the_bound_is_unreadable),
        cmocka_unit_test(every_adapter_has_its_own_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
