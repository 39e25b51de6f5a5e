/*
 * The door of every port: what each implementation may rely on is checked here, once.
 */
#include "outbox/post.h"

#include "base/bug.h"

enum idem_err idem_post_port_submit(struct idem_post_port *port, struct idem_post_call *call)
{
    IDEM_ASSERT(!call->node.linked);
    IDEM_ASSERT(call->message->data.len > 0);
    IDEM_ASSERT(call->message->data.len <= IDEM_MESSAGE_DATA_MAX);
    IDEM_ASSERT(call->webhook->url.len <= IDEM_WEBHOOK_URL_MAX);
    IDEM_ASSERT(call->webhook->generation > 0);
    call->status = 0;
    call->retry_after_us = 0;
    call->detail[0] = '\0';
    return port->ops->submit(port, call);
}

void idem_post_port_reap(struct idem_post_port *port, struct idem_list *ret_done)
{
    port->ops->reap(port, ret_done);
}

void idem_post_port_cancel(struct idem_post_port *port, struct idem_post_call *call)
{
    port->ops->cancel(port, call);
}

void idem_post_port_destroy(struct idem_post_port *port)
{
    if (port != NULL) {
        port->ops->destroy(port);
    }
}
