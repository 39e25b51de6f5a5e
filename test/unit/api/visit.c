/*
 * Who gets in, and when.
 *
 * Goal: limits of a principal hold at the limit and not one request earlier, after authentication
 * and before anything else; reloads count at once and break nothing that is inside; places that are
 * few are given back; readiness says why not.
 *
 * Method: requests as text to a real server, engine and memory store, with tight limits.
 */
#include "api/api.h"

#include <unistd.h>

#include "api/api_internal.h"
#include "edge.h"

#define ALICE "\nAuthorization: Bearer alice"
#define BOB   "\nAuthorization: Bearer bob"
#define ROOT  "\nAuthorization: Bearer root"
#define JSON  "\nContent-Type: application/json\n\n"
#define PAY   "POST /v1/payments HTTP/1.1"
#define KEY   "\nIdempotency-Key: "
#define GET_1 "GET /v1/payments?order_no=A-1 HTTP/1.1"
#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

#define ORDER(order_no)                                           \
    "{\"order_no\":\"" order_no                                   \
    "\",\"amount\":\"100.00\",\"currency\":\"CNY\",\"provider\":" \
    "\"sandbox\"}"

static struct edge edge;

/* "429 rate-limited", or "201" where there is no problem. */
static struct idem_str verdict_of(const char *answer)
{
    static char memory[64];
    struct idem_buf buf;
    const char *code = strstr(answer, "urn:idem:problem:");
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add_bytes(&buf, answer + strlen("HTTP/1.1 "), 3);
    if (code != NULL) {
        struct idem_str rest = idem_str_from(code + strlen("urn:idem:problem:"));
        idem_buf_add_char(&buf, ' ');
        idem_buf_add(&buf, idem_str_next(&rest, '"'));
    }
    return idem_buf_str(&buf);
}

static struct idem_str verdict(const char *request)
{
    return verdict_of(edge_ask(&edge, request));
}

static void two_at_once(struct idem_api_options *options)
{
    options->limits.principal_requests_max = 2;
}

static void a_principal_has_so_many_inside_and_not_one_more(void **state)
{
    (void)state;
    edge_open(&edge, two_at_once);
    edge.port.hold = true;
    int first = edge_connect(&edge);
    int second = edge_connect(&edge);
    edge_send(&edge, first, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    edge_send(&edge, second, PAY ALICE KEY "k2" JSON ORDER("A-2"));
    const char *answer = edge_ask(&edge, PAY ALICE KEY "k3" JSON ORDER("A-3"));
    assert_non_null(strstr(answer, "HTTP/1.1 429 Too Many Requests\n"));
    assert_non_null(strstr(answer, "\nRetry-After: 1\n"));
    assert_non_null(strstr(answer, "\"effect\":\"unknown\",\"retry\":\"same-key\""));
    EXPECT_TEXT(verdict(GET_1 ALICE), "429 rate-limited");
    EXPECT_TEXT(verdict(PAY ALICE KEY "a,b\n\n["), "429 rate-limited"); /* Before the rest. */
    EXPECT_TEXT(verdict(PAY "\nAuthorization: Bearer eve"), "401 unauthenticated");
    EXPECT_TEXT(verdict(GET_1 BOB), "404 not-found");
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS);
    EXPECT_TEXT(verdict_of(edge_answer(&edge, first)), "201");
    EXPECT_TEXT(verdict_of(edge_answer(&edge, second)), "201");
    EXPECT_TEXT(verdict(PAY ALICE KEY "k3" JSON ORDER("A-3")), "201");
    assert_int_equal(close(first), 0);
    assert_int_equal(close(second), 0);
    edge_close(&edge);
}

static void three_and_then_one_a_second(struct idem_api_options *options)
{
    options->limits.principal_rate = 1;
    options->limits.principal_burst = 3;
}

static void a_principal_comes_so_often_and_not_once_more(void **state)
{
    static const struct idem_api_limits none = { 0 };
    (void)state;
    edge_open(&edge, three_and_then_one_a_second);
    for (int i = 0; i < 3; i++) {
        EXPECT_TEXT(verdict(GET_1 ALICE), "404 not-found");
    }
    /* A second has not passed, or only just: then one more goes in, and not the next. */
    size_t refused = 0;
    for (int i = 0; i < 3; i++) {
        const char *answer = edge_ask(&edge, GET_1 ALICE);
        refused += strstr(answer, "urn:idem:problem:rate-limited") != NULL ? 1 : 0;
    }
    assert_true(refused >= 1);
    EXPECT_TEXT(verdict(GET_1 BOB), "404 not-found");
    idem_api_reload_limits(edge.api, &none);
    EXPECT_TEXT(verdict(GET_1 ALICE), "404 not-found");
    edge_close(&edge);
}

static void a_reload_of_credentials_breaks_nothing_that_is_inside(void **state)
{
    static const struct idem_digest none = { { 0 } };
    (void)state;
    edge_open(&edge, NULL);
    edge.port.hold = true;
    int first = edge_connect(&edge);
    edge_send(&edge, first, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    const struct idem_credential *bob = &edge.options.credentials[1];
    assert_int_equal(idem_api_reload_credentials(edge.api, bob, 1, none, NULL), IDEM_OK);
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "401 unauthenticated");
    EXPECT_TEXT(verdict("GET /v1/admin/summary HTTP/1.1" ROOT), "401 unauthenticated");
    EXPECT_TEXT(verdict(GET_1 BOB), "404 not-found");
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS);
    EXPECT_TEXT(verdict_of(edge_answer(&edge, first)), "201");
    struct idem_error error = { { 0 } };
    const struct idem_credential nobody = { 0 };
    assert_int_equal(idem_api_reload_credentials(edge.api, &nobody, 1, none, &error),
                     IDEM_E_INVALID);
    EXPECT_TEXT(verdict(GET_1 BOB), "404 not-found");
    assert_int_equal(
        idem_api_reload_credentials(edge.api, edge.options.credentials, 3, none, &error), IDEM_OK);
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    assert_int_equal(edge.port.sends, 1);
    assert_int_equal(close(first), 0);
    edge_close(&edge);
}

static void with_bootstrap(struct idem_api_options *options)
{
    struct idem_digester *digester;
    assert_int_equal(idem_digester_create(&digester, NULL), IDEM_OK);
    options->bootstrap_sha256 = idem_digest_sha256(digester, IDEM_STR("first"));
    idem_digester_destroy(digester);
    options->credential_count = 0;
}

static void the_first_operator_comes_with_a_hash(void **state)
{
    (void)state;
    edge_open(&edge, with_bootstrap);
    EXPECT_TEXT(verdict("GET /v1/admin/summary HTTP/1.1\nAuthorization: Bearer first"), "200");
    EXPECT_TEXT(verdict("GET /v1/admin/summary HTTP/1.1" ROOT), "401 unauthenticated");
    static const struct idem_digest none = { { 0 } };
    assert_int_equal(idem_api_reload_credentials(edge.api, edge.options.credentials, 3, none, NULL),
                     IDEM_OK);
    EXPECT_TEXT(verdict("GET /v1/admin/summary HTTP/1.1\nAuthorization: Bearer first"),
                "401 unauthenticated");
    EXPECT_TEXT(verdict("GET /v1/admin/summary HTTP/1.1" ROOT), "200");
    edge_close(&edge);
}

static void one_read_only(struct idem_api_options *options)
{
    options->reads_max = 1;
}

/* Requests that come in together, before the store has answered the first. */
static void look_ups_have_places_of_their_own(void **state)
{
    (void)state;
    edge_open(&edge, one_read_only);
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    int fds[3];
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fds); i++) {
        fds[i] = edge_connect(&edge);
        edge_write(fds[i], GET_1 ALICE);
    }
    edge_turn_engine(
        &edge); /* All are read from their sockets; nobody is answered from the store. */
    size_t unavailable = 0;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fds); i++) {
        const char *answer = edge_answer(&edge, fds[i]);
        bool refused = strstr(answer, "HTTP/1.1 503 ") != NULL;
        assert_true(refused == (strstr(answer, "\nRetry-After: 1\n") != NULL));
        unavailable += refused ? 1 : 0;
        assert_int_equal(close(fds[i]), 0);
    }
    assert_int_equal(unavailable, 2);
    EXPECT_TEXT(verdict(GET_1 ALICE), "200");
    edge_close(&edge);
}

static void four_reads(struct idem_api_options *options)
{
    options->reads_max = 4;
    options->limits.principal_requests_max = 100;
}

static void one_account_takes_half_of_the_look_ups(void **state)
{
    (void)state;
    edge_open(&edge, four_reads);
    int fds[5];
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fds); i++) {
        fds[i] = edge_connect(&edge);
        edge_write(fds[i], i < 4 ? GET_1 ALICE : GET_1 BOB);
    }
    edge_turn_engine(&edge);
    size_t refused = 0;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fds); i++) {
        const char *answer = edge_answer(&edge, fds[i]);
        bool limited = strstr(answer, "HTTP/1.1 429 ") != NULL;
        assert_true(limited == (strstr(answer, "\nRetry-After: 1\n") != NULL));
        assert_true(i < 4 || strstr(answer, "HTTP/1.1 404 ") != NULL);
        refused += limited ? 1 : 0;
        assert_int_equal(close(fds[i]), 0);
    }
    assert_int_equal(refused, 2);
    for (int i = 0; i < 5; i++) {
        EXPECT_TEXT(verdict(GET_1 ALICE), "404 not-found"); /* Each place was given back. */
    }
    edge_close(&edge);
}

static void one_inside_and_a_rate(struct idem_api_options *options)
{
    options->requests_max = 1;
    options->limits.principal_rate = 1;
    options->limits.principal_burst = 1000;
}

/* As it stands now. */
static struct idem_account account_of(struct idem_str principal)
{
    const struct idem_accounts *accounts = &edge.api->credentials.accounts;
    for (size_t i = 0; i < accounts->max; i++) {
        if (idem_str_equal(idem_account_principal(&accounts->all[i]), principal)) {
            return accounts->all[i];
        }
    }
    fail_msg("nobody has this name");
    return (struct idem_account){ 0 };
}

static void who_finds_no_place_has_not_spent_anything(void **state)
{
    (void)state;
    edge_open(&edge, one_inside_and_a_rate);
    edge.port.hold = true;
    int first = edge_connect(&edge);
    edge_send(&edge, first, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    EXPECT_TEXT(verdict(GET_1 BOB), "503 unavailable");
    const struct idem_account bob = account_of(IDEM_STR("bob"));
    assert_int_equal(bob.inside, 0);
    assert_int_equal(bob.drops, 1000 * IDEM_US_PER_SECOND);
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS);
    EXPECT_TEXT(verdict_of(edge_answer(&edge, first)), "201");
    assert_int_equal(close(first), 0);
    edge_close(&edge);
}

/* A 202 needs a look at its operation; without a place it is made of what the commit has proven. */
static void a_202_does_not_depend_on_a_look_up(void **state)
{
    (void)state;
    edge_open(&edge, one_read_only);
    edge.port.hold = true;
    int fds[2];
    fds[0] = edge_connect(&edge);
    fds[1] = edge_connect(&edge);
    edge_write(fds[0], PAY ALICE KEY "k1\nPrefer: wait=0" JSON ORDER("A-1"));
    edge_write(fds[1], PAY ALICE KEY "k2\nPrefer: wait=0" JSON ORDER("A-2"));
    edge_turn_engine(&edge);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fds); i++) {
        const char *answer = edge_answer(&edge, fds[i]);
        assert_non_null(strstr(answer, "HTTP/1.1 202 Accepted\n"));
        assert_non_null(strstr(answer, "\"state\":\"processing\""));
        assert_int_equal(close(fds[i]), 0);
    }
    edge_close(&edge);
}

static void readiness_says_why_not(void **state)
{
    struct idem_api_gauges gauges = { 0 };
    (void)state;
    edge_open(&edge, NULL);
    assert_non_null(strstr(edge_ask(&edge, "GET /readyz HTTP/1.1"), "{\"status\":\"ok\"}\n"));
    idem_api_set_ready(edge.api, false);
    assert_non_null(strstr(edge_ask(&edge, "GET /readyz HTTP/1.1"), "{\"status\":\"starting\"}\n"));
    gauges.restored = true;
    idem_api_set_gauges(edge.api, &gauges);
    assert_non_null(strstr(edge_ask(&edge, "GET /readyz HTTP/1.1"), "{\"status\":\"restored\"}\n"));
    gauges.disk_low = true;
    idem_api_set_gauges(edge.api, &gauges);
    assert_non_null(strstr(edge_ask(&edge, "GET /readyz HTTP/1.1"), "{\"status\":\"disk-low\"}\n"));
    idem_api_drain(edge.api);
    assert_non_null(strstr(edge_ask(&edge, "GET /readyz HTTP/1.1"), "{\"status\":\"stopping\"}\n"));
    EXPECT_TEXT(verdict("GET /healthz HTTP/1.1"), "200");
    edge_close(&edge);
}

/* Until the store's credentials are read, nobody can be told that he is unknown. */
static void a_stranger_is_not_refused_for_good_too_early(void **state)
{
    (void)state;
    edge_open(&edge, NULL);
    edge.api->credentials.complete = false;
    edge.api->own_credentials.wanted = true;
    edge.api->own_credentials.running = true; /* As if the store were slow. */
    const char *answer = edge_ask(&edge, "GET /v1/operations HTTP/1.1\nAuthorization: Bearer eve");
    EXPECT_TEXT(verdict_of(answer), "503 unavailable");
    assert_non_null(strstr(answer, "\nRetry-After: 1\n"));
    EXPECT_TEXT(verdict(GET_1 ALICE), "404 not-found");
    edge.api->own_credentials.running = false;
    edge_turn(&edge);
    EXPECT_TEXT(verdict("GET /v1/operations HTTP/1.1\nAuthorization: Bearer eve"),
                "401 unauthenticated");
    edge_close(&edge);
}

static void the_trace_is_passed_on_and_is_no_part_of_the_request(void **state)
{
    (void)state;
    edge_open(&edge, NULL);
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1\ntraceparent: " TRACE JSON ORDER("A-1")), "201");
    const char *view =
        edge_ask(&edge, "GET /v1/operations?endpoint=payments.create HTTP/1.1" ALICE KEY "k1");
    assert_non_null(strstr(view, "\"kind\":\"traced\""));
    assert_non_null(strstr(view, "\"detail\":\"" TRACE "\""));
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1\ntraceparent: nonsense" JSON ORDER("A-1")), "201");
    assert_int_equal(edge.port.sends, 1);
    EXPECT_TEXT(verdict(PAY ALICE KEY "k2\ntraceparent: nonsense" JSON ORDER("A-2")), "201");
    view = edge_ask(&edge, "GET /v1/operations?endpoint=payments.create HTTP/1.1" ALICE KEY "k2");
    assert_null(strstr(view, "traced"));
    edge_close(&edge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_principal_has_so_many_inside_and_not_one_more),
        cmocka_unit_test(a_principal_comes_so_often_and_not_once_more),
        cmocka_unit_test(a_reload_of_credentials_breaks_nothing_that_is_inside),
        cmocka_unit_test(the_first_operator_comes_with_a_hash),
        cmocka_unit_test(look_ups_have_places_of_their_own),
        cmocka_unit_test(one_account_takes_half_of_the_look_ups),
        cmocka_unit_test(who_finds_no_place_has_not_spent_anything),
        cmocka_unit_test(a_202_does_not_depend_on_a_look_up),
        cmocka_unit_test(readiness_says_why_not),
        cmocka_unit_test(a_stranger_is_not_refused_for_good_too_early),
        cmocka_unit_test(the_trace_is_passed_on_and_is_no_part_of_the_request),
    };
    return cmocka_run_group_tests_name("api/visit", tests, NULL, NULL);
}
