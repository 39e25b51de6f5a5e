/*
 * A call goes through the proxy that the client was given, and through no other.
 *
 * Goal: http goes to the proxy as a whole URL, https through a tunnel in which the proxy sees
 * nothing of the call; a proxy that refuses is NOT_SENT; what the environment says about proxies
 * counts in neither direction.
 *
 * Method: a proxy of a few lines that keeps the head it was sent, in front of peer.c's and
 * http2_peer.c's servers, which count what arrives.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/bug.h"
#include "lib/test.h"
#include "transport/client.h"
#include "unit/transport/http2_peer.h"
#include "unit/transport/peer.h"

#define HEAD_MAX 4096
#define PROXIED  "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nVia: it\r\n\r\nproxied"
/* More than the room that the test gives for a head. */
#define TUNNEL                                                                                    \
    "HTTP/1.1 200 Go\r\nX-Proxy: a long word of its own, a long word of its own, a long word\r\n" \
    "Retry-After: 9\r\n\r\n"
#define REFUSAL \
    "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"it\"\r\nContent-Length: 4\r\n\r\nnope"

struct proxy {
    int listener;
    uint16_t port;
    bool refuses;
    pthread_t thread;
    pthread_mutex_t mutex;
    unsigned served;
    char head[HEAD_MAX]; /* The last one, terminated. */
};

static bool forward(int from, int to)
{
    char data[4096];
    ssize_t got = recv(from, data, sizeof(data), 0);
    return got > 0 && send(to, data, (size_t)got, MSG_NOSIGNAL) == got;
}

static void tunnel_serve(int client, const char *head)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    unsigned port = 0;
    int matched = sscanf(head, "CONNECT 127.0.0.1:%u ", &port); /* NOLINT(cert-err34-c): a test. */
    IDEM_ASSERT(matched == 1);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = connect(server, (struct sockaddr *)&address, sizeof(address));
    IDEM_ASSERT(rc == 0);
    (void)send(client, TUNNEL, strlen(TUNNEL), MSG_NOSIGNAL);

    bool on = true;
    while (on) {
        struct pollfd ends[] = { { .fd = client, .events = POLLIN },
                                 { .fd = server, .events = POLLIN } };
        on = poll(ends, 2, -1) > 0;
        on = on && (ends[0].revents == 0 || forward(client, server));
        on = on && (ends[1].revents == 0 || forward(server, client));
    }
    (void)close(server);
}

static void connection_serve(struct proxy *proxy, int socket)
{
    char head[HEAD_MAX] = "";
    size_t have = 0;

    while (strstr(head, "\r\n\r\n") == NULL) {
        ssize_t got = recv(socket, head + have, sizeof(head) - 1 - have, 0);
        if (got <= 0) {
            return;
        }
        have += (size_t)got;
        head[have] = '\0';
    }
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->served += 1;
    memcpy(proxy->head, head, sizeof(head));
    (void)pthread_mutex_unlock(&proxy->mutex);
    if (proxy->refuses) {
        (void)send(socket, REFUSAL, strlen(REFUSAL), MSG_NOSIGNAL);
    } else if (strncmp(head, "CONNECT ", 8) == 0) {
        tunnel_serve(socket, head);
    } else {
        (void)send(socket, PROXIED, strlen(PROXIED), MSG_NOSIGNAL);
    }
}

/* One connection after the other. */
static void *proxy_run(void *user)
{
    struct proxy *proxy = user;

    for (;;) {
        int socket = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
        if (socket < 0) {
            return NULL; /* Shut down by proxy_stop(). */
        }
        connection_serve(proxy, socket);
        (void)close(socket);
    }
}

static struct proxy *proxy_start(bool refuses)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);
    struct proxy *proxy = calloc(1, sizeof(*proxy));
    assert_non_null(proxy);

    proxy->refuses = refuses;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(proxy->listener, 8), 0);
    assert_int_equal(getsockname(proxy->listener, (struct sockaddr *)&address, &size), 0);
    proxy->port = ntohs(address.sin_port);
    (void)pthread_mutex_init(&proxy->mutex, NULL);
    assert_int_equal(pthread_create(&proxy->thread, NULL, proxy_run, proxy), 0);
    return proxy;
}

static void proxy_stop(struct proxy *proxy)
{
    (void)shutdown(proxy->listener, SHUT_RDWR); /* Ends accept(). */
    (void)pthread_join(proxy->thread, NULL);
    (void)close(proxy->listener);
    (void)pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
}

/* How many requests or tunnels it has served, and the last one's head. */
static unsigned proxy_served(struct proxy *proxy, char ret_head[HEAD_MAX])
{
    (void)pthread_mutex_lock(&proxy->mutex);
    unsigned served = proxy->served;
    memcpy(ret_head, proxy->head, HEAD_MAX);
    (void)pthread_mutex_unlock(&proxy->mutex);
    return served;
}

/* Where to, and how. */
struct trip {
    const char *url;
    const struct proxy *proxy; /* NULL: none. */
    const char *ca_file;
    bool http2;
};

/* One call with a client of its own, which has left the proxy when this returns. */
static void trip_run(const struct trip *trip, struct idem_http_call *call, char *head, size_t size)
{
    uv_loop_t loop;
    struct idem_clock clock;
    struct idem_http_client *client;
    struct idem_error error;
    struct idem_list done = { .count = 0 };
    char proxy_url[64];

    idem_clock_init_system(&clock);
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)snprintf(proxy_url, sizeof(proxy_url), "http://127.0.0.1:%u",
                   trip->proxy == NULL ? 0 : trip->proxy->port);
    struct idem_http_client_options options = {
        .loop = &loop,
        .clock = &clock,
        .calls_max = 1,
        .connections_per_host_max = 1,
        .ca_file = trip->ca_file,
        .proxy = trip->proxy == NULL ? NULL : proxy_url,
        .http2 = trip->http2,
    };
    assert_int_equal(idem_http_client_create(&options, &client, &error), IDEM_OK);
    *call = (struct idem_http_call){
        .method = "POST",
        .url = trip->url,
        .headers = { IDEM_STR("Idempotency-Key: c1"), IDEM_STR("Authorization: Bearer secret") },
        .header_count = 2,
        .body = IDEM_STR("{}"),
        .not_after_us = INT64_MAX,
        .connect_timeout_us = 5 * IDEM_US_PER_SECOND,
        .timeout_us = 10 * IDEM_US_PER_SECOND,
        .head_room = head,
        .head_room_size = size,
    };
    assert_int_equal(idem_http_client_submit(client, call), IDEM_OK);
    while (done.count == 0) {
        (void)uv_run(&loop, UV_RUN_ONCE);
        idem_http_client_reap(client, &done);
    }
    idem_http_client_destroy(client);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void http_goes_to_the_proxy_as_a_whole_url(void **state)
{
    (void)state;
    struct proxy *proxy = proxy_start(false);
    struct peer *peer = peer_start();
    struct idem_http_call *call = calloc(1, sizeof(*call));
    char url[64];
    char seen[HEAD_MAX];
    char expected[128];
    char head[256];
    assert_non_null(call);

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/ok", peer_port(peer));
    const struct trip trip = { .url = url, .proxy = proxy };
    trip_run(&trip, call, head, sizeof(head));
    assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
    EXPECT_TEXT(call->answer, "proxied");
    EXPECT_TEXT(call->head, "Content-Length: 7\nVia: it\n");
    assert_int_equal(proxy_served(proxy, seen), 1);
    (void)snprintf(expected, sizeof(expected), "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n", url,
                   peer_port(peer));
    assert_memory_equal(seen, expected, strlen(expected));
    assert_non_null(strstr(seen, "\r\nIdempotency-Key: c1\r\n"));
    assert_int_equal(peer_arrivals(peer), 0);
    free(call);
    peer_stop(peer);
    proxy_stop(proxy);
}

static void https_goes_through_a_tunnel(void **state)
{
    (void)state;
    for (int http2 = 0; http2 <= 1; http2++) {
        struct proxy *proxy = proxy_start(false);
        struct http2_peer *peer =
            http2_peer_start(&(struct http2_peer_options){ .streams_max = 0 });
        struct idem_http_call *call = calloc(1, sizeof(*call));
        char url[64];
        char seen[HEAD_MAX];
        char expected[128];
        char head[64];
        assert_non_null(call);

        (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", http2_peer_port(peer));
        const struct trip trip = {
            .url = url, .proxy = proxy, .ca_file = http2_peer_ca_file(peer), .http2 = http2 == 1
        };
        trip_run(&trip, call, head, sizeof(head));
        if (call->verdict != IDEM_HTTP_ANSWERED) {
            print_error("%s\n", call->detail);
        }
        assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
        EXPECT_TEXT(call->answer, http2 == 1 ? "{\"answer\":1}" : "plain");
        EXPECT_TEXT(call->head, http2 == 1 ? "content-type: application/json\ncontent-length: 12\n"
                                           : "Content-Length: 5\nConnection: close\n");
        assert_int_equal(call->retry_after_us, 0);
        assert_int_equal(proxy_served(proxy, seen), 1);
        (void)snprintf(expected, sizeof(expected), "CONNECT 127.0.0.1:%u HTTP/1.1\r\n",
                       http2_peer_port(peer));
        assert_memory_equal(seen, expected, strlen(expected));
        assert_null(strstr(seen, "Idempotency-Key"));
        assert_null(strstr(seen, "secret"));
        assert_int_equal(http2_peer_arrivals(peer), 1);
        free(call);
        http2_peer_stop(peer);
        proxy_stop(proxy);
    }
}

/* Nothing was sent, and the proxy may think better of it. */
static void a_proxy_that_refuses_the_tunnel_is_not_sent(void **state)
{
    (void)state;
    struct proxy *proxy = proxy_start(true);
    struct idem_http_call *call = calloc(1, sizeof(*call));
    char seen[HEAD_MAX];
    char head[8]; /* Its head would not fit. */
    assert_non_null(call);

    const struct trip trip = { .url = "https://127.0.0.1:1/", .proxy = proxy, .http2 = true };
    trip_run(&trip, call, head, sizeof(head));
    assert_int_equal(call->verdict, IDEM_HTTP_NOT_SENT);
    assert_false(call->hopeless);
    assert_int_equal(call->sends, 0);
    assert_int_equal(proxy_served(proxy, seen), 1);
    free(call);
    proxy_stop(proxy);
}

static void a_proxy_that_is_not_there_is_not_sent(void **state)
{
    (void)state;
    struct peer *peer = peer_start();
    struct idem_http_call *call = calloc(1, sizeof(*call));
    const struct proxy nobody = { .port = 1 };
    char url[64];
    assert_non_null(call);

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/ok", peer_port(peer));
    const struct trip trip = { .url = url, .proxy = &nobody };
    trip_run(&trip, call, NULL, 0);
    assert_int_equal(call->verdict, IDEM_HTTP_NOT_SENT);
    assert_false(call->hopeless);
    assert_int_equal(peer_arrivals(peer), 0);
    free(call);
    peer_stop(peer);
}

static const char *const variables[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                         "ALL_PROXY" };

static void a_proxy_of_the_environment_is_not_used(void **state)
{
    (void)state;
    struct proxy *proxy = proxy_start(false);
    struct peer *peer = peer_start();
    struct http2_peer *tls = http2_peer_start(&(struct http2_peer_options){ .streams_max = 0 });
    struct idem_http_call *call = calloc(1, sizeof(*call));
    char urls[2][64];
    char text[64];
    char seen[HEAD_MAX];
    assert_non_null(call);

    (void)snprintf(text, sizeof(text), "http://127.0.0.1:%u", proxy->port);
    (void)snprintf(urls[0], sizeof(urls[0]), "http://127.0.0.1:%u/ok", peer_port(peer));
    (void)snprintf(urls[1], sizeof(urls[1]), "https://127.0.0.1:%u/", http2_peer_port(tls));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(variables); i++) {
        assert_int_equal(setenv(variables[i], text, 1), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        const struct trip trip = { .url = urls[i % 2],
                                   .ca_file = http2_peer_ca_file(tls),
                                   .http2 = i / 2 == 1 };
        trip_run(&trip, call, NULL, 0);
        assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(variables); i++) {
        assert_int_equal(unsetenv(variables[i]), 0);
    }
    assert_int_equal(proxy_served(proxy, seen), 0);
    assert_int_equal(peer_arrivals(peer), 2);
    assert_int_equal(http2_peer_arrivals(tls), 2);
    free(call);
    http2_peer_stop(tls);
    peer_stop(peer);
    proxy_stop(proxy);
}

static void an_exception_of_the_environment_does_not_count(void **state)
{
    (void)state;
    struct proxy *proxy = proxy_start(false);
    struct idem_http_call *call = calloc(1, sizeof(*call));
    char seen[HEAD_MAX];
    assert_non_null(call);

    assert_int_equal(setenv("no_proxy", "*", 1), 0);
    assert_int_equal(setenv("NO_PROXY", "*", 1), 0);
    const struct trip trip = { .url = "http://127.0.0.1:1/", .proxy = proxy };
    trip_run(&trip, call, NULL, 0);
    assert_int_equal(unsetenv("no_proxy"), 0);
    assert_int_equal(unsetenv("NO_PROXY"), 0);
    assert_int_equal(call->verdict, IDEM_HTTP_ANSWERED);
    assert_int_equal(proxy_served(proxy, seen), 1);
    free(call);
    proxy_stop(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_goes_to_the_proxy_as_a_whole_url),
        cmocka_unit_test(https_goes_through_a_tunnel),
        cmocka_unit_test(a_proxy_that_refuses_the_tunnel_is_not_sent),
        cmocka_unit_test(a_proxy_that_is_not_there_is_not_sent),
        cmocka_unit_test(a_proxy_of_the_environment_is_not_used),
        cmocka_unit_test(an_exception_of_the_environment_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
