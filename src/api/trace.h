/*
 * trace.h - the caller's traceparent (W3C Trace Context), to be passed on.
 */
#ifndef IDEM_API_TRACE_H
#define IDEM_API_TRACE_H

#include "base/text.h"
#include "net/server.h"

/*
 * The request's traceparent of version 00; empty where there is none, several or a wrong one: the
 * specification says to go on as if there were none.
 */
struct idem_str idem_trace_read(const struct idem_net_request *request);

#endif /* IDEM_API_TRACE_H */
