/*
 * The JSON reader and the canonical form.
 *
 * Goal: what is accepted is exactly what json.h promises, a fault points at the first wrong byte,
 * and two texts have one canonical form exactly if they mean the same.
 *
 * Method: tables of texts with the answers, written from RFC 8259, RFC 3629, RFC 7493 and RFC 6901
 * and not from the code. Texts are copied into memory of their exact size, so that the address
 * sanitizer sees a read behind the end.
 */
#include "base/json.h"

#include <time.h>

#include "lib/test.h"

#define TOKENS_MAX 16384
#define TEXT_MAX   (64 * 1024)

static struct idem_json_token tape[TOKENS_MAX];
static char form_memory[2 * TEXT_MAX];
static char text_memory[TEXT_MAX];

/* Copies `text` to a block of its own; free() it. */
static char *exact_copy(struct idem_str text)
{
    char *copy = malloc(text.len == 0 ? 1 : text.len);
    assert_non_null(copy);
    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    return copy;
}

static bool parses(struct idem_str text, struct idem_json_fault *ret_fault)
{
    struct idem_json json;
    char *copy = exact_copy(text);
    idem_json_init(&json, tape, TOKENS_MAX);
    bool valid = idem_json_parse(&json, (struct idem_str){ copy, text.len }, ret_fault);
    assert_true(valid == (json.count > 0));
    free(copy);
    return valid;
}

/* The canonical form without `ignored`, or "fault" or "inexact". */
static struct idem_str form_without(struct idem_str text, const char *ignored)
{
    struct idem_json json;
    struct idem_json_fault fault;
    struct idem_buf buf;
    struct idem_str pointer = idem_str_from(ignored);
    char *copy = exact_copy(text);
    idem_json_init(&json, tape, TOKENS_MAX);
    idem_buf_init(&buf, form_memory, sizeof(form_memory));
    struct idem_str form = IDEM_STR("fault");
    if (idem_json_parse(&json, (struct idem_str){ copy, text.len }, &fault)) {
        bool exact = idem_json_canonical(&json, &pointer, ignored == NULL ? 0 : 1, &buf);
        form = exact ? idem_buf_str(&buf) : IDEM_STR("inexact");
        assert_true(!exact || form.len < 2 * text.len);
    }
    free(copy);
    return form;
}

static struct idem_str form_of(const char *text)
{
    return form_without(idem_str_from(text), NULL);
}

static void what_rfc_8259_allows_is_accepted(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-1",
        "10",
        "1.5",
        "0.0",
        "1e5",
        "1E+5",
        "1e-5",
        "-0.0e-0",
        "123456789012345678901234567890",
        "1e999999999999",
        "\"\"",
        "\"a\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\\u0000\"",
        "\"\\u00e9\\uD83D\\uDE00\"",
        "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"",
        "\"\x7F\"",
        "\"\xEF\xBB\xBF\"",
        "\"\xEF\xBF\xBF\"",
        "[]",
        "[ ]",
        "[1]",
        "[1,2]",
        "[[],{}]",
        "{}",
        "{ }",
        "{\"a\":1}",
        "{\"\":1}",
        "{\"a\":1,\"b\":2}",
        "{\"a\":{\"a\":{\"a\":1}}}",
        "{\"a\":1,\"A\":2}",
        " \t\r\n[ 1 , 2 ] \n",
        "{ \"a\" : [ true , null ] , \"b\" : { } }",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(texts); i++) {
        struct idem_json_fault fault = { .what = "" };
        if (!parses(idem_str_from(texts[i]), &fault)) {
            print_error("%s: at %zu: %s\n", texts[i], fault.offset, fault.what);
            fail();
        }
    }
}

static const struct {
    const char *text;
    size_t offset;
    const char *what;
} faults[] = {
    { "", 0, "unexpected end" },
    { " \n", 2, "unexpected end" },
    { "[", 1, "unexpected end" },
    { "[1", 2, "unexpected end" },
    { "[1,", 3, "unexpected end" },
    { "{", 1, "unexpected end" },
    { "{\"a\"", 4, "unexpected end" },
    { "{\"a\":", 5, "unexpected end" },
    { "{\"a\":1", 6, "unexpected end" },
    { "{\"a\":1,", 7, "unexpected end" },
    { "[1,]", 3, "value expected" },
    { "[,1]", 1, "value expected" },
    { "]", 0, "value expected" },
    { "{\"a\":}", 5, "value expected" },
    { "'a'", 0, "value expected" },
    { "+1", 0, "value expected" },
    { ".5", 0, "value expected" },
    { "Infinity", 0, "value expected" },
    { "/**/1", 0, "value expected" },
    { "\x0B"
      "1",
      0, "value expected" },
    { "\xEF\xBB\xBF{}", 0, "byte order mark" },
    { "[\xEF\xBB\xBF]", 1, "value expected" },
    { "{1:2}", 1, "member name expected" },
    { "{,}", 1, "member name expected" },
    { "{\"a\":1,}", 7, "member name expected" },
    { "{\"a\" 1}", 5, "colon expected" },
    { "{\"a\"}", 4, "colon expected" },
    { "{\"a\":1 \"b\":2}", 7, "comma or end expected" },
    { "[1 2]", 3, "comma or end expected" },
    { "[1}", 2, "comma or end expected" },
    { "{\"a\":1]", 6, "comma or end expected" },
    { "[truex]", 5, "comma or end expected" },
    { "1 2", 2, "text behind the value" },
    { "{}{}", 2, "text behind the value" },
    { "{},", 2, "text behind the value" },
    { "nul", 0, "unknown word" },
    { "True", 0, "value expected" },
    { "tru", 0, "unknown word" },
    { "fals\xC3", 0, "unknown word" },
    { "nan", 0, "unknown word" },
    { "-", 1, "digit expected" },
    { "-a", 1, "digit expected" },
    { "1.", 2, "digit expected" },
    { "1.e1", 2, "digit expected" },
    { "1e", 2, "digit expected" },
    { "1e+", 3, "digit expected" },
    { "01", 0, "leading zero" },
    { "-01", 1, "leading zero" },
    { "00", 0, "leading zero" },
    { "0x10", 1, "text behind the value" },
    { "1.5.2", 3, "text behind the value" },
    { "\"", 1, "unfinished string" },
    { "\"a", 2, "unfinished string" },
    { "\"\\\"", 3, "unfinished string" },
    { "\"a\nb\"", 2, "raw control character" },
    { "\"\x1F\"", 1, "raw control character" },
    { "\"\\", 1, "invalid escape" },
    { "\"\\a\"", 1, "invalid escape" },
    { "\"\\'\"", 1, "invalid escape" },
    { "\"\\U0041\"", 1, "invalid escape" },
    { "\"\\u12\"", 1, "invalid escape" },
    { "\"\\u12G4\"", 1, "invalid escape" },
    { "\"\\u12", 1, "invalid escape" },
    { "\"\\uD800\"", 1, "lone surrogate" },
    { "\"\\uDC00\"", 1, "lone surrogate" },
    { "\"\\uD800\\u0041\"", 1, "lone surrogate" },
    { "\"\\uD800\\uD800\"", 1, "lone surrogate" },
    { "\"\\uDC00\\uD800\"", 1, "lone surrogate" },
    { "\"\\uD83Dx\"", 1, "lone surrogate" },
    { "\"\\uD83D\\u", 1, "lone surrogate" },
    { "{\"a\":1,\"a\":2}", 7, "duplicate member name" },
    { "{\"b\":1,\"\\u0062\":2}", 7, "duplicate member name" },
    { "{\"\\u0062\":1,\"b\":2}", 12, "duplicate member name" },
    { "{\"\":1,\"\":2}", 6, "duplicate member name" },
    { "{\"/\":1,\"\\/\":2}", 7, "duplicate member name" },
    { "{\"\xC3\xA9\":1,\"\\u00E9\":2}", 8, "duplicate member name" },
    { "{\"\xF0\x9F\x98\x80\":1,\"\\ud83d\\ude00\":2}", 10, "duplicate member name" },
    { "{\"b\":1,\"a\":2,\"b\":3,\"a\":4}", 13, "duplicate member name" },
    { "{\"a\":1,\"b\":2,\"a\":3,\"a\":4}", 13, "duplicate member name" },
    { "[{\"x\":{\"a\":[],\"a\":{}}}]", 14, "duplicate member name" },
};

static void what_is_wrong_is_refused_where_it_begins(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(faults); i++) {
        struct idem_json_fault fault = { .what = "accepted" };
        (void)parses(idem_str_from(faults[i].text), &fault);
        if (fault.offset != faults[i].offset || strcmp(fault.what, faults[i].what) != 0) {
            print_error("%s: expected %zu %s, got %zu %s\n", faults[i].text, faults[i].offset,
                        faults[i].what, fault.offset, fault.what);
            fail();
        }
    }
}

static void a_zero_byte_is_no_white_space_and_no_end(void **state)
{
    (void)state;
    struct idem_json_fault fault;
    assert_false(parses(IDEM_STR("1\0"), &fault));
    assert_int_equal(fault.offset, 1);
    assert_false(parses(IDEM_STR("\"\0\""), &fault));
    assert_string_equal(fault.what, "raw control character");
    assert_false(parses(IDEM_STR("\"\\\0\""), &fault));
    assert_string_equal(fault.what, "invalid escape");
}

static void utf8_is_what_rfc_3629_says(void **state)
{
    (void)state;
    const struct {
        struct idem_str text;
        bool valid;
    } rows[] = {
        { IDEM_STR(""), true },
        { IDEM_STR("\0\x7F"), true },
        { IDEM_STR("\x80"), false },
        { IDEM_STR("\xBF"), false },
        { IDEM_STR("\xC0\x80"), false },
        { IDEM_STR("\xC1\xBF"), false },
        { IDEM_STR("\xC2\x80"), true },
        { IDEM_STR("\xC2"), false },
        { IDEM_STR("\xC2\x7F"), false },
        { IDEM_STR("\xC2\xC0"), false },
        { IDEM_STR("\xDF\xBF"), true },
        { IDEM_STR("\xE0\x80\x80"), false },
        { IDEM_STR("\xE0\x9F\xBF"), false },
        { IDEM_STR("\xE0\xA0\x80"), true },
        { IDEM_STR("\xE0\xA0"), false },
        { IDEM_STR("\xE1\x80"), false },
        { IDEM_STR("\xE1\x80\x7F"), false },
        { IDEM_STR("\xEC\xBF\xBF"), true },
        { IDEM_STR("\xED\x9F\xBF"), true },
        { IDEM_STR("\xED\xA0\x80"), false },
        { IDEM_STR("\xED\xBF\xBF"), false },
        { IDEM_STR("\xEE\x80\x80"), true },
        { IDEM_STR("\xEF\xBF\xBF"), true },
        { IDEM_STR("\xF0\x80\x80\x80"), false },
        { IDEM_STR("\xF0\x8F\xBF\xBF"), false },
        { IDEM_STR("\xF0\x90\x80\x80"), true },
        { IDEM_STR("\xF0\x90\x80"), false },
        { IDEM_STR("\xF1\x80\x80\xC0"), false },
        { IDEM_STR("\xF3\xBF\xBF\xBF"), true },
        { IDEM_STR("\xF4\x8F\xBF\xBF"), true },
        { IDEM_STR("\xF4\x90\x80\x80"), false },
        { IDEM_STR("\xF5\x80\x80\x80"), false },
        { IDEM_STR("\xFE"), false },
        { IDEM_STR("\xFF"), false },
        { IDEM_STR("a\xC3\xA9z\xFF"), false },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        char quoted[16] = "\"";
        memcpy(quoted + 1, rows[i].text.data, rows[i].text.len);
        quoted[rows[i].text.len + 1] = '"';
        struct idem_json_fault fault;
        bool in_string = parses((struct idem_str){ quoted, rows[i].text.len + 2 }, &fault);
        bool has_control = rows[i].text.len > 0 && (unsigned char)rows[i].text.data[0] < 0x20;
        if (idem_utf8_valid(rows[i].text) != rows[i].valid ||
            in_string != (rows[i].valid && !has_control)) {
            print_error("row %zu\n", i);
            fail();
        }
    }
}

static void nesting_has_a_limit_on_both_kinds(void **state)
{
    (void)state;
    for (size_t depth = IDEM_JSON_DEPTH_MAX; depth <= IDEM_JSON_DEPTH_MAX + 1; depth++) {
        struct idem_json_fault fault;
        struct idem_buf arrays;
        struct idem_buf objects;
        char array_memory[512];
        char object_memory[512];
        idem_buf_init(&arrays, array_memory, sizeof(array_memory));
        idem_buf_init(&objects, object_memory, sizeof(object_memory));
        for (size_t i = 0; i < depth; i++) {
            idem_buf_add(&arrays, IDEM_STR("["));
            idem_buf_add(&objects, i + 1 < depth ? IDEM_STR("{\"a\":") : IDEM_STR("{"));
        }
        for (size_t i = 0; i < depth; i++) {
            idem_buf_add(&arrays, IDEM_STR("]"));
            idem_buf_add(&objects, IDEM_STR("}"));
        }
        bool allowed = depth <= IDEM_JSON_DEPTH_MAX;
        assert_true(parses(idem_buf_str(&arrays), &fault) == allowed);
        assert_true(parses(idem_buf_str(&objects), &fault) == allowed);
        if (allowed) {
            assert_true(
                idem_str_equal(form_without(idem_buf_str(&arrays), NULL), idem_buf_str(&arrays)));
            assert_true(
                idem_str_equal(form_without(idem_buf_str(&objects), NULL), idem_buf_str(&objects)));
        } else {
            assert_string_equal(fault.what, "nested too deeply");
            assert_int_equal(fault.offset, IDEM_JSON_DEPTH_MAX * strlen("{\"a\":"));
        }
    }
}

static void a_tape_that_is_too_short_refuses(void **state)
{
    (void)state;
    const struct idem_str text = IDEM_STR("{\"a\":[1,2],\"b\":{}}");
    for (size_t max = 0; max <= 8; max++) {
        struct idem_json json;
        struct idem_json_fault fault = { .what = "accepted" };
        idem_json_init(&json, tape, max);
        bool fits = idem_json_parse(&json, text, &fault);
        assert_true(fits == (max >= 7));
        assert_string_equal(fault.what, fits ? "accepted" : "too many values");
        assert_int_equal(json.count, fits ? 7 : 0);
    }
}

static void the_tape_says_what_stands_where(void **state)
{
    (void)state;
    static const struct {
        enum idem_json_kind kind;
        const char *raw;
        uint32_t count;
        uint32_t next;
        uint32_t sorted;
        bool escaped;
    } rows[] = {
        { IDEM_JSON_OBJECT, "{ \"b\": [1, -2.5e3 ], \"\\u0061\": {\"c\":null}, \"aa\":\"x\\n\" }",
          3, 11, 5, false },
        { IDEM_JSON_STRING, "b", 0, 2, 0, false },
        { IDEM_JSON_ARRAY, "[1, -2.5e3 ]", 2, 5, 0, false },
        { IDEM_JSON_NUMBER, "1", 0, 4, 0, false },
        { IDEM_JSON_NUMBER, "-2.5e3", 0, 5, 0, false },
        { IDEM_JSON_STRING, "\\u0061", 0, 6, 9, true },
        { IDEM_JSON_OBJECT, "{\"c\":null}", 1, 9, 7, false },
        { IDEM_JSON_STRING, "c", 0, 8, 0, false },
        { IDEM_JSON_NULL, "null", 0, 9, 0, false },
        { IDEM_JSON_STRING, "aa", 0, 10, 1, false },
        { IDEM_JSON_STRING, "x\\n", 0, 11, 0, true },
    };
    struct idem_json json;
    struct idem_json_fault fault;
    idem_json_init(&json, tape, TOKENS_MAX);
    assert_true(idem_json_parse(&json, idem_str_from(rows[0].raw), &fault));
    assert_int_equal(json.count, IDEM_ARRAY_COUNT(rows));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        assert_int_equal(json.tokens[i].kind, rows[i].kind);
        EXPECT_TEXT(json.tokens[i].raw, rows[i].raw);
        assert_int_equal(json.tokens[i].count, rows[i].count);
        assert_int_equal(json.tokens[i].next, rows[i].next);
        assert_int_equal(json.tokens[i].sorted, rows[i].sorted);
        assert_true(json.tokens[i].escaped == rows[i].escaped);
    }
}

static void members_are_found_by_their_unescaped_names(void **state)
{
    (void)state;
    struct idem_json json;
    struct idem_json_fault fault;
    idem_json_init(&json, tape, TOKENS_MAX);
    assert_true(idem_json_parse(
        &json,
        IDEM_STR("{\"amount\":1,\"\\u0061\\/b\":2,\"\":3,\"in\":{\"amount\":4},\"z\\u0000\":5}"),
        &fault));
    const struct {
        struct idem_str name;
        const char *raw;
    } rows[] = {
        { IDEM_STR("amount"), "1" },  { IDEM_STR("a/b"), "2" },      { IDEM_STR(""), "3" },
        { IDEM_STR("z\0"), "5" },     { IDEM_STR("amoun"), NULL },   { IDEM_STR("amounts"), NULL },
        { IDEM_STR("Amount"), NULL }, { IDEM_STR("\\u0061"), NULL }, { IDEM_STR("z"), NULL },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        size_t value = idem_json_member(&json, 0, rows[i].name);
        assert_true((value == 0) == (rows[i].raw == NULL));
        if (value != 0) {
            EXPECT_TEXT(json.tokens[value].raw, rows[i].raw);
        }
    }
    size_t inner = idem_json_member(&json, 0, IDEM_STR("in"));
    EXPECT_TEXT(json.tokens[idem_json_member(&json, inner, IDEM_STR("amount"))].raw, "4");
    assert_int_equal(idem_json_member(&json, inner, IDEM_STR("in")), 0);
}

static void escapes_are_resolved(void **state)
{
    (void)state;
    const struct {
        const char *text;
        struct idem_str meaning;
    } rows[] = {
        { "\"\"", IDEM_STR("") },
        { "\"plain\"", IDEM_STR("plain") },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", IDEM_STR("\"\\/\b\f\n\r\t") },
        { "\"a\\u0000b\"", IDEM_STR("a\0b") },
        { "\"\\u007f\\u0080\\u07FF\"", IDEM_STR("\x7F\xC2\x80\xDF\xBF") },
        { "\"\\u0800\\uD7fF\\uE000\\uffff\"",
          IDEM_STR("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF") },
        { "\"\\uD800\\uDC00\\uDBFF\\uDFFF\"", IDEM_STR("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF") },
        { "\"x\\\\u0041y\"", IDEM_STR("x\\u0041y") },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_json json;
        struct idem_json_fault fault;
        struct idem_buf buf;
        char memory[32];
        idem_json_init(&json, tape, TOKENS_MAX);
        assert_true(idem_json_parse(&json, idem_str_from(rows[i].text), &fault));
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_json_unescape(&json, 0, &buf);
        assert_true(idem_str_equal(idem_buf_str(&buf), rows[i].meaning));

        idem_buf_init(&buf, memory, rows[i].meaning.len);
        idem_json_unescape(&json, 0, &buf);
        assert_false(buf.full);
        if (rows[i].meaning.len > 0) {
            idem_buf_init(&buf, memory, rows[i].meaning.len - 1);
            idem_json_unescape(&json, 0, &buf);
            assert_true(buf.full);
        }
    }
}

static void written_strings_have_the_fewest_escapes(void **state)
{
    (void)state;
    const struct {
        struct idem_str text;
        const char *written;
    } rows[] = {
        { IDEM_STR(""), "\"\"" },
        { IDEM_STR("a/b'<>&"), "\"a/b'<>&\"" },
        { IDEM_STR("\"\\"), "\"\\\"\\\\\"" },
        { IDEM_STR("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"" },
        { IDEM_STR("\0\x01\x0B\x1F\x7F"), "\"\\u0000\\u0001\\u000b\\u001f\x7F\"" },
        { IDEM_STR("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\"" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_buf buf;
        char memory[64];
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_json_add_string(&buf, rows[i].text);
        EXPECT_TEXT(idem_buf_str(&buf), rows[i].written);
    }
}

static void equal_meanings_have_one_form(void **state)
{
    (void)state;
    static const struct {
        const char *form;
        const char *texts[10]; /* Up to the first NULL. */
    } rows[] = {
        { "0", { "0", "-0", "0.0", "-0.000", "0e99", "0e-99", "0.0E+9999999999999999999999" } },
        { "1", { "1", "1.0", "1e0", "10e-1", "0.1e1", "100E-2", "1.000e-0", "1e+0", "1e00000" } },
        { "-1", { "-1", "-1.0", "-10e-1" } },
        { "1e2", { "100", "1e2", "1E+2", "100.00", "0.01e4", "10000e-2" } },
        { "125e-1", { "12.5", "125e-1", "0.125e2", "12.50" } },
        { "1e-7", { "0.0000001", "1e-7", "10e-8" } },
        { "9007199254740992",
          { "9007199254740992", "9007199254740992.0", "9.007199254740992e15" } },
        { "9007199254740993", { "9007199254740993", "9007199254740993e0" } },
        { "1e9223372036854775807", { "1e9223372036854775807", "10e9223372036854775806" } },
        { "1e-9223372036854775808", { "1e-9223372036854775808", "0.1e-9223372036854775807" } },
        { "123456789012345678901234567890123456789e-1",
          { "12345678901234567890123456789012345678.9" } },
        { "\"1\"", { "\"1\"", "\"\\u0031\"" } },
        { "\"a/\xC3\xA9\xF0\x9F\x98\x80\"",
          { "\"a/\xC3\xA9\xF0\x9F\x98\x80\"", "\"\\u0061\\/\\u00e9\\uD83D\\uDE00\"" } },
        { "\"\\u0000\\u001f\\n\\\"\\\\\"", { "\"\\u0000\\u001F\\u000a\\u0022\\u005C\"" } },
        { "[1,[],{},\"\",null,true,false]",
          { " [ 1.0 , [ ] , { } , \"\" , null,true,\nfalse ] " } },
        { "{\"a\":1,\"b\":{\"x\":1,\"y\":2}}",
          { "{\"a\":1,\"b\":{\"x\":1,\"y\":2}}", "{\"b\":{\"y\":2,\"x\":1},\"a\":1}",
            "{\r\n \"\\u0062\" : { \"y\":2.0, \"x\":1e0 },\r\n \"a\" : 1\r\n}" } },
        { "{\"\":0,\"a\":3,\"a\\u0000\":5,\"aa\":2,\"b\":1,\"\xC3\xA9\":4}",
          { "{\"b\":1,\"aa\":2,\"a\":3,\"\\u00e9\":4,\"a\\u0000\":5,\"\":0}" } },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        for (size_t j = 0; j < 10 && rows[i].texts[j] != NULL; j++) {
            EXPECT_TEXT(form_of(rows[i].texts[j]), rows[i].form);
        }
        EXPECT_TEXT(form_of(rows[i].form), rows[i].form);
    }
}

/* By UTF-16 units, as RFC 8785 sorts, U+E000 would stand behind U+10000; by bytes before it. */
static void names_sort_by_their_bytes(void **state)
{
    (void)state;
    EXPECT_TEXT(form_of("{\"\\uD800\\uDC00\":1,\"\\uE000\":2,\"\x7F\":3,\"\\u0080\":4}"),
                "{\"\x7F\":3,\"\xC2\x80\":4,\"\xEE\x80\x80\":2,\"\xF0\x90\x80\x80\":1}");
}

static void different_meanings_have_different_forms(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "1",
        "\"1\"",
        "[1]",
        "{\"1\":1}",
        "-1",
        "10",
        "0.1",
        "9007199254740992",
        "9007199254740993",
        "1e400",
        "1e401",
        "0",
        "null",
        "false",
        "\"\"",
        "\"null\"",
        "[]",
        "{}",
        "[1,2]",
        "[2,1]",
        "[[1],2]",
        "[1,[2]]",
        "[12]",
        "{\"a\":1}",
        "{\"A\":1}",
        "{\"a\":\"1\"}",
        "{\"a\":null}",
        "[\"a\",1]",
        "\"a\\u0000\"",
        "\"a\"",
        "\"\\u00e9\"",
        "\"e\\u0301\"",
        "\"1e2\"",
        "1e2",
    };
    static char forms[IDEM_ARRAY_COUNT(texts)][64];
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(texts); i++) {
        struct idem_str form = form_of(texts[i]);
        assert_in_range(form.len, 1, sizeof(forms[i]) - 1);
        memcpy(forms[i], form.data, form.len);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(forms[i], forms[j]);
        }
    }
}

static void an_exponent_beyond_64_bits_has_no_form(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "1e9223372036854775808",
        "10e9223372036854775807",
        "1e-9223372036854775809",
        "0.1e-9223372036854775808",
        "[0,{\"a\":1e99999999999999999999}]",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(texts); i++) {
        EXPECT_TEXT(form_of(texts[i]), "inexact");
    }
}

static void a_buffer_that_is_too_short_fails(void **state)
{
    (void)state;
    const struct idem_str text = IDEM_STR("{\"b\":[1.5,\"\\u0001\"],\"a\":{}}");
    struct idem_json json;
    struct idem_json_fault fault;
    struct idem_buf buf;
    size_t needed = form_without(text, NULL).len;
    idem_json_init(&json, tape, TOKENS_MAX);
    assert_true(idem_json_parse(&json, text, &fault));
    for (size_t max = 0; max <= needed; max++) {
        idem_buf_init(&buf, form_memory, max);
        assert_true(idem_json_canonical(&json, NULL, 0, &buf) == (max == needed));
    }
}

static void ignored_values_are_left_out(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":{\"b\":[10,{\"c\":1,\"d\":2},12]},\"a/b\":3,\"m~n\":4,"
        "\"\":5,\"~1\":6,\"\\u00e9\":7,\"0\":8}";
    static const char all[] =
        "{\"\":5,\"0\":8,\"a\":{\"b\":[1e1,{\"c\":1,\"d\":2},12]},\"a/b\":3,"
        "\"m~n\":4,\"~1\":6,\"\xC3\xA9\":7}";
    static const struct {
        const char *pointer;
        const char *form; /* NULL: nothing is left out. */
    } rows[] = {
        { "", "" },
        { "/a", "{\"\":5,\"0\":8,\"a/b\":3,\"m~n\":4,\"~1\":6,\"\xC3\xA9\":7}" },
        { "/a/b", "{\"\":5,\"0\":8,\"a\":{},\"a/b\":3,\"m~n\":4,\"~1\":6,\"\xC3\xA9\":7}" },
        { "/a/b/0",
          "{\"\":5,\"0\":8,\"a\":{\"b\":[{\"c\":1,\"d\":2},12]},\"a/b\":3,\"m~n\":4,"
          "\"~1\":6,\"\xC3\xA9\":7}" },
        { "/a/b/1/c",
          "{\"\":5,\"0\":8,\"a\":{\"b\":[1e1,{\"d\":2},12]},\"a/b\":3,\"m~n\":4,"
          "\"~1\":6,\"\xC3\xA9\":7}" },
        { "/a/b/2",
          "{\"\":5,\"0\":8,\"a\":{\"b\":[1e1,{\"c\":1,\"d\":2}]},\"a/b\":3,\"m~n\":4,"
          "\"~1\":6,\"\xC3\xA9\":7}" },
        { "/a~1b",
          "{\"\":5,\"0\":8,\"a\":{\"b\":[1e1,{\"c\":1,\"d\":2},12]},\"m~n\":4,\"~1\":6,"
          "\"\xC3\xA9\":7}" },
        { "/m~0n",
          "{\"\":5,\"0\":8,\"a\":{\"b\":[1e1,{\"c\":1,\"d\":2},12]},\"a/b\":3,\"~1\":6,"
          "\"\xC3\xA9\":7}" },
        { "/~01",
          "{\"\":5,\"0\":8,\"a\":{\"b\":[1e1,{\"c\":1,\"d\":2},12]},\"a/b\":3,\"m~n\":4,"
          "\"\xC3\xA9\":7}" },
        { "/",
          "{\"0\":8,\"a\":{\"b\":[1e1,{\"c\":1,\"d\":2},12]},\"a/b\":3,\"m~n\":4,\"~1\":6,"
          "\"\xC3\xA9\":7}" },
        { "/\xC3\xA9",
          "{\"\":5,\"0\":8,\"a\":{\"b\":[1e1,{\"c\":1,\"d\":2},12]},\"a/b\":3,"
          "\"m~n\":4,\"~1\":6}" },
        { "/0",
          "{\"\":5,\"a\":{\"b\":[1e1,{\"c\":1,\"d\":2},12]},\"a/b\":3,\"m~n\":4,\"~1\":6,"
          "\"\xC3\xA9\":7}" },
        { "a", NULL },
        { "/A", NULL },
        { "/a/", NULL },
        { "/a/b/3", NULL },
        { "/a/b/00", NULL },
        { "/a/b/01", NULL },
        { "/a/b/-", NULL },
        { "/a/b/-1", NULL },
        { "/a/b/", NULL },
        { "/a/b/99999999999999999999", NULL },
        { "/a/b/0/c", NULL },
        { "/m~n", NULL },
        { "/m~2n", NULL },
        { "/m~", NULL },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        EXPECT_TEXT(form_without(idem_str_from(text), rows[i].pointer),
                    rows[i].form == NULL ? all : rows[i].form);
    }
}

static void many_pointers_are_ignored_together(void **state)
{
    (void)state;
    struct idem_json json;
    struct idem_json_fault fault;
    struct idem_buf buf;
    struct idem_str ignored[IDEM_JSON_IGNORED_MAX];
    for (size_t i = 0; i < IDEM_JSON_IGNORED_MAX; i++) {
        ignored[i] = IDEM_STR("/nowhere");
    }
    ignored[0] = IDEM_STR("/a");
    ignored[7] = IDEM_STR("/l/1");
    ignored[IDEM_JSON_IGNORED_MAX - 1] = IDEM_STR("/l/0");
    idem_json_init(&json, tape, TOKENS_MAX);
    idem_buf_init(&buf, form_memory, sizeof(form_memory));
    assert_true(idem_json_parse(&json, IDEM_STR("{\"z\":1,\"l\":[1,2,3],\"a\":{}}"), &fault));
    assert_true(idem_json_canonical(&json, ignored, IDEM_JSON_IGNORED_MAX, &buf));
    EXPECT_TEXT(idem_buf_str(&buf), "{\"l\":[3],\"z\":1}");
}

/* Writes an object whose names are `prefix` and a number, in an order that looks random. */
static struct idem_str object_make(size_t count, const char *prefix, const char *last)
{
    struct idem_buf buf;
    idem_buf_init(&buf, text_memory, sizeof(text_memory));
    idem_buf_add_char(&buf, '{');
    for (size_t i = 0; i < count; i++) {
        idem_buf_printf(&buf, "\"%s%05zu\":%zu,", prefix, i * 7919 % 10007, i);
    }
    idem_buf_printf(&buf, "\"%s\":0}", last);
    assert_false(buf.full);
    return idem_buf_str(&buf);
}

static void a_large_object_is_sorted(void **state)
{
    (void)state;
    struct idem_json json;
    struct idem_json_fault fault;
    struct idem_str text = object_make(4000, "", "~");
    idem_json_init(&json, tape, TOKENS_MAX);
    assert_true(idem_json_parse(&json, text, &fault));
    assert_int_equal(json.tokens[0].count, 4001);
    size_t count = 1;
    uint32_t name = json.tokens[0].sorted;
    while (json.tokens[name].sorted != 0) {
        uint32_t following = json.tokens[name].sorted;
        assert_true(idem_str_compare(json.tokens[name].raw, json.tokens[following].raw) < 0);
        name = following;
        count += 1;
    }
    assert_int_equal(count, 4001);
    EXPECT_TEXT(json.tokens[name].raw, "~");
}

static void a_duplicate_is_found_among_thousands(void **state)
{
    (void)state;
    struct idem_json_fault fault;
    assert_false(parses(object_make(4000, "", "\\u00300000"), &fault));
    assert_string_equal(fault.what, "duplicate member name");
}

/*
 * The worst bodies for a sort: many names that differ only at their ends, plain and escaped. The
 * bound is generous for slow machines and sanitizers; comparing each with each would miss it.
 */
static void no_body_of_64_kib_takes_long(void **state)
{
    (void)state;
    static const char *const prefixes[] = {
        "",
        "\\u0061",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "\\u0061\\u0061\\u0061\\u0061\\u0061\\u0061\\u0061\\u0061\\u0061\\u0061\\u0061\\u0061",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(prefixes); i++) {
        struct idem_json_fault fault;
        size_t count = (TEXT_MAX - 64) / (strlen(prefixes[i]) + 14);
        struct idem_str text = object_make(count, prefixes[i], "~");
        struct timespec from;
        struct timespec to;
        assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from), 0);
        assert_true(parses(text, &fault));
        assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to), 0);
        int64_t us =
            (to.tv_sec - from.tv_sec) * INT64_C(1000000) + (to.tv_nsec - from.tv_nsec) / 1000;
        assert_in_range(us, 0, 200000);
    }
}

static void a_media_type_says_json_by_its_end(void **state)
{
    (void)state;
    assert_true(idem_json_is_media_type(IDEM_STR("application/json")));
    assert_true(idem_json_is_media_type(IDEM_STR("A/Problem+JSON ; charset=x")));
    assert_false(idem_json_is_media_type(IDEM_STR("a/json-seq")));
    assert_false(idem_json_is_media_type(IDEM_STR("a/b; x=/json")));
    assert_false(idem_json_is_media_type(IDEM_STR("xjson")));
    assert_false(idem_json_is_media_type(IDEM_STR("json")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_rfc_8259_allows_is_accepted),
        cmocka_unit_test(what_is_wrong_is_refused_where_it_begins),
        cmocka_unit_test(a_zero_byte_is_no_white_space_and_no_end),
        cmocka_unit_test(utf8_is_what_rfc_3629_says),
        cmocka_unit_test(nesting_has_a_limit_on_both_kinds),
        cmocka_unit_test(a_tape_that_is_too_short_refuses),
        cmocka_unit_test(the_tape_says_what_stands_where),
        cmocka_unit_test(members_are_found_by_their_unescaped_names),
        cmocka_unit_test(escapes_are_resolved),
        cmocka_unit_test(written_strings_have_the_fewest_escapes),
        cmocka_unit_test(equal_meanings_have_one_form),
        cmocka_unit_test(names_sort_by_their_bytes),
        cmocka_unit_test(different_meanings_have_different_forms),
        cmocka_unit_test(an_exponent_beyond_64_bits_has_no_form),
        cmocka_unit_test(a_buffer_that_is_too_short_fails),
        cmocka_unit_test(ignored_values_are_left_out),
        cmocka_unit_test(many_pointers_are_ignored_together),
        cmocka_unit_test(a_large_object_is_sorted),
        cmocka_unit_test(a_duplicate_is_found_among_thousands),
        cmocka_unit_test(a_media_type_says_json_by_its_end),
        cmocka_unit_test(no_body_of_64_kib_takes_long),
    };
    return cmocka_run_group_tests_name("base/json", tests, NULL, NULL);
}
