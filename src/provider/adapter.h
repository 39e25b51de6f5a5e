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

#include "base/text.h"
#include "core/command.h"
#include "core/rules.h"
#include "provider/port.h"

/* A request before it becomes bytes. `url`, `headers` and their text go into the buffer given. */
struct idem_wire_request {
    const char *method;         /* A constant. */
    struct idem_str path;       /* Appended to the entry's base URL. */
    struct idem_str body;       /* Empty: none. */
    struct idem_str headers[4]; /* "Name: value". */
    size_t header_count;
};

/* A complete answer. */
struct idem_wire_answer {
    uint16_t status;
    struct idem_str content_type;
    struct idem_str body;
    int64_t retry_after_us;
};

struct idem_adapter {
    const char *name; /* As in the configuration: "bridge". */

    /* See struct idem_provider_rules: stored once, sent as often as needed. */
    void (*encode)(const struct idem_effect_order *order, struct idem_buf *buf);

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
};

#endif /* IDEM_PROVIDER_ADAPTER_H */
