/*
 * What an old copy has missed. The provider's listing names an effect; if its record is here, that
 * is evidence as any other (decide_evidence.c). If it is not, the effect becomes a stub under the
 * scope that its own id names, and the money of a known payment moves at once, so that nobody can
 * promise it a second time (P10).
 *
 * The claim that comes under that scope later is the request that did it, or one that says so. It
 * is settled from the stub if both speak of the same thing. If they do not, or the rows here have
 * no room for it, a person gets it, with what the provider said as its effect. In no case is
 * anything sent: it has happened (P3).
 *
 * The stub goes in the decision that settles its intent, and not before: a parked one keeps it, so
 * that its order number stays taken for other scopes, and its payment finds it when that is made.
 * Its sums move once, when `applied` is set, whoever comes first: a listing, its payment, or a
 * person who says that it happened.
 *
 * A listing that names a stub once more writes nothing, so if the first COMMIT was unknown, the
 * second proves nothing. That is sound where an unknown COMMIT ends the process, as it does on
 * SQLite; a store that goes on after one has to write the stub again.
 */
#include "core/decide_internal.h"

#include <string.h>

#include "base/bug.h"
#include "base/currency.h"
#include "base/money.h"
#include "core/claim.h"
#include "core/settle.h"

static const struct idem_str no_text = { .data = NULL, .len = 0 };

/* NONE: the listing names nothing of ours, or nothing that lies under this scope. */
static enum idem_effect_kind listed_kind(const struct idem_command *command)
{
    struct idem_str effect_id = command->evidence.effect_id;
    struct idem_scope scope;
    if (!idem_effect_id_scope(effect_id, &scope) ||
        memcmp(scope.bytes, command->scope.bytes, sizeof(scope.bytes)) != 0) {
        return IDEM_EFFECT_KIND_NONE;
    }
    return idem_effect_kind_from_letter(effect_id.data[0]);
}

static bool is_at(const struct idem_stub *stub, const struct idem_effect *place)
{
    return idem_str_equal(stub->entry, place->entry) &&
           idem_str_equal(stub->account, place->account) &&
           idem_str_equal(stub->region, place->region);
}

/*
 * The stub acted on this very payment, in its currency, with an amount that can be counted. A row
 * that failed is not that payment: a released key that ran again has another of the same id.
 */
static bool acts_on(const struct idem_stub *stub, const struct idem_payment *payment)
{
    const struct idem_effect place = {
        .entry = payment->entry,
        .account = payment->account,
        .region = payment->region,
    };
    return stub->amount_minor > 0 && payment->state != IDEM_PAYMENT_FAILED && is_at(stub, &place) &&
           idem_str_equal(stub->currency, payment->currency) &&
           idem_str_equal(stub->payment_effect_id, payment->effect_id);
}

/* Reserves and moves in one step what the provider did. False: no room, and nothing changed. */
static bool move_sums(struct idem_payment *payment,
                      const struct idem_stub *stub,
                      enum idem_partial_capture partial)
{
    int64_t amount_minor = stub->amount_minor;
    bool fits = false;
    switch (stub->kind) {
    case IDEM_EFFECT_KIND_CAPTURE:
        fits = idem_payment_reserve_capture(payment, amount_minor, partial) == IDEM_REFUSAL_NONE;
        if (fits) {
            idem_payment_captured(payment, amount_minor, partial);
        }
        return fits;
    case IDEM_EFFECT_KIND_CANCEL:
        fits = amount_minor == idem_payment_capturable(payment) &&
               idem_payment_reserve_cancel(payment, partial) == IDEM_REFUSAL_NONE;
        if (fits) {
            idem_payment_canceled(payment);
        }
        return fits;
    case IDEM_EFFECT_KIND_REFUND:
        fits = idem_payment_reserve_refund(payment, amount_minor) == IDEM_REFUSAL_NONE;
        if (fits) {
            idem_payment_refunded(payment, amount_minor);
        }
        return fits;
    case IDEM_EFFECT_KIND_NONE:
    case IDEM_EFFECT_KIND_CHARGE:
    case IDEM_EFFECT_KIND_AUTHORIZE:
    case IDEM_EFFECT_KIND_COUNT:
        break;
    }
    return false; /* It makes a payment; it does not act on one. */
}

static bool apply(struct idem_turn *turn,
                  struct idem_payment *payment,
                  const struct idem_stub *stub)
{
    const struct idem_provider_rules *provider = idem_rules_provider(turn->rules, stub->entry);
    return provider != NULL && acts_on(stub, payment) &&
           move_sums(payment, stub, provider->partial_capture);
}

/* All that was done to the payment since it was made. False: that does not fit it. */
static bool apply_all(struct idem_turn *turn, struct idem_payment *payment)
{
    const struct idem_facts *facts = turn->facts;
    bool fits = !facts->payment_stubs_full;
    for (size_t i = 0; i < facts->payment_stub_count && fits; i++) {
        const struct idem_stub *stub = &facts->payment_stubs[i];
        fits = stub->applied || apply(turn, payment, stub);
    }
    return fits;
}

void idem_decide_apply_stubs(struct idem_turn *turn)
{
    struct idem_payment payment = *turn->payment;
    if (turn->facts->payment_stub_count > 0 && apply_all(turn, &payment)) {
        *turn->payment = payment;
        turn->decision->payment_stubs_applied = true;
    }
}

/* There was no room when it was listed first, or its payment was not here. */
static void apply_again(struct idem_turn *turn)
{
    const struct idem_stub *stub = &turn->facts->stub;
    if (stub->applied || turn->facts->payment.row == 0 || !apply(turn, turn->payment, stub)) {
        return;
    }
    idem_turn_write_payment(turn);
    turn->decision->stub = (struct idem_stub_write){ .write = IDEM_WRITE_UPDATE, .row = *stub };
    turn->decision->stub.row.applied = true;
}

void idem_decide_listed(struct idem_turn *turn)
{
    const struct idem_command *command = turn->command;
    const struct idem_evidence *evidence = &command->evidence;
    enum idem_effect_kind kind = listed_kind(command);
    if (!command->restored || kind == IDEM_EFFECT_KIND_NONE) {
        return;
    }
    if (turn->facts->stub.row != 0) {
        apply_again(turn);
        return;
    }
    struct idem_stub_write *write = &turn->decision->stub;
    *write = (struct idem_stub_write){
        .write = IDEM_WRITE_INSERT,
        .row = {
            .scope = command->scope,
            .kind = kind,
            .effect_id = evidence->effect_id,
            .entry = evidence->entry,
            .account = evidence->account,
            .region = evidence->region,
            .order_no = evidence->order_no,
            .payment_effect_id = evidence->payment_effect_id,
            .amount_minor = evidence->amount_minor > 0 ? evidence->amount_minor : 0,
            .currency = evidence->currency,
            .reference = evidence->reference,
            .happened_us = evidence->happened_us,
            .found_us = command->now_us,
        },
    };
    if (turn->facts->payment.row != 0 && apply(turn, turn->payment, &write->row)) {
        idem_turn_write_payment(turn);
        write->row.applied = true;
    }
}

/* The record begins with what the provider says was done. */
static void begin(struct idem_turn *turn)
{
    const struct idem_stub *stub = &turn->facts->stub;
    idem_claim_begin_intent(turn);
    turn->intent->effect = (struct idem_effect){
        .kind = stub->kind,
        .id = stub->effect_id,
        .entry = stub->entry,
        .account = stub->account,
        .region = stub->region,
        .amount_minor = stub->amount_minor,
        .currency = stub->currency,
        .reference = stub->reference,
    };
    idem_claim_acquire(turn);
    idem_turn_event(turn, IDEM_EVENT_FOUND, stub->reference);
}

/* The sums have it by now: the answer follows, and the stub is used up. */
static void use_up(struct idem_turn *turn,
                   struct idem_str reference,
                   struct idem_str refund_no,
                   struct idem_str how)
{
    turn->decision->stub = (struct idem_stub_write){
        .write = IDEM_WRITE_DELETE,
        .row = turn->facts->stub,
    };
    idem_settle_recorded(turn, reference, refund_no, how);
}

/* A person gets it. It holds no reservation: nothing was taken here, whatever happened there. */
static void park(struct idem_turn *turn, enum idem_case_kind kind, struct idem_str detail)
{
    turn->intent->problem = IDEM_PROBLEM_NOT_EXECUTED;
    idem_turn_park(turn, kind, detail);
    turn->decision->release.kind = IDEM_RELEASE_WAIT;
}

/* The request would have the very effect that the provider names: its id says the kind as well. */
static bool is_same_effect(struct idem_turn *turn)
{
    enum idem_effect_kind kind = idem_claim_effect_kind(&turn->command->accept);
    return idem_str_equal(turn->facts->stub.effect_id, idem_claim_effect_id(turn, kind));
}

static bool is_same_payment(struct idem_turn *turn, const struct idem_provider_rules *provider)
{
    const struct idem_accept *accept = &turn->command->accept;
    const struct idem_stub *stub = &turn->facts->stub;
    const struct idem_effect place = {
        .entry = provider->entry,
        .account = provider->account,
        .region = provider->region,
    };
    bool same_order = stub->order_no.len == 0 || idem_str_equal(stub->order_no, accept->order_no);
    return is_same_effect(turn) && is_at(stub, &place) && same_order &&
           stub->amount_minor == accept->amount_minor &&
           idem_str_equal(stub->currency, accept->currency);
}

/*
 * A payment row that says what the provider took, and is over here: if there is room once, a
 * person's word makes a live one of it, as of one that was released.
 */
static void end_row(struct idem_turn *turn)
{
    idem_payment_failed(turn->payment);
    turn->payment->failure_code = IDEM_STR("not_settled");
}

static void leave_row_of_stub(struct idem_turn *turn, const struct idem_provider_rules *provider)
{
    const struct idem_stub *stub = &turn->facts->stub;
    if (!idem_effect_kind_makes_payment(stub->kind) || stub->amount_minor <= 0 ||
        idem_currency_exponent(stub->currency) < 0) {
        return;
    }
    idem_claim_begin_payment(turn, provider);
    struct idem_payment *payment = turn->payment;
    payment->order_no = stub->order_no.len > 0 ? stub->order_no : payment->order_no;
    payment->entry = stub->entry;
    payment->account = stub->account;
    payment->region = stub->region;
    payment->amount_minor = stub->amount_minor;
    payment->currency = stub->currency;
    payment->capture_mode =
        stub->kind == IDEM_EFFECT_KIND_CHARGE ? IDEM_CAPTURE_AUTOMATIC : IDEM_CAPTURE_MANUAL;
    end_row(turn);
}

/* The payment as the provider made it, with what was done to it since. False: it does not fit. */
static bool make_payment(struct idem_turn *turn, struct idem_payment *payment)
{
    const struct idem_facts *facts = turn->facts;
    idem_payment_made(payment);
    payment->reference = facts->stub.reference;
    return facts->order_holder.row == 0 && apply_all(turn, payment);
}

static void put_payment(struct idem_turn *turn, const struct idem_payment *made)
{
    *turn->payment = *made;
    turn->decision->payment_stubs_applied = turn->facts->payment_stub_count > 0;
    idem_turn_payment_moved(turn, IDEM_PAYMENT_PENDING);
}

static void found_payment(struct idem_turn *turn)
{
    const struct idem_provider_rules *provider =
        idem_rules_provider(turn->rules, turn->command->accept.entry);
    IDEM_ASSERT(provider != NULL); /* The edge knows the same list. */
    begin(turn);
    if (!is_same_payment(turn, provider)) {
        leave_row_of_stub(turn, provider);
        park(turn, IDEM_CASE_MISMATCH,
             IDEM_STR("done before this copy was restored, but not as this request asks"));
        return;
    }
    idem_claim_begin_payment(turn, provider);
    struct idem_payment made = *turn->payment;
    if (!make_payment(turn, &made)) {
        end_row(turn);
        park(turn, IDEM_CASE_NO_ROOM,
             IDEM_STR("done before this copy was restored, but there is no room"));
        return;
    }
    put_payment(turn, &made);
    use_up(turn, turn->facts->stub.reference, no_text, IDEM_STR("listing"));
}

/* As much as was asked for; who asked for all that is left got what was left then. */
static bool is_same_amount(const struct idem_turn *turn)
{
    const struct idem_accept *accept = &turn->command->accept;
    if (accept->endpoint == IDEM_ENDPOINT_PAYMENTS_CANCEL || accept->amount_text.len == 0) {
        return true;
    }
    int exponent = idem_currency_exponent(turn->facts->payment.currency);
    int64_t amount_minor = 0;
    IDEM_ASSERT(exponent >= 0);
    return idem_amount_parse(accept->amount_text, exponent, &amount_minor) == IDEM_AMOUNT_OK &&
           amount_minor == turn->facts->stub.amount_minor;
}

static void found_action(struct idem_turn *turn)
{
    const struct idem_accept *accept = &turn->command->accept;
    const struct idem_facts *facts = turn->facts;
    bool known = idem_claim_has_payment(turn);
    if (known && !idem_claim_is_granted(accept, facts->payment.entry)) {
        idem_turn_reply(turn, IDEM_PROBLEM_FORBIDDEN, false);
        return;
    }
    begin(turn);
    if (!known) {
        *turn->payment = (struct idem_payment){ .row = 0 }; /* None, or not of this caller. */
        park(turn, IDEM_CASE_NO_ROOM,
             IDEM_STR("done before this copy was restored, to a payment that is not here"));
        return;
    }
    turn->intent->payment_row = facts->payment.row;
    turn->intent->payment_id = facts->payment.id;
    if (!is_same_effect(turn) || !acts_on(&facts->stub, &facts->payment) || !is_same_amount(turn)) {
        park(turn, IDEM_CASE_MISMATCH,
             IDEM_STR("done before this copy was restored, but not as this request asks"));
        return;
    }
    if (!facts->stub.applied || facts->refund_holder.row != 0) {
        park(turn, IDEM_CASE_NO_ROOM,
             IDEM_STR("done before this copy was restored, but there is no room"));
        return;
    }
    use_up(turn, facts->stub.reference, accept->refund_no, IDEM_STR("listing"));
}

void idem_decide_found(struct idem_turn *turn)
{
    if (turn->command->accept.endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        found_payment(turn);
    } else {
        found_action(turn);
    }
}

static enum idem_endpoint endpoint_of(enum idem_effect_kind kind)
{
    static const enum idem_endpoint endpoints[IDEM_EFFECT_KIND_COUNT] = {
        [IDEM_EFFECT_KIND_CHARGE] = IDEM_ENDPOINT_PAYMENTS_CREATE,
        [IDEM_EFFECT_KIND_AUTHORIZE] = IDEM_ENDPOINT_PAYMENTS_CREATE,
        [IDEM_EFFECT_KIND_CAPTURE] = IDEM_ENDPOINT_PAYMENTS_CAPTURE,
        [IDEM_EFFECT_KIND_CANCEL] = IDEM_ENDPOINT_PAYMENTS_CANCEL,
        [IDEM_EFFECT_KIND_REFUND] = IDEM_ENDPOINT_REFUNDS_CREATE,
    };
    IDEM_ASSERT(kind < IDEM_EFFECT_KIND_COUNT);
    return endpoints[kind];
}

/* The payment that the parked claim left as over comes to life, on a new row. */
static bool payment_happened(struct idem_turn *turn, struct idem_str reference)
{
    struct idem_payment made = turn->facts->payment;
    if (made.state != IDEM_PAYMENT_FAILED) {
        return false; /* None could be made of what the listing said. */
    }
    made.state = IDEM_PAYMENT_PENDING;
    if (!make_payment(turn, &made)) {
        return false;
    }
    idem_turn_renew_payment(turn);
    made = *turn->payment;
    (void)make_payment(turn, &made); /* It fits, as just before. */
    made.reference = reference;
    put_payment(turn, &made);
    return true;
}

/* On the payment that the stub names, whatever the request named. */
static bool action_happened(struct idem_turn *turn)
{
    const struct idem_stub *stub = &turn->facts->stub;
    struct idem_intent *intent = turn->intent;
    struct idem_payment *payment = turn->payment;
    enum idem_payment_state from = payment->state;
    bool is_known = payment->row != 0 && idem_str_equal(payment->principal, intent->principal);
    if (!is_known || !acts_on(stub, payment)) {
        return false;
    }
    if (!stub->applied) {
        if (!apply(turn, payment, stub)) {
            return false;
        }
        idem_turn_write_payment(turn);
        idem_turn_payment_moved(turn, from);
    }
    intent->payment_row = payment->row;
    intent->payment_id = payment->id;
    return true;
}

bool idem_decide_found_happened(struct idem_turn *turn,
                                struct idem_str reference,
                                struct idem_str how)
{
    enum idem_effect_kind kind = turn->facts->stub.kind;
    if (endpoint_of(kind) != turn->intent->endpoint) {
        return false;
    }
    bool happened = idem_effect_kind_makes_payment(kind) ? payment_happened(turn, reference)
                                                         : action_happened(turn);
    if (happened) {
        use_up(turn, reference, no_text, how);
    }
    return happened;
}
