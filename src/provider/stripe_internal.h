/*
 * stripe_internal.h - what the files of the Stripe adapter share.
 *
 *   stripe.c         calls: which request, and what its answer means
 *   stripe_request.c the stored request and the requests on the wire
 *   stripe_object.c  answers as structs
 *   stripe_list.c    listings
 *   stripe_money.c   amounts as Stripe counts them
 *   stripe_event.c   events, as they come by callback; signature.c judges their signatures
 */
#ifndef IDEM_PROVIDER_STRIPE_INTERNAL_H
#define IDEM_PROVIDER_STRIPE_INTERNAL_H

#include "provider/adapter.h"

#define IDEM_STRIPE_ID_MAX 64 /* "pi_..." as a path may carry it. */

/* stripe_money.c. False: Stripe cannot be asked for this amount of this currency. */
bool idem_stripe_amount_to_wire(struct idem_str currency, int64_t minor, int64_t *ret_wire);

/* False: it is no amount of a currency that this adapter knows. `currency` in capitals. */
bool idem_stripe_amount_from_wire(struct idem_str currency, int64_t wire, int64_t *ret_minor);

/* stripe_request.c */

/* The stored request, read: encode wrote it. Text points into it. */
struct idem_stripe_order {
    struct idem_str refused;    /* Not empty: why nothing can be sent. */
    struct idem_str intent;     /* "pi_...": what a capture, cancel or refund acts on. */
    struct idem_str payment_id; /* Our id of that payment. */
    struct idem_str body;
};

enum idem_stripe_step {
    IDEM_STRIPE_BEGIN = 0,    /* The creation; of what acts on a payment: is it ours? A question. */
    IDEM_STRIPE_ACT,          /* The capture, cancel or refund. */
    IDEM_STRIPE_CONFIRM,      /* Of a payment intent that was created. */
    IDEM_STRIPE_LOOK,         /* What is it now? */
    IDEM_STRIPE_LOOK_REFUSED, /* The same, after a refusal. */
    IDEM_STRIPE_CANCEL,       /* Of a payment that failed and could still be paid. */
    IDEM_STRIPE_LOOK_LAST     /* After a cancel that was not confirmed: there is no second. */
};

void idem_stripe_encode(const struct idem_effect_order *order, struct idem_buf *buf);

/* False: not what encode writes. */
bool idem_stripe_order_read(struct idem_str request, struct idem_stripe_order *ret_order);

/* See struct idem_wire_steps. */
bool idem_stripe_request(struct idem_wire_course *course,
                         struct idem_str credential,
                         struct idem_buf *buf,
                         struct idem_wire_request *ret_request);

/* Letters, digits and underscores, not too many: it can stand in a path. */
bool idem_stripe_id_is_plain(struct idem_str id);

void idem_stripe_authorize(struct idem_wire_request *request,
                           struct idem_buf *buf,
                           struct idem_str credential);

/* stripe_object.c */

enum idem_stripe_status {
    IDEM_STRIPE_STATUS_NONE = 0, /* Or one that is not listed. */
    IDEM_STRIPE_SUCCEEDED,
    IDEM_STRIPE_PROCESSING, /* Of a refund: pending. */
    IDEM_STRIPE_REQUIRES_ACTION,
    IDEM_STRIPE_REQUIRES_CAPTURE,
    IDEM_STRIPE_REQUIRES_CONFIRMATION,
    IDEM_STRIPE_REQUIRES_METHOD,
    IDEM_STRIPE_CANCELED,
    IDEM_STRIPE_FAILED, /* Of a refund. */
    IDEM_STRIPE_STATUS_COUNT
};

/* A payment intent or a refund. Amounts are ours: minor units of ISO 4217. */
struct idem_stripe_object {
    bool is_refund;
    struct idem_str id;
    enum idem_stripe_status status;
    struct idem_str currency; /* In capitals. */
    int64_t amount_minor;
    int64_t received_minor; /* Of a payment intent, as the next. */
    int64_t capturable_minor;
    bool captures_by_hand;
    struct idem_str intent; /* Of a refund: what it gives back. */
    int64_t created_s;
    struct idem_str our_id; /* Our metadata; empty: not there. */
    struct idem_str our_capture;
    struct idem_str our_payment;
    struct idem_str order_no;
};

struct idem_stripe_error {
    struct idem_str type;
    struct idem_str code; /* The most particular of decline_code, code and type. */
    struct idem_str message;
};

struct idem_json;

/* False: the value at `index` is neither, or a member that is there is not what it must be. */
bool idem_stripe_object_read(const struct idem_json *json,
                             size_t index,
                             struct idem_buf *buf,
                             struct idem_stripe_object *ret_object);

/* False: it is not an error of Stripe's. */
bool idem_stripe_error_read(const struct idem_json *json,
                            struct idem_buf *buf,
                            struct idem_stripe_error *ret_error);

/* Index of the first element of a list's `data`, or 0: it is no list. */
size_t idem_stripe_list_read(const struct idem_json *json, size_t *ret_count, bool *ret_more);

/* stripe_list.c; see struct idem_adapter. */
void idem_stripe_list_request(const struct idem_listing *listing,
                              struct idem_str credential,
                              struct idem_buf *buf,
                              struct idem_wire_request *ret_request);
bool idem_stripe_list_decode(const struct idem_wire_answer *answer, struct idem_listing *listing);

/* stripe_event.c; see struct idem_adapter. */
extern const struct idem_adapter_callbacks idem_stripe_callbacks;

#endif /* IDEM_PROVIDER_STRIPE_INTERNAL_H */
