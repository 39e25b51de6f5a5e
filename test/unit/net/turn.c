/*
 * Turns between connections.
 *
 * Goal: a caller who sends hundreds of requests at once makes nobody wait for all of them, and gets
 * each answer, whatever happens to its connection while it waits for its turn.
 * Method: real sockets, and a loop that is turned by hand: how many requests were served before
 * somebody else's answer is there to be counted.
 */
#include "net/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include "unit/net/harness.h"

#define H        "Host: a\r\n"
#define LATE_MS  2000
#define REQUESTS 300 /* Less than what one read takes. */
#define TURN_MAX 8

static void flood_send(struct harness *harness, int fd)
{
    static const struct idem_str request = { "GET /empty HTTP/1.1\r\nHost: a\r\n\r\n", 32 };
    static char flood[REQUESTS * 32];
    for (size_t i = 0; i < REQUESTS; i++) {
        memcpy(flood + i * request.len, request.data, request.len);
    }
    client_send(harness, fd, (struct idem_str){ .data = flood, .len = sizeof(flood) });
}

static void flood_answers(struct harness *harness, int fd)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        struct answer answer;
        client_answer(harness, fd, false, &answer);
        assert_int_equal(answer.status, 204);
    }
}

/* Sends a flood and turns the loop until it waits for a turn. */
static int client_waiting(struct harness *harness)
{
    size_t before = harness->request_count;
    int fd = client_connect(harness);
    flood_send(harness, fd);
    while (harness->request_count == before) {
        harness_turn(harness);
    }
    assert_true(harness->request_count < before + REQUESTS);
    return fd;
}

static void others_are_answered_before_a_flood_is(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int quiet = client_connect(&harness);
    int loud = client_waiting(&harness);
    client_send(&harness, quiet, IDEM_STR("GET /a HTTP/1.1\r\n" H "\r\n"));
    char peeked;
    while (recv(quiet, &peeked, 1, MSG_PEEK) < 0) {
        harness_turn(&harness);
    }
    assert_in_range(harness.request_count, 1, 8 * TURN_MAX);
    client_answer(&harness, quiet, false, &answer);
    assert_string_equal(answer.body, "GET /a? n=1 h=1 []");
    flood_answers(&harness, loud);
    flood_send(&harness, loud);
    flood_answers(&harness, loud);
    assert_int_equal(harness.request_count, 2 * REQUESTS + 1);
    assert_int_equal(close(quiet), 0);
    assert_int_equal(close(loud), 0);
    harness_close(&harness);
}

static void floods_are_answered_side_by_side(void **state)
{
    (void)state;
    enum {
        CLIENTS = 5
    };
    int fds[CLIENTS];
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    for (size_t i = 0; i < CLIENTS; i++) {
        fds[i] = client_waiting(&harness);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        flood_answers(&harness, fds[i]);
        assert_int_equal(close(fds[i]), 0);
    }
    assert_int_equal(harness.request_count, CLIENTS * REQUESTS);
    harness_until_connections(&harness, 0);
    harness_close(&harness);
}

static void a_caller_who_ends_its_side_gets_every_answer(void **state)
{
    (void)state;
    struct harness harness;
    bool reset = true;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_waiting(&harness);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    flood_answers(&harness, fd);
    assert_true(client_ends(&harness, fd, LATE_MS, &reset));
    assert_false(reset);
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void a_caller_who_resets_is_forgotten(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_waiting(&harness);
    struct linger linger = { .l_onoff = 1 };
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    assert_int_equal(close(fd), 0);
    harness_until_connections(&harness, 0);
    assert_true(harness.request_count < REQUESTS);
    harness_close(&harness);
}

static void draining_answers_one_more_and_says_that_it_closes(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int fd = client_waiting(&harness);
    size_t served = harness.request_count;
    idem_server_drain(harness.server);
    for (size_t i = 0; i <= served; i++) {
        client_answer(&harness, fd, false, &answer);
        assert_int_equal(answer.status, 204);
        assert_int_equal(answer.closes, i == served);
    }
    harness_until_connections(&harness, 0);
    assert_int_equal(harness.request_count, served + 1);
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

static void closing_ends_who_waits(void **state)
{
    (void)state;
    struct harness harness;
    struct idem_server_options options = idem_server_options_default();
    harness_open(&harness, &options);
    int first = client_waiting(&harness);
    int second = client_waiting(&harness);
    harness_close(&harness);
    assert_int_equal(close(first), 0);
    assert_int_equal(close(second), 0);
}

static void who_waits_above_the_budget_is_refused(void **state)
{
    (void)state;
    struct harness harness;
    struct answer answer = { 0 };
    struct idem_server_options options = idem_server_options_default();
    options.pending_max = 1000;
    harness_open(&harness, &options);
    int fd = client_connect(&harness);
    flood_send(&harness, fd);
    for (size_t i = 0; i < TURN_MAX; i++) {
        client_answer(&harness, fd, false, &answer);
        assert_int_equal(answer.status, 204);
    }
    client_answer(&harness, fd, false, &answer);
    assert_int_equal(answer.status, 503);
    assert_true(answer.closes);
    assert_int_equal(harness.request_count, TURN_MAX);
    harness_until_connections(&harness, 0);
    assert_int_equal(close(fd), 0);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_answered_before_a_flood_is),
        cmocka_unit_test(floods_are_answered_side_by_side),
        cmocka_unit_test(a_caller_who_ends_its_side_gets_every_answer),
        cmocka_unit_test(a_caller_who_resets_is_forgotten),
        cmocka_unit_test(draining_answers_one_more_and_says_that_it_closes),
        cmocka_unit_test(closing_ends_who_waits),
        cmocka_unit_test(who_waits_above_the_budget_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
