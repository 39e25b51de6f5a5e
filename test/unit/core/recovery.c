/*
 * The recovery table of docs/design.md, section 5: what may follow a dispatch whose outcome is
 * not known.
 *
 * Goal: each row of the table says what the design says, exactly up to its boundary in time and
 * count. This is where a second charge would be made, so every row has a test that carries its
 * letter.
 *
 * Method: views are built by hand and given to the pure function; no intent, no store. Boundaries
 * are looked at on both sides.
 */
#include "core/recovery.h"

#include "base/attr.h"
#include "base/clock.h"
#include "lib/test.h"

#define SECOND IDEM_US_PER_SECOND
#define HOUR   (3600 * SECOND)
#define DAY    IDEM_US_PER_DAY
#define NOW_US (INT64_C(1700000000) * SECOND)

static const struct idem_capability plain = { .query = IDEM_QUERY_AT_ONCE };
static const struct idem_capability blind = { .query = IDEM_QUERY_NONE };
static const struct idem_capability closing = {
    .query = IDEM_QUERY_AT_ONCE,
    .close_is_final = true,
};
static const struct idem_capability dedup = {
    .dedup_window_us = 24 * HOUR,
    .dedup_margin_us = HOUR,
    .query = IDEM_QUERY_AT_ONCE,
};
static const struct idem_capability mute = {
    .dedup_window_us = 24 * HOUR,
    .dedup_margin_us = HOUR,
    .query = IDEM_QUERY_NONE,
};
static const struct idem_capability lagging = {
    .dedup_window_us = 24 * HOUR,
    .dedup_margin_us = HOUR,
    .query = IDEM_QUERY_LAGGING,
    .query_lag_us = 30 * SECOND,
};

static struct idem_rules rules;

/* One open send, granted a minute ago; a question was asked just now and answered. */
static struct idem_recovery_view view_of(const struct idem_capability *capability,
                                         enum idem_outcome_kind outcome)
{
    rules = idem_rules_default();
    return (struct idem_recovery_view){
        .capability = capability,
        .rules = &rules,
        .now_us = NOW_US,
        .source = IDEM_SOURCE_QUERY,
        .outcome = outcome,
        .asked_us = NOW_US - 1,
        .oldest_open_us = NOW_US - 60 * SECOND,
        .newest_open_us = NOW_US - 60 * SECOND,
        .wire_end_us = NOW_US - 10 * SECOND,
        .unknown_since_us = NOW_US - 50 * SECOND,
        .ask_count = 1,
        .send_count = 1,
    };
}

static void expect_next(const struct idem_recovery_view *view,
                        enum idem_recovery_row row,
                        enum idem_step step,
                        bool park)
{
    struct idem_recovery_next next = idem_recovery_next(view);
    assert_int_equal(next.row, row);
    assert_string_equal(idem_step_name(next.step), idem_step_name(step));
    assert_int_equal(next.park, park);
    assert_true(next.at_us >= view->now_us);
}

static void row_a_what_a_person_has_is_asked_once_a_day_and_never_sent(void **state)
{
    (void)state;
    for (int outcome = IDEM_OUTCOME_UNKNOWN; outcome < IDEM_OUTCOME_COUNT; outcome++) {
        struct idem_recovery_view view = view_of(&dedup, (enum idem_outcome_kind)outcome);
        view.parked = true;
        expect_next(&view, IDEM_RECOVERY_A_PARKED, IDEM_STEP_ASK, false);
        assert_int_equal(idem_recovery_next(&view).at_us, NOW_US + DAY);
        view.capability = &mute;
        expect_next(&view, IDEM_RECOVERY_A_PARKED, IDEM_STEP_NONE, false);
    }
}

static void row_b_parks_after_seven_days_and_not_a_moment_before(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&plain, IDEM_OUTCOME_UNKNOWN);
    view.unknown_since_us = NOW_US - 7 * DAY + 1;
    expect_next(&view, IDEM_RECOVERY_I_ASK, IDEM_STEP_ASK, false);
    view.unknown_since_us = NOW_US - 7 * DAY;
    expect_next(&view, IDEM_RECOVERY_B_TOO_LONG, IDEM_STEP_ASK, true);
    view.outcome = IDEM_OUTCOME_PROCESSING;
    expect_next(&view, IDEM_RECOVERY_B_TOO_LONG, IDEM_STEP_ASK, true);
    view.outcome = IDEM_OUTCOME_NOT_FOUND;
    expect_next(&view, IDEM_RECOVERY_B_TOO_LONG, IDEM_STEP_ASK, true);
    view.capability = &mute;
    expect_next(&view, IDEM_RECOVERY_B_TOO_LONG, IDEM_STEP_NONE, true);
}

static void row_c_what_is_processing_is_asked_about_and_not_sent(void **state)
{
    (void)state;
    const struct idem_capability *all[] = { &plain, &closing, &dedup, &lagging };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(all); i++) {
        struct idem_recovery_view view = view_of(all[i], IDEM_OUTCOME_PROCESSING);
        expect_next(&view, IDEM_RECOVERY_C_PROCESSING, IDEM_STEP_ASK, false);
        view.source = IDEM_SOURCE_SEND;
        expect_next(&view, IDEM_RECOVERY_C_PROCESSING, IDEM_STEP_ASK, false);
    }
}

static void row_d_sends_again_what_is_not_found_while_the_window_is_open(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&dedup, IDEM_OUTCOME_NOT_FOUND);
    view.oldest_open_us = NOW_US - 23 * HOUR + 1; /* The margin is an hour of the 24. */
    view.newest_open_us = view.oldest_open_us;
    expect_next(&view, IDEM_RECOVERY_D_SEND_AGAIN, IDEM_STEP_SEND, false);
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US);
    view.oldest_open_us = NOW_US - 23 * HOUR;
    expect_next(&view, IDEM_RECOVERY_H_NO_SAFE_STEP, IDEM_STEP_ASK, true);
}

static void row_d_counts_the_window_from_the_oldest_send_and_not_the_newest(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&dedup, IDEM_OUTCOME_NOT_FOUND);
    view.oldest_open_us = NOW_US - 23 * HOUR;
    view.newest_open_us = NOW_US - SECOND;
    expect_next(&view, IDEM_RECOVERY_H_NO_SAFE_STEP, IDEM_STEP_ASK, true);
}

static void row_d_ends_with_the_last_send_that_is_allowed(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&dedup, IDEM_OUTCOME_NOT_FOUND);
    view.send_count = IDEM_SENDS_MAX - 1;
    expect_next(&view, IDEM_RECOVERY_D_SEND_AGAIN, IDEM_STEP_SEND, false);
    view.send_count = IDEM_SENDS_MAX;
    expect_next(&view, IDEM_RECOVERY_H_NO_SAFE_STEP, IDEM_STEP_ASK, true);
    view.outcome = IDEM_OUTCOME_UNKNOWN;
    expect_next(&view, IDEM_RECOVERY_I_ASK, IDEM_STEP_ASK, false);
    view.capability = &mute;
    expect_next(&view, IDEM_RECOVERY_J_MUTE, IDEM_STEP_NONE, true);
}

static void row_d_takes_turns_with_questions_when_nothing_usable_comes(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&dedup, IDEM_OUTCOME_UNKNOWN);
    expect_next(&view, IDEM_RECOVERY_D_SEND_AGAIN, IDEM_STEP_SEND, false);
    view.source = IDEM_SOURCE_SEND;
    expect_next(&view, IDEM_RECOVERY_I_ASK, IDEM_STEP_ASK, false);
}

static void row_d_sends_again_where_nothing_can_be_asked(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&mute, IDEM_OUTCOME_UNKNOWN);
    view.source = IDEM_SOURCE_SEND;
    view.ask_count = 0;
    expect_next(&view, IDEM_RECOVERY_D_SEND_AGAIN, IDEM_STEP_SEND, false);
    assert_true(idem_recovery_next(&view).at_us > NOW_US);
    view.outcome = IDEM_OUTCOME_PROCESSING;
    expect_next(&view, IDEM_RECOVERY_D_SEND_AGAIN, IDEM_STEP_SEND, false);
}

static void row_d_backs_off_by_sends_where_nothing_can_be_asked(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&mute, IDEM_OUTCOME_UNKNOWN);
    view.source = IDEM_SOURCE_SEND;
    view.ask_count = 0;
    view.send_count = 11; /* 5 s doubled ten times is above an hour. */
    assert_true(idem_recovery_next(&view).at_us >= NOW_US + HOUR / 2);
}

static void row_e_waits_the_lag_out_and_asks_again_before_it_sends(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&lagging, IDEM_OUTCOME_NOT_FOUND);
    view.newest_open_us = NOW_US - 10 * SECOND;
    view.asked_us = NOW_US - SECOND;
    expect_next(&view, IDEM_RECOVERY_E_LAG, IDEM_STEP_ASK, false);
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US + 20 * SECOND);

    view.newest_open_us = NOW_US - 40 * SECOND; /* Over now, but it was asked before. */
    view.asked_us = view.newest_open_us + 30 * SECOND - 1;
    expect_next(&view, IDEM_RECOVERY_E_LAG, IDEM_STEP_ASK, false);
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US);

    view.asked_us = view.newest_open_us + 30 * SECOND;
    expect_next(&view, IDEM_RECOVERY_D_SEND_AGAIN, IDEM_STEP_SEND, false);
}

static void row_f_closes_once_where_a_close_is_final(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&closing, IDEM_OUTCOME_NOT_FOUND);
    expect_next(&view, IDEM_RECOVERY_F_CLOSE, IDEM_STEP_CLOSE, false);
    view.wire_end_us = NOW_US + HOUR; /* Closing is safe whatever is on the wire. */
    expect_next(&view, IDEM_RECOVERY_F_CLOSE, IDEM_STEP_CLOSE, false);
    view.close_asked = true;
    expect_next(&view, IDEM_RECOVERY_G_ON_THE_WIRE, IDEM_STEP_ASK, false);
    view.wire_end_us = NOW_US - HOUR;
    expect_next(&view, IDEM_RECOVERY_H_NO_SAFE_STEP, IDEM_STEP_ASK, true);
}

static void row_f_does_not_close_where_a_window_closed(void **state)
{
    (void)state;
    struct idem_capability both = dedup;
    both.close_is_final = true;
    struct idem_recovery_view view = view_of(&both, IDEM_OUTCOME_NOT_FOUND);
    view.oldest_open_us = NOW_US - 25 * HOUR;
    expect_next(&view, IDEM_RECOVERY_H_NO_SAFE_STEP, IDEM_STEP_ASK, true);
}

static void row_g_asks_again_while_something_may_still_arrive(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&plain, IDEM_OUTCOME_NOT_FOUND);
    view.wire_end_us = NOW_US + SECOND;
    expect_next(&view, IDEM_RECOVERY_G_ON_THE_WIRE, IDEM_STEP_ASK, false);
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US + SECOND); /* Nothing comes later. */
    view.wire_end_us = NOW_US + HOUR;
    assert_in_range((uint64_t)idem_recovery_next(&view).at_us, NOW_US + 2 * SECOND,
                    NOW_US + 5 * SECOND);
    view.wire_end_us = NOW_US; /* The question left before that; it proves nothing yet. */
    view.asked_us = NOW_US - 1;
    expect_next(&view, IDEM_RECOVERY_G_ON_THE_WIRE, IDEM_STEP_ASK, false);
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US);
    view.wire_end_us = NOW_US - HOUR;
    view.asked_us = NOW_US - HOUR - 1;
    expect_next(&view, IDEM_RECOVERY_G_ON_THE_WIRE, IDEM_STEP_ASK, false);
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US);
}

static void row_h_never_sends_a_second_time_without_deduplication(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&plain, IDEM_OUTCOME_NOT_FOUND);
    view.asked_us = view.wire_end_us;
    expect_next(&view, IDEM_RECOVERY_H_NO_SAFE_STEP, IDEM_STEP_ASK, true);
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US + DAY);
}

static void row_i_asks_at_once_after_a_send_and_then_with_pauses(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&plain, IDEM_OUTCOME_UNKNOWN);
    view.source = IDEM_SOURCE_SEND;
    view.ask_count = 0;
    expect_next(&view, IDEM_RECOVERY_I_ASK, IDEM_STEP_ASK, false);
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US);
    view.ask_count = 1;
    view.source = IDEM_SOURCE_QUERY;
    expect_next(&view, IDEM_RECOVERY_I_ASK, IDEM_STEP_ASK, false);
    assert_true(idem_recovery_next(&view).at_us > NOW_US);
    view.source = IDEM_SOURCE_CLOSE; /* Whether a close took is asked at once. */
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US);
}

static void row_j_parks_what_can_be_neither_asked_nor_sent(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&blind, IDEM_OUTCOME_UNKNOWN);
    view.source = IDEM_SOURCE_SEND;
    expect_next(&view, IDEM_RECOVERY_J_MUTE, IDEM_STEP_NONE, true);
    view.outcome = IDEM_OUTCOME_PROCESSING;
    expect_next(&view, IDEM_RECOVERY_J_MUTE, IDEM_STEP_NONE, true);
    view = view_of(&mute, IDEM_OUTCOME_UNKNOWN);
    view.oldest_open_us = NOW_US - 23 * HOUR;
    expect_next(&view, IDEM_RECOVERY_J_MUTE, IDEM_STEP_NONE, true);
}

static void pauses_double_from_five_seconds_to_an_hour_within_their_jitter(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&plain, IDEM_OUTCOME_UNKNOWN);
    int64_t whole_us = 5 * SECOND;
    uint64_t noise = 1;
    for (uint32_t asked = 1; asked < 40; asked++) {
        view.ask_count = asked;
        for (int i = 0; i < 500; i++) {
            noise = noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            view.noise = i == 0 ? 0 : i == 1 ? UINT64_MAX : noise;
            int64_t pause_us = idem_recovery_next(&view).at_us - NOW_US;
            assert_true(pause_us >= whole_us / 2);
            assert_true(pause_us <= whole_us);
        }
        whole_us = whole_us * 2 > HOUR ? HOUR : whole_us * 2;
    }
    assert_int_equal(whole_us, HOUR);
}

static void pauses_of_nothing_are_possible(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&plain, IDEM_OUTCOME_UNKNOWN);
    rules.ask_first_us = 1;
    rules.ask_max_us = 1;
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US);
}

static void the_provider_may_ask_for_more_patience_but_not_for_less(void **state)
{
    (void)state;
    struct idem_recovery_view view = view_of(&plain, IDEM_OUTCOME_UNKNOWN);
    view.retry_after_us = 90 * SECOND;
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US + 90 * SECOND);
    view.outcome = IDEM_OUTCOME_PROCESSING;
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US + 90 * SECOND);
    view.retry_after_us = 1;
    assert_true(idem_recovery_next(&view).at_us >= NOW_US + 5 * SECOND / 2);
    view.outcome = IDEM_OUTCOME_UNKNOWN; /* It holds for the first question too. */
    view.source = IDEM_SOURCE_SEND;
    view.ask_count = 0;
    view.retry_after_us = 90 * SECOND;
    assert_int_equal(idem_recovery_next(&view).at_us, NOW_US + 90 * SECOND);
}

static void a_window_ends_its_margin_early_and_none_is_none(void **state)
{
    (void)state;
    assert_int_equal(idem_recovery_window_end_us(&dedup, NOW_US), NOW_US + 23 * HOUR);
    assert_int_equal(idem_recovery_window_end_us(&plain, NOW_US), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_a_what_a_person_has_is_asked_once_a_day_and_never_sent),
        cmocka_unit_test(row_b_parks_after_seven_days_and_not_a_moment_before),
        cmocka_unit_test(row_c_what_is_processing_is_asked_about_and_not_sent),
        cmocka_unit_test(row_d_sends_again_what_is_not_found_while_the_window_is_open),
        cmocka_unit_test(row_d_counts_the_window_from_the_oldest_send_and_not_the_newest),
        cmocka_unit_test(row_d_ends_with_the_last_send_that_is_allowed),
        cmocka_unit_test(row_d_takes_turns_with_questions_when_nothing_usable_comes),
        cmocka_unit_test(row_d_sends_again_where_nothing_can_be_asked),
        cmocka_unit_test(row_d_backs_off_by_sends_where_nothing_can_be_asked),
        cmocka_unit_test(row_e_waits_the_lag_out_and_asks_again_before_it_sends),
        cmocka_unit_test(row_f_closes_once_where_a_close_is_final),
        cmocka_unit_test(row_f_does_not_close_where_a_window_closed),
        cmocka_unit_test(row_g_asks_again_while_something_may_still_arrive),
        cmocka_unit_test(row_h_never_sends_a_second_time_without_deduplication),
        cmocka_unit_test(row_i_asks_at_once_after_a_send_and_then_with_pauses),
        cmocka_unit_test(row_j_parks_what_can_be_neither_asked_nor_sent),
        cmocka_unit_test(pauses_double_from_five_seconds_to_an_hour_within_their_jitter),
        cmocka_unit_test(pauses_of_nothing_are_possible),
        cmocka_unit_test(the_provider_may_ask_for_more_patience_but_not_for_less),
        cmocka_unit_test(a_window_ends_its_margin_early_and_none_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
