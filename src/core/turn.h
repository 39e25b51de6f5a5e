/*
 * turn.h - one decision being made: what came in, and the rows as they will stand.
 *
 * The steps that more than one kind of command needs. Every function here changes only
 * turn->decision. Stays in core.
 */
#ifndef IDEM_CORE_TURN_H
#define IDEM_CORE_TURN_H

#include "core/answer.h"
#include "core/decision.h"
#include "core/recovery.h"

struct idem_turn {
    const struct idem_rules *rules;
    const struct idem_facts *facts;
    const struct idem_command *command;
    struct idem_decision *decision;
    struct idem_intent *intent;   /* decision->intent.row: as it will stand. */
    struct idem_payment *payment; /* decision->payment.row */
    struct idem_refund *refund;   /* decision->refund.row */
    enum idem_cause cause;
    uint32_t resolved_send_no; /* A send that this decision resolves; 0: none. */
};

/*
 * True if this very command wrote the record before: an earlier run of it was durable after all.
 * The row is written again unchanged and the release is given again.
 */
bool idem_turn_repeat(struct idem_turn *turn);

/* Marks a row as changed by this command; once or more in a turn. */
void idem_turn_write_intent(struct idem_turn *turn);
void idem_turn_write_payment(struct idem_turn *turn);
void idem_turn_write_refund(struct idem_turn *turn);

/* Appends to the history. */
void idem_turn_event(struct idem_turn *turn, enum idem_event_kind kind, struct idem_str detail);
void idem_turn_event_send(struct idem_turn *turn,
                          enum idem_event_kind kind,
                          uint32_t send_no,
                          struct idem_str detail);

/* Opens a case, unless one of its kind is open. */
void idem_turn_case(struct idem_turn *turn, enum idem_case_kind kind, struct idem_str detail);

/* Every open case of the intent is decided: by whom, and what was said. */
void idem_turn_decide_cases(struct idem_turn *turn, struct idem_str by, struct idem_str decision);

/* Says "pending -> captured" of the payment or refund, if its state moved since `from`. */
void idem_turn_payment_moved(struct idem_turn *turn, enum idem_payment_state from);
void idem_turn_refund_moved(struct idem_turn *turn, enum idem_refund_state from);

/* True while somebody may act: a lease that has not ended, of this incarnation of the store. */
bool idem_turn_lease_lives(const struct idem_turn *turn);

/* A new attempt takes over: epoch, token, lease. */
void idem_turn_acquire(struct idem_turn *turn);

/*
 * Grants one send to the current attempt: the send row, DISPATCHED from CLAIMED, the release. The
 * caller has checked that a send is allowed.
 */
void idem_turn_grant_send(struct idem_turn *turn);

/* Nobody acts any more; `step` follows at `at_us`. */
void idem_turn_plan(struct idem_turn *turn, enum idem_step step, int64_t at_us);

/* True while `send` may have executed or may still execute, as far as this turn knows. */
bool idem_turn_send_is_open(const struct idem_turn *turn, const struct idem_send *send);

/* Final. Writes state, answer, retention; the business rows are the caller's. */
void idem_turn_finish(struct idem_turn *turn,
                      enum idem_intent_state state,
                      enum idem_problem problem,
                      struct idem_answer answer);

/* What was added to the decision's scratch since it had `from` bytes; all of it fitted. */
struct idem_str idem_turn_text_since(const struct idem_turn *turn, size_t from);

/* Releases a reply: the intent's stored answer, or `problem` if it is not NONE. */
void idem_turn_reply(struct idem_turn *turn, enum idem_problem problem, bool replayed);

/* Takes the reservation of the intent's effect, and returns it. */
enum idem_problem idem_turn_reserve(struct idem_turn *turn,
                                    const struct idem_provider_rules *provider);
void idem_turn_return_reservation(struct idem_turn *turn, struct idem_str failure_code);

/* A refund row of the intent's amount, pending. The payment's reservation is taken already. */
void idem_turn_begin_refund(struct idem_turn *turn, struct idem_str refund_no);

/*
 * The business row of a released intent as it was asked for, on a new row; the old one has
 * failed.
 */
void idem_turn_renew_payment(struct idem_turn *turn);
void idem_turn_renew_refund(struct idem_turn *turn);

/* What the recovery table looks at; `source`, `outcome` and `asked_us` say what is new. */
struct idem_recovery_view idem_turn_view(const struct idem_turn *turn,
                                         const struct idem_provider_rules *provider);

/* Applies a row of the table: parks if it says so, and plans the next step. */
void idem_turn_follow(struct idem_turn *turn, struct idem_recovery_next next);

/* In front of a person from now on; what was parked already opens no second case. */
void idem_turn_park(struct idem_turn *turn, enum idem_case_kind kind, struct idem_str detail);

/* DISPATCHED becomes UNKNOWN; other states stay. */
void idem_turn_unknown(struct idem_turn *turn);

#endif /* IDEM_CORE_TURN_H */
