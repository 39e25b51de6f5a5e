/*
 * merge.h - two sorted sides become pairs, and each pair is judged. Pure: what comes in are lines,
 * what comes out is what they are to each other and what the service should be told.
 *
 * The provider's side was read before the service's, so whatever is there has its record here (an
 * attempt is durable before it is sent). The service's side was read with a margin around the
 * period: what lies in the margin is compared if it is met, and is otherwise not a word's worth.
 */
#ifndef IDEM_RECONCILE_MERGE_H
#define IDEM_RECONCILE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/intent.h"
#include "reconcile/line.h"

/* What an effect is, from what both sides say. */
enum idem_merge_kind {
    IDEM_MERGE_NONE = 0,
    IDEM_MERGE_MATCHED,       /* Both have it, with the same money. */
    IDEM_MERGE_MISSING_HERE,  /* The provider did it, and there is no record of it in the period. */
    IDEM_MERGE_MISSING_THERE, /* Done here, and the provider's side should have it and does not. */
    IDEM_MERGE_AMOUNT,        /* Both have it, with another amount or currency. */
    IDEM_MERGE_ORDER,         /* Both have it, with another order number. */
    IDEM_MERGE_STATE,         /* They differ on whether it happened. */
    IDEM_MERGE_DUPLICATE,     /* The provider's side names it once more. */
    IDEM_MERGE_FOREIGN,       /* Under an id that is none of this service's. */
    IDEM_MERGE_OPEN,          /* In progress here, not there yet: fine. */
    IDEM_MERGE_YOUNG,         /* Differs, but inside the grace period: the next run will see. */
    IDEM_MERGE_OUTSIDE,       /* At the edge of the period, or not what that side lists. */
    IDEM_MERGE_NOTHING,       /* Both say that no money moved. */
    IDEM_MERGE_KIND_COUNT
};

/* What the service is told about it; POST /v1/admin/evidence. */
enum idem_merge_word {
    IDEM_MERGE_SAY_NOTHING = 0,
    IDEM_MERGE_SAY_LISTED,
    IDEM_MERGE_SAY_AGAIN,
    IDEM_MERGE_SAY_MISSING,
    IDEM_MERGE_SAY_FAILED,
    IDEM_MERGE_SAY_REVERSED,
    IDEM_MERGE_WORD_COUNT
};

struct idem_merge_rules {
    int64_t from_us; /* The period: from here on, up to but without `to_us`. */
    int64_t to_us;
    int64_t young_us; /* What happened from then on may not be seen everywhere. */
    int64_t skew_us;  /* How far clocks here and there may be apart. */
    unsigned lists;   /* Bit 1 << kind for every kind of effect that their side has completely. */
};

struct idem_merge_pair {
    enum idem_merge_kind kind;
    enum idem_merge_word word;
    bool has_here;
    bool has_there;
    struct idem_line here; /* Text as the sides gave it. */
    struct idem_line there;
};

/* Where lines come from: as idem_spool_next(), in its order. */
struct idem_merge_source {
    void *context;
    enum idem_err (*next)(void *context,
                          enum idem_line_side side,
                          struct idem_line *ret_line,
                          bool *ret_end,
                          struct idem_error *reterr);
};

struct idem_merge {
    struct idem_merge_rules rules;
    struct idem_merge_source source;
    bool wanted[IDEM_LINE_SIDE_COUNT]; /* Its head was used. */
    bool ended[IDEM_LINE_SIDE_COUNT];
    struct idem_line heads[IDEM_LINE_SIDE_COUNT];
    bool here_met;                          /* The head here was compared already. */
    enum idem_line_state last_state;        /* Of their last line ... */
    size_t last_lens[IDEM_LINE_SIDE_COUNT]; /* ... and what ids came last. */
    char last_ids[IDEM_LINE_SIDE_COUNT][IDEM_LINE_ID_MAX];
};

void idem_merge_init(struct idem_merge *merge,
                     const struct idem_merge_rules *rules,
                     const struct idem_merge_source *source);

/* The next pair, valid until the next call; kind NONE: there is none. */
enum idem_err idem_merge_next(struct idem_merge *merge,
                              struct idem_merge_pair *ret_pair,
                              struct idem_error *reterr) IDEM_MUST_CHECK;

/* Judges one pair, of which at least one side is there. `again`: they named it before. */
void idem_merge_judge(const struct idem_merge_rules *rules,
                      bool again,
                      struct idem_merge_pair *pair);

/* Which kind of effect its id says; NONE: it is none of ours. */
enum idem_effect_kind idem_merge_effect(const struct idem_merge_pair *pair);

const char *idem_merge_kind_name(enum idem_merge_kind kind); /* "missing-here" ... */
const char *idem_merge_word_name(enum idem_merge_word word); /* "listed" ... */

#endif /* IDEM_RECONCILE_MERGE_H */
