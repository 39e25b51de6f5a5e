/*
 * A person decides, with a reason. It is evidence and walks the same path as the provider's word:
 * the same ends, rows and answers, and the history says who said so.
 *
 *   SUCCEEDED  It happened, with this money. Believed wherever the provider's success would be.
 *   FAILED     It did not happen. That can be known only when nothing that was sent can arrive any
 *              more, so until then it is refused (P6): a person looks at a screen, and the request
 *              is still on its way. What counts is when it was said, not when it is decided:
 *              between the two the store may have refused for long. In an old copy it is not known
 *              what was sent at all, and what a stub stands for did happen: the provider's own
 *              listing says so.
 *   NOTED      A final record is right as it is, whatever the case says. Nothing but cases changes.
 *              What is still parked cannot be noted away: it stays in front of a person (P9).
 *   STRAY      It happened beside the books: a payment that failed here or has no room, and was
 *              made at the provider all the same. It gets a payment row of its own, which holds
 *              no merchant's order number, so that it can be given back by an ordinary refund or
 *              cancel. Its id is that of the case: it is made once.
 *
 * A verdict that agrees with the end it has already brought is answered as before and writes
 * nothing; any other verdict about what is final is refused (P4).
 */
#include "core/decide_internal.h"

#include "base/bug.h"
#include "core/settle.h"

static void refuse(struct idem_turn *turn, enum idem_problem problem)
{
    idem_turn_reply(turn, problem, false);
}

/* "succeeded: seen in the provider's console" */
static struct idem_str verdict_text(struct idem_turn *turn)
{
    const struct idem_resolve *resolve = &turn->command->resolve;
    struct idem_buf *scratch = &turn->decision->scratch;
    size_t from = scratch->len;
    idem_buf_add(scratch, idem_str_from(idem_verdict_name(resolve->verdict)));
    idem_buf_add(scratch, IDEM_STR(": "));
    idem_buf_add(scratch, resolve->reason);
    return idem_turn_text_since(turn, from);
}

/* The history says who, what and why, and what was open is decided. */
static void put_on_record(struct idem_turn *turn)
{
    struct idem_str by = turn->command->resolve.by;
    struct idem_str verdict = verdict_text(turn);
    struct idem_buf *scratch = &turn->decision->scratch;
    size_t from = scratch->len;
    idem_buf_add(scratch, by);
    idem_buf_add(scratch, IDEM_STR(": "));
    idem_buf_add(scratch, verdict);
    idem_turn_write_intent(turn);
    idem_turn_event(turn, IDEM_EVENT_RESOLVED, idem_turn_text_since(turn, from));
    idem_turn_decide_cases(turn, by, verdict);
    idem_turn_reply(turn, IDEM_PROBLEM_NONE, false);
}

/* What stands there is what this verdict says. */
static bool is_said_already(const struct idem_turn *turn)
{
    const struct idem_resolve *resolve = &turn->command->resolve;
    const struct idem_intent *intent = &turn->facts->intent;
    if (resolve->verdict == IDEM_VERDICT_FAILED) {
        return intent->problem == IDEM_PROBLEM_NOT_HAPPENED;
    }
    return intent->state == IDEM_INTENT_SUCCEEDED &&
           resolve->amount_minor == intent->effect.amount_minor &&
           idem_str_equal(resolve->currency, intent->effect.currency) &&
           (resolve->reference.len == 0 ||
            idem_str_equal(resolve->reference, intent->effect.reference));
}

/* A case says that this payment was made, and its rows do not have it. */
static bool is_stray(const struct idem_turn *turn)
{
    const struct idem_intent *intent = &turn->facts->intent;
    uint32_t open = turn->facts->cases_open;
    bool contradicted = intent->state == IDEM_INTENT_FAILED &&
                        (open & (UINT32_C(1) << IDEM_CASE_CONTRADICTION)) != 0;
    bool has_no_room =
        intent->state == IDEM_INTENT_PARKED && (open & (UINT32_C(1) << IDEM_CASE_NO_ROOM)) != 0;
    uint32_t reversed = UINT32_C(1) << IDEM_CASE_REVERSED; /* There is nothing to give back. */
    bool was_reversed = ((open | turn->facts->cases_decided) & reversed) != 0;
    /* FAILED: no case has made a row of it before. */
    return (contradicted || has_no_room) && !was_reversed && turn->facts->stub.row == 0 &&
           turn->facts->payment.state == IDEM_PAYMENT_FAILED &&
           idem_effect_kind_makes_payment(intent->effect.kind);
}

/* On a row of its own, under a number that no merchant has given. */
static void begin_stray_payment(struct idem_turn *turn)
{
    struct idem_buf *scratch = &turn->decision->scratch;
    size_t from = scratch->len;
    idem_buf_add(scratch, IDEM_STR(IDEM_STRAY_PREFIX));
    idem_uid_print(turn->command->resolve.case_id, scratch);
    idem_turn_renew_payment(turn);
    turn->payment->id = turn->command->resolve.case_id;
    turn->payment->order_no = idem_turn_text_since(turn, from);
    turn->intent->payment_id = turn->payment->id;
    turn->intent->payment_row = turn->facts->intent.payment_row; /* Until the new one is put in. */
}

/* The provider's number as the person read it, or as it was known. */
static struct idem_str reference(const struct idem_turn *turn)
{
    const struct idem_resolve *resolve = &turn->command->resolve;
    return resolve->reference.len > 0 ? resolve->reference : turn->facts->intent.effect.reference;
}

static void say_stray(struct idem_turn *turn)
{
    const struct idem_payment *payment = &turn->facts->payment;
    if (payment->row != 0 && idem_uid_equal(payment->id, turn->command->resolve.case_id)) {
        refuse(turn, IDEM_PROBLEM_NONE); /* It was made before. */
        return;
    }
    if (!is_stray(turn)) {
        refuse(turn, IDEM_PROBLEM_STATE_CONFLICT);
        return;
    }
    idem_turn_write_intent(turn);
    begin_stray_payment(turn);
    if (turn->intent->state == IDEM_INTENT_PARKED) {
        idem_settle_success(turn, reference(turn), 0, IDEM_STR("operator"));
    } else {
        idem_payment_made(turn->payment);
        turn->payment->reference = reference(turn);
        idem_turn_payment_moved(turn, IDEM_PAYMENT_PENDING);
    }
    put_on_record(turn);
}

static void about_final(struct idem_turn *turn)
{
    if (turn->command->resolve.verdict == IDEM_VERDICT_NOTED) {
        put_on_record(turn);
        return;
    }
    refuse(turn, is_said_already(turn) ? IDEM_PROBLEM_NONE : IDEM_PROBLEM_STATE_CONFLICT);
}

/*
 * The first byte leaves before this. An earlier process counted the grant's time on a clock of its
 * own, of which only the length is known here: it granted nothing any more once this incarnation
 * had begun.
 */
static int64_t leaves_until_us(const struct idem_turn *turn, const struct idem_send *send)
{
    int64_t opened_us = turn->command->opened_us;
    int64_t from_us = send->granted_us < opened_us ? opened_us : send->granted_us;
    return from_us + (send->not_after_us - send->granted_us);
}

/* The time from which it can be known that nothing arrives any more; 0: nothing ever could. */
static int64_t wire_end_us(const struct idem_turn *turn)
{
    const struct idem_intent *intent = &turn->facts->intent;
    const struct idem_provider_rules *provider =
        idem_rules_provider(turn->rules, intent->effect.entry);
    /* Out of the configuration its times are not known; no provider takes that long. */
    int64_t arrives_us = provider != NULL ? provider->request_timeout_us + provider->settle_us
                                          : turn->rules->ask_max_us;
    bool acts = intent->state == IDEM_INTENT_DISPATCHED && idem_turn_lease_lives(turn);
    int64_t end_us = acts ? intent->lease_end_us : 0;
    for (size_t i = 0; i < turn->facts->send_count; i++) {
        const struct idem_send *send = &turn->facts->sends[i];
        int64_t send_end_us = leaves_until_us(turn, send) + arrives_us;
        if (send->state != IDEM_SEND_NOT_EXECUTED && send_end_us > end_us) {
            end_us = send_end_us;
        }
    }
    return end_us;
}

static void too_early(struct idem_turn *turn, int64_t retry_after_us)
{
    refuse(turn, IDEM_PROBLEM_TOO_EARLY);
    turn->decision->release.retry_after_us = retry_after_us;
}

static void say_failed(struct idem_turn *turn)
{
    int64_t end_us = wire_end_us(turn);
    if (turn->facts->stub.row != 0) {
        refuse(turn, IDEM_PROBLEM_STATE_CONFLICT);
        return;
    }
    if (turn->command->restored) {
        too_early(turn, 0);
        return;
    }
    if (end_us > turn->command->resolve.asked_us) {
        int64_t now_us = turn->command->now_us;
        too_early(turn, end_us > now_us ? end_us - now_us : 0); /* 0: look again now. */
        return;
    }
    struct idem_problem_details details = {
        .problem = IDEM_PROBLEM_NOT_HAPPENED,
        .detail = IDEM_STR("Somebody looked at the provider: nothing was executed under this key, "
                           "and nothing will be. Another try is a new intent under a new key."),
        .operation_id = turn->intent->id,
        .payment_id = turn->intent->payment_id,
    };
    idem_settle_failure(turn, &details, IDEM_STR("not_happened"), 0);
    put_on_record(turn);
}

/* False: the rows have no room for it, and nothing changed. */
static bool settle(struct idem_turn *turn, struct idem_str how)
{
    if (turn->facts->stub.row != 0) {
        return idem_decide_found_happened(turn, reference(turn), how);
    }
    if (!idem_settle_holds_reservation(turn) && !idem_settle_make_room(turn)) {
        return false;
    }
    idem_settle_success(turn, reference(turn), 0, how);
    return true;
}

static void say_succeeded(struct idem_turn *turn)
{
    const struct idem_resolve *resolve = &turn->command->resolve;
    const struct idem_intent *intent = &turn->facts->intent;
    static const struct idem_str how = { .data = "operator", .len = 8 };
    if (intent->state == IDEM_INTENT_CLAIMED && intent->send_count == 0) {
        refuse(turn, IDEM_PROBLEM_STATE_CONFLICT); /* Nothing left: somebody is mistaken. */
        return;
    }
    if (intent->state == IDEM_INTENT_DISPATCHED && idem_turn_lease_lives(turn)) {
        too_early(turn, intent->lease_end_us - turn->command->now_us);
        return;
    }
    if (intent->effect.amount_minor <= 0) { /* The listing did not say how much. */
        refuse(turn, IDEM_PROBLEM_STATE_CONFLICT);
        return;
    }
    if (resolve->amount_minor != intent->effect.amount_minor ||
        !idem_str_equal(resolve->currency, intent->effect.currency)) {
        refuse(turn, IDEM_PROBLEM_AMOUNT_INVALID);
        return;
    }
    if (!settle(turn, how)) {
        refuse(turn, IDEM_PROBLEM_STATE_CONFLICT);
        return;
    }
    put_on_record(turn);
}

void idem_decide_resolve(struct idem_turn *turn)
{
    const struct idem_resolve *resolve = &turn->command->resolve;
    IDEM_ASSERT(resolve->verdict > IDEM_VERDICT_NONE);
    IDEM_ASSERT(resolve->verdict < IDEM_VERDICT_COUNT);
    IDEM_ASSERT(resolve->reason.len > 0);
    IDEM_ASSERT(resolve->reason.len <= IDEM_REASON_MAX);
    IDEM_ASSERT(resolve->asked_us > 0);
    IDEM_ASSERT(resolve->verdict != IDEM_VERDICT_STRAY || !idem_uid_is_zero(resolve->case_id));
    if (idem_turn_repeat(turn)) {
        return;
    }
    if (turn->facts->intent.row == 0) {
        refuse(turn, IDEM_PROBLEM_NOT_FOUND);
        return;
    }
    if (resolve->verdict == IDEM_VERDICT_STRAY) {
        say_stray(turn);
        return;
    }
    if (idem_intent_is_final(turn->facts->intent.state)) {
        about_final(turn);
        return;
    }
    switch (resolve->verdict) {
    case IDEM_VERDICT_SUCCEEDED:
        say_succeeded(turn);
        return;
    case IDEM_VERDICT_FAILED:
        say_failed(turn);
        return;
    case IDEM_VERDICT_NOTED:
        refuse(turn, IDEM_PROBLEM_STATE_CONFLICT);
        return;
    case IDEM_VERDICT_NONE:
    case IDEM_VERDICT_STRAY:
    case IDEM_VERDICT_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}
