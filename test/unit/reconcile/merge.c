/*
 * What two sides of an effect are to each other.
 *
 * Goal: every pair of what can stand here and there is judged as docs/reconciliation.md says, and
 * nobody is told "missing" of what may only stand elsewhere; of many lines in order, each comes out
 * once, beside its partner.
 *
 * Method: a table of pairs, written from the rules, with the verdict as text; then two sides as
 * lists that hold every kind at once, and the sequence that comes of them.
 */
#include "reconcile/merge.h"

#include "base/attr.h"
#include "lib/test.h"

/* The period is [100, 200), what happened from 180 on is young, clocks are 5 apart at most. */
static const struct idem_merge_rules rules = {
    .from_us = 100,
    .to_us = 200,
    .young_us = 180,
    .skew_us = 5,
    .lists = 1U << IDEM_EFFECT_KIND_CHARGE | 1U << IDEM_EFFECT_KIND_REFUND,
};

#define ID(letter, digit) letter "000000000000000000000000" digit "a"
#define C1                ID("c", "1")
#define V1                ID("v", "1")

struct side {
    const char *id; /* NULL: this side does not have it. */
    enum idem_line_state state;
    int64_t amount;
    const char *currency;
    const char *order_no;
    int64_t first;
    int64_t last;
};

static struct idem_line line_of(const struct side *side)
{
    return (struct idem_line){
        .state = side->state,
        .effect_id = idem_str_from(side->id),
        .amount_minor = side->amount,
        .currency = idem_str_from(side->currency),
        .order_no = idem_str_from(side->order_no),
        .first_us = side->first,
        .last_us = side->last,
    };
}

#define HERE(state, first, last)                               \
    {                                                          \
        C1, IDEM_LINE_##state, 1000, "EUR", "o-1", first, last \
    }
#define HERE_V(state, first, last)                             \
    {                                                          \
        V1, IDEM_LINE_##state, 1000, "EUR", "o-1", first, last \
    }
#define THERE(state, at)                                  \
    {                                                     \
        C1, IDEM_LINE_##state, 1000, "EUR", "o-1", at, at \
    }
#define NOWHERE                                   \
    {                                             \
        NULL, IDEM_LINE_NONE, 0, NULL, NULL, 0, 0 \
    }

static const struct {
    const char *verdict;
    struct side here;
    struct side there;
} pairs[] = {
    { "matched ", HERE(SUCCEEDED, 110, 120), THERE(SUCCEEDED, 115) },
    { "matched ", HERE(SUCCEEDED, 110, 190), THERE(SUCCEEDED, 190) },
    { "matched ", HERE(SUCCEEDED, 98, 99), THERE(SUCCEEDED, 0) },
    { "amount-differs listed",
      HERE(SUCCEEDED, 110, 120),
      { C1, IDEM_LINE_SUCCEEDED, 1001, "EUR", "o-1", 115, 115 } },
    { "amount-differs listed",
      HERE(FAILED, 110, 120),
      { C1, IDEM_LINE_SUCCEEDED, 1000, "USD", "o-1", 115, 115 } },
    { "amount-differs listed",
      HERE(SUCCEEDED, 110, 120),
      { C1, IDEM_LINE_SUCCEEDED, -1, "", "o-1", 115, 115 } },
    { "order-differs listed",
      HERE(SUCCEEDED, 110, 120),
      { C1, IDEM_LINE_SUCCEEDED, 1000, "EUR", "o-2", 115, 115 } },
    { "matched ",
      HERE(SUCCEEDED, 110, 120),
      { C1, IDEM_LINE_SUCCEEDED, 1000, "EUR", "", 115, 115 } },
    { "state-differs listed", HERE(FAILED, 110, 120), THERE(SUCCEEDED, 115) },
    { "state-differs listed", HERE(RELEASED, 110, 0), THERE(SUCCEEDED, 115) },
    { "state-differs listed", HERE(OPEN, 110, 0), THERE(SUCCEEDED, 115) },
    { "state-differs listed", HERE(PARKED, 110, 0), THERE(SUCCEEDED, 0) },
    { "too-young ", HERE(OPEN, 110, 0), THERE(SUCCEEDED, 180) },
    { "state-differs listed", HERE(FAILED, 110, 120), THERE(SUCCEEDED, 180) },
    { "state-differs failed", HERE(SUCCEEDED, 110, 120), THERE(FAILED, 115) },
    { "state-differs failed", HERE(OPEN, 110, 0), THERE(FAILED, 115) },
    { "nothing-moved ", HERE(FAILED, 110, 120), THERE(FAILED, 115) },
    { "nothing-moved ", HERE(RELEASED, 110, 0), THERE(FAILED, 115) },
    { "state-differs reversed", HERE(SUCCEEDED, 110, 120), THERE(REVERSED, 115) },
    { "state-differs reversed", HERE(OPEN, 110, 0), THERE(REVERSED, 115) },
    { "state-differs reversed", HERE(FAILED, 110, 120), THERE(REVERSED, 115) },

    { "open ", HERE(OPEN, 110, 0), NOWHERE },
    { "open ", HERE(PARKED, 110, 0), NOWHERE },
    { "nothing-moved ", HERE(FAILED, 110, 120), NOWHERE },
    { "nothing-moved ", HERE(RELEASED, 110, 0), NOWHERE },
    { "missing-there missing", HERE(SUCCEEDED, 105, 179), NOWHERE },
    { "too-young ", HERE(SUCCEEDED, 110, 180), NOWHERE },
    { "outside ", HERE(SUCCEEDED, 104, 120), NOWHERE },   /* May have been there before 100. */
    { "outside ", HERE_V(SUCCEEDED, 110, 120), NOWHERE }, /* A cancel: not in that listing. */

    { "missing-here listed", NOWHERE, THERE(SUCCEEDED, 100) },
    { "missing-here listed", NOWHERE, THERE(SUCCEEDED, 0) },
    { "too-young ", NOWHERE, THERE(SUCCEEDED, 180) },
    { "outside ", NOWHERE, THERE(SUCCEEDED, 99) },
    { "outside ", NOWHERE, THERE(SUCCEEDED, 200) },
    { "nothing-moved ", NOWHERE, THERE(FAILED, 110) },
    { "missing-here reversed", NOWHERE, THERE(REVERSED, 110) },
    { "foreign ", NOWHERE, { "pi_1", IDEM_LINE_SUCCEEDED, 5, "EUR", "", 110, 110 } },
    { "foreign ", NOWHERE, { "pi_1", IDEM_LINE_SUCCEEDED, 5, "", "", 190, 190 } },
};

static void expect_verdict(size_t index)
{
    char verdict[64];
    struct idem_merge_pair pair = {
        .has_here = pairs[index].here.id != NULL,
        .has_there = pairs[index].there.id != NULL,
        .here = line_of(&pairs[index].here),
        .there = line_of(&pairs[index].there),
    };
    idem_merge_judge(&rules, false, &pair);
    (void)snprintf(verdict, sizeof(verdict), "%s %s", idem_merge_kind_name(pair.kind),
                   idem_merge_word_name(pair.word));
    if (strcmp(verdict, pairs[index].verdict) != 0) {
        fail_msg("pair %zu: '%s' instead of '%s'", index, verdict, pairs[index].verdict);
    }
}

static void each_pair_is_judged(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(pairs); i++) {
        expect_verdict(i);
    }
}

static void the_end_of_the_period_is_an_edge_too(void **state)
{
    (void)state;
    static const struct side near = HERE(SUCCEEDED, 110, 195);
    const struct idem_merge_rules old = {
        .from_us = 100,
        .to_us = 200,
        .young_us = 1000,
        .skew_us = 5,
        .lists = rules.lists,
    };
    struct idem_merge_pair pair = { .has_here = true, .here = line_of(&near) };
    idem_merge_judge(&old, false, &pair);
    assert_int_equal(pair.kind, IDEM_MERGE_OUTSIDE);
    pair.here.last_us = 194;
    idem_merge_judge(&old, false, &pair);
    assert_int_equal(pair.kind, IDEM_MERGE_MISSING_THERE);
}

/* Two lists as a source. */
struct lists {
    const struct side *sides[IDEM_LINE_SIDE_COUNT];
    size_t counts[IDEM_LINE_SIDE_COUNT];
    size_t fails_at; /* Calls until one fails; 0: none does. */
    size_t calls;
};

static enum idem_err lists_next(void *context,
                                enum idem_line_side side,
                                struct idem_line *ret_line,
                                bool *ret_end,
                                struct idem_error *reterr)
{
    struct lists *lists = context;
    lists->calls += 1;
    if (lists->calls == lists->fails_at) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "broken");
    }
    *ret_end = lists->counts[side] == 0;
    if (!*ret_end) {
        *ret_line = line_of(lists->sides[side]);
        lists->sides[side] += 1;
        lists->counts[side] -= 1;
    }
    return IDEM_OK;
}

#define LINE(id, state, at)                            \
    {                                                  \
        id, IDEM_LINE_##state, 1000, "EUR", "", at, at \
    }
#define LINE_OF(id, state, amount, at)                   \
    {                                                    \
        id, IDEM_LINE_##state, amount, "EUR", "", at, at \
    }

static const struct side many_here[] = {
    LINE(ID("c", "2"), SUCCEEDED, 90),  /* In the margin, not met: not a word. */
    LINE(ID("c", "3"), SUCCEEDED, 90),  /* In the margin, met. */
    LINE(ID("c", "4"), SUCCEEDED, 120), /* Three times there. */
    LINE(ID("c", "5"), SUCCEEDED, 120), /* Twice here, since pages overlapped: once. */
    LINE(ID("c", "5"), SUCCEEDED, 120), LINE(ID("c", "6"), SUCCEEDED, 120), /* Taken back there. */
    LINE(ID("c", "7"), SUCCEEDED, 120), LINE(ID("k", "2"), FAILED, 120),
    LINE(ID("r", "2"), OPEN, 120),      LINE(ID("r", "3"), SUCCEEDED, 185),
    LINE(ID("r", "4"), SUCCEEDED, 120),
};

static const struct side many_there[] = {
    LINE(ID("c", "3"), SUCCEEDED, 101), LINE(ID("c", "4"), SUCCEEDED, 120),
    LINE(ID("c", "4"), SUCCEEDED, 121), LINE(ID("c", "4"), SUCCEEDED, 122),
    LINE(ID("c", "5"), SUCCEEDED, 120), LINE(ID("c", "6"), SUCCEEDED, 120),
    LINE(ID("c", "6"), REVERSED, 130),  LINE_OF(ID("c", "7"), SUCCEEDED, 999, 120),
    LINE(ID("k", "2"), SUCCEEDED, 120), LINE(ID("k", "3"), SUCCEEDED, 120),
    LINE(ID("k", "3"), SUCCEEDED, 121), LINE("ch_1", SUCCEEDED, 120),
    LINE(ID("r", "5"), SUCCEEDED, 50),
};

static void every_line_comes_out_once_beside_its_partner(void **state)
{
    (void)state;
    static const char expected[] =
        "c3 matched \n"
        "c4 matched \n"
        "c4 duplicate again\n"
        "c4 duplicate again\n"
        "c5 matched \n"
        "c6 matched \n"
        "c6 state-differs reversed\n"
        "c7 amount-differs listed\n"
        "ch foreign \n"
        "k2 state-differs listed\n"
        "k3 missing-here listed\n"
        "k3 duplicate again\n"
        "r2 open \n"
        "r3 too-young \n"
        "r4 missing-there missing\n"
        "r5 outside \n";
    struct side there[IDEM_ARRAY_COUNT(many_there)];
    memcpy(there, many_there, sizeof(there));
    /* "ch_1" stands where bytes put it: behind every c0..., before k. */
    struct side foreign = there[11];
    memmove(there + 9, there + 8, 3 * sizeof(there[0]));
    there[8] = foreign;
    struct lists lists = {
        .sides = { many_here, there },
        .counts = { IDEM_ARRAY_COUNT(many_here), IDEM_ARRAY_COUNT(many_there) },
    };
    const struct idem_merge_source source = { .context = &lists, .next = lists_next };
    struct idem_merge merge;
    struct idem_merge_pair pair;
    struct idem_error error;
    char memory[1024];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_merge_init(&merge, &rules, &source);
    for (;;) {
        assert_int_equal(idem_merge_next(&merge, &pair, &error), IDEM_OK);
        if (pair.kind == IDEM_MERGE_NONE) {
            break;
        }
        struct idem_str id = pair.has_here ? pair.here.effect_id : pair.there.effect_id;
        idem_buf_printf(&buf, "%c%c %s %s\n", id.data[0],
                        id.len == IDEM_EFFECT_ID_LEN ? id.data[25] : id.data[1],
                        idem_merge_kind_name(pair.kind), idem_merge_word_name(pair.word));
    }
    EXPECT_TEXT(idem_buf_str(&buf), expected);
    assert_int_equal(idem_merge_next(&merge, &pair, &error), IDEM_OK); /* And stays at its end. */
    assert_int_equal(pair.kind, IDEM_MERGE_NONE);
}

static void a_source_that_breaks_ends_it(void **state)
{
    (void)state;
    for (size_t i = 1; i <= 8; i++) {
        struct lists lists = {
            .sides = { many_here, many_there },
            .counts = { 4, 4 },
            .fails_at = i,
        };
        const struct idem_merge_source source = { .context = &lists, .next = lists_next };
        struct idem_merge merge;
        struct idem_merge_pair pair = { .kind = IDEM_MERGE_MATCHED };
        struct idem_error error = { .text = "" };
        enum idem_err err = IDEM_OK;
        idem_merge_init(&merge, &rules, &source);
        while (err == IDEM_OK && pair.kind != IDEM_MERGE_NONE) {
            err = idem_merge_next(&merge, &pair, &error);
        }
        assert_int_equal(err, IDEM_E_SYSTEM);
        assert_string_equal(error.text, "broken");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pair_is_judged),
        cmocka_unit_test(the_end_of_the_period_is_an_edge_too),
        cmocka_unit_test(every_line_comes_out_once_beside_its_partner),
        cmocka_unit_test(a_source_that_breaks_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
