#include "unit/provider/callback_scene.h"

#include "base/clock.h"
#include "base/currency.h"
#include "base/money.h"

#include "lib/test.h"

void callback_scene_open(struct callback_scene *scene,
                         const struct idem_adapter *adapter,
                         const char *field_name)
{
    struct idem_error error;
    *scene = (struct callback_scene){
        .field_name = field_name,
        .field_said = field_name,
        .rules = {
            .entry = IDEM_STR("e-1"),
            .account = IDEM_STR("acct_1"),
            .region = IDEM_STR("eu"),
            .request_timeout_us = IDEM_US_PER_SECOND,
        },
        .secrets = { .secrets = { IDEM_STR("secret-one") }, .count = 1 },
    };
    scene->entry = (struct idem_provider_entry){
        .adapter = adapter,
        .rules = &scene->rules,
        .base_url = "http://127.0.0.1:1",
        .credential = "sk_test_1",
        .callback_secrets = &scene->secrets,
    };
    assert_int_equal(idem_callback_reader_create(&scene->entry, 1, &scene->reader, &error),
                     IDEM_OK);
}

void callback_scene_close(struct callback_scene *scene)
{
    idem_callback_reader_destroy(scene->reader);
}

void callback_scene_sign(struct callback_scene *scene,
                         const char *secret,
                         int64_t signed_s,
                         struct idem_str body)
{
    struct idem_digester *digester = NULL;
    struct idem_error error;
    struct idem_buf field;

    idem_buf_init(&field, scene->field_memory, sizeof(scene->field_memory));
    idem_buf_add(&field, IDEM_STR("t="));
    idem_buf_add_i64(&field, signed_s);
    assert_int_equal(idem_digester_create(&digester, &error), IDEM_OK);
    idem_hmac_begin(digester, idem_str_from(secret));
    idem_hmac_add(digester, idem_str_slice(idem_buf_str(&field), 2, SIZE_MAX));
    idem_hmac_add(digester, IDEM_STR("."));
    idem_hmac_add(digester, body);
    struct idem_digest digest = idem_hmac_end(digester);
    idem_digester_destroy(digester);
    idem_buf_add(&field, IDEM_STR(",v1="));
    idem_buf_add_hex(&field, digest.bytes, sizeof(digest.bytes));
    idem_buf_add_char(&field, '\0');
    assert_false(field.full);
}

static struct idem_str field_of(const void *head, struct idem_str name)
{
    const struct callback_scene *scene = head;
    return idem_str_equal_nocase(name, idem_str_from(scene->field_said))
               ? idem_str_from(scene->field_memory)
               : (struct idem_str){ .len = 0 };
}

enum idem_callback_verdict callback_scene_read(struct callback_scene *scene, struct idem_str body)
{
    const struct idem_callback_in in = {
        .field = field_of,
        .head = scene,
        .body = body,
        .now_us = SCENE_NOW_S * IDEM_US_PER_SECOND,
    };
    scene->reader->read(scene->reader, scene->rules.entry, &in, &scene->event);
    return scene->event.verdict;
}

enum idem_callback_verdict callback_scene_tell(struct callback_scene *scene, const char *body)
{
    struct idem_str text = idem_str_from(body);
    callback_scene_sign(scene, "secret-one", SCENE_NOW_S, text);
    return callback_scene_read(scene, text);
}

static void part_add(struct idem_buf *buf, const char *name, struct idem_str value)
{
    if (value.len > 0) {
        idem_buf_add(buf, idem_str_from(name));
        idem_buf_add(buf, value);
    }
}

void callback_scene_describe(const struct callback_scene *scene, struct idem_buf *buf)
{
    const struct idem_evidence *evidence = &scene->event.evidence;

    assert_int_equal(evidence->source, IDEM_SOURCE_CALLBACK);
    assert_true(idem_str_equal(evidence->entry, scene->rules.entry));
    assert_true(idem_str_equal(evidence->region, scene->rules.region));
    idem_buf_add(buf, idem_str_from(idem_outcome_kind_name(evidence->outcome)));
    part_add(buf, " ", evidence->effect_id);
    if (evidence->amount_minor >= 0) {
        idem_buf_add_char(buf, ' ');
        idem_amount_print(evidence->amount_minor, idem_currency_exponent(evidence->currency), buf);
    }
    part_add(buf, " ", evidence->currency);
    part_add(buf, " ref=", evidence->reference);
    part_add(buf, " order=", evidence->order_no);
    part_add(buf, " payment=", evidence->payment_effect_id);
    if (!idem_str_equal(evidence->account, scene->rules.account)) {
        part_add(buf, " account=", evidence->account);
    }
    part_add(buf, " code=", evidence->code);
    part_add(buf, " message=", evidence->message);
    part_add(buf, " event=", evidence->event_id);
    idem_buf_add(buf, IDEM_STR(" at="));
    idem_buf_add_i64(buf, evidence->happened_us / IDEM_US_PER_SECOND);
    assert_false(buf->full);
}
