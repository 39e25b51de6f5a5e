/*
 * The embedded store: three threads, four queues, one file.
 *
 *   engine --batches--> writer --done_batches--> engine
 *   engine --reads----> reader --done_reads----> engine
 *
 * A thread waits for work, does it, pushes it to its done queue and wakes the engine. Nothing else
 * is shared but `broken`: once a commit was not answered cleanly, the writer decides nothing more
 * and the reader answers nothing more, because what it would show may not be there after a restart.
 *
 * The same goes for damage that a read or a write meets, and for a file that another process has
 * opened since: one file has one process, so this one is over, and a start that finds the other's
 * lock says so.
 *
 * Checkpoints (checkpoint.c) run beside the writer every CHECKPOINT_FRAMES; whenever one got to the
 * end, the log begins anew. From FINISH_FRAMES on the writer waits for one, after a batch was
 * answered, or the log would grow without limit. Free pages are given back between batches too. The
 * log is never truncated while the store is open. A checkpoint that cannot write or flush breaks
 * the store: after a failed fsync nobody knows what the disk has.
 */
#include <stdlib.h>

#include "base/bug.h"
#include "base/thread.h"
#include "store/read.h"
#include "store/sqlite/rows_internal.h"

#define CHECKPOINT_FRAMES 1000
#define FINISH_FRAMES     16000
#define GIVE_BACK_MIN     1000 /* Free pages that are kept for use again, */
#define GIVE_BACK_SHARE   10   /* and one in so many of the file. */

static struct idem_sqlite *sqlite_of(struct idem_store *store)
{
    return IDEM_CONTAINER_OF(store, struct idem_sqlite, base);
}

static void wake(const struct idem_sqlite *sqlite)
{
    sqlite->base.options.wake(sqlite->base.options.wake_context);
}

static int wal_frames_note(void *context, sqlite3 *handle, const char *name, int frames)
{
    (void)handle; /* There is one writing connection. */
    (void)name;   /* And one database. */
    struct idem_sqlite *sqlite = context;
    if (frames < sqlite->wal_frames) { /* It began anew. */
        sqlite->checkpoint_frames = CHECKPOINT_FRAMES;
    }
    sqlite->wal_frames = frames;
    return SQLITE_OK;
}

static void checkpoint_if_due(struct idem_sqlite *sqlite)
{
    if (sqlite->wal_frames < sqlite->checkpoint_frames || atomic_load(&sqlite->broken)) {
        return;
    }
    int more = CHECKPOINT_FRAMES;
    if (sqlite->wal_frames < FINISH_FRAMES) {
        idem_sqlite_checkpoint_some(&sqlite->checkpoint);
    } else if (!idem_sqlite_checkpoint_all(&sqlite->checkpoint)) {
        more = FINISH_FRAMES; /* In vain: a backup reads for long. */
    }
    sqlite->checkpoint_frames = sqlite->wal_frames + more;
}

/* A count that the writer asks for between batches. False: it cannot be had. */
static bool pages_count(struct idem_sqlite *sqlite,
                        enum idem_sqlite_statement which,
                        int64_t *ret_count)
{
    return idem_sqlite_find_i64(sqlite->writer.statements[which], ret_count) == IDEM_ROWS_OK;
}

/*
 * Gives a few free pages back to the file system after a batch that freed some, so that a file from
 * which much has expired becomes smaller, without ever holding up callers for long.
 */
static void pages_give_back(struct idem_sqlite *sqlite)
{
    int64_t free_pages = 0;
    int64_t pages = 0;
    if (!sqlite->run.freed || atomic_load(&sqlite->broken)) {
        return;
    }
    sqlite->run.freed = false;
    if (!pages_count(sqlite, IDEM_SQLITE_PAGES_FREE, &free_pages) ||
        !pages_count(sqlite, IDEM_SQLITE_PAGES, &pages) || free_pages < GIVE_BACK_MIN ||
        free_pages < pages / GIVE_BACK_SHARE) {
        return;
    }
    sqlite3_stmt *statement = sqlite->writer.statements[IDEM_SQLITE_GIVE_BACK];
    int rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW) { /* One a page. */
        rc = sqlite3_step(statement);
    }
    rc = sqlite3_reset(statement);
    if (!idem_sqlite_code_is_harmless(rc) || sqlite3_get_autocommit(sqlite->writer.handle) == 0) {
        sqlite->run.broken = true;
        atomic_store(&sqlite->broken, true);
        wake(sqlite); /* The batch was answered before: nothing else says it. */
    }
}

static void batch_run(struct idem_sqlite *sqlite, struct idem_store_batch *batch)
{
    sqlite->run.broken = sqlite->run.broken || atomic_load(&sqlite->broken);
    idem_run_batch(&sqlite->run, batch);
    if (batch->answer == IDEM_STORE_WRONG_NODE) {
        sqlite->run.broken = true;
    }
    if (sqlite->run.broken) {
        atomic_store(&sqlite->broken, true);
    }
    idem_queue_push(&sqlite->done_batches, &batch->node);
    wake(sqlite);
    pages_give_back(sqlite);
    checkpoint_if_due(sqlite);
}

static void *writer_main(void *argument)
{
    struct idem_sqlite *sqlite = argument;
    struct idem_list work = { .count = 0 };

    while (idem_queue_wait(&sqlite->batches, &work)) {
        struct idem_list_node *node = NULL;
        while ((node = idem_list_pop(&work)) != NULL) {
            batch_run(sqlite, IDEM_CONTAINER_OF(node, struct idem_store_batch, node));
        }
    }
    return NULL;
}

static void read_run(struct idem_sqlite *sqlite, struct idem_read *read)
{
    if (atomic_load(&sqlite->broken)) {
        read->found = false;
        read->answer = IDEM_STORE_DOWN;
        return;
    }
    if (!idem_read_run(&sqlite->reader.rows, sqlite->file.incarnation, read)) {
        atomic_store(&sqlite->broken, true);
    }
}

static void *reader_main(void *argument)
{
    struct idem_sqlite *sqlite = argument;
    struct idem_list work = { .count = 0 };

    while (idem_queue_wait(&sqlite->reads, &work)) {
        struct idem_list_node *node = NULL;
        while ((node = idem_list_pop(&work)) != NULL) {
            read_run(sqlite, IDEM_CONTAINER_OF(node, struct idem_read, node));
            idem_queue_push(&sqlite->done_reads, node);
        }
        wake(sqlite);
    }
    return NULL;
}

/* idem_store_break() was called: the threads learn of it before they see what comes next. */
static void break_pass_on(struct idem_store *store)
{
    if (store->broken) {
        atomic_store(&sqlite_of(store)->broken, true);
    }
}

static void sqlite_submit(struct idem_store *store, struct idem_store_batch *batch)
{
    break_pass_on(store);
    idem_queue_push(&sqlite_of(store)->batches, &batch->node);
}

static void sqlite_read(struct idem_store *store, struct idem_read *read)
{
    break_pass_on(store);
    idem_queue_push(&sqlite_of(store)->reads, &read->node);
}

static void sqlite_reap(struct idem_store *store,
                        struct idem_list *ret_batches,
                        struct idem_list *ret_reads)
{
    struct idem_sqlite *sqlite = sqlite_of(store);
    idem_queue_take(&sqlite->done_batches, ret_batches);
    idem_queue_take(&sqlite->done_reads, ret_reads);
    store->broken = store->broken || atomic_load(&sqlite->broken);
}

static void sqlite_stop(struct idem_store *store)
{
    struct idem_sqlite *sqlite = sqlite_of(store);
    idem_queue_close(&sqlite->batches);
    idem_queue_close(&sqlite->reads);
}

static void thread_join(pthread_t thread)
{
    int rc = pthread_join(thread, NULL);
    IDEM_ASSERT(rc == 0); /* It was started and is joined once. */
}

/* Accepts half-made stores. */
static void sqlite_destroy(struct idem_store *store)
{
    struct idem_sqlite *sqlite = sqlite_of(store);
    if (sqlite->queues_made) {
        sqlite_stop(store);
    }
    if (sqlite->writer_started) {
        thread_join(sqlite->writer_thread);
    }
    if (sqlite->reader_started) {
        thread_join(sqlite->reader_thread);
    }
    if (sqlite->writer.handle != NULL && atomic_load(&sqlite->broken)) {
        /* What stands in the log is for the next start to look at. */
        (void)sqlite3_db_config(sqlite->writer.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    idem_sqlite_checkpoint_stop(&sqlite->checkpoint);
    idem_sqlite_connection_deinit(&sqlite->reader); /* Before the writer: it cannot checkpoint. */
    idem_sqlite_connection_deinit(&sqlite->writer);
    idem_sqlite_file_close(&sqlite->file);
    if (sqlite->queues_made) {
        idem_queue_deinit(&sqlite->batches);
        idem_queue_deinit(&sqlite->reads);
        idem_queue_deinit(&sqlite->done_batches);
        idem_queue_deinit(&sqlite->done_reads);
    }
    free(sqlite);
}

static const struct idem_store_ops sqlite_ops = {
    .version = IDEM_STORE_OPS_VERSION,
    .name = "sqlite",
    .submit = sqlite_submit,
    .read = sqlite_read,
    .reap = sqlite_reap,
    .stop = sqlite_stop,
    .destroy = sqlite_destroy,
};

static void queues_make(struct idem_sqlite *sqlite)
{
    idem_queue_init(&sqlite->batches);
    idem_queue_init(&sqlite->reads);
    idem_queue_init(&sqlite->done_batches);
    idem_queue_init(&sqlite->done_reads);
    sqlite->queues_made = true;
}

static enum idem_err connections_make(struct idem_sqlite *sqlite, struct idem_error *reterr)
{
    struct idem_sqlite_file *file = &sqlite->file;
    sqlite3 *handle = file->writer;
    file->writer = NULL;
    enum idem_err err =
        idem_sqlite_connection_init(&sqlite->writer, handle, file->incarnation, reterr);
    if (err == IDEM_OK) {
        handle = file->reader;
        file->reader = NULL;
        err = idem_sqlite_connection_init(&sqlite->reader, handle, file->incarnation, reterr);
    }
    if (err == IDEM_OK) {
        (void)sqlite3_wal_hook(sqlite->writer.handle, wal_frames_note, sqlite); /* None before. */
    }
    return err;
}

static enum idem_err threads_start(struct idem_sqlite *sqlite, struct idem_error *reterr)
{
    sqlite3 *handle = sqlite->file.checkpointer;
    sqlite->file.checkpointer = NULL;
    enum idem_err err = idem_sqlite_checkpoint_start(
        &sqlite->checkpoint, handle, sqlite->file.database_fd, &sqlite->broken, reterr);
    if (err != IDEM_OK) {
        return err;
    }
    sqlite->checkpoint.wake = sqlite->base.options.wake;
    sqlite->checkpoint.wake_context = sqlite->base.options.wake_context;
    int rc = idem_thread_start(&sqlite->writer_thread, "idem-writer", writer_main, sqlite);
    sqlite->writer_started = rc == 0;
    if (rc == 0) {
        rc = idem_thread_start(&sqlite->reader_thread, "idem-reader", reader_main, sqlite);
        sqlite->reader_started = rc == 0;
    }
    return rc == 0 ? IDEM_OK : idem_error_set(reterr, IDEM_E_SYSTEM, "cannot start a thread");
}

/* What the file knows of itself. A copy that was put back misses what came after its own time. */
static void marks_note(struct idem_sqlite *sqlite)
{
    const struct idem_sqlite_file *file = &sqlite->file;
    sqlite->base.incarnation = file->incarnation;
    sqlite->base.horizon_us = file->marks.horizon_us;
    sqlite->base.restored = file->restored;
    sqlite->base.newest_us = file->restored ? file->restored_from_us : file->newest_us;
    sqlite->base.opened_us = file->restored ? file->restored_at_us : file->opened_us;
    sqlite->base.old_effect_ids = file->old_effect_ids;
    idem_clock_raise(sqlite->base.options.clock, file->marks.seen_us);
}

enum idem_err idem_sqlite_open(const char *path,
                               const struct idem_store_options *options,
                               struct idem_store **ret_store,
                               struct idem_error *reterr)
{
    IDEM_ASSERT(options->rules != NULL);
    IDEM_ASSERT(options->wake != NULL);
    struct idem_sqlite *sqlite = calloc(1, sizeof(*sqlite));
    if (sqlite == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "out of memory");
    }
    sqlite->base.ops = &sqlite_ops;
    sqlite->base.options = *options;
    sqlite->base.batches_in_flight_max = 1;
    sqlite->checkpoint_frames = CHECKPOINT_FRAMES;

    enum idem_err err = idem_sqlite_file_open(&sqlite->file, path, options, reterr);
    if (err == IDEM_OK) {
        err = connections_make(sqlite, reterr);
    }
    if (err == IDEM_OK) {
        marks_note(sqlite);
        struct idem_run_opening opening = {
            .incarnation = sqlite->file.incarnation,
            .opened_us = idem_clock_wall_us(options->clock),
            .memory_since_us = sqlite->file.memory_since_us,
            .restored_at_us = sqlite->file.restored_at_us,
            .stub_count = sqlite->file.stub_count,
            .webhook_count = sqlite->file.webhook_count,
            .restored = sqlite->file.restored,
        };
        idem_run_init(&sqlite->run, &sqlite->writer.rows, &sqlite->base.options, opening);
        queues_make(sqlite);
        err = threads_start(sqlite, reterr);
    }
    if (err != IDEM_OK) {
        sqlite_destroy(&sqlite->base);
        return err;
    }
    *ret_store = &sqlite->base;
    return IDEM_OK;
}
