/*
 * The steps of a decision that more than one kind of command needs.
 *
 * A turn changes only its decision: it marks rows as written (once, with one version more), appends
 * to the history, acquires, grants, plans, finishes, and takes and returns reservations. The
 * rules of P1, P7, P8 and P10 hold because there is one function for each of these and no other
 * way.
 *
 * Why the row remembers its last command: after an unknown COMMIT the same command runs again. If
 * the first run was durable, the record carries this command's token, and deciding anew would see
 * its own work as somebody else's. idem_turn_repeat() finds that, writes the row once more so that
 * the new COMMIT has something to flush, and gives the same release.
 */
#include "core/turn.h"

#include "base/bug.h"

static const struct idem_str no_text = { .data = NULL, .len = 0 };

void idem_turn_write_intent(struct idem_turn *turn)
{
    struct idem_intent_write *write = &turn->decision->intent;
    if (write->write != IDEM_WRITE_NONE) {
        return;
    }
    write->write = write->row.row == 0 ? IDEM_WRITE_INSERT : IDEM_WRITE_UPDATE;
    write->row.version += 1;
    write->row.last_command = turn->command->token;
    write->row.updated_us = turn->command->now_us;
    if (write->row.updated_us < write->row.created_us) {
        write->row.updated_us = write->row.created_us; /* The clock went back between two starts. */
    }
}

void idem_turn_write_payment(struct idem_turn *turn)
{
    struct idem_payment_write *write = &turn->decision->payment;
    if (write->write != IDEM_WRITE_NONE) {
        return;
    }
    write->write = write->row.row == 0 ? IDEM_WRITE_INSERT : IDEM_WRITE_UPDATE;
    write->row.version += 1;
    write->row.updated_us = turn->command->now_us;
}

void idem_turn_write_refund(struct idem_turn *turn)
{
    struct idem_refund_write *write = &turn->decision->refund;
    if (write->write != IDEM_WRITE_NONE) {
        return;
    }
    write->write = write->row.row == 0 ? IDEM_WRITE_INSERT : IDEM_WRITE_UPDATE;
    write->row.version += 1;
    write->row.updated_us = turn->command->now_us;
}

void idem_turn_event_send(struct idem_turn *turn,
                          enum idem_event_kind kind,
                          uint32_t send_no,
                          struct idem_str detail)
{
    struct idem_decision *decision = turn->decision;
    IDEM_ASSERT(decision->event_count < IDEM_EVENTS_STEP_MAX);
    decision->events[decision->event_count] = (struct idem_event){
        .kind = kind,
        .cause = turn->cause,
        .at_us = turn->command->now_us,
        .epoch = turn->intent->epoch,
        .send_no = send_no,
        .detail = detail,
    };
    decision->event_count += 1;
}

void idem_turn_event(struct idem_turn *turn, enum idem_event_kind kind, struct idem_str detail)
{
    idem_turn_event_send(turn, kind, 0, detail);
}

void idem_turn_case(struct idem_turn *turn, enum idem_case_kind kind, struct idem_str detail)
{
    IDEM_ASSERT(kind > IDEM_CASE_NONE);
    if ((turn->facts->cases_open & (UINT32_C(1) << kind)) != 0) {
        return; /* A person has one of this kind already. */
    }
    turn->decision->opened = (struct idem_case){
        .kind = kind,
        .id = turn->command->case_id,
        .opened_us = turn->command->now_us,
        .detail = detail,
    };
}

void idem_turn_decide_cases(struct idem_turn *turn, struct idem_str by, struct idem_str decision)
{
    turn->decision->decided = (struct idem_case){
        .decided_us = turn->command->now_us,
        .decided_by = by,
        .decision = decision,
    };
}

static struct idem_str moved_text(struct idem_turn *turn, const char *from, const char *to)
{
    struct idem_buf *scratch = &turn->decision->scratch;
    size_t start = scratch->len;
    idem_buf_add(scratch, idem_str_from(from));
    idem_buf_add(scratch, IDEM_STR(" -> "));
    idem_buf_add(scratch, idem_str_from(to));
    IDEM_ASSERT(!scratch->full);
    return idem_str_slice(idem_buf_str(scratch), start, scratch->len - start);
}

void idem_turn_payment_moved(struct idem_turn *turn, enum idem_payment_state from)
{
    if (turn->payment->state != from) {
        struct idem_str detail = moved_text(turn, idem_payment_state_name(from),
                                            idem_payment_state_name(turn->payment->state));
        idem_turn_event(turn, IDEM_EVENT_PAYMENT_MOVED, detail);
    }
}

void idem_turn_refund_moved(struct idem_turn *turn, enum idem_refund_state from)
{
    if (turn->refund->state != from) {
        struct idem_str detail = moved_text(turn, idem_refund_state_name(from),
                                            idem_refund_state_name(turn->refund->state));
        idem_turn_event(turn, IDEM_EVENT_REFUND_MOVED, detail);
    }
}

bool idem_turn_lease_lives(const struct idem_turn *turn)
{
    const struct idem_intent *intent = &turn->facts->intent;
    return intent->lease_end_us > turn->command->now_us &&
           intent->incarnation == turn->command->incarnation;
}

void idem_turn_acquire(struct idem_turn *turn)
{
    struct idem_intent *intent = turn->intent;
    idem_turn_write_intent(turn);
    intent->epoch += 1;
    intent->token = turn->command->token;
    intent->incarnation = turn->command->incarnation;
    intent->lease_end_us = turn->command->now_us + turn->rules->lease_us;
    intent->due_us = intent->lease_end_us;
}

bool idem_turn_send_is_open(const struct idem_turn *turn, const struct idem_send *send)
{
    return send->state == IDEM_SEND_OPEN && send->no != turn->resolved_send_no;
}

static int64_t oldest_open_us(const struct idem_turn *turn)
{
    for (size_t i = 0; i < turn->facts->send_count; i++) {
        if (idem_turn_send_is_open(turn, &turn->facts->sends[i])) {
            return turn->facts->sends[i].granted_us; /* Sends are in the order of their grants. */
        }
    }
    return 0;
}

void idem_turn_grant_send(struct idem_turn *turn)
{
    struct idem_intent *intent = turn->intent;
    struct idem_decision *decision = turn->decision;
    int64_t now_us = turn->command->now_us;
    const struct idem_provider_rules *provider = idem_rules_place(turn->rules, &intent->effect);
    IDEM_ASSERT(provider != NULL);
    IDEM_ASSERT(intent->lease_end_us > now_us);
    IDEM_ASSERT(intent->send_count < IDEM_SENDS_MAX);
    IDEM_ASSERT(decision->send_write_count < IDEM_SEND_WRITES_MAX);

    int64_t oldest_us = oldest_open_us(turn);
    int64_t window_end_us = idem_recovery_window_end_us(&provider->capability[intent->effect.kind],
                                                        oldest_us != 0 ? oldest_us : now_us);
    int64_t not_after_us = intent->lease_end_us;
    if (window_end_us != 0 && window_end_us < not_after_us) {
        not_after_us = window_end_us;
    }

    intent->send_count += 1;
    intent->step = IDEM_STEP_SEND;
    if (intent->state == IDEM_INTENT_CLAIMED) {
        intent->state = IDEM_INTENT_DISPATCHED;
    }
    decision->sends[decision->send_write_count] = (struct idem_send_write){
        .write = IDEM_WRITE_INSERT,
        .row = {
            .no = intent->send_count,
            .epoch = intent->epoch,
            .token = intent->token,
            .granted_us = now_us,
            .not_after_us = not_after_us,
            .state = IDEM_SEND_OPEN,
        },
    };
    decision->send_write_count += 1;
    decision->release.kind = IDEM_RELEASE_SEND;
    decision->release.send_no = intent->send_count;
    decision->release.not_after_us = not_after_us;
    idem_turn_event_send(turn, IDEM_EVENT_DISPATCHED, intent->send_count, no_text);
}

void idem_turn_plan(struct idem_turn *turn, enum idem_step step, int64_t at_us)
{
    struct idem_intent *intent = turn->intent;
    IDEM_ASSERT(at_us > 0);
    idem_turn_write_intent(turn);
    intent->step = step;
    intent->lease_end_us = 0;
    intent->due_us = at_us;
}

void idem_turn_finish(struct idem_turn *turn,
                      enum idem_intent_state state,
                      enum idem_problem problem,
                      struct idem_answer answer)
{
    struct idem_intent *intent = turn->intent;
    IDEM_ASSERT(idem_intent_is_final(state));
    IDEM_ASSERT(!idem_intent_is_final(intent->state));
    IDEM_ASSERT(answer.status != 0);
    IDEM_ASSERT(!turn->decision->scratch.full);

    idem_turn_write_intent(turn);
    intent->state = state;
    intent->problem = problem;
    intent->answer = answer;
    intent->step = IDEM_STEP_NONE;
    intent->lease_end_us = 0;
    intent->due_us = 0;
    intent->finished_us = turn->command->now_us;
    intent->expires_us = intent->finished_us + turn->rules->answer_retention_us;
    intent->reap_us = intent->expires_us;
    idem_turn_reply(turn, IDEM_PROBLEM_NONE, false);
}

struct idem_str idem_turn_text_since(const struct idem_turn *turn, size_t from)
{
    const struct idem_buf *scratch = &turn->decision->scratch;
    IDEM_ASSERT(!scratch->full);
    return idem_str_slice(idem_buf_str(scratch), from, scratch->len - from);
}

void idem_turn_reply(struct idem_turn *turn, enum idem_problem problem, bool replayed)
{
    turn->decision->release = (struct idem_release){
        .kind = IDEM_RELEASE_REPLY,
        .problem = problem,
        .replayed = replayed,
    };
}

/*
 * The release that the recorded state means for the command that made it. Only the command that
 * acquired gets the call again: another may have written the row while somebody's lease lives.
 */
static void release_again(struct idem_turn *turn)
{
    const struct idem_intent *intent = turn->intent;
    struct idem_release *release = &turn->decision->release;
    enum idem_command_kind kind = turn->command->kind;
    if (kind == IDEM_COMMAND_RESOLVE || kind == IDEM_COMMAND_REAP) {
        idem_turn_reply(turn, IDEM_PROBLEM_NONE, false); /* What is refused writes nothing. */
        return;
    }
    if (idem_intent_is_final(intent->state)) {
        if (intent->finished_us == turn->command->now_us) { /* Else it contradicted the end. */
            idem_turn_reply(turn, IDEM_PROBLEM_NONE, false);
        }
        return;
    }
    if (intent->state == IDEM_INTENT_RELEASED) {
        if (kind == IDEM_COMMAND_EVIDENCE) { /* A timer only looks again later. */
            idem_turn_reply(turn, IDEM_PROBLEM_NOT_EXECUTED, false);
            release->retry_after_us = turn->command->evidence.retry_after_us;
        }
        return;
    }
    if (intent->lease_end_us == 0 || !idem_uid_equal(intent->token, turn->command->token)) {
        release->kind = kind == IDEM_COMMAND_ACCEPT ? IDEM_RELEASE_WAIT : IDEM_RELEASE_NONE;
        return;
    }
    switch (intent->step) {
    case IDEM_STEP_NONE:
    case IDEM_STEP_COUNT:
        IDEM_UNREACHABLE(); /* A lease is granted for a step. */
    case IDEM_STEP_SEND:
        IDEM_ASSERT(turn->facts->send_count > 0);
        release->kind = IDEM_RELEASE_SEND;
        release->send_no = intent->send_count;
        release->not_after_us = turn->facts->sends[turn->facts->send_count - 1].not_after_us;
        return;
    case IDEM_STEP_ASK:
        release->kind = IDEM_RELEASE_QUERY;
        return;
    case IDEM_STEP_CLOSE:
        release->kind = IDEM_RELEASE_CLOSE;
        release->not_after_us = intent->lease_end_us;
        return;
    }
}

bool idem_turn_repeat(struct idem_turn *turn)
{
    if (turn->facts->intent.row == 0 ||
        !idem_uid_equal(turn->facts->intent.last_command, turn->command->token)) {
        return false;
    }
    idem_turn_write_intent(turn);
    release_again(turn);
    return true;
}

static enum idem_problem problem_of(enum idem_refusal refusal)
{
    switch (refusal) {
    case IDEM_REFUSAL_NONE:
        return IDEM_PROBLEM_NONE;
    case IDEM_REFUSAL_STATE:
        return IDEM_PROBLEM_STATE_CONFLICT;
    case IDEM_REFUSAL_AMOUNT:
        return IDEM_PROBLEM_AMOUNT_EXCEEDS;
    case IDEM_REFUSAL_PARTIAL:
        return IDEM_PROBLEM_PARTIAL_REFUSED;
    case IDEM_REFUSAL_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

enum idem_problem idem_turn_reserve(struct idem_turn *turn,
                                    const struct idem_provider_rules *provider)
{
    int64_t amount_minor = turn->intent->effect.amount_minor;
    enum idem_refusal refusal = IDEM_REFUSAL_NONE;
    switch (turn->intent->effect.kind) {
    case IDEM_EFFECT_KIND_NONE:
    case IDEM_EFFECT_KIND_COUNT:
        IDEM_UNREACHABLE();
    case IDEM_EFFECT_KIND_CHARGE:
    case IDEM_EFFECT_KIND_AUTHORIZE:
        return IDEM_PROBLEM_NONE; /* The pending payment row is the reservation. */
    case IDEM_EFFECT_KIND_CAPTURE:
        refusal =
            idem_payment_reserve_capture(turn->payment, amount_minor, provider->partial_capture);
        break;
    case IDEM_EFFECT_KIND_CANCEL:
        refusal = idem_payment_reserve_cancel(turn->payment, provider->partial_capture);
        break;
    case IDEM_EFFECT_KIND_REFUND:
        refusal = idem_payment_reserve_refund(turn->payment, amount_minor);
        break;
    }
    if (refusal == IDEM_REFUSAL_NONE) {
        idem_turn_write_payment(turn);
    }
    return problem_of(refusal);
}

void idem_turn_return_reservation(struct idem_turn *turn, struct idem_str failure_code)
{
    enum idem_payment_state payment_from = turn->payment->state;
    enum idem_refund_state refund_from = turn->refund->state;
    idem_turn_write_payment(turn);
    switch (turn->intent->effect.kind) {
    case IDEM_EFFECT_KIND_NONE:
    case IDEM_EFFECT_KIND_COUNT:
        IDEM_UNREACHABLE();
    case IDEM_EFFECT_KIND_CHARGE:
    case IDEM_EFFECT_KIND_AUTHORIZE:
        idem_payment_failed(turn->payment);
        turn->payment->failure_code = failure_code;
        break;
    case IDEM_EFFECT_KIND_CAPTURE:
        idem_payment_capture_returned(turn->payment, turn->intent->effect.amount_minor);
        break;
    case IDEM_EFFECT_KIND_CANCEL:
        idem_payment_cancel_returned(turn->payment);
        break;
    case IDEM_EFFECT_KIND_REFUND:
        idem_payment_refund_returned(turn->payment, turn->intent->effect.amount_minor);
        idem_turn_write_refund(turn);
        turn->refund->state = IDEM_REFUND_FAILED;
        turn->refund->failure_code = failure_code;
        break;
    }
    idem_turn_payment_moved(turn, payment_from);
    idem_turn_refund_moved(turn, refund_from);
}

void idem_turn_begin_refund(struct idem_turn *turn, struct idem_str refund_no)
{
    *turn->refund = (struct idem_refund){
        .id = turn->command->resource_id,
        .state = IDEM_REFUND_PENDING,
        .payment_row = turn->payment->row,
        .payment_id = turn->payment->id,
        .principal = turn->payment->principal,
        .refund_no = refund_no,
        .amount_minor = turn->intent->effect.amount_minor,
        .currency = turn->intent->effect.currency,
        .created_us = turn->command->now_us,
    };
    idem_turn_write_refund(turn);
    turn->intent->refund_row = 0; /* The store puts the new row in. */
    turn->intent->refund_id = turn->refund->id;
}

void idem_turn_renew_payment(struct idem_turn *turn)
{
    *turn->payment = turn->facts->payment;
    turn->payment->row = 0;
    turn->payment->version = 0;
    turn->payment->id = turn->command->resource_id;
    turn->payment->state = IDEM_PAYMENT_PENDING;
    turn->payment->failure_code = no_text;
    turn->payment->created_us = turn->command->now_us;
    idem_turn_write_payment(turn);
    turn->intent->payment_row = 0; /* The store puts the new row in. */
    turn->intent->payment_id = turn->payment->id;
}

void idem_turn_renew_refund(struct idem_turn *turn)
{
    idem_turn_begin_refund(turn, turn->facts->refund.refund_no);
}

static bool can_be_asked(const struct idem_turn *turn)
{
    const struct idem_effect *effect = &turn->intent->effect;
    const struct idem_provider_rules *provider = idem_rules_place(turn->rules, effect);
    return provider != NULL && provider->capability[effect->kind].query != IDEM_QUERY_NONE;
}

void idem_turn_park(struct idem_turn *turn, enum idem_case_kind kind, struct idem_str detail)
{
    bool was_parked = turn->intent->state == IDEM_INTENT_PARKED;
    idem_turn_write_intent(turn);
    if (turn->intent->unknown_since_us == 0) {
        turn->intent->unknown_since_us = turn->command->now_us;
    }
    turn->intent->state = IDEM_INTENT_PARKED;
    idem_turn_plan(turn, can_be_asked(turn) ? IDEM_STEP_ASK : IDEM_STEP_NONE,
                   turn->command->now_us + turn->rules->parked_ask_us);
    idem_turn_event(turn, IDEM_EVENT_PARKED, detail);
    if (!was_parked) {
        idem_turn_case(turn, kind, detail);
    }
}

void idem_turn_unknown(struct idem_turn *turn)
{
    struct idem_intent *intent = turn->intent;
    if (intent->state != IDEM_INTENT_DISPATCHED) {
        return;
    }
    idem_turn_write_intent(turn);
    intent->state = IDEM_INTENT_UNKNOWN;
    intent->unknown_since_us = turn->command->now_us;
    intent->ask_count = 0;
    idem_turn_event(turn, IDEM_EVENT_UNKNOWN, no_text);
}

struct idem_recovery_view idem_turn_view(const struct idem_turn *turn,
                                         const struct idem_provider_rules *provider)
{
    const struct idem_intent *intent = turn->intent;
    struct idem_recovery_view view = {
        .capability = &provider->capability[intent->effect.kind],
        .rules = turn->rules,
        .now_us = turn->command->now_us,
        .noise = turn->command->noise,
        .unknown_since_us = intent->unknown_since_us,
        .ask_count = intent->ask_count,
        .send_count = intent->send_count,
        .close_asked = intent->effect.close_asked,
        .parked = intent->state == IDEM_INTENT_PARKED,
    };
    if (view.now_us < view.unknown_since_us) {
        view.now_us = view.unknown_since_us; /* The clock went back between two starts. */
    }
    for (size_t i = 0; i < turn->facts->send_count; i++) {
        const struct idem_send *send = &turn->facts->sends[i];
        if (!idem_turn_send_is_open(turn, send)) {
            continue;
        }
        view.oldest_open_us = view.oldest_open_us == 0 ? send->granted_us : view.oldest_open_us;
        view.newest_open_us = send->granted_us;
        int64_t end_us = send->not_after_us + provider->request_timeout_us + provider->settle_us;
        view.wire_end_us = end_us > view.wire_end_us ? end_us : view.wire_end_us;
    }
    return view;
}

void idem_turn_follow(struct idem_turn *turn, struct idem_recovery_next next)
{
    if (next.park) {
        static const struct idem_str detail = { .data = "no safe step is left; ask the provider",
                                                .len = 38 };
        idem_turn_write_intent(turn);
        turn->intent->state = IDEM_INTENT_PARKED;
        idem_turn_event(turn, IDEM_EVENT_PARKED, detail);
        idem_turn_case(turn, IDEM_CASE_UNRESOLVED, detail);
    }
    idem_turn_plan(turn, next.step, next.at_us);
}
