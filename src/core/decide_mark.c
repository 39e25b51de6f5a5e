/*
 * The store's own marks. Each only ever moves one way, so writing one again changes nothing: the
 * store keeps the larger horizon, and a mode that is over stays over.
 */
#include "core/decide_internal.h"

#include "base/bug.h"

void idem_decide_mark(struct idem_turn *turn)
{
    const struct idem_mark *mark = &turn->command->mark;
    IDEM_ASSERT(mark->kind > IDEM_MARK_NONE);
    IDEM_ASSERT(mark->kind < IDEM_MARK_COUNT);
    turn->decision->mark = *mark;
    idem_turn_reply(turn, IDEM_PROBLEM_NONE, false);
}
