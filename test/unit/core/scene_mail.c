/*
 * Mail in the scene: the inbox of providers' events, webhooks, messages and their deliveries, as
 * store/rows.h tells a store to keep them; and what a decision must tell, said a second time: from
 * the rows before and after, by another rule than core's.
 */
#include "unit/core/scene_internal.h"

static void put_inbox(struct scene *scene, const struct idem_inbox_write *write)
{
    struct scene_event *event = scene_event(scene, write->entry, write->event_id);
    if (write->write == IDEM_WRITE_UPDATE) {
        assert_non_null(event);
        event->times += 1;
        return;
    }
    assert_int_equal(write->write, IDEM_WRITE_INSERT);
    assert_null(event);
    assert_true(scene->inbox_count < SCENE_INBOX);
    event = &scene->inbox[scene->inbox_count];
    *event = (struct scene_event){
        .entry = write->entry,
        .event_id = write->event_id,
        .times = 1,
        .known = write->known,
    };
    scene_keep(scene, &event->entry);
    scene_keep(scene, &event->event_id);
    scene->inbox_count += 1;
}

static bool wants(const struct idem_webhook *webhook, const struct idem_message *message)
{
    return webhook->disabled_us == 0 && idem_str_equal(webhook->principal, message->principal) &&
           (webhook->types & (UINT64_C(1) << message->type)) != 0;
}

static void put_message(struct scene *scene,
                        const struct idem_message *message,
                        int64_t webhook_row)
{
    for (size_t i = 0; i < scene->delivery_count; i++) {
        if (idem_uid_equal(scene->deliveries[i].message_id, message->id)) {
            assert_int_equal(message->type, IDEM_MESSAGE_TEST); /* Its command ran before. */
            return;
        }
    }
    scene->told[message->type] += 1;
    scene->last_message = message->id;
    for (size_t i = 0; i < scene->webhook_count; i++) {
        const struct idem_webhook *webhook = &scene->webhooks[i];
        bool is_meant = webhook_row != 0 ? webhook->row == webhook_row : wants(webhook, message);
        if (!is_meant) {
            continue;
        }
        assert_true(scene->delivery_count < SCENE_DELIVERIES);
        scene->deliveries[scene->delivery_count] = (struct scene_delivery){
            .row = {
                .row = (int64_t)scene->delivery_count + 1,
                .version = 1,
                .webhook_row = webhook->row,
                .payment_id = message->payment_id,
                .state = IDEM_DELIVERY_PENDING,
                .due_us = message->at_us,
                .created_us = message->at_us,
            },
            .message_id = message->id,
            .webhook_id = webhook->id,
            .type = message->type,
        };
        scene->delivery_count += 1;
    }
}

static void put_delivery(struct scene *scene, const struct idem_delivery_write *write)
{
    struct idem_delivery row = write->row;
    assert_int_equal(write->write, IDEM_WRITE_UPDATE);
    assert_int_equal(scene->deliveries[row.row - 1].row.version + 1, row.version);
    assert_int_equal(row.state == IDEM_DELIVERY_PENDING, row.due_us != 0);
    assert_int_equal(row.state == IDEM_DELIVERY_PENDING, row.finished_us == 0);
    scene_keep(scene, &row.last_error);
    scene->deliveries[row.row - 1].row = row;
}

static void drop_deliveries(struct scene *scene, int64_t webhook_row)
{
    for (size_t i = 0; i < scene->delivery_count; i++) {
        struct idem_delivery *row = &scene->deliveries[i].row;
        if (row->webhook_row == webhook_row && row->state == IDEM_DELIVERY_PENDING) {
            row->state = IDEM_DELIVERY_DEAD;
            row->due_us = 0;
            row->finished_us = scene->now_us;
            row->version += 1;
        }
    }
}

static void put_webhook(struct scene *scene, const struct idem_webhook_write *write)
{
    struct idem_webhook row = write->row;
    scene_keep(scene, &row.principal);
    scene_keep(scene, &row.url);
    scene_keep(scene, &row.created_by);
    scene_keep(scene, &row.disabled_by);
    if (write->write == IDEM_WRITE_UPDATE) {
        assert_int_equal(scene->webhooks[row.row - 1].version + 1, row.version);
        scene->webhooks[row.row - 1] = row;
    } else {
        assert_int_equal(write->write, IDEM_WRITE_INSERT);
        assert_int_equal(row.version, 1);
        assert_true(scene->webhook_count < SCENE_WEBHOOKS);
        row.row = (int64_t)scene->webhook_count + 1;
        scene->webhooks[scene->webhook_count] = row;
        scene->webhook_count += 1;
    }
    if (row.disabled_us != 0) {
        drop_deliveries(scene, row.row);
    }
}

void scene_put_mail(struct scene *scene, const struct idem_decision *decision)
{
    if (decision->inbox.write != IDEM_WRITE_NONE) {
        put_inbox(scene, &decision->inbox);
    }
    for (size_t i = 0; i < decision->message_count; i++) {
        const struct idem_message *message = &decision->messages[i];
        bool is_test = message->type == IDEM_MESSAGE_TEST;
        put_message(scene, message, is_test ? decision->webhook.row.row : 0);
    }
    if (decision->delivery.write != IDEM_WRITE_NONE) {
        put_delivery(scene, &decision->delivery);
    }
    if (decision->webhook.write != IDEM_WRITE_NONE) {
        put_webhook(scene, &decision->webhook);
    }
}

/* ---- what must be told ---- */

static bool contains(struct idem_str text, const char *part)
{
    size_t len = strlen(part);
    for (size_t i = 0; i + len <= text.len; i++) {
        if (memcmp(text.data + i, part, len) == 0) {
            return true;
        }
    }
    return false;
}

/* Messages of the types from `first` to `last`; each says `"state":"<state>"`. */
static size_t told_of(const struct idem_decision *decision,
                      enum idem_message_type first,
                      enum idem_message_type last,
                      const char *state)
{
    size_t count = 0;
    char part[64];
    (void)snprintf(part, sizeof(part), "\"state\":\"%s\"", state);
    for (size_t i = 0; i < decision->message_count; i++) {
        const struct idem_message *message = &decision->messages[i];
        if (message->type >= first && message->type <= last) {
            assert_true(contains(message->data, part));
            count += 1;
        }
    }
    return count;
}

/* Money is somewhere else than before, or it came to an end. */
static bool payment_moved(const struct idem_payment *from, const struct idem_payment *to)
{
    bool same_sums = from->captured_minor == to->captured_minor &&
                     from->refunded_minor == to->refunded_minor &&
                     from->released_minor == to->released_minor;
    bool same_state = from->state == to->state || to->state == IDEM_PAYMENT_PENDING;
    return !same_sums || !same_state;
}

static void expect_payment_told(const struct scene *scene, const struct idem_decision *decision)
{
    static const struct idem_payment none;
    const struct idem_payment_write *write = &decision->payment;
    const struct idem_payment *from =
        write->write == IDEM_WRITE_INSERT ? &none : &scene->facts.payment;
    bool is_told = write->write != IDEM_WRITE_NONE && payment_moved(from, &write->row);
    assert_int_equal(told_of(decision, IDEM_MESSAGE_PAYMENT_AUTHORIZED,
                             IDEM_MESSAGE_PAYMENT_REVERSED,
                             idem_payment_state_name(write->row.state)),
                     is_told ? 1 : 0);
}

static void expect_refund_told(const struct scene *scene, const struct idem_decision *decision)
{
    const struct idem_refund_write *write = &decision->refund;
    enum idem_refund_state from =
        write->write == IDEM_WRITE_INSERT ? IDEM_REFUND_NONE : scene->facts.refund.state;
    bool is_told = write->write != IDEM_WRITE_NONE && write->row.state != from &&
                   write->row.state != IDEM_REFUND_PENDING;
    assert_int_equal(told_of(decision, IDEM_MESSAGE_REFUND_SUCCEEDED, IDEM_MESSAGE_REFUND_FAILED,
                             idem_refund_state_name(write->row.state)),
                     is_told ? 1 : 0);
}

static void expect_operation_told(const struct scene *scene, const struct idem_decision *decision)
{
    enum idem_intent_state from = scene->facts.intent.state;
    enum idem_intent_state to = decision->intent.row.state;
    bool is_told = from != to && to > IDEM_INTENT_DISPATCHED;
    assert_int_equal(told_of(decision, IDEM_MESSAGE_OPERATION_UNKNOWN,
                             IDEM_MESSAGE_OPERATION_RELEASED, idem_operation_state_name(to)),
                     is_told ? 1 : 0);
}

void scene_expect_told(const struct scene *scene, const struct idem_decision *decision)
{
    if (!scene->facts.listened) {
        for (size_t i = 0; i < decision->message_count; i++) {
            assert_int_equal(decision->messages[i].type, IDEM_MESSAGE_TEST);
        }
        return;
    }
    const char *state = idem_operation_state_name(decision->intent.row.state);
    bool had_case = scene->facts.intent.state == IDEM_INTENT_PARKED || scene->facts.cases_open != 0;
    bool decides = decision->decided.decided_us != 0 && had_case;
    expect_payment_told(scene, decision);
    expect_refund_told(scene, decision);
    expect_operation_told(scene, decision);
    assert_int_equal(told_of(decision, IDEM_MESSAGE_CASE_OPENED, IDEM_MESSAGE_CASE_OPENED, state),
                     decision->opened.kind != IDEM_CASE_NONE ? 1 : 0);
    assert_int_equal(told_of(decision, IDEM_MESSAGE_CASE_DECIDED, IDEM_MESSAGE_CASE_DECIDED, state),
                     decides ? 1 : 0);
    for (size_t i = 0; i < decision->message_count; i++) {
        const struct idem_message *message = &decision->messages[i];
        assert_true(message->data.len <= IDEM_MESSAGE_DATA_MAX);
        assert_true(idem_str_equal(message->principal, IDEM_STR("shop")));
        assert_false(idem_uid_is_zero(message->id));
        for (size_t k = 0; k < i; k++) {
            assert_false(idem_uid_equal(message->id, decision->messages[k].id));
        }
    }
}
