/*
 * Names, limits and copies: what core says of itself to stores, timelines and callers.
 *
 * Goal: every stored value has a name of its own, a name leads back to its value, and the largest
 * texts that the limits allow fit where they must fit.
 *
 * Method: every enum is walked; the largest payment is answered and copied as a store does it.
 */
#include "core/outcome.h"

#include "base/clock.h"
#include "core/answer.h"
#include "core/webhook.h"
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
NAMES(enum idem_case_kind, idem_case_kind_name)
NAMES(enum idem_verdict, idem_verdict_name)
NAMES(enum idem_role, idem_role_name)
NAMES(enum idem_outcome_kind, idem_outcome_kind_name)
NAMES(enum idem_evidence_source, idem_evidence_source_name)
NAMES(enum idem_payment_state, idem_payment_state_name)
NAMES(enum idem_refund_state, idem_refund_state_name)
NAMES(enum idem_capture_mode, idem_capture_mode_name)
NAMES(enum idem_message_type, idem_message_type_name)
NAMES(enum idem_delivery_state, idem_delivery_state_name)
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
    expect_names(idem_case_kind_name_at, IDEM_CASE_KIND_COUNT);
    expect_names(idem_verdict_name_at, IDEM_VERDICT_COUNT);
    expect_names(idem_role_name_at, IDEM_ROLE_COUNT);
    expect_names(idem_outcome_kind_name_at, IDEM_OUTCOME_COUNT);
    expect_names(idem_evidence_source_name_at, IDEM_SOURCE_COUNT);
    expect_names(idem_payment_state_name_at, IDEM_PAYMENT_COUNT);
    expect_names(idem_refund_state_name_at, IDEM_REFUND_COUNT);
    expect_names(idem_capture_mode_name_at, IDEM_CAPTURE_MODE_COUNT);
    expect_names(idem_message_type_name_at, IDEM_MESSAGE_TYPE_COUNT);
    expect_names(idem_delivery_state_name_at, IDEM_DELIVERY_COUNT);
    expect_names(idem_advice_effect_name_at, IDEM_EFFECT_DEPENDS);
    expect_names(idem_advice_retry_name_at, IDEM_RETRY_QUERY + 1);
}

static void a_messages_type_leads_back_to_it(void **state)
{
    (void)state;
    for (int i = IDEM_MESSAGE_NONE + 1; i < IDEM_MESSAGE_TYPE_COUNT; i++) {
        struct idem_str name = idem_str_from(idem_message_type_name((enum idem_message_type)i));
        assert_int_equal(idem_message_type_from(name), i);
    }
    assert_int_equal(idem_message_type_from(IDEM_STR("none")), IDEM_MESSAGE_NONE);
    assert_int_equal(idem_message_type_from(IDEM_STR("payment.")), IDEM_MESSAGE_NONE);
}

static void a_deliverys_state_leads_back_to_it(void **state)
{
    (void)state;
    for (int i = IDEM_DELIVERY_NONE + 1; i < IDEM_DELIVERY_COUNT; i++) {
        struct idem_str name = idem_str_from(idem_delivery_state_name((enum idem_delivery_state)i));
        assert_int_equal(idem_delivery_state_from(name), i);
    }
    assert_int_equal(idem_delivery_state_from(IDEM_STR("none")), IDEM_DELIVERY_NONE);
    assert_int_equal(idem_delivery_state_from(IDEM_STR("Dead")), IDEM_DELIVERY_NONE);
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

static void a_verdicts_and_a_roles_name_lead_back_to_them(void **state)
{
    (void)state;
    for (int i = IDEM_VERDICT_NONE + 1; i < IDEM_VERDICT_COUNT; i++) {
        struct idem_str name = idem_str_from(idem_verdict_name((enum idem_verdict)i));
        assert_int_equal(idem_verdict_from(name), i);
    }
    for (int i = IDEM_ROLE_NONE + 1; i < IDEM_ROLE_COUNT; i++) {
        struct idem_str name = idem_str_from(idem_role_name((enum idem_role)i));
        assert_int_equal(idem_role_from(name), i);
    }
    assert_int_equal(idem_verdict_from(IDEM_STR("none")), IDEM_VERDICT_NONE);
    assert_int_equal(idem_verdict_from(IDEM_STR("Failed")), IDEM_VERDICT_NONE);
    assert_int_equal(idem_role_from(IDEM_STR("none")), IDEM_ROLE_NONE);
    assert_int_equal(idem_role_from(IDEM_STR("")), IDEM_ROLE_NONE);
}

/* docs/fingerprint.md, "Scope and effect id". */
static void an_effect_id_names_its_scope(void **state)
{
    (void)state;
    static const char *const vectors[][2] = {
        { "45c3af15e8e7a9df0528e65455c3a1f3", "8q1ty5f8wymxy198wsa5bgx1yc" },
        { "85d106d9aef96c22a17fbdde7dd8e970", "gq8gdpdez5p258bzqqf7vp79e3" },
        { "29c52d09099e9ed6c450ca95da01d177", "572jt289ktfddh2gsaaxm0ehey" },
        { "62e678f56cd75f7fd0e57f8af2ffa991", "cbk7hxbctxfqzm75fy5f5zx9j7" },
        { "955bd7f97afebbaa78abdcf005eee25c", "jndxfybtztxtmy5bvkr0bvq2bh" },
        { "f0c01b09528a100a0459b8f6dc1209ca", "y301p2ajh880m12sq3vdr4g9sa" },
    };
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        for (int kind = IDEM_EFFECT_KIND_CHARGE; kind < IDEM_EFFECT_KIND_COUNT; kind++) {
            char memory[64];
            struct idem_buf buf;
            idem_buf_init(&buf, memory, sizeof(memory));
            idem_buf_add_char(&buf, idem_effect_kind_letter((enum idem_effect_kind)kind));
            idem_buf_add(&buf, idem_str_from(vectors[i][1]));
            struct idem_scope scope;
            assert_true(idem_effect_id_scope(idem_buf_str(&buf), &scope));
            idem_buf_reset(&buf);
            idem_buf_add_hex(&buf, scope.bytes, sizeof(scope.bytes));
            EXPECT_TEXT(idem_buf_str(&buf), vectors[i][0]);
        }
    }
}

static void what_is_no_effect_id_of_ours_names_no_scope(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",
        "c",
        "c8q1ty5f8wymxy198wsa5bgx1y",   /* Too short. */
        "c8q1ty5f8wymxy198wsa5bgx1ycc", /* Too long. */
        "x8q1ty5f8wymxy198wsa5bgx1yc",  /* No such kind. */
        "C8q1ty5f8wymxy198wsa5bgx1yc",
        "c8Q1ty5f8wymxy198wsa5bgx1yc", /* Upper case is not ours. */
        "c8q1ty5f8wymxy198wsa5bgx1y-",
        "cil1ou5f8wymxy198wsa5bgx1yc", /* Letters that the alphabet leaves out. */
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct idem_scope scope;
        assert_false(idem_effect_id_scope(idem_str_from(others[i]), &scope));
    }
}

static void a_kinds_letter_leads_back_to_it(void **state)
{
    (void)state;
    for (int i = IDEM_EFFECT_KIND_CHARGE; i < IDEM_EFFECT_KIND_COUNT; i++) {
        char letter = idem_effect_kind_letter((enum idem_effect_kind)i);
        assert_int_equal(idem_effect_kind_from_letter(letter), i);
    }
    assert_int_equal(idem_effect_kind_from_letter('x'), IDEM_EFFECT_KIND_NONE);
    assert_int_equal(idem_effect_kind_from_letter('\0'), IDEM_EFFECT_KIND_NONE);
}

static void a_tombstone_is_final_and_has_no_answer(void **state)
{
    (void)state;
    for (int i = IDEM_INTENT_NONE; i < IDEM_INTENT_COUNT; i++) {
        struct idem_intent intent = { .state = (enum idem_intent_state)i };
        assert_int_equal(idem_intent_is_tombstone(&intent), idem_intent_is_final(intent.state));
        intent.answer.status = 201;
        assert_false(idem_intent_is_tombstone(&intent));
    }
}

static void what_retention_rests_on_by_default(void **state)
{
    (void)state;
    struct idem_rules rules = idem_rules_default();
    assert_int_equal(rules.answer_retention_us, 30 * IDEM_US_PER_DAY);
    assert_int_equal(rules.tombstone_us, 400 * IDEM_US_PER_DAY);
    assert_int_equal(rules.retry_window_us, IDEM_US_PER_DAY);
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
        .trace = letters(IDEM_TRACE_MAX),
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
    assert_int_equal(copy.intent.trace.len, IDEM_TRACE_MAX);
    struct idem_str body = copy.intent.answer.body;
    assert_true(idem_str_starts(body, IDEM_STR("{\"id\":\"")));
    assert_true(idem_str_equal(idem_str_slice(body, body.len - 2, 2), IDEM_STR("}\n")));
}

static void a_decision_about_no_intent_is_copied_too(void **state)
{
    (void)state;
    static const struct idem_facts facts = { .send_count = 0 };
    static struct idem_decision decision;
    static struct idem_outcome outcome;
    const struct idem_rules rules = idem_rules_default();
    const struct idem_command command = {
        .kind = IDEM_COMMAND_MARK,
        .now_us = 1,
        .token = { .bytes = { 1 } },
        .mark = { .kind = IDEM_MARK_HORIZON, .value_us = 1 },
    };
    idem_decide(&rules, &facts, &command, &decision);
    memset(&outcome, 0xff, sizeof(outcome));
    idem_outcome_take(&outcome, &decision);
    assert_int_equal(outcome.release.kind, IDEM_RELEASE_REPLY);
    assert_int_equal(outcome.release.problem, IDEM_PROBLEM_NONE);
    assert_int_equal(outcome.intent.row, 0);
    assert_int_equal(outcome.intent.state, IDEM_INTENT_NONE);
    assert_int_equal(outcome.intent.principal.len, 0);
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
        cmocka_unit_test(a_messages_type_leads_back_to_it),
        cmocka_unit_test(a_deliverys_state_leads_back_to_it),
        cmocka_unit_test(an_endpoints_name_leads_back_to_it),
        cmocka_unit_test(a_verdicts_and_a_roles_name_lead_back_to_them),
        cmocka_unit_test(an_effect_id_names_its_scope),
        cmocka_unit_test(what_is_no_effect_id_of_ours_names_no_scope),
        cmocka_unit_test(a_kinds_letter_leads_back_to_it),
        cmocka_unit_test(a_tombstone_is_final_and_has_no_answer),
        cmocka_unit_test(what_retention_rests_on_by_default),
        cmocka_unit_test(a_decision_about_no_intent_is_copied_too),
        cmocka_unit_test(effect_letters_are_five_different_ones),
        cmocka_unit_test(on_the_wire_claimed_and_dispatched_are_both_processing),
        cmocka_unit_test(open_is_what_somebody_must_still_act_on),
        cmocka_unit_test(the_largest_answer_fits_and_is_copied_whole),
        cmocka_unit_test(what_is_made_says_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
