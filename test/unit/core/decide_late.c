/*
 * What is learned about what is over.
 *
 * Goal: the grid says, for each end and each source, which outcomes open which case; nothing but a
 * reversal moves money; what a person has decided does not come back by itself; and a stray charge
 * gets a payment of its own. That the answer stays, the scene proves (P4).
 */
#include "unit/core/usual.h"

/* One letter a case: what it is, or `.` for nothing. */
static char case_letter(const struct scene_intent *intent, size_t cases_before)
{
    static const char *const letters[IDEM_CASE_KIND_COUNT] = {
        [IDEM_CASE_MISMATCH] = "m",  [IDEM_CASE_CONTRADICTION] = "c", [IDEM_CASE_UNRESOLVED] = "u",
        [IDEM_CASE_NO_ROOM] = "n",   [IDEM_CASE_REVERSED] = "r",      [IDEM_CASE_MISSING] = "x",
        [IDEM_CASE_DUPLICATE] = "d",
    };
    return *(intent->case_count > cases_before ? letters[intent->last_case] : ".");
}

static void ended(enum idem_intent_state state)
{
    scene_end(&scene);
    scene_begin(&scene);
    (void)pay("k", "dedup");
    (void)sent("k",
               state == IDEM_INTENT_SUCCEEDED ? IDEM_OUTCOME_SUCCESS : IDEM_OUTCOME_REFUSED_FINAL);
}

enum said {
    SAID_SAME,
    SAID_OTHER,
    SAID_AGAIN,
    SAID_COUNT
};

static char cell(enum idem_intent_state state,
                 enum idem_evidence_source source,
                 enum idem_outcome_kind outcome,
                 enum said said)
{
    ended(state);
    struct idem_command command = scene_evidence(&scene, "k", source, outcome);
    command.evidence.amount_minor += said == SAID_OTHER ? 1 : 0;
    command.evidence.again = said == SAID_AGAIN;
    EXPECT_RELEASE(scene_run(&scene, &command), "nothing");
    assert_int_equal(scene_state(&scene, "k"), state);
    return case_letter(scene_intent(&scene, "k"), 0);
}

/* Five letters a cell: by the answer to a send, a question, a close; by a listing, an event. */
static void add_cell(struct idem_buf *grid,
                     enum idem_intent_state state,
                     enum idem_outcome_kind outcome,
                     enum said said)
{
    idem_buf_add(grid, IDEM_STR("  "));
    for (int source = IDEM_SOURCE_SEND; source < IDEM_SOURCE_COUNT; source++) {
        idem_buf_add_char(grid, cell(state, (enum idem_evidence_source)source, outcome, said));
    }
}

static void each_word_opens_its_case(void **state)
{
    (void)state;
    static char memory[4096];
    struct idem_buf grid;
    idem_buf_init(&grid, memory, sizeof(memory));
    idem_buf_add(&grid, IDEM_STR("                  succeeded            failed\n"));
    idem_buf_add(&grid, IDEM_STR("                  same   other  again  same   other\n"));
    for (int outcome = IDEM_OUTCOME_UNKNOWN; outcome < IDEM_OUTCOME_COUNT; outcome++) {
        enum idem_outcome_kind said = (enum idem_outcome_kind)outcome;
        idem_buf_printf(&grid, "%-16s", idem_outcome_kind_name(said));
        add_cell(&grid, IDEM_INTENT_SUCCEEDED, said, SAID_SAME);
        add_cell(&grid, IDEM_INTENT_SUCCEEDED, said, SAID_OTHER);
        add_cell(&grid, IDEM_INTENT_SUCCEEDED, said, SAID_AGAIN);
        add_cell(&grid, IDEM_INTENT_FAILED, said, SAID_SAME);
        add_cell(&grid, IDEM_INTENT_FAILED, said, SAID_OTHER);
        idem_buf_add_char(&grid, '\n');
    }
    EXPECT_TEXT(idem_buf_str(&grid),
                "                  succeeded            failed\n"
                "                  same   other  again  same   other\n"
                "no usable answer  .....  .....  .....  .....  .....\n"
                "success           .....  mmmmm  ddddd  ccccc  mmmmm\n"
                "refused           .c.cc  .c.cc  .c.cc  .....  .....\n"
                "not executed      .....  .....  .....  .....  .....\n"
                "processing        .....  .....  .....  .....  .....\n"
                "not found         ...x.  ...x.  ...x.  .....  .....\n"
                "closed, unpaid    .c.cc  .c.cc  .c.cc  .....  .....\n"
                "reversed          rrrrr  mmmmm  rrrrr  rrrrr  .....\n");
}

static void another_order_number_is_another_charge(void **state)
{
    (void)state;
    ended(IDEM_INTENT_SUCCEEDED);
    struct idem_command command =
        scene_evidence(&scene, "k", IDEM_SOURCE_LISTING, IDEM_OUTCOME_SUCCESS);
    command.evidence.order_no = IDEM_STR("another");
    (void)scene_run(&scene, &command);
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_MISMATCH);
}

static void a_key_that_was_given_up_has_nothing_to_compare(void **state)
{
    (void)state;
    struct idem_command command = scene_abandon(&scene, "k");
    (void)scene_run(&scene, &command);
    command = scene_callback(&scene, "k", "e-1", IDEM_OUTCOME_SUCCESS);
    command.evidence.effect_id = scene_effect_id(&scene, "k", IDEM_EFFECT_KIND_CHARGE);
    (void)scene_run(&scene, &command);
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_CONTRADICTION);
    expect_problem(resolve("k", IDEM_VERDICT_STRAY), IDEM_PROBLEM_STATE_CONFLICT);
}

static void what_a_person_has_decided_does_not_come_back_by_itself(void **state)
{
    (void)state;
    ended(IDEM_INTENT_FAILED);
    (void)called("k", IDEM_OUTCOME_SUCCESS);
    expect_problem(resolve("k", IDEM_VERDICT_NOTED), IDEM_PROBLEM_NONE);
    (void)called("k", IDEM_OUTCOME_SUCCESS);
    (void)learn("k", IDEM_SOURCE_LISTING, IDEM_OUTCOME_SUCCESS);
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 0);
    (void)asked("k", IDEM_OUTCOME_SUCCESS); /* Somebody has asked: that is news. */
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 1);
}

static void an_event_against_an_open_case_stands_in_the_history_and_a_listing_does_not(void **state)
{
    (void)state;
    ended(IDEM_INTENT_FAILED);
    (void)called("k", IDEM_OUTCOME_SUCCESS);
    (void)called("k", IDEM_OUTCOME_SUCCESS);
    assert_int_equal(events(IDEM_EVENT_CONTRADICTED), 1);
    (void)learn("k", IDEM_SOURCE_LISTING, IDEM_OUTCOME_SUCCESS);
    assert_int_equal(scene.decision.intent.write, IDEM_WRITE_NONE);
    assert_int_equal(scene_intent(&scene, "k")->case_count, 1);
}

/* ---- taken back ---- */

static void a_reversal_counts_once_whoever_says_it_and_after_a_decision_too(void **state)
{
    (void)state;
    ended(IDEM_INTENT_SUCCEEDED);
    (void)called("k", IDEM_OUTCOME_REVERSED);
    EXPECT_TEXT(event_text(IDEM_EVENT_PAYMENT_MOVED), "captured -> expired");
    assert_int_equal(scene_payment(&scene, "k")->captured_minor, 0);
    uint32_t version = scene_payment(&scene, "k")->version;
    (void)called("k", IDEM_OUTCOME_REVERSED);
    (void)learn("k", IDEM_SOURCE_LISTING, IDEM_OUTCOME_REVERSED);
    expect_problem(resolve("k", IDEM_VERDICT_NOTED), IDEM_PROBLEM_NONE);
    (void)called("k", IDEM_OUTCOME_REVERSED);
    assert_int_equal(scene_payment(&scene, "k")->version, version);
    assert_int_equal(scene_intent(&scene, "k")->case_count, 1);
}

static void what_was_refunded_cannot_be_taken_back_as_well(void **state)
{
    (void)state;
    ended(IDEM_INTENT_SUCCEEDED);
    (void)act("r", IDEM_ENDPOINT_REFUNDS_CREATE, "0.01");
    (void)called("k", IDEM_OUTCOME_REVERSED); /* One cent may be on its way already. */
    assert_int_equal(scene_payment(&scene, "k")->captured_minor, 10000);
    assert_int_equal(scene_intent(&scene, "k")->last_case, IDEM_CASE_REVERSED);
    assert_false(scene_intent(&scene, "k")->is_reversed);
}

static void an_authorization_that_was_cancelled_and_expires_is_no_case(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("c", IDEM_ENDPOINT_PAYMENTS_CANCEL, "");
    (void)learn("c", IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    assert_int_equal(scene_payment(&scene, "p")->state, IDEM_PAYMENT_CANCELED);
    (void)called("p", IDEM_OUTCOME_REVERSED);
    (void)learn("p", IDEM_SOURCE_LISTING, IDEM_OUTCOME_REVERSED);
    assert_int_equal(scene_payment(&scene, "p")->state, IDEM_PAYMENT_CANCELED);
    assert_int_equal(scene_intent(&scene, "p")->case_count, 0);
}

static void a_capture_that_is_taken_back_leaves_the_rest_as_it_was(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("one", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "60.00");
    (void)sent("one", IDEM_OUTCOME_SUCCESS);
    (void)act("two", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "40.00");
    (void)sent("two", IDEM_OUTCOME_SUCCESS);
    (void)called("one", IDEM_OUTCOME_REVERSED);
    assert_int_equal(scene_payment(&scene, "p")->captured_minor, 4000);
    assert_int_equal(scene_payment(&scene, "p")->state, IDEM_PAYMENT_PARTIALLY_CAPTURED);
}

static void the_rest_of_an_authorization_expires(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("one", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "60.00");
    (void)sent("one", IDEM_OUTCOME_SUCCESS);
    (void)called("p", IDEM_OUTCOME_REVERSED);
    assert_int_equal(scene_payment(&scene, "p")->state, IDEM_PAYMENT_CAPTURED);
    assert_int_equal(scene_payment(&scene, "p")->released_minor, 4000);
}

/* All of it, and nobody has cancelled it: its order number stays with it. */
static void a_capture_and_its_rest_that_are_taken_back_are_expired(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("one", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "60.00");
    (void)sent("one", IDEM_OUTCOME_SUCCESS);
    (void)called("p", IDEM_OUTCOME_REVERSED);
    (void)called("one", IDEM_OUTCOME_REVERSED);
    assert_int_equal(scene_payment(&scene, "p")->state, IDEM_PAYMENT_EXPIRED);
    assert_int_equal(scene_payment(&scene, "p")->captured_minor, 0);
    assert_int_equal(scene_payment(&scene, "p")->released_minor, 10000);
}

static void a_cancel_cannot_be_taken_back(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("v", IDEM_ENDPOINT_PAYMENTS_CANCEL, "");
    (void)sent("v", IDEM_OUTCOME_SUCCESS);
    (void)called("v", IDEM_OUTCOME_REVERSED);
    assert_int_equal(scene_payment(&scene, "p")->state, IDEM_PAYMENT_CANCELED);
    assert_int_equal(scene_intent(&scene, "v")->last_case, IDEM_CASE_REVERSED);
}

static void a_refund_that_the_provider_took_back_twice_is_back_once(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    (void)act("r", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    (void)sent("r", IDEM_OUTCOME_SUCCESS);
    struct idem_command command = scene_callback(&scene, "r", "e-1", IDEM_OUTCOME_REVERSED);
    command.evidence.code = IDEM_STR(""); /* It does not say why. */
    (void)scene_run(&scene, &command);
    EXPECT_TEXT(scene_refund(&scene, "r")->failure_code, "reversed");
    EXPECT_TEXT(event_text(IDEM_EVENT_REFUND_MOVED), "succeeded -> failed");
    assert_int_equal(scene_payment(&scene, "p")->state, IDEM_PAYMENT_CAPTURED);
    (void)called("r", IDEM_OUTCOME_REVERSED);
    assert_int_equal(scene_payment(&scene, "p")->refunded_minor, 0);
    EXPECT_STATE(&scene, "r", "succeeded");
}

static void what_failed_and_is_in_no_sum_lowers_none(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("one", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "60.00");
    (void)sent("one", IDEM_OUTCOME_SUCCESS);
    (void)act("two", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "40.00");
    (void)sent("two", IDEM_OUTCOME_REFUSED_FINAL);
    (void)act("r", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    (void)sent("r", IDEM_OUTCOME_REFUSED_FINAL);
    (void)called("two", IDEM_OUTCOME_REVERSED);
    (void)called("r", IDEM_OUTCOME_REVERSED);
    assert_int_equal(scene_payment(&scene, "p")->captured_minor, 6000);
    assert_int_equal(scene_intent(&scene, "two")->last_case, IDEM_CASE_REVERSED);
}

static void rows_that_have_no_such_refund_are_left(void **state)
{
    (void)state;
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    (void)act("r", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    (void)sent("r", IDEM_OUTCOME_SUCCESS);
    struct idem_command command = scene_callback(&scene, "r", "e-1", IDEM_OUTCOME_REVERSED);
    scene_fetch_for(&scene, &command);
    scene.facts.payment.refunded_minor = 3999; /* No store of ours can hold that. */
    scene.facts.payment.state = IDEM_PAYMENT_PARTIALLY_REFUNDED;
    idem_decide(&scene.rules, &scene.facts, &command, &scene.decision);
    assert_int_equal(scene.decision.payment.write, IDEM_WRITE_NONE);
    assert_int_equal(scene.decision.opened.kind, IDEM_CASE_REVERSED);
    scene.facts.refund = (struct idem_refund){ .row = 0 };
    idem_decide(&scene.rules, &scene.facts, &command, &scene.decision);
    assert_int_equal(scene.decision.payment.write, IDEM_WRITE_NONE);
    scene.facts.payment = (struct idem_payment){ .row = 0 };
    idem_decide(&scene.rules, &scene.facts, &command, &scene.decision);
    assert_int_equal(scene.decision.payment.write, IDEM_WRITE_NONE);
}

/* ---- a stray charge ---- */

static void contradicted(enum idem_capture_mode mode)
{
    struct idem_command command = scene_pay(&scene, "k", "dedup");
    command.accept.capture_mode = mode;
    (void)scene_run(&scene, &command);
    (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    (void)called("k", IDEM_OUTCOME_SUCCESS);
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 1);
}

static void a_stray_charge_gets_a_payment_of_its_own_and_can_be_given_back(void **state)
{
    (void)state;
    contradicted(IDEM_CAPTURE_AUTOMATIC);
    struct idem_command command = scene_resolve(&scene, "k", IDEM_VERDICT_STRAY);
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    struct idem_payment *stray = scene_payment(&scene, "k");
    assert_int_equal(stray->state, IDEM_PAYMENT_CAPTURED);
    assert_true(idem_uid_equal(stray->id, command.resolve.case_id));
    assert_true(idem_payment_is_stray(stray));
    assert_memory_equal(stray->order_no.data, "case-", 5);
    EXPECT_TEXT(stray->reference, "provider-99");
    EXPECT_STATE(&scene, "k", "failed"); /* The answer was that, and stays. */
    EXPECT_TEXT(event_text(IDEM_EVENT_PAYMENT_MOVED), "pending -> captured");
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 0);
    EXPECT_RELEASE(pay("other", "dedup"), "send");

    command = scene_act(&scene, "case", IDEM_ENDPOINT_REFUNDS_CREATE, "");
    command.accept.payment_id = scene_payment(&scene, "k")->id;
    EXPECT_RELEASE(scene_run(&scene, &command), "send");
    (void)sent("case", IDEM_OUTCOME_SUCCESS);
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_REFUNDED);
}

static void a_stray_charge_is_made_once(void **state)
{
    (void)state;
    contradicted(IDEM_CAPTURE_AUTOMATIC);
    struct idem_command command = scene_resolve(&scene, "k", IDEM_VERDICT_STRAY);
    (void)scene_run(&scene, &command);
    size_t payments = scene.payment_count;
    struct idem_command again = scene_resolve(&scene, "k", IDEM_VERDICT_STRAY);
    again.resolve.case_id = command.resolve.case_id;
    expect_problem(scene_run(&scene, &again), IDEM_PROBLEM_NONE);
    (void)asked("k", IDEM_OUTCOME_SUCCESS); /* Another case about the same charge. */
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 1);
    expect_problem(resolve("k", IDEM_VERDICT_STRAY), IDEM_PROBLEM_STATE_CONFLICT);
    assert_int_equal(scene.payment_count, payments);
}

static void a_stray_authorization_can_be_cancelled_also_long_after(void **state)
{
    (void)state;
    struct idem_command command = scene_pay(&scene, "k", "dedup");
    command.accept.capture_mode = IDEM_CAPTURE_MANUAL;
    (void)scene_run(&scene, &command);
    (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    forgotten("k");
    (void)called("k", IDEM_OUTCOME_SUCCESS);
    expect_problem(resolve("k", IDEM_VERDICT_STRAY), IDEM_PROBLEM_NONE);
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_AUTHORIZED);
    EXPECT_RELEASE(act("v", IDEM_ENDPOINT_PAYMENTS_CANCEL, ""), "send");
}

static void without_room(void)
{
    released("k", "dedup");
    struct idem_command command = scene_pay(&scene, "j", "dedup");
    command.accept.order_no = IDEM_STR("k");
    (void)scene_run(&scene, &command);
    (void)called("k", IDEM_OUTCOME_SUCCESS);
    EXPECT_STATE(&scene, "k", "parked");
}

static void what_has_no_room_succeeds_as_a_stray(void **state)
{
    (void)state;
    without_room();
    struct idem_command command = scene_resolve(&scene, "k", IDEM_VERDICT_STRAY);
    command.resolve.reference = IDEM_STR(""); /* As the provider said it. */
    expect_problem(scene_run(&scene, &command), IDEM_PROBLEM_NONE);
    EXPECT_STATE(&scene, "k", "succeeded");
    EXPECT_TEXT(scene_payment(&scene, "k")->reference, "provider-77");
    assert_true(body_has("k", "\"order_no\":\"case-"));
    struct idem_command listing =
        scene_evidence(&scene, "k", IDEM_SOURCE_LISTING, IDEM_OUTCOME_SUCCESS);
    listing.evidence.order_no = IDEM_STR("k"); /* The provider knows it by the merchant's. */
    (void)scene_run(&scene, &listing);
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 0);
}

static void nothing_else_is_stray(void **state)
{
    (void)state;
    expect_problem(resolve("absent", IDEM_VERDICT_STRAY), IDEM_PROBLEM_NOT_FOUND);
    ended(IDEM_INTENT_FAILED); /* Nobody says that it was done. */
    expect_problem(resolve("k", IDEM_VERDICT_STRAY), IDEM_PROBLEM_STATE_CONFLICT);
    ended(IDEM_INTENT_SUCCEEDED);
    (void)called("k", IDEM_OUTCOME_REFUSED_FINAL); /* A contradiction the other way round. */
    expect_problem(resolve("k", IDEM_VERDICT_STRAY), IDEM_PROBLEM_STATE_CONFLICT);
    parked("p"); /* Other money. */
    expect_problem(resolve("p", IDEM_VERDICT_STRAY), IDEM_PROBLEM_STATE_CONFLICT);
    scene_paid(&scene, "a", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("c", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "1.00");
    (void)sent("c", IDEM_OUTCOME_REFUSED_FINAL);
    (void)called("c", IDEM_OUTCOME_SUCCESS); /* It makes no payment. */
    expect_problem(resolve("c", IDEM_VERDICT_STRAY), IDEM_PROBLEM_STATE_CONFLICT);
}

static void what_was_taken_back_is_not_given_back(void **state)
{
    (void)state;
    contradicted(IDEM_CAPTURE_AUTOMATIC);
    (void)called("k", IDEM_OUTCOME_REVERSED);
    assert_int_equal(scene_intent(&scene, "k")->open_cases, 2);
    expect_problem(resolve("k", IDEM_VERDICT_STRAY), IDEM_PROBLEM_STATE_CONFLICT);
    expect_problem(resolve("k", IDEM_VERDICT_NOTED), IDEM_PROBLEM_NONE);
}

static void a_stray_charge_is_taken_back_from_its_own_payment(void **state)
{
    (void)state;
    contradicted(IDEM_CAPTURE_AUTOMATIC);
    (void)resolve("k", IDEM_VERDICT_STRAY);
    (void)called("k", IDEM_OUTCOME_REVERSED);
    assert_int_equal(scene_payment(&scene, "k")->state, IDEM_PAYMENT_EXPIRED);
    assert_int_equal(idem_payment_refundable(scene_payment(&scene, "k")), 0);
}

static void what_a_stub_stands_for_is_no_stray(void **state)
{
    (void)state;
    found_charge("k");
    struct idem_command command = scene_pay(&scene, "j", "dedup");
    command.accept.order_no = IDEM_STR("j");
    (void)scene_run(&scene, &command);
    command = scene_pay(&scene, "k", "dedup");
    command.accept.order_no = IDEM_STR("j"); /* Not as it was: parked from its stub. */
    (void)scene_run(&scene, &command);
    EXPECT_STATE(&scene, "k", "parked");
    expect_problem(resolve("k", IDEM_VERDICT_STRAY), IDEM_PROBLEM_STATE_CONFLICT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(each_word_opens_its_case),
        SCENE_TEST(another_order_number_is_another_charge),
        SCENE_TEST(a_key_that_was_given_up_has_nothing_to_compare),
        SCENE_TEST(what_a_person_has_decided_does_not_come_back_by_itself),
        SCENE_TEST(an_event_against_an_open_case_stands_in_the_history_and_a_listing_does_not),
        SCENE_TEST(a_reversal_counts_once_whoever_says_it_and_after_a_decision_too),
        SCENE_TEST(what_was_refunded_cannot_be_taken_back_as_well),
        SCENE_TEST(an_authorization_that_was_cancelled_and_expires_is_no_case),
        SCENE_TEST(a_capture_that_is_taken_back_leaves_the_rest_as_it_was),
        SCENE_TEST(the_rest_of_an_authorization_expires),
        SCENE_TEST(a_capture_and_its_rest_that_are_taken_back_are_expired),
        SCENE_TEST(a_cancel_cannot_be_taken_back),
        SCENE_TEST(a_refund_that_the_provider_took_back_twice_is_back_once),
        SCENE_TEST(what_failed_and_is_in_no_sum_lowers_none),
        SCENE_TEST(rows_that_have_no_such_refund_are_left),
        SCENE_TEST(a_stray_charge_gets_a_payment_of_its_own_and_can_be_given_back),
        SCENE_TEST(a_stray_charge_is_made_once),
        SCENE_TEST(a_stray_authorization_can_be_cancelled_also_long_after),
        SCENE_TEST(what_has_no_room_succeeds_as_a_stray),
        SCENE_TEST(nothing_else_is_stray),
        SCENE_TEST(what_was_taken_back_is_not_given_back),
        SCENE_TEST(a_stray_charge_is_taken_back_from_its_own_payment),
        SCENE_TEST(what_a_stub_stands_for_is_no_stray),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
