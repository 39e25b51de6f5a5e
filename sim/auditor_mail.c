/*
 * The judge of what comes in by itself and of what goes out by itself:
 *
 *   taken      P2 the event stands in the inbox; P7 "done" has settled, or a person has it; P10
 *              what was taken back has its case
 *   event      the inbox: an event that was durable once changes nothing any more
 *   told       P11 a record that has moved has its message in the same commit, and none has one
 *              that did not
 *   post       P1 a message is posted after it was taken, and that is durable
 *   end        every event was taken; messages and rows agree; each delivery has arrived, has its
 *              next try before it, or is dead for a reason
 */
#include <string.h>

#include "base/bug.h"
#include "base/money.h"
#include "outbox/post.h"
#include "sim/auditor_internal.h"
#include "sim/world.h"

static const char *key_of(const struct sim_book *book)
{
    return book->plan->key;
}

#define OVERDUE_US (90 * SIM_SECOND)

/* ---- events ---- */

/* How many cases of a kind the record has, open or decided. */
static size_t cases_of(const struct sim_disk *disk, int64_t intent_row, enum idem_case_kind kind)
{
    size_t count = 0;
    for (size_t handle = 1; handle <= disk->rows.cases.count; handle++) {
        const struct idem_memory_case *found = idem_memory_row(&disk->rows.cases, (int64_t)handle);
        bool is_one =
            found != NULL && found->intent_row == intent_row && found->opened.kind == kind;
        count += is_one ? 1 : 0;
    }
    return count;
}

/* How often the history says that it was taken back; it may have forgotten that. */
static size_t reversals_of(const struct sim_disk *disk, int64_t intent_row)
{
    size_t count = 0;
    int64_t handle = idem_memory_intent_at(&disk->rows, intent_row)->last_event;
    while (handle != 0) {
        const struct idem_memory_event *found = idem_memory_row(&disk->rows.events, handle);
        count += found != NULL && found->event.kind == IDEM_EVENT_REVERSED ? 1 : 0;
        handle = found != NULL ? found->before : 0;
    }
    return count;
}

/* An authorization that was given back: that it expires says nothing new. */
static bool is_void(const struct sim_disk *disk, const struct idem_intent *intent)
{
    const struct idem_payment *payment =
        intent->payment_row != 0 ? sim_disk_payment_at(disk, (size_t)intent->payment_row) : NULL;
    return intent->effect.kind == IDEM_EFFECT_KIND_AUTHORIZE && payment != NULL &&
           payment->state == IDEM_PAYMENT_CANCELED;
}

static void check_settled(struct sim_auditor *auditor,
                          const struct sim_notice *notice,
                          const struct sim_book *book,
                          const struct idem_intent *intent)
{
    struct sim_disk *disk = &auditor->world->disk;
    bool is_over = idem_intent_is_final(intent->state) || intent->state == IDEM_INTENT_PARKED;
    bool says_done = notice->outcome == IDEM_OUTCOME_SUCCESS;
    bool says_back = notice->outcome == IDEM_OUTCOME_REVERSED;
    if ((says_done || says_back) && !is_over) {
        sim_violation(auditor, "P7: an event said that %s is done, and it is %s", key_of(book),
                      idem_intent_state_name(intent->state));
    }
    size_t cases = cases_of(disk, intent->row, IDEM_CASE_REVERSED);
    bool is_counted = cases == 1 || (cases == 0 && is_void(disk, intent));
    if (says_back && idem_intent_is_final(intent->state) &&
        (!is_counted || reversals_of(disk, intent->row) > 1)) {
        sim_violation(auditor, "P10: %s was taken back, and that is not counted once",
                      key_of(book));
    }
}

void sim_audit_taken(struct sim_auditor *auditor, const struct sim_notice *notice)
{
    struct sim_world *world = auditor->world;
    struct idem_str entry = world->entries[notice->effect->entry].entry;
    struct idem_scope scope;
    if (sim_disk_events(&world->disk, entry, idem_str_from(notice->event_id)) != 1) {
        sim_violation(auditor, "P2: %s was taken, and the inbox does not have it once",
                      notice->event_id);
    }
    bool is_ours = idem_effect_id_scope(
        (struct idem_str){ .data = notice->id, .len = sizeof(notice->id) }, &scope);
    const struct sim_book *book = is_ours ? sim_book_of_scope(auditor, &scope) : NULL;
    const struct idem_intent *intent = is_ours ? sim_disk_intent(&world->disk, &scope) : NULL;
    if (book != NULL && intent != NULL && notice->is_true && !book->excused) {
        check_settled(auditor, notice, book, intent);
    }
}

void sim_audit_event(struct sim_auditor *auditor, const struct idem_store_item *item)
{
    const struct idem_command *command = &item->command;
    if (command->kind != IDEM_COMMAND_EVIDENCE ||
        command->evidence.source != IDEM_SOURCE_CALLBACK || item->answer != IDEM_STORE_DURABLE) {
        return;
    }
    struct sim_notice *notice =
        sim_notice_find(&auditor->world->notices, command->evidence.event_id);
    const struct sim_book *book = sim_book_of_scope(auditor, &command->scope);
    IDEM_ASSERT(notice != NULL);
    if (idem_uid_is_zero(notice->token)) {
        notice->token = command->token;
        return;
    }
    bool is_same_run = idem_uid_equal(notice->token, command->token) ||
                       (book != NULL && idem_uid_equal(book->writer_before, command->token));
    if (!is_same_run && book != NULL && book->version != book->version_before) {
        sim_violation(auditor, "P3: %s came again, and %s has changed by it", notice->event_id,
                      key_of(book));
    }
}

/* ---- messages ---- */

static const struct idem_message *message_at(const struct sim_disk *disk, size_t handle)
{
    const struct idem_memory_message *found =
        idem_memory_row(&disk->rows.messages, (int64_t)handle);
    return found != NULL ? &found->message : NULL;
}

static bool contains(struct idem_str text, struct idem_str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++) {
        if (memcmp(text.data + i, part.data, part.len) == 0) {
            return true;
        }
    }
    return false;
}

static bool says(const struct idem_message *message, const char *name, struct idem_uid id)
{
    char memory[128];
    struct idem_buf part;
    idem_buf_init(&part, memory, sizeof(memory));
    idem_buf_add(&part, idem_str_from(name));
    idem_uid_print(id, &part);
    return contains(message->data, idem_buf_str(&part));
}

/* NONE: nobody is told of it. */
static enum idem_message_type type_of(enum idem_intent_state state)
{
    static const enum idem_message_type types[IDEM_INTENT_COUNT] = {
        [IDEM_INTENT_UNKNOWN] = IDEM_MESSAGE_OPERATION_UNKNOWN,
        [IDEM_INTENT_PARKED] = IDEM_MESSAGE_OPERATION_PARKED,
        [IDEM_INTENT_SUCCEEDED] = IDEM_MESSAGE_OPERATION_SUCCEEDED,
        [IDEM_INTENT_FAILED] = IDEM_MESSAGE_OPERATION_FAILED,
        [IDEM_INTENT_RELEASED] = IDEM_MESSAGE_OPERATION_RELEASED,
    };
    return types[state];
}

static size_t messages_about(const struct sim_disk *disk,
                             const struct idem_intent *intent,
                             enum idem_message_type type)
{
    size_t count = 0;
    for (size_t handle = 1; handle <= disk->rows.messages.count; handle++) {
        const struct idem_message *message = message_at(disk, handle);
        bool is_one = message != NULL && message->type == type &&
                      says(message, "{\"operation\":{\"id\":\"", intent->id);
        count += is_one ? 1 : 0;
    }
    return count;
}

void sim_audit_told(struct sim_auditor *auditor,
                    struct sim_book *book,
                    const struct idem_intent *intent)
{
    struct sim_world *world = auditor->world;
    enum idem_intent_state state = intent != NULL ? intent->state : IDEM_INTENT_NONE;
    enum idem_intent_state before = book->state;
    book->version_before = book->version;
    book->version = intent != NULL ? intent->version : 0;
    book->writer_before = book->writer;
    book->writer = intent != NULL ? intent->last_command : book->writer;
    book->state = state;
    const struct sim_merchant *merchant = sim_merchant_of(&world->merchants, book->plan->principal);
    if (before == IDEM_INTENT_NONE && state != IDEM_INTENT_NONE) {
        book->is_watched = merchant->is_told;
    }
    if (state == before || type_of(state) == IDEM_MESSAGE_NONE || !merchant->wants) {
        return;
    }
    const struct idem_webhook *webhook = sim_disk_webhook(&world->disk, merchant->webhook_id);
    bool is_told = merchant->is_told && webhook != NULL && webhook->disabled_us == 0;
    size_t count = messages_about(&world->disk, intent, type_of(state));
    if (is_told && count <= book->told[state]) {
        sim_violation(auditor, "P11: %s became %s, and no message says so", key_of(book),
                      idem_intent_state_name(state));
    }
    book->told[state] = count;
}

void sim_audit_listeners(struct sim_auditor *auditor)
{
    struct sim_world *world = auditor->world;
    for (size_t i = 0; i < SIM_PRINCIPALS; i++) {
        struct sim_merchant *merchant = &world->merchants.all[i];
        const struct idem_webhook *webhook =
            merchant->wants ? sim_disk_webhook(&world->disk, merchant->webhook_id) : NULL;
        merchant->is_told = webhook != NULL && webhook->disabled_us == 0;
        bool was_disabled = webhook != NULL && webhook->version > 1;
        merchant->was_told = merchant->was_told && !was_disabled;
    }
}

/* ---- deliveries ---- */

static const struct idem_delivery *delivery_of(const struct sim_disk *disk,
                                               const struct idem_post_call *call)
{
    for (size_t handle = 1; handle <= disk->rows.deliveries.count; handle++) {
        const struct idem_memory_delivery *found =
            idem_memory_row(&disk->rows.deliveries, (int64_t)handle);
        if (found != NULL && found->delivery.message_row == call->message->row &&
            found->delivery.webhook_row == call->webhook->row) {
            return &found->delivery;
        }
    }
    return NULL;
}

void sim_audit_post(struct sim_auditor *auditor, const struct idem_post_call *call)
{
    const struct idem_delivery *delivery = delivery_of(&auditor->world->disk, call);
    if (delivery == NULL || idem_uid_is_zero(delivery->token)) {
        sim_violation(auditor, "P1: a message is posted that nobody has taken");
    }
}

/* ---- the end ---- */

static void check_events(struct sim_auditor *auditor)
{
    const struct sim_notice *notice = auditor->world->notices.first;
    for (; notice != NULL; notice = notice->next) {
        if (!notice->acknowledged) {
            sim_violation(auditor, "P8: %s was never taken, in %llu deliveries", notice->event_id,
                          (unsigned long long)notice->deliveries);
        }
    }
}

/* A merchant that was told from before the record on has heard of its end once. */
static void check_ends(struct sim_auditor *auditor)
{
    struct sim_world *world = auditor->world;
    for (size_t i = 0; i < world->callers.count; i++) {
        const struct sim_book *book = &auditor->books[i];
        const struct sim_merchant *merchant =
            sim_merchant_of(&world->merchants, book->plan->principal);
        const struct idem_intent *intent = sim_disk_intent(&world->disk, &book->plan->scope);
        bool is_meant = book->is_watched && merchant->was_told && intent != NULL &&
                        idem_intent_is_final(intent->state);
        size_t count = is_meant ? messages_about(&world->disk, intent, type_of(intent->state)) : 1;
        if (count != 1) {
            sim_violation(auditor, "P11: %s is %s, and %zu messages say so", key_of(book),
                          idem_intent_state_name(intent->state), count);
        }
    }
}

static bool is_about_payment(const struct idem_message *message, const struct idem_payment *payment)
{
    return message->type >= IDEM_MESSAGE_PAYMENT_AUTHORIZED &&
           message->type <= IDEM_MESSAGE_PAYMENT_REVERSED &&
           idem_uid_equal(message->payment_id, payment->id);
}

static bool says_state(const struct idem_message *message, const struct idem_payment *payment)
{
    char memory[64];
    struct idem_buf part;
    idem_buf_init(&part, memory, sizeof(memory));
    idem_buf_printf(&part, "\"state\":\"%s\"", idem_payment_state_name(payment->state));
    return contains(message->data, idem_buf_str(&part));
}

static bool says_sum(const struct idem_message *message, const char *name, int64_t minor)
{
    char memory[64];
    struct idem_buf part;
    idem_buf_init(&part, memory, sizeof(memory));
    idem_buf_printf(&part, "\"%s\":\"", name);
    idem_amount_print(minor, 2, &part);
    idem_buf_add_char(&part, '"');
    return contains(message->data, idem_buf_str(&part));
}

/* NULL: nobody was told of it. */
static const struct idem_message *last_about(const struct sim_disk *disk,
                                             const struct idem_payment *payment)
{
    const struct idem_message *last = NULL;
    for (size_t at = 1; at <= disk->rows.messages.count; at++) {
        const struct idem_message *message = message_at(disk, at);
        bool is_one = message != NULL && is_about_payment(message, payment);
        last = is_one ? message : last;
    }
    return last;
}

/* The last word about a payment is how it stands. */
static void check_payment_told(struct sim_auditor *auditor, const struct idem_payment *payment)
{
    struct sim_world *world = auditor->world;
    const struct idem_message *last = last_about(&world->disk, payment);
    const struct sim_merchant *merchant = sim_merchant_of(&world->merchants, payment->principal);
    if (last == NULL || !merchant->was_told) {
        return;
    }
    if (!says_state(last, payment) || !says_sum(last, "captured", payment->captured_minor) ||
        !says_sum(last, "refunded", payment->refunded_minor)) {
        sim_violation(auditor, "P11: a payment is %s, and the last message says otherwise",
                      idem_payment_state_name(payment->state));
    }
}

static void check_payments(struct sim_auditor *auditor)
{
    struct sim_disk *disk = &auditor->world->disk;
    for (size_t handle = 1; handle <= sim_disk_payments(disk); handle++) {
        const struct idem_payment *payment = sim_disk_payment_at(disk, handle);
        if (payment != NULL) {
            check_payment_told(auditor, payment);
        }
    }
}

/* Where clocks are about right. */
static bool is_overdue(const struct sim_world *world, const struct idem_delivery *delivery)
{
    return world->clocks_ok && delivery->state == IDEM_DELIVERY_PENDING &&
           delivery->due_us + OVERDUE_US < world->now_us;
}

/* Behind an earlier one about the same payment, which has not been tried too often. */
static bool waits_behind(const struct sim_disk *disk, const struct idem_delivery *delivery)
{
    for (size_t handle = 1; handle <= disk->rows.deliveries.count; handle++) {
        const struct idem_memory_delivery *found =
            idem_memory_row(&disk->rows.deliveries, (int64_t)handle);
        bool is_before = found != NULL && found->delivery.state == IDEM_DELIVERY_PENDING &&
                         found->delivery.webhook_row == delivery->webhook_row &&
                         found->delivery.message_row < delivery->message_row &&
                         idem_uid_equal(found->delivery.payment_id, delivery->payment_id);
        if (is_before && found->delivery.attempts <= IDEM_POST_ORDERED_MAX) {
            return true;
        }
    }
    return false;
}

static void check_delivery(struct sim_auditor *auditor, const struct idem_delivery *delivery)
{
    struct sim_world *world = auditor->world;
    const struct idem_message *message = message_at(&world->disk, (size_t)delivery->message_row);
    if (message == NULL) {
        sim_violation(auditor, "P11: a delivery of a message that is not there");
        return;
    }
    const struct sim_merchant *merchant = sim_merchant_of(&world->merchants, message->principal);
    const struct idem_webhook *webhook = sim_disk_webhook(&world->disk, merchant->webhook_id);
    bool arrived = sim_merchant_heard(merchant, message->id) > 0;
    if (delivery->state == IDEM_DELIVERY_DELIVERED && !arrived) {
        sim_violation(auditor, "P2: a message is delivered, and it never arrived");
    }
    if (delivery->state == IDEM_DELIVERY_DEAD && webhook->version == 1) {
        sim_violation(auditor, "P9: a message was given up, and nobody has disabled its webhook");
    }
    if (is_overdue(world, delivery) && !waits_behind(&world->disk, delivery)) {
        sim_violation(auditor, "P8: a message is overdue, after %u attempts",
                      (unsigned)delivery->attempts);
    }
}

bool sim_audit_is_left(const struct sim_auditor *auditor, const struct sim_book *book)
{
    const struct sim_disk *disk = &auditor->world->disk;
    const struct idem_intent *intent = sim_disk_intent(disk, &book->plan->scope);
    for (size_t handle = 1; intent != NULL && handle <= disk->rows.cases.count; handle++) {
        const struct idem_memory_case *found = idem_memory_row(&disk->rows.cases, (int64_t)handle);
        if (found != NULL && found->intent_row == intent->row &&
            found->opened.kind == IDEM_CASE_REVERSED &&
            contains(found->opened.detail, IDEM_STR("the sums do not have it to give"))) {
            return true;
        }
    }
    return false;
}

void sim_audit_mail_end(struct sim_auditor *auditor)
{
    struct sim_world *world = auditor->world;
    check_events(auditor);
    check_payments(auditor);
    check_ends(auditor);
    for (size_t handle = 1; handle <= world->disk.rows.deliveries.count; handle++) {
        const struct idem_memory_delivery *found =
            idem_memory_row(&world->disk.rows.deliveries, (int64_t)handle);
        if (found != NULL) {
            check_delivery(auditor, &found->delivery);
        }
    }
}
