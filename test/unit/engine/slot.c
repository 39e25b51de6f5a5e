/*
 * Places on the wire, by provider entry.
 *
 * Goal: one provider that hangs, refuses or falls silent takes only its share and stops nobody
 * else; what must wait is claimed, waits within its caller's time and is sent once when its turn
 * comes; questions and second sends go on whatever holds first sends back; at every bound the
 * answer says so and nothing was written.
 *
 * Method: a real engine over the memory store with two entries, "bad" and "good", whose limits each
 * test sets (slot_scene.h). After every test all tickets are back.
 */
#include "unit/engine/slot_scene.h"

static struct idem_request good;
static struct idem_request other;

/* ---- places ---- */

static void a_provider_that_hangs_takes_only_its_share(void **state)
{
    (void)state;
    bad_limits->sends_max = 2;
    harness.hangs = IDEM_STR("bad");
    harness_start();
    pay_bad(0, 6);
    assert_int_equal(harness.sends, 2);
    assert_int_equal(bad_stats().sends, 2);
    assert_int_equal(bad_stats().waiting, 4);
    for (int i = 0; i < 8; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "good-%d", i);
        harness_submit(pay(&good, key, "good"));
        EXPECT_REPLY(good, "answer 201");
    }
    run_out();
    expect_replies(0, 6, "answer 201");
}

static void who_waits_is_claimed_and_sent_once_in_turn(void **state)
{
    (void)state;
    bad_limits->sends_max = 1;
    harness.hangs = IDEM_STR("bad");
    harness_start();
    pay_bad(0, 4);
    assert_int_equal(state_of(&requests[0]), IDEM_INTENT_DISPATCHED);
    for (size_t i = 1; i < 4; i++) {
        assert_int_equal(state_of(&requests[i]), IDEM_INTENT_CLAIMED);
        assert_int_equal(harness.sends, i);
        (void)harness_recover(); /* The worker finds what waits here, and leaves it alone. */
        assert_int_equal(harness.sends, i);
        harness_answer(IDEM_OUTCOME_SUCCESS);
        EXPECT_REPLY(requests[i - 1], "answer 201");
        EXPECT_REPLY(requests[i], "pending");
        assert_int_equal(state_of(&requests[i]), IDEM_INTENT_DISPATCHED);
    }
    harness_answer(IDEM_OUTCOME_SUCCESS);
    expect_replies(0, 4, "answer 201"); /* Each its own claim, none replayed. */
    assert_int_equal(harness.sends, 4);
    assert_int_equal(bad_stats().deferred, 3);
}

/*
 * Its claim is written and nobody says so, so a worker may find it before its own command has run
 * again. Then both learn that it must wait, one after the other, and it waits once.
 */
static void a_claim_that_both_its_request_and_a_worker_put_to_wait_waits_once(void **state)
{
    (void)state;
    bad_limits->sends_max = 1;
    harness.hangs = IDEM_STR("bad");
    harness_start();
    pay_bad(0, 1);
    harness_fate(BATCH_UNKNOWN_DONE);
    pay_bad(1, 2);
    assert_int_equal(harness_recover(), 1);
    assert_int_equal(bad_stats().waiting, 0);
    harness_pass(SECOND); /* Its own command runs again, and then the worker's. */
    assert_int_equal(bad_stats().waiting, 1);
    assert_int_equal(bad_stats().deferred, 1);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    expect_replies(0, 2, "answer 201");
    assert_int_equal(harness.sends, 2);
    pay_bad(2, 2 + IDEM_READ_DUE_MAX / 6 + 1); /* No place to wait in was lost. */
    assert_int_equal(bad_stats().waiting, IDEM_READ_DUE_MAX / 6);
    run_out();
}

static void waiting_for_a_place_ends_at_the_deadline_and_the_payment_goes_on(void **state)
{
    (void)state;
    bad_limits->sends_max = 1;
    harness.hangs = IDEM_STR("bad");
    harness_start();
    pay_bad(0, 2);
    harness_pass(10 * SECOND);
    expect_replies(0, 2, "operation");
    assert_int_equal(state_of(&requests[1]), IDEM_INTENT_CLAIMED);
    harness_submit(pay(&other, keys[1], "bad")); /* It joins, and holds no place of its own. */
    EXPECT_REPLY(other, "pending");
    assert_int_equal(bad_stats().waiting, 1);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    assert_int_equal(harness.sends, 2);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(other, "answer 201 replayed");
}

static void where_only_flights_are_wanting_nobody_is_held_back(void **state)
{
    (void)state;
    bad_limits->sends_max = 50;
    harness.options.recoveries_max = 64;
    harness.hangs = IDEM_STR("bad");
    harness_start();
    pay_bad(0, 40);
    assert_int_equal(harness.sends, 4);
    assert_int_equal(bad_stats().waiting, 0);
    assert_int_equal(harness_recover(), 36); /* The worker finds the claims, as it ever did. */
    assert_int_equal(harness.sends, 40);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    expect_replies(0, 40, "answer 201");
}

static void nobody_overtakes_who_waits(void **state)
{
    (void)state;
    bad_limits->rate_per_s = 1;
    harness_start();
    pay_bad(0, 3);
    assert_int_equal(harness.sends, 1);
    assert_int_equal(bad_stats().waiting, 2);
    harness.mono_us += SECOND; /* There is a token, and who comes now is behind two others. */
    idem_engine_submit(harness.engine, pay(&requests[3], "bad-3", "bad"));
    harness_step();
    EXPECT_REPLY(requests[1], "answer 201");
    EXPECT_REPLY(requests[2], "pending");
    EXPECT_REPLY(requests[3], "pending");
    run_out();
}

static void an_intent_that_ends_while_it_waits_is_not_sent(void **state)
{
    (void)state;
    static struct idem_task task;
    struct idem_list done = { .count = 0 };
    bad_limits->sends_max = 1;
    harness.hangs = IDEM_STR("bad");
    harness_start();
    pay_bad(0, 2);
    task = (struct idem_task){ .done = &done };
    task.item.command = (struct idem_command){
        .kind = IDEM_COMMAND_EVIDENCE,
        .scope = requests[1].item.command.scope,
        .evidence = {
            .source = IDEM_SOURCE_LISTING,
            .outcome = IDEM_OUTCOME_SUCCESS,
            .entry = IDEM_STR("bad"),
            .account = IDEM_STR("account"),
            .region = IDEM_STR("region"),
            .effect_id = requests[1].outcome.intent.effect.id,
            .amount_minor = 10000,
            .currency = IDEM_STR("CNY"),
        },
    };
    idem_engine_run(harness.engine, &task);
    harness_step();
    EXPECT_REPLY(requests[1], "answer 201");
    assert_int_equal(done.count, 1);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    assert_int_equal(bad_stats().waiting, 0);
    assert_int_equal(harness.sends, 1);
}

/* Another process on the store does this to the intent of `request`. */
static void elsewhere(const struct idem_request *request, struct idem_command command)
{
    static struct idem_outcome outcome;
    static struct idem_store_item item;
    struct idem_store_batch batch = { .answer = IDEM_STORE_NONE };
    struct idem_list batches = { .count = 0 };
    struct idem_list reads = { .count = 0 };
    item = (struct idem_store_item){ .command = command, .outcome = &outcome };
    item.command.scope = request->item.command.scope;
    idem_list_push(&batch.items, &item.node);
    idem_store_submit(harness.store, &batch);
    idem_store_reap(harness.store, &batches, &reads);
    assert_int_equal(batches.count, 1);
    assert_int_equal(item.answer, IDEM_STORE_DURABLE);
}

/* Its turn comes to send, and what it has to do by then is to ask. */
static void what_another_process_sent_while_it_waited_is_asked_about(void **state)
{
    (void)state;
    bad_limits->sends_max = 1;
    harness.hangs = IDEM_STR("bad");
    harness_start();
    pay_bad(0, 2);
    const struct idem_uid token = { .bytes = { 9 } };
    elsewhere(&requests[1],
              (struct idem_command){ .kind = IDEM_COMMAND_DUE, .token = token, .slot = true });
    elsewhere(&requests[1], (struct idem_command){
                                .kind = IDEM_COMMAND_EVIDENCE,
                                .token = { .bytes = { 8 } },
                                .evidence = { .source = IDEM_SOURCE_SEND,
                                              .outcome = IDEM_OUTCOME_UNKNOWN,
                                              .token = token,
                                              .send_no = 1,
                                              .amount_minor = -1 },
                            });
    assert_int_equal(state_of(&requests[1]), IDEM_INTENT_UNKNOWN);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(requests[1], "answer 201");
    assert_int_equal(harness.queries, 1);
    assert_int_equal(harness.sends, 1);
}

/* ---- bounds ---- */

static void beyond_all_bounds_it_is_unavailable_and_nothing_is_written(void **state)
{
    (void)state;
    const size_t places = IDEM_READ_DUE_MAX / 6; /* Of two entries each has a third. */
    const size_t all = 1 + places + 10;
    bad_limits->sends_max = 1;
    harness.options.requests_max = 40; /* A quarter may wait without a record. */
    harness.hangs = IDEM_STR("bad");
    harness_start();
    pay_bad(0, all + 1);
    expect_replies(0, all, "pending");
    assert_int_equal(bad_stats().waiting, places);
    assert_int_equal(bad_stats().backlog, 10);
    EXPECT_REPLY(requests[all], "problem unavailable");
    assert_true(requests[all].retry_after_us > 0);
    assert_int_equal(bad_stats().turned_away, 1);
    assert_int_equal(state_of(&requests[all]), IDEM_INTENT_NONE);
    assert_int_equal(state_of(&requests[all - 1]), IDEM_INTENT_NONE);
    harness_submit(pay(&good, "good", "good"));
    EXPECT_REPLY(good, "answer 201");

    harness_answer(IDEM_OUTCOME_SUCCESS); /* One moves up everywhere. */
    EXPECT_REPLY(requests[0], "answer 201");
    assert_int_equal(bad_stats().waiting, places);
    assert_int_equal(bad_stats().backlog, 9);
    assert_int_equal(state_of(&requests[1 + places]), IDEM_INTENT_CLAIMED);

    harness_pass(10 * SECOND);
    expect_replies(1, 2 + places, "operation");
    expect_replies(2 + places, all, "problem unavailable");
    assert_int_equal(state_of(&requests[all - 1]), IDEM_INTENT_NONE);
    run_out();
    assert_int_equal(harness.sends, 1 + places + 1 + 1);
}

/* So it is not tried again, when it is not executed, behind the end of its caller's wait. */
static void what_a_request_has_waited_without_a_record_counts(void **state)
{
    (void)state;
    const size_t last = 1 + IDEM_READ_DUE_MAX / 6;
    bad_limits->sends_max = 1;
    harness.options.requests_max = 40;
    harness.hangs = IDEM_STR("bad");
    harness_start();
    pay_bad(0, last + 1);
    int64_t end_us = idem_clock_wall_us(&harness.clock) + 10 * SECOND;
    harness_pass(4 * SECOND);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    assert_int_equal(state_of(&requests[last]), IDEM_INTENT_CLAIMED);
    assert_int_equal(harness_operation(&requests[last])->intent.patience_us, end_us);
    run_out();
}

static void draining_ends_who_waits_without_a_record(void **state)
{
    (void)state;
    bad_limits->sends_max = 1;
    harness.options.requests_max = 40;
    harness.hangs = IDEM_STR("bad");
    harness_start();
    pay_bad(0, 1 + IDEM_READ_DUE_MAX / 6 + 2);
    idem_engine_drain(harness.engine);
    harness_step();
    EXPECT_REPLY(requests[1 + IDEM_READ_DUE_MAX / 6], "problem unavailable");
    EXPECT_REPLY(requests[1], "pending");
    harness_answer(IDEM_OUTCOME_SUCCESS);
    assert_int_equal(harness.sends, 1); /* Nothing new leaves. */
    idem_engine_hurry(harness.engine);
    harness_step();
    EXPECT_REPLY(requests[1], "operation");
}

/* More is due than may wait here: it must not hide what others have due. */
static void what_is_due_beyond_the_bounds_hides_nobody(void **state)
{
    (void)state;
    const size_t count = IDEM_READ_DUE_MAX + 20;
    harness.options.sends_max = 0; /* The process before only claimed, and died. */
    harness_start();
    pay_bad(0, count);
    harness_submit(pay(&good, "good", "good"));
    harness_pass(10 * SECOND);
    EXPECT_REPLY(good, "operation");
    idem_engine_destroy(harness.engine);

    struct idem_error error = { .text = "" };
    bad_limits->sends_max = 1;
    bad_limits->recoveries_max = 2;
    harness.options.sends_max = 4;
    harness.hangs = IDEM_STR("bad");
    assert_int_equal(idem_engine_create(&harness.options, &harness.engine, &error), IDEM_OK);
    for (int i = 0; i < 60 && state_of(&good) != IDEM_INTENT_SUCCEEDED; i++) {
        (void)harness_recover();
        assert_true(bad_stats().sends <= 1);
    }
    assert_int_equal(state_of(&good), IDEM_INTENT_SUCCEEDED);
    assert_int_equal(harness_sent(good.outcome.intent.effect.id), 1);
    run_out();
    for (size_t i = 0; i < count; i++) { /* Sent once, or given back to its caller. */
        assert_true(harness_sent(requests[i].outcome.intent.effect.id) <= 1);
        enum idem_intent_state at = state_of(&requests[i]);
        bool is_over = at == IDEM_INTENT_SUCCEEDED || at == IDEM_INTENT_RELEASED;
        assert_true(is_over);
    }
}

static void a_restart_finds_what_waited(void **state)
{
    (void)state;
    bad_limits->sends_max = 1;
    harness.hangs = IDEM_STR("bad");
    harness_start();
    pay_bad(0, 5);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    idem_engine_drain(harness.engine);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    idem_engine_hurry(harness.engine);
    harness_step();
    expect_replies(2, 5, "operation");
    assert_true(idem_engine_idle(harness.engine));
    idem_engine_destroy(harness.engine);

    struct idem_error error = { .text = "" };
    assert_int_equal(idem_engine_create(&harness.options, &harness.engine, &error), IDEM_OK);
    assert_int_equal(harness_recover(), 3);
    assert_int_equal(harness.sends, 3); /* One by one, as before. */
    assert_int_equal(bad_stats().waiting, 2);
    run_out();
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(state_of(&requests[i]), IDEM_INTENT_SUCCEEDED);
        assert_int_equal(harness_sent(requests[i].outcome.intent.effect.id), 1);
    }
}

/* ---- rate and back-off ---- */

static void the_rate_holds_and_the_engine_wakes_for_it(void **state)
{
    (void)state;
    bad_limits->rate_per_s = 2;
    harness_start();
    pay_bad(0, 4);
    assert_int_equal(harness.sends, 2);
    assert_int_equal(idem_engine_wake_us(harness.engine), harness.mono_us + SECOND / 2);
    harness_pass(SECOND / 2 - 1);
    assert_int_equal(harness.sends, 2);
    harness_pass(1);
    assert_int_equal(harness.sends, 3);
    harness_submit(pay(&good, "good", "good"));
    EXPECT_REPLY(good, "answer 201");
    harness_pass(SECOND / 2);
    expect_replies(0, 4, "answer 201");
}

static void a_provider_is_left_alone_as_long_as_it_wishes(void **state)
{
    (void)state;
    bad_limits->pause_max_us = 60 * SECOND;
    harness.outcome = IDEM_OUTCOME_NOT_EXECUTED;
    harness.retry_after_us = 20 * SECOND; /* Longer than its caller waits. */
    harness_start();
    pay_bad(0, 1);
    EXPECT_REPLY(requests[0], "problem not-executed");
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    harness.retry_after_us = 0;
    harness_pass(15 * SECOND);
    pay_bad(1, 3);
    assert_int_equal(harness.sends, 1);
    assert_int_equal(bad_stats().pause_us, 5 * SECOND);
    harness_submit(pay(&good, "good", "good"));
    EXPECT_REPLY(good, "answer 201");
    assert_int_equal(idem_engine_wake_us(harness.engine), harness.mono_us + 5 * SECOND);
    harness_pass(5 * SECOND - 1);
    expect_replies(1, 3, "pending");
    harness_pass(1);
    expect_replies(1, 3, "answer 201");
}

static void no_wish_is_believed_for_longer_than_configured(void **state)
{
    (void)state;
    bad_limits->pause_max_us = 2 * SECOND;
    harness.outcome = IDEM_OUTCOME_NOT_EXECUTED;
    harness.retry_after_us = INT64_MAX / 4;
    harness_start();
    pay_bad(0, 1);
    assert_int_equal(bad_stats().pause_us, 2 * SECOND);
    run_out();
}

static void refusing_without_a_wish_pauses_a_little_and_longer(void **state)
{
    (void)state;
    static const int64_t pauses_ms[] = { 100, 200, 400, 800, 1000, 1000 };
    bad_limits->pause_max_us = 60 * SECOND;
    harness.outcome = IDEM_OUTCOME_NOT_EXECUTED;
    harness.rules.retry_first_us = 60 * SECOND; /* No intent comes back in between. */
    harness_start();
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(pauses_ms); i++) {
        pay_bad(i, i + 1);
        EXPECT_REPLY(requests[i], "problem not-executed");
        assert_int_equal(bad_stats().pause_us, pauses_ms[i] * IDEM_US_PER_MS);
        harness_pass(bad_stats().pause_us);
    }
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    pay_bad(6, 7);
    EXPECT_REPLY(requests[6], "answer 201");
    assert_int_equal(bad_stats().pause_us, 0);
}

/* ---- workers ---- */

static void questions_that_hang_take_only_their_share_of_the_workers(void **state)
{
    (void)state;
    bad_limits->recoveries_max = 2;
    harness.options.sends_max = 8;
    harness.outcome = IDEM_OUTCOME_UNKNOWN;
    harness_start();
    pay_bad(0, 4);
    harness_submit(pay(&good, "good", "good"));
    assert_int_equal(harness.sends, 5);
    harness.hold = true;
    for (int i = 0; i < 4; i++) {
        (void)harness_recover();
    }
    assert_int_equal(bad_stats().recoveries, 2);
    assert_int_equal(harness.held.count, 3); /* Two of one entry, and the other's. */
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(good, "answer 201");
    run_out();
    for (size_t i = 0; i < 4; i++) { /* Who was refused a place is asked about later. */
        assert_int_equal(state_of(&requests[i]), IDEM_INTENT_SUCCEEDED);
    }
}

static void second_sends_that_hang_leave_the_workers_places_for_questions(void **state)
{
    (void)state;
    for (unsigned kind = IDEM_EFFECT_KIND_CHARGE; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
        entries[0].capability[kind].dedup_window_us = 3600 * SECOND;
    }
    bad_limits->recoveries_max = 4;
    harness.options.recoveries_max = 16;
    harness.options.sends_max = 16;
    harness.outcome = IDEM_OUTCOME_UNKNOWN;
    harness_start();
    pay_bad(0, 4);
    harness.outcome = IDEM_OUTCOME_NOT_FOUND;
    (void)harness_recover();
    assert_int_equal(harness.queries, 4);
    harness.hangs = IDEM_STR("bad"); /* All four are to be sent again. */
    for (int i = 0; i < 4; i++) {
        (void)harness_recover();
    }
    assert_int_equal(harness.sends, 4 + 2);
    assert_int_equal(bad_stats().recoveries, 2);
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    for (int i = 0; i < 4; i++) {
        (void)harness_recover();
        harness_pass(10 * SECOND);
    }
    assert_true(harness.queries > 4);
    assert_int_equal(bad_stats().recoveries, 2); /* They still hang. */
    run_out();
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(state_of(&requests[i]), IDEM_INTENT_SUCCEEDED);
    }
}

/* ---- all together ---- */

static uint64_t dice = 7;

static unsigned roll(unsigned sides)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((dice >> 33) % sides);
}

static void random_step(unsigned round, size_t i)
{
    static const enum idem_outcome_kind outcomes[] = {
        IDEM_OUTCOME_SUCCESS, IDEM_OUTCOME_UNKNOWN,    IDEM_OUTCOME_NOT_EXECUTED,
        IDEM_OUTCOME_SUCCESS, IDEM_OUTCOME_PROCESSING, IDEM_OUTCOME_REFUSED_FINAL,
    };
    harness.hold = roll(3) == 0;
    harness.port_full = roll(20) == 0;
    harness.outcome = outcomes[roll(6)];
    harness.retry_after_us = roll(4) == 0 ? (int64_t)roll(5) * SECOND : 0;
    (void)snprintf(keys[i], sizeof(keys[i]), "%u-%u", round, (unsigned)i);
    idem_engine_submit(harness.engine, pay(&requests[i], keys[i], roll(2) == 0 ? "bad" : "good"));
    if (roll(10) == 0) {
        harness_fate(BATCH_NOTHING + roll(3));
    }
    harness_pass(roll(2) == 0 ? 0 : (int64_t)roll(900) * IDEM_US_PER_MS);
    (void)harness_recover();
    if (roll(3) == 0) {
        harness_answer(outcomes[roll(3)]);
    }
}

static void whatever_happens_the_limits_hold_and_every_ticket_comes_back(void **state)
{
    (void)state;
    harness_start();
    for (unsigned round = 0; round < 40; round++) {
        idem_engine_destroy(harness.engine);
        breaker_set();
        bad_limits->sends_max = roll(4);
        bad_limits->recoveries_max = roll(4);
        bad_limits->rate_per_s = roll(3) * 3;
        bad_limits->pause_max_us = (int64_t)roll(2) * 5 * SECOND;
        entries[1].limits.sends_max = roll(3);
        struct idem_error error = { .text = "" };
        assert_int_equal(idem_engine_create(&harness.options, &harness.engine, &error), IDEM_OK);
        for (size_t i = 0; i < MANY; i++) {
            random_step(round, i);
            struct idem_budget_stats stats = bad_stats();
            assert_true(bad_limits->sends_max == 0 || stats.sends <= bad_limits->sends_max);
            assert_true(bad_limits->recoveries_max == 0 ||
                        stats.recoveries <= bad_limits->recoveries_max);
        }
        harness.port_full = false;
        run_out();
        for (size_t i = 0; i < MANY; i++) {
            assert_true(harness_done(&requests[i]));
        }
        expect_all_tickets_back();
        harness.sent_count = 0;
        assert_true(idem_engine_idle(harness.engine));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SLOT_TEST(a_provider_that_hangs_takes_only_its_share),
        SLOT_TEST(who_waits_is_claimed_and_sent_once_in_turn),
        SLOT_TEST(a_claim_that_both_its_request_and_a_worker_put_to_wait_waits_once),
        SLOT_TEST(waiting_for_a_place_ends_at_the_deadline_and_the_payment_goes_on),
        SLOT_TEST(where_only_flights_are_wanting_nobody_is_held_back),
        SLOT_TEST(nobody_overtakes_who_waits),
        SLOT_TEST(an_intent_that_ends_while_it_waits_is_not_sent),
        SLOT_TEST(beyond_all_bounds_it_is_unavailable_and_nothing_is_written),
        SLOT_TEST(what_another_process_sent_while_it_waited_is_asked_about),
        SLOT_TEST(what_a_request_has_waited_without_a_record_counts),
        SLOT_TEST(draining_ends_who_waits_without_a_record),
        SLOT_TEST(what_is_due_beyond_the_bounds_hides_nobody),
        SLOT_TEST(a_restart_finds_what_waited),
        SLOT_TEST(the_rate_holds_and_the_engine_wakes_for_it),
        SLOT_TEST(a_provider_is_left_alone_as_long_as_it_wishes),
        SLOT_TEST(no_wish_is_believed_for_longer_than_configured),
        SLOT_TEST(refusing_without_a_wish_pauses_a_little_and_longer),
        SLOT_TEST(questions_that_hang_take_only_their_share_of_the_workers),
        SLOT_TEST(second_sends_that_hang_leave_the_workers_places_for_questions),
        SLOT_TEST(whatever_happens_the_limits_hold_and_every_ticket_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
