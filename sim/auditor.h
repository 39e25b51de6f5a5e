/*
 * auditor.h - the judge: what was promised, compared with what everybody saw.
 *
 * It is written from the promises P1 to P14 of docs/design.md and looks at boundaries only: what
 * goes in and what comes out, calls that are handed to the wire, executions in the ledger, and rows
 * that are durable. It keeps its own books, by key, and asks the code for nothing.
 *
 * An operator who lied excuses what follows from the lie: verdicts, sums and order numbers of what
 * hangs together with it. So does one whose true word stood in a queue until it was out of date.
 * Nothing excuses a second execution of one intent.
 */
#ifndef IDEM_SIM_AUDITOR_H
#define IDEM_SIM_AUDITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "provider/port.h"
#include "sim/caller.h"

struct idem_post_call;
struct idem_store_batch;
struct sim_effect;
struct sim_instance;
struct sim_notice;
struct sim_world;

#define SIM_VIOLATION_MAX 256
#define SIM_UNBOUND       SIZE_MAX

/* What is known of one key. */
struct sim_book {
    const struct sim_plan *plan; /* Borrowed. */
    size_t wording;              /* Which one the key stands for; SIM_UNBOUND: not known yet. */
    uint64_t executions;
    uint64_t sends; /* Calls handed to the wire. */
    size_t waiting; /* Requests inside processes. */
    bool released;  /* Everybody was told "not executed", and nobody has asked since. */
    bool excused;   /* An operator has lied about it. */
    bool told_success;
    bool told_failure;
    bool told_expired;
    size_t told_first_hand; /* Final answers that were said not to be replays. */
    uint16_t status;        /* Of the final answer; 0: nobody has it. */
    uint64_t answer_digest;
    enum idem_intent_state ended; /* As the durable record first said; NONE: not yet. */
    int64_t ended_us;             /* True time of that. */
    bool is_recorded;             /* There is, or was, a durable record. */
    struct idem_uid token;        /* Of the attempt that the durable record names. */
    /* Who may send, by a lease of that incarnation, and has not come back; NULL: nobody. */
    const struct sim_instance *sender;
    int64_t sender_incarnation;
    int64_t sender_until_us; /* By the store's time. */
    /* Who has heard the provider's "done", and has not written it down yet; NULL: nobody. */
    const struct sim_instance *heard;
    bool was_refused;              /* It tried, and the store refused. */
    enum idem_intent_state state;  /* Of the record at the last look, ... */
    uint32_t version;              /* likewise, ... */
    uint32_t version_before;       /* at the look before that, ... */
    struct idem_uid writer;        /* and by which command it was written, ... */
    struct idem_uid writer_before; /* likewise. */
    bool is_watched; /* Its merchant was told of everything before its record was made. */
    size_t told[IDEM_INTENT_COUNT]; /* Messages that said so, at the last look. */
};

struct sim_auditor {
    struct sim_world *world; /* Borrowed. */
    struct sim_book books[SIM_PLANS_MAX];
    uint64_t violations;
    uint64_t first_step; /* Of the first of them. */
    uint64_t executions;
    uint64_t replies;
    char first[SIM_VIOLATION_MAX];
};

void sim_audit_init(struct sim_auditor *auditor, struct sim_world *world);

void sim_audit_asked(struct sim_auditor *auditor, struct sim_request *request);
void sim_audit_replied(struct sim_auditor *auditor, const struct sim_request *request, bool heard);
void sim_audit_call(struct sim_auditor *auditor,
                    const struct sim_instance *instance,
                    const struct idem_call *call);
/* The call is over for its process; `is_done`: it heard that the effect is done, and it is. */
void sim_audit_call_ended(struct sim_auditor *auditor,
                          const struct sim_instance *instance,
                          const struct idem_call *call,
                          bool is_done);
/* The first byte of a send leaves, which was handed over at that true time. */
void sim_audit_left(struct sim_auditor *auditor,
                    const struct sim_effect *effect,
                    int64_t handed_us);
void sim_audit_executed(struct sim_auditor *auditor, const struct sim_effect *effect);
/* The process may have committed something: of `batch`, or (NULL) of an earlier one. */
void sim_audit_committed(struct sim_auditor *auditor,
                         const struct sim_instance *instance,
                         struct idem_store_batch *batch);
void sim_audit_verdict(struct sim_auditor *auditor, const struct sim_plan *plan, bool is_true);

/* "Taken" is said of a provider's event. */
void sim_audit_taken(struct sim_auditor *auditor, const struct sim_notice *notice);

/* A message is handed to a port. */
void sim_audit_post(struct sim_auditor *auditor, const struct idem_post_call *call);

/* All is healed, and time enough has passed. */
void sim_audit_end(struct sim_auditor *auditor);

#endif /* IDEM_SIM_AUDITOR_H */
