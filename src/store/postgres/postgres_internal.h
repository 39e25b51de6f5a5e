/*
 * postgres_internal.h - the pieces of the store, for this folder and its tests.
 *
 *   wire.c        one connection, no wait without an end (wire.h)
 *   session.c     whom we talk to, what is forced, back-off
 *   schema.c      the tables (schema.h)
 *   opening.c     schema, configuration, marks, a new instance
 *   ahead.c       a batch's facts, fetched together; ahead_find.c hands them out
 *   connection.c  one connection as the rows port (rows_internal.h)
 *   listener.c    hints between instances that somebody waits, or need not any more (listener.h)
 *   postgres.c    the store: threads, queues, the instance's sign of life
 */
#ifndef IDEM_STORE_POSTGRES_POSTGRES_INTERNAL_H
#define IDEM_STORE_POSTGRES_POSTGRES_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/queue.h"
#include "store/postgres/listener.h"
#include "store/postgres/postgres.h"
#include "store/postgres/statement.h"
#include "store/postgres/wire.h"
#include "store/rows.h"
#include "store/run.h"

/* The smallest commit that waits for a standby: without a row, for who may write anything. */
#define IDEM_POSTGRES_PROOF "SELECT pg_logical_emit_message(true, 'idem', '')"

/* Why a database is not the one that was opened. */
#define IDEM_POSTGRES_OTHER \
    "the database is not the one that was opened: it does not know this instance"
#define IDEM_POSTGRES_OLDER \
    "the database is an older copy of the one that was opened: it has lost what it acknowledged"

/* In idem.meta of such a copy, so that the next start asks for --restored. */
#define IDEM_POSTGRES_META_OLDER "older_copy"

/* Handles that were taken from a sequence and are not used yet. */
#define IDEM_POSTGRES_HANDLES_MAX 512

struct idem_postgres_handles {
    int64_t rows[IDEM_POSTGRES_HANDLES_MAX];
    size_t first;
    size_t count;
    int64_t taken_us; /* Monotonic: the oldest. */
};

enum idem_postgres_handle_kind {
    IDEM_POSTGRES_HANDLE_INTENT = 0,
    IDEM_POSTGRES_HANDLE_PAYMENT,
    IDEM_POSTGRES_HANDLE_REFUND,
    IDEM_POSTGRES_HANDLE_STUB,
    IDEM_POSTGRES_HANDLE_CREDENTIAL,
    IDEM_POSTGRES_HANDLE_WEBHOOK,
    IDEM_POSTGRES_HANDLE_COUNT
};

#define IDEM_POSTGRES_ALIVE_MAX 64

/* What a transaction fetched before it began to decide. Each fact is handed out once. */
struct idem_postgres_ahead {
    struct idem_store_item *items[IDEM_STORE_BATCH_MAX]; /* In order of scope. */
    size_t count;                                        /* 0: nothing was fetched. */
    size_t current;                                      /* The one whose intent was found last. */
    bool intent_used[IDEM_STORE_BATCH_MAX];
    bool sends_used[IDEM_STORE_BATCH_MAX];
    bool payment_used[IDEM_STORE_BATCH_MAX];
    bool refund_used[IDEM_STORE_BATCH_MAX];
    bool holder_used[IDEM_STORE_BATCH_MAX];
    bool event_used[IDEM_STORE_BATCH_MAX];
    const struct idem_delivery_change *letters[IDEM_STORE_BATCH_MAX]; /* Of its commands. */
    size_t letter_count;
    bool letter_used[IDEM_STORE_BATCH_MAX];
    struct pg_result *intents[2];  /* Plain, and held. In order of scope. */
    struct pg_result *payments[3]; /* Plain, held, named. In order of row; named: of id. */
    struct pg_result *holders;
    struct pg_result *refunds;
    struct pg_result *sends; /* In order of intent_row, no. */
    struct pg_result *listened;
    struct pg_result *events;
    struct pg_result *webhooks; /* In order of id. */
    struct pg_result *deliveries;
};

/* What no other database has. */
struct idem_postgres_instance {
    int64_t id; /* 0: it is not asked for. */
    int64_t created_us;
    /* Its last sign of life that is as safe as whatever was acknowledged; 0: there is none yet. */
    const _Atomic int64_t *signed_us;
};

/* Belongs to one thread. */
struct idem_postgres_connection {
    struct idem_rows rows; /* First: the port's calls come back with its address. */
    struct idem_postgres_wire wire;
    bool prepared[IDEM_POSTGRES_STATEMENT_COUNT];  /* On this connection. */
    bool asked[IDEM_POSTGRES_STATEMENT_COUNT];     /* To be, in the round at hand. */
    const struct idem_postgres_settings *settings; /* Borrowed. */
    int64_t incarnation;                           /* Of this opening. */
    struct idem_postgres_instance instance;        /* Who must be known where it connects. */
    bool is_other;    /* It met a database that is not the one that was opened: wire.error. */
    int64_t retry_us; /* Monotonic: not connected before. */
    int64_t pause_us;

    /* The open transaction. */
    bool is_open; /* The server may have it open. */
    bool alone;   /* It has one command: who is held up says so, instead of being tried again. */
    bool lost;    /* Since it was last cleared a COMMIT was not answered cleanly. */
    bool wrote;   /* It has statements of its own behind the facts. */
    bool has_standbys;          /* Others answer for what is committed, or nobody does. */
    enum idem_rows_step failed; /* What ended it; OK: nothing. */
    struct idem_postgres_ahead ahead;

    /* What the transaction found out about the store. */
    struct idem_clock *clock; /* Borrowed: whose monotonic time is read with the server's time. */
    int64_t mono_us;
    int64_t now_us;
    int64_t floor_us;                       /* The database's clock never goes back behind this. */
    int64_t alive[IDEM_POSTGRES_ALIVE_MAX]; /* Other instances. */
    size_t alive_count;
    struct idem_postgres_listener *listener; /* A reader's: told who is waited for. Or NULL. */
    struct idem_run *run; /* A writer's: it is told what others may have changed. Or NULL. */
    struct idem_postgres_handles handles[IDEM_POSTGRES_HANDLE_COUNT];
};

/* `connection` is zeros. Connects when it is first used. */
void idem_postgres_connection_init(struct idem_postgres_connection *connection,
                                   const struct idem_postgres_settings *settings,
                                   struct idem_clock *clock);
void idem_postgres_connection_deinit(struct idem_postgres_connection *connection);

/*
 * session.c. Connects if it is not connected, asks whom, and forces what must be. OK, DOWN,
 * WRONG_NODE or REFUSED; then `wire.error` says why. DAMAGED: a database that does not know this
 * instance is not the one that was opened.
 */
enum idem_rows_step idem_postgres_session(struct idem_postgres_connection *connection);
/* Without statements: for the opening. The answer for a person is in wire->error. */
enum idem_rows_step idem_postgres_session_begin(struct idem_postgres_wire *wire,
                                                const struct idem_postgres_settings *settings);
/*
 * Settings change while a server runs. On a connected wire: as above, and whether standbys answer
 * for what is committed. `wire` stays connected, unless the connection ended.
 */
enum idem_rows_step idem_postgres_session_look(struct idem_postgres_wire *wire,
                                               bool *ret_has_standbys);

/*
 * Whether the store here is the one that was opened. DAMAGED: an older copy that was put back, or
 * another database behind the same name, does not know `instance`, or not its latest sign of life;
 * or another instance has found that out and written it down. What is remembered of the former one
 * would be wrong here. Then wire->error says which, and a copy is marked, so that no start goes on
 * with it unasked.
 */
enum idem_rows_step idem_postgres_instance_check(struct idem_postgres_wire *wire,
                                                 const struct idem_postgres_instance *instance);

/* What the store knows of itself once it was opened. */
struct idem_postgres_opening {
    int64_t incarnation;
    int64_t created_us;
    int64_t memory_since_us;
    int64_t newest_us;
    int64_t stub_count;
    bool restored;
    int64_t restored_from_us;
    int64_t restored_at_us;
    int64_t opened_us;
    bool old_effect_ids;
    bool has_standbys; /* Named ones. */
    struct idem_run_marks marks;
};

/* opening.c. Leaves `wire` connected: it is the instance's own afterwards. */
enum idem_err idem_postgres_opening_run(struct idem_postgres_wire *wire,
                                        const struct idem_postgres_settings *settings,
                                        const struct idem_store_options *options,
                                        struct idem_postgres_opening *ret_opening,
                                        struct idem_error *reterr) IDEM_MUST_CHECK;

struct idem_postgres;

/* One thread, with its connection. */
struct idem_postgres_worker {
    struct idem_postgres *store; /* Borrowed. */
    struct idem_queue work;
    struct idem_postgres_connection connection;
    pthread_t thread;
    bool started;
};

struct idem_postgres_writer {
    struct idem_postgres_worker worker; /* First. */
    struct idem_store_batch *at_work;   /* The engine's thread: what it was given. */
    struct idem_clock clock;            /* Says what the transaction at hand found. */
    struct idem_store_options options;  /* The store's, with that clock. */
    struct idem_run run;
};

struct idem_postgres {
    struct idem_store base; /* First. The engine's thread. */
    struct idem_postgres_settings settings;
    char *url;
    struct idem_queue done_batches;
    struct idem_queue done_reads;
    atomic_bool broken;
    atomic_bool refused;       /* The keeper met settings that no connection would be made under. */
    atomic_bool restored_over; /* A writer saw that the mode is over. */
    struct idem_postgres_writer writers[IDEM_POSTGRES_WRITERS_MAX];
    struct idem_postgres_worker readers[IDEM_POSTGRES_READERS_MAX];
    size_t reader_next;
    struct idem_postgres_listener listener;
    atomic_bool heard;

    /* The keeper: says that this instance lives. */
    struct idem_postgres_wire keeper;
    pthread_t keeper_thread;
    bool keeper_started;
    pthread_mutex_t keeper_mutex;
    pthread_cond_t keeper_wake;
    bool keeper_stops;          /* This and the next two under keeper_mutex. */
    struct idem_error silence;  /* Why the last sign was not taken. */
    struct idem_error breakage; /* Why it is broken, where that is known. */
    atomic_bool silent;         /* The last sign was not taken. */
    _Atomic int64_t signed_us;  /* idem_postgres_instance. */
    int64_t created_us;         /* Of the store. */
    atomic_bool standbys;       /* Some are named, as the keeper last saw. */
    atomic_bool standbys_gone;  /* Some were, since the opening, and none is. */
};

#endif /* IDEM_STORE_POSTGRES_POSTGRES_INTERNAL_H */
