/*
 * How much time has passed.
 *
 * Goal: within a boot no less time has passed than either clock says, and a calendar that was set
 * back does not count; across boots a calendar that went backwards by more than clocks differ is
 * not believed; and where nobody can say, nobody says zero.
 *
 * Method: a table of moments; the system's own moment once.
 */
#include "client/moment.h"

#include "base/attr.h"
#include "lib/test.h"

#define BOOT_A "11111111-1111-4111-8111-111111111111"
#define BOOT_B "22222222-2222-4222-8222-222222222222"
#define NOBODY INT64_MIN
#define SKEW   IDEM_MOMENT_SKEW_US
#define LATE   (10 * SKEW)

static const struct {
    const char *what;
    struct idem_moment then;
    struct idem_moment now;
    int64_t high_us;
    int64_t elapsed_us; /* NOBODY: nobody can say. */
} rows[] = {
    /* then: wall, mono, boot; now: the same; high; elapsed */
    { "same boot", { 1000, 10, BOOT_A }, { 1500, 510, BOOT_A }, 1000, 500 },
    { "same boot, no time", { 1000, 10, BOOT_A }, { 1000, 10, BOOT_A }, 1000, 0 },
    { "same boot, calendar back", { LATE, 10, BOOT_A }, { 1, 510, BOOT_A }, LATE, 500 },
    { "same boot, calendar slower", { 1000, 10, BOOT_A }, { 1499, 510, BOOT_A }, 1000, 500 },
    { "same boot, calendar ahead", { 1000, 10, BOOT_A }, { LATE, 510, BOOT_A }, 0, LATE - 1000 },
    { "same boot, mono still", { 1000, 10, BOOT_A }, { LATE, 10, BOOT_A }, 0, LATE - 1000 },
    { "same boot, below the mark", { 1000, 10, BOOT_A }, { 1500, 510, BOOT_A }, INT64_MAX, 500 },
    { "same boot, mono back", { 1000, 10, BOOT_A }, { 1500, 9, BOOT_A }, 1000, NOBODY },
    { "same boot, both back", { 1000, 10, BOOT_A }, { 999, 9, BOOT_A }, 1000, NOBODY },
    { "other boot", { 1000, 10, BOOT_A }, { 1500, 3, BOOT_B }, 1000, 500 },
    { "other boot, no time", { 1000, 10, BOOT_A }, { 1000, 3, BOOT_B }, 1000, 0 },
    { "other boot, just before", { LATE, 10, BOOT_A }, { LATE - 1, 3, BOOT_B }, 0, 0 },
    { "other boot, a skew before", { LATE, 10, BOOT_A }, { LATE - SKEW, 3, BOOT_B }, 0, 0 },
    { "other boot, before", { LATE, 10, BOOT_A }, { LATE - SKEW - 1, 3, BOOT_B }, 0, NOBODY },
    { "other boot, at the mark", { 1000, 10, BOOT_A }, { 1500, 3, BOOT_B }, 1500, 500 },
    { "just below the mark", { 1000, 10, BOOT_A }, { 1500, 3, BOOT_B }, 1501, 500 },
    { "a skew below the mark", { 1000, 10, BOOT_A }, { 1500, 3, BOOT_B }, 1500 + SKEW, 500 },
    { "below the mark", { 1000, 10, BOOT_A }, { 1500, 3, BOOT_B }, 1501 + SKEW, NOBODY },
    { "both a skew off", { LATE, 1, BOOT_A }, { LATE - SKEW, 3, BOOT_B }, LATE, 0 },
    { "boots without ids", { 1000, 10, "" }, { 1500, 20, "" }, 0, 500 },
    { "no ids, mono back", { 1000, 10, "" }, { 1500, 2, "" }, 0, 500 },
    { "no ids, calendar back", { LATE, 10, "" }, { 999, 20, "" }, 0, NOBODY },
    { "the former has no id", { 1000, 10, "" }, { 1500, 20, BOOT_A }, 0, 500 },
    { "the latter has no id", { 1000, 10, BOOT_A }, { 1500, 20, "" }, 0, 500 },
    { "no former moment", { 0, 10, BOOT_A }, { 1500, 20, BOOT_A }, 0, NOBODY },
    { "no moment now", { 1000, 10, BOOT_A }, { 0, 20, BOOT_A }, 0, NOBODY },
    { "damage", { INT64_MIN, 10, BOOT_A }, { INT64_MAX, 20, BOOT_B }, 0, NOBODY },
    { "damage, same boot", { 1, INT64_MIN, BOOT_A }, { 2, INT64_MAX, BOOT_A }, 0, NOBODY },
    { "damage, backwards", { INT64_MAX, 10, BOOT_A }, { INT64_MIN, 20, BOOT_B }, 0, NOBODY },
    { "a mark out of reach", { 1000, 10, BOOT_A }, { 1500, 3, BOOT_B }, INT64_MAX, NOBODY },
};

static void time_passes_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        int64_t elapsed_us = NOBODY; /* What must stay if nobody can say. */
        bool said = idem_moment_elapsed(&rows[i].then, &rows[i].now, rows[i].high_us, &elapsed_us);
        if (said != (rows[i].elapsed_us != NOBODY) || elapsed_us != rows[i].elapsed_us) {
            print_error("%s: %d %lld\n", rows[i].what, said, (long long)elapsed_us);
            fail();
        }
    }
}

static void the_system_tells_its_boot_and_the_same_one_again(void **state)
{
    (void)state;
    struct idem_clock clock;
    int64_t elapsed_us = NOBODY;
    idem_clock_init_system(&clock);
    char boot[IDEM_BOOT_ID_LEN + 1];
    char again[IDEM_BOOT_ID_LEN + 1];
    idem_moment_boot(boot);
    idem_moment_boot(again);
    assert_int_equal(strlen(boot), IDEM_BOOT_ID_LEN);
    assert_string_equal(boot, again);
    struct idem_moment then = idem_moment_now(&clock, boot);
    struct idem_moment now = idem_moment_now(&clock, boot);

    assert_true(then.wall_us > 0);
    assert_string_equal(then.boot, boot);
    assert_string_equal(now.boot, boot);
    assert_true(idem_moment_elapsed(&then, &now, 0, &elapsed_us));
    assert_true(elapsed_us >= 0);
}

static void a_system_that_has_no_id_is_no_boot_in_common(void **state)
{
    (void)state;
    struct idem_clock clock;
    idem_clock_init_system(&clock);
    struct idem_moment now = idem_moment_now(&clock, "");
    assert_string_equal(now.boot, "");
    assert_true(now.wall_us > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_passes_as_the_table_says),
        cmocka_unit_test(the_system_tells_its_boot_and_the_same_one_again),
        cmocka_unit_test(a_system_that_has_no_id_is_no_boot_in_common),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
