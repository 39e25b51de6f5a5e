/*
 * The grammar of method tokens.
 *
 * Goal: every token of docs/sandbox.md is understood, everything else is refused, and each kind of
 * operation gets the fault that was named for it.
 *
 * Method: a table of tokens written from the document, each with what every kind of operation is
 * to suffer; "-" is a refused token.
 */
#include "sandbox/fault.h"

#include "base/clock.h"
#include "lib/test.h"

static const char *const fault_names[IDEM_FAULT_COUNT] = {
    [IDEM_FAULT_OK] = "ok",
    [IDEM_FAULT_DECLINE] = "decline",
    [IDEM_FAULT_LOSE_ANSWER] = "lose_answer",
    [IDEM_FAULT_LOSE_REQUEST] = "lose_request",
    [IDEM_FAULT_LATE] = "late",
    [IDEM_FAULT_SLOW] = "slow",
    [IDEM_FAULT_500_BEFORE] = "500_before",
    [IDEM_FAULT_500_AFTER] = "500_after",
    [IDEM_FAULT_CUT_BODY] = "cut_body",
    [IDEM_FAULT_GARBAGE] = "garbage",
    [IDEM_FAULT_WRONG_AMOUNT] = "wrong_amount",
    [IDEM_FAULT_WRONG_CURRENCY] = "wrong_currency",
    [IDEM_FAULT_WRONG_ID] = "wrong_id",
    [IDEM_FAULT_UNKNOWN_STATUS] = "unknown_status",
    [IDEM_FAULT_429] = "429",
    [IDEM_FAULT_503] = "503",
    [IDEM_FAULT_PROCESSING_OK] = "processing_ok",
    [IDEM_FAULT_PROCESSING_FAIL] = "processing_fail",
    [IDEM_FAULT_NOT_FOUND] = "not_found",
    [IDEM_FAULT_DEAD_REUSE] = "dead_reuse",
    [IDEM_FAULT_DEAD_REUSE_AFTER] = "dead_reuse_after",
    [IDEM_FAULT_LIST_ERROR] = "list_error",
    [IDEM_FAULT_LIST_SLOW] = "list_slow",
};

static const char *const telling_names[IDEM_TELLING_COUNT] = {
    [IDEM_TELLING_OK] = "ok",
    [IDEM_TELLING_NONE] = "none",
    [IDEM_TELLING_LATE] = "late",
    [IDEM_TELLING_TWICE] = "twice",
    [IDEM_TELLING_AGAIN] = "again",
    [IDEM_TELLING_REORDERED] = "reordered",
    [IDEM_TELLING_WRONG_AMOUNT] = "wrong_amount",
    [IDEM_TELLING_WRONG_CURRENCY] = "wrong_currency",
    [IDEM_TELLING_WRONG_ID] = "wrong_id",
    [IDEM_TELLING_WRONG_ORDER] = "wrong_order",
    [IDEM_TELLING_WRONG_ACCOUNT] = "wrong_account",
    [IDEM_TELLING_UNKNOWN_OUTCOME] = "unknown_outcome",
    [IDEM_TELLING_GARBAGE] = "garbage",
    [IDEM_TELLING_STALE] = "stale",
    [IDEM_TELLING_FUTURE] = "future",
    [IDEM_TELLING_FORGED] = "forged",
    [IDEM_TELLING_LAST_SECRET] = "last_secret",
    [IDEM_TELLING_CONTRADICT] = "contradict",
    [IDEM_TELLING_REVERSE] = "reverse",
};

struct row {
    const char *token;
    const char *expected; /* charge capture cancel refund */
};

static const struct row rows[] = {
    { "tok_ok", "ok ok ok ok" },
    { "tok_decline", "decline ok ok ok" },
    { "tok_lose_answer", "lose_answer ok ok ok" },
    { "tok_lose_answer_always", "lose_answer! ok ok ok" },
    { "tok_lose_request", "lose_request ok ok ok" },
    { "tok_lose_request_always", "lose_request! ok ok ok" },
    { "tok_late_0", "late:0 ok ok ok" },
    { "tok_late_3600", "late:3600 ok ok ok" },
    { "tok_slow_12", "slow:12 ok ok ok" },
    { "tok_500_before", "500_before ok ok ok" },
    { "tok_500_before_always", "500_before! ok ok ok" },
    { "tok_500_after", "500_after ok ok ok" },
    { "tok_cut_body", "cut_body ok ok ok" },
    { "tok_garbage_always", "garbage! ok ok ok" },
    { "tok_wrong_amount", "wrong_amount ok ok ok" },
    { "tok_wrong_currency", "wrong_currency ok ok ok" },
    { "tok_wrong_id_always", "wrong_id! ok ok ok" },
    { "tok_unknown_status", "unknown_status ok ok ok" },
    { "tok_429", "429 ok ok ok" },
    { "tok_429_always", "429! ok ok ok" },
    { "tok_503", "503 ok ok ok" },
    { "tok_processing_5_ok", "processing_ok:5 ok ok ok" },
    { "tok_processing_0_fail", "processing_fail:0 ok ok ok" },
    { "tok_not_found_7", "not_found:7 ok ok ok" },
    { "tok_dead_reuse", "dead_reuse ok ok ok" },
    { "tok_dead_reuse_after", "dead_reuse_after ok ok ok" },
    { "tok_dead_reuse_after_always", "dead_reuse_after! ok ok ok" },
    { "tok_list_error_3", "list_error*3 ok ok ok" },
    { "tok_list_slow_2", "list_slow:2 ok ok ok" },
    { "tok_ok+capture_list_error_1+refund_list_slow_5", "ok list_error*1 ok list_slow:5" },
    { "tok_ok+capture_decline", "ok decline ok ok" },
    { "tok_late_1+refund_slow_2+capture_503_always+cancel_garbage", "late:1 503! garbage slow:2" },
    { "tok_ok+refund_429+refund_503", "ok ok ok 429" },
    { "tok_ok+refund_ok+refund_503", "ok ok ok ok" },
    { "tok_", "-" },
    { "ok", "-" },
    { "TOK_OK", "-" },
    { "tok_okay", "-" },
    { "tok_ok ", "-" },
    { "tok_ok+", "-" },
    { "tok_ok++refund_429", "-" },
    { "tok_ok+refund", "-" },
    { "tok_ok+refund_", "-" },
    { "tok_ok+charge_decline", "-" },
    { "tok_ok+refund_429+refund_nonsense", "-" },
    { "tok_ok_always", "-" },
    { "tok_decline_always", "-" },
    { "tok_late_1_always", "-" },
    { "tok_late_", "-" },
    { "tok_late_3601", "-" },
    { "tok_late_-1", "-" },
    { "tok_late_1.5", "-" },
    { "tok_late_99999999999999999999", "-" },
    { "tok_processing_1", "-" },
    { "tok_processing_ok", "-" },
    { "tok_lose_answer_always_always", "-" },
    { "tok_list_error", "-" },
    { "tok_list_error_3_always", "-" },
};

static void rule_print(const struct idem_sandbox_fault_rule *rule, struct idem_buf *buf)
{
    bool is_timed = rule->fault == IDEM_FAULT_LATE || rule->fault == IDEM_FAULT_SLOW ||
                    rule->fault == IDEM_FAULT_PROCESSING_OK ||
                    rule->fault == IDEM_FAULT_PROCESSING_FAIL ||
                    rule->fault == IDEM_FAULT_NOT_FOUND || rule->fault == IDEM_FAULT_LIST_SLOW;

    idem_buf_printf(buf, "%s%s", buf->len == 0 ? "" : " ", fault_names[rule->fault]);
    if (is_timed) {
        idem_buf_printf(buf, ":%d", (int)(rule->wait_us / IDEM_US_PER_SECOND));
    }
    if (rule->count > 0) {
        idem_buf_printf(buf, "*%d", (int)rule->count);
    }
    idem_buf_add(buf, idem_str_from(rule->always ? "!" : ""));
}

static void telling_print(const struct idem_sandbox_telling_rule *rule, struct idem_buf *buf)
{
    bool is_timed = rule->telling == IDEM_TELLING_LATE ||
                    rule->telling == IDEM_TELLING_CONTRADICT ||
                    rule->telling == IDEM_TELLING_REVERSE;

    idem_buf_printf(buf, "%s%s", buf->len == 0 ? "" : " ", telling_names[rule->telling]);
    if (is_timed) {
        idem_buf_printf(buf, ":%d", (int)(rule->wait_us / IDEM_US_PER_SECOND));
    }
}

static void every_token_means_what_the_document_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        char memory[256];
        struct idem_buf buf;
        struct idem_sandbox_fault_plan plan;
        idem_buf_init(&buf, memory, sizeof(memory));
        if (!idem_sandbox_fault_plan_parse(idem_str_from(rows[i].token), &plan)) {
            idem_buf_add_char(&buf, '-');
        } else {
            rule_print(&plan.rules[IDEM_ORDER_CHARGE], &buf);
            rule_print(&plan.rules[IDEM_ORDER_CAPTURE], &buf);
            rule_print(&plan.rules[IDEM_ORDER_CANCEL], &buf);
            rule_print(&plan.rules[IDEM_ORDER_REFUND], &buf);
            assert_memory_equal(&plan.rules[IDEM_ORDER_CHARGE], &plan.rules[IDEM_ORDER_AUTHORIZE],
                                sizeof(plan.rules[0]));
        }
        if (!idem_str_equal(idem_buf_str(&buf), idem_str_from(rows[i].expected))) {
            print_error("token %s\n", rows[i].token);
        }
        EXPECT_TEXT(idem_buf_str(&buf), rows[i].expected);
    }
}

static void every_telling_means_what_the_document_says(void **state)
{
    static const struct row told[] = {
        { "tok_ok", "ok ok ok ok" },
        { "tok_ok+callback_none", "none ok ok ok" },
        { "tok_late_2+callback_late_3", "late:3 ok ok ok" },
        { "tok_ok+callback_twice+refund_callback_again", "twice ok ok again" },
        { "tok_ok+capture_callback_reordered", "ok reordered ok ok" },
        { "tok_ok+cancel_callback_wrong_amount", "ok ok wrong_amount ok" },
        { "tok_ok+callback_wrong_currency", "wrong_currency ok ok ok" },
        { "tok_ok+callback_wrong_id", "wrong_id ok ok ok" },
        { "tok_ok+callback_wrong_order", "wrong_order ok ok ok" },
        { "tok_ok+callback_wrong_account", "wrong_account ok ok ok" },
        { "tok_ok+callback_unknown_outcome", "unknown_outcome ok ok ok" },
        { "tok_ok+callback_garbage", "garbage ok ok ok" },
        { "tok_ok+callback_stale", "stale ok ok ok" },
        { "tok_ok+callback_future", "future ok ok ok" },
        { "tok_ok+callback_forged", "forged ok ok ok" },
        { "tok_ok+callback_last_secret", "last_secret ok ok ok" },
        { "tok_decline+callback_contradict_0", "contradict:0 ok ok ok" },
        { "tok_ok+refund_callback_reverse_7", "ok ok ok reverse:7" },
        { "tok_ok+callback_ok+callback_none", "ok ok ok ok" },
        { "tok_ok+refund_503+refund_callback_stale", "ok ok ok stale" },
        { "tok_ok+callback_", "-" },
        { "tok_ok+callback_lost", "-" },
        { "tok_ok+callback_reverse", "-" },
        { "tok_ok+callback_late_3601", "-" },
        { "tok_ok+callback_forged_always", "-" },
        { "tok_ok+refund_callback_", "-" },
        { "tok_callback_none", "-" },
    };

    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(told); i++) {
        char memory[256];
        struct idem_buf buf;
        struct idem_sandbox_fault_plan plan;
        idem_buf_init(&buf, memory, sizeof(memory));
        if (!idem_sandbox_fault_plan_parse(idem_str_from(told[i].token), &plan)) {
            idem_buf_add_char(&buf, '-');
        } else {
            telling_print(&plan.tellings[IDEM_ORDER_CHARGE], &buf);
            telling_print(&plan.tellings[IDEM_ORDER_CAPTURE], &buf);
            telling_print(&plan.tellings[IDEM_ORDER_CANCEL], &buf);
            telling_print(&plan.tellings[IDEM_ORDER_REFUND], &buf);
            assert_int_equal(plan.tellings[IDEM_ORDER_AUTHORIZE].telling,
                             plan.tellings[IDEM_ORDER_CHARGE].telling);
        }
        EXPECT_TEXT(idem_buf_str(&buf), told[i].expected);
    }
}

static void a_refused_token_leaves_the_plan_alone(void **state)
{
    struct idem_sandbox_fault_plan plan = { 0 };

    (void)state;
    plan.rules[IDEM_ORDER_REFUND].fault = IDEM_FAULT_429;
    assert_false(idem_sandbox_fault_plan_parse(IDEM_STR("tok_decline+refund_x"), &plan));
    assert_int_equal(plan.rules[IDEM_ORDER_CHARGE].fault, IDEM_FAULT_OK);
    assert_int_equal(plan.rules[IDEM_ORDER_REFUND].fault, IDEM_FAULT_429);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_means_what_the_document_says),
        cmocka_unit_test(every_telling_means_what_the_document_says),
        cmocka_unit_test(a_refused_token_leaves_the_plan_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
