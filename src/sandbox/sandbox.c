/*
 * The sandbox: an HTTP server, a ledger and a timer, and the routes between them.
 *
 *   POST /{profile}/effects              send.c
 *   GET  /{profile}/effects              list.c
 *   GET  /{profile}/effects/{id}         ask.c
 *   POST /{profile}/effects/{id}/close   ask.c
 *   GET  /ledger, GET /healthz           ask.c, here
 *
 * What this file refuses (a path, a method, a credential) never counts as an arrival, since the
 * provider behind it has not seen it.
 */
#include "sandbox/sandbox.h"

#include <stdlib.h>

#include "base/bug.h"
#include "sandbox/sandbox_internal.h"

static bool is_authorized(const struct idem_sandbox *sandbox, const struct idem_exchange *exchange)
{
    struct idem_str token = idem_exchange_header(exchange, IDEM_STR("authorization"), NULL);
    struct idem_str scheme = idem_str_next(&token, ' ');

    if (sandbox->options.credential == NULL) {
        return true;
    }
    return idem_str_equal_nocase(scheme, IDEM_STR("bearer")) &&
           idem_str_equal(token, idem_str_from(sandbox->options.credential));
}

struct idem_str idem_sandbox_trace(const struct idem_exchange *exchange)
{
    struct idem_str trace = idem_exchange_header(exchange, IDEM_STR("traceparent"), NULL);

    for (size_t i = 0; i < trace.len; i++) {
        if (trace.data[i] < '!' || trace.data[i] > '~') {
            return (struct idem_str){ .data = NULL };
        }
    }
    return trace.len <= IDEM_LEDGER_TRACE_MAX ? trace : (struct idem_str){ .data = NULL };
}

static void answer_no_path(struct idem_exchange *exchange)
{
    /* Not the body that means "no such effect". */
    idem_sandbox_answer_send(exchange, 404, IDEM_STR("{\"error\":\"no such path\"}"));
}

static void answer_no_method(struct idem_exchange *exchange)
{
    idem_sandbox_answer_send(exchange, 405, IDEM_STR("{\"error\":\"no such method here\"}"));
}

/* `path` is what stands behind "/{profile}/effects/". */
static void route_effect(struct idem_sandbox *sandbox,
                         enum idem_sandbox_profile profile,
                         struct idem_str path,
                         struct idem_exchange *exchange)
{
    struct idem_str method = idem_exchange_request(exchange)->method;
    bool is_close = idem_str_find(path, '/') < path.len;
    struct idem_str id = idem_str_next(&path, '/');

    if (!idem_sandbox_order_id_valid(id) ||
        (is_close && !idem_str_equal(path, IDEM_STR("close")))) {
        answer_no_path(exchange);
        return;
    }
    if (is_close && idem_str_equal(method, IDEM_STR("POST"))) {
        idem_sandbox_ask_close(sandbox, profile, id, exchange);
        return;
    }
    if (!is_close && idem_str_equal(method, IDEM_STR("GET")) &&
        idem_sandbox_profile_rules(profile)->answers_queries) {
        idem_sandbox_ask_query(sandbox, profile, id, exchange);
        return;
    }
    answer_no_method(exchange);
}

static void route_collection(struct idem_sandbox *sandbox,
                             enum idem_sandbox_profile profile,
                             struct idem_exchange *exchange)
{
    struct idem_str method = idem_exchange_request(exchange)->method;

    if (idem_str_equal(method, IDEM_STR("POST"))) {
        idem_sandbox_send_take(sandbox, profile, exchange);
        return;
    }
    if (idem_str_equal(method, IDEM_STR("GET")) &&
        idem_sandbox_profile_rules(profile)->answers_queries) {
        idem_sandbox_list_take(sandbox, profile, exchange);
        return;
    }
    answer_no_method(exchange);
}

/* `path` is what stands behind the profile. */
static void route_profile(struct idem_sandbox *sandbox,
                          enum idem_sandbox_profile profile,
                          struct idem_str path,
                          struct idem_exchange *exchange)
{
    bool is_collection = idem_str_equal(path, IDEM_STR("effects"));

    if (!is_collection && !idem_str_starts(path, IDEM_STR("effects/"))) {
        answer_no_path(exchange);
        return;
    }
    if (!is_authorized(sandbox, exchange)) {
        idem_sandbox_answer_send(
            exchange, 401, IDEM_STR("{\"status\":\"not_executed\",\"code\":\"unauthorized\"}"));
        return;
    }
    if (!is_collection) {
        route_effect(sandbox, profile, idem_str_slice(path, sizeof("effects/") - 1, path.len),
                     exchange);
        return;
    }
    route_collection(sandbox, profile, exchange);
}

static void on_request(void *context, struct idem_exchange *exchange)
{
    struct idem_sandbox *sandbox = context;
    const struct idem_net_request *request = idem_exchange_request(exchange);
    bool is_get = idem_str_equal(request->method, IDEM_STR("GET"));
    struct idem_str path = idem_str_slice(request->path, 1, request->path.len);

    idem_exchange_set_owner(exchange, NULL);
    if (is_get && idem_str_equal(path, IDEM_STR("healthz"))) {
        idem_sandbox_answer_send(exchange, 200, IDEM_STR("{\"status\":\"ok\"}"));
        return;
    }
    if (is_get && idem_str_equal(path, IDEM_STR("ledger"))) {
        idem_sandbox_ask_ledger(sandbox, exchange);
        return;
    }
    enum idem_sandbox_profile profile = idem_sandbox_profile_find(idem_str_next(&path, '/'));
    if (profile == IDEM_PROFILE_NONE) {
        answer_no_path(exchange);
        return;
    }
    route_profile(sandbox, profile, path, exchange);
}

static void on_gone(void *context, struct idem_exchange *exchange)
{
    (void)context; /* The exchange knows what it waits for. */
    idem_sandbox_due_abandon(exchange);
}

static void on_refusal(void *context,
                       enum idem_net_refusal refusal,
                       struct idem_net_reply *ret_reply)
{
    static const uint16_t statuses[IDEM_NET_REFUSAL_COUNT] = {
        [IDEM_NET_BAD_REQUEST] = 400,    [IDEM_NET_HEAD_SLOW] = 408,
        [IDEM_NET_BODY_SLOW] = 408,      [IDEM_NET_BODY_TOO_LARGE] = 413,
        [IDEM_NET_HEAD_TOO_LARGE] = 431, [IDEM_NET_NOT_SUPPORTED] = 501,
        [IDEM_NET_CROWDED] = 503,
    };

    (void)context; /* The same for everybody. */
    IDEM_ASSERT(refusal > IDEM_NET_REFUSAL_NONE);
    IDEM_ASSERT(refusal < IDEM_NET_REFUSAL_COUNT);
    *ret_reply = (struct idem_net_reply){
        .status = statuses[refusal],
        .headers = IDEM_STR("Content-Type: application/json\r\n"),
        .body = IDEM_STR("{\"error\":\"refused by the server\"}"),
        .close = true,
    };
}

static const struct idem_server_ops server_ops = {
    .request = on_request,
    .gone = on_gone,
    .refusal = on_refusal,
};

/* False: no memory. */
static bool effect_restore(struct idem_sandbox *sandbox, struct idem_ledger_effect *effect)
{
    const struct idem_sandbox_call call = { .effect = effect };

    for (uint32_t i = 0; i < effect->processing; i++) {
        if (idem_sandbox_due_create(sandbox, IDEM_DUE_SETTLE, effect->due_us, &call) == NULL) {
            return false;
        }
    }
    return true;
}

/* What was processing when the last sandbox on this ledger ended goes on. */
static enum idem_err dues_restore(struct idem_sandbox *sandbox, struct idem_error *reterr)
{
    IDEM_LIST_FOREACH (node, idem_ledger_effects(sandbox->ledger)) {
        if (!effect_restore(sandbox, IDEM_CONTAINER_OF(node, struct idem_ledger_effect, node))) {
            return idem_error_set(reterr, IDEM_E_SYSTEM, "sandbox: no memory");
        }
    }
    return IDEM_OK;
}

static enum idem_err server_start(struct idem_sandbox *sandbox, struct idem_error *reterr)
{
    struct idem_server_options options = idem_server_options_default();

    options.loop = sandbox->options.loop;
    options.host = sandbox->options.host;
    options.port = sandbox->options.port;
    options.body_max = IDEM_SANDBOX_BODY_MAX;
    options.ops = &server_ops;
    options.context = sandbox;
    return idem_server_open(&options, &sandbox->server, reterr);
}

static void timer_after_close(uv_handle_t *handle)
{
    struct idem_sandbox *sandbox = handle->data;

    sandbox->timer_closed = true;
}

/* Ends what did not start: runs the loop for the timer's sake, which nobody else knows of yet. */
static void open_undo(struct idem_sandbox *sandbox)
{
    idem_sandbox_close(sandbox);
    while (!idem_sandbox_closed(sandbox)) {
        (void)uv_run(sandbox->options.loop, UV_RUN_NOWAIT); /* Closing is asked for in any case. */
    }
    idem_sandbox_destroy(sandbox);
}

enum idem_err idem_sandbox_open(const struct idem_sandbox_options *options,
                                struct idem_sandbox **ret_sandbox,
                                struct idem_error *reterr)
{
    struct idem_sandbox *sandbox = calloc(1, sizeof(*sandbox));

    if (sandbox == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "sandbox: no memory");
    }
    sandbox->options = *options;
    sandbox->text_memory = malloc(IDEM_SANDBOX_BODY_MAX);
    enum idem_err err = IDEM_OK;
    if (sandbox->text_memory == NULL) {
        err = idem_error_set(reterr, IDEM_E_SYSTEM, "sandbox: no memory");
    }
    if (err == IDEM_OK) {
        err = idem_ledger_create(options->ledger_path, &sandbox->ledger, reterr);
    }
    if (err == IDEM_OK) {
        err = idem_sandbox_callbacks_open(sandbox, reterr);
    }
    if (err == IDEM_OK) {
        int rc = uv_timer_init(options->loop, &sandbox->timer);
        IDEM_ASSERT(rc == 0); /* It only fills in the handle. */
        sandbox->timer.data = sandbox;
        sandbox->timer_open = true;
        err = dues_restore(sandbox, reterr);
    }
    if (err == IDEM_OK) {
        err = server_start(sandbox, reterr);
    }
    if (err != IDEM_OK) {
        open_undo(sandbox);
        return err;
    }
    *ret_sandbox = sandbox;
    return IDEM_OK;
}

uint16_t idem_sandbox_port(const struct idem_sandbox *sandbox)
{
    return idem_server_port(sandbox->server);
}

void idem_sandbox_close(struct idem_sandbox *sandbox)
{
    idem_sandbox_due_clear(sandbox);
    idem_sandbox_callbacks_close(sandbox);
    if (sandbox->server != NULL) {
        idem_server_close(sandbox->server);
    }
    if (sandbox->timer_open) {
        uv_close((uv_handle_t *)&sandbox->timer, timer_after_close);
    }
}

bool idem_sandbox_closed(const struct idem_sandbox *sandbox)
{
    return (sandbox->server == NULL || idem_server_closed(sandbox->server)) &&
           (!sandbox->timer_open || sandbox->timer_closed) &&
           (!sandbox->reaper_open || sandbox->reaper_closed);
}

void idem_sandbox_destroy(struct idem_sandbox *sandbox)
{
    if (sandbox == NULL) {
        return;
    }
    IDEM_ASSERT(idem_sandbox_closed(sandbox));
    idem_server_destroy(sandbox->server);
    idem_ledger_destroy(sandbox->ledger);
    free(sandbox->text_memory);
    free(sandbox);
}
