/*
 * The spool: what is added comes back, sorted, side by side.
 *
 * Goal: both sides come back in order of effect id, state and arrival, every member as it was
 * added, also where ids are equal; and a spool that is closed early leaves nothing behind.
 *
 * Method: a few lines whose order is known, then many in an order that is mixed up by arithmetic,
 * more than the sorter holds in memory at once.
 */
#include "reconcile/spool.h"

#include "lib/test.h"

static void add(struct idem_spool *spool, enum idem_line_side side, const struct idem_line *line)
{
    struct idem_error error = { .text = "" };
    if (idem_spool_add(spool, side, line, &error) != IDEM_OK) {
        fail_msg("%s", error.text);
    }
}

static struct idem_spool *spool_open(void)
{
    struct idem_spool *spool = NULL;
    struct idem_error error = { .text = "" };
    if (idem_spool_open(&spool, &error) != IDEM_OK) {
        fail_msg("%s", error.text);
    }
    return spool;
}

static void sort(struct idem_spool *spool)
{
    struct idem_error error = { .text = "" };
    assert_int_equal(idem_spool_sort(spool, &error), IDEM_OK);
}

/* False: the side has ended. */
static bool next(struct idem_spool *spool, enum idem_line_side side, struct idem_line *ret_line)
{
    struct idem_error error = { .text = "" };
    bool end = false;
    if (idem_spool_next(spool, side, ret_line, &end, &error) != IDEM_OK) {
        fail_msg("%s", error.text);
    }
    return !end;
}

static struct idem_line line_of(const char *id, enum idem_line_state state, int64_t amount_minor)
{
    return (struct idem_line){
        .state = state,
        .effect_id = idem_str_from(id),
        .amount_minor = amount_minor,
    };
}

static void every_member_comes_back(void **state)
{
    (void)state;
    struct idem_spool *spool = spool_open();
    const struct idem_line full = {
        .state = IDEM_LINE_REVERSED,
        .effect_id = IDEM_STR("c1"),
        .amount_minor = INT64_MAX,
        .currency = IDEM_STR("EUR"),
        .order_no = IDEM_STR("o'1"),
        .payment_id = IDEM_STR("c0"),
        .reference = IDEM_STR("r-1"),
        .operation = IDEM_STR("01977e3c-5e0a-7cc3-98c4-dc0c0c07398f"),
        .first_us = 1,
        .last_us = 2,
    };
    const struct idem_line bare = line_of("c2", IDEM_LINE_SUCCEEDED, -1);
    struct idem_line line;
    add(spool, IDEM_LINE_HERE, &bare);
    add(spool, IDEM_LINE_HERE, &full);
    sort(spool);
    assert_true(next(spool, IDEM_LINE_HERE, &line));
    assert_int_equal(line.state, full.state);
    EXPECT_TEXT(line.effect_id, "c1");
    assert_true(line.amount_minor == INT64_MAX);
    EXPECT_TEXT(line.currency, "EUR");
    EXPECT_TEXT(line.order_no, "o'1");
    EXPECT_TEXT(line.payment_id, "c0");
    EXPECT_TEXT(line.reference, "r-1");
    EXPECT_TEXT(line.operation, "01977e3c-5e0a-7cc3-98c4-dc0c0c07398f");
    assert_int_equal(line.first_us, 1);
    assert_int_equal(line.last_us, 2);
    assert_true(next(spool, IDEM_LINE_HERE, &line));
    EXPECT_TEXT(line.effect_id, "c2");
    EXPECT_TEXT(line.order_no, "");
    assert_int_equal(line.amount_minor, -1);
    assert_false(next(spool, IDEM_LINE_HERE, &line));
    assert_false(next(spool, IDEM_LINE_THERE, &line));
    idem_spool_close(spool);
}

static void equal_ids_stand_in_order_of_state_and_arrival(void **state)
{
    (void)state;
    struct idem_spool *spool = spool_open();
    static const struct {
        const char *id;
        enum idem_line_state state;
        int64_t amount_minor;
    } rows[] = {
        { "c2", IDEM_LINE_SUCCEEDED, 5 }, { "c1", IDEM_LINE_REVERSED, 4 },
        { "c1", IDEM_LINE_SUCCEEDED, 2 }, { "c1", IDEM_LINE_SUCCEEDED, 1 },
        { "c1", IDEM_LINE_FAILED, 3 },    { "C1", IDEM_LINE_SUCCEEDED, 0 },
    };
    static const int64_t order[] = { 0, 2, 1, 3, 4, 5 };
    struct idem_line line;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        line = line_of(rows[i].id, rows[i].state, rows[i].amount_minor);
        add(spool, IDEM_LINE_THERE, &line);
    }
    sort(spool);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        assert_true(next(spool, IDEM_LINE_THERE, &line));
        assert_int_equal(line.amount_minor, order[i]);
    }
    assert_false(next(spool, IDEM_LINE_THERE, &line));
    idem_spool_close(spool);
}

#define MANY  40009 /* A prime, so that the steps below meet every number once. */
#define STEPS 7919

/* How far one side is. */
struct walk {
    bool ended;
    size_t count;
    int64_t last;
};

static void walk_on(struct idem_spool *spool, enum idem_line_side side, struct walk *walk)
{
    struct idem_line line;
    walk->ended = walk->ended || !next(spool, side, &line);
    if (!walk->ended) {
        assert_true(line.amount_minor > walk->last);
        walk->last = line.amount_minor;
        walk->count += 1;
    }
}

static void many_come_back_in_order_on_both_sides(void **state)
{
    (void)state;
    struct idem_spool *spool = spool_open();
    char id[16];
    struct idem_line line;
    uint32_t number = 0;
    for (size_t i = 0; i < MANY; i++) {
        number = (number + STEPS) % MANY;
        (void)snprintf(id, sizeof(id), "c%010u", number);
        line = line_of(id, IDEM_LINE_SUCCEEDED, number);
        add(spool, i % 2 == 0 ? IDEM_LINE_HERE : IDEM_LINE_THERE, &line);
    }
    sort(spool);
    struct walk here = { .last = -1 };
    struct walk there = { .last = -1 };
    while (!here.ended || !there.ended) { /* The cursors take turns. */
        walk_on(spool, IDEM_LINE_HERE, &here);
        walk_on(spool, IDEM_LINE_THERE, &there);
    }
    assert_int_equal(here.count, MANY / 2 + 1);
    assert_int_equal(there.count, MANY / 2);
    idem_spool_close(spool);
}

static void it_may_be_closed_at_any_time(void **state)
{
    (void)state;
    struct idem_line line = line_of("c1", IDEM_LINE_SUCCEEDED, 1);
    idem_spool_close(NULL);
    idem_spool_close(spool_open());
    struct idem_spool *spool = spool_open();
    add(spool, IDEM_LINE_HERE, &line);
    idem_spool_close(spool);
    spool = spool_open();
    add(spool, IDEM_LINE_HERE, &line);
    sort(spool);
    assert_true(next(spool, IDEM_LINE_HERE, &line));
    idem_spool_close(spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_comes_back),
        cmocka_unit_test(equal_ids_stand_in_order_of_state_and_arrival),
        cmocka_unit_test(many_come_back_in_order_on_both_sides),
        cmocka_unit_test(it_may_be_closed_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
