/*
 * credential.h - what a request shows for itself: a bearer token (RFC 6750), as its digest.
 */
#ifndef IDEM_API_CREDENTIAL_H
#define IDEM_API_CREDENTIAL_H

#include <stdbool.h>

#include "api/fault.h"
#include "base/digest.h"
#include "net/server.h"

/* The digest of the request's token; false: there is not exactly one, or it is none. */
bool idem_credential_read(struct idem_digester *digester,
                          const struct idem_net_request *request,
                          struct idem_digest *ret_digest,
                          struct idem_fault *ret_fault) IDEM_MUST_CHECK;

#endif /* IDEM_API_CREDENTIAL_H */
