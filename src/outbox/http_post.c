/*
 * A call travels in a carrier, from a pool that is made at create: the HTTP call, with the memory
 * for its address, head and body.
 *
 * What cannot be posted at all (an address that is not https, text that does not fit) ends at once
 * with status 0 and goes through `done` like any other, so that the outbox has one way to learn of
 * a failure.
 */
#include "outbox/http_post.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bug.h"
#include "outbox/address.h"
#include "outbox/body.h"
#include "outbox/signature.h"
#include "transport/client.h"

#define CONNECT_TIMEOUT_US (5 * IDEM_US_PER_SECOND)
#define CALLS_A_HOST       16 /* Several webhooks may be at one host. */
#define TEXT_MAX           (IDEM_WEBHOOK_URL_MAX + 1 + IDEM_SIGNATURE_LINES_SIZE)
#define ANSWER_DROPPED_MAX 4096 /* A longer body costs the connection and nothing else. */

struct carrier {
    struct idem_list_node node; /* On `idle`. */
    struct idem_post_call *call;
    struct idem_http_call http;
    char text[TEXT_MAX];
    char body[IDEM_POST_BODY_MAX];
    char dropped[ANSWER_DROPPED_MAX];
};

struct http_post {
    struct idem_post_port port;
    struct idem_clock *clock;
    struct idem_signer signer;
    bool allow_http;
    struct idem_http_client *client;
    struct carrier *carriers;
    struct idem_list idle;
    struct idem_list done; /* Ended without having begun. */
};

static struct http_post *http_post_from(struct idem_post_port *port)
{
    return IDEM_CONTAINER_OF(port, struct http_post, port);
}

static bool may_be_posted_to(const struct http_post *http, struct idem_str url)
{
    return idem_str_starts(url, IDEM_STR("https://")) ||
           (http->allow_http && idem_str_starts(url, IDEM_STR("http://")));
}

static void head_build(const struct http_post *http, struct carrier *carrier, struct idem_buf *text)
{
    const struct idem_post_call *call = carrier->call;
    struct idem_http_call *request = &carrier->http;
    struct idem_str lines[IDEM_SIGNATURE_LINES_COUNT];
    const struct idem_signed what = {
        .webhook = call->webhook,
        .message_id = call->message->id,
        .now_us = idem_clock_wall_us(http->clock),
        .body = request->body,
    };

    idem_signature_lines(&http->signer, &what, text, lines);
    request->headers[0] = IDEM_STR("Content-Type: application/json");
    request->headers[1] = IDEM_STR("User-Agent: idem");
    request->header_count = 2;
    for (size_t i = 0; i < IDEM_SIGNATURE_LINES_COUNT; i++) {
        request->headers[request->header_count] = lines[i];
        request->header_count += 1;
    }
}

static void request_build(const struct http_post *http, struct carrier *carrier)
{
    const struct idem_post_call *call = carrier->call;
    struct idem_http_call *request = &carrier->http;
    struct idem_buf body;
    struct idem_buf text;

    idem_buf_init(&body, carrier->body, sizeof(carrier->body));
    idem_post_body(call->message, &body);
    IDEM_ASSERT(!body.full);
    idem_buf_init(&text, carrier->text, sizeof(carrier->text));
    idem_buf_add(&text, call->webhook->url);
    idem_buf_add_char(&text, '\0');

    request->method = "POST";
    request->url = carrier->text;
    request->body = idem_buf_str(&body);
    request->not_after_us = call->not_after_us;
    request->connect_timeout_us = CONNECT_TIMEOUT_US;
    request->timeout_us = IDEM_POST_TIMEOUT_US;
    request->head_suffices = true;
    request->answer_room = carrier->dropped;
    request->answer_room_size = sizeof(carrier->dropped);
    head_build(http, carrier, &text);
    IDEM_ASSERT(!text.full);
}

static void detail_set(struct idem_post_call *call, const char *why)
{
    (void)snprintf(call->detail, sizeof(call->detail), "%s", why);
}

static enum idem_err http_submit(struct idem_post_port *port, struct idem_post_call *call)
{
    struct http_post *http = http_post_from(port);

    if (!may_be_posted_to(http, call->webhook->url)) {
        detail_set(call, "only https may be posted to");
        idem_list_push(&http->done, &call->node);
        return IDEM_OK;
    }
    struct idem_list_node *node = idem_list_pop(&http->idle);
    if (node == NULL) {
        return IDEM_E_LIMIT;
    }
    struct carrier *carrier = IDEM_CONTAINER_OF(node, struct carrier, node);
    carrier->call = call;
    request_build(http, carrier);
    enum idem_err err = idem_http_client_submit(http->client, &carrier->http);
    if (err != IDEM_OK) {
        carrier->call = NULL;
        idem_list_push_front(&http->idle, &carrier->node);
        return err;
    }
    call->carrier = carrier;
    return IDEM_OK;
}

static void call_finish(struct http_post *http, struct carrier *carrier)
{
    struct idem_post_call *call = carrier->call;
    const struct idem_http_call *answer = &carrier->http;

    IDEM_ASSERT(call->carrier == carrier);
    if (answer->verdict == IDEM_HTTP_ANSWERED) {
        bool waits = answer->status == 429 || answer->status == 503;
        call->status = answer->status;
        call->retry_after_us = waits ? answer->retry_after_us : 0;
    } else {
        detail_set(call, answer->detail);
    }
    call->carrier = NULL;
    carrier->call = NULL;
    idem_list_push_front(&http->idle, &carrier->node);
}

static void http_reap(struct idem_post_port *port, struct idem_list *ret_done)
{
    struct http_post *http = http_post_from(port);
    struct idem_list ended = { .count = 0 };
    struct idem_list_node *node;

    idem_list_join(ret_done, &http->done);
    idem_http_client_reap(http->client, &ended);
    while ((node = idem_list_pop(&ended)) != NULL) {
        struct idem_http_call *answer = IDEM_CONTAINER_OF(node, struct idem_http_call, node);
        struct carrier *carrier = IDEM_CONTAINER_OF(answer, struct carrier, http);
        struct idem_post_call *call = carrier->call;
        call_finish(http, carrier);
        idem_list_push(ret_done, &call->node);
    }
}

static void http_cancel(struct idem_post_port *port, struct idem_post_call *call)
{
    struct http_post *http = http_post_from(port);
    struct carrier *carrier = call->carrier;
    if (carrier != NULL) { /* Otherwise it has ended already. */
        idem_http_client_cancel(http->client, &carrier->http);
    }
}

static void http_destroy(struct idem_post_port *port)
{
    struct http_post *http = http_post_from(port);
    IDEM_ASSERT(http->done.count == 0);
    idem_http_client_destroy(http->client);
    free(http->carriers);
    free(http);
}

static const struct idem_post_port_ops http_ops = {
    .submit = http_submit,
    .reap = http_reap,
    .cancel = http_cancel,
    .destroy = http_destroy,
};

static enum idem_err client_create(const struct idem_http_post_options *options,
                                   struct http_post *http,
                                   struct idem_error *reterr)
{
    const struct idem_http_client_options client = {
        .loop = options->loop,
        .clock = options->clock,
        .calls_max = options->calls_max,
        .connections_per_host_max = CALLS_A_HOST,
        .ca_file = options->ca_file,
        .may_connect = options->allow_private ? NULL : idem_address_is_public,
    };
    return idem_http_client_create(&client, &http->client, reterr);
}

enum idem_err idem_http_post_create(const struct idem_http_post_options *options,
                                    struct idem_post_port **ret_port,
                                    struct idem_error *reterr)
{
    IDEM_ASSERT(options->calls_max > 0);
    IDEM_ASSERT(options->effect_secret.len > 0);
    struct http_post *http = calloc(1, sizeof(*http));
    if (http == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for posts to webhooks");
    }
    http->port.ops = &http_ops;
    http->clock = options->clock;
    http->signer = (struct idem_signer){
        .digester = options->digester,
        .effect_secret = options->effect_secret,
    };
    http->allow_http = options->allow_http;
    http->carriers = calloc(options->calls_max, sizeof(*http->carriers));
    if (http->carriers == NULL) {
        free(http);
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for posts to webhooks");
    }
    for (size_t i = 0; i < options->calls_max; i++) {
        idem_list_push(&http->idle, &http->carriers[i].node);
    }
    enum idem_err err = client_create(options, http, reterr);
    if (err != IDEM_OK) {
        free(http->carriers);
        free(http);
        return err;
    }
    *ret_port = &http->port;
    return IDEM_OK;
}
