/*
 * stripe.h - the adapter for Stripe: PaymentIntents and refunds, docs/stripe.md.
 */
#ifndef IDEM_PROVIDER_STRIPE_H
#define IDEM_PROVIDER_STRIPE_H

#include "base/digest.h"
#include "provider/adapter.h"

extern const struct idem_adapter idem_stripe_adapter;

/* What Stripe is asked to speak, and what this adapter was read against. */
#define IDEM_STRIPE_VERSION "2026-10-28.endive"

#define IDEM_STRIPE_TOLERANCE_S INT64_C(300) /* Stripe's own; also towards the future. */

/* An event as it arrived. */
struct idem_stripe_event {
    struct idem_str signature; /* The field's value. */
    struct idem_str body;
    int64_t now_s; /* Wall time. */
};

enum idem_stripe_signature {
    IDEM_STRIPE_SIGNATURE_OK = 0,
    IDEM_STRIPE_SIGNATURE_MALFORMED, /* No time, more than one, or no v1. */
    IDEM_STRIPE_SIGNATURE_FORGED,    /* No v1 of it is made with any of the secrets. */
    IDEM_STRIPE_SIGNATURE_STALE,
    IDEM_STRIPE_SIGNATURE_FUTURE,
    IDEM_STRIPE_SIGNATURE_COUNT
};

/*
 * Judges the Stripe-Signature of an event. `body`: its raw bytes. Several secrets are valid while
 * they are being changed. `*ret_signed_s` is when it was signed, if the answer is OK. The time is
 * judged only of what is not forged, so that a clock that is wrong shows as such. Pure.
 */
enum idem_stripe_signature idem_stripe_verify(struct idem_digester *digester,
                                              const struct idem_str *secrets,
                                              size_t secret_count,
                                              const struct idem_stripe_event *event,
                                              int64_t *ret_signed_s);

#endif /* IDEM_PROVIDER_STRIPE_H */
