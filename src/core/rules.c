/*
 * Defaults, and finding an entry. The list of entries is short and fixed, so it is walked.
 */
#include "core/rules.h"

#include "base/clock.h"

struct idem_rules idem_rules_default(void)
{
    return (struct idem_rules){
        .lease_us = 60 * IDEM_US_PER_SECOND,
        .answer_retention_us = 30 * IDEM_US_PER_DAY,
        .tombstone_us = 400 * IDEM_US_PER_DAY,
        .retry_window_us = IDEM_US_PER_DAY,
        .release_us = IDEM_US_PER_DAY,
        .retry_first_us = 200 * IDEM_US_PER_MS,
        .ask_first_us = 5 * IDEM_US_PER_SECOND,
        .ask_max_us = 3600 * IDEM_US_PER_SECOND,
        .ask_give_up_us = 7 * IDEM_US_PER_DAY,
        .parked_ask_us = IDEM_US_PER_DAY,
    };
}

const struct idem_provider_rules *idem_rules_provider(const struct idem_rules *rules,
                                                      struct idem_str entry)
{
    for (size_t i = 0; i < rules->provider_count; i++) {
        if (idem_str_equal(rules->providers[i].entry, entry)) {
            return &rules->providers[i];
        }
    }
    return NULL;
}

const struct idem_provider_rules *idem_rules_place(const struct idem_rules *rules,
                                                   const struct idem_effect *effect)
{
    const struct idem_provider_rules *provider = idem_rules_provider(rules, effect->entry);
    bool same = provider != NULL && idem_str_equal(provider->account, effect->account) &&
                idem_str_equal(provider->region, effect->region);
    return same ? provider : NULL;
}
