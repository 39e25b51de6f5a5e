/*
 * secret.h - the secret of a webhook: what its posts are signed with.
 *
 * Derived from the effect secret, the webhook's id and the generation, and stored nowhere: whoever
 * has a copy of the store cannot sign, and whoever has the effect secret can show it again. Pure.
 */
#ifndef IDEM_OUTBOX_SECRET_H
#define IDEM_OUTBOX_SECRET_H

#include <stdint.h>

#include "base/digest.h"
#include "base/text.h"
#include "core/webhook.h"

/* "whsec_" and base64 of 32 bytes, as the merchant's library takes it. */
#define IDEM_WEBHOOK_SECRET_LEN 50

void idem_webhook_secret(struct idem_digester *digester,
                         struct idem_str effect_secret,
                         const struct idem_webhook *webhook,
                         uint32_t generation,
                         struct idem_digest *ret_secret);

void idem_webhook_secret_print(const struct idem_digest *secret, struct idem_buf *buf);

#endif /* IDEM_OUTBOX_SECRET_H */
