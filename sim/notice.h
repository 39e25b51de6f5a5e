/*
 * notice.h - the provider's own events: what it tells without being asked, until it is told that it
 * was heard.
 *
 * An event is made when something happens in the ledger. It comes to any process, before the answer
 * to the request or long after, once or several times, and in any order; it comes again until a
 * process that lives has said "taken". What that word means is the auditor's to judge.
 *
 * Listings are beside it: what somebody reads there comes as evidence of source LISTING.
 *
 * It enters as api does it: a task, evidence of source CALLBACK; "taken" is said once the task is
 * durable and not refused.
 */
#ifndef IDEM_SIM_NOTICE_H
#define IDEM_SIM_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/command.h"
#include "engine/engine.h"

struct sim_effect;
struct sim_world;

struct sim_notice {
    struct sim_notice *next;
    struct sim_world *world;
    const struct sim_effect *effect;
    enum idem_outcome_kind outcome;
    char event_id[24];
    char id[IDEM_EFFECT_ID_LEN]; /* What it says it is about. */
    int64_t amount_minor;        /* -1: it says none. */
    bool other_account;
    bool is_line;      /* Of a listing, and no event. */
    bool is_true;      /* The ledger says the same. */
    bool acknowledged; /* Somebody has said "taken", and it was heard. */
    uint64_t deliveries;
    struct idem_uid token; /* The auditor's: of the command that was durable first. */
};

struct sim_notices {
    struct sim_world *world; /* Borrowed. */
    bool exist;              /* The provider has them in this run. */
    struct sim_notice *first;
    uint64_t made;
};

void sim_notices_init(struct sim_notices *notices, struct sim_world *world);

/* From now on somebody reads listings, line by line. */
void sim_notices_begin(struct sim_notices *notices);

/* Something has happened to `effect`. */
void sim_notice_make(struct sim_notices *notices,
                     const struct sim_effect *effect,
                     enum idem_outcome_kind outcome);

/* NULL: there is none of that name. */
struct sim_notice *sim_notice_find(const struct sim_notices *notices, struct idem_str event_id);

/* A task came back; not `heard`: with a process that died. */
void sim_notice_replied(struct sim_world *world, struct idem_task *task, bool heard);

#endif /* IDEM_SIM_NOTICE_H */
