/*
 * scene.h - what tests of the operators' routes share: one edge, whom they ask as, and what an
 * answer comes down to. The operator is "root".
 */
#ifndef IDEM_TEST_UNIT_API_SCENE_H
#define IDEM_TEST_UNIT_API_SCENE_H

#include "edge.h"

#define ALICE "\nAuthorization: Bearer alice"
#define ROOT  "\nAuthorization: Bearer root"
#define JSON  "\nContent-Type: application/json\n\n"
#define PAY   "POST /v1/payments HTTP/1.1"
#define KEY   "\nIdempotency-Key: "
#define ID_0  "00000000-0000-0000-0000-000000000000"
#define ID_1  "0197b2f0-1111-7abc-8def-0123456789ab"
#define ID_2  "0197b2f0-2222-7abc-8def-0123456789ab"

#define ORDER(order_no)                                           \
    "{\"order_no\":\"" order_no                                   \
    "\",\"amount\":\"100.00\",\"currency\":\"CNY\",\"provider\":" \
    "\"sandbox\"}"

extern struct edge edge;

/* An edge for one test, without options of its own. */
int setup(void **state);
int teardown(void **state);

/* "409 too-early", or "200" where there is no problem. */
struct idem_str verdict(const char *request);

/* The body of the answer, as shown. */
struct idem_str body_of(const char *request);

/* `format` with the id in it. */
const char *with_id(const char *format, const char *id);

/* Listens to a provider: whatever bytes an event has, it is read as this. */
struct scripted_reader {
    struct idem_callback_reader reader; /* First: the api knows only this. */
    enum idem_callback_verdict verdict;
    struct idem_evidence evidence;
    char body[16]; /* The last event's, as far as it fits. */
};

extern struct scripted_reader listener;

/* For edge_open(): the edge listens. */
void listen_to_events(struct idem_api_options *options);
int setup_listening(void **state);

/* The operation that made the payment of the last answer. */
const char *operation_of_payment(void);

/* The provider's id of the operation's effect. */
struct idem_str effect_id_of(const char *operation);

/* The next events say `outcome` of the effect of a payment of 100.00 CNY. */
void event_script(struct idem_str effect_id, enum idem_outcome_kind outcome, const char *event_id);

#define EVENT "POST /v1/callbacks/sandbox HTTP/1.1\n\n{}"

#endif /* IDEM_TEST_UNIT_API_SCENE_H */
