/*
 * store.h - a store double: rows that outlive processes, and doors to them that fail.
 *
 * The disk holds what is durable: the memory store's rows, changed by store/run.c inside real
 * transactions. A store is one process's opening of it. It answers late and out of order, refuses,
 * and leaves COMMITs unanswered, done or lost; when its process dies, what was not committed is
 * forgotten.
 *
 * A COMMIT may also hang: everybody reads it, and it is on the disk only once a later transaction
 * that writes something is. Whoever asks for it again and writes nothing has proven nothing, and it
 * is gone.
 *
 * One process at a time: each opening has an incarnation of its own, and a process that another has
 * overtaken is told WRONG_NODE and is broken. Twins: all share one incarnation, as on a server.
 */
#ifndef IDEM_SIM_STORE_H
#define IDEM_SIM_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/memory/memory_internal.h"
#include "store/run.h"
#include "store/store.h"

struct sim_instance;
struct sim_world;

/* What becomes of a transaction. */
enum sim_fate {
    SIM_FATE_DURABLE = 0,
    SIM_FATE_NOTHING,
    SIM_FATE_DONE_UNKNOWN,
    SIM_FATE_LOST_UNKNOWN,
    SIM_FATE_DOWN,
};

struct sim_store;

struct sim_disk {
    struct sim_world *world; /* Borrowed. */
    struct idem_memory_rows rows;
    struct idem_rows_ops ops;        /* The rows' own with doors in front ... */
    const struct idem_rows_ops *own; /* ... of these. */
    int64_t incarnation;
    int64_t born_us;
    int64_t seen_us;           /* IDEM_META_CLOCK_SEEN, ... */
    int64_t marked_us;         /* ... and the true time when it was last moved. */
    struct sim_store *running; /* Whose batch runs ... */
    bool asks_again;           /* ... and whether some of it ran before. */
    struct sim_store *hanging; /* Whose COMMIT hangs; NULL: none does. */
    size_t changes;            /* In the rows' log when the transaction began. */
    enum sim_fate fate;        /* Of the transaction that runs. */
};

struct sim_store {
    struct idem_store base; /* First. */
    struct sim_disk *disk;
    struct sim_instance *instance; /* Woken when something is done. */
    struct idem_run run;
    int64_t opened_us; /* By its clock, raised. */
    bool dead;         /* Its process is: nothing reaches the disk. */
    bool blind;        /* It reads no more until all is healed. */
    bool breaks;       /* An unanswered COMMIT is its end, as SQLite's; else it is asked again. */
    struct sim_pending *pending;
    struct idem_list done_batches;
    struct idem_list done_reads;
};

void sim_disk_init(struct sim_disk *disk, struct sim_world *world);
void sim_disk_deinit(struct sim_disk *disk);

/* The durable record of `scope`, or NULL. Valid until the next transaction. */
const struct idem_intent *sim_disk_intent(const struct sim_disk *disk,
                                          const struct idem_scope *scope);

/* Likewise of a handle, and of payments; NULL: not there (any more). */
const struct idem_intent *sim_disk_intent_at(const struct sim_disk *disk, size_t handle);
const struct idem_payment *sim_disk_payment_at(const struct sim_disk *disk, size_t handle);

/* The webhook with this id, or NULL; whether an event is in the inbox. */
const struct idem_webhook *sim_disk_webhook(const struct sim_disk *disk, struct idem_uid id);
size_t sim_disk_events(const struct sim_disk *disk,
                       struct idem_str entry,
                       struct idem_str event_id);

/* The highest handles. */
size_t sim_disk_intents(const struct sim_disk *disk);
size_t sim_disk_payments(const struct sim_disk *disk);

/* The store lives as long as the run. */
struct sim_store *sim_store_open(struct sim_disk *disk,
                                 struct sim_instance *instance,
                                 struct idem_clock *clock);

/* Its process is dead: each open transaction stands or is gone, and nothing comes after it. */
void sim_store_die(struct sim_store *store);

#endif /* IDEM_SIM_STORE_H */
