/*
 * rules.h - what decisions depend on beside facts and commands: configuration as data.
 *
 * Capabilities are what a provider promises per operation; docs/bridge.md and the adapter how-to
 * say what each means. They are claims that money rests on: a capability that is not known for
 * sure is declared absent. Rules are fixed while the process runs.
 */
#ifndef IDEM_CORE_RULES_H
#define IDEM_CORE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "core/intent.h"

enum idem_query_mode {
    IDEM_QUERY_NONE = 0, /* The provider cannot be asked by our id. */
    IDEM_QUERY_AT_ONCE,  /* "Not found" is true at the moment of the answer. */
    IDEM_QUERY_LAGGING,  /* "Not found" counts only `query_lag_us` after the last send. */
    IDEM_QUERY_COUNT
};

enum idem_partial_capture {
    IDEM_PARTIAL_NONE = 0, /* Only the whole authorized amount. */
    IDEM_PARTIAL_ONCE,     /* One capture of at most the whole; the rest is released with it. */
    IDEM_PARTIAL_MANY,     /* Any number up to the whole; cancel voids the rest. */
    IDEM_PARTIAL_COUNT
};

struct idem_capability {
    int64_t
        dedup_window_us; /* The same id executes once within this time; 0: never deduplicates. */
    int64_t dedup_margin_us; /* We stop this long before the window ends. */
    enum idem_query_mode query;
    int64_t query_lag_us;
    bool close_is_final; /* After a confirmed close, a later send under that id is refused. */
};

struct idem_effect_order;

/* When unknown outcomes of sends pile up, first sends stop for a while (docs/operations.md). */
struct idem_breaker_rules {
    uint32_t unknown_min;     /* So many in the window open it; 0: there is no breaker ... */
    uint32_t unknown_percent; /* ... if they are at least so much of all that ended in it. */
    int64_t window_us;
    int64_t open_us; /* Then a few are let through, to see. */
    uint32_t probes; /* So many at once; so many answers close it. */
};

/*
 * How much of what all entries share one may take. A first send is one that nothing unresolved
 * stands before; all others, and questions, bring certainty, and only the workers make them. Zeros:
 * no limit. No decision depends on these: they say when, never what.
 */
struct idem_provider_limits {
    uint32_t sends_max;      /* First sends on the wire at once. */
    uint32_t recoveries_max; /* Calls of workers at once; of these at most half are sends. */
    uint32_t rate_per_s;     /* Calls; only first sends wait for it. */
    int64_t pause_max_us;    /* First sends pause as the provider wishes, but not longer. */
    struct idem_breaker_rules breaker;
};

/* One configured provider entry. */
struct idem_provider_rules {
    struct idem_str entry;
    struct idem_str account;
    struct idem_str region;
    enum idem_partial_capture partial_capture;
    bool listing;               /* What happened can be listed by time. */
    bool comparing;             /* Some of it can, which is good for comparing only. */
    int64_t request_timeout_us; /* One call, from connecting to the last byte of the answer. */
    int64_t settle_us; /* After send_not_after plus the timeout, how long until it is seen. */
    struct idem_capability capability[IDEM_EFFECT_KIND_COUNT];
    struct idem_provider_limits limits;

    /*
     * Appends the request as it will be stored and sent, without credentials. Pure: the same effect
     * gives the same bytes. Fails only by `buf` being full, which limits.h excludes.
     */
    void (*encode)(const struct idem_effect_order *order, struct idem_buf *buf);
};

/* What encode gets to see. */
struct idem_effect_order {
    const struct idem_effect *effect;
    struct idem_str order_no;
    struct idem_str method;
    struct idem_str description;
    struct idem_str payment_effect_id; /* Of the payment it acts on; empty for a new payment. */
    struct idem_str payment_reference; /* The provider's number of that payment. */
};

struct idem_rules {
    const struct idem_provider_rules *providers;
    size_t provider_count;
    int64_t lease_us;            /* How long an attempt may act before others may. */
    int64_t answer_retention_us; /* From completion; 30 days unless configured. */
    int64_t tombstone_us;        /* From completion, where no payment is concerned: 400 days. */
    int64_t retry_window_us;     /* Nothing is erased on request before it has passed. */
    int64_t release_us;          /* How long a RELEASED key waits for its caller. */
    int64_t retry_first_us;      /* First pause before a not-executed send is tried again. */
    int64_t ask_first_us;        /* Back-off of questions: 5 s ... */
    int64_t ask_max_us;          /* ... doubling to 1 h ... */
    int64_t ask_give_up_us;      /* ... for 7 days, then PARKED. */
    int64_t parked_ask_us;       /* And then once a day. */
};

/* The defaults above; providers empty. */
struct idem_rules idem_rules_default(void);

/* The rules of `entry`, or NULL. */
const struct idem_provider_rules *idem_rules_provider(const struct idem_rules *rules,
                                                      struct idem_str entry);

/*
 * The rules of the effect's entry if that still leads to the same account and region, or NULL: what
 * was sent to one account must never be sent again to another, which cannot know its id.
 */
const struct idem_provider_rules *idem_rules_place(const struct idem_rules *rules,
                                                   const struct idem_effect *effect);

#endif /* IDEM_CORE_RULES_H */
