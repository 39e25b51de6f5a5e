/*
 * Names of what merchants are told. They stand in messages and in the API and do not change.
 */
#include "core/webhook.h"

#include "base/bug.h"

static const char *const type_names[IDEM_MESSAGE_TYPE_COUNT] = {
    [IDEM_MESSAGE_NONE] = "none",
    [IDEM_MESSAGE_PAYMENT_AUTHORIZED] = "payment.authorized",
    [IDEM_MESSAGE_PAYMENT_CAPTURED] = "payment.captured",
    [IDEM_MESSAGE_PAYMENT_REFUNDED] = "payment.refunded",
    [IDEM_MESSAGE_PAYMENT_CANCELED] = "payment.canceled",
    [IDEM_MESSAGE_PAYMENT_FAILED] = "payment.failed",
    [IDEM_MESSAGE_PAYMENT_EXPIRED] = "payment.expired",
    [IDEM_MESSAGE_PAYMENT_REVERSED] = "payment.reversed",
    [IDEM_MESSAGE_REFUND_SUCCEEDED] = "refund.succeeded",
    [IDEM_MESSAGE_REFUND_FAILED] = "refund.failed",
    [IDEM_MESSAGE_OPERATION_UNKNOWN] = "operation.unknown",
    [IDEM_MESSAGE_OPERATION_PARKED] = "operation.parked",
    [IDEM_MESSAGE_OPERATION_SUCCEEDED] = "operation.succeeded",
    [IDEM_MESSAGE_OPERATION_FAILED] = "operation.failed",
    [IDEM_MESSAGE_OPERATION_RELEASED] = "operation.released",
    [IDEM_MESSAGE_CASE_OPENED] = "case.opened",
    [IDEM_MESSAGE_CASE_DECIDED] = "case.decided",
    [IDEM_MESSAGE_TEST] = "webhook.test",
};

static const char *const state_names[IDEM_DELIVERY_COUNT] = {
    [IDEM_DELIVERY_NONE] = "none",
    [IDEM_DELIVERY_PENDING] = "pending",
    [IDEM_DELIVERY_DELIVERED] = "delivered",
    [IDEM_DELIVERY_DEAD] = "dead",
};

const char *idem_message_type_name(enum idem_message_type type)
{
    IDEM_ASSERT(type < IDEM_MESSAGE_TYPE_COUNT);
    return type_names[type];
}

enum idem_message_type idem_message_type_from(struct idem_str name)
{
    for (int type = IDEM_MESSAGE_NONE + 1; type < IDEM_MESSAGE_TYPE_COUNT; type++) {
        if (idem_str_equal(name, idem_str_from(type_names[type]))) {
            return (enum idem_message_type)type;
        }
    }
    return IDEM_MESSAGE_NONE;
}

const char *idem_delivery_state_name(enum idem_delivery_state state)
{
    IDEM_ASSERT(state < IDEM_DELIVERY_COUNT);
    return state_names[state];
}

enum idem_delivery_state idem_delivery_state_from(struct idem_str name)
{
    for (int state = IDEM_DELIVERY_NONE + 1; state < IDEM_DELIVERY_COUNT; state++) {
        if (idem_str_equal(name, idem_str_from(state_names[state]))) {
            return (enum idem_delivery_state)state;
        }
    }
    return IDEM_DELIVERY_NONE;
}
