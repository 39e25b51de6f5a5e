/*
 * content.h - what the headers say about the body: its media type, coding and digest.
 */
#ifndef IDEM_API_CONTENT_H
#define IDEM_API_CONTENT_H

#include <stdbool.h>

#include "api/fault.h"
#include "net/server.h"

/* The media type that goes into the fingerprint: lower case, no parameters. */
#define IDEM_CONTENT_JSON IDEM_STR("application/json")

/*
 * Content-Type is application/json, with no parameter but charset=utf-8, and there is no
 * Content-Encoding but identity. A body of no bytes needs no Content-Type.
 */
bool idem_content_type_check(const struct idem_net_request *request,
                             struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/*
 * Content-Digest (RFC 9530), if present: every sha-256 and sha-512 in it must be that of the body.
 * Unknown algorithms are ignored.
 */
bool idem_content_digest_check(const struct idem_net_request *request,
                               struct idem_fault *ret_fault) IDEM_MUST_CHECK;

#endif /* IDEM_API_CONTENT_H */
