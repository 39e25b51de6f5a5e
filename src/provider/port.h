/*
 * port.h - how the engine reaches providers: calls in, evidence out.
 *
 * A port carries out what a decision released: a send, a question, a close. Whatever happens on the
 * wire comes back as one piece of evidence; silence is evidence of outcome UNKNOWN. The real port
 * (http_port.h) speaks through transport and the adapters; the simulator has one of its own.
 *
 * Threads: the engine's. No callbacks: finished calls are reaped.
 */
#ifndef IDEM_PROVIDER_PORT_H
#define IDEM_PROVIDER_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "core/command.h"
#include "core/intent.h"
#include "core/limits.h"

struct idem_port;

enum idem_call_kind {
    IDEM_CALL_NONE = 0,
    IDEM_CALL_SEND,  /* Puts effect.request on the wire. */
    IDEM_CALL_QUERY, /* Asks by effect.id. */
    IDEM_CALL_CLOSE, /* Closes effect.id so that it can no longer succeed. */
    IDEM_CALL_COUNT
};

/* Text of the evidence: id, currency, reference, code, message and the entry's three names. */
#define IDEM_CALL_MEMORY_MAX 1024

/* One call. Embed it; it is the port's from submit to reap. */
struct idem_call {
    struct idem_list_node node;
    enum idem_call_kind kind;
    struct idem_effect effect; /* Text borrowed until reaped. */
    int64_t not_after_us;      /* Monotonic; no byte leaves after it. */
    struct idem_str trace;     /* traceparent, passed on as it came; empty: none. Borrowed. */
    void *carrier;             /* The port's own. */

    /* Valid once reaped: source, outcome and what the provider said. Token and send_no are the
       submitter's to fill in. Text lies in `memory`. */
    struct idem_evidence evidence;
    char memory[IDEM_CALL_MEMORY_MAX];
};

/* One effect as a provider's listing names it. Only what succeeded is listed. */
struct idem_listed {
    struct idem_str effect_id;
    struct idem_str order_no;          /* Empty: the provider does not say. */
    struct idem_str payment_effect_id; /* Of the payment it acted on; empty: it made one. */
    int64_t amount_minor;
    struct idem_str currency;
    struct idem_str reference;
    int64_t happened_us;
};

#define IDEM_LISTING_MAX        64
#define IDEM_LISTING_CURSOR_MAX 256
#define IDEM_LISTING_MEMORY_MAX 32768

/* One page of what happened at an entry. Embed it; it is the port's from list to reap. */
struct idem_listing {
    struct idem_list_node node;
    struct idem_str entry; /* Borrowed until reaped. */
    int64_t from_us;       /* Wall time: from here on, up to but without `to_us`. */
    int64_t to_us;
    char cursor[IDEM_LISTING_CURSOR_MAX]; /* Terminated. Empty: the first page. */
    void *carrier;                        /* The port's own. */

    /* Valid once reaped. */
    bool answered; /* False: no usable answer came; ask again later. */
    struct idem_listed listed[IDEM_LISTING_MAX];
    size_t count;
    bool more; /* `cursor` is that of the next page. */
    struct idem_buf kept;
    char memory[IDEM_LISTING_MEMORY_MAX];
};

struct idem_port_ops {
    enum idem_err (*submit)(struct idem_port *port, struct idem_call *call);
    void (*reap)(struct idem_port *port, struct idem_list *ret_done);
    void (*cancel)(struct idem_port *port, struct idem_call *call);

    /* Both NULL: this port lists nothing. */
    enum idem_err (*list)(struct idem_port *port, struct idem_listing *listing);
    void (*reap_listings)(struct idem_port *port, struct idem_list *ret_done);
    void (*cancel_listing)(struct idem_port *port, struct idem_listing *listing);
    void (*destroy)(struct idem_port *port);
};

struct idem_port {
    const struct idem_port_ops *ops;
};

/* What the answer to such a call is evidence from. */
enum idem_evidence_source idem_call_source(enum idem_call_kind kind);

/* IDEM_E_LIMIT: no room, nothing was sent and nothing will be; the call is still the caller's. */
enum idem_err idem_port_submit(struct idem_port *port, struct idem_call *call) IDEM_MUST_CHECK;

void idem_port_reap(struct idem_port *port, struct idem_list *ret_done);

/* Ends a call now; it is reaped as any other, NOT_EXECUTED if no byte left, else UNKNOWN. */
void idem_port_cancel(struct idem_port *port, struct idem_call *call);

/* IDEM_E_LIMIT: no room, or nothing is listed at this entry; the listing is still the caller's. */
enum idem_err idem_port_list(struct idem_port *port, struct idem_listing *listing) IDEM_MUST_CHECK;

void idem_port_reap_listings(struct idem_port *port, struct idem_list *ret_done);

/* Ends it now, for a process that stops: it is reaped as any other, not answered. */
void idem_port_cancel_listing(struct idem_port *port, struct idem_listing *listing);

/* All calls and listings were reaped. Accepts NULL. */
void idem_port_destroy(struct idem_port *port);

#endif /* IDEM_PROVIDER_PORT_H */
