/*
 * idem_record.h - what a record is, how calls fail and what they answer; part of idem.h.
 */
#ifndef IDEM_RECORD_H
#define IDEM_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits, in bytes; beyond them IDEM_LOCAL_E_INVALID. Names have visible ASCII: 0x21 to 0x7e. */
#define IDEM_LOCAL_PRINCIPAL_MAX   64 /* A name, of at least one byte, as are the next three. */
#define IDEM_LOCAL_ENDPOINT_MAX    64
#define IDEM_LOCAL_KEY_MAX         255 /* Case counts. */
#define IDEM_LOCAL_STEP_MAX        64
#define IDEM_LOCAL_EFFECT_MAX      64 /* A name without a colon; may be empty. */
#define IDEM_LOCAL_FINGERPRINT_MAX 64 /* At least one. */
#define IDEM_LOCAL_STEP_DATA_MAX   65536
#define IDEM_LOCAL_HEADERS_MAX     8192 /* UTF-8. */
#define IDEM_LOCAL_BODY_MAX        1048576
#define IDEM_LOCAL_BY_MAX          64  /* UTF-8 without control characters, at least one, ... */
#define IDEM_LOCAL_REASON_MAX      255 /* ... likewise. */
#define IDEM_LOCAL_EFFECT_ID_SIZE  104 /* Room for an effect id and its end. */

/*
 * What went wrong with a call. It is never a statement about money, and in each case the call has
 * written nothing that can be committed without what the caller asked for.
 */
enum idem_local_err {
    IDEM_LOCAL_OK = 0,
    IDEM_LOCAL_E_INVALID,        /* An argument cannot be used, or the connection not now. */
    IDEM_LOCAL_E_NO_TRANSACTION, /* Begin one first; or it has failed, and must be rolled back. */
    IDEM_LOCAL_E_BUSY,           /* Another transaction is in the way: roll back, run it again. */
    IDEM_LOCAL_E_INSTALL,  /* The tables are not there, or of another version, or must not be. */
    IDEM_LOCAL_E_DATABASE, /* The database failed, or what it has is damaged: roll back. */
    IDEM_LOCAL_E_SYSTEM    /* The operating system refused: memory. */
};

/* A sentence for a person; terminated. Written when a call fails, untouched otherwise. */
struct idem_local_error {
    char text[512];
};

/* What a call found. None of these is an error; the text beside each says what may follow. */
enum idem_local_outcome {
    IDEM_LOCAL_NO_OUTCOME = 0,

    /* Claims. */
    IDEM_LOCAL_EXECUTE,     /* Yours, and nobody else's while the lease lasts. */
    IDEM_LOCAL_REPLAY,      /* It is over: give the caller this answer, execute nothing. */
    IDEM_LOCAL_IN_PROGRESS, /* Somebody has it: come again after retry_after_ms. */
    IDEM_LOCAL_UNKNOWN,     /* It may have happened: find out, and settle. Never execute. */
    IDEM_LOCAL_MISMATCH,    /* The key belongs to another request. Never execute. */
    IDEM_LOCAL_EXPIRED,     /* It is over, and its answer is not kept any more. Never execute. */

    /* What changes a record. All but DONE and CONTRADICTION have written nothing. */
    IDEM_LOCAL_DONE,          /* Written by this call; it counts once it is committed. */
    IDEM_LOCAL_ALREADY,       /* It was there before this call: undo what was done beside it. */
    IDEM_LOCAL_SUPERSEDED,    /* No authority any more: claim again, and learn what stands. */
    IDEM_LOCAL_BUSY,          /* Another transaction has it; this one can be used further. */
    IDEM_LOCAL_CONTRADICTION, /* It ended otherwise, and stays so; the evidence is kept beside. */
    IDEM_LOCAL_OTHER_EFFECT,  /* Not about the effect that is dispatched. */
    IDEM_LOCAL_LOCAL_ONLY,    /* It was claimed for work that has no effect outside. */
    IDEM_LOCAL_NOT_PROVEN,    /* Something may have been sent, or may still be. */
    IDEM_LOCAL_ABSENT         /* There is no such record. */
};

enum idem_local_state {
    IDEM_LOCAL_STATE_NONE = 0,
    IDEM_LOCAL_CLAIMED,    /* Nothing outside has been touched, if dispatch is used as told. */
    IDEM_LOCAL_DISPATCHED, /* An outside effect may have happened. */
    IDEM_LOCAL_IN_DOUBT,   /* The state "unknown": that, and nobody is at it any more. */
    IDEM_LOCAL_RELEASED,   /* Free for the next claim of the same request. */
    IDEM_LOCAL_SUCCEEDED,
    IDEM_LOCAL_FAILED,
    IDEM_LOCAL_FORGOTTEN /* The state "expired": only the verdict is left. */
};

enum idem_local_verdict {
    IDEM_LOCAL_NO_VERDICT = 0,
    IDEM_LOCAL_VERDICT_SUCCEEDED,
    IDEM_LOCAL_VERDICT_FAILED,
    /* Evidence only; the work is not over. */
    IDEM_LOCAL_VERDICT_EXECUTED,    /* The outside step is done. */
    IDEM_LOCAL_VERDICT_NOT_EXECUTED /* Nothing happened since the last step, nor can it still. */
};

/* One attempt's authority. Who has it may go on with the record, so it is told to one claimer. */
struct idem_local_token {
    uint8_t bytes[16];
};

/* What a call other than a claim answers. `size` is filled in by the caller. */
struct idem_local_result {
    size_t size;
    enum idem_local_outcome outcome;
    /* dispatch, DONE or ALREADY: the idempotency key for the outside, the same for every send. */
    char effect_id[IDEM_LOCAL_EFFECT_ID_SIZE];
};

struct idem_local_reaped {
    size_t size;
    int expired; /* Answers that are forgotten now. */
    int deleted; /* Records that are gone, 400 days after that was due. */
};

/*
 * One record as a call found it. All of it is one piece of memory that belongs to the caller:
 * idem_local_record_free(). Later versions add members at the end. Texts are terminated and never
 * NULL; times are milliseconds since 1970 by the database's time, 0: not yet.
 */
struct idem_local_record {
    enum idem_local_outcome outcome; /* Of a claim. */
    struct idem_local_token token;   /* Of a claim that is to EXECUTE; otherwise zeros. */
    int64_t retry_after_ms;          /* Of a claim IN_PROGRESS. */
    /*
     * Of a claim MISMATCH and IN_PROGRESS show no more than the above; UNKNOWN shows id and effect,
     * EXPIRED id and verdict, REPLAY id, verdict and answer, EXECUTE id, epoch and step.
     */
    char id[37]; /* A UUID; made at the first claim, never changes. */
    const char *principal;
    const char *endpoint;
    const char *key;
    const void *fingerprint;
    size_t fingerprint_size;
    enum idem_local_state state; /* As it is now: a lease that is over counts. */
    bool local_only;
    int64_t version; /* One more with every change. */
    int64_t epoch;   /* One more with every acquisition. */
    int64_t lease_end_ms;
    const char *effect;    /* Its last dispatch; "" none. */
    const char *effect_id; /* As dispatch told it; "" none. */
    const char *step;      /* The last recovery point; "" none. */
    const void *step_data;
    size_t step_data_size;
    enum idem_local_verdict verdict;
    int status;
    const char *headers;
    const void *body;
    size_t body_size;
    int64_t created_ms;
    int64_t updated_ms;
    int64_t finished_ms;
    int64_t expires_ms;
    const char *evidence_by; /* Whose evidence settled it; "" it was completed. */
    const char *evidence_reason;
    /* The first evidence that came later and said otherwise. A person must look at this. */
    enum idem_local_verdict contradiction;
    const char *contradiction_by;
    const char *contradiction_reason;
    int64_t contradiction_ms;
    int64_t since_ms; /* due: when somebody should have been there. */
};

#endif /* IDEM_RECORD_H */
