/*
 * The worker that looks for open intents whose time has come.
 *
 * Goal: after a death everything that was left under a lease is handed over at once, first and in
 * the order of its rows, and ends without a second send; from then on whatever is due is handed
 * over in time, whoever planned it (P8); a worker that stops hands over nothing more.
 *
 * Method: the engine of harness.h, whose clock only moves when a test moves it. A process that dies
 * is an engine whose calls hang and whose store writes nothing any more; the next one opens the
 * same SQLite file. What needs no death runs on the memory store. Waiting is by the store's own
 * wake.
 */
#include "worker/recovery.h"

#include "base/attr.h"
#include "unit/engine/harness.h"
#include "unit/store/fixture.h"

#define MS          IDEM_US_PER_MS
#define LOOK_EVERY  SECOND
#define FULL_PAUSE  (20 * MS)
#define INTENTS_MAX 150

static struct fixture fixture;
static struct idem_recovery *worker; /* NULL: none runs. */
static struct idem_request requests[INTENTS_MAX];
static char keys[INTENTS_MAX][8];

static bool store_is_busy(void)
{
    const struct idem_store *store = harness.store;
    if (harness.batches_held) {
        return false;
    }
    return store->batches_in_flight > 0 || (store->reads_in_flight > 0 && !harness.reads_held);
}

/* Engine and worker go on until nothing is under way but what the test holds. */
static void go_on(void)
{
    int quiet = 0;
    while (quiet < 3) { /* A hand-over needs a step, which needs a commit, which needs a step. */
        idem_engine_step(harness.engine);
        if (worker != NULL) {
            idem_recovery_step(worker);
        }
        quiet += 1;
        if (store_is_busy()) {
            fixture_wait(&fixture);
            quiet = 0;
        }
    }
}

static void pass(int64_t us)
{
    harness.mono_us += us;
    go_on();
}

/* What hangs is answered, and settled before the clock moves: a store's thread reads it. */
static void answer(enum idem_outcome_kind outcome)
{
    harness_answer(outcome);
    go_on();
}

static int64_t wake_in(void)
{
    return idem_recovery_wake_us(worker) - harness.mono_us;
}

/* It could do nothing with what it finds, so it does not look and need not be woken for it. */
static void expect_no_look(void)
{
    assert_int_equal(idem_recovery_wake_us(worker), INT64_MAX);
    harness.reads_held = true;
    pass(2 * LOOK_EVERY);
    assert_int_equal(harness.store->reads_in_flight, 0);
    harness.reads_held = false;
}

/* A process without a worker. */
static void start_engine(void)
{
    fixture_open(&fixture);
    harness_start_on(fixture.store);
}

static void start_worker(void)
{
    assert_int_equal(idem_recovery_create(harness.engine, &harness.clock, &worker), IDEM_OK);
}

static void stop_worker(void)
{
    idem_recovery_stop(worker);
    go_on();
    idem_recovery_destroy(worker);
    worker = NULL;
}

/* Whatever comes back from the wire after this is not written any more. */
static void die(void)
{
    if (worker != NULL) {
        stop_worker();
    }
    harness.store->broken = true;
    if (harness.held.count > 0) {
        harness_fate(BATCH_DOWN);
        harness_answer(IDEM_OUTCOME_UNKNOWN);
    }
    assert_int_equal(harness.fate_count, 0);
    assert_true(idem_engine_idle(harness.engine));
    idem_engine_destroy(harness.engine);
    fixture_close(&fixture);
}

static int begin(enum fixture_kind kind)
{
    harness_begin();
    fixture_init(&fixture, kind);
    fixture.options.rules = &harness.rules;
    fixture.options.clock = &harness.clock;
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
    stop_worker();
    assert_true(idem_engine_idle(harness.engine));
    idem_engine_destroy(harness.engine);
    fixture_deinit(&fixture);
    return 0;
}

/* Payments of callers who do not wait, in one batch; their rows are in the order of `requests`. */
static void pay_many(size_t count)
{
    assert_true(count <= INTENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "k%d", (int)i);
        harness_pay(&requests[i], keys[i]);
        requests[i].respond_async = true;
        idem_engine_submit(harness.engine, &requests[i]);
    }
    go_on();
    for (size_t i = 0; i < count; i++) {
        EXPECT_REPLY(requests[i], "operation");
        int64_t row = requests[i].outcome.intent.row;
        assert_true(row > (i == 0 ? 0 : requests[i - 1].outcome.intent.row));
    }
}

static const struct idem_read *operation_of(const struct idem_request *request)
{
    static struct idem_read read;
    read = (struct idem_read){
        .kind = IDEM_READ_OPERATION_BY_SCOPE,
        .principal = IDEM_STR("shop"),
        .scope = request->item.command.scope,
    };
    struct idem_list done = { .count = 0 };
    read.done = &done;
    idem_engine_read(harness.engine, &read);
    go_on();
    assert_ptr_equal(idem_list_pop(&done), &read.node);
    assert_int_equal(read.answer, IDEM_STORE_DURABLE);
    assert_true(read.found);
    return &read;
}

static void expect_all_succeeded(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct idem_read *read = operation_of(&requests[i]);
        assert_int_equal(read->intent.state, IDEM_INTENT_SUCCEEDED);
        assert_int_equal(read->send_count, 1);
        assert_int_equal(harness_sent(read->intent.effect.id), 1);
    }
}

/* A process sends `count` payments, hears nothing and dies; time stands still. */
static void leave(size_t count)
{
    harness.hold = true;
    start_engine();
    pay_many(count);
    assert_int_equal(harness.sends, count);
    die();
    harness.hold = false;
}

/* ---- what was left ---- */

static void a_question_that_died_with_its_process_is_asked_again_at_once(void **state)
{
    (void)state;
    harness.hold = true;
    start_engine();
    start_worker();
    pay_many(1);
    answer(IDEM_OUTCOME_UNKNOWN);
    assert_int_equal(harness.queries, 1); /* It hangs, and its process dies. */
    assert_int_equal(operation_of(&requests[0])->intent.state, IDEM_INTENT_UNKNOWN);
    die();

    harness.hold = false;
    start_engine();
    start_worker();
    go_on();
    assert_true(idem_recovery_caught_up(worker));
    assert_int_equal(harness.queries, 2);
    expect_all_succeeded(1);
    assert_int_equal(harness.sends, 1);
}

static void what_a_dead_process_left_is_asked_about_at_once_and_not_sent_again(void **state)
{
    (void)state;
    harness.hold = true;
    start_engine();
    pay_many(1);
    const struct idem_read *read = operation_of(&requests[0]);
    assert_int_equal(read->intent.state, IDEM_INTENT_DISPATCHED);
    int64_t due_us = read->intent.due_us;
    assert_true(due_us > idem_clock_wall_us(&harness.clock));
    die();

    harness.hold = false;
    start_engine();
    start_worker();
    assert_false(idem_recovery_caught_up(worker));
    assert_true(due_us > idem_clock_wall_us(&harness.clock)); /* By time alone it is not due. */
    go_on();
    assert_true(idem_recovery_caught_up(worker));
    assert_int_equal(harness.queries, 1);
    expect_all_succeeded(1);
    pass(120 * SECOND);
    assert_int_equal(harness.sends, 1);
    assert_int_equal(harness.queries, 1);
}

static void what_was_claimed_and_never_sent_is_sent_by_the_next_process(void **state)
{
    (void)state;
    harness.options.sends_max = 0;
    start_engine();
    pay_many(1);
    assert_int_equal(harness.sends, 0);
    die();
    start_engine();
    start_worker();
    go_on();
    assert_true(idem_recovery_caught_up(worker));
    assert_int_equal(harness.queries, 0);
    expect_all_succeeded(1);
}

static void a_lease_of_this_process_is_not_left(void **state)
{
    (void)state;
    harness.hold = true;
    start_engine();
    pay_many(1);
    start_worker();
    go_on();
    assert_true(idem_recovery_caught_up(worker));
    assert_int_equal(harness.queries, 0);
    answer(IDEM_OUTCOME_SUCCESS);
    expect_all_succeeded(1);
}

/* The calls that hang are those of requests[from] and on, in this order; returns how many. */
static size_t expect_asked_in_order(size_t from)
{
    size_t count = 0;
    IDEM_LIST_FOREACH (node, &harness.held) {
        const struct idem_call *call = IDEM_CONTAINER_OF(node, struct idem_call, node);
        struct idem_str sent = { .data = harness.sent_ids[from + count],
                                 .len = IDEM_EFFECT_ID_LEN };
        assert_int_equal(call->kind, IDEM_CALL_QUERY);
        assert_true(idem_str_equal(call->effect.id, sent));
        count += 1;
    }
    return count;
}

static void expect_left_in_rounds(size_t count, size_t room)
{
    harness.options.recoveries_max = room;
    leave(count);
    harness.hold = true;
    start_engine();
    start_worker();
    go_on();
    size_t asked = 0;
    for (size_t rounds = 0; asked < count; rounds++) {
        assert_true(rounds <= count / room);
        size_t hanging = expect_asked_in_order(asked);
        assert_true(hanging > 0);
        assert_true(hanging <= room);
        asked += hanging;
        assert_true(asked == count || !idem_recovery_caught_up(worker));
        if (hanging == room) {
            expect_no_look();
        }
        answer(IDEM_OUTCOME_SUCCESS);
        pass(FULL_PAUSE);
    }
    assert_true(idem_recovery_caught_up(worker));
    assert_int_equal(harness.sends, count);
    assert_int_equal(harness.queries, count);
    expect_all_succeeded(count);
}

static void more_than_there_is_room_for_is_handed_over_in_the_order_of_rows(void **state)
{
    (void)state;
    expect_left_in_rounds(INTENTS_MAX, 10);
}

static void more_than_one_look_can_hold_is_handed_over_in_the_order_of_rows(void **state)
{
    (void)state;
    expect_left_in_rounds(INTENTS_MAX, INTENTS_MAX);
}

static void as_many_as_one_look_can_hold_needs_another_look_to_be_all(void **state)
{
    (void)state;
    expect_left_in_rounds(IDEM_READ_DUE_MAX, IDEM_READ_DUE_MAX);
}

static void what_was_left_comes_before_what_is_due(void **state)
{
    (void)state;
    harness.options.recoveries_max = 1;
    leave(2);
    harness.hold = true;
    harness.options.sends_max = 0; /* The new process only claims: due at once. */
    start_engine();
    static struct idem_request late;
    harness_pay(&late, "late");
    late.respond_async = true;
    idem_engine_submit(harness.engine, &late);
    go_on();
    EXPECT_REPLY(late, "operation");
    start_worker();
    go_on();
    for (size_t i = 0; i < 2; i++) {
        assert_false(i == 0 && idem_recovery_caught_up(worker));
        assert_int_equal(expect_asked_in_order(i), 1);
        assert_int_equal(harness.sends, 2);
        answer(IDEM_OUTCOME_SUCCESS);
        pass(FULL_PAUSE);
    }
    assert_int_equal(harness.sends, 3);
    answer(IDEM_OUTCOME_SUCCESS);
    assert_int_equal(operation_of(&late)->intent.state, IDEM_INTENT_SUCCEEDED);
    expect_all_succeeded(2);
}

/* Nobody had them in hand, and their time has not come: they are not what was left. */
static void what_was_left_for_later_waits_for_its_time(void **state)
{
    (void)state;
    size_t count = IDEM_READ_DUE_MAX + 1;
    harness.rules.retry_first_us = 5 * SECOND;
    harness.outcome = IDEM_OUTCOME_NOT_EXECUTED;
    start_engine();
    pay_many(count);
    die();
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    harness.options.recoveries_max = count;
    start_engine();
    start_worker();
    go_on();
    assert_true(idem_recovery_caught_up(worker));
    assert_int_equal(idem_engine_stats(harness.engine)->commands, 0);
    pass(5 * SECOND - 1);
    assert_int_equal(harness.sends, count);
    pass(1);
    pass(FULL_PAUSE); /* One look does not hold them all. */
    assert_int_equal(harness.sends, 2 * count);
    assert_int_equal(harness.queries, 0);
    assert_int_equal(operation_of(&requests[count - 1])->intent.state, IDEM_INTENT_SUCCEEDED);
}

static void a_look_that_was_not_answered_is_repeated(void **state)
{
    (void)state;
    leave(2);
    start_engine();
    start_worker();
    harness.reads_refused = 2;
    for (int i = 0; i < 2; i++) {
        pass(i == 0 ? 0 : LOOK_EVERY);
        assert_false(idem_recovery_caught_up(worker));
        assert_int_equal(harness.queries, 0);
        assert_int_equal(wake_in(), LOOK_EVERY);
    }
    pass(LOOK_EVERY - 1);
    assert_int_equal(harness.queries, 0);
    pass(1);
    assert_true(idem_recovery_caught_up(worker));
    assert_int_equal(harness.queries, 2);
    expect_all_succeeded(2);
}

static void stopping_drops_what_was_read_and_the_next_process_finds_it(void **state)
{
    (void)state;
    leave(3);
    start_engine();
    start_worker();
    harness.batches_held = true;
    go_on();
    assert_int_equal(harness.store->reads_in_flight, 1);
    idem_recovery_stop(worker);
    harness.batches_held = false;
    go_on();
    assert_int_equal(idem_recovery_wake_us(worker), INT64_MAX);
    pass(10 * SECOND);
    assert_true(idem_engine_idle(harness.engine));
    assert_false(idem_recovery_caught_up(worker));
    assert_int_equal(harness.queries, 0);
    die();

    start_engine();
    start_worker();
    go_on();
    assert_int_equal(harness.queries, 3);
    expect_all_succeeded(3);
}

/* ---- what is due ---- */

static void with_nothing_left_it_has_caught_up_and_looks_once_a_second(void **state)
{
    (void)state;
    start_engine();
    start_worker();
    assert_false(idem_recovery_caught_up(worker));
    go_on();
    assert_true(idem_recovery_caught_up(worker));
    assert_int_equal(wake_in(), LOOK_EVERY);
}

/* Its send was silent: the first question is due at once, and a caller waits for the answer. */
static void a_hint_makes_it_look_without_waiting(void **state)
{
    (void)state;
    start_engine();
    start_worker();
    go_on();
    assert_int_equal(wake_in(), LOOK_EVERY);
    harness.hold = true;
    harness_submit(harness_pay(&requests[0], "k"));
    harness.hold = false;
    harness_answer(IDEM_OUTCOME_UNKNOWN);
    assert_int_equal(harness.queries, 0);
    go_on();
    assert_int_equal(harness.queries, 1);
    EXPECT_REPLY(requests[0], "answer 201");
    assert_int_equal(harness.sends, 1);
}

static void a_hint_about_later_makes_it_look_then(void **state)
{
    (void)state;
    harness.rules.retry_first_us = 300 * MS;
    harness.outcome = IDEM_OUTCOME_NOT_EXECUTED;
    start_engine();
    start_worker();
    go_on();
    idem_engine_submit(harness.engine, harness_pay(&requests[0], "k"));
    go_on();
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    assert_int_equal(wake_in(), 300 * MS);
    pass(300 * MS - 1);
    assert_int_equal(harness.sends, 1);
    pass(1);
    assert_int_equal(harness.sends, 2);
    EXPECT_REPLY(requests[0], "answer 201");
}

/* What is planned while a look is under way may not be among what it sees. */
static void a_hint_is_kept_while_a_look_is_under_way(void **state)
{
    (void)state;
    harness.rules.retry_first_us = 300 * MS;
    harness.outcome = IDEM_OUTCOME_NOT_EXECUTED;
    start_engine();
    start_worker();
    go_on();
    harness.reads_held = true;
    pass(LOOK_EVERY);
    assert_int_equal(harness.store->reads_in_flight, 1);
    idem_engine_submit(harness.engine, harness_pay(&requests[0], "k"));
    go_on();
    assert_int_equal(harness.sends, 1);
    assert_int_equal(idem_recovery_wake_us(worker), INT64_MAX); /* The look wakes the owner. */
    harness.outcome = IDEM_OUTCOME_SUCCESS;
    harness.reads_held = false;
    go_on();
    assert_int_equal(wake_in(), 300 * MS);
    pass(300 * MS);
    assert_int_equal(harness.sends, 2);
    EXPECT_REPLY(requests[0], "answer 201");
}

/* Something is planned for 300 ms from now, and no hint of it is left. */
static void plan_without_a_hint(void)
{
    harness.outcome = IDEM_OUTCOME_NOT_EXECUTED;
    harness_submit(harness_pay(&requests[0], "k"));
    assert_int_equal(idem_engine_take_due_hint(harness.engine),
                     idem_clock_wall_us(&harness.clock) + 300 * MS);
    harness.outcome = IDEM_OUTCOME_SUCCESS;
}

static void the_next_due_time_of_the_store_is_kept(void **state)
{
    (void)state;
    harness.rules.retry_first_us = 300 * MS;
    start_engine();
    plan_without_a_hint();
    start_worker();
    go_on();
    assert_true(idem_recovery_caught_up(worker));
    assert_int_equal(wake_in(), 300 * MS);
    pass(300 * MS - 1);
    assert_int_equal(harness.sends, 1);
    pass(1);
    assert_int_equal(harness.sends, 2);
    EXPECT_REPLY(requests[0], "answer 201");
}

static void what_nobody_hinted_at_is_found_within_a_second(void **state)
{
    (void)state;
    harness.rules.retry_first_us = 300 * MS;
    start_engine();
    start_worker();
    go_on();
    plan_without_a_hint(); /* As if another process had written it. */
    assert_int_equal(wake_in(), LOOK_EVERY);
    pass(LOOK_EVERY - 1);
    assert_int_equal(harness.sends, 1);
    pass(1);
    assert_int_equal(harness.sends, 2);
    EXPECT_REPLY(requests[0], "answer 201");
}

static void more_due_than_there_is_room_for_is_handed_over_in_rounds(void **state)
{
    (void)state;
    harness.options.sends_max = 0;
    harness.options.recoveries_max = 8;
    harness.hold = true;
    start_engine();
    pay_many(INTENTS_MAX);
    start_worker();
    go_on();
    for (size_t sent = 0; sent < INTENTS_MAX;) {
        size_t left = INTENTS_MAX - sent;
        assert_int_equal(harness.held.count, left < 8 ? left : 8);
        sent += harness.held.count;
        assert_int_equal(harness.sends, sent);
        answer(IDEM_OUTCOME_SUCCESS);
        pass(FULL_PAUSE);
    }
    expect_all_succeeded(INTENTS_MAX);
}

static void a_look_for_due_ones_that_was_not_answered_is_repeated(void **state)
{
    (void)state;
    harness.options.sends_max = 0;
    start_engine();
    start_worker();
    go_on();
    harness.reads_refused = 1;
    pay_many(1);
    assert_int_equal(harness.reads_refused, 0);
    assert_int_equal(harness.sends, 0);
    assert_true(idem_recovery_caught_up(worker));
    pass(LOOK_EVERY - 1);
    assert_int_equal(harness.sends, 0);
    pass(1);
    expect_all_succeeded(1);
}

static void after_stopping_nothing_due_is_handed_over(void **state)
{
    (void)state;
    harness.options.sends_max = 0;
    start_engine();
    start_worker();
    go_on();
    idem_recovery_stop(worker);
    pay_many(2);
    expect_no_look();
    assert_int_equal(harness.sends, 0);
    assert_true(idem_engine_idle(harness.engine));
}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, begin_sqlite, end)
#define ON_MEMORY(test) cmocka_unit_test_setup_teardown(test, begin_memory, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SQLITE(a_question_that_died_with_its_process_is_asked_again_at_once),
        ON_SQLITE(what_a_dead_process_left_is_asked_about_at_once_and_not_sent_again),
        ON_SQLITE(what_was_claimed_and_never_sent_is_sent_by_the_next_process),
        ON_SQLITE(a_lease_of_this_process_is_not_left),
        ON_SQLITE(more_than_there_is_room_for_is_handed_over_in_the_order_of_rows),
        ON_SQLITE(more_than_one_look_can_hold_is_handed_over_in_the_order_of_rows),
        ON_SQLITE(as_many_as_one_look_can_hold_needs_another_look_to_be_all),
        ON_SQLITE(what_was_left_comes_before_what_is_due),
        ON_SQLITE(what_was_left_for_later_waits_for_its_time),
        ON_SQLITE(a_look_that_was_not_answered_is_repeated),
        ON_SQLITE(stopping_drops_what_was_read_and_the_next_process_finds_it),
        ON_MEMORY(with_nothing_left_it_has_caught_up_and_looks_once_a_second),
        ON_MEMORY(a_hint_makes_it_look_without_waiting),
        ON_MEMORY(a_hint_about_later_makes_it_look_then),
        ON_MEMORY(a_hint_is_kept_while_a_look_is_under_way),
        ON_MEMORY(the_next_due_time_of_the_store_is_kept),
        ON_MEMORY(what_nobody_hinted_at_is_found_within_a_second),
        ON_MEMORY(more_due_than_there_is_room_for_is_handed_over_in_rounds),
        ON_MEMORY(a_look_for_due_ones_that_was_not_answered_is_repeated),
        ON_MEMORY(after_stopping_nothing_due_is_handed_over),
    };
    return cmocka_run_group_tests_name("worker recovery", tests, NULL, NULL);
}
