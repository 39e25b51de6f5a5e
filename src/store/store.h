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

#define IDEM_STORE_BATCH_MAX 256
#define IDEM_STORE_TRIES_MAX 5

/* What is known about a batch. Nothing else can be said. */
enum idem_store_answer {
    IDEM_STORE_NONE = 0,
    IDEM_STORE_DURABLE,
    IDEM_STORE_CONFLICT, /* Rows kept moving under it; nothing was written. Submit again. */
    IDEM_STORE_NOTHING,  /* Refused (full, read-only, busy); nothing was written. Submit again. */
    /*
     * COMMIT was not answered cleanly: run the same commands again (same now, ids, tokens, noise)
     * until one run is DURABLE. Reading proves nothing.
     */
    IDEM_STORE_UNKNOWN,
    IDEM_STORE_WRONG_NODE, /* This node must not write or answer; nothing was written. */
    IDEM_STORE_DOWN,       /* Not reachable; nothing was written. */
    IDEM_STORE_ANSWER_COUNT
};

/* One command on its way through the store. Embed it; the store fills `outcome` and `answer`. */
struct idem_store_item {
    struct idem_list_node node; /* On its batch's list; the engine's queue before. */
    struct idem_command command;
    struct idem_outcome *outcome;  /* The submitter's memory. True only if DURABLE. */
    unsigned owner;                /* The submitter's: which of its structs this is in. */
    enum idem_store_answer answer; /* Of this command: after a miss each one runs alone. */
};

/* At most one command per intent, payment and order number: the engine sees to that. */
struct idem_store_batch {
    struct idem_list_node node;    /* The store's, while it owns the batch. */
    struct idem_list items;        /* Of struct idem_store_item; at most IDEM_STORE_BATCH_MAX. */
    enum idem_store_answer answer; /* The worst of its items' answers. */
};

enum idem_read_kind {
    IDEM_READ_NONE = 0,
    IDEM_READ_PAYMENT,            /* By id. */
    IDEM_READ_PAYMENT_BY_ORDER,   /* By order_no: the one that holds it, else the newest. */
    IDEM_READ_REFUND,             /* By id. */
    IDEM_READ_OPERATION,          /* By id: intent, sends, events. */
    IDEM_READ_OPERATION_BY_SCOPE, /* Likewise. */
    IDEM_READ_DUE,                /* Open intents with due_us <= now_us, oldest first. */
    IDEM_READ_LEFT,               /* Open, with a lease of another incarnation, row > after_row. */
    /* From here on for operators and workers: not bound to a principal. */
    IDEM_READ_REAP,          /* Final, with 0 < reap_us <= now_us, oldest first, into `due`. */
    IDEM_READ_ANY_OPERATION, /* By id, whoever's: intent, sends, events, cases. */
    IDEM_READ_LIST,          /* A page of operations that `filter` asks for, into `entries`. */
    IDEM_READ_OF_PAYMENT,    /* Every operation of the payment `id`, likewise. */
    IDEM_READ_SUMMARY,       /* How many of what, into `summary`. */
    IDEM_READ_CREDENTIALS,   /* A page, row > after_row, into `credentials`. */
    IDEM_READ_COUNT
};

#define IDEM_READ_EVENTS_MAX 96
#define IDEM_READ_DUE_MAX    64
#define IDEM_READ_MEMORY_MAX 32768

#define IDEM_READ_CASES_MAX       16
#define IDEM_READ_ENTRIES_MAX     32
#define IDEM_READ_CREDENTIALS_MAX 16

/* Which operations a list shows. */
enum idem_list_filter {
    IDEM_LIST_OPEN = 0, /* Everything that is not final. */
    IDEM_LIST_PROCESSING,
    IDEM_LIST_UNKNOWN,
    IDEM_LIST_PARKED,
    IDEM_LIST_RELEASED,
    IDEM_LIST_CASES, /* Whatever has an open case, final or not. */
    IDEM_LIST_COUNT
};

/* One line of a list: what an operator wants to know first. */
struct idem_entry {
    int64_t row; /* The cursor of the next page is the last one's. */
    struct idem_uid id;
    struct idem_str principal;
    enum idem_endpoint endpoint;
    enum idem_intent_state state;
    enum idem_step step; /* What happens next ... */
    int64_t due_us;      /* ... and when; 0: nothing. */
    int64_t lease_end_us;
    int64_t created_us;
    int64_t unknown_since_us;
    int64_t finished_us;
    uint32_t send_count;
    struct idem_str entry;
    int64_t amount_minor;
    struct idem_str currency;
    struct idem_uid payment_id;
    struct idem_case opened; /* Its newest open case; kind NONE: none. */
};

struct idem_summary {
    int64_t by_state[IDEM_INTENT_COUNT]; /* Of states that are not final. */
    int64_t oldest_unknown_us; /* Since when; 0: nothing is unknown. UNKNOWN and PARKED. */
    int64_t oldest_due_us;     /* The earliest due time; 0: none. */
    int64_t cases_open;
    int64_t stubs;
    int64_t bytes;      /* What the store takes on disk, with its log. */
    int64_t bytes_free; /* Inside it, for use again. */
};

struct idem_due {
    struct idem_scope scope;
    int64_t row;
    int64_t due_us;
};

/* One look at committed data. What a caller may read is bound to `principal` (P13). */
struct idem_read {
    struct idem_list_node node;
    struct idem_list *done; /* The engine puts it there once answered. */
    enum idem_read_kind kind;
    struct idem_str principal; /* Borrowed until reaped, as all text here. */
    struct idem_uid id;
    struct idem_scope scope;
    struct idem_str order_no;
    int64_t now_us;
    int64_t after_row; /* LIST: 0 is the beginning. */
    enum idem_list_filter filter;

    enum idem_store_answer
        answer; /* DURABLE: the result is true. Otherwise it could not be read. */
    bool found;
    struct idem_intent intent;
    struct idem_send sends[IDEM_SENDS_MAX];
    size_t send_count;
    struct idem_event events[IDEM_READ_EVENTS_MAX]; /* Oldest first; the newest that fit. */
    size_t event_count;
    size_t event_total;
    struct idem_payment payment;
    struct idem_refund refund;
    struct idem_due due[IDEM_READ_DUE_MAX];
    size_t due_count;
    int64_t next_due_us; /* DUE, REAP: when the next one comes that is not due yet; 0: none. */
    struct idem_case cases[IDEM_READ_CASES_MAX]; /* Newest first. */
    size_t case_count;
    struct idem_entry entries[IDEM_READ_ENTRIES_MAX];
    size_t entry_count;
    bool more; /* LIST, CREDENTIALS: there is another page. */
    struct idem_summary summary;
    struct idem_credential_row credentials[IDEM_READ_CREDENTIALS_MAX];
    size_t credential_count;
    struct idem_buf kept; /* Text of the rows above. */
    char memory[IDEM_READ_MEMORY_MAX];
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
};

#define IDEM_STORE_OPS_VERSION 2

/* How a store is opened, whichever it is. */
struct idem_store_options {
    const struct idem_rules *rules; /* Borrowed as long as the store. */
    struct idem_clock *clock;       /* Likewise. Raised to the newest time found in the store. */
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
     * What lies there is an older copy: enter the restored mode, durably, before anything is decided.
     * It lasts over later starts until IDEM_MARK_RESTORED_OVER.
     */
    bool restored;
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
    int64_t newest_us;  /* The newest time that the store had when it was opened; 0: none. */
    int64_t horizon_us; /* Of IDEM_MARK_HORIZON, as it stood at the opening; 0: never set. */
    bool broken;        /* This process must not go on with it: exit and start anew. */
    bool stopped;
};

/* There is room for one more batch. */
bool idem_store_has_room(const struct idem_store *store);

void idem_store_submit(struct idem_store *store, struct idem_store_batch *batch);
void idem_store_read(struct idem_store *store, struct idem_read *read);

/* Moves finished batches and reads onto the lists, oldest first. */
void idem_store_reap(struct idem_store *store,
                     struct idem_list *ret_batches,
                     struct idem_list *ret_reads);

/* `broken` from now on: somebody saw that what lies under the store is not what was opened. */
void idem_store_break(struct idem_store *store);

/* Accepts nothing more. What was accepted still completes and must still be reaped. */
void idem_store_stop(struct idem_store *store);

/* Everything was reaped. Accepts NULL. */
void idem_store_destroy(struct idem_store *store);

const char *idem_store_answer_name(enum idem_store_answer answer);

#endif /* IDEM_STORE_STORE_H */
