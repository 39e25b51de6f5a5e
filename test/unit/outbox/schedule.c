/*
 * When a post that failed is tried again.
 *
 * Goal: the schedule of Standard Webhooks, never earlier than it says, hardly later, never for
 * ever; the receiver's wish is heard within bounds.
 *
 * Method: a table, with the least and the most noise.
 */
#include "outbox/schedule.h"

#include "lib/test.h"

#define SECOND IDEM_US_PER_SECOND
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

static const int64_t pauses_us[] = {
    5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR,  5 * HOUR,
    10 * HOUR,  14 * HOUR,  20 * HOUR,   24 * HOUR,
};

static void the_pauses_are_those_of_standard_webhooks(void **state)
{
    (void)state;
    assert_int_equal(IDEM_ARRAY_COUNT(pauses_us), IDEM_ATTEMPTS_MAX - 1);
    for (uint32_t attempt = 1; attempt < IDEM_ATTEMPTS_MAX; attempt++) {
        int64_t pause_us = pauses_us[attempt - 1];
        assert_int_equal(idem_schedule_pause_us(attempt, 0, 0), pause_us);
        assert_int_equal(idem_schedule_pause_us(attempt, 0, 1000000), pause_us);
    }
}

static void jitter_only_makes_it_later_and_by_a_tenth_at_most(void **state)
{
    (void)state;
    static const uint64_t noises[] = { 1, 499999, 999999, 123456789, UINT64_MAX };
    for (uint32_t attempt = 1; attempt < IDEM_ATTEMPTS_MAX; attempt++) {
        int64_t pause_us = pauses_us[attempt - 1];
        for (size_t i = 0; i < IDEM_ARRAY_COUNT(noises); i++) {
            int64_t got_us = idem_schedule_pause_us(attempt, 0, noises[i]);
            assert_in_range(got_us, pause_us, pause_us + pause_us / 10);
        }
        assert_true(idem_schedule_pause_us(attempt, 0, 999999) > pause_us + pause_us / 11);
    }
}

static void after_the_last_attempt_there_is_none(void **state)
{
    (void)state;
    assert_int_equal(idem_schedule_pause_us(IDEM_ATTEMPTS_MAX, 0, 7), 0);
    assert_int_equal(idem_schedule_pause_us(IDEM_ATTEMPTS_MAX, HOUR, 7), 0);
    assert_int_equal(idem_schedule_pause_us(UINT32_MAX, 0, 7), 0);
}

static void the_receivers_wish_can_make_it_later_and_not_earlier(void **state)
{
    (void)state;
    static const struct {
        uint32_t attempt;
        int64_t wish_us;
        int64_t pause_us;
    } rows[] = {
        { 1, 1, 5 * SECOND },
        { 1, 5 * SECOND, 5 * SECOND },
        { 1, 6 * SECOND, 6 * SECOND },
        { 1, HOUR, HOUR },
        { 4, HOUR, 2 * HOUR },
        { 1, 24 * HOUR, 24 * HOUR },
        { 1, 24 * HOUR + 1, 24 * HOUR },
        { 1, INT64_MAX, 24 * HOUR },
        { 9, INT64_MAX, 24 * HOUR },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        assert_int_equal(idem_schedule_pause_us(rows[i].attempt, rows[i].wish_us, 0),
                         rows[i].pause_us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pauses_are_those_of_standard_webhooks),
        cmocka_unit_test(jitter_only_makes_it_later_and_by_a_tenth_at_most),
        cmocka_unit_test(after_the_last_attempt_there_is_none),
        cmocka_unit_test(the_receivers_wish_can_make_it_later_and_not_earlier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
