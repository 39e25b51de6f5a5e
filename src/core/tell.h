/*
 * tell.h - which messages a decision means for the merchant: those that its rows differ by.
 *
 * Made from the rows as they were and as they will stand, at the end of every decision, so that no
 * change can be made without being told and none is told that was not made (P11). A command that
 * runs again after an unknown COMMIT changes no row and tells nothing. Stays in core.
 */
#ifndef IDEM_CORE_TELL_H
#define IDEM_CORE_TELL_H

#include "core/turn.h"

void idem_tell(struct idem_turn *turn);

#endif /* IDEM_CORE_TELL_H */
