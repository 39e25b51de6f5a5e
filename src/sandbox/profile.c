/*
 * The profiles as a table: what differs between providers is data, and no other file asks for a
 * profile by name.
 */
#include "sandbox/profile.h"

#include "base/bug.h"
#include "base/clock.h"

static const struct idem_sandbox_profile_rules rules[IDEM_PROFILE_COUNT] = {
    [IDEM_PROFILE_DEDUP] = {
        .name = { "dedup", 5 },
        .deduplicates = true,
        .answers_queries = true,
        .close_is_final = true,
    },
    [IDEM_PROFILE_LAGGING] = {
        .name = { "lagging", 7 },
        .deduplicates = true,
        .answers_queries = true,
        .close_is_final = true,
        .lag_us = 3 * IDEM_US_PER_SECOND,
    },
    [IDEM_PROFILE_CLOSING] = {
        .name = { "closing", 7 },
        .answers_queries = true,
        .close_is_final = true,
    },
    [IDEM_PROFILE_PLAIN] = {
        .name = { "plain", 5 },
        .answers_queries = true,
    },
    [IDEM_PROFILE_BLIND] = {
        .name = { "blind", 5 },
        .deduplicates = true,
        .close_is_final = true,
    },
};

const struct idem_sandbox_profile_rules *idem_sandbox_profile_rules(
    enum idem_sandbox_profile profile)
{
    IDEM_ASSERT(profile > IDEM_PROFILE_NONE);
    IDEM_ASSERT(profile < IDEM_PROFILE_COUNT);
    return &rules[profile];
}

enum idem_sandbox_profile idem_sandbox_profile_find(struct idem_str name)
{
    for (enum idem_sandbox_profile profile = IDEM_PROFILE_NONE + 1; profile < IDEM_PROFILE_COUNT;
         profile++) {
        if (idem_str_equal(rules[profile].name, name)) {
            return profile;
        }
    }
    return IDEM_PROFILE_NONE;
}
