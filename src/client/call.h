/*
 * call.h - one HTTP call, waited for: for programs that do one thing and then end.
 *
 * The call is sent at most once (transport/client.h): what came of it is the call's verdict, and
 * whoever wants it repeated repeats it. Runs a loop of its own until the call is over, at most for
 * the call's timeout.
 */
#ifndef IDEM_CLIENT_CALL_H
#define IDEM_CLIENT_CALL_H

#include "base/error.h"
#include "transport/client.h"

/* `call` is filled in but for not_after_us. Afterwards it is as if reaped. */
enum idem_err idem_call_wait(struct idem_http_call *call,
                             struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_CLIENT_CALL_H */
