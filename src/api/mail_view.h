/*
 * mail_view.h - how webhooks and deliveries are shown to operators: docs/admin.md is the contract.
 */
#ifndef IDEM_API_MAIL_VIEW_H
#define IDEM_API_MAIL_VIEW_H

#include "base/text.h"
#include "core/webhook.h"
#include "store/store.h"

/* One; `secret` empty: not shown. */
void idem_mail_webhook_print(const struct idem_webhook *webhook,
                             struct idem_str secret,
                             struct idem_buf *buf);

/* A page each. */
void idem_mail_webhooks_print(const struct idem_read *read, struct idem_buf *buf);
void idem_mail_deliveries_print(const struct idem_read *read, struct idem_buf *buf);

#endif /* IDEM_API_MAIL_VIEW_H */
