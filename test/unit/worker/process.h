/*
 * process.h - not a test: a process with an engine, a store and the workers under test, whose clock
 * only moves when a test moves it.
 *
 * One process at a time. The next one opens the same SQLite file; a memory store dies with its
 * process. What the engine's harness offers (answers of the store, the provider) is there too.
 */
#ifndef IDEM_TEST_UNIT_WORKER_PROCESS_H
#define IDEM_TEST_UNIT_WORKER_PROCESS_H

#include "unit/engine/harness.h"
#include "unit/store/fixture.h"
#include "worker/reaper.h"
#include "worker/restore.h"

struct process {
    struct fixture fixture;
    struct idem_reaper *reaper;   /* NULL: none runs. */
    struct idem_restore *restore; /* Likewise. */
};

extern struct process process;

void process_init(enum fixture_kind kind); /* Rules and options may be changed between this ... */
void process_start(void);                  /* ... and this: a store and an engine. */
void process_start_reaper(void);
void process_start_restore(void);

void process_round(void);      /* One step of everything. */
void process_go_on(void);      /* Until nothing is under way but what the test holds. */
void process_pass(int64_t us); /* Time, then that. */

/* Ends; nothing that is not durable is known to the next one. */
void process_end(void);
void process_deinit(void); /* Likewise, and the store's files go. */

/* When a worker wants to be woken, from now. */
int64_t process_wake_in(void);

/* Gives `key` up: a final answer, 409, that no payment belongs to. */
struct idem_request *process_abandon(struct idem_request *request, const char *key);

#endif /* IDEM_TEST_UNIT_WORKER_PROCESS_H */
