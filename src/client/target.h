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

/* https, or http to this machine, by address (127/8, ::1) or as localhost. Other schemes: false. */
bool idem_target_is_private(struct idem_str url);

/* "scheme://host[:port]" of a checked URL, as it is spelled. To compare two, see below. */
struct idem_str idem_target_origin(struct idem_str url);

/*
 * Both can be used, and have the same scheme, host and port: what one may be told, so may the
 * other. The case of letters does not count, and a scheme's own port need not be named; otherwise a
 * host is the same only if it is spelled the same ("a.example." and "[0::1]" are hosts of their
 * own).
 */
bool idem_target_same_origin(struct idem_str left, struct idem_str right);

#endif /* IDEM_CLIENT_TARGET_H */
