/*
 * The one door: a command meets its facts and leaves as a decision.
 *
 * What each kind of command means is in the decide_*.c of its name; the steps that they share are a
 * turn's (turn.c), the ways to begin and to end in claim.c and settle.c; what may follow an unknown
 * outcome is the table in recovery.c. Nothing here reads anything but its arguments (P14).
 */
#include "core/decide_internal.h"

#include "base/bug.h"
#include "core/tell.h"

static enum idem_cause cause_of(const struct idem_command *command)
{
    switch (command->kind) {
    case IDEM_COMMAND_ACCEPT:
    case IDEM_COMMAND_ABANDON:
        return IDEM_CAUSE_REQUEST;
    case IDEM_COMMAND_EVIDENCE:
        return IDEM_CAUSE_PROVIDER;
    case IDEM_COMMAND_DUE:
        return IDEM_CAUSE_TIMER;
    case IDEM_COMMAND_REAP:
        return command->reap.erase ? IDEM_CAUSE_OPERATOR : IDEM_CAUSE_TIMER;
    case IDEM_COMMAND_RESOLVE:
    case IDEM_COMMAND_CREDENTIAL:
    case IDEM_COMMAND_MARK:
    case IDEM_COMMAND_WEBHOOK:
    case IDEM_COMMAND_DELIVERY:
        return IDEM_CAUSE_OPERATOR;
    case IDEM_COMMAND_NONE:
    case IDEM_COMMAND_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static bool is_wire(enum idem_release_kind kind)
{
    return kind == IDEM_RELEASE_SEND || kind == IDEM_RELEASE_CLOSE;
}

static void decision_check(const struct idem_command *command, const struct idem_decision *decision)
{
    enum idem_write write = decision->intent.write;
    if (write == IDEM_WRITE_INSERT || write == IDEM_WRITE_UPDATE) {
        idem_intent_check(&decision->intent.row);
    }
    if (decision->payment.write != IDEM_WRITE_NONE) {
        idem_payment_check(&decision->payment.row);
    }
    if (decision->refund.write != IDEM_WRITE_NONE) {
        idem_refund_check(&decision->refund.row);
    }
    /* Nothing is released to the wire that is not written in the same decision (P1). */
    if (decision->release.kind >= IDEM_RELEASE_SEND) {
        IDEM_ASSERT(decision->intent.write != IDEM_WRITE_NONE);
        IDEM_ASSERT(decision->intent.row.lease_end_us > 0);
        /* And nothing that could move money leaves an old copy. */
        IDEM_ASSERT(!command->restored || !is_wire(decision->release.kind));
    }
}

void idem_decide(const struct idem_rules *rules,
                 const struct idem_facts *facts,
                 const struct idem_command *command,
                 struct idem_decision *decision)
{
    IDEM_ASSERT(command->now_us > 0);
    IDEM_ASSERT(!idem_uid_is_zero(command->token));

    decision->intent = (struct idem_intent_write){ .row = facts->intent };
    decision->payment = (struct idem_payment_write){ .row = facts->payment };
    decision->refund = (struct idem_refund_write){ .row = facts->refund };
    decision->send_write_count = 0;
    decision->event_count = 0;
    decision->opened = (struct idem_case){ .kind = IDEM_CASE_NONE };
    decision->decided = (struct idem_case){ .kind = IDEM_CASE_NONE };
    decision->forget_history = false;
    decision->stub = (struct idem_stub_write){ .write = IDEM_WRITE_NONE };
    decision->payment_stubs_applied = false;
    decision->credential = (struct idem_credential_write){ .write = IDEM_WRITE_NONE };
    decision->inbox = (struct idem_inbox_write){ .write = IDEM_WRITE_NONE };
    decision->message_count = 0;
    decision->webhook = (struct idem_webhook_write){ .write = IDEM_WRITE_NONE };
    decision->delivery = (struct idem_delivery_write){ .write = IDEM_WRITE_NONE };
    decision->mark = (struct idem_mark){ .kind = IDEM_MARK_NONE };
    decision->release = (struct idem_release){ .kind = IDEM_RELEASE_NONE };
    idem_buf_init(&decision->scratch, decision->scratch_memory, sizeof(decision->scratch_memory));

    struct idem_turn turn = {
        .rules = rules,
        .facts = facts,
        .command = command,
        .decision = decision,
        .intent = &decision->intent.row,
        .payment = &decision->payment.row,
        .refund = &decision->refund.row,
        .cause = cause_of(command),
    };
    switch (command->kind) {
    case IDEM_COMMAND_ACCEPT:
        idem_decide_accept(&turn);
        break;
    case IDEM_COMMAND_EVIDENCE:
        idem_decide_evidence(&turn);
        break;
    case IDEM_COMMAND_DUE:
        idem_decide_due(&turn);
        break;
    case IDEM_COMMAND_ABANDON:
        idem_decide_abandon(&turn);
        break;
    case IDEM_COMMAND_RESOLVE:
        idem_decide_resolve(&turn);
        break;
    case IDEM_COMMAND_REAP:
        idem_decide_reap(&turn);
        break;
    case IDEM_COMMAND_CREDENTIAL:
        idem_decide_credential(&turn);
        break;
    case IDEM_COMMAND_MARK:
        idem_decide_mark(&turn);
        break;
    case IDEM_COMMAND_WEBHOOK:
        idem_decide_webhook(&turn);
        break;
    case IDEM_COMMAND_DELIVERY:
        idem_decide_delivery(&turn);
        break;
    case IDEM_COMMAND_NONE:
    case IDEM_COMMAND_COUNT:
        IDEM_UNREACHABLE();
    }
    idem_tell(&turn);
    decision_check(command, decision);
}
