/*
 * Webhooks and deliveries from socket to socket.
 *
 * Goal: whoever adds a webhook or rotates its secret sees the secret, and nobody else does; each
 * request may be repeated; a principal has as many as there may be; what changed is on its way to
 * who is told of it, and can be sent again; each act is told to who writes it down.
 *
 * Method: requests as text to a real server, engine and memory store; the operator is "root". No
 * worker is here: what is pending stays so until the test says what became of it.
 */
#include "api/api.h"

#include <unistd.h>

#include "api/api_internal.h"
#include "scene.h"

#define HOOK        "/v1/admin/webhooks/{id}"
#define HOOKS       "GET /v1/admin/webhooks"
#define MAILS       "GET /v1/admin/deliveries"
#define BODY        "{\"principal\":\"alice\",\"url\":\"https://a.example/x\"}"
#define PUT(body)   "PUT " HOOK " HTTP/1.1" ROOT JSON body
#define ACT(verb)   "POST " HOOK "/" verb " HTTP/1.1" ROOT
#define ROTATE(old) ACT("rotate") JSON "{\"generation\":\"" old "\"}"
#define ALL                                                                                   \
    "[\"payment.authorized\",\"payment.captured\",\"payment.refunded\",\"payment.canceled\"," \
    "\"payment.failed\",\"payment.expired\",\"payment.reversed\",\"refund.succeeded\","       \
    "\"refund.failed\",\"operation.unknown\",\"operation.parked\",\"operation.succeeded\","   \
    "\"operation.failed\",\"operation.released\",\"case.opened\",\"case.decided\"]"

/* The answer's secret, until the next one is asked for; empty: it has none. */
static const char *secret_of(const char *request)
{
    static char secret[64];
    const char *answer = edge_ask(&edge, request);
    const char *found = strstr(answer, "\"secret\":\"");
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\n"));
    secret[0] = '\0';
    if (found != NULL) {
        struct idem_str rest = idem_str_from(found + strlen("\"secret\":\""));
        struct idem_str text = idem_str_next(&rest, '"');
        (void)snprintf(secret, sizeof(secret), "%.*s", (int)text.len, text.data);
    }
    return secret;
}

/* One of many ids; its number stands at its end. */
static const char *id_of(int number)
{
    static char id[IDEM_UID_TEXT_LEN + 1];
    (void)snprintf(id, sizeof(id), "0197b2f0-3333-7abc-8def-0123456789%02x", (unsigned)number);
    return id;
}

static void a_webhook_is_added_once(void **state)
{
    static const char shown[] =
        "\"principal\":\"alice\",\"url\":\"https://a.example/x\",\"types\":" ALL
        ",\"generation\":1,\"secret\":\"whsec_";
    static const char rest[] =
        "\",\"rotated\":null,\"created\":\"{time}\",\"created_by\":\"root\",\"disabled\":null,"
        "\"disabled_by\":null}\n";
    (void)state;
    EXPECT_TEXT(body_of(HOOKS " HTTP/1.1" ROOT), "{\"webhooks\":[],\"next\":null}\n");
    for (int i = 0; i < 2; i++) { /* The same again is the same. */
        const char *answer = edge_ask(&edge, with_id(PUT(BODY), ID_1));
        assert_non_null(strstr(answer, shown));
        assert_non_null(strstr(answer, rest));
        EXPECT_TEXT(idem_str_from(edge_id()), ID_1);
    }
    char first[64];
    (void)snprintf(first, sizeof(first), "%s", secret_of(with_id(PUT(BODY), ID_1)));
    assert_string_equal(first, secret_of(with_id(PUT(BODY), ID_1)));
    assert_int_equal(strlen(first), strlen("whsec_") + 44);
    assert_string_not_equal(first, secret_of(with_id(PUT(BODY), ID_2)));

    EXPECT_TEXT(
        verdict(with_id(PUT("{\"principal\":\"bob\",\"url\":\"https://a.example/x\"}"), ID_1)),
        "409 state-conflict");
    EXPECT_TEXT(
        verdict(with_id(PUT("{\"principal\":\"alice\",\"url\":\"https://b.example/\"}"), ID_1)),
        "409 state-conflict");
    const char *answer = edge_ask(&edge, with_id(PUT("{\"principal\":\"alice\",\"url\":"
                                                     "\"https://a.example/x\",\"types\":"
                                                     "[\"payment.captured\"]}"),
                                                 ID_1));
    assert_non_null(strstr(answer, "HTTP/1.1 409 Conflict\n"));
    assert_non_null(strstr(answer, "another webhook has this id"));
}

static void a_webhook_is_read_strictly(void **state)
{
    static const char *const bodies[] = {
        "{}",
        "[]",
        "{\"principal\":\"alice\"}",
        "{\"url\":\"https://a.example/\"}",
        "{\"principal\":\"\",\"url\":\"https://a.example/\"}",
        "{\"principal\":\"a b\",\"url\":\"https://a.example/\"}",
        "{\"principal\":\"alice\",\"url\":\"\"}",
        "{\"principal\":\"alice\",\"url\":\"https://a.example/ x\"}",
        "{\"principal\":\"alice\",\"url\":\"http://a.example/\"}",
        "{\"principal\":\"alice\",\"url\":\"HTTPS://a.example/\"}",
        "{\"principal\":\"alice\",\"url\":\"ftp://a.example/\"}",
        "{\"principal\":\"alice\",\"url\":\"a.example\"}",
        "{\"principal\":\"alice\",\"url\":\"https://\"}",
        "{\"principal\":\"alice\",\"url\":\"https:///x\"}",
        "{\"principal\":\"alice\",\"url\":\"https://?x\"}",
        "{\"principal\":\"alice\",\"url\":\"https://user:word@a.example/\"}",
        "{\"principal\":\"alice\",\"url\":\"https://a.example/x#y\"}",
        "{\"principal\":\"alice\",\"url\":\"https://a.example/\",\"types\":\"case.opened\"}",
        "{\"principal\":\"alice\",\"url\":\"https://a.example/\",\"types\":[\"payment.paid\"]}",
        "{\"principal\":\"alice\",\"url\":\"https://a.example/\",\"types\":[\"webhook.test\"]}",
        "{\"principal\":\"alice\",\"url\":\"https://a.example/\",\"types\":[1]}",
        "{\"principal\":\"alice\",\"url\":\"https://a.example/\",\"secret\":\"mine\"}",
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(bodies); i++) {
        char text[512];
        print_message("# %s\n", bodies[i]);
        (void)snprintf(text, sizeof(text), PUT("%s"), bodies[i]);
        EXPECT_TEXT(verdict(with_id(text, ID_1)), "400 body-invalid");
    }
    EXPECT_TEXT(verdict(with_id(PUT(BODY), ID_0)), "400 request-invalid");
    EXPECT_TEXT(verdict("PUT /v1/admin/webhooks/1 HTTP/1.1" ROOT JSON BODY), "404 not-found");
    EXPECT_TEXT(verdict("PUT /v1/admin/webhooks/" ID_1 "?x=1 HTTP/1.1" ROOT JSON BODY),
                "400 query-invalid");
    EXPECT_TEXT(body_of(HOOKS " HTTP/1.1" ROOT), "{\"webhooks\":[],\"next\":null}\n");
}

static void an_address_has_its_length(void **state)
{
    char url[IDEM_WEBHOOK_URL_MAX + 2];
    char text[1024];
    (void)state;
    for (int more = 0; more < 2; more++) {
        (void)snprintf(url, sizeof(url), "https://a.example/%0*d",
                       IDEM_WEBHOOK_URL_MAX + more - (int)strlen("https://a.example/"), 0);
        (void)snprintf(text, sizeof(text), PUT("{\"principal\":\"alice\",\"url\":\"%s\"}"), url);
        EXPECT_TEXT(verdict(with_id(text, ID_1)), more == 0 ? "200" : "400 body-invalid");
    }
}

static void take_http(struct idem_api_options *options)
{
    options->webhooks_allow_http = true;
}

static void plain_http_is_taken_where_it_is_allowed(void **state)
{
    (void)state;
    edge_open(&edge, take_http);
    EXPECT_TEXT(verdict(with_id(
                    PUT("{\"principal\":\"alice\",\"url\":\"http://127.0.0.1/a@b?c@d/\"}"), ID_1)),
                "200");
    EXPECT_TEXT(
        verdict(with_id(PUT("{\"principal\":\"alice\",\"url\":\"ftp://127.0.0.1/\"}"), ID_2)),
        "400 body-invalid");
    edge_close(&edge);
}

static void a_principal_has_so_many_webhooks(void **state)
{
    (void)state;
    for (int i = 0; i < IDEM_WEBHOOKS_PRINCIPAL_MAX; i++) {
        EXPECT_TEXT(verdict(with_id(PUT(BODY), id_of(i))), "200");
    }
    EXPECT_TEXT(verdict(with_id(ACT("disable"), id_of(0))), "200"); /* It counts on. */
    const char *answer = edge_ask(&edge, with_id(PUT(BODY), ID_1));
    assert_non_null(strstr(answer, "HTTP/1.1 409 Conflict\n"));
    assert_non_null(strstr(answer, "as many as there can be"));
    EXPECT_TEXT(verdict(with_id(PUT(BODY), id_of(3))), "200"); /* The same again. */
    EXPECT_TEXT(
        verdict(with_id(PUT("{\"principal\":\"bob\",\"url\":\"https://b.example/\"}"), ID_1)),
        "200");
}

static void webhooks_have_pages(void **state)
{
    (void)state;
    for (int i = 0; i < IDEM_READ_WEBHOOKS_MAX + 1; i++) {
        char text[256];
        (void)snprintf(text, sizeof(text),
                       PUT("{\"principal\":\"p%d\",\"url\":\"https://p.example/\"}"),
                       i / IDEM_WEBHOOKS_PRINCIPAL_MAX);
        EXPECT_TEXT(verdict(with_id(text, id_of(i))), "200");
    }
    const char *first = edge_ask(&edge, HOOKS " HTTP/1.1" ROOT);
    const char *next = strstr(first, "],\"next\":\"");
    assert_non_null(next);
    assert_null(strstr(first, "secret"));
    char text[128];
    (void)snprintf(text, sizeof(text), HOOKS "?cursor=%ld HTTP/1.1" ROOT,
                   strtol(next + strlen("],\"next\":\""), NULL, 10));
    const char *second = edge_ask(&edge, text);
    EXPECT_TEXT(idem_str_from(edge_id()), id_of(IDEM_READ_WEBHOOKS_MAX));
    assert_non_null(strstr(second, "],\"next\":null}\n"));
    const char *of_one = edge_ask(&edge, HOOKS "?principal=p2 HTTP/1.1" ROOT);
    EXPECT_TEXT(idem_str_from(edge_id()), id_of(IDEM_READ_WEBHOOKS_MAX));
    assert_non_null(strstr(of_one, "],\"next\":null}\n"));
    EXPECT_TEXT(body_of(HOOKS "?principal=nobody HTTP/1.1" ROOT),
                "{\"webhooks\":[],\"next\":null}\n");
    EXPECT_TEXT(verdict(HOOKS "?cursor=x HTTP/1.1" ROOT), "400 query-invalid");
    EXPECT_TEXT(verdict(HOOKS "?state=all HTTP/1.1" ROOT), "400 query-invalid");
}

static void a_secret_is_rotated_once(void **state)
{
    char first[64];
    char second[64];
    (void)state;
    (void)snprintf(first, sizeof(first), "%s", secret_of(with_id(PUT(BODY), ID_1)));
    (void)snprintf(second, sizeof(second), "%s", secret_of(with_id(ROTATE("1"), ID_1)));
    assert_string_not_equal(first, second);
    const char *answer = edge_ask(&edge, with_id(ROTATE("1"), ID_1)); /* Its answer got lost. */
    assert_non_null(strstr(answer, "\"generation\":2,"));
    assert_non_null(strstr(answer, "\"rotated\":\"{time}\""));
    assert_string_equal(second, secret_of(with_id(ROTATE("1"), ID_1)));
    assert_string_equal(second, secret_of(with_id(PUT(BODY), ID_1)));
    assert_string_equal(second, secret_of(with_id(ROTATE("7"), ID_1)));
    assert_string_not_equal(second, secret_of(with_id(ROTATE("2"), ID_1)));
}

static void a_rotation_names_the_secret_that_it_replaces(void **state)
{
    static const char *const bodies[] = {
        "{}",
        "{\"generation\":1}",
        "{\"generation\":\"\"}",
        "{\"generation\":\"0\"}",
        "{\"generation\":\"-1\"}",
        "{\"generation\":\"one\"}",
        "{\"generation\":\"4294967297\"}",
        "{\"generation\":\"1\",\"secret\":\"mine\"}",
    };
    (void)state;
    EXPECT_TEXT(verdict(with_id(PUT(BODY), ID_1)), "200");
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(bodies); i++) {
        char text[256];
        print_message("# %s\n", bodies[i]);
        (void)snprintf(text, sizeof(text), "%s%s", ACT("rotate") JSON, bodies[i]);
        EXPECT_TEXT(verdict(with_id(text, ID_1)), "400 body-invalid");
    }
    assert_non_null(strstr(edge_ask(&edge, HOOKS " HTTP/1.1" ROOT), "\"generation\":1,"));
}

static void a_webhook_is_disabled_and_enabled(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(with_id(PUT(BODY), ID_1)), "200");
    for (int i = 0; i < 2; i++) {
        const char *answer = edge_ask(&edge, with_id(ACT("disable"), ID_1));
        assert_non_null(strstr(answer, "\"disabled\":\"{time}\",\"disabled_by\":\"root\"}\n"));
        assert_null(strstr(answer, "secret"));
    }
    const char *refused = edge_ask(&edge, with_id(ACT("test"), ID_1));
    assert_non_null(strstr(refused, "HTTP/1.1 409 Conflict\n"));
    assert_non_null(strstr(refused, "Enable it first"));
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    EXPECT_TEXT(body_of(MAILS " HTTP/1.1" ROOT), "{\"deliveries\":[],\"next\":null}\n");
    for (int i = 0; i < 2; i++) {
        const char *answer = edge_ask(&edge, with_id(ACT("enable"), ID_1));
        assert_non_null(strstr(answer, "\"disabled\":null,\"disabled_by\":null}\n"));
        assert_null(strstr(answer, "secret"));
    }
    static const char *const verbs[] = { "disable", "enable", "test" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(verbs); i++) {
        char text[128];
        (void)snprintf(text, sizeof(text), "POST /v1/admin/webhooks/%s/%s HTTP/1.1" ROOT, ID_2,
                       verbs[i]);
        EXPECT_TEXT(verdict(text), "404 not-found");
        (void)snprintf(text, sizeof(text), "POST /v1/admin/webhooks/%s/%s?x=1 HTTP/1.1" ROOT, ID_1,
                       verbs[i]);
        EXPECT_TEXT(verdict(text), "400 query-invalid");
        (void)snprintf(text, sizeof(text), "GET /v1/admin/webhooks/%s/%s HTTP/1.1" ROOT, ID_1,
                       verbs[i]);
        EXPECT_TEXT(verdict(text), "405 method-not-allowed");
    }
    EXPECT_TEXT(verdict(with_id(ROTATE("1"), ID_2)), "404 not-found");
}

static void a_test_message_goes_to_one_webhook_alone(void **state)
{
    (void)state;
    EXPECT_TEXT(verdict(with_id(PUT(BODY), ID_1)), "200");
    EXPECT_TEXT(verdict(with_id(PUT(BODY), ID_2)), "200");
    const char *answer = edge_ask(&edge, with_id(ACT("test"), ID_1));
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\n"));
    assert_null(strstr(answer, "secret"));
    const char *list = edge_ask(&edge, MAILS " HTTP/1.1" ROOT);
    assert_non_null(strstr(list,
                           "{\"deliveries\":[{\"message\":\"{id}\",\"webhook\":\"{id}\","
                           "\"principal\":\"alice\",\"type\":\"webhook.test\",\"sequence\":"));
    assert_non_null(strstr(list,
                           ",\"payment\":null,\"state\":\"pending\",\"attempts\":0,\"due\":"
                           "\"{time}\",\"last_status\":0,\"last_error\":null,\"created\":"
                           "\"{time}\",\"finished\":null}],\"next\":null}\n"));
    EXPECT_TEXT(idem_str_from(edge_id_behind("\"webhook\":")), ID_1);
}

/* How many deliveries the list of this query has. */
static int deliveries_count(const char *query)
{
    char text[256];
    int count = 0;
    (void)snprintf(text, sizeof(text), MAILS "%s HTTP/1.1" ROOT, query);
    const char *at = edge_ask(&edge, text);
    assert_non_null(strstr(at, "HTTP/1.1 200 OK\n"));
    while ((at = strstr(at, "{\"message\":")) != NULL) {
        count += 1;
        at += 1;
    }
    return count;
}

static void what_changed_is_on_its_way_to_whoever_wants_it(void **state)
{
    static const struct {
        const char *query;
        int count;
    } rows[] = {
        { "", 3 },
        { "?state=pending", 3 },
        { "?state=dead", 0 },
        { "?state=delivered", 0 },
        { "?webhook=" ID_1, 2 },
        { "?webhook=" ID_2, 1 },
        { "?webhook=" ID_2 "&state=pending&principal=alice", 1 },
        { "?principal=alice", 3 },
        { "?principal=bob", 0 },
    };
    static const char *const wrong[] = { "?state=lost", "?state=none", "?webhook=1",
                                         "?cursor=x",   "?types=a",    "?state=dead&state=dead" };
    (void)state;
    EXPECT_TEXT(verdict(PAY ALICE KEY "k0" JSON ORDER("A-0")), "201"); /* Before it: not told. */
    EXPECT_TEXT(verdict(with_id(PUT(BODY), ID_1)), "200");
    EXPECT_TEXT(verdict(with_id(PUT("{\"principal\":\"alice\",\"url\":\"https://b.example/\","
                                    "\"types\":[\"payment.captured\"]}"),
                                ID_2)),
                "200");
    EXPECT_TEXT(verdict(PAY ALICE KEY "k1" JSON ORDER("A-1")), "201");
    EXPECT_TEXT(verdict(PAY "\nAuthorization: Bearer bob" KEY "k1" JSON ORDER("A-1")), "201");
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].query);
        assert_int_equal(deliveries_count(rows[i].query), rows[i].count);
    }
    const char *list = edge_ask(&edge, MAILS "?webhook=" ID_2 " HTTP/1.1" ROOT);
    assert_non_null(strstr(list, "\"type\":\"payment.captured\""));
    assert_non_null(strstr(list, "\"payment\":\"/v1/payments/{id}\""));
    assert_null(strstr(list, "100.00")); /* What is told is the merchant's. */
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(wrong); i++) {
        char text[128];
        print_message("# %s\n", wrong[i]);
        (void)snprintf(text, sizeof(text), MAILS "%s HTTP/1.1" ROOT, wrong[i]);
        EXPECT_TEXT(verdict(text), "400 query-invalid");
    }
}

/* A worker's word, which no request can say. */
static void delivery_end(enum idem_delivery_word word)
{
    static struct idem_task task;
    struct idem_list done = { 0 };
    struct idem_delivery_change *change = &task.item.command.delivery;
    (void)edge_ask(&edge, MAILS " HTTP/1.1" ROOT);
    memset(&task, 0, sizeof(task));
    task.done = &done;
    task.item.command.kind = IDEM_COMMAND_DELIVERY;
    assert_true(idem_uid_parse(idem_str_from(edge_id()), &change->message_id));
    assert_true(idem_uid_parse(IDEM_STR(ID_1), &change->webhook_id));
    change->word = IDEM_DELIVERY_WORD_TAKE;
    change->pause_us = IDEM_US_PER_SECOND;
    idem_engine_run(edge.engine, &task);
    edge_turn(&edge);
    assert_non_null(idem_list_pop(&done));
    change->word = word;
    change->token = task.item.command.token;
    change->pause_us = 0;
    change->status = 500;
    idem_engine_run(edge.engine, &task);
    edge_turn(&edge);
    assert_non_null(idem_list_pop(&done));
    assert_int_equal(task.outcome.release.problem, IDEM_PROBLEM_NONE);
}

#define REPLAY "POST /v1/admin/messages/{id}/replay HTTP/1.1" ROOT JSON "{\"webhook\":\"" ID_1 "\"}"

static void what_was_given_up_is_sent_again(void **state)
{
    static const enum idem_delivery_word words[] = { IDEM_DELIVERY_WORD_FAILED,
                                                     IDEM_DELIVERY_WORD_DONE };
    char message[IDEM_UID_TEXT_LEN + 1];
    (void)state;
    EXPECT_TEXT(verdict(with_id(PUT(BODY), ID_1)), "200");
    EXPECT_TEXT(verdict(with_id(ACT("test"), ID_1)), "200");
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(words); i++) {
        delivery_end(words[i]);
        assert_int_equal(deliveries_count(i == 0 ? "?state=dead" : "?state=delivered"), 1);
        assert_int_equal(deliveries_count("?state=pending"), 0);
        (void)edge_ask(&edge, MAILS " HTTP/1.1" ROOT);
        (void)snprintf(message, sizeof(message), "%s", edge_id());
        for (int again = 0; again < 2; again++) {
            EXPECT_TEXT(body_of(with_id(REPLAY, message)),
                        "{\"message\":\"{id}\",\"state\":\"pending\"}\n");
            assert_int_equal(deliveries_count("?state=pending"), 1);
        }
    }
    EXPECT_TEXT(verdict(with_id(REPLAY, ID_2)), "404 not-found");
    EXPECT_TEXT(verdict(with_id("POST /v1/admin/messages/{id}/replay HTTP/1.1" ROOT JSON
                                "{\"webhook\":\"" ID_2 "\"}",
                                message)),
                "404 not-found");
    EXPECT_TEXT(
        verdict(with_id("POST /v1/admin/messages/{id}/replay HTTP/1.1" ROOT JSON "{}", message)),
        "400 body-invalid");
    EXPECT_TEXT(verdict(with_id("POST /v1/admin/messages/{id}/replay HTTP/1.1" ROOT JSON
                                "{\"webhook\":\"1\"}",
                                message)),
                "400 body-invalid");
    EXPECT_TEXT(verdict(with_id(ACT("disable"), ID_1)), "200");
    const char *refused = edge_ask(&edge, with_id(REPLAY, message));
    assert_non_null(strstr(refused, "HTTP/1.1 409 Conflict\n"));
    assert_non_null(strstr(refused, "Enable it first"));
}

/* One more than there are places for, all before the store was asked once. */
static void operators_have_so_many_places(void **state)
{
    static int fds[IDEM_ADMIN_VISITS + 1];
    int shown = 0;
    int refused = 0;
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fds); i++) {
        fds[i] = edge_connect(&edge);
        edge_write(fds[i], HOOKS " HTTP/1.1" ROOT);
    }
    for (int i = 0; i < 8 || edge.api->problems[IDEM_PROBLEM_UNAVAILABLE] == 0; i++) {
        (void)uv_run(&edge.loop, UV_RUN_NOWAIT);
        assert_true(i < 1000);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fds); i++) {
        const char *answer = edge_answer(&edge, fds[i]);
        shown += strstr(answer, "HTTP/1.1 200 OK\n") != NULL ? 1 : 0;
        refused +=
            strstr(answer, "HTTP/1.1 503 ") != NULL && strstr(answer, "\nRetry-After: 1\n") != NULL
                ? 1
                : 0;
        assert_int_equal(close(fds[i]), 0);
    }
    edge_turn(&edge);
    assert_int_equal(shown, IDEM_ADMIN_VISITS);
    assert_int_equal(refused, 1);
    EXPECT_TEXT(verdict(HOOKS " HTTP/1.1" ROOT), "200");
}

/* "webhook-add done", for the only act since the last look. */
static const char *act(void)
{
    static char text[128];
    struct idem_api_act acts[2];
    assert_int_equal(idem_api_take_acts(edge.api, acts, IDEM_ARRAY_COUNT(acts)), 1);
    (void)snprintf(text, sizeof(text), "%s %s", acts[0].verb, acts[0].outcome);
    return text;
}

static void each_act_is_told(void **state)
{
    static const struct {
        const char *request;
        const char *id;
        const char *expected;
    } rows[] = {
        { PUT(BODY), ID_1, "webhook-add done" },
        { ROTATE("1"), ID_1, "webhook-rotate done" },
        { ACT("test"), ID_1, "webhook-test done" },
        { ACT("disable"), ID_1, "webhook-disable done" },
        { ACT("test"), ID_1, "webhook-test state-conflict" },
        { ACT("enable"), ID_1, "webhook-enable done" },
        { ACT("enable"), ID_2, "webhook-enable not-found" },
        { REPLAY, ID_2, "replay not-found" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        (void)edge_ask(&edge, with_id(rows[i].request, rows[i].id));
        EXPECT_TEXT(idem_str_from(act()), rows[i].expected);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_webhook_is_added_once),
        TEST(a_webhook_is_read_strictly),
        TEST(an_address_has_its_length),
        cmocka_unit_test(plain_http_is_taken_where_it_is_allowed),
        TEST(a_principal_has_so_many_webhooks),
        TEST(webhooks_have_pages),
        TEST(a_secret_is_rotated_once),
        TEST(a_rotation_names_the_secret_that_it_replaces),
        TEST(a_webhook_is_disabled_and_enabled),
        TEST(a_test_message_goes_to_one_webhook_alone),
        TEST(what_changed_is_on_its_way_to_whoever_wants_it),
        TEST(what_was_given_up_is_sent_again),
        TEST(operators_have_so_many_places),
        TEST(each_act_is_told),
    };
    return cmocka_run_group_tests_name("api/admin_webhook", tests, NULL, NULL);
}
