/*
 * idem.h - idempotency records in the caller's own database, in the caller's own transaction.
 *
 * A *record* is one intent of the caller's code: (principal, endpoint, key), bound to a fingerprint
 * of the request. It changes together with the caller's business rows or not at all: a commit keeps
 * both, a rollback or a crash frees the key. At most one caller at a time is told to execute, and
 * what is over is replayed. Works in SQLite and in PostgreSQL; docs/library.md shows the patterns.
 *
 *     BEGIN IMMEDIATE            one transaction, when all the work is rows of this database
 *     idem_local_claim(local_only)  -> EXECUTE, or REPLAY with the answer
 *     ... business rows ...
 *     idem_local_complete(answer)
 *     COMMIT                     not before it is committed may anybody be told
 *
 * When something outside must happen (a payment, an e-mail), three transactions:
 *
 *     claim, dispatch            committed *before* the outside is called: from here on a crash
 *                                leaves a record that says "it may have happened", and no second
 *                                caller is sent out by a timer
 *     call with the effect id    as the outside's idempotency key
 *     complete                   or release(not_executed), or nothing, if nobody can say
 *
 * Work of several steps marks each one (idem_local_mark) in the transaction of that step, and the
 * next claim is told the last step that is done.
 *
 * Transactions: every call that writes needs a transaction that the caller has begun, and never
 * begins, commits or rolls back one. What it says counts once that transaction is committed; if
 * COMMIT fails or its answer is lost, claim again: the record tells. SQLite: BEGIN IMMEDIATE, since
 * a transaction that began by reading cannot always write later (IDEM_LOCAL_E_BUSY). PostgreSQL:
 * READ COMMITTED is meant; with a stricter level the database may refuse (IDEM_LOCAL_E_BUSY).
 *
 * Waiting: for another transaction as long as the connection says (SQLite: sqlite3_busy_timeout;
 * PostgreSQL: lock_timeout), and for a PostgreSQL server at most `wait_ms`.
 *
 * Time: PostgreSQL's clock; with SQLite this machine's, which never goes back behind what the file
 * has seen. A lease is for finding out that somebody is gone; it is no lock on the outside world.
 *
 * Ownership: arguments are borrowed for the call. Records belong to the caller. Nothing is kept
 * between calls, on the connection or elsewhere.
 * Threads: as the connection is used: one thread at a time. Different connections need no care.
 * Structs that the caller fills in begin with their size, so that later versions can add members;
 * zero is always the default: `{ .size = sizeof(struct idem_local_claim) }`.
 */
#ifndef IDEM_IDEM_H
#define IDEM_IDEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "idem/fingerprint.h"
#include "idem/idem_record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sqlite3; /* sqlite3.h calls it sqlite3. */
struct pg_conn; /* libpq-fe.h calls it PGconn. */

/* The caller's connection: exactly one of the two. Borrowed; it may live on the stack. */
struct idem_local {
    size_t size;
    struct sqlite3 *sqlite;   /* Its main database. */
    struct pg_conn *postgres; /* Not in pipeline mode, client_encoding UTF8. */
    /*
     * PostgreSQL: for how long a server may be silent; 0: 30 s. After that (E_DATABASE) nothing is
     * committed and the connection is of no more use: PQfinish.
     */
    int64_t wait_ms;
};

/*
 * SQLite: makes the tables idem_local_* in the caller's file or brings them up to this version, in
 * the caller's transaction. Refused (IDEM_LOCAL_E_INSTALL) if they are of a newer version, and in a
 * file that `idem serve` or an idem_client uses. PostgreSQL: tells whether the functions are there
 * in a version that this library can use; `psql -f idem.sql` installs them.
 */
IDEM_API enum idem_local_err idem_local_install(const struct idem_local *local,
                                                struct idem_local_error *reterr);

struct idem_local_claim {
    size_t size;
    const char *principal; /* For whom. Never mixed: another principal's keys are other keys. */
    const char *endpoint;  /* What is to be done: "orders.create". */
    const char *key;
    const void *fingerprint; /* Of everything that must be the same in a repeat. */
    size_t fingerprint_size;
    int64_t lease_ms; /* 1 s to 24 h; 0: 60 s. */
    /*
     * This attempt touches nothing but this database: it may be taken over when its lease has
     * ended, and must not dispatch.
     */
    bool local_only;
};

/*
 * May this request be executed now? Never two are told EXECUTE at once, and a lease that has ended
 * is taken over only where nothing outside can have happened. While another transaction has the
 * key, IN_PROGRESS: the caller's transaction can be used further. Gives a record.
 */
IDEM_API enum idem_local_err idem_local_claim(const struct idem_local *local,
                                              const struct idem_local_claim *claim,
                                              struct idem_local_record **ret_record,
                                              struct idem_local_error *reterr);

/*
 * The outside is about to be called. Commit this first, then call it with result.effect_id as its
 * idempotency key. `effect` names one of several; NULL or "": it has none. DONE; ALREADY, with the
 * effect id too; SUPERSEDED, also when the lease is over; OTHER_EFFECT; LOCAL_ONLY; BUSY.
 */
IDEM_API enum idem_local_err idem_local_dispatch(const struct idem_local *local,
                                                 const struct idem_local_token *token,
                                                 const char *effect,
                                                 struct idem_local_result *ret_result,
                                                 struct idem_local_error *reterr);

/* The lease lasts `lease_ms` from now (0: 60 s). DONE; SUPERSEDED, also if it was over; BUSY. */
IDEM_API enum idem_local_err idem_local_heartbeat(const struct idem_local *local,
                                                  const struct idem_local_token *token,
                                                  int64_t lease_ms,
                                                  struct idem_local_result *ret_result,
                                                  struct idem_local_error *reterr);

struct idem_local_step {
    size_t size;
    const char *name;
    const void *data; /* What the next steps need; may be NULL with size 0. */
    size_t data_size;
    int64_t lease_ms; /* mark: the lease ends no earlier than this from now; 0: 60 s. */
};

/*
 * A recovery point, in the same transaction as the step's rows: `step` is done and need not be done
 * again. After a dispatch it says that the outside call is done and known. DONE; ALREADY: this step
 * is the one that stands there; SUPERSEDED; BUSY.
 */
IDEM_API enum idem_local_err idem_local_mark(const struct idem_local *local,
                                             const struct idem_local_token *token,
                                             const struct idem_local_step *step,
                                             struct idem_local_result *ret_result,
                                             struct idem_local_error *reterr);

struct idem_local_answer {
    size_t size;
    enum idem_local_verdict verdict; /* SUCCEEDED or FAILED; both are final and replayed. */
    int status;                      /* 0 to 999; the caller's own meaning. */
    const char *headers;             /* NULL: none. */
    const void *body;
    size_t body_size;
    int64_t retention_ms; /* For how long it is replayed: 1 hour to 3660 days; 0: 30 days. */
};

/*
 * The work is over and this is its answer, in the same transaction as its last rows. DONE; ALREADY:
 * it ended with this verdict, and the first answer stays; CONTRADICTION; BUSY. SUPERSEDED: if the
 * effect did happen, bring that to idem_local_settle().
 */
IDEM_API enum idem_local_err idem_local_complete(const struct idem_local *local,
                                                 const struct idem_local_token *token,
                                                 const struct idem_local_answer *answer,
                                                 struct idem_local_result *ret_result,
                                                 struct idem_local_error *reterr);

/*
 * Nothing happened: the next claim of the same request may execute. Once dispatched only with
 * `not_executed`: the caller vouches that its call never left, or was refused before execution.
 * DONE, ALREADY, SUPERSEDED, NOT_PROVEN, BUSY.
 */
IDEM_API enum idem_local_err idem_local_release(const struct idem_local *local,
                                                const struct idem_local_token *token,
                                                bool not_executed,
                                                struct idem_local_result *ret_result,
                                                struct idem_local_error *reterr);

struct idem_local_name {
    size_t size;
    const char *principal;
    const char *endpoint;
    const char *key;
};

struct idem_local_evidence {
    size_t size;
    struct idem_local_name name;     /* Its size counts too. */
    struct idem_local_answer answer; /* Likewise. With (NOT_)EXECUTED only the verdict counts. */
    struct idem_local_step step;     /* EXECUTED: what is done, and what the next ones need. */
    /* About which effect: with EXECUTED NULL is the one without a name; else NULL is any. */
    const char *effect;
    const char *by;     /* Who says so: a person, or a job that asked. */
    const char *reason; /* Where it was found. */
};

/*
 * What somebody found out, which needs no token: the outside's own final word, or a person's.
 * SUCCEEDED and FAILED end the record. EXECUTED: the outside step is done; the record is free, and
 * the next claim goes on after it. NOT_EXECUTED: nothing happened, and nothing that was sent can
 * still; the next claim does it. DONE, ALREADY, CONTRADICTION, OTHER_EFFECT, ABSENT, BUSY, and
 * NOT_PROVEN: an attempt is at it, and may still send.
 */
IDEM_API enum idem_local_err idem_local_settle(const struct idem_local *local,
                                               const struct idem_local_evidence *evidence,
                                               struct idem_local_result *ret_result,
                                               struct idem_local_error *reterr);

/* What there is. No transaction is needed. `*ret_record` is NULL if there is none. */
IDEM_API enum idem_local_err idem_local_lookup(const struct idem_local *local,
                                               const struct idem_local_name *name,
                                               struct idem_local_record **ret_record,
                                               struct idem_local_error *reterr);

/* Several records; all of it belongs to the caller: idem_local_list_free(). */
struct idem_local_list {
    size_t count;
    struct idem_local_record *const *records;
};

/*
 * What nobody is at any more, oldest first, at most `limit` (1 to 10000): claims to be taken over
 * by claiming again (state CLAIMED or RELEASED), and doubts to be settled (IN_DOUBT). Changes
 * nothing; no transaction is needed.
 */
IDEM_API enum idem_local_err idem_local_due(const struct idem_local *local,
                                            int limit,
                                            struct idem_local_list **ret_list,
                                            struct idem_local_error *reterr);

/*
 * Forgets what is past its retention, at most `limit` records (1 to 10000), only what is over; call
 * it until there are fewer. Time decides what is EXPIRED, not this: it only makes room.
 */
IDEM_API enum idem_local_err idem_local_reap(const struct idem_local *local,
                                             int limit,
                                             struct idem_local_reaped *ret_reaped,
                                             struct idem_local_error *reterr);

/* Both accept NULL. */
IDEM_API void idem_local_record_free(struct idem_local_record *record);
IDEM_API void idem_local_list_free(struct idem_local_list *list);

/* "execute", "replay", "in_progress", ...; "claimed", ..., "unknown", ... Never NULL. */
IDEM_API const char *idem_local_outcome_name(enum idem_local_outcome outcome);
IDEM_API const char *idem_local_state_name(enum idem_local_state state);

#ifdef __cplusplus
}
#endif

#endif /* IDEM_IDEM_H */
