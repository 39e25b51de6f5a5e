/*
 * event.h - the append-only history: what changed, when, and why; and cases for a person.
 */
#ifndef IDEM_CORE_EVENT_H
#define IDEM_CORE_EVENT_H

#include <stdint.h>

#include "base/text.h"
#include "base/uid.h"

/* The values are stored: append only. */
enum idem_event_kind {
    IDEM_EVENT_NONE = 0,
    IDEM_EVENT_CLAIMED,     /* The key is taken; nothing sent. */
    IDEM_EVENT_DISPATCHED,  /* A send was granted. */
    IDEM_EVENT_SEND_SILENT, /* A send ended without a usable answer. */
    IDEM_EVENT_SEND_NOT_EXECUTED,
    IDEM_EVENT_SEND_REFUSED,
    IDEM_EVENT_SEND_PROCESSING,
    IDEM_EVENT_LEASE_ENDED,  /* Whoever held it is gone or late. */
    IDEM_EVENT_ASKED,        /* A question was granted. */
    IDEM_EVENT_ASK_ANSWERED, /* And this came back; nothing final. */
    IDEM_EVENT_CLOSE_GRANTED,
    IDEM_EVENT_CLOSE_ANSWERED,
    IDEM_EVENT_UNKNOWN,
    IDEM_EVENT_PARKED,
    IDEM_EVENT_SUCCEEDED,
    IDEM_EVENT_FAILED,
    IDEM_EVENT_RELEASED,
    IDEM_EVENT_RECLAIMED, /* A RELEASED key runs again. */
    IDEM_EVENT_ABANDONED,
    IDEM_EVENT_CONTRADICTED,  /* Evidence against a final state; history stays. */
    IDEM_EVENT_PAYMENT_MOVED, /* detail: "pending -> captured". */
    IDEM_EVENT_REFUND_MOVED,
    IDEM_EVENT_RESOLVED, /* detail: who, verdict and reason. Kept as long as the record. */
    IDEM_EVENT_EXPIRED,  /* The answer is forgotten; detail: who asked, or empty. */
    IDEM_EVENT_FOUND,    /* Done before this copy was restored; the provider listed it. */
    IDEM_EVENT_TRACED,   /* detail: the claiming request's traceparent. */
    IDEM_EVENT_NOTIFIED, /* A provider's event; detail: what it said. */
    IDEM_EVENT_REVERSED, /* The provider took back what it had done; detail: how much. */
    IDEM_EVENT_KIND_COUNT
};

/* The values are stored: append only. */
enum idem_cause {
    IDEM_CAUSE_NONE = 0,
    IDEM_CAUSE_REQUEST,
    IDEM_CAUSE_PROVIDER,
    IDEM_CAUSE_TIMER,
    IDEM_CAUSE_OPERATOR,
    IDEM_CAUSE_COUNT
};

struct idem_event {
    enum idem_event_kind kind;
    enum idem_cause cause;
    int64_t at_us;
    uint32_t epoch;
    uint32_t send_no;       /* 0: not about a send. */
    struct idem_str detail; /* Short; never a key, a secret or a credential. */
};

/* The values are stored: append only. */
enum idem_case_kind {
    IDEM_CASE_NONE = 0,
    IDEM_CASE_MISMATCH,      /* Done there, but another id, amount or currency. */
    IDEM_CASE_CONTRADICTION, /* The provider's word against a final state here. */
    IDEM_CASE_UNRESOLVED,    /* Asked long enough, or nothing left that is safe to do. */
    IDEM_CASE_NO_ROOM,       /* Late success, but the order number or the sum is taken. */
    IDEM_CASE_REVERSED,      /* Done, and taken back by the provider since. */
    IDEM_CASE_MISSING,       /* Done here, and a complete listing of its time does not have it. */
    IDEM_CASE_DUPLICATE,     /* The provider's listing has it more than once. */
    IDEM_CASE_KIND_COUNT
};

struct idem_case {
    enum idem_case_kind kind;
    struct idem_uid id;
    int64_t opened_us;
    struct idem_str detail;
    int64_t decided_us; /* 0: open. */
    struct idem_str decided_by;
    struct idem_str decision; /* The verdict and the reason, as text. */
};

const char *idem_event_kind_name(enum idem_event_kind kind);
const char *idem_cause_name(enum idem_cause cause);
const char *idem_case_kind_name(enum idem_case_kind kind); /* "mismatch" ... */

#endif /* IDEM_CORE_EVENT_H */
