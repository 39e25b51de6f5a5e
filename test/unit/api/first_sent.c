/*
 * The Repeatability-First-Sent header.
 *
 * Goal: one IMF-fixdate is read exactly, and every other way to write a moment is refused.
 *
 * Method: a table of fields; -1 stands for a refusal.
 */
#include "api/first_sent.h"

#include "request.h"

#define FIELD "Repeatability-First-Sent: "

static void only_one_imf_fixdate_is_a_date(void **state)
{
    static const struct {
        const char *fields;
        int64_t seconds;
    } rows[] = {
        { "", 0 },
        { FIELD "Sun, 06 Nov 1994 08:49:37 GMT", 784111777 },
        { FIELD "Sun, 29 Nov 2026 13:47:03 GMT", 1795960023 },
        { FIELD "Thu, 29 Feb 2024 00:00:00 GMT", 1709164800 },
        { FIELD "Mon, 06 Nov 1994 08:49:37 GMT", -1 },  /* It was a Sunday. */
        { FIELD "Wed, 29 Feb 2023 00:00:00 GMT", -1 },  /* No such day. */
        { FIELD "Sunday, 06-Nov-94 08:49:37 GMT", -1 }, /* RFC 850. */
        { FIELD "Sun Nov  6 08:49:37 1994", -1 },       /* asctime. */
        { FIELD "Sun, 06 Nov 1994 08:49:37 UTC", -1 },
        { FIELD "Sun, 06 Nov 1994 08:49:37 +0000", -1 },
        { FIELD "Sun, 6 Nov 1994 08:49:37 GMT", -1 },
        { FIELD "Sun, 06 nov 1994 08:49:37 GMT", -1 },
        { FIELD "Sun, 06 Nov 1994 24:00:00 GMT", -1 },
        { FIELD "Sun, 06 Nov 1994 08:49:60 GMT", -1 },
        { FIELD "1994-11-06T08:49:37Z", -1 },
        { FIELD "784111777", -1 },
        { FIELD "Thu, 01 Jan 1970 00:00:00 GMT", -1 }, /* Zero means "not said". */
        { FIELD, -1 },
        { FIELD "Sun, 06 Nov 1994 08:49:37 GMT\n" FIELD "Sun, 06 Nov 1994 08:49:37 GMT", -1 },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].fields);
        struct idem_net_request request = request_make("POST /", rows[i].fields);
        struct idem_fault fault = { 0 };
        int64_t first_sent_us = 0;
        bool read = idem_first_sent_read(&request, &first_sent_us, &fault);
        assert_true(read == (rows[i].seconds >= 0));
        if (read) {
            assert_int_equal(first_sent_us, rows[i].seconds * 1000000);
        } else {
            assert_int_equal(fault.problem, IDEM_PROBLEM_HEADER_INVALID);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_one_imf_fixdate_is_a_date),
    };
    return cmocka_run_group_tests_name("api/first_sent", tests, NULL, NULL);
}
