/*
 * A call is sent at most once, and its verdict says what may have left.
 *
 * Goal: for every way in which a peer can fail, the verdict is right and the peer has seen the
 * request at most once; in particular where libcurl by itself sends a POST a second time. What is
 * secret in a call is overwritten when it ends.
 *
 * Method: a real client on a real loop against peer.c, which misbehaves as the path asks and
 * counts what arrives. The first table repeats the one measured in the library evaluation.
 */
#include "transport/client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/date.h"
#include "lib/test.h"
#include "transport/client_internal.h"
#include "unit/transport/peer.h"

#define CALLS_MAX 64
#define FOR_EVER  INT64_MAX
#define SHORT_US  (INT64_C(150) * IDEM_US_PER_MS)
#define SILENT_US (INT64_C(500) * IDEM_US_PER_MS) /* Long enough to send, also on a busy machine. */

struct rig {
    uv_loop_t loop;
    struct idem_clock clock;
    struct idem_http_client *client;
    struct peer *peer;
    char url[128];
    struct idem_http_call call;
};

static struct rig *rig_create(size_t calls_max, size_t connections_max)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    struct idem_error error;
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    idem_clock_init_system(&rig->clock);
    rig->peer = peer_start();
    struct idem_http_client_options options = {
        .loop = &rig->loop,
        .clock = &rig->clock,
        .calls_max = calls_max,
        .connections_per_host_max = connections_max,
    };
    assert_int_equal(idem_http_client_create(&options, &rig->client, &error), IDEM_OK);
    return rig;
}

/* Also proves that the client leaves no handle on the loop: uv_loop_close() would refuse. */
static void rig_destroy(struct rig *rig)
{
    idem_http_client_destroy(rig->client);
    (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    peer_stop(rig->peer);
    free(rig);
}

static struct idem_http_call *post_prepare(struct rig *rig, const char *path)
{
    struct idem_http_call *call = &rig->call;

    (void)snprintf(rig->url, sizeof(rig->url), "http://127.0.0.1:%u%s", peer_port(rig->peer), path);
    *call = (struct idem_http_call){
        .method = "POST",
        .url = rig->url,
        .headers = { IDEM_STR("Idempotency-Key: c1"), IDEM_STR("Content-Type: application/json") },
        .header_count = 2,
        .body = IDEM_STR("{\"amount\":\"1.00\"}"),
        .not_after_us = FOR_EVER,
        .connect_timeout_us = 5 * IDEM_US_PER_SECOND,
        .timeout_us = 10 * IDEM_US_PER_SECOND,
    };
    return call;
}

static void run_until_reaped(struct rig *rig, struct idem_list *done, size_t count)
{
    idem_http_client_reap(rig->client, done);
    while (done->count < count) {
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
        idem_http_client_reap(rig->client, done);
    }
}

static void call_run(struct rig *rig, struct idem_http_call *call)
{
    struct idem_list done = { .count = 0 };

    assert_int_equal(idem_http_client_submit(rig->client, call), IDEM_OK);
    run_until_reaped(rig, &done, 1);
    assert_ptr_equal(idem_list_pop(&done), &call->node);
    assert_true(call->sends <= 1);
    assert_true((call->detail[0] == '\0') == (call->verdict == IDEM_HTTP_ANSWERED));
}

static const char *verdict_name(enum idem_http_verdict verdict)
{
    static const char *const names[IDEM_HTTP_VERDICT_COUNT] = { "none", "not sent", "answered",
                                                                "unknown" };
    return names[verdict];
}

static void expect_call(struct rig *rig, const char *path, const char *verdict, unsigned arrivals)
{
    unsigned before = peer_arrivals(rig->peer);
    struct idem_http_call *call = post_prepare(rig, path);

    if (strcmp(path, "/silent") == 0) {
        call->timeout_us = SILENT_US;
    }
    call_run(rig, call);
    unsigned seen = peer_arrivals(rig->peer) - before;
    if (strcmp(verdict_name(call->verdict), verdict) != 0 || seen != arrivals) {
        print_error("%s: expected %s and %u arrivals, got %s (%s) and %u\n", path, verdict,
                    arrivals, verdict_name(call->verdict), call->detail, seen);
        fail();
    }
}

static const struct {
    const char *path;
    const char *verdict;
} answers[] = {
    { "/ok", "answered" },           { "/ok-then-close", "answered" },
    { "/close", "unknown" },         { "/reset", "unknown" },
    { "/silent", "unknown" },        { "/cut-body", "unknown" },
    { "/cut-head", "unknown" },      { "/cut-status", "unknown" },
    { "/unframed", "unknown" },      { "/interim", "answered" },
    { "/interim-only", "unknown" },  { "/switching", "unknown" },
    { "/no-content", "answered" },   { "/chunked", "answered" },
    { "/cut-chunks", "unknown" },    { "/elsewhere", "answered" },
    { "/large/16384", "answered" },  { "/large/16385", "unknown" },
    { "/large/9999999", "unknown" }, { "/identity", "unknown" },
    { "/no-coding", "unknown" },     { "/length-beyond", "unknown" },
    { "/length-behind", "unknown" }, { "/two-lengths", "unknown" },
    { "/same-lengths", "answered" },
};

static void every_answer_on_a_new_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(answers); i++) {
        struct rig *rig = rig_create(1, 1);
        expect_call(rig, answers[i].path, answers[i].verdict, 1);
        rig_destroy(rig);
    }
}

/* Here libcurl alone would send /close, /reset and /cut-status twice and report success. */
static void every_answer_on_a_reused_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(answers); i++) {
        struct rig *rig = rig_create(1, 1);
        expect_call(rig, "/ok", "answered", 1);
        expect_call(rig, answers[i].path, answers[i].verdict, 1);
        rig_destroy(rig);
    }
}

static void a_pooled_connection_that_the_peer_closed_is_replaced(void **state)
{
    (void)state;
    struct rig *rig = rig_create(1, 1);
    expect_call(rig, "/ok-then-close", "answered", 1);
    peer_wait_closed(rig->peer, 1);
    expect_call(rig, "/ok", "answered", 1);
    rig_destroy(rig);
}

static void an_answer_comes_with_status_type_and_body(void **state)
{
    (void)state;
    struct rig *rig = rig_create(1, 1);
    expect_call(rig, "/ok", "answered", 1);
    assert_int_equal(rig->call.status, 200);
    EXPECT_TEXT(rig->call.content_type, "text/plain");
    EXPECT_TEXT(rig->call.answer, "fine");
    expect_call(rig, "/chunked", "answered", 1);
    EXPECT_TEXT(rig->call.content_type, "");
    EXPECT_TEXT(rig->call.answer, "fine");
    expect_call(rig, "/elsewhere", "answered", 1);
    assert_int_equal(rig->call.status, 307);
    expect_call(rig, "/interim", "answered", 1);
    assert_int_equal(rig->call.status, 200);
    assert_int_equal(rig->call.retry_after_us, 0);
    rig_destroy(rig);
}

static void what_goes_out_is_what_was_given(void **state)
{
    (void)state;
    struct rig *rig = rig_create(1, 1);
    char request[PEER_REQUEST_MAX];
    char expected[512];

    expect_call(rig, "/ok", "answered", 1);
    peer_last_request(rig->peer, request);
    (void)snprintf(expected, sizeof(expected),
                   "POST /ok HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept: */*\r\n"
                   "Idempotency-Key: c1\r\nContent-Type: application/json\r\n"
                   "Content-Length: 17\r\n\r\n{\"amount\":\"1.00\"}",
                   peer_port(rig->peer));
    assert_string_equal(request, expected);

    struct idem_http_call *call = post_prepare(rig, "/ok");
    call->method = "GET";
    call->body = IDEM_STR("");
    call->header_count = 0;
    call_run(rig, call);
    assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
    peer_last_request(rig->peer, request);
    (void)snprintf(expected, sizeof(expected),
                   "GET /ok HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept: */*\r\n\r\n",
                   peer_port(rig->peer));
    assert_string_equal(request, expected);

    call = post_prepare(rig, "/ok");
    call->body = IDEM_STR("");
    call->header_count = 0;
    call_run(rig, call);
    peer_last_request(rig->peer, request);
    (void)snprintf(expected, sizeof(expected),
                   "POST /ok HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept: */*\r\n"
                   "Content-Length: 0\r\n\r\n",
                   peer_port(rig->peer));
    assert_string_equal(request, expected);
    rig_destroy(rig);
}

/* A port on which nobody listens, or, with `filled`, one that answers no SYN any more. */
struct hole {
    int listener;
    int fillers[8];
    uint16_t port;
};

static void hole_open(struct hole *hole, bool filled)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    hole->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(hole->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(hole->listener, (struct sockaddr *)&address, &size), 0);
    hole->port = ntohs(address.sin_port);
    if (filled) {
        assert_int_equal(listen(hole->listener, 0), 0);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(hole->fillers); i++) {
        hole->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (filled) { /* The first ones get in, the others wait for ever. */
            (void)connect(hole->fillers[i], (struct sockaddr *)&address, sizeof(address));
        }
    }
}

static void hole_close(struct hole *hole)
{
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(hole->fillers); i++) {
        (void)close(hole->fillers[i]);
    }
    (void)close(hole->listener);
}

static void expect_not_sent(struct rig *rig, const char *url, bool hopeless)
{
    struct idem_http_call *call = post_prepare(rig, "/ok");

    call->url = url;
    call->connect_timeout_us = SHORT_US;
    call_run(rig, call);
    assert_int_equal(call->verdict, IDEM_HTTP_NOT_SENT);
    assert_int_equal(call->sends, 0);
    assert_int_equal(peer_arrivals(rig->peer), 0);
    if (call->hopeless != hopeless) {
        print_error("%.64s: %s\n", url, call->detail);
    }
    assert_true(call->hopeless == hopeless);
}

static void without_a_connection_nothing_was_sent(void **state)
{
    (void)state;
    struct rig *rig = rig_create(1, 1);
    struct hole hole;
    char url[64];

    hole_open(&hole, false);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", hole.port);
    expect_not_sent(rig, url, false); /* Refused. */
    hole_close(&hole);

    hole_open(&hole, true);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", hole.port);
    expect_not_sent(rig, url, false); /* The connect timeout. */
    hole_close(&hole);

    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", peer_port(rig->peer));
    struct idem_http_call *call = post_prepare(rig, "/ok");
    call->url = url;
    call->timeout_us = SHORT_US; /* The peer waits for the rest of a handshake. */
    call_run(rig, call);
    assert_int_equal(call->verdict, IDEM_HTTP_NOT_SENT);
    assert_false(call->hopeless);

    expect_not_sent(rig, "http://no-such-name.invalid/", false);
    rig_destroy(rig);
}

static void a_url_that_is_none_is_hopeless(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "ftp://127.0.0.1/", "not a url",           "http://127.0.0.1:99999/",
        "http://",          "http://u@127.0.0.1/", "http://[/",
    };
    struct rig *rig = rig_create(1, 1);

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(urls); i++) {
        expect_not_sent(rig, urls[i], true);
    }
    expect_call(rig, "/ok", "answered", 1); /* The next one does not inherit it. */
    assert_false(rig->call.hopeless);
    rig_destroy(rig);
}

/* libcurl takes no URL of more than eight million bytes: the call cannot even be set up. */
static void a_call_that_cannot_be_set_up_is_hopeless(void **state)
{
    (void)state;
    enum {
        URL_LEN = 9000000
    };
    struct rig *rig = rig_create(1, 1);
    char *url = malloc(URL_LEN + 1);
    assert_non_null(url);

    memset(url, 'x', URL_LEN);
    memcpy(url, "http://", strlen("http://"));
    url[URL_LEN] = '\0';
    expect_not_sent(rig, url, true);
    free(url);
    rig_destroy(rig);
}

static void nothing_leaves_when_it_is_too_late(void **state)
{
    (void)state;
    struct rig *rig = rig_create(1, 1);
    struct idem_http_call *call = post_prepare(rig, "/ok");
    call->not_after_us = idem_clock_mono_us(&rig->clock) - 1;
    call_run(rig, call);
    assert_int_equal(call->verdict, IDEM_HTTP_NOT_SENT);
    assert_string_equal(call->detail, "too late to send");

    /* Also on a connection that is open already. */
    expect_call(rig, "/ok", "answered", 1);
    call = post_prepare(rig, "/ok");
    call->not_after_us = idem_clock_mono_us(&rig->clock);
    call_run(rig, call);
    assert_int_equal(call->verdict, IDEM_HTTP_NOT_SENT);
    assert_int_equal(peer_arrivals(rig->peer), 1);
    rig_destroy(rig);
}

static void a_cancel_before_sending_is_not_sent_and_after_it_unknown(void **state)
{
    (void)state;
    struct rig *rig = rig_create(1, 1);
    struct idem_list done = { .count = 0 };
    struct idem_http_call *call = post_prepare(rig, "/silent");

    assert_int_equal(idem_http_client_submit(rig->client, call), IDEM_OK);
    idem_http_client_cancel(rig->client, call);
    idem_http_client_cancel(rig->client, call); /* Finished already: nothing. */
    run_until_reaped(rig, &done, 1);
    assert_ptr_equal(idem_list_pop(&done), &call->node);
    assert_int_equal(call->verdict, IDEM_HTTP_NOT_SENT);
    assert_int_equal(peer_arrivals(rig->peer), 0);

    call = post_prepare(rig, "/silent");
    assert_int_equal(idem_http_client_submit(rig->client, call), IDEM_OK);
    while (call->sends == 0) {
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
    }
    peer_wait_arrivals(rig->peer, 1);
    idem_http_client_cancel(rig->client, call);
    run_until_reaped(rig, &done, 1);
    assert_ptr_equal(idem_list_pop(&done), &call->node);
    assert_int_equal(call->verdict, IDEM_HTTP_UNKNOWN);
    assert_string_equal(call->detail, "cancelled");

    expect_call(rig, "/ok", "answered", 1);
    rig_destroy(rig);
}

static void a_call_that_waits_for_a_connection_has_a_deadline_too(void **state)
{
    (void)state;
    struct rig *rig = rig_create(2, 1);
    struct idem_http_call *waiting = calloc(1, sizeof(*waiting));
    struct idem_list done = { .count = 0 };
    assert_non_null(waiting);

    struct idem_http_call *first = post_prepare(rig, "/silent");
    first->timeout_us = 2 * SILENT_US;
    *waiting = *first;
    waiting->timeout_us = SHORT_US;
    assert_int_equal(idem_http_client_submit(rig->client, first), IDEM_OK);
    assert_int_equal(idem_http_client_submit(rig->client, waiting), IDEM_OK);
    run_until_reaped(rig, &done, 2);
    assert_ptr_equal(idem_list_pop(&done), &waiting->node);
    assert_ptr_equal(idem_list_pop(&done), &first->node);
    assert_int_equal(waiting->verdict, IDEM_HTTP_NOT_SENT);
    assert_int_equal(first->verdict, IDEM_HTTP_UNKNOWN);
    assert_int_equal(peer_arrivals(rig->peer), 1);
    free(waiting);
    rig_destroy(rig);
}

static int64_t retry_after_of(struct rig *rig, const char *value)
{
    char raw[256];

    (void)snprintf(raw, sizeof(raw),
                   "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nretry-after:%s\r\n\r\n", value);
    peer_answer(rig->peer, raw);
    expect_call(rig, "/set", "answered", 1);
    return rig->call.retry_after_us;
}

static void retry_after_is_seconds_or_a_date(void **state)
{
    (void)state;
    struct rig *rig = rig_create(1, 1);
    char date[64];
    struct idem_buf buf;

    assert_int_equal(retry_after_of(rig, " 7"), 7 * IDEM_US_PER_SECOND);
    assert_int_equal(retry_after_of(rig, "0"), 0);
    assert_int_equal(retry_after_of(rig, " 99999999"), IDEM_US_PER_DAY);
    assert_int_equal(retry_after_of(rig, " 9223372036854775807"), IDEM_US_PER_DAY);
    assert_int_equal(retry_after_of(rig, " 99999999999999999999"), 0);
    assert_int_equal(retry_after_of(rig, " -3"), 0);
    assert_int_equal(retry_after_of(rig, " soon"), 0);
    assert_int_equal(retry_after_of(rig, ""), 0);
    assert_int_equal(retry_after_of(rig, " Sun, 06 Nov 1994 08:49:37 GMT"), 0);
    assert_int_equal(retry_after_of(rig, " Fri, 31 Dec 9999 23:59:59 GMT"), IDEM_US_PER_DAY);

    idem_buf_init(&buf, date, sizeof(date));
    idem_buf_add_char(&buf, ' ');
    idem_date_print_imf(idem_clock_wall_us(&rig->clock) + 60 * IDEM_US_PER_SECOND, &buf);
    idem_buf_add_char(&buf, '\0');
    int64_t ahead_us = retry_after_of(rig, date);
    assert_in_range(ahead_us, 40 * IDEM_US_PER_SECOND, 60 * IDEM_US_PER_SECOND);
    rig_destroy(rig);
}

static void a_header_that_would_be_two_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_create(1, 1);
    struct idem_http_call *call = post_prepare(rig, "/ok");

    call->headers[0] = IDEM_STR("A: b\r\nIdempotency-Key: c2");
    assert_int_equal(idem_http_client_submit(rig->client, call), IDEM_E_INVALID);
    expect_call(rig, "/ok", "answered", 1);
    rig_destroy(rig);
}

#define SECRET "sk-9f2c71d04be8"

/* The lines are the last and by far the largest part of a transfer, and ours are at their front. */
static bool knows_secret(const void *transfer)
{
    return memmem(transfer, sizeof(struct idem_http_lines), SECRET, strlen(SECRET)) != NULL;
}

/* Answered, cut off, cancelled, never sent, and not even begun. */
static void a_credential_is_forgotten_with_its_call(void **state)
{
    (void)state;
    static const char *const paths[] = { "/ok", "/close", "/large/16385", "/silent", "/ok" };
    struct rig *rig = rig_create(1, 1);
    const void *place = NULL;

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(paths); i++) {
        struct idem_http_call *call = post_prepare(rig, paths[i]);
        struct idem_list done = { .count = 0 };
        call->headers[1] = IDEM_STR("Authorization: Bearer " SECRET);
        call->not_after_us = i == 0 ? 0 : FOR_EVER;
        assert_int_equal(idem_http_client_submit(rig->client, call), IDEM_OK);
        place = call->transfer;
        assert_true(knows_secret(place));
        if (strcmp(paths[i], "/silent") == 0) {
            idem_http_client_cancel(rig->client, call);
        }
        run_until_reaped(rig, &done, 1);
        assert_false(knows_secret(place));
    }
    struct idem_http_call *call = post_prepare(rig, "/ok");
    call->headers[0] = IDEM_STR("Authorization: Bearer " SECRET);
    call->headers[1] = IDEM_STR("A: b\r\nC: d");
    assert_int_equal(idem_http_client_submit(rig->client, call), IDEM_E_INVALID);
    assert_false(knows_secret(place));
    rig_destroy(rig);
}

/* A terminator each counts, and the type that is not given costs nothing. */
static void header_lines_have_room_up_to_the_limit(void **state)
{
    (void)state;
    enum {
        EACH = IDEM_HTTP_HEADERS_SIZE / IDEM_HTTP_HEADERS_MAX,
        REST = IDEM_HTTP_HEADERS_SIZE - EACH * (IDEM_HTTP_HEADERS_MAX - 1)
    };
    struct rig *rig = rig_create(1, 1);
    struct idem_http_call *call = post_prepare(rig, "/large/1");
    char line[REST + 1] = "A: ";
    char request[PEER_REQUEST_MAX];

    memset(line + 3, 'x', sizeof(line) - 3);
    call->header_count = IDEM_HTTP_HEADERS_MAX;
    for (size_t i = 0; i < IDEM_HTTP_HEADERS_MAX; i++) {
        call->headers[i] = (struct idem_str){ .data = line, .len = EACH - 1 };
    }
    call->headers[7].len = REST;
    assert_int_equal(idem_http_client_submit(rig->client, call), IDEM_E_INVALID);
    call->headers[7].len = REST - 1;
    call_run(rig, call);
    assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
    peer_last_request(rig->peer, request);

    size_t lines = 0;
    for (const char *at = strstr(request, "\r\nA: x"); at != NULL; lines++) {
        at = strstr(at + 2, "\r\nA: x");
    }
    assert_int_equal(lines, IDEM_HTTP_HEADERS_MAX);
    assert_null(strstr(request, "Content-Type"));
    assert_null(strstr(request, "Expect"));
    rig_destroy(rig);
}

static void every_method_goes_out_by_its_name(void **state)
{
    (void)state;
    static const char *const methods[] = { "POST", "PUT", "PATCH", "DELETE", "PATCH" };
    struct rig *rig = rig_create(1, 1);
    char request[PEER_REQUEST_MAX];
    char expected[32];

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(methods); i++) {
        struct idem_http_call *call = post_prepare(rig, "/ok");
        call->method = methods[i];
        call_run(rig, call);
        assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
        peer_last_request(rig->peer, request);
        (void)snprintf(expected, sizeof(expected), "%s /ok HTTP/1.1\r\n", methods[i]);
        assert_memory_equal(request, expected, strlen(expected));
        assert_non_null(strstr(request, "\r\n\r\n{\"amount\":\"1.00\"}"));
    }
    rig_destroy(rig);
}

static const struct {
    const char *raw;
    const char *head;
} heads[] = {
    { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag:\t \"a\" \t\r\nEmpty:\r\n\r\n",
      "Content-Length: 0\nETag: \"a\"\nEmpty: \n" },
    { "HTTP/1.1 409 Conflict\r\nA: b: c\r\nA: d\r\nContent-Length: 0\r\n\r\n",
      "A: b: c\nA: d\nContent-Length: 0\n" },
    { "HTTP/1.1 100 Continue\r\nEarly: 1\r\n\r\nHTTP/1.1 103 Hints\r\nEarly: 2\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
      "Content-Length: 0\n" },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nLate: 1\r\n\r\n",
      "Transfer-Encoding: chunked\n" },
    { "HTTP/1.1 200 OK\r\nA: b\r\n  c \r\n\td\r\nContent-Length: 0\r\n\r\n",
      "A: b c d\nContent-Length: 0\n" },
};

/* With one byte less than its length a head is too long; NULL keeps none. */
static void a_head_is_kept_where_it_has_room(void **state)
{
    (void)state;
    struct rig *rig = rig_create(1, 1);

    for (size_t i = 0; i < 3 * IDEM_ARRAY_COUNT(heads); i++) {
        const char *expected = heads[i / 3].head;
        size_t size = strlen(expected) + i % 3 - 1;
        char *room = malloc(size); /* Of its own size, so that a write past it is noticed. */
        assert_non_null(room);
        peer_answer(rig->peer, heads[i / 3].raw);
        struct idem_http_call *call = post_prepare(rig, "/set");
        call->head_room = room;
        call->head_room_size = size;
        call_run(rig, call);
        if (i % 3 == 0) {
            assert_int_equal(call->verdict, IDEM_HTTP_UNKNOWN);
            assert_string_equal(call->detail, "the answer is too long");
            assert_true(call->too_long);
            assert_int_equal(call->head.len, 0);
        } else {
            assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
            assert_ptr_equal(call->head.data, room);
            assert_false(call->too_long);
            EXPECT_TEXT(call->head, expected);
        }
        free(room);
        expect_call(rig, "/set", "answered", 1);
        assert_int_equal(rig->call.head.len, 0);
    }
    rig_destroy(rig);
}

/* An interim head has no part in the room, however long it is. */
static void a_long_interim_head_needs_no_room(void **state)
{
    (void)state;
    struct rig *rig = rig_create(1, 1);
    char room[32];
    char raw[512];

    (void)snprintf(raw, sizeof(raw),
                   "HTTP/1.1 103 Early Hints\r\nLink: %0200d\r\n\r\n"
                   "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                   0);
    peer_answer(rig->peer, raw);
    struct idem_http_call *call = post_prepare(rig, "/set");
    call->head_room = room;
    call->head_room_size = sizeof(room);
    call_run(rig, call);
    assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
    EXPECT_TEXT(call->head, "Content-Length: 0\n");
    rig_destroy(rig);
}

static void an_answer_may_bring_its_own_room(void **state)
{
    (void)state;
    enum {
        ROOM = 40000
    };
    struct rig *rig = rig_create(1, 1);
    char *room = malloc(ROOM); /* Of its own size, so that a write past its end is noticed. */
    assert_non_null(room);

    for (size_t size = ROOM - 1; size <= ROOM + 1; size++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "/large/%zu", size);
        struct idem_http_call *call = post_prepare(rig, path);
        call->answer_room = room;
        call->answer_room_size = ROOM;
        call_run(rig, call);
        assert_int_equal(call->verdict, size <= ROOM ? IDEM_HTTP_ANSWERED : IDEM_HTTP_UNKNOWN);
        assert_int_equal(call->too_long, size > ROOM);
        if (size <= ROOM) {
            assert_ptr_equal(call->answer.data, room);
            assert_int_equal(call->answer.len, size);
        }
    }
    struct idem_http_call *call = &rig->call; /* The one that was too long, once more. */
    (void)snprintf(rig->url, sizeof(rig->url), "http://127.0.0.1:%u/ok", peer_port(rig->peer));
    call_run(rig, call);
    assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
    assert_false(call->too_long);
    free(room);
    rig_destroy(rig);
}

static void many_calls_share_few_places_and_fewer_connections(void **state)
{
    (void)state;
    enum {
        CALLS = 300,
        CONNECTIONS = 8
    };
    struct rig *rig = rig_create(CALLS_MAX, CONNECTIONS);
    struct idem_http_call *calls = calloc(CALLS, sizeof(*calls));
    struct idem_list done = { .count = 0 };
    size_t refused = 0;
    assert_non_null(calls);

    for (size_t i = 0; i < CALLS; i++) {
        calls[i] = *post_prepare(rig, "/ok");
        while (idem_http_client_submit(rig->client, &calls[i]) == IDEM_E_LIMIT) {
            refused += 1;
            run_until_reaped(rig, &done, done.count + 1);
        }
    }
    run_until_reaped(rig, &done, CALLS);
    assert_true(refused > 0);
    assert_int_equal(done.count, CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        assert_int_equal(calls[i].verdict, IDEM_HTTP_ANSWERED);
        EXPECT_TEXT(calls[i].answer, "fine");
    }
    assert_int_equal(peer_arrivals(rig->peer), CALLS);
    assert_in_range(peer_connections_max(rig->peer), 1, CONNECTIONS);
    free(calls);
    rig_destroy(rig);
}

/* All at once, good and bad mixed: each ends once, and nothing arrives twice. */
static void a_storm_of_faults_arrives_once_each(void **state)
{
    (void)state;
    enum {
        CALLS = 300
    };
    struct rig *rig = rig_create(CALLS, 32);
    struct idem_http_call *calls = calloc(CALLS, sizeof(*calls));
    char(*urls)[128] = calloc(CALLS, sizeof(*urls));
    struct idem_list done = { .count = 0 };
    assert_non_null(calls);
    assert_non_null(urls);

    for (size_t i = 0; i < CALLS; i++) {
        size_t row = i % IDEM_ARRAY_COUNT(answers);
        calls[i] = *post_prepare(rig, i % 3 == 0 ? answers[row].path : "/ok");
        calls[i].timeout_us = strstr(rig->url, "/silent") != NULL ? SHORT_US : calls[i].timeout_us;
        memcpy(urls[i], rig->url, sizeof(urls[i]));
        calls[i].url = urls[i];
        assert_int_equal(idem_http_client_submit(rig->client, &calls[i]), IDEM_OK);
    }
    run_until_reaped(rig, &done, CALLS);

    unsigned sends = 0;
    for (size_t i = 0; i < CALLS; i++) {
        assert_true(calls[i].sends == 0 || calls[i].sends == 1);
        assert_true((calls[i].sends == 0) == (calls[i].verdict == IDEM_HTTP_NOT_SENT));
        sends += calls[i].sends;
    }
    assert_true(peer_arrivals(rig->peer) <= sends);
    free(urls);
    free(calls);
    rig_destroy(rig);
}

static void a_client_without_calls_leaves_nothing_behind(void **state)
{
    (void)state;
    struct rig *rig = rig_create(CALLS_MAX, 1);
    rig_destroy(rig);
    idem_http_client_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_on_a_new_connection),
        cmocka_unit_test(every_answer_on_a_reused_connection),
        cmocka_unit_test(a_pooled_connection_that_the_peer_closed_is_replaced),
        cmocka_unit_test(an_answer_comes_with_status_type_and_body),
        cmocka_unit_test(what_goes_out_is_what_was_given),
        cmocka_unit_test(every_method_goes_out_by_its_name),
        cmocka_unit_test(a_url_that_is_none_is_hopeless),
        cmocka_unit_test(a_call_that_cannot_be_set_up_is_hopeless),
        cmocka_unit_test(without_a_connection_nothing_was_sent),
        cmocka_unit_test(nothing_leaves_when_it_is_too_late),
        cmocka_unit_test(a_cancel_before_sending_is_not_sent_and_after_it_unknown),
        cmocka_unit_test(a_call_that_waits_for_a_connection_has_a_deadline_too),
        cmocka_unit_test(retry_after_is_seconds_or_a_date),
        cmocka_unit_test(an_answer_may_bring_its_own_room),
        cmocka_unit_test(a_header_that_would_be_two_is_refused),
        cmocka_unit_test(a_credential_is_forgotten_with_its_call),
        cmocka_unit_test(header_lines_have_room_up_to_the_limit),
        cmocka_unit_test(a_head_is_kept_where_it_has_room),
        cmocka_unit_test(a_long_interim_head_needs_no_room),
        cmocka_unit_test(many_calls_share_few_places_and_fewer_connections),
        cmocka_unit_test(a_storm_of_faults_arrives_once_each),
        cmocka_unit_test(a_client_without_calls_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
