/*
 * The Prefer header.
 *
 * Goal: wait and respond-async are understood in every form of RFC 7240, nothing else has an
 * effect, and no wait is longer than its cap.
 *
 * Method: a table of fields; what was understood is written as text.
 */
#include "api/prefer.h"

#include "request.h"

static void preferences_are_understood_or_ignored(void **state)
{
    static const struct {
        const char *fields;
        const char *expected;
    } rows[] = {
        { "", "" },
        { "Prefer: wait=5", "wait=5" },
        { "prefer: WAIT=5", "wait=5" },
        { "Prefer: wait=0", "wait=0" },
        { "Prefer: wait=30", "wait=30" },
        { "Prefer: wait=31", "wait=30" },
        { "Prefer: wait=9223372036854775807", "wait=30" },
        { "Prefer: wait=99999999999999999999", "" },
        { "Prefer: wait = 5", "wait=5" },
        { "Prefer: wait=\"5\"", "wait=5" },
        { "Prefer: wait=5; foo=bar", "wait=5" },
        { "Prefer: wait=-1", "" },
        { "Prefer: wait=1.5", "" },
        { "Prefer: wait=", "" },
        { "Prefer: wait", "" },
        { "Prefer: respond-async", "async" },
        { "Prefer: Respond-Async", "async" },
        { "Prefer: respond-async=x", "" },
        { "Prefer: respond-async, wait=10", "async wait=10" },
        { "Prefer: wait=10, respond-async", "async wait=10" },
        { "Prefer: respond-async\nPrefer: wait=10", "async wait=10" },
        { "Prefer: wait=1, wait=2", "wait=1" },
        { "Prefer: wait=1\nPrefer: wait=2", "wait=1" },
        { "Prefer: wait=x, wait=2", "" },
        { "Prefer: return=minimal", "" },
        { "Prefer: foo=\"a, wait=9\", wait=3", "wait=3" },
        { "Prefer: foo=\"a\\\", wait=9\", wait=3", "wait=3" },
        { "Prefer: ,, wait=3,", "wait=3" },
        { "Prefer: foo=\"", "" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].fields);
        struct idem_net_request request = request_make("POST /", rows[i].fields);
        struct idem_prefer prefer = idem_prefer_read(&request);
        char memory[64];
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_buf_add(&buf, idem_str_from(prefer.respond_async ? "async" : ""));
        if (prefer.wait) {
            idem_buf_add(&buf, idem_str_from(buf.len > 0 ? " wait=" : "wait="));
            idem_buf_add_i64(&buf, prefer.wait_seconds);
        }
        EXPECT_TEXT(idem_buf_str(&buf), rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preferences_are_understood_or_ignored),
    };
    return cmocka_run_group_tests_name("api/prefer", tests, NULL, NULL);
}
