/*
 * signature.h - signatures over time and body: t=SECONDS,v1=HEX[,v1=HEX...]
 *
 * Stripe's scheme, and the bridge protocol's as well.
 */
#ifndef IDEM_PROVIDER_SIGNATURE_H
#define IDEM_PROVIDER_SIGNATURE_H

#include "provider/callback.h"

#define IDEM_SIGNATURE_TOLERANCE_S INT64_C(300) /* In both directions. */

/*
 * Judges the signature in the field `name`: OK, FORGED, STALE or FUTURE. `*ret_signed_s` is when it
 * was signed, if the answer is OK. The time is judged only of what is not forged, so that a clock
 * that is wrong shows as such. Pure.
 */
enum idem_callback_verdict idem_signature_judge(const struct idem_callback_in *in,
                                                const struct idem_callback_place *place,
                                                struct idem_str name,
                                                int64_t *ret_signed_s);

#endif /* IDEM_PROVIDER_SIGNATURE_H */
