/*
 * event.h - what can happen to an effect at the sandbox, and its line in the ledger file.
 *
 * One event is one JSON object on one line. The members that are absent are empty here.
 */
#ifndef IDEM_SANDBOX_EVENT_H
#define IDEM_SANDBOX_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "sandbox/order.h"
#include "sandbox/profile.h"

#define IDEM_EVENT_LINE_MAX ((size_t)128 * 1024) /* Every text escaped to its longest form. */
#define IDEM_EVENT_TOKENS   64

#define IDEM_LEDGER_TRACE_MAX 64 /* A longer one is not noted. */

enum idem_ledger_event_kind {
    IDEM_LEDGER_NOTHING = 0,
    IDEM_LEDGER_ARRIVAL,    /* A complete request to execute. */
    IDEM_LEDGER_EXECUTION,  /* Money moved. */
    IDEM_LEDGER_DECLINE,    /* It will not move for this request. */
    IDEM_LEDGER_PROCESSING, /* Accepted; it will be executed or declined later. */
    IDEM_LEDGER_INVALID,    /* The content is refused; this id cannot succeed any more. */
    IDEM_LEDGER_QUERY,
    IDEM_LEDGER_CLOSE,
    IDEM_LEDGER_LISTING,  /* A page of a listing that holds it was asked for. */
    IDEM_LEDGER_REVERSAL, /* What its last execution moved went back. */
    IDEM_LEDGER_CALLBACK, /* A callback about it was posted, and that is over. */
    IDEM_LEDGER_EVENT_COUNT
};

struct idem_ledger_event {
    enum idem_ledger_event_kind kind;
    int64_t at_us; /* Wall clock. */
    enum idem_sandbox_profile profile;
    struct idem_str id;

    const struct idem_sandbox_order
        *order;                /* ARRIVAL: the content, if readable and not known yet. */
    bool other;                /* ARRIVAL: another content than the one known. */
    bool settles;              /* EXECUTION, DECLINE: of something that was processing. */
    struct idem_str reference; /* EXECUTION: the provider's number. */
    struct idem_str code;      /* DECLINE, INVALID: why. */
    struct idem_str trace;     /* ARRIVAL, QUERY, CLOSE: the caller's traceparent. */
    int64_t due_us;            /* PROCESSING: when it ends, wall clock. */
    bool fails;                /* PROCESSING: it ends declined. */
    bool closes;               /* CLOSE: nothing had moved, and the id is closed now. */
    bool taken;                /* CALLBACK: it was answered 2xx. */
};

/* Appends the line with its line feed. */
void idem_ledger_event_print(const struct idem_ledger_event *event, struct idem_buf *buf);

/*
 * Reads a line without its line feed. Texts are in `memory`, and `*ret_order` holds the content if
 * there is one. False: not a line of ours.
 */
bool idem_ledger_event_read(struct idem_str line,
                            struct idem_buf *memory,
                            struct idem_sandbox_order *ret_order,
                            struct idem_ledger_event *ret_event) IDEM_MUST_CHECK;

#endif /* IDEM_SANDBOX_EVENT_H */
