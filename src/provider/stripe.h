/*
 * stripe.h - the adapter for Stripe: PaymentIntents and refunds, docs/stripe.md.
 */
#ifndef IDEM_PROVIDER_STRIPE_H
#define IDEM_PROVIDER_STRIPE_H

#include "provider/adapter.h"

extern const struct idem_adapter idem_stripe_adapter;

/* What Stripe is asked to speak, and what this adapter was read against. */
#define IDEM_STRIPE_VERSION "2026-10-28.endive"

#endif /* IDEM_PROVIDER_STRIPE_H */
