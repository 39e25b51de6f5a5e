/*
 * One door for commands: what evidence, time, callers and people do to an intent.
 *
 * Goal: DESIGN, section 5, case by case, where money would be lost if it were otherwise. The life
 * of an intent as a whole is walked as a grid: state before, what was learned and from where, and
 * what stands after, for four kinds of providers.
 *
 * Method: scenes (scene.h) that a store would keep; each command runs twice and the rows are
 * audited after each, so a test here only says what it is about.
 */
#include "unit/core/scene.h"

static struct scene scene;

static int begin(void **state)
{
    (void)state;
    scene_begin(&scene);
    return 0;
}

static int end(void **state)
{
    (void)state;
    scene_end(&scene);
    return 0;
}

static struct idem_release pay(const char *key, const char *entry)
{
    struct idem_command command = scene_pay(&scene, key, entry);
    return scene_run(&scene, &command);
}

static struct idem_release act(const char *key, enum idem_endpoint endpoint, const char *amount)
{
    struct idem_command command = scene_act(&scene, key, endpoint, amount);
    return scene_run(&scene, &command);
}

static struct idem_release learn(const char *key,
                                 enum idem_evidence_source source,
                                 enum idem_outcome_kind outcome)
{
    return scene_learn(&scene, key, source, outcome);
}

static struct idem_release sent(const char *key, enum idem_outcome_kind outcome)
{
    return learn(key, IDEM_SOURCE_SEND, outcome);
}

static struct idem_release asked(const char *key, enum idem_outcome_kind outcome)
{
    return learn(key, IDEM_SOURCE_QUERY, outcome);
}

static void expect_problem(struct idem_release release, enum idem_problem problem)
{
    EXPECT_RELEASE(release, "reply");
    assert_int_equal(release.problem, problem);
}

static const struct idem_answer *answer_of(const char *key)
{
    return &scene_intent(&scene, key)->row.answer;
}

static bool body_has(const char *key, const char *text)
{
    const struct idem_answer *answer = answer_of(key);
    size_t len = strlen(text);
    for (size_t i = 0; i + len <= answer->body.len; i++) {
        if (memcmp(answer->body.data + i, text, len) == 0) {
            return true;
        }
    }
    return false;
}

/* Not executed and its caller gone: a released payment. */
static void released(const char *key, const char *entry)
{
    scene.wait_us = 0;
    EXPECT_RELEASE(pay(key, entry), "send");
    expect_problem(sent(key, IDEM_OUTCOME_NOT_EXECUTED), IDEM_PROBLEM_NOT_EXECUTED);
    EXPECT_STATE(&scene, key, "released");
    scene.wait_us = 10 * SECOND;
}

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

/* ---- not executed ---- */

static void not_executed_is_tried_again_while_the_caller_waits(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_NOT_EXECUTED), "nothing");
    EXPECT_STATE(&scene, "k", "claimed");
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_PENDING);
    struct idem_release release = scene_make_due(&scene, "k");
    EXPECT_RELEASE(release, "send");
    assert_int_equal(release.send_no, 2);
    (void)sent("k", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void not_executed_is_released_when_the_caller_has_waited_long_enough(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    for (int i = 0; i < 3; i++) { /* 1 + 2 + 4 seconds fit into ten, 8 more do not. */
        EXPECT_RELEASE(sent("k", IDEM_OUTCOME_NOT_EXECUTED), "nothing");
        EXPECT_RELEASE(scene_make_due(&scene, "k"), "send");
    }
    expect_problem(sent("k", IDEM_OUTCOME_NOT_EXECUTED), IDEM_PROBLEM_NOT_EXECUTED);
    EXPECT_STATE(&scene, "k", "released");
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_FAILED);
    EXPECT_TEXT(scene_payment(&scene, "k")->failure_code, "not_executed");
}

static void the_providers_wish_for_a_pause_releases_at_once_and_is_passed_on(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    command.evidence.retry_after_us = 30 * SECOND;
    struct idem_release release = scene_run(&scene, &command);
    expect_problem(release, IDEM_PROBLEM_NOT_EXECUTED);
    assert_int_equal(release.retry_after_us, 30 * SECOND);
}

static void not_executed_counts_only_from_the_attempt_that_owns_the_send(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    command.evidence.token.bytes[0] ^= 1;
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    EXPECT_STATE(&scene, "k", "dispatched");
    command = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    EXPECT_STATE(&scene, "k", "dispatched");
}

static void a_superseded_attempt_may_still_close_its_own_send(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command late =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query"); /* The lease ended. */
    late.now_us = ++scene.now_us;
    expect_problem(scene_run(&scene, &late), IDEM_PROBLEM_NOT_EXECUTED);
    EXPECT_STATE(&scene, "k", "released");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_NOT_FOUND), "nothing"); /* The asker comes back. */
    EXPECT_STATE(&scene, "k", "released");
}

static void what_an_asker_hears_does_not_move_a_send_that_is_planned_again(void **state)
{
    (void)state;
    scene.wait_us = HOUR;
    (void)pay("k", "plain");
    struct idem_command late =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    late.now_us = ++scene.now_us;
    EXPECT_RELEASE(scene_run(&scene, &late), "nothing");
    EXPECT_STATE(&scene, "k", "claimed");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_NOT_FOUND), "nothing");
    EXPECT_STATE(&scene, "k", "claimed");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "send");
}

static void the_second_send_not_executed_says_nothing_about_the_first(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    (void)asked("k", IDEM_OUTCOME_NOT_FOUND);
    struct idem_release release = scene_make_due(&scene, "k");
    EXPECT_RELEASE(release, "send");
    assert_int_equal(release.send_no, 2);
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_NOT_EXECUTED), "nothing");
    EXPECT_STATE(&scene, "k", "unknown");
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_PENDING);
}

static void the_second_send_refused_says_nothing_while_the_first_is_open(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    struct idem_command first =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED);
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    (void)scene_make_due(&scene, "k");
    (void)asked("k", IDEM_OUTCOME_NOT_FOUND);
    (void)scene_make_due(&scene, "k");
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_REFUSED_FINAL), "nothing");
    EXPECT_STATE(&scene, "k", "unknown");
    first.now_us = ++scene.now_us; /* And when the first is closed, the refusal holds. */
    EXPECT_RELEASE(scene_run(&scene, &first), "reply");
    EXPECT_STATE(&scene, "k", "failed");
}

static void sends_come_to_an_end(void **state)
{
    (void)state;
    scene.wait_us = 365 * DAY;
    (void)pay("k", "plain");
    for (int i = 1; i < IDEM_SENDS_MAX; i++) {
        EXPECT_RELEASE(sent("k", IDEM_OUTCOME_NOT_EXECUTED), "nothing");
        EXPECT_RELEASE(scene_make_due(&scene, "k"), "send");
    }
    expect_problem(sent("k", IDEM_OUTCOME_NOT_EXECUTED), IDEM_PROBLEM_NOT_EXECUTED);
    EXPECT_RELEASE(pay("k", "plain"), "reply"); /* Claimed again, and over. */
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(scene_intent(&scene, "k")->row.problem, IDEM_PROBLEM_ABANDONED);
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

/* ---- after the end ---- */

static void success_after_failure_opens_a_case_and_changes_nothing_else(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    uint32_t version = scene_payment(&scene, "k")->version;
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "nothing");
    EXPECT_STATE(&scene, "k", "failed");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_CONTRADICTION);
    assert_int_equal(scene_payment(&scene, "k")->version, version);
}

static void success_after_abandoning_opens_a_case(void **state)
{
    (void)state;
    struct idem_command command = scene_abandon(&scene, "k");
    (void)scene_run(&scene, &command);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "nothing");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_CONTRADICTION);
}

static void a_provider_that_no_longer_knows_a_success_opens_a_case(void **state)
{
    (void)state;
    scene_paid(&scene, "k", "closing", IDEM_CAPTURE_AUTOMATIC);
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_REFUSED_FINAL), "nothing"); /* Only a question tells. */
    assert_int_equal(scene_intent(&scene, "k")->case_count, 0);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_REFUSED_FINAL), "nothing");
    assert_int_equal(scene_intent(&scene, "k")->case_count, 1);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_CLOSED_UNPAID), "nothing");
    assert_int_equal(scene_intent(&scene, "k")->case_count, 2);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_NOT_FOUND), "nothing");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "nothing");
    assert_int_equal(scene_intent(&scene, "k")->case_count, 2);
    EXPECT_STATE(&scene, "k", "succeeded");
}

/* ---- whose evidence counts ---- */

static void expect_mismatch_parks(struct idem_command command)
{
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    EXPECT_STATE(&scene, "k", "parked");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_MISMATCH);
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_PENDING);
    scene_end(&scene);
    scene_begin(&scene);
    (void)pay("k", "dedup");
}

static void done_with_other_money_or_elsewhere_is_parked(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    struct idem_command lie = command;
    lie.evidence.amount_minor += 1;
    expect_mismatch_parks(lie);
    command = scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    lie = command;
    lie.evidence.currency = IDEM_STR("JPY");
    expect_mismatch_parks(lie);
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    lie.evidence.effect_id = IDEM_STR("c0000000000000000000000000x");
    expect_mismatch_parks(lie);
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    lie.evidence.entry = IDEM_STR("plain");
    expect_mismatch_parks(lie);
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    lie.evidence.account = IDEM_STR("account-2");
    expect_mismatch_parks(lie);
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    lie.evidence.region = IDEM_STR("region-2");
    expect_mismatch_parks(lie);
}

static void not_found_in_another_account_is_parked_and_never_a_reason_to_send(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_NOT_FOUND);
    command.evidence.account = IDEM_STR("account-2");
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    EXPECT_STATE(&scene, "k", "parked");
}

static void nothing_is_sent_or_asked_under_another_account(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    scene_entry(&scene, "dedup")->account = IDEM_STR("account-2");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "nothing");
    EXPECT_STATE(&scene, "k", "unknown");
    scene_entry(&scene, "dedup")->account = IDEM_STR("account-1");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
}

static void a_refusal_of_another_id_or_amount_is_silence(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    struct idem_command lie =
        scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_REFUSED_FINAL);
    lie.evidence.effect_id = IDEM_STR("c0000000000000000000000000x");
    (void)scene_run(&scene, &lie);
    EXPECT_STATE(&scene, "k", "unknown");
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_REFUSED_FINAL);
    lie.evidence.amount_minor = 1;
    (void)scene_run(&scene, &lie);
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_REFUSED_FINAL);
    lie.evidence.currency = IDEM_STR("JPY");
    (void)scene_run(&scene, &lie);
    EXPECT_STATE(&scene, "k", "unknown");
    lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_REFUSED_FINAL);
    lie.evidence.amount_minor = -1; /* A refusal need not name the money. */
    lie.evidence.currency = IDEM_STR("");
    (void)scene_run(&scene, &lie);
    EXPECT_STATE(&scene, "k", "failed");
}

static void evidence_settles_whoever_brings_it(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    command.evidence.token = (struct idem_uid){ .bytes = { 0 } }; /* A callback. */
    EXPECT_RELEASE(scene_run(&scene, &command), "reply");
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void silence_of_a_superseded_attempt_is_noted_and_no_more(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    struct idem_command late = scene_evidence(&scene, "k", IDEM_SOURCE_SEND, IDEM_OUTCOME_UNKNOWN);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    struct idem_intent before = scene_intent(&scene, "k")->row;
    late.now_us = ++scene.now_us;
    EXPECT_RELEASE(scene_run(&scene, &late), "nothing"); /* Its re-run asks nothing either. */
    const struct idem_intent *after = &scene_intent(&scene, "k")->row;
    assert_int_equal(after->lease_end_us, before.lease_end_us);
    assert_int_equal(after->due_us, before.due_us);
    assert_memory_equal(&after->token, &before.token, sizeof(before.token));
}

static void evidence_about_nothing_of_ours_is_ignored(void **state)
{
    (void)state;
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_SUCCESS), "nothing");
    assert_int_equal(scene.intent_count, 0);
}

/* ---- closing ---- */

static void closed_unpaid_is_final_only_where_declared_and_only_when_asked(void **state)
{
    (void)state;
    (void)pay("k", "closing");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    (void)asked("k", IDEM_OUTCOME_NOT_FOUND);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "close");
    EXPECT_RELEASE(learn("k", IDEM_SOURCE_CLOSE, IDEM_OUTCOME_CLOSED_UNPAID), "nothing");
    EXPECT_STATE(&scene, "k", "unknown"); /* The close's own answer is not believed. */
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_CLOSED_UNPAID), "reply");
    EXPECT_STATE(&scene, "k", "failed");

    (void)pay("j", "plain");
    (void)sent("j", IDEM_OUTCOME_UNKNOWN);
    (void)scene_make_due(&scene, "j");
    EXPECT_RELEASE(asked("j", IDEM_OUTCOME_CLOSED_UNPAID), "nothing");
    EXPECT_STATE(&scene, "j", "unknown");
}

static void a_close_that_is_lost_is_followed_by_a_question(void **state)
{
    (void)state;
    (void)pay("k", "closing");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    (void)scene_make_due(&scene, "k");
    (void)asked("k", IDEM_OUTCOME_NOT_FOUND);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "close");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query"); /* Its lease ended. */
    scene_pass(&scene, HOUR);
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_NOT_FOUND), "nothing");
    EXPECT_STATE(&scene, "k", "parked"); /* Never a second send. */
}

/* ---- leases and time ---- */

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
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query"); /* The moment it ends. */
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

/* ---- the grid ---- */

struct learned {
    const char *name;
    enum idem_evidence_source source;
    enum idem_outcome_kind outcome;
};

static const struct learned columns[] = {
    { "success", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS },
    { "refused", IDEM_SOURCE_QUERY, IDEM_OUTCOME_REFUSED_FINAL },
    { "closed", IDEM_SOURCE_QUERY, IDEM_OUTCOME_CLOSED_UNPAID },
    { "closed-by-close", IDEM_SOURCE_CLOSE, IDEM_OUTCOME_CLOSED_UNPAID },
    { "not-found", IDEM_SOURCE_QUERY, IDEM_OUTCOME_NOT_FOUND },
    { "processing", IDEM_SOURCE_QUERY, IDEM_OUTCOME_PROCESSING },
    { "silence", IDEM_SOURCE_QUERY, IDEM_OUTCOME_UNKNOWN },
    { "not-executed", IDEM_SOURCE_SEND, IDEM_OUTCOME_NOT_EXECUTED },
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* Brings "k" into the state, as it would get there at this provider. */
static void arrive(enum idem_intent_state at, const char *entry)
{
    scene.slot = at != IDEM_INTENT_CLAIMED;
    scene.wait_us = at == IDEM_INTENT_RELEASED ? 0 : 10 * SECOND;
    if (at != IDEM_INTENT_NONE) {
        (void)pay("k", entry);
    }
    if (at == IDEM_INTENT_UNKNOWN || at == IDEM_INTENT_PARKED) {
        (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    }
    if (at == IDEM_INTENT_PARKED && scene_state(&scene, "k") != at) {
        struct idem_command lie =
            scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
        lie.evidence.amount_minor = 1;
        (void)scene_run(&scene, &lie);
    }
    if (at == IDEM_INTENT_SUCCEEDED) {
        (void)sent("k", IDEM_OUTCOME_SUCCESS);
    }
    if (at == IDEM_INTENT_FAILED) {
        (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    }
    if (at == IDEM_INTENT_RELEASED) {
        (void)sent("k", IDEM_OUTCOME_NOT_EXECUTED);
    }
    scene.slot = true;
    scene.wait_us = 0; /* Whoever waited has gone. */
    struct scene_intent *intent = scene_intent(&scene, "k");
    if (intent != NULL) {
        intent->row.patience_us = scene.now_us;
    }
}

/*
 * The state after, and what comes next: nothing more is said after a final answer or a release;
 * `?` a question, `>` a send, `x` a close, `-` only others can help, `!` a case was opened, `.` the
 * row was not touched.
 */
static const char *cell(enum idem_intent_state at, const char *entry, const struct learned *learned)
{
    static char text[32];
    static const char marks[IDEM_STEP_COUNT] = {
        [IDEM_STEP_NONE] = '-',
        [IDEM_STEP_SEND] = '>',
        [IDEM_STEP_ASK] = '?',
        [IDEM_STEP_CLOSE] = 'x',
    };
    scene_end(&scene);
    scene_begin(&scene);
    arrive(at, entry);
    struct scene_intent before = *scene_intent(&scene, "k");
    scene_pass(&scene, 10 * 60 * SECOND); /* Nothing is on the wire any more. */
    struct idem_release release = learn("k", learned->source, learned->outcome);
    const struct scene_intent *after = scene_intent(&scene, "k");
    char mark[2] = { 0 };
    if (after->case_count > before.case_count) {
        mark[0] = '!';
    } else if (release.kind == IDEM_RELEASE_NONE) {
        mark[0] = marks[after->row.step];
    }
    if (after->row.version == before.row.version) {
        return ".";
    }
    (void)snprintf(text, sizeof(text), "%s%s", idem_intent_state_name(after->row.state), mark);
    return text;
}

static void expect_life(const char *entry, const char *policy)
{
    static char memory[4096];
    struct idem_buf grid;
    idem_buf_init(&grid, memory, sizeof(memory));
    idem_buf_printf(&grid, "%-16s", "");
    for (int at = IDEM_INTENT_CLAIMED; at < IDEM_INTENT_COUNT; at++) {
        const char *name = idem_intent_state_name((enum idem_intent_state)at);
        idem_buf_printf(&grid, "%-*s", at + 1 == IDEM_INTENT_COUNT ? 0 : 11, name);
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        idem_buf_printf(&grid, "\n%-16s", columns[i].name);
        for (int at = IDEM_INTENT_CLAIMED; at < IDEM_INTENT_COUNT; at++) {
            const char *text = cell((enum idem_intent_state)at, entry, &columns[i]);
            idem_buf_printf(&grid, "%-*s", at + 1 == IDEM_INTENT_COUNT ? 0 : 11, text);
        }
    }
    idem_buf_add_char(&grid, '\n');
    assert_false(grid.full);
    EXPECT_TEXT(idem_buf_str(&grid), policy);
}

/* clang-format off: the grids are documents. */
static void life_at_a_provider_that_deduplicates(void **state)
{
    (void)state;
    expect_life(
        "dedup",
        "                claimed    dispatched unknown    parked     succeeded  failed     released\n"
        "success         succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
        "refused         failed     failed     failed     failed     succeeded! .          .\n"
        "closed          claimed>   unknown>   unknown>   parked?    succeeded! .          .\n"
        "closed-by-close claimed>   unknown?   unknown?   parked?    .          .          .\n"
        "not-found       claimed>   unknown>   unknown>   parked?    .          .          .\n"
        "processing      claimed>   unknown?   unknown?   parked?    .          .          .\n"
        "silence         claimed>   unknown>   unknown>   parked?    .          .          .\n"
        "not-executed    .          released   released   parked?    .          .          .\n");
}

static void life_at_a_provider_that_closes(void **state)
{
    (void)state;
    expect_life(
        "closing",
        "                claimed    dispatched unknown    parked     succeeded  failed     released\n"
        "success         succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
        "refused         failed     failed     failed     failed     succeeded! .          .\n"
        "closed          failed     failed     failed     failed     succeeded! .          .\n"
        "closed-by-close claimed>   unknown?   unknown?   parked?    .          .          .\n"
        "not-found       claimed>   unknownx   unknownx   parked?    .          .          .\n"
        "processing      claimed>   unknown?   unknown?   parked?    .          .          .\n"
        "silence         claimed>   unknown?   unknown?   parked?    .          .          .\n"
        "not-executed    .          released   released   parked?    .          .          .\n");
}

static void life_at_a_provider_that_can_only_be_asked(void **state)
{
    (void)state;
    expect_life(
        "plain",
        "                claimed    dispatched unknown    parked     succeeded  failed     released\n"
        "success         succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
        "refused         failed     failed     failed     failed     succeeded! .          .\n"
        "closed          claimed>   unknown?   unknown?   parked?    succeeded! .          .\n"
        "closed-by-close claimed>   unknown?   unknown?   parked?    .          .          .\n"
        "not-found       claimed>   parked!    parked!    parked?    .          .          .\n"
        "processing      claimed>   unknown?   unknown?   parked?    .          .          .\n"
        "silence         claimed>   unknown?   unknown?   parked?    .          .          .\n"
        "not-executed    .          released   released   parked?    .          .          .\n");
}

/* Its silent sends are parked at once, so what stands under "unknown" began as parked. */
static void life_at_a_provider_that_is_blind(void **state)
{
    (void)state;
    expect_life(
        "blind",
        "                claimed    dispatched unknown    parked     succeeded  failed     released\n"
        "success         succeeded  succeeded  succeeded  succeeded  .          failed!    succeeded\n"
        "refused         failed     failed     failed     failed     succeeded! .          .\n"
        "closed          claimed>   parked!    parked-    parked-    succeeded! .          .\n"
        "closed-by-close claimed>   parked!    parked-    parked-    .          .          .\n"
        "not-found       claimed>   parked!    parked-    parked-    .          .          .\n"
        "processing      claimed>   parked!    parked-    parked-    .          .          .\n"
        "silence         claimed>   parked!    parked-    parked-    .          .          .\n"
        "not-executed    .          released   parked-    parked-    .          .          .\n");
}
/* clang-format on */

/* A scene of its own for every test. */
#define SCENE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(late_success_of_a_released_capture_needs_its_sum),
        SCENE_TEST(late_success_of_a_refund_whose_number_is_taken_is_parked),
        SCENE_TEST(late_success_without_configuration_is_parked),
        SCENE_TEST(a_payment_takes_two_decisions_and_replays_for_ever),
        SCENE_TEST(a_decline_is_final_and_stored),
        SCENE_TEST(without_a_place_on_the_wire_the_claim_waits_and_is_dispatched_later),
        SCENE_TEST(a_send_may_not_leave_after_its_window_however_long_the_lease),
        SCENE_TEST(not_executed_is_tried_again_while_the_caller_waits),
        SCENE_TEST(not_executed_is_released_when_the_caller_has_waited_long_enough),
        SCENE_TEST(the_providers_wish_for_a_pause_releases_at_once_and_is_passed_on),
        SCENE_TEST(not_executed_counts_only_from_the_attempt_that_owns_the_send),
        SCENE_TEST(a_superseded_attempt_may_still_close_its_own_send),
        SCENE_TEST(what_an_asker_hears_does_not_move_a_send_that_is_planned_again),
        SCENE_TEST(the_second_send_not_executed_says_nothing_about_the_first),
        SCENE_TEST(the_second_send_refused_says_nothing_while_the_first_is_open),
        SCENE_TEST(sends_come_to_an_end),
        SCENE_TEST(a_released_key_runs_again_on_a_new_row_with_the_same_id_and_bytes),
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
        SCENE_TEST(success_after_failure_opens_a_case_and_changes_nothing_else),
        SCENE_TEST(success_after_abandoning_opens_a_case),
        SCENE_TEST(a_provider_that_no_longer_knows_a_success_opens_a_case),
        SCENE_TEST(done_with_other_money_or_elsewhere_is_parked),
        SCENE_TEST(not_found_in_another_account_is_parked_and_never_a_reason_to_send),
        SCENE_TEST(nothing_is_sent_or_asked_under_another_account),
        SCENE_TEST(a_refusal_of_another_id_or_amount_is_silence),
        SCENE_TEST(evidence_settles_whoever_brings_it),
        SCENE_TEST(silence_of_a_superseded_attempt_is_noted_and_no_more),
        SCENE_TEST(evidence_about_nothing_of_ours_is_ignored),
        SCENE_TEST(closed_unpaid_is_final_only_where_declared_and_only_when_asked),
        SCENE_TEST(a_close_that_is_lost_is_followed_by_a_question),
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
        SCENE_TEST(another_request_under_the_key_is_refused_in_every_state),
        SCENE_TEST(fingerprints_are_compared_under_the_rule_and_secret_of_the_record),
        SCENE_TEST(two_scopes_with_one_digest_are_kept_apart),
        SCENE_TEST(a_request_older_than_our_memory_is_refused_only_without_a_record),
        SCENE_TEST(abandon_answers_each_state_as_it_is),
        SCENE_TEST(an_abandoned_key_refuses_every_fingerprint),
        SCENE_TEST(what_the_facts_refuse_is_final_and_replayed),
        SCENE_TEST(a_part_is_refused_where_only_the_whole_is_taken),
        SCENE_TEST(another_principals_payment_does_not_exist_and_shows_nothing),
        SCENE_TEST(captures_cancels_and_refunds_settle_and_return),
        SCENE_TEST(life_at_a_provider_that_deduplicates),
        SCENE_TEST(life_at_a_provider_that_closes),
        SCENE_TEST(life_at_a_provider_that_can_only_be_asked),
        SCENE_TEST(life_at_a_provider_that_is_blind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
