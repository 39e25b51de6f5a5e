/*
 * The worker that lets retention end.
 *
 * Goal: answers become tombstones when their time has come and not before, and tombstones without a
 * payment go; what is open is never touched (P12). A clock that jumps ahead makes it late, not
 * forgetful; one that goes back stops it; a new process goes on where the old one was. It stays
 * small beside load, and a death in between costs a second look and nothing else.
 *
 * Method: a process whose clock only moves when a test moves it; monotonic time and the wall clock
 * can be moved apart. What must survive a process is on a SQLite file, the rest in memory.
 */
#include "worker/reaper.h"

#include "base/attr.h"
#include "unit/worker/process.h"

#define MINUTE  (60 * SECOND)
#define HOUR    (60 * MINUTE)
#define DAY     IDEM_US_PER_DAY
#define YEAR    (365 * DAY)
#define MANY    10000
#define AT_ONCE 16

static struct idem_request requests[1000];
static char keys[MANY][8];

static int begin(enum fixture_kind kind)
{
    process_init(kind);
    harness.options.sends_max = IDEM_ARRAY_COUNT(requests);
    process_start();
    return 0;
}

static int begin_memory(void **state)
{
    (void)state;
    return begin(FIXTURE_MEMORY);
}

static int begin_sqlite(void **state)
{
    (void)state;
    return begin(FIXTURE_SQLITE);
}

static int end(void **state)
{
    (void)state;
    process_deinit();
    return 0;
}

static struct idem_reaper_stats stats(void)
{
    return idem_reaper_stats(process.reaper);
}

static int64_t wall_us(void)
{
    return idem_clock_wall_us(&harness.clock);
}

static const char *reply_to(struct idem_request *request)
{
    idem_engine_submit(harness.engine, request);
    process_go_on();
    return reply_name(request);
}

static const char *pay(const char *key)
{
    return reply_to(harness_pay(&requests[0], key));
}

/* `count` keys with a final answer and no payment, from keys[`from`] on. */
static void abandon(size_t from, size_t count)
{
    while (count > 0) {
        size_t some = count < 1000 ? count : 1000;
        for (size_t i = 0; i < some; i++) {
            (void)snprintf(keys[from + i], sizeof(keys[0]), "x%d", (int)(from + i));
            idem_engine_submit(harness.engine, process_abandon(&requests[i], keys[from + i]));
        }
        process_go_on();
        for (size_t i = 0; i < some; i++) {
            EXPECT_REPLY(requests[i], "answer 409");
        }
        from += some;
        count -= some;
    }
}

/* Time with a look every now and then, as in a process that lives. */
static void pass_slowly(int64_t us, int64_t step_us)
{
    for (; us > 0; us -= step_us) {
        process_pass(step_us);
    }
}

/* ---- what ends ---- */

static void answers_end_in_time_and_keys_without_a_payment_later(void **state)
{
    (void)state;
    process_start_reaper();
    assert_string_equal(pay("k"), "answer 201");
    abandon(0, 1);
    process_pass(harness.rules.answer_retention_us - MINUTE);
    process_pass(MINUTE - 1);
    assert_int_equal(stats().expired, 0);
    process_pass(2 * MINUTE);
    assert_int_equal(stats().expired, 2);
    assert_string_equal(pay("k"), "problem answer-expired");
    process_pass(harness.rules.tombstone_us - harness.rules.answer_retention_us - 3 * MINUTE);
    assert_int_equal(stats().removed, 0);
    process_pass(3 * MINUTE);
    assert_int_equal(stats().removed, 1);
    assert_int_equal(stats().expired, 2);
    process_pass(10 * YEAR);
    assert_int_equal(stats().removed, 1); /* What made a payment is never a new key again. */
    assert_string_equal(pay("k"), "problem answer-expired");
    assert_string_equal(pay("x0"), "answer 201");
    assert_int_equal(harness.sends, 2);
}

static void what_is_open_is_never_touched(void **state)
{
    (void)state;
    process_start_reaper();
    harness.hold = true;
    idem_engine_submit(harness.engine, harness_pay(&requests[0], "unknown"));
    process_go_on();
    harness_answer(IDEM_OUTCOME_UNKNOWN);
    process_go_on();
    harness.hold = false;
    harness.outcome = IDEM_OUTCOME_NOT_EXECUTED;
    harness_pay(&requests[1], "released");
    requests[1].item.command.accept.wait_us = SECOND / 2; /* The first pause is longer. */
    assert_string_equal(reply_to(&requests[1]), "problem not-executed");
    uint32_t versions[2];
    for (size_t i = 0; i < 2; i++) {
        versions[i] = harness_operation(&requests[i])->intent.version;
    }
    process_pass(5 * YEAR);
    process_pass(5 * YEAR);
    for (size_t i = 0; i < 2; i++) {
        const struct idem_read *read = harness_operation(&requests[i]);
        assert_true(read->found);
        assert_false(idem_intent_is_final(read->intent.state));
        assert_int_equal(read->intent.version, versions[i]);
    }
    assert_int_equal(stats().expired + stats().removed, 0);
    (void)reply_name(&requests[0]);
}

/* ---- the clock ---- */

/* P12: the opening wrote it, so there is never a record without one. */
static void retention_begins_with_the_store_and_is_moved_after_a_minute(void **state)
{
    (void)state;
    int64_t start_us = wall_us();
    assert_in_range(harness.store->horizon_us, start_us - SECOND, start_us);
    process_start_reaper();
    process_go_on();
    assert_int_equal(harness.most[IDEM_COMMAND_MARK], 0);
    assert_int_equal(process_wake_in(), MINUTE);
    harness_fate(BATCH_NOTHING);
    process_pass(MINUTE);
    assert_int_equal(process_wake_in(), SECOND); /* It is not durable. */
    process_pass(SECOND);
    process_end();
    process_start();
    assert_in_range(harness.store->horizon_us, start_us + MINUTE, start_us + MINUTE + 2 * SECOND);
}

/* A process that dies before its first mark, and a clock that is a year ahead in the next one. */
static void an_early_death_and_a_wrong_clock_end_nothing(void **state)
{
    (void)state;
    abandon(0, 10);
    process_end();
    harness.clock.wall_base_us += YEAR;
    process_start();
    process_start_reaper();
    pass_slowly(HOUR, 30 * SECOND);
    assert_true(stats().clock_apart);
    assert_int_equal(stats().expired, 0);
}

static void the_horizon_is_written_once_a_minute(void **state)
{
    (void)state;
    process_start_reaper();
    process_go_on();
    uint64_t commands = idem_engine_stats(harness.engine)->commands;
    pass_slowly(HOUR, SECOND);
    assert_in_range(idem_engine_stats(harness.engine)->commands - commands, 59, 60);
    assert_in_range(process_wake_in(), 1, MINUTE);
    assert_int_equal(stats().horizon_us, wall_us());
    assert_false(stats().clock_apart);
}

static void a_clock_that_jumps_ahead_makes_it_late(void **state)
{
    (void)state;
    abandon(0, 10);
    process_start_reaper();
    process_go_on();
    int64_t horizon_us = stats().horizon_us;
    harness.clock.wall_base_us += YEAR;
    pass_slowly(HOUR, 5 * SECOND);
    assert_true(stats().horizon_us > horizon_us);
    assert_true(stats().horizon_us <= horizon_us + 2 * HOUR);
    assert_true(stats().clock_apart);
    assert_int_equal(stats().expired, 0);
    harness.clock.wall_base_us -= YEAR; /* Somebody sets it right. */
    process_pass(2 * HOUR);
    assert_false(stats().clock_apart);
    assert_int_equal(stats().horizon_us, wall_us());
    assert_int_equal(stats().expired, 0);
}

static void a_clock_that_goes_back_stops_it(void **state)
{
    (void)state;
    abandon(0, 10);
    process_start_reaper();
    process_pass(DAY);
    int64_t horizon_us = stats().horizon_us;
    uint64_t commands = idem_engine_stats(harness.engine)->commands;
    harness.clock.wall_base_us -= YEAR;
    pass_slowly(HOUR, MINUTE);
    assert_int_equal(stats().horizon_us, horizon_us);
    assert_true(stats().clock_apart);
    assert_int_equal(idem_engine_stats(harness.engine)->commands, commands);
    pass_slowly(60 * DAY, DAY); /* Monotonic time alone ends nothing. */
    assert_int_equal(stats().horizon_us, horizon_us);
    assert_int_equal(stats().expired, 0);
}

/* Rows that were due by a horizon which the corrected clock has not reached are left alone too. */
static void what_only_a_wrong_clock_called_due_is_left_alone(void **state)
{
    (void)state;
    process_start_reaper();
    harness.batches_held = false;
    process_pass(harness.rules.answer_retention_us);
    harness.clock.wall_base_us -= harness.rules.answer_retention_us;
    abandon(0, 10); /* Their time comes when the clock is again where it was. */
    pass_slowly(HOUR, MINUTE);
    assert_int_equal(stats().expired, 0);
    process_pass(harness.rules.answer_retention_us);
    process_pass(2 * MINUTE);
    assert_int_equal(stats().expired, 10);
}

static void a_new_process_goes_on_with_the_horizon_of_the_old(void **state)
{
    (void)state;
    abandon(0, 10);
    process_start_reaper();
    pass_slowly(HOUR, 30 * SECOND);
    int64_t horizon_us = stats().horizon_us;
    process_end();
    harness.clock.wall_base_us += YEAR; /* Set wrong while nothing ran. */
    for (int i = 0; i < 4; i++) {
        process_start();
        process_start_reaper();
        assert_in_range(stats().horizon_us, horizon_us - MINUTE, horizon_us + (i + 1) * HOUR);
        pass_slowly(HOUR / 4, 30 * SECOND);
        assert_true(stats().clock_apart);
        process_end();
    }
    process_start();
    process_start_reaper();
    process_go_on();
    assert_true(stats().horizon_us <= horizon_us + 2 * HOUR);
    assert_int_equal(stats().expired, 0);
}

/* ---- beside load ---- */

static void many_go_in_small_batches_while_requests_are_served(void **state)
{
    (void)state;
    abandon(0, MANY);
    process_start_reaper();
    process_go_on();
    harness.mono_us += harness.rules.answer_retention_us + MINUTE;
    harness.most[IDEM_COMMAND_REAP] = 0;
    size_t rounds = 0;
    size_t served = 0;
    harness_pay(&requests[0], "k0");
    idem_engine_submit(harness.engine, &requests[0]);
    while (stats().expired < MANY) {
        process_round();
        rounds += 1;
        assert_true(rounds < MANY);
        if (harness_done(&requests[0])) {
            assert_string_equal(reply_name(&requests[0]), "answer 201");
            served += 1;
            (void)snprintf(keys[0], sizeof(keys[0]), "k%d", (int)served);
            idem_engine_submit(harness.engine, harness_pay(&requests[0], keys[0]));
        }
    }
    process_go_on();
    assert_true(harness_done(&requests[0]));
    assert_true(served * 4 >= rounds); /* A payment takes few rounds, however much is reaped. */
    assert_in_range(harness.most[IDEM_COMMAND_REAP], 1, AT_ONCE);
    assert_int_equal(stats().expired, MANY);
    process_pass(harness.rules.tombstone_us - harness.rules.answer_retention_us);
    process_pass(MINUTE);
    assert_int_equal(stats().removed, MANY);
    assert_int_equal(harness.most[IDEM_COMMAND_REAP], AT_ONCE);
}

static void a_busy_engine_is_left_in_peace(void **state)
{
    (void)state;
    abandon(0, 64);
    process_start_reaper();
    process_go_on();
    harness.mono_us += harness.rules.answer_retention_us + MINUTE;
    harness.reads_held = true; /* What is to be reaped is read, and on its way. */
    for (int i = 0; i < 5; i++) {
        process_round();
    }
    assert_int_equal(harness.asked[IDEM_READ_REAP], 2);
    harness_fate(BATCH_HUNG); /* With a queue behind it. */
    for (size_t i = 0; i < 40; i++) {
        (void)snprintf(keys[i], sizeof(keys[0]), "k%d", (int)i);
        idem_engine_submit(harness.engine, harness_pay(&requests[i], keys[i]));
        idem_engine_step(harness.engine);
    }
    harness.reads_held = false;
    for (int i = 0; i < 5; i++) {
        process_round();
        assert_int_equal(idem_engine_stats(harness.engine)->queued, 39);
    }
    assert_in_range(process_wake_in(), 1, 20 * IDEM_US_PER_MS); /* It asks again soon. */
    assert_int_equal(stats().expired, 0);
    harness_end_hung(BATCH_AS_IT_IS);
    process_pass(SECOND / 10);
    process_pass(SECOND / 10);
    assert_int_equal(stats().expired, 64);
    for (size_t i = 0; i < 40; i++) {
        EXPECT_REPLY(requests[i], "answer 201");
    }
}

/* ---- failures ---- */

static void what_the_store_did_not_take_is_found_again(void **state)
{
    (void)state;
    abandon(0, 100);
    process_start_reaper();
    process_go_on();
    harness.mono_us += harness.rules.answer_retention_us + MINUTE;
    harness_fate(BATCH_AS_IT_IS); /* The mark. */
    harness_fate(BATCH_AS_IT_IS);
    harness_fate(BATCH_CONFLICT);
    harness_fate(BATCH_UNKNOWN_DONE);
    harness_fate(BATCH_NOTHING);
    process_go_on();
    assert_true(stats().expired < 100);
    for (int i = 0; i < 10; i++) {
        process_pass(2 * SECOND);
    }
    assert_int_equal(harness.fate_count, 0);
    assert_int_equal(stats().expired, 100);
    harness.reads_refused = 1;
    abandon(100, 1);
    process_pass(harness.rules.answer_retention_us + MINUTE);
    assert_int_equal(harness.reads_refused, 0);
    assert_int_equal(stats().expired, 100);
    process_pass(SECOND);
    assert_int_equal(stats().expired, 101);
}

static void a_death_between_a_tombstone_and_the_next_look_costs_nothing(void **state)
{
    (void)state;
    abandon(0, 100);
    process_start_reaper();
    process_go_on();
    harness.mono_us += harness.rules.answer_retention_us + MINUTE;
    uint64_t commands = idem_engine_stats(harness.engine)->answers[IDEM_STORE_DURABLE];
    while (idem_engine_stats(harness.engine)->answers[IDEM_STORE_DURABLE] < commands + 2) {
        process_round(); /* The mark, and then the first tombstones. */
    }
    process_end();
    process_start();
    process_start_reaper();
    process_go_on();
    process_pass(2 * MINUTE);
    assert_in_range(stats().expired, 1, 100 - 1); /* The others had been by the one that died. */
    process_pass(harness.rules.tombstone_us);
    assert_int_equal(stats().removed, 100);
}

static void after_stopping_nothing_is_begun(void **state)
{
    (void)state;
    abandon(0, 1);
    process_start_reaper();
    process_go_on();
    idem_reaper_stop(process.reaper);
    uint64_t commands = idem_engine_stats(harness.engine)->commands;
    process_pass(YEAR);
    assert_int_equal(idem_engine_stats(harness.engine)->commands, commands);
    assert_int_equal(idem_reaper_wake_us(process.reaper), INT64_MAX);
    assert_int_equal(stats().expired, 0);
}

#define ON_MEMORY(test) cmocka_unit_test_setup_teardown(test, begin_memory, end)
#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, begin_sqlite, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_MEMORY(answers_end_in_time_and_keys_without_a_payment_later),
        ON_SQLITE(answers_end_in_time_and_keys_without_a_payment_later),
        ON_MEMORY(what_is_open_is_never_touched),
        ON_SQLITE(retention_begins_with_the_store_and_is_moved_after_a_minute),
        ON_SQLITE(an_early_death_and_a_wrong_clock_end_nothing),
        ON_MEMORY(the_horizon_is_written_once_a_minute),
        ON_MEMORY(a_clock_that_jumps_ahead_makes_it_late),
        ON_MEMORY(a_clock_that_goes_back_stops_it),
        ON_MEMORY(what_only_a_wrong_clock_called_due_is_left_alone),
        ON_SQLITE(a_new_process_goes_on_with_the_horizon_of_the_old),
        ON_MEMORY(many_go_in_small_batches_while_requests_are_served),
        ON_MEMORY(a_busy_engine_is_left_in_peace),
        ON_MEMORY(what_the_store_did_not_take_is_found_again),
        ON_SQLITE(a_death_between_a_tombstone_and_the_next_look_costs_nothing),
        ON_MEMORY(after_stopping_nothing_is_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
