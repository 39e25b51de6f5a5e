/*
 * Calls to whoever somebody else has named.
 *
 * Goal: no connection is made to an address that may not be connected to, whatever its name was
 * when it was allowed; and where only the status is wanted, an answer counts from the end of its
 * head on, however its body ends.
 *
 * Method: a real client on a real loop against peer.c, with a predicate that the test turns.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <uv.h>

#include "lib/test.h"
#include "transport/client.h"
#include "unit/transport/peer.h"

#define SILENT_US (INT64_C(500) * IDEM_US_PER_MS) /* Long enough to send, also on a busy machine. */

static uv_loop_t loop;
static struct idem_clock client_clock;
static struct idem_http_client *client;
static struct peer *peer;
static struct idem_http_call call;
static char url[128];

/* What may be connected to, and what was asked last. */
static bool allows_ip4;
static bool allows_ip6;
static unsigned asked;
static struct sockaddr_in asked_last;

static bool may_connect(const struct sockaddr *address)
{
    asked += 1;
    if (address->sa_family == AF_INET) {
        memcpy(&asked_last, address, sizeof(asked_last));
        return allows_ip4;
    }
    return allows_ip6;
}

static int begin_with(bool (*predicate)(const struct sockaddr *address))
{
    assert_int_equal(uv_loop_init(&loop), 0);
    idem_clock_init_system(&client_clock);
    peer = peer_start();
    const struct idem_http_client_options options = {
        .loop = &loop,
        .clock = &client_clock,
        .calls_max = 1,
        .connections_per_host_max = 1,
        .may_connect = predicate,
    };
    assert_int_equal(idem_http_client_create(&options, &client, NULL), IDEM_OK);
    allows_ip4 = false;
    allows_ip6 = false;
    asked = 0;
    return 0;
}

static int begin(void **state)
{
    (void)state;
    return begin_with(NULL);
}

static int begin_choosy(void **state)
{
    (void)state;
    return begin_with(may_connect);
}

static int end(void **state)
{
    (void)state;
    idem_http_client_destroy(client);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&loop), 0);
    peer_stop(peer);
    return 0;
}

static void prepare(const char *host, uint16_t port, const char *path)
{
    (void)snprintf(url, sizeof(url), "http://%s:%u%s", host, port, path);
    call.method = "POST";
    call.url = url;
    call.body = IDEM_STR("{}");
    call.not_after_us = INT64_MAX;
    call.connect_timeout_us = 5 * IDEM_US_PER_SECOND;
    call.timeout_us = 10 * IDEM_US_PER_SECOND;
}

static void run(void)
{
    struct idem_list done = { .count = 0 };
    assert_int_equal(idem_http_client_submit(client, &call), IDEM_OK);
    while (done.count == 0) {
        (void)uv_run(&loop, UV_RUN_ONCE);
        idem_http_client_reap(client, &done);
    }
    assert_ptr_equal(idem_list_pop(&done), &call.node);
}

static void post(const char *host, uint16_t port, const char *path)
{
    prepare(host, port, path);
    run();
}

static void an_address_that_is_refused_is_never_connected_to(void **state)
{
    (void)state;
    static const char *const hosts[] = { "127.0.0.1", "localhost", "[::1]" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(hosts); i++) {
        asked = 0;
        post(hosts[i], peer_port(peer), "/ok");
        assert_int_equal(call.verdict, IDEM_HTTP_NOT_SENT);
        assert_false(call.hopeless); /* The name may lead elsewhere the next time. */
        assert_string_equal(call.detail, "the address may not be connected to");
        assert_true(asked > 0);
    }
    assert_int_equal(peer_arrivals(peer), 0);
    assert_int_equal(peer_connections_max(peer), 0);
}

static void it_is_asked_about_the_address_and_port_that_are_connected_to(void **state)
{
    (void)state;
    allows_ip4 = true;
    post("localhost", peer_port(peer), "/ok"); /* Where it is ::1 as well, that is refused. */
    assert_int_equal(call.verdict, IDEM_HTTP_ANSWERED);
    assert_int_equal(asked_last.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_int_equal(asked_last.sin_port, htons(peer_port(peer)));
    asked = 0;
    post("localhost", peer_port(peer), "/ok");
    assert_int_equal(call.verdict, IDEM_HTTP_ANSWERED);
    assert_int_equal(asked, 0); /* On the connection that was allowed. */
}

static void what_was_refused_before_says_nothing_of_the_next_call(void **state)
{
    (void)state;
    post("127.0.0.1", peer_port(peer), "/ok");
    allows_ip4 = true;
    post("127.0.0.1", 1, "/ok"); /* Nobody listens there. */
    assert_int_equal(call.verdict, IDEM_HTTP_NOT_SENT);
    assert_string_not_equal(call.detail, "the address may not be connected to");
}

static const struct {
    const char *path;
    enum idem_http_verdict verdict;
    uint16_t status;
} rows[] = {
    { "/ok", IDEM_HTTP_ANSWERED, 200 },         { "/no-content", IDEM_HTTP_ANSWERED, 204 },
    { "/elsewhere", IDEM_HTTP_ANSWERED, 307 },  { "/interim", IDEM_HTTP_ANSWERED, 200 },
    { "/unframed", IDEM_HTTP_ANSWERED, 200 },   { "/cut-body", IDEM_HTTP_ANSWERED, 200 },
    { "/cut-chunks", IDEM_HTTP_ANSWERED, 200 }, { "/large/9999999", IDEM_HTTP_ANSWERED, 200 },
    { "/cut-head", IDEM_HTTP_UNKNOWN, 0 },      { "/cut-status", IDEM_HTTP_UNKNOWN, 0 },
    { "/interim-only", IDEM_HTTP_UNKNOWN, 0 },  { "/switching", IDEM_HTTP_UNKNOWN, 0 },
    { "/close", IDEM_HTTP_UNKNOWN, 0 },         { "/reset", IDEM_HTTP_UNKNOWN, 0 },
};

static void where_the_head_suffices_the_body_may_end_as_it_likes(void **state)
{
    (void)state;
    call.head_suffices = true;
    for (size_t i = 0; i < 2 * IDEM_ARRAY_COUNT(rows); i++) {
        size_t row = i / 2;
        if (i % 2 == 1) { /* And on a connection that is used again. */
            post("127.0.0.1", peer_port(peer), "/ok");
        }
        unsigned before = peer_arrivals(peer);
        post("127.0.0.1", peer_port(peer), rows[row].path);
        if (call.verdict != rows[row].verdict || call.status != rows[row].status ||
            peer_arrivals(peer) != before + 1) {
            print_error("%s: verdict %d, status %d, %u arrivals (%s)\n", rows[row].path,
                        call.verdict, call.status, peer_arrivals(peer) - before, call.detail);
            fail();
        }
        EXPECT_TEXT(call.answer, "");
    }
    call.head_suffices = false;
}

static void a_body_that_never_comes_does_not_take_the_status_back(void **state)
{
    (void)state;
    peer_answer(peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    for (int suffices = 0; suffices < 2; suffices++) {
        call.head_suffices = suffices == 1;
        prepare("127.0.0.1", peer_port(peer), "/set");
        call.timeout_us = SILENT_US;
        run();
        assert_int_equal(call.verdict, suffices == 1 ? IDEM_HTTP_ANSWERED : IDEM_HTTP_UNKNOWN);
    }
    call.head_suffices = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_address_that_is_refused_is_never_connected_to,
                                        begin_choosy, end),
        cmocka_unit_test_setup_teardown(
            it_is_asked_about_the_address_and_port_that_are_connected_to, begin_choosy, end),
        cmocka_unit_test_setup_teardown(what_was_refused_before_says_nothing_of_the_next_call,
                                        begin_choosy, end),
        cmocka_unit_test_setup_teardown(where_the_head_suffices_the_body_may_end_as_it_likes, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_body_that_never_comes_does_not_take_the_status_back,
                                        begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
