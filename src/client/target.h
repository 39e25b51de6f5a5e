/*
 * target.h - whether a URL may be sent to.
 */
#ifndef IDEM_CLIENT_TARGET_H
#define IDEM_CLIENT_TARGET_H

#include <stdbool.h>

#include "base/text.h"

enum idem_target_fault {
    IDEM_TARGET_OK = 0,
    IDEM_TARGET_SCHEME,     /* Neither http nor https. */
    IDEM_TARGET_MALFORMED,  /* No host, spaces, control characters, a fragment. */
    IDEM_TARGET_CREDENTIALS /* user@host: what is in a URL ends in logs. */
};

enum idem_target_fault idem_target_check(struct idem_str url);

/* A sentence part: "is neither http:// nor https://". */
const char *idem_target_fault_text(enum idem_target_fault fault);

/* https, or http to this machine, by address (127/8, ::1) or as localhost. Of a checked URL. */
bool idem_target_is_private(struct idem_str url);

/* "scheme://host[:port]" of a checked URL. */
struct idem_str idem_target_origin(struct idem_str url);

#endif /* IDEM_CLIENT_TARGET_H */
