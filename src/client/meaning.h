/*
 * meaning.h - what a signal means for an intent, and what may follow: the retry rule.
 *
 * Pure and one table: meaning.def. docs/client-rules.md is printed from it.
 */
#ifndef IDEM_CLIENT_MEANING_H
#define IDEM_CLIENT_MEANING_H

#include <stdbool.h>
#include <stdint.h>

#include "client/dialect.h"
#include "client/signal.h"

/* What the answer to one request says. */
enum idem_meaning {
    IDEM_MEANING_NONE = 0,
    IDEM_MEANING_DONE,        /* It happened, and this is the answer. */
    IDEM_MEANING_REFUSED,     /* Nothing happened under this key, and nothing ever will. */
    IDEM_MEANING_TURNED_AWAY, /* This request did nothing. It says nothing of earlier ones. */
    IDEM_MEANING_RUNNING,     /* The server has it and is at it. */
    IDEM_MEANING_UNSURE,      /* This request may have been carried out, or may still be. */
    IDEM_MEANING_COUNT
};

enum idem_next {
    IDEM_NEXT_STOP = 0, /* The same request again does not help. */
    IDEM_NEXT_AGAIN,    /* The same bytes under the same key, later. */
    IDEM_NEXT_ASK       /* Do not send; ask for the outcome. */
};

struct idem_reading {
    enum idem_meaning meaning;
    enum idem_next next;
    const char *why;        /* A constant: what the answer was, for a person. */
    int64_t retry_after_us; /* 0: not said. */
    bool look_first;        /* REFUSED by something that is there: look at it before another try. */
};

struct idem_reading idem_meaning_of(const struct idem_dialect *dialect,
                                    const struct idem_signal *signal);

/* Appends docs/client-rules.md: dialects, rules in their order, and what follows from them. */
void idem_meaning_print(struct idem_buf *buf);

const char *idem_meaning_name(enum idem_meaning meaning); /* "done", "turned away", ... */
const char *idem_next_name(enum idem_next next);          /* "stop", "again", "ask". */

#endif /* IDEM_CLIENT_MEANING_H */
