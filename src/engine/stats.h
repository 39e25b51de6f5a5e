/*
 * stats.h - what the engine counts: for metrics and tests, read at any time, never waited for.
 */
#ifndef IDEM_ENGINE_STATS_H
#define IDEM_ENGINE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "core/rules.h"
#include "engine/breaker.h"
#include "provider/port.h"
#include "store/store.h"

/* What was said to one provider entry, and what came back. */
struct idem_call_stats {
    uint64_t outcomes[IDEM_CALL_COUNT][IDEM_OUTCOME_COUNT];
    struct idem_histogram us[IDEM_CALL_COUNT];
};

/* Since the start; what is a size is of this moment. */
struct idem_engine_stats {
    uint64_t accepted;                     /* Keyed requests that came in. */
    uint64_t replayed;                     /* Answered with what was there before. */
    uint64_t replayed_from_memory;         /* Of these, without the store. */
    uint64_t claimed;                      /* Requests whose own claim became durable. */
    uint64_t operations;                   /* Answered with 202. */
    uint64_t problems[IDEM_PROBLEM_COUNT]; /* Answered with one that is not stored. */
    uint64_t ended[IDEM_INTENT_COUNT];     /* Seen to become PARKED, SUCCEEDED, FAILED, RELEASED. */
    uint64_t batches;
    uint64_t commands;
    uint64_t answers[IDEM_STORE_ANSWER_COUNT]; /* Of commands. */
    struct idem_histogram batch_commands;
    struct idem_histogram commit_us;        /* From handing a batch over to its answer. */
    struct idem_histogram time_to_truth_us; /* Of intents that were unknown: until their end. */
    uint64_t sends;
    uint64_t queries;
    size_t requests;      /* Inside. */
    size_t flights;       /* On the wire or settling. */
    size_t queued;        /* Commands that wait for a batch. */
    size_t settles_stuck; /* Commands of flights that the store refused when they last ran. */
};

/* What one provider entry has of its limits, and who waits because of them; now. */
struct idem_budget_stats {
    const struct idem_provider_limits *limits;
    size_t sends;      /* First sends on the wire, or about to be. */
    size_t recoveries; /* Calls of workers, likewise. */
    size_t waiting;    /* Claims that wait for a place on the wire. */
    size_t backlog;    /* Requests without a record that wait for a place among these. */
    int64_t tokens;    /* Calls that the rate allows at once; below zero: taken in advance. */
    int64_t pause_us;  /* How long the provider still wishes to be left alone. */
    enum idem_breaker_state breaker;
    uint64_t openings;    /* Of the breaker, since the start, as the next two. */
    uint64_t deferred;    /* Claims that had to wait. */
    uint64_t turned_away; /* Requests that were refused because too many waited. */
};

#endif /* IDEM_ENGINE_STATS_H */
