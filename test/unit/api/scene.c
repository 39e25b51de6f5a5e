/*
 * The answers are the edge's, and valid until it is asked again.
 */
#include "scene.h"

#include "base/bug.h"

struct edge edge;

/* ---- events ---- */

static const struct idem_callback_reply replies[IDEM_CALLBACK_ANSWER_COUNT] = {
    [IDEM_CALLBACK_TAKEN] = { .status = 200, .content_type = "text/plain", .body = "taken\n" },
    [IDEM_CALLBACK_REFUSED] = { .status = 401 },
    [IDEM_CALLBACK_LATER] = { .status = 503 },
};

static void read_event(struct idem_callback_reader *base,
                       struct idem_str entry,
                       const struct idem_callback_in *in,
                       struct idem_callback *ret_callback)
{
    struct scripted_reader *reader = IDEM_CONTAINER_OF(base, struct scripted_reader, reader);
    bool known = idem_str_equal(entry, IDEM_STR("sandbox"));
    (void)snprintf(reader->body, sizeof(reader->body), "%.*s", (int)in->body.len, in->body.data);
    ret_callback->verdict = known ? reader->verdict : IDEM_CALLBACK_NO_ENTRY;
    ret_callback->replies = known ? replies : NULL;
    ret_callback->evidence = reader->evidence;
}

struct scripted_reader listener;

void listen_to_events(struct idem_api_options *options)
{
    listener = (struct scripted_reader){ .reader = { .read = read_event } };
    options->callbacks = &listener.reader;
}

int setup_listening(void **state)
{
    (void)state;
    edge_open(&edge, listen_to_events);
    return 0;
}

const char *operation_of_payment(void)
{
    static char id[IDEM_UID_TEXT_LEN + 1];
    const char *payment = edge_id_behind("/v1/payments/");
    (void)edge_ask(&edge, with_id("GET /v1/admin/payments/{id}/operations HTTP/1.1" ROOT, payment));
    (void)snprintf(id, sizeof(id), "%s", edge_id());
    return id;
}

struct idem_str effect_id_of(const char *operation)
{
    static char memory[IDEM_EFFECT_ID_LEN];
    struct idem_buf buf;
    const char *answer =
        edge_ask(&edge, with_id("GET /v1/admin/operations/{id} HTTP/1.1" ROOT, operation));
    const char *id = strstr(answer, "\"effect\":{\"id\":\"");
    assert_non_null(id);
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add_bytes(&buf, strchr(id, '{') + strlen("{\"id\":\""), sizeof(memory));
    return idem_buf_str(&buf);
}

void event_script(struct idem_str effect_id, enum idem_outcome_kind outcome, const char *event_id)
{
    listener.verdict = IDEM_CALLBACK_OK;
    listener.evidence = (struct idem_evidence){
        .source = IDEM_SOURCE_CALLBACK,
        .outcome = outcome,
        .entry = IDEM_STR("sandbox"),
        .account = IDEM_STR("main"),
        .region = IDEM_STR("eu"),
        .effect_id = effect_id,
        .amount_minor = 10000,
        .currency = IDEM_STR("CNY"),
        .reference = IDEM_STR("REF-1"),
        .event_id = idem_str_from(event_id),
    };
}

/* ---- requests ---- */

int setup(void **state)
{
    (void)state;
    edge_open(&edge, NULL);
    return 0;
}

int teardown(void **state)
{
    (void)state;
    edge_close(&edge);
    return 0;
}

struct idem_str verdict(const char *request)
{
    static char memory[64];
    struct idem_buf buf;
    const char *answer = edge_ask(&edge, request);
    const char *code = strstr(answer, "urn:idem:problem:");
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add_bytes(&buf, answer + strlen("HTTP/1.1 "), 3);
    if (code != NULL && strstr(answer, "Content-Type: application/problem+json") != NULL) {
        struct idem_str rest = idem_str_from(code + strlen("urn:idem:problem:"));
        idem_buf_add_char(&buf, ' ');
        idem_buf_add(&buf, idem_str_next(&rest, '"'));
    }
    return idem_buf_str(&buf);
}

struct idem_str body_of(const char *request)
{
    const char *answer = edge_ask(&edge, request);
    const char *gap = strstr(answer, "\n\n");
    assert_non_null(gap);
    return idem_str_from(gap + 2);
}

const char *with_id(const char *format, const char *id)
{
    static char text[2048];
    const char *gap = strstr(format, "{id}");
    assert_non_null(gap);
    (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(gap - format), format, id, gap + 4);
    return text;
}
