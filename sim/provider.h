/*
 * provider.h - the provider and its ledger.
 *
 * The ledger is the truth of a run: it counts arrivals and executions apart, under each id. The
 * provider executes whatever its profile makes it execute; it checks no sums and no order numbers,
 * since it is not the one who is tested. What it answers is text of the bridge protocol, read by
 * the real decoder.
 */
#ifndef IDEM_SIM_PROVIDER_H
#define IDEM_SIM_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/intent.h"
#include "core/rules.h"
#include "provider/port.h"
#include "sim/dice.h"

struct sim_world;

/*
 * A window of deduplication: how long sends may leave, and the margin behind that. Where clocks are
 * far off it also covers the time that one which is put back can hide.
 */
#define SIM_USABLE_US      (80 * IDEM_US_PER_SECOND)
#define SIM_MARGIN_NEAR_US (40 * IDEM_US_PER_SECOND)
#define SIM_HIDDEN_MAX_US  (200 * IDEM_US_PER_SECOND)
#define SIM_MARGIN_FAR_US  (SIM_HIDDEN_MAX_US + SIM_MARGIN_NEAR_US)

/* The kinds of provider there are; the names are the sandbox's. */
enum sim_profile {
    SIM_PROFILE_DEDUP,   /* One execution an id, for ever. */
    SIM_PROFILE_WINDOW,  /* Likewise, within its window. */
    SIM_PROFILE_LAGGING, /* As DEDUP, but its queries are behind. */
    SIM_PROFILE_CLOSING, /* Every arrival executes, until the id is closed. */
    SIM_PROFILE_PLAIN,   /* Every arrival executes. */
    SIM_PROFILE_BLIND,   /* As DEDUP, and it cannot be asked. */
    SIM_PROFILE_COUNT
};

/* One id in the ledger. */
struct sim_effect {
    struct sim_effect *next;
    char id[IDEM_EFFECT_ID_LEN];
    size_t entry;
    enum idem_effect_kind kind;
    int64_t amount_minor;
    char order_no[IDEM_ORDER_NO_MAX];
    size_t order_no_len;
    char payment_id[IDEM_EFFECT_ID_LEN]; /* Of the payment it acts on; zeros: it makes one. */
    uint64_t arrivals;
    uint64_t executions;
    int64_t remembered_us; /* Since when the provider deduplicates on it; 0: it does not know it. */
    int64_t executed_us;   /* When it ran first. */
    int64_t reversed_us;   /* When the provider took it back by itself; 0: not. */
    bool refused;
    bool closed;
    bool processing;
    uint64_t on_the_wire; /* Requests that were handed over and may still arrive. */
};

/* A complete answer on its way back. */
struct sim_answer {
    uint16_t status;
    bool other_account; /* It comes from somebody else's account. */
    int64_t retry_after_us;
    size_t len;
    char text[512];
};

struct sim_provider {
    struct sim_world *world; /* Borrowed. */
    enum sim_profile profiles[2];
    struct sim_effect *effects;
};

void sim_provider_init(struct sim_provider *provider, struct sim_world *world);

/* Its rules for both entries, as somebody who reads its documentation would write them. */
void sim_provider_rules(struct sim_provider *provider);

/* NULL: nothing of that id ever left for it. */
struct sim_effect *sim_provider_find(const struct sim_provider *provider, struct idem_str id);

/* The record of a request that leaves for the provider, made if it is not there. */
struct sim_effect *sim_provider_meet(struct sim_provider *provider,
                                     const struct idem_effect *effect);

/* A request arrives: what it does, and what is said about it. */
void sim_provider_arrive(struct sim_provider *provider,
                         enum idem_call_kind kind,
                         struct sim_effect *effect,
                         struct sim_answer *ret_answer);

const char *sim_profile_name(enum sim_profile profile);

#endif /* IDEM_SIM_PROVIDER_H */
