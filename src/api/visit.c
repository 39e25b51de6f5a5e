/*
 * From an exchange to a submitted request. The order of the checks is part of the contract:
 *
 *     path and method -> credential -> role -> a free visit -> key -> other headers -> body
 *       -> provider granted -> names and fingerprints -> engine
 *
 * so nothing is said about a key, and nothing is looked up, before it is known who asks (P13), and
 * what the bytes alone refuse never reaches the engine. No request waits for memory: without a
 * free visit the answer is `unavailable`.
 */
#include "api/api_internal.h"

#include "api/content.h"
#include "api/credential.h"
#include "api/fingerprint.h"
#include "api/first_sent.h"
#include "api/key.h"
#include "api/query.h"
#include "api/scope.h"
#include "base/bug.h"

/* The body as JSON. Where all members are optional, no bytes mean no members. */
static bool body_parse(struct idem_api *api,
                       const struct idem_net_request *request,
                       struct idem_fault *ret_fault)
{
    return idem_content_digest_check(request, ret_fault) &&
           idem_content_type_check(request, ret_fault) &&
           idem_body_parse(&api->body, request->body.len > 0 ? request->body : IDEM_STR("{}"),
                           ret_fault);
}

static bool body_read(struct idem_api *api,
                      struct idem_visit *visit,
                      const struct idem_net_request *request,
                      struct idem_fault *ret_fault)
{
    struct idem_accept *accept = &visit->request.item.command.accept;
    if (!body_parse(api, request, ret_fault) ||
        !idem_body_read_accept(&api->body, &visit->kept, accept, ret_fault)) {
        return false;
    }
    if (accept->endpoint != IDEM_ENDPOINT_PAYMENTS_CREATE) {
        return true;
    }
    bool known = idem_rules_provider(api->options.rules, accept->entry) != NULL;
    if (!known || !idem_credential_grants(visit->credential, accept->entry)) {
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
        .principal = visit->credential->principal,
        .endpoint =
            idem_str_from(api->options.scope_by_principal ? "" : idem_endpoint_name(endpoint)),
        .key = visit->key,
    };
    return idem_scope_make(api->digester, api->options.effect_secret, &of);
}

static bool keyed_begin(struct idem_api *api,
                        struct idem_visit *visit,
                        const struct idem_net_request *request,
                        struct idem_fault *ret_fault)
{
    const struct idem_route_policy *policy = &api->options.routes[visit->route.endpoint];
    visit->prefer = idem_prefer_read(request);
    visit->request = (struct idem_request){
        .item.command.kind = IDEM_COMMAND_ACCEPT,
        .in_flight = policy->in_flight,
        .respond_async = visit->prefer.respond_async && !visit->prefer.wait,
    };
    struct idem_accept *accept = &visit->request.item.command.accept;
    accept->principal = visit->credential->principal;
    accept->granted = visit->credential->providers;
    accept->granted_count = visit->credential->provider_count;
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
    visit->request = (struct idem_request){ .item.command.kind = IDEM_COMMAND_ABANDON };
    struct idem_abandon *abandon = &visit->request.item.command.abandon;
    if (!idem_query_check_empty(request->query, ret_fault) ||
        !idem_key_read(request, &visit->kept, &visit->key, ret_fault) ||
        !body_parse(api, request, ret_fault) ||
        !idem_body_read_abandon(&api->body, &visit->kept, &abandon->endpoint, ret_fault)) {
        return false;
    }
    abandon->principal = visit->credential->principal;
    abandon->key = visit->key;
    visit->request.item.command.scope = names_make(api, visit, abandon->endpoint).scope;
    idem_engine_submit(api->options.engine, &visit->request);
    return true;
}

static void read_start(struct idem_api *api, struct idem_visit *visit, enum idem_read_kind kind)
{
    visit->read.kind = kind;
    visit->read.principal = visit->credential->principal;
    visit->read.now_us = idem_clock_wall_us(api->options.clock);
    idem_engine_read(api->options.engine, &visit->read);
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
    if (!idem_query_check_empty(request->query, ret_fault)) {
        return false;
    }
    visit->read.id = visit->route.id;
    read_start(api, visit, kinds[visit->route.kind]);
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
    visit->read.order_no = order_no;
    read_start(api, visit, IDEM_READ_PAYMENT_BY_ORDER);
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
    visit->read.scope = names_make(api, visit, endpoint).scope;
    read_start(api, visit, IDEM_READ_OPERATION_BY_SCOPE);
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

/* A refusal before there is a visit. `name` and `value` are one more header; empty: none. */
static void refuse(struct idem_api *api,
                   struct idem_exchange *exchange,
                   const struct idem_fault *fault,
                   struct idem_str name,
                   struct idem_str value)
{
    const struct idem_problem_details details = { .problem = fault->problem };
    idem_reply_problem(&api->reply, &details, idem_fault_text(fault));
    if (name.len > 0) {
        idem_reply_header(&api->reply, name, value);
    }
    send(api, exchange);
}

static void state_answer(struct idem_api *api, struct idem_exchange *exchange, bool ready)
{
    idem_reply_begin(&api->reply, ready ? 200 : 503);
    idem_reply_header(&api->reply, IDEM_STR("Content-Type"), IDEM_CONTENT_JSON);
    idem_buf_add(&api->reply.body, ready ? IDEM_STR("{\"status\":\"ok\"}\n")
                                         : IDEM_STR("{\"status\":\"stopping\"}\n"));
    send(api, exchange);
}

/* Everything before a visit is needed; gives the credential, or has answered. */
static const struct idem_credential *caller_find(struct idem_api *api,
                                                 struct idem_exchange *exchange,
                                                 const struct idem_net_request *request)
{
    struct idem_fault fault;
    const struct idem_credential *credential =
        idem_credential_find(&api->options, api->digester, request, &fault);
    if (credential == NULL) {
        refuse(api, exchange, &fault, IDEM_STR("WWW-Authenticate"),
               IDEM_STR("Bearer realm=\"idem\""));
        return NULL;
    }
    if (credential->is_operator) {
        (void)idem_fault_set(&fault, IDEM_PROBLEM_FORBIDDEN,
                             "An operator's credential makes and reads no payments.");
        refuse(api, exchange, &fault, IDEM_STR(""), IDEM_STR(""));
        return NULL;
    }
    return credential;
}

static struct idem_visit *visit_take(struct idem_api *api,
                                     struct idem_exchange *exchange,
                                     const struct idem_credential *credential,
                                     const struct idem_route *route)
{
    struct idem_list_node *node = idem_list_pop(&api->free);
    if (node == NULL) {
        return NULL;
    }
    struct idem_visit *visit = IDEM_CONTAINER_OF(node, struct idem_visit, node);
    visit->exchange = exchange;
    visit->credential = credential;
    visit->route = *route;
    visit->prefer = (struct idem_prefer){ 0 };
    visit->key = (struct idem_str){ 0 };
    visit->gone = false;
    visit->requested = false;
    idem_buf_init(&visit->kept, visit->memory, sizeof(visit->memory));
    idem_exchange_set_owner(exchange, visit);
    return visit;
}

void idem_visit_begin(struct idem_api *api, struct idem_exchange *exchange)
{
    const struct idem_net_request *request = idem_exchange_request(exchange);
    struct idem_fault fault;
    struct idem_route route;
    char methods[32];
    struct idem_buf allow;
    idem_buf_init(&allow, methods, sizeof(methods));
    idem_exchange_set_owner(exchange, NULL);

    if (!idem_route_find(request, &route, &allow, &fault)) {
        refuse(api, exchange, &fault, allow.len > 0 ? IDEM_STR("Allow") : IDEM_STR(""),
               idem_buf_str(&allow));
        return;
    }
    if (route.kind == IDEM_ROUTE_HEALTH || route.kind == IDEM_ROUTE_READY) {
        bool ready = !api->draining && idem_engine_takes_work(api->options.engine);
        state_answer(api, exchange, route.kind == IDEM_ROUTE_HEALTH || ready);
        return;
    }
    const struct idem_credential *credential = caller_find(api, exchange, request);
    if (credential == NULL) {
        return;
    }
    struct idem_visit *visit = visit_take(api, exchange, credential, &route);
    if (visit == NULL) {
        (void)idem_fault_set(&fault, IDEM_PROBLEM_UNAVAILABLE,
                             "Too many requests are being worked on.");
        refuse(api, exchange, &fault, IDEM_STR("Retry-After"), IDEM_STR("1"));
        return;
    }
    if (!visit_begin(api, visit, request, &fault)) {
        const struct idem_problem_details details = { .problem = fault.problem };
        idem_visit_refuse(api, visit, &details, idem_fault_text(&fault));
    }
}
