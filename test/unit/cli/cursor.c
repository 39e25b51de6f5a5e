/*
 * Cursors of lists.
 *
 * Goal: every list that ends is read to its end, however long; one that leads back to a page of
 * before is noticed a few pages later, wherever the circle begins and however long it is; what says
 * nothing of a next page is no page.
 *
 * Method: pages as JSON by a rule, counted until the cursor has enough.
 */
#include "cli/cursor.h"

#include "lib/test.h"

#define TOKENS_MAX 8

static enum idem_cursor_step take(struct idem_cursor *cursor, const char *page)
{
    struct idem_json_token tokens[TOKENS_MAX];
    struct idem_json json;
    struct idem_json_fault fault;
    idem_json_init(&json, tokens, TOKENS_MAX);
    assert_true(idem_json_parse(&json, idem_str_from(page), &fault));
    return idem_cursor_take(cursor, &json);
}

/* How many pages were taken of a list that goes round `circle` pages from the `before`th on. */
static uint64_t pages_until_noticed(uint64_t before, uint64_t circle)
{
    struct idem_cursor cursor = { .count = 0 };
    for (uint64_t page = 1;; page++) {
        char text[64];
        uint64_t next = page <= before ? page : before + (page - before) % circle;
        (void)snprintf(text, sizeof(text), "{\"next\":\"page-%llu\"}", (unsigned long long)next);
        enum idem_cursor_step step = take(&cursor, text);
        if (step != IDEM_CURSOR_NEXT) {
            assert_int_equal(step, IDEM_CURSOR_AGAIN);
            return page;
        }
        assert_int_equal(cursor.count, page);
        (void)snprintf(text, sizeof(text), "page-%llu", (unsigned long long)next);
        assert_string_equal(cursor.text, text);
    }
}

static void a_circle_is_noticed_soon(void **state)
{
    (void)state;
    assert_int_equal(pages_until_noticed(0, 1), 2);
    for (uint64_t before = 1; before < 40; before++) {
        for (uint64_t circle = 1; circle < 40; circle++) {
            uint64_t noticed = pages_until_noticed(before, circle);
            print_message("# %llu %llu\n", (unsigned long long)before, (unsigned long long)circle);
            assert_true(noticed >= before + circle); /* Not before a page comes again. */
            assert_true(noticed <= 3 * (before + circle));
        }
    }
}

static void a_long_list_is_read_to_its_end(void **state)
{
    struct idem_cursor cursor = { .count = 0 };
    (void)state;
    for (int i = 0; i < 5000; i++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "{\"next\":\"%d\"}", i);
        assert_int_equal(take(&cursor, text), IDEM_CURSOR_NEXT);
    }
    assert_int_equal(take(&cursor, "{\"next\":null}"), IDEM_CURSOR_END);
}

static void what_says_nothing_of_a_next_page_is_no_page(void **state)
{
    static const char *const pages[] = {
        "{}",
        "{\"next\":1}",
        "{\"next\":[]}",
        "{\"next\":false}",
        "{\"next\":\"a\\u0000b\"}",
        "{\"next\":\"\"}",
    };
    char text[IDEM_CURSOR_MAX + 16];
    struct idem_cursor cursor = { .count = 0 };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(pages); i++) {
        assert_int_equal(take(&cursor, pages[i]), IDEM_CURSOR_UNREADABLE);
    }
    (void)snprintf(text, sizeof(text), "{\"next\":\"%0*d\"}", IDEM_CURSOR_MAX, 0);
    assert_int_equal(take(&cursor, text), IDEM_CURSOR_UNREADABLE);
    (void)snprintf(text, sizeof(text), "{\"next\":\"%0*d\"}", IDEM_CURSOR_MAX - 1, 0);
    assert_int_equal(take(&cursor, text), IDEM_CURSOR_NEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_circle_is_noticed_soon),
        cmocka_unit_test(a_long_list_is_read_to_its_end),
        cmocka_unit_test(what_says_nothing_of_a_next_page_is_no_page),
    };
    return cmocka_run_group_tests_name("cli/cursor", tests, NULL, NULL);
}
