/*
 * api_internal.h - the edge from inside: one visit is one exchange on its way through the engine.
 */
#ifndef IDEM_API_API_INTERNAL_H
#define IDEM_API_API_INTERNAL_H

#include "api/account.h"
#include "api/act.h"
#include "api/api.h"
#include "api/body.h"
#include "api/credentials.h"
#include "api/prefer.h"
#include "api/reconcile.h"
#include "api/reply.h"
#include "api/route.h"
#include "api/scope.h"
#include "core/limits.h"

/* Key, unescaped texts of one body and the last one that turned out too long. */
#define IDEM_VISIT_MEMORY_MAX 4096

struct idem_visit;

/* A look into the store for a visit; few visits need one, and it is large. */
struct idem_api_read {
    struct idem_list_node node; /* On the api's list of free ones. */
    struct idem_visit *visit;
    struct idem_read read;
};

/* A merchant's exchange. */
struct idem_visit {
    struct idem_exchange *exchange;
    struct idem_account *account; /* Its principal. */
    bool gone;                    /* Nobody reads the answer. The exchange's owner points here. */
    bool requested;               /* The request came back; a read now is about its intent. */
    bool every_provider;
    size_t granted_count;
    struct idem_str granted[IDEM_API_PROVIDERS_MAX]; /* Provider entries; text is the rules'. */
    struct idem_route route;
    struct idem_prefer prefer;
    struct idem_str key;        /* Empty until one was read. */
    struct idem_api_read *read; /* NULL: none. */
    struct idem_buf kept;
    char memory[IDEM_VISIT_MEMORY_MAX];
    struct idem_request request;
};

/* Which struct a request is in. */
enum idem_api_owner {
    IDEM_API_OWNER_MERCHANT = 0,
    IDEM_API_OWNER_OPERATOR
};

#define IDEM_ADMIN_VISITS 16

/* A stray payment that an operator has given back: what is known once its case was read. */
struct idem_stray {
    struct idem_str principal; /* Whose it is. In the visit's memory. */
    struct idem_scope scope;
    int64_t intent_row;
    struct idem_uid former_payment_id; /* The row that the operation had until now. */
    enum idem_effect_kind kind;
};

/* An operator's exchange: at most a read, then a task, then a read of what became of it. */
struct idem_admin_visit {
    struct idem_list_node node; /* On the api's free list. */
    struct idem_exchange *exchange;
    bool gone;     /* Nobody reads the answer. The exchange's owner points here. */
    bool done;     /* The task is durable; a read now is for showing it. */
    bool promised; /* A place among the credentials is kept. */
    struct idem_route route;
    struct idem_buf kept;
    char memory[IDEM_VISIT_MEMORY_MAX];
    size_t by_len;
    char by[IDEM_API_BY_MAX];
    struct idem_task task;
    struct idem_read read;
    struct idem_stray stray;     /* COMPENSATE */
    struct idem_request request; /* Likewise, at last. */
};

#define IDEM_CALLBACK_VISITS 64

/* A provider's event, until it is durable. */
struct idem_callback_visit {
    struct idem_list_node node; /* On the api's free list. */
    struct idem_exchange *exchange;
    bool gone; /* Nobody reads the reply. The exchange's owner points here. */
    struct idem_callback callback;
    struct idem_task task;
};

/* What the edge asks the store for by itself. */
struct idem_api_own_read {
    bool wanted; /* Of the credentials: there are more pages. */
    bool running;
    int64_t next_us; /* Monotonic; not before. */
    struct idem_read *read;
};

/* An answer to what the server refuses, made once. */
struct idem_api_refusal {
    struct idem_net_reply reply;
    char head[256];
    char body[1024];
};

struct idem_api {
    struct idem_api_options options;
    struct idem_digester *digester;
    struct idem_credentials credentials;
    struct idem_visit *visits;
    struct idem_visit **free; /* A stack, so that few are warm, and not in them: memory of a visit
                                 that was never used is never touched. */
    size_t free_count;
    struct idem_api_read *reads;
    struct idem_list free_reads; /* Last in, first out. */
    struct idem_list done_reads;
    struct idem_admin_visit *admin_visits;
    struct idem_list admin_free; /* Likewise. */
    struct idem_list admin_done_reads;
    struct idem_list admin_done_tasks;
    struct idem_evidence_batch *evidence; /* reconcile.c */
    struct idem_list evidence_done;
    struct idem_listing_page *page; /* Likewise. */
    struct idem_callback_visit *callback_visits;
    struct idem_list callback_free; /* Likewise. */
    struct idem_list callback_done;
    uint64_t callbacks[IDEM_CALLBACK_VERDICT_COUNT]; /* As they were judged. */
    uint64_t callbacks_crowded;                      /* Not judged, for want of a place. */
    uint64_t callbacks_matched;                      /* Durable, and about an intent here. */
    uint64_t callbacks_unmatched;                    /* Durable, and about none. */
    uint64_t callbacks_not_durable;
    struct idem_api_refusal refusals[IDEM_NET_REFUSAL_COUNT];

    struct idem_acts acts; /* admin.c */

    /* own.c */
    struct idem_list own_done_reads;
    struct idem_api_own_read own_credentials;
    uint64_t removals_seen; /* Of the credentials, when the page was asked for. */
    struct idem_api_own_read own_summary;
    struct idem_summary summary; /* As it was last read. */
    bool summary_known;
    int64_t scraped_us; /* Monotonic, when /metrics was asked for last; 0: never. */

    /* ready.c */
    struct idem_api_gauges gauges;
    bool draining;
    bool caught_up;
    uint64_t durable_seen; /* Commands, as the engine's stats had them at the last look. */
    uint64_t failed_seen;
    int64_t failed_us; /* Monotonic, of the last look that saw a command not written; 0: it was. */

    const struct idem_server *server;      /* For metrics; may be NULL. */
    uint64_t problems[IDEM_PROBLEM_COUNT]; /* Told to callers, and not stored. */

    /* Used from beginning to end of one step of one visit. */
    struct idem_body body;
    char *canonical;
    size_t canonical_max;
    struct idem_reply reply;
    char *metrics;
    size_t metrics_max;
};

/* visit.c: checks, names and submits, or answers at once. */
void idem_visit_begin(struct idem_api *api, struct idem_exchange *exchange);

/* visit.c: all zero, but for the outcome's text memory. */
void idem_visit_request_clear(struct idem_request *request);

/* visit.c: the body as JSON; where all members are optional, no bytes mean no members. */
bool idem_visit_body_parse(struct idem_api *api,
                           const struct idem_net_request *request,
                           struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/* finish.c: answers, or asks the store for what the answer needs. */
void idem_visit_request_done(struct idem_api *api, struct idem_visit *visit);
void idem_visit_read_done(struct idem_api *api, struct idem_visit *visit);

/* finish.c: sends the api's reply with the headers that belong to the visit, and frees it. */
void idem_visit_answer(struct idem_api *api, struct idem_visit *visit);

/* finish.c: answers with a problem that is not stored. */
void idem_visit_refuse(struct idem_api *api,
                       struct idem_visit *visit,
                       const struct idem_problem_details *details,
                       struct idem_str what);

/* finish.c: a problem that a request ended with, and what may be told of its intent. */
struct idem_problem_details idem_visit_problem(const struct idem_request *request);

/* finish.c: a place for a look into the store; false: none is free, or none for this account. */
bool idem_visit_read_take(struct idem_api *api, struct idem_visit *visit) IDEM_MUST_CHECK;
void idem_visit_read_start(struct idem_api *api,
                           struct idem_visit *visit,
                           enum idem_read_kind kind);

/* admin.c: the operators' routes, whose credential was checked. */
void idem_admin_begin(struct idem_api *api,
                      struct idem_exchange *exchange,
                      const struct idem_caller *caller,
                      const struct idem_route *route);
void idem_admin_read_done(struct idem_api *api, struct idem_admin_visit *visit);
void idem_admin_task_done(struct idem_api *api, struct idem_admin_visit *visit);
void idem_admin_request_done(struct idem_api *api, struct idem_admin_visit *visit);

/* callback.c: a provider's event; then the replies to those that are durable. */
void idem_callback_begin(struct idem_api *api,
                         struct idem_exchange *exchange,
                         const struct idem_route *route);
void idem_callbacks_step(struct idem_api *api);

/* reconcile.c: pages of listings, and evidence, that have come to their end. */
void idem_reconcile_step(struct idem_api *api);
void idem_reconcile_drain(struct idem_api *api);

/* own.c: what the edge asks the store for by itself. */
void idem_own_step(struct idem_api *api);
int64_t idem_own_wake_us(const struct idem_api *api);

/* ready.c: looks whether the store can write; then what /readyz says: NULL is yes. */
void idem_ready_step(struct idem_api *api);
const char *idem_ready_why_not(const struct idem_api *api);

/* metrics.c: the whole page, in the api's memory for it. */
struct idem_str idem_metrics_print(struct idem_api *api);
size_t idem_metrics_max(const struct idem_rules *rules);

/* api.c: a problem that is not stored into the api's reply, counted. */
void idem_api_problem(struct idem_api *api,
                      const struct idem_problem_details *details,
                      struct idem_str what);

#endif /* IDEM_API_API_INTERNAL_H */
