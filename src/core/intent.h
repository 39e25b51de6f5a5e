/*
 * intent.h - one business intent: the record behind an idempotency key, and its effect.
 *
 * Rows are plain values. Text in them is borrowed: from the facts when a store has read them,
 * from the command when a decision makes them. Pure, as everything in core.
 */
#ifndef IDEM_CORE_INTENT_H
#define IDEM_CORE_INTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/text.h"
#include "base/uid.h"
#include "core/limits.h"
#include "core/problem.h"

/* The values are stored: append only. The diagram is in intent.c. */
enum idem_intent_state {
    IDEM_INTENT_NONE = 0,   /* Absent. */
    IDEM_INTENT_CLAIMED,    /* Nothing was sent, or every send is proven not executed. */
    IDEM_INTENT_DISPATCHED, /* It may have happened: a send was granted and its lease lives. */
    IDEM_INTENT_UNKNOWN,    /* It may have happened and nobody is on the wire with an answer. */
    IDEM_INTENT_PARKED,     /* UNKNOWN, with an open case in front of a person. */
    IDEM_INTENT_SUCCEEDED,
    IDEM_INTENT_FAILED,
    IDEM_INTENT_RELEASED, /* Provably not executed; the same request may run again. */
    IDEM_INTENT_COUNT
};

enum idem_endpoint {
    IDEM_ENDPOINT_NONE = 0,
    IDEM_ENDPOINT_PAYMENTS_CREATE,
    IDEM_ENDPOINT_PAYMENTS_CAPTURE,
    IDEM_ENDPOINT_PAYMENTS_CANCEL,
    IDEM_ENDPOINT_REFUNDS_CREATE,
    IDEM_ENDPOINT_COUNT
};

/* What the provider is asked to do. The letter is the first character of the effect id. */
enum idem_effect_kind {
    IDEM_EFFECT_KIND_NONE = 0,
    IDEM_EFFECT_KIND_CHARGE,    /* c: authorize and capture in one. */
    IDEM_EFFECT_KIND_AUTHORIZE, /* a */
    IDEM_EFFECT_KIND_CAPTURE,   /* k */
    IDEM_EFFECT_KIND_CANCEL,    /* v: void an authorization. */
    IDEM_EFFECT_KIND_REFUND,    /* r */
    IDEM_EFFECT_KIND_COUNT
};

/* What an attempt does at the provider. The values are stored: append only. */
enum idem_step {
    IDEM_STEP_NONE = 0,
    IDEM_STEP_SEND,
    IDEM_STEP_ASK,
    IDEM_STEP_CLOSE,
    IDEM_STEP_COUNT
};

/* Scope (principal, endpoint, key) as 128 bits of an HMAC: what the unique constraint is on. */
struct idem_scope {
    uint8_t bytes[16];
};

struct idem_fingerprint {
    uint32_t rule_id;   /* Which form was hashed. */
    uint32_t secret_id; /* Under which secret. */
    struct idem_digest digest;
};

/* What is stored of an answer, byte for byte (P4). */
struct idem_answer {
    uint16_t status;         /* 0: there is none yet. */
    struct idem_str headers; /* Lines "Name: value\n" from the allow-list. */
    struct idem_str body;
};

/*
 * The outside call. Entry, account and region name where it goes: sends, queries and callbacks
 * count only under the same three. `request` is what goes on the wire, encoded once, without
 * credentials.
 */
struct idem_effect {
    enum idem_effect_kind kind; /* NONE: this intent never had an outside effect. */
    struct idem_str id;         /* IDEM_EFFECT_ID_LEN characters; the same for every send. */
    struct idem_str entry;
    struct idem_str account;
    struct idem_str region;
    int64_t amount_minor;
    struct idem_str currency;
    struct idem_str request;
    struct idem_str reference; /* The provider's transaction number, once known. */
    bool close_asked;          /* A close was granted; only the provider's word says if it took. */
};

struct idem_intent {
    int64_t row;        /* The store's handle; 0: absent. */
    struct idem_uid id; /* The operation's public name. */
    struct idem_scope scope;
    struct idem_str principal;
    struct idem_str key;
    enum idem_endpoint endpoint;
    enum idem_intent_state state;
    uint32_t version; /* +1 with every write; every write compares it (P7). */
    struct idem_fingerprint fingerprint;

    uint32_t epoch;               /* +1 at every acquisition. */
    struct idem_uid token;        /* Of the current attempt. */
    struct idem_uid last_command; /* Token of the command that wrote this row last. */
    enum idem_step step;  /* What the attempt does; without a lease: what the next will do. */
    int64_t incarnation;  /* Of the store when the lease was granted. */
    int64_t lease_end_us; /* Wall time; 0: nobody acts on it. */
    int64_t due_us;       /* When somebody must look again; 0 only when final (P8). */
    uint32_t send_count;  /* Sends ever granted; send n has no = n, from one. */
    uint32_t ask_count;   /* Questions since it became unknown: the back-off's exponent. */

    int64_t created_us;
    int64_t updated_us;
    /*
     * Until then the first caller waits and not-executed is tried again. Later with every claim, so
     * it also says which claim what follows belongs to.
     */
    int64_t patience_us;
    int64_t unknown_since_us; /* 0: never was. */
    int64_t finished_us;
    int64_t expires_us; /* When the answer may be forgotten; 0 while not final. */
    int64_t reap_us;    /* When retention has something to do here; 0: never, or not final. */

    enum idem_problem problem; /* Why it failed. NOT_EXECUTED: released, holds no reservation. */
    struct idem_effect effect;
    struct idem_answer answer; /* Final with status 0: a tombstone, the answer has expired. */
    struct idem_str trace;     /* The claiming request's traceparent; may be empty. */

    int64_t payment_row; /* 0: none. */
    struct idem_uid payment_id;
    int64_t refund_row; /* 0: none. */
    struct idem_uid refund_id;
};

/* One request put on the wire. Unresolved until something proves otherwise. */
enum idem_send_state {
    IDEM_SEND_NONE = 0,
    IDEM_SEND_OPEN,         /* May have executed, may still execute. */
    IDEM_SEND_NOT_EXECUTED, /* Proven by the attempt that owned it. */
    IDEM_SEND_REFUSED,      /* Answered with a final refusal. */
    IDEM_SEND_ANSWERED,     /* Answered with success. */
    IDEM_SEND_COUNT
};

struct idem_send {
    uint32_t no;
    uint32_t epoch;
    struct idem_uid token; /* Of the attempt that owns it. */
    int64_t granted_us;    /* Wall time of the granting decision. */
    int64_t not_after_us;  /* The first byte leaves before this or never. */
    enum idem_send_state state;
};

bool idem_intent_is_final(enum idem_intent_state state); /* SUCCEEDED, FAILED. */
bool idem_intent_is_open(enum idem_intent_state state);  /* Somebody must still do something. */

bool idem_intent_is_over(enum idem_intent_state state); /* Final or RELEASED: no more waiting. */

/* Final, and its answer is forgotten: what stays of an intent (P12). */
bool idem_intent_is_tombstone(const struct idem_intent *intent);

/* What whoever asks is told of one that is over; NONE: the stored answer. */
enum idem_problem idem_intent_end_problem(const struct idem_intent *intent);

const char *idem_intent_state_name(enum idem_intent_state state); /* "claimed" ... for timelines. */
const char *idem_operation_state_name(enum idem_intent_state state); /* Wire: "processing" ... */
const char *idem_step_name(enum idem_step step);               /* "send", "ask", "close", "none". */
const char *idem_endpoint_name(enum idem_endpoint endpoint);   /* "payments.create" ... */
enum idem_endpoint idem_endpoint_from(struct idem_str name);   /* NONE if unknown. */
const char *idem_effect_kind_name(enum idem_effect_kind kind); /* "charge" ... */
char idem_effect_kind_letter(enum idem_effect_kind kind);
bool idem_effect_kind_makes_payment(enum idem_effect_kind kind); /* CHARGE, AUTHORIZE. */
enum idem_effect_kind idem_effect_kind_from_letter(char letter); /* NONE if unknown. */

/*
 * The scope that an effect id names: its tail begins with the scope's 128 bits
 * (docs/fingerprint.md). False: it is not an effect id of ours.
 */
bool idem_effect_id_scope(struct idem_str effect_id, struct idem_scope *ret_scope);

/* Asserts what must hold of every intent in its state; called on both sides of a store. */
void idem_intent_check(const struct idem_intent *intent);

#endif /* IDEM_CORE_INTENT_H */
