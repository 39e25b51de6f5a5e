/*
 * body.h - what a merchant's webhook is sent: a message as JSON.
 *
 *     {"type":"payment.captured","timestamp":"2026-11-29T13:47:03.123456Z","sequence":42,
 *      "data":{...}}
 *
 * Made of the message alone, so that every attempt and every replay has the same bytes. `timestamp`
 * says when it happened, and of two messages about one payment the later one has the higher
 * `sequence`. Pure.
 */
#ifndef IDEM_OUTBOX_BODY_H
#define IDEM_OUTBOX_BODY_H

#include "base/text.h"
#include "core/webhook.h"

#define IDEM_POST_BODY_MAX (IDEM_MESSAGE_DATA_MAX + 256)

void idem_post_body(const struct idem_message *message, struct idem_buf *buf);

#endif /* IDEM_OUTBOX_BODY_H */
