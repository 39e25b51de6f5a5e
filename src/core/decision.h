/*
 * decision.h - facts in, decision out: the rows to write, and what to release once they are
 * durable.
 *
 * A store fetches the facts of a command, calls idem_decide(), applies the writes under their
 * guards and commits. Whatever the release says happens only after that commit was answered
 * cleanly (P1, P2).
 */
#ifndef IDEM_CORE_DECISION_H
#define IDEM_CORE_DECISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/command.h"
#include "core/event.h"
#include "core/intent.h"
#include "core/payment.h"
#include "core/rules.h"
#include "core/webhook.h"

/*
 * Rows read for a decision, in the transaction that will write it. row == 0 means absent.
 *
 *   intent        by scope (or by intent_row)
 *   sends         all of the intent, in order of `no`
 *   payment       of the intent; if the intent is absent: accept.payment_id, and if there is none
 *                 such but a stub: the one that the stub acted on
 *   refund        of the intent
 *   order_holder  the payment of this principal that holds the order number: that of the intent's
 *                 payment, else accept.order_no. Read for payments.create only, while the intent is
 *                 absent or RELEASED
 *   refund_holder the refund of `payment` that holds the refund number and did not fail: the number
 *                 of the intent's refund, else accept.refund_no. Read for refunds.create only,
 *                 while the intent is absent or RELEASED and the number is not empty
 *   stub          by scope, while the intent is absent or not final: one that was parked from its
 *                 stub still has it
 *   order_stub    the stub of a payment, of another scope, that has the order number, at whatever
 *                 entry. Read for payments.create only: while the intent is absent or RELEASED, and
 *                 for DUE, which may send
 *   payment_stubs stubs that act on the payment that this intent makes or, for an ACCEPT and while
 *                 it is RELEASED, acts on; oldest first; more than IDEM_PAYMENT_STUBS_MAX:
 *                 payment_stubs_full
 *   cases_open    bit 1 << kind for every kind of which the intent has an open case. Read for REAP,
 *                 RESOLVE, and for evidence about what is final; for these also cases_decided:
 *                 likewise of those that were decided
 *   event_seen    for evidence of source CALLBACK: this event of the entry came before
 *   listened      the principal (of the intent, of the request, else of `payment`) has a webhook
 *                 that is not disabled, so there is somebody to tell
 *   webhook       by id, for WEBHOOK and DELIVERY; webhook_count: how many its principal has
 *   delivery      by message and webhook, for DELIVERY
 *   credential    by id, for CREDENTIAL; secret_taken: another row, revoked or not, has its secret
 *
 * RELEASED means here also: PARKED without a reservation (problem NOT_EXECUTED).
 *
 * For evidence of source LISTING about an absent intent, `payment` is that of the intent whose
 * scope is evidence.payment_scope. For LISTING and RESOLVE about an intent whose stub acted on a
 * payment, `payment` is that of the intent whose scope stub.payment_effect_id names, whatever the
 * intent's own request named. For CREDENTIAL and MARK nothing else is read. A decision may write a
 * stub and a payment, a credential or a mark without an intent: its row is 0 and its state NONE.
 */
struct idem_facts {
    struct idem_intent intent;
    struct idem_send sends[IDEM_SENDS_MAX];
    size_t send_count;
    struct idem_payment payment;
    struct idem_refund refund;
    struct idem_payment order_holder;
    struct idem_refund refund_holder;
    struct idem_stub stub;
    struct idem_stub order_stub;
    struct idem_stub payment_stubs[IDEM_PAYMENT_STUBS_MAX];
    size_t payment_stub_count;
    bool payment_stubs_full;
    uint32_t cases_open;
    uint32_t cases_decided;
    bool event_seen;
    bool listened;
    struct idem_credential_row credential;
    bool secret_taken;
    struct idem_webhook webhook;
    size_t webhook_count;
    struct idem_delivery delivery;
};

enum idem_write {
    IDEM_WRITE_NONE = 0,
    IDEM_WRITE_INSERT, /* Put if absent; present is a miss. */
    IDEM_WRITE_UPDATE, /* Where row and version - 1 still stand; otherwise a miss. */
    IDEM_WRITE_DELETE  /* Likewise, with all that hangs on it. Intents and stubs only; an intent's
                          row then has the state NONE: that is how it will stand. */
};

struct idem_intent_write {
    enum idem_write write;
    struct idem_intent row;
};

struct idem_payment_write {
    enum idem_write write;
    struct idem_payment row;
};

struct idem_refund_write {
    enum idem_write write;
    struct idem_refund row;
};

struct idem_send_write {
    enum idem_write write; /* INSERT, or UPDATE of its state. */
    struct idem_send row;
};

struct idem_stub_write {
    enum idem_write write; /* Guarded by being there, or not. */
    struct idem_stub row;
};

struct idem_credential_write {
    enum idem_write write; /* UPDATE: revoked_us and revoked_by, where it is not revoked. */
    struct idem_credential_row row;
};

struct idem_webhook_write {
    enum idem_write write;
    struct idem_webhook row;
};

struct idem_delivery_write {
    enum idem_write write; /* UPDATE. */
    struct idem_delivery row;
};

/* An event of a provider's, in the inbox of what came: (entry, event id) is unique. */
struct idem_inbox_write {
    enum idem_write write; /* INSERT; UPDATE: it came once more. */
    struct idem_str entry;
    struct idem_str event_id;
    int64_t at_us;
    bool known; /* It was about an intent of ours. */
};

#define IDEM_SEND_WRITES_MAX 2

enum idem_release_kind {
    IDEM_RELEASE_NONE = 0, /* Nobody is told anything. */
    IDEM_RELEASE_REPLY,    /* `answer` is final: stored, or `problem` for one that is not stored. */
    IDEM_RELEASE_WAIT,     /* In flight: the caller joins. */
    IDEM_RELEASE_SEND,     /* Put send `send_no` on the wire before send_not_after. */
    IDEM_RELEASE_QUERY,    /* Ask by effect id. */
    IDEM_RELEASE_CLOSE,    /* Close at the provider. */
    IDEM_RELEASE_COUNT
};

struct idem_release {
    enum idem_release_kind kind;
    /* REPLY without a stored answer: what to say. NONE: the intent's answer. */
    enum idem_problem problem;
    bool replayed;          /* The answer was there before this command. */
    uint32_t send_no;       /* SEND. */
    int64_t not_after_us;   /* SEND, CLOSE: wall time; not one byte after it. */
    int64_t retry_after_us; /* A hint for the caller; 0: none. */
};

struct idem_decision {
    struct idem_intent_write intent;
    struct idem_payment_write payment;
    struct idem_refund_write refund;
    struct idem_send_write sends[IDEM_SEND_WRITES_MAX];
    size_t send_write_count;
    struct idem_event events[IDEM_EVENTS_STEP_MAX];
    size_t event_count;
    struct idem_case opened; /* kind NONE: none. */
    /* decided_us not 0: every open case of the intent is decided so, before `opened` is. */
    struct idem_case decided;
    /* Sends, and events that no person caused, are deleted before this decision's are added. */
    bool forget_history;
    struct idem_stub_write stub;
    bool payment_stubs_applied; /* All that act on the payment this intent makes are marked. */
    struct idem_credential_write credential;
    struct idem_inbox_write inbox;
    /* Each to all webhooks of its principal that want it; TEST: to `webhook` alone. */
    struct idem_message messages[IDEM_MESSAGES_STEP_MAX];
    size_t message_count;
    struct idem_webhook_write webhook;
    struct idem_delivery_write delivery;
    struct idem_mark mark; /* kind NONE: none. */
    bool sweep_more;       /* SWEPT: the store's word when it is done. There may be more. */
    struct idem_release release;

    /* Text that the decision made: rendered answers, encoded requests. Rows borrow from it. */
    struct idem_buf scratch;
    char scratch_memory[IDEM_REQUEST_MAX + IDEM_ANSWER_MAX + IDEM_MESSAGE_DATA_MAX + 4096];
};

/*
 * Decides. Cannot fail, allocates nothing, reads no clock. Afterwards `decision->intent.row` is the
 * intent as it will stand (also when nothing is written), so the release can speak of it. Rows in
 * the decision borrow text from `facts`, `command` and the decision's scratch.
 *
 * When the command finds its own token in the record, an earlier run of it was durable: the same
 * rows are written again and the same release is given, so that its commit proves durability.
 */
void idem_decide(const struct idem_rules *rules,
                 const struct idem_facts *facts,
                 const struct idem_command *command,
                 struct idem_decision *decision);

#endif /* IDEM_CORE_DECISION_H */
