/*
 * A provider's own event.
 *
 * Goal: it is the provider's word like any answer, whenever it comes and in whatever order; what it
 * says counts once; and it counts only about our entry, account, region, id, order number, amount
 * and currency. That one which came before changes nothing, the scene proves after every command.
 */
#include "unit/core/usual.h"

static size_t times_came(const char *event_id)
{
    for (size_t i = 0; i < scene.inbox_count; i++) {
        if (idem_str_equal(scene.inbox[i].event_id, idem_str_from(event_id))) {
            return scene.inbox[i].times;
        }
    }
    return 0;
}

static struct idem_release came(const char *key, const char *event_id, enum idem_outcome_kind what)
{
    struct idem_command command = scene_callback(&scene, key, event_id, what);
    return scene_run(&scene, &command);
}

static void success_before_the_answer_settles(void **state)
{
    (void)state;
    EXPECT_RELEASE(pay("k", "plain"), "send");
    expect_problem(called("k", IDEM_OUTCOME_SUCCESS), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
    EXPECT_TEXT(event_text(IDEM_EVENT_SUCCEEDED), "callback");
    assert_true(scene.inbox[0].known);

    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_SUCCESS), "nothing"); /* What its own send says. */
    assert_int_equal(scene_intent(&scene, "k")->case_count, 0);
}

static void success_settles_what_is_unknown_parked_or_planned(void **state)
{
    (void)state;
    (void)pay("unknown", "dedup");
    (void)sent("unknown", IDEM_OUTCOME_UNKNOWN);
    parked("parked");
    scene.slot = false;
    (void)pay("claimed", "dedup");
    static const char *const keys[] = { "unknown", "parked", "claimed" };
    for (size_t i = 0; i < 3; i++) {
        EXPECT_STATE(&scene, keys[i], keys[i]);
        expect_problem(called(keys[i], IDEM_OUTCOME_SUCCESS), IDEM_PROBLEM_NONE);
        EXPECT_STATE(&scene, keys[i], "succeeded");
        assert_int_equal(scene_intent(&scene, keys[i])->open_cases, 0);
    }
}

static void success_settles_what_was_released_if_there_is_room(void **state)
{
    (void)state;
    released("k", "dedup");
    (void)called("k", IDEM_OUTCOME_REFUSED_FINAL); /* That it was not done is known. */
    EXPECT_STATE(&scene, "k", "released");
    expect_problem(called("k", IDEM_OUTCOME_SUCCESS), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void done_without_room_keeps_the_number_of_it(void **state)
{
    (void)state;
    released("k", "dedup");
    struct idem_command command = scene_pay(&scene, "j", "dedup");
    command.accept.order_no = IDEM_STR("k");
    (void)scene_run(&scene, &command);
    (void)called("k", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "k", "parked");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_NO_ROOM);
    EXPECT_TEXT(scene_intent(&scene, "k")->row.effect.reference, "provider-77");
    (void)called("k", IDEM_OUTCOME_SUCCESS); /* Once more, by another event. */
    assert_int_equal(scene_intent(&scene, "k")->case_count, 1);
}

static void the_same_event_again_only_counts_itself(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    (void)came("k", "e-1", IDEM_OUTCOME_PROCESSING);
    size_t times = times_came("e-1");
    struct scene_intent before = *scene_intent(&scene, "k");
    EXPECT_RELEASE(came("k", "e-1", IDEM_OUTCOME_SUCCESS), "nothing"); /* Whatever it says now. */
    assert_int_equal(times_came("e-1"), times + 2); /* Every command runs twice here. */
    assert_int_equal(scene_intent(&scene, "k")->row.version, before.row.version);
    EXPECT_STATE(&scene, "k", "dispatched");
}

static void events_of_two_entries_are_two_though_they_have_one_name(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    (void)pay("j", "plain");
    (void)came("k", "e-1", IDEM_OUTCOME_SUCCESS);
    (void)came("j", "e-1", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "k", "succeeded");
    EXPECT_STATE(&scene, "j", "succeeded");
    assert_int_equal(scene.inbox_count, 2);
}

static void an_event_about_an_unknown_id_is_kept_and_that_is_all(void **state)
{
    (void)state;
    EXPECT_RELEASE(came("k", "e-1", IDEM_OUTCOME_SUCCESS), "nothing");
    assert_int_equal(scene.inbox_count, 1);
    assert_false(scene.inbox[0].known);
    assert_int_equal(scene.intent_count + scene.stub_count, 0);
}

static void an_old_copy_does_not_accept_what_it_may_have_missed(void **state)
{
    (void)state;
    (void)pay("j", "dedup");
    scene.restored = true;
    expect_problem(came("k", "e-1", IDEM_OUTCOME_SUCCESS), IDEM_PROBLEM_UNAVAILABLE);
    assert_int_equal(scene.inbox_count, 0); /* The provider keeps it and tries again. */
    expect_problem(came("j", "e-2", IDEM_OUTCOME_SUCCESS), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "j", "succeeded");
}

/* What does not agree never settles, and is never taken for a refusal. */
static void success_that_is_not_ours_parks(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 7; wrong++) {
        scene_end(&scene);
        scene_begin(&scene);
        (void)pay("k", "dedup");
        struct idem_command command = scene_callback(&scene, "k", "e-1", IDEM_OUTCOME_SUCCESS);
        struct idem_evidence *evidence = &command.evidence;
        evidence->amount_minor += wrong == 0 ? 1 : 0;
        evidence->currency = wrong == 1 ? IDEM_STR("JPY") : evidence->currency;
        evidence->effect_id = wrong == 2 ? IDEM_STR("another") : evidence->effect_id;
        evidence->order_no = wrong == 3 ? IDEM_STR("another") : evidence->order_no;
        evidence->entry = wrong == 4 ? IDEM_STR("plain") : evidence->entry;
        evidence->account = wrong == 5 ? IDEM_STR("another") : evidence->account;
        evidence->region = wrong == 6 ? IDEM_STR("another") : evidence->region;
        EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
        EXPECT_STATE(&scene, "k", "parked");
        assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_MISMATCH);
        assert_int_equal(scene_payment(&scene, "k")->captured_minor, 0);
    }
}

static void success_under_another_order_number_parks_what_was_released(void **state)
{
    (void)state;
    released("k", "dedup");
    struct idem_command command = scene_callback(&scene, "k", "e-1", IDEM_OUTCOME_SUCCESS);
    command.evidence.order_no = IDEM_STR("another");
    (void)scene_run(&scene, &command);
    EXPECT_STATE(&scene, "k", "parked");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_MISMATCH);
}

static void the_right_order_number_is_no_hindrance(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    struct idem_command command = scene_callback(&scene, "k", "e-1", IDEM_OUTCOME_SUCCESS);
    command.evidence.order_no = IDEM_STR("k");
    (void)scene_run(&scene, &command);
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void a_refusal_ends_it(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    expect_problem(called("k", IDEM_OUTCOME_REFUSED_FINAL), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "failed");
    EXPECT_RELEASE(sent("k", IDEM_OUTCOME_UNKNOWN), "nothing");
    EXPECT_STATE(&scene, "k", "failed");
}

static void a_refusal_about_another_order_says_nothing(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    struct idem_command command = scene_callback(&scene, "k", "e-1", IDEM_OUTCOME_REFUSED_FINAL);
    command.evidence.order_no = IDEM_STR("another");
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    EXPECT_STATE(&scene, "k", "dispatched");
    EXPECT_TEXT(event_text(IDEM_EVENT_NOTIFIED), "refused");
}

static void what_does_not_settle_is_asked_about_soon(void **state)
{
    (void)state;
    static const enum idem_outcome_kind outcomes[] = {
        IDEM_OUTCOME_UNKNOWN, IDEM_OUTCOME_PROCESSING, IDEM_OUTCOME_NOT_FOUND,
        IDEM_OUTCOME_CLOSED_UNPAID, /* Final only as the answer to a question. */
    };
    (void)pay("k", "closing");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    scene_pass(&scene, 600 * SECOND); /* Nobody may send any more. */
    (void)scene_make_due(&scene, "k");
    for (size_t i = 0; i < 4; i++) {
        (void)asked("k", IDEM_OUTCOME_PROCESSING);
        assert_true(scene_intent(&scene, "k")->row.due_us > scene.now_us);
        EXPECT_RELEASE(called("k", outcomes[i]), "nothing");
        EXPECT_STATE(&scene, "k", "unknown");
        assert_int_equal(scene_intent(&scene, "k")->last_event, IDEM_EVENT_NOTIFIED);
        assert_int_equal(scene_intent(&scene, "k")->row.due_us, scene.now_us);
        EXPECT_RELEASE(called("k", outcomes[i]), "nothing"); /* It is due already. */
        assert_true(scene_intent(&scene, "k")->row.due_us < scene.now_us);
        EXPECT_RELEASE(scene_make_due(&scene, "k"), "query");
    }
}

static void what_is_parked_is_not_asked_about_while_somebody_may_send(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    struct idem_command lie = scene_callback(&scene, "k", "e-1", IDEM_OUTCOME_SUCCESS);
    lie.evidence.amount_minor += 1;
    (void)scene_run(&scene, &lie);
    EXPECT_STATE(&scene, "k", "parked");
    (void)called("k", IDEM_OUTCOME_PROCESSING);
    assert_int_equal(scene_intent(&scene, "k")->row.due_us,
                     scene_intent(&scene, "k")->sends[0].not_after_us);
}

static void nobody_is_disturbed_who_acts_or_plans_something_else(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    int64_t due_us = scene_intent(&scene, "k")->row.due_us;
    (void)called("k", IDEM_OUTCOME_PROCESSING); /* Somebody waits for the answer on the wire. */
    assert_int_equal(scene_intent(&scene, "k")->row.due_us, due_us);
    assert_true(scene_intent(&scene, "k")->row.lease_end_us > 0);

    scene.slot = false;
    (void)pay("j", "dedup");
    due_us = scene_intent(&scene, "j")->row.due_us;
    (void)called("j", IDEM_OUTCOME_PROCESSING); /* The next step is a send. */
    assert_int_equal(scene_intent(&scene, "j")->row.due_us, due_us);
    assert_int_equal(scene_intent(&scene, "j")->row.step, IDEM_STEP_SEND);
}

static void not_executed_is_no_events_word(void **state)
{
    (void)state;
    (void)pay("k", "plain");
    EXPECT_RELEASE(called("k", IDEM_OUTCOME_NOT_EXECUTED), "nothing");
    EXPECT_STATE(&scene, "k", "dispatched");
    assert_int_equal(scene_intent(&scene, "k")->sends[0].state, IDEM_SEND_OPEN);
}

/* ---- done, and taken back: in any order ---- */

struct end {
    struct idem_payment payment;
    enum idem_intent_state state;
    uint32_t cases_open;
    uint16_t status;
    bool is_reversed;
};

static struct end end_of(const char *key)
{
    const struct scene_intent *intent = scene_intent(&scene, key);
    return (struct end){
        .payment = *scene_payment(&scene, key),
        .state = intent->row.state,
        .cases_open = intent->cases_open,
        .status = intent->row.answer.status,
        .is_reversed = intent->is_reversed,
    };
}

static void begin_of(enum idem_effect_kind kind)
{
    scene_end(&scene);
    scene_begin(&scene);
    bool by_hand = kind == IDEM_EFFECT_KIND_AUTHORIZE || kind == IDEM_EFFECT_KIND_CAPTURE;
    enum idem_capture_mode mode = by_hand ? IDEM_CAPTURE_MANUAL : IDEM_CAPTURE_AUTOMATIC;
    if (idem_effect_kind_makes_payment(kind)) {
        struct idem_command command = scene_pay(&scene, "k", "dedup");
        command.accept.capture_mode = mode;
        (void)scene_run(&scene, &command);
        return;
    }
    scene_paid(&scene, "p", "dedup", mode);
    (void)act("k",
              kind == IDEM_EFFECT_KIND_REFUND ? IDEM_ENDPOINT_REFUNDS_CREATE
                                              : IDEM_ENDPOINT_PAYMENTS_CAPTURE,
              "40.00");
}

static struct end end_after(enum idem_effect_kind kind,
                            enum idem_outcome_kind first,
                            enum idem_outcome_kind second)
{
    begin_of(kind);
    (void)called("k", first);
    (void)called("k", second);
    return end_of("k");
}

static void taken_back_leaves_the_same_whether_it_comes_before_or_after_done(void **state)
{
    (void)state;
    static const enum idem_effect_kind kinds[] = {
        IDEM_EFFECT_KIND_CHARGE,
        IDEM_EFFECT_KIND_AUTHORIZE,
        IDEM_EFFECT_KIND_CAPTURE,
        IDEM_EFFECT_KIND_REFUND,
    };
    for (size_t i = 0; i < 4; i++) {
        struct end late = end_after(kinds[i], IDEM_OUTCOME_SUCCESS, IDEM_OUTCOME_REVERSED);
        struct end early = end_after(kinds[i], IDEM_OUTCOME_REVERSED, IDEM_OUTCOME_SUCCESS);
        assert_int_equal(late.state, IDEM_INTENT_SUCCEEDED);
        assert_true(late.is_reversed);
        assert_int_equal(early.state, late.state);
        assert_int_equal(early.is_reversed, late.is_reversed);
        assert_int_equal(early.cases_open, late.cases_open);
        assert_int_equal(early.cases_open, UINT32_C(1) << IDEM_CASE_REVERSED);
        assert_int_equal(early.status, late.status);
        assert_int_equal(early.payment.state, late.payment.state);
        assert_int_equal(early.payment.captured_minor, late.payment.captured_minor);
        assert_int_equal(early.payment.refunded_minor, late.payment.refunded_minor);
        assert_int_equal(early.payment.released_minor, late.payment.released_minor);
    }
}

static void a_refund_that_is_taken_back_can_be_made_again(void **state)
{
    (void)state;
    (void)end_after(IDEM_EFFECT_KIND_REFUND, IDEM_OUTCOME_REVERSED, IDEM_OUTCOME_REVERSED);
    assert_int_equal(scene_refund(&scene, "k")->state, IDEM_REFUND_FAILED);
    EXPECT_TEXT(scene_refund(&scene, "k")->failure_code, "some_code");
    assert_int_equal(scene_payment(&scene, "k")->refunded_minor, 0);
    EXPECT_RELEASE(act("again", IDEM_ENDPOINT_REFUNDS_CREATE, "100.00"), "send");
}

static void taken_back_after_a_release_counts_both(void **state)
{
    (void)state;
    released("k", "dedup");
    (void)called("k", IDEM_OUTCOME_REVERSED);
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_EXPIRED);
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_REVERSED);
}

static void other_money_that_is_taken_back_parks(void **state)
{
    (void)state;
    (void)pay("k", "dedup");
    struct idem_command command = scene_callback(&scene, "k", "e-1", IDEM_OUTCOME_REVERSED);
    command.evidence.amount_minor += 1;
    (void)scene_run(&scene, &command);
    EXPECT_STATE(&scene, "k", "parked");
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_MISMATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(success_before_the_answer_settles),
        SCENE_TEST(success_settles_what_is_unknown_parked_or_planned),
        SCENE_TEST(success_settles_what_was_released_if_there_is_room),
        SCENE_TEST(done_without_room_keeps_the_number_of_it),
        SCENE_TEST(the_same_event_again_only_counts_itself),
        SCENE_TEST(events_of_two_entries_are_two_though_they_have_one_name),
        SCENE_TEST(an_event_about_an_unknown_id_is_kept_and_that_is_all),
        SCENE_TEST(an_old_copy_does_not_accept_what_it_may_have_missed),
        SCENE_TEST(success_that_is_not_ours_parks),
        SCENE_TEST(success_under_another_order_number_parks_what_was_released),
        SCENE_TEST(the_right_order_number_is_no_hindrance),
        SCENE_TEST(a_refusal_ends_it),
        SCENE_TEST(a_refusal_about_another_order_says_nothing),
        SCENE_TEST(what_does_not_settle_is_asked_about_soon),
        SCENE_TEST(what_is_parked_is_not_asked_about_while_somebody_may_send),
        SCENE_TEST(nobody_is_disturbed_who_acts_or_plans_something_else),
        SCENE_TEST(not_executed_is_no_events_word),
        SCENE_TEST(taken_back_leaves_the_same_whether_it_comes_before_or_after_done),
        SCENE_TEST(a_refund_that_is_taken_back_can_be_made_again),
        SCENE_TEST(taken_back_after_a_release_counts_both),
        SCENE_TEST(other_money_that_is_taken_back_parks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
