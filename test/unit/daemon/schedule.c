/*
 * The schedule of reconciliations, with children of the test's own.
 *
 * Goal: a run counts as reconciled only if it came to its end; entries take turns; what a late run
 * left is made up for period by period.
 *
 * Method: the schedule starts its own program, which is this test: as a child it plays what the
 * entry's name says. The clock stands until a test moves it.
 */
#include "daemon/schedule.h"

#include <unistd.h>
#include <uv.h>

#include "base/exit.h"
#include "daemon/config.h"
#include "lib/test.h"

#define EVERY_US   (10 * IDEM_US_PER_SECOND)
#define BEGIN_US   (1000000 * EVERY_US)
#define DIFFERENCE "{\"record\":\"difference\",\"kind\":\"missing-here\"}"
#define TOTAL      "{\"record\":\"total\",\"kind\":\"missing-here\"}"

static int play(const char *entry)
{
    static const struct {
        const char *entry;
        const char *lines;
        int status;
    } rows[] = {
        { "agrees", TOTAL "\n", IDEM_EXIT_OK },
        { "empty", "", IDEM_EXIT_OK },
        { "left", DIFFERENCE "\n" DIFFERENCE "\n" TOTAL "\n", IDEM_EXIT_OTHER },
        { "breaks", DIFFERENCE "\n" DIFFERENCE "\n", IDEM_EXIT_OTHER },
        { "fails", "", IDEM_EXIT_OTHER },
        { "refused", DIFFERENCE "\n" TOTAL "\n", IDEM_EXIT_REFUSED },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        if (strcmp(entry, rows[i].entry) == 0) {
            return fputs(rows[i].lines, stdout) < 0 ? IDEM_EXIT_USAGE : rows[i].status;
        }
    }
    return pause(); /* Any other hangs. */
}

static int64_t now_us;

static int64_t clock_us(struct idem_clock *clock)
{
    (void)clock;
    return now_us;
}

static struct {
    uv_loop_t loop;
    struct idem_clock clock;
    struct idem_random random;
    struct idem_digester *digester;
    struct idem_config config;
    struct idem_schedule *schedule;
} scene;

/* Of two entries. */
static void scene_open(const char *first, const char *second)
{
    static const struct idem_clock_ops ops = { .wall_us = clock_us, .mono_us = clock_us };
    const char *const entries[] = { first, second };
    struct idem_error error;
    now_us = BEGIN_US;
    scene.clock = (struct idem_clock){ .ops = &ops };
    scene.config = (struct idem_config){ .host = "127.0.0.1", .provider_count = 2 };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(entries); i++) {
        scene.config.providers[i] = (struct idem_config_provider){
            .entry = entries[i],
            .reconciliation = { .every_us = EVERY_US, .timeout_us = 10 * IDEM_US_PER_SECOND },
        };
    }
    const struct idem_schedule_options options = {
        .loop = &scene.loop,
        .config = &scene.config,
        .clock = &scene.clock,
        .random = &scene.random,
        .digester = scene.digester,
    };
    assert_int_equal(uv_loop_init(&scene.loop), 0);
    assert_int_equal(idem_schedule_create(&options, &scene.schedule, &error), IDEM_OK);
}

static int scene_close(void **state)
{
    (void)state;
    idem_schedule_destroy(scene.schedule);
    scene.schedule = NULL;
    return uv_loop_close(&scene.loop);
}

/* What is due first runs to its end. */
static void look(void)
{
    idem_schedule_look(scene.schedule, 1);
    assert_int_equal(uv_run(&scene.loop, UV_RUN_DEFAULT), 0);
    assert_true(idem_schedule_idle(scene.schedule));
}

static const struct idem_api_reconciled *told(size_t index)
{
    return &idem_schedule_told(scene.schedule)[index];
}

static void only_a_run_that_came_to_its_end_has_reconciled(void **state)
{
    static const struct {
        const char *entry;
        enum idem_api_reconciled_verdict verdict;
    } rows[] = {
        { "agrees", IDEM_API_RECONCILED_AGREED }, { "empty", IDEM_API_RECONCILED_AGREED },
        { "left", IDEM_API_RECONCILED_LEFT },     { "breaks", IDEM_API_RECONCILED_FAILED },
        { "fails", IDEM_API_RECONCILED_FAILED },  { "refused", IDEM_API_RECONCILED_FAILED },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].entry);
        scene_open(rows[i].entry, rows[i].entry);
        look();
        look();
        for (size_t index = 0; index < 2; index++) {
            bool done = rows[i].verdict != IDEM_API_RECONCILED_FAILED;
            assert_int_equal(told(index)->verdict, rows[i].verdict);
            assert_int_equal(told(index)->done_us, done ? BEGIN_US : 0);
        }
        assert_int_equal(scene_close(state), 0);
    }
}

static void entries_take_turns(void **state)
{
    (void)state;
    scene_open("agrees", "left");
    for (int i = 0; i < 4; i++) {
        look();
        now_us += EVERY_US; /* Both are due at each look. */
    }
    assert_int_equal(told(0)->counts[IDEM_API_RECONCILED_AGREED], 2);
    assert_int_equal(told(1)->counts[IDEM_API_RECONCILED_LEFT], 2);
}

static void what_was_late_is_made_up_for_period_by_period(void **state)
{
    (void)state;
    scene_open("agrees", "agrees");
    scene.config.providers[1].reconciliation.every_us = 0;
    look();
    assert_int_equal(told(0)->done_us, BEGIN_US);
    scene.config.providers[0].entry = "hangs";
    scene.config.providers[0].reconciliation.timeout_us = IDEM_US_PER_SECOND / 10;
    now_us += EVERY_US;
    look();
    assert_int_equal(told(0)->verdict, IDEM_API_RECONCILED_LATE);
    scene.config.providers[0].entry = "agrees";
    scene.config.providers[0].reconciliation.timeout_us = 10 * IDEM_US_PER_SECOND;
    now_us += 2 * EVERY_US;
    for (int i = 1; i <= 3; i++) {
        look();
        assert_int_equal(told(0)->done_us, BEGIN_US + i * EVERY_US);
    }
    now_us += 3 * EVERY_US; /* It is not behind any more. */
    look();
    assert_int_equal(told(0)->done_us, now_us);
}

static int setup(void **state)
{
    (void)state;
    idem_random_init_system(&scene.random);
    struct idem_error error;
    return idem_digester_create(&scene.digester, &error) == IDEM_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    idem_digester_destroy(scene.digester);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "reconcile") == 0) {
        return play(argv[3]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_run_that_came_to_its_end_has_reconciled),
        cmocka_unit_test_teardown(entries_take_turns, scene_close),
        cmocka_unit_test_teardown(what_was_late_is_made_up_for_period_by_period, scene_close),
    };
    return cmocka_run_group_tests_name("daemon/schedule", tests, setup, teardown);
}
