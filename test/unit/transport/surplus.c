/*
 * Bytes that nobody asked for are never the answer to the next call.
 *
 * Goal: in HTTP/1.1 an answer belongs to a request by its place alone. Whatever a server says on a
 * connection before a request has left, or behind an answer, that connection carries no other
 * request; the call is made on a new one, arrives exactly once and gets its own answer. A server
 * that behaves keeps its one connection.
 *
 * Method: a real client, and a server in the same thread that takes turns with it, plain or over
 * TLS, so that what lies on a connection at which moment is certain. Each answer carries the number
 * of the request that it answers; strays carry none.
 */
#include "transport/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "lib/test.h"
#include "unit/transport/certificate.h"

#define LINES_MAX 16
#define BODY      "{\"amount\":\"1.00\"}"
#define STRAY     "HTTP/1.1 503 No\r\nContent-Length: 25\r\n\r\n{\"status\":\"not_executed\"}"
#define TIMEOUT   "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"

/* One connection, on the server's side. */
struct line {
    int fd; /* -1: closed. */
    SSL *tls;
    bool open; /* The handshake is done. */
    char request[4096];
    size_t len;
};

struct rig {
    uv_loop_t loop;
    struct idem_clock clock;
    struct idem_http_client *client;
    int listener;
    SSL_CTX *context; /* NULL: plain. */
    struct certificate certificate;
    struct line lines[LINES_MAX];
    size_t line_count;  /* Ever accepted. */
    unsigned arrivals;  /* Whole requests. */
    const char *behind; /* An answer, in the same write. */
    bool apart;         /* The head is a write of its own. */
    bool chunked;
    bool empty; /* The answer has no body; its number is in the head. */
    char url[64];
    struct idem_http_call call;
    char head[256];
};

static void rig_listen(struct rig *rig)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    rig->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(rig->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(rig->listener, 8), 0);
    assert_int_equal(getsockname(rig->listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(rig->url, sizeof(rig->url), "http%s://127.0.0.1:%u/",
                   rig->context == NULL ? "" : "s", ntohs(address.sin_port));
}

static struct rig *rig_create(bool tls)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct idem_error error;
    assert_non_null(rig);

    rig->behind = "";
    if (tls) {
        certificate_make(&rig->certificate, "IP:127.0.0.1");
        rig->context = certificate_context(&rig->certificate);
    }
    rig_listen(rig);
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    idem_clock_init_system(&rig->clock);
    struct idem_http_client_options options = {
        .loop = &rig->loop,
        .clock = &rig->clock,
        .calls_max = 2,
        .connections_per_host_max = 1,
        .ca_file = tls ? rig->certificate.ca_file : NULL,
    };
    assert_int_equal(idem_http_client_create(&options, &rig->client, &error), IDEM_OK);
    return rig;
}

static void line_close(struct line *line)
{
    SSL_free(line->tls);
    if (line->fd >= 0) {
        (void)close(line->fd);
    }
    *line = (struct line){ .fd = -1 };
}

static void rig_destroy(struct rig *rig)
{
    idem_http_client_destroy(rig->client);
    (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    for (size_t i = 0; i < rig->line_count; i++) {
        line_close(&rig->lines[i]);
    }
    (void)close(rig->listener);
    if (rig->context != NULL) {
        SSL_CTX_free(rig->context);
        certificate_free(&rig->certificate);
    }
    free(rig);
}

/* In one segment, or one record. The client may have gone: then nobody hears it. */
static void line_say(struct line *line, const char *text)
{
    size_t len = strlen(text);
    if (len == 0 || line->fd < 0) {
        return;
    }
    if (line->tls != NULL) {
        (void)SSL_write(line->tls, text, (int)len);
        return;
    }
    (void)send(line->fd, text, len, MSG_NOSIGNAL);
}

static void turn_client(struct rig *rig)
{
    for (size_t i = 0; i < 8; i++) {
        (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
}

static void answer_send(struct rig *rig, struct line *line)
{
    char head[256];
    char body[64];
    char framing[64];
    char text[1024];

    int len = snprintf(body, sizeof(body), "{\"answer\":%u}", rig->arrivals);
    (void)snprintf(framing, sizeof(framing), "Content-Length: %d", rig->empty ? 0 : len);
    if (rig->chunked) {
        (void)snprintf(framing, sizeof(framing), "Transfer-Encoding: chunked");
        (void)snprintf(body, sizeof(body), "%x\r\n{\"answer\":%u}\r\n0\r\n\r\n", (unsigned)len,
                       rig->arrivals);
    }
    (void)snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nAnswer: %u\r\n%s\r\n\r\n", rig->arrivals,
                   framing);
    if (rig->apart) {
        line_say(line, head);
        turn_client(rig);
        head[0] = '\0';
    }
    (void)snprintf(text, sizeof(text), "%s%s%s", head, rig->empty ? "" : body, rig->behind);
    line_say(line, text);
}

static bool line_read(struct line *line)
{
    size_t room = sizeof(line->request) - 1 - line->len;
    ssize_t got;

    if (line->tls != NULL && !line->open) {
        line->open = SSL_accept(line->tls) == 1;
        return false;
    }
    if (line->tls != NULL) {
        got = SSL_read(line->tls, line->request + line->len, (int)room);
    } else {
        got = recv(line->fd, line->request + line->len, room, MSG_DONTWAIT);
    }
    line->len += got > 0 ? (size_t)got : 0;
    line->request[line->len] = '\0';
    return strstr(line->request, BODY) != NULL;
}

/* If there is one. */
static void line_accept(struct rig *rig)
{
    int on = 1;
    int fd = accept4(rig->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    assert_true(rig->line_count < LINES_MAX);
    struct line *line = &rig->lines[rig->line_count];
    rig->line_count += 1;
    *line = (struct line){ .fd = fd };
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
    if (rig->context != NULL) {
        line->tls = SSL_new(rig->context);
        assert_int_equal(SSL_set_fd(line->tls, fd), 1);
        SSL_set_accept_state(line->tls);
    }
}

static void turn(struct rig *rig)
{
    turn_client(rig);
    line_accept(rig);
    for (size_t i = 0; i < rig->line_count; i++) {
        if (rig->lines[i].fd >= 0 && line_read(&rig->lines[i])) {
            rig->lines[i].len = 0;
            rig->arrivals += 1;
            answer_send(rig, &rig->lines[i]);
        }
    }
}

static void call_submit(struct rig *rig)
{
    rig->call = (struct idem_http_call){
        .method = "POST",
        .url = rig->url,
        .body = IDEM_STR(BODY),
        .not_after_us = INT64_MAX,
        .connect_timeout_us = 5 * IDEM_US_PER_SECOND,
        .timeout_us = 10 * IDEM_US_PER_SECOND,
        .head_room = rig->head,
        .head_room_size = sizeof(rig->head),
    };
    assert_int_equal(idem_http_client_submit(rig->client, &rig->call), IDEM_OK);
}

static void call_run(struct rig *rig)
{
    struct idem_list done = { .count = 0 };

    call_submit(rig);
    while (done.count == 0) {
        turn(rig);
        idem_http_client_reap(rig->client, &done);
    }
    turn(rig); /* What has left arrives. */
}

/* The call arrives once, and its answer is its own. */
static void expect_own_answer(struct rig *rig, size_t connections)
{
    char own[32];
    unsigned before = rig->arrivals;

    call_run(rig);
    (void)snprintf(own, sizeof(own), "Answer: %u\n", before + 1);
    if (rig->call.verdict != IDEM_HTTP_ANSWERED || rig->arrivals != before + 1) {
        print_error("verdict %d (%s), %u arrivals\n", (int)rig->call.verdict, rig->call.detail,
                    rig->arrivals - before);
    }
    assert_int_equal(rig->call.verdict, IDEM_HTTP_ANSWERED);
    assert_int_equal(rig->call.status, 200);
    assert_true(idem_str_starts(rig->call.head, idem_str_from(own)));
    assert_int_equal(rig->arrivals, before + 1);
    assert_int_equal(rig->line_count, connections);
}

static struct line *line_last(struct rig *rig)
{
    assert_true(rig->line_count > 0);
    return &rig->lines[rig->line_count - 1];
}

static void an_answer_too_many_on_an_idle_connection_is_nobodys(void **state)
{
    (void)state;
    static const char *const strays[] = { STRAY, TIMEOUT, "x", "\r\n", "HTTP/1.1 2" };

    for (size_t i = 0; i < 2 * IDEM_ARRAY_COUNT(strays); i++) {
        struct rig *rig = rig_create(i % 2 == 1);
        expect_own_answer(rig, 1);
        line_say(line_last(rig), strays[i / 2]);
        expect_own_answer(rig, 2);
        expect_own_answer(rig, 2); /* The new one is kept. */
        rig_destroy(rig);
    }
}

static void a_timeout_answer_and_the_end_of_an_idle_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct rig *rig = rig_create(i % 2 == 1);
        expect_own_answer(rig, 1);
        line_say(line_last(rig), i < 2 ? TIMEOUT : "");
        line_close(line_last(rig));
        expect_own_answer(rig, 2);
        rig_destroy(rig);
    }
}

/* Again and again: every call costs a connection, and none is lost or repeated. */
static void a_server_that_always_says_too_much(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig *rig = rig_create(i == 1);
        for (size_t k = 1; k <= 10; k++) {
            expect_own_answer(rig, k);
            line_say(line_last(rig), STRAY);
        }
        assert_int_equal(rig->arrivals, 10);
        rig_destroy(rig);
    }
}

/*
 * In the same segment or record as the end of the answer, whichever way that ends. Behind a head of
 * its own, libcurl reads no more than the body: the rest of a record is OpenSSL's then, where no
 * look at the socket finds it.
 */
static void what_stands_behind_an_answer_is_nobodys(void **state)
{
    (void)state;
    static const char *const behind[] = { STRAY, "\r\n", "x", "HTTP/1.1 503 No\r\nContent-Le" };

    for (size_t i = 0; i < 12 * IDEM_ARRAY_COUNT(behind); i++) {
        struct rig *rig = rig_create(i % 2 == 1);
        rig->apart = i / 2 % 2 == 1;
        rig->chunked = i / 4 % 3 == 1;
        rig->empty = i / 4 % 3 == 2;
        rig->behind = behind[i / 12];
        if (rig->empty && rig->apart) {
            rig->apart = false; /* Its head is all of it. */
        }
        expect_own_answer(rig, 1);
        rig->behind = "";
        expect_own_answer(rig, 2);
        rig_destroy(rig);
    }
}

/* The listener has no room any more, but for who waits for it; returns who took the last place. */
static int listener_fill(struct rig *rig)
{
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    int filler = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(getsockname(rig->listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(listen(rig->listener, 0), 0);
    assert_int_equal(connect(filler, (const struct sockaddr *)&address, size), 0);
    return filler;
}

/* Lets the client's second SYN in, which comes after a second, and speaks before it can know. */
static void greet(struct rig *rig)
{
    struct pollfd next = { .fd = rig->listener, .events = POLLIN };
    line_accept(rig); /* The filler. */
    assert_int_equal(listen(rig->listener, 8), 0);
    assert_int_equal(poll(&next, 1, 10000), 1);
    line_accept(rig);
    line_say(line_last(rig), STRAY);
}

static void a_peer_that_speaks_first_gets_no_request(void **state)
{
    (void)state;
    for (size_t greetings = 1; greetings <= 2; greetings++) {
        struct rig *rig = rig_create(false);
        struct idem_list done = { .count = 0 };
        int fillers[2] = { listener_fill(rig), -1 };

        call_submit(rig);
        turn_client(rig);
        greet(rig);
        if (greetings == 2) {
            fillers[1] = listener_fill(rig);
            turn_client(rig);
            greet(rig);
        }
        while (done.count == 0) {
            turn(rig);
            idem_http_client_reap(rig->client, &done);
        }
        assert_int_equal(rig->call.verdict,
                         greetings == 1 ? IDEM_HTTP_ANSWERED : IDEM_HTTP_NOT_SENT);
        assert_int_equal(rig->arrivals, greetings == 1 ? 1 : 0);
        assert_int_equal(rig->line_count, greetings == 1 ? 3 : 4); /* Fillers included. */
        assert_false(rig->call.hopeless);
        for (size_t i = 0; i < greetings; i++) {
            (void)close(fillers[i]);
        }
        rig_destroy(rig);
    }
}

static void a_call_on_a_stale_connection_keeps_its_limits(void **state)
{
    (void)state;
    struct rig *rig = rig_create(false);
    struct idem_list done = { .count = 0 };
    struct idem_http_call *call = &rig->call;

    expect_own_answer(rig, 1);
    line_say(line_last(rig), STRAY);
    (void)close(rig->listener); /* The second try is refused. */
    rig->listener = -1;
    call_submit(rig);
    while (done.count == 0) {
        turn_client(rig);
        idem_http_client_reap(rig->client, &done);
    }
    assert_int_equal(call->verdict, IDEM_HTTP_NOT_SENT);
    assert_false(call->hopeless);
    assert_int_equal(rig->arrivals, 1);
    rig_destroy(rig);
}

/* TLS 1.3 with its tickets, and plain, in every way of saying where an answer ends. */
static void a_server_that_behaves_keeps_one_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        struct rig *rig = rig_create(i % 2 == 1);
        rig->apart = i / 2 % 2 == 1;
        rig->chunked = i / 4 == 1;
        rig->empty = i / 4 == 2;
        for (size_t k = 0; k < 1000; k++) {
            expect_own_answer(rig, 1);
        }
        if (i < 2) {
            print_message("%s: 1000 calls, connections opened: %zu\n", i == 0 ? "plain" : "TLS",
                          rig->line_count);
        }
        if (rig->context != NULL) {
            assert_int_equal(SSL_version(rig->lines[0].tls), TLS1_3_VERSION);
            assert_true(SSL_CTX_get_num_tickets(rig->context) > 0);
        }
        rig_destroy(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_too_many_on_an_idle_connection_is_nobodys),
        cmocka_unit_test(a_timeout_answer_and_the_end_of_an_idle_connection),
        cmocka_unit_test(a_server_that_always_says_too_much),
        cmocka_unit_test(what_stands_behind_an_answer_is_nobodys),
        cmocka_unit_test(a_peer_that_speaks_first_gets_no_request),
        cmocka_unit_test(a_call_on_a_stale_connection_keeps_its_limits),
        cmocka_unit_test(a_server_that_behaves_keeps_one_connection),
    };
    (void)signal(SIGPIPE, SIG_IGN); /* Of OpenSSL, on both sides; see the README. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
