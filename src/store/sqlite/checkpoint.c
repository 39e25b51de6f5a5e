/*
 * Checkpoints beside the writer.
 *
 * A checkpoint reads pages from the log, writes them into the database file and, if it got to the
 * log's end, flushes that file. Done by the writer it holds up every caller for as long as the disk
 * takes to write some thousand pages at random places. So a pass runs on a thread and a connection
 * of its own, PASSIVE, which neither waits for anybody nor is waited for.
 *
 * Under load the writer is always ahead of it: a pass never gets to the log's end, SQLite never
 * flushes, the system collects what was written, and the pass that does get there pays for all of
 * it at once. That is why each pass has the system begin to write what it has (sync_file_range()
 * starts, and does not wait). It is no flush and no promise; those are SQLite's alone. The
 * descriptor for it is the one that holds our lock: closing any descriptor of the file while it is
 * open would drop SQLite's locks.
 *
 * Once the log is long the writer stands still and waits for a pass over what is left (RESTART,
 * which also waits for readers), after which the log begins anew.
 */
#include "store/sqlite/checkpoint.h"

#include <fcntl.h>

#include "base/bug.h"
#include "base/thread.h"
#include "store/sqlite/rows_internal.h"

/* These calls fail only when the program uses them wrongly. */
static void must(int rc)
{
    IDEM_ASSERT(rc == 0);
}

/* True: nothing is left in the log. The mutex is not held. */
static bool pass_run(const struct idem_sqlite_checkpoint *checkpoint, enum idem_sqlite_wish wish)
{
    int mode = wish == IDEM_SQLITE_WISH_ALL ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;
    int in_log = 0;
    int done = 0;
    if (atomic_load(checkpoint->broken)) {
        return false;
    }
    int rc = sqlite3_wal_checkpoint_v2(checkpoint->handle, NULL, mode, &in_log, &done);
    if (!idem_sqlite_code_is_harmless(rc)) {
        /* After a failed flush nobody knows what the disk has, and the next would not say. */
        atomic_store(checkpoint->broken, true);
        if (checkpoint->wake != NULL) {
            checkpoint->wake(checkpoint->wake_context);
        }
        return false;
    }
    /* A wish: where it is not granted, a later flush takes longer. */
    (void)sync_file_range(checkpoint->database_fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    return rc == SQLITE_OK && in_log >= 0 && in_log == done;
}

static void *thread_main(void *argument)
{
    struct idem_sqlite_checkpoint *checkpoint = argument;
    must(pthread_mutex_lock(&checkpoint->mutex));
    while (checkpoint->wish != IDEM_SQLITE_WISH_LEAVE) {
        if (checkpoint->wish == IDEM_SQLITE_WISH_NONE) {
            must(pthread_cond_wait(&checkpoint->changed, &checkpoint->mutex));
            continue;
        }
        enum idem_sqlite_wish wish = checkpoint->wish;
        checkpoint->wish = IDEM_SQLITE_WISH_NONE;
        checkpoint->running = true;
        must(pthread_mutex_unlock(&checkpoint->mutex));
        bool complete = pass_run(checkpoint, wish);
        must(pthread_mutex_lock(&checkpoint->mutex));
        checkpoint->complete = complete;
        checkpoint->running = false;
        must(pthread_cond_broadcast(&checkpoint->changed));
    }
    must(pthread_mutex_unlock(&checkpoint->mutex));
    return NULL;
}

enum idem_err idem_sqlite_checkpoint_start(struct idem_sqlite_checkpoint *checkpoint,
                                           sqlite3 *handle,
                                           int database_fd,
                                           atomic_bool *broken,
                                           struct idem_error *reterr)
{
    *checkpoint = (struct idem_sqlite_checkpoint){
        .handle = handle,
        .database_fd = database_fd,
        .broken = broken,
    };
    must(pthread_mutex_init(&checkpoint->mutex, NULL));
    must(pthread_cond_init(&checkpoint->changed, NULL));
    int rc = idem_thread_start(&checkpoint->thread, "idem-checkpoint", thread_main, checkpoint);
    checkpoint->started = rc == 0;
    if (!checkpoint->started) {
        (void)sqlite3_close(handle); /* No statement is open. */
        return idem_error_set(reterr, IDEM_E_SYSTEM, "cannot start a thread");
    }
    return IDEM_OK;
}

static void wish_set(struct idem_sqlite_checkpoint *checkpoint, enum idem_sqlite_wish wish)
{
    must(pthread_mutex_lock(&checkpoint->mutex));
    checkpoint->wish = wish;
    must(pthread_cond_broadcast(&checkpoint->changed));
    must(pthread_mutex_unlock(&checkpoint->mutex));
}

void idem_sqlite_checkpoint_some(struct idem_sqlite_checkpoint *checkpoint)
{
    wish_set(checkpoint, IDEM_SQLITE_WISH_SOME);
}

bool idem_sqlite_checkpoint_all(struct idem_sqlite_checkpoint *checkpoint)
{
    wish_set(checkpoint, IDEM_SQLITE_WISH_ALL);
    must(pthread_mutex_lock(&checkpoint->mutex));
    while (checkpoint->wish == IDEM_SQLITE_WISH_ALL || checkpoint->running) {
        must(pthread_cond_wait(&checkpoint->changed, &checkpoint->mutex));
    }
    bool complete = checkpoint->complete;
    must(pthread_mutex_unlock(&checkpoint->mutex));
    return complete;
}

void idem_sqlite_checkpoint_stop(struct idem_sqlite_checkpoint *checkpoint)
{
    if (!checkpoint->started) {
        return;
    }
    wish_set(checkpoint, IDEM_SQLITE_WISH_LEAVE);
    must(pthread_join(checkpoint->thread, NULL));
    (void)sqlite3_close(checkpoint->handle); /* No statement is open. */
    must(pthread_cond_destroy(&checkpoint->changed));
    must(pthread_mutex_destroy(&checkpoint->mutex));
    checkpoint->started = false;
}
