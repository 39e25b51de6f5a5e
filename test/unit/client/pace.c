/*
 * Pauses, the budget of repeats, and the storm that both are there to prevent.
 *
 * Goal: a pause is spread evenly over its whole range and never leaves it, whatever the numbers;
 * the server's wish is kept; repeats are bounded by the share, the reserve and the trickle. And
 * together: a server that was down for a minute is not run over when it comes back.
 *
 * Method: many dice of a fixed seed, counted by tenths; every number at its limit; then 10,000
 * intents against a server that is down for 60 s, millisecond by millisecond in virtual time, their
 * arrivals counted by the second. Steady load is the same intents spread over that minute, or over
 * the time that is watched if they come all the time.
 *
 * What holds, and what cannot. A client that shares one budget stays below twice the steady load
 * however its intents come. Clients that know nothing of each other have only jitter: if all were
 * caught when the server went down, twice the steady load is kept by the slow bounds below, and not
 * by the quick ones. If new ones come all the time, each adds one arrival a try, so that only
 * clients that try once a minute would keep it; for these the factor is shown and held where it is.
 */
#include "client/pace.h"

#include <limits.h>

#include "lib/test.h"

#include "base/attr.h"

#define SECOND INT64_C(1000000)
#define SEED   UINT64_C(20261129)

static uint64_t noise(uint64_t *seed)
{
    uint64_t mixed = *seed += UINT64_C(0x9E3779B97F4A7C15); /* SplitMix64. */
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ mixed >> 31;
}

/* Counts 100,000 pauses by the tenth of [low, high] they fall into; each gets its share. */
static void expect_even(const struct idem_pause_bounds *bounds,
                        unsigned failures,
                        int64_t low,
                        int64_t high)
{
    uint64_t seed = SEED;
    unsigned counts[10] = { 0 };
    for (int i = 0; i < 100000; i++) {
        int64_t pause_us = idem_pause_us(bounds, failures, noise(&seed));
        assert_true(pause_us >= low);
        assert_true(pause_us <= high);
        counts[(pause_us - low) * 10 / (high - low + 1)]++;
    }
    for (size_t i = 0; i < 10; i++) {
        assert_in_range(counts[i], 9500, 10500);
    }
}

static void a_pause_is_anywhere_between_nothing_and_its_bound(void **state)
{
    (void)state;
    struct idem_pause_bounds bounds = { .first_us = SECOND / 5, .max_us = 20 * SECOND };
    expect_even(&bounds, 1, 0, SECOND / 5);
    expect_even(&bounds, 2, 0, SECOND * 2 / 5);
    expect_even(&bounds, 5, 0, SECOND * 16 / 5);
    expect_even(&bounds, 50, 0, 20 * SECOND);
}

static void a_wish_is_kept_and_spread_by_half_of_itself(void **state)
{
    (void)state;
    struct idem_pause_bounds bounds = { .first_us = SECOND / 5, .max_us = 20 * SECOND };
    static const struct {
        int64_t wish_us;
        int64_t more_us;
    } cases[] = {
        { 1, SECOND / 5 },
        { SECOND, SECOND / 2 },
        { 30 * SECOND, 15 * SECOND },
        { 3600 * SECOND, 20 * SECOND },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        bounds.retry_after_us = cases[i].wish_us;
        for (unsigned failures = 1; failures < 20; failures += 9) {
            expect_even(&bounds, failures, cases[i].wish_us, cases[i].wish_us + cases[i].more_us);
        }
    }
}

static void the_bound_doubles_up_to_its_maximum_and_never_overflows(void **state)
{
    (void)state;
    static const struct {
        int64_t first_us;
        int64_t max_us;
        unsigned failures;
        int64_t bound_us;
    } cases[] = {
        { 200, 20000, 1, 200 },
        { 200, 20000, 2, 400 },
        { 200, 20000, 7, 12800 },
        { 200, 20000, 8, 20000 },
        { 200, 20000, UINT_MAX, 20000 },
        { 200, 12800, 7, 12800 },
        { 200, 100, 1, 100 }, /* The maximum is one. */
        { 1, INT64_MAX, 63, INT64_C(1) << 62 },
        { 1, INT64_MAX, 64, INT64_MAX },
        { 1, INT64_MAX, UINT_MAX, INT64_MAX },
        { INT64_MAX, INT64_MAX, 1, INT64_MAX },
        { 0, 20000, UINT_MAX, 0 },
        { 200, 0, 9, 0 },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        struct idem_pause_bounds bounds = { .first_us = cases[i].first_us,
                                            .max_us = cases[i].max_us };
        uint64_t longest = (uint64_t)cases[i].bound_us;
        assert_int_equal(idem_pause_us(&bounds, cases[i].failures, 0), 0);
        assert_int_equal(idem_pause_us(&bounds, cases[i].failures, longest), cases[i].bound_us);
        assert_int_equal(idem_pause_us(&bounds, cases[i].failures, longest + 1), 0);
    }
}

static void a_wish_without_measure_is_no_overflow_and_a_negative_one_is_none(void **state)
{
    (void)state;
    struct idem_pause_bounds bounds = { .first_us = 200, .max_us = 20000 };
    bounds.retry_after_us = INT64_MAX;
    assert_int_equal(idem_pause_us(&bounds, 1, UINT64_MAX), INT64_MAX);
    bounds.retry_after_us = INT64_MAX - 20000;
    assert_int_equal(idem_pause_us(&bounds, 1, 20000), INT64_MAX);
    bounds.retry_after_us = INT64_MIN;
    assert_int_equal(idem_pause_us(&bounds, 1, 200), 200);
}

/* Spends what is allowed at `now_us`; returns how much that was. */
static unsigned spend_all(struct idem_budget *budget, int64_t now_us)
{
    unsigned count = 0;
    while (idem_budget_allows(budget, now_us)) {
        idem_budget_spend(budget, now_us);
        count++;
    }
    return count;
}

static void at_first_the_reserve_is_allowed(void **state)
{
    (void)state;
    struct idem_budget budget;
    idem_budget_init(&budget, 10, 10, 7 * SECOND);
    assert_int_equal(spend_all(&budget, 7 * SECOND), 10);
    assert_false(idem_budget_allows(&budget, 7 * SECOND));
}

static void first_sends_earn_their_share(void **state)
{
    (void)state;
    struct idem_budget budget;
    idem_budget_init(&budget, 10, 0, 0);
    for (int i = 0; i < 9; i++) {
        idem_budget_earn(&budget, 0);
        assert_false(idem_budget_allows(&budget, 0));
    }
    idem_budget_earn(&budget, 0);
    assert_int_equal(spend_all(&budget, 0), 1);
}

static void what_first_sends_earn_is_kept_up_to_a_burst(void **state)
{
    (void)state;
    struct idem_budget budget;
    idem_budget_init(&budget, 10, 10, 0);
    for (int i = 0; i < 10 * IDEM_BUDGET_BURST; i++) {
        idem_budget_earn(&budget, 0);
    }
    assert_int_equal(spend_all(&budget, 0), 10 + IDEM_BUDGET_BURST / 10);
}

static void the_trickle_is_one_a_second_however_often_it_is_looked_at(void **state)
{
    (void)state;
    struct idem_budget budget;
    unsigned count = 0;
    idem_budget_init(&budget, 10, 0, 0);
    for (int64_t now_us = 0; now_us <= 60 * SECOND; now_us += 1733) {
        count += spend_all(&budget, now_us);
    }
    assert_int_equal(count, 59); /* The last look was before the minute was full. */
}

static void the_trickle_fills_up_to_the_reserve_only(void **state)
{
    (void)state;
    struct idem_budget budget;
    idem_budget_init(&budget, 10, 3, 0);
    assert_int_equal(spend_all(&budget, 0), 3);
    assert_int_equal(spend_all(&budget, 86400 * SECOND), 3);
    assert_int_equal(spend_all(&budget, 86400 * SECOND + SECOND - 1), 0);
    assert_int_equal(spend_all(&budget, 86400 * SECOND + SECOND), 1);

    idem_budget_init(&budget, 100, 0, 0);
    for (int i = 0; i < 5; i++) {
        idem_budget_earn(&budget, 0);
    }
    assert_int_equal(spend_all(&budget, INT64_MAX), 5); /* And takes nothing away. */
}

static void time_that_runs_backwards_earns_nothing(void **state)
{
    (void)state;
    struct idem_budget budget;
    idem_budget_init(&budget, 10, 1, 100 * SECOND);
    assert_int_equal(spend_all(&budget, 100 * SECOND), 1);
    assert_int_equal(spend_all(&budget, 0), 0);
    assert_int_equal(spend_all(&budget, 100 * SECOND), 0);
    assert_int_equal(spend_all(&budget, 101 * SECOND), 1);
}

/* The storm. Times are milliseconds: nothing here is finer. */

#define INTENTS   10000
#define DOWN_MS   60000
#define WATCHED_S 10 /* After recovery. */
#define END_MS    (DOWN_MS + 1000 * WATCHED_S)

struct storm_options {
    const char *name;
    int64_t first_ms;
    int64_t max_ms;
    bool shared;   /* One client, and one budget; else each its own. */
    bool steadily; /* They begin one after the other, for as long as it is watched. */
    bool rigid;    /* No jitter: everybody takes the bound. */
};

struct intent {
    int next; /* Of those due in the same millisecond; -1: the last. */
    unsigned failures;
    struct idem_budget own;
};

struct storm {
    const struct storm_options *options;
    struct intent intents[INTENTS];
    int due[END_MS]; /* The first of those due then; -1: none. */
    int64_t now_ms;
    uint64_t seed;
    struct idem_budget shared;
    unsigned arrivals[END_MS / 1000];
    unsigned firsts;  /* Of all intents while the server was down. */
    unsigned repeats; /* Likewise. */
    unsigned given_up;
};

static struct storm storm;

static void due_add(int index, int64_t at_ms)
{
    if (at_ms < END_MS) {
        storm.intents[index].next = storm.due[at_ms];
        storm.due[at_ms] = index;
    }
}

static void storm_begin(const struct storm_options *options)
{
    storm = (struct storm){ .options = options, .seed = SEED };
    idem_budget_init(&storm.shared, 10, 10, 0);
    for (int i = 0; i < END_MS; i++) {
        storm.due[i] = -1;
    }
    for (int i = 0; i < INTENTS; i++) {
        int64_t at_ms = options->steadily ? (int64_t)i * END_MS / INTENTS : 0;
        idem_budget_init(&storm.intents[i].own, 10, 10, at_ms * 1000);
        due_add(i, at_ms);
    }
}

static int64_t storm_pause_ms(unsigned failures)
{
    struct idem_pause_bounds bounds = { .first_us = storm.options->first_ms * 1000,
                                        .max_us = storm.options->max_ms * 1000 };
    uint64_t dice = noise(&storm.seed);
    if (storm.options->rigid) {
        int64_t bound_us = bounds.first_us << (failures < 16 ? failures - 1 : 15);
        dice = (uint64_t)(bound_us < bounds.max_us ? bound_us : bounds.max_us);
    }
    return idem_pause_us(&bounds, failures, dice) / 1000;
}

/* One request that arrives now, and what its sender does if the server is down. */
static void storm_arrive(int index)
{
    struct intent *intent = &storm.intents[index];
    struct idem_budget *budget = storm.options->shared ? &storm.shared : &intent->own;
    int64_t now_us = storm.now_ms * 1000;

    storm.arrivals[storm.now_ms / 1000]++;
    if (intent->failures == 0) {
        idem_budget_earn(budget, now_us);
    }
    if (storm.now_ms >= DOWN_MS) {
        return;
    }
    storm.firsts += intent->failures == 0 ? 1 : 0;
    storm.repeats += intent->failures == 0 ? 0 : 1;
    intent->failures++;
    if (!idem_budget_allows(budget, now_us)) {
        storm.given_up++;
        return;
    }
    idem_budget_spend(budget, now_us);
    due_add(index, storm.now_ms + 1 + storm_pause_ms(intent->failures));
}

/* Arrivals in a second if all were well. */
static unsigned storm_steady(const struct storm_options *options)
{
    return (unsigned)(INTENTS / ((options->steadily ? END_MS : DOWN_MS) / 1000));
}

/* Returns the most arrivals in one second after recovery. */
static unsigned storm_run(const struct storm_options *options)
{
    unsigned peak = 0;
    storm_begin(options);
    for (storm.now_ms = 0; storm.now_ms < END_MS; storm.now_ms++) {
        for (int index = storm.due[storm.now_ms]; index >= 0;) {
            int next = storm.intents[index].next;
            storm_arrive(index);
            index = next;
        }
    }
    for (int i = DOWN_MS / 1000; i < END_MS / 1000; i++) {
        peak = storm.arrivals[i] > peak ? storm.arrivals[i] : peak;
    }
    print_message(
        "%-42s %5lld..%6lld ms: first sends %5u, repeats %6u, given up %4u; "
        "peak %4u/s, %.1f times steady\n",
        options->name, (long long)options->first_ms, (long long)options->max_ms, storm.firsts,
        storm.repeats, storm.given_up, peak, (double)peak / storm_steady(options));
    return peak;
}

static void one_client_with_all_intents_stays_within_its_budget_and_below_twice(void **state)
{
    (void)state;
    static const struct storm_options cases[] = {
        { .name = "one client, begun together", .first_ms = 200, .max_ms = 20000 },
        { .name = "one client, one by one", .first_ms = 200, .max_ms = 20000, .steadily = true },
        { .name = "one client, begun together", .first_ms = 500, .max_ms = 60000 },
        { .name = "one client, one by one", .first_ms = 500, .max_ms = 60000, .steadily = true },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        struct storm_options options = cases[i];
        options.shared = true;
        unsigned peak = storm_run(&options);
        assert_true(peak <= 2 * storm_steady(&options));
        assert_true(storm.repeats <= storm.firsts / 10 + 10 + DOWN_MS / 1000);
        assert_true(storm.repeats >= storm.firsts / 20); /* It is a limit and not a ban. */
    }
}

static void clients_caught_together_come_back_below_twice_by_slow_bounds(void **state)
{
    (void)state;
    struct storm_options options = { .name = "10,000 clients, caught together" };
    options.first_ms = 200;
    options.max_ms = 20000;
    assert_true(storm_run(&options) > 2 * storm_steady(&options)); /* Quick bounds do not do it. */
    options.first_ms = 500;
    options.max_ms = 60000;
    assert_true(storm_run(&options) <= 2 * storm_steady(&options));
    assert_int_equal(storm.given_up, 0);
}

static void without_jitter_they_would_come_back_together(void **state)
{
    (void)state;
    struct storm_options options = { .name = "10,000 clients, caught together, rigid" };
    options.rigid = true;
    options.first_ms = 200;
    options.max_ms = 20000;
    assert_true(storm_run(&options) == INTENTS);
}

/* The factor is one for each try within the outage; slow bounds make it smaller, and no more. */
static void clients_that_begin_all_the_time_are_as_many_times_as_they_try(void **state)
{
    (void)state;
    struct storm_options options = { .name = "10,000 clients, one by one", .steadily = true };
    options.first_ms = 200;
    options.max_ms = 20000;
    unsigned quick = storm_run(&options);
    options.first_ms = 500;
    options.max_ms = 60000;
    unsigned slow = storm_run(&options);
    assert_true(slow < quick);
    assert_true(quick <= 11 * storm_steady(&options));
    assert_true(slow <= 8 * storm_steady(&options));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_is_anywhere_between_nothing_and_its_bound),
        cmocka_unit_test(a_wish_is_kept_and_spread_by_half_of_itself),
        cmocka_unit_test(the_bound_doubles_up_to_its_maximum_and_never_overflows),
        cmocka_unit_test(a_wish_without_measure_is_no_overflow_and_a_negative_one_is_none),
        cmocka_unit_test(at_first_the_reserve_is_allowed),
        cmocka_unit_test(first_sends_earn_their_share),
        cmocka_unit_test(what_first_sends_earn_is_kept_up_to_a_burst),
        cmocka_unit_test(the_trickle_is_one_a_second_however_often_it_is_looked_at),
        cmocka_unit_test(the_trickle_fills_up_to_the_reserve_only),
        cmocka_unit_test(time_that_runs_backwards_earns_nothing),
        cmocka_unit_test(one_client_with_all_intents_stays_within_its_budget_and_below_twice),
        cmocka_unit_test(clients_caught_together_come_back_below_twice_by_slow_bounds),
        cmocka_unit_test(without_jitter_they_would_come_back_together),
        cmocka_unit_test(clients_that_begin_all_the_time_are_as_many_times_as_they_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
