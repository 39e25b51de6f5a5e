/*
 * Whether a JSON text is whole.
 *
 * Goal: no part of a whole object or array is called whole, and nothing that a reader of JSON takes
 * is called broken.
 *
 * Method: texts by hand; each of the whole ones cut at every byte; each of them also read by the
 * strict reader, which may refuse more and never takes what is called broken here; every byte of
 * one replaced by every other, with both readers; nesting at both sides of its limit.
 */
#include "client/json_text.h"

#include "base/json.h"
#include "lib/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const whole_texts[] = {
    "{}",
    "[]",
    "{\"a\":1}",
    " {\r\n\t\"a\" : [ 1 , -2.50e+10 , 0 , 0.0E-1 ] , \"b\" : { } }\n",
    "[true,false,null,\"\",\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00aF\",[[[{}]]]]",
    "{\"}\":\"]\",\"\\\\\":\"{\"}",
    "{\"id\":\"0197b2f0\",\"amount\":\"100.00\",\"list\":[{\"x\":[]},{\"y\":{}}]}\n",
};

/* Whole, although the strict reader takes none of them. */
static const char *const loose_texts[] = {
    "{\"a\":1,\"a\":2}",
    "{\"a\":\"\xFC\"}",
    "[\"\\uD800\"]",
    "\xEF\xBB\xBF{}",
};

static const char *const broken_texts[] = {
    "",          " ",          "\xEF\xBB\xBF", "\xEF\xBB",  "{",
    "[",         "{]",         "[}",           "}",         "]",
    "{}}",       "[]]",        "{}{}",         "{} x",      "[1,]",
    "[,1]",      "{,}",        "{1:2}",        "{\"a\"}",   "{\"a\":}",
    "{\"a\" 1}", "{\"a\"::1}", "{\"a\":1,}",   "{a:1}",     "[1 2]",
    "[01]",      "[1.]",       "[.5]",         "[1e]",      "[1e+]",
    "[-]",       "[+1]",       "[tru]",        "[True]",    "[nul]",
    "[NaN]",     "[\"a]",      "[\"\\\"]",     "[\"\\x\"]", "[\"\\u12G4\"]",
    "['a']",     "[\"\n\"]",   "[\"\x01\"]",   "<html>",    "ok",
    "{\"a\":1]", "[{]}",       "//\n{}",
};

static bool strict(struct idem_str text)
{
    static struct idem_json_token tokens[512];
    struct idem_json json;
    struct idem_json_fault fault;
    idem_json_init(&json, tokens, COUNT(tokens));
    return idem_json_parse(&json, text, &fault);
}

/* In memory of its own size, so that a read behind its end is seen. */
static bool is_whole(struct idem_str text)
{
    char *copy = malloc(text.len + (text.len == 0));
    assert_non_null(copy);
    memcpy(copy, text.data, text.len);
    bool whole = idem_json_text_is_whole((struct idem_str){ .data = copy, .len = text.len });
    free(copy);
    return whole;
}

static void parts_expect(struct idem_str text)
{
    size_t last = text.len;
    while (text.data[last - 1] != '}' && text.data[last - 1] != ']') {
        last -= 1;
    }
    for (size_t len = 0; len <= text.len; len++) {
        assert_int_equal(is_whole(idem_str_slice(text, 0, len)), len >= last);
    }
}

static void what_is_whole_is_and_no_part_of_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(whole_texts); i++) {
        assert_true(strict(idem_str_from(whole_texts[i])));
        parts_expect(idem_str_from(whole_texts[i]));
    }
    for (size_t i = 0; i < COUNT(loose_texts); i++) {
        assert_false(strict(idem_str_from(loose_texts[i])));
        parts_expect(idem_str_from(loose_texts[i]));
    }
}

static void what_no_reader_takes_is_broken(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(broken_texts); i++) {
        if (is_whole(idem_str_from(broken_texts[i]))) {
            print_error("%s\n", broken_texts[i]);
        }
        assert_false(is_whole(idem_str_from(broken_texts[i])));
        assert_false(strict(idem_str_from(broken_texts[i])));
    }
}

static void a_single_value_is_whole(void **state)
{
    (void)state;
    static const char *const texts[] = { "0", "-1", "1.5", " true ", "null", "\"a\"" };
    for (size_t i = 0; i < COUNT(texts); i++) {
        assert_true(is_whole(idem_str_from(texts[i])));
    }
}

/* Every byte in the place of the one at `at`. */
static void harm_expect(struct idem_str whole, size_t at)
{
    char text[256];
    assert_in_range(whole.len, at + 1, sizeof(text));
    memcpy(text, whole.data, whole.len);
    for (int byte = 0; byte < 256; byte++) {
        text[at] = (char)byte;
        struct idem_str harmed = { .data = text, .len = whole.len };
        assert_true(is_whole(harmed) || !strict(harmed));
    }
}

static void what_the_strict_reader_takes_is_never_broken(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(whole_texts); i++) {
        for (size_t at = 0; at < strlen(whole_texts[i]); at++) {
            harm_expect(idem_str_from(whole_texts[i]), at);
        }
    }
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    static char text[2 * (IDEM_JSON_TEXT_DEPTH_MAX + 1)];
    for (size_t depth = IDEM_JSON_TEXT_DEPTH_MAX - 1; depth <= IDEM_JSON_TEXT_DEPTH_MAX + 1;
         depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        struct idem_str nested = { .data = text, .len = 2 * depth };
        assert_int_equal(is_whole(nested), depth <= IDEM_JSON_TEXT_DEPTH_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_whole_is_and_no_part_of_it),
        cmocka_unit_test(what_no_reader_takes_is_broken),
        cmocka_unit_test(a_single_value_is_whole),
        cmocka_unit_test(what_the_strict_reader_takes_is_never_broken),
        cmocka_unit_test(nesting_has_a_limit),
    };
    return cmocka_run_group_tests_name("client/json_text", tests, NULL, NULL);
}
