/*
 * sqlite_internal.h - the pieces of the embedded store, for this folder and its tests.
 *
 *   file.c        the file: checks, schema, incarnation (file_internal.h: locks and SQL)
 *   connection.c  one connection: its transactions, and the rows port (rows_internal.h)
 *   checkpoint.c  from the log into the file, beside the writer
 *   sqlite.c      the store: threads, queues, when there is a checkpoint
 */
#ifndef IDEM_STORE_SQLITE_SQLITE_INTERNAL_H
#define IDEM_STORE_SQLITE_SQLITE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "base/queue.h"
#include "store/rows.h"
#include "store/run.h"
#include "store/sqlite/checkpoint.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

#define IDEM_SQLITE_PAGE_SIZE 4096

enum idem_sqlite_statement {
    IDEM_SQLITE_BEGIN = 0,
    IDEM_SQLITE_COMMIT,
    IDEM_SQLITE_ROLLBACK,
    IDEM_SQLITE_INCARNATION,
    IDEM_SQLITE_INTENT_BY_ROW,
    IDEM_SQLITE_INTENT_BY_ID,
    IDEM_SQLITE_INTENT_BY_ANY_ID,
    IDEM_SQLITE_INTENT_BY_SCOPE,
    IDEM_SQLITE_INTENT_BY_CASE,
    IDEM_SQLITE_PAYMENT_BY_ROW,
    IDEM_SQLITE_PAYMENT_BY_ID,
    IDEM_SQLITE_PAYMENT_BY_ANY_ID,
    IDEM_SQLITE_PAYMENT_HOLDER,
    IDEM_SQLITE_PAYMENT_PAST,
    IDEM_SQLITE_REFUND_BY_ROW,
    IDEM_SQLITE_REFUND_BY_ID,
    IDEM_SQLITE_REFUND_HOLDER,
    IDEM_SQLITE_SENDS,
    IDEM_SQLITE_EVENTS,
    IDEM_SQLITE_EVENTS_TOTAL,
    IDEM_SQLITE_DUE,
    IDEM_SQLITE_DUE_NEXT,
    IDEM_SQLITE_LEFT,
    IDEM_SQLITE_REAP,
    IDEM_SQLITE_REAP_NEXT,
    IDEM_SQLITE_CASES,
    IDEM_SQLITE_CASE_OPEN,
    IDEM_SQLITE_CASE_KINDS,
    IDEM_SQLITE_ENTRIES,
    IDEM_SQLITE_ENTRIES_CASES,
    IDEM_SQLITE_ENTRIES_PAYMENT,
    IDEM_SQLITE_ENTRY_BY_ROW,
    IDEM_SQLITE_CASES_PAGE,
    IDEM_SQLITE_CASES_PAGE_OPEN,
    IDEM_SQLITE_CREATED,
    IDEM_SQLITE_EFFECTS,
    IDEM_SQLITE_CREDENTIALS_PAGE,
    IDEM_SQLITE_PLACES,
    IDEM_SQLITE_STATES,
    IDEM_SQLITE_UNKNOWN_SINCE,
    IDEM_SQLITE_CASES_OPEN,
    IDEM_SQLITE_DELIVERIES_PENDING,
    IDEM_SQLITE_DELIVERIES_DEAD,
    IDEM_SQLITE_DELIVERY_OLDEST,
    IDEM_SQLITE_STUBS_COUNT,
    IDEM_SQLITE_PAGES,
    IDEM_SQLITE_PAGES_FREE,
    IDEM_SQLITE_STUB_BY_SCOPE,
    IDEM_SQLITE_STUB_HOLDER,
    IDEM_SQLITE_STUBS_OF_PAYMENT,
    IDEM_SQLITE_CREDENTIAL_BY_ID,
    IDEM_SQLITE_CREDENTIAL_BY_SECRET,
    IDEM_SQLITE_EVENT_SEEN,
    IDEM_SQLITE_LISTENED,
    IDEM_SQLITE_WEBHOOK_BY_ROW,
    IDEM_SQLITE_WEBHOOK_BY_ANY_ID,
    IDEM_SQLITE_WEBHOOK_BY_ID,
    IDEM_SQLITE_WEBHOOKS_COUNT,
    IDEM_SQLITE_WEBHOOKS_PAGE,
    IDEM_SQLITE_WEBHOOKS_PAGE_OF,
    IDEM_SQLITE_DELIVERY,
    IDEM_SQLITE_POSTS_DUE,
    IDEM_SQLITE_DISABLED_NEXT,
    IDEM_SQLITE_POSTS_ALL,
    IDEM_SQLITE_POSTS_STATE,
    IDEM_SQLITE_POSTS_WEBHOOK,
    IDEM_SQLITE_POSTS_PRINCIPAL,
    IDEM_SQLITE_META,
    /* From here on only the writer has them. */
    IDEM_SQLITE_INTENT_INSERT,
    IDEM_SQLITE_INTENT_UPDATE,
    IDEM_SQLITE_INTENT_DELETE,
    IDEM_SQLITE_INTENT_PUT_BACK,
    IDEM_SQLITE_SENDS_DELETE,
    IDEM_SQLITE_EVENTS_DELETE,
    IDEM_SQLITE_CASES_DELETE,
    IDEM_SQLITE_PAYMENT_INSERT,
    IDEM_SQLITE_PAYMENT_UPDATE,
    IDEM_SQLITE_REFUND_INSERT,
    IDEM_SQLITE_REFUND_UPDATE,
    IDEM_SQLITE_SEND_INSERT,
    IDEM_SQLITE_SEND_UPDATE,
    IDEM_SQLITE_EVENT_INSERT,
    IDEM_SQLITE_CASE_INSERT,
    IDEM_SQLITE_CASES_DECIDE,
    IDEM_SQLITE_STUB_INSERT,
    IDEM_SQLITE_STUB_UPDATE,
    IDEM_SQLITE_STUB_DELETE,
    IDEM_SQLITE_STUBS_APPLY,
    IDEM_SQLITE_CREDENTIAL_INSERT,
    IDEM_SQLITE_CREDENTIAL_UPDATE,
    IDEM_SQLITE_INBOX_INSERT,
    IDEM_SQLITE_INBOX_UPDATE,
    IDEM_SQLITE_INBOX_SWEEP,
    IDEM_SQLITE_WEBHOOK_INSERT,
    IDEM_SQLITE_WEBHOOK_UPDATE,
    IDEM_SQLITE_MESSAGE_INSERT,
    IDEM_SQLITE_MESSAGE_DELETE,
    IDEM_SQLITE_MESSAGES_SWEEP,
    IDEM_SQLITE_DELIVERIES_INSERT,
    IDEM_SQLITE_DELIVERY_INSERT,
    IDEM_SQLITE_DELIVERY_UPDATE,
    IDEM_SQLITE_DELIVERIES_HOLD,
    IDEM_SQLITE_DELIVERIES_DROP,
    IDEM_SQLITE_DELIVERIES_SWEEP,
    IDEM_SQLITE_META_WRITE,
    IDEM_SQLITE_GIVE_BACK,
    IDEM_SQLITE_STATEMENT_COUNT
};

/* Belongs to one thread at a time. */
struct idem_sqlite_connection {
    struct idem_rows rows; /* First: the port's calls come back with its address. */
    sqlite3 *handle;
    bool writes;         /* BEGIN takes the write lock, and the incarnation is checked. */
    int64_t incarnation; /* That must still stand when a batch begins. */
    sqlite3_stmt *statements[IDEM_SQLITE_STATEMENT_COUNT];
};

/* Takes `handle`, also on failure. */
enum idem_err idem_sqlite_connection_init(struct idem_sqlite_connection *connection,
                                          sqlite3 *handle,
                                          int64_t incarnation,
                                          struct idem_error *reterr) IDEM_MUST_CHECK;
void idem_sqlite_connection_deinit(struct idem_sqlite_connection *connection);

/* An opened, locked, checked file whose new incarnation is durable. */
struct idem_sqlite_file {
    sqlite3 *writer; /* The connections are whoever takes them and sets these to NULL. */
    sqlite3 *reader;
    sqlite3 *checkpointer;
    int lock_fd;     /* Of PATH.lock; -1: none. Held as long as the process may write. */
    int database_fd; /* Of the file itself, for its lock (and checkpoint.c); likewise. */
    int64_t incarnation;
    int64_t created_us;      /* When the store was made; 0: not known. */
    int64_t memory_since_us; /* Likewise, or when a copy was put back whose gap nobody listed. */
    int64_t newest_us;       /* The newest time that was stored; 0: none. */
    struct idem_run_marks marks;
    int64_t stub_count;
    int64_t webhook_count;
    bool restored;
    int64_t restored_from_us; /* The newest time that the copy had when it was put back, */
    int64_t restored_at_us;   /* and the clock then. */
    int64_t opened_us;        /* The clock now, before anybody raised it. */
    bool old_effect_ids;
};

enum idem_err idem_sqlite_file_open(struct idem_sqlite_file *file,
                                    const char *path,
                                    const struct idem_store_options *options,
                                    struct idem_error *reterr) IDEM_MUST_CHECK;
/* After the connections. Accepts half-opened files. */
void idem_sqlite_file_close(struct idem_sqlite_file *file);

struct idem_sqlite {
    struct idem_store base; /* First. The engine's thread. */
    struct idem_sqlite_file file;
    struct idem_queue batches; /* To the writer. */
    struct idem_queue reads;   /* To the reader. */
    struct idem_queue done_batches;
    struct idem_queue done_reads;
    atomic_bool broken; /* By the writer or from outside; nothing is run or read any more. */
    bool queues_made;
    bool writer_started;
    bool reader_started;
    pthread_t writer_thread;
    pthread_t reader_thread;

    /* The writer's. */
    struct idem_sqlite_checkpoint checkpoint;
    struct idem_sqlite_connection writer;
    struct idem_run run;
    int wal_frames;
    int checkpoint_frames; /* The next checkpoint is when the log has so many. */

    /* The reader's. */
    struct idem_sqlite_connection reader;
};

#endif /* IDEM_STORE_SQLITE_SQLITE_INTERNAL_H */
