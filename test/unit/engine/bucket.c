/*
 * The token bucket.
 *
 * Goal: never more at once than a second brings, never more over a longer time than the rate; what
 * is taken in advance is paid for, up to a second's worth; whole numbers stay exact.
 *
 * Method: a table of steps, each a time, an act and what must then be true; and a long run against
 * plain arithmetic.
 */
#include "engine/bucket.h"

#include "base/clock.h"
#include "lib/test.h"

#define SECOND IDEM_US_PER_SECOND

enum act {
    TAKE, /* If there is one; `expected`: there was. */
    GRAB, /* In any case. */
    BACK,
    NEXT, /* `expected`: when there will be one, after `at_us`. */
    HAS,  /* `expected`: whole tokens. */
};

struct step {
    int64_t at_us;
    enum act act;
    int64_t expected;
};

static int64_t step_take(struct idem_bucket *bucket, const struct step *step)
{
    switch (step->act) {
    case TAKE:
        if (!idem_bucket_has(bucket, 1, step->at_us)) {
            return 0;
        }
        idem_bucket_take(bucket, step->at_us);
        return 1;
    case GRAB:
        idem_bucket_take(bucket, step->at_us);
        return 0;
    case BACK:
        idem_bucket_put_back(bucket);
        return 0;
    case NEXT:
        return idem_bucket_next_us(bucket, step->at_us) - step->at_us;
    case HAS:
        return idem_bucket_tokens(bucket, step->at_us);
    }
    return -1;
}

static void run(int64_t rate, const struct step *steps, size_t count)
{
    struct idem_bucket bucket;
    idem_bucket_init(&bucket, rate, 0);
    for (size_t i = 0; i < count; i++) {
        int64_t found = step_take(&bucket, &steps[i]);
        if (found != steps[i].expected) {
            print_error("rate %d, step %d\n", (int)rate, (int)i);
        }
        assert_int_equal(found, steps[i].expected);
    }
}

static void a_second_may_come_at_once_and_then_the_rate_holds(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { 0, TAKE, 1 },           { 0, TAKE, 1 },           { 0, TAKE, 0 },
        { 0, NEXT, SECOND / 2 },  { 499999, TAKE, 0 },      { 499999, NEXT, 1 },
        { 500000, NEXT, 0 },      { 500000, TAKE, 1 },      { 500000, TAKE, 0 },
        { 10 * SECOND, HAS, 2 }, /* No more is saved up. */
        { 10 * SECOND, TAKE, 1 }, { 10 * SECOND, TAKE, 1 }, { 10 * SECOND, TAKE, 0 },
    };
    run(2, steps, IDEM_ARRAY_COUNT(steps));
}

static void what_is_taken_in_advance_is_paid_for(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { 0, GRAB, 0 },      { 0, GRAB, 0 },       { 0, GRAB, 0 },
        { 0, HAS, -1 },      { 0, TAKE, 0 },       { 0, NEXT, SECOND }, /* One owed, one to have. */
        { 0, GRAB, 0 },      { 0, HAS, -2 },       { 0, GRAB, 0 },
        { 0, HAS, -2 },      /* No more than a second's worth. */
        { 250000, HAS, -2 }, /* Half a one is not paid back whole. */
        { 500000, HAS, -1 }, { 1500000, TAKE, 1 }, { 1500000, TAKE, 0 },
    };
    run(2, steps, IDEM_ARRAY_COUNT(steps));
}

static void what_was_not_needed_goes_back_and_never_over_the_brim(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { 0, TAKE, 1 },     { 0, TAKE, 0 },      { 0, BACK, 0 },     { 0, TAKE, 1 },
        { SECOND, HAS, 1 }, { SECOND, BACK, 0 }, { SECOND, HAS, 1 },
    };
    run(1, steps, IDEM_ARRAY_COUNT(steps));
}

static void without_a_rate_nothing_waits(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { 0, TAKE, 1 }, { 0, GRAB, 0 }, { 0, TAKE, 1 }, { 0, NEXT, 0 }, { INT64_MAX / 2, TAKE, 1 },
    };
    run(0, steps, IDEM_ARRAY_COUNT(steps));
}

/* Rates whose interval is no whole number of microseconds, and the highest, over a long time. */
static void over_a_long_time_there_are_as_many_as_the_rate_says(void **state)
{
    (void)state;
    static const int64_t rates[] = { 1, 3, 7, 999, 123457, IDEM_BUCKET_RATE_MAX };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rates); i++) {
        struct idem_bucket bucket;
        int64_t taken = 0;
        int64_t now_us = 17;
        int64_t wanted = rates[i] * 3 < 200000 ? rates[i] * 3 : 200000;
        idem_bucket_init(&bucket, rates[i], now_us);
        for (int64_t first = rates[i]; first > 0; first--) {
            idem_bucket_take(&bucket, now_us); /* What was there at the beginning. */
        }
        while (taken < wanted) {
            now_us = idem_bucket_next_us(&bucket, now_us);
            assert_true(idem_bucket_has(&bucket, 1, now_us));
            idem_bucket_take(&bucket, now_us);
            taken += 1;
        }
        int64_t passed_us = now_us - 17;
        assert_true(taken * SECOND <= passed_us * rates[i]);
        assert_true((taken + 1) * SECOND > (passed_us - 1) * rates[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_may_come_at_once_and_then_the_rate_holds),
        cmocka_unit_test(what_is_taken_in_advance_is_paid_for),
        cmocka_unit_test(what_was_not_needed_goes_back_and_never_over_the_brim),
        cmocka_unit_test(without_a_rate_nothing_waits),
        cmocka_unit_test(over_a_long_time_there_are_as_many_as_the_rate_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
