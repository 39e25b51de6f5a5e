/*
 * payment.h - the business rows: payments and refunds, their sums, and what may move them.
 *
 * Captured + capture pending + released <= authorized; refunded + refund pending <= captured (P10).
 * Dispatch takes a reservation (capture_pending, refund_pending, canceling), the outcome turns it
 * into a sum or gives it back; unknown keeps it. *Unknown* is never a payment state: it is
 * derived from open operations. Pure.
 */
#ifndef IDEM_CORE_PAYMENT_H
#define IDEM_CORE_PAYMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/uid.h"
#include "core/rules.h"

/* The values are stored: append only. */
enum idem_payment_state {
    IDEM_PAYMENT_NONE = 0,
    IDEM_PAYMENT_PENDING,
    IDEM_PAYMENT_AUTHORIZED,
    IDEM_PAYMENT_PARTIALLY_CAPTURED, /* Some captured, some still authorized. */
    IDEM_PAYMENT_CAPTURED,
    IDEM_PAYMENT_PARTIALLY_REFUNDED,
    IDEM_PAYMENT_REFUNDED,
    IDEM_PAYMENT_FAILED,
    IDEM_PAYMENT_CANCELED,
    IDEM_PAYMENT_EXPIRED,
    IDEM_PAYMENT_COUNT
};

enum idem_capture_mode {
    IDEM_CAPTURE_MODE_NONE = 0,
    IDEM_CAPTURE_AUTOMATIC,
    IDEM_CAPTURE_MANUAL,
    IDEM_CAPTURE_MODE_COUNT
};

struct idem_payment {
    int64_t row; /* The store's handle; 0: absent. */
    struct idem_uid id;
    uint32_t version;
    enum idem_payment_state state;
    struct idem_str principal;
    struct idem_str order_no;
    enum idem_capture_mode capture_mode;
    int64_t amount_minor;
    struct idem_str currency;

    int64_t authorized_minor;
    int64_t captured_minor;
    int64_t capture_pending_minor;
    int64_t released_minor; /* Authorized once, given back to the card. */
    int64_t refunded_minor;
    int64_t refund_pending_minor;
    bool canceling;

    struct idem_str entry;
    struct idem_str account;
    struct idem_str region;
    struct idem_str
        effect_id; /* Of the payment's own effect: what captures and refunds refer to. */
    struct idem_str reference; /* The provider's transaction number. */
    struct idem_str method;
    struct idem_str description;
    struct idem_str metadata;     /* A JSON object as text, or empty. */
    struct idem_str failure_code; /* Why it failed; empty otherwise. */
    int64_t created_us;
    int64_t updated_us;
};

/* The values are stored: append only. */
enum idem_refund_state {
    IDEM_REFUND_NONE = 0,
    IDEM_REFUND_PENDING,
    IDEM_REFUND_SUCCEEDED,
    IDEM_REFUND_FAILED,
    IDEM_REFUND_COUNT
};

struct idem_refund {
    int64_t row; /* The store's handle; 0: absent. */
    struct idem_uid id;
    uint32_t version;
    enum idem_refund_state state;
    int64_t payment_row;
    struct idem_uid payment_id;
    struct idem_str principal;
    struct idem_str
        refund_no; /* Unique per payment among refunds that did not fail; may be empty. */
    int64_t amount_minor;
    struct idem_str currency;
    struct idem_str reference;
    struct idem_str failure_code;
    int64_t created_us;
    int64_t updated_us;
};

/* Why a reservation is not possible. */
enum idem_refusal {
    IDEM_REFUSAL_NONE = 0,
    IDEM_REFUSAL_STATE,   /* Not in this state, or another operation holds a reservation. */
    IDEM_REFUSAL_AMOUNT,  /* More than what is left. */
    IDEM_REFUSAL_PARTIAL, /* The provider takes only the whole. */
    IDEM_REFUSAL_COUNT
};

/* True while the order number belongs to this payment: every state but FAILED and CANCELED. */
bool idem_payment_holds_order(enum idem_payment_state state);

/* The order number of a payment that a case has made: "case-" and its own id. */
#define IDEM_STRAY_PREFIX "case-"
bool idem_payment_is_stray(const struct idem_payment *payment);

/* What is left to capture, or to refund, beside everything pending. */
int64_t idem_payment_capturable(const struct idem_payment *payment);
int64_t idem_payment_refundable(const struct idem_payment *payment);

/* Each takes its reservation and returns NONE, or changes nothing and says why. */
enum idem_refusal idem_payment_reserve_capture(struct idem_payment *payment,
                                               int64_t amount_minor,
                                               enum idem_partial_capture partial);
enum idem_refusal idem_payment_reserve_cancel(struct idem_payment *payment,
                                              enum idem_partial_capture partial);
enum idem_refusal idem_payment_reserve_refund(struct idem_payment *payment, int64_t amount_minor);

/* The outcome of what was reserved: the money moved. */
void idem_payment_made(struct idem_payment *payment);
void idem_payment_captured(struct idem_payment *payment,
                           int64_t amount_minor,
                           enum idem_partial_capture partial);
void idem_payment_canceled(struct idem_payment *payment);
void idem_payment_refunded(struct idem_payment *payment, int64_t amount_minor);

/* The outcome of what was reserved: nothing moved, and the reservation returns. */
void idem_payment_failed(struct idem_payment *payment);
void idem_payment_capture_returned(struct idem_payment *payment, int64_t amount_minor);
void idem_payment_cancel_returned(struct idem_payment *payment);
void idem_payment_refund_returned(struct idem_payment *payment, int64_t amount_minor);

/*
 * What the provider took back by itself, after it had succeeded. `expired`: what is left of the
 * authorization cannot be captured any more. False: there is no such money here, nothing changed.
 */
bool idem_payment_expired(struct idem_payment *payment);
bool idem_payment_capture_reversed(struct idem_payment *payment, int64_t amount_minor);
void idem_payment_refund_reversed(struct idem_payment *payment, int64_t amount_minor);

const char *idem_payment_state_name(enum idem_payment_state state); /* "pending" ... */
const char *idem_refund_state_name(enum idem_refund_state state);
const char *idem_capture_mode_name(enum idem_capture_mode mode); /* "automatic", "manual". */

/* Asserts P10 on one row; called on both sides of a store. */
void idem_payment_check(const struct idem_payment *payment);
void idem_refund_check(const struct idem_refund *refund);

/* The business view as JSON, as it stands in answers. */
void idem_payment_print(const struct idem_payment *payment, struct idem_buf *buf);
void idem_refund_print(const struct idem_refund *refund, struct idem_buf *buf);

#endif /* IDEM_CORE_PAYMENT_H */
