/*
 * The system's clocks.
 *
 * Goal: time does not go back, wall and monotonic time advance together, and stored time is not met
 * again.
 */
#include "base/clock.h"

#include <time.h>

#include "lib/test.h"

static void wall_time_is_the_systems_and_does_not_go_back(void **state)
{
    (void)state;
    struct idem_clock clock;
    idem_clock_init_system(&clock);
    int64_t wall_us = idem_clock_wall_us(&clock);
    int64_t mono_us = idem_clock_mono_us(&clock);
    int64_t now_us = (int64_t)time(NULL) * IDEM_US_PER_SECOND;
    assert_in_range(wall_us, now_us - 5 * IDEM_US_PER_SECOND, now_us + 5 * IDEM_US_PER_SECOND);
    for (size_t i = 0; i < 1000; i++) {
        int64_t wall_later_us = idem_clock_wall_us(&clock);
        int64_t mono_later_us = idem_clock_mono_us(&clock);
        assert_true(wall_later_us >= wall_us);
        assert_true(mono_later_us >= mono_us);
        wall_us = wall_later_us;
        mono_us = mono_later_us;
    }
}

static void raising_moves_wall_time_forward_only(void **state)
{
    (void)state;
    struct idem_clock clock;
    idem_clock_init_system(&clock);
    int64_t before_us = idem_clock_wall_us(&clock);
    int64_t mono_us = idem_clock_mono_us(&clock);
    idem_clock_raise(&clock, before_us - IDEM_US_PER_DAY);
    assert_in_range(idem_clock_wall_us(&clock), before_us, before_us + IDEM_US_PER_DAY / 2);
    idem_clock_raise(&clock, before_us + IDEM_US_PER_DAY);
    assert_true(idem_clock_wall_us(&clock) >= before_us + IDEM_US_PER_DAY);
    assert_true(idem_clock_mono_us(&clock) < mono_us + IDEM_US_PER_DAY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wall_time_is_the_systems_and_does_not_go_back),
        cmocka_unit_test(raising_moves_wall_time_forward_only),
    };
    return cmocka_run_group_tests_name("base/clock", tests, NULL, NULL);
}
