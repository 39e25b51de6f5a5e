/*
 * prefer.h - what the caller would like (RFC 7240): wait=N and respond-async.
 *
 * A preference that is unknown or malformed is not an error and is ignored, as the RFC says; of
 * several with one name the first counts. What was honoured is told by Preference-Applied.
 */
#ifndef IDEM_API_PREFER_H
#define IDEM_API_PREFER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "net/server.h"

#define IDEM_PREFER_WAIT_MAX 30 /* Seconds; more is served as this much. */

struct idem_prefer {
    bool respond_async;
    bool wait;
    int64_t wait_seconds; /* At most IDEM_PREFER_WAIT_MAX. */
};

struct idem_prefer idem_prefer_read(const struct idem_net_request *request);

#endif /* IDEM_API_PREFER_H */
