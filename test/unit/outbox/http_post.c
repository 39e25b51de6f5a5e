/*
 * Posts to merchants over HTTP.
 *
 * Goal: what is posted is what docs/webhooks.md says, byte for byte and in every attempt the same;
 * the receiver's status comes back, whatever else it does; nothing goes to an address or a scheme
 * that is not allowed.
 *
 * Method: the real port on a real loop against the transport's peer, which misbehaves on request
 * and counts what arrives.
 */
#include "outbox/http_post.h"

#include <uv.h>

#include "base/attr.h"
#include "lib/test.h"
#include "outbox/signature.h"
#include "unit/transport/peer.h"

#define CALLS 2

static const char effect_secret[] = "an effect secret of thirty-two b";

static uv_loop_t loop;
static struct idem_clock post_clock;
static struct idem_digester *digester;
static struct idem_post_port *port;
static struct peer *peer;
static char url[128];
static struct idem_post_call calls[CALLS + 1];
static struct idem_webhook webhook = { .id = { .bytes = { 0x01, 0x02 } }, .generation = 1 };
static struct idem_message message = {
    .row = 42,
    .id = { .bytes = { 0x0a, 0x0b } },
    .type = IDEM_MESSAGE_PAYMENT_CAPTURED,
    .at_us = INT64_C(1764423823123456),
    .data = { .data = "{\"id\":\"p1\"}", .len = 11 },
};

static int begin_with(struct idem_http_post_options options)
{
    assert_int_equal(uv_loop_init(&loop), 0);
    idem_clock_init_system(&post_clock);
    assert_int_equal(idem_digester_create(&digester, NULL), IDEM_OK);
    peer = peer_start();
    options.loop = &loop;
    options.clock = &post_clock;
    options.digester = digester;
    options.effect_secret = IDEM_STR(effect_secret);
    options.calls_max = CALLS;
    assert_int_equal(idem_http_post_create(&options, &port, NULL), IDEM_OK);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    return begin_with((struct idem_http_post_options){ .allow_private = true, .allow_http = true });
}

static int begin_public_only(void **state)
{
    (void)state;
    return begin_with((struct idem_http_post_options){ .allow_http = true });
}

static int begin_https_only(void **state)
{
    (void)state;
    return begin_with((struct idem_http_post_options){ .allow_private = true });
}

static int end(void **state)
{
    (void)state;
    idem_post_port_destroy(port);
    idem_post_port_destroy(NULL);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&loop), 0);
    peer_stop(peer);
    idem_digester_destroy(digester);
    return 0;
}

static enum idem_err submit(struct idem_post_call *call)
{
    call->message = &message;
    call->webhook = &webhook;
    call->not_after_us = INT64_MAX;
    return idem_post_port_submit(port, call);
}

static void wait(size_t count)
{
    struct idem_list done = { .count = 0 };
    idem_post_port_reap(port, &done);
    while (done.count < count) {
        (void)uv_run(&loop, UV_RUN_ONCE);
        idem_post_port_reap(port, &done);
    }
    assert_int_equal(done.count, count);
    while (idem_list_pop(&done) != NULL) {
    }
}

static const struct idem_post_call *post_to(const char *whole)
{
    webhook.url = idem_str_from(whole);
    assert_int_equal(submit(&calls[0]), IDEM_OK);
    wait(1);
    assert_true((calls[0].status == 0) == (calls[0].detail[0] != '\0'));
    return &calls[0];
}

static const struct idem_post_call *post(const char *path)
{
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", peer_port(peer), path);
    return post_to(url);
}

/* What stands behind `name` in the request, up to the end of its line. */
static struct idem_str field(const char *request, const char *name)
{
    const char *at = strstr(request, name);
    assert_non_null(at);
    at += strlen(name);
    return (struct idem_str){ .data = at, .len = strcspn(at, "\r") };
}

static void a_message_goes_out_as_it_is_documented(void **state)
{
    (void)state;
    static const char body[] =
        "{\"type\":\"payment.captured\","
        "\"timestamp\":\"2025-11-29T13:43:43.123456Z\","
        "\"sequence\":42,\"data\":{\"id\":\"p1\"}}";
    char request[PEER_REQUEST_MAX];
    char expected[1024];
    int64_t seconds = 0;

    assert_int_equal(post("/ok")->status, 200);
    peer_last_request(peer, request);
    assert_true(idem_str_to_i64(field(request, "webhook-timestamp: "), &seconds));
    int64_t now_s = idem_clock_wall_us(&post_clock) / IDEM_US_PER_SECOND;
    assert_in_range(seconds, now_s - 60, now_s);

    const struct idem_signer signer = {
        .digester = digester,
        .effect_secret = IDEM_STR(effect_secret),
    };
    const struct idem_signed what = {
        .webhook = &webhook,
        .message_id = message.id,
        .now_us = seconds * IDEM_US_PER_SECOND,
        .body = IDEM_STR(body),
    };
    struct idem_str lines[IDEM_SIGNATURE_LINES_COUNT];
    char memory[IDEM_SIGNATURE_LINES_SIZE];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_signature_lines(&signer, &what, &buf, lines);
    (void)snprintf(expected, sizeof(expected),
                   "POST /ok HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept: */*\r\n"
                   "Content-Type: application/json\r\nUser-Agent: idem\r\n"
                   "%.*s\r\n%.*s\r\n%.*s\r\nContent-Length: %d\r\n\r\n%s",
                   peer_port(peer), (int)lines[0].len, lines[0].data, (int)lines[1].len,
                   lines[1].data, (int)lines[2].len, lines[2].data, (int)strlen(body), body);
    assert_string_equal(request, expected);
}

static const struct {
    const char *raw;
    uint16_t status;
    int64_t retry_after_s;
} answers[] = {
    { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, 0 },
    { "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nRetry-After: 9\r\n\r\n", 202, 0 },
    { "HTTP/1.1 204 No Content\r\n\r\n", 204, 0 },
    { "HTTP/1.1 301 Moved\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n", 301, 0 },
    { "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", 410, 0 },
    { "HTTP/1.1 429 Slow\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n", 429, 120 },
    { "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", 429, 0 },
    { "HTTP/1.1 503 Later\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", 503, 7 },
    { "HTTP/1.1 500 Oops\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", 500, 0 },
};

static void the_longest_message_goes_out(void **state)
{
    (void)state;
    static char data[IDEM_MESSAGE_DATA_MAX];
    static char long_url[IDEM_WEBHOOK_URL_MAX + 1];
    static char request[PEER_REQUEST_MAX];
    const struct idem_message kept = message;

    memset(data, 'x', sizeof(data));
    data[0] = '"';
    data[sizeof(data) - 1] = '"';
    message.data = (struct idem_str){ .data = data, .len = sizeof(data) };
    message.row = INT64_MAX;
    peer_answer(peer, answers[0].raw);
    message.type = IDEM_MESSAGE_OPERATION_SUCCEEDED;
    int len = snprintf(long_url, sizeof(long_url), "http://127.0.0.1:%u/set?", peer_port(peer));
    memset(long_url + len, 'y', sizeof(long_url) - 1 - (size_t)len);
    (void)post_to(long_url);
    message = kept;
    peer_last_request(peer, request);
    assert_non_null(strstr(request, "\"sequence\":9223372036854775807"));
    assert_string_equal(request + strlen(request) - 5, "xxx\"}");
}

static void the_receivers_status_comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(answers); i++) {
        unsigned before = peer_arrivals(peer);
        peer_answer(peer, answers[i].raw);
        const struct idem_post_call *call = post("/set");
        assert_int_equal(call->status, answers[i].status);
        assert_int_equal(call->retry_after_us, answers[i].retry_after_s * IDEM_US_PER_SECOND);
        assert_int_equal(peer_arrivals(peer), before + 1); /* 301 is not followed. */
    }
}

static void of_the_answer_only_the_head_counts(void **state)
{
    (void)state;
    assert_int_equal(post("/large/9999999")->status, 200);
    assert_int_equal(post("/unframed")->status, 200);
    assert_int_equal(post("/cut-body")->status, 200);
    assert_int_equal(post("/close")->status, 0);
    assert_int_equal(post("/cut-head")->status, 0);
    assert_int_equal(post("/ok")->status, 200);
}

static void without_tls_nothing_is_posted_unless_that_is_allowed(void **state)
{
    (void)state;
    static const char *const others[] = { "ftp://127.0.0.1/", "httpx://127.0.0.1/",
                                          "HTTPS://127.0.0.1/", "https", "" };
    assert_string_equal(post("/ok")->detail, "only https may be posted to");
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(others); i++) {
        assert_string_equal(post_to(others[i])->detail, "only https may be posted to");
    }
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/ok", peer_port(peer));
    const struct idem_post_call *call = post_to(url); /* Which the peer does not speak. */
    assert_int_equal(call->status, 0);
    assert_string_not_equal(call->detail, "only https may be posted to");
    assert_int_equal(peer_arrivals(peer), 0);
    assert_int_equal(peer_connections_max(peer), 1);
}

static void to_private_addresses_nothing_is_posted_unless_that_is_allowed(void **state)
{
    (void)state;
    assert_string_equal(post("/ok")->detail, "the address may not be connected to");
    (void)snprintf(url, sizeof(url), "http://localhost:%u/ok", peer_port(peer));
    assert_string_equal(post_to(url)->detail, "the address may not be connected to");
    assert_int_equal(peer_connections_max(peer), 0);
}

static void nothing_leaves_too_late(void **state)
{
    (void)state;
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/ok", peer_port(peer));
    webhook.url = idem_str_from(url);
    calls[0].message = &message;
    calls[0].webhook = &webhook;
    calls[0].not_after_us = idem_clock_mono_us(&post_clock);
    assert_int_equal(idem_post_port_submit(port, &calls[0]), IDEM_OK);
    wait(1);
    assert_string_equal(calls[0].detail, "too late to send");
    assert_int_equal(peer_arrivals(peer), 0);
}

static void room_is_limited_and_a_call_that_hangs_can_be_ended(void **state)
{
    (void)state;
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/silent", peer_port(peer));
    webhook.url = idem_str_from(url);
    for (size_t i = 0; i < CALLS; i++) {
        assert_int_equal(submit(&calls[i]), IDEM_OK);
    }
    assert_int_equal(submit(&calls[CALLS]), IDEM_E_LIMIT);
    for (size_t i = 0; i < CALLS; i++) {
        idem_post_port_cancel(port, &calls[i]);
        idem_post_port_cancel(port, &calls[i]);
    }
    wait(CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        assert_int_equal(calls[i].status, 0);
        assert_string_equal(calls[i].detail, "cancelled");
    }
    assert_int_equal(post("/ok")->status, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_message_goes_out_as_it_is_documented, begin, end),
        cmocka_unit_test_setup_teardown(the_longest_message_goes_out, begin, end),
        cmocka_unit_test_setup_teardown(the_receivers_status_comes_back, begin, end),
        cmocka_unit_test_setup_teardown(of_the_answer_only_the_head_counts, begin, end),
        cmocka_unit_test_setup_teardown(without_tls_nothing_is_posted_unless_that_is_allowed,
                                        begin_https_only, end),
        cmocka_unit_test_setup_teardown(
            to_private_addresses_nothing_is_posted_unless_that_is_allowed, begin_public_only, end),
        cmocka_unit_test_setup_teardown(nothing_leaves_too_late, begin, end),
        cmocka_unit_test_setup_teardown(room_is_limited_and_a_call_that_hangs_can_be_ended, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
