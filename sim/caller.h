/*
 * caller.h - those who want something: callers with their keys, and operators with their verdicts.
 *
 * A plan is one business intent as its caller has it in mind, under one key, in two wordings: the
 * right one and a changed one. Callers send it as often as they like, to any process, several times
 * at once, give up waiting, or give it up altogether.
 */
#ifndef IDEM_SIM_CALLER_H
#define IDEM_SIM_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/command.h"
#include "engine/engine.h"

struct sim_world;

#define SIM_WORDINGS  2
#define SIM_TAIL_LEN  (IDEM_EFFECT_ID_LEN - 1)
#define SIM_TEXT_MAX  24
#define SIM_PLANS_MAX 16

struct sim_plan {
    size_t no;
    struct idem_str principal;
    enum idem_endpoint endpoint;
    struct idem_str entry;
    char key[SIM_TEXT_MAX];
    char order_no[SIM_TEXT_MAX];
    char refund_no[SIM_TEXT_MAX]; /* May be empty. */
    enum idem_capture_mode capture_mode;
    int64_t amount_minor[SIM_WORDINGS];
    char amount_text[SIM_WORDINGS][SIM_TEXT_MAX]; /* Empty: all that is left. */
    struct idem_fingerprint fingerprint[SIM_WORDINGS];
    struct idem_scope scope;
    char tail[SIM_TAIL_LEN];
    struct sim_plan *payment; /* That it acts on; NULL: it makes one. */
    struct idem_uid made;     /* The public id of the payment it made, once somebody was told. */
    uint64_t sent;
};

/* One request of a plan. */
struct sim_request {
    struct idem_request request; /* First. */
    struct sim_plan *plan;
    size_t wording;
    bool abandons;
    bool gone;         /* Its caller does not wait for the reply. */
    bool after_final;  /* Somebody had the final answer when it was sent. */
    bool after_expiry; /* Somebody was told that it had expired. */
    int64_t sent_us;
    struct sim_request *next; /* Free ones. */
};

struct sim_callers {
    struct sim_world *world; /* Borrowed. */
    struct sim_plan plans[SIM_PLANS_MAX];
    size_t count;
    size_t begun; /* Plans before this one are acted on. */
    struct sim_request *free;
    size_t waiting; /* Requests inside processes. */
};

void sim_callers_init(struct sim_callers *callers, struct sim_world *world);

/* They and the operators act from now on, again and again, until all is healed. */
void sim_callers_begin(struct sim_callers *callers);

/* Everybody who ever asked asks once more. */
void sim_callers_ask_again(struct sim_callers *callers);

/* A process has started, and somebody wants to know how it stands. */
void sim_operators_look_soon(struct sim_callers *callers);

/* A request came back; not `heard`: with a process that died. */
void sim_caller_replied(struct sim_world *world, struct idem_request *request, bool heard);

/* Likewise a verdict. */
void sim_operator_replied(struct sim_world *world, struct idem_task *task, bool heard);

#endif /* IDEM_SIM_CALLER_H */
