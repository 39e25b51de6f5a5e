/*
 * Dates as text.
 *
 * Goal: every moment from 1970 to 9999 is printed as the C library's own UTC conversion prints it,
 * and both are read back to the same moment; anything else is refused.
 *
 * Method: edges by hand, then differentially against gmtime_r() over the whole range, whatever TZ
 * says; a valid date with any one byte changed is either refused or is another valid date.
 */
#include "base/date.h"

#include <time.h>

#include "lib/test.h"

#define US INT64_C(1000000)

static struct idem_str print(void (*printer)(int64_t, struct idem_buf *), int64_t wall_us)
{
    static char memory[64];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    printer(wall_us, &buf);
    assert_false(buf.full);
    return idem_buf_str(&buf);
}

static void known_moments_are_printed(void **state)
{
    (void)state;
    EXPECT_TEXT(print(idem_date_print_rfc3339, 0), "1970-01-01T00:00:00.000000Z");
    EXPECT_TEXT(print(idem_date_print_rfc3339, INT64_C(1795960023123456)),
                "2026-11-29T13:47:03.123456Z");
    EXPECT_TEXT(print(idem_date_print_rfc3339, INT64_C(951782400) * US),
                "2000-02-29T00:00:00.000000Z");
    EXPECT_TEXT(print(idem_date_print_rfc3339, INT64_C(4107542400) * US),
                "2100-03-01T00:00:00.000000Z");
    EXPECT_TEXT(print(idem_date_print_rfc3339, INT64_C(253402300799999999)),
                "9999-12-31T23:59:59.999999Z");
    EXPECT_TEXT(print(idem_date_print_imf, 0), "Thu, 01 Jan 1970 00:00:00 GMT");
    EXPECT_TEXT(print(idem_date_print_imf, INT64_C(784111777) * US),
                "Sun, 06 Nov 1994 08:49:37 GMT"); /* The example of RFC 9110. */
}

static void every_day_is_what_the_c_library_says(void **state)
{
    (void)state;
    for (int64_t seconds = 12345; seconds < INT64_C(253402300800); seconds += INT64_C(604793)) {
        time_t when = (time_t)seconds;
        struct tm parts;
        assert_non_null(gmtime_r(&when, &parts));
        char expected[64];
        assert_true(strftime(expected, sizeof(expected), "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0);
        EXPECT_TEXT(print(idem_date_print_imf, seconds * US + 999999), expected);
        int64_t read_us = -1;
        assert_true(idem_date_parse_imf(idem_str_from(expected), &read_us));
        assert_int_equal(read_us, seconds * US);
        assert_true(strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S.000000Z", &parts) > 0);
        EXPECT_TEXT(print(idem_date_print_rfc3339, seconds * US), expected);
        assert_true(idem_date_parse_rfc3339(idem_str_from(expected), &read_us));
        assert_int_equal(read_us, seconds * US);
    }
}

static void rfc3339_is_read_with_fractions_and_offsets(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t wall_us;
    } cases[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "1970-01-01T01:00:00+01:00", 0 },
        { "2026-11-29T13:47:03.123456Z", INT64_C(1795960023123456) },
        { "2026-11-29T13:47:03.123456789Z", INT64_C(1795960023123456) },
        { "2026-11-29T13:47:03.1Z", INT64_C(1795960023100000) },
        { "2026-11-29T13:47:03Z", INT64_C(1795960023000000) },
        { "2026-11-29T13:47:03+00:00", INT64_C(1795960023000000) },
        { "2026-11-29T21:47:03.5+08:00", INT64_C(1795960023500000) },
        { "2026-11-29T08:17:03-05:30", INT64_C(1795960023000000) },
        { "9999-12-31T23:59:59.999999Z", INT64_C(253402300799999999) },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t read_us = -1;
        assert_true(idem_date_parse_rfc3339(idem_str_from(cases[i].text), &read_us));
        assert_int_equal(read_us, cases[i].wall_us);
    }
}

static const char *const no_rfc3339[] = {
    "",
    "2026-11-29",
    "2026-11-29T13:47:03",
    "2026-11-29 13:47:03Z",
    "2026-11-29t13:47:03Z",
    "2026-11-29T13:47:03z",
    "2026-11-29T13:47Z",
    "2026-11-29T13:47:03Z ",
    " 2026-11-29T13:47:03Z",
    "2026-11-29T13:47:03.Z",
    "2026-11-29T13:47:03,5Z",
    "2026-11-29T13:47:03.1234567890Z",
    "2026-11-29T24:00:00Z",
    "2026-11-29T13:60:03Z",
    "2026-11-29T23:59:60Z",
    "2026-13-29T13:47:03Z",
    "2026-00-29T13:47:03Z",
    "2026-11-31T13:47:03Z",
    "2026-11-00T13:47:03Z",
    "2100-02-29T13:47:03Z",
    "2026-1-29T13:47:03Z",
    "+026-11-29T13:47:03Z",
    "1969-12-31T23:59:59Z",
    "1970-01-01T00:59:59+01:00",
    "9999-12-31T23:59:59-00:01",
    "2026-11-29T13:47:03+0800",
    "2026-11-29T13:47:03+08",
    "2026-11-29T13:47:03+24:00",
    "2026-11-29T13:47:03+08:60",
    "2026-11-29T13:47:03*08:00",
    "1795960023123456",
};

static void expect_no_rfc3339(const char *text)
{
    int64_t kept = 77;

    if (idem_date_parse_rfc3339(idem_str_from(text), &kept)) {
        fail_msg("%s was read", text);
    }
    assert_int_equal(kept, 77);
}

static void what_is_no_rfc3339_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(no_rfc3339) / sizeof(no_rfc3339[0]); i++) {
        expect_no_rfc3339(no_rfc3339[i]);
    }
}

static void what_is_no_imf_fixdate_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Mon, 06 Nov 1994 08:49:37 GMT", /* It was a Sunday. */
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 gmt",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:60 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Wed, 30 Feb 1994 08:49:37 GMT",
        "Tue, 29 Feb 2100 08:49:37 GMT",
        "Wed, 31 Dec 1969 23:59:59 GMT",
        "Sun, +6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 -8:49:37 GMT",
        "Sun,006 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 1994-08:49:37 GMT",
        "Sun, 06 Nov 1994 08.49:37 GMT",
        "Sun, 06 Nov 1994 08:49.37 GMT",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int64_t kept = 77;
        assert_false(idem_date_parse_imf(idem_str_from(wrong[i]), &kept));
        assert_int_equal(kept, 77);
    }
}

static const char valid[] = "Sun, 06 Nov 1994 08:49:37 GMT";

static void expect_refused_or_another(struct idem_str text)
{
    int64_t read_us = 0;
    if (memcmp(text.data, valid, text.len) == 0 || !idem_date_parse_imf(text, &read_us)) {
        return;
    }
    assert_int_not_equal(read_us, INT64_C(784111777) * US);
    struct idem_str again = print(idem_date_print_imf, read_us);
    assert_memory_equal(again.data, text.data, text.len);
}

static void a_changed_byte_never_reads_as_the_same_moment(void **state)
{
    (void)state;
    char text[sizeof(valid)];
    for (size_t at = 0; at < sizeof(valid) - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            memcpy(text, valid, sizeof(text));
            text[at] = (char)byte;
            expect_refused_or_another((struct idem_str){ .data = text, .len = sizeof(text) - 1 });
        }
    }
}

int main(void)
{
    assert_int_equal(setenv("TZ", "Asia/Kolkata", 1), 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_moments_are_printed),
        cmocka_unit_test(every_day_is_what_the_c_library_says),
        cmocka_unit_test(rfc3339_is_read_with_fractions_and_offsets),
        cmocka_unit_test(what_is_no_rfc3339_is_refused),
        cmocka_unit_test(what_is_no_imf_fixdate_is_refused),
        cmocka_unit_test(a_changed_byte_never_reads_as_the_same_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
