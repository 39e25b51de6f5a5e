/*
 * Over TLS, a request leaves only for a peer that has proven its name.
 *
 * Goal: an unknown issuer and a wrong name are NOT_SENT, with no request at the peer; the right
 * name from a known issuer is answered. What was not sent is hopeless: it is not the weather.
 *
 * Method: a TLS server of a few lines, with a certificate made on the spot for the name that the
 * case asks for, and a client that is given, or not given, that certificate as its issuer.
 */
#include "transport/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/bug.h"
#include "lib/test.h"
#include "unit/transport/certificate.h"

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine"

struct server {
    SSL_CTX *context;
    struct certificate certificate;
    int listener;
    uint16_t port;
    pthread_t thread;
    atomic_uint arrivals;
};

static void connection_serve(struct server *server, int socket)
{
    char request[4096] = "";
    int have = 0;
    SSL *tls = SSL_new(server->context);

    IDEM_ASSERT(tls != NULL && SSL_set_fd(tls, socket) == 1);
    bool on = SSL_accept(tls) == 1;
    while (on && strstr(request, "\r\n\r\n") == NULL) {
        int got = SSL_read(tls, request + have, (int)sizeof(request) - 1 - have);
        on = got > 0;
        have += on ? got : 0;
        request[have] = '\0';
    }
    if (on) {
        atomic_fetch_add(&server->arrivals, 1);
        (void)SSL_write(tls, ANSWER, (int)strlen(ANSWER)); /* The client notices if not. */
        (void)SSL_shutdown(tls);
    }
    SSL_free(tls);
    (void)close(socket);
}

static void *server_run(void *user)
{
    struct server *server = user;
    sigset_t pipe;

    /* OpenSSL raises it when a client has gone. Only here: the client under test must not. */
    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    for (;;) {
        int socket = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (socket < 0) {
            return NULL; /* Shut down by server_stop(). */
        }
        connection_serve(server, socket);
    }
}

static struct server *server_start(const char *alt_name)
{
    struct server *server = calloc(1, sizeof(*server));
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);
    assert_non_null(server);

    certificate_make(&server->certificate, alt_name);
    server->context = certificate_context(&server->certificate);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, server_run, server), 0);
    return server;
}

static void server_stop(struct server *server)
{
    (void)shutdown(server->listener, SHUT_RDWR); /* Ends accept(). */
    (void)pthread_join(server->thread, NULL);
    (void)close(server->listener);
    SSL_CTX_free(server->context);
    certificate_free(&server->certificate);
    free(server);
}

static void expect_verdict(struct server *server,
                           const char *ca_file,
                           enum idem_http_verdict verdict)
{
    uv_loop_t loop;
    struct idem_clock clock;
    struct idem_http_client *client;
    struct idem_error error;
    char url[64];
    struct idem_list done = { .count = 0 };
    struct idem_http_call *call = calloc(1, sizeof(*call));
    assert_non_null(call);
    unsigned before = atomic_load(&server->arrivals);

    idem_clock_init_system(&clock);
    assert_int_equal(uv_loop_init(&loop), 0);
    struct idem_http_client_options options = {
        .loop = &loop,
        .clock = &clock,
        .calls_max = 1,
        .connections_per_host_max = 1,
        .ca_file = ca_file,
    };
    assert_int_equal(idem_http_client_create(&options, &client, &error), IDEM_OK);
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", server->port);
    call->method = "POST";
    call->url = url;
    call->not_after_us = INT64_MAX;
    call->connect_timeout_us = 5 * IDEM_US_PER_SECOND;
    call->timeout_us = 10 * IDEM_US_PER_SECOND;
    assert_int_equal(idem_http_client_submit(client, call), IDEM_OK);
    while (done.count == 0) {
        (void)uv_run(&loop, UV_RUN_ONCE);
        idem_http_client_reap(client, &done);
    }
    if (call->verdict != verdict) {
        print_error("%s\n", call->detail);
    }
    assert_int_equal(call->verdict, verdict);
    assert_true(call->hopeless == (verdict == IDEM_HTTP_NOT_SENT));
    assert_int_equal(atomic_load(&server->arrivals) - before,
                     verdict == IDEM_HTTP_ANSWERED ? 1 : 0);

    idem_http_client_destroy(client);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&loop), 0);
    free(call);
}

static void a_known_issuer_and_the_right_name_are_answered(void **state)
{
    (void)state;
    struct server *server = server_start("IP:127.0.0.1");
    expect_verdict(server, server->certificate.ca_file, IDEM_HTTP_ANSWERED);
    server_stop(server);
}

static void an_unknown_issuer_gets_no_request(void **state)
{
    (void)state;
    struct server *server = server_start("IP:127.0.0.1");
    expect_verdict(server, NULL, IDEM_HTTP_NOT_SENT);
    server_stop(server);
}

static void a_wrong_name_gets_no_request(void **state)
{
    (void)state;
    struct server *server = server_start("DNS:bank.example");
    expect_verdict(server, server->certificate.ca_file, IDEM_HTTP_NOT_SENT);
    server_stop(server);
}

static void an_issuer_file_that_cannot_be_read_gets_no_request(void **state)
{
    (void)state;
    struct server *server = server_start("IP:127.0.0.1");
    expect_verdict(server, "/nonexistent/ca.pem", IDEM_HTTP_NOT_SENT);
    server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_issuer_and_the_right_name_are_answered),
        cmocka_unit_test(an_unknown_issuer_gets_no_request),
        cmocka_unit_test(a_wrong_name_gets_no_request),
        cmocka_unit_test(an_issuer_file_that_cannot_be_read_gets_no_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
