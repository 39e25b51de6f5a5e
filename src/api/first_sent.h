/*
 * first_sent.h - when the caller first tried this request: Repeatability-First-Sent (OASIS
 * Repeatable Requests 1.0), an IMF-fixdate and nothing else.
 */
#ifndef IDEM_API_FIRST_SENT_H
#define IDEM_API_FIRST_SENT_H

#include <stdbool.h>
#include <stdint.h>

#include "api/fault.h"
#include "net/server.h"

/* Zero if the header is absent. */
bool idem_first_sent_read(const struct idem_net_request *request,
                          int64_t *ret_first_sent_us,
                          struct idem_fault *ret_fault) IDEM_MUST_CHECK;

#endif /* IDEM_API_FIRST_SENT_H */
