/*
 * command.h - what happened, as data: the only thing that can change an intent.
 *
 * A command carries everything random or timed that its decision needs (now, ids, tokens, noise),
 * so that deciding again gives the same decision byte for byte (P14), and running it again after
 * an unknown COMMIT is safe. Text is borrowed until the command comes back.
 */
#ifndef IDEM_CORE_COMMAND_H
#define IDEM_CORE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/uid.h"
#include "core/credential.h"
#include "core/intent.h"
#include "core/payment.h"
#include "core/stub.h"
#include "core/webhook.h"

#define IDEM_FINGERPRINTS_MAX 8

enum idem_command_kind {
    IDEM_COMMAND_NONE = 0,
    IDEM_COMMAND_ACCEPT,     /* A caller's keyed request. */
    IDEM_COMMAND_EVIDENCE,   /* Something was learned about an effect: an answer, or silence. */
    IDEM_COMMAND_DUE,        /* An open intent's time has come. */
    IDEM_COMMAND_ABANDON,    /* A caller gives a key up. */
    IDEM_COMMAND_RESOLVE,    /* A person decides, with a reason. */
    IDEM_COMMAND_REAP,       /* Retention: an answer, or a whole record, is forgotten. */
    IDEM_COMMAND_CREDENTIAL, /* A credential is added or revoked. */
    IDEM_COMMAND_MARK,       /* One of the store's own marks is moved. */
    IDEM_COMMAND_WEBHOOK,    /* A merchant's webhook is added or changed. */
    IDEM_COMMAND_DELIVERY,   /* Something became of a delivery. */
    IDEM_COMMAND_COUNT
};

/* A caller's request, checked by the edge as far as its bytes alone allow. */
struct idem_accept {
    struct idem_str principal;
    struct idem_str key;
    enum idem_endpoint endpoint;
    /* One for every rule and secret that a record may carry; the first is the current one. */
    struct idem_fingerprint fingerprints[IDEM_FINGERPRINTS_MAX];
    uint32_t fingerprint_count;
    struct idem_str effect_id_tail; /* Without the kind letter. */
    int64_t wait_us;                /* How long the caller will wait, from now. */
    int64_t first_sent_us;          /* Repeatability-First-Sent; 0: not said. */
    /* The provider entries that the principal was granted; NULL: every one. */
    const struct idem_str *granted;
    size_t granted_count;

    /* payments.create */
    struct idem_str order_no;
    int64_t amount_minor;
    struct idem_str currency;
    struct idem_str entry;
    enum idem_capture_mode capture_mode;
    struct idem_str method;
    struct idem_str description;
    struct idem_str metadata;

    /* capture, cancel, refund */
    struct idem_uid payment_id;
    struct idem_str
        amount_text; /* In the payment's currency, which only the facts know; empty: all. */
    struct idem_str refund_no;

    struct idem_str trace; /* traceparent; may be empty. */
};

enum idem_evidence_source {
    IDEM_SOURCE_NONE = 0,
    IDEM_SOURCE_SEND,     /* The answer to send `send_no`, or its silence. */
    IDEM_SOURCE_QUERY,    /* The answer to a question by our id. */
    IDEM_SOURCE_CLOSE,    /* The answer to a close. */
    IDEM_SOURCE_LISTING,  /* The provider's listing names it. Never an attempt's own. */
    IDEM_SOURCE_CALLBACK, /* The provider's own signed event. Likewise. */
    IDEM_SOURCE_COUNT
};

/* Whatever an adapter does not know is UNKNOWN. */
enum idem_outcome_kind {
    IDEM_OUTCOME_NONE = 0,
    IDEM_OUTCOME_UNKNOWN, /* Silence, garbage, an unlisted value. */
    IDEM_OUTCOME_SUCCESS, /* Final: the money moved. Id, amount and currency are the provider's. */
    IDEM_OUTCOME_REFUSED_FINAL, /* Final: this id can no longer succeed. */
    IDEM_OUTCOME_NOT_EXECUTED,  /* This send did not execute and is not remembered. Sends only. */
    IDEM_OUTCOME_PROCESSING,    /* The provider has it and does not know yet. */
    IDEM_OUTCOME_NOT_FOUND,     /* The provider knows no such id now. Queries only; never proof. */
    IDEM_OUTCOME_CLOSED_UNPAID, /* Final: closed, and nothing moved. */
    IDEM_OUTCOME_REVERSED, /* It had succeeded, and the provider took it back by itself since. */
    IDEM_OUTCOME_COUNT
};

struct idem_evidence {
    enum idem_evidence_source source;
    enum idem_outcome_kind outcome;
    struct idem_uid token; /* Of the attempt that made the call. */
    uint32_t send_no;      /* For source SEND. */
    struct idem_str entry; /* Where the answer came from; must equal the effect's. */
    struct idem_str account;
    struct idem_str region;
    struct idem_str effect_id; /* As the provider says it; empty where it says none. */
    int64_t amount_minor;      /* As the provider says it; -1 where it says none. */
    struct idem_str currency;
    struct idem_str reference;
    struct idem_str code;
    struct idem_str message;
    int64_t asked_us;       /* Wall time when the question left: "not found" speaks of then. */
    int64_t retry_after_us; /* The provider's wish; 0: none. */

    /*
     * Sources LISTING and CALLBACK: what else the provider says. An order number that is not the
     * payment's is another's. For LISTING the rest as well, for an effect that this store does not
     * know.
     */
    struct idem_str order_no;
    struct idem_str payment_effect_id; /* Of the payment it acted on; empty: it made one. */
    struct idem_scope payment_scope;   /* That id's scope; zeros: none. */
    int64_t happened_us;
    bool again; /* LISTING: it names this effect more than once. */

    /* Source CALLBACK: which event of the entry; the same one again changes nothing. */
    struct idem_str event_id; /* At most IDEM_EVENT_ID_MAX. */
};

/* What a person says. The values are stored: append only. */
enum idem_verdict {
    IDEM_VERDICT_NONE = 0,
    IDEM_VERDICT_SUCCEEDED, /* It happened. Amount and currency must be the effect's. */
    IDEM_VERDICT_FAILED,    /* It did not happen, and cannot any more. */
    IDEM_VERDICT_NOTED,     /* The record is right as it is: closes its cases, changes nothing. */
    IDEM_VERDICT_STRAY, /* It happened beside the books: a payment of its own, to be given back. */
    IDEM_VERDICT_COUNT
};

struct idem_resolve {
    enum idem_verdict verdict;
    int64_t asked_us;          /* Wall time when it was said: FAILED speaks of then. */
    int64_t asked_mono_us;     /* Monotonic; not 0: the store's stamp turns it into asked_us. */
    struct idem_str by;        /* Who: the credential's principal and label. */
    struct idem_str reason;    /* 1 to IDEM_REASON_MAX bytes. */
    struct idem_str reference; /* The provider's transaction number; may be empty. */
    int64_t amount_minor;      /* SUCCEEDED: as the person read it at the provider. */
    struct idem_str currency;
    struct idem_uid case_id; /* STRAY: which case; the id of the payment that is made, too. */
};

/* Retention. What expires after `horizon_us`, a time that can be trusted, is left alone. */
struct idem_reap {
    int64_t horizon_us;
    bool erase;         /* On request: as soon as no retry may come any more. */
    struct idem_str by; /* Who asked; empty: time. */
};

/* The store's own marks. */
enum idem_mark_kind {
    IDEM_MARK_NONE = 0,
    IDEM_MARK_HORIZON,       /* How far retention trusts the clock; never goes back. */
    IDEM_MARK_RESTORED_OVER, /* What the restored copy had missed is known again. */
    IDEM_MARK_SWEPT,         /* Events and messages before it are forgotten, some at a time. */
    IDEM_MARK_COUNT
};

struct idem_mark {
    enum idem_mark_kind kind;
    int64_t value_us;
    bool listed; /* RESTORED_OVER: every listing was read. Otherwise it is a person's word. */
    struct idem_str by;
    struct idem_str reason;
};

enum idem_credential_action {
    IDEM_CREDENTIAL_NOTHING = 0,
    IDEM_CREDENTIAL_ADD,    /* The same row again is the same credential. */
    IDEM_CREDENTIAL_REVOKE, /* By id; for ever. */
    IDEM_CREDENTIAL_ACTION_COUNT
};

struct idem_credential_change {
    enum idem_credential_action action;
    struct idem_credential_row row; /* REVOKE: only its id counts. */
    struct idem_str by;
};

struct idem_abandon {
    struct idem_str principal;
    struct idem_str key;
    enum idem_endpoint endpoint;
};

struct idem_command {
    enum idem_command_kind kind;
    struct idem_scope scope; /* Which intent; also for evidence and due rows. */
    int64_t intent_row;      /* The store's handle if known; 0: find it by scope. */

    /* The payment it will touch, where that is known; only batches are formed by it. */
    struct idem_uid subject_payment_id;

    /* Stamped by the store when the first batch that runs it begins; kept when it runs again. */
    int64_t now_us;
    int64_t mono_us;
    int64_t incarnation;
    int64_t opened_us;       /* Wall time when this incarnation began. */
    int64_t memory_since_us; /* Wall time since when this store has records; 0: not known. */
    bool restored; /* The store is an old copy: nothing is sent, nothing new is claimed. */

    /* Spent by the decision if it needs them. */
    struct idem_uid token;
    struct idem_uid intent_id;
    struct idem_uid resource_id; /* Of a payment or refund that may be made. */
    struct idem_uid case_id;
    struct idem_uid message_id; /* Of the first message; those after it count up its last byte. */
    uint64_t noise;

    bool slot; /* The engine holds a place on the wire for this command. */

    struct idem_accept accept;
    struct idem_evidence evidence;
    struct idem_abandon abandon;
    struct idem_resolve resolve;
    struct idem_reap reap;
    struct idem_mark mark;
    struct idem_credential_change credential;
    struct idem_webhook_change webhook;
    struct idem_delivery_change delivery;
};

/* The request's fingerprint under the record's rule and secret; NULL: it was not offered. */
const struct idem_fingerprint *idem_accept_fingerprint(const struct idem_accept *accept,
                                                       const struct idem_fingerprint *recorded);

const char *idem_outcome_kind_name(enum idem_outcome_kind kind);
const char *idem_evidence_source_name(enum idem_evidence_source source);
const char *idem_verdict_name(enum idem_verdict verdict);  /* "succeeded", "failed", "noted". */
enum idem_verdict idem_verdict_from(struct idem_str name); /* NONE if unknown. */

#endif /* IDEM_CORE_COMMAND_H */
