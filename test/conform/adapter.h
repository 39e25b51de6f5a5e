/*
 * adapter.h - what a fixture says about one adapter, so that adapter.c can judge it.
 *
 * The effects are the suite's: 100.00 EUR, order number "o-1", under the ids below. A fixture says
 * how its provider speaks of them, as text.
 */
#ifndef IDEM_TEST_CONFORM_ADAPTER_H
#define IDEM_TEST_CONFORM_ADAPTER_H

#include "provider/adapter.h"

#define CHARGE    "c0123456789abcdefghjkmnpqrs"
#define AUTHORIZE "a0123456789abcdefghjkmnpqrs" /* What the next three act on. */
#define CAPTURE   "k0123456789abcdefghjkmnpqrs"
#define CANCEL    "v0123456789abcdefghjkmnpqrs"
#define REFUND    "r0123456789abcdefghjkmnpqrs"

#define EVENT_NOW_S INT64_C(1764400000)

#define SEND  (1U << IDEM_CALL_SEND)
#define QUERY (1U << IDEM_CALL_QUERY)
#define CLOSE (1U << IDEM_CALL_CLOSE)

#define PAYS (1U << IDEM_EFFECT_KIND_CHARGE | 1U << IDEM_EFFECT_KIND_AUTHORIZE)
#define ACTS \
    (1U << IDEM_EFFECT_KIND_CAPTURE | 1U << IDEM_EFFECT_KIND_CANCEL | 1U << IDEM_EFFECT_KIND_REFUND)

/* A call, and the answers that lead to its outcome; the last is given to whatever is asked then. */
struct adapter_scene {
    enum idem_call_kind call;
    enum idem_effect_kind kind;
    const char *reference;  /* Known before; NULL: none. */
    const char *answers[4]; /* Each with status 200; up to NULL. */
    enum idem_outcome_kind outcome;
};

/* What may be believed beside the scenes: this body, with these statuses, after so many of the
   scene's answers. What no row allows must be UNKNOWN. */
struct adapter_belief {
    const char *body;
    unsigned calls;
    unsigned kinds;
    unsigned places; /* Bit n: after n answers of the scene. */
    uint16_t statuses[4];
    enum idem_outcome_kind outcome;
};

struct adapter_change {
    const char *from;
    const char *to;
};

struct adapter_page {
    const char *cursor;
    const char *body;
    size_t count;
    bool more;
};

struct adapter_fixture {
    const struct idem_adapter *adapter;
    const char *payment_reference;
    const struct adapter_scene *scenes; /* Of a send, one for each kind. */
    size_t scene_count;
    const struct adapter_belief *beliefs;
    size_t belief_count;
    const char *const *heads; /* "Name: value\n", such as it sends; up to NULL. */

    struct adapter_change amount; /* 100.00 EUR as its answers say it, and another amount. */
    struct adapter_change currency;
    const char *state; /* What stands before each word for a state: "\"status\":\"". */

    const struct adapter_page *pages; /* NULL: it lists nothing. */
    size_t page_count;
    const struct adapter_change *spoils; /* Each makes a page unusable, wherever it is done. */
    size_t spoil_count;

    const char *event;                         /* One about CHARGE; NULL: no callbacks. */
    const struct adapter_change *event_spoils; /* With each it claims nothing any more. */
    size_t event_spoil_count;
    const char *event_field;
    int64_t tolerance_s; /* 0: its events have no time. */

    /* The value of `event_field`. Made of what digest.h has, not with the adapter's own code. */
    void (*event_sign)(struct idem_digester *digester,
                       struct idem_str secret,
                       int64_t signed_s,
                       struct idem_str body,
                       struct idem_buf *buf);
};

extern const struct adapter_fixture adapter_fixture;

/* The scheme of Stripe and the bridge protocol: t=SECONDS,v1=HEX over "SECONDS.BODY". */
void adapter_sign_time_and_body(struct idem_digester *digester,
                                struct idem_str secret,
                                int64_t signed_s,
                                struct idem_str body,
                                struct idem_buf *buf);

#endif /* IDEM_TEST_CONFORM_ADAPTER_H */
