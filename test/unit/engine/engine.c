/*
 * The engine's rounds, from a request to its reply.
 *
 * Goal: what a decision releases leaves once, after its commit was answered cleanly, and never
 * otherwise (P1, P2); everybody who waits gets an end (P8); at a limit the answer says so.
 *
 * Method: a real engine over the memory store with hand-driven time, a store whose answers can be
 * replaced and a provider that counts calls (harness.h). At the end of each test nothing may be in
 * flight.
 */
#include "unit/engine/harness.h"

static struct idem_request first;
static struct idem_request second;
static struct idem_request third;

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

static void a_request_is_sent_once_and_answered(void **state)
{
    (void)state;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    EXPECT_REPLY(first, "answer 201");
    assert_true(first.identified);
    assert_int_equal(harness.sends, 1);
}

static void a_final_answer_is_replayed_from_memory_and_from_the_store(void **state)
{
    (void)state;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    uint64_t commands = idem_engine_stats(harness.engine)->commands;
    harness_submit(harness_pay(&second, "k"));
    EXPECT_REPLY(second, "answer 201 replayed");
    assert_int_equal(idem_engine_stats(harness.engine)->commands, commands); /* No look at disk. */
    assert_true(
        idem_str_equal(first.outcome.intent.answer.body, second.outcome.intent.answer.body));
    harness_pay(&third, "k");
    third.item.command.accept.fingerprints[0].digest.bytes[0] = 1;
    harness_submit(&third);
    EXPECT_REPLY(third, "problem key-reused");
    assert_false(third.identified);
    assert_int_equal(harness.sends, 1);
}

static void without_a_cache_the_store_replays(void **state)
{
    (void)state;
    harness.options.cache_entries = 0;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    harness_submit(harness_pay(&second, "k"));
    EXPECT_REPLY(second, "answer 201 replayed");
    assert_int_equal(harness.sends, 1);
}

static void who_comes_while_it_runs_joins_and_gets_the_same_answer(void **state)
{
    (void)state;
    harness.hold = true;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    harness_submit(harness_pay(&second, "k"));
    EXPECT_REPLY(first, "pending");
    EXPECT_REPLY(second, "pending");
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(first, "answer 201");
    EXPECT_REPLY(second, "answer 201 replayed");
    assert_int_equal(harness.sends, 1);
}

/* Another process of the same store has learned that the send of `request` was not executed. */
static void release_elsewhere(const struct idem_request *request)
{
    static struct idem_outcome outcome;
    static struct idem_store_item item;
    struct idem_store_batch batch = { .answer = IDEM_STORE_NONE };
    struct idem_list batches = { .count = 0 };
    struct idem_list reads = { .count = 0 };
    const struct idem_intent *intent = &request->outcome.intent;
    item = (struct idem_store_item){ .outcome = &outcome };
    item.command = (struct idem_command){
        .kind = IDEM_COMMAND_EVIDENCE,
        .scope = intent->scope,
        .token = { .bytes = { 9 } },
        .evidence = {
            .source = IDEM_SOURCE_SEND,
            .outcome = IDEM_OUTCOME_NOT_EXECUTED,
            .token = intent->token,
            .send_no = 1,
            .entry = intent->effect.entry,
            .account = intent->effect.account,
            .region = intent->effect.region,
            .amount_minor = -1,
            .retry_after_us = 3600 * SECOND, /* Longer than anybody waits. */
        },
    };
    idem_list_push(&batch.items, &item.node);
    idem_store_submit(harness.store, &batch);
    idem_store_reap(harness.store, &batches, &reads);
    assert_int_equal(batches.count, 1);
    assert_int_equal(outcome.intent.state, IDEM_INTENT_RELEASED);
}

/* P3: who waits for a claim that is no more is told that somebody else's ran. */
static void a_claim_that_was_released_elsewhere_is_not_the_one_that_runs(void **state)
{
    (void)state;
    harness.hold = true;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    release_elsewhere(&first);
    harness_submit(harness_pay(&second, "k"));
    EXPECT_REPLY(first, "pending");
    EXPECT_REPLY(second, "pending");
    assert_true(second.claimed);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(first, "answer 201 replayed");
    EXPECT_REPLY(second, "answer 201");
}

static void two_first_requests_in_one_batch_make_one_call(void **state)
{
    (void)state;
    harness.hold = true;
    harness_start();
    idem_engine_submit(harness.engine, harness_pay(&first, "k"));
    idem_engine_submit(harness.engine, harness_pay(&second, "k"));
    harness_step();
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(first, "answer 201");
    EXPECT_REPLY(second, "answer 201 replayed");
    assert_int_equal(harness.sends, 1);
}

static void a_caller_may_not_want_to_wait(void **state)
{
    (void)state;
    harness.hold = true;
    harness_start();
    harness_pay(&first, "k");
    first.in_flight = IDEM_IN_FLIGHT_CONFLICT; /* The first one itself waits. */
    harness_submit(&first);
    EXPECT_REPLY(first, "pending");
    harness_pay(&second, "k");
    second.in_flight = IDEM_IN_FLIGHT_CONFLICT;
    harness_submit(&second);
    EXPECT_REPLY(second, "problem in-progress");
    assert_true(second.retry_after_us > 0);
    harness_pay(&third, "k");
    third.in_flight = IDEM_IN_FLIGHT_ACCEPT;
    harness_submit(&third);
    EXPECT_REPLY(third, "operation");
    harness_pay(&third, "other");
    third.respond_async = true;
    harness_submit(&third);
    EXPECT_REPLY(third, "operation");
    assert_true(third.identified);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(first, "answer 201");
}

static void waiting_ends_at_the_deadline_and_the_payment_goes_on(void **state)
{
    (void)state;
    harness.hold = true;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    assert_int_equal(idem_engine_wake_us(harness.engine), harness.mono_us + 10 * SECOND);
    harness_pass(10 * SECOND - 1);
    EXPECT_REPLY(first, "pending");
    harness_pass(1);
    EXPECT_REPLY(first, "operation");
    harness_answer(IDEM_OUTCOME_SUCCESS);
    harness_submit(harness_pay(&second, "k"));
    EXPECT_REPLY(second, "answer 201 replayed");
}

static void a_key_has_only_so_many_waiters(void **state)
{
    (void)state;
    harness.hold = true;
    harness.options.waiters_per_key_max = 2;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    harness_submit(harness_pay(&second, "k"));
    harness_submit(harness_pay(&third, "k"));
    EXPECT_REPLY(second, "pending");
    EXPECT_REPLY(third, "operation");
    harness_answer(IDEM_OUTCOME_SUCCESS);
}

static void an_engine_has_only_so_many_requests(void **state)
{
    (void)state;
    harness.hold = true;
    harness.options.requests_max = 2;
    harness_start();
    harness_submit(harness_pay(&first, "a"));
    harness_submit(harness_pay(&second, "b"));
    harness_submit(harness_pay(&third, "c"));
    EXPECT_REPLY(third, "problem unavailable");
    assert_true(third.retry_after_us > 0);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(second, "answer 201");
}

static void without_a_send_slot_it_is_claimed_and_sent_when_due(void **state)
{
    (void)state;
    harness.hold = true;
    harness.options.sends_max = 1;
    harness_start();
    harness_submit(harness_pay(&first, "a"));
    harness_submit(harness_pay(&second, "b"));
    assert_int_equal(harness.sends, 1);
    assert_true(idem_engine_take_due_hint(harness.engine) <= idem_clock_wall_us(&harness.clock));
    assert_int_equal(harness_recover(), 1);
    assert_int_equal(harness.sends, 2);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(first, "answer 201");
    EXPECT_REPLY(second, "answer 201"); /* It was its own claim. */
}

static void recoveries_have_a_limit_and_what_is_acted_on_is_left_alone(void **state)
{
    (void)state;
    harness.hold = true;
    harness.options.sends_max = 0;
    harness.options.recoveries_max = 1;
    harness_start();
    harness_submit(harness_pay(&first, "a"));
    harness_submit(harness_pay(&second, "b"));
    assert_int_equal(idem_engine_recovery_room(harness.engine), 1);
    assert_int_equal(harness_recover(), 1); /* The other finds no room and stays due. */
    assert_int_equal(idem_engine_recovery_room(harness.engine), 0);
    assert_int_equal(harness.sends, 1);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    assert_int_equal(harness_recover(), 1);
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(second, "answer 201");
    assert_int_equal(harness.sends, 2);
}

static void silence_is_asked_about_and_the_waiter_hears_the_answer(void **state)
{
    (void)state;
    harness.outcome = IDEM_OUTCOME_UNKNOWN;
    harness_start();
    harness_submit(harness_pay(&first, "k"));
    EXPECT_REPLY(first, "pending");
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    assert_int_equal(harness_recover(), 1);
    EXPECT_REPLY(first, "answer 201");
    assert_int_equal(harness.sends, 1);
    assert_int_equal(harness.queries, 1);
}

/* ---- what the store may say ---- */

static void an_unknown_commit_is_run_again_and_calls_once(void **state)
{
    (void)state;
    static const enum batch_fate fates[] = { BATCH_UNKNOWN_DONE, BATCH_UNKNOWN_LOST };
    harness_start();
    for (size_t i = 0; i < 2; i++) {
        const char *key = i == 0 ? "done" : "lost";
        harness.hold = true;
        harness.sends = 0;
        harness_fate(fates[i]);
        harness_fate(fates[i]);
        harness_submit(harness_pay(&first, key));
        EXPECT_REPLY(first, "pending");
        assert_int_equal(harness.sends, 0); /* Nothing leaves before a clean commit. */
        struct idem_uid token = first.item.command.token;
        harness_pass(SECOND);
        harness_pass(SECOND);
        assert_memory_equal(&first.item.command.token, &token, sizeof(token));
        assert_int_equal(harness.sends, 1);
        harness_answer(IDEM_OUTCOME_SUCCESS);
        EXPECT_REPLY(first, "answer 201");
        assert_int_equal(harness.sends, 1);
    }
}

/* Whether a process may go on is the backend's to say. */
static void an_unknown_commit_breaks_no_store_that_can_go_on(void **state)
{
    (void)state;
    static const enum batch_fate fates[] = { BATCH_UNKNOWN_DONE, BATCH_UNKNOWN_LOST };
    harness_start();
    for (size_t i = 0; i < 2; i++) {
        harness_fate(fates[i]);
        harness_submit(harness_pay(&first, i == 0 ? "done" : "lost"));
        struct idem_command ran = first.item.command;
        assert_false(harness.store->broken);
        assert_false(harness.store->stopped);
        uint64_t commands = idem_engine_stats(harness.engine)->commands;
        harness_pass(SECOND);
        EXPECT_REPLY(first, "answer 201");
        assert_int_equal(idem_engine_stats(harness.engine)->commands,
                         commands + 2); /* + evidence */
        const struct idem_command *again = &first.item.command;
        assert_memory_equal(&again->token, &ran.token, sizeof(ran.token));
        assert_memory_equal(&again->intent_id, &ran.intent_id, sizeof(ran.intent_id));
        assert_int_equal(again->noise, ran.noise);
        assert_int_equal(harness.sends, i + 1);
    }
}

static void an_unknown_commit_stays_unknown_at_the_deadline(void **state)
{
    (void)state;
    harness_start();
    for (int i = 0; i < 12; i++) {
        harness_fate(BATCH_UNKNOWN_LOST);
    }
    harness_submit(harness_pay(&first, "k"));
    harness_pass(11 * SECOND);
    EXPECT_REPLY(first, "problem outcome-unknown");
    assert_int_equal(harness.sends, 0);
}

static void nothing_written_is_unavailable_and_the_key_is_free(void **state)
{
    (void)state;
    static const enum batch_fate fates[] = { BATCH_NOTHING, BATCH_DOWN, BATCH_CONFLICT };
    harness_start();
    for (size_t i = 0; i < 3; i++) {
        harness_fate(fates[i]);
        harness_submit(harness_pay(&first, "k"));
        EXPECT_REPLY(first, "problem unavailable");
    }
    assert_int_equal(harness.sends, 0);
    harness_submit(harness_pay(&first, "k"));
    EXPECT_REPLY(first, "answer 201");
    assert_int_equal(harness.sends, 1);
}

static void evidence_is_repeated_until_it_is_durable_and_the_call_never(void **state)
{
    (void)state;
    static const enum batch_fate fates[] = {
        BATCH_UNKNOWN_DONE, BATCH_DOWN, BATCH_UNKNOWN_LOST, BATCH_NOTHING, BATCH_CONFLICT,
    };
    harness_start();
    harness_fate(BATCH_AS_IT_IS);
    for (size_t i = 0; i < 5; i++) {
        harness_fate(fates[i]);
    }
    harness_submit(harness_pay(&first, "k"));
    for (int i = 0; i < 12; i++) {
        harness_pass(SECOND / 2);
    }
    EXPECT_REPLY(first, "answer 201");
    assert_int_equal(harness.sends, 1);
}

static void evidence_that_nothing_left_is_repeated_too(void **state)
{
    (void)state;
    harness_start();
    harness.port_full = true;
    harness_fate(BATCH_AS_IT_IS);
    harness_fate(BATCH_UNKNOWN_DONE);
    harness_fate(BATCH_DOWN);
    harness_pay(&first, "k");
    first.item.command.accept.wait_us = SECOND / 2; /* The first pause is longer. */
    harness_submit(&first);
    harness_pass(SECOND / 4);
    harness_pass(SECOND / 4 - 1);
    EXPECT_REPLY(first, "problem not-executed");
    assert_int_equal(harness.sends, 0);
    harness.port_full = false;
    harness_submit(harness_pay(&second, "k"));
    EXPECT_REPLY(second, "answer 201");
    assert_int_equal(harness.sends, 1);
}

/* Its text must not lie in the outcome, which an unanswered commit has spoilt. */
static void evidence_that_nothing_left_still_says_whose_it_is_when_it_is_repeated(void **state)
{
    (void)state;
    static const enum batch_fate fates[] = { BATCH_UNKNOWN_LOST, BATCH_UNKNOWN_DONE };
    for (size_t i = 0; i < 2; i++) {
        harness_begin();
        harness_start();
        harness.port_full = true;
        harness_fate(BATCH_AS_IT_IS); /* The claim. */
        harness_fate(fates[i]);       /* The evidence. */
        harness_pay(&first, "k");
        first.item.command.accept.wait_us = SECOND / 2; /* The first pause is longer. */
        harness_submit(&first);
        EXPECT_REPLY(first, "pending");
        harness_pass(SECOND / 4);
        EXPECT_REPLY(first, "problem not-executed");
        const struct idem_read *read = harness_operation(&first);
        assert_int_equal(read->intent.state, IDEM_INTENT_RELEASED); /* Elsewhere's is parked. */
        assert_int_equal(read->send_count, 1);
        assert_int_equal(read->sends[0].state, IDEM_SEND_NOT_EXECUTED);
        assert_int_equal(harness.sends, 0);
        if (i == 0) {
            harness_end(); /* The last one is the teardown's. */
        }
    }
}

static void a_store_that_must_not_go_on_ends_everything_as_unknown(void **state)
{
    (void)state;
    harness.hold = true;
    harness_start();
    harness_submit(harness_pay(&first, "a"));
    harness_fate(BATCH_UNKNOWN_DONE);
    harness.store->broken = true;
    harness_submit(harness_pay(&second, "b"));
    EXPECT_REPLY(second, "problem unavailable");
    harness_answer(IDEM_OUTCOME_SUCCESS); /* Its settling stays unknown here. */
    harness_pass(10 * SECOND);
    EXPECT_REPLY(first, "operation");
    harness.store->broken = false;
}

static void a_low_reserve_refuses_claims_and_settles(void **state)
{
    (void)state;
    harness.hold = true;
    harness_start();
    harness_submit(harness_pay(&first, "a"));
    idem_engine_set_reserve_low(harness.engine, true);
    harness_submit(harness_pay(&second, "b"));
    EXPECT_REPLY(second, "problem unavailable");
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(first, "answer 201");
    harness_submit(harness_pay(&third, "a"));
    EXPECT_REPLY(third, "answer 201 replayed");
}

/* ---- stopping ---- */

static void draining_refuses_new_work_and_lets_the_rest_end(void **state)
{
    (void)state;
    harness.hold = true;
    harness_start();
    harness_submit(harness_pay(&first, "a"));
    idem_engine_drain(harness.engine);
    harness_submit(harness_pay(&second, "b"));
    EXPECT_REPLY(second, "problem unavailable");
    assert_false(idem_engine_idle(harness.engine));
    harness_answer(IDEM_OUTCOME_SUCCESS);
    EXPECT_REPLY(first, "answer 201");
    assert_true(idem_engine_idle(harness.engine));
}

static void hurrying_ends_waits_and_calls_that_never_left(void **state)
{
    (void)state;
    harness.hold = true;
    harness_start();
    harness_submit(harness_pay(&first, "a"));
    harness_submit(harness_pay(&second, "b"));
    idem_engine_drain(harness.engine);
    idem_engine_hurry(harness.engine);
    harness_step();
    EXPECT_REPLY(first, "operation");
    EXPECT_REPLY(second, "operation");
    assert_true(idem_engine_idle(harness.engine));
}

static void a_key_is_given_up_through_the_same_door(void **state)
{
    (void)state;
    harness_start();
    harness_pay(&first, "k");
    first.item.command.abandon = (struct idem_abandon){
        .principal = IDEM_STR("shop"),
        .key = IDEM_STR("k"),
        .endpoint = IDEM_ENDPOINT_PAYMENTS_CREATE,
    };
    first.item.command.kind = IDEM_COMMAND_ABANDON;
    harness_submit(&first);
    EXPECT_REPLY(first, "answer 409");
    harness_submit(harness_pay(&second, "k"));
    EXPECT_REPLY(second, "answer 409 replayed");
    assert_int_equal(harness.sends, 0);
}

/* ---- many ---- */

static struct idem_request requests[REQUESTS_MAX];
static char keys[REQUESTS_MAX][8];

static uint64_t dice(uint64_t below)
{
    harness.noise = harness.noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (harness.noise >> 24) % below;
}

static void random_moment(size_t *submitted)
{
    if (*submitted < REQUESTS_MAX && dice(3) != 0) {
        struct idem_request *request = &requests[*submitted];
        (void)snprintf(keys[*submitted], sizeof(keys[0]), "k%d", (int)dice(REQUESTS_MAX / 2));
        harness_pay(request, keys[*submitted]);
        request->in_flight = (enum idem_in_flight)dice(IDEM_IN_FLIGHT_COUNT);
        request->respond_async = dice(8) == 0;
        request->item.command.accept.wait_us = (int64_t)dice(4) * SECOND;
        idem_engine_submit(harness.engine, request);
        *submitted += 1;
    }
    if (dice(10) == 0 && harness.fate_count < 4) {
        harness_fate((enum batch_fate)dice(BATCH_CONFLICT + 1));
    }
    harness.port_full = dice(20) == 0;
    harness.hold = dice(3) == 0;
    harness.outcome = (enum idem_outcome_kind)(1 + dice(IDEM_OUTCOME_COUNT - 1));
    harness_pass((int64_t)dice(SECOND));
    if (dice(4) == 0) {
        harness_answer((enum idem_outcome_kind)(1 + dice(IDEM_OUTCOME_COUNT - 1)));
    }
    if (dice(6) == 0) {
        (void)harness_recover();
    }
    (void)harness_done(&requests[0]);
}

/* Each call was granted by a send of its own, and more than one only after the last was closed. */
static void expect_calls_were_granted(const struct idem_request *request)
{
    const struct idem_read *read = harness_operation(request);
    if (!read->found) {
        return;
    }
    size_t open_count = 0;
    for (size_t i = 0; i < read->send_count; i++) {
        open_count += read->sends[i].state == IDEM_SEND_OPEN ? 1 : 0;
    }
    assert_true(open_count <= 1); /* This provider does not deduplicate. */
    assert_true(harness_sent(read->intent.effect.id) <= read->send_count);
}

static void a_thousand_requests_of_all_kinds_all_end(void **state)
{
    (void)state;
    harness.options.sends_max = 8;
    harness.options.recoveries_max = 4;
    harness.options.requests_max = 64;
    harness_start();
    size_t submitted = 0;
    while (submitted < REQUESTS_MAX) {
        random_moment(&submitted);
    }
    harness.hold = false;
    harness.port_full = false;
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    harness.fate_count = 0;
    for (int i = 0; i < 30; i++) {
        harness_answer(IDEM_OUTCOME_SUCCESS);
        harness_pass(5 * SECOND);
    }
    size_t answered = 0;
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
        expect_calls_were_granted(&requests[i]);
        assert_true(harness_done(&requests[i]));
        answered += requests[i].reply == IDEM_REPLY_ANSWER ? 1 : 0;
    }
    assert_true(answered > REQUESTS_MAX / 10);
    /* At quiet, every key has an end or somebody to look after it. */
    for (int i = 0; i < 2000 && harness_recover() > 0; i++) {
        harness_pass(60 * SECOND);
    }
    assert_true(idem_engine_idle(harness.engine));
}

#define ENGINE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(a_request_is_sent_once_and_answered),
        ENGINE_TEST(a_final_answer_is_replayed_from_memory_and_from_the_store),
        ENGINE_TEST(without_a_cache_the_store_replays),
        ENGINE_TEST(who_comes_while_it_runs_joins_and_gets_the_same_answer),
        ENGINE_TEST(a_claim_that_was_released_elsewhere_is_not_the_one_that_runs),
        ENGINE_TEST(two_first_requests_in_one_batch_make_one_call),
        ENGINE_TEST(a_caller_may_not_want_to_wait),
        ENGINE_TEST(waiting_ends_at_the_deadline_and_the_payment_goes_on),
        ENGINE_TEST(a_key_has_only_so_many_waiters),
        ENGINE_TEST(an_engine_has_only_so_many_requests),
        ENGINE_TEST(without_a_send_slot_it_is_claimed_and_sent_when_due),
        ENGINE_TEST(recoveries_have_a_limit_and_what_is_acted_on_is_left_alone),
        ENGINE_TEST(silence_is_asked_about_and_the_waiter_hears_the_answer),
        ENGINE_TEST(an_unknown_commit_is_run_again_and_calls_once),
        ENGINE_TEST(an_unknown_commit_breaks_no_store_that_can_go_on),
        ENGINE_TEST(an_unknown_commit_stays_unknown_at_the_deadline),
        ENGINE_TEST(nothing_written_is_unavailable_and_the_key_is_free),
        ENGINE_TEST(evidence_is_repeated_until_it_is_durable_and_the_call_never),
        ENGINE_TEST(evidence_that_nothing_left_is_repeated_too),
        ENGINE_TEST(evidence_that_nothing_left_still_says_whose_it_is_when_it_is_repeated),
        ENGINE_TEST(a_store_that_must_not_go_on_ends_everything_as_unknown),
        ENGINE_TEST(a_low_reserve_refuses_claims_and_settles),
        ENGINE_TEST(draining_refuses_new_work_and_lets_the_rest_end),
        ENGINE_TEST(hurrying_ends_waits_and_calls_that_never_left),
        ENGINE_TEST(a_key_is_given_up_through_the_same_door),
        ENGINE_TEST(a_thousand_requests_of_all_kinds_all_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
