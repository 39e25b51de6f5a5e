/*
 * profile.h - the kinds of provider the sandbox can be, each behind a path prefix of its own.
 *
 * Profiles are separate providers: the same effect id under two prefixes is two effects, and a
 * payment of one is unknown to the other.
 */
#ifndef IDEM_SANDBOX_PROFILE_H
#define IDEM_SANDBOX_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum idem_sandbox_profile {
    IDEM_PROFILE_NONE = 0,
    IDEM_PROFILE_DEDUP,   /* One execution an id, for ever. */
    IDEM_PROFILE_LAGGING, /* Likewise, but queries are behind. */
    IDEM_PROFILE_CLOSING, /* Every arrival executes, until the id is closed. */
    IDEM_PROFILE_PLAIN,   /* Every arrival executes, whatever was said. */
    IDEM_PROFILE_BLIND,   /* One execution an id, and no query. */
    IDEM_PROFILE_COUNT
};

struct idem_sandbox_profile_rules {
    struct idem_str name; /* The path prefix, without slashes. */
    bool deduplicates;
    bool answers_queries; /* And lists. */
    bool close_is_final;  /* A send under a closed id is answered `closed`, not executed. */
    int64_t lag_us;       /* For so long after the execution a query says not_found. */
};

const struct idem_sandbox_profile_rules *idem_sandbox_profile_rules(
    enum idem_sandbox_profile profile);

/* IDEM_PROFILE_NONE if there is none of that name. */
enum idem_sandbox_profile idem_sandbox_profile_find(struct idem_str name);

#endif /* IDEM_SANDBOX_PROFILE_H */
