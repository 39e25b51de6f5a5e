/*
 * store.h - what the engine needs from durable storage, and nothing else.
 *
 * A store runs batches of commands. For each command it fetches the facts, decides, and applies the
 * decision's guarded writes; all commands of a batch stand in one transaction and one commit.
 * Once a batch comes back DURABLE, what its commands released survives a crash of process and
 * machine: that is what P1 and P2 rest on, and a backend that cannot keep it must not be a
 * backend.
 *
 * A guarded write that misses (lost claim, version moved, order number taken) undoes the whole
 * batch; the store then runs its commands one by one, and a command that misses again alone is
 * fetched and decided anew (its facts have changed), at most IDEM_STORE_TRIES_MAX times.
 *
 * Ownership: a batch or read is its caller's until submitted and again once reaped. In between it
 * is the store's: do not read, reuse or free it. Everything submitted comes back exactly once,
 * also after idem_store_stop().
 *
 * No callbacks into the engine: finished requests queue up, and the engine takes them when it is
 * ready. `wake` (may be called from another thread) says that there is something to take.
 *
 * Threads: everything here is called from the engine's thread.
 */
#ifndef IDEM_STORE_STORE_H
#define IDEM_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "core/decision.h"
#include "core/outcome.h"
#include "store/answer.h"
#include "store/look.h"

#define IDEM_STORE_BATCH_MAX 256
#define IDEM_STORE_TRIES_MAX 5

/* One command on its way through the store. Embed it; the store fills `outcome` and `answer`. */
struct idem_store_item {
    struct idem_list_node node; /* On its batch's list; the engine's queue before. */
    struct idem_command command;
    struct idem_outcome *outcome;  /* The submitter's memory. True only if DURABLE. */
    unsigned owner;                /* The submitter's: which of its structs this is in. */
    enum idem_store_answer answer; /* Of this command: after a miss each one runs alone. */
    /* The submitter's: it ran and runs again, not before this (monotonic); 0: it comes first. */
    int64_t again_us;
    unsigned refusals; /* Likewise: how often it came back without being durable. */
};

/* At most one command per intent, payment and order number: the engine sees to that. */
struct idem_store_batch {
    struct idem_list_node node;    /* The store's, while it owns the batch. */
    struct idem_list items;        /* Of struct idem_store_item; at most IDEM_STORE_BATCH_MAX. */
    enum idem_store_answer answer; /* The worst of its items' answers. */
};

struct idem_store;

/* What a backend implements; store.c checks the caller first. */
struct idem_store_ops {
    unsigned version; /* First: a backend built for another version is refused unread. */
    const char *name;
    void (*submit)(struct idem_store *store, struct idem_store_batch *batch);
    void (*read)(struct idem_store *store, struct idem_read *read);
    void (*reap)(struct idem_store *store,
                 struct idem_list *ret_batches,
                 struct idem_list *ret_reads);
    void (*stop)(struct idem_store *store);
    void (*destroy)(struct idem_store *store);
    /* NULL where the store is nobody else's; see idem_store_heard(). */
    bool (*heard)(struct idem_store *store);
};

#define IDEM_STORE_OPS_VERSION 3

/* How a store is opened, whichever it is. */
struct idem_store_options {
    const struct idem_rules *rules; /* Borrowed as long as the store. */
    struct idem_clock *clock;       /* Likewise. Raised to the latest time found in the store. */
    void (*wake)(void *context);    /* Something can be reaped; from any thread. */
    void *wake_context;
    /*
     * Digests that name the configuration under which records were made. The first start stores
     * them, a later start with others is refused: another effect secret or scope rule would make
     * every old key new.
     */
    struct idem_digest effect_secret_check;
    struct idem_str scope_rule; /* "endpoint" or "principal". */
    /*
     * What lies there is an older copy: enter the restored mode, durably, before anything is
     * decided. It lasts over later starts until IDEM_MARK_RESTORED_OVER.
     */
    bool restored;
    /* There was a store: a database without one is another, and nothing is begun in it. */
    bool must_exist;
};

/* The part every backend shares. A backend's own struct begins with it. */
struct idem_store {
    const struct idem_store_ops *ops;
    struct idem_store_options options;
    int64_t incarnation; /* Of this opening; ends the leases of all earlier ones. */
    size_t batches_in_flight;
    size_t batches_in_flight_max; /* How many the backend can work on; 1 for sqlite. */
    size_t reads_in_flight;
    /* The restored mode; what came to the provider after `newest_us` is not known here. */
    bool restored;
    int64_t newest_us; /* The newest time that the store had when it was opened; 0: none. */
    /*
     * The clock as it was before the store raised it: a newest time that is later was written by a
     * clock that ran ahead. In the restored mode: of the opening that entered it.
     */
    int64_t opened_us;
    bool old_effect_ids; /* Some effects may be at the providers under ids that name no scope. */
    int64_t horizon_us;  /* Of IDEM_MARK_HORIZON, as the opening left it; never 0. */
    bool shared;         /* Other processes may write beside this one. */
    bool stopped;
    bool broken; /* This process must not go on with it: exit and start anew. */
    /* The rest is as reaped. */
    struct idem_error breakage; /* Why it is broken, where that is known; else empty. */
    bool silent;                /* What is under it did not answer when last asked. */
    struct idem_error silence;  /* Why. */
    bool standbys;              /* Others answer for what is committed. */
    bool standbys_gone;         /* They did, since it was opened, and nobody is asked to now. */
};

/* There is room for one more batch. */
bool idem_store_has_room(const struct idem_store *store);

void idem_store_submit(struct idem_store *store, struct idem_store_batch *batch);
void idem_store_read(struct idem_store *store, struct idem_read *read);

/* Moves finished batches and reads onto the lists, oldest first. */
void idem_store_reap(struct idem_store *store,
                     struct idem_list *ret_batches,
                     struct idem_list *ret_reads);

/*
 * Since it was last asked, something was heard of an intent that IDEM_READ_WAITED was about: look
 * again. Only a hint, which may be missing or too much.
 */
bool idem_store_heard(struct idem_store *store);

/* `broken` from now on: somebody saw that what lies under the store is not what was opened. */
void idem_store_break(struct idem_store *store);

/* Accepts nothing more. What was accepted still completes and must still be reaped. */
void idem_store_stop(struct idem_store *store);

/* Everything was reaped. Accepts NULL. */
void idem_store_destroy(struct idem_store *store);

#endif /* IDEM_STORE_STORE_H */
