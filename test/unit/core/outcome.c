/*
 * Names, limits and copies: what core says of itself to stores, timelines and callers.
 *
 * Goal: every stored value has a name of its own, a name leads back to its value, and the largest
 * texts that the limits allow fit where they must fit.
 *
 * Method: every enum is walked; the largest payment is answered and copied as a store does it.
 */
#include "core/outcome.h"

#include "core/answer.h"
#include "lib/test.h"

/* The names of one enum, by value. */
#define NAMES(type, name_of)                \
    static const char *name_of##_at(int at) \
    {                                       \
        return name_of((type)at);           \
    }

NAMES(enum idem_intent_state, idem_intent_state_name)
NAMES(enum idem_endpoint, idem_endpoint_name)
NAMES(enum idem_effect_kind, idem_effect_kind_name)
NAMES(enum idem_step, idem_step_name)
NAMES(enum idem_event_kind, idem_event_kind_name)
NAMES(enum idem_cause, idem_cause_name)
NAMES(enum idem_outcome_kind, idem_outcome_kind_name)
NAMES(enum idem_evidence_source, idem_evidence_source_name)
NAMES(enum idem_payment_state, idem_payment_state_name)
NAMES(enum idem_refund_state, idem_refund_state_name)
NAMES(enum idem_capture_mode, idem_capture_mode_name)
NAMES(enum idem_advice_effect, idem_advice_effect_name)
NAMES(enum idem_advice_retry, idem_advice_retry_name)

/* Every value from zero below `count` has a name and no two share one. */
static void expect_names(const char *(*name_at)(int), int count)
{
    for (int i = 0; i < count; i++) {
        assert_true(strlen(name_at(i)) > 0);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(name_at(i), name_at(j));
        }
    }
}

static void every_stored_value_has_a_name_of_its_own(void **state)
{
    (void)state;
    expect_names(idem_intent_state_name_at, IDEM_INTENT_COUNT);
    expect_names(idem_endpoint_name_at, IDEM_ENDPOINT_COUNT);
    expect_names(idem_effect_kind_name_at, IDEM_EFFECT_KIND_COUNT);
    expect_names(idem_step_name_at, IDEM_STEP_COUNT);
    expect_names(idem_event_kind_name_at, IDEM_EVENT_KIND_COUNT);
    expect_names(idem_cause_name_at, IDEM_CAUSE_COUNT);
    expect_names(idem_outcome_kind_name_at, IDEM_OUTCOME_COUNT);
    expect_names(idem_evidence_source_name_at, IDEM_SOURCE_COUNT);
    expect_names(idem_payment_state_name_at, IDEM_PAYMENT_COUNT);
    expect_names(idem_refund_state_name_at, IDEM_REFUND_COUNT);
    expect_names(idem_capture_mode_name_at, IDEM_CAPTURE_MODE_COUNT);
    expect_names(idem_advice_effect_name_at, IDEM_EFFECT_DEPENDS);
    expect_names(idem_advice_retry_name_at, IDEM_RETRY_QUERY + 1);
}

static void an_endpoints_name_leads_back_to_it(void **state)
{
    (void)state;
    for (int i = IDEM_ENDPOINT_NONE + 1; i < IDEM_ENDPOINT_COUNT; i++) {
        struct idem_str name = idem_str_from(idem_endpoint_name((enum idem_endpoint)i));
        assert_int_equal(idem_endpoint_from(name), i);
    }
    assert_int_equal(idem_endpoint_from(IDEM_STR("none")), IDEM_ENDPOINT_NONE);
    assert_int_equal(idem_endpoint_from(IDEM_STR("payments.creat")), IDEM_ENDPOINT_NONE);
}

static void effect_letters_are_five_different_ones(void **state)
{
    (void)state;
    const char *expected = "cakvr";
    for (int i = IDEM_EFFECT_KIND_CHARGE; i < IDEM_EFFECT_KIND_COUNT; i++) {
        assert_int_equal(idem_effect_kind_letter((enum idem_effect_kind)i), expected[i - 1]);
    }
}

static void on_the_wire_claimed_and_dispatched_are_both_processing(void **state)
{
    (void)state;
    assert_string_equal(idem_operation_state_name(IDEM_INTENT_CLAIMED), "processing");
    assert_string_equal(idem_operation_state_name(IDEM_INTENT_DISPATCHED), "processing");
    assert_string_equal(idem_operation_state_name(IDEM_INTENT_UNKNOWN), "unknown");
    assert_string_equal(idem_operation_state_name(IDEM_INTENT_PARKED), "parked");
    assert_string_equal(idem_operation_state_name(IDEM_INTENT_SUCCEEDED), "succeeded");
    assert_string_equal(idem_operation_state_name(IDEM_INTENT_FAILED), "failed");
    assert_string_equal(idem_operation_state_name(IDEM_INTENT_RELEASED), "released");
}

static void open_is_what_somebody_must_still_act_on(void **state)
{
    (void)state;
    for (int i = IDEM_INTENT_NONE; i < IDEM_INTENT_COUNT; i++) {
        bool is_final = i == IDEM_INTENT_SUCCEEDED || i == IDEM_INTENT_FAILED;
        assert_int_equal(idem_intent_is_final((enum idem_intent_state)i), is_final);
        assert_int_equal(idem_intent_is_open((enum idem_intent_state)i),
                         !is_final && i != IDEM_INTENT_NONE);
    }
}

static char filler[4][IDEM_REQUEST_MAX];

/* Text of `len` bytes that JSON must escape with six each. */
static struct idem_str controls(size_t len)
{
    memset(filler[0], '\x01', sizeof(filler[0]));
    return (struct idem_str){ .data = filler[0], .len = len };
}

static struct idem_str letters(size_t len)
{
    memset(filler[1], 'x', sizeof(filler[1]));
    return (struct idem_str){ .data = filler[1], .len = len };
}

static void the_largest_answer_fits_and_is_copied_whole(void **state)
{
    (void)state;
    static char memory[IDEM_ANSWER_MAX];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    struct idem_payment payment = {
        .version = 1,
        .state = IDEM_PAYMENT_CAPTURED,
        .order_no = controls(IDEM_ORDER_NO_MAX),
        .capture_mode = IDEM_CAPTURE_AUTOMATIC,
        .amount_minor = INT64_MAX,
        .authorized_minor = INT64_MAX,
        .captured_minor = INT64_MAX,
        .currency = IDEM_STR("KWD"),
        .entry = controls(IDEM_ENTRY_MAX),
        .reference = controls(IDEM_REFERENCE_MAX),
        .description = controls(IDEM_DESCRIPTION_MAX),
        .metadata = letters(IDEM_METADATA_MAX),
        .failure_code = controls(IDEM_CODE_MAX),
        .created_us = INT64_C(253402300799999999),
        .updated_us = INT64_C(253402300799999999),
    };
    static struct idem_decision decision;
    decision.release = (struct idem_release){ .kind = IDEM_RELEASE_REPLY, .retry_after_us = 7 };
    decision.intent.row = (struct idem_intent){
        .row = 1,
        .principal = letters(IDEM_PRINCIPAL_MAX),
        .key = letters(IDEM_KEY_MAX),
        .effect = {
            .id = letters(IDEM_EFFECT_ID_LEN),
            .entry = letters(IDEM_ENTRY_MAX),
            .account = letters(IDEM_ACCOUNT_MAX),
            .region = letters(IDEM_REGION_MAX),
            .currency = IDEM_STR("KWD"),
            .request = letters(IDEM_REQUEST_MAX),
            .reference = letters(IDEM_REFERENCE_MAX),
        },
        .answer = idem_answer_payment(201, &payment, &buf),
    };
    assert_false(buf.full);

    static struct idem_outcome outcome;
    static struct idem_outcome copy;
    idem_outcome_take(&outcome, &decision);
    memset(memory, 0, sizeof(memory)); /* The decision's memory is gone now. */
    idem_outcome_copy(&copy, &outcome);
    memset(&outcome, 0, sizeof(outcome));
    assert_int_equal(copy.release.retry_after_us, 7);
    assert_int_equal(copy.intent.answer.status, 201);
    assert_int_equal(copy.intent.effect.request.len, IDEM_REQUEST_MAX);
    assert_int_equal(copy.intent.key.len, 0);
    struct idem_str body = copy.intent.answer.body;
    assert_true(idem_str_starts(body, IDEM_STR("{\"id\":\"")));
    assert_true(idem_str_equal(idem_str_slice(body, body.len - 2, 2), IDEM_STR("}\n")));
}

static void what_is_made_says_where_it_is(void **state)
{
    (void)state;
    char memory[2048];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    const struct idem_refund refund = {
        .amount_minor = 1,
        .currency = IDEM_STR("JPY"),
        .state = IDEM_REFUND_SUCCEEDED,
    };
    struct idem_answer answer = idem_answer_refund(201, &refund, &buf);
    EXPECT_TEXT(answer.headers,
                "Content-Type: application/json\n"
                "Location: /v1/refunds/00000000-0000-0000-0000-000000000000\n");
    answer = idem_answer_refund(200, &refund, &buf);
    EXPECT_TEXT(answer.headers, "Content-Type: application/json\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stored_value_has_a_name_of_its_own),
        cmocka_unit_test(an_endpoints_name_leads_back_to_it),
        cmocka_unit_test(effect_letters_are_five_different_ones),
        cmocka_unit_test(on_the_wire_claimed_and_dispatched_are_both_processing),
        cmocka_unit_test(open_is_what_somebody_must_still_act_on),
        cmocka_unit_test(the_largest_answer_fits_and_is_copied_whole),
        cmocka_unit_test(what_is_made_says_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
