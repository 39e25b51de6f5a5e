/*
 * fault.h - misbehaviour on request: the grammar of method tokens.
 *
 *   token = "tok_" fault *( "+" later )
 *   later = operation "_" fault / "callback_" telling / operation "_callback_" telling
 *   operation = "capture" / "cancel" / "refund"
 *
 * The first fault is the payment's own, the others wait for the later operations on it. A telling
 * is what goes wrong with the callbacks about the payment, or about the operation. If something is
 * named twice, the first one counts. Every fault and telling is in docs/sandbox.md.
 */
#ifndef IDEM_SANDBOX_FAULT_H
#define IDEM_SANDBOX_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "sandbox/order.h"

#define IDEM_FAULT_NUMBER_MAX 3600 /* Seconds, or times. */

enum idem_sandbox_fault {
    IDEM_FAULT_OK = 0,
    IDEM_FAULT_DECLINE,
    IDEM_FAULT_LOSE_ANSWER,
    IDEM_FAULT_LOSE_REQUEST,
    IDEM_FAULT_LATE,
    IDEM_FAULT_SLOW,
    IDEM_FAULT_500_BEFORE,
    IDEM_FAULT_500_AFTER,
    IDEM_FAULT_CUT_BODY,
    IDEM_FAULT_GARBAGE,
    IDEM_FAULT_WRONG_AMOUNT,
    IDEM_FAULT_WRONG_CURRENCY,
    IDEM_FAULT_WRONG_ID,
    IDEM_FAULT_UNKNOWN_STATUS,
    IDEM_FAULT_429,
    IDEM_FAULT_503,
    IDEM_FAULT_PROCESSING_OK,
    IDEM_FAULT_PROCESSING_FAIL,
    IDEM_FAULT_NOT_FOUND,
    IDEM_FAULT_DEAD_REUSE,
    IDEM_FAULT_DEAD_REUSE_AFTER,
    IDEM_FAULT_LIST_ERROR,
    IDEM_FAULT_LIST_SLOW,
    IDEM_FAULT_COUNT
};

struct idem_sandbox_fault_rule {
    enum idem_sandbox_fault fault;
    bool always;     /* Every arrival suffers, not only the first. */
    int64_t wait_us; /* The N of late_N, slow_N, processing_N, not_found_N and list_slow_N. */
    int64_t count;   /* The N of list_error_N. */
};

enum idem_sandbox_telling {
    IDEM_TELLING_OK = 0,
    IDEM_TELLING_NONE,
    IDEM_TELLING_LATE,
    IDEM_TELLING_TWICE,
    IDEM_TELLING_AGAIN,
    IDEM_TELLING_REORDERED,
    IDEM_TELLING_WRONG_AMOUNT,
    IDEM_TELLING_WRONG_CURRENCY,
    IDEM_TELLING_WRONG_ID,
    IDEM_TELLING_WRONG_ORDER,
    IDEM_TELLING_WRONG_ACCOUNT,
    IDEM_TELLING_UNKNOWN_OUTCOME,
    IDEM_TELLING_GARBAGE,
    IDEM_TELLING_STALE,
    IDEM_TELLING_FUTURE,
    IDEM_TELLING_FORGED,
    IDEM_TELLING_LAST_SECRET,
    IDEM_TELLING_CONTRADICT,
    IDEM_TELLING_REVERSE,
    IDEM_TELLING_COUNT
};

struct idem_sandbox_telling_rule {
    enum idem_sandbox_telling telling;
    int64_t wait_us; /* The N of late_N, contradict_N and reverse_N. */
};

struct idem_sandbox_fault_plan { /* By kind of operation. */
    struct idem_sandbox_fault_rule rules[IDEM_ORDER_KIND_COUNT];
    struct idem_sandbox_telling_rule tellings[IDEM_ORDER_KIND_COUNT];
};

/* False if `token` is not in the grammar; then `*ret_plan` is untouched. */
bool idem_sandbox_fault_plan_parse(struct idem_str token,
                                   struct idem_sandbox_fault_plan *ret_plan) IDEM_MUST_CHECK;

#endif /* IDEM_SANDBOX_FAULT_H */
