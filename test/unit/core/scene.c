/*
 * Rows are found by scope and by row number, guards are assertions, text goes into one arena that
 * grows until the scene ends. Order and refund numbers are looked up as decision.h tells a store.
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

static struct idem_scope scope_of(const char *key)
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
        .scope = scope_of(key),
        .now_us = scene->now_us,
        .mono_us = scene->now_us,
        .incarnation = scene->incarnation,
        .token = uid_next(scene),
        .intent_id = uid_next(scene),
        .resource_id = uid_next(scene),
        .case_id = uid_next(scene),
        .noise = scene->uids * UINT64_C(0x9e3779b97f4a7c15),
        .slot = scene->slot,
    };
}

static struct idem_command accept_begin(struct scene *scene, const char *key)
{
    struct idem_command command = command_begin(scene, key, IDEM_COMMAND_ACCEPT);
    command.accept = (struct idem_accept){
        .principal = IDEM_STR("shop"),
        .key = idem_str_from(key),
        .fingerprint_count = 1,
        .effect_id_tail = IDEM_STR("0123456789abcdefghjkmnpqrs"),
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
    if (intent == NULL) {
        return command;
    }
    const struct idem_effect *effect = &intent->row.effect;
    command.evidence.token = intent->row.token;
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

/* ---- rows ---- */

static struct scene_intent *intent_by_scope(struct scene *scene, const struct idem_scope *scope)
{
    for (size_t i = 0; i < scene->intent_count; i++) {
        if (memcmp(&scene->intents[i].row.scope, scope, sizeof(*scope)) == 0) {
            return &scene->intents[i];
        }
    }
    return NULL;
}

struct scene_intent *scene_intent(struct scene *scene, const char *key)
{
    struct idem_scope scope = scope_of(key);
    return intent_by_scope(scene, &scope);
}

struct idem_payment *scene_payment(struct scene *scene, const char *key)
{
    struct scene_intent *intent = scene_intent(scene, key);
    assert_non_null(intent);
    assert_true(intent->row.payment_row > 0);
    return &scene->payments[intent->row.payment_row - 1];
}

struct idem_refund *scene_refund(struct scene *scene, const char *key)
{
    struct scene_intent *intent = scene_intent(scene, key);
    assert_non_null(intent);
    assert_true(intent->row.refund_row > 0);
    return &scene->refunds[intent->row.refund_row - 1];
}

enum idem_intent_state scene_state(struct scene *scene, const char *key)
{
    struct scene_intent *intent = scene_intent(scene, key);
    return intent != NULL ? intent->row.state : IDEM_INTENT_NONE;
}

const char *scene_state_name(struct scene *scene, const char *key)
{
    return idem_intent_state_name(scene_state(scene, key));
}

static struct idem_payment order_holder(const struct scene *scene,
                                        struct idem_str principal,
                                        struct idem_str order_no)
{
    for (size_t i = 0; i < scene->payment_count; i++) {
        const struct idem_payment *payment = &scene->payments[i];
        if (idem_payment_holds_order(payment->state) &&
            idem_str_equal(payment->principal, principal) &&
            idem_str_equal(payment->order_no, order_no)) {
            return *payment;
        }
    }
    return (struct idem_payment){ .row = 0 };
}

static struct idem_refund refund_holder(const struct scene *scene,
                                        int64_t payment_row,
                                        struct idem_str refund_no)
{
    for (size_t i = 0; i < scene->refund_count && refund_no.len > 0; i++) {
        const struct idem_refund *refund = &scene->refunds[i];
        if (refund->state != IDEM_REFUND_FAILED && refund->payment_row == payment_row &&
            idem_str_equal(refund->refund_no, refund_no)) {
            return *refund;
        }
    }
    return (struct idem_refund){ .row = 0 };
}

static void fetch_present(struct scene *scene,
                          const struct scene_intent *intent,
                          struct idem_facts *facts)
{
    facts->intent = intent->row;
    facts->send_count = intent->send_count;
    memcpy(facts->sends, intent->sends, sizeof(facts->sends));
    if (intent->row.payment_row != 0) {
        facts->payment = scene->payments[intent->row.payment_row - 1];
    }
    if (intent->row.refund_row != 0) {
        facts->refund = scene->refunds[intent->row.refund_row - 1];
    }
    if (intent->row.state != IDEM_INTENT_RELEASED) {
        return;
    }
    if (intent->row.endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        facts->order_holder =
            order_holder(scene, facts->payment.principal, facts->payment.order_no);
    }
    if (intent->row.endpoint == IDEM_ENDPOINT_REFUNDS_CREATE) {
        facts->refund_holder = refund_holder(scene, facts->payment.row, facts->refund.refund_no);
    }
}

static void fetch_absent(struct scene *scene,
                         const struct idem_accept *accept,
                         struct idem_facts *facts)
{
    for (size_t i = 0; i < scene->payment_count; i++) {
        if (idem_uid_equal(scene->payments[i].id, accept->payment_id)) {
            facts->payment = scene->payments[i];
        }
    }
    if (accept->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        facts->order_holder = order_holder(scene, accept->principal, accept->order_no);
    }
    if (accept->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE) {
        facts->refund_holder = refund_holder(scene, facts->payment.row, accept->refund_no);
    }
}

static void fetch(struct scene *scene, const struct idem_command *command, struct idem_facts *facts)
{
    *facts = (struct idem_facts){ .send_count = 0 };
    const struct scene_intent *intent = intent_by_scope(scene, &command->scope);
    if (intent != NULL) {
        fetch_present(scene, intent, facts);
    } else if (command->kind == IDEM_COMMAND_ACCEPT) {
        fetch_absent(scene, &command->accept, facts);
    }
}

/* ---- what is written ---- */

static void keep(struct scene *scene, struct idem_str *text)
{
    *text = idem_buf_keep(&scene->kept, *text);
    assert_false(scene->kept.full);
}

static void keep_intent(struct scene *scene, struct idem_intent *row)
{
    keep(scene, &row->principal);
    keep(scene, &row->key);
    keep(scene, &row->effect.id);
    keep(scene, &row->effect.entry);
    keep(scene, &row->effect.account);
    keep(scene, &row->effect.region);
    keep(scene, &row->effect.currency);
    keep(scene, &row->effect.request);
    keep(scene, &row->effect.reference);
    keep(scene, &row->answer.headers);
    keep(scene, &row->answer.body);
}

static void keep_payment(struct scene *scene, struct idem_payment *row)
{
    keep(scene, &row->principal);
    keep(scene, &row->order_no);
    keep(scene, &row->currency);
    keep(scene, &row->entry);
    keep(scene, &row->account);
    keep(scene, &row->region);
    keep(scene, &row->effect_id);
    keep(scene, &row->reference);
    keep(scene, &row->method);
    keep(scene, &row->description);
    keep(scene, &row->metadata);
    keep(scene, &row->failure_code);
}

static void keep_refund(struct scene *scene, struct idem_refund *row)
{
    keep(scene, &row->principal);
    keep(scene, &row->refund_no);
    keep(scene, &row->currency);
    keep(scene, &row->reference);
    keep(scene, &row->failure_code);
}

static int64_t put_payment(struct scene *scene, const struct idem_payment_write *write)
{
    struct idem_payment row = write->row;
    keep_payment(scene, &row);
    if (write->write == IDEM_WRITE_UPDATE) {
        assert_int_equal(scene->payments[row.row - 1].version + 1, row.version);
        scene->payments[row.row - 1] = row;
        return row.row;
    }
    assert_int_equal(write->write, IDEM_WRITE_INSERT);
    assert_int_equal(row.version, 1);
    assert_true(scene->payment_count < SCENE_PAYMENTS);
    assert_int_equal(order_holder(scene, row.principal, row.order_no).row, 0); /* The index. */
    row.row = (int64_t)scene->payment_count + 1;
    scene->payments[scene->payment_count] = row;
    scene->payment_count += 1;
    return row.row;
}

static int64_t put_refund(struct scene *scene, const struct idem_refund_write *write)
{
    struct idem_refund row = write->row;
    keep_refund(scene, &row);
    if (write->write == IDEM_WRITE_UPDATE) {
        assert_int_equal(scene->refunds[row.row - 1].version + 1, row.version);
        scene->refunds[row.row - 1] = row;
        return row.row;
    }
    assert_int_equal(write->write, IDEM_WRITE_INSERT);
    assert_int_equal(row.version, 1);
    assert_true(scene->refund_count < SCENE_REFUNDS);
    assert_int_equal(refund_holder(scene, row.payment_row, row.refund_no).row, 0);
    row.row = (int64_t)scene->refund_count + 1;
    scene->refunds[scene->refund_count] = row;
    scene->refund_count += 1;
    return row.row;
}

static void put_sends(struct scene_intent *intent, const struct idem_decision *decision)
{
    for (size_t i = 0; i < decision->send_write_count; i++) {
        const struct idem_send_write *write = &decision->sends[i];
        if (write->write == IDEM_WRITE_INSERT) {
            assert_int_equal(write->row.no, intent->send_count + 1);
            intent->sends[intent->send_count] = write->row;
            intent->send_count += 1;
            continue;
        }
        assert_int_equal(write->write, IDEM_WRITE_UPDATE);
        assert_int_equal(intent->sends[write->row.no - 1].state, IDEM_SEND_OPEN);
        intent->sends[write->row.no - 1] = write->row;
    }
}

/* P4: what is final keeps its state and its answer. */
static void expect_history_stays(const struct idem_intent *old, const struct idem_intent *new)
{
    if (!idem_intent_is_final(old->state)) {
        return;
    }
    assert_int_equal(old->state, new->state);
    assert_int_equal(old->problem, new->problem);
    assert_int_equal(old->answer.status, new->answer.status);
    assert_int_equal(old->expires_us, new->expires_us);
    assert_true(idem_str_equal(old->answer.headers, new->answer.headers));
    assert_true(idem_str_equal(old->answer.body, new->answer.body));
}

static struct scene_intent *put_intent(struct scene *scene, const struct idem_intent_write *write)
{
    struct idem_intent row = write->row;
    idem_intent_check(&row);
    keep_intent(scene, &row);
    if (write->write == IDEM_WRITE_UPDATE) {
        struct scene_intent *intent = &scene->intents[row.row - 1];
        assert_int_equal(intent->row.version + 1, row.version);
        assert_true(row.epoch >= intent->row.epoch);
        expect_history_stays(&intent->row, &row);
        intent->row = row;
        return intent;
    }
    assert_int_equal(write->write, IDEM_WRITE_INSERT);
    assert_int_equal(row.version, 1);
    assert_true(scene->intent_count < SCENE_INTENTS);
    struct scene_intent *intent = &scene->intents[scene->intent_count];
    row.row = (int64_t)scene->intent_count + 1;
    *intent = (struct scene_intent){ .row = row };
    scene->intent_count += 1;
    return intent;
}

static void put(struct scene *scene, const struct idem_decision *decision)
{
    if (decision->intent.write == IDEM_WRITE_NONE) {
        assert_int_equal(decision->payment.write, IDEM_WRITE_NONE);
        assert_int_equal(decision->refund.write, IDEM_WRITE_NONE);
        assert_int_equal(decision->send_write_count, 0);
        assert_int_equal(decision->event_count, 0);
        assert_int_equal(decision->opened.kind, IDEM_CASE_NONE);
        return;
    }
    struct scene_intent *intent = put_intent(scene, &decision->intent);
    if (decision->payment.write != IDEM_WRITE_NONE) {
        intent->row.payment_row = put_payment(scene, &decision->payment);
    }
    if (decision->refund.write != IDEM_WRITE_NONE) {
        intent->row.refund_row = put_refund(scene, &decision->refund);
    }
    put_sends(intent, decision);
    assert_int_equal(intent->send_count, intent->row.send_count);
    intent->event_count += decision->event_count;
    if (decision->event_count > 0) {
        intent->last_event = decision->events[decision->event_count - 1].kind;
    }
    if (decision->opened.kind != IDEM_CASE_NONE) {
        intent->case_count += 1;
        intent->last_case = decision->opened.kind;
    }
}

/* ---- what must hold after every command ---- */

struct reserved {
    int64_t capture_minor;
    int64_t refund_minor;
    size_t cancels;
    size_t creations;
};

static struct reserved reserved_on(const struct scene *scene, int64_t payment_row)
{
    struct reserved reserved = { .cancels = 0 };
    for (size_t i = 0; i < scene->intent_count; i++) {
        const struct idem_intent *row = &scene->intents[i].row;
        bool holds = idem_intent_is_open(row->state) && row->state != IDEM_INTENT_RELEASED &&
                     row->problem != IDEM_PROBLEM_NOT_EXECUTED && row->payment_row == payment_row;
        if (!holds) {
            continue;
        }
        int64_t amount_minor = row->effect.amount_minor;
        reserved.capture_minor += row->effect.kind == IDEM_EFFECT_KIND_CAPTURE ? amount_minor : 0;
        reserved.refund_minor += row->effect.kind == IDEM_EFFECT_KIND_REFUND ? amount_minor : 0;
        reserved.cancels += row->effect.kind == IDEM_EFFECT_KIND_CANCEL ? 1 : 0;
        reserved.creations += row->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE ? 1 : 0;
    }
    return reserved;
}

static void audit(const struct scene *scene)
{
    for (size_t i = 0; i < scene->payment_count; i++) {
        const struct idem_payment *payment = &scene->payments[i];
        struct reserved reserved = reserved_on(scene, payment->row);
        idem_payment_check(payment);
        assert_int_equal(payment->capture_pending_minor, reserved.capture_minor);
        assert_int_equal(payment->refund_pending_minor, reserved.refund_minor);
        assert_int_equal(payment->canceling, reserved.cancels);
        assert_int_equal(payment->state == IDEM_PAYMENT_PENDING, reserved.creations);
    }
    for (size_t i = 0; i < scene->intent_count; i++) {
        idem_intent_check(&scene->intents[i].row);
    }
}

static void expect_send_is_safe(struct scene *scene,
                                const struct idem_command *command,
                                const struct idem_release *release)
{
    if (release->kind != IDEM_RELEASE_SEND) {
        return;
    }
    const struct scene_intent *intent = intent_by_scope(scene, &command->scope);
    assert_non_null(intent);
    const struct idem_provider_rules *rules =
        idem_rules_provider(&scene->rules, intent->row.effect.entry);
    assert_non_null(rules);
    int64_t window_us = rules->capability[intent->row.effect.kind].dedup_window_us;
    size_t open_count = 0;
    int64_t oldest_us = 0;
    for (size_t i = 0; i < intent->send_count; i++) {
        if (intent->sends[i].state == IDEM_SEND_OPEN) {
            oldest_us = oldest_us == 0 ? intent->sends[i].granted_us : oldest_us;
            open_count += 1;
        }
    }
    assert_int_equal(release->send_no, intent->send_count);
    assert_true(release->not_after_us <= intent->row.lease_end_us);
    if (window_us == 0) {
        assert_int_equal(open_count, 1);
        return;
    }
    assert_true(release->not_after_us <= oldest_us + window_us - MARGIN_US);
    assert_true(release->not_after_us > command->now_us);
}

static void expect_same_release(struct idem_release left, struct idem_release right)
{
    assert_int_equal(left.kind, right.kind);
    assert_int_equal(left.problem, right.problem);
    assert_int_equal(left.replayed, right.replayed);
    assert_int_equal(left.send_no, right.send_no);
    assert_int_equal(left.not_after_us, right.not_after_us);
    assert_int_equal(left.retry_after_us, right.retry_after_us);
}

static void expect_same_decision(const struct idem_decision *left,
                                 const struct idem_decision *right)
{
    expect_same_release(left->release, right->release);
    assert_int_equal(left->intent.write, right->intent.write);
    assert_int_equal(left->payment.write, right->payment.write);
    assert_int_equal(left->refund.write, right->refund.write);
    assert_int_equal(left->send_write_count, right->send_write_count);
    assert_int_equal(left->event_count, right->event_count);
    assert_int_equal(left->opened.kind, right->opened.kind);
    assert_true(idem_str_equal(idem_buf_str(&left->scratch), idem_buf_str(&right->scratch)));
    for (size_t i = 0; i < left->send_write_count; i++) {
        assert_memory_equal(&left->sends[i].row.token, &right->sends[i].row.token, 16);
        assert_int_equal(left->sends[i].row.state, right->sends[i].row.state);
        assert_int_equal(left->sends[i].row.not_after_us, right->sends[i].row.not_after_us);
    }
    for (size_t i = 0; i < left->event_count; i++) {
        assert_int_equal(left->events[i].kind, right->events[i].kind);
        assert_int_equal(left->events[i].at_us, right->events[i].at_us);
        assert_true(idem_str_equal(left->events[i].detail, right->events[i].detail));
    }
    const struct idem_intent *one = &left->intent.row;
    const struct idem_intent *two = &right->intent.row;
    assert_int_equal(one->state, two->state);
    assert_int_equal(one->version, two->version);
    assert_int_equal(one->due_us, two->due_us);
    assert_int_equal(one->lease_end_us, two->lease_end_us);
    assert_int_equal(one->step, two->step);
    assert_int_equal(one->epoch, two->epoch);
    assert_memory_equal(&one->token, &two->token, 16);
    assert_true(idem_str_equal(one->answer.body, two->answer.body));
    assert_true(idem_str_equal(one->effect.request, two->effect.request));
    assert_int_equal(left->payment.row.state, right->payment.row.state);
    assert_int_equal(left->payment.row.version, right->payment.row.version);
}

/* As after an unknown COMMIT that was durable after all. */
static void run_again(struct scene *scene, const struct idem_command *command)
{
    const struct idem_decision *first = &scene->decision;
    struct idem_decision *again = &scene->again;
    struct idem_facts *facts = calloc(1, sizeof(*facts));
    assert_non_null(facts);
    fetch(scene, command, facts);
    idem_decide(&scene->rules, facts, command, again);
    free(facts);
    expect_same_release(first->release, again->release);
    assert_int_equal(again->event_count, 0);
    assert_int_equal(again->send_write_count, 0);
    assert_int_equal(again->payment.write, IDEM_WRITE_NONE);
    assert_int_equal(again->refund.write, IDEM_WRITE_NONE);
    assert_int_equal(again->opened.kind, IDEM_CASE_NONE);
    assert_int_equal(again->intent.write,
                     first->intent.write == IDEM_WRITE_NONE ? IDEM_WRITE_NONE : IDEM_WRITE_UPDATE);
    put(scene, again);
}

struct idem_release scene_run(struct scene *scene, const struct idem_command *command)
{
    fetch(scene, command, &scene->facts);
    idem_decide(&scene->rules, &scene->facts, command, &scene->again);
    idem_decide(&scene->rules, &scene->facts, command, &scene->decision);
    expect_same_decision(&scene->again, &scene->decision);
    put(scene, &scene->decision);
    audit(scene);
    expect_send_is_safe(scene, command, &scene->decision.release);
    run_again(scene, command);
    return scene->decision.release;
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

const char *release_name(enum idem_release_kind kind)
{
    static const char *const names[IDEM_RELEASE_COUNT] = {
        [IDEM_RELEASE_NONE] = "nothing", [IDEM_RELEASE_REPLY] = "reply",
        [IDEM_RELEASE_WAIT] = "wait",    [IDEM_RELEASE_SEND] = "send",
        [IDEM_RELEASE_QUERY] = "query",  [IDEM_RELEASE_CLOSE] = "close",
    };
    assert_true(kind < IDEM_RELEASE_COUNT);
    return names[kind];
}
