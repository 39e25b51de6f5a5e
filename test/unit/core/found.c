/*
 * Stubs of what acted on a payment, and a person's word about what was parked from its stub.
 *
 * Goal: a capture, cancel or refund that the provider lists is answered once its claim comes, on
 * the payment that it acted on, and moves sums once; a person can say that it happened, and nobody
 * can say that it did not.
 *
 * Method: as in decide_stub.c.
 */
#include "unit/core/usual.h"

static const struct idem_intent *row(const char *key)
{
    return &scene_intent(&scene, key)->row;
}

/* ---- the claim of what acts on a payment ---- */

static void a_refund_gets_its_row_and_its_number(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    struct idem_command command = scene_act(&scene, "k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    command.accept.refund_no = IDEM_STR("refund-1");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    const struct idem_refund *refund = scene_refund(&scene, "k");
    assert_int_equal(refund->state, IDEM_REFUND_SUCCEEDED);
    EXPECT_TEXT(refund->refund_no, "refund-1");
    EXPECT_TEXT(refund->reference, "provider-88");
    assert_int_equal(refund->amount_minor, 4000);
    assert_int_equal(answer_of("k")->status, 201);
    assert_int_equal(row("k")->payment_row, scene_payment(&scene, "p")->row);
    assert_int_equal(scene.decision.payment.write, IDEM_WRITE_NONE);
    assert_null(scene_stub(&scene, "k"));
}

static void who_asked_for_all_that_is_left_got_what_was_left_then(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 10000));
    (void)act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "");
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void an_action_with_another_amount_is_parked(void **state)
{
    (void)state;
    static const char *const amounts[] = { "39.99", "40.01", "40", "x" };
    static const char *const keys[] = { "k0", "k1", "k2", "k3" };
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    for (size_t i = 0; i < 4; i++) {
        found(of_payment(keys[i], IDEM_EFFECT_KIND_REFUND, "p", 100));
        EXPECT_RELEASE(act(keys[i], IDEM_ENDPOINT_REFUNDS_CREATE, amounts[i]), "wait");
        expect_found_parked(keys[i], IDEM_CASE_MISMATCH);
        assert_int_equal(row(keys[i])->payment_row, scene_payment(&scene, "p")->row);
        assert_int_equal(row(keys[i])->refund_row, 0);
    }
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 400);
}

static void an_action_of_another_kind_is_parked(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    EXPECT_RELEASE(act("k", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "40.00"), "wait");
    expect_found_parked("k", IDEM_CASE_MISMATCH);
}

static void an_action_on_another_payment_is_resolved_on_its_own(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    scene_paid(&scene, "q", "dedup", IDEM_CAPTURE_AUTOMATIC);
    EXPECT_RELEASE(act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00"), "wait"); /* Of the newest. */
    expect_found_parked("k", IDEM_CASE_MISMATCH);
    assert_int_equal(row("k")->payment_row, scene_payment(&scene, "q")->row);
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    assert_int_equal(row("k")->payment_row, scene_payment(&scene, "p")->row);
    assert_int_equal(scene_refund(&scene, "k")->payment_row, scene_payment(&scene, "p")->row);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 4000);
    assert_int_equal(scene_payment(&scene, "q")->refunded_minor, 0);
}

static void an_action_on_a_payments_failed_row_is_parked(void **state)
{
    (void)state;
    released("p", "dedup");
    struct idem_uid failed_id = scene_payment(&scene, "p")->id;
    (void)pay("p", "dedup"); /* The same effect, on another row. */
    (void)sent("p", IDEM_OUTCOME_SUCCESS);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    struct idem_command command = scene_act(&scene, "k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    command.accept.payment_id = failed_id;
    (void)scene_run(&scene, &command);
    expect_found_parked("k", IDEM_CASE_MISMATCH);
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    assert_int_equal(scene_refund(&scene, "k")->payment_row, scene_payment(&scene, "p")->row);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 4000);
}

static void an_action_on_a_payment_that_is_not_here_is_parked(void **state)
{
    (void)state;
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    EXPECT_RELEASE(act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00"), "wait");
    expect_found_parked("k", IDEM_CASE_NO_ROOM);
    assert_int_equal(row("k")->payment_row, 0);
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_STATE_CONFLICT);
    expect_found_parked("k", IDEM_CASE_NO_ROOM);
}

static void its_payment_finds_it_when_it_comes_after_it(void **state)
{
    (void)state;
    found_charge("p");
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 8000));
    (void)act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "80.00");
    expect_found_parked("k", IDEM_CASE_NO_ROOM);
    (void)pay("p", "dedup");
    EXPECT_STATE(&scene, "p", "succeeded");
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 8000);
    (void)act("j", IDEM_ENDPOINT_REFUNDS_CREATE, "100.00");
    EXPECT_STATE(&scene, "j", "failed");

    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(row("k")->payment_row, scene_payment(&scene, "p")->row);
    assert_int_equal(scene_refund(&scene, "k")->amount_minor, 8000);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 8000);
    assert_null(scene_stub(&scene, "k"));
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 0);
}

static void an_action_on_somebody_elses_payment_shows_nothing_of_it(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    scene_payment(&scene, "p")->principal = IDEM_STR("somebody else");
    EXPECT_RELEASE(act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00"), "wait");
    expect_found_parked("k", IDEM_CASE_NO_ROOM);
    assert_int_equal(row("k")->payment_row, 0);
    assert_true(idem_uid_is_zero(row("k")->payment_id));
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
}

static void who_may_not_use_the_entry_is_told_so_and_the_stub_stays(void **state)
{
    (void)state;
    static const struct idem_str granted[] = { { .data = "plain", .len = 5 } };
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    struct idem_command command = scene_act(&scene, "k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    command.accept.granted = granted;
    command.accept.granted_count = 1;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_FORBIDDEN);
    assert_null(scene_intent(&scene, "k"));
    assert_non_null(scene_stub(&scene, "k"));
    static const struct idem_str more[] = { { .data = "plain", .len = 5 },
                                            { .data = "dedup", .len = 5 } };
    command = scene_act(&scene, "k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    command.accept.granted = more;
    command.accept.granted_count = 2;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void an_action_that_the_sums_do_not_have_is_parked(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    (void)act("j", IDEM_ENDPOINT_REFUNDS_CREATE, "60.01"); /* On its way. */
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    EXPECT_RELEASE(act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00"), "wait");
    expect_found_parked("k", IDEM_CASE_NO_ROOM);
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
    expect_found_parked("k", IDEM_CASE_NO_ROOM);
    (void)sent("j", IDEM_OUTCOME_REFUSED_FINAL);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 0);

    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    EXPECT_TEXT(event_text(IDEM_EVENT_PAYMENT_MOVED), "captured -> partially_refunded");
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 4000); /* It has them now. */
    assert_int_equal(scene_refund(&scene, "k")->state, IDEM_REFUND_SUCCEEDED);
    (void)act("i", IDEM_ENDPOINT_REFUNDS_CREATE, "60.01");
    EXPECT_STATE(&scene, "i", "failed");
}

static void a_refund_whose_number_is_taken_is_parked(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    struct idem_command command = scene_act(&scene, "j", IDEM_ENDPOINT_REFUNDS_CREATE, "1.00");
    command.accept.refund_no = IDEM_STR("refund-1");
    (void)scene_run(&scene, &command);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    command = scene_act(&scene, "k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    command.accept.refund_no = IDEM_STR("refund-1");
    EXPECT_RELEASE(scene_run(&scene, &command), "wait");
    expect_found_parked("k", IDEM_CASE_NO_ROOM);
}

/* ---- a person, afterwards ---- */

static void what_was_parked_is_only_asked_about(void **state)
{
    (void)state;
    found_charge("k");
    struct idem_command command = scene_pay(&scene, "k", "dedup");
    command.accept.amount_minor = 1;
    (void)scene_run(&scene, &command);
    assert_int_equal(row("k")->step, IDEM_STEP_ASK);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    EXPECT_RELEASE(asked("k", IDEM_OUTCOME_NOT_FOUND), "nothing");
    EXPECT_STATE(&scene, "k", "parked");
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    (void)asked("k", IDEM_OUTCOME_REFUSED_FINAL); /* Its own listing said otherwise. */
    expect_found_parked("k", IDEM_CASE_MISMATCH);
    EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    (void)asked("k", IDEM_OUTCOME_SUCCESS); /* As is known. */
    expect_found_parked("k", IDEM_CASE_MISMATCH);
}

static void a_key_that_has_a_stub_cannot_be_given_up(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    struct idem_command command = scene_abandon(&scene, "k");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_TOO_EARLY);
    assert_null(scene_intent(&scene, "k"));
    (void)act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "39.00");
    expect_found_parked("k", IDEM_CASE_MISMATCH);
    command = scene_abandon(&scene, "k");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE); /* Shown as it is. */
    expect_found_parked("k", IDEM_CASE_MISMATCH);
}

static void a_payment_that_did_not_fit_is_resolved_with_what_the_provider_took(void **state)
{
    (void)state;
    found_charge("k");
    struct idem_command command = scene_pay(&scene, "k", "dedup");
    command.accept.amount_minor = 9000;
    command.accept.capture_mode = IDEM_CAPTURE_MANUAL;
    (void)scene_run(&scene, &command);
    expect_found_parked("k", IDEM_CASE_MISMATCH);
    command = scene_resolve(&scene, "k", IDEM_VERDICT_SUCCEEDED);
    command.resolve.amount_minor = 9000;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_AMOUNT_INVALID);
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(scene_payment(&scene, "k")->captured_minor, 10000);
    EXPECT_TEXT(scene_payment(&scene, "k")->reference, "provider-99");
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 0);
}

static void a_payment_takes_what_was_done_to_it_when_it_is_resolved(void **state)
{
    (void)state;
    found_charge("p");
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    struct idem_command command = scene_pay(&scene, "p", "dedup");
    command.accept.amount_minor = 9000;
    (void)scene_run(&scene, &command);
    expect_found_parked("p", IDEM_CASE_MISMATCH);
    expect_problem(resolve("p", IDEM_VERDICT_FAILED), IDEM_PROBLEM_STATE_CONFLICT);
    expect_problem(resolve("p", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 4000);
    assert_true(scene_stub(&scene, "k")->applied);
    (void)act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 4000);
}

static void an_action_that_did_not_fit_is_resolved_without_moving_sums(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    (void)act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "39.00");
    expect_found_parked("k", IDEM_CASE_MISMATCH);
    struct idem_command command = scene_resolve(&scene, "k", IDEM_VERDICT_SUCCEEDED);
    command.resolve.reference = (struct idem_str){ .len = 0 };
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 4000);
    assert_int_equal(scene_refund(&scene, "k")->amount_minor, 4000);
    EXPECT_TEXT(scene_refund(&scene, "k")->reference, "provider-88");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_refund_gets_its_row_and_its_number),
        SCENE_TEST(who_asked_for_all_that_is_left_got_what_was_left_then),
        SCENE_TEST(an_action_with_another_amount_is_parked),
        SCENE_TEST(an_action_of_another_kind_is_parked),
        SCENE_TEST(an_action_on_another_payment_is_resolved_on_its_own),
        SCENE_TEST(an_action_on_a_payments_failed_row_is_parked),
        SCENE_TEST(an_action_on_a_payment_that_is_not_here_is_parked),
        SCENE_TEST(its_payment_finds_it_when_it_comes_after_it),
        SCENE_TEST(an_action_on_somebody_elses_payment_shows_nothing_of_it),
        SCENE_TEST(who_may_not_use_the_entry_is_told_so_and_the_stub_stays),
        SCENE_TEST(an_action_that_the_sums_do_not_have_is_parked),
        SCENE_TEST(a_refund_whose_number_is_taken_is_parked),
        SCENE_TEST(what_was_parked_is_only_asked_about),
        SCENE_TEST(a_key_that_has_a_stub_cannot_be_given_up),
        SCENE_TEST(a_payment_that_did_not_fit_is_resolved_with_what_the_provider_took),
        SCENE_TEST(a_payment_takes_what_was_done_to_it_when_it_is_resolved),
        SCENE_TEST(an_action_that_did_not_fit_is_resolved_without_moving_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
