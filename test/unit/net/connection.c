/*
 * A connection in time: deadlines, callers who leave, several requests, limits, the end.
 *
 * Goal: no caller holds anything longer than its deadline, whatever it drips; a caller who leaves
 * is noticed at once and costs its owner nothing but an answer into nothing; answers come in order.
 * Method: real sockets against short deadlines. Time is only ever compared with generous bounds: a
 * deadline of 250 ms must have passed after 250 ms and be over well before 2 s.
 */
#include "net/server.h"

#include <errno.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit/net/harness.h"

#define H        "Host: a\r\n"
#define SHORT_MS 400
#define LATE_MS  2000

static struct idem_server_options options_short(void)
{
    struct idem_server_options options = idem_server_options_default();
    options.head_timeout_us = SHORT_MS * IDEM_US_PER_MS;
    options.body_timeout_us = SHORT_MS * IDEM_US_PER_MS;
    options.idle_timeout_us = SHORT_MS * IDEM_US_PER_MS;
    options.write_timeout_us = SHORT_MS * IDEM_US_PER_MS;
    return options;
}

static void client_reset(int fd)
{
    struct linger linger = { .l_onoff = 1 };
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    assert_int_equal(close(fd), 0);
}

/* Sends `byte` about every 20 ms until something comes back, `began_ms` taken before the first. */
static void drip(struct harness *harness, int fd, char byte, int64_t began_ms)
{
    int64_t next_ms = now_ms();
    char peeked;
    while (recv(fd, &peeked, 1, MSG_PEEK) < 0 && errno == EAGAIN) {
        assert_true(now_ms() - began_ms < LATE_MS);
        if (now_ms() >= next_ms) {
            next_ms += 20;
            client_send(harness, fd, (struct idem_str){ .data = &byte, .len = 1 });
        }
        harness_turn(harness);
    }
    assert_true(now_ms() - began_ms >= SHORT_MS - 1);
}

static void expect_slow(struct harness *harness, const char *begin, char byte)
{
    struct answer answer;
    bool reset = true;
    int fd = client_connect(harness);
    int64_t began_ms = now_ms();
    client_send(harness, fd, idem_str_from(begin));
    drip(harness, fd, byte, began_ms);
    client_answer(harness, fd, false, &answer);
    assert_int_equal(answer.status, 408);
    assert_true(client_ends(harness, fd, LATE_MS, &reset));
    assert_false(reset);
    assert_int_equal(close(fd), 0);
}

static void dripped_bytes_do_not_extend_a_deadline(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = options_short();
    harness_open(&harness, &options);
    expect_slow(&harness, "G", 'E');
    expect_slow(&harness, "GET /a HTTP/1.1\r\n" H "X: ", 'x');
    expect_slow(&harness, "POST /a HTTP/1.1\r\n" H "Content-Length: 1000\r\n\r\n", 'x');
    expect_slow(&harness, "POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3e8\r\n",
                'x');
    harness_close(&harness);
}

/* Turns the loop for `wait_ms`: time itself is what is tested. */
static void let_pass(struct harness *harness, int64_t wait_ms)
{
    int64_t until_ms = now_ms() + wait_ms;
    while (now_ms() < until_ms) {
        harness_turn(harness);
    }
}

static void each_head_has_its_own_deadline(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    struct idem_server_options options = options_short();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("GET /a HTTP/1.1\r\n"));
    let_pass(&harness, SHORT_MS / 2);
    int64_t began_ms = now_ms();
    client_send(&harness, fd, IDEM_STR(H "\r\nGET /a HTTP/1.1\r\n"));
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 200);
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 408);
    assert_true(now_ms() - began_ms >= SHORT_MS - 20);
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void silent_connections_just_end(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    bool reset = true;
    struct idem_server_options options = options_short();
    harness_open(&harness, &options);
    int64_t began_ms = now_ms();
    int silent = client_connect(&harness);
    assert_true(client_ends(&harness, silent, LATE_MS, &reset));
    assert_false(reset);
    assert_true(now_ms() - began_ms >= SHORT_MS - 1);
    assert_int_equal(close(silent), 0);

    int used = client_connect(&harness);
    began_ms = now_ms(); /* Before the last byte of the answer can be there. */
    client_send(&harness, used, IDEM_STR("GET /a HTTP/1.1\r\n" H "\r\n"));
    client_answer(&harness, used, false, &answer);
    assert_int_equal(answer.status, 200);
    assert_true(client_ends(&harness, used, LATE_MS, &reset));
    assert_true(now_ms() - began_ms >= SHORT_MS - 50);
    assert_int_equal(close(used), 0);
    harness_close(&harness);
}

static void an_answer_that_is_not_taken_has_a_deadline(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = options_short();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("GET /big HTTP/1.1\r\n" H "\r\n"));
    int64_t began_ms = now_ms();
    harness_until_connections(&harness, 0);
    assert_true(now_ms() - began_ms < LATE_MS);
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void a_large_answer_arrives_whole(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd,
                IDEM_STR("GET /big HTTP/1.1\r\n" H "\r\nGET /a HTTP/1.1\r\n" H "\r\n"));
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.body_len, BIG_LEN);
    client_answer(&harness, fd, false, &answer);
    assert_string_equal(answer.body, "GET /a? n=2 h=1 []");
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void a_caller_who_ends_its_side_is_noticed_and_still_answered(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    bool reset = true;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("GET /hold HTTP/1.1\r\n" H "\r\n"));
    harness_until(&harness, &harness.held_count, 1);
    assert_int_equal(harness.gone_count, 0);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    harness_until(&harness, &harness.gone_count, 1);
    harness_release(&harness, "late");
    client_answer(&harness, fd, false, &answer);
    assert_string_equal(answer.body, "late");
    assert_true(answer.closes);
    assert_true(client_ends(&harness, fd, LATE_MS, &reset));
    assert_false(reset);
    assert_int_equal(close(fd), 0);
    harness_until_connections(&harness, 0);
    assert_int_equal(harness.gone_count, 1);
    harness_close(&harness);
}

static void requests_sent_before_the_end_are_all_answered(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    bool reset = true;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd,
                IDEM_STR("GET /hold HTTP/1.1\r\n" H "\r\nGET /hold HTTP/1.1\r\n" H "\r\nGET /ha"));
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    harness_until(&harness, &harness.gone_count, 1);
    assert_int_equal(harness.held_count, 1);
    harness_release(&harness, "one");
    harness_until(&harness, &harness.gone_count, 2);
    harness_release(&harness, "two");
    client_answer(&harness, fd, false, &answer);
    assert_string_equal(answer.body, "one");
    client_answer(&harness, fd, false, &answer);
    assert_string_equal(answer.body, "two");
    assert_true(client_ends(&harness, fd, LATE_MS, &reset));
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void a_reset_is_noticed_and_the_answer_goes_nowhere(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd,
                IDEM_STR("POST /hold HTTP/1.1\r\n" H "Content-Length: 4\r\n\r\nbody"));
    harness_until(&harness, &harness.held_count, 1);
    client_reset(fd);
    harness_until(&harness, &harness.gone_count, 1);
    harness_until_connections(&harness, 0);
    EXPECT_TEXT(idem_exchange_request(harness.held[0])->body, "body");
    EXPECT_TEXT(idem_exchange_request(harness.held[0])->path, "/hold");
    harness_release(&harness, "nobody");
    assert_int_equal(harness.gone_count, 1);
    harness_close(&harness);
}

static void an_owner_may_answer_while_it_is_told(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    harness.reply_when_gone = true;
    for (size_t round = 1; round <= 2; round++) {
        int fd = client_connect(&harness);
        client_send(&harness, fd, IDEM_STR("GET /hold HTTP/1.1\r\n" H "\r\n"));
        harness_until(&harness, &harness.held_count, 1);
        if (round == 1) {
            client_reset(fd);
        } else {
            assert_int_equal(close(fd), 0);
        }
        harness_until(&harness, &harness.gone_count, round);
        harness_until_connections(&harness, 0);
    }
    int fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("GET /hold HTTP/1.1\r\n" H "\r\n"));
    harness_until(&harness, &harness.held_count, 1);
    harness_close(&harness); /* Is told here. */
    assert_int_equal(harness.gone_count, 3);
    assert_int_equal(close(fd), 0);
}

static void answers_come_in_the_order_of_requests(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd,
                IDEM_STR("GET /hold HTTP/1.1\r\n" H "\r\nGET /second HTTP/1.1\r\n" H "\r\n"));
    client_send(&harness, fd, IDEM_STR("GET /third HTTP/1.1\r\n" H "\r\n"));
    for (int i = 0; i < 10; i++) {
        harness_turn(&harness);
    }
    assert_int_equal(harness.request_count, 1);
    harness_release(&harness, "first");
    client_answer(&harness, fd, false, &answer);
    assert_string_equal(answer.body, "first");
    client_answer(&harness, fd, false, &answer);
    assert_string_equal(answer.body, "GET /second? n=2 h=1 []");
    client_answer(&harness, fd, false, &answer);
    assert_string_equal(answer.body, "GET /third? n=3 h=1 []");
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

/* More than fits the early bytes and less than fits two sockets. */
static void many_pipelined_requests_wait_in_the_socket(void **state)
{
    (void)state;
    enum {
        REQUESTS = 3000
    };
    static const struct idem_str request = { "GET /empty HTTP/1.1\r\nHost: a\r\n\r\n", 32 };
    static char flood[REQUESTS * 32];
    struct harness harness;
    struct answer answer;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("GET /hold HTTP/1.1\r\n" H "\r\n"));
    for (size_t i = 0; i < REQUESTS; i++) {
        memcpy(flood + i * request.len, request.data, request.len);
    }
    client_send(&harness, fd, (struct idem_str){ .data = flood, .len = sizeof(flood) });
    assert_int_equal(harness.held_count, 1);
    harness_release(&harness, "first");
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 200);
    for (size_t i = 0; i < REQUESTS; i++) {
        client_answer(&harness, fd, false, &answer);
        assert_int_equal(answer.status, 204);
    }
    assert_int_equal(harness.request_count, REQUESTS + 1);
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void a_caller_who_expects_is_told_to_continue(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd,
                IDEM_STR("POST /a HTTP/1.1\r\n" H "Content-Length: 2\r\n"
                         "Expect: 100-Continue\r\n\r\n"));
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 100);
    client_send(&harness, fd, IDEM_STR("hi"));
    client_answer(&harness, fd, false, &answer);
    assert_string_equal(answer.body, "POST /a? n=1 h=3 [hi]");
    /* Not to one who did not wait, nor where no body comes, nor to HTTP/1.0. */
    client_send(&harness, fd,
                IDEM_STR("POST /a HTTP/1.1\r\n" H "Content-Length: 2\r\n"
                         "Expect: 100-continue\r\n\r\nhi"));
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 200);
    client_send(&harness, fd, IDEM_STR("GET /a HTTP/1.1\r\n" H "Expect: 100-continue\r\n\r\n"));
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 200);
    client_send(&harness, fd,
                IDEM_STR("POST /a HTTP/1.0\r\nContent-Length: 2\r\n"
                         "Expect: 100-continue\r\n\r\n"));
    client_send(&harness, fd, IDEM_STR("hi"));
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 200);
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void a_refusal_can_be_read_by_a_caller_who_still_sends(void **state)
{
    (void)state;
    static char body[200 * 1024];
    struct harness harness;
    struct answer answer;
    bool reset = true;
    struct idem_server_options options = idem_server_options_default();
    options.body_max = 10;
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("POST /a HTTP/1.1\r\n" H "Content-Length: 204800\r\n\r\n"));
    client_send(&harness, fd, (struct idem_str){ .data = body, .len = sizeof(body) });
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 413);
    assert_true(client_ends(&harness, fd, LATE_MS, &reset));
    assert_false(reset);
    assert_int_equal(idem_server_connections(harness.server), 1); /* Waits for our close. */
    assert_int_equal(close(fd), 0);
    harness_until_connections(&harness, 0);

    fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("POST /a HTTP/1.1\r\n" H "Content-Length: 999999\r\n\r\n"));
    client_send(&harness, fd, (struct idem_str){ .data = body, .len = sizeof(body) });
    client_send(&harness, fd, (struct idem_str){ .data = body, .len = sizeof(body) });
    int64_t began_ms = now_ms();
    harness_until_connections(&harness, 0);  /* It sends without end: closed by the bound, */
    assert_true(now_ms() - began_ms < 1500); /* not by the time a connection may linger. */
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void a_lingering_connection_has_a_deadline(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("GET /last HTTP/1.1\r\n" H "\r\n"));
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 200);
    harness_until_connections(&harness, 0); /* Though this side stays open. */
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void an_exchange_can_be_broken(void **state)
{
    (void)state;
    struct harness harness;
    bool reset = false;
    char bytes[sizeof(RAW_TEXT)] = { 0 };
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("GET /raw HTTP/1.1\r\n" H "\r\n"));
    harness_turn(&harness);
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), sizeof(RAW_TEXT) - 1);
    assert_string_equal(bytes, RAW_TEXT);
    assert_true(client_ends(&harness, fd, LATE_MS, &reset));
    assert_false(reset);
    assert_int_equal(close(fd), 0);

    fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("GET /reset HTTP/1.1\r\n" H "\r\n"));
    struct answer answer;
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 0);
    assert_true(answer.reset);
    assert_int_equal(close(fd), 0);
    harness_until_connections(&harness, 0);
    harness_close(&harness);
}

static void connections_above_the_limit_are_told_so(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    bool reset = true;
    struct idem_server_options options = idem_server_options_default();
    options.connections_max = 2;
    harness_open(&harness, &options);
    int first = client_connect(&harness);
    int second = client_connect(&harness);
    int third = client_connect(&harness);
    client_send(&harness, third, IDEM_STR("GET /a HTTP/1.1\r\n" H "\r\n"));
    client_answer(&harness, third, false, &answer);
    assert_int_equal(answer.status, 503);
    assert_true(client_ends(&harness, third, LATE_MS, &reset));
    assert_false(reset);
    assert_int_equal(idem_server_connections(harness.server), 2);
    assert_int_equal(close(third), 0);

    assert_int_equal(close(first), 0);
    harness_until_connections(&harness, 1);
    int fourth = client_connect(&harness);
    client_send(&harness, fourth, IDEM_STR("GET /a HTTP/1.1\r\n" H "\r\n"));
    client_answer(&harness, fourth, false, &answer);
    assert_int_equal(answer.status, 200);
    assert_int_equal(close(second), 0);
    assert_int_equal(close(fourth), 0);
    harness_close(&harness);
}

static void a_crowd_is_not_told_without_bound(void **state)
{
    (void)state;
    enum {
        CLIENTS = 140,
        TOLD = 128
    };
    int fds[CLIENTS];
    size_t told = 0;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    options.connections_max = 1;
    harness_open(&harness, &options);
    for (size_t i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(&harness);
    }
    for (size_t i = 1; i < CLIENTS; i++) {
        struct answer answer;
        client_answer(&harness, fds[i], false, &answer);
        assert_int_equal(answer.status, i <= TOLD ? 503 : 0);
        told += answer.status == 503 ? 1 : 0;
    }
    assert_int_equal(told, TOLD);
    assert_int_equal(idem_server_connections(harness.server), 1);
    for (size_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(close(fds[i]), 0);
    }
    harness_close(&harness);
}

/* Sends all but the last byte of a request whose body has `size` bytes. */
static int client_half(struct harness *harness, size_t size)
{
    static const char body[8192] = { 0 };
    char head[128];
    struct idem_buf buf;
    idem_buf_init(&buf, head, sizeof(head));
    idem_buf_add(&buf, IDEM_STR("POST /a HTTP/1.1\r\n" H "Content-Length: "));
    idem_buf_add_i64(&buf, (int64_t)size);
    idem_buf_add(&buf, IDEM_STR("\r\n\r\n"));
    assert_true(size <= sizeof(body));
    int fd = client_connect(harness);
    client_send(harness, fd, idem_buf_str(&buf));
    client_send(harness, fd, (struct idem_str){ .data = body, .len = size - 1 });
    harness_turn(harness);
    harness_turn(harness);
    return fd;
}

static void half_requests_share_a_budget_and_whole_ones_need_none(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    bool reset = true;
    struct idem_server_options options = idem_server_options_default();
    options.pending_max = 22000; /* Two of 8 KiB with what they need besides, and not three. */
    harness_open(&harness, &options);
    int first = client_half(&harness, 8192);
    int second = client_half(&harness, 8192);
    int third = client_half(&harness, 8192);
    client_answer(&harness, third, false, &answer);
    assert_int_equal(answer.status, 503);
    assert_true(client_ends(&harness, third, LATE_MS, &reset));
    assert_false(reset);
    assert_int_equal(close(third), 0);

    int whole = client_connect(&harness);
    client_send(&harness, whole, IDEM_STR("POST /a HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\nx"));
    client_answer(&harness, whole, false, &answer);
    assert_string_equal(answer.body, "POST /a? n=1 h=2 [x]");
    assert_int_equal(close(whole), 0);

    client_send(&harness, first, IDEM_STR("x")); /* Who was inside before is not put out. */
    client_answer(&harness, first, false, &answer);
    assert_int_equal(answer.status, 200);
    int fourth = client_half(&harness, 8192);
    client_send(&harness, fourth, IDEM_STR("x"));
    client_answer(&harness, fourth, false, &answer);
    assert_int_equal(answer.status, 200);
    assert_int_equal(close(first), 0);
    assert_int_equal(close(second), 0);
    assert_int_equal(close(fourth), 0);
    harness_until_connections(&harness, 0);
    harness_close(&harness);
}

static void draining_ends_idle_connections_and_lets_others_finish(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    bool reset = true;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int idle = client_connect(&harness);
    int busy = client_connect(&harness);
    int half = client_connect(&harness);
    client_send(&harness, busy, IDEM_STR("GET /hold HTTP/1.1\r\n" H "\r\n"));
    client_send(&harness, half, IDEM_STR("GET /half HTTP/1.1\r\n"));
    harness_until(&harness, &harness.held_count, 1);
    idem_server_drain(harness.server);
    assert_true(client_ends(&harness, idle, LATE_MS, &reset));
    harness_until_connections(&harness, 2);
    client_send(&harness, half, IDEM_STR(H "\r\n"));
    client_answer(&harness, half, false, &answer);
    assert_string_equal(answer.body, "GET /half? n=1 h=1 []");
    assert_true(answer.closes);
    harness_release(&harness, "done");
    client_answer(&harness, busy, false, &answer);
    assert_string_equal(answer.body, "done");
    assert_true(answer.closes);
    assert_false(idem_server_closed(harness.server));
    assert_int_equal(close(idle), 0);
    assert_int_equal(close(busy), 0);
    assert_int_equal(close(half), 0);
    harness_until_connections(&harness, 0);
    harness_close(&harness);
}

static void draining_ends_a_connection_whose_answer_is_on_its_way(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    bool reset = true;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    client_send(&harness, fd, IDEM_STR("GET /big HTTP/1.1\r\n" H "\r\n"));
    harness_until(&harness, &harness.request_count, 1);
    idem_server_drain(harness.server);
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.body_len, BIG_LEN);
    assert_true(client_ends(&harness, fd, LATE_MS, &reset));
    assert_false(reset);
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void closing_tells_owners_and_outlives_nothing(void **state)
{
    (void)state;
    struct harness harness;
    bool reset = false;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int busy = client_connect(&harness);
    int half = client_connect(&harness);
    client_send(&harness, busy, IDEM_STR("GET /hold HTTP/1.1\r\n" H "\r\n"));
    client_send(&harness, half,
                IDEM_STR("POST /half HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\nhal"));
    harness_until(&harness, &harness.held_count, 1);
    idem_server_close(harness.server);
    assert_int_equal(harness.gone_count, 1);
    assert_true(client_ends(&harness, busy, LATE_MS, &reset));
    assert_true(client_ends(&harness, half, LATE_MS, &reset));
    harness_close(&harness); /* Answers the held exchange after the destruction. */
    assert_int_equal(close(busy), 0);
    assert_int_equal(close(half), 0);
}

static void idle_connections_are_small(void **state)
{
    (void)state;
    enum {
        CLIENTS = 1000
    };
    static int fds[CLIENTS];
    struct harness harness;
    struct answer answer;
    struct idem_server_options options = idem_server_options_default();
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    harness_open(&harness, &options);
    size_t before = mallinfo2().uordblks; /* Stays zero under a sanitizer's heap. */
    for (size_t i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(&harness);
        client_send(&harness, fds[i], IDEM_STR("GET /empty HTTP/1.1\r\n" H "\r\n"));
        client_answer(&harness, fds[i], false, &answer);
        assert_int_equal(answer.status, 204);
    }
    assert_int_equal(idem_server_connections(harness.server), CLIENTS);
    size_t each = (mallinfo2().uordblks - before) / CLIENTS;
    assert_in_range(each, 0, 2048);
    for (size_t i = 0; i < CLIENTS; i++) {
        client_send(&harness, fds[i], IDEM_STR("GET /a HTTP/1.1\r\n" H "\r\n"));
        client_answer(&harness, fds[i], false, &answer);
        assert_string_equal(answer.body, "GET /a? n=2 h=1 []");
        assert_int_equal(close(fds[i]), 0);
    }
    harness_until_connections(&harness, 0);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dripped_bytes_do_not_extend_a_deadline),
        cmocka_unit_test(each_head_has_its_own_deadline),
        cmocka_unit_test(silent_connections_just_end),
        cmocka_unit_test(an_answer_that_is_not_taken_has_a_deadline),
        cmocka_unit_test(a_large_answer_arrives_whole),
        cmocka_unit_test(a_caller_who_ends_its_side_is_noticed_and_still_answered),
        cmocka_unit_test(requests_sent_before_the_end_are_all_answered),
        cmocka_unit_test(a_reset_is_noticed_and_the_answer_goes_nowhere),
        cmocka_unit_test(an_owner_may_answer_while_it_is_told),
        cmocka_unit_test(answers_come_in_the_order_of_requests),
        cmocka_unit_test(many_pipelined_requests_wait_in_the_socket),
        cmocka_unit_test(a_caller_who_expects_is_told_to_continue),
        cmocka_unit_test(a_refusal_can_be_read_by_a_caller_who_still_sends),
        cmocka_unit_test(a_lingering_connection_has_a_deadline),
        cmocka_unit_test(an_exchange_can_be_broken),
        cmocka_unit_test(connections_above_the_limit_are_told_so),
        cmocka_unit_test(a_crowd_is_not_told_without_bound),
        cmocka_unit_test(half_requests_share_a_budget_and_whole_ones_need_none),
        cmocka_unit_test(draining_ends_idle_connections_and_lets_others_finish),
        cmocka_unit_test(draining_ends_a_connection_whose_answer_is_on_its_way),
        cmocka_unit_test(closing_tells_owners_and_outlives_nothing),
        cmocka_unit_test(idle_connections_are_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
