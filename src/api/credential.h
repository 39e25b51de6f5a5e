/*
 * credential.h - who calls: a bearer token (RFC 6750) against the configured digests.
 */
#ifndef IDEM_API_CREDENTIAL_H
#define IDEM_API_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "api/api.h"
#include "api/fault.h"

/*
 * The credential of the request, or NULL with the fault filled. The time it takes does not depend
 * on which digest is near.
 */
const struct idem_credential *idem_credential_find(const struct idem_api_options *options,
                                                   struct idem_digester *digester,
                                                   const struct idem_net_request *request,
                                                   struct idem_fault *ret_fault);

/* The provider entry is granted to this credential. */
bool idem_credential_grants(const struct idem_credential *credential, struct idem_str entry);

#endif /* IDEM_API_CREDENTIAL_H */
