/*
 * The bridge protocol: what is written, and what is believed of what comes back.
 *
 * Goal: requests are these bytes and no others; every answer that docs/bridge.md does not list is
 * UNKNOWN; and no damage to a good answer can turn it into another claim about money.
 *
 * Method: golden bytes; a table of answers; and the table's good answers with every single byte
 * changed to every other, and cut at every place. Where damage yields another readable answer, the
 * test reads it with a second JSON reader (jansson) and compares.
 */
#include "provider/bridge.h"

#include <jansson.h>

#include "lib/test.h"

#define OUR_ID   "c0123456789abcdefghjkmnpqrs"
#define OTHER_ID "c9876543210abcdefghjkmnpqrs"

static const struct idem_effect our_effect = {
    .kind = IDEM_EFFECT_KIND_CHARGE,
    .id = { .data = OUR_ID, .len = IDEM_EFFECT_ID_LEN },
    .amount_minor = 10000,
    .currency = { .data = "CNY", .len = 3 },
    .request = { .data = "{\"stored\":\"bytes\"}", .len = 18 },
};

static void expect_encoded(const struct idem_effect_order *order, const char *expected)
{
    for (int round = 0; round < 2; round++) { /* The same effect gives the same bytes. */
        char memory[IDEM_REQUEST_MAX];
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_bridge_adapter.encode(order, &buf);
        assert_false(buf.full);
        EXPECT_TEXT(idem_buf_str(&buf), expected);
    }
}

static void requests_are_these_bytes(void **state)
{
    (void)state;
    struct idem_effect effect = our_effect;
    struct idem_effect_order order = {
        .effect = &effect,
        .order_no = IDEM_STR("o-1"),
        .method = IDEM_STR("tok_ok"),
        .description = IDEM_STR("two \"\xe8\x8c\xb6\"\n"),
    };

    expect_encoded(&order, "{\"id\":\"" OUR_ID
                           "\",\"kind\":\"charge\",\"amount\":\"100.00\","
                           "\"currency\":\"CNY\",\"order_no\":\"o-1\",\"method\":\"tok_ok\","
                           "\"description\":\"two \\\"\xe8\x8c\xb6\\\"\\n\"}");

    effect.kind = IDEM_EFFECT_KIND_AUTHORIZE;
    effect.currency = IDEM_STR("JPY");
    order.description = IDEM_STR("");
    expect_encoded(&order, "{\"id\":\"" OUR_ID
                           "\",\"kind\":\"authorize\",\"amount\":\"10000\","
                           "\"currency\":\"JPY\",\"order_no\":\"o-1\",\"method\":\"tok_ok\"}");

    effect.kind = IDEM_EFFECT_KIND_CAPTURE;
    effect.currency = IDEM_STR("KWD");
    order.payment_effect_id = IDEM_STR(OTHER_ID);
    order.payment_reference = IDEM_STR("p/9");
    expect_encoded(&order, "{\"id\":\"" OUR_ID
                           "\",\"kind\":\"capture\",\"amount\":\"10.000\","
                           "\"currency\":\"KWD\",\"order_no\":\"o-1\","
                           "\"payment_id\":\"" OTHER_ID "\",\"payment_reference\":\"p/9\"}");

    effect.kind = IDEM_EFFECT_KIND_REFUND;
    effect.currency = IDEM_STR("CNY");
    effect.amount_minor = 1;
    order.payment_reference = IDEM_STR("");
    expect_encoded(&order, "{\"id\":\"" OUR_ID
                           "\",\"kind\":\"refund\",\"amount\":\"0.01\","
                           "\"currency\":\"CNY\",\"order_no\":\"o-1\","
                           "\"payment_id\":\"" OTHER_ID "\"}");

    effect.kind = IDEM_EFFECT_KIND_CANCEL;
    expect_encoded(&order, "{\"id\":\"" OUR_ID
                           "\",\"kind\":\"cancel\",\"amount\":\"0.01\","
                           "\"currency\":\"CNY\",\"order_no\":\"o-1\","
                           "\"payment_id\":\"" OTHER_ID "\"}");
}

static void the_longest_order_fits_the_stored_request(void **state)
{
    (void)state;
    char filler[IDEM_DESCRIPTION_MAX];
    char memory[IDEM_REQUEST_MAX];
    struct idem_buf buf;
    struct idem_effect effect = our_effect;
    memset(filler, 1, sizeof(filler)); /* The byte with the longest escape. */
    struct idem_str text = { .data = filler, .len = sizeof(filler) };
    struct idem_effect_order order = {
        .effect = &effect,
        .order_no = idem_str_slice(text, 0, IDEM_ORDER_NO_MAX),
        .method = idem_str_slice(text, 0, IDEM_METHOD_MAX),
        .description = idem_str_slice(text, 0, IDEM_DESCRIPTION_MAX),
        .payment_effect_id = IDEM_STR(OTHER_ID),
        .payment_reference = idem_str_slice(text, 0, IDEM_REFERENCE_MAX),
    };

    effect.amount_minor = INT64_MAX;
    for (enum idem_effect_kind kind = IDEM_EFFECT_KIND_CHARGE; kind < IDEM_EFFECT_KIND_COUNT;
         kind++) {
        effect.kind = kind;
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_bridge_adapter.encode(&order, &buf);
        assert_false(buf.full);
    }
}

static void expect_request(enum idem_call_kind kind, const char *credential, const char *expected)
{
    char memory[1024];
    char shown_memory[1024];
    struct idem_buf buf;
    struct idem_buf shown;
    struct idem_wire_request request = { .header_count = 0 };

    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_init(&shown, shown_memory, sizeof(shown_memory));
    idem_bridge_adapter.request(kind, &our_effect, idem_str_from(credential), &buf, &request);
    assert_false(buf.full);
    idem_buf_printf(&shown, "%s %.*s\n", request.method, (int)request.path.len, request.path.data);
    for (size_t i = 0; i < request.header_count; i++) {
        idem_buf_add(&shown, request.headers[i]);
        idem_buf_add_char(&shown, '\n');
    }
    idem_buf_add(&shown, request.body);
    EXPECT_TEXT(idem_buf_str(&shown), expected);
}

static void each_call_has_its_path_headers_and_body(void **state)
{
    (void)state;
    expect_request(IDEM_CALL_SEND, "secret",
                   "POST /effects\nAuthorization: Bearer secret\nContent-Type: application/json\n"
                   "Idempotency-Key: " OUR_ID "\n{\"stored\":\"bytes\"}");
    expect_request(IDEM_CALL_QUERY, "secret",
                   "GET /effects/" OUR_ID "\nAuthorization: Bearer secret\n");
    expect_request(IDEM_CALL_CLOSE, "",
                   "POST /effects/" OUR_ID "/close\nContent-Type: application/json\n{}");
}

static struct idem_evidence decode(enum idem_call_kind kind,
                                   uint16_t status,
                                   struct idem_str body,
                                   char memory[IDEM_REQUEST_MAX])
{
    struct idem_buf buf;
    struct idem_evidence evidence = { .source = IDEM_SOURCE_NONE };
    struct idem_wire_answer answer = { .status = status, .body = body, .retry_after_us = 7 };

    idem_buf_init(&buf, memory, IDEM_REQUEST_MAX);
    idem_bridge_adapter.decode(kind, &our_effect, &answer, &buf, &evidence);
    assert_false(buf.full);
    assert_int_equal(evidence.retry_after_us, 7);
    return evidence;
}

/* What each letter promises, for a send, a query and a close: the columns of the table below. */
static char letter(enum idem_outcome_kind outcome)
{
    static const char letters[IDEM_OUTCOME_COUNT] = {
        [IDEM_OUTCOME_UNKNOWN] = '?',       [IDEM_OUTCOME_SUCCESS] = 'S',
        [IDEM_OUTCOME_REFUSED_FINAL] = 'R', [IDEM_OUTCOME_NOT_EXECUTED] = 'N',
        [IDEM_OUTCOME_PROCESSING] = 'P',    [IDEM_OUTCOME_NOT_FOUND] = '0',
        [IDEM_OUTCOME_CLOSED_UNPAID] = 'C',
    };
    return letters[outcome];
}

#define MONEY   "\"amount\":\"100.00\",\"currency\":\"CNY\""
#define OURS    "\"id\":\"" OUR_ID "\","
#define ANOTHER "\"id\":\"" OTHER_ID "\","

static const struct {
    uint16_t status;
    const char *send_query_close;
    const char *body;
} answers[] = {
    { 200, "SSS", "{" OURS "\"status\":\"succeeded\"," MONEY ",\"reference\":\"r1\"}" },
    { 200, "SSS", "{" OURS "\"status\":\"succeeded\"," MONEY ",\"code\":null}" },
    { 200, "SSS", "{" ANOTHER "\"status\":\"succeeded\"," MONEY "}" },
    { 200, "SSS", "{" OURS "\"status\":\"succeeded\",\"amount\":\"9\",\"currency\":\"JPY\"}" },
    { 200, "SSS", " {\"more\":[1,{}]," OURS "\"status\":\"\\u0073ucceeded\"," MONEY "}\r\n" },
    { 200, "???", "{\"status\":\"succeeded\"," MONEY "}" },
    { 200, "???", "{\"id\":\"\",\"status\":\"succeeded\"," MONEY "}" },
    { 200, "???", "{\"id\":7,\"status\":\"succeeded\"," MONEY "}" },
    { 200, "???", "{" OURS "\"status\":\"succeeded\",\"currency\":\"CNY\"}" },
    { 200, "???", "{" OURS "\"status\":\"succeeded\",\"amount\":\"100.00\"}" },
    { 200, "???", "{" OURS "\"status\":\"succeeded\",\"amount\":100.00,\"currency\":\"CNY\"}" },
    { 200, "???", "{" OURS "\"status\":\"succeeded\",\"amount\":\"100\",\"currency\":\"CNY\"}" },
    { 200, "???", "{" OURS "\"status\":\"succeeded\",\"amount\":\"-1.00\",\"currency\":\"CNY\"}" },
    { 200, "???", "{" OURS "\"status\":\"succeeded\",\"amount\":\"0.00\",\"currency\":\"CNY\"}" },
    { 200, "???", "{" OURS "\"status\":\"succeeded\",\"amount\":\"100.00\",\"currency\":\"cny\"}" },
    { 200, "???", "{" OURS "\"status\":\"succeeded\",\"amount\":\"100.00\",\"currency\":\"XXX\"}" },
    { 200, "???", "{" OURS "\"status\":\"succeeded\",\"reference\":9," MONEY "}" },
    { 200, "???", "{" OURS "\"status\":\"succeeded\",\"reference\":\"a\\u0000\"," MONEY "}" },
    { 200, "???", "{" OURS "\"status\":\"succeeded\",\"status\":\"declined\"," MONEY "}" },
    { 200, "???", "[{" OURS "\"status\":\"succeeded\"," MONEY "}]" },
    { 200, "???", "{" OURS "\"status\":\"Succeeded\"," MONEY "}" },
    { 200, "???", "{" OURS "\"status\":\"settling\"," MONEY "}" },
    { 200, "???", "{" OURS "\"status\":null," MONEY "}" },
    { 200, "???", "{" OURS MONEY "}" },
    { 201, "???", "{" OURS "\"status\":\"succeeded\"," MONEY "}" },
    { 202, "???", "{" OURS "\"status\":\"processing\"," MONEY "}" },
    { 200, "RRR", "{" OURS "\"status\":\"declined\"," MONEY ",\"code\":\"no_money\"}" },
    { 200, "RRR", "{" OURS "\"status\":\"declined\"}" },
    { 200, "???", "{" ANOTHER "\"status\":\"declined\"," MONEY "}" },
    { 200, "???", "{\"status\":\"declined\"," MONEY "}" },
    { 200, "???", "{" OURS "\"status\":\"declined\",\"code\":5}" },
    { 402, "???", "{" OURS "\"status\":\"declined\"," MONEY "}" },
    { 200, "PPP", "{" OURS "\"status\":\"processing\"," MONEY "}" },
    { 200, "???", "{" ANOTHER "\"status\":\"processing\"," MONEY "}" },
    { 200, "CCC", "{" OURS "\"status\":\"closed\"," MONEY "}" },
    { 200, "???", "{" ANOTHER "\"status\":\"closed\"," MONEY "}" },
    { 404, "?0?", "{\"status\":\"not_found\"}" },
    { 404, "?0?", "{" OURS "\"status\":\"not_found\"}" },
    { 404, "???", "{" ANOTHER "\"status\":\"not_found\"}" },
    { 404, "???", "{\"error\":\"no such page\"}" },
    { 404, "???", "" },
    { 200, "???", "{\"status\":\"not_found\"}" },
    { 400, "RRR", "{" OURS "\"status\":\"invalid\",\"code\":\"c\",\"message\":\"m\"}" },
    { 422, "RRR", "{" OURS "\"status\":\"invalid\"}" },
    { 400, "???", "{\"status\":\"invalid\",\"code\":\"json\"}" },
    { 400, "???", "{" ANOTHER "\"status\":\"invalid\"}" },
    { 400, "???", "{" OURS "\"status\":\"declined\"}" },
    { 409, "???", "{" OURS "\"status\":\"conflict\"}" },
    { 429, "N??", "{\"status\":\"not_executed\",\"code\":\"busy\"}" },
    { 503, "N??", "{" OURS "\"status\":\"not_executed\"}" },
    { 401, "N??", "{\"status\":\"not_executed\"}" },
    { 403, "N??", "{\"status\":\"not_executed\"}" },
    { 503, "???", "{" ANOTHER "\"status\":\"not_executed\"}" },
    { 503, "???", "<html>Service Unavailable</html>" },
    { 503, "???", "{\"status\":\"unavailable\"}" },
    { 429, "???", "{}" },
    { 401, "???", "" },
    { 500, "???", "{\"status\":\"not_executed\"}" },
    { 200, "???", "{\"status\":\"not_executed\"}" },
    { 502, "???", "{" OURS "\"status\":\"succeeded\"," MONEY "}" },
    { 204, "???", "" },
    { 307, "???", "" },
};

static void an_answer_means_what_the_table_says_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(answers); i++) {
        char memory[IDEM_REQUEST_MAX];
        char got[4] = "";
        struct idem_str body = idem_str_from(answers[i].body);
        got[0] = letter(decode(IDEM_CALL_SEND, answers[i].status, body, memory).outcome);
        got[1] = letter(decode(IDEM_CALL_QUERY, answers[i].status, body, memory).outcome);
        got[2] = letter(decode(IDEM_CALL_CLOSE, answers[i].status, body, memory).outcome);
        if (strcmp(got, answers[i].send_query_close) != 0) {
            print_error("%u %s: expected %s, got %s\n", answers[i].status, answers[i].body,
                        answers[i].send_query_close, got);
            fail();
        }
    }
}

static void an_answer_is_read_with_all_it_says(void **state)
{
    (void)state;
    char memory[IDEM_REQUEST_MAX];
    struct idem_evidence evidence = decode(
        IDEM_CALL_SEND, 200,
        IDEM_STR("{" ANOTHER "\"status\":\"succeeded\",\"amount\":\"1.234\",\"currency\":\"KWD\","
                 "\"reference\":\"r\\u00e9\"}"),
        memory);
    assert_int_equal(evidence.outcome, IDEM_OUTCOME_SUCCESS);
    EXPECT_TEXT(evidence.effect_id, OTHER_ID);
    assert_int_equal(evidence.amount_minor, 1234);
    EXPECT_TEXT(evidence.currency, "KWD");
    EXPECT_TEXT(evidence.reference, "r\xc3\xa9");

    evidence = decode(IDEM_CALL_SEND, 200,
                      IDEM_STR("{" OURS "\"status\":\"declined\",\"code\":\"c\","
                               "\"message\":\"m \\\"n\\\"\"}"),
                      memory);
    EXPECT_TEXT(evidence.code, "c");
    EXPECT_TEXT(evidence.message, "m \"n\"");
    assert_int_equal(evidence.amount_minor, -1);

    evidence = decode(IDEM_CALL_SEND, 200, IDEM_STR("garbage"), memory);
    assert_int_equal(evidence.amount_minor, -1);
    EXPECT_TEXT(evidence.effect_id, "");
}

static const char *json_text(const json_t *root, const char *name)
{
    const char *text = json_string_value(json_object_get(root, name));
    return text == NULL ? "" : text;
}

/* Whatever the damage: a claim is made only if another reader finds the same claim in the bytes. */
static void expect_honest(uint16_t status, struct idem_str body)
{
    char memory[IDEM_REQUEST_MAX];
    struct idem_evidence evidence = decode(IDEM_CALL_QUERY, status, body, memory);
    if (evidence.outcome == IDEM_OUTCOME_UNKNOWN) {
        return;
    }

    json_t *root = json_loadb(body.data, body.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    static const char *const words[IDEM_OUTCOME_COUNT] = {
        [IDEM_OUTCOME_SUCCESS] = "succeeded",     [IDEM_OUTCOME_REFUSED_FINAL] = "declined",
        [IDEM_OUTCOME_PROCESSING] = "processing", [IDEM_OUTCOME_NOT_FOUND] = "not_found",
        [IDEM_OUTCOME_CLOSED_UNPAID] = "closed",
    };
    bool same = strcmp(json_text(root, "status"), words[evidence.outcome]) == 0 &&
                idem_str_equal(evidence.effect_id, idem_str_from(json_text(root, "id"))) &&
                idem_str_equal(evidence.currency, idem_str_from(json_text(root, "currency"))) &&
                idem_str_equal(evidence.reference, idem_str_from(json_text(root, "reference")));
    bool amount_same =
        evidence.amount_minor != 10000 || strcmp(json_text(root, "amount"), "100.00") == 0;
    if (!same || !amount_same) {
        print_error("%.*s\n", (int)body.len, body.data);
        fail();
    }
    json_decref(root);
}

static void expect_honest_with_any_byte(uint16_t status, const char *good, size_t at)
{
    struct idem_str text = idem_str_from(good);
    char *copy = malloc(text.len); /* Of its own size, so that a read past its end is noticed. */
    assert_non_null(copy);

    memcpy(copy, text.data, text.len);
    for (unsigned byte = 0; byte < 256; byte++) {
        copy[at] = (char)byte;
        expect_honest(status, (struct idem_str){ .data = copy, .len = text.len });
    }
    free(copy);
}

static void expect_unknown_when_cut(uint16_t status, const char *good, size_t len)
{
    char memory[IDEM_REQUEST_MAX];
    char *cut = malloc(len + 1);
    assert_non_null(cut);

    memcpy(cut, good, len);
    struct idem_evidence evidence =
        decode(IDEM_CALL_QUERY, status, (struct idem_str){ .data = cut, .len = len }, memory);
    assert_int_equal(evidence.outcome, IDEM_OUTCOME_UNKNOWN);
    free(cut);
}

static void no_damage_makes_another_claim(void **state)
{
    (void)state;
    static const struct {
        uint16_t status;
        const char *body;
    } good[] = {
        { 200, "{" OURS "\"status\":\"succeeded\"," MONEY ",\"reference\":\"r\"}" },
        { 200, "{" OURS "\"status\":\"declined\"," MONEY ",\"code\":\"c\"}" },
        { 200, "{" OURS "\"status\":\"closed\"}" },
        { 404, "{\"status\":\"not_found\"}" },
    };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(good); i++) {
        for (size_t at = 0; at < strlen(good[i].body); at++) {
            expect_honest_with_any_byte(good[i].status, good[i].body, at);
            expect_unknown_when_cut(good[i].status, good[i].body, at);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_these_bytes),
        cmocka_unit_test(the_longest_order_fits_the_stored_request),
        cmocka_unit_test(each_call_has_its_path_headers_and_body),
        cmocka_unit_test(an_answer_means_what_the_table_says_and_nothing_else),
        cmocka_unit_test(an_answer_is_read_with_all_it_says),
        cmocka_unit_test(no_damage_makes_another_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
