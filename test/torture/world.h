/*
 * world.h - one service without its loop: the real store in a file, engine and recovery worker, a
 * provider that keeps books, and callers who write down what they were told.
 *
 * The provider does not deduplicate, but for one payment at another entry of it: each send that
 * arrives executes, so a second one shows; and what was left open is sent again by itself. Books
 * and what was told outlive a service that ends; a second one opens the same file. The clock moves
 * only when nothing else can. Every wait is bounded by real time.
 *
 * Threads: one, besides the store's.
 */
#ifndef IDEM_TEST_TORTURE_WORLD_H
#define IDEM_TEST_TORTURE_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/digest.h"
#include "base/error.h"

/* What callers ask for. Before DEED_FIRST everything has its answer when a run begins. */
enum deed {
    DEED_OLD = 0, /* A payment that was captured. */
    DEED_HELD,    /* One that was authorized. */
    DEED_FIRST,
    DEED_PAY = DEED_FIRST,
    DEED_LOST,    /* It executes, and the answer is lost. */
    DEED_BAD,     /* Declined. */
    DEED_NEVER,   /* The provider says: not executed. */
    DEED_REFUND,  /* Of DEED_OLD. */
    DEED_CAPTURE, /* Of DEED_HELD. */
    DEED_COUNT
};

/* Under which effect secret a store is made; the process's. */
extern struct idem_digest world_secret_check;

/* Called when a send has arrived at the provider, unless NULL. */
extern void (*world_on_send)(enum deed deed);

/* Nothing happened yet, nobody was told anything. */
void world_init(void);

/* The service: store, engine, worker. On failure nothing is left open. */
enum idem_err world_open(struct idem_error *reterr) IDEM_MUST_CHECK;
void world_close(void);

/* Puts the request through and writes down what was told. False: the service takes nothing more. */
bool world_ask(enum deed deed);

/* Without a caller, until nothing is due soon. */
void world_rest(void);

/* What is held to be true from now on, as if each run began here. */
void world_keep(void);
void world_back(void);

/* What lies on the disk and what is known now, as if the process died here; and back to it. */
void world_die(void);
void world_return(void);

/* After the last fault: a new service on the same file, judged by books and by what was told. */
void world_judge(void);

#endif /* IDEM_TEST_TORTURE_WORLD_H */
