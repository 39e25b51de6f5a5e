/*
 * fingerprint.h - what makes two requests the same request (P5). docs/fingerprint.md is the
 * definition for others, with vectors.
 */
#ifndef IDEM_API_FINGERPRINT_H
#define IDEM_API_FINGERPRINT_H

#include <stddef.h>

#include "api/api.h"
#include "core/command.h"

/* The values are stored: append only. A rule never changes its meaning. */
enum idem_fingerprint_rule {
    IDEM_FINGERPRINT_RULE_NONE = 0,
    IDEM_FINGERPRINT_RULE_JSON, /* The body in canonical form. */
    IDEM_FINGERPRINT_RULE_RAW,  /* The body's bytes. */
    IDEM_FINGERPRINT_RULE_COUNT
};

struct idem_fingerprint_of {
    struct idem_str method;
    struct idem_str path; /* The route's own spelling, ids in lower case. */
    struct idem_str query;
    struct idem_str media_type;                        /* Lower case, without parameters. */
    struct idem_str body[IDEM_FINGERPRINT_RULE_COUNT]; /* By rule. */
};

struct idem_fingerprint idem_fingerprint_make(struct idem_digester *digester,
                                              enum idem_fingerprint_rule rule,
                                              const struct idem_secret *secret,
                                              const struct idem_fingerprint_of *of);

/*
 * Fills the accept's fingerprints: `current` under each secret, then the other rule under each, so
 * that a record made before a change of rule or secret still compares.
 */
void idem_fingerprint_fill(struct idem_digester *digester,
                           const struct idem_api_options *options,
                           enum idem_fingerprint_rule current,
                           const struct idem_fingerprint_of *of,
                           struct idem_accept *accept);

#endif /* IDEM_API_FINGERPRINT_H */
