/*
 * operation.h - the operation as its caller sees it: state, attempts, timeline, and the stored
 * answer once it is final.
 */
#ifndef IDEM_API_OPERATION_H
#define IDEM_API_OPERATION_H

#include <stddef.h>

#include "base/text.h"
#include "core/event.h"
#include "core/intent.h"

struct idem_operation {
    const struct idem_intent *intent;
    const struct idem_send *sends;
    size_t send_count;
    const struct idem_event *events;
    size_t event_count;
    size_t event_total; /* More than event_count: the oldest are not shown. */
};

/* Appends the view as JSON. No key, token, secret or provider request is in it. */
void idem_operation_print(const struct idem_operation *operation, struct idem_buf *buf);

/* The same without the brace and line end behind it, for a view that says more. */
void idem_operation_print_open(const struct idem_operation *operation, struct idem_buf *buf);

/* Appends "/v1/operations/{id}". */
void idem_operation_link_print(struct idem_uid id, struct idem_buf *buf);

#endif /* IDEM_API_OPERATION_H */
