/*
 * Over TLS, a request leaves only for a peer that has proven its name.
 *
 * Goal: an unknown issuer and a wrong name are NOT_SENT, with no request at the peer; the right
 * name from a known issuer is answered.
 *
 * Method: a TLS server of a few lines, with a certificate made on the spot for the name that the
 * case asks for, and a client that is given, or not given, that certificate as its issuer.
 */
#include "transport/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/bug.h"
#include "lib/test.h"

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine"

struct server {
    SSL_CTX *context;
    EVP_PKEY *key;
    X509 *certificate;
    char ca_file[32];
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

static void extension_add(X509 *certificate, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static void certificate_make(struct server *server, const char *alt_name)
{
    server->key = EVP_EC_gen("P-256");
    server->certificate = X509_new();
    assert_non_null(server->key);
    assert_non_null(server->certificate);
    X509 *certificate = server->certificate;
    X509_NAME *name = X509_get_subject_name(certificate);

    assert_int_equal(X509_set_version(certificate, 2), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), -3600));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), 3600));
    assert_int_equal(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                                (const unsigned char *)"idem test", -1, -1, 0),
                     1);
    assert_int_equal(X509_set_issuer_name(certificate, name), 1);
    assert_int_equal(X509_set_pubkey(certificate, server->key), 1);
    extension_add(certificate, NID_basic_constraints, "critical,CA:TRUE");
    extension_add(certificate, NID_subject_alt_name, alt_name);
    assert_true(X509_sign(certificate, server->key, EVP_sha256()) > 0);

    (void)snprintf(server->ca_file, sizeof(server->ca_file), "/tmp/idem-test-XXXXXX");
    int fd = mkstemp(server->ca_file);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    assert_int_equal(fclose(file), 0);
}

static struct server *server_start(const char *alt_name)
{
    struct server *server = calloc(1, sizeof(*server));
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);
    assert_non_null(server);

    certificate_make(server, alt_name);
    server->context = SSL_CTX_new(TLS_server_method());
    assert_non_null(server->context);
    assert_int_equal(SSL_CTX_use_certificate(server->context, server->certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(server->context, server->key), 1);

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
    (void)unlink(server->ca_file);
    SSL_CTX_free(server->context);
    X509_free(server->certificate);
    EVP_PKEY_free(server->key);
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
    expect_verdict(server, server->ca_file, IDEM_HTTP_ANSWERED);
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
    expect_verdict(server, server->ca_file, IDEM_HTTP_NOT_SENT);
    server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_issuer_and_the_right_name_are_answered),
        cmocka_unit_test(an_unknown_issuer_gets_no_request),
        cmocka_unit_test(a_wrong_name_gets_no_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
