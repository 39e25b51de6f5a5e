/*
 * pg_scene.h - a store on a private PostgreSQL server, and what is done to the server from outside:
 * a standby that never answers, strangers with open transactions, waits that are cancelled.
 *
 * Waiting is for what the server itself says about its backends; everything has an end.
 */
#ifndef IDEM_TEST_UNIT_STORE_PG_SCENE_H
#define IDEM_TEST_UNIT_STORE_PG_SCENE_H

#include <libpq-fe.h>

#include "lib/test.h"
#include "unit/store/fixture.h"

#define TRIES_MAX 3000
#define STEP_MS   10

/* A batch that is in flight while the test does something. */
struct flight {
    struct call call;
    struct idem_store_batch batch;
};

/* `*state` is the fixture, open or not. */
int pg_setup_closed(void **state);
int pg_setup(void **state);
int pg_teardown(void **state);

/* Another instance on the same database, with a clock of its own. */
void pg_second_open(struct fixture *second, struct fixture *first);
void pg_second_close(struct fixture *second);

/* Opening says so, with `word` in its reason. */
void pg_expect_refused(struct fixture *fixture, const char *word);
void pg_expect_answer(enum idem_store_answer answer, const char *name);
long long pg_count_intents(void);

void pg_flight_submit(struct fixture *fixture, struct flight *flight);
enum idem_store_answer pg_flight_reap(struct fixture *fixture, struct flight *flight);

/* Until `sql` says a number that is not 0; which. */
long long pg_wait_for(const char *sql);

/* From now on every COMMIT waits for a standby that never comes, or not any more. */
void pg_standby_expect(bool expected);

/* A command that finds nothing: the writer is connected, and waits for no standby to begin. */
void pg_writer_connect(struct fixture *fixture);

/* Runs the same command until somebody knows: one payment, told to be sent as it was. */
void pg_expect_found_out(struct fixture *fixture, struct call *call);

/* A stranger's transaction, for as long as it is open. PQfinish() ends it. */
PGconn *pg_stranger_begin(const char *sql);

#endif /* IDEM_TEST_UNIT_STORE_PG_SCENE_H */
