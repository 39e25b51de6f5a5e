/*
 * The payment: sums decide, the state follows.
 *
 *   PENDING --made--> AUTHORIZED --captured--> PARTIALLY_CAPTURED --captured--> CAPTURED
 *      |  \--made (automatic)----------------------------------------------->     |
 *      |                  \--canceled--> CANCELED                             refunded
 *      \--failed--> FAILED                               PARTIALLY_REFUNDED --> REFUNDED
 *
 *   what the provider takes back by itself: AUTHORIZED --expired--> EXPIRED; a capture or a refund
 *   that is reversed lowers its sum, and the state follows back. Where nothing is left of it, it is
 *   EXPIRED: only whoever cancels frees the order number.
 *
 * After every change the state of a live payment is computed from its sums by state_from_sums(), so
 * that sums and state cannot disagree. A reservation (pending sums, canceling) is taken before the
 * provider is asked and turned into a sum or returned by the outcome; while the outcome is unknown
 * it stays, and nobody else can promise the same money (P10).
 *
 * The amounts were positive and in range when they came in, and every sum is bounded by authorized,
 * which is one such amount: no addition here can overflow, and idem_payment_check() proves it.
 */
#include "core/payment.h"

#include "base/bug.h"
#include "base/currency.h"
#include "base/date.h"
#include "base/json.h"
#include "base/money.h"

bool idem_payment_holds_order(enum idem_payment_state state)
{
    return state != IDEM_PAYMENT_NONE && state != IDEM_PAYMENT_FAILED &&
           state != IDEM_PAYMENT_CANCELED;
}

bool idem_payment_is_stray(const struct idem_payment *payment)
{
    char memory[64];
    struct idem_buf number;
    idem_buf_init(&number, memory, sizeof(memory));
    idem_buf_add(&number, IDEM_STR(IDEM_STRAY_PREFIX));
    idem_uid_print(payment->id, &number);
    return idem_str_equal(idem_buf_str(&number), payment->order_no);
}

int64_t idem_payment_capturable(const struct idem_payment *payment)
{
    return payment->authorized_minor - payment->captured_minor - payment->capture_pending_minor -
           payment->released_minor;
}

int64_t idem_payment_refundable(const struct idem_payment *payment)
{
    return payment->captured_minor - payment->refunded_minor - payment->refund_pending_minor;
}

static void sums_check(const struct idem_payment *payment)
{
    IDEM_ASSERT(payment->authorized_minor >= 0);
    IDEM_ASSERT(payment->authorized_minor <= payment->amount_minor);
    IDEM_ASSERT(payment->captured_minor >= 0);
    IDEM_ASSERT(payment->capture_pending_minor >= 0);
    IDEM_ASSERT(payment->released_minor >= 0);
    IDEM_ASSERT(payment->refunded_minor >= 0);
    IDEM_ASSERT(payment->refund_pending_minor >= 0);
    /* P10; differences of numbers between zero and 2^63 - 1 do not overflow. */
    IDEM_ASSERT(idem_payment_capturable(payment) >= 0);
    IDEM_ASSERT(idem_payment_refundable(payment) >= 0);
}

void idem_payment_check(const struct idem_payment *payment)
{
    IDEM_ASSERT(payment->state > IDEM_PAYMENT_NONE);
    IDEM_ASSERT(payment->state < IDEM_PAYMENT_COUNT);
    IDEM_ASSERT(payment->version > 0);
    IDEM_ASSERT(payment->amount_minor > 0);
    IDEM_ASSERT(!payment->canceling || payment->capture_pending_minor == 0);
    sums_check(payment);
}

void idem_refund_check(const struct idem_refund *refund)
{
    IDEM_ASSERT(refund->state > IDEM_REFUND_NONE);
    IDEM_ASSERT(refund->state < IDEM_REFUND_COUNT);
    IDEM_ASSERT(refund->version > 0);
    IDEM_ASSERT(refund->amount_minor > 0);
}

/* The state that the sums of an authorized payment mean. */
static enum idem_payment_state state_from_sums(const struct idem_payment *payment)
{
    int64_t undecided = payment->authorized_minor - payment->captured_minor -
                        payment->released_minor; /* What may still be captured. */
    if (payment->captured_minor == 0) {
        return undecided > 0 ? IDEM_PAYMENT_AUTHORIZED : IDEM_PAYMENT_CANCELED;
    }
    if (undecided > 0) {
        return IDEM_PAYMENT_PARTIALLY_CAPTURED;
    }
    if (payment->refunded_minor == 0) {
        return IDEM_PAYMENT_CAPTURED;
    }
    return payment->refunded_minor < payment->captured_minor ? IDEM_PAYMENT_PARTIALLY_REFUNDED
                                                             : IDEM_PAYMENT_REFUNDED;
}

static bool has_open_authorization(const struct idem_payment *payment)
{
    return payment->state == IDEM_PAYMENT_AUTHORIZED ||
           payment->state == IDEM_PAYMENT_PARTIALLY_CAPTURED;
}

enum idem_refusal idem_payment_reserve_capture(struct idem_payment *payment,
                                               int64_t amount_minor,
                                               enum idem_partial_capture partial)
{
    idem_payment_check(payment);
    IDEM_ASSERT(amount_minor > 0);
    if (!has_open_authorization(payment) || payment->canceling) {
        return IDEM_REFUSAL_STATE;
    }
    bool started = payment->captured_minor > 0 || payment->capture_pending_minor > 0;
    if (started && partial != IDEM_PARTIAL_MANY) {
        return IDEM_REFUSAL_STATE;
    }
    if (amount_minor > idem_payment_capturable(payment)) {
        return IDEM_REFUSAL_AMOUNT;
    }
    if (partial == IDEM_PARTIAL_NONE && amount_minor != payment->authorized_minor) {
        return IDEM_REFUSAL_PARTIAL;
    }
    payment->capture_pending_minor += amount_minor;
    idem_payment_check(payment);
    return IDEM_REFUSAL_NONE;
}

enum idem_refusal idem_payment_reserve_cancel(struct idem_payment *payment,
                                              enum idem_partial_capture partial)
{
    idem_payment_check(payment);
    if (!has_open_authorization(payment) || payment->canceling ||
        payment->capture_pending_minor > 0) {
        return IDEM_REFUSAL_STATE;
    }
    if (payment->captured_minor > 0 && partial != IDEM_PARTIAL_MANY) {
        return IDEM_REFUSAL_STATE;
    }
    payment->canceling = true;
    idem_payment_check(payment);
    return IDEM_REFUSAL_NONE;
}

enum idem_refusal idem_payment_reserve_refund(struct idem_payment *payment, int64_t amount_minor)
{
    idem_payment_check(payment);
    IDEM_ASSERT(amount_minor > 0);
    if (payment->captured_minor == 0) {
        return IDEM_REFUSAL_STATE;
    }
    if (amount_minor > idem_payment_refundable(payment)) {
        return IDEM_REFUSAL_AMOUNT;
    }
    payment->refund_pending_minor += amount_minor;
    idem_payment_check(payment);
    return IDEM_REFUSAL_NONE;
}

void idem_payment_made(struct idem_payment *payment)
{
    IDEM_ASSERT(payment->state == IDEM_PAYMENT_PENDING);
    payment->authorized_minor = payment->amount_minor;
    if (payment->capture_mode == IDEM_CAPTURE_AUTOMATIC) {
        payment->captured_minor = payment->amount_minor;
    }
    payment->state = state_from_sums(payment);
    idem_payment_check(payment);
}

void idem_payment_captured(struct idem_payment *payment,
                           int64_t amount_minor,
                           enum idem_partial_capture partial)
{
    IDEM_ASSERT(payment->capture_pending_minor >= amount_minor);
    payment->capture_pending_minor -= amount_minor;
    payment->captured_minor += amount_minor;
    if (partial != IDEM_PARTIAL_MANY) {
        payment->released_minor = payment->authorized_minor - payment->captured_minor;
    }
    payment->state = state_from_sums(payment);
    idem_payment_check(payment);
}

void idem_payment_canceled(struct idem_payment *payment)
{
    IDEM_ASSERT(payment->canceling);
    payment->canceling = false;
    payment->released_minor = payment->authorized_minor - payment->captured_minor;
    payment->state = state_from_sums(payment);
    idem_payment_check(payment);
}

void idem_payment_refunded(struct idem_payment *payment, int64_t amount_minor)
{
    IDEM_ASSERT(payment->refund_pending_minor >= amount_minor);
    payment->refund_pending_minor -= amount_minor;
    payment->refunded_minor += amount_minor;
    payment->state = state_from_sums(payment);
    idem_payment_check(payment);
}

void idem_payment_failed(struct idem_payment *payment)
{
    IDEM_ASSERT(payment->state == IDEM_PAYMENT_PENDING);
    payment->state = IDEM_PAYMENT_FAILED;
    idem_payment_check(payment);
}

void idem_payment_capture_returned(struct idem_payment *payment, int64_t amount_minor)
{
    IDEM_ASSERT(payment->capture_pending_minor >= amount_minor);
    payment->capture_pending_minor -= amount_minor;
    idem_payment_check(payment);
}

void idem_payment_cancel_returned(struct idem_payment *payment)
{
    IDEM_ASSERT(payment->canceling);
    payment->canceling = false;
    idem_payment_check(payment);
}

void idem_payment_refund_returned(struct idem_payment *payment, int64_t amount_minor)
{
    IDEM_ASSERT(payment->refund_pending_minor >= amount_minor);
    payment->refund_pending_minor -= amount_minor;
    idem_payment_check(payment);
}

bool idem_payment_expired(struct idem_payment *payment)
{
    int64_t left_minor = idem_payment_capturable(payment);
    if (left_minor == 0) {
        return false;
    }
    payment->released_minor += left_minor;
    if (payment->captured_minor == 0 && payment->capture_pending_minor == 0) {
        payment->state = IDEM_PAYMENT_EXPIRED;
    } else if (payment->captured_minor > 0) {
        payment->state = state_from_sums(payment);
    }
    idem_payment_check(payment);
    return true;
}

bool idem_payment_capture_reversed(struct idem_payment *payment, int64_t amount_minor)
{
    if (idem_payment_refundable(payment) < amount_minor) {
        return false;
    }
    payment->captured_minor -= amount_minor;
    if (payment->released_minor > 0) {
        payment->released_minor += amount_minor; /* The authorization was given back. */
    }
    payment->state = state_from_sums(payment);
    if (payment->state == IDEM_PAYMENT_CANCELED) { /* Nobody has cancelled it. */
        payment->state = IDEM_PAYMENT_EXPIRED;
    }
    idem_payment_check(payment);
    return true;
}

void idem_payment_refund_reversed(struct idem_payment *payment, int64_t amount_minor)
{
    IDEM_ASSERT(payment->refunded_minor >= amount_minor);
    payment->refunded_minor -= amount_minor;
    payment->state = state_from_sums(payment);
    idem_payment_check(payment);
}

const char *idem_payment_state_name(enum idem_payment_state state)
{
    static const char *const names[IDEM_PAYMENT_COUNT] = {
        [IDEM_PAYMENT_NONE] = "none",
        [IDEM_PAYMENT_PENDING] = "pending",
        [IDEM_PAYMENT_AUTHORIZED] = "authorized",
        [IDEM_PAYMENT_PARTIALLY_CAPTURED] = "partially_captured",
        [IDEM_PAYMENT_CAPTURED] = "captured",
        [IDEM_PAYMENT_PARTIALLY_REFUNDED] = "partially_refunded",
        [IDEM_PAYMENT_REFUNDED] = "refunded",
        [IDEM_PAYMENT_FAILED] = "failed",
        [IDEM_PAYMENT_CANCELED] = "canceled",
        [IDEM_PAYMENT_EXPIRED] = "expired",
    };
    IDEM_ASSERT(state < IDEM_PAYMENT_COUNT);
    return names[state];
}

const char *idem_refund_state_name(enum idem_refund_state state)
{
    static const char *const names[IDEM_REFUND_COUNT] = {
        [IDEM_REFUND_NONE] = "none",
        [IDEM_REFUND_PENDING] = "pending",
        [IDEM_REFUND_SUCCEEDED] = "succeeded",
        [IDEM_REFUND_FAILED] = "failed",
    };
    IDEM_ASSERT(state < IDEM_REFUND_COUNT);
    return names[state];
}

const char *idem_capture_mode_name(enum idem_capture_mode mode)
{
    static const char *const names[IDEM_CAPTURE_MODE_COUNT] = {
        [IDEM_CAPTURE_MODE_NONE] = "none",
        [IDEM_CAPTURE_AUTOMATIC] = "automatic",
        [IDEM_CAPTURE_MANUAL] = "manual",
    };
    IDEM_ASSERT(mode < IDEM_CAPTURE_MODE_COUNT);
    return names[mode];
}

/* `,"name":` */
static void add_name(struct idem_buf *buf, const char *name)
{
    idem_buf_add(buf, IDEM_STR(",\""));
    idem_buf_add(buf, idem_str_from(name));
    idem_buf_add(buf, IDEM_STR("\":"));
}

static void add_text(struct idem_buf *buf, const char *name, struct idem_str value)
{
    add_name(buf, name);
    idem_json_add_string(buf, value);
}

static void add_text_if(struct idem_buf *buf, const char *name, struct idem_str value)
{
    if (value.len > 0) {
        add_text(buf, name, value);
    }
}

static void add_amount(struct idem_buf *buf,
                       const char *name,
                       int64_t minor,
                       struct idem_str currency)
{
    int exponent = idem_currency_exponent(currency);
    IDEM_ASSERT(exponent >= 0); /* The edge lets no other in. */
    add_name(buf, name);
    idem_buf_add_char(buf, '"');
    idem_amount_print(minor, exponent, buf);
    idem_buf_add_char(buf, '"');
}

static void add_date(struct idem_buf *buf, const char *name, int64_t wall_us)
{
    add_name(buf, name);
    idem_buf_add_char(buf, '"');
    idem_date_print_rfc3339(wall_us, buf);
    idem_buf_add_char(buf, '"');
}

static void add_id(struct idem_buf *buf, struct idem_uid id)
{
    idem_buf_add(buf, IDEM_STR("{\"id\":\""));
    idem_uid_print(id, buf);
    idem_buf_add_char(buf, '"');
}

void idem_payment_print(const struct idem_payment *payment, struct idem_buf *buf)
{
    add_id(buf, payment->id);
    add_text(buf, "order_no", payment->order_no);
    add_text(buf, "state", idem_str_from(idem_payment_state_name(payment->state)));
    add_amount(buf, "amount", payment->amount_minor, payment->currency);
    add_text(buf, "currency", payment->currency);
    add_text(buf, "capture", idem_str_from(idem_capture_mode_name(payment->capture_mode)));
    add_amount(buf, "authorized", payment->authorized_minor, payment->currency);
    add_amount(buf, "captured", payment->captured_minor, payment->currency);
    add_amount(buf, "capture_pending", payment->capture_pending_minor, payment->currency);
    add_amount(buf, "released", payment->released_minor, payment->currency);
    add_amount(buf, "refunded", payment->refunded_minor, payment->currency);
    add_amount(buf, "refund_pending", payment->refund_pending_minor, payment->currency);
    add_text(buf, "provider", payment->entry);
    add_text_if(buf, "reference", payment->reference);
    add_text_if(buf, "description", payment->description);
    if (payment->metadata.len > 0) {
        add_name(buf, "metadata");
        idem_buf_add(buf, payment->metadata);
    }
    add_text_if(buf, "failure_code", payment->failure_code);
    add_date(buf, "created", payment->created_us);
    add_date(buf, "updated", payment->updated_us);
    idem_buf_add(buf, IDEM_STR("}\n"));
}

void idem_refund_print(const struct idem_refund *refund, struct idem_buf *buf)
{
    add_id(buf, refund->id);
    idem_buf_add(buf, IDEM_STR(",\"payment\":\"/v1/payments/"));
    idem_uid_print(refund->payment_id, buf);
    idem_buf_add_char(buf, '"');
    add_text_if(buf, "refund_no", refund->refund_no);
    add_text(buf, "state", idem_str_from(idem_refund_state_name(refund->state)));
    add_amount(buf, "amount", refund->amount_minor, refund->currency);
    add_text(buf, "currency", refund->currency);
    add_text_if(buf, "reference", refund->reference);
    add_text_if(buf, "failure_code", refund->failure_code);
    add_date(buf, "created", refund->created_us);
    add_date(buf, "updated", refund->updated_us);
    idem_buf_add(buf, IDEM_STR("}\n"));
}
