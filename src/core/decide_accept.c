/*
 * A caller's request: claim, join, replay, refuse, or run a released key again.
 *
 * The order of questions is the contract:
 *   1. Did this very command run before? Then nothing new happens.
 *   2. Is there a record? An abandoned key refuses everybody; another fingerprint is refused
 *      without a word about the first request (P5); a final one replays (P4); one in flight is
 *      joined; a released one runs again under all checks. Of a final one whose answer is
 *      forgotten, that is said.
 *   3. No record: in an old copy absence proves nothing, so nothing is claimed; later, what the
 *      provider listed is settled from that (decide_stub.c). A request older than our memory is
 *      refused, since absence proves nothing about it either. So is an order number of a case's: a
 *      record of one, made before they were kept apart, still replays.
 *   4. What the facts refuse (order number taken, state, sums) is the intent's final answer and is
 *      stored, so that a delayed copy can never run later.
 *   5. Otherwise rows, reservation, encoded request and grant stand in one decision (P1, P11).
 */
#include "core/decide_internal.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/currency.h"
#include "base/money.h"
#include "core/claim.h"

static const struct idem_str no_text = { .data = NULL, .len = 0 };

enum match {
    MATCH_SAME,
    MATCH_OTHER,
    MATCH_UNDECIDABLE, /* The record's rule or secret is not among those offered. */
};

static enum match fingerprint_match(const struct idem_accept *accept,
                                    const struct idem_fingerprint *recorded)
{
    const struct idem_fingerprint *offered = idem_accept_fingerprint(accept, recorded);
    if (offered == NULL) {
        return MATCH_UNDECIDABLE;
    }
    return idem_digest_equal(offered->digest, recorded->digest) ? MATCH_SAME : MATCH_OTHER;
}

static void begin_effect(struct idem_turn *turn,
                         const struct idem_provider_rules *provider,
                         int64_t amount_minor,
                         struct idem_str currency)
{
    enum idem_effect_kind kind = idem_claim_effect_kind(&turn->command->accept);
    turn->intent->effect = (struct idem_effect){
        .kind = kind,
        .id = idem_claim_effect_id(turn, kind),
        .entry = provider->entry,
        .account = provider->account,
        .region = provider->region,
        .amount_minor = amount_minor,
        .currency = currency,
    };
}

/* Encodes what will be sent, once; every send of this intent uses these bytes. */
static void encode_request(struct idem_turn *turn, const struct idem_provider_rules *provider)
{
    struct idem_buf *scratch = &turn->decision->scratch;
    size_t from = scratch->len;
    bool is_payment = turn->intent->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE;
    struct idem_effect_order order = {
        .effect = &turn->intent->effect,
        .order_no = turn->payment->order_no,
        .method = is_payment ? turn->payment->method : no_text,
        .description = is_payment ? turn->payment->description : no_text,
        .payment_effect_id = is_payment ? no_text : turn->payment->effect_id,
        .payment_reference = is_payment ? no_text : turn->payment->reference,
    };
    provider->encode(&order, scratch);
    turn->intent->effect.request = idem_turn_text_since(turn, from);
    IDEM_ASSERT(turn->intent->effect.request.len <= IDEM_REQUEST_MAX);
}

static struct idem_str refusal_detail(enum idem_problem problem)
{
    if (problem == IDEM_PROBLEM_ORDER_EXISTS) {
        return IDEM_STR(
            "Nothing was executed for this request. Look at the payment that holds the "
            "order number before you pay again.");
    }
    if (problem == IDEM_PROBLEM_REFUND_EXISTS) {
        return IDEM_STR(
            "Nothing was executed for this request. Look at the refund that holds the "
            "number before you refund again.");
    }
    if (problem == IDEM_PROBLEM_STATE_CONFLICT) {
        return IDEM_STR(
            "Nothing was executed for this request, and this key will never execute "
            "anything. Look at the payment before deciding anew.");
    }
    return IDEM_STR(
        "Nothing was executed, and this key will never execute anything. Correct the "
        "request and send it under a new key.");
}

/* The facts say no: that is the final answer of this intent. Nothing was reserved. */
static void refuse(struct idem_turn *turn, enum idem_problem problem)
{
    const struct idem_facts *facts = turn->facts;
    struct idem_problem_details details = {
        .problem = problem,
        .detail = refusal_detail(problem),
        .operation_id = turn->intent->id,
    };
    if (problem == IDEM_PROBLEM_ORDER_EXISTS) {
        details.payment_id = facts->order_holder.id;
    } else if (problem == IDEM_PROBLEM_REFUND_EXISTS) {
        details.refund_id = facts->refund_holder.id;
    } else if (turn->payment->row != 0) { /* Not of a payment that is not the caller's. */
        details.payment_id = turn->payment->id;
    }
    idem_claim_acquire(turn);
    struct idem_answer answer = idem_answer_problem(&details, &turn->decision->scratch);
    idem_turn_finish(turn, IDEM_INTENT_FAILED, problem, answer);
    idem_turn_event(turn, IDEM_EVENT_FAILED, idem_str_from(idem_problem_entry(problem)->code));
}

/* Everything is written and reserved: on the wire if there is a place, in the queue if not. */
static void start(struct idem_turn *turn)
{
    idem_claim_acquire(turn);
    if (turn->command->slot) {
        idem_turn_grant_send(turn);
        return;
    }
    turn->intent->state = IDEM_INTENT_CLAIMED;
    idem_turn_plan(turn, IDEM_STEP_SEND, turn->command->now_us);
    idem_turn_event(turn, IDEM_EVENT_CLAIMED, no_text);
    turn->decision->release.kind = IDEM_RELEASE_WAIT;
}

/* By a payment here, or by one that the provider made after this copy was left. */
static bool order_is_taken(const struct idem_turn *turn)
{
    const struct idem_facts *facts = turn->facts;
    return facts->order_holder.row != 0 || facts->order_stub.row != 0;
}

/* That of a payment which a case has made. */
static bool order_no_is_of_case(struct idem_str order_no)
{
    const struct idem_str prefix = IDEM_STR(IDEM_STRAY_PREFIX);
    struct idem_uid id;
    return idem_str_starts(order_no, prefix) &&
           idem_uid_parse(idem_str_slice(order_no, prefix.len, order_no.len), &id);
}

static void create_payment(struct idem_turn *turn)
{
    const struct idem_accept *accept = &turn->command->accept;
    const struct idem_provider_rules *provider = idem_rules_provider(turn->rules, accept->entry);
    IDEM_ASSERT(provider != NULL);               /* The edge knows the same list. */
    if (order_no_is_of_case(accept->order_no)) { /* No such request is recorded any more. */
        idem_turn_reply(turn, IDEM_PROBLEM_BODY_INVALID, false);
        return;
    }
    idem_claim_begin_intent(turn);
    if (order_is_taken(turn)) {
        refuse(turn, IDEM_PROBLEM_ORDER_EXISTS);
        return;
    }
    begin_effect(turn, provider, accept->amount_minor, accept->currency);
    idem_claim_begin_payment(turn, provider);
    encode_request(turn, provider);
    start(turn);
}

/* How much a capture, cancel or refund is about: as asked, or all that is left. */
static enum idem_problem wanted_amount(const struct idem_turn *turn, int64_t *ret_minor)
{
    const struct idem_accept *accept = &turn->command->accept;
    const struct idem_payment *payment = turn->payment;
    bool is_refund = accept->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE;
    if (accept->endpoint == IDEM_ENDPOINT_PAYMENTS_CANCEL || accept->amount_text.len == 0) {
        int64_t left =
            is_refund ? idem_payment_refundable(payment) : idem_payment_capturable(payment);
        *ret_minor = left;
        return left > 0 ? IDEM_PROBLEM_NONE : IDEM_PROBLEM_STATE_CONFLICT;
    }
    int exponent = idem_currency_exponent(payment->currency);
    IDEM_ASSERT(exponent >= 0);
    if (idem_amount_parse(accept->amount_text, exponent, ret_minor) != IDEM_AMOUNT_OK) {
        return IDEM_PROBLEM_AMOUNT_INVALID;
    }
    return IDEM_PROBLEM_NONE;
}

/*
 * What the provider did to the payment, and this copy had missed, counts before anything new does.
 * False: some of it does not fit yet, so nobody can say how much is left.
 */
static bool stubs_are_counted(struct idem_turn *turn)
{
    const struct idem_facts *facts = turn->facts;
    enum idem_payment_state from = turn->payment->state;
    bool waiting = facts->payment_stubs_full;
    for (size_t i = 0; i < facts->payment_stub_count; i++) {
        waiting = waiting || !facts->payment_stubs[i].applied;
    }
    if (!waiting) {
        return true;
    }
    idem_decide_apply_stubs(turn);
    if (turn->decision->payment_stubs_applied) {
        idem_turn_write_payment(turn);
        idem_turn_payment_moved(turn, from);
    }
    return turn->decision->payment_stubs_applied;
}

static void act_on_payment(struct idem_turn *turn)
{
    const struct idem_accept *accept = &turn->command->accept;
    const struct idem_payment *payment = &turn->facts->payment;
    idem_claim_begin_intent(turn);
    if (!idem_claim_has_payment(turn)) {
        *turn->payment = (struct idem_payment){ .row = 0 };
        refuse(turn, IDEM_PROBLEM_PAYMENT_MISSING);
        return;
    }
    if (!idem_claim_is_granted(accept, payment->entry)) {
        *turn->intent = turn->facts->intent;
        idem_turn_reply(turn, IDEM_PROBLEM_FORBIDDEN, false);
        return;
    }
    const struct idem_effect place = {
        .entry = payment->entry,
        .account = payment->account,
        .region = payment->region,
    };
    const struct idem_provider_rules *provider = idem_rules_place(turn->rules, &place);
    /* Taken out of the configuration, so nothing can be sent; or nobody knows what is left. */
    if (provider == NULL || !stubs_are_counted(turn)) {
        *turn->intent = turn->facts->intent;
        idem_turn_reply(turn, IDEM_PROBLEM_UNAVAILABLE, false);
        return;
    }
    turn->intent->payment_row = payment->row;
    turn->intent->payment_id = payment->id;
    if (turn->facts->refund_holder.row != 0) {
        refuse(turn, IDEM_PROBLEM_REFUND_EXISTS);
        return;
    }
    int64_t amount_minor = 0;
    enum idem_problem problem = wanted_amount(turn, &amount_minor);
    if (problem == IDEM_PROBLEM_NONE) {
        begin_effect(turn, provider, amount_minor, payment->currency);
        problem = idem_turn_reserve(turn, provider);
    }
    if (problem != IDEM_PROBLEM_NONE) {
        turn->intent->effect = (struct idem_effect){ .kind = IDEM_EFFECT_KIND_NONE };
        refuse(turn, problem);
        return;
    }
    if (accept->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE) {
        idem_turn_begin_refund(turn, accept->refund_no);
    }
    encode_request(turn, provider);
    start(turn);
}

/* Why a released key cannot run again, after taking its reservation if it can. */
static enum idem_problem reserve_again(struct idem_turn *turn,
                                       const struct idem_provider_rules *provider)
{
    if (turn->intent->send_count >= IDEM_SENDS_MAX) {
        return IDEM_PROBLEM_ABANDONED;
    }
    if (order_is_taken(turn)) {
        return IDEM_PROBLEM_ORDER_EXISTS;
    }
    if (turn->facts->refund_holder.row != 0) {
        return IDEM_PROBLEM_REFUND_EXISTS;
    }
    return idem_turn_reserve(turn, provider);
}

/* As patient as this caller, and never as a former claim was: a claim is known by it. */
static int64_t patience_again_us(const struct idem_turn *turn)
{
    int64_t wanted_us = turn->command->now_us + turn->command->accept.wait_us;
    int64_t former_us = turn->facts->intent.patience_us;
    return wanted_us > former_us ? wanted_us : former_us + 1;
}

/*
 * A released key runs again: the same effect id, the same stored bytes, new business rows, and all
 * checks anew, since the world has moved on.
 */
static void reclaim(struct idem_turn *turn)
{
    struct idem_intent *intent = turn->intent;
    const struct idem_provider_rules *provider = idem_rules_place(turn->rules, &intent->effect);
    bool acts = intent->endpoint != IDEM_ENDPOINT_PAYMENTS_CREATE;
    if (provider == NULL || (acts && !stubs_are_counted(turn))) {
        idem_turn_reply(turn, IDEM_PROBLEM_UNAVAILABLE, false);
        return;
    }
    idem_turn_write_intent(turn);
    intent->patience_us = patience_again_us(turn);
    intent->trace = turn->command->accept.trace;
    intent->unknown_since_us = 0;
    intent->ask_count = 0;
    intent->effect.close_asked = false;
    intent->problem = IDEM_PROBLEM_NONE;
    intent->state = IDEM_INTENT_CLAIMED;

    enum idem_problem problem = reserve_again(turn, provider);
    if (problem != IDEM_PROBLEM_NONE) {
        refuse(turn, problem);
        return;
    }
    if (intent->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        idem_turn_renew_payment(turn);
    } else if (intent->endpoint == IDEM_ENDPOINT_REFUNDS_CREATE) {
        idem_turn_renew_refund(turn);
    }
    idem_turn_event(turn, IDEM_EVENT_RECLAIMED, no_text);
    start(turn);
}

/* What was first sent before this may have been forgotten, or recorded in another store. */
static int64_t memory_begins_us(const struct idem_turn *turn)
{
    int64_t kept_since_us = turn->command->now_us - turn->rules->answer_retention_us;
    int64_t born_us = turn->command->memory_since_us;
    born_us -= born_us % IDEM_US_PER_SECOND; /* The header has no fractions. */
    return born_us > kept_since_us ? born_us : kept_since_us;
}

static void accept_absent(struct idem_turn *turn)
{
    const struct idem_accept *accept = &turn->command->accept;
    if (turn->command->restored) { /* It may have run; whoever lists the provider will tell. */
        idem_turn_reply(turn, IDEM_PROBLEM_UNAVAILABLE, false);
        return;
    }
    if (turn->facts->stub.row != 0) {
        idem_decide_found(turn);
        return;
    }
    if (accept->first_sent_us != 0 && accept->first_sent_us < memory_begins_us(turn)) {
        idem_turn_reply(turn, IDEM_PROBLEM_TOO_OLD, false);
        return;
    }
    if (accept->endpoint == IDEM_ENDPOINT_PAYMENTS_CREATE) {
        create_payment(turn);
    } else {
        act_on_payment(turn);
    }
}

/* Its stored answer, or that it has expired. */
static void replay(struct idem_turn *turn)
{
    idem_turn_reply(turn, idem_intent_end_problem(&turn->facts->intent), true);
}

static void accept_known(struct idem_turn *turn)
{
    const struct idem_accept *accept = &turn->command->accept;
    const struct idem_intent *recorded = &turn->facts->intent;
    if (!idem_str_equal(recorded->principal, accept->principal) ||
        !idem_str_equal(recorded->key, accept->key)) {
        idem_turn_reply(turn, IDEM_PROBLEM_INTERNAL, false); /* Two scopes with one digest. */
        return;
    }
    if (recorded->problem == IDEM_PROBLEM_ABANDONED) {
        replay(turn);
        return;
    }
    switch (fingerprint_match(accept, &recorded->fingerprint)) {
    case MATCH_SAME:
        break;
    case MATCH_OTHER:
        idem_turn_reply(turn, IDEM_PROBLEM_KEY_REUSED, false);
        return;
    case MATCH_UNDECIDABLE:
        idem_turn_reply(turn, IDEM_PROBLEM_UNAVAILABLE, false);
        return;
    }
    if (idem_intent_is_final(recorded->state)) {
        replay(turn);
        return;
    }
    if (recorded->state == IDEM_INTENT_RELEASED && turn->command->restored) {
        idem_turn_reply(turn, IDEM_PROBLEM_UNAVAILABLE, false);
        return;
    }
    if (recorded->state == IDEM_INTENT_RELEASED) {
        reclaim(turn);
        return;
    }
    turn->decision->release.kind = IDEM_RELEASE_WAIT;
}

void idem_decide_accept(struct idem_turn *turn)
{
    if (idem_turn_repeat(turn)) {
        return;
    }
    if (turn->facts->intent.row == 0) {
        accept_absent(turn);
    } else {
        accept_known(turn);
    }
}
