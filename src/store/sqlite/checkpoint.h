/*
 * checkpoint.h - brings what stands in the log into the database file, on a thread of its own.
 *
 * Threads: the writer's, but for the thread inside.
 */
#ifndef IDEM_STORE_SQLITE_CHECKPOINT_H
#define IDEM_STORE_SQLITE_CHECKPOINT_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

enum idem_sqlite_wish {
    IDEM_SQLITE_WISH_NONE = 0,
    IDEM_SQLITE_WISH_SOME,  /* What can be done beside the writer. */
    IDEM_SQLITE_WISH_ALL,   /* All of it; the writer waits. */
    IDEM_SQLITE_WISH_LEAVE, /* The end. */
};

struct idem_sqlite_checkpoint {
    sqlite3 *handle;     /* Its own. */
    int database_fd;     /* Borrowed: of the database file. */
    atomic_bool *broken; /* Borrowed: the store's. Set here if a pass fails; then none follows. */
    void (*wake)(void *context); /* After that, unless NULL. To be set before the first wish. */
    void *wake_context;
    pthread_t thread;
    bool started;

    /* Under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum idem_sqlite_wish wish;
    bool running;  /* A pass. */
    bool complete; /* The last one left nothing in the log. */
};

/* Takes `handle`, also on failure. */
enum idem_err idem_sqlite_checkpoint_start(struct idem_sqlite_checkpoint *checkpoint,
                                           sqlite3 *handle,
                                           int database_fd,
                                           atomic_bool *broken,
                                           struct idem_error *reterr) IDEM_MUST_CHECK;

/* Begins a pass, now or after the one that runs, and returns. */
void idem_sqlite_checkpoint_some(struct idem_sqlite_checkpoint *checkpoint);

/* Waits for a pass over all of the log. False: a reader holds it, the disk is full, or broken. */
bool idem_sqlite_checkpoint_all(struct idem_sqlite_checkpoint *checkpoint);

/* Ends the thread and closes the connection. Accepts one that was never started. */
void idem_sqlite_checkpoint_stop(struct idem_sqlite_checkpoint *checkpoint);

#endif /* IDEM_STORE_SQLITE_CHECKPOINT_H */
