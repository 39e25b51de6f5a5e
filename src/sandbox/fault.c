/*
 * The grammar of method tokens, as a table. An unknown token is refused and never taken for `ok`:
 * a test with a typing error in it would otherwise pass for the wrong reason.
 */
#include "sandbox/fault.h"

#include "base/bug.h"
#include "base/clock.h"

struct fault_row {
    struct idem_str name;   /* Before the number, if there is one. */
    struct idem_str behind; /* After the number. */
    bool numbered;
    bool counts;     /* The number is one of times and not of seconds. */
    bool repeatable; /* May carry _always. */
};

#define NAME(literal)        .name = { (literal), sizeof(literal) - 1 }
#define REPEATABLE(literal)  NAME(literal), .repeatable = true
#define NUMBERED(literal, b) NAME(literal), .numbered = true, .behind = { (b), sizeof(b) - 1 }

static const struct fault_row rows[IDEM_FAULT_COUNT] = {
    [IDEM_FAULT_OK] = { NAME("ok") },
    [IDEM_FAULT_DECLINE] = { NAME("decline") },
    [IDEM_FAULT_LOSE_ANSWER] = { REPEATABLE("lose_answer") },
    [IDEM_FAULT_LOSE_REQUEST] = { REPEATABLE("lose_request") },
    [IDEM_FAULT_LATE] = { NUMBERED("late_", "") },
    [IDEM_FAULT_SLOW] = { NUMBERED("slow_", "") },
    [IDEM_FAULT_500_BEFORE] = { REPEATABLE("500_before") },
    [IDEM_FAULT_500_AFTER] = { REPEATABLE("500_after") },
    [IDEM_FAULT_CUT_BODY] = { REPEATABLE("cut_body") },
    [IDEM_FAULT_GARBAGE] = { REPEATABLE("garbage") },
    [IDEM_FAULT_WRONG_AMOUNT] = { REPEATABLE("wrong_amount") },
    [IDEM_FAULT_WRONG_CURRENCY] = { REPEATABLE("wrong_currency") },
    [IDEM_FAULT_WRONG_ID] = { REPEATABLE("wrong_id") },
    [IDEM_FAULT_UNKNOWN_STATUS] = { REPEATABLE("unknown_status") },
    [IDEM_FAULT_429] = { REPEATABLE("429") },
    [IDEM_FAULT_503] = { REPEATABLE("503") },
    [IDEM_FAULT_PROCESSING_OK] = { NUMBERED("processing_", "_ok") },
    [IDEM_FAULT_PROCESSING_FAIL] = { NUMBERED("processing_", "_fail") },
    [IDEM_FAULT_NOT_FOUND] = { NUMBERED("not_found_", "") },
    [IDEM_FAULT_DEAD_REUSE] = { REPEATABLE("dead_reuse") },
    [IDEM_FAULT_DEAD_REUSE_AFTER] = { REPEATABLE("dead_reuse_after") },
    [IDEM_FAULT_LIST_ERROR] = { NUMBERED("list_error_", ""), .counts = true },
    [IDEM_FAULT_LIST_SLOW] = { NUMBERED("list_slow_", "") },
};

static const struct fault_row telling_rows[IDEM_TELLING_COUNT] = {
    [IDEM_TELLING_OK] = { NAME("ok") },
    [IDEM_TELLING_NONE] = { NAME("none") },
    [IDEM_TELLING_LATE] = { NUMBERED("late_", "") },
    [IDEM_TELLING_TWICE] = { NAME("twice") },
    [IDEM_TELLING_AGAIN] = { NAME("again") },
    [IDEM_TELLING_REORDERED] = { NAME("reordered") },
    [IDEM_TELLING_WRONG_AMOUNT] = { NAME("wrong_amount") },
    [IDEM_TELLING_WRONG_CURRENCY] = { NAME("wrong_currency") },
    [IDEM_TELLING_WRONG_ID] = { NAME("wrong_id") },
    [IDEM_TELLING_WRONG_ORDER] = { NAME("wrong_order") },
    [IDEM_TELLING_WRONG_ACCOUNT] = { NAME("wrong_account") },
    [IDEM_TELLING_UNKNOWN_OUTCOME] = { NAME("unknown_outcome") },
    [IDEM_TELLING_GARBAGE] = { NAME("garbage") },
    [IDEM_TELLING_STALE] = { NAME("stale") },
    [IDEM_TELLING_FUTURE] = { NAME("future") },
    [IDEM_TELLING_FORGED] = { NAME("forged") },
    [IDEM_TELLING_LAST_SECRET] = { NAME("last_secret") },
    [IDEM_TELLING_CONTRADICT] = { NUMBERED("contradict_", "") },
    [IDEM_TELLING_REVERSE] = { NUMBERED("reverse_", "") },
};

static const enum idem_sandbox_order_kind later_kinds[] = { IDEM_ORDER_CAPTURE, IDEM_ORDER_CANCEL,
                                                            IDEM_ORDER_REFUND };

/* Takes `tail` off the end of `*text`, if it is there. */
static bool tail_take(struct idem_str *text, struct idem_str tail)
{
    if (text->len < tail.len) {
        return false;
    }
    size_t rest = text->len - tail.len;
    if (!idem_str_equal(idem_str_slice(*text, rest, tail.len), tail)) {
        return false;
    }
    text->len = rest;
    return true;
}

/* Takes `head` off the beginning of `*text`, if it is there. */
static bool head_take(struct idem_str *text, struct idem_str head)
{
    if (!idem_str_starts(*text, head)) {
        return false;
    }
    *text = idem_str_slice(*text, head.len, text->len);
    return true;
}

/* True if `text` is what the row says; its number, or 0, is in `*ret_number`. */
static bool row_match(const struct fault_row *row, struct idem_str text, int64_t *ret_number)
{
    int64_t number = 0;

    if (!row->numbered) {
        *ret_number = 0;
        return idem_str_equal(row->name, text);
    }
    if (!head_take(&text, row->name) || !tail_take(&text, row->behind)) {
        return false;
    }
    if (!idem_str_to_i64(text, &number) || number > IDEM_FAULT_NUMBER_MAX) {
        return false;
    }
    *ret_number = number;
    return true;
}

static bool rule_parse(struct idem_str text, struct idem_sandbox_fault_rule *ret_rule)
{
    bool always = tail_take(&text, IDEM_STR("_always"));
    int64_t number = 0;

    for (enum idem_sandbox_fault fault = IDEM_FAULT_OK; fault < IDEM_FAULT_COUNT; fault++) {
        const struct fault_row *row = &rows[fault];
        if (row_match(row, text, &number)) {
            *ret_rule = (struct idem_sandbox_fault_rule){
                .fault = fault,
                .always = always,
                .count = row->counts ? number : 0,
                .wait_us = row->counts ? 0 : number * IDEM_US_PER_SECOND,
            };
            return row->repeatable || !always;
        }
    }
    return false;
}

static bool telling_parse(struct idem_str text, struct idem_sandbox_telling_rule *ret_rule)
{
    int64_t number = 0;

    for (enum idem_sandbox_telling telling = IDEM_TELLING_OK; telling < IDEM_TELLING_COUNT;
         telling++) {
        if (row_match(&telling_rows[telling], text, &number)) {
            *ret_rule = (struct idem_sandbox_telling_rule){
                .telling = telling,
                .wait_us = number * IDEM_US_PER_SECOND,
            };
            return true;
        }
    }
    return false;
}

/* A plan that is being read, and what of it already has its own. */
struct reading {
    struct idem_sandbox_fault_plan plan;
    bool has_rule[IDEM_ORDER_KIND_COUNT];
    bool has_telling[IDEM_ORDER_KIND_COUNT];
};

static bool telling_take(struct idem_str text,
                         enum idem_sandbox_order_kind kind,
                         struct reading *reading)
{
    struct idem_sandbox_telling_rule rule;

    if (!telling_parse(text, &rule)) {
        return false;
    }
    if (!reading->has_telling[kind]) {
        reading->plan.tellings[kind] = rule;
        reading->has_telling[kind] = true;
    }
    return true;
}

static bool rule_take(struct idem_str text,
                      enum idem_sandbox_order_kind kind,
                      struct reading *reading)
{
    struct idem_sandbox_fault_rule rule;

    if (!rule_parse(text, &rule)) {
        return false;
    }
    if (!reading->has_rule[kind]) {
        reading->plan.rules[kind] = rule;
        reading->has_rule[kind] = true;
    }
    return true;
}

/* One `later` of the grammar. */
static bool later_parse(struct idem_str text, struct reading *reading)
{
    if (head_take(&text, IDEM_STR("callback_"))) {
        return telling_take(text, IDEM_ORDER_CHARGE, reading);
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(later_kinds); i++) {
        enum idem_sandbox_order_kind kind = later_kinds[i];
        struct idem_str rest = text;
        if (!head_take(&rest, idem_sandbox_order_kind_name(kind)) ||
            !head_take(&rest, IDEM_STR("_"))) {
            continue;
        }
        return head_take(&rest, IDEM_STR("callback_")) ? telling_take(rest, kind, reading)
                                                       : rule_take(rest, kind, reading);
    }
    return false;
}

bool idem_sandbox_fault_plan_parse(struct idem_str token, struct idem_sandbox_fault_plan *ret_plan)
{
    struct reading reading = { .plan = { .rules = { { .fault = IDEM_FAULT_OK } } } };
    struct idem_sandbox_fault_plan *plan = &reading.plan;

    if (!head_take(&token, IDEM_STR("tok_")) || tail_take(&token, IDEM_STR("+"))) {
        return false;
    }
    if (!rule_parse(idem_str_next(&token, '+'), &plan->rules[IDEM_ORDER_CHARGE])) {
        return false;
    }
    while (token.data != NULL) {
        if (!later_parse(idem_str_next(&token, '+'), &reading)) {
            return false;
        }
    }
    plan->rules[IDEM_ORDER_AUTHORIZE] = plan->rules[IDEM_ORDER_CHARGE];
    plan->tellings[IDEM_ORDER_AUTHORIZE] = plan->tellings[IDEM_ORDER_CHARGE];
    *ret_plan = *plan;
    return true;
}
