/*
 * What merchants are told.
 *
 * Goal: each change has its message, of the type in this table and with the resource as it then
 * stands; nobody is told who has no webhook; the longest texts fit. That no change goes untold and
 * nothing is told twice or when a command runs again, the scene proves after every command.
 */
#include "unit/core/usual.h"

/* The types of the last decision's messages, in their order. */
static const char *told(void)
{
    static char memory[512];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    for (size_t i = 0; i < scene.decision.message_count; i++) {
        idem_buf_printf(&buf, "%s%s", i > 0 ? " " : "",
                        idem_message_type_name(scene.decision.messages[i].type));
    }
    idem_buf_add_char(&buf, '\0');
    assert_false(buf.full);
    return memory;
}

static const struct idem_message *message(size_t index)
{
    assert_true(index < scene.decision.message_count);
    return &scene.decision.messages[index];
}

static void a_charge_is_told_when_it_is_made(void **state)
{
    (void)state;
    webhook_added(1);
    (void)pay("k", "dedup");
    assert_string_equal(told(), "");
    (void)sent("k", IDEM_OUTCOME_UNKNOWN);
    assert_string_equal(told(), "operation.unknown");
    (void)asked("k", IDEM_OUTCOME_SUCCESS);
    assert_string_equal(told(), "payment.captured operation.succeeded");
    assert_true(idem_uid_equal(message(0)->payment_id, scene_payment(&scene, "k")->id));
    assert_true(idem_uid_equal(message(1)->payment_id, scene_payment(&scene, "k")->id));
    assert_int_equal(message(0)->at_us, scene.now_us);
}

static void an_operation_is_shown_in_few_words(void **state)
{
    (void)state;
    webhook_added(1);
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    assert_string_equal(told(), "payment.failed operation.failed");
    EXPECT_TEXT(message(1)->data,
                "{\"operation\":{\"id\":\"aa000000-0000-0000-0000-000000000007\","
                "\"endpoint\":\"payments.create\",\"state\":\"failed\","
                "\"payment\":\"/v1/payments/aa000000-0000-0000-0000-000000000008\","
                "\"problem\":\"declined\"}}");
}

static void a_case_is_told_when_it_opens_and_when_it_is_decided(void **state)
{
    (void)state;
    webhook_added(1);
    (void)pay("k", "dedup");
    struct idem_command lie = scene_evidence(&scene, "k", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    lie.evidence.amount_minor = 1;
    (void)scene_run(&scene, &lie);
    assert_string_equal(told(), "operation.parked case.opened");
    (void)resolve("k", IDEM_VERDICT_SUCCEEDED);
    assert_string_equal(told(), "payment.captured operation.succeeded case.decided");
    (void)called("k", IDEM_OUTCOME_REFUSED_FINAL);
    assert_string_equal(told(), "case.opened");
    (void)resolve("k", IDEM_VERDICT_NOTED);
    assert_string_equal(told(), "case.decided");
    (void)resolve("k", IDEM_VERDICT_NOTED); /* There is none to decide. */
    assert_string_equal(told(), "");
}

static void captures_cancels_and_refunds_are_told_as_the_payment_and_by_themselves(void **state)
{
    (void)state;
    webhook_added(1);
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_MANUAL);
    assert_string_equal(told(), "payment.authorized operation.succeeded");
    (void)act("c", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "40.00");
    assert_string_equal(told(), ""); /* A reservation is nobody's business. */
    (void)sent("c", IDEM_OUTCOME_SUCCESS);
    assert_string_equal(told(), "payment.captured operation.succeeded");
    (void)act("r", IDEM_ENDPOINT_REFUNDS_CREATE, "10.00");
    (void)sent("r", IDEM_OUTCOME_SUCCESS);
    assert_string_equal(told(), "payment.refunded refund.succeeded operation.succeeded");
    assert_true(idem_uid_equal(message(1)->payment_id, scene_payment(&scene, "p")->id));
    (void)act("v", IDEM_ENDPOINT_PAYMENTS_CANCEL, "");
    (void)sent("v", IDEM_OUTCOME_SUCCESS); /* The rest, of what is refunded in part. */
    assert_string_equal(told(), "payment.canceled operation.succeeded");
    assert_int_equal(scene_payment(&scene, "p")->state, IDEM_PAYMENT_PARTIALLY_REFUNDED);
    (void)act("s", IDEM_ENDPOINT_REFUNDS_CREATE, "10.00");
    (void)sent("s", IDEM_OUTCOME_REFUSED_FINAL);
    assert_string_equal(told(), "refund.failed operation.failed");
    (void)called("r", IDEM_OUTCOME_REVERSED);
    assert_string_equal(told(), "payment.reversed refund.failed case.opened");
}

static void what_is_cancelled_or_expires_is_told(void **state)
{
    (void)state;
    webhook_added(1);
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("v", IDEM_ENDPOINT_PAYMENTS_CANCEL, "");
    (void)sent("v", IDEM_OUTCOME_SUCCESS);
    assert_string_equal(told(), "payment.canceled operation.succeeded");
    scene_paid(&scene, "q", "dedup", IDEM_CAPTURE_MANUAL);
    (void)called("q", IDEM_OUTCOME_REVERSED);
    assert_string_equal(told(), "payment.expired case.opened");
    scene_paid(&scene, "s", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("c", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "40.00");
    (void)sent("c", IDEM_OUTCOME_SUCCESS);
    (void)act("d", IDEM_ENDPOINT_PAYMENTS_CAPTURE, "10.00");
    (void)called("s", IDEM_OUTCOME_REVERSED); /* The rest expires while a capture is out. */
    assert_string_equal(told(), "payment.canceled case.opened");
    scene_paid(&scene, "t", "dedup", IDEM_CAPTURE_MANUAL);
    (void)act("w", IDEM_ENDPOINT_PAYMENTS_CANCEL, "");
    (void)called("t", IDEM_OUTCOME_REVERSED); /* It expires while its cancel is out. */
    assert_string_equal(told(), "payment.expired case.opened");
    (void)sent("w", IDEM_OUTCOME_SUCCESS);
    assert_string_equal(told(), "payment.canceled operation.succeeded");
}

static void a_release_is_told(void **state)
{
    (void)state;
    webhook_added(1);
    released("k", "dedup");
    assert_string_equal(told(), "payment.failed operation.released");
    struct idem_command command = scene_abandon(&scene, "k");
    (void)scene_run(&scene, &command);
    assert_string_equal(told(), "operation.failed");
    command = scene_abandon(&scene, "j"); /* Of what never was. */
    (void)scene_run(&scene, &command);
    assert_string_equal(told(), "operation.failed");
    assert_true(idem_uid_is_zero(message(0)->payment_id));
}

static void a_stray_charge_is_told_with_its_own_payment(void **state)
{
    (void)state;
    webhook_added(1);
    (void)pay("k", "dedup");
    (void)sent("k", IDEM_OUTCOME_REFUSED_FINAL);
    (void)called("k", IDEM_OUTCOME_SUCCESS);
    (void)resolve("k", IDEM_VERDICT_STRAY);
    assert_string_equal(told(), "payment.captured case.decided");
    assert_true(idem_uid_equal(message(1)->payment_id, scene_payment(&scene, "k")->id));
}

static void what_a_listing_moves_is_told_without_an_intent(void **state)
{
    (void)state;
    webhook_added(1);
    scene_paid(&scene, "p", "dedup", IDEM_CAPTURE_AUTOMATIC);
    found(of_payment("r", IDEM_EFFECT_KIND_REFUND, "p", 4000));
    assert_string_equal(told(), "payment.refunded");
    assert_true(idem_uid_equal(message(0)->payment_id, scene_payment(&scene, "p")->id));
    struct idem_command command = scene_act(&scene, "r", IDEM_ENDPOINT_REFUNDS_CREATE, "40.00");
    (void)scene_run(&scene, &command); /* It settles from its stub. */
    assert_string_equal(told(), "refund.succeeded operation.succeeded");
}

static void retention_is_nobodys_business(void **state)
{
    (void)state;
    webhook_added(1);
    scene_paid(&scene, "k", "dedup", IDEM_CAPTURE_AUTOMATIC);
    forgotten("k");
    assert_string_equal(told(), "");
    scene_pass(&scene, 2 * DAY);
    scene_payment(&scene, "k")->description = IDEM_STR("tea");
    expect_problem(erase("k"), IDEM_PROBLEM_NONE); /* The payment is written: blanked. */
    assert_int_equal(scene.decision.payment.write, IDEM_WRITE_UPDATE);
    assert_string_equal(told(), "");
}

static void nobody_is_told_who_has_no_webhook(void **state)
{
    (void)state;
    struct idem_command command = scene_webhook(&scene, IDEM_WEBHOOK_ADD, 1);
    command.webhook.row.principal = IDEM_STR("other");
    (void)scene_run(&scene, &command);
    scene_paid(&scene, "k", "dedup", IDEM_CAPTURE_AUTOMATIC);
    assert_string_equal(told(), "");
}

static void who_wants_one_type_gets_no_other(void **state)
{
    (void)state;
    struct idem_command command = scene_webhook(&scene, IDEM_WEBHOOK_ADD, 1);
    command.webhook.row.types = UINT64_C(1) << IDEM_MESSAGE_PAYMENT_CAPTURED;
    (void)scene_run(&scene, &command);
    scene_paid(&scene, "k", "dedup", IDEM_CAPTURE_AUTOMATIC);
    assert_int_equal(scene.delivery_count, 1);
    assert_int_equal(scene.deliveries[0].type, IDEM_MESSAGE_PAYMENT_CAPTURED);
}

static struct idem_str all(size_t len)
{
    static char text[4096];
    assert_true(len <= sizeof(text));
    memset(text, 1, sizeof(text)); /* Six characters each in JSON. */
    return (struct idem_str){ .data = text, .len = len };
}

static struct idem_str long_metadata(void)
{
    static char text[IDEM_METADATA_MAX];
    memset(text, ' ', sizeof(text));
    text[0] = '{';
    text[sizeof(text) - 1] = '}';
    return (struct idem_str){ .data = text, .len = sizeof(text) };
}

static void the_longest_texts_fit_into_the_most_messages(void **state)
{
    (void)state;
    webhook_added(1);
    struct idem_command command = scene_pay(&scene, "p", "dedup");
    command.accept.order_no = all(IDEM_ORDER_NO_MAX);
    command.accept.description = all(IDEM_DESCRIPTION_MAX);
    command.accept.metadata = long_metadata();
    (void)scene_run(&scene, &command);
    command = scene_evidence(&scene, "p", IDEM_SOURCE_SEND, IDEM_OUTCOME_SUCCESS);
    command.evidence.reference = all(IDEM_REFERENCE_MAX);
    (void)scene_run(&scene, &command);

    command = scene_act(&scene, "r", IDEM_ENDPOINT_REFUNDS_CREATE, "");
    command.accept.refund_no = all(IDEM_REFUND_NO_MAX);
    (void)scene_run(&scene, &command);
    (void)called("r", IDEM_OUTCOME_CLOSED_UNPAID);
    command = scene_evidence(&scene, "r", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    command.evidence.account = IDEM_STR("another");
    (void)scene_run(&scene, &command);
    EXPECT_STATE(&scene, "r", "parked");
    command = scene_evidence(&scene, "r", IDEM_SOURCE_QUERY, IDEM_OUTCOME_REVERSED);
    command.evidence.reference = all(IDEM_REFERENCE_MAX);
    command.evidence.code = all(IDEM_CODE_MAX);
    (void)scene_run(&scene, &command);
    assert_string_equal(told(), "refund.failed operation.succeeded case.decided case.opened");

    command = scene_act(&scene, "s", IDEM_ENDPOINT_REFUNDS_CREATE, "");
    command.accept.refund_no = all(IDEM_REFUND_NO_MAX);
    (void)scene_run(&scene, &command);
    command = scene_evidence(&scene, "s", IDEM_SOURCE_QUERY, IDEM_OUTCOME_SUCCESS);
    command.evidence.currency = IDEM_STR("JPY");
    (void)scene_run(&scene, &command);
    command = scene_evidence(&scene, "s", IDEM_SOURCE_LISTING, IDEM_OUTCOME_SUCCESS);
    command.evidence.reference = all(IDEM_REFERENCE_MAX);
    command.evidence.again = true;
    (void)scene_run(&scene, &command);
    assert_string_equal(told(),
                        "payment.refunded refund.succeeded operation.succeeded "
                        "case.decided case.opened");
    assert_int_equal(scene.decision.message_count, IDEM_MESSAGES_STEP_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_charge_is_told_when_it_is_made),
        SCENE_TEST(an_operation_is_shown_in_few_words),
        SCENE_TEST(a_case_is_told_when_it_opens_and_when_it_is_decided),
        SCENE_TEST(captures_cancels_and_refunds_are_told_as_the_payment_and_by_themselves),
        SCENE_TEST(what_is_cancelled_or_expires_is_told),
        SCENE_TEST(a_release_is_told),
        SCENE_TEST(a_stray_charge_is_told_with_its_own_payment),
        SCENE_TEST(what_a_listing_moves_is_told_without_an_intent),
        SCENE_TEST(retention_is_nobodys_business),
        SCENE_TEST(nobody_is_told_who_has_no_webhook),
        SCENE_TEST(who_wants_one_type_gets_no_other),
        SCENE_TEST(the_longest_texts_fit_into_the_most_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
