/*
 * The edge as a whole: its memory, the server's table, and the step that answers what is done.
 *
 * A visit is free, or its request or its read is in the engine. It leaves the engine once for every
 * time that it went in, and its exchange is answered exactly once, whether or not somebody is still
 * there to hear it.
 */
#include "api/api_internal.h"

#include <stdlib.h>

#include "base/bug.h"

#define WAIT_DEFAULT_US  (10 * IDEM_US_PER_SECOND)
#define READS_DEFAULT    64
#define SECRET_MIN       16 /* Bytes; below that a secret can be guessed. */
#define CANONICAL_GROWTH 2  /* "0.5" becomes "5e-1"; nothing grows more than twofold. */
#define CANONICAL_ROOM   64

void idem_api_routes_default(struct idem_route_policy routes[IDEM_ENDPOINT_COUNT])
{
    for (size_t i = 0; i < IDEM_ENDPOINT_COUNT; i++) {
        routes[i] = (struct idem_route_policy){ .wait_us = WAIT_DEFAULT_US };
    }
}

struct idem_digest idem_api_effect_secret_check(struct idem_digester *digester,
                                                struct idem_str effect_secret)
{
    idem_hmac_begin(digester, effect_secret);
    idem_hmac_add(digester, IDEM_STR("idem effect secret check"));
    return idem_hmac_end(digester);
}

/* Which problem a refusal of the server is. */
static enum idem_problem refusal_problem(enum idem_net_refusal refusal)
{
    switch (refusal) {
    case IDEM_NET_BAD_REQUEST:
        return IDEM_PROBLEM_REQUEST_INVALID;
    case IDEM_NET_HEAD_SLOW:
    case IDEM_NET_BODY_SLOW:
        return IDEM_PROBLEM_TOO_SLOW;
    case IDEM_NET_BODY_TOO_LARGE:
        return IDEM_PROBLEM_TOO_LARGE;
    case IDEM_NET_HEAD_TOO_LARGE:
        return IDEM_PROBLEM_HEAD_TOO_LARGE;
    case IDEM_NET_NOT_SUPPORTED:
        return IDEM_PROBLEM_NOT_SUPPORTED;
    case IDEM_NET_CROWDED:
        return IDEM_PROBLEM_UNAVAILABLE;
    case IDEM_NET_REFUSAL_NONE:
    case IDEM_NET_REFUSAL_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

/* Made once, since a refusal's text must outlive the call. */
static void refusals_make(struct idem_api *api)
{
    for (enum idem_net_refusal i = IDEM_NET_REFUSAL_NONE + 1; i < IDEM_NET_REFUSAL_COUNT; i++) {
        struct idem_api_refusal *refusal = &api->refusals[i];
        const struct idem_problem_details details = { .problem = refusal_problem(i) };
        idem_reply_problem(&api->reply, &details, IDEM_STR("")); /* Nobody was told it yet. */
        if (i == IDEM_NET_CROWDED) {
            idem_reply_retry_after(&api->reply, IDEM_US_PER_SECOND);
        }
        struct idem_net_reply reply = idem_reply_end(&api->reply);
        struct idem_buf head;
        struct idem_buf body;
        idem_buf_init(&head, refusal->head, sizeof(refusal->head));
        idem_buf_init(&body, refusal->body, sizeof(refusal->body));
        reply.headers = idem_buf_keep(&head, reply.headers);
        reply.body = idem_buf_keep(&body, reply.body);
        reply.close = true;
        IDEM_ASSERT(!head.full && !body.full);
        refusal->reply = reply;
    }
}

static enum idem_err options_check(const struct idem_api_options *options,
                                   struct idem_error *reterr)
{
    if (options->requests_max == 0 || options->body_max == 0) {
        return idem_error_set(reterr, IDEM_E_INVALID, "requests_max and body_max must not be 0");
    }
    if (options->effect_secret.len < SECRET_MIN) {
        return idem_error_set(reterr, IDEM_E_INVALID, "the effect secret is shorter than %d bytes",
                              SECRET_MIN);
    }
    if (options->fingerprint_secret_count == 0 ||
        options->fingerprint_secret_count > IDEM_API_SECRETS_MAX) {
        return idem_error_set(reterr, IDEM_E_INVALID, "there must be 1 to %d fingerprint secrets",
                              IDEM_API_SECRETS_MAX);
    }
    for (size_t i = 0; i < options->fingerprint_secret_count; i++) {
        if (options->fingerprint_secrets[i].bytes.len < SECRET_MIN) {
            return idem_error_set(reterr, IDEM_E_INVALID,
                                  "a fingerprint secret is shorter than %d bytes", SECRET_MIN);
        }
    }
    if (options->rules->provider_count > IDEM_API_PROVIDERS_MAX) {
        return idem_error_set(reterr, IDEM_E_INVALID, "more than %d providers",
                              IDEM_API_PROVIDERS_MAX);
    }
    return IDEM_OK;
}

void idem_api_destroy(struct idem_api *api)
{
    if (api == NULL) {
        return;
    }
    IDEM_ASSERT(api->visits == NULL || idem_api_idle(api));
    idem_digester_destroy(api->digester);
    idem_credentials_free(&api->credentials);
    free(api->metrics);
    free(api->canonical);
    free(api->own_summary.read);
    free(api->own_credentials.read);
    free(api->page);
    free(api->evidence);
    free(api->callback_visits);
    free(api->admin_visits);
    free(api->reads);
    free((void *)api->free);
    free(api->visits);
    free(api);
}

/* Memory in one piece for each kind; untouched pages of it cost nothing. */
static enum idem_err memory_take(struct idem_api *api, struct idem_error *reterr)
{
    const struct idem_api_options *options = &api->options;
    api->canonical_max = options->body_max * CANONICAL_GROWTH + CANONICAL_ROOM;
    api->canonical = malloc(api->canonical_max);
    api->metrics_max = idem_metrics_max(options->rules);
    api->metrics = malloc(api->metrics_max);
    api->own_credentials.read = calloc(1, sizeof(struct idem_read));
    api->own_summary.read = calloc(1, sizeof(struct idem_read));
    api->admin_visits = calloc(IDEM_ADMIN_VISITS, sizeof(*api->admin_visits));
    api->callback_visits = calloc(IDEM_CALLBACK_VISITS, sizeof(*api->callback_visits));
    api->evidence = calloc(1, sizeof(*api->evidence));
    api->page = calloc(1, sizeof(*api->page));
    api->reads = calloc(options->reads_max, sizeof(*api->reads));
    api->free = (struct idem_visit **)calloc(options->requests_max, sizeof(struct idem_visit *));
    api->visits = calloc(options->requests_max, sizeof(*api->visits));
    if (api->free == NULL || api->canonical == NULL || api->metrics == NULL ||
        api->own_credentials.read == NULL || api->own_summary.read == NULL ||
        api->admin_visits == NULL || api->callback_visits == NULL || api->evidence == NULL ||
        api->page == NULL || api->reads == NULL || api->visits == NULL) {
        free(api->visits);
        api->visits = NULL;
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for %zu requests",
                              options->requests_max);
    }
    for (size_t i = 0; i < options->requests_max; i++) {
        api->free[i] = &api->visits[i];
    }
    api->free_count = options->requests_max;
    for (size_t i = 0; i < options->reads_max; i++) {
        idem_list_push(&api->free_reads, &api->reads[i].node);
    }
    for (size_t i = 0; i < IDEM_ADMIN_VISITS; i++) {
        idem_list_push(&api->admin_free, &api->admin_visits[i].node);
    }
    for (size_t i = 0; i < IDEM_CALLBACK_VISITS; i++) {
        idem_list_push(&api->callback_free, &api->callback_visits[i].node);
    }
    return IDEM_OK;
}

static enum idem_err parts_make(struct idem_api *api, struct idem_error *reterr)
{
    const struct idem_api_options *options = &api->options;
    enum idem_err err = idem_digester_create(&api->digester, reterr);
    if (err == IDEM_OK) {
        err = idem_credentials_init(&api->credentials, options, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_credentials_configure(&api->credentials, options->credentials,
                                         options->credential_count, options->bootstrap_sha256,
                                         reterr);
    }
    return err == IDEM_OK ? memory_take(api, reterr) : err;
}

enum idem_err idem_api_create(const struct idem_api_options *options,
                              struct idem_api **ret_api,
                              struct idem_error *reterr)
{
    enum idem_err err = options_check(options, reterr);
    if (err != IDEM_OK) {
        return err;
    }
    struct idem_api *api = calloc(1, sizeof(*api));
    if (api == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for the api");
    }
    api->options = *options;
    api->own_credentials.wanted = true;
    if (api->options.reads_max == 0) {
        api->options.reads_max = READS_DEFAULT;
    }
    err = parts_make(api, reterr);
    if (err != IDEM_OK) {
        idem_api_destroy(api);
        return err;
    }
    refusals_make(api);
    *ret_api = api;
    return IDEM_OK;
}

void idem_api_problem(struct idem_api *api,
                      const struct idem_problem_details *details,
                      struct idem_str what)
{
    api->problems[details->problem] += 1;
    idem_reply_problem(&api->reply, details, what);
}

static void api_request(void *context, struct idem_exchange *exchange)
{
    idem_visit_begin(context, exchange);
}

static void api_gone(void *context, struct idem_exchange *exchange)
{
    (void)context; /* The visit says all there is to know. */
    bool *gone = idem_exchange_owner(exchange);
    IDEM_ASSERT(gone != NULL);
    *gone = true;
}

static void api_refusal(void *context,
                        enum idem_net_refusal refusal,
                        struct idem_net_reply *ret_reply)
{
    const struct idem_api *api = context;
    IDEM_ASSERT(refusal > IDEM_NET_REFUSAL_NONE);
    IDEM_ASSERT(refusal < IDEM_NET_REFUSAL_COUNT);
    *ret_reply = api->refusals[refusal].reply;
}

const struct idem_server_ops idem_api_server_ops = {
    .request = api_request,
    .gone = api_gone,
    .refusal = api_refusal,
};

static void visits_step(struct idem_api *api)
{
    struct idem_list requests = { 0 };
    struct idem_list reads = { 0 };
    idem_engine_reap(api->options.engine, &requests);
    idem_list_join(&reads, &api->done_reads);
    struct idem_list_node *node;
    while ((node = idem_list_pop(&requests)) != NULL) {
        struct idem_request *request = IDEM_CONTAINER_OF(node, struct idem_request, node);
        if (request->owner == IDEM_API_OWNER_OPERATOR) {
            idem_admin_request_done(api,
                                    IDEM_CONTAINER_OF(request, struct idem_admin_visit, request));
            continue;
        }
        idem_visit_request_done(api, IDEM_CONTAINER_OF(request, struct idem_visit, request));
    }
    while ((node = idem_list_pop(&reads)) != NULL) {
        struct idem_read *read = IDEM_CONTAINER_OF(node, struct idem_read, node);
        idem_visit_read_done(api, IDEM_CONTAINER_OF(read, struct idem_api_read, read)->visit);
    }
}

static void admin_step(struct idem_api *api)
{
    struct idem_list tasks = { 0 };
    struct idem_list reads = { 0 };
    idem_list_join(&tasks, &api->admin_done_tasks);
    idem_list_join(&reads, &api->admin_done_reads);
    struct idem_list_node *node;
    while ((node = idem_list_pop(&tasks)) != NULL) {
        struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        struct idem_task *task = IDEM_CONTAINER_OF(item, struct idem_task, item);
        idem_admin_task_done(api, IDEM_CONTAINER_OF(task, struct idem_admin_visit, task));
    }
    while ((node = idem_list_pop(&reads)) != NULL) {
        struct idem_read *read = IDEM_CONTAINER_OF(node, struct idem_read, node);
        idem_admin_read_done(api, IDEM_CONTAINER_OF(read, struct idem_admin_visit, read));
    }
}

void idem_api_step(struct idem_api *api)
{
    idem_ready_step(api);
    visits_step(api);
    admin_step(api);
    idem_callbacks_step(api);
    idem_reconcile_step(api);
    idem_own_step(api);
}

int64_t idem_api_wake_us(const struct idem_api *api)
{
    return idem_own_wake_us(api);
}

enum idem_err idem_api_reload_credentials(struct idem_api *api,
                                          const struct idem_credential *credentials,
                                          size_t count,
                                          struct idem_digest bootstrap_sha256,
                                          struct idem_error *reterr)
{
    return idem_credentials_configure(&api->credentials, credentials, count, bootstrap_sha256,
                                      reterr);
}

bool idem_api_credentials_crowded(const struct idem_api *api)
{
    return api->credentials.crowded;
}

size_t idem_api_take_acts(struct idem_api *api, struct idem_api_act *ret, size_t max)
{
    return idem_acts_take(&api->acts, ret, max);
}

void idem_api_reload_limits(struct idem_api *api, const struct idem_api_limits *limits)
{
    api->options.limits = *limits;
}

void idem_api_set_server(struct idem_api *api, const struct idem_server *server)
{
    api->server = server;
}

void idem_api_set_gauges(struct idem_api *api, const struct idem_api_gauges *gauges)
{
    api->gauges = *gauges;
}

void idem_api_set_ready(struct idem_api *api, bool caught_up)
{
    api->caught_up = caught_up;
}

void idem_api_drain(struct idem_api *api)
{
    api->draining = true;
    idem_reconcile_drain(api);
}

bool idem_api_idle(const struct idem_api *api)
{
    return api->free_count == api->options.requests_max &&
           api->admin_free.count == IDEM_ADMIN_VISITS &&
           api->callback_free.count == IDEM_CALLBACK_VISITS && !api->own_credentials.running &&
           !api->own_summary.running;
}
