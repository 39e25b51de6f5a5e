/*
 * The operators' routes from socket to socket.
 *
 * Goal: docs/admin.md is true: who may ask, what is shown, what each request changes, that it may
 * be repeated, that credentials count and stop counting with the answer, and that each act is told
 * to who writes it down.
 *
 * Method: requests as text to a real server, engine and memory store; the operator is "root". What
 * changes from run to run is shown as {id}, {time}, {date}, {len}.
 */
#include "api/api.h"

#include <unistd.h>

#include "api/api_internal.h"
#include "scene.h"

#define REVOKE "DELETE /v1/admin/credentials/"

/* Makes a payment whose send never gets an answer; its operation's id. */
static const char *unknown_make(void)
{
    static char id[IDEM_UID_TEXT_LEN + 1];
    edge.port.outcome = IDEM_OUTCOME_UNKNOWN;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1\nPrefer: wait=0" JSON ORDER("A-1")), "202");
    (void)snprintf(id, sizeof(id), "%s", edge_id());
    edge_turn(&edge);
    return id;
}

static void only_operators_are_let_in(void **state)
{
    static const char *const requests[] = {
        "GET /v1/admin/operations",
        "GET /v1/admin/operations/" ID_1 "",
        "POST /v1/admin/operations/" ID_1 "/resolve",
        "POST /v1/admin/operations/" ID_1 "/erase",
        "GET /v1/admin/payments/" ID_1 "/operations",
        "GET /v1/admin/summary",
        "GET /v1/admin/credentials",
        "PUT /v1/admin/credentials/" ID_1 "",
        "DELETE /v1/admin/credentials/" ID_1 "",
        "GET /v1/admin/restored",
        "POST /v1/admin/restored/end",
        "GET /v1/admin/cases",
        "GET /v1/admin/cases/" ID_1 "",
        "POST /v1/admin/cases/" ID_1 "/resolve",
        "POST /v1/admin/cases/" ID_1 "/compensate",
        "GET /v1/admin/webhooks",
        "PUT /v1/admin/webhooks/" ID_1 "",
        "POST /v1/admin/webhooks/" ID_1 "/rotate",
        "POST /v1/admin/webhooks/" ID_1 "/disable",
        "POST /v1/admin/webhooks/" ID_1 "/enable",
        "POST /v1/admin/webhooks/" ID_1 "/test",
        "GET /v1/admin/deliveries",
        "POST /v1/admin/messages/" ID_1 "/replay",
    };
    static const struct {
        const char *bearer;
        const char *expected;
    } rows[] = {
        { "", "401 unauthenticated" },
        { "\nAuthorization: Bearer eve", "401 unauthenticated" },
        { ALICE, "403 forbidden" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(requests); i++) {
        for (size_t r = 0; r < IDEM_ARRAY_COUNT(rows); r++) {
            char text[256];
            (void)snprintf(text, sizeof(text), "%s HTTP/1.1%s", requests[i], rows[r].bearer);
            print_message("# %s\n", text);
            EXPECT_TEXT(verdict(text), rows[r].expected);
        }
    }
    EXPECT_TEXT(verdict(PAY ROOT KEY "k" JSON ORDER("A")), "403 forbidden");
}

static void what_is_open_is_listed(void **state)
{
    (void)state;
    EXPECT_TEXT(body_of("GET /v1/admin/operations HTTP/1.1" ROOT),
                "{\"operations\":[],\"next\":null}\n");
    (void)unknown_make();
    static const char entry[] =
        "{\"operations\":[{\"id\":\"{id}\",\"principal\":\"alice\",\"endpoint\":"
        "\"payments.create\",\"state\":\"unknown\",\"created\":\"{time}\",\"unknown_since\":"
        "\"{time}\",\"finished\":null,\"next\":{\"step\":\"ask the provider\",\"at\":\"{time}\"},"
        "\"sends\":1,\"provider\":\"sandbox\",\"amount\":\"100.00\",\"currency\":\"CNY\","
        "\"payment\":\"/v1/payments/{id}\",\"case\":null,\"why\":\"It was sent, and no final "
        "answer came: it may have happened.\"}],\"next\":null}\n";
    EXPECT_TEXT(body_of("GET /v1/admin/operations HTTP/1.1" ROOT), entry);
    EXPECT_TEXT(body_of("GET /v1/admin/operations?state=unknown HTTP/1.1" ROOT), entry);
    EXPECT_TEXT(body_of("GET /v1/admin/operations?state=parked HTTP/1.1" ROOT),
                "{\"operations\":[],\"next\":null}\n");
    EXPECT_TEXT(verdict("GET /v1/admin/operations?state=failed HTTP/1.1" ROOT),
                "400 query-invalid");
    EXPECT_TEXT(verdict("GET /v1/admin/operations?cursor=x HTTP/1.1" ROOT), "400 query-invalid");
    EXPECT_TEXT(verdict("GET /v1/admin/credentials?state=open HTTP/1.1" ROOT), "400 query-invalid");
}

static void a_list_has_pages(void **state)
{
    (void)state;
    edge.port.outcome = IDEM_OUTCOME_UNKNOWN;
    for (int i = 0; i < IDEM_READ_ENTRIES_MAX + 1; i++) {
        char text[512];
        (void)snprintf(text, sizeof(text),
                       PAY ALICE KEY "p%d\nPrefer: wait=0" JSON
                                     "{\"order_no\":\"P-%d\",\"amount\":\"1.00\",\"currency\":"
                                     "\"CNY\",\"provider\":\"sandbox\"}",
                       i, i);
        EXPECT_TEXT(verdict(text), "202");
    }
    const char *first = edge_ask(&edge, "GET /v1/admin/operations HTTP/1.1" ROOT);
    const char *next = strstr(first, "],\"next\":\"");
    assert_non_null(next);
    long cursor = strtol(next + strlen("],\"next\":\""), NULL, 10);
    char text[128];
    (void)snprintf(text, sizeof(text), "GET /v1/admin/operations?cursor=%ld HTTP/1.1" ROOT, cursor);
    const char *second = edge_ask(&edge, text);
    assert_non_null(strstr(second, "],\"next\":null}\n"));
    const char *one = strstr(second, "\"endpoint\"");
    assert_non_null(one);
    assert_null(strstr(one + 1, "\"endpoint\""));
}

static void an_operation_is_shown_whole(void **state)
{
    (void)state;
    const char *id = unknown_make();
    const char *answer =
        edge_ask(&edge, with_id("GET /v1/admin/operations/{id} HTTP/1.1" ROOT, id));
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\n"));
    assert_non_null(strstr(answer, "\"state\":\"unknown\""));
    assert_non_null(strstr(answer, "\"attempts\":[{\"send\":1,"));
    assert_non_null(
        strstr(answer,
               ",\"answer\":null,\"principal\":\"alice\",\"next\":{\"step\":\"ask the provider\","
               "\"at\":\"{time}\"},\"why\":\"It was sent, and no final answer came: it may have "
               "happened.\",\"effect\":{\"id\":\"c"));
    assert_non_null(strstr(answer,
                           "\",\"kind\":\"charge\",\"provider\":\"sandbox\",\"account\":"
                           "\"main\",\"region\":\"eu\",\"amount\":\"100.00\",\"currency\":"
                           "\"CNY\",\"reference\":\"REF-1\"},\"cases\":[]}\n"));
    assert_null(strstr(answer, "k1"));
    EXPECT_TEXT(verdict("GET /v1/admin/operations/" ID_1 " HTTP/1.1" ROOT), "404 not-found");
}

#define RESOLVE "POST /v1/admin/operations/{id}/resolve HTTP/1.1" ROOT JSON

static void a_person_says_that_it_happened(void **state)
{
    (void)state;
    const char *id = unknown_make();
    EXPECT_TEXT(verdict(with_id(RESOLVE "{\"verdict\":\"succeeded\",\"reason\":\"seen in the "
                                        "portal\",\"amount\":\"99.00\",\"currency\":\"CNY\"}",
                                id)),
                "422 amount-invalid");
    static const char yes[] = RESOLVE
        "{\"verdict\":\"succeeded\",\"reason\":\"seen in the portal\","
        "\"amount\":\"100.00\",\"currency\":\"CNY\",\"reference\":"
        "\"T-99\"}";
    const char *answer = edge_ask(&edge, with_id(yes, id));
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\n"));
    assert_non_null(strstr(answer, "\"state\":\"succeeded\""));
    assert_non_null(strstr(answer, "\"kind\":\"resolved\",\"cause\":\"operator\""));
    assert_non_null(strstr(answer, "seen in the portal"));
    assert_non_null(strstr(answer, "\"reference\":\"T-99\""));
    assert_non_null(strstr(answer, "\"next\":null"));
    EXPECT_TEXT(verdict(with_id(yes, id)), "200");
    EXPECT_TEXT(verdict(with_id(RESOLVE "{\"verdict\":\"failed\",\"reason\":\"x\"}", id)),
                "409 state-conflict");
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    assert_int_equal(edge.port.sends, 1);
}

static void it_is_too_early_to_say_that_it_did_not(void **state)
{
    (void)state;
    const char *id = unknown_make();
    const char *answer = edge_ask(
        &edge, with_id(RESOLVE "{\"verdict\":\"failed\",\"reason\":\"not in the portal\"}", id));
    assert_non_null(strstr(answer, "HTTP/1.1 409 Conflict\n"));
    assert_non_null(strstr(answer, "urn:idem:problem:too-early"));
    assert_non_null(strstr(answer, "\nRetry-After: "));
    assert_non_null(strstr(answer, "Nothing was changed: what was sent may still arrive"));
}

static void a_verdict_has_its_members_and_no_others(void **state)
{
    static const char *const bodies[] = {
        "{}",
        "{\"verdict\":\"failed\"}",
        "{\"verdict\":\"failed\",\"reason\":\"\"}",
        "{\"verdict\":\"failed\",\"reason\":\"a\\u0007b\"}",
        "{\"verdict\":\"maybe\",\"reason\":\"x\"}",
        "{\"verdict\":\"failed\",\"reason\":\"x\",\"amount\":\"1.00\",\"currency\":\"CNY\"}",
        "{\"verdict\":\"noted\",\"reason\":\"x\",\"reference\":\"T\"}",
        "{\"verdict\":\"succeeded\",\"reason\":\"x\"}",
        "{\"verdict\":\"succeeded\",\"reason\":\"x\",\"amount\":\"1.00\"}",
        "{\"verdict\":\"succeeded\",\"reason\":\"x\",\"amount\":\"1\",\"currency\":\"CNY\"}",
        "{\"verdict\":\"succeeded\",\"reason\":\"x\",\"amount\":1,\"currency\":\"CNY\"}",
        "{\"verdict\":\"failed\",\"reason\":\"x\",\"by\":\"me\"}",
    };
    (void)state;
    const char *id = unknown_make();
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(bodies); i++) {
        char text[512];
        print_message("# %s\n", bodies[i]);
        (void)snprintf(text, sizeof(text), RESOLVE "%s", bodies[i]);
        EXPECT_TEXT(verdict(with_id(text, id)), "400 body-invalid");
    }
    EXPECT_TEXT(verdict("POST /v1/admin/operations/" ID_1 "/resolve HTTP/1.1" ROOT JSON
                        "{\"verdict\":\"noted\",\"reason\":\"x\"}"),
                "404 not-found");
}

static void what_may_still_be_retried_is_not_erased(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    char payment[IDEM_UID_TEXT_LEN + 1];
    (void)snprintf(payment, sizeof(payment), "%s", edge_id());
    const char *list =
        edge_ask(&edge, with_id("GET /v1/admin/payments/{id}/operations HTTP/1.1" ROOT, payment));
    assert_non_null(strstr(list, "\"state\":\"succeeded\""));
    assert_non_null(strstr(list, "\"next\":null"));
    char operation[IDEM_UID_TEXT_LEN + 1];
    (void)snprintf(operation, sizeof(operation), "%s", edge_id());
    static const char erase[] =
        "POST /v1/admin/operations/{id}/erase HTTP/1.1" ROOT JSON "{\"reason\":\"asked to\"}";
    EXPECT_TEXT(verdict(with_id(erase, operation)), "409 state-conflict");
    EXPECT_TEXT(
        verdict(with_id("POST /v1/admin/operations/{id}/erase HTTP/1.1" ROOT JSON "{}", operation)),
        "400 body-invalid");

    edge.rules.retry_window_us = 0;
    const char *answer = edge_ask(&edge, with_id(erase, operation));
    assert_non_null(strstr(answer, "\"state\":\"expired\""));
    assert_non_null(strstr(answer, "\"detail\":\"root: asked to\""));
    EXPECT_TEXT(verdict(with_id(erase, operation)), "200");
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "410 answer-expired");
    EXPECT_TEXT(verdict("GET /v1/admin/payments/" ID_1 "/operations HTTP/1.1" ROOT),
                "404 not-found");
}

static void the_summary_counts(void **state)
{
    (void)state;
    (void)unknown_make();
    const char *answer = edge_ask(&edge, "GET /v1/admin/summary HTTP/1.1" ROOT);
    assert_non_null(strstr(answer,
                           "{\"operations\":{\"processing\":0,\"unknown\":1,\"parked\":0,"
                           "\"released\":0},\"unknown_since\":\"{time}\",\"due\":"
                           "\"{time}\",\"cases_open\":0,\"stubs\":0,\"store_bytes\":"));
    assert_non_null(strstr(answer,
                           ",\"time_to_truth\":{\"count\":0,\"p50_s\":\"0.000\",\"p99_s\":"
                           "\"0.000\"},\"restored\":false}\n"));
}

/* ---- credentials ---- */

/* A credential's body for the bearer `token`. */
static const char *credential_body(const char *token, const char *more)
{
    static char text[1024];
    char hex[2 * IDEM_DIGEST_SIZE + 1];
    struct idem_digester *digester;
    struct idem_buf buf;
    assert_int_equal(idem_digester_create(&digester, NULL), IDEM_OK);
    struct idem_digest digest = idem_digest_sha256(digester, idem_str_from(token));
    idem_digester_destroy(digester);
    idem_buf_init(&buf, hex, sizeof(hex));
    idem_buf_add_hex(&buf, digest.bytes, sizeof(digest.bytes));
    hex[buf.len] = '\0';
    (void)snprintf(text, sizeof(text), "{\"secret_sha256\":\"%s\",%s}", hex, more);
    return text;
}

static const char *put(const char *id, const char *token, const char *more)
{
    static char text[2048];
    (void)snprintf(text, sizeof(text), "PUT /v1/admin/credentials/%s HTTP/1.1" ROOT JSON "%s", id,
                   credential_body(token, more));
    return text;
}

#define TILL                                                                     \
    "\"principal\":\"alice\",\"role\":\"merchant\",\"providers\":[\"sandbox\"]," \
    "\"label\":\"till 1\""
#define OLGA "\"principal\":\"olga\",\"role\":\"operator\",\"label\":\"night shift\""
#define SHOWN                                                                                 \
    "{\"id\":\"{id}\",\"source\":\"store\",\"principal\":\"alice\",\"role\":\"merchant\","    \
    "\"providers\":[\"sandbox\"],\"label\":\"till 1\",\"created\":\"{time}\",\"created_by\":" \
    "\"root\",\"revoked\":"

static void a_credential_counts_from_its_answer_to_its_revocation(void **state)
{
    static const char as_till[] = PAY "\nAuthorization: Bearer till" KEY "k1" JSON ORDER("A-1");
    (void)state;
    EXPECT_TEXT(verdict(as_till), "401 unauthenticated");
    EXPECT_TEXT(verdict(put(ID_1, "till", TILL)), "201");
    EXPECT_TEXT(body_of(put(ID_1, "till", TILL)), SHOWN "null,\"revoked_by\":null}\n");
    EXPECT_TEXT(verdict(put(ID_1, "till", TILL)), "200");
    EXPECT_TEXT(verdict(as_till), "201");
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201"); /* Keys are alice's. */
    assert_int_equal(edge.port.sends, 1);

    EXPECT_TEXT(verdict(put(ID_1, "other", TILL)), "409 credential-conflict");
    EXPECT_TEXT(verdict(put(ID_2, "till", TILL)), "409 credential-conflict");
    EXPECT_TEXT(verdict(put(ID_2, "alice", TILL)), "409 credential-conflict"); /* Configured. */

    EXPECT_TEXT(body_of(REVOKE ID_1 " HTTP/1.1" ROOT), "{\"id\":\"{id}\",\"revoked\":true}\n");
    EXPECT_TEXT(verdict(as_till), "401 unauthenticated");
    EXPECT_TEXT(verdict(REVOKE ID_1 " HTTP/1.1" ROOT), "200");
    EXPECT_TEXT(verdict(REVOKE ID_2 " HTTP/1.1" ROOT), "404 not-found");
    EXPECT_TEXT(verdict(put(ID_1, "till", TILL)), "409 credential-conflict");
    EXPECT_TEXT(verdict(as_till), "401 unauthenticated");
}

static void an_operator_may_be_added(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(put(ID_1, "ops", OLGA)), "201");
    EXPECT_TEXT(verdict("GET /v1/admin/summary HTTP/1.1\nAuthorization: Bearer ops"), "200");
    EXPECT_TEXT(verdict(PAY "\nAuthorization: Bearer ops" KEY "k" JSON ORDER("A")),
                "403 forbidden");
    EXPECT_TEXT(
        verdict("DELETE /v1/admin/credentials/" ID_1 " HTTP/1.1\nAuthorization: Bearer ops"),
        "200");
    const char *list = edge_ask(&edge, "GET /v1/admin/credentials HTTP/1.1" ROOT);
    assert_non_null(strstr(list, "\"revoked\":\"{time}\",\"revoked_by\":\"olga (night shift)\""));
    EXPECT_TEXT(verdict("GET /v1/admin/summary HTTP/1.1\nAuthorization: Bearer ops"),
                "401 unauthenticated");
}

static void credentials_are_listed_without_their_secrets(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(put(ID_1, "till", TILL)), "201");
    struct idem_str list = body_of("GET /v1/admin/credentials HTTP/1.1" ROOT);
    assert_true(idem_str_starts(
        list, IDEM_STR("{\"credentials\":[{\"id\":null,\"source\":\"configuration\",\"principal\":"
                       "\"alice\",\"role\":\"merchant\",\"providers\":[\"sandbox\"],\"label\":null,"
                       "\"created\":null,\"created_by\":null,\"revoked\":null,\"revoked_by\":null},"
                       "{\"id\":null,")));
    assert_non_null(strstr(list.data, "," SHOWN "null,\"revoked_by\":null}],\"next\":null}\n"));
    assert_null(strstr(list.data, "sha256"));
}

static void a_credential_is_read_strictly(void **state)
{
    static const char *const members[] = {
        "\"principal\":\"alice\"",
        "\"role\":\"merchant\"",
        "\"principal\":\"alice\",\"role\":\"boss\"",
        "\"principal\":\"\",\"role\":\"merchant\"",
        "\"principal\":\"a b\",\"role\":\"merchant\"",
        "\"principal\":\"alice\",\"role\":\"merchant\",\"providers\":\"sandbox\"",
        "\"principal\":\"alice\",\"role\":\"merchant\",\"providers\":[1]",
        "\"principal\":\"alice\",\"role\":\"merchant\",\"providers\":[\"\"]",
        "\"principal\":\"alice\",\"role\":\"merchant\",\"providers\":[\"a b\"]",
        "\"principal\":\"alice\",\"role\":\"merchant\",\"providers\":[\"nowhere\"]",
        "\"principal\":\"alice\",\"role\":\"merchant\",\"secret\":\"s\"",
        "\"principal\":\"alice\",\"role\":\"merchant\",\"label\":\"a\\u009Bb\"",
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(members); i++) {
        print_message("# %s\n", members[i]);
        EXPECT_TEXT(verdict(put(ID_1, "till", members[i])), "400 body-invalid");
    }
    EXPECT_TEXT(verdict("PUT /v1/admin/credentials/" ID_1 " HTTP/1.1" ROOT JSON
                        "{\"principal\":\"a\",\"role\":\"merchant\",\"secret_sha256\":\"12\"}"),
                "400 body-invalid");
    EXPECT_TEXT(verdict("PUT /v1/admin/credentials/1 HTTP/1.1" ROOT JSON "{}"), "404 not-found");
    EXPECT_TEXT(verdict(put(ID_0, "till", TILL)), "400 request-invalid");
    EXPECT_TEXT(verdict(REVOKE ID_0 " HTTP/1.1" ROOT), "404 not-found");
}

static void few_credentials(struct idem_api_options *options)
{
    options->credentials_max = 1;
}

static void credentials_have_a_limit(void **state)
{
    (void)state;
    edge_open(&edge, few_credentials);
    EXPECT_TEXT(verdict(put(ID_1, "till", TILL)), "201");
    EXPECT_TEXT(verdict(put(ID_1, "till", TILL)), "200");
    const char *answer = edge_ask(&edge, put(ID_2, "till-2", TILL));
    assert_non_null(strstr(answer, "HTTP/1.1 503 "));
    assert_non_null(strstr(answer, "limits.credentials"));
    EXPECT_TEXT(verdict(REVOKE ID_1 " HTTP/1.1" ROOT), "200");
    EXPECT_TEXT(verdict(put(ID_2, "till-2", TILL)), "201");
    edge_close(&edge);
}

static void two_credentials(struct idem_api_options *options)
{
    options->credentials_max = 2;
}

/* A store that was filled under a higher limit than the one that holds now. */
static void credentials_beyond_the_limit_get_in_once_there_is_room(void **state)
{
    static const char as_first[] = "GET /v1/admin/summary HTTP/1.1\nAuthorization: Bearer ops-1";
    static const char as_second[] = "GET /v1/admin/summary HTTP/1.1\nAuthorization: Bearer ops-2";
    static const char as_eve[] = "GET /v1/admin/summary HTTP/1.1\nAuthorization: Bearer eve";
    (void)state;
    edge_open(&edge, two_credentials);
    EXPECT_TEXT(verdict(put(ID_1, "ops-1", OLGA)), "201");
    EXPECT_TEXT(verdict(put(ID_2, "ops-2", OLGA)), "201");
    assert_false(idem_api_credentials_crowded(edge.api));

    edge_open_again(&edge, few_credentials);
    assert_true(idem_api_credentials_crowded(edge.api));
    assert_non_null(
        strstr(edge_ask(&edge, "GET /metrics HTTP/1.1"), "\nidem_credentials_crowded 1\n"));
    EXPECT_TEXT(body_of("GET /readyz HTTP/1.1"), "{\"status\":\"ok\"}\n");
    EXPECT_TEXT(verdict(as_first), "200");
    EXPECT_TEXT(verdict(as_second), "503 unavailable");
    EXPECT_TEXT(verdict(as_eve), "503 unavailable");

    EXPECT_TEXT(verdict(REVOKE ID_1 " HTTP/1.1" ROOT), "200");
    assert_false(idem_api_credentials_crowded(edge.api));
    assert_non_null(
        strstr(edge_ask(&edge, "GET /metrics HTTP/1.1"), "\nidem_credentials_crowded 0\n"));
    EXPECT_TEXT(verdict(as_first), "401 unauthenticated");
    EXPECT_TEXT(verdict(as_second), "200");
    EXPECT_TEXT(verdict(as_eve), "401 unauthenticated");
    edge_close(&edge);
}

/* A page that was read before a revocation would bring back what was revoked. */
static void a_page_from_before_a_revocation_brings_nobody_back(void **state)
{
    static const char as_first[] = "GET /v1/admin/summary HTTP/1.1\nAuthorization: Bearer ops-1";
    (void)state;
    edge_open(&edge, two_credentials);
    EXPECT_TEXT(verdict(put(ID_1, "ops-1", OLGA)), "201");
    edge.api->credentials.again = true;
    idem_api_step(edge.api); /* Asks for a page, */
    edge_turn_engine(&edge); /* which is read */
    assert_true(edge.api->own_credentials.running);
    idem_credentials_remove(&edge.api->credentials, edge.api->credentials.stored[0].id);
    idem_api_step(edge.api); /* and is old by now: it is asked for again. */
    assert_int_equal(edge.api->credentials.stored_count, 0);
    assert_true(edge.api->own_credentials.running);
    edge_turn(&edge);
    EXPECT_TEXT(verdict(as_first), "200"); /* The store never revoked it. */
    edge_close(&edge);
}

static void grants_are_the_credentials_own(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(put(ID_1, "till", "\"principal\":\"alice\",\"role\":\"merchant\"")), "201");
    EXPECT_TEXT(verdict(put(ID_2, "till-2",
                            "\"principal\":\"alice\",\"role\":\"merchant\",\"providers\":[\"*\"]")),
                "201");
    EXPECT_TEXT(verdict(PAY "\nAuthorization: Bearer till" KEY "k" JSON ORDER("A")),
                "403 forbidden");
    EXPECT_TEXT(verdict(PAY "\nAuthorization: Bearer till-2" KEY "k" JSON ORDER("A")), "201");
}

/* ---- the rest ---- */

static void the_restored_mode_is_shown_and_ended(void **state)
{
    static const char end[] =
        "POST /v1/admin/restored/end HTTP/1.1" ROOT JSON "{\"reason\":\"compared by hand\"}";
    (void)state;
    EXPECT_TEXT(body_of("GET /v1/admin/restored HTTP/1.1" ROOT),
                "{\"restored\":false,\"needs_operator\":false,\"from\":null,\"begins\":null,"
                "\"listed\":0,\"failures\":0}\n");
    EXPECT_TEXT(verdict(end), "200");
    const struct idem_api_gauges gauges = {
        .restored = true,
        .restore_needs_operator = true,
        .restore_from_us = INT64_C(1795960023000001),
        .restore_listed = 3,
    };
    idem_api_set_gauges(edge.api, &gauges);
    EXPECT_TEXT(body_of("GET /v1/admin/restored HTTP/1.1" ROOT),
                "{\"restored\":true,\"needs_operator\":true,\"from\":\"{time}\",\"begins\":null,"
                "\"listed\":3,\"failures\":0}\n");
    EXPECT_TEXT(body_of("GET /readyz HTTP/1.1"), "{\"status\":\"restored\"}\n");
    EXPECT_TEXT(verdict("POST /v1/admin/restored/end HTTP/1.1" ROOT JSON "{}"), "400 body-invalid");
    EXPECT_TEXT(body_of(end),
                "{\"restored\":false,\"needs_operator\":false,\"from\":\"{time}\","
                "\"begins\":null,\"listed\":3,\"failures\":0}\n");
    EXPECT_TEXT(body_of("GET /readyz HTTP/1.1"), "{\"status\":\"ok\"}\n");
}

static void a_service_that_stops_says_so(void **state)
{
    (void)state;
    idem_engine_drain(edge.engine);
    idem_api_drain(edge.api);
    const char *answer = edge_ask(&edge, put(ID_1, "till", TILL));
    assert_non_null(strstr(answer, "HTTP/1.1 503 "));
    assert_non_null(strstr(answer, "\nRetry-After: 1\n"));
    assert_non_null(strstr(answer, "The service is stopping."));
}

/* ---- what was done ---- */

/* "resolve-failed too-early root", for the only act since the last look. */
static const char *act(void)
{
    static char text[256];
    static struct idem_api_act acts[2];
    assert_int_equal(idem_api_take_acts(edge.api, acts, IDEM_ARRAY_COUNT(acts)), 1);
    assert_int_equal(acts[0].lost, 0);
    struct idem_str by = idem_api_act_by(&acts[0]);
    (void)snprintf(text, sizeof(text), "%s %s %.*s", acts[0].verb, acts[0].outcome, (int)by.len,
                   by.data);
    return text;
}

static void each_act_is_told(void **state)
{
    struct idem_api_act none;
    (void)state;
    EXPECT_TEXT(verdict(put(ID_1, "ops", OLGA)), "201");
    EXPECT_TEXT(idem_str_from(act()), "credential-add done root");
    EXPECT_TEXT(verdict(put(ID_2, "ops", OLGA)), "409 credential-conflict");
    EXPECT_TEXT(idem_str_from(act()), "credential-add credential-conflict root");

    const char *id = unknown_make();
    EXPECT_TEXT(
        verdict(with_id(RESOLVE "{\"verdict\":\"failed\",\"reason\":\"secret words\"}", id)),
        "409 too-early");
    EXPECT_TEXT(idem_str_from(act()), "resolve-failed too-early root");
    static const char yes[] =
        "POST /v1/admin/operations/{id}/resolve HTTP/1.1\n"
        "Authorization: Bearer ops" JSON
        "{\"verdict\":\"succeeded\",\"reason\":\"seen\",\"amount\":"
        "\"100.00\",\"currency\":\"CNY\"}";
    EXPECT_TEXT(verdict(with_id(yes, id)), "200");
    EXPECT_TEXT(idem_str_from(act()), "resolve-succeeded done olga (night shift)");
    EXPECT_TEXT(verdict(with_id("POST /v1/admin/operations/{id}/erase HTTP/1.1" ROOT JSON
                                "{\"reason\":\"asked to\"}",
                                id)),
                "409 state-conflict");
    EXPECT_TEXT(idem_str_from(act()), "erase state-conflict root");
    EXPECT_TEXT(verdict(REVOKE ID_1 " HTTP/1.1" ROOT), "200");
    EXPECT_TEXT(idem_str_from(act()), "credential-revoke done root");

    /* Looks and what is refused by its bytes are no acts. */
    EXPECT_TEXT(verdict("GET /v1/admin/operations HTTP/1.1" ROOT), "200");
    EXPECT_TEXT(verdict(put(ID_2, "ops", "\"role\":1")), "400 body-invalid");
    EXPECT_TEXT(verdict("POST /v1/admin/restored/end HTTP/1.1" ROOT JSON "{\"reason\":\"x\"}"),
                "200");
    assert_int_equal(idem_api_take_acts(edge.api, &none, 1), 0);
    const struct idem_api_gauges restored = { .restored = true };
    idem_api_set_gauges(edge.api, &restored);
    EXPECT_TEXT(verdict("POST /v1/admin/restored/end HTTP/1.1" ROOT JSON "{\"reason\":\"x\"}"),
                "200");
    EXPECT_TEXT(idem_str_from(act()), "restored-end done root");
}

static void an_act_names_what_it_was_about(void **state)
{
    struct idem_api_act acts[2];
    char text[IDEM_UID_TEXT_LEN];
    struct idem_buf buf;
    (void)state;
    EXPECT_TEXT(verdict(put(ID_1, "ops", OLGA)), "201");
    assert_int_equal(idem_api_take_acts(edge.api, acts, IDEM_ARRAY_COUNT(acts)), 1);
    idem_buf_init(&buf, text, sizeof(text));
    idem_uid_print(acts[0].object, &buf);
    EXPECT_TEXT(idem_buf_str(&buf), ID_1);
}

static void one_request_only(struct idem_api_options *options)
{
    options->requests_max = 1;
    options->limits.principal_requests_max = 1;
    options->limits.principal_rate = 1;
}

static void operators_get_through_when_merchants_do_not(void **state)
{
    (void)state;
    edge_open(&edge, one_request_only);
    edge.port.hold = true;
    int first = edge_connect(&edge);
    edge_send(&edge, first, PAY ALICE KEY "k1" JSON ORDER("A-1"));
    EXPECT_TEXT(verdict(PAY ALICE KEY "k2" JSON ORDER("A-2")), "429 rate-limited");
    EXPECT_TEXT(verdict(PAY "\nAuthorization: Bearer bob" KEY "k2" JSON ORDER("A-2")),
                "503 unavailable");
    for (int i = 0; i < 5; i++) {
        EXPECT_TEXT(verdict("GET /v1/admin/operations HTTP/1.1" ROOT), "200");
    }
    edge_let_go(&edge, IDEM_OUTCOME_SUCCESS);
    assert_non_null(strstr(edge_answer(&edge, first), "HTTP/1.1 201 Created\n"));
    assert_int_equal(close(first), 0);
    edge_close(&edge);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_operators_are_let_in),
        TEST(what_is_open_is_listed),
        TEST(a_list_has_pages),
        TEST(an_operation_is_shown_whole),
        TEST(a_person_says_that_it_happened),
        TEST(it_is_too_early_to_say_that_it_did_not),
        TEST(a_verdict_has_its_members_and_no_others),
        TEST(what_may_still_be_retried_is_not_erased),
        TEST(the_summary_counts),
        TEST(a_credential_counts_from_its_answer_to_its_revocation),
        TEST(an_operator_may_be_added),
        TEST(credentials_are_listed_without_their_secrets),
        TEST(a_credential_is_read_strictly),
        cmocka_unit_test(credentials_have_a_limit),
        cmocka_unit_test(credentials_beyond_the_limit_get_in_once_there_is_room),
        cmocka_unit_test(a_page_from_before_a_revocation_brings_nobody_back),
        TEST(grants_are_the_credentials_own),
        TEST(the_restored_mode_is_shown_and_ended),
        TEST(a_service_that_stops_says_so),
        TEST(each_act_is_told),
        TEST(an_act_names_what_it_was_about),
        cmocka_unit_test(operators_get_through_when_merchants_do_not),
    };
    return cmocka_run_group_tests_name("api/admin", tests, NULL, NULL);
}
