/*
 * Stubs: what an old copy has missed, from the listing to the claim that meets it.
 *
 * Goal: an effect that the provider lists and this store does not know is never executed again: the
 * same key is settled from it or parked, another key finds the order number taken, and the sums of
 * a payment have it once and only once.
 *
 * Method: scenes (scene.h): the mode, a listing, the end of the mode, and the request that comes
 * again.
 */
#include "unit/core/usual.h"

static const struct idem_intent *row(const char *key)
{
    return &scene_intent(&scene, key)->row;
}

/* As `command` says, in the mode; afterwards the mode is over. */
static void found(struct idem_command command)
{
    command.restored = true;
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
}

static void found_charge(const char *key)
{
    found(scene_listed(&scene, key, IDEM_EFFECT_KIND_CHARGE, NULL));
}

static struct idem_command of_payment(const char *key,
                                      enum idem_effect_kind kind,
                                      const char *payment_key,
                                      int64_t amount_minor)
{
    struct idem_command command = scene_listed(&scene, key, kind, payment_key);
    command.evidence.amount_minor = amount_minor;
    return command;
}

static void expect_parked(const char *key, enum idem_case_kind kind)
{
    EXPECT_STATE(&scene, key, "parked");
    assert_int_equal(scene_intent(&scene, key)->last_case, kind);
    assert_int_equal(scene_intent(&scene, key)->open_cases, 1);
    assert_int_equal(row(key)->send_count, 0);
    assert_int_equal(row(key)->problem, IDEM_PROBLEM_NOT_EXECUTED); /* It holds no reservation. */
    assert_null(scene_stub(&scene, key));
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
    expect_parked("k", IDEM_CASE_MISMATCH);
    assert_int_equal(row("k")->payment_row, 0); /* No row can be made of that. */
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
    found(of_payment("k", IDEM_EFFECT_KIND_CAPTURE, "p", 10001));
    found(of_payment("r", IDEM_EFFECT_KIND_REFUND, "p", 1));
    found(of_payment("c", IDEM_EFFECT_KIND_CHARGE, "p", 1)); /* It would make one. */
    assert_false(scene_stub(&scene, "k")->applied);
    assert_false(scene_stub(&scene, "r")->applied);
    assert_false(scene_stub(&scene, "c")->applied);
    (void)act("void", IDEM_ENDPOINT_PAYMENTS_CANCEL, ""); /* It is on its way. */
    found(of_payment("v", IDEM_EFFECT_KIND_CANCEL, "p", 10000));
    assert_false(scene_stub(&scene, "v")->applied);
    assert_int_equal(scene_payment(&scene, "p")->captured_minor, 0);
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
        expect_parked(key, IDEM_CASE_MISMATCH);
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
    expect_parked("k", IDEM_CASE_MISMATCH);
}

static void a_currency_that_cannot_be_shown_makes_no_row(void **state)
{
    (void)state;
    struct idem_command command = scene_listed(&scene, "k", IDEM_EFFECT_KIND_CHARGE, NULL);
    command.evidence.currency = IDEM_STR("???");
    found(command);
    (void)pay("k", "dedup");
    expect_parked("k", IDEM_CASE_MISMATCH);
    assert_int_equal(row("k")->payment_row, 0);
    command = scene_listed(&scene, "j", IDEM_EFFECT_KIND_REFUND, NULL); /* Not a payment at all. */
    found(command);
    (void)pay("j", "dedup");
    expect_parked("j", IDEM_CASE_MISMATCH);
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
    expect_parked("k", IDEM_CASE_NO_ROOM);
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
    expect_parked("p", IDEM_CASE_NO_ROOM);
    assert_false(scene.decision.payment_stubs_applied);
    assert_false(scene_stub(&scene, "r")->applied);
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
    expect_parked("p", IDEM_CASE_NO_ROOM);
    assert_false(scene.decision.payment_stubs_applied);
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
        expect_parked(keys[i], IDEM_CASE_MISMATCH);
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
    expect_parked("k", IDEM_CASE_MISMATCH);
}

static void an_action_on_another_payment_is_parked(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    scene_paid(&scene, "q", "dedup", IDEM_CAPTURE_AUTOMATIC);
    EXPECT_RELEASE(act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00"), "wait"); /* Of the newest. */
    expect_parked("k", IDEM_CASE_MISMATCH);
}

static void an_action_on_a_payment_that_is_not_here_is_parked(void **state)
{
    (void)state;
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    EXPECT_RELEASE(act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00"), "wait");
    expect_parked("k", IDEM_CASE_NO_ROOM);
    assert_int_equal(row("k")->payment_row, 0);
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_STATE_CONFLICT);
    expect_problem(resolve("k", IDEM_VERDICT_FAILED), IDEM_PROBLEM_NONE);
}

static void an_action_on_somebody_elses_payment_shows_nothing_of_it(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    scene_payment(&scene, "p")->principal = IDEM_STR("somebody else");
    EXPECT_RELEASE(act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00"), "wait");
    expect_parked("k", IDEM_CASE_NO_ROOM);
    assert_int_equal(row("k")->payment_row, 0);
    assert_true(idem_uid_is_zero(row("k")->payment_id));
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
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000)); /* Its payment comes later. */
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    EXPECT_RELEASE(act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00"), "wait");
    expect_parked("k", IDEM_CASE_NO_ROOM);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 0);
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
    expect_parked("k", IDEM_CASE_NO_ROOM);
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
    (void)asked("k", IDEM_OUTCOME_REFUSED_FINAL); /* The provider has taken it back. */
    EXPECT_STATE(&scene, "k", "failed");
}

static void a_payment_that_did_not_fit_is_resolved_with_what_the_provider_took(void **state)
{
    (void)state;
    found_charge("k");
    struct idem_command command = scene_pay(&scene, "k", "dedup");
    command.accept.amount_minor = 9000;
    command.accept.capture_mode = IDEM_CAPTURE_MANUAL;
    (void)scene_run(&scene, &command);
    expect_parked("k", IDEM_CASE_MISMATCH);
    command = scene_resolve(&scene, "k", IDEM_VERDICT_SUCCEEDED);
    command.resolve.amount_minor = 9000;
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_AMOUNT_INVALID);
    expect_problem(resolve("k", IDEM_VERDICT_SUCCEEDED), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
    assert_int_equal(scene_payment(&scene, "k")->captured_minor, 10000);
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 0);
}

static void an_action_that_did_not_fit_is_resolved_without_moving_sums(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("k", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    (void)act("k", IDEM_ENDPOINT_REFUNDS_CREATE, "39.00");
    expect_parked("k", IDEM_CASE_MISMATCH);
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
        SCENE_TEST(an_absent_effect_becomes_a_stub),
        SCENE_TEST(what_is_a_stub_already_stays_as_it_is),
        SCENE_TEST(outside_the_mode_a_listing_makes_no_stub),
        SCENE_TEST(other_evidence_about_nothing_makes_no_stub),
        SCENE_TEST(what_is_not_under_its_scope_makes_no_stub),
        SCENE_TEST(an_amount_that_is_not_said_is_none),
        SCENE_TEST(a_refund_of_a_known_payment_moves_its_sums_once),
        SCENE_TEST(captures_and_a_cancel_of_a_known_payment_move_its_sums),
        SCENE_TEST(without_room_the_sums_stay),
        SCENE_TEST(what_speaks_of_another_place_or_money_moves_nothing),
        SCENE_TEST(the_same_key_settles_from_its_stub),
        SCENE_TEST(an_old_first_try_settles_too),
        SCENE_TEST(an_authorization_settles_as_one),
        SCENE_TEST(another_key_finds_the_order_number_taken),
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
        SCENE_TEST(a_refund_gets_its_row_and_its_number),
        SCENE_TEST(who_asked_for_all_that_is_left_got_what_was_left_then),
        SCENE_TEST(an_action_with_another_amount_is_parked),
        SCENE_TEST(an_action_of_another_kind_is_parked),
        SCENE_TEST(an_action_on_another_payment_is_parked),
        SCENE_TEST(an_action_on_a_payment_that_is_not_here_is_parked),
        SCENE_TEST(an_action_on_somebody_elses_payment_shows_nothing_of_it),
        SCENE_TEST(who_may_not_use_the_entry_is_told_so_and_the_stub_stays),
        SCENE_TEST(an_action_that_the_sums_do_not_have_is_parked),
        SCENE_TEST(a_refund_whose_number_is_taken_is_parked),
        SCENE_TEST(what_was_parked_is_only_asked_about),
        SCENE_TEST(a_payment_that_did_not_fit_is_resolved_with_what_the_provider_took),
        SCENE_TEST(an_action_that_did_not_fit_is_resolved_without_moving_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
