/*
 * settle.h - how an intent ends by evidence: the rows, the answer, the history.
 *
 * The provider's word, a person's word and what a listing told all end an intent through these
 * functions, so that the ends cannot differ. Every function here changes only turn->decision. Stays
 * in core.
 */
#ifndef IDEM_CORE_SETTLE_H
#define IDEM_CORE_SETTLE_H

#include "core/turn.h"

/* False after a release until the intent is claimed again: its business rows are over. */
bool idem_settle_holds_reservation(const struct idem_turn *turn);

/* How captures in part work where the effect goes; as if all did, where that is not known. */
enum idem_partial_capture idem_settle_partial_capture(const struct idem_turn *turn);

/*
 * Takes a reservation anew for an intent that holds none, on new business rows. False: the facts
 * have no room, and nothing changed.
 */
bool idem_settle_make_room(struct idem_turn *turn);

/* SUCCEEDED: what was reserved becomes a sum. `how` says who knew, in the history. */
void idem_settle_success(struct idem_turn *turn,
                         struct idem_str reference,
                         uint32_t send_no,
                         struct idem_str how);

/*
 * SUCCEEDED, where the sums have it already: the answer shows the payment as it stands in the turn,
 * or a refund row that is made for it.
 */
void idem_settle_recorded(struct idem_turn *turn,
                          struct idem_str reference,
                          struct idem_str refund_no,
                          struct idem_str how);

/*
 * FAILED, with `details` as the answer: a reservation that is held goes back. `code` stands on the
 * business row and in the history.
 */
void idem_settle_failure(struct idem_turn *turn,
                         const struct idem_problem_details *details,
                         struct idem_str code,
                         uint32_t send_no);

#endif /* IDEM_CORE_SETTLE_H */
