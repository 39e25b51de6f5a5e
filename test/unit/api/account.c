/*
 * What one principal may take.
 *
 * Goal: at the limit everything goes in, one over is told when to come again, and whoever comes
 * then goes in; limits may change at any time.
 *
 * Method: accounts in a small table and times made up.
 */
#include "api/account.h"

#include "lib/test.h"

#define SECOND IDEM_US_PER_SECOND

static struct idem_account places[2];
static struct idem_accounts accounts = { .all = places, .max = 2 };

static int setup(void **state)
{
    (void)state;
    memset(places, 0, sizeof(places));
    return 0;
}

static bool enter(struct idem_account *account,
                  const struct idem_api_limits *limits,
                  int64_t now_us,
                  int64_t *ret_wait_us)
{
    *ret_wait_us = 0;
    return idem_account_enter(account, limits, now_us, ret_wait_us);
}

static void a_principal_has_one_account(void **state)
{
    (void)state;
    struct idem_account *alice = idem_account_take(&accounts, IDEM_STR("alice"));
    assert_non_null(alice);
    assert_ptr_equal(idem_account_take(&accounts, IDEM_STR("alice")), alice);
    struct idem_account *bob = idem_account_take(&accounts, IDEM_STR("bob"));
    assert_ptr_not_equal(bob, alice);
    assert_null(idem_account_take(&accounts, IDEM_STR("carol")));
    idem_account_give(alice);
    assert_null(idem_account_take(&accounts, IDEM_STR("carol")));
    idem_account_give(alice);
    EXPECT_TEXT(idem_account_principal(idem_account_take(&accounts, IDEM_STR("carol"))), "carol");
}

static void without_limits_everything_goes_in(void **state)
{
    static const struct idem_api_limits none = { 0 };
    int64_t wait_us;
    (void)state;
    struct idem_account *alice = idem_account_take(&accounts, IDEM_STR("alice"));
    for (int i = 0; i < 10000; i++) {
        assert_true(enter(alice, &none, 0, &wait_us));
    }
}

static void so_many_at_once_and_not_one_more(void **state)
{
    static const struct idem_api_limits limits = { .principal_requests_max = 2 };
    int64_t wait_us;
    (void)state;
    struct idem_account *alice = idem_account_take(&accounts, IDEM_STR("alice"));
    struct idem_account *bob = idem_account_take(&accounts, IDEM_STR("bob"));
    assert_true(enter(alice, &limits, 0, &wait_us));
    assert_true(enter(alice, &limits, 0, &wait_us));
    assert_false(enter(alice, &limits, 0, &wait_us));
    assert_true(wait_us > 0);
    assert_true(enter(bob, &limits, 0, &wait_us));
    idem_account_leave(alice);
    assert_true(enter(alice, &limits, 0, &wait_us));
}

static void so_many_a_second_and_not_one_more(void **state)
{
    static const struct idem_api_limits limits = { .principal_rate = 3 };
    int64_t wait_us;
    (void)state;
    struct idem_account *alice = idem_account_take(&accounts, IDEM_STR("alice"));
    int64_t now_us = 5000 * SECOND;
    for (int i = 0; i < 3; i++) {
        assert_true(enter(alice, &limits, now_us, &wait_us));
    }
    assert_false(enter(alice, &limits, now_us, &wait_us));
    assert_in_range(wait_us, SECOND / 3, SECOND / 3 + 2);
    assert_false(enter(alice, &limits, now_us + wait_us - 2, &wait_us));
    assert_true(enter(alice, &limits, now_us + SECOND / 3 + 2, &wait_us));
    assert_false(enter(alice, &limits, now_us + SECOND / 3 + 2, &wait_us));
    now_us += 3600 * SECOND; /* No more is saved up than the burst. */
    for (int i = 0; i < 3; i++) {
        assert_true(enter(alice, &limits, now_us, &wait_us));
    }
    assert_false(enter(alice, &limits, now_us, &wait_us));
}

static void what_was_refused_elsewhere_costs_nothing(void **state)
{
    static const struct idem_api_limits limits = { .principal_rate = 3 };
    static const struct idem_api_limits unlimited = { 0 };
    int64_t wait_us;
    (void)state;
    struct idem_account *alice = idem_account_take(&accounts, IDEM_STR("alice"));
    for (int i = 0; i < 100; i++) {
        assert_true(enter(alice, &limits, 0, &wait_us));
        idem_account_undo(alice, &limits);
    }
    assert_int_equal(alice->inside, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(enter(alice, &limits, 0, &wait_us));
    }
    assert_false(enter(alice, &limits, 0, &wait_us));
    struct idem_account *bob = idem_account_take(&accounts, IDEM_STR("bob"));
    assert_true(enter(bob, &unlimited, 0, &wait_us));
    idem_account_undo(bob, &unlimited);
    assert_int_equal(bob->inside, 0);
}

static void one_principal_has_half_of_the_look_ups(void **state)
{
    static const struct idem_api_limits limits = { .principal_requests_max = 9 };
    static const struct idem_api_limits unlimited = { 0 };
    (void)state;
    struct idem_account *alice = idem_account_take(&accounts, IDEM_STR("alice"));
    assert_true(idem_account_may_read(alice, &limits, 4));
    alice->reads = 1;
    assert_true(idem_account_may_read(alice, &limits, 4));
    assert_false(idem_account_may_read(alice, &limits, 1));
    alice->reads = 2;
    assert_false(idem_account_may_read(alice, &limits, 4));
    assert_true(idem_account_may_read(alice, &unlimited, 4));
    alice->reads = 0;
    assert_true(idem_account_may_read(alice, &limits, 1)); /* One, whatever half of it is. */
}

static void a_principal_that_is_too_long_has_no_account(void **state)
{
    static const char name[IDEM_PRINCIPAL_MAX + 1] = { 'a' };
    (void)state;
    assert_null(idem_account_take(&accounts, (struct idem_str){ name, sizeof(name) }));
    assert_non_null(idem_account_take(&accounts, (struct idem_str){ name, sizeof(name) - 1 }));
}

static void a_burst_may_be_larger_or_smaller_than_a_seconds(void **state)
{
    static const struct idem_api_limits small = { .principal_rate = 100, .principal_burst = 1 };
    static const struct idem_api_limits large = { .principal_rate = 1, .principal_burst = 5 };
    int64_t wait_us;
    (void)state;
    struct idem_account *alice = idem_account_take(&accounts, IDEM_STR("alice"));
    assert_true(enter(alice, &small, 0, &wait_us));
    assert_false(enter(alice, &small, 0, &wait_us));
    assert_true(enter(alice, &small, SECOND / 100, &wait_us));
    struct idem_account *bob = idem_account_take(&accounts, IDEM_STR("bob"));
    for (int i = 0; i < 5; i++) {
        assert_true(enter(bob, &large, 0, &wait_us));
    }
    assert_false(enter(bob, &large, 0, &wait_us));
}

static void the_largest_limits_and_times_are_counted_right(void **state)
{
    static const struct idem_api_limits limits = { .principal_rate = 1000000,
                                                   .principal_burst = 1000000 };
    static const struct idem_api_limits lower = { .principal_rate = 1 };
    int64_t wait_us;
    (void)state;
    struct idem_account *alice = idem_account_take(&accounts, IDEM_STR("alice"));
    assert_true(enter(alice, &limits, INT64_MAX / 4, &wait_us));
    assert_true(enter(alice, &limits, INT64_MAX / 2, &wait_us));
    assert_true(enter(alice, &lower, INT64_MAX / 2, &wait_us)); /* A reload cuts what was saved. */
    assert_false(enter(alice, &lower, INT64_MAX / 2, &wait_us));
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_principal_has_one_account),
        TEST(without_limits_everything_goes_in),
        TEST(so_many_at_once_and_not_one_more),
        TEST(so_many_a_second_and_not_one_more),
        TEST(what_was_refused_elsewhere_costs_nothing),
        TEST(one_principal_has_half_of_the_look_ups),
        TEST(a_principal_that_is_too_long_has_no_account),
        TEST(a_burst_may_be_larger_or_smaller_than_a_seconds),
        TEST(the_largest_limits_and_times_are_counted_right),
    };
    return cmocka_run_group_tests_name("api/account", tests, NULL, NULL);
}
