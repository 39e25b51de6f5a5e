/*
 * Cases and compensations from socket to socket.
 *
 * Goal: what a person must look at is listed, shown and decided; a payment that was made beside the
 * books is given back, whole and once, however often that is asked for; nothing else is.
 *
 * Method: requests as text to a real server, engine and memory store; the operator is "root". A
 * provider's event contradicts what was recorded, and the scripted port counts what is sent to it.
 */
#include "api/api.h"

#include <unistd.h>

#include "api/api_internal.h"
#include "scene.h"

#define CASES    "GET /v1/admin/cases"
#define NO_CASES "{\"cases\":[],\"next\":null}\n"
#define RESOLVE  "POST /v1/admin/cases/{id}/resolve HTTP/1.1" ROOT JSON
#define COMPENSATE \
    "POST /v1/admin/cases/{id}/compensate HTTP/1.1" ROOT JSON "{\"reason\":\"stray\"}"

static char operation[IDEM_UID_TEXT_LEN + 1];
static char case_id[IDEM_UID_TEXT_LEN + 1];

/* A payment that the provider refuses, and then says that it was made. */
static void contradict(void)
{
    edge.port.outcome = IDEM_OUTCOME_REFUSED_FINAL;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "402 declined");
    (void)snprintf(operation, sizeof(operation), "%s", operation_of_payment());
    event_script(effect_id_of(operation), IDEM_OUTCOME_SUCCESS, "evt-1");
    EXPECT_TEXT(verdict(EVENT), "200");
    EXPECT_TEXT(verdict(CASES " HTTP/1.1" ROOT), "200");
    (void)snprintf(case_id, sizeof(case_id), "%s", edge_id_behind("\"case\":"));
    edge.port.outcome = IDEM_OUTCOME_SUCCESS;
    edge.port.sends = 0;
}

static void a_contradiction_is_a_case(void **state)
{
    static const char entry[] =
        "{\"cases\":[{\"id\":\"{id}\",\"principal\":\"alice\",\"endpoint\":\"payments.create\","
        "\"state\":\"failed\",\"created\":\"{time}\",\"unknown_since\":null,\"finished\":"
        "\"{time}\",\"next\":{\"step\":\"wait for a person\",\"at\":null},\"sends\":1,"
        "\"provider\":\"sandbox\",\"amount\":\"100.00\",\"currency\":\"CNY\",\"payment\":"
        "\"/v1/payments/{id}\",\"case\":{\"id\":\"{id}\",\"kind\":\"contradiction\",\"opened\":"
        "\"{time}\",\"detail\":\"done at the provider after it failed here\",\"decided\":null,"
        "\"decided_by\":null,\"decision\":null},\"why\":\"The provider's word "
        "contradicts the end that is recorded here.\"}],\"next\":null}\n";
    (void)state;
    EXPECT_TEXT(body_of(CASES " HTTP/1.1" ROOT), NO_CASES);
    contradict();
    EXPECT_TEXT(body_of(CASES " HTTP/1.1" ROOT), entry);
    EXPECT_TEXT(body_of(CASES "?state=open&kind=contradiction HTTP/1.1" ROOT), entry);
    EXPECT_TEXT(body_of(CASES "?state=all HTTP/1.1" ROOT), entry);
    EXPECT_TEXT(body_of(CASES "?kind=mismatch HTTP/1.1" ROOT), NO_CASES);
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "402 declined"); /* As it was. */
}

static void a_look_at_cases_is_read_strictly(void **state)
{
    static const char *const queries[] = {
        "?state=closed", "?state=OPEN",        "?kind=stray",  "?kind=none",      "?cursor=x",
        "?cursor=-1",    "?state=all&state=x", "?principal=a", "?kind=mismatch,x"
    };
    static const struct {
        const char *request;
        const char *expected;
    } rows[] = {
        { "GET /v1/admin/cases/" ID_1 " HTTP/1.1" ROOT, "404 not-found" },
        { "GET /v1/admin/cases/1 HTTP/1.1" ROOT, "404 not-found" },
        { "GET /v1/admin/cases/" ID_1 "?state=all HTTP/1.1" ROOT, "400 query-invalid" },
        { "POST /v1/admin/cases HTTP/1.1" ROOT, "405 method-not-allowed" },
        { "DELETE /v1/admin/cases/" ID_1 " HTTP/1.1" ROOT, "405 method-not-allowed" },
        { "GET /v1/admin/cases/" ID_1 "/resolve HTTP/1.1" ROOT, "405 method-not-allowed" },
        { "POST /v1/admin/cases/" ID_1 "/resolve HTTP/1.1" ROOT JSON
          "{\"verdict\":\"noted\",\"reason\":\"x\"}",
          "404 not-found" },
        { "POST /v1/admin/cases/" ID_1 "/resolve HTTP/1.1" ROOT JSON
          "{\"verdict\":\"stray\",\"reason\":\"x\"}",
          "400 body-invalid" },
        { "POST /v1/admin/cases/" ID_1 "/resolve HTTP/1.1" ROOT JSON "{\"verdict\":\"noted\"}",
          "400 body-invalid" },
        { "POST /v1/admin/cases/" ID_1 "/compensate HTTP/1.1" ROOT JSON "{\"reason\":\"x\"}",
          "404 not-found" },
        { "POST /v1/admin/cases/" ID_1 "/compensate HTTP/1.1" ROOT JSON "{}", "400 body-invalid" },
        { "POST /v1/admin/cases/" ID_1 "/compensate HTTP/1.1" ROOT JSON
          "{\"reason\":\"x\",\"amount\":\"1.00\"}",
          "400 body-invalid" },
        { "POST /v1/admin/cases/" ID_1 "/compensate?now=1 HTTP/1.1" ROOT JSON "{\"reason\":\"x\"}",
          "400 query-invalid" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(queries); i++) {
        char text[128];
        print_message("# %s\n", queries[i]);
        (void)snprintf(text, sizeof(text), CASES "%s HTTP/1.1" ROOT, queries[i]);
        EXPECT_TEXT(verdict(text), "400 query-invalid");
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].request);
        EXPECT_TEXT(verdict(rows[i].request), rows[i].expected);
    }
}

static void a_case_is_decided_by_its_own_id(void **state)
{
    (void)state;
    contradict();
    EXPECT_TEXT(verdict(with_id("GET /v1/admin/cases/{id} HTTP/1.1" ROOT, case_id)), "200");
    EXPECT_TEXT(idem_str_from(edge_id()), operation);
    const char *answer = edge_ask(
        &edge, with_id(RESOLVE "{\"verdict\":\"noted\",\"reason\":\"settled by hand\"}", case_id));
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\n"));
    assert_non_null(strstr(answer,
                           "\"decided\":\"{time}\",\"decided_by\":\"root\",\"decision\":"
                           "\"noted: settled by hand\""));
    assert_non_null(strstr(answer, "\"state\":\"failed\""));
    EXPECT_TEXT(body_of(CASES " HTTP/1.1" ROOT), NO_CASES);
    const char *all = edge_ask(&edge, CASES "?state=all HTTP/1.1" ROOT);
    assert_non_null(strstr(all, "\"decision\":\"noted: settled by hand\""));
    EXPECT_TEXT(verdict(with_id(COMPENSATE, case_id)), "409 state-conflict"); /* It is decided. */
    assert_int_equal(edge.port.sends, 0);
}

static void each_case_of_an_operation_is_listed(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    event_script(effect_id_of(operation_of_payment()), IDEM_OUTCOME_SUCCESS, "evt-1");
    listener.evidence.amount_minor = 700;
    EXPECT_TEXT(verdict(EVENT), "200");
    listener.evidence.amount_minor = 10000;
    listener.evidence.outcome = IDEM_OUTCOME_REFUSED_FINAL;
    listener.evidence.event_id = IDEM_STR("evt-2");
    EXPECT_TEXT(verdict(EVENT), "200");
    const char *list = edge_ask(&edge, CASES " HTTP/1.1" ROOT);
    const char *newest = strstr(list, "\"kind\":\"contradiction\"");
    const char *oldest = strstr(list, "\"kind\":\"mismatch\"");
    assert_true(newest != NULL && oldest != NULL && newest < oldest);
    assert_null(strstr(oldest + 1, "\"kind\""));
    list = edge_ask(&edge, CASES "?kind=contradiction HTTP/1.1" ROOT);
    assert_non_null(strstr(list, "\"kind\":\"contradiction\""));
    assert_null(strstr(list, "\"kind\":\"mismatch\""));
}

/* Cases and operations are counted apart. */
static void cases_have_pages(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k" JSON ORDER("A-1")), "201");
    for (int i = 0; i < IDEM_READ_ENTRIES_MAX + 1; i++) {
        char text[512];
        char event[16];
        (void)snprintf(text, sizeof(text),
                       PAY ALICE KEY "p%d" JSON
                                     "{\"order_no\":\"P-%d\",\"amount\":\"100.00\","
                                     "\"currency\":\"CNY\",\"provider\":\"sandbox\"}",
                       i, i);
        (void)snprintf(event, sizeof(event), "evt-%d", i);
        edge.port.outcome = IDEM_OUTCOME_REFUSED_FINAL;
        EXPECT_TEXT(verdict(text), "402 declined");
        event_script(effect_id_of(operation_of_payment()), IDEM_OUTCOME_SUCCESS, event);
        EXPECT_TEXT(verdict(EVENT), "200");
    }
    const char *first = edge_ask(&edge, CASES " HTTP/1.1" ROOT);
    const char *next = strstr(first, "],\"next\":\"");
    assert_non_null(next);
    long cursor = strtol(next + strlen("],\"next\":\""), NULL, 10);
    char text[128];
    (void)snprintf(text, sizeof(text), CASES "?cursor=%ld HTTP/1.1" ROOT, cursor);
    const char *second = edge_ask(&edge, text);
    assert_non_null(strstr(second, "],\"next\":null}\n"));
    const char *one = strstr(second, "\"endpoint\"");
    assert_non_null(one);
    assert_null(strstr(one + 1, "\"endpoint\""));
}

static void expect_given_back(void)
{
    const char *answer = edge_ask(&edge, with_id("GET /v1/payments/{id} HTTP/1.1" ALICE, case_id));
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\n"));
    assert_non_null(strstr(answer, "\"captured\":\"100.00\""));
    assert_non_null(strstr(answer, "\"refunded\":\"100.00\""));
    assert_int_equal(edge.port.sends, 1);
}

static void a_stray_payment_is_given_back_once(void **state)
{
    static const char expected[] =
        "{\"payment\":\"/v1/payments/{id}\",\"operation\":\"/v1/operations/{id}\",\"endpoint\":"
        "\"refunds.create\",\"state\":\"succeeded\"}\n";
    (void)state;
    contradict();
    EXPECT_TEXT(body_of(with_id(COMPENSATE, case_id)), expected);
    EXPECT_TEXT(idem_str_from(edge_id()), case_id);
    expect_given_back();
    EXPECT_TEXT(body_of(with_id(COMPENSATE, case_id)), expected);
    EXPECT_TEXT(body_of(with_id("POST /v1/admin/cases/{id}/compensate HTTP/1.1" ROOT JSON
                                "{\"reason\":\"another person\"}",
                                case_id)),
                expected);
    expect_given_back();
    const char *all = edge_ask(&edge, CASES "?state=all HTTP/1.1" ROOT);
    assert_non_null(strstr(all, "\"decided_by\":\"root\",\"decision\":\"stray: stray\""));
    EXPECT_TEXT(body_of(CASES " HTTP/1.1" ROOT), NO_CASES);
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "402 declined"); /* As it was. */
    EXPECT_TEXT(verdict(EVENT), "200");
    EXPECT_TEXT(body_of(CASES " HTTP/1.1" ROOT), NO_CASES); /* A person has seen it. */
}

/* The second one finds the first one's refund on its way. */
static void two_persons_at_once_give_it_back_once(void **state)
{
    (void)state;
    contradict();
    edge.port.hold = true;
    int fds[2];
    for (int i = 0; i < 2; i++) {
        fds[i] = edge_connect(&edge);
        edge_send(&edge, fds[i], with_id(COMPENSATE, case_id));
    }
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS);
    for (int i = 0; i < 2; i++) {
        const char *answer = edge_answer(&edge, fds[i]);
        assert_non_null(strstr(answer, "HTTP/1.1 200 OK\n"));
        assert_non_null(strstr(answer, "\"state\":\"succeeded\"}"));
        assert_int_equal(close(fds[i]), 0);
    }
    edge_turn(&edge);
    expect_given_back();
}

static void a_refund_that_is_refused_says_so(void **state)
{
    (void)state;
    contradict();
    edge.port.outcome = IDEM_OUTCOME_REFUSED_FINAL;
    for (int i = 0; i < 2; i++) {
        const char *answer = edge_ask(&edge, with_id(COMPENSATE, case_id));
        assert_non_null(strstr(answer, "HTTP/1.1 200 OK\n"));
        assert_non_null(strstr(answer, "\"state\":\"failed\",\"problem\":\"declined\"}"));
        assert_int_equal(edge.port.sends, 1);
    }
}

/* The payment has its row, but the case's own refund fails. */
static void compensate_in_vain(void)
{
    edge.port.outcome = IDEM_OUTCOME_REFUSED_FINAL;
    assert_non_null(strstr(edge_ask(&edge, with_id(COMPENSATE, case_id)), "\"failed\""));
    edge.port.outcome = IDEM_OUTCOME_SUCCESS;
    edge.port.sends = 0;
}

/* Under a key of its own: what is left then is nothing. */
static void what_the_merchant_gave_back_is_not_given_back_again(void **state)
{
    static const char expected[] =
        "{\"payment\":\"/v1/payments/{id}\",\"operation\":null,\"endpoint\":null,\"state\":"
        "\"succeeded\"}\n";
    struct idem_api_act act;
    (void)state;
    contradict();
    compensate_in_vain();
    EXPECT_TEXT(verdict(with_id("POST /v1/payments/{id}/refunds HTTP/1.1" ALICE KEY "r1" JSON "{}",
                                case_id)),
                "201");
    expect_given_back();
    while (idem_api_take_acts(edge.api, &act, 1) == 1) {
    }
    for (int i = 0; i < 2; i++) {
        EXPECT_TEXT(body_of(with_id(COMPENSATE, case_id)), expected);
        expect_given_back();
    }
    assert_int_equal(idem_api_take_acts(edge.api, &act, 1), 0); /* Nothing was submitted. */
}

/* A merchant gives up its own key of the case's name, which it has never used. */
static void name_abandon(const char *endpoint)
{
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "POST /v1/operations/abandon HTTP/1.1" ALICE KEY "case-%s" JSON
                   "{\"endpoint\":\"%s\"}",
                   case_id, endpoint);
    const char *answer = edge_ask(&edge, text);
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\n"));
    assert_non_null(strstr(answer, "\"state\":\"failed\""));
}

static void a_name_that_a_merchant_has_given_up_is_not_the_cases(void **state)
{
    (void)state;
    contradict();
    name_abandon("refunds.create");
    EXPECT_TEXT(verdict(with_id(COMPENSATE, case_id)), "200");
    expect_given_back();
}

/* An authorization is not refunded: it is released. */
static void a_stray_authorization_is_canceled(void **state)
{
    static const char order[] = PAY ALICE KEY
        "k1" JSON
        "{\"order_no\":\"A-1\",\"amount\":\"100.00\",\"currency\":\"CNY\",\"provider\":\"sandbox\","
        "\"capture\":\"manual\"}";
    (void)state;
    edge.port.outcome = IDEM_OUTCOME_REFUSED_FINAL;
    EXPECT_TEXT(verdict(order), "402 declined");
    event_script(effect_id_of(operation_of_payment()), IDEM_OUTCOME_SUCCESS, "evt-1");
    EXPECT_TEXT(verdict(EVENT), "200");
    EXPECT_TEXT(verdict(CASES " HTTP/1.1" ROOT), "200");
    (void)snprintf(case_id, sizeof(case_id), "%s", edge_id_behind("\"case\":"));
    edge.port.outcome = IDEM_OUTCOME_SUCCESS;
    edge.port.sends = 0;
    name_abandon("payments.cancel");
    const char *answer = edge_ask(&edge, with_id(COMPENSATE, case_id));
    assert_non_null(strstr(answer, "\"endpoint\":\"payments.cancel\",\"state\":\"succeeded\"}"));
    EXPECT_TEXT(verdict(with_id(COMPENSATE, case_id)), "200");
    assert_int_equal(edge.port.sends, 1);
}

/* The sum is not what was asked for: that is to be looked at, and not to be given back blindly. */
static void what_is_no_stray_payment_is_not_given_back(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    event_script(effect_id_of(operation_of_payment()), IDEM_OUTCOME_SUCCESS, "evt-1");
    listener.evidence.amount_minor = 700;
    EXPECT_TEXT(verdict(EVENT), "200");
    const char *list = edge_ask(&edge, CASES "?kind=mismatch HTTP/1.1" ROOT);
    assert_non_null(strstr(list, "\"kind\":\"mismatch\""));
    (void)snprintf(case_id, sizeof(case_id), "%s", edge_id_behind("\"case\":"));
    const char *answer = edge_ask(&edge, with_id(COMPENSATE, case_id));
    assert_non_null(strstr(answer, "HTTP/1.1 409 Conflict\n"));
    assert_non_null(strstr(answer, "urn:idem:problem:state-conflict"));
    assert_non_null(strstr(answer, "the books do not have"));
    EXPECT_TEXT(verdict(with_id("GET /v1/payments/{id} HTTP/1.1" ALICE, case_id)), "404 not-found");
    assert_int_equal(edge.port.sends, 1);
}

static void a_merchant_with_the_name_of_a_case_is_not_in_its_way(void **state)
{
    static const char refund[] = "POST /v1/payments/{id}/refunds HTTP/1.1" ALICE KEY;
    char text[512];
    (void)state;
    contradict();
    EXPECT_TEXT(verdict(PAY ALICE KEY "k2" JSON ORDER("A-2")), "201");
    (void)snprintf(text, sizeof(text), "%s", with_id(refund, edge_id()));
    size_t len = strlen(text);
    (void)snprintf(text + len, sizeof(text) - len, "case-%s" JSON "{\"amount\":\"1.00\"}", case_id);
    EXPECT_TEXT(verdict(text), "201");
    edge.port.sends = 0;
    EXPECT_TEXT(verdict(with_id(COMPENSATE, case_id)), "200");
    expect_given_back();
    (void)snprintf(text, sizeof(text),
                   "GET /v1/operations?endpoint=refunds.create HTTP/1.1" ALICE KEY "case-%s",
                   case_id);
    assert_non_null(strstr(edge_ask(&edge, text), "\"amount\":\"1.00\"")); /* Alice's own. */
}

static void the_order_number_of_a_case_is_no_merchants(void **state)
{
    static const char order[] =
        PAY ALICE KEY "k2" JSON
                      "{\"order_no\":\"case-{id}\",\"amount\":\"100.00\",\"currency\":\"CNY\","
                      "\"provider\":\"sandbox\"}";
    (void)state;
    contradict();
    const char *refused = edge_ask(&edge, with_id(order, case_id));
    assert_non_null(strstr(refused, "HTTP/1.1 400 Bad Request\n"));
    assert_non_null(strstr(refused, "urn:idem:problem:body-invalid"));
    assert_non_null(strstr(refused, "case- and an id is a number of an operator's"));
    EXPECT_TEXT(verdict(PAY ALICE KEY "k3" JSON ORDER("case-17")), "201");
    edge.port.sends = 0;
    EXPECT_TEXT(verdict(with_id(COMPENSATE, case_id)), "200");
    expect_given_back();
}

static void each_decision_is_told(void **state)
{
    struct idem_api_act act;
    char memory[IDEM_UID_TEXT_LEN];
    struct idem_buf object;
    (void)state;
    contradict();
    EXPECT_TEXT(verdict(with_id(COMPENSATE, case_id)), "200");
    assert_int_equal(idem_api_take_acts(edge.api, &act, 1), 1);
    assert_string_equal(act.verb, "compensate");
    assert_string_equal(act.outcome, "done");
    assert_int_equal(idem_api_take_acts(edge.api, &act, 1), 1);
    assert_string_equal(act.verb, "compensate-refund");
    assert_string_equal(act.outcome, "succeeded");
    EXPECT_TEXT(idem_api_act_by(&act), "root");
    idem_buf_init(&object, memory, sizeof(memory));
    idem_uid_print(act.object, &object);
    EXPECT_TEXT(idem_buf_str(&object), case_id);
    EXPECT_TEXT(verdict(with_id(COMPENSATE, case_id)), "200");
    assert_int_equal(idem_api_take_acts(edge.api, &act, 1), 0); /* There was nothing to decide. */
    EXPECT_TEXT(
        verdict(with_id(RESOLVE "{\"verdict\":\"failed\",\"reason\":\"not theirs\"}", case_id)),
        "409 state-conflict");
    assert_int_equal(idem_api_take_acts(edge.api, &act, 1), 1);
    assert_string_equal(act.verb, "resolve-failed");
    assert_string_equal(act.outcome, "state-conflict");
}

/* Its answer is forgotten: nobody submits anything, and nobody is told to have done so. */
static void a_repeat_without_an_answer_is_no_act(void **state)
{
    static const char erase[] =
        "POST /v1/admin/operations/{id}/erase HTTP/1.1" ROOT JSON "{\"reason\":\"asked to\"}";
    struct idem_api_act act;
    char own[IDEM_UID_TEXT_LEN + 1];
    (void)state;
    contradict();
    compensate_in_vain();
    (void)edge_ask(&edge, with_id(COMPENSATE, case_id));
    (void)snprintf(own, sizeof(own), "%s", edge_id_behind("\"operation\":"));
    edge.rules.retry_window_us = 0;
    EXPECT_TEXT(verdict(with_id(erase, own)), "200");
    while (idem_api_take_acts(edge.api, &act, 1) == 1) {
    }
    EXPECT_TEXT(verdict(with_id(COMPENSATE, case_id)), "410 answer-expired");
    assert_int_equal(idem_api_take_acts(edge.api, &act, 1), 0);
    assert_int_equal(edge.port.sends, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_listening, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_contradiction_is_a_case),
        TEST(a_look_at_cases_is_read_strictly),
        TEST(a_case_is_decided_by_its_own_id),
        TEST(each_case_of_an_operation_is_listed),
        TEST(cases_have_pages),
        TEST(a_stray_payment_is_given_back_once),
        TEST(two_persons_at_once_give_it_back_once),
        TEST(a_refund_that_is_refused_says_so),
        TEST(what_the_merchant_gave_back_is_not_given_back_again),
        TEST(a_name_that_a_merchant_has_given_up_is_not_the_cases),
        TEST(a_stray_authorization_is_canceled),
        TEST(what_is_no_stray_payment_is_not_given_back),
        TEST(a_merchant_with_the_name_of_a_case_is_not_in_its_way),
        TEST(the_order_number_of_a_case_is_no_merchants),
        TEST(each_decision_is_told),
        TEST(a_repeat_without_an_answer_is_no_act),
    };
    return cmocka_run_group_tests_name("api/admin_case", tests, NULL, NULL);
}
