/*
 * Over HTTP/2, too, a call is sent at most once, and only a whole answer is an answer.
 *
 * Goal: for every way in which a server of HTTP/2 can refuse, reset, say goodbye or cut, the
 * verdict is right and the request arrived at most once; in particular where the protocol invites
 * the client to send it again (REFUSED_STREAM, GOAWAY, HTTP_1_1_REQUIRED). Calls that share a
 * connection do not touch each other.
 *
 * Method: a real client on a real loop against http2_peer.c, which writes frames by hand and
 * counts what arrives.
 */
#include "transport/client.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <uv.h>

#include "lib/test.h"
#include "unit/transport/http2_peer.h"

#define CALLS_MAX  16
#define SHORT_US   (INT64_C(500) * IDEM_US_PER_MS) /* To send, also on a busy machine. */
#define UPLOAD_MAX ((size_t)200 * 1000)            /* More than a window of HTTP/2. */
#define HEAD_ROOM  1024

struct rig {
    uv_loop_t loop;
    struct idem_clock clock;
    struct idem_http_client *client;
    struct http2_peer *peer;
    char url[64];
    char head[HEAD_ROOM];
    struct idem_http_call calls[CALLS_MAX];
};

static struct rig *rig_create(const struct http2_peer_options *peer_options, bool http2)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    struct idem_error error;

    assert_int_equal(uv_loop_init(&rig->loop), 0);
    idem_clock_init_system(&rig->clock);
    rig->peer = http2_peer_start(peer_options);
    (void)snprintf(rig->url, sizeof(rig->url), "https://127.0.0.1:%u/", http2_peer_port(rig->peer));
    struct idem_http_client_options options = {
        .loop = &rig->loop,
        .clock = &rig->clock,
        .calls_max = CALLS_MAX,
        .connections_per_host_max = 1,
        .ca_file = http2_peer_ca_file(rig->peer),
        .http2 = http2,
    };
    assert_int_equal(idem_http_client_create(&options, &rig->client, &error), IDEM_OK);
    return rig;
}

static struct rig *rig_create_plain(void)
{
    return rig_create(&(struct http2_peer_options){ .streams_max = 0 }, true);
}

/* Also proves that the client leaves no handle on the loop: uv_loop_close() would refuse. */
static void rig_destroy(struct rig *rig)
{
    idem_http_client_destroy(rig->client);
    (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    http2_peer_stop(rig->peer);
    free(rig);
}

static struct idem_http_call *call_prepare(struct rig *rig, size_t index)
{
    struct idem_http_call *call = &rig->calls[index];

    *call = (struct idem_http_call){
        .method = "POST",
        .url = rig->url,
        .headers = { IDEM_STR("Idempotency-Key: c1"), IDEM_STR("Content-Type: application/json") },
        .header_count = 2,
        .body = IDEM_STR("{\"amount\":\"1.00\"}"),
        .not_after_us = INT64_MAX,
        .connect_timeout_us = 5 * IDEM_US_PER_SECOND,
        .timeout_us = 10 * IDEM_US_PER_SECOND,
    };
    return call;
}

static void submit(struct rig *rig, struct idem_http_call *call)
{
    assert_int_equal(idem_http_client_submit(rig->client, call), IDEM_OK);
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

    submit(rig, call);
    run_until_reaped(rig, &done, 1);
    assert_ptr_equal(idem_list_pop(&done), &call->node);
    assert_true(call->sends <= 1);
    assert_false(call->hopeless);
    assert_true((call->detail[0] == '\0') == (call->verdict == IDEM_HTTP_ANSWERED));
}

static void script_one(struct rig *rig, enum http2_fault fault)
{
    http2_peer_script(rig->peer, &fault, 1);
}

static void expect_answer(const struct idem_http_call *call, const char *body)
{
    if (call->verdict != IDEM_HTTP_ANSWERED) {
        print_error("%s: %s\n", body, call->detail);
    }
    assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
    assert_int_equal(call->status, 200);
    EXPECT_TEXT(call->answer, body);
}

enum end {
    END_ANSWERED,
    END_UNKNOWN,
    END_VAGUE /* Unknown, since it could have been cut; the next call is over HTTP/1.1. */
};

static const struct {
    const char *name;
    enum http2_fault fault;
    enum end end;
} rows[] = {
    { "an answer", HTTP2_ANSWER, END_ANSWERED },
    { "an answer without length", HTTP2_ANSWER_BARE, END_ANSWERED },
    { "a text without length", HTTP2_ANSWER_TEXT, END_VAGUE },
    { "an answer without body", HTTP2_ANSWER_EMPTY, END_VAGUE },
    { "204", HTTP2_ANSWER_NO_CONTENT, END_ANSWERED },
    { "an interim answer before it", HTTP2_ANSWER_INTERIM, END_ANSWERED },
    { "trailers behind it", HTTP2_ANSWER_TRAILERS, END_ANSWERED },
    { "a goodbye behind it", HTTP2_ANSWER_GOODBYE, END_ANSWERED },
    { "a head in two frames", HTTP2_ANSWER_CONTINUED, END_ANSWERED },
    { "silence", HTTP2_SILENT, END_UNKNOWN },
    { "REFUSED_STREAM at the head", HTTP2_REFUSE_EARLY, END_UNKNOWN },
    { "REFUSED_STREAM", HTTP2_REFUSE, END_UNKNOWN },
    { "CANCEL", HTTP2_CANCEL, END_UNKNOWN },
    { "NO_ERROR", HTTP2_RST_OK, END_UNKNOWN },
    { "INTERNAL_ERROR", HTTP2_RST_INTERNAL, END_UNKNOWN },
    { "HTTP_1_1_REQUIRED", HTTP2_RST_HTTP11, END_UNKNOWN },
    { "GOAWAY 0", HTTP2_GOAWAY, END_UNKNOWN },
    { "GOAWAY 0 and the end", HTTP2_GOAWAY_CLOSE, END_UNKNOWN },
    { "GOAWAY HTTP_1_1_REQUIRED", HTTP2_GOAWAY_HTTP11, END_UNKNOWN },
    { "the end at the head", HTTP2_CLOSE_EARLY, END_UNKNOWN },
    { "the end", HTTP2_CLOSE, END_UNKNOWN },
    { "a reset of TCP", HTTP2_RESET, END_UNKNOWN },
    { "half a head", HTTP2_CUT_HEAD, END_UNKNOWN },
    { "half a body and the end", HTTP2_CUT_BARE, END_UNKNOWN },
    { "half a body and CANCEL", HTTP2_CUT_CANCEL, END_UNKNOWN },
    { "half a body and NO_ERROR", HTTP2_CUT_OK, END_VAGUE },
    { "half a body and REFUSED_STREAM", HTTP2_CUT_REFUSE, END_UNKNOWN },
    { "half a body and GOAWAY", HTTP2_CUT_GOAWAY, END_UNKNOWN },
    { "half of the length", HTTP2_CUT_LENGTH, END_UNKNOWN },
    { "half of the length and NO_ERROR", HTTP2_CUT_LENGTH_OK, END_UNKNOWN },
    { "no body and NO_ERROR", HTTP2_CUT_NO_BODY_OK, END_VAGUE },
    { "no body and the end", HTTP2_CUT_NO_BODY, END_UNKNOWN },
    { "only an interim answer", HTTP2_CUT_INTERIM, END_UNKNOWN },
};

/* Every fault has a row; HOLD, RELEASE and their variants are about several calls. */
static_assert(IDEM_ARRAY_COUNT(rows) == HTTP2_FAULT_COUNT - 4, "a fault without a row");

static void expect_row(struct rig *rig, size_t index)
{
    unsigned before = http2_peer_arrivals(rig->peer);
    struct idem_http_call *call = call_prepare(rig, 0);

    script_one(rig, rows[index].fault);
    call->timeout_us = rows[index].fault == HTTP2_SILENT ? SHORT_US : 2 * IDEM_US_PER_SECOND;
    call_run(rig, call);
    unsigned seen = http2_peer_arrivals(rig->peer) - before;
    bool answered = call->verdict == IDEM_HTTP_ANSWERED;
    if (answered != (rows[index].end == END_ANSWERED) || call->verdict == IDEM_HTTP_NOT_SENT ||
        seen != 1) {
        print_error("%s: got verdict %d (%s) and %u arrivals\n", rows[index].name, call->verdict,
                    call->detail, seen);
        fail();
    }
    assert_int_equal(http2_peer_arrivals_http1(rig->peer), 0);
}

static void every_end_on_a_new_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct rig *rig = rig_create_plain();
        expect_row(rig, i);
        rig_destroy(rig);
    }
}

static void every_end_on_a_reused_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct rig *rig = rig_create_plain();
        script_one(rig, HTTP2_ANSWER);
        call_run(rig, call_prepare(rig, 0));
        expect_answer(&rig->calls[0], "{\"answer\":1}");
        expect_row(rig, i);
        rig_destroy(rig);
    }
}

static void after_every_end_the_next_call_is_answered(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct rig *rig = rig_create_plain();
        bool vague = rows[i].end == END_VAGUE;
        expect_row(rig, i);
        script_one(rig, HTTP2_ANSWER);
        call_run(rig, call_prepare(rig, 0));
        expect_answer(&rig->calls[0], vague ? "plain" : "{\"answer\":2}");
        assert_int_equal(http2_peer_arrivals(rig->peer), 2);
        assert_int_equal(http2_peer_arrivals_http1(rig->peer), vague ? 1 : 0);
        rig_destroy(rig);
    }
}

static void the_head_is_that_of_the_final_answer(void **state)
{
    (void)state;
    static const struct {
        enum http2_fault fault;
        const char *head;
    } heads[] = {
        { HTTP2_ANSWER, "content-type: application/json\ncontent-length: 12\n" },
        { HTTP2_ANSWER_CONTINUED, "content-type: application/json\ncontent-length: 12\n" },
        { HTTP2_ANSWER_INTERIM, "content-type: application/json\ncontent-length: 12\n" },
        { HTTP2_ANSWER_TRAILERS, "content-type: application/json\n" },
        { HTTP2_ANSWER_NO_CONTENT, "" },
    };
    struct rig *rig = rig_create_plain();

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(heads); i++) {
        struct idem_http_call *call = call_prepare(rig, 0);
        call->head_room = rig->head;
        call->head_room_size = sizeof(rig->head);
        script_one(rig, heads[i].fault);
        call_run(rig, call);
        assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
        EXPECT_TEXT(call->head, heads[i].head);
    }
    rig_destroy(rig);
}

/*
 * What comes on a connection belongs to a stream. In HTTP/1.1 something to read would be the reason
 * for a new connection (surplus.c); here it is not, and with one allowed the call would wait.
 */
static void a_frame_on_its_way_does_not_end_a_connection(void **state)
{
    (void)state;
    static const enum http2_fault script[] = { HTTP2_ANSWER, HTTP2_HOLD_HALF, HTTP2_RELEASE };
    struct rig *rig = rig_create_plain();
    struct idem_list done = { .count = 0 };

    http2_peer_script(rig->peer, script, IDEM_ARRAY_COUNT(script));
    call_run(rig, call_prepare(rig, 0));
    submit(rig, call_prepare(rig, 0));
    while (rig->calls[0].sends == 0) {
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
    }
    http2_peer_wait_arrivals(rig->peer, 2);
    struct pollfd half = { .fd = uv_backend_fd(&rig->loop), .events = POLLIN };
    assert_int_equal(poll(&half, 1, 10000), 1); /* It has come, and nobody has read it. */
    submit(rig, call_prepare(rig, 1));
    run_until_reaped(rig, &done, 2);
    expect_answer(&rig->calls[0], "{\"answer\":2}");
    expect_answer(&rig->calls[1], "{\"answer\":3}");
    assert_int_equal(http2_peer_arrivals(rig->peer), 3);
    assert_int_equal(http2_peer_connections(rig->peer), 1);
    rig_destroy(rig);
}

/* The peer answers the newest first, frame by frame in turns. */
static void a_connection_is_shared_and_answers_overtake_each_other(void **state)
{
    (void)state;
    static const enum http2_fault script[] = { HTTP2_ANSWER, HTTP2_HOLD, HTTP2_HOLD,
                                               HTTP2_RELEASE };
    struct rig *rig = rig_create_plain();
    struct idem_list done = { .count = 0 };

    http2_peer_script(rig->peer, script, IDEM_ARRAY_COUNT(script));
    call_run(rig, call_prepare(rig, 0));
    for (size_t i = 0; i < 3; i++) {
        submit(rig, call_prepare(rig, i));
    }
    run_until_reaped(rig, &done, 3);
    expect_answer(&rig->calls[0], "{\"answer\":2}");
    expect_answer(&rig->calls[1], "{\"answer\":3}");
    expect_answer(&rig->calls[2], "{\"answer\":4}");
    assert_int_equal(http2_peer_arrivals(rig->peer), 4);
    assert_int_equal(http2_peer_connections(rig->peer), 1);
    rig_destroy(rig);
}

/* Both have their half of an answer; one is given up, the other still becomes whole. */
static void a_cancel_leaves_the_other_streams_alone(void **state)
{
    (void)state;
    static const enum http2_fault script[] = { HTTP2_ANSWER, HTTP2_HOLD_HALF, HTTP2_HOLD_HALF,
                                               HTTP2_HOLD, HTTP2_RELEASE };
    struct rig *rig = rig_create_plain();
    struct idem_list done = { .count = 0 };

    http2_peer_script(rig->peer, script, IDEM_ARRAY_COUNT(script));
    call_run(rig, call_prepare(rig, 0));
    for (size_t i = 0; i < 3; i++) {
        submit(rig, call_prepare(rig, i));
    }
    while (rig->calls[0].answer_buf.len == 0 || rig->calls[1].answer_buf.len == 0) {
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
    }
    idem_http_client_cancel(rig->client, &rig->calls[0]);
    assert_int_equal(rig->calls[0].verdict, IDEM_HTTP_UNKNOWN);
    submit(rig, call_prepare(rig, 3));
    run_until_reaped(rig, &done, 4);
    expect_answer(&rig->calls[1], "{\"answer\":3}");
    expect_answer(&rig->calls[2], "{\"answer\":4}");
    expect_answer(&rig->calls[3], "{\"answer\":5}");
    http2_peer_wait_resets(rig->peer, 1);
    assert_int_equal(http2_peer_arrivals(rig->peer), 5);
    assert_int_equal(http2_peer_connections(rig->peer), 1);
    rig_destroy(rig);
}

static void a_reset_stream_leaves_the_others_alone(void **state)
{
    (void)state;
    static const enum http2_fault ends[] = { HTTP2_CANCEL, HTTP2_CUT_CANCEL, HTTP2_CUT_LENGTH };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(ends); i++) {
        const enum http2_fault script[] = { HTTP2_ANSWER, HTTP2_HOLD_HALF, ends[i], HTTP2_RELEASE };
        struct rig *rig = rig_create_plain();
        struct idem_list done = { .count = 0 };

        http2_peer_script(rig->peer, script, IDEM_ARRAY_COUNT(script));
        call_run(rig, call_prepare(rig, 0));
        submit(rig, call_prepare(rig, 0));
        submit(rig, call_prepare(rig, 1));
        run_until_reaped(rig, &done, 1);
        assert_int_equal(rig->calls[1].verdict, IDEM_HTTP_UNKNOWN);
        submit(rig, call_prepare(rig, 2));
        run_until_reaped(rig, &done, 3);
        expect_answer(&rig->calls[0], "{\"answer\":2}");
        expect_answer(&rig->calls[2], "{\"answer\":4}");
        assert_int_equal(http2_peer_arrivals(rig->peer), 4);
        rig_destroy(rig);
    }
}

/* libcurl leaves the connection to those that are on it, and wants another for the refused one. */
static void a_refused_stream_leaves_the_others_alone(void **state)
{
    (void)state;
    static const enum http2_fault script[] = { HTTP2_ANSWER, HTTP2_HOLD_HALF, HTTP2_HOLD,
                                               HTTP2_REFUSE_RELEASE, HTTP2_ANSWER };
    struct rig *rig = rig_create_plain();
    struct idem_list done = { .count = 0 };

    http2_peer_script(rig->peer, script, IDEM_ARRAY_COUNT(script));
    call_run(rig, call_prepare(rig, 0));
    for (size_t i = 0; i < 3; i++) {
        submit(rig, call_prepare(rig, i));
    }
    run_until_reaped(rig, &done, 3);
    expect_answer(&rig->calls[0], "{\"answer\":2}");
    expect_answer(&rig->calls[1], "{\"answer\":3}");
    assert_int_equal(rig->calls[2].verdict, IDEM_HTTP_UNKNOWN);
    assert_int_equal(http2_peer_arrivals(rig->peer), 4);
    rig_destroy(rig);
}

/* What dies with the connection is unknown, each of them, and nothing is sent anew. */
static void a_dying_connection_takes_its_calls_and_none_arrives_again(void **state)
{
    (void)state;
    static const enum http2_fault ends[] = { HTTP2_GOAWAY_CLOSE, HTTP2_CLOSE, HTTP2_RESET };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(ends); i++) {
        const enum http2_fault script[] = { HTTP2_ANSWER, HTTP2_HOLD_HALF, HTTP2_HOLD, ends[i],
                                            HTTP2_ANSWER };
        struct rig *rig = rig_create_plain();
        struct idem_list done = { .count = 0 };

        http2_peer_script(rig->peer, script, IDEM_ARRAY_COUNT(script));
        call_run(rig, call_prepare(rig, 0));
        for (size_t j = 0; j < 3; j++) {
            submit(rig, call_prepare(rig, j));
        }
        run_until_reaped(rig, &done, 3);
        for (size_t j = 0; j < 3; j++) {
            assert_int_equal(rig->calls[j].verdict, IDEM_HTTP_UNKNOWN);
        }
        assert_int_equal(http2_peer_arrivals(rig->peer), 4);
        rig_destroy(rig);
    }
}

static void nothing_leaves_on_a_shared_connection_when_it_is_too_late(void **state)
{
    (void)state;
    struct rig *rig = rig_create_plain();

    call_run(rig, call_prepare(rig, 0));
    struct idem_http_call *call = call_prepare(rig, 0);
    call->not_after_us = idem_clock_mono_us(&rig->clock);
    call_run(rig, call);
    assert_int_equal(call->verdict, IDEM_HTTP_NOT_SENT);
    assert_string_equal(call->detail, "too late to send");
    call_run(rig, call_prepare(rig, 0));
    expect_answer(&rig->calls[0], "{\"answer\":2}");
    assert_int_equal(http2_peer_connections(rig->peer), 1);
    rig_destroy(rig);
}

/* The server allows one stream; who waits for it waits in front of the guard. */
static void a_call_that_waits_for_a_stream_may_become_too_late(void **state)
{
    (void)state;
    static const enum http2_fault script[] = { HTTP2_ANSWER, HTTP2_SILENT, HTTP2_ANSWER };
    struct rig *rig = rig_create(&(struct http2_peer_options){ .streams_max = 1 }, true);
    struct idem_list done = { .count = 0 };

    http2_peer_script(rig->peer, script, IDEM_ARRAY_COUNT(script));
    call_run(rig, call_prepare(rig, 0));
    call_prepare(rig, 0)->timeout_us = SHORT_US;
    call_prepare(rig, 1)->not_after_us = idem_clock_mono_us(&rig->clock) + SHORT_US / 2;
    submit(rig, &rig->calls[0]);
    submit(rig, &rig->calls[1]);
    run_until_reaped(rig, &done, 2);
    assert_int_equal(rig->calls[0].verdict, IDEM_HTTP_UNKNOWN);
    assert_int_equal(rig->calls[1].verdict, IDEM_HTTP_NOT_SENT);
    assert_string_equal(rig->calls[1].detail, "too late to send");
    assert_int_equal(http2_peer_arrivals(rig->peer), 2);
    rig_destroy(rig);
}

static void a_body_larger_than_the_window_arrives_whole(void **state)
{
    (void)state;
    struct rig *rig = rig_create_plain();
    char *body = calloc(1, UPLOAD_MAX);
    struct idem_http_call *call = call_prepare(rig, 0);
    assert_non_null(body);

    call->method = "PATCH";
    call->body = (struct idem_str){ .data = body, .len = UPLOAD_MAX };
    call_run(rig, call);
    expect_answer(call, "{\"answer\":1}");
    assert_int_equal(http2_peer_body_size(rig->peer), UPLOAD_MAX);
    free(body);
    rig_destroy(rig);
}

/* The body is the caller's again after the cancel; the address sanitizer watches. */
static void a_cancel_in_the_middle_of_the_body_leaves_the_connection_of_use(void **state)
{
    (void)state;
    static const enum http2_fault script[] = { HTTP2_ANSWER, HTTP2_SILENT, HTTP2_ANSWER };
    struct rig *rig = rig_create_plain();
    struct idem_list done = { .count = 0 };
    char *body = calloc(1, UPLOAD_MAX);
    assert_non_null(body);

    http2_peer_script(rig->peer, script, IDEM_ARRAY_COUNT(script));
    call_run(rig, call_prepare(rig, 0));
    struct idem_http_call *call = call_prepare(rig, 0);
    call->body = (struct idem_str){ .data = body, .len = UPLOAD_MAX };
    submit(rig, call);
    while (http2_peer_arrivals(rig->peer) < 2) {
        (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
    idem_http_client_cancel(rig->client, call);
    run_until_reaped(rig, &done, 1);
    assert_ptr_equal(idem_list_pop(&done), &call->node);
    assert_int_equal(call->verdict, IDEM_HTTP_UNKNOWN);
    memset(body, 'x', UPLOAD_MAX);
    free(body);

    call = call_prepare(rig, 0);
    call->method = "GET";
    call->body = IDEM_STR("");
    call_run(rig, call);
    expect_answer(call, "{\"answer\":3}");
    rig_destroy(rig);
}

static void a_server_of_http_1_is_served_as_before(void **state)
{
    (void)state;
    struct rig *rig = rig_create(&(struct http2_peer_options){ .http1_only = true }, true);

    call_run(rig, call_prepare(rig, 0));
    expect_answer(&rig->calls[0], "plain");
    assert_int_equal(http2_peer_arrivals_http1(rig->peer), 1);
    rig_destroy(rig);
}

static void a_client_that_does_not_ask_for_it_gets_no_http_2(void **state)
{
    (void)state;
    struct rig *rig = rig_create(&(struct http2_peer_options){ .http1_only = false }, false);

    call_run(rig, call_prepare(rig, 0));
    expect_answer(&rig->calls[0], "plain");
    assert_int_equal(http2_peer_arrivals_http1(rig->peer), 1);
    rig_destroy(rig);
}

/* The end of this body is the end of the connection, whatever its first line says. */
static void an_answer_that_only_claims_to_be_http_2_is_not_whole(void **state)
{
    (void)state;
    static const char *const lies[] = {
        "HTTP/2 200 \r\ncontent-type: text/plain\r\n\r\nhalf",
        "HTTP/2.0 200 OK\r\n\r\nhalf",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/2 200 \r\n\r\nhalf",
    };

    for (size_t i = 0; i < 2 * IDEM_ARRAY_COUNT(lies); i++) {
        struct rig *rig = rig_create(
            &(struct http2_peer_options){ .http1_only = true, .http1_answer = lies[i / 2] },
            i % 2 == 0);
        call_run(rig, call_prepare(rig, 0));
        assert_int_equal(rig->calls[0].verdict, IDEM_HTTP_UNKNOWN);
        assert_string_equal(rig->calls[0].detail,
                            i % 2 == 0 ? "the answer is in another version of HTTP than the request"
                                       : "the answer may have lost its end");
        assert_int_equal(http2_peer_arrivals(rig->peer), 1);
        rig_destroy(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end_on_a_new_connection),
        cmocka_unit_test(every_end_on_a_reused_connection),
        cmocka_unit_test(after_every_end_the_next_call_is_answered),
        cmocka_unit_test(the_head_is_that_of_the_final_answer),
        cmocka_unit_test(a_frame_on_its_way_does_not_end_a_connection),
        cmocka_unit_test(a_connection_is_shared_and_answers_overtake_each_other),
        cmocka_unit_test(a_cancel_leaves_the_other_streams_alone),
        cmocka_unit_test(a_reset_stream_leaves_the_others_alone),
        cmocka_unit_test(a_refused_stream_leaves_the_others_alone),
        cmocka_unit_test(a_dying_connection_takes_its_calls_and_none_arrives_again),
        cmocka_unit_test(nothing_leaves_on_a_shared_connection_when_it_is_too_late),
        cmocka_unit_test(a_call_that_waits_for_a_stream_may_become_too_late),
        cmocka_unit_test(a_body_larger_than_the_window_arrives_whole),
        cmocka_unit_test(a_cancel_in_the_middle_of_the_body_leaves_the_connection_of_use),
        cmocka_unit_test(a_server_of_http_1_is_served_as_before),
        cmocka_unit_test(a_client_that_does_not_ask_for_it_gets_no_http_2),
        cmocka_unit_test(an_answer_that_only_claims_to_be_http_2_is_not_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
