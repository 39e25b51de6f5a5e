/*
 * Asking for the outcome: where, and what to believe.
 *
 * Goal: a question never takes a credential to another origin; only the operation that was asked
 * for is believed, and only if its state and its answer agree; everything else leaves things as
 * they are; a stored answer is given back as it was stored.
 *
 * Method: tables of addresses, and of operations as src/api/operation.c prints them, right and
 * wrong in one place each; an operation of the largest size; one cut at every byte.
 */
#include "client/inquiry.h"

#include "lib/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BASE         "https://api.example:8443"
#define KEY          "k1"
#define ID           "0197b2f0-1111-7abc-8def-0123456789ab"
#define BY_KEY       BASE "/v1/operations?endpoint=payments.create"
#define BY_ID        BASE "/v1/operations/" ID
#define ECHO         "Idempotency-Key: \"k1\"\n"

/* ---- where ---- */

static const struct {
    enum idem_dialect_id dialect;
    enum idem_inquiry_way way;
    const char *url;
    const char *operation_url;
    const char *status_url;
    const char *asked;
} ways[] = {
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_KEY, BASE "/v1/payments", "", "", BY_KEY },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_KEY, BASE "/v1/payments?x=y", "", "", BY_KEY },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_KEY, BASE "/pay/v1/payments", "", "",
      BASE "/pay/v1/operations?endpoint=payments.create" },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_KEY, BASE "/v1/payments/" ID "/capture", "", "",
      BASE "/v1/operations?endpoint=payments.capture" },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_KEY, BASE "/v1/payments/" ID "/cancel", "", "",
      BASE "/v1/operations?endpoint=payments.cancel" },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_KEY, BASE "/v1/payments/" ID "/refunds", "", "",
      BASE "/v1/operations?endpoint=refunds.create" },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_NONE, BASE "/v1/payments/" ID "/refunds/1", "", "", "" },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_NONE, BASE "/v1/payments//capture", "", "", "" },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_NONE, BASE "/v1/payments/", "", "", "" },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_NONE, BASE "/v1/paymentsx", "", "", "" },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_NONE, BASE "/v1/pay", "", "", "" },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_NONE, "https://v1/payments", "", "", "" },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_KEY, "https://v1/v1/payments", "", "",
      "https://v1/v1/operations?endpoint=payments.create" },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_OPERATION, BASE "/v1/payments", BY_ID, "", BY_ID },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_KEY, BASE "/v1/payments",
      "https://evil.example/v1/operations/1", "", BY_KEY },
    { IDEM_DIALECT_IDEM, IDEM_INQUIRY_KEY, BASE "/v1/payments",
      "http://api.example:8443/v1/operations/1", "", BY_KEY },
    { IDEM_DIALECT_STRIPE, IDEM_INQUIRY_OPERATION, BASE "/v1/payments", BY_ID,
      "https://x.example/s", BY_ID },
    { IDEM_DIALECT_STRIPE, IDEM_INQUIRY_BUSINESS, BASE "/v1/payments", "", "https://x.example/s",
      "https://x.example/s" },
    { IDEM_DIALECT_STRIPE, IDEM_INQUIRY_NONE, BASE "/v1/payments", "", "", "" },
};

static void the_first_way_that_can_be_used_is_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ways); i++) {
        const struct idem_inquiry_from from = {
            .dialect = idem_dialect_get(ways[i].dialect),
            .url = idem_str_from(ways[i].url),
            .operation_url = idem_str_from(ways[i].operation_url),
            .status_url = idem_str_from(ways[i].status_url),
        };
        char memory[256];
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        assert_int_equal(idem_inquiry_url(&from, &buf), ways[i].way);
        EXPECT_TEXT(idem_buf_str(&buf), ways[i].asked);
    }
}

static const struct {
    const char *url;
    const char *location;
    const char *resolved; /* NULL: it cannot be used. */
} locations[] = {
    { BASE "/v1/payments", "/v1/operations/1", BASE "/v1/operations/1" },
    { BASE, "/", BASE "/" },
    { BASE "?x", "/a?b=c", BASE "/a?b=c" },
    { BASE "/v1/payments", BASE "/v1/operations/1", BASE "/v1/operations/1" },
    { BASE "/v1/payments", "HTTPS://API.example:8443/x", "HTTPS://API.example:8443/x" },
    { "https://a.example/x", "https://a.example:443/y", "https://a.example:443/y" },
    { "http://a.example:80/x", "http://a.example/y", "http://a.example/y" },
    { "http://[::1]/x", "http://[::1]:80/y", "http://[::1]:80/y" },
    { "https://a.example/x", "https://a.example./y", NULL },
    { "https://a.example/x", "https://u@a.example/y", NULL },
    { BASE "/x", "https://api.example/y", NULL },
    { BASE "/x", "http://api.example:8443/y", NULL },
    { "https://a.example/x", "http://a.example/x", NULL },
    { "https://a.example:80/x", "http://a.example/x", NULL },
    { BASE "/x", "https://evil.example/y", NULL },
    { BASE "/x", "https://api.example:8443.evil.example/y", NULL },
    { BASE "/x", "https://api.example:8443@evil.example/y", NULL },
    { BASE "/x", "//evil.example/y", NULL },
    { BASE "/x", "/\\evil.example/y", NULL },
    { BASE "/x", "\\\\evil.example/y", NULL },
    { BASE "/x", "operations/1", NULL },
    { BASE "/x", "?y", NULL },
    { BASE "/x", "", NULL },
    { BASE "/x", "/a b", NULL },
    { BASE "/x", "/a#b", NULL },
    { BASE "/x", "/a\nHost: b", NULL },
    { BASE "/x", "javascript:alert(1)", NULL },
    { "ftp://a/x", "/y", NULL },
};

static void a_location_stays_at_its_origin(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(locations); i++) {
        char memory[128];
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_buf_add(&buf, IDEM_STR("<"));
        bool used = idem_inquiry_resolve(idem_str_from(locations[i].url),
                                         idem_str_from(locations[i].location), &buf);
        if (used != (locations[i].resolved != NULL)) {
            print_error("%s to %s\n", locations[i].url, locations[i].location);
        }
        assert_int_equal(used, locations[i].resolved != NULL);
        EXPECT_TEXT(idem_str_slice(idem_buf_str(&buf), 1, buf.len),
                    used ? locations[i].resolved : "");
    }
}

static void a_location_that_does_not_fit_is_not_begun(void **state)
{
    (void)state;
    char memory[sizeof(BASE) + 4];
    for (size_t max = 0; max <= sizeof(memory); max++) {
        struct idem_buf buf;
        idem_buf_init(&buf, memory, max);
        bool used = idem_inquiry_resolve(IDEM_STR(BASE "/x"), IDEM_STR("/abc"), &buf);
        assert_int_equal(used, max >= sizeof(BASE) - 1 + 4);
        assert_false(buf.full);
        assert_int_equal(buf.len, used ? sizeof(BASE) - 1 + 4 : 0);
    }
}

/* ---- what was said ---- */

struct question {
    enum idem_dialect_id dialect;
    const char *url;
    enum idem_http_verdict verdict;
    uint16_t status;
    const char *head;
    struct idem_str body;
};

static char answer_memory[262144];
static struct idem_buf answer_buf;

static struct idem_reading ask_with(const struct question *question,
                                    size_t memory_max,
                                    struct idem_inquiry_answer *ret_answer)
{
    static struct idem_http_call call;
    call = (struct idem_http_call){
        .url = question->url,
        .verdict = question->verdict,
        .status = question->status,
        .retry_after_us = 5,
        .head = idem_str_from(question->head),
        .answer = question->body,
    };
    idem_buf_init(&answer_buf, answer_memory, memory_max);
    return idem_inquiry_read(idem_dialect_get(question->dialect), IDEM_STR(KEY), &call, &answer_buf,
                             ret_answer);
}

static struct idem_reading ask(const struct question *question,
                               struct idem_inquiry_answer *ret_answer)
{
    return ask_with(question, sizeof(answer_memory), ret_answer);
}

#define OPERATION(id, endpoint, state, answer)                                       \
    "{\"id\":\"" id "\",\"endpoint\":\"" endpoint "\",\"state\":\"" state            \
    "\","                                                                            \
    "\"created\":\"2026-11-29T13:47:03.000001Z\",\"finished\":null,\"attempts\":[]," \
    "\"timeline\":[],\"timeline_total\":0,\"answer\":" answer "}\n"
#define OF(state, answer) OPERATION(ID, "payments.create", state, answer)

#define MADE "{\"status\":201,\"headers\":{\"Content-Type\":\"application/json\"},\"body\":{}}"
#define DECLINED                                                                       \
    "{\"status\":402,\"headers\":{},\"body\":{\"type\":\"urn:idem:problem:declined\"," \
    "\"effect\":\"none\",\"retry\":\"new-key\"}}"
#define PROBLEM(code, retry) \
    "{\"type\":\"urn:idem:problem:" code "\",\"effect\":\"unknown\",\"retry\":\"" retry "\"}"

#define NOT_USABLE IDEM_MEANING_UNSURE, IDEM_NEXT_ASK
#define NO_RECORD  IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN
#define RUNNING    IDEM_MEANING_RUNNING, IDEM_NEXT_ASK
#define DONE       IDEM_MEANING_DONE, IDEM_NEXT_STOP
#define REFUSED    IDEM_MEANING_REFUSED, IDEM_NEXT_STOP
#define TURNED     IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN

static const struct {
    const char *what;
    const char *url;
    uint16_t status;
    uint16_t stored; /* Status of the answer that is given back; 0: none. */
    const char *head;
    const char *body;
    enum idem_meaning meaning;
    enum idem_next next;
} said[] = {
    { "at work", BY_KEY, 200, 0, ECHO, OF("processing", "null"), RUNNING },
    { "unknown", BY_KEY, 200, 0, ECHO, OF("unknown", "null"), RUNNING },
    { "parked", BY_ID, 200, 0, "", OF("parked", "null"), RUNNING },
    { "succeeded", BY_KEY, 200, 201, ECHO, OF("succeeded", MADE), DONE },
    { "succeeded, by address", BY_ID, 200, 201, "", OF("succeeded", MADE), DONE },
    { "declined", BY_KEY, 200, 402, ECHO, OF("failed", DECLINED), REFUSED },
    { "released", BY_KEY, 200, 0, ECHO, OF("released", "null"), TURNED },
    { "expired", BY_KEY, 200, 0, ECHO, OF("expired", "null"), NO_RECORD },
    { "no record of the key", BY_KEY, 404, 0, ECHO, PROBLEM("key-unknown", "same-key"), NO_RECORD },
    { "no such operation", BY_ID, 404, 0, "", PROBLEM("not-found", "never"), NO_RECORD },
    /* What must not be believed. */
    { "a state of later versions", BY_KEY, 200, 0, ECHO, OF("suspended", "null"), NOT_USABLE },
    { "a state in capitals", BY_KEY, 200, 0, ECHO, OF("Succeeded", MADE), NOT_USABLE },
    { "succeeded with a refusal", BY_KEY, 200, 0, ECHO, OF("succeeded", DECLINED), NOT_USABLE },
    { "failed with a success", BY_KEY, 200, 0, ECHO, OF("failed", MADE), NOT_USABLE },
    { "succeeded without an answer", BY_KEY, 200, 0, ECHO, OF("succeeded", "null"), NOT_USABLE },
    { "a status that is text", BY_KEY, 200, 0, ECHO,
      OF("succeeded", "{\"status\":\"201\",\"headers\":{},\"body\":{}}"), NOT_USABLE },
    { "a status that is none", BY_KEY, 200, 0, ECHO,
      OF("succeeded", "{\"status\":65737,\"headers\":{},\"body\":{}}"), NOT_USABLE },
    { "no headers", BY_KEY, 200, 0, ECHO, OF("succeeded", "{\"status\":201,\"body\":{}}"),
      NOT_USABLE },
    { "no body", BY_KEY, 200, 0, ECHO, OF("succeeded", "{\"status\":201,\"headers\":{}}"),
      NOT_USABLE },
    { "another operation", BY_ID, 200, 0, "",
      OPERATION("0197b2f0-2222-7abc-8def-0123456789ab", "payments.create", "succeeded", MADE),
      NOT_USABLE },
    { "another endpoint", BY_KEY, 200, 0, ECHO, OPERATION(ID, "refunds.create", "succeeded", MADE),
      NOT_USABLE },
    { "another key", BY_KEY, 200, 0, "Idempotency-Key: \"k2\"\n", OF("succeeded", MADE),
      NOT_USABLE },
    { "another key, by address", BY_ID, 200, 0, "Idempotency-Key: \"k2\"\n", OF("succeeded", MADE),
      NOT_USABLE },
    { "no key", BY_KEY, 200, 0, "", OF("succeeded", MADE), NOT_USABLE },
    { "no key, no record", BY_KEY, 404, 0, "", PROBLEM("key-unknown", "same-key"), NOT_USABLE },
    { "nginx has no such page", BY_ID, 404, 0, "", "<html>404</html>", NOT_USABLE },
    { "another API's 404", BY_ID, 404, 0, "", "{\"type\":\"https://x/not-found\"}", NOT_USABLE },
    { "another problem of ours", BY_ID, 404, 0, "", PROBLEM("payment-missing", "never"),
      NOT_USABLE },
    { "no record, with another status", BY_KEY, 500, 0, ECHO, PROBLEM("key-unknown", "same-key"),
      NOT_USABLE },
    { "a wrong credential", BY_KEY, 401, 0, "", PROBLEM("unauthenticated", "never"), NOT_USABLE },
    { "too many requests", BY_KEY, 429, 0, ECHO, PROBLEM("rate-limited", "same-key"), NOT_USABLE },
    { "overloaded", BY_KEY, 503, 0, ECHO, PROBLEM("unavailable", "same-key"), NOT_USABLE },
    { "accepted", BY_KEY, 202, 0, ECHO, OF("succeeded", MADE), NOT_USABLE },
    { "a payment instead", BY_ID, 200, 0, "", "{\"id\":\"" ID "\",\"state\":\"captured\"}",
      NOT_USABLE },
    { "a list", BY_ID, 200, 0, "", "[]", NOT_USABLE },
    { "a text", BY_ID, 200, 0, "", "\"succeeded\"", NOT_USABLE },
    { "nothing", BY_ID, 200, 0, "", "", NOT_USABLE },
    { "a web page", BY_ID, 200, 0, "", "<html></html>", NOT_USABLE },
    { "a state twice", BY_ID, 200, 0, "",
      "{\"id\":\"" ID "\",\"state\":\"failed\",\"state\":\"failed\"}", NOT_USABLE },
};

static void an_operation_is_believed_only_if_it_is_the_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(said); i++) {
        const struct question question = {
            .dialect = IDEM_DIALECT_IDEM,
            .url = said[i].url,
            .verdict = IDEM_HTTP_ANSWERED,
            .status = said[i].status,
            .head = said[i].head,
            .body = idem_str_from(said[i].body),
        };
        struct idem_inquiry_answer answer;
        struct idem_reading reading = ask(&question, &answer);
        if (reading.meaning != said[i].meaning || reading.next != said[i].next) {
            print_error("%s: %s, %s: %s\n", said[i].what, idem_meaning_name(reading.meaning),
                        idem_next_name(reading.next), reading.why);
        }
        assert_int_equal(reading.meaning, said[i].meaning);
        assert_int_equal(reading.next, said[i].next);
        assert_int_equal(answer.status, said[i].stored);
        assert_true(said[i].stored != 0 || reading.retry_after_us == 5);
    }
}

static void a_question_that_got_no_answer_changes_nothing(void **state)
{
    (void)state;
    static const enum idem_http_verdict verdicts[] = { IDEM_HTTP_NONE, IDEM_HTTP_NOT_SENT,
                                                       IDEM_HTTP_UNKNOWN };
    for (size_t i = 0; i < COUNT(verdicts); i++) {
        const struct question question = {
            .dialect = IDEM_DIALECT_IDEM,
            .url = BY_KEY,
            .verdict = verdicts[i],
            .status = 200,
            .head = ECHO,
            .body = IDEM_STR(OF("succeeded", MADE)),
        };
        struct idem_inquiry_answer answer;
        struct idem_reading reading = ask(&question, &answer);
        assert_int_equal(reading.meaning, IDEM_MEANING_UNSURE);
        assert_int_equal(reading.next, IDEM_NEXT_ASK);
        assert_int_equal(answer.status, 0);
    }
}

static void a_question_with_too_long_an_answer_says_so(void **state)
{
    (void)state;
    static struct idem_http_call call = {
        .url = BY_KEY,
        .verdict = IDEM_HTTP_UNKNOWN,
        .too_long = true,
    };
    struct idem_inquiry_answer answer;
    struct idem_reading reading = idem_inquiry_read(idem_dialect_get(IDEM_DIALECT_IDEM),
                                                    IDEM_STR(KEY), &call, &answer_buf, &answer);
    assert_int_equal(reading.meaning, IDEM_MEANING_UNSURE);
    assert_int_equal(reading.next, IDEM_NEXT_ASK);
    assert_non_null(strstr(reading.why, "answer_max"));
    assert_int_equal(answer.status, 0);
}

static const struct {
    const char *stored;
    const char *headers;
    const char *body;
} stored_answers[] = {
    { "{\"status\":201,\"headers\":{\"Content-Type\":\"application/json\",\"Location\":"
      "\"\\/v1\\/payments\\/1\"},\"body\":{\"a\": [1, 2.50],\"b\":\"\\u0041\"}}",
      "Content-Type: application/json\nLocation: /v1/payments/1\n",
      "{\"a\": [1, 2.50],\"b\":\"\\u0041\"}\n" },
    { "{\"status\":200,\"headers\":{\"Content-Type\":\"text/plain\"},"
      "\"body\":\"{ no \\\"json\\n\"}",
      "Content-Type: text/plain\n", "{ no \"json\n" },
    { "{\"status\":200,\"headers\":{},\"body\":\"plain\"}", "", "plain" },
    { "{\"status\":204,\"headers\":{},\"body\":null}", "", "" },
    { "{\"status\":200,\"headers\":{\"A\":\"b\\r\\nSet-Cookie: c\",\"D\":1,\"E\":\"f\"},"
      "\"body\":7}",
      "E: f\n", "7\n" },
};

static void a_stored_answer_comes_back_as_it_was(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(stored_answers); i++) {
        char document[1024];
        int len = snprintf(document, sizeof(document),
                           "{\"id\":\"" ID "\",\"state\":\"succeeded\",\"answer\":%s}",
                           stored_answers[i].stored);
        assert_in_range(len, 1, sizeof(document) - 1);
        const struct question question = {
            .dialect = IDEM_DIALECT_STRIPE, /* An operation is one in any dialect. */
            .url = BY_ID,
            .verdict = IDEM_HTTP_ANSWERED,
            .status = 200,
            .head = "",
            .body = idem_str_from(document),
        };
        struct idem_inquiry_answer answer;
        assert_int_equal(ask(&question, &answer).meaning, IDEM_MEANING_DONE);
        EXPECT_TEXT(answer.headers, stored_answers[i].headers);
        EXPECT_TEXT(answer.body, stored_answers[i].body);
    }
}

static void an_answer_that_does_not_fit_is_not_half_given(void **state)
{
    (void)state;
    const struct question question = {
        .dialect = IDEM_DIALECT_IDEM,
        .url = BY_ID,
        .verdict = IDEM_HTTP_ANSWERED,
        .status = 200,
        .head = "",
        .body = IDEM_STR(OF("succeeded",
                            "{\"status\":200,\"headers\":{\"A\":\"b\"},"
                            "\"body\":\"c\\nd\"}")),
    };
    const size_t needed = strlen("A: b\n") + strlen("c\nd");
    const struct question json = {
        .dialect = IDEM_DIALECT_IDEM,
        .url = BY_ID,
        .verdict = IDEM_HTTP_ANSWERED,
        .status = 200,
        .head = "",
        .body = IDEM_STR(OF("succeeded", "{\"status\":200,\"headers\":{},\"body\":{}}")),
    };
    for (size_t max = 0; max <= needed + 2; max++) {
        struct idem_inquiry_answer answer;
        struct idem_reading reading = ask_with(&question, max, &answer);
        /* A line is unescaped into the room before it is known to be kept. */
        assert_int_equal(reading.meaning == IDEM_MEANING_DONE, answer.status == 200);
        assert_int_equal(answer.status == 200, max >= needed);
        (void)ask_with(&json, max, &answer);
        assert_int_equal(answer.status == 200, max >= strlen("{}\n"));
    }
}

/* About 200 KB and 50,000 tokens. */
static void the_largest_operation_is_read(void **state)
{
    (void)state;
    static char memory[262144];
    struct idem_buf body;
    idem_buf_init(&body, memory, sizeof(memory));
    idem_buf_add(&body, IDEM_STR("{\"id\":\"" ID "\",\"timeline\":["));
    while (body.len < 200000) {
        idem_buf_add(&body, IDEM_STR("{\"at\":1,\"kind\":\"x\"},"));
    }
    idem_buf_add(&body, IDEM_STR("1],\"state\":\"succeeded\",\"answer\":" MADE "}"));
    assert_false(body.full);
    const struct question question = {
        .dialect = IDEM_DIALECT_IDEM,
        .url = BY_ID,
        .verdict = IDEM_HTTP_ANSWERED,
        .status = 200,
        .head = "",
        .body = idem_buf_str(&body),
    };
    struct idem_inquiry_answer answer;
    assert_int_equal(ask(&question, &answer).meaning, IDEM_MEANING_DONE);
    assert_int_equal(answer.status, 201);
}

static void an_operation_that_was_cut_or_harmed_concludes_nothing_new(void **state)
{
    (void)state;
    const struct idem_str whole = IDEM_STR(OF("failed", DECLINED));
    for (size_t len = 0; len + 2 < whole.len; len++) {
        char *copy = malloc(len + 1);
        assert_non_null(copy);
        memcpy(copy, whole.data, len);
        const struct question question = {
            .dialect = IDEM_DIALECT_IDEM,
            .url = BY_KEY,
            .verdict = IDEM_HTTP_ANSWERED,
            .status = 200,
            .head = ECHO,
            .body = { .data = copy, .len = len },
        };
        struct idem_inquiry_answer answer;
        struct idem_reading reading = ask(&question, &answer);
        assert_int_equal(reading.meaning, IDEM_MEANING_UNSURE);
        assert_int_equal(reading.next, IDEM_NEXT_ASK);
        free(copy);
    }
    for (size_t at = 0; at < whole.len; at++) {
        char *copy = malloc(whole.len);
        assert_non_null(copy);
        memcpy(copy, whole.data, whole.len);
        copy[at] ^= 0x15;
        const struct question question = {
            .dialect = IDEM_DIALECT_IDEM,
            .url = BY_KEY,
            .verdict = IDEM_HTTP_ANSWERED,
            .status = 200,
            .head = ECHO,
            .body = { .data = copy, .len = whole.len },
        };
        struct idem_inquiry_answer answer;
        assert_int_not_equal(ask(&question, &answer).meaning, IDEM_MEANING_DONE);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_way_that_can_be_used_is_taken),
        cmocka_unit_test(a_location_stays_at_its_origin),
        cmocka_unit_test(a_location_that_does_not_fit_is_not_begun),
        cmocka_unit_test(an_operation_is_believed_only_if_it_is_the_one),
        cmocka_unit_test(a_question_that_got_no_answer_changes_nothing),
        cmocka_unit_test(a_question_with_too_long_an_answer_says_so),
        cmocka_unit_test(a_stored_answer_comes_back_as_it_was),
        cmocka_unit_test(an_answer_that_does_not_fit_is_not_half_given),
        cmocka_unit_test(the_largest_operation_is_read),
        cmocka_unit_test(an_operation_that_was_cut_or_harmed_concludes_nothing_new),
    };
    return cmocka_run_group_tests_name("client/inquiry", tests, NULL, NULL);
}
