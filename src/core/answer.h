/*
 * answer.h - the bodies and headers of answers, rendered once so that every replay is the same
 * bytes.
 *
 * Pure. Everything goes into the caller's buffer; check `full` at the end.
 */
#ifndef IDEM_CORE_ANSWER_H
#define IDEM_CORE_ANSWER_H

#include "core/intent.h"
#include "core/payment.h"
#include "core/problem.h"

/* What a problem says beside its catalogue entry. Empty text and zero ids are left out. */
struct idem_problem_details {
    enum idem_problem problem;
    enum idem_advice_effect effect; /* Used where the catalogue says DEPENDS. */
    struct idem_str detail;
    struct idem_uid operation_id; /* -> "operation": "/v1/operations/{id}" */
    struct idem_uid payment_id;   /* -> "payment": "/v1/payments/{id}" */
    struct idem_uid refund_id;    /* -> "refund": "/v1/refunds/{id}" */
    struct idem_str provider_code;
    struct idem_str provider_message;
};

/* application/problem+json, RFC 9457, with members `effect` and `retry`. */
void idem_problem_print(const struct idem_problem_details *details, struct idem_buf *buf);

/* A stored answer: status, header lines and body, both in `buf`. */
struct idem_answer idem_answer_problem(const struct idem_problem_details *details,
                                       struct idem_buf *buf);
struct idem_answer idem_answer_payment(uint16_t status,
                                       const struct idem_payment *payment,
                                       struct idem_buf *buf);
struct idem_answer idem_answer_refund(uint16_t status,
                                      const struct idem_refund *refund,
                                      struct idem_buf *buf);

#endif /* IDEM_CORE_ANSWER_H */
