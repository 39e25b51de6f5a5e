/*
 * The batch logic under rows that miss, refuse and get lost.
 *
 * Goal: every ending of a transaction gives each command the answer that is true for it, nothing of
 * a batch that was rolled back stays, and nothing runs after a commit that nobody can vouch for.
 *
 * Method: the memory backend's real rows, with a script between them and run.c that lets single
 * calls end otherwise. The script counts transactions.
 */
#include "store/run.h"

#include "base/attr.h"
#include "lib/test.h"
#include "store/memory/memory_internal.h"
#include "unit/store/fixture.h"

/* What the script does to the rows. Calls are counted from one, over the whole test. */
struct script {
    const struct idem_rows_ops *real;
    struct idem_rows_ops ops;
    int begins;
    int intent_writes;
    int commits;
    int miss_write;               /* This write of an intent misses; 0: none. */
    int miss_again;               /* And this one. */
    const struct idem_scope *bad; /* Every write of this intent misses. */
    int refuse_write;             /* This one is refused. */
    int refuse_from;              /* And all from this one on; 0: none. */
    int lose_commit;              /* This commit is lost, after it was done. */
    bool lose_rollback;
    bool wrong_node;
};

static struct script script;

static enum idem_rows_step scripted_begin(struct idem_rows *rows)
{
    script.begins += 1;
    enum idem_rows_step step = script.real->begin(rows);
    return script.wrong_node ? IDEM_ROWS_WRONG_NODE : step;
}

static enum idem_rows_step scripted_write_intent(struct idem_rows *rows,
                                                 struct idem_intent_write *write)
{
    script.intent_writes += 1;
    bool bad = script.bad != NULL && memcmp(script.bad, &write->row.scope, 16) == 0;
    if (bad || script.intent_writes == script.miss_write ||
        script.intent_writes == script.miss_again) {
        return IDEM_ROWS_MISS;
    }
    if (script.intent_writes == script.refuse_write ||
        (script.refuse_from != 0 && script.intent_writes >= script.refuse_from)) {
        return IDEM_ROWS_REFUSED;
    }
    return script.real->write_intent(rows, write);
}

static enum idem_rows_step scripted_commit(struct idem_rows *rows)
{
    script.commits += 1;
    enum idem_rows_step step = script.real->commit(rows);
    return script.commits == script.lose_commit ? IDEM_ROWS_LOST : step;
}

static enum idem_rows_step scripted_rollback(struct idem_rows *rows)
{
    enum idem_rows_step step = script.real->rollback(rows);
    return script.lose_rollback ? IDEM_ROWS_LOST : step;
}

struct bench {
    struct fixture fixture; /* For commands, rules and clock; its store stays closed. */
    struct idem_memory_rows memory;
    struct idem_run run;
    struct idem_store_batch batch;
    struct call calls[3];
};

static int setup(void **state)
{
    static struct bench bench;
    static const char *const names[] = { "a", "b", "c" };
    fixture_init(&bench.fixture, FIXTURE_MEMORY);
    idem_memory_rows_init(&bench.memory);
    script = (struct script){ .real = bench.memory.rows.ops, .ops = *bench.memory.rows.ops };
    script.ops.begin = scripted_begin;
    script.ops.write_intent = scripted_write_intent;
    script.ops.commit = scripted_commit;
    script.ops.rollback = scripted_rollback;
    bench.memory.rows.ops = &script.ops;
    struct idem_run_opening opening = {
        .incarnation = 7,
        .opened_us = FIXTURE_START_US - 9,
        .memory_since_us = FIXTURE_START_US - IDEM_US_PER_DAY,
    };
    idem_run_init(&bench.run, &bench.memory.rows, &bench.fixture.options, opening);

    bench.batch = (struct idem_store_batch){ .answer = IDEM_STORE_NONE };
    for (size_t i = 0; i < 3; i++) {
        struct order order = {
            .principal = "merchant-1",
            .key = names[i],
            .order_no = names[i],
            .amount_minor = 100,
        };
        call_pay(&bench.fixture, &bench.calls[i], &order);
        idem_list_push(&bench.batch.items, &bench.calls[i].item.node);
    }
    *state = &bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    idem_memory_rows_deinit(&bench->memory);
    fixture_deinit(&bench->fixture);
    return 0;
}

static void expect_answers(const struct bench *bench, const char *expected)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "%s: %s %s %s", idem_store_answer_name(bench->batch.answer),
                   idem_store_answer_name(bench->calls[0].item.answer),
                   idem_store_answer_name(bench->calls[1].item.answer),
                   idem_store_answer_name(bench->calls[2].item.answer));
    assert_string_equal(text, expected);
}

static void an_opening_leaves_a_horizon_and_the_latest_time(void **state)
{
    static const struct {
        struct idem_run_marks found;
        int64_t newest_us;
        int64_t opened_us;
        struct idem_run_marks left;
    } rows[] = {
        { { 0, 0 }, 0, 50, { 50, 50 } },  /* Empty. */
        { { 0, 0 }, 40, 50, { 40, 50 } }, /* Records of an older idem, */
        { { 0, 0 }, 60, 50, { 60, 60 } }, /* also of a clock that ran ahead. */
        { { 0, 70 }, 40, 50, { 40, 70 } },
        { { 20, 40 }, 40, 50, { 20, 50 } }, /* As usual. */
        { { 20, 40 }, 45, 30, { 20, 45 } }, /* A clock that was put back: the newest record, */
        { { 20, 40 }, 35, 30, { 20, 40 } }, /* the last mark, */
        { { 55, 0 }, 35, 30, { 55, 55 } },  /* or the horizon holds it. */
        { { 20, 40 }, 45, 45 + IDEM_US_PER_DAY, { 20, 45 + IDEM_US_PER_DAY } }, /* A quiet day. */
        { { 20, 40 }, 45, 46 + IDEM_US_PER_DAY, { 20, 45 } }, /* Longer: the next mark says it. */
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_run_marks left =
            idem_run_marks_open(rows[i].found, rows[i].newest_us, rows[i].opened_us);
        print_message("# row %zu\n", i);
        assert_int_equal(left.horizon_us, rows[i].left.horizon_us);
        assert_int_equal(left.seen_us, rows[i].left.seen_us);
    }
}

static void one_batch_is_one_transaction(void **state)
{
    struct bench *bench = *state;
    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "durable: durable durable durable");
    assert_int_equal(script.begins, 1);
    assert_int_equal(script.commits, 1);
    assert_int_equal(bench->calls[0].item.command.incarnation, 7);
    assert_int_equal(bench->calls[0].item.command.opened_us, FIXTURE_START_US - 9);
    assert_int_equal(bench->calls[0].item.command.memory_since_us,
                     FIXTURE_START_US - IDEM_US_PER_DAY);
}

static void a_miss_makes_every_command_run_alone(void **state)
{
    struct bench *bench = *state;
    script.miss_write = 2;
    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "durable: durable durable durable");
    assert_int_equal(script.begins, 1 + 3);
    assert_int_equal(script.commits, 3);
    assert_int_equal(bench->memory.intents.count, 3);
    assert_int_equal(bench->memory.payments.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(bench->calls[i].outcome.intent.row, i + 1);
    }
}

static void a_command_that_misses_again_alone_is_decided_anew(void **state)
{
    struct bench *bench = *state;
    script.miss_write = 1; /* Together: a. */
    script.miss_again = 3; /* Alone: a is written, b misses, b again, c. */
    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "durable: durable durable durable");
    assert_int_equal(script.begins, 1 + 4);
    assert_int_equal(bench->memory.payments.count, 3);
}

static void a_command_that_keeps_missing_is_the_only_conflict(void **state)
{
    struct bench *bench = *state;
    script.bad = &bench->calls[1].item.command.scope;
    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "conflict: durable conflict durable");
    assert_int_equal(script.begins, 1 + 1 + IDEM_STORE_TRIES_MAX + 1);
    assert_int_equal(bench->memory.intents.count, 2);
    assert_int_equal(bench->memory.payments.count, 2); /* The payment of the miss is undone. */

    script.bad = NULL;
    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "durable: durable durable durable");
    assert_int_equal(bench->memory.payments.count, 3);
    assert_int_equal(bench->calls[1].outcome.release.kind, IDEM_RELEASE_SEND);
}

static void a_refused_batch_leaves_nothing_and_runs_later(void **state)
{
    struct bench *bench = *state;
    script.refuse_write = 3;
    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "nothing: nothing nothing nothing");
    assert_int_equal(bench->memory.intents.count, 0);
    assert_int_equal(bench->memory.payments.count, 0);
    assert_int_equal(bench->memory.events.count, 0);
    assert_int_equal(bench->memory.sends.count, 0);

    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "durable: durable durable durable");
    assert_int_equal(bench->memory.payments.count, 3);
}

static void a_rolled_back_update_leaves_the_rows_as_they_were(void **state)
{
    struct bench *bench = *state;
    idem_run_batch(&bench->run, &bench->batch);
    while (idem_list_pop(&bench->batch.items) != NULL) {
    }
    static struct call settled;
    call_evidence(&bench->fixture, &settled, &bench->calls[0], IDEM_SOURCE_SEND,
                  IDEM_OUTCOME_SUCCESS);
    idem_list_push(&bench->batch.items, &settled.item.node);
    size_t events = bench->memory.events.count;
    script.refuse_write = script.intent_writes + 1;
    idem_run_batch(&bench->run, &bench->batch);
    assert_int_equal(settled.item.answer, IDEM_STORE_NOTHING);
    assert_int_equal(bench->memory.events.count, events);

    script.refuse_write = 0;
    idem_run_batch(&bench->run, &bench->batch);
    assert_int_equal(settled.item.answer, IDEM_STORE_DURABLE);
    assert_int_equal(settled.outcome.intent.state, IDEM_INTENT_SUCCEEDED);
    assert_int_equal(settled.outcome.intent.version, 2); /* The first try left no trace. */
}

static void after_a_lost_commit_nothing_runs(void **state)
{
    struct bench *bench = *state;
    script.lose_commit = 1;
    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "unknown: unknown unknown unknown");
    assert_true(bench->run.broken);

    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "down: down down down");
    assert_int_equal(script.begins, 1);
}

static void a_commit_lost_alone_is_only_that_commands(void **state)
{
    struct bench *bench = *state;
    script.miss_write = 3;
    script.lose_commit = 2;
    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "unknown: durable unknown down");
    assert_int_equal(script.begins, 1 + 2);
}

static void a_rollback_that_fails_is_unknown(void **state)
{
    struct bench *bench = *state;
    script.refuse_write = 1;
    script.lose_rollback = true;
    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "unknown: unknown unknown unknown");
    assert_true(bench->run.broken);
}

static void a_node_that_may_not_write_says_so(void **state)
{
    struct bench *bench = *state;
    script.wrong_node = true;
    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "wrong-node: wrong-node wrong-node wrong-node");
    assert_int_equal(bench->memory.intents.count, 0);
    assert_false(bench->run.broken);
}

/* Each may have waited for somebody's lock: their callers wait for the end of the batch. */
static void a_batch_of_many_that_are_held_up_has_an_end(void **state)
{
    enum {
        MORE = 9
    };
    struct bench *bench = *state;
    static struct call more[MORE];
    static char names[MORE][8];
    for (size_t i = 0; i < MORE; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "more-%zu", i);
        struct order order = {
            .principal = "merchant-1",
            .key = names[i],
            .order_no = names[i],
            .amount_minor = 100,
        };
        call_pay(&bench->fixture, &more[i], &order);
        idem_list_push(&bench->batch.items, &more[i].item.node);
    }
    script.miss_write = 1;
    script.refuse_from = 2;
    idem_run_batch(&bench->run, &bench->batch);
    expect_answers(bench, "nothing: nothing nothing nothing");
    assert_int_equal(more[MORE - 1].item.answer, IDEM_STORE_NOTHING);
    assert_int_equal(script.intent_writes, 1 + 8);
    assert_int_equal(script.commits, 0);
}

#define RUN(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_opening_leaves_a_horizon_and_the_latest_time),
        RUN(one_batch_is_one_transaction),
        RUN(a_miss_makes_every_command_run_alone),
        RUN(a_command_that_misses_again_alone_is_decided_anew),
        RUN(a_command_that_keeps_missing_is_the_only_conflict),
        RUN(a_refused_batch_leaves_nothing_and_runs_later),
        RUN(a_rolled_back_update_leaves_the_rows_as_they_were),
        RUN(after_a_lost_commit_nothing_runs),
        RUN(a_commit_lost_alone_is_only_that_commands),
        RUN(a_rollback_that_fails_is_unknown),
        RUN(a_node_that_may_not_write_says_so),
        RUN(a_batch_of_many_that_are_held_up_has_an_end),
    };
    return cmocka_run_group_tests_name("store run", tests, NULL, NULL);
}
