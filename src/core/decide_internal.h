/*
 * decide_internal.h - what each kind of command means, one function a kind. Stays in core.
 */
#ifndef IDEM_CORE_DECIDE_INTERNAL_H
#define IDEM_CORE_DECIDE_INTERNAL_H

#include "core/turn.h"

void idem_decide_accept(struct idem_turn *turn);
void idem_decide_evidence(struct idem_turn *turn);
void idem_decide_due(struct idem_turn *turn);
void idem_decide_abandon(struct idem_turn *turn);
void idem_decide_resolve(struct idem_turn *turn);
void idem_decide_reap(struct idem_turn *turn);
void idem_decide_credential(struct idem_turn *turn);
void idem_decide_mark(struct idem_turn *turn);

/* Evidence about what is final; `same`: it names our place, id and money. */
void idem_decide_late(struct idem_turn *turn, bool same);

void idem_decide_webhook(struct idem_turn *turn);
void idem_decide_delivery(struct idem_turn *turn);

/*
 * A listing names an effect that has no record here: it becomes a stub. One that is a stub already,
 * also with its record parked, moves the sums if it has not.
 */
void idem_decide_listed(struct idem_turn *turn);

/* The claim that meets its stub: settled from it, or parked; never sent. */
void idem_decide_found(struct idem_turn *turn);

/*
 * A person says that what was parked from its stub happened: SUCCEEDED, and the sums have it once.
 * False: the rows have no room for it, and nothing changed.
 */
bool idem_decide_found_happened(struct idem_turn *turn,
                                struct idem_str reference,
                                struct idem_str how);

/* A payment that has just been made takes what was done to it since, if all of that fits. */
void idem_decide_apply_stubs(struct idem_turn *turn);

#endif /* IDEM_CORE_DECIDE_INTERNAL_H */
