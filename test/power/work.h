/*
 * work.h - what callers, providers, time and operators want of the store, batch by batch.
 *
 * One seed gives one history: claims, captures, cancels, refunds, the provider's words and its
 * silence, due rows, replays, given-up keys, verdicts, retention, marks and credentials, several in
 * a batch. As the engine does, never two commands on one intent, payment or order number in it.
 */
#ifndef IDEM_TEST_POWER_WORK_H
#define IDEM_TEST_POWER_WORK_H

#include "power/book.h"
#include "power/random.h"

#define WORK_BATCH_MAX 12

struct work {
    struct book *book;
    struct fixture *fixture;
    struct random random;
    unsigned key_next;
};

/* Commands for the next batch; ret_deeds[i] is what ret_calls[i] is about. At least one. */
size_t work_batch(struct work *work, struct call *ret_calls, size_t *ret_deeds, size_t max);

/* A caller asks once more for what a deed is about, under its key. */
void work_retry(struct work *work, const struct deed *deed, struct call *ret_call);

#endif /* IDEM_TEST_POWER_WORK_H */
