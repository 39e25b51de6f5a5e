/*
 * A body shows by itself that it is whole, or it does not.
 *
 * Goal: one JSON object or array is whole, and no part of it is, wherever it is cut.
 *
 * Method: a table, and every proper beginning of every whole body in it, in memory of its own size.
 */
#include "lib/test.h"
#include "transport/client_internal.h"

static const struct {
    const char *body;
    bool whole;
} rows[] = {
    { "{}", true },
    { "[]", true },
    { "{\"a\":[1,{\"b\":\"}\"}],\"c\":\"\\\"]\\\\\"}", true },
    { "[[[]],{\"\\\\\":\"[\"}]", true },
    { "\r\n\t {\"a\":1} \r\n", true },
    { "", false },
    { " ", false },
    { "fine", false },
    { "1", false },
    { "\"{}\"", false },
    { "<html></html>", false },
    { "{}{}", false },
    { "{} fine", false },
    { "fine {}", false },
    { "}", false },
    { "}{", false },
    { "{\"a\":\"", false },
    { "{\"a\":\"\\", false },
    { "{\"a\":\"}\\\"", false },
};

static bool is_whole(const char *body, size_t len)
{
    char *copy = malloc(len + 1);
    assert_non_null(copy);
    memcpy(copy + 1, body, len); /* Ends where the memory ends. */
    bool whole = idem_http_body_whole((struct idem_str){ .data = copy + 1, .len = len });
    free(copy);
    return whole;
}

static void an_object_or_an_array_is_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        if (is_whole(rows[i].body, strlen(rows[i].body)) != rows[i].whole) {
            print_error("%s\n", rows[i].body);
            fail();
        }
    }
}

/* Without the spaces behind it, it is whole as well. */
static void a_part_of_one_is_not_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        const char *end = strrchr(rows[i].body, '}');
        end = end == NULL || strrchr(rows[i].body, ']') > end ? strrchr(rows[i].body, ']') : end;
        for (size_t len = 0; rows[i].whole && rows[i].body + len <= end; len++) {
            assert_false(is_whole(rows[i].body, len));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_or_an_array_is_whole),
        cmocka_unit_test(a_part_of_one_is_not_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
