/*
 * Retention. A final record loses its answer, its request and its history when its time has come,
 * and stays as a tombstone: the key still refuses, and says what the end was. A tombstone goes when
 * its own time has come, and only if no payment is concerned: a key that moved money is never
 * forgotten while its payment exists (P12).
 *
 * What is not final is not touched, however old. What a person still has to look at keeps
 * everything. Time is `horizon_us`, which is trusted, and not the clock; only a person who asks to
 * erase is served by the clock, and not before the last retry can have come.
 *
 * A record that is gone carries no token, so the same command once more writes nothing and its
 * COMMIT proves nothing. That is sound where an unknown COMMIT ends the process, as it does on
 * SQLite: nobody is told before the next one has read what is there. A store that goes on after an
 * unknown COMMIT has to write something here.
 */
#include "core/decide_internal.h"

#include "base/clock.h"

static const struct idem_str no_text = { .data = NULL, .len = 0 };

static void leave_alone(struct idem_turn *turn)
{
    idem_turn_reply(turn, IDEM_PROBLEM_STATE_CONFLICT, false);
}

/* The payment itself stays for ever; what it says of people does not. */
static bool payment_has_words(const struct idem_turn *turn)
{
    const struct idem_payment *payment = &turn->facts->payment;
    return payment->row != 0 &&
           (payment->method.len > 0 || payment->description.len > 0 || payment->metadata.len > 0);
}

static void blank_payment(struct idem_turn *turn)
{
    if (payment_has_words(turn)) {
        idem_turn_write_payment(turn);
        turn->payment->method = no_text;
        turn->payment->description = no_text;
        turn->payment->metadata = no_text;
    }
}

static void bury(struct idem_turn *turn)
{
    struct idem_intent *intent = turn->intent;
    idem_turn_write_intent(turn);
    intent->answer = (struct idem_answer){ .status = 0 };
    intent->effect.request = no_text;
    intent->trace = no_text;
    intent->reap_us =
        intent->payment_row == 0 ? intent->finished_us + turn->rules->tombstone_us : 0;
    turn->decision->forget_history = true;
    idem_turn_event(turn, IDEM_EVENT_EXPIRED, turn->command->reap.by);
    idem_turn_reply(turn, IDEM_PROBLEM_NONE, false);
}

static void remove_record(struct idem_turn *turn)
{
    idem_turn_write_intent(turn);
    turn->decision->intent.write = IDEM_WRITE_DELETE;
    turn->intent->state = IDEM_INTENT_NONE;
    idem_turn_reply(turn, IDEM_PROBLEM_NONE, false);
}

static void by_request(struct idem_turn *turn)
{
    const struct idem_intent *intent = &turn->facts->intent;
    bool may_be_retried =
        intent->finished_us + turn->rules->retry_window_us > turn->command->now_us;
    if (turn->facts->cases_open != 0 || may_be_retried) {
        leave_alone(turn);
        return;
    }
    if (idem_intent_is_tombstone(intent) && !payment_has_words(turn)) {
        idem_turn_reply(turn, IDEM_PROBLEM_NONE, false); /* Nothing is left to erase. */
        return;
    }
    blank_payment(turn);
    bury(turn);
}

static void by_time(struct idem_turn *turn)
{
    const struct idem_intent *intent = &turn->facts->intent;
    int64_t horizon_us = turn->command->reap.horizon_us;
    if (intent->reap_us == 0 || intent->reap_us > horizon_us) {
        leave_alone(turn);
        return;
    }
    if (turn->facts->cases_open != 0) {
        idem_turn_write_intent(turn);
        turn->intent->reap_us = horizon_us + IDEM_US_PER_DAY;
        idem_turn_reply(turn, IDEM_PROBLEM_NONE, false);
        return;
    }
    if (idem_intent_is_tombstone(intent)) {
        remove_record(turn);
    } else {
        bury(turn);
    }
}

void idem_decide_reap(struct idem_turn *turn)
{
    if (idem_turn_repeat(turn)) {
        return;
    }
    if (turn->facts->intent.row == 0) { /* An earlier run of this removed it. */
        idem_turn_reply(turn, IDEM_PROBLEM_NONE, false);
        return;
    }
    if (!idem_intent_is_final(turn->facts->intent.state)) {
        leave_alone(turn);
        return;
    }
    if (turn->command->reap.erase) {
        by_request(turn);
    } else {
        by_time(turn);
    }
}
