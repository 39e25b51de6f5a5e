/*
 * api_internal.h - the edge from inside: one visit is one exchange on its way through the engine.
 */
#ifndef IDEM_API_API_INTERNAL_H
#define IDEM_API_API_INTERNAL_H

#include "api/api.h"
#include "api/body.h"
#include "api/prefer.h"
#include "api/reply.h"
#include "api/route.h"
#include "core/limits.h"

/* Key, unescaped texts of one body and the last one that turned out too long. */
#define IDEM_VISIT_MEMORY_MAX 4096

struct idem_visit {
    struct idem_list_node node; /* On the api's free list. */
    struct idem_exchange *exchange;
    const struct idem_credential *credential;
    struct idem_route route;
    struct idem_prefer prefer;
    struct idem_str key; /* Empty until one was read. */
    bool gone;           /* Nobody reads the answer. */
    bool requested;      /* The request came back; a read now is about its intent. */
    struct idem_buf kept;
    char memory[IDEM_VISIT_MEMORY_MAX];
    struct idem_request request;
    struct idem_read read;
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
    struct idem_visit *visits;
    struct idem_list free; /* Of struct idem_visit; last in, first out, so that few are warm. */
    bool draining;
    struct idem_api_refusal refusals[IDEM_NET_REFUSAL_COUNT];

    /* Used from beginning to end of one step of one visit. */
    struct idem_body body;
    char *canonical;
    size_t canonical_max;
    struct idem_reply reply;
};

/* visit.c: checks, names and submits, or answers at once. */
void idem_visit_begin(struct idem_api *api, struct idem_exchange *exchange);

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

#endif /* IDEM_API_API_INTERNAL_H */
