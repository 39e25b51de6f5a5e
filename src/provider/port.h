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
    void *carrier;             /* The port's own. */

    /* Valid once reaped: source, outcome and what the provider said. Token and send_no are the
       submitter's to fill in. Text lies in `memory`. */
    struct idem_evidence evidence;
    char memory[IDEM_CALL_MEMORY_MAX];
};

struct idem_port_ops {
    enum idem_err (*submit)(struct idem_port *port, struct idem_call *call);
    void (*reap)(struct idem_port *port, struct idem_list *ret_done);
    void (*cancel)(struct idem_port *port, struct idem_call *call);
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

/* All calls were reaped. Accepts NULL. */
void idem_port_destroy(struct idem_port *port);

#endif /* IDEM_PROVIDER_PORT_H */
