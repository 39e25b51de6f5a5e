/*
 * A caller gives a key up.
 *
 * An absent key gets a record that refuses whatever copy may still be on the wire, whatever its
 * fingerprint. A released one becomes the same: nothing executed and nothing ever will. Any other
 * state is left alone, since its effect may have happened, and the caller is shown what is there.
 * In an old copy only what is final is certain: the rest may have run since. Afterwards a key that
 * has a stub was executed, so it cannot be given up: its request, sent again, settles from that.
 */
#include "core/decide_internal.h"

static void finish_abandoned(struct idem_turn *turn)
{
    struct idem_problem_details details = {
        .problem = IDEM_PROBLEM_ABANDONED,
        .detail = IDEM_STR("Nothing was executed under this key and nothing will be. Use a new key "
                           "for a new intent."),
        .operation_id = turn->intent->id,
    };
    struct idem_answer answer = idem_answer_problem(&details, &turn->decision->scratch);
    idem_turn_finish(turn, IDEM_INTENT_FAILED, IDEM_PROBLEM_ABANDONED, answer);
    idem_turn_event(turn, IDEM_EVENT_ABANDONED, (struct idem_str){ .data = NULL, .len = 0 });
}

void idem_decide_abandon(struct idem_turn *turn)
{
    const struct idem_command *command = turn->command;
    const struct idem_abandon *abandon = &command->abandon;
    if (idem_turn_repeat(turn)) {
        return;
    }
    if (command->restored && !idem_intent_is_final(turn->facts->intent.state)) {
        idem_turn_reply(turn, IDEM_PROBLEM_UNAVAILABLE, false);
        return;
    }
    if (turn->facts->intent.row == 0 && turn->facts->stub.row != 0) {
        idem_turn_reply(turn, IDEM_PROBLEM_TOO_EARLY, false);
        return;
    }
    if (turn->facts->intent.row == 0) {
        *turn->intent = (struct idem_intent){
            .id = command->intent_id,
            .scope = command->scope,
            .principal = abandon->principal,
            .key = abandon->key,
            .endpoint = abandon->endpoint,
            .state = IDEM_INTENT_CLAIMED,
            .created_us = command->now_us,
        };
        idem_turn_acquire(turn);
        finish_abandoned(turn);
        return;
    }
    if (turn->facts->intent.state == IDEM_INTENT_RELEASED) {
        finish_abandoned(turn);
        return;
    }
    idem_turn_reply(turn, IDEM_PROBLEM_NONE, true);
}
