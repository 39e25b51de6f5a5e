/*
 * order.h - what a caller asks the sandbox to do: the body of POST {base}/effects.
 *
 * The sandbox reads it with rules of its own and shares none with the adapters, so that each finds
 * the other's mistakes.
 */
#ifndef IDEM_SANDBOX_ORDER_H
#define IDEM_SANDBOX_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct idem_json;

#define IDEM_ORDER_ID_MAX   64   /* An effect id: letters, digits, '-' and '_'. */
#define IDEM_ORDER_TEXT_MAX 2048 /* Bytes of any other text. */

enum idem_sandbox_order_kind {
    IDEM_ORDER_NONE = 0,
    IDEM_ORDER_CHARGE,
    IDEM_ORDER_AUTHORIZE,
    IDEM_ORDER_CAPTURE,
    IDEM_ORDER_CANCEL,
    IDEM_ORDER_REFUND,
    IDEM_ORDER_KIND_COUNT
};

/* Text is borrowed from whoever read it. What was absent is empty. */
struct idem_sandbox_order {
    enum idem_sandbox_order_kind kind;
    int64_t amount_minor;
    struct idem_str id;
    struct idem_str currency;
    struct idem_str order_no;
    struct idem_str method;            /* Only of payments. */
    struct idem_str description;       /* Only of payments. */
    struct idem_str payment_id;        /* Only of later operations. */
    struct idem_str payment_reference; /* Only of later operations. */
};

struct idem_str idem_sandbox_order_kind_name(enum idem_sandbox_order_kind kind);

/* A charge or an authorization makes a payment; the other kinds refer to one. */
bool idem_sandbox_order_makes_payment(enum idem_sandbox_order_kind kind);

bool idem_sandbox_order_id_valid(struct idem_str id);

/*
 * Reads the object at `object` into `*ret_order`, with its texts in `memory`. Returns NULL, or the
 * code of what is wrong, a constant; then `*ret_order` is not to be used.
 */
const char *idem_sandbox_order_read(const struct idem_json *json,
                                    size_t object,
                                    struct idem_buf *memory,
                                    struct idem_sandbox_order *ret_order) IDEM_MUST_CHECK;

/* Prints the object that idem_sandbox_order_read() reads. */
void idem_sandbox_order_print(const struct idem_sandbox_order *order, struct idem_buf *buf);

bool idem_sandbox_order_equal(const struct idem_sandbox_order *left,
                              const struct idem_sandbox_order *right);

/* Copies `from` with its texts into one block. Gives the block (free() it), or NULL: no memory. */
void *idem_sandbox_order_copy(const struct idem_sandbox_order *from,
                              struct idem_sandbox_order *ret_copy) IDEM_MUST_CHECK;

#endif /* IDEM_SANDBOX_ORDER_H */
