/*
 * Something was learned about an effect. Evidence settles whoever brings it; silence settles
 * nothing.
 *
 * Three things are kept apart here, and mixing them up is how money is lost:
 *
 *   the provider's final word   about this effect id, entry, account, region, amount and
 *                               currency. It settles any intent that is not final, also one whose
 *                               attempt was superseded (P7). What is final meets it in
 *                               decide_late.c.
 *   "not executed"              belongs to one send and only its own attempt may report it. The
 *                               intent is released only when every send is so proven; while one is
 *                               unresolved, another's refusal or "not executed" counts as silence.
 *   everything else             silence. Only the current attempt's silence moves the intent on, by
 *                               the recovery table; a late attempt's is noted and no more.
 *
 * An event of the provider's, a callback, is its word like an answer, and no attempt's: it settles,
 * and what in it does not settle makes somebody ask soon. It stands in the inbox from the same
 * commit on, so that it counts once; coming again it only counts itself, which is a write, so that
 * the commit behind its reply proves something. Events come in any order: "taken back" says also
 * that it was done, so the two leave the same behind, whichever comes first.
 *
 * The provider's number of a payment is kept as soon as its own send has learned it, whatever else
 * that send has learned: the next one goes on with that object, and questions name it.
 */
#include "core/decide_internal.h"

#include "base/bug.h"
#include "core/settle.h"

static const struct idem_str no_text = { .data = NULL, .len = 0 };

static bool same_place(const struct idem_effect *effect, const struct idem_evidence *evidence)
{
    return idem_str_equal(effect->entry, evidence->entry) &&
           idem_str_equal(effect->account, evidence->account) &&
           idem_str_equal(effect->region, evidence->region);
}

static bool same_money(const struct idem_effect *effect, const struct idem_evidence *evidence)
{
    return idem_str_equal(effect->id, evidence->effect_id) &&
           effect->amount_minor == evidence->amount_minor &&
           idem_str_equal(effect->currency, evidence->currency);
}

/*
 * The order number, where the provider says one, is that of the payment. A stray one has been given
 * a number here that the provider does not know.
 */
static bool same_order(const struct idem_turn *turn)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    const struct idem_payment *payment = &turn->facts->payment;
    return evidence->order_no.len == 0 || payment->row == 0 || idem_payment_is_stray(payment) ||
           idem_str_equal(evidence->order_no, payment->order_no);
}

/* The send that the evidence answers, if this attempt owns it; NULL otherwise. */
static const struct idem_send *own_send(const struct idem_turn *turn)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    if (evidence->source != IDEM_SOURCE_SEND) {
        return NULL;
    }
    for (size_t i = 0; i < turn->facts->send_count; i++) {
        const struct idem_send *send = &turn->facts->sends[i];
        if (send->no == evidence->send_no && idem_uid_equal(send->token, evidence->token)) {
            return send;
        }
    }
    return NULL;
}

/* Notes how a send ended. Once only: a resolved send stays as it is. */
static void resolve_send(struct idem_turn *turn, enum idem_send_state state)
{
    struct idem_decision *decision = turn->decision;
    const struct idem_send *send = own_send(turn);
    if (send == NULL || send->state != IDEM_SEND_OPEN) {
        return;
    }
    IDEM_ASSERT(decision->send_write_count < IDEM_SEND_WRITES_MAX);
    struct idem_send_write *write = &decision->sends[decision->send_write_count];
    *write = (struct idem_send_write){ .write = IDEM_WRITE_UPDATE, .row = *send };
    write->row.state = state;
    decision->send_write_count += 1;
    turn->resolved_send_no = send->no;
    idem_turn_write_intent(turn); /* A send changes only together with its intent. */
}

static size_t open_sends(const struct idem_turn *turn)
{
    size_t count = 0;
    for (size_t i = 0; i < turn->facts->send_count; i++) {
        if (idem_turn_send_is_open(turn, &turn->facts->sends[i])) {
            count += 1;
        }
    }
    return count;
}

static bool any_send_refused(const struct idem_turn *turn)
{
    for (size_t i = 0; i < turn->facts->send_count; i++) {
        if (turn->facts->sends[i].state == IDEM_SEND_REFUSED) {
            return true;
        }
    }
    return false;
}

static void settle_success(struct idem_turn *turn)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    idem_settle_success(turn, evidence->reference, evidence->send_no,
                        idem_str_from(idem_evidence_source_name(evidence->source)));
}

static void settle_refused(struct idem_turn *turn, struct idem_str code, struct idem_str message)
{
    struct idem_problem_details details = {
        .problem = IDEM_PROBLEM_DECLINED,
        .detail =
            IDEM_STR("The provider refused and no money moved. This key is over; another try is "
                     "a new intent under a new key."),
        .operation_id = turn->intent->id,
        .payment_id = turn->intent->payment_id,
        .provider_code = code,
        .provider_message = message,
    };
    idem_settle_failure(turn, &details, code, turn->command->evidence.send_no);
}

/* Now, or when nobody may send any more: what was parked may still have a sender at work. */
static int64_t free_at_us(const struct idem_turn *turn)
{
    int64_t at_us = turn->command->now_us;
    for (size_t i = 0; i < turn->facts->send_count; i++) {
        const struct idem_send *send = &turn->facts->sends[i];
        if (idem_turn_send_is_open(turn, send) && send->not_after_us > at_us) {
            at_us = send->not_after_us;
        }
    }
    return at_us;
}

/* The provider has moved: if a question is planned, it need not wait for its time. */
static void ask_soon(struct idem_turn *turn)
{
    const struct idem_intent *intent = turn->intent;
    int64_t at_us = free_at_us(turn);
    bool planned = intent->lease_end_us == 0 && intent->step == IDEM_STEP_ASK;
    if (planned && intent->due_us > at_us) {
        idem_turn_plan(turn, IDEM_STEP_ASK, at_us);
    }
}

/* Nothing was learned, or nothing that settles: note it, and let the table say what follows. */
static void silence(struct idem_turn *turn)
{
    static const enum idem_event_kind kinds[IDEM_SOURCE_COUNT] = {
        [IDEM_SOURCE_SEND] = IDEM_EVENT_SEND_SILENT,
        [IDEM_SOURCE_QUERY] = IDEM_EVENT_ASK_ANSWERED,
        [IDEM_SOURCE_CLOSE] = IDEM_EVENT_CLOSE_ANSWERED,
        [IDEM_SOURCE_CALLBACK] = IDEM_EVENT_NOTIFIED,
    };
    const struct idem_evidence *evidence = &turn->command->evidence;
    enum idem_event_kind kind = kinds[evidence->source];
    IDEM_ASSERT(kind != IDEM_EVENT_NONE);
    if (evidence->source == IDEM_SOURCE_SEND && evidence->outcome == IDEM_OUTCOME_PROCESSING) {
        kind = IDEM_EVENT_SEND_PROCESSING;
    }
    idem_turn_write_intent(turn);
    idem_turn_event_send(turn, kind, evidence->send_no,
                         idem_str_from(idem_outcome_kind_name(evidence->outcome)));

    if (evidence->source == IDEM_SOURCE_CALLBACK) {
        ask_soon(turn);
        return;
    }
    if (!idem_uid_equal(turn->facts->intent.token, evidence->token)) {
        return; /* Superseded: somebody else is on it. */
    }
    if (turn->intent->state == IDEM_INTENT_CLAIMED) {
        return; /* Every send is closed, so nothing is unknown: the planned send stands. */
    }
    idem_turn_unknown(turn);
    const struct idem_provider_rules *provider =
        idem_rules_place(turn->rules, &turn->intent->effect);
    if (provider == NULL) {
        idem_turn_plan(turn, IDEM_STEP_ASK, turn->command->now_us + turn->rules->ask_max_us);
        return;
    }
    struct idem_recovery_view view = idem_turn_view(turn, provider);
    view.source = evidence->source;
    view.outcome = evidence->outcome;
    view.asked_us = evidence->asked_us;
    view.retry_after_us = evidence->retry_after_us;
    idem_turn_follow(turn, idem_recovery_next(&view));
}

/*
 * The reservation goes back. `problem` says so as long as the intent holds none, since it may be
 * parked later by a success that finds no room.
 */
static void release(struct idem_turn *turn)
{
    idem_turn_return_reservation(turn, IDEM_STR("not_executed"));
    turn->intent->problem = IDEM_PROBLEM_NOT_EXECUTED;
    turn->intent->state = IDEM_INTENT_RELEASED;
    idem_turn_plan(turn, IDEM_STEP_NONE, turn->command->now_us + turn->rules->release_us);
    idem_turn_event(turn, IDEM_EVENT_RELEASED, no_text);
    idem_turn_reply(turn, IDEM_PROBLEM_NOT_EXECUTED, false);
    turn->decision->release.retry_after_us = turn->command->evidence.retry_after_us;
}

/* Every send is proven not executed: try again while the first caller waits, release after. */
static void retry_or_release(struct idem_turn *turn)
{
    struct idem_intent *intent = turn->intent;
    int64_t pause_us = turn->rules->retry_first_us;
    for (uint32_t i = 1; i < intent->send_count && i < 16; i++) {
        pause_us *= 2;
    }
    if (turn->command->evidence.retry_after_us > pause_us) {
        pause_us = turn->command->evidence.retry_after_us;
    }
    int64_t at_us = turn->command->now_us + pause_us;
    if (at_us >= intent->patience_us || intent->send_count >= IDEM_SENDS_MAX) {
        release(turn);
        return;
    }
    intent->state = IDEM_INTENT_CLAIMED;
    idem_turn_plan(turn, IDEM_STEP_SEND, at_us);
}

static void not_executed(struct idem_turn *turn)
{
    const struct idem_send *send = own_send(turn);
    if (send == NULL || send->state != IDEM_SEND_OPEN) {
        return; /* Not its own, or resolved before: nothing new. */
    }
    resolve_send(turn, IDEM_SEND_NOT_EXECUTED);
    idem_turn_event_send(turn, IDEM_EVENT_SEND_NOT_EXECUTED, send->no,
                         turn->command->evidence.code);
    if (open_sends(turn) > 0) {
        silence(turn);
        return;
    }
    if (any_send_refused(turn)) { /* One send was refused for good, and now none is open. */
        settle_refused(turn, IDEM_STR("refused"), no_text);
        return;
    }
    if (turn->intent->state == IDEM_INTENT_PARKED) { /* A person has it; nothing runs by itself. */
        silence(turn);
        return;
    }
    retry_or_release(turn);
}

/* A refusal need not name the money, but it must not name another's. */
static bool refusal_is_ours(const struct idem_effect *effect, const struct idem_evidence *evidence)
{
    bool other_amount =
        evidence->amount_minor >= 0 && evidence->amount_minor != effect->amount_minor;
    bool other_currency =
        evidence->currency.len > 0 && !idem_str_equal(evidence->currency, effect->currency);
    return idem_str_equal(effect->id, evidence->effect_id) && !other_amount && !other_currency;
}

/*
 * A refused send while another is unresolved. Where the provider can be asked, it is. Where it
 * cannot, but deduplicates on our id and its window is open, the refusal is what it remembers under
 * that id: whatever is still on the wire gets the same (docs/decisions/0006).
 */
static bool refusal_covers_open_sends(const struct idem_turn *turn)
{
    const struct idem_provider_rules *provider =
        idem_rules_place(turn->rules, &turn->intent->effect);
    if (provider == NULL) {
        return false;
    }
    struct idem_recovery_view view = idem_turn_view(turn, provider);
    return view.capability->query == IDEM_QUERY_NONE && view.capability->dedup_window_us > 0 &&
           view.now_us < idem_recovery_window_end_us(view.capability, view.oldest_open_us);
}

/* "This id can no longer succeed", about an intent that is not final. */
static void refused(struct idem_turn *turn)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    if (!refusal_is_ours(&turn->intent->effect, evidence) || !same_order(turn)) {
        silence(turn);
        return;
    }
    if (turn->facts->stub.row != 0) { /* Its own listing said otherwise: no end by itself. */
        idem_turn_park(turn, IDEM_CASE_CONTRADICTION,
                       IDEM_STR("refused, and yet the provider's listing has it as done"));
        return;
    }
    if (evidence->source == IDEM_SOURCE_SEND) {
        resolve_send(turn, IDEM_SEND_REFUSED);
        if (open_sends(turn) > 0 && !refusal_covers_open_sends(turn)) {
            idem_turn_event_send(turn, IDEM_EVENT_SEND_REFUSED, evidence->send_no, evidence->code);
            silence(turn);
            return;
        }
    }
    settle_refused(turn, evidence->code, evidence->message);
}

/*
 * "Closed, and nothing moved" is final only where the provider declares it, and only as the
 * answer to a question: the answer to a close, or to a send that met one, is asked about.
 */
static void closed_unpaid(struct idem_turn *turn)
{
    const struct idem_provider_rules *provider =
        idem_rules_provider(turn->rules, turn->intent->effect.entry);
    enum idem_evidence_source source = turn->command->evidence.source;
    bool is_final =
        provider != NULL && provider->capability[turn->intent->effect.kind].close_is_final;
    if (is_final && source == IDEM_SOURCE_QUERY) {
        refused(turn);
        return;
    }
    silence(turn);
}

/* Done, and no room for it: whoever gives it back will need the provider's number of it. */
static void park_without_room(struct idem_turn *turn)
{
    struct idem_effect *effect = &turn->intent->effect;
    if (turn->command->evidence.outcome == IDEM_OUTCOME_REVERSED) { /* There is nothing to give. */
        idem_turn_park(turn, IDEM_CASE_REVERSED,
                       IDEM_STR("done after release, without room, and taken back since"));
    } else {
        idem_turn_park(turn, IDEM_CASE_NO_ROOM,
                       IDEM_STR("done after release, but there is no room"));
    }
    if (effect->reference.len == 0) {
        effect->reference = turn->command->evidence.reference;
    }
}

static void success(struct idem_turn *turn)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    if (!same_money(&turn->intent->effect, evidence) || !same_order(turn)) {
        idem_turn_park(turn, IDEM_CASE_MISMATCH,
                       IDEM_STR("done, but another id, amount, currency or order number"));
        return;
    }
    if (turn->facts->stub.row != 0) { /* As is known already: a person has it. */
        if (evidence->source == IDEM_SOURCE_LISTING) {
            idem_decide_listed(turn);
        }
        idem_turn_park(turn, IDEM_CASE_NO_ROOM, IDEM_STR("done before this copy was restored"));
        return;
    }
    if (!idem_settle_holds_reservation(turn)) { /* Parked after a release, and there was no room. */
        park_without_room(turn);
        return;
    }
    resolve_send(turn, IDEM_SEND_ANSWERED);
    settle_success(turn);
    if (evidence->again) {
        idem_turn_case(turn, IDEM_CASE_DUPLICATE,
                       IDEM_STR("the provider's listing has it more than once"));
    }
}

/*
 * A released intent that succeeded after all: the provider executed what it had said it had not. It
 * settles on new business rows if they still fit; it never runs again.
 */
static void success_after_release(struct idem_turn *turn)
{
    const struct idem_intent *intent = turn->intent;
    const struct idem_evidence *evidence = &turn->command->evidence;
    if (!same_place(&intent->effect, evidence) || !same_money(&intent->effect, evidence) ||
        !same_order(turn)) {
        idem_turn_park(turn, IDEM_CASE_MISMATCH,
                       IDEM_STR("done elsewhere, or another id, amount or order number"));
        return;
    }
    if (!idem_settle_make_room(turn)) {
        park_without_room(turn);
        return;
    }
    settle_success(turn);
}

/* The send of a payment names the provider's number of it, and none is known yet. */
static bool brings_number(const struct idem_turn *turn)
{
    const struct idem_effect *effect = &turn->intent->effect;
    const struct idem_evidence *evidence = &turn->command->evidence;
    bool named = evidence->effect_id.len == 0 || idem_str_equal(evidence->effect_id, effect->id);
    return idem_effect_kind_makes_payment(effect->kind) && effect->reference.len == 0 &&
           evidence->reference.len > 0 && named && same_place(effect, evidence) &&
           own_send(turn) != NULL;
}

static void weigh(struct idem_turn *turn)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    bool said_something = evidence->outcome != IDEM_OUTCOME_UNKNOWN;
    if (said_something && !same_place(&turn->intent->effect, evidence)) {
        idem_turn_park(turn, IDEM_CASE_MISMATCH,
                       IDEM_STR("answered by another entry, account or region"));
        return;
    }
    if (brings_number(turn)) {
        idem_turn_write_intent(turn);
        turn->intent->effect.reference = evidence->reference;
    }
    switch (evidence->outcome) {
    case IDEM_OUTCOME_SUCCESS:
        success(turn);
        return;
    case IDEM_OUTCOME_REFUSED_FINAL:
        refused(turn);
        return;
    case IDEM_OUTCOME_CLOSED_UNPAID:
        closed_unpaid(turn);
        return;
    case IDEM_OUTCOME_NOT_EXECUTED:
        not_executed(turn);
        return;
    case IDEM_OUTCOME_REVERSED:
        success(turn);
        return;
    case IDEM_OUTCOME_UNKNOWN:
    case IDEM_OUTCOME_PROCESSING:
    case IDEM_OUTCOME_NOT_FOUND:
        silence(turn);
        return;
    case IDEM_OUTCOME_NONE:
    case IDEM_OUTCOME_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* It came, and stands in the inbox: for the first time, or once more. */
static void note_event(struct idem_turn *turn)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    IDEM_ASSERT(evidence->event_id.len > 0);
    IDEM_ASSERT(evidence->event_id.len <= IDEM_EVENT_ID_MAX);
    turn->decision->inbox = (struct idem_inbox_write){
        .write = turn->facts->event_seen ? IDEM_WRITE_UPDATE : IDEM_WRITE_INSERT,
        .entry = evidence->entry,
        .event_id = evidence->event_id,
        .at_us = turn->command->now_us,
        .known = turn->facts->intent.row != 0,
    };
}

/* About an intent of ours, whatever its state. */
static void learn(struct idem_turn *turn)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    const struct idem_effect *effect = &turn->intent->effect;
    bool says_done =
        evidence->outcome == IDEM_OUTCOME_SUCCESS || evidence->outcome == IDEM_OUTCOME_REVERSED;
    if (idem_intent_is_final(turn->intent->state)) {
        idem_decide_late(turn, same_place(effect, evidence) && same_money(effect, evidence) &&
                                   same_order(turn));
        return;
    }
    if (evidence->source == IDEM_SOURCE_LISTING && !says_done) {
        return; /* What a listing says beside what was done ends nothing: the provider is asked. */
    }
    if (turn->intent->state != IDEM_INTENT_RELEASED) {
        weigh(turn);
    } else if (says_done) {
        success_after_release(turn);
    }
    if (evidence->outcome == IDEM_OUTCOME_REVERSED &&
        turn->intent->state == IDEM_INTENT_SUCCEEDED) {
        idem_decide_late(turn, true);
    }
}

void idem_decide_evidence(struct idem_turn *turn)
{
    const struct idem_evidence *evidence = &turn->command->evidence;
    IDEM_ASSERT(evidence->source > IDEM_SOURCE_NONE);
    IDEM_ASSERT(evidence->source < IDEM_SOURCE_COUNT);
    bool is_event = evidence->source == IDEM_SOURCE_CALLBACK;
    if (is_event && turn->command->restored && turn->facts->intent.row == 0) {
        /* What this copy has missed is found by the listing; until then the provider keeps it. */
        idem_turn_reply(turn, IDEM_PROBLEM_UNAVAILABLE, false);
        return;
    }
    if (is_event) {
        note_event(turn);
    }
    if (idem_turn_repeat(turn) || turn->facts->event_seen) {
        return;
    }
    if (turn->facts->intent.row != 0) {
        learn(turn);
    } else if (evidence->source == IDEM_SOURCE_LISTING &&
               evidence->outcome == IDEM_OUTCOME_SUCCESS) {
        idem_decide_listed(turn);
    }
}
