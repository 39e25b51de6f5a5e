/*
 * webhook.h - what merchants are told: messages, where they go, and how each delivery stands.
 *
 * A message is written in the transaction of the change that it tells (P11), and only where its
 * principal has a webhook: an address of the merchant's. With it come its deliveries, one for each
 * webhook that wants its type. Deliveries are worked off afterwards, at least once each, and come
 * to their end as DELIVERED or DEAD; a dead one can be replayed. Pure.
 *
 * The secret of a webhook is derived from the effect secret, its id and its generation, and is
 * stored nowhere.
 */
#ifndef IDEM_CORE_WEBHOOK_H
#define IDEM_CORE_WEBHOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/uid.h"

#define IDEM_WEBHOOK_URL_MAX        512
#define IDEM_WEBHOOKS_PRINCIPAL_MAX 8    /* Of one principal, disabled ones too. */
#define IDEM_MESSAGE_DATA_MAX       6144 /* JSON, without what the delivery adds. */
#define IDEM_MESSAGES_STEP_MAX      5    /* Messages that one decision can write. */
#define IDEM_DELIVERY_ERROR_MAX     128

/* The values are stored, and are bits of `types`: append only. */
enum idem_message_type {
    IDEM_MESSAGE_NONE = 0,
    IDEM_MESSAGE_PAYMENT_AUTHORIZED,
    IDEM_MESSAGE_PAYMENT_CAPTURED, /* Wholly or in part; the data has the state and sums. */
    IDEM_MESSAGE_PAYMENT_REFUNDED, /* Likewise. */
    IDEM_MESSAGE_PAYMENT_CANCELED,
    IDEM_MESSAGE_PAYMENT_FAILED,
    IDEM_MESSAGE_PAYMENT_EXPIRED,
    IDEM_MESSAGE_PAYMENT_REVERSED, /* The provider took something back: a sum became less. */
    IDEM_MESSAGE_REFUND_SUCCEEDED,
    IDEM_MESSAGE_REFUND_FAILED,
    IDEM_MESSAGE_OPERATION_UNKNOWN,
    IDEM_MESSAGE_OPERATION_PARKED,
    IDEM_MESSAGE_OPERATION_SUCCEEDED,
    IDEM_MESSAGE_OPERATION_FAILED,
    IDEM_MESSAGE_OPERATION_RELEASED,
    IDEM_MESSAGE_CASE_OPENED,
    IDEM_MESSAGE_CASE_DECIDED,
    IDEM_MESSAGE_TEST, /* An operator's: does the webhook work? */
    IDEM_MESSAGE_TYPE_COUNT
};

/* One thing that is told. */
struct idem_message {
    int64_t row; /* The store's handle: higher means later, per payment and per operation. */
    struct idem_uid id;
    enum idem_message_type type;
    struct idem_str principal;
    struct idem_uid payment_id; /* In whose order it is told; zeros: of none. */
    int64_t at_us;
    struct idem_str data; /* A JSON object as text. */
};

/* Where a principal wants to be told. */
struct idem_webhook {
    int64_t row; /* The store's handle; 0: absent. */
    struct idem_uid id;
    uint32_t version;
    struct idem_str principal;
    struct idem_str url;
    uint64_t types;      /* Bit 1 << type for every type it wants. */
    uint32_t generation; /* Of its secret: from 1, +1 with every rotation. */
    int64_t rotated_us;  /* Of the last rotation; 0: never. */
    int64_t created_us;
    struct idem_str created_by;
    int64_t disabled_us; /* 0: it is told. */
    struct idem_str disabled_by;
};

/* The values are stored: append only. */
enum idem_delivery_state {
    IDEM_DELIVERY_NONE = 0,
    IDEM_DELIVERY_PENDING, /* To be tried at due_us. */
    IDEM_DELIVERY_DELIVERED,
    IDEM_DELIVERY_DEAD, /* Given up: tried often enough, or its webhook is gone or disabled. */
    IDEM_DELIVERY_COUNT
};

/* One message on its way to one webhook. */
struct idem_delivery {
    int64_t row; /* The store's handle; 0: absent. */
    uint32_t version;
    int64_t message_row;
    int64_t webhook_row;
    struct idem_uid payment_id; /* The message's. */
    enum idem_delivery_state state;
    uint32_t attempts;     /* Ended, one way or the other; of the last replay on. */
    int64_t due_us;        /* 0: not PENDING. */
    struct idem_uid token; /* Of the last attempt, unless it failed. */
    uint16_t last_status;  /* HTTP; 0: no answer, or not tried. */
    struct idem_str last_error;
    int64_t created_us;
    int64_t finished_us; /* 0: PENDING. */
};

/* What is told of an attempt. */
enum idem_delivery_word {
    IDEM_DELIVERY_WORD_NONE = 0,
    IDEM_DELIVERY_WORD_TAKE,   /* An attempt begins; nobody else makes one within `pause_us`. */
    IDEM_DELIVERY_WORD_DONE,   /* 2xx. */
    IDEM_DELIVERY_WORD_FAILED, /* Anything else: again after `pause_us`; 0: given up. */
    IDEM_DELIVERY_WORD_GONE,   /* 410: given up, and its webhook is disabled. */
    IDEM_DELIVERY_WORD_REPLAY, /* A person: DEAD or DELIVERED becomes PENDING again, now. */
    IDEM_DELIVERY_WORD_COUNT
};

enum idem_webhook_action {
    IDEM_WEBHOOK_NOTHING = 0,
    IDEM_WEBHOOK_ADD, /* The same row again is the same webhook. */
    IDEM_WEBHOOK_ROTATE,
    IDEM_WEBHOOK_DISABLE,
    IDEM_WEBHOOK_ENABLE,
    IDEM_WEBHOOK_TEST, /* A message of type TEST goes to it alone. */
    IDEM_WEBHOOK_ACTION_COUNT
};

struct idem_webhook_change {
    enum idem_webhook_action action;
    struct idem_webhook row; /* ADD: id, principal, url, types. Otherwise only its id counts. */
    uint32_t generation;     /* ROTATE: of the secret that is replaced; another: nothing to do. */
    struct idem_str by;
};

/* A delivery is named by its message and its webhook. */
struct idem_delivery_change {
    enum idem_delivery_word word;
    struct idem_uid message_id;
    struct idem_uid webhook_id;
    struct idem_uid token; /* DONE, FAILED, GONE: of the attempt, as TAKE's command had it. */
    uint16_t status;
    struct idem_str error;
    int64_t pause_us;   /* From now on; of FAILED 0: given up. */
    struct idem_str by; /* REPLAY. */
};

const char *idem_message_type_name(enum idem_message_type type);      /* "payment.captured" ... */
enum idem_message_type idem_message_type_from(struct idem_str name);  /* NONE if unknown. */
const char *idem_delivery_state_name(enum idem_delivery_state state); /* "pending" ... */
enum idem_delivery_state idem_delivery_state_from(struct idem_str name); /* NONE if unknown. */

#endif /* IDEM_CORE_WEBHOOK_H */
