/*
 * adapter.h - what one provider protocol must supply: pure functions and nothing else.
 *
 * Whatever an adapter does not know for certain is UNKNOWN: an unlisted status, an unknown enum
 * value, an unreadable body, an answer about another id. `REFUSED_FINAL` means that this id can
 * no longer succeed, whatever is on the wire. `NOT_EXECUTED` means a refusal that the provider
 * documents as made before execution and does not remember under our id.
 */
#ifndef IDEM_PROVIDER_ADAPTER_H
#define IDEM_PROVIDER_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "core/command.h"
#include "core/rules.h"
#include "provider/callback.h"
#include "provider/port.h"

/* A request before it becomes bytes. `url`, `headers` and their text go into the buffer given. */
struct idem_wire_request {
    const char *method;         /* A constant. */
    struct idem_str path;       /* Appended to the entry's base URL. */
    struct idem_str body;       /* Empty: none. */
    struct idem_str headers[4]; /* "Name: value". */
    size_t header_count;

    /*
     * Of several requests: this one moves no money, whatever becomes of it. So if its answer is
     * lost, what stood before it stands.
     */
    bool harmless;
};

/* A complete answer. */
struct idem_wire_answer {
    uint16_t status;
    struct idem_str content_type;
    struct idem_str body; /* As it came: a signature may be over it. */
    struct idem_str head; /* "Name: value\n" each; only for an adapter with steps. */
    int64_t retry_after_us;
};

/*
 * A call of several requests, one after the other. The port carries it and never decides: it sends
 * the request of `step`, and ends the call with `so_far` as its evidence
 *
 *     when decode says that nothing follows;
 *     when a request provably did not leave;
 *     when a harmless one was lost. Any other that is lost makes the outcome UNKNOWN.
 *
 * So after each answer `so_far` says what holds if nothing more is sent; before the first it is
 * NOT_EXECUTED for a send and UNKNOWN otherwise. Every request has the call's not_after_us and a
 * send guard of its own.
 */
struct idem_wire_course {
    enum idem_call_kind kind;
    const struct idem_effect *effect;
    unsigned step; /* The adapter's own numbers; the call begins with 0. */
    struct idem_evidence so_far;
};

#define IDEM_WIRE_STEPS_MAX 8 /* Requests of one call; after that it ends with `so_far`. */

struct idem_wire_steps {
    /* False: this step needs no request, and `so_far` is what the adapter has made of it. */
    bool (*request)(struct idem_wire_course *course,
                    struct idem_str credential,
                    struct idem_buf *buf,
                    struct idem_wire_request *ret_request);

    /*
     * Reads a complete answer to `step` into `so_far`, all that decode below fills. True: `step` is
     * the next request. Text goes into `buf` or is borrowed from the answer or from `so_far`.
     */
    bool (*decode)(struct idem_wire_course *course,
                   const struct idem_wire_answer *answer,
                   struct idem_buf *buf);
};

/* What a provider's contract says whoever configures it. Zero: it promises nothing. */
struct idem_adapter_promises {
    struct idem_capability capability[IDEM_EFFECT_KIND_COUNT];
    enum idem_partial_capture partial_capture;
    bool listing; /* Complete, in order of time: see docs/bridge.md. */
};

struct idem_adapter {
    const char *name;     /* As in the configuration: "bridge". */
    const char *base_url; /* Unless configured; NULL: it must be. */

    /* NULL: the configuration says it. Otherwise it may not. */
    const struct idem_adapter_promises *promises;

    /* See struct idem_provider_rules: stored once, sent as often as needed. */
    void (*encode)(const struct idem_effect_order *order, struct idem_buf *buf);

    /* Calls of several requests; then request and decode are NULL. */
    const struct idem_wire_steps *steps;

    /* Builds the request of a call; text goes into `buf`. `credential` may be empty. */
    void (*request)(enum idem_call_kind kind,
                    const struct idem_effect *effect,
                    struct idem_str credential,
                    struct idem_buf *buf,
                    struct idem_wire_request *ret_request);

    /*
     * Reads a complete answer to a call. Fills outcome, effect_id, amount, currency, reference,
     * code, message, retry_after_us; text goes into `buf` or is borrowed from the answer.
     */
    void (*decode)(enum idem_call_kind kind,
                   const struct idem_effect *effect,
                   const struct idem_wire_answer *answer,
                   struct idem_buf *buf,
                   struct idem_evidence *ret_evidence);

    /*
     * A page of a listing: its request, and the reading of a complete answer into `listed`,
     * `count`, `more`, `cursor` (text into listing->kept); false: not usable, and `cursor` is as
     * it was. Both NULL: nothing is listed.
     */
    void (*list_request)(const struct idem_listing *listing,
                         struct idem_str credential,
                         struct idem_buf *buf,
                         struct idem_wire_request *ret_request);
    bool (*list_decode)(const struct idem_wire_answer *answer, struct idem_listing *listing);

    const struct idem_adapter_callbacks *callbacks; /* NULL: the provider says nothing by itself. */
};

#endif /* IDEM_PROVIDER_ADAPTER_H */
