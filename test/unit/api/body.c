/*
 * Request bodies.
 *
 * Goal: what the bytes alone can say is said: every member that is wrong in any way is refused by
 * name, and what is taken reaches the command unchanged.
 *
 * Method: the smallest good body of each endpoint with one member replaced, from a table.
 */
#include "api/body.h"

#include "core/limits.h"
#include "lib/test.h"

static struct idem_body body;
static char memory[4096];
static struct idem_buf kept;
static struct idem_accept accept;

/* Reads `text`; "ok", or what is wrong. */
static struct idem_str verdict(enum idem_endpoint endpoint, const char *text)
{
    static struct idem_fault fault;
    fault = (struct idem_fault){ 0 };
    accept = (struct idem_accept){ .endpoint = endpoint };
    idem_buf_init(&kept, memory, sizeof(memory));
    if (idem_body_parse(&body, idem_str_from(text), &fault) &&
        idem_body_read_accept(&body, &kept, &accept, &fault)) {
        return IDEM_STR("ok");
    }
    assert_int_equal(fault.problem, IDEM_PROBLEM_BODY_INVALID);
    return idem_fault_text(&fault);
}

static struct idem_str create(const char *text)
{
    return verdict(IDEM_ENDPOINT_PAYMENTS_CREATE, text);
}

/* A good body with `more` behind its members. */
static const char *with(const char *more)
{
    static char text[8192];
    (void)snprintf(text, sizeof(text),
                   "{\"order_no\":\"A-17\",\"amount\":\"100.00\",\"currency\":\"CNY\","
                   "\"provider\":\"sandbox\"%s}",
                   more);
    return text;
}

static void a_whole_payment_reaches_the_command(void **state)
{
    (void)state;
    EXPECT_TEXT(
        create(
            "{\"order_no\":\"A-17\",\"amount\":\"100.05\",\"currency\":\"CNY\",\"provider\":"
            "\"sandbox\",\"capture\":\"manual\",\"method\":\"tok_1\",\"description\":\"T\\u00e9e "
            "\\\"gr\\u00fcn\\\"\",\"metadata\":{ \"a\": [1.50, null] }}"),
        "ok");
    EXPECT_TEXT(accept.order_no, "A-17");
    assert_int_equal(accept.amount_minor, 10005);
    EXPECT_TEXT(accept.currency, "CNY");
    EXPECT_TEXT(accept.entry, "sandbox");
    assert_int_equal(accept.capture_mode, IDEM_CAPTURE_MANUAL);
    EXPECT_TEXT(accept.method, "tok_1");
    EXPECT_TEXT(accept.description,
                "T\xC3\xA9"
                "e \"gr\xC3\xBCn\"");
    EXPECT_TEXT(accept.metadata, "{ \"a\": [1.50, null] }");
    assert_int_equal(accept.amount_text.len, 0);
}

static void the_smallest_payment_is_captured_at_once(void **state)
{
    (void)state;
    EXPECT_TEXT(create(with("")), "ok");
    assert_int_equal(accept.capture_mode, IDEM_CAPTURE_AUTOMATIC);
    assert_int_equal(accept.method.len, 0);
    assert_int_equal(accept.metadata.len, 0);
    EXPECT_TEXT(create("{\"\\u006frder_no\":\"\\u0041\",\"amount\":\"1\",\"currency\":\"JPY\","
                       "\"provider\":\"p\"}"),
                "ok");
    EXPECT_TEXT(accept.order_no, "A");
}

#define VISIBLE(name, max) "\"" name "\" must be a string of 1 to " max " bytes of visible ASCII."

static void each_optional_member_is_refused_in_each_way(void **state)
{
    static const struct {
        const char *more;
        const char *expected;
    } rows[] = {
        { ",\"capture\":\"automatic\"", "ok" },
        { ",\"capture\":\"Automatic\"", "\"capture\" must be \"automatic\" or \"manual\"." },
        { ",\"capture\":\"\"", VISIBLE("capture", "9") },
        { ",\"capture\":true", VISIBLE("capture", "9") },
        { ",\"capture\":null", VISIBLE("capture", "9") },
        { ",\"method\":\"a b\"", VISIBLE("method", "128") },
        { ",\"method\":\"\"", VISIBLE("method", "128") },
        { ",\"method\":7", VISIBLE("method", "128") },
        { ",\"method\":\"\\u0000\"", VISIBLE("method", "128") },
        { ",\"method\":\"\xC3\xA9\"", VISIBLE("method", "128") },
        { ",\"description\":\"\"", "ok" },
        { ",\"description\":\"a\\nb\"",
          "\"description\" must be a string of at most 255 bytes "
          "without control characters." },
        { ",\"description\":\"a\xC2\x85"
          "b\"",
          "\"description\" must be a string of at most 255 bytes without control characters." },
        { ",\"description\":\"\\u009F\"",
          "\"description\" must be a string of at most 255 bytes without control characters." },
        { ",\"description\":\"\\u0080\"",
          "\"description\" must be a string of at most 255 bytes without control characters." },
        { ",\"description\":\"\\u00A0\\u00C2\\u0400\"", "ok" }, /* 85 and 9F stand in others too. */
        { ",\"description\":\"\xE2\x82\xAC\xC3\x85\"", "ok" },
        { ",\"description\":{}",
          "\"description\" must be a string of at most 255 bytes without "
          "control characters." },
        { ",\"metadata\":{}", "ok" },
        { ",\"metadata\":[]", "\"metadata\" must be a JSON object of at most 2048 bytes." },
        { ",\"metadata\":\"{}\"", "\"metadata\" must be a JSON object of at most 2048 bytes." },
        { ",\"metadata\":null", "\"metadata\" must be a JSON object of at most 2048 bytes." },
        { ",\"refund_no\":\"R\"", "The member \"refund_no\" is not known here." },
        { ",\"endpoint\":\"R\"", "The member \"endpoint\" is not known here." },
        { ",\"Capture\":\"manual\"", "The member \"Capture\" is not known here." },
        { ",\"\":1", "There is a member that is not known here." },
        { ",\"a b\":1", "There is a member that is not known here." },
        { ",\"order_no\":\"B\"", "The body is not strict JSON: duplicate member name at byte 75." },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].more);
        EXPECT_TEXT(create(with(rows[i].more)), rows[i].expected);
    }
}

#define AMOUNT_SYNTAX "\"amount\" must be a plain decimal string such as \"100.00\"."
#define CODE          "\"currency\" must be an ISO 4217 code in capitals."

static void each_required_member_is_refused_in_each_way(void **state)
{
    static const struct {
        const char *members; /* order_no, amount, currency, provider as JSON. */
        const char *expected;
    } rows[] = {
        { "\"order_no\":\"A\",\"amount\":\"100\",\"currency\":\"JPY\",\"provider\":\"p\"", "ok" },
        { "\"order_no\":\"A\",\"amount\":\"1.000\",\"currency\":\"KWD\",\"provider\":\"p\"", "ok" },
        { "\"amount\":\"100\",\"currency\":\"JPY\",\"provider\":\"p\"",
          "\"order_no\" is missing." },
        { "\"order_no\":\"A\",\"currency\":\"JPY\",\"provider\":\"p\"", "\"amount\" is missing." },
        { "\"order_no\":\"A\",\"amount\":\"100\",\"provider\":\"p\"", "\"currency\" is missing." },
        { "\"order_no\":\"A\",\"amount\":\"100\",\"currency\":\"JPY\"",
          "\"provider\" is missing." },
        { "\"order_no\":17,\"amount\":\"100\",\"currency\":\"JPY\",\"provider\":\"p\"",
          VISIBLE("order_no", "64") },
        { "\"order_no\":\"case-01977e3c-5e0a-7cc3-98c4-dc0c0c07398f\",\"amount\":\"1\","
          "\"currency\":\"JPY\",\"provider\":\"p\"",
          "ok" }, /* The core refuses it, if it is new. */
        { "\"order_no\":\"\",\"amount\":\"100\",\"currency\":\"JPY\",\"provider\":\"p\"",
          VISIBLE("order_no", "64") },
        { "\"order_no\":\"A 1\",\"amount\":\"100\",\"currency\":\"JPY\",\"provider\":\"p\"",
          VISIBLE("order_no", "64") },
        { "\"order_no\":\"A\",\"amount\":100,\"currency\":\"JPY\",\"provider\":\"p\"",
          VISIBLE("amount", "24") },
        { "\"order_no\":\"A\",\"amount\":\"1e2\",\"currency\":\"JPY\",\"provider\":\"p\"",
          AMOUNT_SYNTAX },
        { "\"order_no\":\"A\",\"amount\":\"-100\",\"currency\":\"JPY\",\"provider\":\"p\"",
          AMOUNT_SYNTAX },
        { "\"order_no\":\"A\",\"amount\":\"100.00\",\"currency\":\"JPY\",\"provider\":\"p\"",
          "\"amount\" must have exactly 0 decimals in this currency." },
        { "\"order_no\":\"A\",\"amount\":\"100\",\"currency\":\"CNY\",\"provider\":\"p\"",
          "\"amount\" must have exactly 2 decimals in this currency." },
        { "\"order_no\":\"A\",\"amount\":\"0.00\",\"currency\":\"CNY\",\"provider\":\"p\"",
          "\"amount\" must be more than zero." },
        { "\"order_no\":\"A\",\"amount\":\"99999999999999999999\",\"currency\":\"JPY\","
          "\"provider\":\"p\"",
          "\"amount\" is more than can be counted." },
        { "\"order_no\":\"A\",\"amount\":\"100\",\"currency\":\"jpy\",\"provider\":\"p\"", CODE },
        { "\"order_no\":\"A\",\"amount\":\"100\",\"currency\":\"XXX\",\"provider\":\"p\"", CODE },
        { "\"order_no\":\"A\",\"amount\":\"100\",\"currency\":\"JP\",\"provider\":\"p\"", CODE },
        { "\"order_no\":\"A\",\"amount\":\"100\",\"currency\":\"JPYX\",\"provider\":\"p\"",
          VISIBLE("currency", "3") },
        { "\"order_no\":\"A\",\"amount\":\"100\",\"currency\":\"JPY\",\"provider\":\"\"",
          VISIBLE("provider", "32") },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        char text[512];
        (void)snprintf(text, sizeof(text), "{%s}", rows[i].members);
        print_message("# %s\n", text);
        EXPECT_TEXT(create(text), rows[i].expected);
    }
}

/* A good body with a string member of `len` bytes, each written as `letter`. */
static const char *with_string(const char *name, size_t len, const char *letter)
{
    static char more[2048];
    struct idem_buf buf;
    idem_buf_init(&buf, more, sizeof(more) - 1);
    idem_buf_printf(&buf, ",\"%s\":\"", name);
    for (size_t i = 0; i < len; i++) {
        idem_buf_add(&buf, idem_str_from(letter));
    }
    idem_buf_add_char(&buf, '"');
    more[buf.len] = '\0';
    assert_false(buf.full);
    return with(more);
}

static void lengths_end_where_limits_h_says(void **state)
{
    static const struct {
        const char *name;
        size_t max;
    } rows[] = {
        { "method", IDEM_METHOD_MAX },
        { "description", IDEM_DESCRIPTION_MAX },
    };
    static const char *const letters[] = { "a", "\\u0061" };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        for (size_t k = 0; k < IDEM_ARRAY_COUNT(letters); k++) {
            EXPECT_TEXT(create(with_string(rows[i].name, rows[i].max, letters[k])), "ok");
            struct idem_str over = create(with_string(rows[i].name, rows[i].max + 1, letters[k]));
            assert_false(idem_str_equal(over, IDEM_STR("ok")));
        }
    }
}

static void metadata_ends_where_limits_h_says(void **state)
{
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        char more[IDEM_METADATA_MAX + 64];
        struct idem_buf buf;
        idem_buf_init(&buf, more, sizeof(more) - 1);
        idem_buf_add(&buf, IDEM_STR(",\"metadata\":{\"a\":\""));
        const size_t frame = sizeof("{\"a\":\"\"}") - 1;
        for (size_t k = 0; k < IDEM_METADATA_MAX - frame + over; k++) {
            idem_buf_add_char(&buf, 'x');
        }
        idem_buf_add(&buf, IDEM_STR("\"}"));
        more[buf.len] = '\0';
        assert_false(buf.full);
        assert_true(idem_str_equal(create(with(more)), IDEM_STR("ok")) == (over == 0));
    }
}

static void follow_ups_take_what_they_know(void **state)
{
    static const struct {
        enum idem_endpoint endpoint;
        const char *text;
        const char *expected;
    } rows[] = {
        { IDEM_ENDPOINT_PAYMENTS_CAPTURE, "{}", "ok" },
        { IDEM_ENDPOINT_PAYMENTS_CAPTURE, "{\"amount\":\"1.00\"}", "ok" },
        { IDEM_ENDPOINT_PAYMENTS_CAPTURE, "{\"amount\":\"100\"}", "ok" },
        { IDEM_ENDPOINT_PAYMENTS_CAPTURE, "{\"amount\":\"1.0000\"}", "ok" },
        { IDEM_ENDPOINT_PAYMENTS_CAPTURE, "{\"amount\":\"1.00000\"}", AMOUNT_SYNTAX },
        { IDEM_ENDPOINT_PAYMENTS_CAPTURE, "{\"amount\":\"1.\"}", AMOUNT_SYNTAX },
        { IDEM_ENDPOINT_PAYMENTS_CAPTURE, "{\"amount\":\"01.00\"}", AMOUNT_SYNTAX },
        { IDEM_ENDPOINT_PAYMENTS_CAPTURE, "{\"amount\":\"0.00\"}",
          "\"amount\" must be more than zero." },
        { IDEM_ENDPOINT_PAYMENTS_CAPTURE, "{\"amount\":1.00}", VISIBLE("amount", "24") },
        { IDEM_ENDPOINT_PAYMENTS_CAPTURE, "{\"currency\":\"CNY\"}",
          "The member \"currency\" is not known here." },
        { IDEM_ENDPOINT_PAYMENTS_CANCEL, "{}", "ok" },
        { IDEM_ENDPOINT_PAYMENTS_CANCEL, "{\"amount\":\"1.00\"}",
          "The member \"amount\" is not known here." },
        { IDEM_ENDPOINT_REFUNDS_CREATE, "{}", "ok" },
        { IDEM_ENDPOINT_REFUNDS_CREATE, "{\"amount\":\"1.00\",\"refund_no\":\"R-1\"}", "ok" },
        { IDEM_ENDPOINT_REFUNDS_CREATE, "{\"refund_no\":\"\"}", VISIBLE("refund_no", "64") },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s %s\n", idem_endpoint_name(rows[i].endpoint), rows[i].text);
        EXPECT_TEXT(verdict(rows[i].endpoint, rows[i].text), rows[i].expected);
    }
    EXPECT_TEXT(
        verdict(IDEM_ENDPOINT_REFUNDS_CREATE, "{\"amount\":\"1.00\",\"refund_no\":\"R-1\"}"), "ok");
    EXPECT_TEXT(accept.amount_text, "1.00");
    EXPECT_TEXT(accept.refund_no, "R-1");
}

static void only_a_strict_json_object_is_a_body(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "\"x\"",
        "null",
        "{",
        "{} {}",
        "\xEF\xBB\xBF{}",
        "{\"amount\":\"1\",\"amount\":\"2\"}",
        "{\"amount\":\"1\",\"\\u0061mount\":\"2\"}",
        "{\"refund_no\":\"\\ud800\"}",
        "{\"refund_no\":\"\xFF\"}",
        "{\"refund_no\":\"R\",}",
        "{'refund_no':\"R\"}",
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(texts); i++) {
        print_message("# %s\n", texts[i]);
        struct idem_str text = verdict(IDEM_ENDPOINT_REFUNDS_CREATE, texts[i]);
        assert_false(idem_str_equal(text, IDEM_STR("ok")));
    }
}

static void abandoning_names_an_endpoint(void **state)
{
    static const struct {
        const char *text;
        enum idem_endpoint expected;
    } rows[] = {
        { "{\"endpoint\":\"payments.create\"}", IDEM_ENDPOINT_PAYMENTS_CREATE },
        { "{\"endpoint\":\"payments.capture\"}", IDEM_ENDPOINT_PAYMENTS_CAPTURE },
        { "{\"endpoint\":\"payments.cancel\"}", IDEM_ENDPOINT_PAYMENTS_CANCEL },
        { "{\"endpoint\":\"refunds.create\"}", IDEM_ENDPOINT_REFUNDS_CREATE },
        { "{\"endpoint\":\"Refunds.create\"}", IDEM_ENDPOINT_NONE },
        { "{\"endpoint\":\"\"}", IDEM_ENDPOINT_NONE },
        { "{\"endpoint\":1}", IDEM_ENDPOINT_NONE },
        { "{}", IDEM_ENDPOINT_NONE },
        { "{\"endpoint\":\"refunds.create\",\"key\":\"k\"}", IDEM_ENDPOINT_NONE },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].text);
        struct idem_fault fault = { 0 };
        enum idem_endpoint endpoint = IDEM_ENDPOINT_NONE;
        idem_buf_init(&kept, memory, sizeof(memory));
        assert_true(idem_body_parse(&body, idem_str_from(rows[i].text), &fault));
        bool read = idem_body_read_abandon(&body, &kept, &endpoint, &fault);
        assert_int_equal(endpoint, rows[i].expected);
        assert_true(read == (fault.problem == IDEM_PROBLEM_NONE));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_payment_reaches_the_command),
        cmocka_unit_test(the_smallest_payment_is_captured_at_once),
        cmocka_unit_test(each_optional_member_is_refused_in_each_way),
        cmocka_unit_test(each_required_member_is_refused_in_each_way),
        cmocka_unit_test(lengths_end_where_limits_h_says),
        cmocka_unit_test(metadata_ends_where_limits_h_says),
        cmocka_unit_test(follow_ups_take_what_they_know),
        cmocka_unit_test(only_a_strict_json_object_is_a_body),
        cmocka_unit_test(abandoning_names_an_endpoint),
    };
    return cmocka_run_group_tests_name("api/body", tests, NULL, NULL);
}
