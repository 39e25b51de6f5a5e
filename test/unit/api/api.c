/*
 * The edge from socket to socket.
 *
 * Goal: the rows of the wire table, the order of the checks, and that every exchange
 * is answered exactly once, whoever is still there.
 *
 * Method: requests as text over real connections to a real server, engine and memory store; whole
 * answers where the form matters, status and problem code where only the verdict does. What
 * changes from run to run is shown as {id}, {time}, {date}, {len}.
 */
#include "api/api.h"

#include <sys/socket.h>
#include <unistd.h>

#include "edge.h"

#define ALICE    "\nAuthorization: Bearer alice"
#define BOB      "\nAuthorization: Bearer bob"
#define JSON     "\nContent-Type: application/json\n\n"
#define PAY      "POST /v1/payments HTTP/1.1"
#define ABANDON  "POST /v1/operations/abandon HTTP/1.1" ALICE "\nIdempotency-Key: "
#define ENDPOINT "{\"endpoint\":\"payments.create\"}"
#define KEY      "\nIdempotency-Key: "
#define NO_SUCH  "0197b2f0-1111-7abc-8def-0123456789ab"

#define ORDER(order_no)                                           \
    "{\"order_no\":\"" order_no                                   \
    "\",\"amount\":\"100.00\",\"currency\":\"CNY\",\"provider\":" \
    "\"sandbox\"}"

#define PAYMENT(order_no, state, refunded)                                                    \
    "{\"id\":\"{id}\",\"order_no\":\"" order_no "\",\"state\":\"" state                       \
    "\",\"amount\":\"100.00\",\"currency\":\"CNY\",\"capture\":\"automatic\",\"authorized\":" \
    "\"100.00\",\"captured\":\"100.00\",\"capture_pending\":\"0.00\",\"released\":\"0.00\","  \
    "\"refunded\":\"" refunded                                                                \
    "\",\"refund_pending\":\"0.00\",\"provider\":\"sandbox\","                                \
    "\"reference\":\"REF-1\",\"created\":\"{time}\",\"updated\":\"{time}\"}\n"

static struct edge edge;

static int setup(void **state)
{
    (void)state;
    edge_open(&edge, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    edge_close(&edge);
    return 0;
}

static void expect(const char *request, const char *answer)
{
    EXPECT_TEXT(idem_str_from(edge_ask(&edge, request)), answer);
}

/* "409 order-exists", or "201" where there is no problem. */
static struct idem_str verdict(const char *request)
{
    static char memory[64];
    struct idem_buf buf;
    const char *answer = edge_ask(&edge, request);
    const char *code = strstr(answer, "urn:idem:problem:");
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add_bytes(&buf, answer + strlen("HTTP/1.1 "), 3);
    if (code != NULL && strstr(answer, "Content-Type: application/problem+json") != NULL) {
        struct idem_str rest = idem_str_from(code + strlen("urn:idem:problem:"));
        idem_buf_add_char(&buf, ' ');
        idem_buf_add(&buf, idem_str_next(&rest, '"'));
    }
    return idem_buf_str(&buf);
}

/* `format` with the id in it. */
static const char *with_id(const char *format, const char *id)
{
    static char text[1024];
    char copy[IDEM_UID_TEXT_LEN + 1];
    (void)snprintf(copy, sizeof(copy), "%s", id);
    const char *gap = strstr(format, "{id}");
    assert_non_null(gap);
    (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(gap - format), format, copy, gap + 4);
    return text;
}

#define MADE(replayed)                 \
    "HTTP/1.1 201 Created\n"           \
    "Cache-Control: no-store\n"        \
    "Content-Type: application/json\n" \
    "Location: /v1/payments/{id}\n"    \
    "Idempotent-Replayed: " replayed   \
    "\n"                               \
    "Idempotency-Expires: {date}\n"

#define SERVED                \
    "Content-Length: {len}\n" \
    "Date: {date}\n\n"

static void a_payment_is_made_once_and_replayed(void **state)
{
    (void)state;
    expect(PAY ALICE KEY "k1" JSON ORDER("A-1"),
           MADE("false") "Idempotency-Key: \"k1\"\n" SERVED PAYMENT("A-1", "captured", "0.00"));
    expect(PAY ALICE KEY "\"k1\"" JSON
                         "{\"provider\":\"sandbox\", \"currency\":\"CNY\",\"amount\":\"100.00\","
                         "\"order_no\":\"\\u0041-1\"}",
           MADE("true") "Idempotency-Key: \"k1\"\n" SERVED PAYMENT("A-1", "captured", "0.00"));
    assert_int_equal(edge.port.sends, 1);
}

static void another_request_under_the_key_is_refused_and_shown_nothing(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    expect(
        PAY ALICE KEY "k1" JSON ORDER("A-2"),
        "HTTP/1.1 422 Unprocessable Content\n"
        "Cache-Control: no-store\n"
        "Content-Type: application/problem+json\n"
        "Idempotency-Key: \"k1\"\n" SERVED
        "{\"type\":\"urn:idem:problem:key-reused\",\"title\":\"The key belongs to a different "
        "request\",\"status\":422,\"detail\":\"Nothing was done for this request, and nothing of "
        "the first one is shown. One key names one request: repeat the first one unchanged, or "
        "use a new key for a new one.\",\"effect\":\"unknown\",\"retry\":\"never\"}\n");
    assert_int_equal(edge.port.sends, 1);
}

static void the_checks_have_an_order(void **state)
{
    static const struct {
        const char *request;
        const char *expected;
    } rows[] = {
        /* Each request has every fault of the rows below it. */
        { "POST /v2/payments HTTP/1.1", "404 not-found" },
        { "PUT /v1/payments HTTP/1.1", "405 method-not-allowed" },
        { PAY "\nRepeatability-First-Sent: x\n\n[", "401 unauthenticated" },
        { PAY "\nAuthorization: Bearer eve", "401 unauthenticated" },
        { PAY "\nAuthorization: Bearer root\nRepeatability-First-Sent: x\n\n[", "403 forbidden" },
        { PAY ALICE "\nRepeatability-First-Sent: x\n\n[", "400 key-missing" },
        { PAY ALICE KEY "a,b\nRepeatability-First-Sent: x\n\n[", "400 key-invalid" },
        { PAY ALICE KEY "k\nRepeatability-First-Sent: x\n\n[", "400 header-invalid" },
        { PAY ALICE KEY "k\nContent-Digest: sha-256=x\n\n[", "400 header-invalid" },
        { PAY ALICE KEY "k\nContent-Digest: sha-256=:x:\n\n[", "400 digest-mismatch" },
        { PAY ALICE KEY "k\n\n[", "415 media-type" },
        { PAY ALICE KEY "k" JSON "[", "400 body-invalid" },
        { PAY ALICE KEY "k\nContent-Type: application/json", "400 body-invalid" },
        { PAY ALICE KEY "k" JSON "{\"order_no\":\"A\",\"amount\":\"1.00\",\"currency\":\"CNY\","
                        "\"provider\":\"other\"}",
          "403 forbidden" },
        { PAY ALICE KEY "k" JSON "{\"order_no\":\"A\",\"amount\":\"1.00\",\"currency\":\"CNY\","
                        "\"provider\":\"sandbox\",\"metadata\":{\"a\":1e99999999999999999999}}",
          "400 body-invalid" },
        { "POST /v1/payments?x HTTP/1.1" ALICE KEY "k" JSON ORDER("A"), "400 query-invalid" },
        { PAY ALICE KEY "k" JSON ORDER("A"), "201" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].request);
        EXPECT_TEXT(verdict(rows[i].request), rows[i].expected);
    }
    assert_int_equal(edge.port.sends, 1);
}

static void what_is_refused_without_a_key_says_how_to_do_it(void **state)
{
    (void)state;
    const char *answer = edge_ask(&edge, PAY);
    assert_non_null(strstr(answer, "\nWWW-Authenticate: Bearer realm=\"idem\"\n"));
    answer = edge_ask(&edge, "PUT /v1/payments HTTP/1.1");
    assert_non_null(strstr(answer, "\nAllow: POST, GET\n"));
}

#define RUNNING                                                                                    \
    "{\"id\":\"{id}\",\"endpoint\":\"payments.create\",\"state\":\"processing\",\"created\":"      \
    "\"{time}\",\"updated\":\"{time}\",\"unknown_since\":null,\"finished\":null,\"expires\":null," \
    "\"payment\":\"/v1/payments/{id}\",\"refund\":null,\"attempts\":[{\"send\":1,\"epoch\":1,"     \
    "\"state\":\"open\",\"granted\":\"{time}\",\"not_after\":\"{time}\"}],\"timeline\":[{\"at\":"  \
    "\"{time}\",\"kind\":\"dispatched\",\"cause\":\"request\",\"epoch\":1,\"send\":1,\"detail\":"  \
    "null}],\"timeline_total\":1,\"answer\":null}\n"

#define ACCEPTED(replayed, applied)    \
    "HTTP/1.1 202 Accepted\n"          \
    "Cache-Control: no-store\n"        \
    "Content-Type: application/json\n" \
    "Location: /v1/operations/{id}\n"  \
    "Retry-After: 1\n"                 \
    "Idempotent-Replayed: " replayed   \
    "\n"                               \
    "Preference-Applied: " applied     \
    "\n"                               \
    "Idempotency-Key: \"k1\"\n" SERVED RUNNING

static void who_will_not_wait_gets_the_operation_and_later_the_answer(void **state)
{
    (void)state;
    edge.port.hold = true;
    expect(PAY ALICE KEY "k1\nPrefer: wait=0" JSON ORDER("A-1"), ACCEPTED("false", "wait=0"));
    expect(PAY ALICE KEY "k1\nPrefer: respond-async" JSON ORDER("A-1"),
           ACCEPTED("true", "respond-async"));
    expect(PAY ALICE KEY "k1\nPrefer: respond-async, wait=0" JSON ORDER("A-1"),
           ACCEPTED("true", "respond-async, wait=0"));
    expect("GET /v1/operations?endpoint=payments.create HTTP/1.1" ALICE KEY "k1",
           "HTTP/1.1 200 OK\n"
           "Cache-Control: no-store\n"
           "Content-Type: application/json\n"
           "Retry-After: 1\n"
           "Idempotency-Key: \"k1\"\n" SERVED RUNNING);
    EXPECT_TEXT(verdict(with_id("GET /v1/operations/{id} HTTP/1.1" ALICE, edge_id())), "200");
    EXPECT_TEXT(verdict(with_id("GET /v1/operations/{id} HTTP/1.1" BOB, edge_id())),
                "404 not-found");
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS);
    expect(PAY ALICE KEY "k1\nPrefer: wait=99" JSON ORDER("A-1"),
           MADE("true") "Preference-Applied: wait=30\nIdempotency-Key: \"k1\"\n" SERVED PAYMENT(
               "A-1", "captured", "0.00"));
    assert_int_equal(edge.port.sends, 1);
}

static void who_waits_gets_the_first_answer(void **state)
{
    (void)state;
    edge.port.hold = true;
    int first = edge_connect(&edge);
    int second = edge_connect(&edge);
    edge_send(&edge, first, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    edge_send(&edge, second, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS);
    EXPECT_TEXT(
        idem_str_from(edge_answer(&edge, first)),
        MADE("false") "Idempotency-Key: \"k1\"\n" SERVED PAYMENT("A-1", "captured", "0.00"));
    EXPECT_TEXT(idem_str_from(edge_answer(&edge, second)),
                MADE("true") "Idempotency-Key: \"k1\"\n" SERVED PAYMENT("A-1", "captured", "0.00"));
    assert_int_equal(edge.port.sends, 1);
    assert_int_equal(close(first), 0);
    assert_int_equal(close(second), 0);
}

/* The engine is done with the request and with its effect before the edge looks. */
static void what_ends_before_the_202_leaves_is_told_instead(void **state)
{
    (void)state;
    int fd = edge_connect(&edge);
    edge_write(fd, PAY ALICE KEY "k1\nPrefer: wait=0" JSON ORDER("A-1"));
    edge_turn_engine(&edge);
    EXPECT_TEXT(
        idem_str_from(edge_answer(&edge, fd)),
        MADE("false") "Preference-Applied: wait=0\nIdempotency-Key: \"k1\"\n" SERVED PAYMENT(
            "A-1", "captured", "0.00"));

    edge.port.outcome = IDEM_OUTCOME_NOT_EXECUTED;
    edge_write(fd, PAY ALICE KEY "k2\nPrefer: wait=0" JSON ORDER("A-2"));
    edge_turn_engine(&edge);
    const char *answer = edge_answer(&edge, fd);
    assert_non_null(strstr(answer, "HTTP/1.1 503 Service Unavailable\n"));
    assert_non_null(strstr(answer, "urn:idem:problem:not-executed"));
    assert_non_null(strstr(answer, "\nRetry-After: 1\n"));
    assert_non_null(strstr(answer, "\nIdempotent-Replayed: false\n"));
    assert_int_equal(close(fd), 0);
}

static void conflict_at_once(struct idem_api_options *options)
{
    options->routes[IDEM_ENDPOINT_PAYMENTS_CREATE].in_flight = IDEM_IN_FLIGHT_CONFLICT;
}

static void a_route_may_refuse_to_join(void **state)
{
    (void)state;
    edge_open(&edge, conflict_at_once);
    edge.port.hold = true;
    int first = edge_connect(&edge);
    edge_send(&edge, first, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    const char *answer = edge_ask(&edge, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    assert_non_null(strstr(answer, "HTTP/1.1 409 Conflict\n"));
    assert_non_null(strstr(answer, "urn:idem:problem:in-progress"));
    assert_non_null(strstr(answer, "\nRetry-After: 1\n"));
    assert_non_null(strstr(answer, "\nIdempotent-Replayed: true\n"));
    assert_non_null(strstr(answer, "\"operation\":\"/v1/operations/{id}\""));
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS);
    assert_non_null(strstr(edge_answer(&edge, first), "HTTP/1.1 201 Created\n"));
    assert_int_equal(close(first), 0);
    edge_close(&edge);
}

static void refusals_from_facts_and_declines_are_stored(void **state)
{
    static const char declined[] = PAY ALICE KEY "k2" JSON ORDER("A-2");
    static const char taken[] = PAY ALICE KEY "k3" JSON ORDER("A-1");
    (void)state;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    EXPECT_TEXT(verdict(taken), "409 order-exists");
    EXPECT_TEXT(verdict(taken), "409 order-exists");
    edge.port.outcome = IDEM_OUTCOME_REFUSED_FINAL;
    EXPECT_TEXT(verdict(declined), "402 declined");
    edge.port.outcome = IDEM_OUTCOME_SUCCESS;
    EXPECT_TEXT(verdict(declined), "402 declined");
    assert_non_null(strstr(edge_ask(&edge, declined), "\nIdempotent-Replayed: true\n"));
    assert_int_equal(edge.port.sends, 2);
}

static void what_was_not_executed_may_be_sent_again(void **state)
{
    (void)state;
    edge.port.hold = true;
    int fd = edge_connect(&edge);
    edge_send(&edge, fd, PAY ALICE KEY "k1\nPrefer: wait=1" JSON ORDER("A-1"));
    edge_let_go(&edge, IDEM_OUTCOME_NOT_EXECUTED);
    const char *answer = edge_answer(&edge, fd);
    assert_non_null(strstr(answer, "HTTP/1.1 503 Service Unavailable\n"));
    assert_non_null(strstr(answer, "urn:idem:problem:not-executed"));
    assert_non_null(strstr(answer, "\nRetry-After: "));
    assert_int_equal(close(fd), 0);
    edge.port.outcome = IDEM_OUTCOME_SUCCESS;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
}

static void an_abandoned_key_never_runs(void **state)
{
    (void)state;
    expect(
        ABANDON "k1" JSON ENDPOINT,
        "HTTP/1.1 200 OK\n"
        "Cache-Control: no-store\n"
        "Content-Type: application/json\n"
        "Idempotency-Expires: {date}\n"
        "Idempotency-Key: \"k1\"\n" SERVED
        "{\"id\":\"{id}\",\"endpoint\":\"payments.create\",\"state\":\"failed\",\"created\":"
        "\"{time}\",\"updated\":\"{time}\",\"unknown_since\":null,\"finished\":\"{time}\","
        "\"expires\":\"{time}\",\"payment\":null,\"refund\":null,\"attempts\":[],\"timeline\":"
        "[{\"at\":\"{time}\",\"kind\":\"abandoned\",\"cause\":\"request\",\"epoch\":1,\"send\":0,"
        "\"detail\":null}],\"timeline_total\":1,\"answer\":{\"status\":409,\"headers\":{"
        "\"Content-Type\":\"application/problem+json\"},\"body\":{\"type\":"
        "\"urn:idem:problem:abandoned\",\"title\":\"The key was given up before anything "
        "happened\",\"status\":409,\"detail\":\"Nothing was executed under this key and nothing "
        "will be. Use a new key for a new intent.\",\"effect\":\"none\",\"retry\":\"new-key\","
        "\"operation\":\"/v1/operations/{id}\"}}}\n");
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "409 abandoned");
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-2")), "409 abandoned");
    EXPECT_TEXT(verdict(PAY BOB KEY "k1" JSON ORDER("A-1")), "201");
    assert_int_equal(edge.port.sends, 1);
}

static void abandoning_does_not_stop_what_may_have_happened(void **state)
{
    (void)state;
    edge.port.hold = true;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1\nPrefer: wait=0" JSON ORDER("A-1")), "202");
    EXPECT_TEXT(verdict(ABANDON "k1" JSON ENDPOINT), "202");
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS);
    EXPECT_TEXT(verdict(ABANDON "k1" JSON ENDPOINT), "200");
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    EXPECT_TEXT(verdict(ABANDON "k1" JSON "{\"endpoint\":\"payments\"}"), "400 body-invalid");
    EXPECT_TEXT(verdict("POST /v1/operations/abandon HTTP/1.1" ALICE JSON ENDPOINT),
                "400 key-missing");
}

static void resources_are_shown_to_their_owner_only(void **state)
{
    static char missing[4096];
    (void)state;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    char payment[IDEM_UID_TEXT_LEN + 1];
    (void)snprintf(payment, sizeof(payment), "%s", edge_id());
    expect(
        with_id("GET /v1/payments/{id} HTTP/1.1" ALICE, payment),
        "HTTP/1.1 200 OK\nCache-Control: no-store\nContent-Type: application/json\n" SERVED PAYMENT(
            "A-1", "captured", "0.00"));
    expect(
        "GET /v1/payments?order_no=A%2D1 HTTP/1.1" ALICE,
        "HTTP/1.1 200 OK\nCache-Control: no-store\nContent-Type: application/json\n" SERVED PAYMENT(
            "A-1", "captured", "0.00"));
    (void)snprintf(missing, sizeof(missing), "%s",
                   edge_ask(&edge, "GET /v1/payments/" NO_SUCH " HTTP/1.1" BOB));
    assert_non_null(strstr(missing, "HTTP/1.1 404 Not Found\n"));
    expect(with_id("GET /v1/payments/{id} HTTP/1.1" BOB, payment), missing);
    EXPECT_TEXT(verdict("GET /v1/payments?order_no=A-1 HTTP/1.1" BOB), "404 not-found");
    EXPECT_TEXT(verdict("GET /v1/payments?order_no= HTTP/1.1" ALICE), "400 query-invalid");
    EXPECT_TEXT(verdict(with_id("GET /v1/payments/{id}?x=1 HTTP/1.1" ALICE, payment)),
                "400 query-invalid");
    EXPECT_TEXT(verdict("GET /v1/operations?endpoint=payments.create HTTP/1.1" BOB KEY "k1"),
                "404 key-unknown");
    EXPECT_TEXT(verdict("GET /v1/operations?endpoint=x HTTP/1.1" ALICE KEY "k1"),
                "400 query-invalid");
    EXPECT_TEXT(verdict("GET /v1/operations?endpoint=payments.create HTTP/1.1" ALICE),
                "400 key-missing");
}

static void show_resources(struct idem_api_options *options)
{
    options->routes[IDEM_ENDPOINT_PAYMENTS_CREATE].answer_resource = true;
    options->routes[IDEM_ENDPOINT_REFUNDS_CREATE].answer_resource = true;
    options->requests_max = 1; /* Every answer gives its place back. */
}

static void a_route_may_replay_the_resource_as_it_is_now(void **state)
{
    (void)state;
    edge_open(&edge, show_resources);
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    const char *refund = with_id("POST /v1/payments/{id}/refunds HTTP/1.1" ALICE KEY "r1" JSON
                                 "{\"amount\":\"40.00\",\"refund_no\":\"R-1\"}",
                                 edge_id());
    EXPECT_TEXT(verdict(refund), "201");
    expect(refund,
           "HTTP/1.1 201 Created\n"
           "Cache-Control: no-store\n"
           "Content-Type: application/json\n"
           "Location: /v1/refunds/{id}\n"
           "Idempotent-Replayed: true\n"
           "Idempotency-Expires: {date}\n"
           "Idempotency-Key: \"r1\"\n" SERVED
           "{\"id\":\"{id}\",\"payment\":\"/v1/payments/{id}\",\"refund_no\":\"R-1\","
           "\"state\":\"succeeded\",\"amount\":\"40.00\",\"currency\":\"CNY\","
           "\"reference\":\"REF-1\",\"created\":\"{time}\",\"updated\":\"{time}\"}\n");
    EXPECT_TEXT(verdict(with_id("GET /v1/refunds/{id} HTTP/1.1" ALICE, edge_id())), "200");
    expect(PAY ALICE KEY "k1" JSON ORDER("A-1"),
           MADE("true") "Idempotency-Key: \"k1\"\n" SERVED PAYMENT("A-1", "partially_refunded",
                                                                   "40.00"));
    assert_int_equal(edge.port.sends, 2);
    edge_close(&edge);
}

static void follow_ups_need_no_body(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(PAY ALICE KEY
                        "k1" JSON "{\"order_no\":\"A\",\"amount\":\"1.00\",\"currency\":\"CNY\","
                        "\"provider\":\"sandbox\",\"capture\":\"manual\"}"),
                "201");
    const char *capture =
        with_id("POST /v1/payments/{id}/capture HTTP/1.1" ALICE KEY "c1", edge_id());
    EXPECT_TEXT(verdict(capture), "200");
    assert_int_equal(edge.port.sends, 2);
    EXPECT_TEXT(verdict(capture), "200");
    EXPECT_TEXT(verdict(with_id("POST /v1/payments/{id}/capture HTTP/1.1" ALICE KEY "c1" JSON "{}",
                                edge_id())),
                "200");
    assert_int_equal(edge.port.sends, 2);
    EXPECT_TEXT(
        verdict(with_id("POST /v1/payments/{id}/cancel HTTP/1.1" ALICE KEY "c2", edge_id())),
        "409 state-conflict");
}

static void one_request_only(struct idem_api_options *options)
{
    options->requests_max = 1;
}

static void without_a_free_place_the_answer_is_unavailable(void **state)
{
    (void)state;
    edge_open(&edge, one_request_only);
    edge.port.hold = true;
    int first = edge_connect(&edge);
    edge_send(&edge, first, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    assert_false(idem_api_idle(edge.api));
    const char *answer = edge_ask(&edge, PAY ALICE KEY "k2" JSON ORDER("A-2"));
    assert_non_null(strstr(answer, "HTTP/1.1 503 Service Unavailable\n"));
    assert_non_null(strstr(answer, "\nRetry-After: 1\n"));
    assert_non_null(strstr(answer, "\"effect\":\"unknown\",\"retry\":\"same-key\""));
    EXPECT_TEXT(verdict("GET /healthz HTTP/1.1"), "200");
    EXPECT_TEXT(verdict(PAY), "401 unauthenticated");
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS);
    assert_non_null(strstr(edge_answer(&edge, first), "HTTP/1.1 201 Created\n"));
    assert_true(idem_api_idle(edge.api));
    assert_int_equal(close(first), 0);
    edge_close(&edge);
}

static void a_caller_who_goes_changes_nothing(void **state)
{
    (void)state;
    edge.port.hold = true;
    int fd = edge_connect(&edge);
    edge_send(&edge, fd, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    assert_int_equal(close(fd), 0);
    edge_turn(&edge);
    assert_false(idem_api_idle(edge.api));
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS);
    assert_true(idem_api_idle(edge.api));
    expect(PAY ALICE KEY "k1" JSON ORDER("A-1"),
           MADE("true") "Idempotency-Key: \"k1\"\n" SERVED PAYMENT("A-1", "captured", "0.00"));
    assert_int_equal(edge.port.sends, 1);
}

static void readiness_ends_before_the_service_does(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict("GET /readyz HTTP/1.1"), "200");
    idem_api_drain(edge.api);
    idem_engine_drain(edge.engine);
    EXPECT_TEXT(verdict("GET /readyz HTTP/1.1"), "503");
    EXPECT_TEXT(verdict("GET /healthz HTTP/1.1"), "200");
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "503 unavailable");
    EXPECT_TEXT(verdict("GET /v1/payments/" NO_SUCH " HTTP/1.1" ALICE), "404 not-found");
}

static void what_the_server_refuses_is_a_problem_too(void **state)
{
    static const struct {
        const char *code;
        enum idem_net_refusal refusal;
        uint16_t status;
    } rows[] = {
        { "request-invalid", IDEM_NET_BAD_REQUEST, 400 },
        { "too-slow", IDEM_NET_HEAD_SLOW, 408 },
        { "too-slow", IDEM_NET_BODY_SLOW, 408 },
        { "too-large", IDEM_NET_BODY_TOO_LARGE, 413 },
        { "head-too-large", IDEM_NET_HEAD_TOO_LARGE, 431 },
        { "not-supported", IDEM_NET_NOT_SUPPORTED, 501 },
        { "unavailable", IDEM_NET_CROWDED, 503 },
    };
    (void)state;
    assert_int_equal(IDEM_ARRAY_COUNT(rows), IDEM_NET_REFUSAL_COUNT - 1);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_net_reply reply = { 0 };
        idem_api_server_ops.refusal(edge.api, rows[i].refusal, &reply);
        char type[64];
        (void)snprintf(type, sizeof(type), "{\"type\":\"urn:idem:problem:%s\"", rows[i].code);
        assert_int_equal(reply.status, rows[i].status);
        assert_true(reply.close);
        assert_true(idem_str_starts(reply.body, idem_str_from(type)));
    }
    EXPECT_TEXT(verdict("GET /healthz HTTP/1.1\nX : y"), "400 request-invalid");
}

static void a_configuration_that_cannot_be_right_is_refused(void **state)
{
    static const struct idem_credential nobody = { 0 };
    static const struct idem_secret weak = { .id = 1, .bytes = { "short", 5 } };
    (void)state;
    struct idem_api_options wrong[7];
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(wrong); i++) {
        wrong[i] = edge.options;
    }
    wrong[0].requests_max = 0;
    wrong[1].body_max = 0;
    wrong[2].effect_secret = IDEM_STR("short");
    wrong[3].fingerprint_secret_count = 0;
    wrong[4].fingerprint_secret_count = IDEM_API_SECRETS_MAX + 1;
    wrong[5].fingerprint_secrets = &weak;
    wrong[6].credentials = &nobody;
    wrong[6].credential_count = 1;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(wrong); i++) {
        struct idem_api *api = NULL;
        struct idem_error error = { { 0 } };
        assert_int_equal(idem_api_create(&wrong[i], &api, &error), IDEM_E_INVALID);
        assert_true(strlen(error.text) > 0);
        assert_null(api);
    }
    idem_api_destroy(NULL);
}

#define WITH_EDGE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_EDGE(a_payment_is_made_once_and_replayed),
        WITH_EDGE(another_request_under_the_key_is_refused_and_shown_nothing),
        WITH_EDGE(the_checks_have_an_order),
        WITH_EDGE(what_is_refused_without_a_key_says_how_to_do_it),
        WITH_EDGE(who_will_not_wait_gets_the_operation_and_later_the_answer),
        WITH_EDGE(who_waits_gets_the_first_answer),
        WITH_EDGE(what_ends_before_the_202_leaves_is_told_instead),
        cmocka_unit_test(a_route_may_refuse_to_join),
        WITH_EDGE(refusals_from_facts_and_declines_are_stored),
        WITH_EDGE(what_was_not_executed_may_be_sent_again),
        WITH_EDGE(an_abandoned_key_never_runs),
        WITH_EDGE(abandoning_does_not_stop_what_may_have_happened),
        WITH_EDGE(resources_are_shown_to_their_owner_only),
        cmocka_unit_test(a_route_may_replay_the_resource_as_it_is_now),
        WITH_EDGE(follow_ups_need_no_body),
        cmocka_unit_test(without_a_free_place_the_answer_is_unavailable),
        WITH_EDGE(a_caller_who_goes_changes_nothing),
        WITH_EDGE(readiness_ends_before_the_service_does),
        WITH_EDGE(what_the_server_refuses_is_a_problem_too),
        WITH_EDGE(a_configuration_that_cannot_be_right_is_refused),
    };
    return cmocka_run_group_tests_name("api/api", tests, NULL, NULL);
}
