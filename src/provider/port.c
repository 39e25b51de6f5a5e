/*
 * The door of every port: what each implementation may rely on is checked here, once.
 */
#include "provider/port.h"

#include <string.h>

#include "base/bug.h"

enum idem_err idem_port_submit(struct idem_port *port, struct idem_call *call)
{
    IDEM_ASSERT(call->kind > IDEM_CALL_NONE);
    IDEM_ASSERT(call->kind < IDEM_CALL_COUNT);
    IDEM_ASSERT(!call->node.linked);
    IDEM_ASSERT(call->effect.kind > IDEM_EFFECT_KIND_NONE);
    IDEM_ASSERT(call->effect.kind < IDEM_EFFECT_KIND_COUNT);
    IDEM_ASSERT(call->effect.id.len == IDEM_EFFECT_ID_LEN);
    return port->ops->submit(port, call);
}

enum idem_evidence_source idem_call_source(enum idem_call_kind kind)
{
    switch (kind) {
    case IDEM_CALL_SEND:
        return IDEM_SOURCE_SEND;
    case IDEM_CALL_QUERY:
        return IDEM_SOURCE_QUERY;
    case IDEM_CALL_CLOSE:
        return IDEM_SOURCE_CLOSE;
    case IDEM_CALL_NONE:
    case IDEM_CALL_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

void idem_port_reap(struct idem_port *port, struct idem_list *ret_done)
{
    port->ops->reap(port, ret_done);
}

void idem_port_cancel(struct idem_port *port, struct idem_call *call)
{
    port->ops->cancel(port, call);
}

enum idem_err idem_port_list(struct idem_port *port, struct idem_listing *listing)
{
    IDEM_ASSERT(!listing->node.linked);
    IDEM_ASSERT(listing->from_us >= 0);
    IDEM_ASSERT(listing->from_us <= listing->to_us);
    IDEM_ASSERT(memchr(listing->cursor, '\0', sizeof(listing->cursor)) != NULL);
    if (port->ops->list == NULL) {
        return IDEM_E_LIMIT;
    }
    return port->ops->list(port, listing);
}

void idem_port_reap_listings(struct idem_port *port, struct idem_list *ret_done)
{
    if (port->ops->reap_listings != NULL) {
        port->ops->reap_listings(port, ret_done);
    }
}

void idem_port_cancel_listing(struct idem_port *port, struct idem_listing *listing)
{
    if (port->ops->cancel_listing != NULL) {
        port->ops->cancel_listing(port, listing);
    }
}

void idem_port_destroy(struct idem_port *port)
{
    if (port != NULL) {
        port->ops->destroy(port);
    }
}
