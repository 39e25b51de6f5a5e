/*
 * Counting sizes in buckets.
 *
 * Goal: every value is in exactly one bucket, the one whose bounds hold it; bounds belong to the
 * bucket below them, since a reader is told "at most"; count and sum are exact.
 *
 * Method: the values around every bound, then values of all sizes against a plain count.
 */
#include "base/histogram.h"

#include "lib/test.h"

static struct idem_histogram histogram;

static int begin(void **state)
{
    (void)state;
    histogram = (struct idem_histogram){ .count = 0 };
    return 0;
}

static void nothing_was_counted(void **state)
{
    (void)state;
    assert_int_equal(idem_histogram_up_to(&histogram, IDEM_HISTOGRAM_BUCKETS - 1), 0);
    assert_int_equal(histogram.count, 0);
    assert_int_equal(histogram.sum, 0);
}

static void a_bound_belongs_to_the_bucket_below_it(void **state)
{
    (void)state;
    for (size_t i = 1; i + 1 < IDEM_HISTOGRAM_BUCKETS; i++) {
        (void)begin(state);
        int64_t bound = (int64_t)1 << i;
        idem_histogram_add(&histogram, bound);
        idem_histogram_add(&histogram, bound + 1);
        assert_int_equal(histogram.counts[i], 1);
        assert_int_equal(histogram.counts[i + 1], 1);
        assert_int_equal(idem_histogram_up_to(&histogram, i - 1), 0);
        assert_int_equal(idem_histogram_up_to(&histogram, i), 1);
        assert_int_equal(idem_histogram_up_to(&histogram, i + 1), 2);
        assert_int_equal(histogram.sum, 2 * bound + 1);
    }
}

static void what_is_small_or_negative_is_in_the_first_bucket(void **state)
{
    (void)state;
    static const int64_t values[] = { INT64_MIN, -1, 0, 1 };
    for (size_t i = 0; i < 4; i++) {
        idem_histogram_add(&histogram, values[i]);
    }
    assert_int_equal(histogram.counts[0], 4);
    assert_int_equal(histogram.count, 4);
    assert_int_equal(histogram.sum, 1); /* Time that ran backwards takes nothing away. */
}

static void what_is_too_large_is_in_the_last_bucket(void **state)
{
    (void)state;
    idem_histogram_add(&histogram, ((int64_t)1 << (IDEM_HISTOGRAM_BUCKETS - 1)) + 1);
    idem_histogram_add(&histogram, INT64_MAX);
    assert_int_equal(histogram.counts[IDEM_HISTOGRAM_BUCKETS - 1], 2);
    assert_int_equal(idem_histogram_up_to(&histogram, IDEM_HISTOGRAM_BUCKETS - 2), 0);
}

static void sums_over_buckets_are_what_a_plain_count_says(void **state)
{
    (void)state;
    uint64_t noise = 20261129;
    uint64_t plain[IDEM_HISTOGRAM_BUCKETS] = { 0 };
    uint64_t sum = 0;
    for (int n = 0; n < 10000; n++) {
        noise = noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t value = (int64_t)(noise >> 32 >> (noise >> 8) % 32);
        idem_histogram_add(&histogram, value);
        sum += (uint64_t)value;
        for (size_t i = 0; i < IDEM_HISTOGRAM_BUCKETS; i++) {
            plain[i] += value <= (int64_t)1 << i ? 1 : 0;
        }
    }
    for (size_t i = 0; i < IDEM_HISTOGRAM_BUCKETS; i++) {
        assert_int_equal(idem_histogram_up_to(&histogram, i), plain[i]);
    }
    assert_int_equal(histogram.count, 10000);
    assert_int_equal(histogram.sum, sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_was_counted, begin),
        cmocka_unit_test_setup(a_bound_belongs_to_the_bucket_below_it, begin),
        cmocka_unit_test_setup(what_is_small_or_negative_is_in_the_first_bucket, begin),
        cmocka_unit_test_setup(what_is_too_large_is_in_the_last_bucket, begin),
        cmocka_unit_test_setup(sums_over_buckets_are_what_a_plain_count_says, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
