/*
 * The sandbox as its callers meet it: over HTTP.
 *
 * Goal: every fault looks on the wire as docs/sandbox.md says, and the ledger says what really
 * happened: how often it arrived and how often it was executed.
 *
 * Method: one sandbox, raw sockets, an effect id of its own for every case. A case sends, sends
 * the same again, and queries; what came back is compared with a table written from the document.
 * Times are 0 or 1 second.
 */
#include "sandbox/sandbox.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/test.h"
#include "peer.h"

#define BEARER "Bearer anything"

static struct peer *peer_of(void **state)
{
    return *state;
}

/* A payment of 100.00 CNY with this token; another operation refers to payment "pay-ID". */
static void body_print(char *text, size_t size, const char *id, const char *token)
{
    (void)snprintf(text, size,
                   "{\"id\":\"%s\",\"kind\":\"charge\",\"amount\":\"100.00\",\"currency\":\"CNY\","
                   "\"order_no\":\"o-%s\",\"method\":\"%s\"}",
                   id, id, token);
}

static void later_print(char *text, size_t size, const char *id, const char *rest)
{
    (void)snprintf(text, size, "{\"id\":\"%s\",\"currency\":\"CNY\",\"order_no\":\"o\",%s}", id,
                   rest);
}

static void send_body(const struct peer *peer,
                      const char *profile,
                      const char *id,
                      const char *body,
                      char ret_text[PEER_DESCRIBE_LEN])
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/%s/effects", profile);
    peer_ask(peer,
             &(struct peer_request){
                 .method = "POST", .path = path, .key = id, .authorization = BEARER, .body = body },
             id, ret_text);
}

static void send_token(const struct peer *peer,
                       const char *profile,
                       const char *id,
                       const char *token,
                       char ret_text[PEER_DESCRIBE_LEN])
{
    char body[512];

    body_print(body, sizeof(body), id, token);
    send_body(peer, profile, id, body, ret_text);
}

static void query(const struct peer *peer,
                  const char *profile,
                  const char *id,
                  char ret_text[PEER_DESCRIBE_LEN])
{
    char path[128];

    (void)snprintf(path, sizeof(path), "/%s/effects/%s", profile, id);
    peer_ask(peer, &(struct peer_request){ .method = "GET", .path = path, .authorization = BEARER },
             id, ret_text);
}

static void close_effect(const struct peer *peer,
                         const char *profile,
                         const char *id,
                         char ret_text[PEER_DESCRIBE_LEN])
{
    char path[128];

    (void)snprintf(path, sizeof(path), "/%s/effects/%s/close", profile, id);
    peer_ask(peer,
             &(struct peer_request){
                 .method = "POST", .path = path, .authorization = BEARER, .body = "{}" },
             id, ret_text);
}

static int64_t ledger_count(const struct peer *peer, const char *id, const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "/ledger?id=%s", id);
    json_t *page = peer_get(peer, path);
    int64_t count = json_integer_value(json_object_get(page, name));
    json_decref(page);
    return count;
}

static void expect_counts(const struct peer *peer, const char *id, int arrivals, int executions)
{
    if (ledger_count(peer, id, "arrivals") != arrivals ||
        ledger_count(peer, id, "executions") != executions) {
        print_error("effect %s\n", id);
    }
    assert_int_equal(ledger_count(peer, id, "arrivals"), arrivals);
    assert_int_equal(ledger_count(peer, id, "executions"), executions);
}

/* What the caller sees of the first send, the second and a query; then what the ledger counts. */
struct fault_case {
    const char *token;
    const char *first;
    const char *repeat;
    const char *queried;
    int executions;
};

#define DONE     "200 succeeded 100.00 CNY"
#define DECLINED "200 declined 100.00 CNY declined"
#define ABSENT   "404 not_found no-id"
#define BROKEN   "500 no-id"

static void expect_case(const struct peer *peer,
                        const char *profile,
                        const char *id,
                        const struct fault_case *expected)
{
    char first[PEER_DESCRIBE_LEN];
    char repeat[PEER_DESCRIBE_LEN];
    char queried[PEER_DESCRIBE_LEN];

    send_token(peer, profile, id, expected->token, first);
    send_token(peer, profile, id, expected->token, repeat);
    query(peer, profile, id, queried);
    if (strcmp(first, expected->first) != 0 || strcmp(repeat, expected->repeat) != 0 ||
        strcmp(queried, expected->queried) != 0) {
        print_error("/%s %s: %s | %s | %s\n", profile, expected->token, first, repeat, queried);
    }
    assert_string_equal(first, expected->first);
    assert_string_equal(repeat, expected->repeat);
    assert_string_equal(queried, expected->queried);
    expect_counts(peer, id, 2, expected->executions);
}

static void every_fault_looks_as_written_and_is_counted_as_it_was(void **state)
{
    static const struct fault_case cases[] = {
        { "tok_ok", DONE, DONE, DONE, 1 },
        { "tok_decline", DECLINED, DECLINED, DECLINED, 0 },
        { "tok_lose_answer", "silence", DONE, DONE, 1 },
        { "tok_lose_answer_always", "silence", "silence", DONE, 1 },
        { "tok_lose_request", "silence", DONE, DONE, 1 },
        { "tok_lose_request_always", "silence", "silence", ABSENT, 0 },
        { "tok_late_0", DONE, DONE, DONE, 1 },
        { "tok_slow_0", DONE, DONE, DONE, 1 },
        { "tok_500_before", BROKEN, DONE, DONE, 1 },
        { "tok_500_before_always", BROKEN, BROKEN, ABSENT, 0 },
        { "tok_500_after", BROKEN, DONE, DONE, 1 },
        { "tok_500_after_always", BROKEN, BROKEN, DONE, 1 },
        { "tok_cut_body", "200 cut", DONE, DONE, 1 },
        { "tok_cut_body_always", "200 cut", "200 cut", DONE, 1 },
        { "tok_garbage", "200 garbage", DONE, DONE, 1 },
        { "tok_garbage_always", "200 garbage", "200 garbage", DONE, 1 },
        { "tok_wrong_amount", "200 succeeded 200.00 CNY", "200 succeeded 200.00 CNY",
          "200 succeeded 200.00 CNY", 1 },
        { "tok_wrong_id", DONE " other-id", DONE " other-id", DONE " other-id", 1 },
        { "tok_unknown_status", "200 settling 100.00 CNY", DONE, DONE, 1 },
        { "tok_unknown_status_always", "200 settling 100.00 CNY", "200 settling 100.00 CNY", DONE,
          1 },
        { "tok_429", "429 not_executed rate_limited no-id", DONE, DONE, 1 },
        { "tok_429_always", "429 not_executed rate_limited no-id",
          "429 not_executed rate_limited no-id", ABSENT, 0 },
        { "tok_503", "503 not_executed unavailable no-id", DONE, DONE, 1 },
        { "tok_503_always", "503 not_executed unavailable no-id",
          "503 not_executed unavailable no-id", ABSENT, 0 },
        { "tok_processing_3600_ok", "200 processing 100.00 CNY", "200 processing 100.00 CNY",
          "200 processing 100.00 CNY", 0 },
        { "tok_not_found_0", "silence", DONE, DONE, 1 },
        { "tok_not_found_3600", "silence", DONE, ABSENT, 1 },
        { "tok_dead_reuse", DONE, DONE, DONE, 1 },
        { "tok_dead_reuse_always", DONE, DONE, DONE, 1 },
        { "tok_dead_reuse_after", DONE, DONE, DONE, 1 },
        { "tok_nonsense", "400 invalid method_unknown", "400 invalid method_unknown",
          "400 invalid method_unknown", 0 },
    };
    char id[32];

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        (void)snprintf(id, sizeof(id), "fault%zu", i);
        expect_case(peer_of(state), "dedup", id, &cases[i]);
    }
}

static void a_wrong_currency_is_another_one_with_as_many_decimals(void **state)
{
    char text[PEER_DESCRIBE_LEN];

    send_token(peer_of(state), "dedup", "currency1", "tok_wrong_currency", text);
    assert_non_null(strstr(text, "200 succeeded 100.00 "));
    assert_null(strstr(text, "CNY"));
    query(peer_of(state), "dedup", "currency1", text);
    assert_null(strstr(text, "CNY"));
}

static void without_deduplication_every_arrival_executes(void **state)
{
    static const struct fault_case cases[] = {
        { "tok_ok", DONE, DONE, DONE, 2 },
        { "tok_lose_answer", "silence", DONE, DONE, 2 },
        { "tok_lose_request", "silence", DONE, DONE, 1 },
        { "tok_slow_0", DONE, DONE, DONE, 2 },
        { "tok_decline", DECLINED, DECLINED, DECLINED, 0 },
        { "tok_429", "429 not_executed rate_limited no-id", DONE, DONE, 1 },
    };
    char id[32];

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        (void)snprintf(id, sizeof(id), "plain%zu", i);
        expect_case(peer_of(state), "plain", id, &cases[i]);
        (void)snprintf(id, sizeof(id), "closing%zu", i);
        expect_case(peer_of(state), "closing", id, &cases[i]);
    }
}

static void a_lagging_provider_denies_what_it_did(void **state)
{
    expect_case(peer_of(state), "lagging", "lag1",
                &(struct fault_case){ "tok_ok", DONE, DONE, ABSENT, 1 });
    expect_case(peer_of(state), "blind", "blind1",
                &(struct fault_case){ "tok_ok", DONE, DONE, "405 no-id", 1 });
}

static void a_reused_connection_dies_before_or_after_the_execution(void **state)
{
    static const struct fault_case cases[] = {
        { .token = "tok_dead_reuse", .first = "reset", .executions = 0 },
        { .token = "tok_dead_reuse_after", .first = "reset", .executions = 1 },
    };
    struct peer *peer = peer_of(state);
    char text[PEER_DESCRIBE_LEN];

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        char id[16];
        char body[512];
        int fd = peer_dial(peer);
        (void)snprintf(id, sizeof(id), "reuse%zu", i);
        body_print(body, sizeof(body), id, cases[i].token);
        peer_send(fd, &(struct peer_request){ .method = "GET", .path = "/healthz" });
        peer_describe(fd, NULL, text);
        assert_string_equal(text, "200 ok no-id");
        peer_send(fd, &(struct peer_request){ .method = "POST",
                                              .path = "/dedup/effects",
                                              .key = id,
                                              .authorization = BEARER,
                                              .body = body });
        peer_describe(fd, id, text);
        assert_string_equal(text, cases[i].first);
        assert_int_equal(close(fd), 0);
        expect_counts(peer, id, 1, cases[i].executions);
        send_token(peer, "dedup", id, cases[i].token, text);
        assert_string_equal(text, DONE);
        expect_counts(peer, id, 2, 1);
    }
}

/* Asks until the effect has been executed so often; the socket's wait bounds the time. */
static void await_executions(const struct peer *peer, const char *id, int64_t executions)
{
    int rounds = 0;

    while (ledger_count(peer, id, "executions") < executions) {
        rounds += 1;
        assert_true(rounds < 5000);
        (void)usleep(1000); /* Nothing tells when; the ledger is asked again. */
    }
}

static void what_was_accepted_happens_though_the_caller_has_gone(void **state)
{
    struct peer *peer = peer_of(state);
    char body[512];
    char text[PEER_DESCRIBE_LEN];
    int fd = peer_dial(peer);

    body_print(body, sizeof(body), "slow1", "tok_slow_1");
    peer_send(fd, &(struct peer_request){ .method = "POST",
                                          .path = "/dedup/effects",
                                          .key = "slow1",
                                          .authorization = BEARER,
                                          .body = body });
    while (ledger_count(peer, "slow1", "arrivals") == 0) {
        (void)usleep(1000); /* Until it has arrived; the test's timeout bounds it. */
    }
    assert_int_equal(close(fd), 0);
    query(peer, "dedup", "slow1", text);
    assert_string_equal(text, ABSENT);
    expect_counts(peer, "slow1", 1, 0);
    await_executions(peer, "slow1", 1);
    query(peer, "dedup", "slow1", text);
    assert_string_equal(text, DONE);
}

static void late_executes_now_and_processing_later(void **state)
{
    struct peer *peer = peer_of(state);
    char body[512];
    char text[PEER_DESCRIBE_LEN];
    int fd = peer_dial(peer);

    body_print(body, sizeof(body), "late1", "tok_late_1");
    peer_send(fd, &(struct peer_request){ .method = "POST",
                                          .path = "/dedup/effects",
                                          .key = "late1",
                                          .authorization = BEARER,
                                          .body = body });
    await_executions(peer, "late1", 1);
    query(peer, "dedup", "late1", text);
    assert_string_equal(text, DONE);
    peer_describe(fd, "late1", text);
    assert_string_equal(text, DONE);
    assert_int_equal(close(fd), 0);

    send_token(peer, "dedup", "proc1", "tok_processing_0_fail", text);
    assert_string_equal(text, "200 processing 100.00 CNY");
    send_token(peer, "dedup", "proc2", "tok_processing_0_ok", text);
    assert_string_equal(text, "200 processing 100.00 CNY");
    await_executions(peer, "proc2", 1);
    query(peer, "dedup", "proc2", text);
    assert_string_equal(text, DONE);
    query(peer, "dedup", "proc1", text);
    assert_string_equal(text, DECLINED);
    expect_counts(peer, "proc1", 1, 0);
}

static void close_is_final_except_where_it_is_not(void **state)
{
    static const struct {
        const char *profile;
        const char *sent; /* After the close. */
        int executions;
    } cases[] = {
        { "dedup", "200 closed", 0 },
        { "closing", "200 closed", 0 },
        { "plain", DONE, 1 },
    };
    struct peer *peer = peer_of(state);
    char text[PEER_DESCRIBE_LEN];
    char id[32];

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        (void)snprintf(id, sizeof(id), "close%zu", i);
        send_token(peer, cases[i].profile, id, "tok_lose_request", text);
        assert_string_equal(text, "silence");
        close_effect(peer, cases[i].profile, id, text);
        assert_string_equal(text, "200 closed 100.00 CNY");
        query(peer, cases[i].profile, id, text);
        assert_string_equal(text, "200 closed 100.00 CNY");
        send_token(peer, cases[i].profile, id, "tok_lose_request", text);
        assert_int_equal(strncmp(text, cases[i].sent, strlen(cases[i].sent)), 0);
        expect_counts(peer, id, 2, cases[i].executions);

        close_effect(peer, "dedup", "closed-twice", text);
        assert_string_equal(text, "200 closed");

        (void)snprintf(id, sizeof(id), "closed-late%zu", i);
        send_token(peer, cases[i].profile, id, "tok_ok", text);
        close_effect(peer, cases[i].profile, id, text);
        assert_string_equal(text, DONE);
    }
    close_effect(peer, "closing", "never-sent", text);
    assert_string_equal(text, "200 closed");
}

/* The race that `close_is_final` is for: the first request gets through after the close. */
static void a_request_that_was_stuck_meets_the_close(void **state)
{
    static const struct fault_case cases[] = {
        { .token = "closing", .first = "200 closed 100.00 CNY", .executions = 0 },
        { .token = "plain", .first = DONE, .executions = 1 },
    };
    struct peer *peer = peer_of(state);
    char text[PEER_DESCRIBE_LEN];
    char path[64];
    char id[32];
    char body[512];

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        int fd = peer_dial(peer);
        (void)snprintf(path, sizeof(path), "/%s/effects", cases[i].token);
        (void)snprintf(id, sizeof(id), "stuck-%s", cases[i].token);
        body_print(body, sizeof(body), id, "tok_slow_1");
        peer_send(
            fd,
            &(struct peer_request){
                .method = "POST", .path = path, .key = id, .authorization = BEARER, .body = body });
        while (ledger_count(peer, id, "arrivals") == 0) {
            (void)usleep(1000); /* Until it has arrived; the test's timeout bounds it. */
        }
        close_effect(peer, cases[i].token, id, text);
        assert_string_equal(text, "200 closed 100.00 CNY");
        peer_describe(fd, id, text);
        assert_string_equal(text, cases[i].first);
        assert_int_equal(close(fd), 0);
        expect_counts(peer, id, 1, cases[i].executions);
    }
}

static void another_content_under_an_id_is_a_conflict(void **state)
{
    struct peer *peer = peer_of(state);
    char text[PEER_DESCRIBE_LEN];

    send_token(peer, "dedup", "other1", "tok_ok", text);
    send_token(peer, "dedup", "other1", "tok_late_0", text);
    assert_string_equal(text, "409 conflict no-id");
    send_body(peer, "dedup", "other1", "{\"id\":\"other1\"}", text);
    assert_string_equal(text, "409 conflict no-id");
    expect_counts(peer, "other1", 3, 1);
    send_token(peer, "plain", "other2", "tok_ok", text);
    send_token(peer, "plain", "other2", "tok_late_0", text);
    assert_string_equal(text, DONE);
    expect_counts(peer, "other2", 2, 2);
}

static void later_operations_suffer_what_the_payment_named_for_them(void **state)
{
    struct peer *peer = peer_of(state);
    char text[PEER_DESCRIBE_LEN];
    char body[512];

    send_token(peer, "dedup", "pay1", "tok_ok+refund_lose_answer+capture_429", text);
    assert_string_equal(text, DONE);
    later_print(body, sizeof(body), "ref1",
                "\"kind\":\"refund\",\"amount\":\"60.00\",\"payment_id\":\"pay1\"");
    send_body(peer, "dedup", "ref1", body, text);
    assert_string_equal(text, "silence");
    send_body(peer, "dedup", "ref1", body, text);
    assert_string_equal(text, "200 succeeded 60.00 CNY");
    expect_counts(peer, "ref1", 2, 1);
    later_print(body, sizeof(body), "ref2",
                "\"kind\":\"refund\",\"amount\":\"40.01\",\"payment_id\":\"pay1\"");
    send_body(peer, "dedup", "ref2", body, text); /* The answer is lost. */
    query(peer, "dedup", "ref2", text);
    assert_string_equal(text, "200 declined 40.01 CNY amount_exceeds");
    later_print(body, sizeof(body), "cap1",
                "\"kind\":\"capture\",\"amount\":\"1.00\",\"payment_id\":\"pay1\"");
    send_body(peer, "dedup", "cap1", body, text);
    assert_string_equal(text, "429 not_executed rate_limited no-id");
}

struct operation_case {
    const char *id;
    const char *rest;
    const char *answer;
};

static void the_sandbox_judges_sums_and_states_by_itself(void **state)
{
    static const struct operation_case cases[] = {
        { "auth1", "\"kind\":\"authorize\",\"amount\":\"100.00\",\"method\":\"tok_ok\"", DONE },
        { "a-ref0", "\"kind\":\"refund\",\"amount\":\"0.01\",\"payment_id\":\"auth1\"",
          "200 declined 0.01 CNY amount_exceeds" },
        { "a-cap1", "\"kind\":\"capture\",\"amount\":\"60.00\",\"payment_id\":\"auth1\"",
          "200 succeeded 60.00 CNY" },
        { "a-cap2", "\"kind\":\"capture\",\"amount\":\"40.01\",\"payment_id\":\"auth1\"",
          "200 declined 40.01 CNY amount_exceeds" },
        { "a-can1", "\"kind\":\"cancel\",\"amount\":\"40.00\",\"payment_id\":\"auth1\"",
          "200 succeeded 40.00 CNY" },
        { "a-cap3", "\"kind\":\"capture\",\"amount\":\"1.00\",\"payment_id\":\"auth1\"",
          "200 declined 1.00 CNY state" },
        { "a-ref1", "\"kind\":\"refund\",\"amount\":\"60.00\",\"payment_id\":\"auth1\"",
          "200 succeeded 60.00 CNY" },
        { "a-ref2", "\"kind\":\"refund\",\"amount\":\"1.00\",\"payment_id\":\"a-cap1\"",
          "400 invalid payment_unknown" },
        { "auth2", "\"kind\":\"authorize\",\"amount\":\"1.00\",\"method\":\"tok_decline\"",
          "200 declined 1.00 CNY declined" },
        { "b-cap1", "\"kind\":\"capture\",\"amount\":\"1.00\",\"payment_id\":\"auth2\"",
          "200 declined 1.00 CNY state" },
    };
    struct peer *peer = peer_of(state);
    char text[PEER_DESCRIBE_LEN];
    char body[512];

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        later_print(body, sizeof(body), cases[i].id, cases[i].rest);
        send_body(peer, "dedup", cases[i].id, body, text);
        assert_string_equal(text, cases[i].answer);
    }
    send_body(peer, "dedup", "a-ref3",
              "{\"id\":\"a-ref3\",\"kind\":\"refund\",\"amount\":\"1\",\"currency\":\"JPY\","
              "\"order_no\":\"o\",\"payment_id\":\"auth1\"}",
              text);
    assert_string_equal(text, "400 invalid currency_differs");
}

static void money_that_moves_twice_goes_over_and_is_shown(void **state)
{
    struct peer *peer = peer_of(state);
    char text[PEER_DESCRIBE_LEN];
    char body[512];

    send_token(peer, "plain", "twice1", "tok_ok", text);
    later_print(body, sizeof(body), "twice-ref",
                "\"kind\":\"refund\",\"amount\":\"100.00\",\"payment_id\":\"twice1\"");
    send_body(peer, "plain", "twice-ref", body, text);
    send_body(peer, "plain", "twice-ref", body, text);
    assert_string_equal(text, DONE);
    expect_counts(peer, "twice-ref", 2, 2);
    json_t *page = peer_get(peer, "/ledger?id=twice1");
    const json_t *effect = json_array_get(json_object_get(page, "effects"), 0);
    assert_string_equal(json_string_value(json_object_get(effect, "refunded")), "200.00");
    json_decref(page);
}

static void a_payment_that_is_not_there_is_refused_for_ever(void **state)
{
    static const char *const profiles[] = { "dedup", "plain" };
    struct peer *peer = peer_of(state);
    char text[PEER_DESCRIBE_LEN];
    char body[512];

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(profiles); i++) {
        later_print(body, sizeof(body), "ref9",
                    "\"kind\":\"refund\",\"amount\":\"1.00\",\"payment_id\":\"pay9\"");
        send_body(peer, profiles[i], "ref9", body, text);
        assert_string_equal(text, "400 invalid payment_unknown");
        send_token(peer, profiles[i], "pay9", "tok_ok", text);
        send_body(peer, profiles[i], "ref9", body, text);
        assert_string_equal(text, "400 invalid payment_unknown");
    }
    expect_counts(peer, "ref9", 4, 0);
}

struct content_case {
    const char *rest;
    const char *answer;
};

static void content_that_is_not_in_the_protocol_is_refused(void **state)
{
    static const struct content_case cases[] = {
        { "\"kind\":\"gift\",\"amount\":\"1.00\",\"method\":\"tok_ok\"", "kind_invalid" },
        { "\"kind\":\"charge\",\"amount\":\"1.0\",\"method\":\"tok_ok\"", "amount_invalid" },
        { "\"kind\":\"charge\",\"amount\":\"0.00\",\"method\":\"tok_ok\"", "amount_invalid" },
        { "\"kind\":\"charge\",\"amount\":1.00,\"method\":\"tok_ok\"", "amount_invalid" },
        { "\"kind\":\"charge\",\"amount\":\"-1.00\",\"method\":\"tok_ok\"", "amount_invalid" },
        { "\"kind\":\"charge\",\"method\":\"tok_ok\"", "amount_invalid" },
        { "\"kind\":\"charge\",\"amount\":\"1.00\"", "method_invalid" },
        { "\"kind\":\"charge\",\"amount\":\"1.00\",\"method\":\"tok_ok\",\"payment_id\":\"a\"",
          "payment_id_invalid" },
        { "\"kind\":\"charge\",\"amount\":\"1.00\",\"method\":\"tok_ok\",\"description\":5",
          "description_invalid" },
        { "\"kind\":\"refund\",\"amount\":\"1.00\"", "payment_id_invalid" },
        { "\"kind\":\"refund\",\"amount\":\"1.00\",\"payment_id\":\"a\",\"method\":\"tok_ok\"",
          "method_invalid" },
    };
    struct peer *peer = peer_of(state);

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        char id[32];
        char body[512];
        char text[PEER_DESCRIBE_LEN];
        char expected[PEER_DESCRIBE_LEN];
        (void)snprintf(id, sizeof(id), "content%zu", i);
        later_print(body, sizeof(body), id, cases[i].rest);
        send_body(peer, "dedup", id, body, text);
        (void)snprintf(expected, sizeof(expected), "400 invalid %s", cases[i].answer);
        assert_string_equal(text, expected);
        expect_counts(peer, id, 1, 0);
    }
}

static void what_cannot_be_read_names_no_effect(void **state)
{
    static const struct content_case cases[] = {
        { "nonsense", "400 invalid json no-id" },
        { "[]", "400 invalid json no-id" },
        { "{}", "400 invalid id_invalid no-id" },
        { "{\"id\":\"a/b\"}", "400 invalid id_invalid no-id" },
        { "{\"id\":\"mine\",\"id\":\"mine\"}", "400 invalid json no-id" },
        { "{\"id\":\"thine\"}", "400 invalid key_differs no-id" },
    };
    struct peer *peer = peer_of(state);
    char text[PEER_DESCRIBE_LEN];

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        send_body(peer, "dedup", "mine", cases[i].rest, text);
        assert_string_equal(text, cases[i].answer);
    }
    expect_counts(peer, "mine", 0, 0);
    query(peer, "nobody", "mine", text);
    assert_string_equal(text, "404 no-id");
    query(peer, "dedup", "mine/open", text);
    assert_string_equal(text, "404 no-id");
}

static void only_the_right_bearer_is_let_in(void **state)
{
    struct peer strict;
    char text[PEER_DESCRIBE_LEN];
    struct peer_request request = { .method = "GET", .path = "/dedup/effects/a" };

    peer_ask(peer_of(state), &request, NULL, text);
    assert_string_equal(text, ABSENT); /* It asks for none. */
    peer_start(&strict, NULL, "s3cret");
    peer_ask(&strict, &request, NULL, text);
    assert_string_equal(text, "401 not_executed unauthorized no-id");
    request.authorization = BEARER;
    peer_ask(&strict, &request, NULL, text);
    assert_string_equal(text, "401 not_executed unauthorized no-id");
    request.authorization = "bearer s3cret";
    peer_ask(&strict, &request, NULL, text);
    assert_string_equal(text, ABSENT);
    peer_stop(&strict);
}

static void a_restart_forgets_nothing(void **state)
{
    char folder[] = "/tmp/idem-sandbox-XXXXXX";
    char path[64];
    char text[PEER_DESCRIBE_LEN];
    struct peer peer;

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/ledger", folder);
    peer_start(&peer, path, NULL);
    send_token(&peer, "dedup", "c1", "tok_lose_answer", text);
    send_token(&peer, "dedup", "c2", "tok_processing_1_ok", text);
    peer_stop(&peer);

    peer_start(&peer, path, NULL);
    query(&peer, "dedup", "c1", text);
    assert_string_equal(text, DONE);
    send_token(&peer, "dedup", "c1", "tok_lose_answer", text);
    assert_string_equal(text, DONE);
    expect_counts(&peer, "c1", 2, 1);
    await_executions(&peer, "c2", 1);
    expect_counts(&peer, "c2", 1, 1);
    peer_stop(&peer);

    /* What has ended does not end again. */
    peer_start(&peer, path, NULL);
    query(&peer, "dedup", "c2", text);
    assert_string_equal(text, DONE);
    expect_counts(&peer, "c2", 1, 1);
    peer_stop(&peer);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void closing_cuts_off_who_waits(void **state)
{
    struct peer peer;
    char body[512];
    char text[PEER_DESCRIBE_LEN];

    (void)state;
    peer_start(&peer, NULL, NULL);
    int fd = peer_dial(&peer);
    body_print(body, sizeof(body), "wait1", "tok_late_3600");
    peer_send(fd, &(struct peer_request){ .method = "POST",
                                          .path = "/plain/effects",
                                          .key = "wait1",
                                          .authorization = BEARER,
                                          .body = body });
    await_executions(&peer, "wait1", 1);
    peer_stop(&peer);
    peer_describe(fd, "wait1", text);
    assert_string_equal(text, "silence");
    assert_int_equal(close(fd), 0);
}

static void a_large_ledger_is_shown_whole_and_by_order(void **state)
{
    struct peer peer;
    char body[512];
    char text[PEER_DESCRIBE_LEN];
    char id[16];

    (void)state;
    peer_start(&peer, NULL, NULL);
    int fd = peer_dial(&peer);
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(id, sizeof(id), "c%d", i);
        body_print(body, sizeof(body), id, "tok_ok");
        peer_send(fd, &(struct peer_request){ .method = "POST",
                                              .path = "/dedup/effects",
                                              .key = id,
                                              .authorization = BEARER,
                                              .body = body });
        /* The answers are small and stay in the socket until they are read. */
        char answer[1024];
        assert_true(recv(fd, answer, sizeof(answer), 0) > 0);
    }
    assert_int_equal(close(fd), 0);
    json_t *page = peer_get(&peer, "/ledger");
    json_t *effects = json_object_get(page, "effects");
    assert_int_equal(json_array_size(effects), 10000);
    assert_int_equal(json_integer_value(json_object_get(page, "executions")), 10000);
    assert_string_equal(json_string_value(json_object_get(json_array_get(effects, 77), "id")),
                        "c77");
    json_decref(page);
    page = peer_get(&peer, "/ledger?order_no=o%2Dc42");
    assert_int_equal(json_array_size(json_object_get(page, "effects")), 1);
    assert_int_equal(json_integer_value(json_object_get(page, "arrivals")), 1);
    json_decref(page);
    peer_ask(&peer, &(struct peer_request){ .method = "GET", .path = "/ledger?order=c42" }, NULL,
             text);
    assert_string_equal(text, "400 no-id");
    peer_stop(&peer);
}

static int group_setup(void **state)
{
    struct peer *peer = calloc(1, sizeof(*peer));

    assert_non_null(peer);
    peer_start(peer, NULL, NULL);
    *state = peer;
    return 0;
}

static int group_teardown(void **state)
{
    peer_stop(*state);
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_looks_as_written_and_is_counted_as_it_was),
        cmocka_unit_test(a_wrong_currency_is_another_one_with_as_many_decimals),
        cmocka_unit_test(without_deduplication_every_arrival_executes),
        cmocka_unit_test(a_lagging_provider_denies_what_it_did),
        cmocka_unit_test(a_reused_connection_dies_before_or_after_the_execution),
        cmocka_unit_test(what_was_accepted_happens_though_the_caller_has_gone),
        cmocka_unit_test(late_executes_now_and_processing_later),
        cmocka_unit_test(close_is_final_except_where_it_is_not),
        cmocka_unit_test(a_request_that_was_stuck_meets_the_close),
        cmocka_unit_test(another_content_under_an_id_is_a_conflict),
        cmocka_unit_test(later_operations_suffer_what_the_payment_named_for_them),
        cmocka_unit_test(the_sandbox_judges_sums_and_states_by_itself),
        cmocka_unit_test(money_that_moves_twice_goes_over_and_is_shown),
        cmocka_unit_test(a_payment_that_is_not_there_is_refused_for_ever),
        cmocka_unit_test(content_that_is_not_in_the_protocol_is_refused),
        cmocka_unit_test(what_cannot_be_read_names_no_effect),
        cmocka_unit_test(only_the_right_bearer_is_let_in),
        cmocka_unit_test(a_restart_forgets_nothing),
        cmocka_unit_test(closing_cuts_off_who_waits),
        cmocka_unit_test(a_large_ledger_is_shown_whole_and_by_order),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
