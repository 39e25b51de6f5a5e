/*
 * The entries of a scene, and commands as the engine makes them. An effect id names its scope, as
 * docs/fingerprint.md says, so that what a listing names finds its key.
 */
#include "unit/core/scene.h"

#define KEPT_MAX ((size_t)4 << 20)

static void encode(const struct idem_effect_order *order, struct idem_buf *buf)
{
    idem_buf_add(buf, IDEM_STR("do="));
    idem_buf_add(buf, idem_str_from(idem_effect_kind_name(order->effect->kind)));
    idem_buf_add(buf, IDEM_STR("&id="));
    idem_buf_add(buf, order->effect->id);
    idem_buf_add(buf, IDEM_STR("&amount="));
    idem_buf_add_i64(buf, order->effect->amount_minor);
    idem_buf_add(buf, IDEM_STR("&order="));
    idem_buf_add(buf, order->order_no);
    idem_buf_add(buf, IDEM_STR("&of="));
    idem_buf_add(buf, order->payment_effect_id);
}

static struct idem_provider_rules entry_make(const char *name,
                                             struct idem_capability capability,
                                             enum idem_partial_capture partial)
{
    struct idem_provider_rules rules = {
        .entry = idem_str_from(name),
        .account = IDEM_STR("account-1"),
        .region = IDEM_STR("region-1"),
        .partial_capture = partial,
        .request_timeout_us = TIMEOUT_US,
        .settle_us = SETTLE_US,
        .encode = encode,
    };
    for (unsigned kind = IDEM_EFFECT_KIND_NONE + 1; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        rules.capability[kind] = capability;
    }
    return rules;
}

void scene_begin(struct scene *scene)
{
    const struct idem_capability plain = { .query = IDEM_QUERY_AT_ONCE };
    const struct idem_capability dedup = {
        .dedup_window_us = WINDOW_US,
        .dedup_margin_us = MARGIN_US,
        .query = IDEM_QUERY_AT_ONCE,
    };
    struct idem_capability lagging = dedup;
    struct idem_capability closing = plain;
    struct idem_capability mute = dedup;
    const struct idem_capability blind = { .query = IDEM_QUERY_NONE };
    lagging.query = IDEM_QUERY_LAGGING;
    lagging.query_lag_us = LAG_US;
    closing.close_is_final = true;
    mute.query = IDEM_QUERY_NONE;

    *scene = (struct scene){
        .now_us = SCENE_BEGIN_US,
        .incarnation = 1,
        .opened_us = SCENE_BEGIN_US,
        .wait_us = 10 * SECOND,
        .slot = true,
    };
    scene->entries[0] = entry_make("plain", plain, IDEM_PARTIAL_NONE);
    scene->entries[1] = entry_make("dedup", dedup, IDEM_PARTIAL_MANY);
    scene->entries[2] = entry_make("lagging", lagging, IDEM_PARTIAL_MANY);
    scene->entries[3] = entry_make("closing", closing, IDEM_PARTIAL_ONCE);
    scene->entries[4] = entry_make("mute", mute, IDEM_PARTIAL_MANY);
    scene->entries[5] = entry_make("blind", blind, IDEM_PARTIAL_NONE);
    scene->rules = idem_rules_default();
    scene->rules.retry_first_us = SECOND;
    scene->rules.providers = scene->entries;
    scene->rules.provider_count = SCENE_ENTRIES;
    char *memory = malloc(KEPT_MAX);
    assert_non_null(memory);
    idem_buf_init(&scene->kept, memory, KEPT_MAX);
}

void scene_end(struct scene *scene)
{
    free(scene->kept.data);
}

void scene_pass(struct scene *scene, int64_t us)
{
    scene->now_us += us;
}

struct idem_provider_rules *scene_entry(struct scene *scene, const char *entry)
{
    for (size_t i = 0; i < SCENE_ENTRIES; i++) {
        if (idem_str_equal(scene->entries[i].entry, idem_str_from(entry))) {
            return &scene->entries[i];
        }
    }
    fail_msg("no entry %s", entry);
    return NULL;
}

static struct idem_uid uid_next(struct scene *scene)
{
    scene->uids += 1;
    struct idem_uid uid = { .bytes = { 0xaa } };
    for (size_t i = 0; i < 4; i++) {
        uid.bytes[12 + i] = (uint8_t)(scene->uids >> (24 - 8 * i));
    }
    return uid;
}

/* With room at its end for the messages of one decision. */
static struct idem_uid message_id_next(struct scene *scene)
{
    struct idem_uid uid = uid_next(scene);
    memmove(&uid.bytes[8], &uid.bytes[12], 4);
    memset(&uid.bytes[12], 0, 4);
    return uid;
}

struct idem_scope scene_scope(const char *key)
{
    struct idem_scope scope = { .bytes = { 0 } };
    size_t len = strlen(key);
    assert_true(len <= sizeof(scope.bytes));
    memcpy(scope.bytes, key, len);
    return scope;
}

static struct idem_command command_begin(struct scene *scene,
                                         const char *key,
                                         enum idem_command_kind kind)
{
    scene->now_us += 1; /* No two commands at one time. */
    return (struct idem_command){
        .kind = kind,
        .scope = scene_scope(key),
        .now_us = scene->now_us,
        .mono_us = scene->now_us,
        .incarnation = scene->incarnation,
        .opened_us = scene->opened_us,
        .token = uid_next(scene),
        .intent_id = uid_next(scene),
        .resource_id = uid_next(scene),
        .case_id = uid_next(scene),
        .message_id = message_id_next(scene),
        .noise = scene->uids * UINT64_C(0x9e3779b97f4a7c15),
        .slot = scene->slot,
        .restored = scene->restored,
    };
}

/* Everything of an effect id but its letter. */
static struct idem_str id_tail(struct scene *scene, const char *key)
{
    uint8_t bits[17] = { 0 }; /* 26 characters are two bits more than a scope has. */
    struct idem_scope scope = scene_scope(key);
    memcpy(bits, scope.bytes, sizeof(scope.bytes));
    size_t from = scene->kept.len;
    idem_base32_print(bits, sizeof(bits), IDEM_EFFECT_ID_LEN - 1, &scene->kept);
    assert_false(scene->kept.full);
    return idem_str_slice(idem_buf_str(&scene->kept), from, IDEM_EFFECT_ID_LEN - 1);
}

struct idem_str scene_effect_id(struct scene *scene, const char *key, enum idem_effect_kind kind)
{
    size_t from = scene->kept.len;
    idem_buf_add_char(&scene->kept, idem_effect_kind_letter(kind));
    (void)id_tail(scene, key);
    return idem_str_slice(idem_buf_str(&scene->kept), from, IDEM_EFFECT_ID_LEN);
}

static struct idem_command accept_begin(struct scene *scene, const char *key)
{
    struct idem_command command = command_begin(scene, key, IDEM_COMMAND_ACCEPT);
    command.accept = (struct idem_accept){
        .principal = IDEM_STR("shop"),
        .key = idem_str_from(key),
        .fingerprint_count = 1,
        .effect_id_tail = id_tail(scene, key),
        .wait_us = scene->wait_us,
    };
    command.accept.fingerprints[0] = (struct idem_fingerprint){
        .rule_id = 1,
        .secret_id = 1,
        .digest = { .bytes = { 7 } },
    };
    return command;
}

struct idem_command scene_pay(struct scene *scene, const char *key, const char *entry)
{
    struct idem_command command = accept_begin(scene, key);
    command.accept.endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE;
    command.accept.order_no = idem_str_from(key);
    command.accept.amount_minor = 10000;
    command.accept.currency = IDEM_STR("CNY");
    command.accept.entry = idem_str_from(entry);
    command.accept.capture_mode = IDEM_CAPTURE_AUTOMATIC;
    command.accept.method = IDEM_STR("card-1");
    return command;
}

struct idem_command scene_act(struct scene *scene,
                              const char *key,
                              enum idem_endpoint endpoint,
                              const char *amount)
{
    struct idem_command command = accept_begin(scene, key);
    command.accept.endpoint = endpoint;
    command.accept.amount_text = idem_str_from(amount);
    if (scene->payment_count > 0) { /* The newest, unless the test says another. */
        command.accept.payment_id = scene->payments[scene->payment_count - 1].id;
    }
    return command;
}

struct idem_command scene_abandon(struct scene *scene, const char *key)
{
    struct idem_command command = command_begin(scene, key, IDEM_COMMAND_ABANDON);
    command.abandon = (struct idem_abandon){
        .principal = IDEM_STR("shop"),
        .key = idem_str_from(key),
        .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
    };
    return command;
}

struct idem_command scene_due(struct scene *scene, const char *key)
{
    return command_begin(scene, key, IDEM_COMMAND_DUE);
}

static struct idem_str event_id_next(struct scene *scene)
{
    size_t from = scene->kept.len;
    idem_buf_printf(&scene->kept, "event-%u", scene->uids);
    assert_false(scene->kept.full);
    return idem_str_slice(idem_buf_str(&scene->kept), from, scene->kept.len - from);
}

struct idem_command scene_evidence(struct scene *scene,
                                   const char *key,
                                   enum idem_evidence_source source,
                                   enum idem_outcome_kind outcome)
{
    struct idem_command command = command_begin(scene, key, IDEM_COMMAND_EVIDENCE);
    const struct scene_intent *intent = scene_intent(scene, key);
    command.evidence = (struct idem_evidence){
        .source = source,
        .outcome = outcome,
        .amount_minor = -1,
        .asked_us = scene->now_us,
    };
    if (source == IDEM_SOURCE_CALLBACK) {
        command.evidence.event_id = event_id_next(scene);
    }
    if (intent == NULL) {
        return command;
    }
    const struct idem_effect *effect = &intent->row.effect;
    if (source != IDEM_SOURCE_CALLBACK) { /* An event is no attempt's. */
        command.evidence.token = intent->row.token;
    }
    command.evidence.send_no = source == IDEM_SOURCE_SEND ? intent->row.send_count : 0;
    command.evidence.entry = effect->entry;
    command.evidence.account = effect->account;
    command.evidence.region = effect->region;
    command.evidence.effect_id = effect->id;
    command.evidence.amount_minor = effect->amount_minor;
    command.evidence.currency = effect->currency;
    command.evidence.reference = IDEM_STR("provider-77");
    command.evidence.code = IDEM_STR("some_code");
    return command;
}

struct idem_command scene_listed(struct scene *scene,
                                 const char *key,
                                 enum idem_effect_kind kind,
                                 const char *payment_key)
{
    struct idem_command command = command_begin(scene, key, IDEM_COMMAND_EVIDENCE);
    command.evidence = (struct idem_evidence){
        .source = IDEM_SOURCE_LISTING,
        .outcome = IDEM_OUTCOME_SUCCESS,
        .entry = IDEM_STR("dedup"),
        .account = IDEM_STR("account-1"),
        .region = IDEM_STR("region-1"),
        .effect_id = scene_effect_id(scene, key, kind),
        .amount_minor = 10000,
        .currency = IDEM_STR("CNY"),
        .reference = IDEM_STR("provider-88"),
        .happened_us = scene->now_us,
    };
    if (payment_key == NULL) {
        command.evidence.order_no = idem_str_from(key);
        return command;
    }
    enum idem_effect_kind made =
        scene->manual ? IDEM_EFFECT_KIND_AUTHORIZE : IDEM_EFFECT_KIND_CHARGE;
    command.evidence.payment_effect_id = scene_effect_id(scene, payment_key, made);
    command.evidence.payment_scope = scene_scope(payment_key);
    return command;
}

struct idem_command scene_resolve(struct scene *scene, const char *key, enum idem_verdict verdict)
{
    struct idem_command command = command_begin(scene, key, IDEM_COMMAND_RESOLVE);
    const struct scene_intent *intent = scene_intent(scene, key);
    command.resolve = (struct idem_resolve){
        .verdict = verdict,
        .asked_us = scene->now_us,
        .by = IDEM_STR("olga (night shift)"),
        .reason = IDEM_STR("seen at the provider"),
    };
    if (intent != NULL) {
        command.resolve.reference = IDEM_STR("provider-99");
        command.resolve.amount_minor = intent->row.effect.amount_minor;
        command.resolve.currency = intent->row.effect.currency;
    }
    if (verdict == IDEM_VERDICT_STRAY) {
        command.resolve.case_id = uid_next(scene);
    }
    return command;
}

struct idem_command scene_reap(struct scene *scene, const char *key)
{
    struct idem_command command = command_begin(scene, key, IDEM_COMMAND_REAP);
    command.reap.horizon_us = scene->now_us;
    return command;
}

struct idem_command scene_erase(struct scene *scene, const char *key)
{
    struct idem_command command = scene_reap(scene, key);
    command.reap.erase = true;
    command.reap.by = IDEM_STR("olga");
    return command;
}

struct idem_command scene_mark(struct scene *scene, enum idem_mark_kind kind)
{
    struct idem_command command = command_begin(scene, "", IDEM_COMMAND_MARK);
    command.mark = (struct idem_mark){
        .kind = kind,
        .value_us = scene->now_us,
        .by = IDEM_STR("olga"),
        .reason = IDEM_STR("all is known"),
    };
    return command;
}

struct idem_command scene_credential(struct scene *scene,
                                     enum idem_credential_action action,
                                     uint8_t id,
                                     uint8_t secret)
{
    struct idem_command command = command_begin(scene, "", IDEM_COMMAND_CREDENTIAL);
    command.credential = (struct idem_credential_change){
        .action = action,
        .row = {
            .id = { .bytes = { id } },
            .principal = IDEM_STR("shop"),
            .role = IDEM_ROLE_MERCHANT,
            .secret_sha256 = { .bytes = { secret } },
            .providers = IDEM_STR("* "),
            .label = IDEM_STR("till"),
        },
        .by = IDEM_STR("olga"),
    };
    return command;
}

struct idem_command scene_callback(struct scene *scene,
                                   const char *key,
                                   const char *event_id,
                                   enum idem_outcome_kind outcome)
{
    struct idem_command command = scene_evidence(scene, key, IDEM_SOURCE_CALLBACK, outcome);
    if (command.evidence.entry.len == 0) { /* About nothing that is here. */
        command.evidence.entry = IDEM_STR("dedup");
    }
    command.evidence.event_id = idem_str_from(event_id);
    return command;
}

struct idem_command scene_webhook(struct scene *scene, enum idem_webhook_action action, uint8_t id)
{
    struct idem_command command = command_begin(scene, "", IDEM_COMMAND_WEBHOOK);
    command.webhook = (struct idem_webhook_change){
        .action = action,
        .row = {
            .id = { .bytes = { id } },
            .principal = IDEM_STR("shop"),
            .url = IDEM_STR("https://shop.example/told"),
            .types = UINT64_MAX,
        },
        .generation = 1,
        .by = IDEM_STR("olga"),
    };
    return command;
}

struct idem_command scene_delivery(struct scene *scene, enum idem_delivery_word word, size_t index)
{
    struct idem_command command = command_begin(scene, "", IDEM_COMMAND_DELIVERY);
    const struct scene_delivery *delivery = &scene->deliveries[index];
    assert_true(index < scene->delivery_count);
    command.delivery = (struct idem_delivery_change){
        .word = word,
        .message_id = delivery->message_id,
        .webhook_id = delivery->webhook_id,
        .token = delivery->row.token,
        .status = 200,
        .error = IDEM_STR("what was said"),
        .pause_us = 60 * SECOND,
        .by = IDEM_STR("olga"),
    };
    return command;
}

struct idem_release scene_learn(struct scene *scene,
                                const char *key,
                                enum idem_evidence_source source,
                                enum idem_outcome_kind outcome)
{
    struct idem_command command = scene_evidence(scene, key, source, outcome);
    return scene_run(scene, &command);
}

struct idem_release scene_make_due(struct scene *scene, const char *key)
{
    const struct scene_intent *intent = scene_intent(scene, key);
    assert_non_null(intent);
    assert_true(intent->row.due_us > 0);
    if (scene->now_us < intent->row.due_us) {
        scene->now_us = intent->row.due_us;
    }
    struct idem_command command = scene_due(scene, key);
    return scene_run(scene, &command);
}

void scene_paid(struct scene *scene,
                const char *key,
                const char *entry,
                enum idem_capture_mode mode)
{
    struct idem_command command = scene_pay(scene, key, entry);
    command.accept.capture_mode = mode;
    EXPECT_RELEASE(scene_run(scene, &command), "send");
    EXPECT_RELEASE(scene_learn(scene, key, IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS), "reply");
    EXPECT_STATE(scene, key, "succeeded");
}
