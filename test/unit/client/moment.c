/*
 * How much time has passed.
 *
 * Goal: within a boot the calendar does not matter; across boots a calendar that went backwards is
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
    { "same boot, calendar back", { 1000, 10, BOOT_A }, { 1, 510, BOOT_A }, 1000, 500 },
    { "same boot, calendar ahead", { 1000, 10, BOOT_A }, { 99999, 510, BOOT_A }, 1000, 500 },
    { "same boot, below the mark", { 1000, 10, BOOT_A }, { 1500, 510, BOOT_A }, 1501, 500 },
    { "same boot, mono back", { 1000, 10, BOOT_A }, { 1500, 9, BOOT_A }, 1000, NOBODY },
    { "other boot", { 1000, 10, BOOT_A }, { 1500, 3, BOOT_B }, 1000, 500 },
    { "other boot, no time", { 1000, 10, BOOT_A }, { 1000, 3, BOOT_B }, 1000, 0 },
    { "other boot, before then", { 1000, 10, BOOT_A }, { 999, 3, BOOT_B }, 0, NOBODY },
    { "other boot, before the mark", { 1000, 10, BOOT_A }, { 1500, 3, BOOT_B }, 1501, NOBODY },
    { "other boot, at the mark", { 1000, 10, BOOT_A }, { 1500, 3, BOOT_B }, 1500, 500 },
    { "boots without ids", { 1000, 10, "" }, { 1500, 20, "" }, 0, 500 },
    { "no ids, calendar back", { 1000, 10, "" }, { 999, 20, "" }, 0, NOBODY },
    { "the former has no id", { 1000, 10, "" }, { 1500, 20, BOOT_A }, 0, 500 },
    { "the latter has no id", { 1000, 10, BOOT_A }, { 1500, 20, "" }, 0, 500 },
    { "no former moment", { 0, 10, BOOT_A }, { 1500, 20, BOOT_A }, 0, NOBODY },
    { "no moment now", { 1000, 10, BOOT_A }, { 0, 20, BOOT_A }, 0, NOBODY },
    { "damage", { INT64_MIN, 10, BOOT_A }, { INT64_MAX, 20, BOOT_B }, 0, NOBODY },
    { "damage, same boot", { 1, INT64_MIN, BOOT_A }, { 2, INT64_MAX, BOOT_A }, 0, NOBODY },
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
    struct idem_moment then = idem_moment_now(&clock);
    struct idem_moment now = idem_moment_now(&clock);

    assert_true(then.wall_us > 0);
    assert_int_equal(strlen(then.boot), IDEM_BOOT_ID_LEN);
    assert_string_equal(then.boot, now.boot);
    assert_true(idem_moment_elapsed(&then, &now, 0, &elapsed_us));
    assert_true(elapsed_us >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_passes_as_the_table_says),
        cmocka_unit_test(the_system_tells_its_boot_and_the_same_one_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
