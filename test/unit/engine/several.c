/*
 * Several batches in flight, and several processes on one store.
 *
 * Goal: what the store refuses or does not know holds up nothing but itself, and runs again with
 * the same ids before anything else about it; what is unknown is called unknown until a run is
 * answered. Whoever waits for what another process does hears of its end within its time, and the
 * store is asked about all of them at once.
 *
 * Method: the memory store, said to work on several batches and to be shared; batches hang or end
 * as a test says (harness.h). Another process is a batch that the test submits by itself.
 */
#include "base/attr.h"
#include "store/memory/memory.h"
#include "unit/engine/harness.h"

#define BATCHES 4
#define MS      IDEM_US_PER_MS

static struct idem_request first;
static struct idem_request second;
static struct idem_request third;

static void wake(void *context)
{
    (void)context; /* The test steps. */
}

static int begin(void **state)
{
    (void)state;
    harness_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    harness_end();
    return 0;
}

static void start(bool shared)
{
    struct idem_error error = { .text = "" };
    struct idem_store *store = NULL;
    const struct idem_store_options options = {
        .rules = &harness.rules,
        .clock = &harness.clock,
        .wake = wake,
        .scope_rule = IDEM_STR("endpoint"),
    };
    assert_int_equal(idem_memory_open(&options, &store, &error), IDEM_OK);
    store->batches_in_flight_max = BATCHES;
    store->shared = shared;
    harness_start_on(store);
}

static void what_is_unknown_holds_up_nobody_else(void **state)
{
    (void)state;
    start(false);
    harness_fate(BATCH_UNKNOWN_LOST);
    harness_submit(harness_pay(&first, "a"));
    EXPECT_REPLY(first, "pending");
    harness_submit(harness_pay(&second, "b"));
    EXPECT_REPLY(second, "answer 201"); /* In the pause of the first. */
    assert_true(idem_engine_wake_us(harness.engine) <= harness.mono_us + 20 * MS);
    harness_pass(20 * MS);
    EXPECT_REPLY(first, "answer 201");
    assert_int_equal(harness.sends, 2);
}

static void nothing_of_its_intent_runs_before_it_again(void **state)
{
    (void)state;
    start(false);
    harness_fate(BATCH_UNKNOWN_DONE);
    harness_submit(harness_pay(&first, "a"));
    harness_submit(harness_pay(&third, "a"));
    uint64_t commands = idem_engine_stats(harness.engine)->commands;
    harness_submit(harness_pay(&second, "b"));
    EXPECT_REPLY(second, "answer 201");
    /* The claim and the settling of b; the copy of a did not run. */
    assert_int_equal(idem_engine_stats(harness.engine)->commands, commands + 2);
    harness_pass(20 * MS);
    EXPECT_REPLY(first, "answer 201");
    EXPECT_REPLY(third, "answer 201 replayed");
    assert_int_equal(harness.sends, 2);
}

static void nor_does_what_was_queued_behind_its_first_run(void **state)
{
    (void)state;
    start(false);
    harness_fate(BATCH_HUNG);
    harness_submit(harness_pay(&first, "a"));
    harness_submit(harness_pay(&second, "a"));
    harness_end_hung(BATCH_UNKNOWN_LOST);
    harness_pass(20 * MS);
    EXPECT_REPLY(first, "answer 201"); /* It claimed, and not the one that came later. */
    EXPECT_REPLY(second, "answer 201 replayed");
    assert_int_equal(harness.sends, 1);
}

/* The first run may have been written, and may hold the locks that the later ones wait for. */
static void what_is_unknown_is_never_called_unavailable(void **state)
{
    static const enum batch_fate later[] = { BATCH_NOTHING, BATCH_CONFLICT, BATCH_DOWN };
    (void)state;
    start(false);
    harness_fate(BATCH_UNKNOWN_DONE);
    harness_submit(harness_pay(&first, "a"));
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(later); i++) {
        harness_fate(later[i]);
        harness_pass(SECOND);
        EXPECT_REPLY(first, "pending");
    }
    harness_pass(SECOND);
    EXPECT_REPLY(first, "answer 201");
    assert_false(first.replayed);
    assert_int_equal(harness.sends, 1);

    harness_fate(BATCH_UNKNOWN_LOST);
    harness_submit(harness_pay(&second, "b"));
    harness_fate(BATCH_HUNG);
    harness_pass(SECOND);
    harness_fate(BATCH_UNKNOWN_LOST);
    harness_submit(harness_pay(&third, "c"));
    harness_pass(10 * SECOND); /* Its time is over in the queue ... */
    EXPECT_REPLY(third, "problem outcome-unknown");
    harness_end_hung(BATCH_NOTHING); /* ... and here with the store. */
    EXPECT_REPLY(second, "problem outcome-unknown");
}

static void what_runs_again_leaves_batches_for_others(void **state)
{
    static struct idem_request others[BATCHES];
    static const char *const names[BATCHES] = { "1", "2", "3", "4" };
    (void)state;
    start(false);
    harness_fate(BATCH_UNKNOWN_LOST);
    harness_submit(harness_pay(&first, "a"));
    harness_fate(BATCH_UNKNOWN_LOST);
    harness_submit(harness_pay(&second, "b"));
    harness_fate(BATCH_HUNG);
    harness_pass(20 * MS); /* Both again, in one batch, and it hangs. */
    assert_int_equal(harness.hung.count, 1);
    harness_fate(BATCH_UNKNOWN_LOST);
    harness_submit(harness_pay(&third, "c"));
    harness_pass(SECOND); /* It runs again behind the one that hangs, and does not take another. */
    assert_int_equal(harness.hung.count, 1);
    EXPECT_REPLY(third, "pending");
    for (size_t i = 0; i < BATCHES; i++) {
        harness_submit(harness_pay(&others[i], names[i]));
        EXPECT_REPLY(others[i], "answer 201");
    }
    harness_end_hung(BATCH_AS_IT_IS);
    harness_step();
    EXPECT_REPLY(first, "answer 201");
    EXPECT_REPLY(second, "answer 201");
    EXPECT_REPLY(third, "answer 201");
    assert_int_equal(harness.sends, 3 + BATCHES);
}

/* With new ids it would find its own lease and leave the question to the time after it. */
static void a_due_command_keeps_its_ids_once_it_is_unknown(void **state)
{
    (void)state;
    start(false);
    harness.outcome = IDEM_OUTCOME_UNKNOWN;
    harness_submit(harness_pay(&first, "a"));
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    harness_pass(40 * SECOND);
    EXPECT_REPLY(first, "operation");
    harness_fate(BATCH_UNKNOWN_DONE);
    harness_fate(BATCH_NOTHING);
    assert_int_equal(harness_recover(), 1);
    harness_pass(20 * MS);
    assert_int_equal(harness.queries, 0);
    harness_pass(40 * MS);
    assert_int_equal(harness.queries, 1);
    assert_int_equal(harness_operation(&first)->intent.state, IDEM_INTENT_SUCCEEDED);
}

/* ---- other processes ---- */

static struct idem_outcome elsewhere_outcome;

/* Another process runs this. */
static void run_elsewhere(const struct idem_command *command)
{
    static struct idem_store_item item;
    struct idem_store_batch batch = { .answer = IDEM_STORE_NONE };
    struct idem_list batches = { .count = 0 };
    struct idem_list reads = { .count = 0 };
    item = (struct idem_store_item){ .outcome = &elsewhere_outcome, .command = *command };
    idem_list_push(&batch.items, &item.node);
    harness.store_ops->submit(harness.store, &batch);
    harness.store_ops->reap(harness.store, &batches, &harness.reads);
    assert_int_equal(batches.count, 1);
    assert_int_equal(item.answer, IDEM_STORE_DURABLE);
    (void)reads;
}

static void claim_elsewhere(const char *key)
{
    static struct idem_request other;
    static uint8_t number;
    number += 1;
    harness_pay(&other, key);
    other.item.command.token.bytes[0] = number;
    other.item.command.intent_id.bytes[0] = number;
    other.item.command.resource_id.bytes[0] = number;
    other.item.command.slot = true;
    run_elsewhere(&other.item.command);
    assert_int_equal(elsewhere_outcome.release.kind, IDEM_RELEASE_SEND);
}

/* What came of the send that was granted last. */
static void settle_elsewhere(enum idem_outcome_kind outcome)
{
    const struct idem_intent intent = elsewhere_outcome.intent;
    struct idem_command command = {
        .kind = IDEM_COMMAND_EVIDENCE,
        .scope = intent.scope,
        .token = { .bytes = { 0x77, intent.token.bytes[0] } },
        .evidence = {
            .source = IDEM_SOURCE_SEND,
            .outcome = outcome,
            .token = intent.token,
            .send_no = 1,
            .entry = IDEM_STR("sandbox"),
            .account = IDEM_STR("account"),
            .region = IDEM_STR("region"),
            .effect_id = intent.effect.id,
            .amount_minor = intent.effect.amount_minor,
            .currency = IDEM_STR("CNY"),
            .reference = IDEM_STR("provider-1"),
            .retry_after_us = 3600 * SECOND,
        },
    };
    char id[IDEM_EFFECT_ID_LEN];
    memcpy(id, intent.effect.id.data, sizeof(id));
    command.evidence.effect_id = (struct idem_str){ .data = id, .len = sizeof(id) };
    run_elsewhere(&command);
}

static void who_waits_for_another_process_is_told_the_end(void **state)
{
    (void)state;
    start(true);
    claim_elsewhere("a");
    harness_submit(harness_pay(&first, "a"));
    harness_submit(harness_pay(&second, "a"));
    harness_pass(100 * MS);
    EXPECT_REPLY(first, "pending");
    settle_elsewhere(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(first, "pending");
    harness_pass(SECOND); /* Nothing was heard: the next look. */
    EXPECT_REPLY(first, "answer 201 replayed");
    EXPECT_REPLY(second, "answer 201 replayed");
    assert_true(first.identified);
    assert_int_equal(harness.sends, 0);
    harness_submit(harness_pay(&third, "a"));
    assert_int_equal(idem_engine_stats(harness.engine)->replayed_from_memory, 1);
}

static void what_is_heard_is_looked_at_at_once(void **state)
{
    (void)state;
    start(true);
    claim_elsewhere("a");
    harness_submit(harness_pay(&first, "a"));
    for (int i = 0; i < 4; i++) {
        harness_pass(SECOND);
    }
    settle_elsewhere(IDEM_OUTCOME_SUCCESS);
    harness.mono_us += 11 * MS;
    harness_step();
    EXPECT_REPLY(first, "pending");
    harness.heard = true;
    harness_step();
    EXPECT_REPLY(first, "answer 201 replayed");
}

static void who_waits_for_what_was_released_elsewhere_is_told_so(void **state)
{
    (void)state;
    start(true);
    claim_elsewhere("a");
    harness_submit(harness_pay(&first, "a"));
    settle_elsewhere(IDEM_OUTCOME_NOT_EXECUTED);
    assert_int_equal(elsewhere_outcome.intent.state, IDEM_INTENT_RELEASED);
    harness_pass(SECOND);
    EXPECT_REPLY(first, "problem not-executed");
}

static void nobody_waits_beyond_his_time(void **state)
{
    (void)state;
    start(true);
    claim_elsewhere("a");
    harness_submit(harness_pay(&first, "a"));
    harness.reads_refused = 1000;
    for (int i = 0; i < 9; i++) {
        harness_pass(SECOND);
        EXPECT_REPLY(first, "pending");
    }
    harness_pass(SECOND);
    EXPECT_REPLY(first, "operation");
    harness.reads_refused = 0;
    size_t asked = harness.asked[IDEM_READ_WAITED];
    harness_pass(10 * SECOND);
    harness_pass(10 * SECOND);
    assert_true(harness.asked[IDEM_READ_WAITED] <= asked + 1); /* Nobody waits: nobody looks. */
    assert_int_equal(idem_engine_wake_us(harness.engine), INT64_MAX);
}

enum {
    KEYS = 60
};

static void all_are_looked_after_with_one_question(void **state)
{
    static struct idem_request requests[KEYS];
    static struct idem_outcome claimed[KEYS];
    static char names[KEYS][16];
    (void)state;
    start(true);
    for (size_t i = 0; i < KEYS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "key-%zu", i);
        claim_elsewhere(names[i]);
        idem_outcome_copy(&claimed[i], &elsewhere_outcome);
        idem_engine_submit(harness.engine, harness_pay(&requests[i], names[i]));
    }
    harness_step();
    size_t asked = harness.asked[IDEM_READ_WAITED];
    assert_true(asked <= 2);
    for (int i = 0; i < 200; i++) {
        harness_pass(10 * MS);
    }
    /* At 20, 60, 140, 300, 620 ms and then once a second. */
    assert_true(harness.asked[IDEM_READ_WAITED] <= asked + 8);
    assert_int_equal(harness.asked[IDEM_READ_INTENT], 0);
    for (size_t i = 0; i < KEYS; i++) {
        idem_outcome_copy(&elsewhere_outcome, &claimed[i]);
        settle_elsewhere(IDEM_OUTCOME_SUCCESS);
    }
    asked = harness.asked[IDEM_READ_WAITED];
    for (int i = 0; i < 200; i++) {
        harness_pass(10 * MS);
    }
    for (size_t i = 0; i < KEYS; i++) {
        EXPECT_REPLY(requests[i], "answer 201 replayed");
    }
    assert_int_equal(harness.asked[IDEM_READ_INTENT], KEYS);
    assert_true(harness.asked[IDEM_READ_WAITED] <= asked + 3);
}

/* What this process acts on itself is not asked for, and comes to be when it does not any more. */
static void what_is_done_here_is_looked_after_here(void **state)
{
    (void)state;
    start(true);
    harness.hold = true;
    harness_submit(harness_pay(&first, "a"));
    for (int i = 0; i < 5; i++) {
        harness_pass(SECOND);
    }
    assert_int_equal(harness.asked[IDEM_READ_WAITED], 0);
    claim_elsewhere("b");
    harness_submit(harness_pay(&second, "b"));
    harness_pass(100 * MS);
    assert_int_equal(harness.waited_most, 1);
    harness_answer(IDEM_OUTCOME_UNKNOWN);
    EXPECT_REPLY(first, "pending");
    harness_pass(100 * MS);
    harness_pass(100 * MS);
    assert_int_equal(harness.waited_most, 2);
    harness_pass(10 * SECOND);
    EXPECT_REPLY(first, "operation");
    EXPECT_REPLY(second, "operation");
    assert_true(first.replayed); /* Another process may act on another claim by now. */
}

/* A 202 says who was first as long as nobody else can be. */
static void a_wait_that_ends_says_who_was_first(void **state)
{
    (void)state;
    start(true);
    harness.hold = true;
    harness_submit(harness_pay(&first, "a"));
    harness_submit(harness_pay(&second, "a"));
    harness_pass(10 * SECOND);
    EXPECT_REPLY(first, "operation");
    EXPECT_REPLY(second, "operation");
    assert_false(first.replayed);
    assert_true(second.replayed);
    harness_answer(IDEM_OUTCOME_SUCCESS);
}

/* Behind its lease another process may have released the claim, and a third caller have it now. */
static void nobody_is_told_to_be_first_behind_a_lease(void **state)
{
    (void)state;
    start(true);
    harness.hold = true;
    harness_submit(harness_pay(&first, "a"));
    harness_pass(60 * SECOND); /* A pause of the whole process. */
    EXPECT_REPLY(first, "operation");
    assert_true(first.replayed);
    harness_answer(IDEM_OUTCOME_SUCCESS);
}

static void on_a_store_of_our_own_nobody_looks(void **state)
{
    (void)state;
    start(false);
    claim_elsewhere("a");
    harness_submit(harness_pay(&first, "a"));
    harness_pass(5 * SECOND);
    assert_int_equal(harness.asked[IDEM_READ_WAITED], 0);
    harness_pass(5 * SECOND);
    EXPECT_REPLY(first, "operation");
}

#define SCENE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(what_is_unknown_holds_up_nobody_else),
        SCENE(nothing_of_its_intent_runs_before_it_again),
        SCENE(nor_does_what_was_queued_behind_its_first_run),
        SCENE(what_is_unknown_is_never_called_unavailable),
        SCENE(what_runs_again_leaves_batches_for_others),
        SCENE(a_due_command_keeps_its_ids_once_it_is_unknown),
        SCENE(who_waits_for_another_process_is_told_the_end),
        SCENE(what_is_heard_is_looked_at_at_once),
        SCENE(who_waits_for_what_was_released_elsewhere_is_told_so),
        SCENE(nobody_waits_beyond_his_time),
        SCENE(all_are_looked_after_with_one_question),
        SCENE(what_is_done_here_is_looked_after_here),
        SCENE(a_wait_that_ends_says_who_was_first),
        SCENE(nobody_is_told_to_be_first_behind_a_lease),
        SCENE(on_a_store_of_our_own_nobody_looks),
    };
    return cmocka_run_group_tests_name("engine/several", tests, NULL, NULL);
}
