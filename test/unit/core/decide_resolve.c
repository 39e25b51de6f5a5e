/*
 * A person's word: what it settles, when it is refused, and what stays on record.
 *
 * Goal: a verdict is evidence on the one path (P7). "It happened" is believed where the provider
 * would be; "it did not" only when nothing can arrive any more (P6); what is final keeps its answer
 * (P4); every verdict stands in the history with who and why, and decides the open cases.
 *
 * Method: scenes (scene.h), both sides of every boundary.
 */
#include "unit/core/usual.h"

static const struct idem_intent *row(const char *key)
{
    return &scene_intent(&scene, key)->row;
}

static void unknown(const char *key, const char *entry)
{
    (void)pay(key, entry);
    (void)sent(key, IDEM_OUTCOME_UNKNOWN);
    EXPECT_STATE(&scene, key, "unknown");
}

/* ---- it happened ---- */

static void success_settles_as_the_providers_would(void **state)
{
    (void)state;
    parked("k");
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(answer_of("k")->status, 201);
    assert_true(body_has("k", "\"captured\":\"100.00\""));
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_CAPTURED);
    EXPECT_TEXT(scene_payment(&scene, "k")->reference, "provider-99");
    EXPECT_TEXT(row("k")->effect.reference, "provider-99");
}

static void a_verdict_stands_in_the_history_with_who_and_why(void **state)
{
    (void)state;
    parked("k");
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 1);
    (void)resolve("k", IDEM_VERDICT_SUCCEEDED);
    EXPECT_TEXT(event_text(IDEM_EVENT_RESOLVED),
                "olga (night shift): succeeded: seen at the provider");
    EXPECT_TEXT(event_text(IDEM_EVENT_SUCCEEDED), "operator");
    EXPECT_TEXT(event_text(IDEM_EVENT_PAYMENT_MOVED), "pending -> captured");
    for (size_t i = 0; i < scene.decision.event_count; i++) {
        assert_int_equal(scene.decision.events[i].cause, IDEM_CAUSE_OPERATOR);
    }
    const struct scene_intent *intent = scene_intent(&scene, "k");
    assert_int_equal(intent->open_cases, 0);
    EXPECT_TEXT(intent->decided.decided_by, "olga (night shift)");
    EXPECT_TEXT(intent->decided.decision, "succeeded: seen at the provider");
}

static void success_must_name_the_effects_money(void **state)
{
    (void)state;
    unknown("k", "plain");
    struct idem_command command = scene_resolve(&scene, "k", IDEM_VERDICT_SUCCEEDED);
    command.resolve.amount_minor += 1;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_AMOUNT_INVALID);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    command = scene_resolve(&scene, "k", IDEM_VERDICT_SUCCEEDED);
    command.resolve.currency = IDEM_STR("USD");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_AMOUNT_INVALID);
    EXPECT_STATE(&scene, "k", "unknown");
}

static void success_waits_for_a_lease_that_lives(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    int64_t lease_end_us = row("k")->lease_end_us;
    struct idem_release release = resolve("k", IDEM_VERDICT_SUCCEEDED);
    expect_problem(release, IDEM_PROBLEM_TOO_EARLY);
    assert_int_equal(release.retry_after_us, lease_end_us - scene.now_us);
    scene.now_us = lease_end_us - 1;
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void a_lease_of_a_dead_process_does_not_count(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    scene.incarnation += 1;
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
}

static void success_of_what_was_never_sent_is_refused(void **state)
{
    (void)state;
    scene.slot = false;
    (void)pay("k", "plain");
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
    EXPECT_STATE(&scene, "k", "claimed");
}

static void success_of_what_was_sent_and_said_not_executed_is_believed(void **state)
{
    (void)state;
    scene.wait_us = HOUR;
    (void)pay("k", "plain");
    (void)sent("k", IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_STATE(&scene, "k", "claimed");
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void success_after_release_settles_on_a_new_row_if_there_is_room(void **state)
{
    (void)state;
    released("k", "plain");
    int64_t old_row = row("k")->payment_row;
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_not_equal(row("k")->payment_row, old_row);

    released("j", "plain");
    struct idem_command command = scene_pay(&scene, "other", "plain");
    command.accept.order_no = IDEM_STR("j");
    (void)scene_run(&scene, &command);
    expect_problem(resolve("j", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    EXPECT_STATE(&scene, "j", "released");
}

static void what_was_parked_without_room_settles_when_there_is(void **state)
{
    (void)state;
    released("k", "plain");
    struct idem_command command = scene_pay(&scene, "other", "plain");
    command.accept.order_no = IDEM_STR("k");
    (void)scene_run(&scene, &command);
    (void)asked("k", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "k", "parked");
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
    (void)sent("other", IDEM_OUTCOME_REFUSED_FINAL); /* The order number is free again. */
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_CAPTURED);
}

static void a_refund_is_resolved_with_its_row(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    (void)act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    assert_int_equal(scene_refund(&scene, "k")->state, IDEM_REFUND_SUCCEEDED);
    assert_int_equal(scene_payment(&scene, "k")->refunded_minor, 4000);
}

static void without_a_reference_the_known_one_stays(void **state)
{
    (void)state;
    unknown("k", "plain");
    struct idem_command command = scene_resolve(&scene, "k", IDEM_VERDICT_SUCCEEDED);
    command.resolve.reference = (struct idem_str){ .len = 0 };
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    EXPECT_TEXT(row("k")->effect.reference, "provider-77"); /* As sent. */
    EXPECT_TEXT(scene_payment(&scene, "k")->reference, "provider-77");
}

/* ---- it did not happen ---- */

static void failure_is_refused_until_nothing_can_arrive(void **state)
{
    (void)state;
    unknown("k", "plain");
    int64_t end_us = scene_intent(&scene, "k")->sends[0].not_after_us + TIMEOUT_US + SETTLE_US;
    struct idem_release release = resolve("k", IDEM_VERDICT_FAILED);
    expect_problem(release, IDEM_PROBLEM_TOO_EARLY);
    assert_int_equal(release.retry_after_us, end_us - scene.now_us);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    scene.now_us = end_us - 2;
    release = resolve("k", IDEM_VERDICT_FAILED);
    expect_problem(release, IDEM_PROBLEM_TOO_EARLY);
    assert_int_equal(release.retry_after_us, 1);
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "failed");
}

/* It waited in a queue until it would have been in time; what was looked at is out of date. */
static void failure_speaks_of_when_it_was_said(void **state)
{
    (void)state;
    unknown("k", "plain");
    int64_t end_us = scene_intent(&scene, "k")->sends[0].not_after_us + TIMEOUT_US + SETTLE_US;
    struct idem_command command = scene_resolve(&scene, "k", IDEM_VERDICT_FAILED);
    command.resolve.asked_us = end_us - 1;
    command.now_us = end_us + HOUR;
    scene.now_us = command.now_us;
    struct idem_release release = scene_run(&scene, &command);
    expect_problem(release, IDEM_PROBLEM_TOO_EARLY);
    assert_int_equal(release.retry_after_us, 0); /* Whoever looks now may say it. */
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    command = scene_resolve(&scene, "k", IDEM_VERDICT_FAILED);
    command.resolve.asked_us = end_us;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "failed");
}

/* What a former process granted is as long as it was, and its clock may have been another. */
static void after_a_start_a_grant_counts_from_there(void **state)
{
    (void)state;
    unknown("k", "plain");
    const struct idem_send *send = &scene_intent(&scene, "k")->sends[0];
    int64_t length_us = send->not_after_us - send->granted_us;
    scene.incarnation += 1;
    scene.opened_us = scene.now_us + 3 * DAY; /* It looks as if days had passed. */
    scene.now_us = scene.opened_us;
    struct idem_release release = resolve("k", IDEM_VERDICT_FAILED);
    expect_problem(release, IDEM_PROBLEM_TOO_EARLY);
    int64_t end_us = scene.opened_us + length_us + TIMEOUT_US + SETTLE_US;
    assert_int_equal(release.retry_after_us, end_us - scene.now_us);
    scene.now_us = end_us - 2;
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_TOO_EARLY);
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
}

static void failure_ends_as_not_happened_and_gives_the_reservation_back(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    (void)act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    scene_pass(&scene, HOUR);
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
    assert_int_equal(row("k")->problem, IDEM_PROBLEM_NOT_HAPPENED);
    assert_int_equal(answer_of("k")->status, 409);
    assert_true(body_has("k", "urn:idem:problem:not-happened"));
    assert_true(body_has("k", "\"effect\":\"none\",\"retry\":\"new-key\""));
    assert_true(body_has("k", "\"payment\":\"/v1/payments/"));
    assert_false(body_has("k", "provider_code"));
    assert_int_equal(scene_payment(&scene, "k")->refund_pending_minor, 0);
    assert_int_equal(scene_refund(&scene, "k")->state, IDEM_REFUND_FAILED);
    EXPECT_TEXT(scene_refund(&scene, "k")->failure_code, "not_happened");
    EXPECT_TEXT(event_text(IDEM_EVENT_FAILED), "not_happened");
    EXPECT_TEXT(event_text(IDEM_EVENT_RESOLVED),
                "olga (night shift): failed: seen at the provider");
}

static void every_send_counts_that_was_not_proven(void **state)
{
    (void)state;
    unknown("k", "dedup");
    (void)scene_make_due(&scene, "k");
    (void)asked("k", IDEM_OUTCOME_NOT_FOUND);
    scene_pass(&scene, HOUR);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "send"); /* The first one is long over. */
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_TOO_EARLY);
    (void)sent("k", IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_STATE(&scene, "k", "unknown");
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
}

static void the_lease_of_a_dispatched_intent_counts_too(void **state)
{
    (void)state;
    scene_entry(&scene, "dedup")->capability[IDEM_EFFECT_KIND_CHARGE].dedup_window_us =
        MARGIN_US + SECOND;
    (void)pay("k", "dedup"); /* Its window ends long before its lease. */
    scene_pass(&scene, SECOND + TIMEOUT_US + SETTLE_US);
    int64_t lease_end_us = row("k")->lease_end_us;
    struct idem_release release = resolve("k", IDEM_VERDICT_FAILED);
    expect_problem(release, IDEM_PROBLEM_TOO_EARLY);
    assert_int_equal(release.retry_after_us, lease_end_us - scene.now_us);
    scene.now_us = lease_end_us;
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
}

static void what_was_never_sent_fails_at_once(void **state)
{
    (void)state;
    scene.slot = false;
    (void)pay("k", "plain");
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_FAILED);
}

static void what_was_released_fails_at_once(void **state)
{
    (void)state;
    released("k", "plain");
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
    assert_int_equal(row("k")->problem, IDEM_PROBLEM_NOT_HAPPENED);
    expect_problem(pay("k", "plain"), IDEM_PROBLEM_NONE); /* The stored answer, for ever. */
    assert_int_equal(scene.decision.intent.row.answer.status, 409);
}

static void without_configuration_the_wire_is_given_an_hour(void **state)
{
    (void)state;
    unknown("k", "plain");
    scene.rules.provider_count = 0;
    int64_t end_us = scene_intent(&scene, "k")->sends[0].not_after_us + HOUR;
    scene.now_us = end_us - 2;
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_TOO_EARLY);
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
}

static void a_success_that_comes_after_a_persons_no_opens_a_case(void **state)
{
    (void)state;
    unknown("k", "plain");
    scene_pass(&scene, HOUR);
    (void)resolve("k", IDEM_VERDICT_FAILED);
    (void)asked("k", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_CONTRADICTION);
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 1);
}

/* ---- the record is right ---- */

static void noting_closes_cases_and_changes_nothing(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    (void)asked("k", IDEM_OUTCOME_REFUSED_FINAL);
    struct idem_payment before = *scene_payment(&scene, "k");
    expect_problem(resolve("k", IDEM_VERDICT_NOTED), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(scene.decision.payment.write, IDEM_WRITE_NONE);
    assert_int_equal(scene_payment(&scene, "k")->version, before.version);
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 0);
    EXPECT_TEXT(scene_intent(&scene, "k")->decided.decision, "noted: seen at the provider");
    assert_int_equal(events(IDEM_EVENT_RESOLVED), 1);
    assert_int_equal(scene.decision.event_count, 1);
}

static void what_is_parked_cannot_be_noted_away(void **state)
{
    (void)state;
    parked("k");
    expect_problem(resolve("k", IDEM_VERDICT_NOTED), IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 1);
}

static void other_verdicts_about_what_is_final_are_refused(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_STATE_CONFLICT);
    (void)pay("j", "plain");
    (void)sent("j", IDEM_OUTCOME_REFUSED_FINAL);
    expect_problem(resolve("j", IDEM_VERDICT_FAILED), IDEM_PROBLEM_STATE_CONFLICT);
    expect_problem(resolve("j", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
}

static void the_same_verdict_again_is_the_same_reply_and_nothing_new(void **state)
{
    (void)state;
    unknown("k", "plain");
    scene_pass(&scene, HOUR);
    (void)resolve("k", IDEM_VERDICT_FAILED);
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);

    unknown("j", "plain");
    (void)resolve("j", IDEM_VERDICT_SUCCEEDED);
    expect_problem(resolve("j", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    struct idem_command command = scene_resolve(&scene, "j", IDEM_VERDICT_SUCCEEDED);
    command.resolve.reference = (struct idem_str){ .len = 0 };
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    for (int what = 0; what < 3; what++) {
        command = scene_resolve(&scene, "j", IDEM_VERDICT_SUCCEEDED);
        command.resolve.reference = what == 0 ? IDEM_STR("another") : command.resolve.reference;
        command.resolve.amount_minor += what == 1 ? 1 : 0;
        command.resolve.currency = what == 2 ? IDEM_STR("USD") : command.resolve.currency;
        expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_STATE_CONFLICT);
    }
}

static void a_tombstone_can_be_noted(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    forgotten("k");
    (void)asked("k", IDEM_OUTCOME_SUCCESS);
    expect_problem(resolve("k", IDEM_VERDICT_NOTED), IDEM_PROBLEM_NONE);
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 0);
}

static void nothing_can_be_said_of_what_is_not_there(void **state)
{
    (void)state;
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NOT_FOUND);
    expect_problem(resolve("k", IDEM_VERDICT_NOTED), IDEM_PROBLEM_NOT_FOUND);
}

static void the_longest_words_fit(void **state)
{
    (void)state;
    static char text[IDEM_REASON_MAX];
    memset(text, 'r', sizeof(text));
    parked("k");
    struct idem_command command = scene_resolve(&scene, "k", IDEM_VERDICT_SUCCEEDED);
    command.resolve.reason = (struct idem_str){ .data = text, .len = IDEM_REASON_MAX };
    command.resolve.by = (struct idem_str){ .data = text, .len = 132 };
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    assert_int_equal(event_text(IDEM_EVENT_RESOLVED).len, 132 + 2 + 9 + 2 + IDEM_REASON_MAX);
}

/* ---- cases ---- */

static void the_providers_word_decides_the_case_of_what_was_parked(void **state)
{
    (void)state;
    parked("k");
    (void)asked("k", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 0);
    EXPECT_TEXT(scene_intent(&scene, "k")->decided.decided_by, "provider");
    EXPECT_TEXT(scene_intent(&scene, "k")->decided.decision, "succeeded");

    parked("j");
    (void)asked("j", IDEM_OUTCOME_REFUSED_FINAL);
    EXPECT_STATE(&scene, "j", "failed");
    assert_int_equal(scene_intent(&scene, "j")->open_cases, 0);
    EXPECT_TEXT(scene_intent(&scene, "j")->decided.decision, "failed");
}

static void what_was_not_parked_decides_no_case(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    assert_int_equal(scene_intent(&scene, "k")->decided.decided_us, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(success_settles_as_the_providers_would),
        SCENE_TEST(a_verdict_stands_in_the_history_with_who_and_why),
        SCENE_TEST(success_must_name_the_effects_money),
        SCENE_TEST(success_waits_for_a_lease_that_lives),
        SCENE_TEST(a_lease_of_a_dead_process_does_not_count),
        SCENE_TEST(success_of_what_was_never_sent_is_refused),
        SCENE_TEST(success_of_what_was_sent_and_said_not_executed_is_believed),
        SCENE_TEST(success_after_release_settles_on_a_new_row_if_there_is_room),
        SCENE_TEST(what_was_parked_without_room_settles_when_there_is),
        SCENE_TEST(a_refund_is_resolved_with_its_row),
        SCENE_TEST(without_a_reference_the_known_one_stays),
        SCENE_TEST(failure_is_refused_until_nothing_can_arrive),
        SCENE_TEST(failure_speaks_of_when_it_was_said),
        SCENE_TEST(after_a_start_a_grant_counts_from_there),
        SCENE_TEST(failure_ends_as_not_happened_and_gives_the_reservation_back),
        SCENE_TEST(every_send_counts_that_was_not_proven),
        SCENE_TEST(the_lease_of_a_dispatched_intent_counts_too),
        SCENE_TEST(what_was_never_sent_fails_at_once),
        SCENE_TEST(what_was_released_fails_at_once),
        SCENE_TEST(without_configuration_the_wire_is_given_an_hour),
        SCENE_TEST(a_success_that_comes_after_a_persons_no_opens_a_case),
        SCENE_TEST(noting_closes_cases_and_changes_nothing),
        SCENE_TEST(what_is_parked_cannot_be_noted_away),
        SCENE_TEST(other_verdicts_about_what_is_final_are_refused),
        SCENE_TEST(the_same_verdict_again_is_the_same_reply_and_nothing_new),
        SCENE_TEST(a_tombstone_can_be_noted),
        SCENE_TEST(nothing_can_be_said_of_what_is_not_there),
        SCENE_TEST(the_longest_words_fit),
        SCENE_TEST(the_providers_word_decides_the_case_of_what_was_parked),
        SCENE_TEST(what_was_not_parked_decides_no_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
