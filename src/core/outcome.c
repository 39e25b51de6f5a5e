/*
 * Facts and scratch die with the transaction; what a release speaks of is copied here before.
 */
#include "core/outcome.h"

#include "base/bug.h"

static void keep_text(struct idem_outcome *outcome)
{
    struct idem_intent *intent = &outcome->intent;
    struct idem_buf *kept = &outcome->kept;
    idem_buf_init(kept, outcome->memory, sizeof(outcome->memory));
    intent->key = (struct idem_str){ .data = NULL, .len = 0 };
    intent->principal = idem_buf_keep(kept, intent->principal);
    intent->effect.id = idem_buf_keep(kept, intent->effect.id);
    intent->effect.entry = idem_buf_keep(kept, intent->effect.entry);
    intent->effect.account = idem_buf_keep(kept, intent->effect.account);
    intent->effect.region = idem_buf_keep(kept, intent->effect.region);
    intent->effect.currency = idem_buf_keep(kept, intent->effect.currency);
    intent->effect.request = idem_buf_keep(kept, intent->effect.request);
    intent->effect.reference = idem_buf_keep(kept, intent->effect.reference);
    intent->answer.headers = idem_buf_keep(kept, intent->answer.headers);
    intent->answer.body = idem_buf_keep(kept, intent->answer.body);
    intent->trace = idem_buf_keep(kept, intent->trace);
    IDEM_ASSERT(!kept->full); /* The limits of limits.h add up to less than the memory here. */
}

static bool is_replay(const struct idem_delivery_write *write)
{
    return write->write != IDEM_WRITE_NONE && write->row.state == IDEM_DELIVERY_PENDING &&
           write->row.attempts == 0;
}

void idem_outcome_take(struct idem_outcome *outcome, const struct idem_decision *decision)
{
    outcome->release = decision->release;
    outcome->intent = decision->intent.row;
    outcome->opened = decision->opened.kind;
    outcome->to_post = decision->message_count > 0 || is_replay(&decision->delivery);
    outcome->sweep_more = decision->sweep_more;
    outcome->parked = false;
    for (size_t i = 0; i < decision->event_count; i++) {
        outcome->parked = outcome->parked || decision->events[i].kind == IDEM_EVENT_PARKED;
    }
    keep_text(outcome);
}

void idem_outcome_copy(struct idem_outcome *outcome, const struct idem_outcome *from)
{
    IDEM_ASSERT(outcome != from);
    outcome->release = from->release;
    outcome->intent = from->intent;
    outcome->parked = from->parked;
    outcome->opened = from->opened;
    outcome->to_post = from->to_post;
    outcome->sweep_more = from->sweep_more;
    keep_text(outcome);
}
