/*
 * What is read out of an answer.
 *
 * Goal: what stands in an answer is found, in whatever letters and order; what does not stand there
 * clearly is absent, and is never guessed or cut to fit. Bodies of any bytes do no harm.
 *
 * Method: answers made by hand, one property each; codes at both sides of their limits; every
 * prefix of a good body, and every single byte of it replaced.
 */
#include "client/signal.h"

#include "base/clock.h"
#include "base/date.h"
#include "lib/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KEY          "k\"1"
#define NOW_US       (INT64_C(1700000000) * IDEM_US_PER_SECOND)

struct answer {
    enum idem_dialect_id dialect;
    uint16_t status;
    const char *type;
    const char *head;
    struct idem_str body;
};

static struct idem_signal read_answer(const struct answer *answer)
{
    static struct idem_http_call call;
    call = (struct idem_http_call){
        .verdict = IDEM_HTTP_ANSWERED,
        .status = answer->status,
        .retry_after_us = 3,
        .content_type = idem_str_from(answer->type),
        .head = idem_str_from(answer->head),
        .answer = answer->body,
    };
    struct idem_signal signal;
    idem_signal_read(idem_dialect_get(answer->dialect), IDEM_STR(KEY), &call, NOW_US, &signal);
    return signal;
}

static struct idem_signal read_head(enum idem_dialect_id dialect, const char *head)
{
    const struct answer answer = { .dialect = dialect, .status = 200, .head = head };
    return read_answer(&answer);
}

static struct idem_signal read_body(enum idem_dialect_id dialect, const char *body)
{
    const struct answer answer = {
        .dialect = dialect,
        .status = 400,
        .body = idem_str_from(body),
    };
    return read_answer(&answer);
}

static void a_field_is_found_by_its_whole_name(void **state)
{
    (void)state;
    struct idem_str head = IDEM_STR(
        "X-Location: wrong\nlocation:  /a:b \t\nLocation: /c\nBare\n"
        "Empty:\n");
    EXPECT_TEXT(idem_head_find(head, "Location"), "/a:b");
    EXPECT_TEXT(idem_head_find(head, "LOCATION"), "/a:b");
    EXPECT_TEXT(idem_head_find(head, "Empty"), "");
    assert_non_null(idem_head_find(head, "Empty").data);
    assert_null(idem_head_find(head, "Locatio").data);
    assert_null(idem_head_find(head, "Bare").data);
    assert_null(idem_head_find(IDEM_STR(""), "Location").data);
    EXPECT_TEXT(idem_head_find(IDEM_STR("A: b"), "a"), "b");
}

static void what_was_not_answered_says_nothing_more(void **state)
{
    (void)state;
    static struct idem_http_call call = {
        .verdict = IDEM_HTTP_UNKNOWN,
        .hopeless = true,
        .status = 200,
        .head = { .data = "Location: /x\n", .len = 13 },
    };
    struct idem_signal signal;
    idem_signal_read(idem_dialect_get(IDEM_DIALECT_IDEM), IDEM_STR("k"), &call, 0, &signal);
    assert_int_equal(signal.verdict, IDEM_HTTP_UNKNOWN);
    assert_int_equal(signal.status, 0);
    assert_false(signal.hopeless);
    assert_null(signal.location.data);
    assert_false(signal.too_long);
    call.verdict = IDEM_HTTP_NOT_SENT;
    idem_signal_read(idem_dialect_get(IDEM_DIALECT_IDEM), IDEM_STR("k"), &call, 0, &signal);
    assert_true(signal.hopeless);
    call.too_long = true;
    idem_signal_read(idem_dialect_get(IDEM_DIALECT_IDEM), IDEM_STR("k"), &call, 0, &signal);
    assert_false(signal.too_long); /* It did not even leave. */
    call.verdict = IDEM_HTTP_UNKNOWN;
    idem_signal_read(idem_dialect_get(IDEM_DIALECT_IDEM), IDEM_STR("k"), &call, 0, &signal);
    assert_true(signal.too_long);
    assert_false(signal.hopeless);
}

static void a_flag_is_true_or_false_or_absent(void **state)
{
    (void)state;
    static const struct {
        enum idem_dialect_id dialect;
        const char *head;
        enum idem_said replayed;
        enum idem_said should_retry;
    } rows[] = {
        { IDEM_DIALECT_STRIPE, "Idempotent-Replayed: true\n", IDEM_SAID_YES, IDEM_SAID_NOTHING },
        { IDEM_DIALECT_STRIPE, "idempotent-replayed: TRUE\nstripe-should-retry: false\n",
          IDEM_SAID_YES, IDEM_SAID_NO },
        { IDEM_DIALECT_STRIPE, "Idempotent-Replayed: false\nStripe-Should-Retry: true\n",
          IDEM_SAID_NO, IDEM_SAID_YES },
        { IDEM_DIALECT_STRIPE, "Idempotent-Replayed: 1\nStripe-Should-Retry: yes\n",
          IDEM_SAID_NOTHING, IDEM_SAID_NOTHING },
        { IDEM_DIALECT_STRIPE, "Idempotent-Replayed:\n", IDEM_SAID_NOTHING, IDEM_SAID_NOTHING },
        { IDEM_DIALECT_IDEM, "Idempotent-Replayed: true\nStripe-Should-Retry: true\n",
          IDEM_SAID_YES, IDEM_SAID_NOTHING },
        { IDEM_DIALECT_ADYEN, "Transient-Error: true\nIdempotent-Replayed: true\n",
          IDEM_SAID_NOTHING, IDEM_SAID_YES },
        { IDEM_DIALECT_PAYPAL, "transient-error: true\nIdempotent-Replayed: true\n",
          IDEM_SAID_NOTHING, IDEM_SAID_NOTHING },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct idem_signal signal = read_head(rows[i].dialect, rows[i].head);
        assert_int_equal(signal.replayed, rows[i].replayed);
        assert_int_equal(signal.should_retry, rows[i].should_retry);
        assert_int_equal(signal.retry_after_us, 3);
    }
}

static void the_key_in_an_answer_is_this_one_or_another(void **state)
{
    (void)state;
    static const struct {
        enum idem_dialect_id dialect;
        enum idem_said echoed;
        const char *head;
    } rows[] = {
        { IDEM_DIALECT_IDEM, IDEM_SAID_YES, "Idempotency-Key: \"k\\\"1\"\n" },
        { IDEM_DIALECT_IDEM, IDEM_SAID_YES, "idempotency-key: k\"1\n" },
        { IDEM_DIALECT_IDEM, IDEM_SAID_NOTHING, "" },
        { IDEM_DIALECT_IDEM, IDEM_SAID_NO, "Idempotency-Key: \"k1\"\n" },
        { IDEM_DIALECT_IDEM, IDEM_SAID_NO, "Idempotency-Key: K\"1\n" },
        { IDEM_DIALECT_IDEM, IDEM_SAID_NO, "Idempotency-Key: k\"\n" },
        { IDEM_DIALECT_IDEM, IDEM_SAID_NO, "Idempotency-Key: k\"12\n" },
        { IDEM_DIALECT_IDEM, IDEM_SAID_NO, "Idempotency-Key:\n" },
        { IDEM_DIALECT_IDEM, IDEM_SAID_NO, "Idempotency-Key: k\"1\nIdempotency-Key: k2\n" },
        { IDEM_DIALECT_IDEM, IDEM_SAID_NO, "Idempotency-Key: k\"1, k2\n" },
        { IDEM_DIALECT_STRIPE, IDEM_SAID_YES, "Idempotency-Key: k\"1\n" },
        { IDEM_DIALECT_PAYPAL, IDEM_SAID_NOTHING, "Idempotency-Key: other\n" },
        { IDEM_DIALECT_PAYPAL, IDEM_SAID_NO, "PayPal-Request-Id: other\n" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(read_head(rows[i].dialect, rows[i].head).echoed, rows[i].echoed);
    }
}

#define ECHO "Idempotency-Key: k\"1\n"

static void nothing_is_taken_from_an_answer_that_does_not_name_the_key(void **state)
{
    (void)state;
    static const char *const echoes[] = { "Idempotency-Key: other\n", "" };
    for (size_t i = 0; i < COUNT(echoes); i++) {
        char head[256];
        int len = snprintf(head, sizeof(head),
                           "%sLocation: /v1/operations/1\n"
                           "Idempotency-Expires: Sun, 29 Nov 2026 13:47:03 GMT\n",
                           echoes[i]);
        assert_in_range(len, 1, sizeof(head) - 1);
        struct idem_signal signal = read_head(IDEM_DIALECT_IDEM, head);
        assert_null(signal.location.data);
        assert_int_equal(signal.expires_in_us, 0);
    }
    EXPECT_TEXT(read_head(IDEM_DIALECT_IDEM, ECHO "Location: /a\n").location, "/a");
    EXPECT_TEXT(read_head(IDEM_DIALECT_IETF, "Location: /a\n").location, "/a");
    assert_null(read_head(IDEM_DIALECT_IETF, "Idempotency-Key: b\nLocation: /a\n").location.data);
}

static void expiry_counts_from_the_answer_s_own_date(void **state)
{
    (void)state;
    struct idem_signal signal = read_head(IDEM_DIALECT_IDEM, ECHO
                                          "Date: Sun, 29 Nov 2026 13:47:03 GMT\n"
                                          "Idempotency-Expires: Sun, 29 Nov 2026 13:48:03 GMT\n");
    assert_int_equal(signal.expires_in_us, 60 * IDEM_US_PER_SECOND);

    char memory[128];
    struct idem_buf head;
    idem_buf_init(&head, memory, sizeof(memory) - 1);
    idem_buf_add(&head, IDEM_STR(ECHO "Date: yesterday\nIdempotency-Expires: "));
    idem_date_print_imf(NOW_US + 5 * IDEM_US_PER_SECOND, &head);
    assert_false(head.full);
    memory[head.len] = '\0';
    assert_int_equal(read_head(IDEM_DIALECT_IDEM, memory).expires_in_us, 5 * IDEM_US_PER_SECOND);

    signal = read_head(IDEM_DIALECT_IDEM, ECHO
                       "Date: Sun, 29 Nov 2026 13:47:03 GMT\n"
                       "Idempotency-Expires: Sun, 29 Nov 2026 13:47:03 GMT\n");
    assert_int_equal(signal.expires_in_us, 1);
    signal = read_head(IDEM_DIALECT_IDEM, ECHO "Idempotency-Expires: soon\n");
    assert_int_equal(signal.expires_in_us, 0);
    signal = read_head(IDEM_DIALECT_STRIPE, "Idempotency-Expires: Sun, 29 Nov 2026 13:47:03 GMT\n");
    assert_int_equal(signal.expires_in_us, 0);
}

static void a_success_that_the_api_does_not_send_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        const char *body;
        enum idem_dialect_id dialect;
        uint16_t status;
        bool page;
    } rows[] = {
        { "text/html", "", IDEM_DIALECT_IETF, 200, true },
        { "Text/HTML ; charset=x", "{}", IDEM_DIALECT_IETF, 299, true },
        { "application/xhtml+xml", "", IDEM_DIALECT_IETF, 200, true },
        { "application/json", " \r\n\t<html>", IDEM_DIALECT_IETF, 200, true },
        { "", "<?xml version=\"1.0\"?>", IDEM_DIALECT_IETF, 200, true },
        { "", "\xEF\xBB\xBF<html>", IDEM_DIALECT_IETF, 200, true },
        { "application/json", "\xEF\xBB\xBF\n{}", IDEM_DIALECT_STRIPE, 200, false },
        { "text/htmlx", "Success", IDEM_DIALECT_IETF, 200, false },
        { "application/json", "{}", IDEM_DIALECT_IETF, 200, false },
        { "", "", IDEM_DIALECT_IETF, 200, false },
        { "application/json", "{}", IDEM_DIALECT_IDEM, 201, false },
        { "text/plain", "ok", IDEM_DIALECT_IDEM, 200, true },
        { "application/json", "", IDEM_DIALECT_IDEM, 200, true },
        { "text/html", "<html>", IDEM_DIALECT_IETF, 300, false },
        { "text/html", "<html>", IDEM_DIALECT_IETF, 404, false },
        { "application/json", " {\"id\":1}", IDEM_DIALECT_STRIPE, 200, false },
        { "text/plain", "Success", IDEM_DIALECT_STRIPE, 200, true },
        { "", "", IDEM_DIALECT_STRIPE, 200, true },
        { "application/json", "[1]", IDEM_DIALECT_ADYEN, 200, true },
        { "", "", IDEM_DIALECT_ADYEN, 204, true },
        { "", "", IDEM_DIALECT_PAYPAL, 204, false },
        { "application/json", "{}", IDEM_DIALECT_PAYPAL, 201, false },
        { "", "ok", IDEM_DIALECT_PAYPAL, 200, true },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct answer answer = {
            .dialect = rows[i].dialect,
            .status = rows[i].status,
            .type = rows[i].type,
            .body = idem_str_from(rows[i].body),
        };
        assert_int_equal(read_answer(&answer).page, rows[i].page);
    }
}

static void a_body_that_is_to_be_json_and_is_not_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        const char *body;
        enum idem_dialect_id dialect;
        uint16_t status;
        bool broken;
    } rows[] = {
        { "application/json", "{}", IDEM_DIALECT_IETF, 200, false },
        { "application/json", "{", IDEM_DIALECT_IETF, 200, true },
        { "application/json", "", IDEM_DIALECT_IETF, 200, false },
        { "Application/JSON ;charset=utf-8", "{", IDEM_DIALECT_IETF, 200, true },
        { "application/problem+json", "{", IDEM_DIALECT_IETF, 404, true },
        { "application/json", "{", IDEM_DIALECT_STRIPE, 500, true },
        { "application/json-seq", "{", IDEM_DIALECT_IETF, 200, false },
        { "json", "{", IDEM_DIALECT_IETF, 200, false },
        { "xjson", "{", IDEM_DIALECT_IETF, 200, false },
        { "text/plain", "{", IDEM_DIALECT_IETF, 200, false },
        { "", "{", IDEM_DIALECT_IDEM, 201, true },
        { "", "{", IDEM_DIALECT_STRIPE, 200, true },
        { "", "{", IDEM_DIALECT_ADYEN, 200, true },
        { "", "{", IDEM_DIALECT_PAYPAL, 200, true },
        { "", "", IDEM_DIALECT_PAYPAL, 204, false },
        { "", "{", IDEM_DIALECT_STRIPE, 404, false },
        { "application/json", "OK", IDEM_DIALECT_IETF, 200, false },
        { "application/json", "\xEF\xBB\xBF [1", IDEM_DIALECT_IETF, 200, true },
        { "application/json", "\xEF\xBB\xBF [1]", IDEM_DIALECT_IETF, 200, false },
        { "application/json", "[NaN]", IDEM_DIALECT_IETF, 200, false },
        { "application/json", "{\"x\":NaN}", IDEM_DIALECT_STRIPE, 200, true },
        { "application/json", "{\"x\":NaN}", IDEM_DIALECT_STRIPE, 400, true },
        { "application/json", "{\"x\":NaN}", IDEM_DIALECT_IETF, 400, false },
        { "application/json", "Unauthorized", IDEM_DIALECT_STRIPE, 401, false },
        { "application/json", "", IDEM_DIALECT_STRIPE, 401, true },
        { "", "", IDEM_DIALECT_STRIPE, 401, false },
        { "application/json", "[]", IDEM_DIALECT_STRIPE, 400, false },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct answer answer = {
            .dialect = rows[i].dialect,
            .status = rows[i].status,
            .type = rows[i].type,
            .body = idem_str_from(rows[i].body),
        };
        assert_int_equal(read_answer(&answer).broken, rows[i].broken);
    }
}

#define LONG_63 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"

static const struct {
    enum idem_dialect_id dialect;
    const char *body;
    const char *code;
    enum idem_said_effect effect;
    enum idem_said_retry retry;
} bodies[] = {
    { IDEM_DIALECT_IDEM,
      "{\"type\":\"urn:idem:problem:declined\",\"effect\":\"none\",\"retry\":\"new-key\"}",
      "declined", IDEM_SAID_EFFECT_NONE, IDEM_SAID_RETRY_NEW_KEY },
    { IDEM_DIALECT_STRIPE,
      " {\"retry\":\"query\",\"effect\":\"done\","
      "\"ty\\u0070e\":\"urn:idem:problem:answer-expired\"}\n",
      "answer-expired", IDEM_SAID_EFFECT_DONE, IDEM_SAID_RETRY_QUERY },
    { IDEM_DIALECT_PAYPAL,
      "{\"type\":\"urn:idem:problem:in\\u002dprogress\","
      "\"effect\":\"unknown\",\"retry\":\"same-key\"}",
      "in-progress", IDEM_SAID_EFFECT_UNKNOWN, IDEM_SAID_RETRY_SAME_KEY },
    { IDEM_DIALECT_IDEM,
      "{\"type\":\"urn:idem:problem:x\",\"effect\":\"None\",\"retry\":\"never\"}", "x",
      IDEM_SAID_EFFECT_ABSENT, IDEM_SAID_RETRY_NEVER },
    { IDEM_DIALECT_IDEM, "{\"type\":\"urn:idem:problem:x\",\"effect\":[\"none\"],\"retry\":null}",
      "x", IDEM_SAID_EFFECT_ABSENT, IDEM_SAID_RETRY_ABSENT },
    { IDEM_DIALECT_IDEM, "{\"type\":\"https://x.example/declined\",\"effect\":\"none\"}",
      "declined", IDEM_SAID_EFFECT_ABSENT, IDEM_SAID_RETRY_ABSENT },
    { IDEM_DIALECT_IETF, "{\"type\":\"about:blank\"}", "", 0, 0 },
    { IDEM_DIALECT_IETF, "{\"type\":\"https://x.example/\"}", "", 0, 0 },
    { IDEM_DIALECT_IETF, "{\"type\":\"out-of-stock\"}", "out-of-stock", 0, 0 },
    { IDEM_DIALECT_IETF, "{\"error\":{\"code\":\"x\"}}", "", 0, 0 },
    { IDEM_DIALECT_IETF, "{\"type\":\"a b\"}", "", 0, 0 },
    { IDEM_DIALECT_IETF, "{\"type\":\"a\\u0000b\"}", "", 0, 0 },
    { IDEM_DIALECT_IETF, "{\"type\":\"" LONG_63 "\"}", LONG_63, 0, 0 },
    { IDEM_DIALECT_IETF, "{\"type\":\"" LONG_63 "l\"}", "", 0, 0 },
    { IDEM_DIALECT_STRIPE, "{\"error\":{\"type\":\"card_error\",\"code\":\"card_declined\"}}",
      "card_declined", 0, 0 },
    { IDEM_DIALECT_STRIPE, "{\"error\":{\"type\":\"api_error\"}}", "api_error", 0, 0 },
    { IDEM_DIALECT_STRIPE, "{\"error\":{\"type\":\"api_error\",\"code\":null}}", "api_error", 0,
      0 },
    { IDEM_DIALECT_STRIPE, "{\"error\":{\"type\":\"idempotency_error\",\"code\":\"x\"}}",
      "idempotency_error", 0, 0 },
    { IDEM_DIALECT_STRIPE, "{\"error\":\"invalid_client\"}", "", 0, 0 },
    { IDEM_DIALECT_STRIPE, "{\"code\":\"card_declined\"}", "", 0, 0 },
    { IDEM_DIALECT_ADYEN, "{\"errorCode\":\"704\"}", "704", 0, 0 },
    { IDEM_DIALECT_ADYEN, "{\"errorCode\":704}", "704", 0, 0 },
    { IDEM_DIALECT_ADYEN, "{\"errorCode\":true}", "", 0, 0 },
    { IDEM_DIALECT_PAYPAL, "{\"name\":\"A\",\"details\":[{\"issue\":\"B\"},{\"issue\":\"C\"}]}",
      "B", 0, 0 },
    { IDEM_DIALECT_PAYPAL, "{\"name\":\"A\",\"details\":[]}", "A", 0, 0 },
    { IDEM_DIALECT_PAYPAL, "{\"name\":\"A\",\"details\":[\"issue\"]}", "A", 0, 0 },
    { IDEM_DIALECT_PAYPAL, "{\"name\":\"A\",\"details\":{\"issue\":\"B\"}}", "A", 0, 0 },
    { IDEM_DIALECT_PAYPAL, "[{\"name\":\"A\"}]", "", 0, 0 },
    { IDEM_DIALECT_PAYPAL, "\"name\"", "", 0, 0 },
    { IDEM_DIALECT_PAYPAL, "", "", 0, 0 },
    { IDEM_DIALECT_PAYPAL, "{\"name\":\"A\",\"name\":\"B\"}", "", 0, 0 },
    { IDEM_DIALECT_PAYPAL, "{\"name\":\"A\"} x", "", 0, 0 },
};

static void a_code_is_read_where_its_api_puts_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct idem_signal signal = read_body(bodies[i].dialect, bodies[i].body);
        if (strcmp(signal.code, bodies[i].code) != 0) {
            print_error("%s\n", bodies[i].body);
        }
        assert_string_equal(signal.code, bodies[i].code);
        assert_int_equal(signal.effect, bodies[i].effect);
        assert_int_equal(signal.retry, bodies[i].retry);
    }
}

static void only_an_error_has_a_code(void **state)
{
    (void)state;
    for (uint16_t status = 200; status < 600; status++) {
        const struct answer answer = {
            .dialect = IDEM_DIALECT_IDEM,
            .status = status,
            .body = IDEM_STR("{\"type\":\"urn:idem:problem:declined\",\"effect\":\"none\"}"),
        };
        struct idem_signal signal = read_answer(&answer);
        assert_string_equal(signal.code, status < 400 ? "" : "declined");
        assert_int_equal(signal.effect,
                         status < 400 ? IDEM_SAID_EFFECT_ABSENT : IDEM_SAID_EFFECT_NONE);
    }
}

static void a_longer_document_than_an_error_has_no_code(void **state)
{
    (void)state;
    static const size_t counts[] = { 400, 600 }; /* Elements; a tape has room for 512 tokens. */
    for (size_t i = 0; i < COUNT(counts); i++) {
        static char memory[4096];
        struct idem_buf body;
        idem_buf_init(&body, memory, sizeof(memory));
        idem_buf_add(&body, IDEM_STR("{\"errorCode\":\"704\",\"x\":["));
        for (size_t element = 0; element + 1 < counts[i]; element++) {
            idem_buf_add(&body, IDEM_STR("1,"));
        }
        idem_buf_add(&body, IDEM_STR("1]}"));
        const struct answer answer = {
            .dialect = IDEM_DIALECT_ADYEN,
            .status = 422,
            .body = idem_buf_str(&body),
        };
        assert_string_equal(read_answer(&answer).code, i == 0 ? "704" : "");
    }
}

/* Each copy lies in memory of its own size, so that a read behind its end is seen. */
static struct idem_signal read_copy(enum idem_dialect_id dialect, struct idem_str body)
{
    char *copy = malloc(body.len + (body.len == 0));
    assert_non_null(copy);
    memcpy(copy, body.data, body.len);
    const struct answer answer = {
        .dialect = dialect,
        .status = 402,
        .body = { .data = copy, .len = body.len },
    };
    struct idem_signal signal = read_answer(&answer);
    free(copy);
    return signal;
}

static void what_reads_as_a_whole_does_not_as_a_part(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct idem_str whole = idem_str_from(bodies[i].body);
        bool reads = bodies[i].code[0] != '\0';
        for (size_t len = 0; reads && len + 1 < whole.len; len++) {
            struct idem_signal signal = read_copy(bodies[i].dialect, idem_str_slice(whole, 0, len));
            assert_string_equal(signal.code, "");
            assert_int_equal(signal.effect, IDEM_SAID_EFFECT_ABSENT);
        }
    }
}

static void body_harm(enum idem_dialect_id dialect, struct idem_str whole, size_t at)
{
    char harmed[256];
    assert_true(whole.len < sizeof(harmed));
    memcpy(harmed, whole.data, whole.len);
    for (int byte = 0; byte < 256; byte += 5) {
        harmed[at] = (char)byte;
        struct idem_signal signal =
            read_copy(dialect, (struct idem_str){ .data = harmed, .len = whole.len });
        assert_true(strlen(signal.code) < IDEM_SIGNAL_CODE_MAX);
    }
}

static void a_harmed_body_does_no_harm(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bodies); i++) {
        for (size_t at = 0; at < strlen(bodies[i].body); at++) {
            body_harm(bodies[i].dialect, idem_str_from(bodies[i].body), at);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_is_found_by_its_whole_name),
        cmocka_unit_test(what_was_not_answered_says_nothing_more),
        cmocka_unit_test(a_flag_is_true_or_false_or_absent),
        cmocka_unit_test(the_key_in_an_answer_is_this_one_or_another),
        cmocka_unit_test(nothing_is_taken_from_an_answer_that_does_not_name_the_key),
        cmocka_unit_test(expiry_counts_from_the_answer_s_own_date),
        cmocka_unit_test(a_success_that_the_api_does_not_send_is_told),
        cmocka_unit_test(a_body_that_is_to_be_json_and_is_not_is_told),
        cmocka_unit_test(a_code_is_read_where_its_api_puts_it),
        cmocka_unit_test(only_an_error_has_a_code),
        cmocka_unit_test(a_longer_document_than_an_error_has_no_code),
        cmocka_unit_test(what_reads_as_a_whole_does_not_as_a_part),
        cmocka_unit_test(a_harmed_body_does_no_harm),
    };
    return cmocka_run_group_tests_name("client/signal", tests, NULL, NULL);
}
