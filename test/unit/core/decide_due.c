/*
 * Time: leases, windows, back-off, parking, changes of configuration and of the clock.
 *
 * Goal: nobody acts without acquiring, nothing happens before its time, time alone never runs
 * anything a second time (P6), and every open intent is looked at again (P8).
 *
 * Method: scenes (scene.h) whose clock the test moves.
 */
#include "unit/core/usual.h"

static void a_living_lease_is_respected_and_a_dead_ones_intent_is_asked_about(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command due = scene_due(&scene, "k");
    EXPECT_RELEASE(scene_run(&scene, &due), "nothing");
    due = scene_due(&scene, "k");
    due.now_us = scene.now_us = scene_intent(&scene, "k")->row.lease_end_us - 1;
    EXPECT_RELEASE(scene_run(&scene, &due), "nothing");
    EXPECT_STATE(&scene, "k", "dispatched");
    due = scene_due(&scene, "k");
    due.now_us = scene.now_us = scene_intent(&scene, "k")->row.lease_end_us;
    EXPECT_RELEASE(scene_run(&scene, &due), "query"); /* The moment it ends. */
    EXPECT_STATE(&scene, "k", "unknown");
}

static void a_new_incarnation_ends_every_lease_at_once(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    scene.incarnation += 1;
    struct idem_command due = scene_due(&scene, "k");
    EXPECT_RELEASE(scene_run(&scene, &due), "query");
    EXPECT_STATE(&scene, "k", "unknown");
    /* But not the wire: what was granted may still arrive. */
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_NOT_FOUND), "nothing");
    EXPECT_STATE(&scene, "k", "unknown");
}

static void nothing_happens_before_its_time(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    (void)sent("k", IDEM_OUTCOME_PROCESSING);
    struct idem_command due = scene_due(&scene, "k");
    EXPECT_RELEASE(scene_run(&scene, &due), "nothing");
    due = scene_due(&scene, "k");
    due.now_us = scene.now_us = scene_intent(&scene, "k")->row.due_us - 1;
    EXPECT_RELEASE(scene_run(&scene, &due), "nothing");
    due = scene_due(&scene, "k");
    due.now_us = scene.now_us = scene_intent(&scene, "k")->row.due_us;
    EXPECT_RELEASE(scene_run(&scene, &due), "query");
    due = scene_due(&scene, "absent");
    EXPECT_RELEASE(scene_run(&scene, &due), "nothing");
    scene_paid(&scene, "done", "plain", IDEM_CAPTURE_AUTOMATIC);
    due = scene_due(&scene, "done");
    EXPECT_RELEASE(scene_run(&scene, &due), "nothing");
}

static void a_window_that_closes_between_plan_and_send_closes_the_way(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    (void)scene_make_due(&scene, "k");
    (void)asked("k", IDEM_OUTCOME_NOT_FOUND);
    assert_int_equal(scene_intent(&scene, "k")->row.step, IDEM_STEP_SEND);
    scene_pass(&scene, WINDOW_US - MARGIN_US);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "nothing");
    assert_int_equal(scene_intent(&scene, "k")->send_count, 1);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
}

static void a_mute_provider_is_sent_to_with_growing_pauses_and_then_parked(void **state)
{
    (void)state;
    int64_t begin_us = scene.now_us;
    (void)pay("k", "mute");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    while (scene_state(&scene, "k") == IDEM_INTENT_UNKNOWN) {
        if (scene_make_due(&scene, "k").kind == IDEM_RELEASE_SEND) {
            (void)sent("k", IDEM_OUTCOME_UNKNOWN);
        }
    }
    EXPECT_STATE(&scene, "k", "parked");
    assert_true(scene.now_us - begin_us > 12 * HOUR);       /* Not 48 sends within minutes. */
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "nothing"); /* Only others' evidence can help. */
    EXPECT_STATE(&scene, "k", "parked");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "reply");
}

static void what_cannot_be_asked_or_sent_is_parked_at_once(void **state)
{
    (void)state;
    (void)pay("k", "blind");
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_UNKNOWN), "nothing");
    EXPECT_STATE(&scene, "k", "parked");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_UNRESOLVED);
}

static void after_seven_days_a_person_gets_it_and_questions_go_on(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    int64_t begin_us = scene.now_us;
    while (scene_state(&scene, "k") != IDEM_INTENT_PARKED) {
        assert_true(scene.now_us < begin_us + 8 * DAY);
        EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
        (void)asked("k", IDEM_OUTCOME_PROCESSING);
    }
    assert_true(scene.now_us >= begin_us + 7 * DAY);
    for (int i = 0; i < 3; i++) {
        EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
        EXPECT_RELEASE(asked("k", IDEM_OUTCOME_UNKNOWN), "nothing");
    }
    assert_int_equal(scene_intent(&scene, "k")->case_count, 1);
    (void)scene_make_due(&scene, "k");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "reply");
}

static void not_executed_does_not_run_what_a_person_has(void **state)
{
    (void)state;
    scene.wait_us = DAY;
    (void)pay("k", "plain");
    struct idem_command lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    lie.evidence.amount_minor = 1;
    (void)scene_run(&scene, &lie);
    EXPECT_STATE(&scene, "k", "parked");
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_NOT_EXECUTED), "nothing");
    EXPECT_STATE(&scene, "k", "parked");
}

static void a_provider_taken_out_of_the_configuration_is_waited_for(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    released("j", "plain");
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    scene.rules.provider_count = 0;
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "nothing");
    EXPECT_STATE(&scene, "k", "unknown");
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_UNKNOWN), "nothing");
    expect_problem(pay("j", "plain"), IDEM_PROBLEM_UNAVAILABLE);
    EXPECT_STATE(&scene, "j", "released");
    expect_problem(act("c", IDEM_ENDPOINT_REFUNDS_CREATE, "1.00"), IDEM_PROBLEM_UNAVAILABLE);
    EXPECT_STATE(&scene, "c", "absent"); /* Nothing is kept: it may run later. */
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS),
                   "reply"); /* Evidence needs no configuration. */
    scene.rules.provider_count = SCENE_ENTRIES;
    EXPECT_RELEASE(pay("j", "plain"), "send");
}

static void a_clock_that_went_back_stops_nothing(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    scene.now_us -= HOUR;
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_UNKNOWN), "nothing");
    EXPECT_STATE(&scene, "k", "unknown");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "reply");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_living_lease_is_respected_and_a_dead_ones_intent_is_asked_about),
        SCENE_TEST(a_new_incarnation_ends_every_lease_at_once),
        SCENE_TEST(nothing_happens_before_its_time),
        SCENE_TEST(a_window_that_closes_between_plan_and_send_closes_the_way),
        SCENE_TEST(a_mute_provider_is_sent_to_with_growing_pauses_and_then_parked),
        SCENE_TEST(what_cannot_be_asked_or_sent_is_parked_at_once),
        SCENE_TEST(after_seven_days_a_person_gets_it_and_questions_go_on),
        SCENE_TEST(not_executed_does_not_run_what_a_person_has),
        SCENE_TEST(a_provider_taken_out_of_the_configuration_is_waited_for),
        SCENE_TEST(a_clock_that_went_back_stops_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
