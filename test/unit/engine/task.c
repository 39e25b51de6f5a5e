/*
 * Tasks: commands of operators and workers, beside requests and flights.
 *
 * Goal: a task comes back once, to its submitter, and what it says is certain; what it did to an
 * intent reaches whoever waits for it, the memory of answers and the due times. A settle that the
 * store refuses for ever is neither dropped nor in anybody's way. What is counted is what happened.
 *
 * Method: the engine of harness.h with hand-driven time; verdicts, retention and marks as tasks.
 */
#include "unit/engine/harness.h"

#include "base/attr.h"

static struct idem_request first;
static struct idem_request second;
static struct idem_request third;
static struct idem_task task;
static struct idem_task other;
static struct idem_list done;

static int begin(void **state)
{
    (void)state;
    harness_begin();
    task = (struct idem_task){ .done = &done };
    other = (struct idem_task){ .done = &done };
    done = (struct idem_list){ .count = 0 };
    return 0;
}

static int end(void **state)
{
    (void)state;
    harness_end();
    return 0;
}

static bool came_back(const struct idem_task *expected)
{
    struct idem_list_node *node = idem_list_pop(&done);
    assert_true(node == NULL || node == &expected->item.node);
    return node != NULL;
}

static void mark(struct idem_task *marking, int64_t value_us)
{
    marking->item.command = (struct idem_command){
        .kind = IDEM_COMMAND_MARK,
        .mark = { .kind = IDEM_MARK_HORIZON, .value_us = value_us },
    };
    idem_engine_run(harness.engine, marking);
}

static void resolve(const struct idem_request *request, enum idem_verdict verdict)
{
    task.item.command = (struct idem_command){
        .kind = IDEM_COMMAND_RESOLVE,
        .scope = request->item.command.scope,
        .resolve = {
            .verdict = verdict,
            .asked_us = idem_clock_wall_us(&harness.clock),
            .by = IDEM_STR("operator"),
            .reason = IDEM_STR("read it there"),
            .reference = IDEM_STR("provider-9"),
            .amount_minor = 10000,
            .currency = IDEM_STR("CNY"),
        },
    };
    idem_engine_run(harness.engine, &task);
    harness_step();
}

static void erase(const struct idem_request *request)
{
    task.item.command = (struct idem_command){
        .kind = IDEM_COMMAND_REAP,
        .scope = request->item.command.scope,
        .reap = {
            .horizon_us = idem_clock_wall_us(&harness.clock),
            .erase = true,
            .by = IDEM_STR("operator"),
        },
    };
    idem_engine_run(harness.engine, &task);
    harness_step();
}

/* ---- what a task says ---- */

static void a_task_comes_back_once_and_durable(void **state)
{
    (void)state;
    harness_start();
    mark(&task, idem_clock_wall_us(&harness.clock));
    assert_false(idem_engine_quiet(harness.engine));
    harness_step();
    assert_true(came_back(&task));
    assert_int_equal(task.item.answer, IDEM_STORE_DURABLE);
    assert_int_equal(task.outcome.release.kind, IDEM_RELEASE_REPLY);
    assert_int_equal(task.outcome.release.problem, IDEM_PROBLEM_NONE);
    assert_true(idem_engine_quiet(harness.engine));
    mark(&task, idem_clock_wall_us(&harness.clock)); /* It may be used again. */
    harness_step();
    assert_true(came_back(&task));
}

static void what_was_not_written_comes_back_to_its_submitter(void **state)
{
    (void)state;
    static const enum batch_fate fates[] = { BATCH_NOTHING, BATCH_CONFLICT, BATCH_DOWN };
    static const enum idem_store_answer answers[] = {
        IDEM_STORE_NOTHING,
        IDEM_STORE_CONFLICT,
        IDEM_STORE_DOWN,
    };
    harness_start();
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fates); i++) {
        harness_fate(fates[i]);
        mark(&task, idem_clock_wall_us(&harness.clock));
        harness_step();
        assert_true(came_back(&task));
        assert_int_equal(task.item.answer, answers[i]);
    }
}

static void after_an_unknown_commit_it_runs_until_its_end_is_known(void **state)
{
    (void)state;
    static const enum batch_fate fates[] = {
        BATCH_UNKNOWN_DONE, BATCH_NOTHING, BATCH_DOWN, BATCH_UNKNOWN_LOST, BATCH_CONFLICT,
    };
    harness_start();
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fates); i++) {
        harness_fate(fates[i]);
    }
    mark(&task, idem_clock_wall_us(&harness.clock));
    struct idem_uid token = task.item.command.token;
    harness_step();
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(fates); i++) {
        assert_false(came_back(&task)); /* "Nothing" of this run says nothing of the first. */
        harness_pass(2 * SECOND);
    }
    assert_true(came_back(&task));
    assert_int_equal(task.item.answer, IDEM_STORE_DURABLE);
    assert_true(idem_uid_equal(task.item.command.token, token));
}

static void a_broken_store_leaves_it_unknown(void **state)
{
    (void)state;
    harness_start();
    harness_fate(BATCH_UNKNOWN_LOST);
    mark(&task, idem_clock_wall_us(&harness.clock));
    harness_step();
    harness.store->broken = true;
    harness_fate(BATCH_DOWN);
    harness_pass(2 * SECOND);
    harness.fate_count = 0; /* If it was taken out of the queue before. */
    assert_true(came_back(&task));
    assert_int_equal(task.item.answer, IDEM_STORE_UNKNOWN);
    mark(&task, idem_clock_wall_us(&harness.clock));
    assert_true(came_back(&task)); /* At once. */
    assert_int_equal(task.item.answer, IDEM_STORE_DOWN);
    harness.store->broken = false;
}

static void draining_refuses_tasks_and_hurrying_ends_those_that_never_ran(void **state)
{
    (void)state;
    harness_start();
    harness.batches_held = true;
    mark(&task, idem_clock_wall_us(&harness.clock));
    harness_step();
    mark(&other, idem_clock_wall_us(&harness.clock)); /* Waits for the first. */
    harness_step();
    idem_engine_drain(harness.engine);
    assert_false(idem_engine_quiet(harness.engine));
    idem_engine_hurry(harness.engine);
    assert_true(came_back(&other));
    assert_int_equal(other.item.answer, IDEM_STORE_DOWN);
    assert_false(idem_engine_quiet(harness.engine));
    harness.batches_held = false;
    harness_step();
    assert_true(came_back(&task));
    assert_int_equal(task.item.answer, IDEM_STORE_DURABLE);
    assert_true(idem_engine_quiet(harness.engine));
    mark(&task, idem_clock_wall_us(&harness.clock));
    assert_true(came_back(&task));
    assert_int_equal(task.item.answer, IDEM_STORE_DOWN);
}

/* ---- what it does to an intent ---- */

/* Its send was silent; nobody knows. */
static void leave_unknown(struct idem_request *request, const char *key)
{
    harness.hold = true;
    harness_pay(request, key);
    request->item.command.accept.wait_us = 3600 * SECOND;
    harness_submit(request);
    harness_answer(IDEM_OUTCOME_UNKNOWN);
    harness.hold = false;
    EXPECT_REPLY(*request, "pending");
}

static void a_verdict_reaches_everybody_who_waits(void **state)
{
    (void)state;
    harness_start();
    leave_unknown(&first, "k");
    harness_submit(harness_pay(&second, "k"));
    harness_pass(5 * SECOND);
    resolve(&first, IDEM_VERDICT_SUCCEEDED);
    assert_true(came_back(&task));
    assert_int_equal(task.item.answer, IDEM_STORE_DURABLE);
    assert_int_equal(task.outcome.release.problem, IDEM_PROBLEM_NONE);
    EXPECT_REPLY(first, "answer 201");
    EXPECT_REPLY(second, "answer 201 replayed");
    uint64_t commands = idem_engine_stats(harness.engine)->commands;
    harness_submit(harness_pay(&third, "k"));
    EXPECT_REPLY(third, "answer 201 replayed");
    assert_int_equal(idem_engine_stats(harness.engine)->commands, commands); /* From memory. */
    assert_int_equal(harness.sends, 1);
}

static void a_verdict_that_is_refused_reaches_nobody_else(void **state)
{
    (void)state;
    harness_start();
    leave_unknown(&first, "k");
    resolve(&first, IDEM_VERDICT_FAILED);
    assert_true(came_back(&task));
    assert_int_equal(task.outcome.release.problem, IDEM_PROBLEM_TOO_EARLY);
    EXPECT_REPLY(first, "pending");
    harness_pass(IDEM_US_PER_DAY / 24);
    EXPECT_REPLY(first, "operation");
    resolve(&first, IDEM_VERDICT_FAILED);
    assert_true(came_back(&task));
    assert_int_equal(task.outcome.release.problem, IDEM_PROBLEM_NONE);
    harness_submit(harness_pay(&second, "k"));
    EXPECT_REPLY(second, "answer 409 replayed");
}

static void a_forgotten_answer_is_not_replayed_from_memory(void **state)
{
    (void)state;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    EXPECT_REPLY(first, "answer 201");
    erase(&first);
    assert_true(came_back(&task));
    assert_int_equal(task.outcome.release.problem, IDEM_PROBLEM_STATE_CONFLICT); /* Too early. */
    harness_submit(harness_pay(&second, "k"));
    EXPECT_REPLY(second, "answer 201 replayed");
    harness_pass(harness.rules.retry_window_us);
    assert_true(idem_clock_wall_us(&harness.clock) < first.outcome.intent.expires_us);
    erase(&first);
    assert_true(came_back(&task));
    assert_int_equal(task.outcome.release.problem, IDEM_PROBLEM_NONE);
    for (int i = 0; i < 2; i++) { /* Nor does asking for it put it back. */
        harness_submit(harness_pay(&third, "k"));
        EXPECT_REPLY(third, "problem answer-expired");
    }
    assert_int_equal(harness.sends, 1);
}

/* ---- a settle that the store refuses ---- */

static void refuse_settling(const struct idem_request *request)
{
    harness.refuses = true;
    harness.refused_scope = request->item.command.scope;
}

static void a_settle_that_is_refused_for_ever_is_in_nobodys_way(void **state)
{
    (void)state;
    static char keys[400][8];
    const struct idem_engine_stats *stats = NULL;
    harness_start();
    stats = idem_engine_stats(harness.engine);
    refuse_settling(harness_pay(&first, "poison"));
    harness_submit(&first);
    assert_int_equal(stats->settles_stuck, 1);
    for (int i = 0; i < 400; i++) { /* Ten minutes with others. */
        (void)snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        idem_engine_submit(harness.engine, harness_pay(&third, "other"));
        harness_submit(harness_pay(&second, keys[i]));
        EXPECT_REPLY(second, "answer 201");
        harness_pass(3 * SECOND / 2);
        (void)harness_done(&third);
    }
    EXPECT_REPLY(first, "operation");
    assert_int_equal(harness.refused_among, 0);
    assert_in_range(harness.refused_alone, 12, 24); /* 20 ms, 40 ms ... 60 s. */
    assert_int_equal(stats->settles_stuck, 1);
    assert_int_equal(stats->answers[IDEM_STORE_CONFLICT], harness.refused_alone);
    int64_t wake_us = idem_engine_wake_us(harness.engine) - harness.mono_us;
    assert_in_range(wake_us, 1, 60 * SECOND);
    harness.refuses = false;
    harness_pass(wake_us - 1);
    assert_int_equal(stats->settles_stuck, 1);
    harness_pass(1);
    assert_int_equal(stats->settles_stuck, 0);
    harness_submit(harness_pay(&second, "poison"));
    EXPECT_REPLY(second, "answer 201 replayed");
    assert_int_equal(harness.sends, 402);
}

static void a_process_that_ends_leaves_it_to_the_next(void **state)
{
    (void)state;
    harness_start();
    refuse_settling(harness_pay(&first, "poison"));
    harness_submit(&first);
    idem_engine_drain(harness.engine);
    harness_step();
    assert_false(idem_engine_quiet(harness.engine));
    idem_engine_hurry(harness.engine);
    EXPECT_REPLY(first, "operation");
    assert_true(idem_engine_quiet(harness.engine));
    assert_int_equal(idem_engine_stats(harness.engine)->settles_stuck, 0);
}

/* ---- what is counted ---- */

static void requests_are_counted_by_how_they_ended(void **state)
{
    (void)state;
    harness_start();
    const struct idem_engine_stats *stats = idem_engine_stats(harness.engine);
    harness_submit(harness_pay(&first, "a"));
    harness_submit(harness_pay(&second, "a"));
    harness_pay(&third, "a");
    third.item.command.accept.fingerprints[0].digest.bytes[0] = 1;
    harness_submit(&third);
    harness.hold = true;
    harness_pay(&third, "b");
    third.respond_async = true;
    harness_submit(&third);
    assert_int_equal(stats->flights, 1);
    harness_answer(IDEM_OUTCOME_REFUSED_FINAL);
    assert_int_equal(stats->accepted, 4);
    assert_int_equal(stats->claimed, 2);
    assert_int_equal(stats->replayed, 1);
    assert_int_equal(stats->replayed_from_memory, 1);
    assert_int_equal(stats->operations, 1);
    assert_int_equal(stats->problems[IDEM_PROBLEM_KEY_REUSED], 1);
    assert_int_equal(stats->ended[IDEM_INTENT_SUCCEEDED], 1);
    assert_int_equal(stats->ended[IDEM_INTENT_FAILED], 1);
    assert_int_equal(stats->time_to_truth_us.count, 0);
    assert_int_equal(stats->requests, 0);
    assert_int_equal(stats->flights, 0);
    assert_int_equal(stats->queued, 0);
    assert_int_equal(stats->batch_commands.count, stats->batches);
    assert_int_equal(stats->batch_commands.sum, stats->commands);
    assert_int_equal(stats->commit_us.count, stats->batches);
    assert_int_equal(stats->answers[IDEM_STORE_DURABLE], stats->commands);
}

static void an_end_is_counted_once_and_truth_by_how_long_it_took(void **state)
{
    (void)state;
    harness_start();
    const struct idem_engine_stats *stats = idem_engine_stats(harness.engine);
    leave_unknown(&first, "k");
    harness_pass(40 * SECOND);
    harness_fate(BATCH_UNKNOWN_DONE);
    resolve(&first, IDEM_VERDICT_SUCCEEDED);
    harness_pass(2 * SECOND);
    assert_true(came_back(&task));
    assert_int_equal(stats->ended[IDEM_INTENT_SUCCEEDED], 1);
    assert_int_equal(stats->time_to_truth_us.count, 1);
    assert_int_equal(stats->time_to_truth_us.sum, 40 * SECOND);
    harness_pass(harness.rules.retry_window_us);
    erase(&first); /* Writes a final row, and ends nothing. */
    assert_true(came_back(&task));
    assert_int_equal(stats->ended[IDEM_INTENT_SUCCEEDED], 1);
    assert_int_equal(stats->time_to_truth_us.count, 1);
}

static void what_is_parked_is_counted_when_it_is_and_not_when_it_is_asked_about(void **state)
{
    (void)state;
    harness_start();
    const struct idem_engine_stats *stats = idem_engine_stats(harness.engine);
    harness.outcome = IDEM_OUTCOME_UNKNOWN;
    harness_submit(harness_pay(&first, "k"));
    for (int i = 0; i < 400 && stats->ended[IDEM_INTENT_PARKED] == 0; i++) {
        harness_pass(3600 * SECOND);
        (void)harness_recover();
    }
    assert_int_equal(stats->ended[IDEM_INTENT_PARKED], 1);
    assert_int_equal(harness_operation(&first)->intent.state, IDEM_INTENT_PARKED);
    uint64_t queries = stats->queries;
    for (int i = 0; i < 10; i++) {
        harness_pass(harness.rules.parked_ask_us);
        (void)harness_recover();
    }
    assert_true(stats->queries > queries);
    assert_int_equal(stats->ended[IDEM_INTENT_PARKED], 1);
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    harness_pass(harness.rules.parked_ask_us);
    (void)harness_recover();
    assert_int_equal(stats->ended[IDEM_INTENT_SUCCEEDED], 1);
    assert_int_equal(stats->time_to_truth_us.count, 1);
    EXPECT_REPLY(first, "operation");
}

static void a_released_key_is_counted_as_such(void **state)
{
    (void)state;
    harness_start();
    harness.outcome = IDEM_OUTCOME_NOT_EXECUTED;
    harness_pay(&first, "k");
    first.item.command.accept.wait_us = SECOND / 2; /* The first pause is longer. */
    harness_submit(&first);
    EXPECT_REPLY(first, "problem not-executed");
    const struct idem_engine_stats *stats = idem_engine_stats(harness.engine);
    assert_int_equal(stats->ended[IDEM_INTENT_RELEASED], 1);
    assert_int_equal(stats->problems[IDEM_PROBLEM_NOT_EXECUTED], 1);
}

static void calls_are_counted_by_entry_kind_and_outcome(void **state)
{
    (void)state;
    struct idem_provider_rules entries[2] = { harness.entry, harness.entry };
    entries[0].entry = IDEM_STR("another");
    harness.rules.providers = entries;
    harness.rules.provider_count = 2;
    harness_start();
    const struct idem_call_stats *calls = idem_engine_call_stats(harness.engine);
    harness_submit(harness_pay(&first, "a"));
    leave_unknown(&second, "b");
    harness_pass(60 * SECOND);
    harness.hold = true;
    assert_int_equal(harness_recover(), 1);
    harness_pass(3 * SECOND);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(second, "answer 201");
    assert_int_equal(calls[1].outcomes[IDEM_CALL_SEND][IDEM_OUTCOME_SUCCESS], 1);
    assert_int_equal(calls[1].outcomes[IDEM_CALL_SEND][IDEM_OUTCOME_UNKNOWN], 1);
    assert_int_equal(calls[1].outcomes[IDEM_CALL_QUERY][IDEM_OUTCOME_SUCCESS], 1);
    assert_int_equal(calls[1].us[IDEM_CALL_SEND].count, 2);
    assert_int_equal(calls[1].us[IDEM_CALL_QUERY].sum, 3 * SECOND);
    assert_int_equal(calls[0].us[IDEM_CALL_SEND].count, 0);
    harness.port_full = true; /* What the port did not take was never said to the provider. */
    harness_pay(&third, "c");
    third.item.command.accept.wait_us = SECOND / 2;
    harness_submit(&third);
    assert_int_equal(calls[1].us[IDEM_CALL_SEND].count, 2);
}

static void a_call_carries_the_trace_of_the_request_that_claimed(void **state)
{
    (void)state;
    static const char trace[] = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
    harness_start();
    harness_pay(&first, "k");
    first.item.command.accept.trace = idem_str_from(trace);
    harness_submit(&first);
    assert_string_equal(harness.trace, trace);
    harness_submit(harness_pay(&second, "without"));
    assert_string_equal(harness.trace, "");
}

#define TASK_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TASK_TEST(a_task_comes_back_once_and_durable),
        TASK_TEST(what_was_not_written_comes_back_to_its_submitter),
        TASK_TEST(after_an_unknown_commit_it_runs_until_its_end_is_known),
        TASK_TEST(a_broken_store_leaves_it_unknown),
        TASK_TEST(draining_refuses_tasks_and_hurrying_ends_those_that_never_ran),
        TASK_TEST(a_verdict_reaches_everybody_who_waits),
        TASK_TEST(a_verdict_that_is_refused_reaches_nobody_else),
        TASK_TEST(a_forgotten_answer_is_not_replayed_from_memory),
        TASK_TEST(a_settle_that_is_refused_for_ever_is_in_nobodys_way),
        TASK_TEST(a_process_that_ends_leaves_it_to_the_next),
        TASK_TEST(requests_are_counted_by_how_they_ended),
        TASK_TEST(an_end_is_counted_once_and_truth_by_how_long_it_took),
        TASK_TEST(what_is_parked_is_counted_when_it_is_and_not_when_it_is_asked_about),
        TASK_TEST(a_released_key_is_counted_as_such),
        TASK_TEST(calls_are_counted_by_entry_kind_and_outcome),
        TASK_TEST(a_call_carries_the_trace_of_the_request_that_claimed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
