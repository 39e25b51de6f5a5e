/*
 * Rows are found by scope and by row number, guards are assertions, text goes into one arena that
 * grows until the scene ends.
 */
#include "unit/core/scene_internal.h"

struct idem_stub *scene_stub(struct scene *scene, const char *key)
{
    struct idem_scope scope = scene_scope(key);
    return scene_stub_by_scope(scene, &scope);
}

struct scene_intent *scene_intent(struct scene *scene, const char *key)
{
    struct idem_scope scope = scene_scope(key);
    return scene_intent_by_scope(scene, &scope);
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

/* ---- what is written ---- */

void scene_keep(struct scene *scene, struct idem_str *text)
{
    *text = idem_buf_keep(&scene->kept, *text);
    assert_false(scene->kept.full);
}

static void keep_intent(struct scene *scene, struct idem_intent *row)
{
    scene_keep(scene, &row->principal);
    scene_keep(scene, &row->key);
    scene_keep(scene, &row->effect.id);
    scene_keep(scene, &row->effect.entry);
    scene_keep(scene, &row->effect.account);
    scene_keep(scene, &row->effect.region);
    scene_keep(scene, &row->effect.currency);
    scene_keep(scene, &row->effect.request);
    scene_keep(scene, &row->effect.reference);
    scene_keep(scene, &row->answer.headers);
    scene_keep(scene, &row->answer.body);
    scene_keep(scene, &row->trace);
}

static void keep_payment(struct scene *scene, struct idem_payment *row)
{
    scene_keep(scene, &row->principal);
    scene_keep(scene, &row->order_no);
    scene_keep(scene, &row->currency);
    scene_keep(scene, &row->entry);
    scene_keep(scene, &row->account);
    scene_keep(scene, &row->region);
    scene_keep(scene, &row->effect_id);
    scene_keep(scene, &row->reference);
    scene_keep(scene, &row->method);
    scene_keep(scene, &row->description);
    scene_keep(scene, &row->metadata);
    scene_keep(scene, &row->failure_code);
}

static void keep_refund(struct scene *scene, struct idem_refund *row)
{
    scene_keep(scene, &row->principal);
    scene_keep(scene, &row->refund_no);
    scene_keep(scene, &row->currency);
    scene_keep(scene, &row->reference);
    scene_keep(scene, &row->failure_code);
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
    bool number_is_free = scene_order_holder(scene, row.principal, row.order_no).row == 0;
    assert_true(number_is_free || !idem_payment_holds_order(row.state)); /* The index. */
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
    assert_int_equal(scene_refund_holder(scene, row.payment_row, row.refund_no).row, 0);
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

/* P12: a person may ask once no retry can come; time must have come, by the horizon. */
static bool may_be_forgotten(const struct scene *scene,
                             const struct idem_command *command,
                             const struct scene_intent *intent)
{
    const struct idem_intent *row = &intent->row;
    if (command->kind != IDEM_COMMAND_REAP || intent->open_cases > 0) {
        return false;
    }
    if (command->reap.erase) {
        return row->finished_us + scene->rules.retry_window_us <= command->now_us;
    }
    return row->finished_us + scene->rules.answer_retention_us <= command->reap.horizon_us;
}

/* P4: what is final keeps its state, and its answer until that may be forgotten. */
static void expect_history_stays(const struct scene *scene,
                                 const struct idem_command *command,
                                 const struct scene_intent *intent,
                                 const struct idem_intent *new)
{
    const struct idem_intent *old = &intent->row;
    if (!idem_intent_is_final(old->state)) {
        assert_false(idem_intent_is_tombstone(new));
        return;
    }
    assert_int_equal(old->state, new->state);
    assert_int_equal(old->problem, new->problem);
    if (idem_intent_is_tombstone(new) && !idem_intent_is_tombstone(old)) {
        assert_true(may_be_forgotten(scene, command, intent));
        return;
    }
    assert_int_equal(old->answer.status, new->answer.status);
    assert_int_equal(old->expires_us, new->expires_us);
    assert_true(idem_str_equal(old->answer.headers, new->answer.headers));
    assert_true(idem_str_equal(old->answer.body, new->answer.body));
}

/* P12: only a tombstone without a payment, long after its end. */
static void remove_intent(struct scene *scene,
                          const struct idem_command *command,
                          const struct idem_intent *row)
{
    struct scene_intent *intent = &scene->intents[row->row - 1];
    assert_int_equal(intent->row.version + 1, row->version);
    assert_int_equal(row->state, IDEM_INTENT_NONE);
    assert_int_equal(command->kind, IDEM_COMMAND_REAP);
    assert_true(idem_intent_is_tombstone(&intent->row));
    assert_int_equal(intent->row.payment_row, 0);
    assert_int_equal(intent->open_cases, 0);
    int64_t end_us = intent->row.finished_us + scene->rules.tombstone_us;
    assert_true(end_us <= command->reap.horizon_us);
    intent->row = (struct idem_intent){ .row = 0 };
}

static struct scene_intent *put_intent(struct scene *scene,
                                       const struct idem_command *command,
                                       const struct idem_intent_write *write)
{
    struct idem_intent row = write->row;
    idem_intent_check(&row);
    keep_intent(scene, &row);
    if (write->write == IDEM_WRITE_UPDATE) {
        struct scene_intent *intent = &scene->intents[row.row - 1];
        assert_int_equal(intent->row.version + 1, row.version);
        assert_true(row.epoch >= intent->row.epoch);
        expect_history_stays(scene, command, intent, &row);
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

/* The payment's sums have it from now on; once. */
static void stub_moves(struct scene *scene, struct idem_stub *stub)
{
    assert_false(stub->applied);
    stub->applied = true;
    scene->stub_moved[stub - scene->stubs] = true;
}

static void put_stub(struct scene *scene, const struct idem_decision *decision)
{
    struct idem_stub row = decision->stub.row;
    struct idem_stub *there = scene_stub_by_scope(scene, &row.scope);
    if (decision->stub.write == IDEM_WRITE_DELETE) {
        assert_non_null(there);
        there->row = 0;
        return;
    }
    if (decision->stub.write == IDEM_WRITE_UPDATE) {
        assert_non_null(there);
        assert_true(row.applied);
        stub_moves(scene, there);
        return;
    }
    assert_int_equal(decision->stub.write, IDEM_WRITE_INSERT);
    assert_null(there);
    assert_true(scene->stub_count < SCENE_STUBS);
    scene_keep(scene, &row.effect_id);
    scene_keep(scene, &row.entry);
    scene_keep(scene, &row.account);
    scene_keep(scene, &row.region);
    scene_keep(scene, &row.order_no);
    scene_keep(scene, &row.payment_effect_id);
    scene_keep(scene, &row.currency);
    scene_keep(scene, &row.reference);
    row.row = (int64_t)scene->stub_count + 1;
    scene->stubs[scene->stub_count] = row;
    scene->stub_count += 1;
    if (row.applied) {
        scene->stubs[scene->stub_count - 1].applied = false;
        stub_moves(scene, &scene->stubs[scene->stub_count - 1]);
    }
}

/* Those of the payment that has just been made. */
static void put_payment_stubs(struct scene *scene, struct idem_str effect_id)
{
    for (size_t i = 0; i < scene->stub_count; i++) {
        struct idem_stub *stub = &scene->stubs[i];
        if (stub->row != 0 && !stub->applied &&
            idem_str_equal(stub->payment_effect_id, effect_id)) {
            stub_moves(scene, stub);
        }
    }
}

static void put_credential(struct scene *scene, const struct idem_credential_write *write)
{
    if (write->write == IDEM_WRITE_UPDATE) {
        struct idem_credential_row *row = &scene->credentials[write->row.row - 1];
        assert_int_equal(row->revoked_us, 0);
        row->revoked_us = write->row.revoked_us;
        row->revoked_by = write->row.revoked_by;
        return;
    }
    assert_int_equal(write->write, IDEM_WRITE_INSERT);
    assert_true(scene->credential_count < SCENE_CREDENTIALS);
    scene->credentials[scene->credential_count] = write->row;
    scene->credential_count += 1;
    scene->credentials[scene->credential_count - 1].row = (int64_t)scene->credential_count;
}

/* What stands beside intents. */
static void put_beside(struct scene *scene, const struct idem_decision *decision)
{
    scene_put_mail(scene, decision);
    if (decision->stub.write != IDEM_WRITE_NONE) {
        put_stub(scene, decision);
    }
    if (decision->payment_stubs_applied) {
        put_payment_stubs(scene, decision->payment.row.effect_id);
    }
    if (decision->credential.write != IDEM_WRITE_NONE) {
        put_credential(scene, &decision->credential);
    }
    if (decision->mark.kind == IDEM_MARK_HORIZON && decision->mark.value_us > scene->horizon_us) {
        scene->horizon_us = decision->mark.value_us;
    }
    if (decision->mark.kind == IDEM_MARK_RESTORED_OVER) {
        scene->restored = false;
    }
}

static void put_without_intent(struct scene *scene, const struct idem_decision *decision)
{
    if (decision->payment.write != IDEM_WRITE_NONE) { /* Only a stub moves sums by itself. */
        assert_true(decision->stub.row.applied);
        (void)put_payment(scene, &decision->payment);
    }
    assert_int_equal(decision->refund.write, IDEM_WRITE_NONE);
    assert_int_equal(decision->send_write_count, 0);
    assert_int_equal(decision->event_count, 0);
    assert_int_equal(decision->opened.kind, IDEM_CASE_NONE);
    assert_int_equal(decision->decided.decided_us, 0);
    assert_false(decision->forget_history);
}

static void put_cases(struct scene *scene,
                      struct scene_intent *intent,
                      const struct idem_decision *decision)
{
    if (decision->decided.decided_us != 0) {
        intent->open_cases = 0;
        intent->cases_decided |= intent->cases_open;
        intent->cases_open = 0;
        intent->decided = decision->decided;
        scene_keep(scene, &intent->decided.decided_by);
        scene_keep(scene, &intent->decided.decision);
    }
    if (decision->opened.kind != IDEM_CASE_NONE) {
        uint32_t bit = UINT32_C(1) << decision->opened.kind;
        assert_int_equal(intent->cases_open & bit, 0); /* One of a kind is enough. */
        intent->cases_open |= bit;
        intent->case_count += 1;
        intent->open_cases += 1;
        intent->last_case = decision->opened.kind;
    }
}

/* The money is back: once. */
static void put_reversal(struct scene_intent *intent, const struct idem_decision *decision)
{
    for (size_t i = 0; i < decision->event_count; i++) {
        const struct idem_event *event = &decision->events[i];
        if (event->kind == IDEM_EVENT_REVERSED) {
            assert_int_equal(decision->opened.kind, IDEM_CASE_REVERSED);
            assert_false(intent->is_reversed);
            intent->is_reversed = idem_str_equal(
                event->detail, IDEM_STR("taken back at the provider; the sums are less by it"));
        }
    }
}

static void put(struct scene *scene,
                const struct idem_command *command,
                const struct idem_decision *decision)
{
    put_beside(scene, decision);
    if (decision->intent.write == IDEM_WRITE_NONE) {
        put_without_intent(scene, decision);
        return;
    }
    if (decision->intent.write == IDEM_WRITE_DELETE) {
        assert_int_equal(decision->event_count, 0);
        remove_intent(scene, command, &decision->intent.row);
        return;
    }
    struct scene_intent *intent = put_intent(scene, command, &decision->intent);
    if (decision->payment.write != IDEM_WRITE_NONE) {
        int64_t payment_row = put_payment(scene, &decision->payment);
        bool is_new = decision->payment.write == IDEM_WRITE_INSERT;
        intent->row.payment_row = is_new ? payment_row : intent->row.payment_row;
    }
    if (decision->refund.write != IDEM_WRITE_NONE) {
        intent->row.refund_row = put_refund(scene, &decision->refund);
    }
    if (decision->forget_history) {
        intent->send_count = 0;
        intent->event_count = 0;
    }
    put_sends(intent, decision);
    assert_true(intent->send_count == intent->row.send_count ||
                idem_intent_is_tombstone(&intent->row));
    intent->event_count += decision->event_count;
    if (decision->event_count > 0) {
        intent->last_event = decision->events[decision->event_count - 1].kind;
    }
    put_cases(scene, intent, decision);
    put_reversal(intent, decision);
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

/* It is in its payment's sums: it succeeded, or a case has made a payment of it. */
static bool is_counted(const struct scene_intent *intent, const struct idem_payment *payment)
{
    bool is_done = intent->row.state == IDEM_INTENT_SUCCEEDED ||
                   (intent->row.state == IDEM_INTENT_FAILED && idem_payment_is_stray(payment));
    return intent->row.row != 0 && intent->row.payment_row == payment->row && is_done &&
           !intent->is_reversed;
}

/* What succeeded, and what a stub that is still there has moved: nothing else, and once. */
static int64_t done_to(const struct scene *scene,
                       const struct idem_payment *payment,
                       enum idem_effect_kind kind)
{
    int64_t sum_minor = 0;
    for (size_t i = 0; i < scene->intent_count; i++) {
        const struct idem_effect *effect = &scene->intents[i].row.effect;
        bool is_done = is_counted(&scene->intents[i], payment) && effect->kind == kind;
        sum_minor += is_done ? effect->amount_minor : 0;
    }
    for (size_t i = 0; i < scene->stub_count; i++) {
        const struct idem_stub *stub = &scene->stubs[i];
        bool is_done = stub->row != 0 && scene->stub_moved[i] && stub->kind == kind &&
                       idem_str_equal(stub->payment_effect_id, payment->effect_id);
        sum_minor += is_done ? stub->amount_minor : 0;
    }
    return sum_minor;
}

static void audit_sums(const struct scene *scene, const struct idem_payment *payment)
{
    if (payment->state == IDEM_PAYMENT_FAILED) { /* It never was; a row of the same id may be. */
        assert_int_equal(payment->authorized_minor, 0);
        return;
    }
    assert_int_equal(payment->refunded_minor, done_to(scene, payment, IDEM_EFFECT_KIND_REFUND));
    assert_int_equal(payment->captured_minor, done_to(scene, payment, IDEM_EFFECT_KIND_CAPTURE) +
                                                  done_to(scene, payment, IDEM_EFFECT_KIND_CHARGE));
}

/* What the provider lists as done does not end as failed, and its stub goes with its success. */
static void audit_stubs(struct scene *scene)
{
    for (size_t i = 0; i < scene->stub_count; i++) {
        const struct idem_stub *stub = &scene->stubs[i];
        const struct scene_intent *intent =
            stub->row != 0 ? scene_intent_by_scope(scene, &stub->scope) : NULL;
        assert_true(intent == NULL || !idem_intent_is_final(intent->row.state));
    }
}

static void audit(struct scene *scene)
{
    audit_stubs(scene);
    for (size_t i = 0; i < scene->payment_count; i++) {
        const struct idem_payment *payment = &scene->payments[i];
        struct reserved reserved = reserved_on(scene, payment->row);
        idem_payment_check(payment);
        assert_int_equal(payment->capture_pending_minor, reserved.capture_minor);
        assert_int_equal(payment->refund_pending_minor, reserved.refund_minor);
        assert_int_equal(payment->canceling, reserved.cancels);
        assert_int_equal(payment->state == IDEM_PAYMENT_PENDING, reserved.creations);
        audit_sums(scene, payment);
    }
    for (size_t i = 0; i < scene->intent_count; i++) {
        const struct scene_intent *intent = &scene->intents[i];
        if (intent->row.row == 0) {
            continue;
        }
        idem_intent_check(&intent->row);
        assert_true(intent->row.state != IDEM_INTENT_PARKED || intent->open_cases > 0); /* P9. */
    }
}

static void expect_send_is_safe(struct scene *scene,
                                const struct idem_command *command,
                                const struct idem_release *release)
{
    assert_false(command->restored &&
                 (release->kind == IDEM_RELEASE_SEND || release->kind == IDEM_RELEASE_CLOSE));
    if (release->kind != IDEM_RELEASE_SEND) {
        return;
    }
    assert_int_equal(scene->facts.stub.row, 0);
    const struct scene_intent *intent = scene_intent_by_scope(scene, &command->scope);
    assert_non_null(intent);
    if (intent->row.endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        struct idem_str order_no = scene->payments[intent->row.payment_row - 1].order_no;
        assert_int_equal(scene_order_stub(scene, &command->scope, order_no).row, 0);
    }
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
    assert_int_equal(left->decided.decided_us, right->decided.decided_us);
    assert_int_equal(left->forget_history, right->forget_history);
    assert_int_equal(left->stub.write, right->stub.write);
    assert_int_equal(left->payment_stubs_applied, right->payment_stubs_applied);
    assert_int_equal(left->credential.write, right->credential.write);
    assert_int_equal(left->inbox.write, right->inbox.write);
    assert_int_equal(left->message_count, right->message_count);
    assert_int_equal(left->webhook.write, right->webhook.write);
    assert_int_equal(left->delivery.write, right->delivery.write);
    assert_int_equal(left->mark.kind, right->mark.kind);
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
    scene_fetch(scene, command, facts);
    idem_decide(&scene->rules, facts, command, again);
    free(facts);
    expect_same_release(first->release, again->release);
    assert_int_equal(again->event_count, 0);
    assert_int_equal(again->send_write_count, 0);
    assert_int_equal(again->payment.write, IDEM_WRITE_NONE);
    assert_int_equal(again->refund.write, IDEM_WRITE_NONE);
    assert_int_equal(again->opened.kind, IDEM_CASE_NONE);
    assert_int_equal(again->decided.decided_us, 0);
    assert_false(again->forget_history);
    assert_int_equal(again->stub.write, IDEM_WRITE_NONE);
    assert_int_equal(again->credential.write, IDEM_WRITE_NONE);
    assert_int_equal(again->webhook.write, IDEM_WRITE_NONE);
    bool is_test = first->message_count > 0 && first->messages[0].type == IDEM_MESSAGE_TEST;
    assert_int_equal(again->message_count, is_test ? 1 : 0); /* The same: it stays as it is. */
    assert_int_equal(again->inbox.write != IDEM_WRITE_NONE, first->inbox.write != IDEM_WRITE_NONE);
    assert_int_equal(again->mark.kind, first->mark.kind);
    bool is_there =
        first->intent.write == IDEM_WRITE_INSERT || first->intent.write == IDEM_WRITE_UPDATE;
    assert_int_equal(again->intent.write, is_there ? IDEM_WRITE_UPDATE : IDEM_WRITE_NONE);
    put(scene, command, again);
}

void scene_fetch_for(struct scene *scene, const struct idem_command *command)
{
    scene_fetch(scene, command, &scene->facts);
}

/* An event that came before counts itself, and that is all. */
static void expect_seen_changes_nothing(const struct scene *scene,
                                        const struct idem_decision *decision)
{
    if (!scene->facts.event_seen) {
        return;
    }
    bool is_left = decision->release.problem == IDEM_PROBLEM_UNAVAILABLE; /* With the provider. */
    assert_int_equal(decision->inbox.write, is_left ? IDEM_WRITE_NONE : IDEM_WRITE_UPDATE);
    assert_int_equal(decision->intent.write, IDEM_WRITE_NONE);
    assert_int_equal(decision->payment.write, IDEM_WRITE_NONE);
    assert_int_equal(decision->refund.write, IDEM_WRITE_NONE);
    assert_int_equal(decision->event_count, 0);
    assert_int_equal(decision->message_count, 0);
    assert_int_equal(decision->opened.kind, IDEM_CASE_NONE);
}

struct idem_release scene_run(struct scene *scene, const struct idem_command *command)
{
    scene_fetch(scene, command, &scene->facts);
    idem_decide(&scene->rules, &scene->facts, command, &scene->again);
    idem_decide(&scene->rules, &scene->facts, command, &scene->decision);
    expect_same_decision(&scene->again, &scene->decision);
    scene_expect_told(scene, &scene->decision);
    expect_seen_changes_nothing(scene, &scene->decision);
    put(scene, command, &scene->decision);
    audit(scene);
    expect_send_is_safe(scene, command, &scene->decision.release);
    run_again(scene, command);
    return scene->decision.release;
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
