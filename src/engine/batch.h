/*
 * batch.h - forming batches: which commands may share a transaction.
 *
 * At most one command per intent, per payment and per order number, likewise per credential, secret
 * and mark, over all batches under way: no decision may rest on facts that are still being written.
 * A command that must wait blocks later ones of the same subject, so that nothing overtakes.
 *
 * A command that runs again (the store refused it, or nobody knows what became of it) may find the
 * same trouble again, a lock that somebody holds above all. It never shares a batch with one that
 * comes first, and there is one batch of such commands under way: where the store works on several,
 * the others stay free for what has no trouble.
 */
#ifndef IDEM_ENGINE_BATCH_H
#define IDEM_ENGINE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

#define IDEM_BATCH_SUBJECTS ((size_t)IDEM_STORE_BATCH_MAX * 3)
#define IDEM_SUBJECT_SLOTS  2048 /* A power of two above twice the subjects of a batch. */

/* A set of subjects: 64-bit digests of intents, payments, order numbers and so on. */
struct idem_subjects {
    uint64_t slots[IDEM_SUBJECT_SLOTS]; /* 0: free. */
    size_t count;
};

/* A batch and what it is about. */
struct idem_engine_batch {
    struct idem_store_batch store; /* First: the store hands this back. */
    struct idem_subjects subjects;
    int64_t submitted_us; /* Monotonic. */
    bool busy;
    bool again; /* Its commands ran before. */
};

/*
 * Moves commands from the front of `queue` into `batch`, as many as may share it with the batches
 * under way (`batches`, those that are busy) and whose time has come by `now_us`. What must wait
 * stays in order. Returns how many.
 */
size_t idem_batch_form(struct idem_engine_batch *batch,
                       const struct idem_engine_batch *batches,
                       size_t batch_count,
                       struct idem_list *queue,
                       int64_t now_us);

#endif /* IDEM_ENGINE_BATCH_H */
