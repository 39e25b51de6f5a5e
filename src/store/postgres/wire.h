/*
 * wire.h - one connection to the server, driven so that no wait is without an end.
 *
 * Statements are queued in libpq's pipeline and answered together by idem_postgres_wire_round().
 * Every wait has a deadline of this side: the server's own time limits do not interrupt a commit
 * that waits for a standby. Whatever goes wrong with the connection itself ends it.
 *
 * Threads: one.
 */
#ifndef IDEM_STORE_POSTGRES_WIRE_H
#define IDEM_STORE_POSTGRES_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* libpq's own, by their tags: its header is not where every compiler looks. */
struct pg_conn;
struct pg_result;

#define IDEM_POSTGRES_ARGS_MAX    64
#define IDEM_POSTGRES_PENDING_MAX 2048
#define IDEM_POSTGRES_STATE_LEN   5 /* Of an SQLSTATE. */

/* Parameters of one statement, in binary. Texts and bytes are borrowed until it is queued. */
struct idem_postgres_args {
    int count;
    const char *values[IDEM_POSTGRES_ARGS_MAX];
    int lengths[IDEM_POSTGRES_ARGS_MAX];
    char numbers[IDEM_POSTGRES_ARGS_MAX][8];
};

void idem_postgres_arg_i64(struct idem_postgres_args *args, int64_t value);
void idem_postgres_arg_bool(struct idem_postgres_args *args, bool value);
void idem_postgres_arg_text(struct idem_postgres_args *args, struct idem_str text);
void idem_postgres_arg_bytes(struct idem_postgres_args *args, const void *bytes, size_t size);

/* How a round ended. */
enum idem_postgres_end {
    IDEM_POSTGRES_END_OK = 0,
    IDEM_POSTGRES_END_MISS,  /* A statement that had to touch one row touched none. */
    IDEM_POSTGRES_END_ERROR, /* The server refused a statement: `state`. */
    IDEM_POSTGRES_END_GONE   /* The connection ended, by either side. It is closed. */
};

/* What a queued statement's answer must be, and where it goes. */
struct idem_postgres_pending {
    bool guarded;              /* It changes exactly one row. */
    bool *done;                /* NULL, or set once it was answered without an error. */
    struct pg_result **result; /* NULL: its rows do not matter. Given: clear it. */
};

struct idem_postgres_wire {
    struct pg_conn *handle; /* NULL: not connected. */
    int64_t wait_us;        /* The longest wait for the next word; for all hosts together. */
    size_t host;            /* Which of the URL's answered last. */
    bool warned;            /* The server sent a WARNING since this was last cleared. */
    bool refused;           /* When it was last asked what it is, it was not what it must be. */
    char
        state[IDEM_POSTGRES_STATE_LEN + 1]; /* Of the last END_ERROR; of GONE if the server said. */
    struct idem_error error;                /* What was said last, for a person. */
    struct idem_postgres_pending pending[IDEM_POSTGRES_PENDING_MAX];
    size_t pending_count;
    bool broken;       /* Something could not be queued. */
    const char *point; /* A crash point: all is sent, nothing of the answer read. NULL: none. */
};

/* False: see error. Reads no more of the URL than libpq does. */
bool idem_postgres_wire_connect(struct idem_postgres_wire *wire, const char *url);
void idem_postgres_wire_close(struct idem_postgres_wire *wire);

/* The monotonic clock that waits are measured by. */
int64_t idem_postgres_mono_us(void);

/* Room for one more is made by a round; the caller looks at pending_count. */
void idem_postgres_wire_prepare(struct idem_postgres_wire *wire,
                                const char *name,
                                const char *sql,
                                bool *done);
void idem_postgres_wire_queue(struct idem_postgres_wire *wire,
                              const char *name,
                              const struct idem_postgres_args *args,
                              struct idem_postgres_pending pending);
/* SQL that was not prepared; without parameters. */
void idem_postgres_wire_say(struct idem_postgres_wire *wire,
                            const char *sql,
                            struct pg_result **result);

/* Sends what is queued and takes all answers. A statement that failed has no result. */
enum idem_postgres_end idem_postgres_wire_round(struct idem_postgres_wire *wire);

#endif /* IDEM_STORE_POSTGRES_WIRE_H */
