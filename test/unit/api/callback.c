/*
 * What providers say by themselves, from socket to socket.
 *
 * Goal: an event changes something once, however often it comes; whoever said it hears "taken" only
 * once it is durable, and must say it again otherwise; what is forged, stale or not readable
 * changes nothing and is counted; nobody needs a bearer and nobody is helped by one.
 *
 * Method: events to a real server, engine and memory store; a scripted reader stands for signature
 * and protocol, which have tests of their own. What changed is read as an operator reads it.
 */
#include "api/api.h"

#include <unistd.h>

#include "api/api_internal.h"
#include "scene.h"

/* A payment whose answer got lost; its operation's id. */
static const char *payment_lose(void)
{
    static char id[IDEM_UID_TEXT_LEN + 1];
    edge.port.outcome = IDEM_OUTCOME_UNKNOWN;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1\nPrefer: wait=0" JSON ORDER("A-1")), "202");
    (void)snprintf(id, sizeof(id), "%s", edge_id());
    edge_turn(&edge);
    return id;
}

static bool operation_says(const char *id, const char *text)
{
    return strstr(edge_ask(&edge, with_id("GET /v1/admin/operations/{id} HTTP/1.1" ROOT, id)),
                  text) != NULL;
}

/* The value of an event's counter. */
static long counted(const char *name)
{
    const char *page = edge_ask(&edge, "GET /metrics HTTP/1.1");
    char line[96];
    (void)snprintf(line, sizeof(line), "\n%s ", name);
    const char *found = strstr(page, line);
    if (found == NULL) {
        fail_msg("no %s", name);
    }
    return strtol(found + strlen(line), NULL, 10);
}

static void an_event_ends_what_was_unknown_once(void **state)
{
    (void)state;
    const char *id = payment_lose();
    event_script(effect_id_of(id), IDEM_OUTCOME_SUCCESS, "evt-1");
    const char *answer = edge_ask(&edge, EVENT);
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\n"));
    assert_non_null(strstr(answer, "Content-Type: text/plain\n"));
    assert_non_null(strstr(answer, "\n\ntaken\n"));
    assert_string_equal(listener.body, "{}");
    assert_true(operation_says(id, "\"state\":\"succeeded\""));
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    const char *whole = edge_ask(&edge, with_id("GET /v1/admin/operations/{id} HTTP/1.1" ROOT, id));
    char before[16384];
    (void)snprintf(before, sizeof(before), "%s", whole);

    EXPECT_TEXT(verdict(EVENT), "200");
    assert_true(operation_says(id, strstr(before, "\n\n") + 2)); /* Not a byte has changed. */
    assert_int_equal(edge.port.sends, 1);
    assert_int_equal(counted("idem_callbacks_total{verdict=\"ok\"}"), 2);
    assert_int_equal(counted("idem_callbacks_matched_total"), 2);
    assert_int_equal(counted("idem_callbacks_unmatched_total"), 0);
}

static void who_waits_hears_of_an_event(void **state)
{
    (void)state;
    edge.port.hold = true;
    int payer = edge_connect(&edge);
    edge_send(&edge, payer, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    EXPECT_TEXT(verdict("GET /v1/admin/operations HTTP/1.1" ROOT), "200");
    event_script(effect_id_of(edge_id()), IDEM_OUTCOME_SUCCESS, "evt-1");
    EXPECT_TEXT(verdict(EVENT), "200");
    assert_non_null(strstr(edge_answer(&edge, payer), "HTTP/1.1 201 Created\n"));
    assert_int_equal(close(payer), 0);
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS); /* The synchronous answer comes last. */
    EXPECT_TEXT(body_of("GET /v1/admin/cases HTTP/1.1" ROOT), "{\"cases\":[],\"next\":null}\n");
}

static void what_is_not_right_changes_nothing_and_is_counted(void **state)
{
    static const struct {
        enum idem_callback_verdict said;
        const char *expected;
        const char *counter;
    } rows[] = {
        { IDEM_CALLBACK_FORGED, "401", "idem_callbacks_total{verdict=\"forged\"}" },
        { IDEM_CALLBACK_STALE, "401", "idem_callbacks_total{verdict=\"stale\"}" },
        { IDEM_CALLBACK_FUTURE, "401", "idem_callbacks_total{verdict=\"future\"}" },
        { IDEM_CALLBACK_UNREADABLE, "401", "idem_callbacks_total{verdict=\"unreadable\"}" },
        { IDEM_CALLBACK_IGNORED, "200", "idem_callbacks_total{verdict=\"ignored\"}" },
    };
    (void)state;
    const char *id = payment_lose();
    event_script(effect_id_of(id), IDEM_OUTCOME_SUCCESS, "evt-1");
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        listener.verdict = rows[i].said;
        print_message("# %s\n", rows[i].counter);
        EXPECT_TEXT(verdict(EVENT), rows[i].expected);
        EXPECT_TEXT(verdict("POST /v1/callbacks/sandbox HTTP/1.1" ROOT "\n\n{}"), rows[i].expected);
        assert_int_equal(counted(rows[i].counter), 2);
        assert_true(operation_says(id, "\"state\":\"unknown\""));
    }
    assert_int_equal(counted("idem_callbacks_matched_total"), 0);
    listener.verdict = IDEM_CALLBACK_OK;
    EXPECT_TEXT(verdict(EVENT), "200"); /* None of them has taken its place. */
    assert_true(operation_says(id, "\"state\":\"succeeded\""));
}

static void an_event_about_nothing_of_ours_is_taken(void **state)
{
    (void)state;
    event_script(IDEM_STR("c0000000000000000000000000x"), IDEM_OUTCOME_SUCCESS, "evt-1");
    EXPECT_TEXT(verdict(EVENT), "200");
    assert_int_equal(counted("idem_callbacks_unmatched_total"), 1);
    assert_int_equal(counted("idem_callbacks_matched_total"), 0);
    EXPECT_TEXT(body_of("GET /v1/admin/operations?state=cases HTTP/1.1" ROOT),
                "{\"operations\":[],\"next\":null}\n");
}

static void nobody_listens_elsewhere(void **state)
{
    static const struct {
        const char *request;
        const char *expected;
    } rows[] = {
        { "POST /v1/callbacks/nowhere HTTP/1.1\n\n{}", "404 not-found" },
        { "POST /v1/callbacks/ HTTP/1.1\n\n{}", "404 not-found" },
        { "POST /v1/callbacks HTTP/1.1\n\n{}", "404 not-found" },
        { "POST /v1/callbacks/sandbox/more HTTP/1.1\n\n{}", "404 not-found" },
        { "POST /v1/callbacks/a234567890123456789012345678901234 HTTP/1.1\n\n{}", "404 not-found" },
        { "GET /v1/callbacks/sandbox HTTP/1.1", "405 method-not-allowed" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].request);
        EXPECT_TEXT(verdict(rows[i].request), rows[i].expected);
    }
    assert_int_equal(counted("idem_callbacks_total{verdict=\"no-entry\"}"), 1);
    assert_int_equal(counted("idem_callbacks_total{verdict=\"ok\"}"), 0);
}

static void without_a_reader_nobody_listens(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(EVENT), "404 not-found");
    assert_int_equal(counted("idem_callbacks_total{verdict=\"no-entry\"}"), 1);
}

static void what_cannot_be_written_is_said_again(void **state)
{
    (void)state;
    event_script(IDEM_STR("c0000000000000000000000000x"), IDEM_OUTCOME_SUCCESS, "evt-1");
    idem_engine_drain(edge.engine);
    const char *answer = edge_ask(&edge, EVENT);
    assert_non_null(strstr(answer, "HTTP/1.1 503 "));
    assert_non_null(strstr(answer, "\nRetry-After: 1\n"));
    assert_null(strstr(answer, "taken"));
    assert_int_equal(counted("idem_callbacks_later_total"), 1);
    assert_int_equal(counted("idem_callbacks_unmatched_total"), 0);
}

/* More than there are places for, all before the store was asked once. */
static void a_crowd_is_told_to_come_again(void **state)
{
    static int fds[IDEM_CALLBACK_VISITS + 1];
    size_t taken = 0;
    size_t later = 0;
    (void)state;
    event_script(IDEM_STR("c0000000000000000000000000x"), IDEM_OUTCOME_SUCCESS, "evt-1");
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fds); i++) {
        fds[i] = edge_connect(&edge);
        edge_write(fds[i], EVENT);
    }
    for (int i = 0; i < 8 || edge.api->callbacks_crowded == 0; i++) {
        (void)uv_run(&edge.loop, UV_RUN_NOWAIT);
        assert_true(i < 1000);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fds); i++) {
        const char *answer = edge_answer(&edge, fds[i]);
        bool is_later = strstr(answer, "HTTP/1.1 503 ") != NULL;
        assert_true(!is_later || strstr(answer, "\nRetry-After: 1\n") != NULL);
        later += is_later ? 1 : 0;
        taken += strstr(answer, "HTTP/1.1 200 ") != NULL ? 1 : 0;
        assert_int_equal(close(fds[i]), 0);
    }
    edge_turn(&edge);
    assert_int_equal(taken, IDEM_CALLBACK_VISITS);
    assert_int_equal(later, 1);
    assert_int_equal(counted("idem_callbacks_crowded_total"), 1);
}

/* Whoever has gone before the commit is answered to nobody, and its place is free again. */
static void whoever_hangs_up_leaves_its_place(void **state)
{
    (void)state;
    const char *id = payment_lose();
    event_script(effect_id_of(id), IDEM_OUTCOME_SUCCESS, "evt-1");
    int fd = edge_connect(&edge);
    edge_write(fd, EVENT);
    for (int i = 0; i < 8 || edge.api->callback_free.count == IDEM_CALLBACK_VISITS; i++) {
        (void)uv_run(&edge.loop, UV_RUN_NOWAIT);
        assert_true(i < 1000);
    }
    assert_int_equal(close(fd), 0);
    for (int i = 0; i < 8; i++) {
        (void)uv_run(&edge.loop, UV_RUN_NOWAIT);
    }
    edge_turn(&edge);
    assert_int_equal(edge.api->callback_free.count, IDEM_CALLBACK_VISITS);
    assert_true(operation_says(id, "\"state\":\"succeeded\""));
}

#define LISTENING(name) cmocka_unit_test_setup_teardown(name, setup_listening, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LISTENING(an_event_ends_what_was_unknown_once),
        LISTENING(who_waits_hears_of_an_event),
        LISTENING(what_is_not_right_changes_nothing_and_is_counted),
        LISTENING(an_event_about_nothing_of_ours_is_taken),
        LISTENING(nobody_listens_elsewhere),
        cmocka_unit_test_setup_teardown(without_a_reader_nobody_listens, setup, teardown),
        LISTENING(what_cannot_be_written_is_said_again),
        LISTENING(a_crowd_is_told_to_come_again),
        LISTENING(whoever_hangs_up_leaves_its_place),
    };
    return cmocka_run_group_tests_name("api/callback", tests, NULL, NULL);
}
