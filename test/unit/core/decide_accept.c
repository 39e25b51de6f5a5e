/*
 * Callers: claims, joins, replays, refusals, keys that are given up, released keys that run again.
 *
 * Goal: the same key and request has one effect and one answer; another request under it learns
 * nothing (P5); what the facts refuse is final; a released key runs again under all checks.
 *
 * Method: scenes (scene.h) that a store would keep; each command runs twice and the rows are
 * audited after each, so a test here only says what it is about.
 */
#include "unit/core/usual.h"

/* ---- the usual ways ---- */

static void a_payment_takes_two_decisions_and_replays_for_ever(void **state)
{
    (void)state;
    struct idem_release release = pay("k", "dedup");
    EXPECT_RELEASE(release, "send");
    assert_int_equal(release.send_no, 1);
    assert_int_equal(release.not_after_us, scene_intent(&scene, "k")->row.lease_end_us);
    EXPECT_STATE(&scene, "k", "dispatched");
    EXPECT_RELEASE(pay("k", "dedup"), "wait");
    release = sent("k", IDEM_OUTCOME_SUCCESS);
    EXPECT_RELEASE(release, "reply");
    assert_false(release.replayed);
    assert_int_equal(answer_of("k")->status, 201);
    assert_true(body_has("k", "\"state\":\"captured\""));
    for (int i = 0; i < 3; i++) {
        release = pay("k", "dedup");
        EXPECT_RELEASE(release, "reply");
        assert_true(release.replayed);
    }
}

static void a_decline_is_final_and_stored(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_REFUSED_FINAL), "reply");
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(answer_of("k")->status, 402);
    assert_true(body_has("k", "\"retry\":\"new-key\""));
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_FAILED);
    assert_true(pay("k", "plain").replayed);
}

static void without_a_place_on_the_wire_the_claim_waits_and_is_dispatched_later(void **state)
{
    (void)state;
    scene.slot = false;
    EXPECT_RELEASE(pay("k", "plain"), "wait");
    EXPECT_STATE(&scene, "k", "claimed");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "nothing");
    EXPECT_STATE(&scene, "k", "claimed");
    scene.slot = true;
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "send");
    EXPECT_STATE(&scene, "k", "dispatched");
}

static void a_send_may_not_leave_after_its_window_however_long_the_lease(void **state)
{
    (void)state;
    scene.rules.lease_us = 48 * HOUR;
    struct idem_release release = pay("k", "dedup");
    assert_int_equal(release.not_after_us, scene.now_us + WINDOW_US - MARGIN_US);
}

/* ---- keys and callers ---- */

static void another_request_under_the_key_is_refused_in_every_state(void **state)
{
    (void)state;
    struct idem_command other;
    released("released", "plain");
    (void)pay("open", "plain");
    scene_paid(&scene, "done", "plain", IDEM_CAPTURE_AUTOMATIC);
    static const char *const all[] = { "released", "open", "done" };
    for (size_t i = 0; i < 3; i++) {
        other = scene_pay(&scene, all[i], "plain");
        other.accept.fingerprints[0].digest.bytes[31] = 1;
        expect_problem(scene_run(&scene, &other), IDEM_PROBLEM_KEY_REUSED);
    }
    EXPECT_STATE(&scene, "released", "released");
}

static void fingerprints_are_compared_under_the_rule_and_secret_of_the_record(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command command = scene_pay(&scene, "k", "plain");
    struct idem_fingerprint old = command.accept.fingerprints[0];
    command.accept.fingerprints[0].secret_id = 2; /* The current secret is a newer one. */
    command.accept.fingerprints[0].digest.bytes[0] = 99;
    command.accept.fingerprints[1] = old;
    command.accept.fingerprint_count = 2;
    EXPECT_RELEASE(scene_run(&scene, &command), "wait");
    command = scene_pay(&scene, "k", "plain");
    command.accept.fingerprints[0].secret_id = 2; /* The record's secret is not offered. */
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_UNAVAILABLE);
    command = scene_pay(&scene, "k", "plain");
    command.accept.fingerprints[0].rule_id = 2;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_UNAVAILABLE);
}

static void two_scopes_with_one_digest_are_kept_apart(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    struct idem_command command = scene_pay(&scene, "k", "plain");
    command.accept.principal = IDEM_STR("thief");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_INTERNAL);
    command = scene_pay(&scene, "k", "plain");
    command.accept.key = IDEM_STR("another");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_INTERNAL);
}

static void a_request_older_than_our_memory_is_refused_only_without_a_record(void **state)
{
    (void)state;
    struct idem_command command = scene_pay(&scene, "k", "plain");
    command.accept.first_sent_us = command.now_us - 30 * DAY - 1;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_TOO_OLD);
    EXPECT_STATE(&scene, "k", "absent");
    command = scene_pay(&scene, "k", "plain");
    command.accept.first_sent_us = command.now_us - 30 * DAY;
    EXPECT_RELEASE(scene_run(&scene, &command), "send");
    command = scene_pay(&scene, "k", "plain");
    command.accept.first_sent_us = 1;
    EXPECT_RELEASE(scene_run(&scene, &command), "wait");
}

/* The record of one was made when nothing kept them apart. */
static void an_order_number_of_a_case_is_refused_only_without_a_record(void **state)
{
    struct idem_command command;
    const struct idem_str number = IDEM_STR("case-01977e3c-5e0a-7cc3-98c4-dc0c0c07398f");
    (void)state;
    command = scene_pay(&scene, "new", "plain");
    command.accept.order_no = number;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_BODY_INVALID);
    EXPECT_STATE(&scene, "new", "absent");
    command.accept.order_no = IDEM_STR("case-01977e3c");
    EXPECT_RELEASE(scene_run(&scene, &command), "send");
    scene_paid(&scene, "k", "plain", IDEM_CAPTURE_AUTOMATIC);
    command = scene_pay(&scene, "k", "plain");
    command.accept.order_no = number;
    struct idem_release release = scene_run(&scene, &command);
    EXPECT_RELEASE(release, "reply");
    assert_true(release.replayed);
    assert_int_equal(answer_of("k")->status, 201);
    command = scene_pay(&scene, "k", "plain");
    command.accept.order_no = number;
    command.accept.fingerprints[0].digest.bytes[31] = 1;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_KEY_REUSED);
}

static void abandon_answers_each_state_as_it_is(void **state)
{
    (void)state;
    static const char *const after[] = { "failed", "dispatched", "unknown",
                                         "parked", "succeeded",  "failed" };
    static const char *const keys[] = { "absent", "open", "unknown", "parked", "done", "rel" };
    (void)pay("open", "plain");
    (void)pay("unknown", "plain");
    (void)sent("unknown", IDEM_OUTCOME_UNKNOWN);
    (void)pay("parked", "blind");
    (void)sent("parked", IDEM_OUTCOME_UNKNOWN);
    scene_paid(&scene, "done", "plain", IDEM_CAPTURE_AUTOMATIC);
    released("rel", "plain");
    for (size_t i = 0; i < 6; i++) {
        struct idem_command command = scene_abandon(&scene, keys[i]);
        EXPECT_RELEASE(scene_run(&scene, &command), "reply");
        EXPECT_STATE(&scene, keys[i], after[i]);
    }
    assert_int_equal(answer_of("absent")->status, 409);
    assert_int_equal(answer_of("rel")->status, 409);
}

static void an_abandoned_key_refuses_every_fingerprint(void **state)
{
    (void)state;
    struct idem_command command = scene_abandon(&scene, "k");
    (void)scene_run(&scene, &command);
    for (uint8_t i = 0; i < 3; i++) {
        command = scene_pay(&scene, "k", "plain");
        command.accept.fingerprints[0].digest.bytes[5] = i;
        command.accept.fingerprints[0].secret_id = i;
        struct idem_release release = scene_run(&scene, &command);
        EXPECT_RELEASE(release, "reply");
        assert_true(release.replayed);
    }
    assert_true(body_has("k", "\"effect\":\"none\",\"retry\":\"new-key\""));
    assert_int_equal(scene.payment_count, 0);
}

/* ---- refused by facts ---- */

static void expect_stored(const char *key, struct idem_release release, enum idem_problem problem)
{
    EXPECT_RELEASE(release, "reply");
    assert_int_equal(release.problem, IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, key, "failed");
    assert_int_equal(scene_intent(&scene, key)->row.problem, problem);
    assert_int_equal(answer_of(key)->status, idem_problem_entry(problem)->status);
    assert_int_equal(scene_intent(&scene, key)->send_count, 0);
}

static void what_the_facts_refuse_is_final_and_replayed(void **state)
{
    (void)state;
    scene_paid(&scene, "auth", "closing", IDEM_CAPTURE_MANUAL);
    struct idem_command command = scene_pay(&scene, "again", "plain");
    command.accept.order_no = IDEM_STR("auth");
    expect_stored("again", scene_run(&scene, &command), IDEM_PROBLEM_ORDER_EXISTS);
    assert_true(body_has("again", "\"payment\":\"/v1/payments/"));
    command = scene_pay(&scene, "again", "plain");
    assert_true(scene_run(&scene, &command).replayed);

    expect_stored("c1", act("c1", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "100.01"),
                  IDEM_PROBLEM_AMOUNT_EXCEEDS);
    expect_stored("c2", act("c2", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "1.001"),
                  IDEM_PROBLEM_AMOUNT_INVALID);
    expect_stored("r0", act("r0", IDEM_ENDPOINT_REFUNDS_CREATE, "1.00"),
                  IDEM_PROBLEM_STATE_CONFLICT);
    expect_stored("r1", act("r1", IDEM_ENDPOINT_REFUNDS_CREATE, ""), IDEM_PROBLEM_STATE_CONFLICT);
    EXPECT_RELEASE(act("c3", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "40.00"), "send");
    expect_stored("v1", act("v1", IDEM_ENDPOINT_PAYMENTS_CANCEL, ""), IDEM_PROBLEM_STATE_CONFLICT);
    (void)sent("c3", IDEM_OUTCOME_SUCCESS);
    expect_stored("c4", act("c4", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "1.00"),
                  IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(scene_payment(&scene, "auth")->released_minor, 6000);

    command = scene_act(&scene, "r2", IDEM_ENDPOINT_REFUNDS_CREATE, "10.00");
    command.accept.refund_no = IDEM_STR("one");
    EXPECT_RELEASE(scene_run(&scene, &command), "send");
    command = scene_act(&scene, "r3", IDEM_ENDPOINT_REFUNDS_CREATE, "10.00");
    command.accept.refund_no = IDEM_STR("one");
    expect_stored("r3", scene_run(&scene, &command), IDEM_PROBLEM_REFUND_EXISTS);
    assert_true(body_has("r3", "\"refund\":\"/v1/refunds/"));
    expect_stored("r4", act("r4", IDEM_ENDPOINT_REFUNDS_CREATE, "30.01"),
                  IDEM_PROBLEM_AMOUNT_EXCEEDS);
}

static void a_part_is_refused_where_only_the_whole_is_taken(void **state)
{
    (void)state;
    scene_paid(&scene, "auth", "plain", IDEM_CAPTURE_MANUAL);
    expect_stored("c", act("c", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "40.00"),
                  IDEM_PROBLEM_PARTIAL_REFUSED);
    EXPECT_RELEASE(act("c2", IDEM_ENDPOINT_PAYMENTS_CAPTURE, ""), "send");
    (void)sent("c2", IDEM_OUTCOME_SUCCESS);
    assert_int_equal(scene_payment(&scene, "auth")->state, IDEM_PAYMENT_CAPTURED);
}

static void another_principals_payment_does_not_exist_and_shows_nothing(void **state)
{
    (void)state;
    scene_paid(&scene, "auth", "plain", IDEM_CAPTURE_MANUAL);
    struct idem_command command = scene_act(&scene, "c", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "1.00");
    command.accept.principal = IDEM_STR("thief");
    expect_stored("c", scene_run(&scene, &command), IDEM_PROBLEM_PAYMENT_MISSING);
    assert_false(body_has("c", "/v1/payments/"));
    assert_int_equal(scene_intent(&scene, "c")->row.payment_row, 0);
    command = scene_act(&scene, "d", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "1.00");
    command.accept.payment_id = (struct idem_uid){ .bytes = { 1 } };
    expect_stored("d", scene_run(&scene, &command), IDEM_PROBLEM_PAYMENT_MISSING);
}

static void acting_on_a_payment_needs_a_grant_of_its_provider(void **state)
{
    (void)state;
    scene_paid(&scene, "auth", "plain", IDEM_CAPTURE_MANUAL);
    const struct idem_str granted[] = { IDEM_STR("dedup") };
    struct idem_command command = scene_act(&scene, "c", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "1.00");
    command.accept.granted = granted;
    command.accept.granted_count = IDEM_ARRAY_COUNT(granted);
    struct idem_release release = scene_run(&scene, &command);
    assert_int_equal(release.kind, IDEM_RELEASE_REPLY);
    assert_int_equal(release.problem, IDEM_PROBLEM_FORBIDDEN);
    assert_int_equal(scene.intent_count, 1); /* Nothing is stored; the key is free. */
    command.accept.granted_count = 0;
    release = scene_run(&scene, &command);
    assert_int_equal(release.problem, IDEM_PROBLEM_FORBIDDEN);
}

static void captures_cancels_and_refunds_settle_and_return(void **state)
{
    (void)state;
    scene.wait_us = 0;
    scene_paid(&scene, "auth", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("c1", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "30.00");
    (void)sent("c1", IDEM_OUTCOME_NOT_EXECUTED); /* Returned, and again. */
    (void)act("c1", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "30.00");
    (void)sent("c1", IDEM_OUTCOME_SUCCESS);
    assert_int_equal(answer_of("c1")->status, 200);
    (void)act("v1", IDEM_ENDPOINT_PAYMENTS_CANCEL, "");
    expect_stored("c2", act("c2", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "1.00"),
                  IDEM_PROBLEM_STATE_CONFLICT);
    (void)sent("v1", IDEM_OUTCOME_REFUSED_FINAL);
    assert_false(scene_payment(&scene, "auth")->canceling);
    (void)act("v2", IDEM_ENDPOINT_PAYMENTS_CANCEL, "");
    (void)sent("v2", IDEM_OUTCOME_SUCCESS);
    assert_int_equal(scene_payment(&scene, "auth")->state, IDEM_PAYMENT_CAPTURED);
    (void)act("r1", IDEM_ENDPOINT_REFUNDS_CREATE, "10.00");
    (void)sent("r1", IDEM_OUTCOME_REFUSED_FINAL);
    assert_int_equal(scene_refund(&scene, "r1")->state, IDEM_REFUND_FAILED);
    (void)act("r2", IDEM_ENDPOINT_REFUNDS_CREATE, "");
    (void)sent("r2", IDEM_OUTCOME_SUCCESS);
    assert_int_equal(answer_of("r2")->status, 201);
    assert_int_equal(scene_payment(&scene, "auth")->state, IDEM_PAYMENT_REFUNDED);
    assert_int_equal(scene_payment(&scene, "auth")->refunded_minor, 3000);
}

/* ---- released, and again ---- */

static void a_released_key_runs_again_on_a_new_row_with_the_same_id_and_bytes(void **state)
{
    (void)state;
    released("k", "plain");
    struct idem_intent old = scene_intent(&scene, "k")->row;
    EXPECT_RELEASE(pay("k", "plain"), "send");
    const struct idem_intent *new = &scene_intent(&scene, "k")->row;
    assert_true(idem_str_equal(old.effect.id, new->effect.id));
    assert_true(idem_str_equal(old.effect.request, new->effect.request));
    assert_int_equal(old.effect.id.len, IDEM_EFFECT_ID_LEN);
    assert_int_equal(new->epoch, old.epoch + 1);
    assert_int_not_equal(new->payment_row, old.payment_row);
    assert_int_equal(scene.payments[old.payment_row - 1].state, IDEM_PAYMENT_FAILED);
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_SUCCESS), "reply");
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_CAPTURED);
}

/* Claims are told apart by it, also where a later caller is less patient than the former was. */
static void a_later_claim_has_a_later_patience(void **state)
{
    (void)state;
    scene.wait_us = HOUR;
    (void)pay("k", "plain");
    int64_t former_us = scene_intent(&scene, "k")->row.patience_us;
    scene_intent(&scene, "k")->row.patience_us = scene.now_us; /* So that it is let go at once. */
    (void)sent("k", IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_STATE(&scene, "k", "released");
    scene_intent(&scene, "k")->row.patience_us = former_us;
    scene.wait_us = SECOND;
    EXPECT_RELEASE(pay("k", "plain"), "send");
    assert_int_equal(scene_intent(&scene, "k")->row.patience_us, former_us + 1);
    (void)sent("k", IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_STATE(&scene, "k", "claimed");
    scene_pass(&scene, HOUR);
    (void)scene_make_due(&scene, "k");
    (void)sent("k", IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_STATE(&scene, "k", "released");
    EXPECT_RELEASE(pay("k", "plain"), "send");
    assert_int_equal(scene_intent(&scene, "k")->row.patience_us, scene.now_us + SECOND);
}

static void a_released_key_waits_again_without_a_place(void **state)
{
    (void)state;
    released("k", "plain");
    scene.slot = false;
    EXPECT_RELEASE(pay("k", "plain"), "wait");
    EXPECT_STATE(&scene, "k", "claimed");
}

static void a_released_key_is_checked_again(void **state)
{
    (void)state;
    released("k", "plain");
    struct idem_command other = scene_pay(&scene, "other", "plain");
    other.accept.order_no = IDEM_STR("k");
    EXPECT_RELEASE(scene_run(&scene, &other), "send");
    EXPECT_RELEASE(pay("k", "plain"), "reply");
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(scene_intent(&scene, "k")->row.problem, IDEM_PROBLEM_ORDER_EXISTS);
}

static void a_released_refund_is_checked_again(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "dedup", IDEM_CAPTURE_AUTOMATIC);
    scene.wait_us = 0;
    struct idem_command refund = scene_act(&scene, "r", IDEM_ENDPOINT_REFUNDS_CREATE, "60.00");
    refund.accept.refund_no = IDEM_STR("refund-1");
    (void)scene_run(&scene, &refund);
    expect_problem(sent("r", IDEM_OUTCOME_NOT_EXECUTED), IDEM_PROBLEM_NOT_EXECUTED);
    assert_int_equal(scene_refund(&scene, "r")->state, IDEM_REFUND_FAILED);
    assert_int_equal(scene_payment(&scene, "k")->refund_pending_minor, 0);

    (void)act("r2", IDEM_ENDPOINT_REFUNDS_CREATE, "60.00");
    struct idem_command again = scene_act(&scene, "r", IDEM_ENDPOINT_REFUNDS_CREATE, "60.00");
    again.accept.refund_no = IDEM_STR("refund-1");
    EXPECT_RELEASE(scene_run(&scene, &again), "reply"); /* 60 of the 100 are taken now. */
    assert_int_equal(scene_intent(&scene, "r")->row.problem, IDEM_PROBLEM_AMOUNT_EXCEEDS);
}

static void a_released_refund_number_may_be_taken_meanwhile(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "dedup", IDEM_CAPTURE_AUTOMATIC);
    scene.wait_us = 0;
    struct idem_command refund = scene_act(&scene, "r", IDEM_ENDPOINT_REFUNDS_CREATE, "10.00");
    refund.accept.refund_no = IDEM_STR("refund-1");
    (void)scene_run(&scene, &refund);
    (void)sent("r", IDEM_OUTCOME_NOT_EXECUTED);
    struct idem_command other = scene_act(&scene, "r2", IDEM_ENDPOINT_REFUNDS_CREATE, "10.00");
    other.accept.refund_no = IDEM_STR("refund-1");
    EXPECT_RELEASE(scene_run(&scene, &other), "send");
    refund = scene_act(&scene, "r", IDEM_ENDPOINT_REFUNDS_CREATE, "10.00");
    EXPECT_RELEASE(scene_run(&scene, &refund), "reply");
    assert_int_equal(scene_intent(&scene, "r")->row.problem, IDEM_PROBLEM_REFUND_EXISTS);
}

static void a_released_refund_that_fits_runs_on_a_new_row(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "dedup", IDEM_CAPTURE_AUTOMATIC);
    scene.wait_us = 0;
    (void)act("r", IDEM_ENDPOINT_REFUNDS_CREATE, "60.00");
    (void)sent("r", IDEM_OUTCOME_NOT_EXECUTED);
    int64_t old_row = scene_intent(&scene, "r")->row.refund_row;
    EXPECT_RELEASE(act("r", IDEM_ENDPOINT_REFUNDS_CREATE, "60.00"), "send");
    assert_int_not_equal(scene_intent(&scene, "r")->row.refund_row, old_row);
    EXPECT_RELEASE(sent("r", IDEM_OUTCOME_SUCCESS), "reply");
    assert_int_equal(scene_payment(&scene, "k")->refunded_minor, 6000);
}

static void a_released_key_becomes_failed_when_its_time_ends(void **state)
{
    (void)state;
    released("k", "plain");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "reply");
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(answer_of("k")->status, 409);
    assert_true(body_has("k", "abandoned"));
}

static void late_success_after_release_settles_on_a_new_row(void **state)
{
    (void)state;
    released("k", "plain");
    int64_t old_row = scene_intent(&scene, "k")->row.payment_row;
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "reply");
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_not_equal(scene_intent(&scene, "k")->row.payment_row, old_row);
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_CAPTURED);
    assert_int_equal(scene.payments[old_row - 1].state, IDEM_PAYMENT_FAILED);
}

static void late_success_of_a_released_refund_settles_on_a_new_row(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "dedup", IDEM_CAPTURE_AUTOMATIC);
    scene.wait_us = 0;
    (void)act("r", IDEM_ENDPOINT_REFUNDS_CREATE, "60.00");
    (void)sent("r", IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_RELEASE(asked("r", IDEM_OUTCOME_SUCCESS), "reply");
    assert_int_equal(scene_payment(&scene, "k")->refunded_minor, 6000);
    assert_int_equal(scene_refund(&scene, "r")->state, IDEM_REFUND_SUCCEEDED);
}

static void late_success_without_room_is_parked_and_stays_parked(void **state)
{
    (void)state;
    released("k", "plain");
    struct idem_command other = scene_pay(&scene, "other", "plain");
    other.accept.order_no = IDEM_STR("k");
    (void)scene_run(&scene, &other);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "nothing");
    EXPECT_STATE(&scene, "k", "parked");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_NO_ROOM);
    /* A day later it is asked and the answer is the same: one case, nothing else moves. */
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "nothing");
    EXPECT_STATE(&scene, "k", "parked");
    assert_int_equal(scene_intent(&scene, "k")->case_count, 1);
}

static void a_refusal_settles_what_was_parked_without_room(void **state)
{
    (void)state;
    released("k", "plain");
    struct idem_command other = scene_pay(&scene, "other", "plain");
    other.accept.order_no = IDEM_STR("k");
    (void)scene_run(&scene, &other);
    (void)asked("k", IDEM_OUTCOME_SUCCESS);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_REFUSED_FINAL), "reply");
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_FAILED);
}

static void late_success_with_other_money_after_release_is_parked(void **state)
{
    (void)state;
    released("k", "plain");
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    command.evidence.amount_minor = 1;
    (void)scene_run(&scene, &command);
    EXPECT_STATE(&scene, "k", "parked");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_MISMATCH);
    released("j", "plain");
    command = scene_evidence(&scene, "j", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    command.evidence.account = IDEM_STR("account-2");
    (void)scene_run(&scene, &command);
    EXPECT_STATE(&scene, "j", "parked");
}

static void late_success_of_a_released_capture_needs_its_sum(void **state)
{
    (void)state;
    scene_paid(&scene, "auth", "dedup", IDEM_CAPTURE_MANUAL);
    scene.wait_us = 0;
    (void)act("c1", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "60.00");
    (void)sent("c1", IDEM_OUTCOME_NOT_EXECUTED);
    (void)act("c2", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "60.00");
    EXPECT_RELEASE(asked("c1", IDEM_OUTCOME_SUCCESS), "nothing"); /* 60 of the 100 are taken. */
    EXPECT_STATE(&scene, "c1", "parked");
    (void)act("c3", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "10.00");
    (void)sent("c3", IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_RELEASE(asked("c3", IDEM_OUTCOME_SUCCESS), "reply");
    assert_int_equal(scene_payment(&scene, "auth")->captured_minor, 1000);
}

static void late_success_of_a_refund_whose_number_is_taken_is_parked(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "dedup", IDEM_CAPTURE_AUTOMATIC);
    scene.wait_us = 0;
    struct idem_command refund = scene_act(&scene, "r", IDEM_ENDPOINT_REFUNDS_CREATE, "10.00");
    refund.accept.refund_no = IDEM_STR("refund-1");
    (void)scene_run(&scene, &refund);
    (void)sent("r", IDEM_OUTCOME_NOT_EXECUTED);
    refund = scene_act(&scene, "r2", IDEM_ENDPOINT_REFUNDS_CREATE, "10.00");
    refund.accept.refund_no = IDEM_STR("refund-1");
    (void)scene_run(&scene, &refund);
    EXPECT_RELEASE(asked("r", IDEM_OUTCOME_SUCCESS), "nothing");
    EXPECT_STATE(&scene, "r", "parked");
}

static void late_success_without_configuration_is_parked(void **state)
{
    (void)state;
    released("k", "plain");
    scene.rules.provider_count = 0;
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "nothing");
    EXPECT_STATE(&scene, "k", "parked");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "nothing"); /* Nobody can be asked. */
    EXPECT_STATE(&scene, "k", "parked");
}

/* ---- traces ---- */

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static struct idem_command traced(const char *key)
{
    struct idem_command command = scene_pay(&scene, key, "dedup");
    command.accept.trace = IDEM_STR(TRACE);
    return command;
}

static void the_claiming_requests_trace_is_kept_and_stands_in_the_history(void **state)
{
    (void)state;
    struct idem_command command = traced("k");
    EXPECT_RELEASE(scene_run(&scene, &command), "send");
    EXPECT_TEXT(scene_intent(&scene, "k")->row.trace, TRACE);
    EXPECT_TEXT(event_text(IDEM_EVENT_TRACED), TRACE);
    scene.slot = false;
    command = traced("j");
    EXPECT_RELEASE(scene_run(&scene, &command), "wait");
    EXPECT_TEXT(event_text(IDEM_EVENT_TRACED), TRACE);
    EXPECT_RELEASE(pay("k", "dedup"), "wait"); /* Another request's trace changes nothing. */
    EXPECT_TEXT(scene_intent(&scene, "k")->row.trace, TRACE);
}

static void a_refusal_by_the_facts_is_traced_too(void **state)
{
    (void)state;
    (void)pay("j", "dedup");
    struct idem_command command = traced("k");
    command.accept.order_no = IDEM_STR("j");
    (void)scene_run(&scene, &command);
    EXPECT_STATE(&scene, "k", "failed");
    EXPECT_TEXT(event_text(IDEM_EVENT_TRACED), TRACE);
}

static void without_a_trace_nothing_is_said_of_it(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    assert_int_equal(events(IDEM_EVENT_TRACED), 0);
    assert_int_equal(scene_intent(&scene, "k")->row.trace.len, 0);
}

static void whoever_runs_a_released_key_again_is_traced(void **state)
{
    (void)state;
    released("k", "dedup");
    struct idem_command command = traced("k");
    EXPECT_RELEASE(scene_run(&scene, &command), "send");
    EXPECT_TEXT(event_text(IDEM_EVENT_TRACED), TRACE);
    EXPECT_TEXT(scene_intent(&scene, "k")->row.trace, TRACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_payment_takes_two_decisions_and_replays_for_ever),
        SCENE_TEST(a_decline_is_final_and_stored),
        SCENE_TEST(without_a_place_on_the_wire_the_claim_waits_and_is_dispatched_later),
        SCENE_TEST(a_send_may_not_leave_after_its_window_however_long_the_lease),
        SCENE_TEST(another_request_under_the_key_is_refused_in_every_state),
        SCENE_TEST(fingerprints_are_compared_under_the_rule_and_secret_of_the_record),
        SCENE_TEST(two_scopes_with_one_digest_are_kept_apart),
        SCENE_TEST(a_request_older_than_our_memory_is_refused_only_without_a_record),
        SCENE_TEST(an_order_number_of_a_case_is_refused_only_without_a_record),
        SCENE_TEST(abandon_answers_each_state_as_it_is),
        SCENE_TEST(an_abandoned_key_refuses_every_fingerprint),
        SCENE_TEST(what_the_facts_refuse_is_final_and_replayed),
        SCENE_TEST(a_part_is_refused_where_only_the_whole_is_taken),
        SCENE_TEST(another_principals_payment_does_not_exist_and_shows_nothing),
        SCENE_TEST(acting_on_a_payment_needs_a_grant_of_its_provider),
        SCENE_TEST(captures_cancels_and_refunds_settle_and_return),
        SCENE_TEST(a_released_key_runs_again_on_a_new_row_with_the_same_id_and_bytes),
        SCENE_TEST(a_later_claim_has_a_later_patience),
        SCENE_TEST(a_released_key_waits_again_without_a_place),
        SCENE_TEST(a_released_key_is_checked_again),
        SCENE_TEST(a_released_refund_is_checked_again),
        SCENE_TEST(a_released_refund_number_may_be_taken_meanwhile),
        SCENE_TEST(a_released_refund_that_fits_runs_on_a_new_row),
        SCENE_TEST(a_released_key_becomes_failed_when_its_time_ends),
        SCENE_TEST(late_success_after_release_settles_on_a_new_row),
        SCENE_TEST(late_success_of_a_released_refund_settles_on_a_new_row),
        SCENE_TEST(late_success_without_room_is_parked_and_stays_parked),
        SCENE_TEST(a_refusal_settles_what_was_parked_without_room),
        SCENE_TEST(late_success_with_other_money_after_release_is_parked),
        SCENE_TEST(late_success_of_a_released_capture_needs_its_sum),
        SCENE_TEST(late_success_of_a_refund_whose_number_is_taken_is_parked),
        SCENE_TEST(late_success_without_configuration_is_parked),
        SCENE_TEST(the_claiming_requests_trace_is_kept_and_stands_in_the_history),
        SCENE_TEST(a_refusal_by_the_facts_is_traced_too),
        SCENE_TEST(without_a_trace_nothing_is_said_of_it),
        SCENE_TEST(whoever_runs_a_released_key_again_is_traced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
