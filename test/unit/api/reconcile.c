/*
 * The operators' routes for reconciliation from socket to socket.
 *
 * Goal: both sides come page by page, and only what was asked for; a listing is read by one at a
 * time and waits for nobody who leaves; evidence is answered when all of it is durable, with how
 * each effect stands then; the same again is old news; two requests with evidence do not mix.
 *
 * Method: requests as text to a real server, engine and memory store; the operator is "root". The
 * listing is a port of the test's, which keeps a page until it is let go.
 */
#include "api/api.h"

#include <unistd.h>

#include "api/api_internal.h"
#include "scene.h"

#define PERIOD   "provider=sandbox&from=2020-01-01T00:00:00Z&to=2999-01-01T00:00:00Z"
#define EFFECTS  "GET /v1/admin/effects?" PERIOD
#define LISTINGS "GET /v1/admin/listings?" PERIOD
#define EVIDENCE "POST /v1/admin/evidence HTTP/1.1" ROOT JSON
#define NOWHERE  "c0000000000000000000000001a"

/* A port that only lists. */
static struct {
    struct idem_port port;
    struct idem_listing *listing; /* On its way. */
    struct idem_list done;
    bool full;
    size_t asked;
    size_t canceled;
    char cursor[IDEM_LISTING_CURSOR_MAX]; /* Of the last page asked for. */
} lists;

static struct idem_provider_rules provider;
static struct idem_rules rules;

static enum idem_err list_page(struct idem_port *port, struct idem_listing *listing)
{
    (void)port;
    if (lists.full || lists.listing != NULL) {
        return IDEM_E_LIMIT;
    }
    lists.listing = listing;
    lists.asked += 1;
    (void)snprintf(lists.cursor, sizeof(lists.cursor), "%s", listing->cursor);
    return IDEM_OK;
}

static void list_reap(struct idem_port *port, struct idem_list *ret_done)
{
    (void)port;
    idem_list_join(ret_done, &lists.done);
}

static void page_end(bool answered)
{
    struct idem_listing *listing = lists.listing;
    assert_non_null(listing);
    listing->answered = answered;
    listing->count = 0;
    listing->more = false;
    lists.listing = NULL;
    idem_list_push(&lists.done, &listing->node);
}

static void list_cancel(struct idem_port *port, struct idem_listing *listing)
{
    (void)port;
    assert_ptr_equal(listing, lists.listing);
    lists.canceled += 1;
    page_end(false);
}

static const struct idem_port_ops ops = {
    .list = list_page,
    .reap_listings = list_reap,
    .cancel_listing = list_cancel,
};

static void listed(struct idem_api_options *options)
{
    memset(&lists, 0, sizeof(lists));
    lists.port.ops = &ops;
    provider = options->rules->providers[0];
    provider.listing = true;
    rules = *options->rules;
    rules.providers = &provider;
    options->rules = &rules;
    options->port = &lists.port;
}

static int setup_listed(void **state)
{
    (void)state;
    edge_open(&edge, listed);
    return 0;
}

/* Puts the id where "{id}" stands, and gives the answer's body. */
static struct idem_str tell(const char *format, struct idem_str id)
{
    char text[IDEM_EFFECT_ID_LEN + 1];
    (void)snprintf(text, sizeof(text), "%.*s", (int)id.len, id.data);
    return body_of(with_id(format, text));
}

static void expect_part(struct idem_str body, const char *part)
{
    char text[4096];
    (void)snprintf(text, sizeof(text), "%.*s", (int)body.len, body.data);
    if (strstr(text, part) == NULL) {
        fail_msg("no %s in %s", part, text);
    }
}

static void records_come_in_pages(void **state)
{
    (void)state;
    static const char none[] =
        "{\"effects\":[],\"account\":\"main\",\"region\":\"eu\",\"next\":null}\n";
    EXPECT_TEXT(body_of(EFFECTS " HTTP/1.1" ROOT), none);
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    struct idem_str body = body_of(EFFECTS " HTTP/1.1" ROOT);
    expect_part(body,
                "\"kind\":\"charge\",\"state\":\"succeeded\",\"amount\":\"100.00\","
                "\"currency\":\"CNY\",\"account\":\"main\",\"region\":\"eu\","
                "\"order_no\":\"A-1\"");
    expect_part(body, "\"next\":null");
    EXPECT_TEXT(body_of("GET /v1/admin/effects?provider=sandbox&from=2020-01-01T00:00:00Z&"
                        "to=2020-01-02T00:00:00Z HTTP/1.1" ROOT),
                none);
}

static void a_period_is_read_strictly(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "GET /v1/admin/effects HTTP/1.1" ROOT,
        "GET /v1/admin/effects?provider=sandbox HTTP/1.1" ROOT,
        "GET /v1/admin/effects?provider=sandbox&from=2020-01-01T00:00:00Z&"
        "to=2020-01-01T00:00:00Z HTTP/1.1" ROOT,
        EFFECTS "&cursor=x HTTP/1.1" ROOT,
        EFFECTS "&more=1 HTTP/1.1" ROOT,
        LISTINGS "&cursor=%00 HTTP/1.1" ROOT,
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(bad); i++) {
        EXPECT_TEXT(verdict(bad[i]), "400 query-invalid");
    }
    EXPECT_TEXT(verdict("GET /v1/admin/effects?provider=nobody&from=2020-01-01T00:00:00Z&"
                        "to=2020-01-02T00:00:00Z HTTP/1.1" ROOT),
                "404 not-found");
    EXPECT_TEXT(verdict(EFFECTS " HTTP/1.1" ALICE), "403 forbidden");
    EXPECT_TEXT(verdict(LISTINGS " HTTP/1.1" ALICE), "403 forbidden");
    assert_int_equal(lists.asked, 0);
}

static void without_a_listing_there_is_none(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(LISTINGS " HTTP/1.1" ROOT), "404 not-found");
}

static void one_page_is_read_at_a_time(void **state)
{
    (void)state;
    int first = edge_connect(&edge);
    edge_send(&edge, first, LISTINGS "&cursor=a%2Fb HTTP/1.1" ROOT);
    assert_string_equal(lists.cursor, "a/b");
    EXPECT_TEXT(verdict(LISTINGS " HTTP/1.1" ROOT), "503 unavailable");
    assert_int_equal(lists.asked, 1);
    struct idem_listing *listing = lists.listing;
    page_end(true);
    idem_buf_init(&listing->kept, listing->memory, sizeof(listing->memory));
    listing->listed[0] = (struct idem_listed){
        .effect_id = IDEM_STR(NOWHERE),
        .amount_minor = 10000,
        .currency = IDEM_STR("CNY"),
        .order_no = IDEM_STR("A-1"),
        .happened_us = 1,
    };
    listing->listed[1] = (struct idem_listed){ .effect_id = IDEM_STR("pi_1"), .amount_minor = 5 };
    listing->count = 2;
    listing->more = true;
    (void)snprintf(listing->cursor, sizeof(listing->cursor), "next");
    const char *answer = edge_answer(&edge, first);
    assert_non_null(strstr(
        answer, "{\"effects\":[{\"effect_id\":\"" NOWHERE "\",\"amount\":\"100.00\","
                "\"currency\":\"CNY\",\"order_no\":\"A-1\",\"payment_id\":null,"
                "\"reference\":null,\"happened\":\"{time}\"},{\"effect_id\":\"pi_1\","
                "\"amount\":null,\"currency\":null,\"order_no\":null,\"payment_id\":null,"
                "\"reference\":null,\"happened\":null}],\"complete\":true,\"next\":\"next\"}\n"));
    (void)close(first);
}

static void a_page_that_did_not_come_is_told_as_that(void **state)
{
    (void)state;
    lists.full = true;
    EXPECT_TEXT(verdict(LISTINGS " HTTP/1.1" ROOT), "503 unavailable");
    lists.full = false;
    int fd = edge_connect(&edge);
    edge_send(&edge, fd, LISTINGS " HTTP/1.1" ROOT);
    page_end(false);
    assert_non_null(strstr(edge_answer(&edge, fd), "The provider did not answer with a listing"));
    (void)close(fd);

    struct idem_api_gauges gauges = { .restored = true }; /* Then the listing is the worker's. */
    idem_api_set_gauges(edge.api, &gauges);
    EXPECT_TEXT(verdict(LISTINGS " HTTP/1.1" ROOT), "503 unavailable");
    assert_int_equal(lists.asked, 1);
}

static void a_stop_waits_for_no_provider(void **state)
{
    (void)state;
    int fd = edge_connect(&edge);
    edge_send(&edge, fd, LISTINGS " HTTP/1.1" ROOT);
    assert_int_equal(lists.asked, 1);
    idem_api_drain(edge.api);
    assert_int_equal(lists.canceled, 1);
    assert_non_null(strstr(edge_answer(&edge, fd), "urn:idem:problem:unavailable"));
    EXPECT_TEXT(verdict(LISTINGS " HTTP/1.1" ROOT), "503 unavailable");
    (void)close(fd);
}

static void whoever_leaves_takes_no_page_along(void **state)
{
    (void)state;
    int fd = edge_connect(&edge);
    edge_send(&edge, fd, LISTINGS " HTTP/1.1" ROOT);
    (void)close(fd);
    edge_turn(&edge);
    EXPECT_TEXT(verdict(LISTINGS " HTTP/1.1" ROOT), "503 unavailable");
    page_end(true);
    edge_turn(&edge);
    fd = edge_connect(&edge);
    edge_send(&edge, fd, LISTINGS " HTTP/1.1" ROOT);
    assert_int_equal(lists.asked, 2);
    page_end(true);
    assert_non_null(strstr(edge_answer(&edge, fd), "\"effects\":[]"));
    (void)close(fd);
}

#define ONE(found) \
    EVIDENCE "{\"provider\":\"sandbox\",\"effects\":[{\"found\":\"" found "\",\"id\":\"{id}\"}]}"
#define ONE_OF(found, amount)                                             \
    EVIDENCE "{\"provider\":\"sandbox\",\"effects\":[{\"found\":\"" found \
             "\",\"id\":\"{id}\",\"amount\":\"" amount "\",\"currency\":\"CNY\"}]}"

static void evidence_says_how_it_stands_then(void **state)
{
    (void)state;
    char operation[IDEM_UID_TEXT_LEN + 1];
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    (void)snprintf(operation, sizeof(operation), "%s", operation_of_payment());
    struct idem_str id = effect_id_of(operation);
    expect_part(tell(ONE_OF("listed", "100.00"), id), "\"result\":\"known\"");
    expect_part(tell(ONE_OF("listed", "99.00"), id),
                "\"result\":\"case\",\"id\":\"{id}\",\"state\":\"succeeded\","
                "\"case\":\"mismatch\"");
    expect_part(tell(ONE_OF("listed", "99.00"), id), "\"result\":\"case\""); /* Old news. */
    expect_part(tell(ONE("missing"), id), "\"case\":\"missing\"");

    EXPECT_TEXT(verdict(with_id("POST /v1/admin/operations/{id}/resolve HTTP/1.1" ROOT JSON
                                "{\"verdict\":\"noted\",\"reason\":\"seen\"}",
                                operation)),
                "200");
    expect_part(tell(ONE("missing"), id), "\"result\":\"decided\"");
    expect_part(tell(ONE_OF("listed", "99.00"), id), "\"result\":\"decided\"");
    expect_part(tell(ONE_OF("again", "100.00"), id), "\"case\":\"duplicate\"");
}

static void what_has_no_record_is_a_stub_or_absent(void **state)
{
    (void)state;
    expect_part(tell(ONE("missing"), IDEM_STR(NOWHERE)),
                "\"result\":\"absent\",\"id\":null,\"state\":null,\"case\":null");
    expect_part(tell(ONE_OF("listed", "100.00"), IDEM_STR(NOWHERE)), "\"result\":\"stub\"");
}

static void what_is_open_is_settled(void **state)
{
    (void)state;
    edge.port.outcome = IDEM_OUTCOME_UNKNOWN;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1\nPrefer: wait=0" JSON ORDER("A-1")), "202");
    struct idem_str id = effect_id_of(edge_id());
    expect_part(tell(ONE("failed"), id), "\"result\":\"none\"");
    expect_part(tell(ONE_OF("listed", "100.00"), id),
                "\"result\":\"settled\",\"id\":\"{id}\",\"state\":\"succeeded\",\"case\":null");
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    expect_part(tell(ONE_OF("listed", "100.00"), id), "\"result\":\"known\"");
}

static void two_requests_do_not_mix(void **state)
{
    (void)state;
    static char text[512];
    int first = edge_connect(&edge);
    int second = edge_connect(&edge);
    (void)snprintf(text, sizeof(text), "%s", with_id(ONE("missing"), NOWHERE));
    edge_turn(&edge);
    edge_write(first, text);
    edge_write(second, text);
    edge_turn(&edge);
    assert_non_null(strstr(edge_answer(&edge, first), "\"result\":\"absent\""));
    assert_non_null(strstr(edge_answer(&edge, second), "urn:idem:problem:unavailable"));
    (void)close(first);
    (void)close(second);
    expect_part(body_of(text), "\"result\":\"absent\""); /* The place is free again. */
}

static void what_cannot_be_written_is_told_as_that(void **state)
{
    (void)state;
    idem_engine_drain(edge.engine); /* Tasks still run then; */
    idem_engine_hurry(edge.engine); /* now they do not. */
    EXPECT_TEXT(verdict(with_id(ONE("missing"), NOWHERE)), "503 unavailable");
    EXPECT_TEXT(verdict(with_id(ONE("missing"), NOWHERE)), "503 unavailable");
}

/* As many effects as may be, with long texts, in which each 'c' is written as `c`. */
static struct idem_str tell_long(const char *c)
{
    static char text[65536];
    struct idem_buf buf;
    idem_buf_init(&buf, text, sizeof(text));
    idem_buf_printf(&buf, "%s", EVIDENCE "{\"provider\":\"sandbox\",\"effects\":[");
    for (int i = 0; i < IDEM_EVIDENCE_MAX; i++) {
        idem_buf_printf(&buf, "%s{\"found\":\"missing\",\"id\":\"%s%s\",\"payment_id\":\"%s%s\"",
                        i > 0 ? "," : "", c, &NOWHERE[1], c, &NOWHERE[1]);
        idem_buf_printf(&buf, ",\"happened\":\"\\u0032020-01-01T00:00:00.000000Z\"");
        idem_buf_printf(&buf, ",\"order_no\":\"%s%0*d\"", c, IDEM_ORDER_NO_MAX - 1, 0);
        idem_buf_printf(&buf, ",\"reference\":\"%s%0*d\"}", c, IDEM_REFERENCE_MAX - 1, 0);
    }
    idem_buf_printf(&buf, "]}%c", '\0');
    assert_false(buf.full);
    return body_of(text);
}

static void text_that_finds_no_room_is_told_as_that(void **state)
{
    (void)state;
    expect_part(tell_long("c"), "\"result\":\"absent\"");
    expect_part(tell_long("\\u0063"), "The effects have too much text with escapes in it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(records_come_in_pages, setup_listed, teardown),
        cmocka_unit_test_setup_teardown(a_period_is_read_strictly, setup_listed, teardown),
        cmocka_unit_test_setup_teardown(without_a_listing_there_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(one_page_is_read_at_a_time, setup_listed, teardown),
        cmocka_unit_test_setup_teardown(a_page_that_did_not_come_is_told_as_that, setup_listed,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_stop_waits_for_no_provider, setup_listed, teardown),
        cmocka_unit_test_setup_teardown(whoever_leaves_takes_no_page_along, setup_listed, teardown),
        cmocka_unit_test_setup_teardown(evidence_says_how_it_stands_then, setup_listed, teardown),
        cmocka_unit_test_setup_teardown(what_has_no_record_is_a_stub_or_absent, setup_listed,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_open_is_settled, setup_listed, teardown),
        cmocka_unit_test_setup_teardown(two_requests_do_not_mix, setup_listed, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_is_told_as_that, setup_listed,
                                        teardown),
        cmocka_unit_test_setup_teardown(text_that_finds_no_room_is_told_as_that, setup_listed,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
