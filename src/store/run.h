/*
 * run.h - how a batch of commands runs, whichever backend holds the rows.
 *
 * Stamp, begin, and for each command: fetch its facts, decide, apply the writes; then one commit.
 * The run itself knows three things of the store that only its own writes change: how many stubs
 * and webhooks there are, and whether the restored mode lasts.
 *
 * A miss undoes all of it and every command runs alone, deciding anew as often as its facts move,
 * at most IDEM_STORE_TRIES_MAX times.
 *
 * Threads: the one that owns the rows.
 */
#ifndef IDEM_STORE_RUN_H
#define IDEM_STORE_RUN_H

#include <stdbool.h>

#include "store/rows.h"
#include "store/store.h"

#define IDEM_RUN_MEMORY_MAX 65536

/* Which opening of the store it is; commands are stamped with it. */
struct idem_run_opening {
    int64_t incarnation;
    int64_t opened_us;       /* When it began, by the clock as the store raised it. */
    int64_t memory_since_us; /* Wall time since when the store has records; 0: not known. */
    int64_t stub_count;      /* How many stubs it has. */
    int64_t webhook_count;   /* How many webhooks it has; of a shared store: at least 1. */
    int64_t restored_at_us;  /* When it was put back; 0: never. */
    bool restored;           /* It is an older copy, and what that missed is not known yet. */
};

/* What stands in a store about time; 0: does not stand there yet. */
struct idem_run_marks {
    int64_t horizon_us; /* How far retention trusts the clock. */
    int64_t seen_us;    /* The latest time that the clock was seen to say. */
};

/*
 * How they stand after an opening, whose transaction writes them: no record is ever there without a
 * horizon, and the clock is raised to `seen_us`. `newest_us`: of all records; 0: there are none.
 */
struct idem_run_marks idem_run_marks_open(struct idem_run_marks found,
                                          int64_t newest_us,
                                          int64_t opened_us);

struct idem_run {
    struct idem_rows *rows;                   /* Borrowed. */
    const struct idem_store_options *options; /* Borrowed. */
    struct idem_run_opening opening;
    bool broken; /* A commit was not answered cleanly, or damage was met: nothing runs any more. */
    bool freed;  /* Rows went, or became small. Whoever cares clears it. */
    /* As of the last commit. A store without stubs is never asked for one. */
    int64_t stub_count;
    int64_t webhook_count;
    bool restored;
    /* What the open transaction changes of it. */
    int64_t stubs_added;
    int64_t webhooks_added;
    bool restored_over;
    bool memory_gap; /* The mode ended without the listings. */
    bool freeing;
    struct idem_facts facts;
    struct idem_decision decision;
    struct idem_buf kept; /* Text of the facts. */
    char memory[IDEM_RUN_MEMORY_MAX];
};

void idem_run_init(struct idem_run *run,
                   struct idem_rows *rows,
                   const struct idem_store_options *options,
                   struct idem_run_opening opening);

/* Fills every item's outcome and answer, and the batch's. */
void idem_run_batch(struct idem_run *run, struct idem_store_batch *batch);

#endif /* IDEM_STORE_RUN_H */
