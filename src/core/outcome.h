/*
 * outcome.h - what a command's decision released, in memory that outlives the transaction.
 *
 * The store fills it after the decision and hands it back with the batch; it is true only if the
 * batch's answer is DURABLE.
 */
#ifndef IDEM_CORE_OUTCOME_H
#define IDEM_CORE_OUTCOME_H

#include "core/decision.h"

#define IDEM_OUTCOME_MEMORY_MAX (IDEM_REQUEST_MAX + IDEM_ANSWER_MAX + 1024)

struct idem_outcome {
    struct idem_release release;
    /*
     * The intent as it stands after the commit; row 0 and state NONE if the command was about none,
     * state NONE if it was removed. Text of answer, effect, trace and principal is kept in
     * `memory`; key is empty.
     */
    struct idem_intent intent;
    bool parked;                /* By this command. */
    enum idem_case_kind opened; /* Likewise; NONE: no case. */
    bool to_post;               /* Likewise: messages, or a delivery that is replayed. */
    bool sweep_more;            /* It forgot as much as may go at a time: there may be more. */
    struct idem_buf kept;
    char memory[IDEM_OUTCOME_MEMORY_MAX];
};

/* Copies what a release needs out of the decision. */
void idem_outcome_take(struct idem_outcome *outcome, const struct idem_decision *decision);

/* Copies an outcome with its text. */
void idem_outcome_copy(struct idem_outcome *outcome, const struct idem_outcome *from);

#endif /* IDEM_CORE_OUTCOME_H */
