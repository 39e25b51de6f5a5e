/*
 * Error details.
 *
 * Goal: reporting an error cannot fail: no details wanted, details too long, all is well.
 */
#include "base/error.h"

#include "lib/test.h"

static void the_code_is_returned_and_the_text_is_written(void **state)
{
    (void)state;
    struct idem_error error = { .text = "old" };
    assert_int_equal(idem_error_set(&error, IDEM_E_STORE, "open %s: %d", "x.db", 14), IDEM_E_STORE);
    assert_string_equal(error.text, "open x.db: 14");
}

static void nobody_has_to_want_details(void **state)
{
    (void)state;
    assert_int_equal(idem_error_set(NULL, IDEM_E_LIMIT, "%s", "unread"), IDEM_E_LIMIT);
}

static void long_details_are_cut_and_terminated(void **state)
{
    (void)state;
    struct idem_error error;
    char text[2 * IDEM_ERROR_TEXT_MAX];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(idem_error_set(&error, IDEM_E_SYSTEM, "%s", text), IDEM_E_SYSTEM);
    assert_int_equal(strlen(error.text), IDEM_ERROR_TEXT_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_code_is_returned_and_the_text_is_written),
        cmocka_unit_test(nobody_has_to_want_details),
        cmocka_unit_test(long_details_are_cut_and_terminated),
    };
    return cmocka_run_group_tests_name("base/error", tests, NULL, NULL);
}
