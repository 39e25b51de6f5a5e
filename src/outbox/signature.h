/*
 * signature.h - the head of a post as Standard Webhooks 1.0.0 defines it.
 *
 *     webhook-id: msg_<the message's id>      the same in every attempt
 *     webhook-timestamp: <seconds>            when this attempt was made
 *     webhook-signature: v1,<base64> [v1,<base64>]
 *
 * A signature is HMAC-SHA-256 of "ID.TIMESTAMP.BODY". For a day after a rotation there are two,
 * under the new secret and the one before it, so that a receiver can change over in between. Pure.
 */
#ifndef IDEM_OUTBOX_SIGNATURE_H
#define IDEM_OUTBOX_SIGNATURE_H

#include <stdint.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/text.h"
#include "core/webhook.h"

#define IDEM_ROTATION_OVERLAP_US IDEM_US_PER_DAY

/* All of what idem_signature_lines() appends. */
#define IDEM_SIGNATURE_LINES_COUNT 3
#define IDEM_SIGNATURE_LINES_SIZE  256

struct idem_signer {
    struct idem_digester *digester; /* Borrowed. */
    struct idem_str effect_secret;  /* Likewise. */
};

/* What is signed. */
struct idem_signed {
    const struct idem_webhook *webhook;
    struct idem_uid message_id;
    int64_t now_us; /* Wall time of the attempt. */
    struct idem_str body;
};

/* Appends the three lines and fills `ret_lines`, which lie in the buffer. */
void idem_signature_lines(const struct idem_signer *signer,
                          const struct idem_signed *what,
                          struct idem_buf *buf,
                          struct idem_str ret_lines[IDEM_SIGNATURE_LINES_COUNT]);

#endif /* IDEM_OUTBOX_SIGNATURE_H */
