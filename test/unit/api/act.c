/*
 * What operators did, on its way to whoever writes it down.
 *
 * Goal: acts come out once and in order; when nobody takes them, the first stay and how many more
 * there were is known.
 *
 * Method: a ring of its own, filled and emptied.
 */
#include "api/act.h"

#include "lib/test.h"

static struct idem_acts acts;
static struct idem_api_act taken[IDEM_ACTS_MAX + 1];

static int setup(void **state)
{
    (void)state;
    acts = (struct idem_acts){ 0 };
    return 0;
}

static void add(uint8_t number)
{
    struct idem_api_act act = { .verb = "erase", .outcome = "done" };
    act.object.bytes[0] = number;
    idem_acts_add(&acts, &act);
}

static void acts_come_out_once_and_in_order(void **state)
{
    (void)state;
    assert_int_equal(idem_acts_take(&acts, taken, 4), 0);
    uint8_t next = 0;
    uint8_t expected = 0;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 5; i++) {
            add(next);
            next += 1;
        }
        size_t count = idem_acts_take(&acts, taken, 3);
        assert_int_equal(count, 3);
        count += idem_acts_take(&acts, taken + count, 4);
        assert_int_equal(count, 5);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(taken[i].object.bytes[0], expected);
            assert_int_equal(taken[i].lost, 0);
            expected += 1;
        }
    }
}

static void what_finds_no_room_is_counted_in_the_last(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < IDEM_ACTS_MAX; i++) {
        add(i);
    }
    add(200);
    add(201);
    assert_int_equal(idem_acts_take(&acts, taken, IDEM_ARRAY_COUNT(taken)), IDEM_ACTS_MAX);
    assert_int_equal(taken[IDEM_ACTS_MAX - 1].object.bytes[0], IDEM_ACTS_MAX - 1);
    assert_int_equal(taken[IDEM_ACTS_MAX - 1].lost, 2);
    assert_int_equal(taken[0].lost, 0);
    add(7);
    assert_int_equal(idem_acts_take(&acts, taken, 1), 1);
    assert_int_equal(taken[0].lost, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(acts_come_out_once_and_in_order),
        TEST(what_finds_no_room_is_counted_in_the_last),
    };
    return cmocka_run_group_tests_name("api/act", tests, NULL, NULL);
}
