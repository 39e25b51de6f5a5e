/*
 * answer.h - what a store says about a batch, a command or a read.
 */
#ifndef IDEM_STORE_ANSWER_H
#define IDEM_STORE_ANSWER_H

/* What is known about it. Nothing else can be said. */
enum idem_store_answer {
    IDEM_STORE_NONE = 0,
    IDEM_STORE_DURABLE,
    IDEM_STORE_CONFLICT, /* Rows kept moving under it; nothing was written. Submit again. */
    IDEM_STORE_NOTHING,  /* Refused (full, read-only, busy); nothing was written. Submit again. */
    /*
     * COMMIT was not answered cleanly: run the same commands again (same now, ids, tokens, noise)
     * until one run is DURABLE. Reading proves nothing.
     */
    IDEM_STORE_UNKNOWN,
    IDEM_STORE_WRONG_NODE, /* This node must not write or answer; nothing was written. */
    IDEM_STORE_DOWN,       /* Not reachable; nothing was written. */
    IDEM_STORE_ANSWER_COUNT
};

const char *idem_store_answer_name(enum idem_store_answer answer);

#endif /* IDEM_STORE_ANSWER_H */
