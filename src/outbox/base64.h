/*
 * base64.h - base64 with padding (RFC 4648, 4) of a digest, as Standard Webhooks writes it.
 */
#ifndef IDEM_OUTBOX_BASE64_H
#define IDEM_OUTBOX_BASE64_H

#include "base/digest.h"
#include "base/text.h"

void idem_base64_add(struct idem_buf *buf, const struct idem_digest *digest);

#endif /* IDEM_OUTBOX_BASE64_H */
