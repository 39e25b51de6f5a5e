/*
 * The end of an intent by evidence. A reservation becomes a sum or goes back, the answer is
 * rendered from the rows as they will stand, and if a person had the intent, its case is decided
 * with it.
 */
#include "core/settle.h"

#include "base/bug.h"
#include "core/decide_internal.h"

bool idem_settle_holds_reservation(const struct idem_turn *turn)
{
    return turn->intent->problem != IDEM_PROBLEM_NOT_EXECUTED;
}

enum idem_partial_capture idem_settle_partial_capture(const struct idem_turn *turn)
{
    const struct idem_provider_rules *provider =
        idem_rules_provider(turn->rules, turn->intent->effect.entry);
    return provider != NULL ? provider->partial_capture : IDEM_PARTIAL_MANY;
}

/* The order number, or the refund number, is free. */
static bool number_is_free(const struct idem_turn *turn)
{
    const struct idem_facts *facts = turn->facts;
    return facts->order_holder.row == 0 && facts->order_stub.row == 0 &&
           facts->refund_holder.row == 0;
}

bool idem_settle_make_room(struct idem_turn *turn)
{
    const struct idem_intent *intent = turn->intent;
    const struct idem_provider_rules *provider = idem_rules_place(turn->rules, &intent->effect);
    bool fits = provider != NULL && number_is_free(turn) && turn->facts->payment.row != 0 &&
                idem_turn_reserve(turn, provider) == IDEM_PROBLEM_NONE;
    if (!fits) {
        return false;
    }
    if (intent->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        idem_turn_renew_payment(turn);
    } else if (intent->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE) {
        idem_turn_renew_refund(turn);
    }
    return true;
}

/* The money moved: what was reserved becomes a sum. */
static void apply_success(struct idem_turn *turn)
{
    struct idem_str reference = turn->intent->effect.reference;
    int64_t amount_minor = turn->intent->effect.amount_minor;
    enum idem_payment_state payment_from = turn->payment->state;
    enum idem_refund_state refund_from = turn->refund->state;

    idem_turn_write_payment(turn);
    switch (turn->intent->effect.kind) {
    case IDEM_EFFECT_KIND_NONE:
    case IDEM_EFFECT_KIND_COUNT:
        IDEM_UNREACHABLE();
    case IDEM_EFFECT_KIND_CHARGE:
    case IDEM_EFFECT_KIND_AUTHORIZE:
        idem_payment_made(turn->payment);
        turn->payment->reference = reference;
        idem_decide_apply_stubs(turn);
        break;
    case IDEM_EFFECT_KIND_CAPTURE:
        idem_payment_captured(turn->payment, amount_minor, idem_settle_partial_capture(turn));
        break;
    case IDEM_EFFECT_KIND_CANCEL:
        idem_payment_canceled(turn->payment);
        break;
    case IDEM_EFFECT_KIND_REFUND:
        idem_payment_refunded(turn->payment, amount_minor);
        idem_turn_write_refund(turn);
        turn->refund->state = IDEM_REFUND_SUCCEEDED;
        turn->refund->reference = reference;
        break;
    }
    idem_turn_payment_moved(turn, payment_from);
    idem_turn_refund_moved(turn, refund_from);
}

/* What everybody is told from now on. */
static struct idem_answer success_answer(struct idem_turn *turn)
{
    struct idem_buf *scratch = &turn->decision->scratch;
    if (turn->intent->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE) {
        return idem_answer_refund(201, turn->refund, scratch);
    }
    bool made = turn->intent->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE;
    return idem_answer_payment(made ? 201 : 200, turn->payment, scratch);
}

/* Whoever settles a parked intent decides its case. */
static void decide_case(struct idem_turn *turn, struct idem_str verdict)
{
    if (turn->intent->state == IDEM_INTENT_PARKED) {
        idem_turn_decide_cases(turn, IDEM_STR("provider"), verdict);
    }
}

static void finish_success(struct idem_turn *turn, uint32_t send_no, struct idem_str how)
{
    decide_case(turn, IDEM_STR("succeeded"));
    struct idem_answer answer = success_answer(turn);
    idem_turn_finish(turn, IDEM_INTENT_SUCCEEDED, IDEM_PROBLEM_NONE, answer);
    idem_turn_event_send(turn, IDEM_EVENT_SUCCEEDED, send_no, how);
}

void idem_settle_success(struct idem_turn *turn,
                         struct idem_str reference,
                         uint32_t send_no,
                         struct idem_str how)
{
    idem_turn_write_intent(turn);
    turn->intent->effect.reference = reference;
    apply_success(turn);
    finish_success(turn, send_no, how);
}

void idem_settle_recorded(struct idem_turn *turn,
                          struct idem_str reference,
                          struct idem_str refund_no,
                          struct idem_str how)
{
    idem_turn_write_intent(turn);
    turn->intent->effect.reference = reference;
    if (turn->intent->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE) {
        idem_turn_begin_refund(turn, refund_no);
        turn->refund->state = IDEM_REFUND_SUCCEEDED;
        turn->refund->reference = reference;
    }
    finish_success(turn, 0, how);
}

void idem_settle_failure(struct idem_turn *turn,
                         const struct idem_problem_details *details,
                         struct idem_str code,
                         uint32_t send_no)
{
    struct idem_answer answer = idem_answer_problem(details, &turn->decision->scratch);
    decide_case(turn, IDEM_STR("failed"));
    if (idem_settle_holds_reservation(turn)) {
        idem_turn_return_reservation(turn, code);
    }
    idem_turn_finish(turn, IDEM_INTENT_FAILED, details->problem, answer);
    idem_turn_event_send(turn, IDEM_EVENT_FAILED, send_no, code);
}
