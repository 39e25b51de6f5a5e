/*
 * The breaker.
 *
 * Goal: it opens when unknown outcomes pile up, in number and in share, within its window; nothing
 * new is let through until its pause is over, then a few; answers close it, one silence opens it
 * again, and where nothing goes it closes in time; what left before the present state began says
 * nothing.
 *
 * Method: tables of what is heard when, and the state that must follow.
 */
#include "engine/breaker.h"

#include "base/clock.h"
#include "lib/test.h"

#define SECOND IDEM_US_PER_SECOND

static const struct idem_breaker_rules rules = {
    .unknown_min = 3,
    .unknown_percent = 50,
    .window_us = 60 * SECOND,
    .open_us = 30 * SECOND,
    .probes = 2,
};

enum word {
    SILENCE,   /* A send that left at once ended unknown. */
    ANSWER,    /* Likewise with an answer. */
    LATE,      /* One that left at 1 s ended unknown. */
    PROBE,     /* One is let through: it goes. */
    HELD_BACK, /* None is let through. */
    ASKED,     /* One would be let through, and does not go. */
    PROBE_BACK,
    HELD, /* By the provider's wish, until 700 s. */
};

struct step {
    int64_t at_s;
    enum word word;
    size_t times;
    enum idem_breaker_state then;
};

static void step_take(struct idem_breaker *breaker, const struct step *step, int64_t now_us)
{
    switch (step->word) {
    case SILENCE:
    case ANSWER:
        idem_breaker_heard(breaker, step->word == SILENCE, now_us, now_us);
        return;
    case LATE:
        idem_breaker_heard(breaker, true, SECOND, now_us);
        return;
    case PROBE: {
        assert_true(idem_breaker_lets(breaker, now_us));
        bool is_half_open = breaker->state == IDEM_BREAKER_HALF_OPEN;
        assert_int_equal(idem_breaker_go(breaker, now_us), is_half_open);
        return;
    }
    case ASKED:
        assert_true(idem_breaker_lets(breaker, now_us));
        return;
    case HELD_BACK:
        assert_false(idem_breaker_lets(breaker, now_us));
        return;
    case PROBE_BACK:
        idem_breaker_probe_over(breaker, now_us);
        return;
    case HELD:
        idem_breaker_held(breaker, 700 * IDEM_US_PER_SECOND);
        return;
    }
}

static void run(const struct step *steps, size_t count, uint64_t openings)
{
    struct idem_breaker breaker;
    idem_breaker_init(&breaker, &rules, 0);
    for (size_t i = 0; i < count; i++) {
        int64_t now_us = steps[i].at_s * SECOND;
        for (size_t j = 0; j < steps[i].times; j++) {
            step_take(&breaker, &steps[i], now_us);
        }
        enum idem_breaker_state state = idem_breaker_state(&breaker, now_us);
        if (state != steps[i].then) {
            print_error("step %d\n", (int)i);
        }
        assert_string_equal(idem_breaker_state_name(state), idem_breaker_state_name(steps[i].then));
    }
    assert_int_equal(breaker.openings, openings);
}

#define RUN(steps, openings) run((steps), IDEM_ARRAY_COUNT(steps), (openings))

static void it_opens_by_number_and_share(void **state)
{
    (void)state;
    static const struct step number[] = {
        { 1, SILENCE, 2, IDEM_BREAKER_CLOSED },
        { 1, PROBE, 1, IDEM_BREAKER_CLOSED },
        { 1, SILENCE, 1, IDEM_BREAKER_OPEN },
        { 1, HELD_BACK, 1, IDEM_BREAKER_OPEN },
    };
    RUN(number, 1);
    static const struct step share[] = {
        { 1, ANSWER, 5, IDEM_BREAKER_CLOSED },
        { 2, SILENCE, 4, IDEM_BREAKER_CLOSED }, /* Four of nine. */
        { 3, SILENCE, 1, IDEM_BREAKER_OPEN },   /* Half. */
    };
    RUN(share, 1);
}

static void what_has_left_the_window_does_not_count(void **state)
{
    (void)state;
    static const struct step slides[] = {
        { 1, SILENCE, 2, IDEM_BREAKER_CLOSED },
        { 59, ANSWER, 1, IDEM_BREAKER_CLOSED },
        { 66, SILENCE, 2, IDEM_BREAKER_CLOSED }, /* The first two are forgotten. */
        { 70, SILENCE, 1, IDEM_BREAKER_OPEN },
    };
    RUN(slides, 1);
    static const struct step drips[] = {
        { 1, SILENCE, 2, IDEM_BREAKER_CLOSED },
        { 100, SILENCE, 2, IDEM_BREAKER_CLOSED },
        { 1000, SILENCE, 2, IDEM_BREAKER_CLOSED },
        { 1061, SILENCE, 2, IDEM_BREAKER_CLOSED },
    };
    RUN(drips, 0);
}

static void half_open_lets_a_few_through_and_answers_close_it(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { 2, SILENCE, 3, IDEM_BREAKER_OPEN },
        { 31, HELD_BACK, 1, IDEM_BREAKER_OPEN },
        { 32, PROBE, 2, IDEM_BREAKER_HALF_OPEN },
        { 32, HELD_BACK, 1, IDEM_BREAKER_HALF_OPEN },
        { 33, ANSWER, 1, IDEM_BREAKER_HALF_OPEN },
        { 33, PROBE_BACK, 1, IDEM_BREAKER_HALF_OPEN },
        { 33, PROBE, 1, IDEM_BREAKER_HALF_OPEN }, /* One came back, so one may go. */
        { 34, ANSWER, 1, IDEM_BREAKER_CLOSED },
        { 34, PROBE_BACK, 2, IDEM_BREAKER_CLOSED },
        { 34, PROBE, 9, IDEM_BREAKER_CLOSED },
        { 35, SILENCE, 2, IDEM_BREAKER_CLOSED }, /* It begins anew. */
    };
    RUN(steps, 1);
}

static void one_silence_opens_it_again(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { 2, SILENCE, 3, IDEM_BREAKER_OPEN },      { 32, PROBE, 2, IDEM_BREAKER_HALF_OPEN },
        { 33, ANSWER, 1, IDEM_BREAKER_HALF_OPEN }, { 33, PROBE_BACK, 1, IDEM_BREAKER_HALF_OPEN },
        { 40, SILENCE, 1, IDEM_BREAKER_OPEN },     { 69, HELD_BACK, 1, IDEM_BREAKER_OPEN },
        { 70, PROBE, 1, IDEM_BREAKER_HALF_OPEN },  { 70, HELD_BACK, 1, IDEM_BREAKER_HALF_OPEN },
    };
    RUN(steps, 2); /* The probe that is still out holds its place. */
}

/* It was not half-open before somebody asked, and a probe that is out is no quiet. */
static void half_open_without_a_probe_for_a_window_it_closes(void **state)
{
    (void)state;
    static const struct step never[] = {
        { 2, SILENCE, 3, IDEM_BREAKER_OPEN },      { 900, ASKED, 1, IDEM_BREAKER_HALF_OPEN },
        { 959, ASKED, 1, IDEM_BREAKER_HALF_OPEN }, { 960, ASKED, 1, IDEM_BREAKER_CLOSED },
        { 961, SILENCE, 2, IDEM_BREAKER_CLOSED }, /* It begins anew. */
        { 961, SILENCE, 1, IDEM_BREAKER_OPEN },
    };
    RUN(never, 2);
    static const struct step once[] = {
        { 2, SILENCE, 3, IDEM_BREAKER_OPEN },
        { 50, PROBE, 1, IDEM_BREAKER_HALF_OPEN },
        { 500, ASKED, 1, IDEM_BREAKER_HALF_OPEN },
        { 501, PROBE_BACK, 1, IDEM_BREAKER_HALF_OPEN }, /* It was not executed. */
        { 560, ASKED, 1, IDEM_BREAKER_HALF_OPEN },
        { 561, ASKED, 1, IDEM_BREAKER_CLOSED },
    };
    RUN(once, 1);
    static const struct step held[] = {
        { 2, SILENCE, 3, IDEM_BREAKER_OPEN },      { 50, PROBE, 1, IDEM_BREAKER_HALF_OPEN },
        { 51, HELD, 1, IDEM_BREAKER_HALF_OPEN },   { 51, PROBE_BACK, 1, IDEM_BREAKER_HALF_OPEN },
        { 759, ASKED, 1, IDEM_BREAKER_HALF_OPEN }, /* Nobody could go for so long. */
        { 760, ASKED, 1, IDEM_BREAKER_CLOSED },
    };
    RUN(held, 1);
}

static void what_left_before_says_nothing(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { 2, SILENCE, 3, IDEM_BREAKER_OPEN },     { 20, LATE, 50, IDEM_BREAKER_OPEN },
        { 32, PROBE, 1, IDEM_BREAKER_HALF_OPEN }, { 33, LATE, 50, IDEM_BREAKER_HALF_OPEN },
        { 34, ANSWER, 2, IDEM_BREAKER_CLOSED },   { 35, LATE, 50, IDEM_BREAKER_CLOSED },
    };
    RUN(steps, 1);
}

static void when_it_lets_something_through_is_known(void **state)
{
    (void)state;
    struct idem_breaker breaker;
    idem_breaker_init(&breaker, &rules, 0);
    assert_int_equal(idem_breaker_next_us(&breaker, 5), 5);
    for (int i = 0; i < 3; i++) {
        idem_breaker_heard(&breaker, true, SECOND, 7 * SECOND);
    }
    assert_int_equal(idem_breaker_next_us(&breaker, 8 * SECOND), 37 * SECOND);
    assert_true(idem_breaker_lets(&breaker, 37 * SECOND));
    assert_true(idem_breaker_go(&breaker, 37 * SECOND));
    assert_int_equal(idem_breaker_next_us(&breaker, 38 * SECOND), 38 * SECOND);
    assert_true(idem_breaker_go(&breaker, 38 * SECOND));
    assert_true(idem_breaker_next_us(&breaker, 38 * SECOND) == INT64_MAX);
}

static void without_rules_there_is_none(void **state)
{
    (void)state;
    static const struct idem_breaker_rules none;
    struct idem_breaker breaker;
    idem_breaker_init(&breaker, &none, 0);
    for (int i = 0; i < 1000; i++) {
        idem_breaker_heard(&breaker, true, i, i);
    }
    assert_true(idem_breaker_lets(&breaker, 1000));
    assert_false(idem_breaker_go(&breaker, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_opens_by_number_and_share),
        cmocka_unit_test(what_has_left_the_window_does_not_count),
        cmocka_unit_test(half_open_lets_a_few_through_and_answers_close_it),
        cmocka_unit_test(one_silence_opens_it_again),
        cmocka_unit_test(half_open_without_a_probe_for_a_window_it_closes),
        cmocka_unit_test(what_left_before_says_nothing),
        cmocka_unit_test(when_it_lets_something_through_is_known),
        cmocka_unit_test(without_rules_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
