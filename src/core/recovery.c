/*
 * The recovery table, as code.
 *
 * Nothing here looks at how often or how loudly a caller asks: only capability, evidence and
 * time. The fact that rules all rows: a request that was granted may execute until the wire can
 * no longer carry it, whatever a query said before. "Query first, then send again" is safe only
 * where the provider deduplicates; a paused first sender wakes up after the second has sent,
 * otherwise.
 *
 *  A  A person has it. Evidence still settles it, so it is asked once a day; nothing is ever sent.
 *  B  Days of asking brought nothing. A person must look; asking goes on (row A).
 *  C  The provider says that it has the request and does not know yet. Sending again could only
 *     repeat that; ask with growing pauses.
 *  D  The provider executes an id once inside its window, and the window of the oldest unresolved
 *     send is open: sending the same bytes under the same id is always safe. Done when it does
 *     not know the id, and in turn with questions when it gives no usable answer.
 *  E  As D, but its queries lag behind: "not found" speaks only for sends older than the lag.
 *     Wait the lag out and ask again before sending.
 *  F  It does not deduplicate, but a closed id refuses every later send: close, whatever is on the
 *     wire. The answer to the close is not believed; the next question is (idem: evidence, CLOSED).
 *  G  It does not deduplicate and nothing can be closed. A request may still be on the wire, so
 *     "not found" is not yet an answer: ask again when nothing can arrive any more.
 *  H  As G, and nothing can arrive any more; or the window is over; or a close was not confirmed.
 *     No step is safe: never a second send. A person decides.
 *  I  Silence, garbage, an unlisted value: ask with growing pauses.
 *  J  It cannot be asked, and it may not be sent again: only a callback or a person can know.
 */
#include "core/recovery.h"

#include "base/bug.h"

int64_t idem_recovery_window_end_us(const struct idem_capability *capability, int64_t oldest_us)
{
    if (capability->dedup_window_us == 0) {
        return 0;
    }
    return oldest_us + capability->dedup_window_us - capability->dedup_margin_us;
}

static bool may_send_again(const struct idem_recovery_view *view)
{
    if (view->capability->dedup_window_us == 0 || view->send_count >= IDEM_SENDS_MAX) {
        return false;
    }
    return view->now_us < idem_recovery_window_end_us(view->capability, view->oldest_open_us);
}

static bool can_ask(const struct idem_recovery_view *view)
{
    return view->capability->query != IDEM_QUERY_NONE;
}

/*
 * Doubling pauses, of which a half is left to chance so that many intents do not ask in step. Where
 * nothing can be asked, the sends count.
 */
static int64_t pause_us(const struct idem_recovery_view *view)
{
    int64_t pause = view->rules->ask_first_us;
    uint32_t tries = can_ask(view) ? view->ask_count : view->send_count;
    for (uint32_t i = 1; i < tries && pause < view->rules->ask_max_us; i++) {
        pause *= 2;
    }
    if (pause > view->rules->ask_max_us) {
        pause = view->rules->ask_max_us;
    }
    int64_t half = pause / 2;
    int64_t jittered = half + (half > 0 ? (int64_t)(view->noise % (uint64_t)half) : 0);
    return jittered > view->retry_after_us ? jittered : view->retry_after_us;
}

/* The first question after a send or a close leaves at once; a caller may be waiting for it. */
static int64_t ask_at_us(const struct idem_recovery_view *view)
{
    bool first = view->ask_count == 0 || view->source == IDEM_SOURCE_CLOSE;
    if (first && view->retry_after_us == 0) {
        return view->now_us;
    }
    return view->now_us + pause_us(view);
}

static struct idem_recovery_next step_at(enum idem_recovery_row row,
                                         enum idem_step step,
                                         int64_t at_us)
{
    return (struct idem_recovery_next){ .row = row, .step = step, .at_us = at_us };
}

static struct idem_recovery_next park(const struct idem_recovery_view *view,
                                      enum idem_recovery_row row)
{
    return (struct idem_recovery_next){
        .row = row,
        .park = true,
        .step = can_ask(view) ? IDEM_STEP_ASK : IDEM_STEP_NONE,
        .at_us = view->now_us + view->rules->parked_ask_us,
    };
}

/* Rows D to H: the provider says that it knows no such id. */
static struct idem_recovery_next after_not_found(const struct idem_recovery_view *view)
{
    if (may_send_again(view)) {
        int64_t lag_end_us = view->newest_open_us + view->capability->query_lag_us;
        if (view->capability->query == IDEM_QUERY_LAGGING && view->asked_us < lag_end_us) {
            int64_t at_us = lag_end_us > view->now_us ? lag_end_us : view->now_us;
            return step_at(IDEM_RECOVERY_E_LAG, IDEM_STEP_ASK, at_us);
        }
        return step_at(IDEM_RECOVERY_D_SEND_AGAIN, IDEM_STEP_SEND, view->now_us);
    }
    bool closes = view->capability->dedup_window_us == 0 && view->capability->close_is_final;
    if (closes && !view->close_asked) {
        return step_at(IDEM_RECOVERY_F_CLOSE, IDEM_STEP_CLOSE, view->now_us);
    }
    if (view->asked_us < view->wire_end_us) {
        int64_t at_us = view->now_us + pause_us(view);
        at_us = at_us < view->wire_end_us ? at_us : view->wire_end_us;
        at_us = at_us > view->now_us ? at_us : view->now_us;
        return step_at(IDEM_RECOVERY_G_ON_THE_WIRE, IDEM_STEP_ASK, at_us);
    }
    return park(view, IDEM_RECOVERY_H_NO_SAFE_STEP);
}

/*
 * Rows D, I and J: nothing was learned. A silent question is followed by a send where that is
 * safe.
 */
static struct idem_recovery_next after_silence(const struct idem_recovery_view *view)
{
    bool asked_in_vain = view->source == IDEM_SOURCE_QUERY;
    if (may_send_again(view) && (asked_in_vain || !can_ask(view))) {
        return step_at(IDEM_RECOVERY_D_SEND_AGAIN, IDEM_STEP_SEND, view->now_us + pause_us(view));
    }
    if (can_ask(view)) {
        return step_at(IDEM_RECOVERY_I_ASK, IDEM_STEP_ASK, ask_at_us(view));
    }
    return park(view, IDEM_RECOVERY_J_MUTE);
}

struct idem_recovery_next idem_recovery_next(const struct idem_recovery_view *view)
{
    IDEM_ASSERT(view->unknown_since_us > 0);
    IDEM_ASSERT(view->now_us >= view->unknown_since_us);
    if (view->parked) {
        enum idem_step step = can_ask(view) ? IDEM_STEP_ASK : IDEM_STEP_NONE;
        return step_at(IDEM_RECOVERY_A_PARKED, step, view->now_us + view->rules->parked_ask_us);
    }
    if (view->now_us - view->unknown_since_us >= view->rules->ask_give_up_us) {
        return park(view, IDEM_RECOVERY_B_TOO_LONG);
    }
    if (view->outcome == IDEM_OUTCOME_NOT_FOUND) {
        return after_not_found(view);
    }
    if (view->outcome == IDEM_OUTCOME_PROCESSING && can_ask(view)) {
        return step_at(IDEM_RECOVERY_C_PROCESSING, IDEM_STEP_ASK, view->now_us + pause_us(view));
    }
    return after_silence(view);
}
