/*
 * From an exchange to a submitted request. The order of the checks is part of the contract:
 *
 *     path and method -> credential -> role -> limits of the principal -> a free visit -> key
 *       -> other headers -> body -> provider granted -> names and fingerprints -> engine
 *
 * so nothing is said about a key, and nothing is looked up, before it is known who asks (P13), and
 * what the bytes alone refuse never reaches the engine. No request waits for memory: without a
 * free visit the answer is `unavailable`.
 */
#include "api/api_internal.h"

#include <assert.h>
#include <string.h>

#include "api/content.h"
#include "api/credential.h"
#include "api/fingerprint.h"
#include "api/first_sent.h"
#include "api/key.h"
#include "api/query.h"
#include "api/scope.h"
#include "api/trace.h"
#include "base/bug.h"

#define VISIT_MAX 20480

static_assert(sizeof(struct idem_visit) <= VISIT_MAX,
              "there are thousands of visits; what only some need has a pool of its own");

bool idem_visit_body_parse(struct idem_api *api,
                           const struct idem_net_request *request,
                           struct idem_fault *ret_fault)
{
    return idem_content_digest_check(request, ret_fault) &&
           idem_content_type_check(request, ret_fault) &&
           idem_body_parse(&api->body, request->body.len > 0 ? request->body : IDEM_STR("{}"),
                           ret_fault);
}

static bool is_granted(const struct idem_visit *visit, struct idem_str entry)
{
    bool granted = visit->every_provider;
    for (size_t i = 0; i < visit->granted_count; i++) {
        granted = granted || idem_str_equal(visit->granted[i], entry);
    }
    return granted;
}

static bool body_read(struct idem_api *api,
                      struct idem_visit *visit,
                      const struct idem_net_request *request,
                      struct idem_fault *ret_fault)
{
    struct idem_accept *accept = &visit->request.item.command.accept;
    if (!idem_visit_body_parse(api, request, ret_fault) ||
        !idem_body_read_accept(&api->body, &visit->kept, accept, ret_fault)) {
        return false;
    }
    if (accept->endpoint != IDEM_ENDPOINT_PAYMENTS_CREATE) {
        return true;
    }
    bool known = idem_rules_provider(api->options.rules, accept->entry) != NULL;
    if (!known || !is_granted(visit, accept->entry)) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_FORBIDDEN,
                              "The provider of this request is not granted to the account.");
    }
    return true;
}

/* Both forms of the body, and the fingerprints of the request under every rule and secret. */
static bool fingerprints_make(struct idem_api *api,
                              struct idem_visit *visit,
                              const struct idem_net_request *request,
                              struct idem_fault *ret_fault)
{
    struct idem_accept *accept = &visit->request.item.command.accept;
    const struct idem_route_policy *policy = &api->options.routes[accept->endpoint];
    struct idem_buf canonical;
    idem_buf_init(&canonical, api->canonical, api->canonical_max);
    if (!idem_json_canonical(&api->body.json, policy->ignored, policy->ignored_count, &canonical)) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_BODY_INVALID,
                              "The body has a number whose exponent cannot be counted.");
    }
    const struct idem_fingerprint_of of = {
        .method = request->method,
        .path = idem_route_path(&visit->route),
        .query = request->query,
        .media_type = IDEM_CONTENT_JSON,
        .body = {
            [IDEM_FINGERPRINT_RULE_JSON] = idem_buf_str(&canonical),
            [IDEM_FINGERPRINT_RULE_RAW] = request->body,
        },
    };
    idem_fingerprint_fill(api->digester, &api->options,
                          policy->raw_body ? IDEM_FINGERPRINT_RULE_RAW : IDEM_FINGERPRINT_RULE_JSON,
                          &of, accept);
    return true;
}

static struct idem_scope_names names_make(struct idem_api *api,
                                          const struct idem_visit *visit,
                                          enum idem_endpoint endpoint)
{
    const struct idem_scope_of of = {
        .principal = idem_account_principal(visit->account),
        .endpoint =
            idem_str_from(api->options.scope_by_principal ? "" : idem_endpoint_name(endpoint)),
        .key = visit->key,
    };
    return idem_scope_make(api->digester, api->options.effect_secret, &of);
}

/* All zero, but for the outcome's text memory: that is large, and written before it is read. */
void idem_visit_request_clear(struct idem_request *request)
{
    const size_t memory = offsetof(struct idem_request, outcome.memory);
    const size_t behind = memory + sizeof(request->outcome.memory);
    memset(request, 0, memory);
    memset((char *)request + behind, 0, sizeof(*request) - behind);
}

static bool keyed_begin(struct idem_api *api,
                        struct idem_visit *visit,
                        const struct idem_net_request *request,
                        struct idem_fault *ret_fault)
{
    const struct idem_route_policy *policy = &api->options.routes[visit->route.endpoint];
    visit->prefer = idem_prefer_read(request);
    idem_visit_request_clear(&visit->request);
    visit->request.item.command.kind = IDEM_COMMAND_ACCEPT;
    visit->request.in_flight = policy->in_flight;
    visit->request.respond_async = visit->prefer.respond_async && !visit->prefer.wait;
    struct idem_accept *accept = &visit->request.item.command.accept;
    accept->principal = idem_account_principal(visit->account);
    accept->granted = visit->every_provider ? NULL : visit->granted;
    accept->granted_count = visit->granted_count;
    accept->trace = idem_trace_read(request);
    accept->endpoint = visit->route.endpoint;
    accept->payment_id = visit->route.id;
    accept->wait_us =
        visit->prefer.wait ? visit->prefer.wait_seconds * IDEM_US_PER_SECOND : policy->wait_us;

    if (!idem_query_check_empty(request->query, ret_fault) ||
        !idem_key_read(request, &visit->kept, &visit->key, ret_fault) ||
        !idem_first_sent_read(request, &accept->first_sent_us, ret_fault) ||
        !body_read(api, visit, request, ret_fault) ||
        !fingerprints_make(api, visit, request, ret_fault)) {
        return false;
    }
    struct idem_scope_names names = names_make(api, visit, accept->endpoint);
    accept->key = visit->key;
    accept->effect_id_tail = idem_buf_keep(
        &visit->kept, (struct idem_str){ .data = names.tail, .len = sizeof(names.tail) });
    visit->request.item.command.scope = names.scope;
    IDEM_ASSERT(!visit->kept.full);
    idem_engine_submit(api->options.engine, &visit->request);
    return true;
}

static bool abandon_begin(struct idem_api *api,
                          struct idem_visit *visit,
                          const struct idem_net_request *request,
                          struct idem_fault *ret_fault)
{
    idem_visit_request_clear(&visit->request);
    visit->request.item.command.kind = IDEM_COMMAND_ABANDON;
    struct idem_abandon *abandon = &visit->request.item.command.abandon;
    if (!idem_query_check_empty(request->query, ret_fault) ||
        !idem_key_read(request, &visit->kept, &visit->key, ret_fault) ||
        !idem_visit_body_parse(api, request, ret_fault) ||
        !idem_body_read_abandon(&api->body, &visit->kept, &abandon->endpoint, ret_fault)) {
        return false;
    }
    abandon->principal = idem_account_principal(visit->account);
    abandon->key = visit->key;
    visit->request.item.command.scope = names_make(api, visit, abandon->endpoint).scope;
    idem_engine_submit(api->options.engine, &visit->request);
    return true;
}

static bool read_take(struct idem_api *api, struct idem_visit *visit, struct idem_fault *ret_fault)
{
    if (!idem_account_may_read(visit->account, &api->options.limits, api->options.reads_max)) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_RATE_LIMITED,
                              "The look-ups of the account are all being worked on.");
    }
    if (!idem_visit_read_take(api, visit)) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_UNAVAILABLE,
                              "Too many look-ups are being worked on.");
    }
    return true;
}

static bool by_id_begin(struct idem_api *api,
                        struct idem_visit *visit,
                        const struct idem_net_request *request,
                        struct idem_fault *ret_fault)
{
    static const enum idem_read_kind kinds[IDEM_ROUTE_COUNT] = {
        [IDEM_ROUTE_PAYMENT] = IDEM_READ_PAYMENT,
        [IDEM_ROUTE_REFUND] = IDEM_READ_REFUND,
        [IDEM_ROUTE_OPERATION] = IDEM_READ_OPERATION,
    };
    IDEM_ASSERT(kinds[visit->route.kind] != IDEM_READ_NONE);
    if (!idem_query_check_empty(request->query, ret_fault) || !read_take(api, visit, ret_fault)) {
        return false;
    }
    visit->read->read.id = visit->route.id;
    idem_visit_read_start(api, visit, kinds[visit->route.kind]);
    return true;
}

static bool by_order_begin(struct idem_api *api,
                           struct idem_visit *visit,
                           const struct idem_net_request *request,
                           struct idem_fault *ret_fault)
{
    struct idem_str order_no;
    if (!idem_query_read_one(request->query, IDEM_STR("order_no"), &visit->kept, &order_no,
                             ret_fault)) {
        return false;
    }
    if (order_no.len > IDEM_ORDER_NO_MAX) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID,
                              "\"order_no\" is longer than any order number.");
    }
    if (!read_take(api, visit, ret_fault)) {
        return false;
    }
    visit->read->read.order_no = order_no;
    idem_visit_read_start(api, visit, IDEM_READ_PAYMENT_BY_ORDER);
    return true;
}

static bool by_key_begin(struct idem_api *api,
                         struct idem_visit *visit,
                         const struct idem_net_request *request,
                         struct idem_fault *ret_fault)
{
    struct idem_str name;
    if (!idem_key_read(request, &visit->kept, &visit->key, ret_fault) ||
        !idem_query_read_one(request->query, IDEM_STR("endpoint"), &visit->kept, &name,
                             ret_fault)) {
        return false;
    }
    enum idem_endpoint endpoint = idem_endpoint_from(name);
    if (endpoint == IDEM_ENDPOINT_NONE) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID,
                              "\"endpoint\" is none of this API's endpoints.");
    }
    if (!read_take(api, visit, ret_fault)) {
        return false;
    }
    visit->read->read.scope = names_make(api, visit, endpoint).scope;
    idem_visit_read_start(api, visit, IDEM_READ_OPERATION_BY_SCOPE);
    return true;
}

static bool visit_begin(struct idem_api *api,
                        struct idem_visit *visit,
                        const struct idem_net_request *request,
                        struct idem_fault *ret_fault)
{
    switch (visit->route.kind) {
    case IDEM_ROUTE_KEYED:
        return keyed_begin(api, visit, request, ret_fault);
    case IDEM_ROUTE_ABANDON:
        return abandon_begin(api, visit, request, ret_fault);
    case IDEM_ROUTE_PAYMENT:
    case IDEM_ROUTE_REFUND:
    case IDEM_ROUTE_OPERATION:
        return by_id_begin(api, visit, request, ret_fault);
    case IDEM_ROUTE_PAYMENT_BY_ORDER:
        return by_order_begin(api, visit, request, ret_fault);
    case IDEM_ROUTE_OPERATION_BY_KEY:
        return by_key_begin(api, visit, request, ret_fault);
    case IDEM_ROUTE_HEALTH:
    case IDEM_ROUTE_READY:
    case IDEM_ROUTE_METRICS:
    case IDEM_ROUTE_ADMIN_LIST:
    case IDEM_ROUTE_ADMIN_OPERATION:
    case IDEM_ROUTE_ADMIN_RESOLVE:
    case IDEM_ROUTE_ADMIN_ERASE:
    case IDEM_ROUTE_ADMIN_OF_PAYMENT:
    case IDEM_ROUTE_ADMIN_SUMMARY:
    case IDEM_ROUTE_ADMIN_CREDENTIALS:
    case IDEM_ROUTE_ADMIN_CREDENTIAL_PUT:
    case IDEM_ROUTE_ADMIN_CREDENTIAL_REVOKE:
    case IDEM_ROUTE_ADMIN_RESTORED:
    case IDEM_ROUTE_ADMIN_RESTORED_END:
    case IDEM_ROUTE_ADMIN_CASES:
    case IDEM_ROUTE_ADMIN_CASE:
    case IDEM_ROUTE_ADMIN_CASE_RESOLVE:
    case IDEM_ROUTE_ADMIN_CASE_COMPENSATE:
    case IDEM_ROUTE_ADMIN_WEBHOOKS:
    case IDEM_ROUTE_ADMIN_WEBHOOK_PUT:
    case IDEM_ROUTE_ADMIN_WEBHOOK_ROTATE:
    case IDEM_ROUTE_ADMIN_WEBHOOK_DISABLE:
    case IDEM_ROUTE_ADMIN_WEBHOOK_ENABLE:
    case IDEM_ROUTE_ADMIN_WEBHOOK_TEST:
    case IDEM_ROUTE_ADMIN_DELIVERIES:
    case IDEM_ROUTE_ADMIN_REPLAY:
    case IDEM_ROUTE_ADMIN_EFFECTS:
    case IDEM_ROUTE_ADMIN_LISTINGS:
    case IDEM_ROUTE_ADMIN_EVIDENCE:
    case IDEM_ROUTE_CALLBACK:
    case IDEM_ROUTE_NONE:
    case IDEM_ROUTE_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static void send(struct idem_api *api, struct idem_exchange *exchange)
{
    struct idem_net_reply reply = idem_reply_end(&api->reply);
    idem_exchange_reply(exchange, &reply);
}

/* A refusal before there is a visit; the reply is complete but for headers. */
static void refusal_begin(struct idem_api *api, const struct idem_fault *fault)
{
    const struct idem_problem_details details = { .problem = fault->problem };
    idem_api_problem(api, &details, idem_fault_text(fault));
}

static void refuse_later(struct idem_api *api,
                         struct idem_exchange *exchange,
                         const struct idem_fault *fault,
                         int64_t wait_us)
{
    refusal_begin(api, fault);
    idem_reply_retry_after(&api->reply, wait_us);
    send(api, exchange);
}

/* ---- without a credential ---- */

static void state_answer(struct idem_api *api, struct idem_exchange *exchange, const char *why_not)
{
    idem_reply_begin(&api->reply, why_not == NULL ? 200 : 503);
    idem_reply_header(&api->reply, IDEM_STR("Content-Type"), IDEM_CONTENT_JSON);
    idem_buf_add(&api->reply.body, IDEM_STR("{\"status\":\""));
    idem_buf_add(&api->reply.body, idem_str_from(why_not == NULL ? "ok" : why_not));
    idem_buf_add(&api->reply.body, IDEM_STR("\"}\n"));
    send(api, exchange);
}

static void metrics_answer(struct idem_api *api, struct idem_exchange *exchange)
{
    api->scraped_us = idem_clock_mono_us(api->options.clock);
    idem_reply_begin(&api->reply, 200);
    idem_reply_header(&api->reply, IDEM_STR("Content-Type"),
                      IDEM_STR("text/plain; version=0.0.4; charset=utf-8"));
    struct idem_net_reply reply = idem_reply_end(&api->reply);
    reply.body = idem_metrics_print(api);
    idem_exchange_reply(exchange, &reply);
}

/* True if the route needs no credential, and has been answered. */
static bool open_answer(struct idem_api *api,
                        struct idem_exchange *exchange,
                        enum idem_route_kind kind)
{
    if (kind == IDEM_ROUTE_METRICS) {
        metrics_answer(api, exchange);
        return true;
    }
    if (kind == IDEM_ROUTE_HEALTH || kind == IDEM_ROUTE_READY) {
        state_answer(api, exchange, kind == IDEM_ROUTE_READY ? idem_ready_why_not(api) : NULL);
        return true;
    }
    return false;
}

/* ---- who calls ---- */

/* Nobody has this bearer: for good, or as far as is known yet. */
static void stranger_refuse(struct idem_api *api, struct idem_exchange *exchange)
{
    struct idem_fault fault;
    if (idem_credentials_may_miss(&api->credentials)) {
        (void)idem_fault_set(&fault, IDEM_PROBLEM_UNAVAILABLE,
                             "The bearer token is not known yet.");
        refuse_later(api, exchange, &fault, IDEM_US_PER_SECOND);
        return;
    }
    (void)idem_fault_set(&fault, IDEM_PROBLEM_UNAUTHENTICATED, "The bearer token is not known.");
    refusal_begin(api, &fault);
    idem_reply_header(&api->reply, IDEM_STR("WWW-Authenticate"), IDEM_STR("Bearer realm=\"idem\""));
    send(api, exchange);
}

static bool role_check(const struct idem_caller *caller, bool admin, struct idem_fault *ret_fault)
{
    if (admin && caller->role != IDEM_ROLE_OPERATOR) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_FORBIDDEN, "This is for operators.");
    }
    if (!admin && caller->role != IDEM_ROLE_MERCHANT) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_FORBIDDEN,
                              "An operator's credential makes and reads no payments.");
    }
    return true;
}

/* Everything before a visit is needed; gives who calls, or has answered. */
static const struct idem_caller *caller_find(struct idem_api *api,
                                             struct idem_exchange *exchange,
                                             const struct idem_route *route)
{
    struct idem_fault fault;
    struct idem_digest digest;
    const struct idem_net_request *request = idem_exchange_request(exchange);
    if (!idem_credential_read(api->digester, request, &digest, &fault)) {
        refusal_begin(api, &fault);
        idem_reply_header(&api->reply, IDEM_STR("WWW-Authenticate"),
                          IDEM_STR("Bearer realm=\"idem\""));
        send(api, exchange);
        return NULL;
    }
    const struct idem_caller *caller = idem_credentials_find(&api->credentials, digest);
    if (caller == NULL) {
        stranger_refuse(api, exchange);
        return NULL;
    }
    if (!role_check(caller, idem_route_is_admin(route->kind), &fault)) {
        refusal_begin(api, &fault);
        send(api, exchange);
        return NULL;
    }
    return caller;
}

/* ---- a place inside ---- */

static void grants_copy(struct idem_api *api,
                        struct idem_visit *visit,
                        const struct idem_caller *caller)
{
    visit->every_provider = caller->every_provider;
    visit->granted_count = 0;
    for (size_t i = 0; i < api->options.rules->provider_count; i++) {
        if ((caller->providers >> i & 1U) != 0) {
            visit->granted[visit->granted_count] = api->options.rules->providers[i].entry;
            visit->granted_count += 1;
        }
    }
}

static struct idem_visit *visit_take(struct idem_api *api,
                                     struct idem_exchange *exchange,
                                     const struct idem_caller *caller,
                                     const struct idem_route *route)
{
    api->free_count -= 1;
    struct idem_visit *visit = api->free[api->free_count];
    visit->exchange = exchange;
    visit->account = caller->account;
    visit->route = *route;
    visit->prefer = (struct idem_prefer){ 0 };
    visit->key = (struct idem_str){ 0 };
    visit->gone = false;
    visit->requested = false;
    visit->read = NULL;
    grants_copy(api, visit, caller);
    idem_buf_init(&visit->kept, visit->memory, sizeof(visit->memory));
    idem_exchange_set_owner(exchange, &visit->gone);
    return visit;
}

/* Gives a visit that counts in its principal's account, or has answered. */
static struct idem_visit *merchant_enter(struct idem_api *api,
                                         struct idem_exchange *exchange,
                                         const struct idem_caller *caller,
                                         const struct idem_route *route)
{
    struct idem_fault fault;
    int64_t wait_us = IDEM_US_PER_SECOND;
    if (!idem_account_enter(caller->account, &api->options.limits,
                            idem_clock_mono_us(api->options.clock), &wait_us)) {
        (void)idem_fault_set(&fault, IDEM_PROBLEM_RATE_LIMITED,
                             "The limits of the account are reached.");
        refuse_later(api, exchange, &fault, wait_us);
        return NULL;
    }
    if (api->free_count == 0) {
        idem_account_undo(caller->account, &api->options.limits);
        (void)idem_fault_set(&fault, IDEM_PROBLEM_UNAVAILABLE,
                             "Too many requests are being worked on.");
        refuse_later(api, exchange, &fault, IDEM_US_PER_SECOND);
        return NULL;
    }
    return visit_take(api, exchange, caller, route);
}

static void merchant_begin(struct idem_api *api,
                           struct idem_exchange *exchange,
                           const struct idem_caller *caller,
                           const struct idem_route *route)
{
    struct idem_fault fault;
    struct idem_visit *visit = merchant_enter(api, exchange, caller, route);
    if (visit != NULL && !visit_begin(api, visit, idem_exchange_request(exchange), &fault)) {
        const struct idem_problem_details details = { .problem = fault.problem };
        idem_visit_refuse(api, visit, &details, idem_fault_text(&fault));
    }
}

void idem_visit_begin(struct idem_api *api, struct idem_exchange *exchange)
{
    struct idem_fault fault;
    struct idem_route route;
    char methods[32];
    struct idem_buf allow;
    idem_buf_init(&allow, methods, sizeof(methods));
    idem_exchange_set_owner(exchange, NULL);

    if (!idem_route_find(idem_exchange_request(exchange), &route, &allow, &fault)) {
        refusal_begin(api, &fault);
        if (allow.len > 0) {
            idem_reply_header(&api->reply, IDEM_STR("Allow"), idem_buf_str(&allow));
        }
        send(api, exchange);
        return;
    }
    if (open_answer(api, exchange, route.kind)) {
        return;
    }
    if (route.kind == IDEM_ROUTE_CALLBACK) {
        idem_callback_begin(api, exchange, &route);
        return;
    }
    const struct idem_caller *caller = caller_find(api, exchange, &route);
    if (caller == NULL) {
        return;
    }
    if (idem_route_is_admin(route.kind)) {
        idem_admin_begin(api, exchange, caller, &route);
        return;
    }
    merchant_begin(api, exchange, caller, &route);
}
