/*
 * What changed, as messages. A message has the resource as it stands after the change, so that one
 * that arrives late or twice does no harm to whoever compares its sequence.
 *
 * Reservations, sends and questions are nobody's business but ours and are not told.
 */
#include "core/tell.h"

#include "base/bug.h"
#include "base/json.h"

/* In the order of `payment_id`. What a listing has moved is told without an intent. */
static void tell(struct idem_turn *turn,
                 enum idem_message_type type,
                 struct idem_uid payment_id,
                 struct idem_str data)
{
    struct idem_decision *decision = turn->decision;
    bool has_intent = turn->intent->state != IDEM_INTENT_NONE;
    IDEM_ASSERT(decision->message_count < IDEM_MESSAGES_STEP_MAX);
    IDEM_ASSERT(!idem_uid_is_zero(turn->command->message_id));
    struct idem_uid id = turn->command->message_id;
    id.bytes[sizeof(id.bytes) - 1] ^= (uint8_t)decision->message_count;
    decision->messages[decision->message_count] = (struct idem_message){
        .id = id,
        .type = type,
        .principal = has_intent ? turn->intent->principal : turn->payment->principal,
        .payment_id = payment_id,
        .at_us = turn->command->now_us,
        .data = data,
    };
    decision->message_count += 1;
}

/* NONE: nothing that a merchant cares for. `from` is the same payment before, or zero. */
static enum idem_message_type payment_type(const struct idem_payment *from,
                                           const struct idem_payment *to)
{
    if (to->captured_minor < from->captured_minor || to->refunded_minor < from->refunded_minor) {
        return IDEM_MESSAGE_PAYMENT_REVERSED;
    }
    if (to->refunded_minor > from->refunded_minor) {
        return IDEM_MESSAGE_PAYMENT_REFUNDED;
    }
    if (to->captured_minor > from->captured_minor) {
        return IDEM_MESSAGE_PAYMENT_CAPTURED;
    }
    bool moved = to->state != from->state;
    if (moved && to->state == IDEM_PAYMENT_EXPIRED) {
        return IDEM_MESSAGE_PAYMENT_EXPIRED;
    }
    /* All of it, or what was not captured; or what had expired is canceled as well. */
    if (to->released_minor > from->released_minor ||
        (moved && to->state == IDEM_PAYMENT_CANCELED)) {
        return IDEM_MESSAGE_PAYMENT_CANCELED;
    }
    if (moved && to->state == IDEM_PAYMENT_AUTHORIZED) {
        return IDEM_MESSAGE_PAYMENT_AUTHORIZED;
    }
    if (moved && to->state == IDEM_PAYMENT_FAILED) {
        return IDEM_MESSAGE_PAYMENT_FAILED;
    }
    return IDEM_MESSAGE_NONE;
}

/* The text of a resource ends with a line end, which stands inside an object here. */
static struct idem_str resource_end(struct idem_turn *turn, size_t from)
{
    struct idem_buf *scratch = &turn->decision->scratch;
    IDEM_ASSERT(scratch->len > from);
    scratch->len -= 1;
    idem_buf_add_char(scratch, '}');
    return idem_turn_text_since(turn, from);
}

static void tell_payment(struct idem_turn *turn)
{
    static const struct idem_payment none;
    const struct idem_payment *before = &turn->facts->payment;
    bool is_new = turn->decision->payment.write == IDEM_WRITE_INSERT;
    enum idem_message_type type = payment_type(is_new ? &none : before, turn->payment);
    if (turn->decision->payment.write == IDEM_WRITE_NONE || type == IDEM_MESSAGE_NONE) {
        return;
    }
    struct idem_buf *scratch = &turn->decision->scratch;
    size_t from = scratch->len;
    idem_buf_add(scratch, IDEM_STR("{\"payment\":"));
    idem_payment_print(turn->payment, scratch);
    tell(turn, type, turn->payment->id, resource_end(turn, from));
}

static void tell_refund(struct idem_turn *turn)
{
    enum idem_refund_state state = turn->refund->state;
    bool is_new = turn->decision->refund.write == IDEM_WRITE_INSERT;
    bool moved = is_new || state != turn->facts->refund.state;
    if (turn->decision->refund.write == IDEM_WRITE_NONE || !moved || state == IDEM_REFUND_PENDING) {
        return;
    }
    struct idem_buf *scratch = &turn->decision->scratch;
    size_t from = scratch->len;
    idem_buf_add(scratch, IDEM_STR("{\"refund\":"));
    idem_refund_print(turn->refund, scratch);
    tell(turn,
         state == IDEM_REFUND_SUCCEEDED ? IDEM_MESSAGE_REFUND_SUCCEEDED
                                        : IDEM_MESSAGE_REFUND_FAILED,
         turn->refund->payment_id, resource_end(turn, from));
}

static void add_link(struct idem_buf *buf, const char *path, struct idem_uid id)
{
    idem_buf_add(buf, idem_str_from(path));
    idem_uid_print(id, buf);
    idem_buf_add_char(buf, '"');
}

/* `{"operation":{"id":..,"endpoint":..,"state":..` */
static void operation_begin(struct idem_turn *turn, struct idem_buf *buf)
{
    const struct idem_intent *intent = turn->intent;
    add_link(buf, "{\"operation\":{\"id\":\"", intent->id);
    idem_buf_add(buf, IDEM_STR(",\"endpoint\":\""));
    idem_buf_add(buf, idem_str_from(idem_endpoint_name(intent->endpoint)));
    idem_buf_add(buf, IDEM_STR("\",\"state\":\""));
    idem_buf_add(buf, idem_str_from(idem_operation_state_name(intent->state)));
    idem_buf_add_char(buf, '"');
    if (!idem_uid_is_zero(intent->payment_id)) {
        add_link(buf, ",\"payment\":\"/v1/payments/", intent->payment_id);
    }
    if (!idem_uid_is_zero(intent->refund_id)) {
        add_link(buf, ",\"refund\":\"/v1/refunds/", intent->refund_id);
    }
    if (intent->problem != IDEM_PROBLEM_NONE) {
        idem_buf_add(buf, IDEM_STR(",\"problem\":\""));
        idem_buf_add(buf, idem_str_from(idem_problem_entry(intent->problem)->code));
        idem_buf_add_char(buf, '"');
    }
    idem_buf_add_char(buf, '}');
}

static void tell_operation(struct idem_turn *turn)
{
    static const enum idem_message_type types[IDEM_INTENT_COUNT] = {
        [IDEM_INTENT_UNKNOWN] = IDEM_MESSAGE_OPERATION_UNKNOWN,
        [IDEM_INTENT_PARKED] = IDEM_MESSAGE_OPERATION_PARKED,
        [IDEM_INTENT_SUCCEEDED] = IDEM_MESSAGE_OPERATION_SUCCEEDED,
        [IDEM_INTENT_FAILED] = IDEM_MESSAGE_OPERATION_FAILED,
        [IDEM_INTENT_RELEASED] = IDEM_MESSAGE_OPERATION_RELEASED,
    };
    enum idem_intent_state state = turn->intent->state;
    if (state == turn->facts->intent.state || types[state] == IDEM_MESSAGE_NONE) {
        return;
    }
    struct idem_buf *scratch = &turn->decision->scratch;
    size_t from = scratch->len;
    operation_begin(turn, scratch);
    idem_buf_add_char(scratch, '}');
    tell(turn, types[state], turn->intent->payment_id, idem_turn_text_since(turn, from));
}

static void tell_cases(struct idem_turn *turn)
{
    const struct idem_case *opened = &turn->decision->opened;
    struct idem_buf *scratch = &turn->decision->scratch;
    /* What is parked has an open case; of the rest the facts say whether it has. */
    bool had_open = turn->facts->intent.state == IDEM_INTENT_PARKED || turn->facts->cases_open != 0;
    if (turn->decision->decided.decided_us != 0 && had_open) {
        size_t from = scratch->len;
        operation_begin(turn, scratch);
        idem_buf_add_char(scratch, '}');
        tell(turn, IDEM_MESSAGE_CASE_DECIDED, turn->intent->payment_id,
             idem_turn_text_since(turn, from));
    }
    if (opened->kind != IDEM_CASE_NONE) {
        size_t from = scratch->len;
        operation_begin(turn, scratch);
        add_link(scratch, ",\"case\":{\"id\":\"", opened->id);
        idem_buf_add(scratch, IDEM_STR(",\"kind\":\""));
        idem_buf_add(scratch, idem_str_from(idem_case_kind_name(opened->kind)));
        idem_buf_add(scratch, IDEM_STR("\",\"detail\":"));
        idem_json_add_string(scratch, opened->detail);
        idem_buf_add(scratch, IDEM_STR("}}"));
        tell(turn, IDEM_MESSAGE_CASE_OPENED, turn->intent->payment_id,
             idem_turn_text_since(turn, from));
    }
}

void idem_tell(struct idem_turn *turn)
{
    enum idem_write write = turn->decision->intent.write;
    if (!turn->facts->listened) {
        return;
    }
    tell_payment(turn);
    tell_refund(turn);
    if (write == IDEM_WRITE_INSERT || write == IDEM_WRITE_UPDATE) {
        tell_operation(turn);
        tell_cases(turn);
    }
}
