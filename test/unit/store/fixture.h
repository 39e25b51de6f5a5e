/*
 * fixture.h - a store with a clock that stands still, and real commands to put through it.
 *
 * Used by the unit tests of this folder and by test/conform. Every command goes through the store's
 * public door and the real idem_decide(); the provider is a row of rules and a readable encoding.
 */
#ifndef IDEM_TEST_UNIT_STORE_FIXTURE_H
#define IDEM_TEST_UNIT_STORE_FIXTURE_H

#include <pthread.h>

#include "lib/pg_server.h"
#include "store/postgres/postgres.h"
#include "store/rows.h"
#include "store/store.h"

enum fixture_kind {
    FIXTURE_MEMORY,
    FIXTURE_SQLITE,
    FIXTURE_POSTGRES
};

struct fixture {
    enum fixture_kind kind;
    struct idem_store *store;
    struct idem_clock clock; /* Stands still until a test moves wall_base_us. */
    struct idem_rules rules;
    struct idem_provider_rules provider;
    struct idem_store_options options;
    char directory[64];
    char path[96];
    struct idem_postgres_settings postgres;
    uint64_t uid_next;
    struct idem_read read; /* For one read at a time. */

    pthread_mutex_t mutex;
    pthread_cond_t woken;
    size_t wake_count;
};

/* One command with all memory that it needs. */
struct call {
    struct idem_store_item item;
    struct idem_outcome outcome;
};

#define FIXTURE_START_US INT64_C(1800000000000000)

/* Fails the test if it cannot. */
void fixture_init(struct fixture *fixture, enum fixture_kind kind);
void fixture_open(struct fixture *fixture);
void fixture_close(struct fixture *fixture);
void fixture_deinit(struct fixture *fixture); /* Closes, and removes the files. */

/* Waits until the store has called `wake` since the last wait. */
void fixture_wait(struct fixture *fixture);

/* The program's one server, started when it is first needed. */
struct pg_server *fixture_server(void);

/* Opens the file with options of the test's own; the store is given. */
enum idem_err fixture_try_open(struct fixture *fixture,
                               struct idem_store **ret_store,
                               struct idem_error *reterr);

struct idem_uid fixture_uid(struct fixture *fixture);
struct idem_scope fixture_scope(const char *principal,
                                enum idem_endpoint endpoint,
                                const char *key);

/* What one caller asks for. */
struct order {
    const char *principal;
    const char *key;
    const char *order_no;
    const char *description; /* NULL: none. */
    int64_t amount_minor;
    bool manual;    /* Authorize only. */
    bool no_slot;   /* No place on the wire: claimed only. */
    bool impatient; /* Does not wait: what was not executed is released at once. */
};

/* A command with ids and a token of its own; the rest is the test's to fill in. */
struct idem_command *call_begin(struct fixture *fixture,
                                struct call *call,
                                enum idem_command_kind kind);

void call_pay(struct fixture *fixture, struct call *call, const struct order *order);

/* A capture, cancel or refund of `payment_id`. */
struct act {
    const char *principal;
    const char *key;
    enum idem_endpoint endpoint;
    struct idem_uid payment_id;
    const char *amount;    /* NULL: all. */
    const char *refund_no; /* NULL: none. */
};

void call_act(struct fixture *fixture, struct call *call, const struct act *act);

/* The answer to the last send of `to`, or to a question about it. */
void call_evidence(struct fixture *fixture,
                   struct call *call,
                   const struct call *to,
                   enum idem_evidence_source source,
                   enum idem_outcome_kind outcome);
void call_due(struct fixture *fixture, struct call *call, struct idem_scope scope, int64_t row);
void call_abandon(struct fixture *fixture,
                  struct call *call,
                  const char *principal,
                  const char *key);

/* Submits one batch and waits until it is reaped. */
enum idem_store_answer fixture_run(struct fixture *fixture, struct call *calls, size_t count);

/* Likewise, and fails the test unless it is DURABLE. */
void fixture_run_durable(struct fixture *fixture, struct call *calls, size_t count);

/* Clears fixture->read for a request, and puts it through. */
struct idem_read *fixture_ask(struct fixture *fixture,
                              enum idem_read_kind kind,
                              const char *principal);
void fixture_read(struct fixture *fixture);

/* Both of the above for an operation by scope. */
struct idem_read *fixture_operation(struct fixture *fixture, const struct call *call);

/*
 * The rows port that the store's own batches use, for writes without a command: nobody else uses it
 * while no batch is in flight. The store does not know of what is written so.
 */
struct idem_rows *fixture_rows(struct fixture *fixture);

/* A transaction on it, which may write. */
void fixture_rows_begin(struct idem_rows *rows);
void fixture_rows_commit(struct idem_rows *rows);

/* A guard did not hold, which some know at the flush only; undoes the transaction, begins anew. */
void fixture_rows_expect_miss(struct idem_rows *rows, enum idem_rows_step step);

#endif /* IDEM_TEST_UNIT_STORE_FIXTURE_H */
