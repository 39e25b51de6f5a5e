/*
 * sandbox_internal.h - what the files of the sandbox share.
 */
#ifndef IDEM_SANDBOX_SANDBOX_INTERNAL_H
#define IDEM_SANDBOX_SANDBOX_INTERNAL_H

#include <uv.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "net/server.h"
#include "sandbox/fault.h"
#include "sandbox/ledger.h"
#include "sandbox/sandbox.h"

#define IDEM_SANDBOX_TOKENS_MAX 256
#define IDEM_SANDBOX_BODY_MAX   ((size_t)64 * 1024)

struct idem_digester;
struct idem_http_client;
struct idem_sandbox_post;

struct idem_sandbox {
    struct idem_sandbox_options options;
    struct idem_server *server; /* NULL until it listens. */
    struct idem_ledger *ledger;
    uv_timer_t timer; /* Rings when the first of `dues` is due. */
    bool timer_open;
    bool timer_closed;
    struct idem_list dues;
    struct idem_http_client *client; /* Of callbacks; NULL: nobody listens. As the next four. */
    struct idem_digester *digester;
    struct idem_list posts; /* All that are not over. */
    int64_t told;           /* Events so far: a part of their names. */
    uv_prepare_t reaper;
    bool reaper_open;
    bool reaper_closed;
    char *text_memory; /* IDEM_SANDBOX_BODY_MAX: texts of the request being read. */
    struct idem_json_token tokens[IDEM_SANDBOX_TOKENS_MAX];
};

/* One request to execute, on its way through the provider. */
struct idem_sandbox_call {
    struct idem_exchange *exchange; /* NULL: the caller has gone, or was told something before. */
    struct idem_ledger_effect *effect;
    struct idem_sandbox_fault_rule rule;
    bool suffers; /* This arrival is one that the fault hits. */
};

enum idem_sandbox_due_kind {
    IDEM_DUE_EXECUTE, /* slow_N: the request gets to the provider. */
    IDEM_DUE_ANSWER,  /* late_N: the answer leaves. */
    IDEM_DUE_SETTLE,  /* processing_N: it ends. */
    IDEM_DUE_LIST,    /* list_slow_N: the page leaves. */
    IDEM_DUE_POST,    /* A callback leaves. */
    IDEM_DUE_TURN,    /* contradict_N, reverse_N: what was told turns out otherwise. */
};

/* Something that happens later. On the heap, the sandbox's. */
struct idem_sandbox_due {
    struct idem_list_node node;
    enum idem_sandbox_due_kind kind;
    int64_t due_us; /* Wall clock. */
    struct idem_sandbox_call call;
    struct idem_sandbox_post *post; /* POST: which. */
};

/* What an answer pretends. */
enum idem_sandbox_answer_lie {
    IDEM_LIE_NONE = 0,
    IDEM_LIE_AMOUNT,
    IDEM_LIE_CURRENCY,
    IDEM_LIE_ID,
    IDEM_LIE_STATUS,
};

/* sandbox.c */

/* The caller's traceparent as it came; empty if it has none that could be one. */
struct idem_str idem_sandbox_trace(const struct idem_exchange *exchange);

/* query.c */

/*
 * Takes the first "name=value" off `*query`, which must not be empty; the value is resolved into
 * `memory`. False: it has none, or one that cannot be read.
 */
bool idem_sandbox_query_next(struct idem_str *query,
                             struct idem_buf *memory,
                             struct idem_str *ret_name,
                             struct idem_str *ret_value) IDEM_MUST_CHECK;

/* answer.c */

#define IDEM_ANSWER_MAX 1024

/* Prints what the provider says about `effect`, which it knows; returns the HTTP status. */
uint16_t idem_sandbox_answer_print(const struct idem_ledger_effect *effect,
                                   enum idem_sandbox_answer_lie lie,
                                   struct idem_buf *buf);

/* Prints it as an element of a listing, with the lies that never end. */
void idem_sandbox_answer_print_listed(const struct idem_ledger_effect *effect,
                                      const struct idem_sandbox_fault_rule *rule,
                                      struct idem_buf *buf);

/* What a callback says of its effect. */
enum idem_sandbox_outcome {
    IDEM_TOLD_PROCESSING = 0,
    IDEM_TOLD_SUCCEEDED,
    IDEM_TOLD_REFUSED,
    IDEM_TOLD_CLOSED,
    IDEM_TOLD_REVERSED,
};

struct idem_sandbox_tale {
    struct idem_str event;
    enum idem_sandbox_outcome outcome;
    enum idem_sandbox_telling telling; /* Its lie, if it is one. */
    int64_t happened_us;
};

/* Prints the body of a callback. */
void idem_sandbox_answer_print_told(const struct idem_ledger_effect *effect,
                                    const struct idem_sandbox_tale *tale,
                                    struct idem_buf *buf);

/* Answers with JSON. `exchange` may be NULL. */
void idem_sandbox_answer_send(struct idem_exchange *exchange,
                              uint16_t status,
                              struct idem_str body);

/* Answers what is known of the call's effect; only lies that never end are told. */
void idem_sandbox_answer_known(const struct idem_sandbox_call *call);

/* due.c */

/* Puts it on the list; NULL if there is no memory. The exchange becomes the due thing's. */
struct idem_sandbox_due *idem_sandbox_due_create(struct idem_sandbox *sandbox,
                                                 enum idem_sandbox_due_kind kind,
                                                 int64_t due_us,
                                                 const struct idem_sandbox_call *call)
    IDEM_MUST_CHECK;

/* Takes it off the list. Its exchange, if any, is the caller's. */
void idem_sandbox_due_destroy(struct idem_sandbox *sandbox, struct idem_sandbox_due *due);

/* The exchange's caller has gone: ends the exchange; what was scheduled stays. */
void idem_sandbox_due_abandon(struct idem_exchange *exchange);

/* Cuts off all waiting callers and forgets everything scheduled. */
void idem_sandbox_due_clear(struct idem_sandbox *sandbox);

/* The timer's callback. */
void idem_sandbox_due_ring(uv_timer_t *timer);

/* send.c */

void idem_sandbox_send_take(struct idem_sandbox *sandbox,
                            enum idem_sandbox_profile profile,
                            struct idem_exchange *exchange);

/* What was due happens. */
void idem_sandbox_send_execute(struct idem_sandbox *sandbox, struct idem_sandbox_call *call);
void idem_sandbox_send_settle(struct idem_sandbox *sandbox, struct idem_ledger_effect *effect);

/* The fault that was asked for: by the payment's own token, or by that of the payment it names. */
struct idem_sandbox_fault_rule idem_sandbox_send_rule(const struct idem_sandbox *sandbox,
                                                      const struct idem_ledger_effect *effect);

/* Likewise: what goes wrong with callbacks about it. */
struct idem_sandbox_telling_rule idem_sandbox_send_telling(const struct idem_sandbox *sandbox,
                                                           const struct idem_ledger_effect *effect);

/* It was told that nothing moved, and now it moves. False: the ledger cannot be written. */
bool idem_sandbox_send_anyway(struct idem_sandbox *sandbox, struct idem_ledger_effect *effect);

/* callback.c */

enum idem_err idem_sandbox_callbacks_open(struct idem_sandbox *sandbox,
                                          struct idem_error *reterr) IDEM_MUST_CHECK;

/* Forgets what is not over. Accepts what was not opened. */
void idem_sandbox_callbacks_close(struct idem_sandbox *sandbox);

/* Tells what has just become of `effect`, as was asked for; to nobody, if nobody listens. */
void idem_sandbox_callback_tell(struct idem_sandbox *sandbox, struct idem_ledger_effect *effect);

/* What was due happens. */
void idem_sandbox_callback_post(struct idem_sandbox *sandbox, struct idem_sandbox_post *post);
void idem_sandbox_callback_turn(struct idem_sandbox *sandbox, struct idem_ledger_effect *effect);

/* list.c */

void idem_sandbox_list_take(struct idem_sandbox *sandbox,
                            enum idem_sandbox_profile profile,
                            struct idem_exchange *exchange);

/* A page that was held back by its effect's fault leaves. */
void idem_sandbox_list_answer(struct idem_sandbox *sandbox, const struct idem_sandbox_call *call);

/* ask.c */

/* The provider does not show yet what it knows. */
bool idem_sandbox_ask_is_hidden(const struct idem_ledger_effect *effect,
                                const struct idem_sandbox_fault_rule *rule,
                                int64_t now_us);

void idem_sandbox_ask_query(struct idem_sandbox *sandbox,
                            enum idem_sandbox_profile profile,
                            struct idem_str id,
                            struct idem_exchange *exchange);
void idem_sandbox_ask_close(struct idem_sandbox *sandbox,
                            enum idem_sandbox_profile profile,
                            struct idem_str id,
                            struct idem_exchange *exchange);
void idem_sandbox_ask_ledger(struct idem_sandbox *sandbox, struct idem_exchange *exchange);

#endif /* IDEM_SANDBOX_SANDBOX_INTERNAL_H */
