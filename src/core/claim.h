/*
 * claim.h - how a record begins from a caller's request: what each way of claiming needs.
 *
 * Every function here changes only turn->decision. Stays in core.
 */
#ifndef IDEM_CORE_CLAIM_H
#define IDEM_CORE_CLAIM_H

#include "core/turn.h"

/* What the request asks the provider to do. */
enum idem_effect_kind idem_claim_effect_kind(const struct idem_accept *accept);

/* The effect id: what kind it is, then what the key derives. The same for every send, for ever. */
struct idem_str idem_claim_effect_id(struct idem_turn *turn, enum idem_effect_kind kind);

/* The record as it begins; state and effect follow. */
void idem_claim_begin_intent(struct idem_turn *turn);

/* The payment row as the request asks for it, pending; the intent has its effect already. */
void idem_claim_begin_payment(struct idem_turn *turn, const struct idem_provider_rules *provider);

/* A new attempt takes over, and the history says whose trace it carries. */
void idem_claim_acquire(struct idem_turn *turn);

/* True if the facts have the payment that the request names and it is the caller's. */
bool idem_claim_has_payment(const struct idem_turn *turn);

/* True if the caller was granted `entry`. */
bool idem_claim_is_granted(const struct idem_accept *accept, struct idem_str entry);

#endif /* IDEM_CORE_CLAIM_H */
