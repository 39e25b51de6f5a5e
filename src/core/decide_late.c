/*
 * Evidence after the end. What was answered stays answered (P4): evidence that agrees says nothing
 * new, and evidence that does not opens a case and leaves history as it is.
 *
 *   it failed here, and the provider did it              contradiction, or mismatch; if that was
 *                                                        taken back since, reversed
 *   it succeeded here, and the provider has it not       contradiction; of a listing: missing
 *   it succeeded here, with another place or money       mismatch
 *   it succeeded here, and is listed more than once      duplicate
 *   it succeeded here, and was taken back there since    reversed: the sum becomes less, once
 *
 * A reversal while a refund is under way finds its money reserved: the case says that the sums do
 * not have it, and a person counts it, whatever becomes of the refund. An authorization that was
 * given back has nothing to take: its expiry agrees.
 *
 * A reversal is the only evidence that changes a sum after the end: the money is not where the sum
 * says it is, and nobody may promise it again. That it was counted shows by its case, which stays
 * with the record when it is decided. It may also end an intent: first as done, and then this.
 *
 * A person who has decided a case of a kind has seen it. What comes again and again by itself, a
 * listing and an event, does not open another; and a listing, which is read every night, says
 * nothing new while one is open.
 */
#include "core/decide_internal.h"

#include "base/bug.h"

static bool case_of(uint32_t kinds, enum idem_case_kind kind)
{
    return (kinds & (UINT32_C(1) << kind)) != 0;
}

static bool comes_by_itself(enum idem_evidence_source source)
{
    return source == IDEM_SOURCE_LISTING || source == IDEM_SOURCE_CALLBACK;
}

static void contradict(struct idem_turn *turn, enum idem_case_kind kind, struct idem_str detail)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    bool is_decided = case_of(turn->facts->cases_decided, kind);
    bool is_open = case_of(turn->facts->cases_open, kind);
    if ((is_decided && comes_by_itself(evidence->source)) ||
        (is_open && evidence->source == IDEM_SOURCE_LISTING)) {
        return;
    }
    idem_turn_write_intent(turn);
    idem_turn_event_send(turn, IDEM_EVENT_CONTRADICTED, evidence->send_no, detail);
    idem_turn_case(turn, kind, detail);
}

/* The refund was not made after all: it can be made again. False: the rows say otherwise. */
static bool refund_taken_back(struct idem_turn *turn)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    int64_t amount_minor = turn->intent->effect.amount_minor;
    if (turn->refund->state != IDEM_REFUND_SUCCEEDED ||
        turn->payment->refunded_minor < amount_minor) {
        return false;
    }
    enum idem_refund_state from = turn->refund->state;
    idem_turn_write_refund(turn);
    turn->refund->state = IDEM_REFUND_FAILED;
    turn->refund->failure_code = evidence->code.len > 0 ? evidence->code : IDEM_STR("reversed");
    idem_turn_refund_moved(turn, from);
    idem_payment_refund_reversed(turn->payment, amount_minor);
    return true;
}

/* False: nothing was changed, since the sums have no such money (any more). */
static bool take_back(struct idem_turn *turn)
{
    const struct idem_effect *effect = &turn->intent->effect;
    int64_t amount_minor = effect->amount_minor;
    /* What failed is in no sum, except where a stray payment was made of it. */
    bool is_counted = turn->intent->state == IDEM_INTENT_SUCCEEDED ||
                      idem_effect_kind_makes_payment(effect->kind);
    if (turn->payment->state == IDEM_PAYMENT_NONE || !is_counted) {
        return false;
    }
    switch (effect->kind) {
    case IDEM_EFFECT_KIND_AUTHORIZE:
        return idem_payment_expired(turn->payment);
    case IDEM_EFFECT_KIND_CHARGE:
        return idem_payment_capture_reversed(turn->payment, amount_minor) &&
               idem_payment_expired(turn->payment);
    case IDEM_EFFECT_KIND_CAPTURE:
        return idem_payment_capture_reversed(turn->payment, amount_minor);
    case IDEM_EFFECT_KIND_REFUND:
        return refund_taken_back(turn);
    case IDEM_EFFECT_KIND_CANCEL: /* What was given back is not taken again. */
    case IDEM_EFFECT_KIND_NONE:
    case IDEM_EFFECT_KIND_COUNT:
        break;
    }
    return false;
}

static void reversed(struct idem_turn *turn)
{
    uint32_t kinds = turn->facts->cases_open | turn->facts->cases_decided;
    if (case_of(kinds, IDEM_CASE_REVERSED)) {
        return; /* It is counted already, or a person has seen that it cannot be. */
    }
    if (turn->intent->effect.kind == IDEM_EFFECT_KIND_AUTHORIZE &&
        turn->payment->state == IDEM_PAYMENT_CANCELED) {
        return; /* Agreed: nothing is held that could be taken. */
    }
    enum idem_payment_state from = turn->payment->state;
    struct idem_str detail =
        IDEM_STR("taken back at the provider; the sums do not have it to give");
    idem_turn_write_intent(turn);
    if (take_back(turn)) {
        detail = IDEM_STR("taken back at the provider; the sums are less by it");
        idem_turn_write_payment(turn);
        idem_turn_payment_moved(turn, from);
    }
    idem_turn_event(turn, IDEM_EVENT_REVERSED, detail);
    idem_turn_case(turn, IDEM_CASE_REVERSED, detail);
}

/* The provider says of itself that this did not happen, or not any more. */
static bool says_not(const struct idem_evidence *evidence)
{
    bool refused = evidence->outcome == IDEM_OUTCOME_REFUSED_FINAL ||
                   evidence->outcome == IDEM_OUTCOME_CLOSED_UNPAID;
    return refused && evidence->source != IDEM_SOURCE_SEND && evidence->source != IDEM_SOURCE_CLOSE;
}

static void after_success(struct idem_turn *turn, bool same)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    bool says_done = evidence->outcome == IDEM_OUTCOME_SUCCESS;
    bool listed = evidence->source == IDEM_SOURCE_LISTING;
    if (says_not(evidence)) {
        contradict(turn, IDEM_CASE_CONTRADICTION,
                   IDEM_STR("the provider no longer knows it as done"));
    } else if (says_done && !same) {
        contradict(turn, IDEM_CASE_MISMATCH,
                   IDEM_STR("done once more, with another place, id, amount, currency or order "
                            "number"));
    } else if (says_done && evidence->again) {
        contradict(turn, IDEM_CASE_DUPLICATE,
                   IDEM_STR("the provider's listing has it more than once"));
    } else if (listed && evidence->outcome == IDEM_OUTCOME_NOT_FOUND) {
        contradict(turn, IDEM_CASE_MISSING,
                   IDEM_STR("the provider's complete listing of its time does not have it"));
    } else if (evidence->outcome == IDEM_OUTCOME_REVERSED) {
        if (same) {
            reversed(turn);
        } else {
            contradict(turn, IDEM_CASE_MISMATCH,
                       IDEM_STR("taken back, with another place, id, amount, currency or order "
                                "number"));
        }
    }
}

/* Its number at the provider is kept: whoever gives it back will need it. */
static void after_failure(struct idem_turn *turn, bool same)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    struct idem_effect *effect = &turn->intent->effect;
    bool can_differ = effect->kind != IDEM_EFFECT_KIND_NONE; /* Else there is nothing to compare. */
    if (evidence->outcome == IDEM_OUTCOME_REVERSED && same) {
        reversed(turn);
    } else if (evidence->outcome == IDEM_OUTCOME_SUCCESS && !same && can_differ) {
        contradict(turn, IDEM_CASE_MISMATCH,
                   IDEM_STR("done after it failed here, with another place, id, amount, currency "
                            "or order number"));
    } else if (evidence->outcome == IDEM_OUTCOME_SUCCESS) {
        contradict(turn, IDEM_CASE_CONTRADICTION,
                   IDEM_STR("done at the provider after it failed here"));
        if (effect->reference.len == 0 && turn->decision->intent.write != IDEM_WRITE_NONE) {
            effect->reference = evidence->reference;
        }
    }
}

void idem_decide_late(struct idem_turn *turn, bool same)
{
    IDEM_ASSERT(idem_intent_is_final(turn->intent->state));
    if (turn->intent->state == IDEM_INTENT_SUCCEEDED) {
        after_success(turn, same);
    } else {
        after_failure(turn, same);
    }
}
