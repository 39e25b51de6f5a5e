/*
 * The worker that learns what an older copy of the store has missed.
 *
 * Goal: every effect that the provider lists is known here before anything is sent again, whatever
 * fails in between; the mode ends by itself only when every provider was read to its end, and at
 * once when an operator says so.
 *
 * Method: a process on a store that is opened as restored, and a provider whose listing is an array
 * (process.h, harness.h). What was learned is seen by asking again: a key whose effect is listed is
 * answered and nothing is sent.
 */
#include "worker/restore.h"

#include "unit/worker/process.h"

#define MARGIN  (600 * SECOND)
#define YEAR    (365 * IDEM_US_PER_DAY)
#define EFFECTS 150
#define AT_ONCE 32
#define PAGES   3 /* Of EFFECTS. */

static struct idem_request request;
static struct idem_listed listed[EFFECTS + 1];
static char ids[EFFECTS + 1][IDEM_EFFECT_ID_LEN];
static char keys[EFFECTS + 1][8];
static struct idem_task task;
static struct idem_list done;

/* Effects of this many keys k0, k1, ... are at the provider. */
static void list_effects(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(keys[i], sizeof(keys[0]), "k%d", (int)i);
        const struct idem_accept *accept = &harness_pay(&request, keys[i])->item.command.accept;
        ids[i][0] = 'c';
        memcpy(ids[i] + 1, accept->effect_id_tail.data, IDEM_EFFECT_ID_LEN - 1);
        listed[i] = (struct idem_listed){
            .effect_id = { .data = ids[i], .len = IDEM_EFFECT_ID_LEN },
            .order_no = idem_str_from(keys[i]),
            .amount_minor = accept->amount_minor,
            .currency = IDEM_STR("CNY"),
            .reference = IDEM_STR("provider-7"),
            .happened_us = idem_clock_wall_us(&harness.clock),
        };
    }
    harness.listed = listed;
    harness.listed_count = count;
}

static int begin(enum fixture_kind kind)
{
    process_init(kind);
    harness.entry.listing = true;
    process.fixture.options.restored = true;
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
    (void)begin(FIXTURE_SQLITE);
    process.fixture.options.restored = false; /* There is something that can be an older copy. */
    process_start();
    process_end();
    process.fixture.options.restored = true;
    return 0;
}

static int end(void **state)
{
    (void)state;
    process_deinit();
    return 0;
}

static struct idem_restore_stats stats(void)
{
    return idem_restore_stats(process.restore);
}

static int64_t longest_way_us(void)
{
    return harness.rules.lease_us + harness.entry.request_timeout_us + harness.entry.settle_us;
}

static void start(void)
{
    process_start();
    process_start_restore();
}

static const char *pay(const char *key)
{
    idem_engine_submit(harness.engine, harness_pay(&request, key));
    process_go_on();
    return reply_name(&request);
}

/* Each key is answered from what was listed. */
static void expect_all_known(size_t count)
{
    size_t sends = harness.sends;
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(pay(keys[i]), "answer 201");
    }
    assert_int_equal(harness.sends, sends);
    assert_string_equal(pay("new"), "answer 201");
    assert_int_equal(harness.sends, sends + 1);
}

static void a_store_that_was_not_restored_asks_nothing(void **state)
{
    (void)state;
    process.fixture.options.restored = false;
    list_effects(1);
    start();
    process_pass(IDEM_US_PER_DAY);
    assert_int_equal(harness.listings, 0);
    assert_false(stats().restored);
    assert_false(stats().needs_operator);
    assert_int_equal(idem_restore_wake_us(process.restore), INT64_MAX);
    assert_true(idem_restore_idle(process.restore));
}

static void nothing_is_read_while_something_may_still_arrive(void **state)
{
    (void)state;
    list_effects(1);
    start();
    assert_int_equal(stats().begins_us - idem_clock_wall_us(&harness.clock), longest_way_us());
    assert_string_equal(pay("new"), "problem unavailable");
    assert_int_equal(process_wake_in(), longest_way_us());
    process_pass(longest_way_us() - 1);
    assert_int_equal(harness.listings, 0);
    assert_true(stats().restored);
    process_pass(1);
    assert_int_equal(harness.listings, 1);
    assert_int_equal(harness.listed_to_us, idem_clock_wall_us(&harness.clock) + MARGIN);
    assert_false(stats().restored);
}

/* A server's clock may be the later one: what was sent before the start happened before that. */
static void a_clock_that_is_behind_the_stores_hides_nothing(void **state)
{
    (void)state;
    process_start();
    harness.store->opened_us = idem_clock_wall_us(&harness.clock) + IDEM_US_PER_DAY;
    process_start_restore();
    process_pass(longest_way_us());
    assert_int_equal(harness.listed_to_us, harness.store->opened_us + longest_way_us() + MARGIN);
}

static void the_listing_is_read_from_before_the_newest_record(void **state)
{
    (void)state;
    process.fixture.options.restored = false;
    process_start();
    assert_string_equal(pay("old"), "answer 201");
    int64_t newest_us = idem_clock_wall_us(&harness.clock);
    process_end();
    harness.mono_us += IDEM_US_PER_DAY;
    process.fixture.options.restored = true;
    start();
    assert_in_range(harness.store->newest_us, newest_us - SECOND, newest_us + SECOND);
    assert_int_equal(stats().from_us, harness.store->newest_us - MARGIN);
    process_pass(longest_way_us());
    assert_int_equal(harness.listed_from_us, harness.store->newest_us - MARGIN);
    assert_false(harness.store->restored);
}

static void every_page_is_read_and_the_mode_ends(void **state)
{
    (void)state;
    list_effects(EFFECTS);
    start();
    process_pass(longest_way_us());
    assert_int_equal(harness.listings, PAGES);
    assert_int_equal(stats().listed, EFFECTS);
    assert_int_equal(stats().failures, 0);
    assert_in_range(harness.most[IDEM_COMMAND_EVIDENCE], 1, AT_ONCE);
    assert_false(harness.store->restored);
    assert_int_equal(idem_restore_wake_us(process.restore), INT64_MAX);
    expect_all_known(EFFECTS);
}

static void what_is_open_here_is_settled(void **state)
{
    (void)state;
    process.fixture.options.restored = false;
    process_start();
    harness.hold = true;
    idem_engine_submit(harness.engine, harness_pay(&request, "k0"));
    process_go_on();
    harness_answer(IDEM_OUTCOME_UNKNOWN);
    process_go_on(); /* The clock moves only once that is written. */
    process_pass(IDEM_US_PER_DAY);
    assert_string_equal(reply_name(&request), "operation");
    process_end();
    process.fixture.options.restored = true;
    list_effects(1);
    start();
    harness_pay(&request, "k0");
    request.item.command.accept.wait_us = IDEM_US_PER_DAY;
    idem_engine_submit(harness.engine, &request);
    process_go_on();
    assert_string_equal(reply_name(&request), "pending");
    process_pass(longest_way_us());
    assert_string_equal(reply_name(&request), "answer 201 replayed"); /* Who waits hears it. */
    assert_false(harness.store->restored);
    assert_string_equal(pay("k0"), "answer 201 replayed");
    assert_int_equal(harness.sends, 1);
}

static void ids_of_others_are_left_alone(void **state)
{
    (void)state;
    list_effects(3);
    listed[0].effect_id = IDEM_STR("20260101-4711");
    listed[1].effect_id = IDEM_STR("");
    start();
    process_pass(longest_way_us());
    assert_int_equal(stats().listed, 3);
    assert_int_equal(stats().foreign, 2);
    assert_false(harness.store->restored);
    assert_string_equal(pay("k2"), "answer 201");
    assert_int_equal(harness.sends, 0);
}

static void a_page_that_fails_is_asked_for_again_and_nothing_is_skipped(void **state)
{
    (void)state;
    list_effects(EFFECTS);
    start();
    harness.listings_full = true;
    process_pass(longest_way_us());
    assert_int_equal(process_wake_in(), SECOND);
    harness.listings_full = false;
    harness.listings_failed = 8;
    static const int64_t pauses[] = { 1, 2, 4, 8, 16, 32, 60, 60, 60 };
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(process_wake_in(), pauses[i] * SECOND);
        assert_int_equal(harness.listings, i);
        process_pass(pauses[i] * SECOND);
    }
    assert_int_equal(stats().failures, 9);
    assert_int_equal(harness.listings, 8 + PAGES);
    assert_int_equal(stats().listed, EFFECTS);
    assert_false(harness.store->restored);
    expect_all_known(EFFECTS);
}

static void what_the_store_did_not_take_is_told_again(void **state)
{
    (void)state;
    static const enum batch_fate fates[] = {
        BATCH_NOTHING, BATCH_AS_IT_IS,     BATCH_CONFLICT, BATCH_UNKNOWN_DONE,
        BATCH_DOWN,    BATCH_UNKNOWN_LOST, BATCH_NOTHING,
    };
    list_effects(EFFECTS);
    start();
    for (size_t i = 0; i < 7; i++) {
        harness_fate(fates[i]);
    }
    process_pass(longest_way_us());
    assert_true(harness.store->restored);
    assert_true(process_wake_in() > 0);
    for (int i = 0; i < 20; i++) {
        process_pass(SECOND);
    }
    assert_int_equal(harness.fate_count, 0);
    assert_true(stats().failures > 0);
    assert_false(harness.store->restored);
    expect_all_known(EFFECTS);
}

/* ---- what the store was told, in order ---- */

static size_t told[4 * EFFECTS]; /* Places in `listed`. */
static size_t told_count;
static size_t refused; /* This one is written, but nobody says so; EFFECTS: none. */
static void (*submit_on)(struct idem_store *store, struct idem_store_batch *batch);

static size_t place_of(const struct idem_scope *scope)
{
    for (size_t i = 0; i < harness.listed_count; i++) {
        struct idem_scope other;
        assert_true(idem_effect_id_scope(listed[i].effect_id, &other));
        if (memcmp(&other, scope, sizeof(other)) == 0) {
            return i;
        }
    }
    return EFFECTS;
}

/* The memory store has run the batch when this returns. */
static void submit_noted(struct idem_store *store, struct idem_store_batch *batch)
{
    submit_on(store, batch);
    IDEM_LIST_FOREACH (node, &batch->items) {
        struct idem_store_item *item = IDEM_CONTAINER_OF(node, struct idem_store_item, node);
        if (item->command.kind == IDEM_COMMAND_EVIDENCE) {
            told[told_count] = place_of(&item->command.scope);
            item->answer = told[told_count] == refused ? IDEM_STORE_NOTHING : item->answer;
            told_count += 1;
        }
    }
}

static void note_what_is_told(void)
{
    told_count = 0;
    refused = EFFECTS;
    submit_on = harness.wrapped.submit;
    harness.wrapped.submit = submit_noted;
}

static void expect_told(size_t first, size_t end)
{
    assert_int_equal(told_count, end - first);
    for (size_t i = 0; i < told_count; i++) {
        assert_int_equal(told[i], first + i);
    }
}

static void what_stands_behind_a_refused_effect_is_told_again_after_it(void **state)
{
    (void)state;
    list_effects(10);
    start();
    note_what_is_told();
    refused = 4;
    process_pass(longest_way_us());
    expect_told(0, 10);
    assert_int_equal(process_wake_in(), SECOND);
    told_count = 0;
    process_pass(SECOND);
    expect_told(4, 10);
    assert_true(stats().restored);
    refused = EFFECTS;
    told_count = 0;
    harness.mono_us += SECOND;
    assert_int_equal(process_wake_in(), 0); /* It wants to be woken, not only to be late. */
    process_go_on();
    expect_told(4, 10);
    assert_int_equal(stats().listed, 10);
    assert_int_equal(stats().failures, 2);
    assert_false(stats().restored);
}

static void a_page_that_goes_back_in_time_is_not_used(void **state)
{
    (void)state;
    list_effects(EFFECTS);
    int64_t happened_us = listed[harness.page_max].happened_us;
    listed[harness.page_max].happened_us -= 1;
    start();
    process_pass(longest_way_us());
    assert_int_equal(stats().listed, harness.page_max);
    process_pass(IDEM_US_PER_DAY);
    assert_int_equal(stats().listed, harness.page_max);
    assert_true(stats().failures > 1);
    assert_true(stats().restored);
    listed[harness.page_max].happened_us = happened_us;
    process_pass(IDEM_US_PER_DAY);
    assert_int_equal(stats().listed, EFFECTS);
    assert_false(stats().restored);
    expect_all_known(EFFECTS);
}

/* ---- which clock, which providers ---- */

/* A payment is in the copy, and since then the clock was set back by `us`. */
static void copy_make(int64_t us)
{
    process.fixture.options.restored = false;
    process_start();
    assert_string_equal(pay("old"), "answer 201");
    process_end();
    harness.clock.wall_base_us -= us;
    process.fixture.options.restored = true;
}

static void a_clock_that_once_ran_ahead_hides_nothing(void **state)
{
    (void)state;
    copy_make(10 * YEAR);
    harness.sends = 0;
    list_effects(3);
    start();
    assert_int_equal(stats().from_us, 0);
    process_pass(longest_way_us());
    assert_int_equal(harness.listed_from_us, 0);
    assert_int_equal(stats().listed, 3);
    assert_false(stats().restored);
    expect_all_known(3);
}

static void a_clock_that_is_a_little_ahead_is_not_believed(void **state)
{
    (void)state;
    copy_make(300 * SECOND);
    int64_t now_us = idem_clock_wall_us(&harness.clock);
    start();
    assert_int_equal(harness.store->opened_us, now_us);
    assert_int_equal(stats().from_us, now_us - MARGIN);
}

static void ids_that_name_no_scope_keep_the_mode_for_an_operator(void **state)
{
    (void)state;
    list_effects(3);
    process_start();
    harness.store->old_effect_ids = true;
    process_start_restore();
    assert_true(stats().needs_operator);
    process_pass(longest_way_us());
    assert_int_equal(stats().listed, 3);
    process_pass(IDEM_US_PER_DAY);
    assert_true(stats().restored);
}

static void payments_at_an_account_that_is_not_configured_any_more_keep_it_too(void **state)
{
    (void)state;
    copy_make(0);
    list_effects(3);
    harness.entry.account = IDEM_STR("another");
    start();
    harness.reads_refused = 2;
    process_go_on();
    assert_int_equal(process_wake_in(), SECOND);
    process_pass(SECOND);
    assert_false(stats().needs_operator);
    process_pass(SECOND);
    assert_true(stats().needs_operator);
    process_pass(longest_way_us());
    assert_int_equal(stats().listed, 3);
    process_pass(IDEM_US_PER_DAY);
    assert_int_equal(harness.asked[IDEM_READ_PLACES], 3);
    assert_true(stats().restored);
}

static void the_mark_is_repeated_until_it_is_durable(void **state)
{
    (void)state;
    list_effects(0);
    start();
    harness_fate(BATCH_NOTHING);
    harness_fate(BATCH_CONFLICT);
    process_pass(longest_way_us());
    assert_true(stats().restored);
    process_pass(SECOND);
    assert_true(stats().restored);
    process_pass(SECOND);
    assert_false(stats().restored);
}

static void a_provider_without_a_listing_keeps_the_mode_for_an_operator(void **state)
{
    (void)state;
    struct idem_provider_rules entries[2] = { harness.entry, harness.entry };
    entries[0].entry = IDEM_STR("silent");
    entries[0].listing = false;
    harness.rules.providers = entries;
    harness.rules.provider_count = 2;
    list_effects(3);
    start();
    assert_true(stats().needs_operator);
    process_pass(longest_way_us());
    process_pass(IDEM_US_PER_DAY);
    assert_int_equal(stats().listed, 3); /* The other one was read all the same. */
    assert_true(stats().restored);
    assert_string_equal(pay("k0"), "problem unavailable");
    task = (struct idem_task){ .done = &done };
    task.item.command.kind = IDEM_COMMAND_MARK;
    task.item.command.mark = (struct idem_mark){
        .kind = IDEM_MARK_RESTORED_OVER,
        .by = IDEM_STR("operator"),
        .reason = IDEM_STR("compared by hand"),
    };
    idem_engine_run(harness.engine, &task);
    process_go_on();
    assert_ptr_equal(idem_list_pop(&done), &task.item.node);
    assert_false(stats().restored);
    assert_false(stats().needs_operator);
    expect_all_known(3);
}

static void an_operator_may_end_the_mode_at_any_time(void **state)
{
    (void)state;
    list_effects(EFFECTS);
    start();
    harness.listings_held = true;
    process_pass(longest_way_us());
    assert_int_equal(harness.listings, 1);
    assert_false(idem_restore_idle(process.restore));
    task = (struct idem_task){ .done = &done };
    task.item.command.kind = IDEM_COMMAND_MARK;
    task.item.command.mark.kind = IDEM_MARK_RESTORED_OVER;
    task.item.command.mark.by = IDEM_STR("operator");
    idem_engine_run(harness.engine, &task);
    process_go_on();
    assert_ptr_equal(idem_list_pop(&done), &task.item.node);
    harness.listings_held = false;
    process_pass(IDEM_US_PER_DAY);
    assert_true(idem_restore_idle(process.restore));
    assert_int_equal(harness.listings, 1);
    assert_int_equal(stats().listed, 0);
}

static void a_new_process_begins_again_from_the_start(void **state)
{
    (void)state;
    list_effects(EFFECTS);
    start();
    harness.mono_us += longest_way_us();
    while (harness.listings < 2) { /* The first page is told. */
        process_round();
    }
    process_end();
    process.fixture.options.restored = false; /* The store knows. */
    start();
    assert_true(harness.store->restored);
    assert_int_equal(stats().listed, 0);
    process_pass(longest_way_us());
    assert_int_equal(stats().listed, EFFECTS);
    assert_false(harness.store->restored);
    expect_all_known(EFFECTS);
    process_end();
    start();
    assert_false(harness.store->restored);
    process_pass(longest_way_us());
    assert_int_equal(stats().listed, 0);
}

static void after_stopping_nothing_is_begun(void **state)
{
    (void)state;
    list_effects(EFFECTS);
    start();
    harness.listings_held = true;
    process_pass(longest_way_us());
    idem_restore_stop(process.restore);
    assert_false(idem_restore_idle(process.restore));
    harness.listings_held = false;
    process_go_on();
    assert_true(idem_restore_idle(process.restore));
    process_pass(IDEM_US_PER_DAY);
    assert_int_equal(harness.listings, 1);
    assert_int_equal(harness.most[IDEM_COMMAND_EVIDENCE], 0);
    assert_true(stats().restored);
}

#define ON_MEMORY(test) cmocka_unit_test_setup_teardown(test, begin_memory, end)
#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, begin_sqlite, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_MEMORY(a_store_that_was_not_restored_asks_nothing),
        ON_MEMORY(nothing_is_read_while_something_may_still_arrive),
        ON_MEMORY(a_clock_that_is_behind_the_stores_hides_nothing),
        ON_SQLITE(the_listing_is_read_from_before_the_newest_record),
        ON_MEMORY(every_page_is_read_and_the_mode_ends),
        ON_SQLITE(every_page_is_read_and_the_mode_ends),
        ON_SQLITE(what_is_open_here_is_settled),
        ON_MEMORY(ids_of_others_are_left_alone),
        ON_MEMORY(a_page_that_fails_is_asked_for_again_and_nothing_is_skipped),
        ON_MEMORY(what_the_store_did_not_take_is_told_again),
        ON_MEMORY(what_stands_behind_a_refused_effect_is_told_again_after_it),
        ON_MEMORY(a_page_that_goes_back_in_time_is_not_used),
        ON_SQLITE(a_clock_that_once_ran_ahead_hides_nothing),
        ON_SQLITE(a_clock_that_is_a_little_ahead_is_not_believed),
        ON_MEMORY(ids_that_name_no_scope_keep_the_mode_for_an_operator),
        ON_SQLITE(payments_at_an_account_that_is_not_configured_any_more_keep_it_too),
        ON_MEMORY(the_mark_is_repeated_until_it_is_durable),
        ON_MEMORY(a_provider_without_a_listing_keeps_the_mode_for_an_operator),
        ON_MEMORY(an_operator_may_end_the_mode_at_any_time),
        ON_SQLITE(a_new_process_begins_again_from_the_start),
        ON_MEMORY(after_stopping_nothing_is_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
