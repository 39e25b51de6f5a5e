/*
 * An open intent's time has come: dispatch what waited, take over what somebody left, ask, send
 * again, close, or let a released key go.
 *
 * Who may act: nobody acts without acquiring first, and acquiring is a new epoch and a new token,
 * also for the same process. A lease that lives under this store's incarnation is respected. One
 * that ended turns DISPATCHED into UNKNOWN, and then the recovery table speaks; time alone never
 * runs anything a second time. A payment whose order number another one has used, as the provider's
 * listing says, is not sent at all: a person gets it.
 */
#include "core/decide_internal.h"

#include "base/bug.h"

static const struct idem_str no_text = { .data = NULL, .len = 0 };

static void perform_send(struct idem_turn *turn)
{
    idem_turn_acquire(turn);
    idem_turn_grant_send(turn);
}

static void perform_ask(struct idem_turn *turn)
{
    idem_turn_acquire(turn);
    turn->intent->step = IDEM_STEP_ASK;
    turn->intent->ask_count += 1;
    turn->decision->release.kind = IDEM_RELEASE_QUERY;
    idem_turn_event(turn, IDEM_EVENT_ASKED, no_text);
}

static void perform_close(struct idem_turn *turn)
{
    idem_turn_acquire(turn);
    turn->intent->step = IDEM_STEP_CLOSE;
    turn->intent->effect.close_asked = true;
    turn->decision->release.kind = IDEM_RELEASE_CLOSE;
    turn->decision->release.not_after_us = turn->intent->lease_end_us;
    idem_turn_event(turn, IDEM_EVENT_CLOSE_GRANTED, no_text);
}

/* A planned second send whose window has closed since is not sent: the table decides anew. */
static bool window_is_over(const struct idem_turn *turn, const struct idem_provider_rules *provider)
{
    struct idem_recovery_view view = idem_turn_view(turn, provider);
    if (view.oldest_open_us == 0) {
        return false; /* Nothing is unresolved: a first send, as far as the provider knows. */
    }
    return view.now_us >= idem_recovery_window_end_us(view.capability, view.oldest_open_us);
}

/* In an old copy nothing goes out that could move anything: it may have gone out already. */
static bool is_held_back(const struct idem_turn *turn)
{
    enum idem_step step = turn->intent->step;
    return turn->command->restored && (step == IDEM_STEP_SEND || step == IDEM_STEP_CLOSE);
}

static void perform(struct idem_turn *turn, const struct idem_provider_rules *provider)
{
    if (is_held_back(turn)) {
        int64_t at_us = turn->command->now_us + turn->rules->ask_first_us;
        idem_turn_plan(turn, turn->intent->step, at_us);
        return;
    }
    switch (turn->intent->step) {
    case IDEM_STEP_SEND:
        if (turn->facts->order_stub.row != 0) {
            idem_turn_park(turn, IDEM_CASE_NO_ROOM,
                           IDEM_STR("its order number was used before this copy was restored"));
            return;
        }
        if (!turn->command->slot) {
            return; /* It stays due. */
        }
        if (window_is_over(turn, provider)) {
            struct idem_recovery_view view = idem_turn_view(turn, provider);
            view.outcome = IDEM_OUTCOME_UNKNOWN;
            view.source = IDEM_SOURCE_SEND;
            idem_turn_follow(turn, idem_recovery_next(&view));
            return;
        }
        perform_send(turn);
        return;
    case IDEM_STEP_ASK:
        perform_ask(turn);
        return;
    case IDEM_STEP_CLOSE:
        perform_close(turn);
        return;
    case IDEM_STEP_NONE:
        /* Only somebody else's evidence can help; look again later (P8). */
        idem_turn_plan(turn, IDEM_STEP_NONE, turn->command->now_us + turn->rules->parked_ask_us);
        return;
    case IDEM_STEP_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* Whoever held the lease is gone, or so late that it does not count. What it did is not known. */
static void lapse(struct idem_turn *turn, const struct idem_provider_rules *provider)
{
    idem_turn_write_intent(turn);
    idem_turn_event(turn, IDEM_EVENT_LEASE_ENDED,
                    idem_str_from(idem_step_name(turn->intent->step)));
    idem_turn_unknown(turn);

    struct idem_recovery_view view = idem_turn_view(turn, provider);
    view.outcome = IDEM_OUTCOME_UNKNOWN;
    view.source = turn->intent->step == IDEM_STEP_SEND ? IDEM_SOURCE_SEND : IDEM_SOURCE_CLOSE;
    idem_turn_follow(turn, idem_recovery_next(&view));
    if (turn->intent->due_us <= turn->command->now_us) {
        perform(turn, provider);
    }
}

static void let_go(struct idem_turn *turn)
{
    struct idem_problem_details details = {
        .problem = IDEM_PROBLEM_ABANDONED,
        .detail =
            IDEM_STR("Nothing was executed under this key, and it was not sent again in time. "
                     "Use a new key for a new intent."),
        .operation_id = turn->intent->id,
    };
    struct idem_answer answer = idem_answer_problem(&details, &turn->decision->scratch);
    idem_turn_finish(turn, IDEM_INTENT_FAILED, IDEM_PROBLEM_ABANDONED, answer);
    idem_turn_event(turn, IDEM_EVENT_ABANDONED, IDEM_STR("its time ended"));
}

void idem_decide_due(struct idem_turn *turn)
{
    const struct idem_intent *intent = &turn->facts->intent;
    if (idem_turn_repeat(turn)) {
        return;
    }
    if (intent->row == 0 || idem_intent_is_final(intent->state) || idem_turn_lease_lives(turn)) {
        return;
    }
    bool lapsed = intent->lease_end_us != 0;
    if (!lapsed && intent->due_us > turn->command->now_us) {
        return;
    }
    if (intent->state == IDEM_INTENT_RELEASED && turn->command->restored) {
        idem_turn_plan(turn, IDEM_STEP_NONE, turn->command->now_us + turn->rules->release_us);
        return;
    }
    if (intent->state == IDEM_INTENT_RELEASED) {
        let_go(turn);
        return;
    }
    const struct idem_provider_rules *provider = idem_rules_place(turn->rules, &intent->effect);
    if (provider == NULL) { /* Taken out of the configuration: nothing can be asked or sent. */
        idem_turn_unknown(turn);
        idem_turn_plan(turn, intent->step, turn->command->now_us + turn->rules->ask_max_us);
        return;
    }
    if (lapsed) {
        lapse(turn, provider);
    } else {
        perform(turn, provider);
    }
}
