/*
 * Retention: what is forgotten, when, and what stays.
 *
 * Goal: docs/design.md, section 5: an answer goes when its time has come and leaves a tombstone; a
 * tombstone goes only if no payment is concerned (P12); nothing that is open is touched; a person
 * may ask to erase once no retry can come.
 *
 * Method: scenes (scene.h); each run of a reaper has its horizon at the scene's time. The scene
 * itself checks that nothing too young or too open is ever forgotten.
 */
#include "unit/core/usual.h"

static const struct idem_intent *row(const char *key)
{
    return &scene_intent(&scene, key)->row;
}

/* A final record without a payment: nobody ever ran under this key. */
static void given_up(const char *key)
{
    struct idem_command command = scene_abandon(&scene, key);
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, key, "failed");
}

/* A final record without a payment that was refused by the facts. */
static void refused(const char *key)
{
    struct idem_command command = scene_act(&scene, key, IDEM_ENDPOINT_REFUNDS_CREATE, "1.00");
    command.accept.payment_id = (struct idem_uid){ .bytes = { 1 } };
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    assert_int_equal(row(key)->problem, IDEM_PROBLEM_PAYMENT_MISSING);
}

/* ---- tombstones ---- */

static void a_finished_intent_is_reaped_when_its_answer_expires(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    assert_int_equal(row("k")->reap_us, row("k")->expires_us);
    scene.now_us = row("k")->reap_us - 2; /* The next command is one later. */
    expect_problem(reap("k"), IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    expect_problem(reap("k"), IDEM_PROBLEM_NONE); /* On the microsecond. */
    assert_true(idem_intent_is_tombstone(row("k")));
}

static void a_tombstone_keeps_what_names_it_and_nothing_of_the_request_or_answer(void **state)
{
    (void)state;
    struct idem_command command = scene_pay(&scene, "k", "plain");
    command.accept.trace = IDEM_STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    (void)scene_run(&scene, &command);
    (void)sent("k", IDEM_OUTCOME_SUCCESS);
    struct idem_intent before = *row("k");
    assert_true(before.effect.request.len > 0);
    forgotten("k");
    const struct idem_intent *after = row("k");
    assert_int_equal(after->answer.status, 0);
    assert_int_equal(after->answer.headers.len, 0);
    assert_int_equal(after->answer.body.len, 0);
    assert_int_equal(after->effect.request.len, 0);
    assert_int_equal(after->trace.len, 0);
    EXPECT_TEXT(after->key, "k");
    assert_memory_equal(&after->fingerprint, &before.fingerprint, sizeof(before.fingerprint));
    assert_memory_equal(&after->scope, &before.scope, sizeof(before.scope));
    assert_true(idem_str_equal(after->effect.id, before.effect.id));
    EXPECT_TEXT(after->effect.reference, "provider-77");
    assert_int_equal(after->effect.amount_minor, 10000);
    assert_int_equal(after->state, IDEM_INTENT_SUCCEEDED);
    assert_int_equal(after->problem, IDEM_PROBLEM_NONE);
    assert_int_equal(after->payment_row, before.payment_row);
    assert_true(idem_uid_equal(after->payment_id, before.payment_id));
    EXPECT_TEXT(scene_payment(&scene, "k")->method, "card-1"); /* The payment keeps its words. */
}

static void history_goes_and_the_last_event_says_why(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    forgotten("k");
    assert_true(scene.decision.forget_history);
    assert_int_equal(events(IDEM_EVENT_EXPIRED), 1);
    assert_int_equal(event_text(IDEM_EVENT_EXPIRED).len, 0);
    assert_int_equal(scene.decision.events[0].cause, IDEM_CAUSE_TIMER);
    assert_int_equal(scene_intent(&scene, "k")->send_count, 0);
    assert_int_equal(scene_intent(&scene, "k")->event_count, 1);
}

static void a_key_that_moved_money_is_kept_for_ever(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    forgotten("k");
    assert_int_equal(row("k")->reap_us, 0);
    scene_pass(&scene, 10000 * DAY);
    expect_problem(reap("k"), IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void a_declined_payment_is_a_payment_too(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    forgotten("k");
    assert_int_equal(row("k")->reap_us, 0);
}

static void a_tombstone_without_a_payment_goes_after_its_time(void **state)
{
    (void)state;
    refused("k");
    forgotten("k");
    assert_int_equal(row("k")->reap_us, row("k")->finished_us + 400 * DAY);
    scene.now_us = row("k")->reap_us - 2;
    expect_problem(reap("k"), IDEM_PROBLEM_STATE_CONFLICT);
    expect_problem(reap("k"), IDEM_PROBLEM_NONE);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_DELETE);
    assert_int_equal(scene.decision.intent.row.state, IDEM_INTENT_NONE); /* As it will stand. */
    assert_null(scene_intent(&scene, "k"));
    expect_problem(reap("k"), IDEM_PROBLEM_NONE); /* What finds nothing has nothing to do. */
}

static void what_is_not_final_is_never_touched(void **state)
{
    (void)state;
    (void)pay("dispatched", "plain");
    (void)pay("unknown", "plain");
    (void)sent("unknown", IDEM_OUTCOME_UNKNOWN);
    parked("parked");
    released("released", "plain");
    scene.slot = false;
    (void)pay("claimed", "plain");
    scene_pass(&scene, 10000 * DAY);
    const char *const keys[] = { "dispatched", "unknown", "parked", "released", "claimed" };
    for (size_t i = 0; i < 5; i++) {
        EXPECT_STATE(&scene, keys[i], keys[i]);
        expect_problem(reap(keys[i]), IDEM_PROBLEM_STATE_CONFLICT);
        assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
        expect_problem(erase(keys[i]), IDEM_PROBLEM_STATE_CONFLICT);
        assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    }
}

static void the_horizon_counts_and_not_the_clock(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    struct idem_command command = scene_reap(&scene, "k");
    command.now_us += 1000 * DAY; /* The clock has jumped. */
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
}

static void an_open_case_keeps_everything_for_another_day(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    (void)asked("k", IDEM_OUTCOME_REFUSED_FINAL); /* A contradiction. */
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 1);
    scene.now_us = row("k")->reap_us;
    expect_problem(reap("k"), IDEM_PROBLEM_NONE);
    assert_int_equal(row("k")->answer.status, 201);
    assert_int_equal(row("k")->reap_us, scene.now_us + DAY);
    assert_false(scene.decision.forget_history);
    scene_pass(&scene, 5 * DAY);
    expect_problem(erase("k"), IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    expect_problem(resolve("k", IDEM_VERDICT_NOTED), IDEM_PROBLEM_NONE);
    forgotten("k");
}

static void a_tombstone_with_an_open_case_is_kept_too(void **state)
{
    (void)state;
    given_up("k");
    forgotten("k");
    scene_intent(&scene, "k")->open_cases = 1;
    scene_intent(&scene, "k")->cases_open = UINT32_C(1) << IDEM_CASE_CONTRADICTION;
    scene.now_us = row("k")->reap_us;
    expect_problem(reap("k"), IDEM_PROBLEM_NONE);
    assert_int_equal(row("k")->reap_us, scene.now_us + DAY);
    EXPECT_STATE(&scene, "k", "failed");
}

/* ---- what a caller meets ---- */

static void the_same_request_hears_that_its_answer_has_expired(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    forgotten("k");
    struct idem_release release = pay("k", "plain");
    expect_problem(release, IDEM_PROBLEM_ANSWER_EXPIRED);
    assert_true(release.replayed);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    assert_int_equal(scene.decision.intent.row.state, IDEM_INTENT_SUCCEEDED); /* For the effect. */
}

static void another_request_under_the_key_is_refused_as_ever(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    forgotten("k");
    struct idem_command command = scene_pay(&scene, "k", "plain");
    command.accept.fingerprints[0].digest.bytes[0] ^= 1;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_KEY_REUSED);
    command = scene_pay(&scene, "k", "plain");
    command.accept.fingerprints[0].secret_id += 1; /* Nobody can compare. */
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_UNAVAILABLE);
}

static void an_abandoned_key_stays_abandoned_for_everybody(void **state)
{
    (void)state;
    given_up("k");
    forgotten("k");
    struct idem_command command = scene_pay(&scene, "k", "plain");
    command.accept.fingerprints[0].digest.bytes[0] ^= 1;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_ABANDONED);
    expect_problem(pay("k", "plain"), IDEM_PROBLEM_ABANDONED);
}

static void abandoning_a_tombstone_shows_what_is_there(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    forgotten("k");
    struct idem_command command = scene_abandon(&scene, "k");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    assert_int_equal(scene.decision.intent.row.state, IDEM_INTENT_SUCCEEDED);
}

static void late_evidence_against_a_tombstone_opens_a_case(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    forgotten("k");
    (void)asked("k", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 1);
}

static void a_timer_leaves_a_tombstone_alone(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    forgotten("k");
    struct idem_command command = scene_due(&scene, "k");
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
}

/* ---- on request ---- */

static void erasing_waits_until_no_retry_can_come(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    scene.now_us = row("k")->finished_us + DAY - 2;
    expect_problem(erase("k"), IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    expect_problem(erase("k"), IDEM_PROBLEM_NONE);
    assert_true(idem_intent_is_tombstone(row("k")));
    EXPECT_TEXT(event_text(IDEM_EVENT_EXPIRED), "olga");
    assert_int_equal(scene.decision.events[0].cause, IDEM_CAUSE_OPERATOR);
}

static void erasing_blanks_what_the_payment_says_of_people(void **state)
{
    (void)state;
    struct idem_command command = scene_pay(&scene, "k", "plain");
    command.accept.description = IDEM_STR("for Ann");
    command.accept.metadata = IDEM_STR("{\"who\":\"Ann\"}");
    (void)scene_run(&scene, &command);
    (void)sent("k", IDEM_OUTCOME_SUCCESS);
    scene_pass(&scene, 2 * DAY);
    expect_problem(erase("k"), IDEM_PROBLEM_NONE);
    const struct idem_payment *payment = scene_payment(&scene, "k");
    assert_int_equal(payment->method.len, 0);
    assert_int_equal(payment->description.len, 0);
    assert_int_equal(payment->metadata.len, 0);
    EXPECT_TEXT(payment->order_no, "k");
    assert_int_equal(payment->captured_minor, 10000);
    expect_problem(erase("k"), IDEM_PROBLEM_NONE); /* Once more: nothing is left. */
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    assert_int_equal(scene.decision.payment.write, IDEM_WRITE_NONE);
}

static void erasing_reaches_what_time_has_left_of_a_tombstones_payment(void **state)
{
    (void)state;
    const char *const left[] = { "method", "description", "metadata" };
    for (size_t i = 0; i < 3; i++) {
        const char *key = left[i];
        scene_paid(&scene, key, "plain", IDEM_CAPTURE_AUTOMATIC);
        forgotten(key);
        struct idem_payment *payment = scene_payment(&scene, key);
        payment->method = (struct idem_str){ .len = 0 };
        struct idem_str *text =
            i == 0 ? &payment->method : (i == 1 ? &payment->description : &payment->metadata);
        *text = IDEM_STR("{}");
        expect_problem(erase(key), IDEM_PROBLEM_NONE);
        assert_int_equal(scene.decision.payment.write, IDEM_WRITE_UPDATE);
        assert_int_equal(scene_payment(&scene, key)->method.len, 0);
        assert_int_equal(scene_payment(&scene, key)->description.len, 0);
        assert_int_equal(scene_payment(&scene, key)->metadata.len, 0);
        assert_int_equal(row(key)->reap_us, 0);
    }
}

static void erasing_without_a_payment_leaves_the_tombstone_its_time(void **state)
{
    (void)state;
    refused("k");
    scene_pass(&scene, 2 * DAY);
    expect_problem(erase("k"), IDEM_PROBLEM_NONE);
    assert_int_equal(row("k")->reap_us, row("k")->finished_us + 400 * DAY);
    expect_problem(erase("k"), IDEM_PROBLEM_NONE);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE); /* Not removed by asking. */
    EXPECT_STATE(&scene, "k", "failed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_finished_intent_is_reaped_when_its_answer_expires),
        SCENE_TEST(a_tombstone_keeps_what_names_it_and_nothing_of_the_request_or_answer),
        SCENE_TEST(history_goes_and_the_last_event_says_why),
        SCENE_TEST(a_key_that_moved_money_is_kept_for_ever),
        SCENE_TEST(a_declined_payment_is_a_payment_too),
        SCENE_TEST(a_tombstone_without_a_payment_goes_after_its_time),
        SCENE_TEST(what_is_not_final_is_never_touched),
        SCENE_TEST(the_horizon_counts_and_not_the_clock),
        SCENE_TEST(an_open_case_keeps_everything_for_another_day),
        SCENE_TEST(a_tombstone_with_an_open_case_is_kept_too),
        SCENE_TEST(the_same_request_hears_that_its_answer_has_expired),
        SCENE_TEST(another_request_under_the_key_is_refused_as_ever),
        SCENE_TEST(an_abandoned_key_stays_abandoned_for_everybody),
        SCENE_TEST(abandoning_a_tombstone_shows_what_is_there),
        SCENE_TEST(late_evidence_against_a_tombstone_opens_a_case),
        SCENE_TEST(a_timer_leaves_a_tombstone_alone),
        SCENE_TEST(erasing_waits_until_no_retry_can_come),
        SCENE_TEST(erasing_blanks_what_the_payment_says_of_people),
        SCENE_TEST(erasing_reaches_what_time_has_left_of_a_tombstones_payment),
        SCENE_TEST(erasing_without_a_payment_leaves_the_tombstone_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
