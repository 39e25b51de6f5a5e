/*
 * listener.h - hints between instances: somebody waits for this intent; it need not be waited for.
 *
 * Whoever waits for an intent that another instance may end says so to all of them (channel
 * `idem_wanted`). An instance whose commit ended it answers on the channel of the one that waits
 * (`idem_N`), afterwards and in a transaction of its own; where nobody elsewhere waits, nothing is
 * sent. Payloads are handles of rows and numbers of instances: they tell nothing to whom they do
 * not concern, and nobody believes them. What is heard is only a reason to look into the store.
 *
 * Nothing of it is kept: a hint that is lost (a connection that ends, a full table, an instance
 * that came later) costs the time until the next look. The connection is its own, is asked every
 * few seconds whether it lives, and is made anew with growing pauses.
 *
 * Threads: one of its own; the functions from any.
 */
#ifndef IDEM_STORE_POSTGRES_LISTENER_H
#define IDEM_STORE_POSTGRES_LISTENER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/look.h"
#include "store/postgres/wire.h"

struct idem_postgres_settings;

#define IDEM_POSTGRES_WISHES_MAX 4096

/* An instance that waits for an intent. */
struct idem_postgres_wish {
    int64_t row;
    int64_t instance;
    int64_t until_us; /* Monotonic: nobody waits longer without saying so again. */
};

struct idem_postgres_listener {
    const struct idem_postgres_settings *settings; /* Borrowed. */
    int64_t incarnation;
    void (*heard)(void *context); /* From the listener's thread. */
    void *context;

    /* The thread's own. */
    struct idem_postgres_wire wire;
    int64_t retry_us; /* Monotonic: not connected before. */
    int64_t pause_us;
    int64_t sign_us; /* Monotonic: when the connection is asked next. */
    pthread_t thread;
    bool started;

    atomic_bool connected;
    atomic_size_t wish_count; /* May be looked at without the mutex. */
    int wake[2];              /* A pipe: written to, the thread looks again. */
    pthread_mutex_t mutex;
    /* Under the mutex. */
    bool stops;
    struct idem_postgres_wish wishes[IDEM_POSTGRES_WISHES_MAX]; /* Of other instances. */
    struct idem_postgres_wish over[IDEM_POSTGRES_WISHES_MAX];   /* To be told; fulfilled. */
    size_t over_count;
    int64_t wanted[IDEM_READ_WAITED_MAX]; /* What was asked for last, in order ... */
    size_t wanted_count;
    int64_t wanted_all_us;                /* Monotonic: ... is said again from here on. */
    int64_t unsaid[IDEM_READ_WAITED_MAX]; /* Of these, to be said. */
    size_t unsaid_count;
};

/* `listener` is zeros. False: the system has no pipe. */
bool idem_postgres_listener_init(struct idem_postgres_listener *listener,
                                 const struct idem_postgres_settings *settings);
/* 0, or what the system says. */
int idem_postgres_listener_start(struct idem_postgres_listener *listener,
                                 int64_t incarnation,
                                 void (*heard)(void *context),
                                 void *context);
/* Stops it first. Also of one that was never started. */
void idem_postgres_listener_deinit(struct idem_postgres_listener *listener);

/* This instance waits for these, in order of `row`, and for no others. */
void idem_postgres_listener_want(struct idem_postgres_listener *listener,
                                 const struct idem_due *waited,
                                 size_t count);

/* Its commit is durable, and the intent need not be waited for. */
void idem_postgres_listener_over(struct idem_postgres_listener *listener, int64_t row);

#endif /* IDEM_STORE_POSTGRES_LISTENER_H */
