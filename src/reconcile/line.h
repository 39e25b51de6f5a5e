/*
 * line.h - one effect as one side has it: this service's record, or the provider's word.
 */
#ifndef IDEM_RECONCILE_LINE_H
#define IDEM_RECONCILE_LINE_H

#include <stdint.h>

#include "base/text.h"

#define IDEM_LINE_ID_MAX 64 /* What others use as an id is at most so long, or cut. */

enum idem_line_side {
    IDEM_LINE_HERE = 0, /* The service's records. */
    IDEM_LINE_THERE,    /* The provider's listing or statement. */
    IDEM_LINE_SIDE_COUNT
};

/* Lines of one effect are compared in this order. */
enum idem_line_state {
    IDEM_LINE_NONE = 0,
    IDEM_LINE_SUCCEEDED,
    IDEM_LINE_FAILED,
    IDEM_LINE_REVERSED, /* There: it had succeeded and was taken back. */
    IDEM_LINE_RELEASED, /* Here: provably not executed. */
    IDEM_LINE_OPEN,     /* Here: not ended. */
    IDEM_LINE_PARKED,   /* Here: not ended, in front of a person. */
    IDEM_LINE_STATE_COUNT
};

struct idem_line {
    enum idem_line_state state;
    struct idem_str effect_id; /* 1 to IDEM_LINE_ID_MAX bytes. */
    int64_t amount_minor;      /* -1: not said. */
    struct idem_str currency;  /* Empty: not said. */
    struct idem_str order_no;
    struct idem_str payment_id; /* There: the effect id of the payment it acted on. */
    struct idem_str reference;
    struct idem_str operation; /* Here: its public id. */
    /* It happened between these, both included. Here: made and ended; 0: not ended, not said. */
    int64_t first_us;
    int64_t last_us;
};

/* "succeeded" ... as they stand in statements and in what is printed. */
const char *idem_line_state_name(enum idem_line_state state);

/* A name of the service's (docs/admin.md), or NONE. */
enum idem_line_state idem_line_state_here(struct idem_str name);

/* A name of a statement's, or NONE. */
enum idem_line_state idem_line_state_there(struct idem_str name);

#endif /* IDEM_RECONCILE_LINE_H */
