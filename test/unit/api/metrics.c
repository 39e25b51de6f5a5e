/*
 * The metrics page.
 *
 * Goal: it needs no credential and names nobody; every sample belongs to a family that was
 * announced with HELP and TYPE; counters move with what happened; the page of the largest
 * configuration fits.
 *
 * Method: the page over a connection, line by line. (test/api/admin.py reads the real program's
 * page with a strict reader of the format.)
 */
#include "api/api.h"

#include "edge.h"

#define ALICE "\nAuthorization: Bearer alice"
#define JSON  "\nContent-Type: application/json\n\n"
#define PAY   "POST /v1/payments HTTP/1.1"
#define KEY   "\nIdempotency-Key: "
#define PAGE  "GET /metrics HTTP/1.1"

#define ORDER(order_no)                                           \
    "{\"order_no\":\"" order_no                                   \
    "\",\"amount\":\"100.00\",\"currency\":\"CNY\",\"provider\":" \
    "\"sandbox\"}"

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

static void has(const char *page, const char *line)
{
    print_message("# %s\n", line);
    assert_non_null(strstr(page, line));
}

static void it_is_open_to_everybody_and_names_nobody(void **state)
{
    (void)state;
    (void)edge_ask(&edge, PAY ALICE KEY "key-of-alice" JSON ORDER("A-1"));
    const char *page = edge_ask(&edge, PAGE);
    has(page, "HTTP/1.1 200 OK\n");
    has(page, "\nContent-Type: text/plain; version=0.0.4; charset=utf-8\n");
    assert_null(strstr(page, "alice"));
    assert_null(strstr(page, "A-1"));
    assert_non_null(strstr(edge_ask(&edge, "POST /metrics HTTP/1.1"), "HTTP/1.1 405 "));
}

static void counters_move_with_what_happened(void **state)
{
    (void)state;
    (void)edge_ask(&edge, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    (void)edge_ask(&edge, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    (void)edge_ask(&edge, PAY ALICE KEY "k1" JSON ORDER("A-2"));
    (void)edge_ask(&edge, PAY JSON ORDER("A-2"));
    (void)edge_ask(&edge, "GET /v1/payments/x HTTP/1.1");
    const char *page = edge_ask(&edge, PAGE);
    has(page, "\nidem_claims_total 1\n");
    has(page, "\nidem_replays_total 1\n");
    has(page, "\nidem_problems_total{code=\"key-reused\"} 1\n");
    has(page, "\nidem_problems_total{code=\"unauthenticated\"} 1\n");
    has(page, "\nidem_problems_total{code=\"not-found\"} 1\n");
    has(page, "\nidem_intents_ended_total{state=\"succeeded\"} 1\n");
    has(page,
        "\nidem_provider_outcomes_total{entry=\"sandbox\",call=\"send\",outcome=\"success\"} "
        "1\n");
    has(page, "\nidem_provider_seconds_count{entry=\"sandbox\",call=\"send\",} 1\n");
    has(page, "\nidem_provider_in_flight{entry=\"sandbox\",use=\"send\"} 0\n");
    has(page, "\nidem_provider_in_flight_max{entry=\"sandbox\",use=\"recovery\"} 0\n");
    has(page, "\nidem_provider_waiting{entry=\"sandbox\",stage=\"unclaimed\"} 0\n");
    has(page, "\nidem_provider_breaker{entry=\"sandbox\"} 0\n");
    has(page, "\nidem_credentials_crowded 0\n");
    has(page, "\nidem_intents{state=\"unknown\"} 0\n");
    has(page, "\nidem_ready 1\n");
    has(page, "\nidem_http_requests_total ");
}

static void what_the_daemon_knows_is_shown(void **state)
{
    (void)state;
    const struct idem_api_gauges gauges = {
        .version = IDEM_STR("1.2.3"),
        .uptime_us = 61500000,
        .loop_lag_us = 1234,
        .disk_low = true,
        .clock_apart = true,
        .reaper_expired = 7,
    };
    idem_api_set_gauges(edge.api, &gauges);
    const char *page = edge_ask(&edge, PAGE);
    has(page, "idem_build_info{version=\"1.2.3\"} 1\n");
    has(page, "\nidem_uptime_seconds 61.500000\n");
    has(page, "\nidem_loop_lag_seconds 0.001234\n");
    has(page, "\nidem_disk_low 1\n");
    has(page, "\nidem_clock_apart 1\n");
    has(page, "\nidem_retention_expired_total 7\n");
    has(page, "\nidem_ready 0\n");
    assert_non_null(strstr(edge_ask(&edge, "GET /readyz HTTP/1.1"), "{\"status\":\"disk-low\"}\n"));
}

static void how_reconciliations_ended_is_shown(void **state)
{
    (void)state;
    const struct idem_api_reconciled reconciled[IDEM_API_PROVIDERS_MAX] = {
        { .verdict = IDEM_API_RECONCILED_LATE,
          .ended_us = 1700000000900000,
          .done_us = 1699920000000000,
          .counts = { [IDEM_API_RECONCILED_AGREED] = 5, [IDEM_API_RECONCILED_LATE] = 2 } },
    };
    const struct idem_api_gauges gauges = { .reconciled = reconciled };
    idem_api_set_gauges(edge.api, &gauges);
    const char *page = edge_ask(&edge, PAGE);
    has(page, "\nidem_reconciliations_total{entry=\"sandbox\",verdict=\"agreed\"} 5\n");
    has(page, "\nidem_reconciliations_total{entry=\"sandbox\",verdict=\"left\"} 0\n");
    has(page, "\nidem_reconciliations_total{entry=\"sandbox\",verdict=\"late\"} 2\n");
    has(page, "\nidem_reconciliation_verdict{entry=\"sandbox\"} 4\n");
    has(page, "\nidem_reconciliation_ended_seconds{entry=\"sandbox\"} 1700000000\n");
    has(page, "\nidem_reconciliation_done_seconds{entry=\"sandbox\"} 1699920000\n");
}

/* The name at the start of a line, up to a brace or space. */
static struct idem_str name_of(struct idem_str line)
{
    size_t brace = idem_str_find(line, '{');
    size_t space = idem_str_find(line, ' ');
    return idem_str_slice(line, 0, brace < space ? brace : space);
}

static void every_sample_belongs_to_the_family_before_it(void **state)
{
    (void)state;
    const char *page = strstr(edge_ask(&edge, PAGE), "\n\n");
    assert_non_null(page);
    struct idem_str rest = idem_str_from(page + 2);
    struct idem_str family = IDEM_STR("");
    size_t samples = 0;
    while (rest.len > 0) {
        struct idem_str line = idem_str_next(&rest, '\n');
        if (idem_str_starts(line, IDEM_STR("# HELP "))) {
            family = name_of(idem_str_slice(line, strlen("# HELP "), line.len));
            line = idem_str_next(&rest, '\n');
            assert_true(idem_str_starts(line, IDEM_STR("# TYPE ")));
            assert_true(idem_str_starts(idem_str_slice(line, strlen("# TYPE "), line.len), family));
            continue;
        }
        assert_true(family.len > 0);
        assert_true(idem_str_starts(line, family));
        samples += 1;
    }
    assert_true(samples > 100);
}

static void the_page_of_the_largest_configuration_fits(void **state)
{
    struct idem_api_reconciled reconciled[IDEM_API_PROVIDERS_MAX];
    const struct idem_api_gauges gauges = { .reconciled = reconciled };
    (void)state;
    for (size_t i = 0; i < IDEM_API_PROVIDERS_MAX; i++) {
        reconciled[i] = (struct idem_api_reconciled){ .ended_us = INT64_MAX, .done_us = INT64_MAX };
        memset(reconciled[i].counts, 0xFF, sizeof(reconciled[i].counts));
    }
    edge_open_crowded(&edge);
    idem_api_set_gauges(edge.api, &gauges);
    const char *page = edge_ask(&edge, PAGE);
    has(page, "HTTP/1.1 200 OK\n");
    has(page, "{entry=\"31-34567890123456789012345678901\",call=\"close\",le=\"+Inf\"} 0\n");
    edge_close(&edge);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_open_to_everybody_and_names_nobody),
        TEST(counters_move_with_what_happened),
        TEST(what_the_daemon_knows_is_shown),
        TEST(how_reconciliations_ended_is_shown),
        TEST(every_sample_belongs_to_the_family_before_it),
        cmocka_unit_test(the_page_of_the_largest_configuration_fits),
    };
    return cmocka_run_group_tests_name("api/metrics", tests, NULL, NULL);
}
