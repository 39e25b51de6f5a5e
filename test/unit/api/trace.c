/*
 * The caller's traceparent.
 *
 * Goal: a right one is taken as it stands, everything else is as if it were not there.
 *
 * Method: a table of header fields.
 */
#include "api/trace.h"

#include "request.h"

#define GOOD "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static void only_a_right_one_is_taken(void **state)
{
    static const struct {
        const char *fields;
        const char *expected;
    } rows[] = {
        { "traceparent: " GOOD, GOOD },
        { "Traceparent: " GOOD, GOOD },
        { "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
          "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00" },
        { "", "" },
        { "traceparent: ", "" },
        { "traceparent: " GOOD "\ntraceparent: " GOOD, "" },
        { "traceparent: 01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "" },
        { "traceparent: " GOOD "-x", "" },
        { "traceparent: 00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "" },
        { "traceparent: 00-00000000000000000000000000000000-00f067aa0ba902b7-01", "" },
        { "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", "" },
        { "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e473-000f067aa0ba902b7-01", "" },
        { "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g", "" },
        { "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7--1", "" },
        { "traceparent: 00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01", "" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].fields);
        struct idem_net_request request = request_make("POST /", rows[i].fields);
        EXPECT_TEXT(idem_trace_read(&request), rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_right_one_is_taken),
    };
    return cmocka_run_group_tests_name("api/trace", tests, NULL, NULL);
}
