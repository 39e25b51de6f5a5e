/*
 * post.h - how the outbox reaches merchants: posts out, a status back.
 *
 * The real port (http_post.h) signs and posts over HTTP; simulator and tests have their own.
 *
 * Threads: the engine's. No callbacks: finished calls are reaped.
 */
#ifndef IDEM_OUTBOX_POST_H
#define IDEM_OUTBOX_POST_H

#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "core/webhook.h"

struct idem_post_port;

#define IDEM_POST_TIMEOUT_US (15 * INT64_C(1000000)) /* A call is reaped by then. */

/* One attempt. Embed it; it is the port's from submit to reap. */
struct idem_post_call {
    struct idem_list_node node;
    const struct idem_message *message; /* Borrowed until reaped, as all text in it. */
    const struct idem_webhook *webhook; /* Likewise. */
    int64_t not_after_us;               /* Monotonic; no byte leaves after it. */
    void *carrier;                      /* The port's own. */

    /* Valid once reaped. */
    uint16_t status;                          /* HTTP; 0: no answer, or nothing was sent. */
    int64_t retry_after_us;                   /* With 429 and 503: the receiver's wish; 0: none. */
    char detail[IDEM_DELIVERY_ERROR_MAX + 1]; /* Status 0: why. Terminated. */
};

struct idem_post_port_ops {
    enum idem_err (*submit)(struct idem_post_port *port, struct idem_post_call *call);
    void (*reap)(struct idem_post_port *port, struct idem_list *ret_done);
    void (*cancel)(struct idem_post_port *port, struct idem_post_call *call);
    void (*destroy)(struct idem_post_port *port);
};

struct idem_post_port {
    const struct idem_post_port_ops *ops;
};

/* IDEM_E_LIMIT: no room, and nothing was sent; the call is still the caller's. */
enum idem_err idem_post_port_submit(struct idem_post_port *port,
                                    struct idem_post_call *call) IDEM_MUST_CHECK;

void idem_post_port_reap(struct idem_post_port *port, struct idem_list *ret_done);

/* Ends a call now; it is reaped as any other. */
void idem_post_port_cancel(struct idem_post_port *port, struct idem_post_call *call);

/* All calls were reaped. Accepts NULL. */
void idem_post_port_destroy(struct idem_post_port *port);

#endif /* IDEM_OUTBOX_POST_H */
