/*
 * Stubs: what an old copy has missed, from the listing to the claim that meets it.
 *
 * Goal: an effect that the provider lists and this store does not know is never executed again: the
 * same key is settled from it or parked, another key finds the order number taken, the sums of a
 * payment have it once and only once, and none of that is lost while a person has it.
 *
 * Method: scenes (scene.h): the mode, a listing, the end of the mode, and the request that comes
 * again.
 */
#include "unit/core/usual.h"

static const struct idem_intent *row(const char *key)
{
    return &scene_intent(&scene, key)->row;
}

/* ---- from the listing ---- */

static void an_absent_effect_becomes_a_stub(void **state)
{
    (void)state;
    struct idem_command command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_CHARGE, NULL);
    found(command);
    const struct idem_stub *stub = scene_stub(&scene, "k");
    assert_non_null(stub);
    assert_int_equal(stub->kind, IDEM_EFFECT_KIND_CHARGE);
    assert_true(idem_str_equal(stub->effect_id, command.evidence.effect_id));
    EXPECT_TEXT(stub->entry, "dedup");
    EXPECT_TEXT(stub->account, "account-1");
    EXPECT_TEXT(stub->region, "region-1");
    EXPECT_TEXT(stub->order_no, "k");
    EXPECT_TEXT(stub->currency, "CNY");
    EXPECT_TEXT(stub->reference, "provider-88");
    assert_int_equal(stub->payment_effect_id.len, 0);
    assert_int_equal(stub->amount_minor, 10000);
    assert_int_equal(stub->happened_us, command.evidence.happened_us);
    assert_int_equal(stub->found_us, command.now_us);
    assert_false(stub->applied);
    assert_null(scene_intent(&scene, "k"));
}

static void what_is_a_stub_already_stays_as_it_is(void **state)
{
    (void)state;
    found_charge("k");
    struct idem_command command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_CHARGE, NULL);
    command.evidence.amount_minor = 1;
    found(command);
    assert_int_equal(scene.decision.stub.write, IDEM_WRITE_NONE);
    assert_int_equal(scene_stub(&scene, "k")->amount_minor, 10000);
}

static void outside_the_mode_a_listing_makes_no_stub(void **state)
{
    (void)state;
    EXPECT_RELEASE(listed("k", IDEM_EFFECT_KIND_CHARGE, NULL), "nothing");
    assert_null(scene_stub(&scene, "k"));
}

static void other_evidence_about_nothing_makes_no_stub(void **state)
{
    (void)state;
    struct idem_command command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_CHARGE, NULL);
    command.evidence.source = IDEM_SOURCE_QUERY;
    found(command);
    assert_null(scene_stub(&scene, "k"));
}

static void what_is_not_under_its_scope_makes_no_stub(void **state)
{
    (void)state;
    struct idem_command command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_CHARGE, NULL);
    command.evidence.effect_id = scene_effect_id(&scene, "j", IDEM_EFFECT_KIND_CHARGE);
    found(command);
    command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_CHARGE, NULL);
    command.evidence.effect_id = IDEM_STR("somebody else's");
    found(command);
    assert_int_equal(scene.stub_count, 0);
}

static void an_amount_that_is_not_said_is_none(void **state)
{
    (void)state;
    found(of_payment("k", IDEM_EFFECT_KIND_CHARGE, NULL, -1));
    assert_int_equal(scene_stub(&scene, "k")->amount_minor, 0);
    EXPECT_RELEASE(pay("k", "dedup"), "wait"); /* It has happened all the same. */
    expect_found_parked("k", IDEM_CASE_MISMATCH);
    assert_int_equal(row("k")->payment_row, 0); /* No row can be made of that. */
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_STATE_CONFLICT);
}

static void an_action_whose_amount_is_not_said_cannot_be_resolved(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", -1));
    EXPECT_RELEASE(act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00"), "wait");
    expect_found_parked("k", IDEM_CASE_MISMATCH);
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
    expect_found_parked("k", IDEM_CASE_MISMATCH);
}

/* ---- sums of a known payment move at once ---- */

static void a_refund_of_a_known_payment_moves_its_sums_once(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    assert_true(scene_stub(&scene, "k")->applied);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 4000);
    assert_int_equal(scene_payment(&scene, "p")->refund_pending_minor, 0);
    assert_int_equal(scene_payment(&scene, "p")->state, IDEM_PAYMENT_PARTIALLY_REFUNDED);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000)); /* Listed once more. */
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 4000);

    (void)act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 4000);
    EXPECT_RELEASE(act("j", IDEM_ENDPOINT_REFUNDS_CREATE, "60.01"), "reply"); /* Too much. */
    EXPECT_STATE(&scene, "j", "failed");
}

static void captures_and_a_cancel_of_a_known_payment_move_its_sums(void **state)
{
    (void)state;
    scene.manual = true;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_MANUAL);
    found(of_payment("k", IDEM_EFFECT_KIND_CAPTURE, "p", 4000));
    assert_int_equal(scene_payment(&scene, "p")->captured_minor, 4000);
    found(of_payment("v1", IDEM_EFFECT_KIND_CANCEL, "p", 5000)); /* Not what is left. */
    assert_false(scene_stub(&scene, "v1")->applied);
    assert_int_equal(scene_payment(&scene, "p")->released_minor, 0);
    found(of_payment("v2", IDEM_EFFECT_KIND_CANCEL, "p", 6000));
    assert_true(scene_stub(&scene, "v2")->applied);
    assert_int_equal(scene_payment(&scene, "p")->released_minor, 6000);
    assert_int_equal(scene_payment(&scene, "p")->state, IDEM_PAYMENT_CAPTURED);
    found(of_payment("v3", IDEM_EFFECT_KIND_CANCEL, "p", 0));
    assert_false(scene_stub(&scene, "v3")->applied);
}

static void without_room_the_sums_stay(void **state)
{
    (void)state;
    scene.manual = true;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("void", IDEM_ENDPOINT_PAYMENTS_CANCEL, ""); /* It is on its way. */
    found(of_payment("k", IDEM_EFFECT_KIND_CAPTURE, "p", 10001));
    found(of_payment("r", IDEM_EFFECT_KIND_REFUND, "p", 1));
    found(of_payment("c", IDEM_EFFECT_KIND_CHARGE, "p", 1)); /* It would make one. */
    assert_false(scene_stub(&scene, "k")->applied);
    assert_false(scene_stub(&scene, "r")->applied);
    assert_false(scene_stub(&scene, "c")->applied);
    found(of_payment("v", IDEM_EFFECT_KIND_CANCEL, "p", 10000));
    assert_false(scene_stub(&scene, "v")->applied);
    assert_int_equal(scene_payment(&scene, "p")->captured_minor, 0);
}

static void nothing_new_is_done_while_a_sum_is_not_counted(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    (void)act("a", IDEM_ENDPOINT_REFUNDS_CREATE, "60.00");
    found(of_payment("b", IDEM_EFFECT_KIND_REFUND, "p", 5000)); /* The other one may have gone. */
    assert_false(scene_stub(&scene, "b")->applied);
    struct idem_release release = act("c", IDEM_ENDPOINT_REFUNDS_CREATE, "10.00");
    assert_int_equal(release.problem, IDEM_PROBLEM_UNAVAILABLE); /* 40 or none may be left. */
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    (void)sent("a", IDEM_OUTCOME_REFUSED_FINAL);
    (void)act("c", IDEM_ENDPOINT_REFUNDS_CREATE, "50.01"); /* Now it is counted first. */
    assert_true(scene_stub(&scene, "b")->applied);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 5000);
    EXPECT_STATE(&scene, "c", "failed");
    (void)act("d", IDEM_ENDPOINT_REFUNDS_CREATE, "50.00");
    EXPECT_STATE(&scene, "d", "dispatched");
}

static void listed_again_it_moves_the_sums_that_now_have_room(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    (void)act("a", IDEM_ENDPOINT_REFUNDS_CREATE, "60.00");
    found(of_payment("b", IDEM_EFFECT_KIND_REFUND, "p", 6000)); /* The other one may have gone. */
    assert_false(scene_stub(&scene, "b")->applied);
    found(of_payment("b", IDEM_EFFECT_KIND_REFUND, "p", 6000)); /* And may still. */
    assert_int_equal(scene.decision.stub.write, IDEM_WRITE_NONE);
    (void)sent("a", IDEM_OUTCOME_REFUSED_FINAL);
    (void)listed("b", IDEM_EFFECT_KIND_REFUND, "p"); /* Not in the mode. */
    assert_false(scene_stub(&scene, "b")->applied);
    found(of_payment("b", IDEM_EFFECT_KIND_REFUND, "p", 1)); /* What was listed first counts. */
    assert_int_equal(scene.decision.stub.write, IDEM_WRITE_UPDATE);
    assert_true(scene_stub(&scene, "b")->applied);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 6000);
    found(of_payment("b", IDEM_EFFECT_KIND_REFUND, "p", 6000));
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 6000);
    (void)act("c", IDEM_ENDPOINT_REFUNDS_CREATE, "40.01");
    EXPECT_STATE(&scene, "c", "failed");
}

static void listed_again_it_moves_the_sums_while_it_is_parked_too(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    (void)act("a", IDEM_ENDPOINT_REFUNDS_CREATE, "60.00");
    found(of_payment("b", IDEM_EFFECT_KIND_REFUND, "p", 6000));
    (void)act("b", IDEM_ENDPOINT_REFUNDS_CREATE, "60.00");
    expect_found_parked("b", IDEM_CASE_NO_ROOM);
    (void)sent("a", IDEM_OUTCOME_REFUSED_FINAL);
    scene.restored = true;
    (void)learn("b", IDEM_SOURCE_LISTING, IDEM_OUTCOME_SUCCESS);
    scene.restored = false;
    assert_true(scene_stub(&scene, "b")->applied);
    expect_found_parked("b", IDEM_CASE_NO_ROOM); /* A person still has it. */
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 6000);
    expect_problem(resolve("b", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 6000);
}

static void what_speaks_of_another_place_or_money_moves_nothing(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    static const char *const keys[] = { "k0", "k1", "k2", "k3", "k4", "k5" };
    for (int what = 0; what < 6; what++) {
        struct idem_command command =
            of_payment(keys[what], IDEM_EFFECT_KIND_REFUND, "p", what == 0 ? 0 : 100);
        struct idem_evidence *evidence = &command.evidence;
        evidence->currency = what == 1 ? IDEM_STR("USD") : evidence->currency;
        evidence->entry = what == 2 ? IDEM_STR("plain") : evidence->entry;
        evidence->account = what == 3 ? IDEM_STR("other") : evidence->account;
        evidence->region = what == 4 ? IDEM_STR("other") : evidence->region;
        evidence->payment_effect_id = what == 5
                                          ? scene_effect_id(&scene, "p", IDEM_EFFECT_KIND_AUTHORIZE)
                                          : evidence->payment_effect_id;
        found(command);
        assert_false(scene_stub(&scene, keys[what])->applied);
    }
    scene.rules.provider_count = 0;
    found(of_payment("k6", IDEM_EFFECT_KIND_REFUND, "p", 100));
    assert_false(scene_stub(&scene, "k6")->applied);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 0);
}

/* ---- the claim of a payment ---- */

static void the_same_key_settles_from_its_stub(void **state)
{
    (void)state;
    found_charge("k");
    struct idem_command command = scene_pay(&scene, "k", "dedup");
    command.accept.trace = IDEM_STR("00-1-2-01");
    struct idem_release release = scene_run(&scene, &command);
    expect_problem(release, IDEM_PROBLEM_NONE);
    assert_false(release.replayed);
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(answer_of("k")->status, 201);
    assert_true(body_has("k", "\"reference\":\"provider-88\""));
    EXPECT_TEXT(row("k")->effect.reference, "provider-88");
    assert_int_equal(scene_payment(&scene, "k")->captured_minor, 10000);
    assert_int_equal(row("k")->send_count, 0);
    assert_null(scene_stub(&scene, "k"));
    EXPECT_TEXT(event_text(IDEM_EVENT_FOUND), "provider-88");
    EXPECT_TEXT(event_text(IDEM_EVENT_TRACED), "00-1-2-01");
    EXPECT_TEXT(event_text(IDEM_EVENT_PAYMENT_MOVED), "pending -> captured");
    EXPECT_TEXT(event_text(IDEM_EVENT_SUCCEEDED), "listing");
    release = pay("k", "dedup");
    assert_true(release.replayed);
}

static void an_old_first_try_settles_too(void **state)
{
    (void)state;
    found_charge("k");
    struct idem_command command = scene_pay(&scene, "k", "dedup");
    command.accept.first_sent_us = 1;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void an_authorization_settles_as_one(void **state)
{
    (void)state;
    struct idem_command command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_AUTHORIZE, NULL);
    command.evidence.order_no = (struct idem_str){ .len = 0 }; /* The provider does not say. */
    found(command);
    command = scene_pay(&scene, "k", "dedup");
    command.accept.capture_mode = IDEM_CAPTURE_MANUAL;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_AUTHORIZED);
}

static void another_key_finds_the_order_number_taken(void **state)
{
    (void)state;
    found_charge("k");
    struct idem_command command = scene_pay(&scene, "j", "dedup");
    command.accept.order_no = IDEM_STR("k");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "j", "failed");
    assert_int_equal(row("j")->problem, IDEM_PROBLEM_ORDER_EXISTS);
    assert_false(body_has("j", "\"payment\":")); /* There is none to look at yet. */
    (void)pay("k", "dedup");
    EXPECT_STATE(&scene, "k", "succeeded");
}

static void it_is_taken_at_every_entry(void **state)
{
    (void)state;
    found_charge("k");
    struct idem_command command = scene_pay(&scene, "j", "plain");
    command.accept.order_no = IDEM_STR("k");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "j", "failed");
    assert_int_equal(row("j")->problem, IDEM_PROBLEM_ORDER_EXISTS);
}

static void it_stays_taken_while_its_own_request_is_parked(void **state)
{
    (void)state;
    struct idem_command command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_CHARGE, NULL);
    command.evidence.amount_minor = 9999;
    found(command);
    (void)pay("k", "dedup");
    expect_found_parked("k", IDEM_CASE_MISMATCH);
    command = scene_pay(&scene, "j", "dedup");
    command.accept.order_no = IDEM_STR("k");
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    assert_int_equal(row("j")->problem, IDEM_PROBLEM_ORDER_EXISTS);

    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    assert_int_equal(scene_payment(&scene, "k")->captured_minor, 9999);
    assert_null(scene_stub(&scene, "k"));
    command = scene_pay(&scene, "i", "dedup");
    command.accept.order_no = IDEM_STR("k");
    (void)scene_run(&scene, &command);
    assert_int_equal(row("i")->problem, IDEM_PROBLEM_ORDER_EXISTS); /* The payment has it now. */
}

static void the_number_that_the_provider_names_is_the_payments(void **state)
{
    (void)state;
    struct idem_command command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_CHARGE, NULL);
    command.evidence.order_no = IDEM_STR("order-9");
    found(command);
    (void)pay("k", "dedup");
    expect_found_parked("k", IDEM_CASE_MISMATCH);
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    EXPECT_TEXT(scene_payment(&scene, "k")->order_no, "order-9");
    command = scene_pay(&scene, "j", "dedup");
    command.accept.order_no = IDEM_STR("order-9");
    (void)scene_run(&scene, &command);
    assert_int_equal(row("j")->problem, IDEM_PROBLEM_ORDER_EXISTS);
}

static void what_waits_to_be_sent_under_it_is_parked(void **state)
{
    (void)state;
    scene.slot = false;
    (void)pay("j", "dedup"); /* Not sent when the copy was made. */
    scene.slot = true;
    (void)pay("i", "mute"); /* Sent, and to be sent again. */
    (void)sent("i", IDEM_OUTCOME_UNKNOWN);
    assert_int_equal(row("i")->step, IDEM_STEP_SEND);
    static const char *const keys[] = { "j", "i" };
    for (size_t i = 0; i < 2; i++) {
        const char *key = keys[i];
        const char *other = i == 0 ? "k0" : "k1"; /* The one that came to pay the order. */
        struct idem_command command = scene_listed(&scene, other, IDEM_EFFECT_KIND_CHARGE, NULL);
        command.evidence.order_no = idem_str_from(key);
        found(command);
        EXPECT_RELEASE(scene_make_due(&scene, key), "nothing");
        EXPECT_STATE(&scene, key, "parked");
        assert_int_equal(scene_intent(&scene, key)->last_case, IDEM_CASE_NO_ROOM);

        command = scene_pay(&scene, other, "dedup");
        command.accept.order_no = idem_str_from(key);
        EXPECT_RELEASE(scene_run(&scene, &command), "wait");
        expect_found_parked(other, IDEM_CASE_NO_ROOM);
        expect_problem(resolve(other, IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
        scene_pass(&scene, HOUR);
        expect_problem(resolve(key, IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
        expect_problem(resolve(other, IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
        assert_int_equal(scene_payment(&scene, other)->captured_minor, 10000);
    }
}

static void a_released_key_finds_it_taken_too(void **state)
{
    (void)state;
    released("j", "dedup");
    struct idem_command command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_CHARGE, NULL);
    command.evidence.order_no = IDEM_STR("j");
    found(command);
    (void)pay("j", "dedup");
    EXPECT_STATE(&scene, "j", "failed");
    assert_int_equal(row("j")->problem, IDEM_PROBLEM_ORDER_EXISTS);
}

static void a_late_success_of_a_released_key_finds_it_taken_too(void **state)
{
    (void)state;
    released("j", "dedup");
    struct idem_command command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_CHARGE, NULL);
    command.evidence.order_no = IDEM_STR("j");
    found(command);
    (void)asked("j", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "j", "parked");
    assert_int_equal(scene_intent(&scene, "j")->last_case, IDEM_CASE_NO_ROOM);
}

static void a_request_that_asks_for_something_else_is_parked(void **state)
{
    (void)state;
    static const char *const keys[] = { "k0", "k1", "k2", "k3", "k4", "k5", "k6" };
    for (int what = 0; what < 7; what++) {
        const char *key = keys[what];
        struct idem_command listing = scene_listed(&scene, key, IDEM_EFFECT_KIND_CHARGE, NULL);
        struct idem_evidence *evidence = &listing.evidence;
        evidence->amount_minor -= what == 0 ? 1 : 0;
        evidence->currency = what == 1 ? IDEM_STR("USD") : evidence->currency;
        evidence->entry = what == 2 ? IDEM_STR("plain") : evidence->entry;
        evidence->account = what == 3 ? IDEM_STR("other") : evidence->account;
        evidence->region = what == 4 ? IDEM_STR("other") : evidence->region;
        evidence->order_no = what == 5 ? IDEM_STR("other") : evidence->order_no;
        found(listing);
        struct idem_command command = scene_pay(&scene, key, "dedup");
        command.accept.capture_mode = what == 6 ? IDEM_CAPTURE_MANUAL : IDEM_CAPTURE_AUTOMATIC;
        EXPECT_RELEASE(scene_run(&scene, &command), "wait");
        expect_found_parked(key, IDEM_CASE_MISMATCH);
        assert_int_equal(row(key)->effect.amount_minor, evidence->amount_minor);
        EXPECT_TEXT(row(key)->effect.reference, "provider-88");
        assert_int_equal(scene_payment(&scene, key)->state, IDEM_PAYMENT_FAILED);
        EXPECT_RELEASE(pay(key, "dedup"), "wait"); /* Again and again, and never a send. */
    }
}

static void an_id_that_differs_in_its_last_bits_is_another(void **state)
{
    (void)state;
    found_charge("k");
    struct idem_command command = scene_pay(&scene, "k", "dedup");
    char tail[IDEM_EFFECT_ID_LEN - 1];
    memcpy(tail, command.accept.effect_id_tail.data, sizeof(tail));
    tail[sizeof(tail) - 1] = (char)(tail[sizeof(tail) - 1] + 1); /* Beyond the scope's 128 bits. */
    command.accept.effect_id_tail = (struct idem_str){ .data = tail, .len = sizeof(tail) };
    EXPECT_RELEASE(scene_run(&scene, &command), "wait");
    expect_found_parked("k", IDEM_CASE_MISMATCH);
}

static void a_currency_that_cannot_be_shown_makes_no_row(void **state)
{
    (void)state;
    struct idem_command command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_CHARGE, NULL);
    command.evidence.currency = IDEM_STR("???");
    found(command);
    (void)pay("k", "dedup");
    expect_found_parked("k", IDEM_CASE_MISMATCH);
    assert_int_equal(row("k")->payment_row, 0);
    command = scene_listed(&scene, "j", IDEM_EFFECT_KIND_REFUND, NULL); /* Not a payment at all. */
    found(command);
    (void)pay("j", "dedup");
    expect_found_parked("j", IDEM_CASE_MISMATCH);
    assert_int_equal(row("j")->payment_row, 0);
    expect_problem(resolve("j", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
}

static void a_stub_whose_order_number_another_payment_holds_is_parked(void **state)
{
    (void)state;
    struct idem_command command = scene_pay(&scene, "other", "dedup");
    command.accept.order_no = IDEM_STR("k");
    (void)scene_run(&scene, &command);
    (void)sent("other", IDEM_OUTCOME_SUCCESS);
    found_charge("k");
    EXPECT_RELEASE(pay("k", "dedup"), "wait");
    expect_found_parked("k", IDEM_CASE_NO_ROOM);
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_FAILED);
    EXPECT_TEXT(scene_payment(&scene, "k")->failure_code, "not_settled");
}

static void what_was_done_to_the_payment_since_is_applied_with_it(void **state)
{
    (void)state;
    scene.manual = true;
    found(scene_listed(&scene, "p", IDEM_EFFECT_KIND_AUTHORIZE, NULL));
    found(of_payment("k", IDEM_EFFECT_KIND_CAPTURE, "p", 7000));
    found(of_payment("r", IDEM_EFFECT_KIND_REFUND, "p", 2000));
    found(of_payment("v", IDEM_EFFECT_KIND_CANCEL, "p", 3000));
    assert_false(scene_stub(&scene, "k")->applied);
    struct idem_command command = scene_pay(&scene, "p", "dedup");
    command.accept.capture_mode = IDEM_CAPTURE_MANUAL;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    assert_true(scene.decision.payment_stubs_applied);
    const struct idem_payment *payment = scene_payment(&scene, "p");
    assert_int_equal(payment->captured_minor, 7000);
    assert_int_equal(payment->refunded_minor, 2000);
    assert_int_equal(payment->released_minor, 3000);
    assert_int_equal(payment->state, IDEM_PAYMENT_PARTIALLY_REFUNDED);
    assert_true(scene_stub(&scene, "k")->applied);

    (void)act("k", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "70.00");
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(answer_of("k")->status, 200);
    (void)act("v", IDEM_ENDPOINT_PAYMENTS_CANCEL, "");
    EXPECT_STATE(&scene, "v", "succeeded");
    (void)act("r", IDEM_ENDPOINT_REFUNDS_CREATE, "20.00");
    EXPECT_STATE(&scene, "r", "succeeded");
    assert_int_equal(scene_payment(&scene, "p")->captured_minor, 7000); /* Not once more. */
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 2000);
}

static void what_is_applied_already_is_not_applied_again(void **state)
{
    (void)state;
    found_charge("p");
    found(of_payment("r", IDEM_EFFECT_KIND_REFUND, "p", 2000));
    scene_stub(&scene, "r")->applied = true;
    (void)pay("p", "dedup");
    EXPECT_STATE(&scene, "p", "succeeded");
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 0);
}

static void what_does_not_fit_the_payment_parks_it(void **state)
{
    (void)state;
    found_charge("p");
    found(of_payment("r", IDEM_EFFECT_KIND_REFUND, "p", 10001));
    EXPECT_RELEASE(pay("p", "dedup"), "wait");
    expect_found_parked("p", IDEM_CASE_NO_ROOM);
    assert_false(scene.decision.payment_stubs_applied);
    assert_false(scene_stub(&scene, "r")->applied);
    expect_problem(resolve("p", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
    expect_problem(resolve("p", IDEM_VERDICT_FAILED), IDEM_PROBLEM_STATE_CONFLICT);
    expect_found_parked("p", IDEM_CASE_NO_ROOM);
}

static void more_than_can_be_read_at_once_parks_the_payment(void **state)
{
    (void)state;
    static char keys[IDEM_PAYMENT_STUBS_MAX + 1][4];
    found_charge("p");
    for (int i = 0; i < IDEM_PAYMENT_STUBS_MAX + 1; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "r%d", i);
        found(of_payment(keys[i], IDEM_EFFECT_KIND_REFUND, "p", 1));
    }
    EXPECT_RELEASE(pay("p", "dedup"), "wait");
    expect_found_parked("p", IDEM_CASE_NO_ROOM);
    assert_false(scene.decision.payment_stubs_applied);
    expect_problem(resolve("p", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
    struct idem_command command = scene_pay(&scene, "j", "dedup");
    command.accept.order_no = IDEM_STR("p");
    (void)scene_run(&scene, &command);
    assert_int_equal(row("j")->problem, IDEM_PROBLEM_ORDER_EXISTS);
}

static void a_payment_that_was_here_takes_what_was_done_to_it_when_it_settles(void **state)
{
    (void)state;
    (void)pay("p", "dedup");
    (void)sent("p", IDEM_OUTCOME_UNKNOWN);
    found(of_payment("r", IDEM_EFFECT_KIND_REFUND, "p", 8000)); /* It is not known as made. */
    assert_false(scene_stub(&scene, "r")->applied);
    (void)asked("p", IDEM_OUTCOME_SUCCESS);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 8000);
    assert_true(scene_stub(&scene, "r")->applied);
    EXPECT_TEXT(event_text(IDEM_EVENT_PAYMENT_MOVED), "pending -> partially_refunded");
    (void)act("r", IDEM_ENDPOINT_REFUNDS_CREATE, "80.00");
    EXPECT_STATE(&scene, "r", "succeeded");
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 8000);
}

static void a_payment_that_was_here_settles_also_without_what_does_not_fit(void **state)
{
    (void)state;
    (void)pay("p", "dedup");
    found(of_payment("r", IDEM_EFFECT_KIND_REFUND, "p", 10001));
    (void)sent("p", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "p", "succeeded");
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 0);
    assert_false(scene_stub(&scene, "r")->applied);
}

static void exactly_as_many_as_can_be_read_are_applied(void **state)
{
    (void)state;
    static char keys[IDEM_PAYMENT_STUBS_MAX][4];
    found_charge("p");
    for (int i = 0; i < IDEM_PAYMENT_STUBS_MAX; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "r%d", i);
        found(of_payment(keys[i], IDEM_EFFECT_KIND_REFUND, "p", 1));
    }
    (void)pay("p", "dedup");
    EXPECT_STATE(&scene, "p", "succeeded");
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, IDEM_PAYMENT_STUBS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(an_absent_effect_becomes_a_stub),
        SCENE_TEST(what_is_a_stub_already_stays_as_it_is),
        SCENE_TEST(outside_the_mode_a_listing_makes_no_stub),
        SCENE_TEST(other_evidence_about_nothing_makes_no_stub),
        SCENE_TEST(what_is_not_under_its_scope_makes_no_stub),
        SCENE_TEST(an_amount_that_is_not_said_is_none),
        SCENE_TEST(an_action_whose_amount_is_not_said_cannot_be_resolved),
        SCENE_TEST(a_refund_of_a_known_payment_moves_its_sums_once),
        SCENE_TEST(captures_and_a_cancel_of_a_known_payment_move_its_sums),
        SCENE_TEST(without_room_the_sums_stay),
        SCENE_TEST(nothing_new_is_done_while_a_sum_is_not_counted),
        SCENE_TEST(listed_again_it_moves_the_sums_that_now_have_room),
        SCENE_TEST(listed_again_it_moves_the_sums_while_it_is_parked_too),
        SCENE_TEST(what_speaks_of_another_place_or_money_moves_nothing),
        SCENE_TEST(the_same_key_settles_from_its_stub),
        SCENE_TEST(an_old_first_try_settles_too),
        SCENE_TEST(an_authorization_settles_as_one),
        SCENE_TEST(another_key_finds_the_order_number_taken),
        SCENE_TEST(it_is_taken_at_every_entry),
        SCENE_TEST(it_stays_taken_while_its_own_request_is_parked),
        SCENE_TEST(the_number_that_the_provider_names_is_the_payments),
        SCENE_TEST(what_waits_to_be_sent_under_it_is_parked),
        SCENE_TEST(a_released_key_finds_it_taken_too),
        SCENE_TEST(a_late_success_of_a_released_key_finds_it_taken_too),
        SCENE_TEST(a_request_that_asks_for_something_else_is_parked),
        SCENE_TEST(an_id_that_differs_in_its_last_bits_is_another),
        SCENE_TEST(a_currency_that_cannot_be_shown_makes_no_row),
        SCENE_TEST(a_stub_whose_order_number_another_payment_holds_is_parked),
        SCENE_TEST(what_was_done_to_the_payment_since_is_applied_with_it),
        SCENE_TEST(what_is_applied_already_is_not_applied_again),
        SCENE_TEST(what_does_not_fit_the_payment_parks_it),
        SCENE_TEST(more_than_can_be_read_at_once_parks_the_payment),
        SCENE_TEST(exactly_as_many_as_can_be_read_are_applied),
        SCENE_TEST(a_payment_that_was_here_takes_what_was_done_to_it_when_it_settles),
        SCENE_TEST(a_payment_that_was_here_settles_also_without_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
