/*
 * Counts and sums, and how they are printed.
 *
 * Goal: every pair is counted once on each side that has it, in its own currency; a sum that does
 * not fit is refused and changes nothing; what is printed is exact, and is one text in each format.
 *
 * Method: a few pairs into a book, and the whole of what is printed as text.
 */
#include "reconcile/summary.h"

#include "lib/test.h"

#define CHARGE "c0000000000000000000000001a"
#define REFUND "r0000000000000000000000001a"

static struct idem_line line_of(const char *id, int64_t amount_minor, const char *currency)
{
    return (struct idem_line){
        .state = IDEM_LINE_SUCCEEDED,
        .effect_id = idem_str_from(id),
        .amount_minor = amount_minor,
        .currency = idem_str_from(currency),
    };
}

static struct idem_merge_pair pair_of(enum idem_merge_kind kind,
                                      const struct idem_line *here,
                                      const struct idem_line *there)
{
    struct idem_merge_pair pair = {
        .kind = kind,
        .has_here = here != NULL,
        .has_there = there != NULL,
    };
    if (here != NULL) {
        pair.here = *here;
    }
    if (there != NULL) {
        pair.there = *there;
    }
    return pair;
}

static enum idem_err add(struct idem_summary_book *book, const struct idem_merge_pair *pair)
{
    struct idem_error error;
    return idem_summary_add(book, pair, &error);
}

static void rows_print(const struct idem_summary_book *book,
                       enum idem_summary_format format,
                       struct idem_buf *buf)
{
    size_t position = 0;
    struct idem_summary_row row;
    while (idem_summary_next(book, &position, &row)) {
        idem_summary_print_row(format, &row, buf);
    }
    assert_false(buf->full);
}

static void book_fill(struct idem_summary_book *book)
{
    const struct idem_line eur = line_of(CHARGE, 10000, "EUR");
    const struct idem_line jpy = line_of(CHARGE, 7, "JPY");
    const struct idem_line refund = line_of(REFUND, 1, "EUR");
    const struct idem_line foreign = line_of("pi_1", 5, "");
    const struct idem_merge_pair pairs[] = {
        pair_of(IDEM_MERGE_MATCHED, &eur, &eur),       pair_of(IDEM_MERGE_MATCHED, &eur, &eur),
        pair_of(IDEM_MERGE_MATCHED, &refund, &refund), pair_of(IDEM_MERGE_AMOUNT, &eur, &jpy),
        pair_of(IDEM_MERGE_MISSING_THERE, &jpy, NULL), pair_of(IDEM_MERGE_FOREIGN, NULL, &foreign),
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_int_equal(add(book, &pairs[i]), IDEM_OK);
    }
}

static void each_side_is_counted_in_its_own_currency(void **state)
{
    (void)state;
    static struct idem_summary_book book;
    char memory[4096];
    struct idem_buf buf;
    book_fill(&book);
    idem_buf_init(&buf, memory, sizeof(memory));
    rows_print(&book, IDEM_SUMMARY_CSV, &buf);
    EXPECT_TEXT(idem_buf_str(&buf),
                "total,matched,charge,2,200.00,EUR,2,200.00,EUR,,,,,,,,,\r\n"
                "total,matched,refund,1,0.01,EUR,1,0.01,EUR,,,,,,,,,\r\n"
                "total,missing-there,charge,1,7,JPY,0,,JPY,,,,,,,,,\r\n"
                "total,amount-differs,charge,1,100.00,EUR,0,,EUR,,,,,,,,,\r\n"
                "total,amount-differs,charge,0,,JPY,1,7,JPY,,,,,,,,,\r\n"
                "total,foreign,,0,,,1,,,,,,,,,,,\r\n");
    idem_buf_reset(&buf);
    idem_summary_print_middle(IDEM_SUMMARY_TABLE, &buf);
    rows_print(&book, IDEM_SUMMARY_TABLE, &buf);
    EXPECT_TEXT(idem_buf_str(&buf),
                "\n"
                "TOTAL           EFFECT           HERE                   SUM            THERE"
                "                   SUM\n"
                "matched         charge              2                200.00  EUR           2"
                "                200.00  EUR\n"
                "matched         refund              1                  0.01  EUR           1"
                "                  0.01  EUR\n"
                "missing-there   charge              1                     7  JPY           0"
                "                     -  -\n"
                "amount-differs  charge              1                100.00  EUR           0"
                "                     -  -\n"
                "amount-differs  charge              0                     -  -             1"
                "                     7  JPY\n"
                "foreign         -                   0                     -  -             1"
                "                     -  -\n");
    idem_buf_reset(&buf);
    size_t position = 0;
    struct idem_summary_row row;
    assert_true(idem_summary_next(&book, &position, &row));
    idem_summary_print_row(IDEM_SUMMARY_JSON, &row, &buf);
    EXPECT_TEXT(idem_buf_str(&buf),
                "{\"record\":\"total\",\"kind\":\"matched\",\"effect\":\"charge\","
                "\"here\":{\"count\":2,\"sum\":\"200.00\",\"currency\":\"EUR\"},"
                "\"there\":{\"count\":2,\"sum\":\"200.00\",\"currency\":\"EUR\"}}\n");
}

static void a_sum_that_does_not_fit_is_refused_whole(void **state)
{
    (void)state;
    static struct idem_summary_book book;
    const struct idem_line most = line_of(CHARGE, INT64_MAX, "EUR");
    const struct idem_line cent = line_of(CHARGE, 1, "EUR");
    const struct idem_merge_pair first = pair_of(IDEM_MERGE_MATCHED, &cent, &most);
    const struct idem_merge_pair second = pair_of(IDEM_MERGE_MATCHED, &cent, &cent);
    assert_int_equal(add(&book, &first), IDEM_OK);
    assert_int_equal(add(&book, &second), IDEM_E_LIMIT);
    const struct idem_summary_cell *cell =
        &book.cells[IDEM_MERGE_MATCHED][IDEM_EFFECT_KIND_CHARGE][book.last_currency];
    assert_int_equal(cell->counts[IDEM_LINE_HERE], 1);
    assert_int_equal(cell->sums[IDEM_LINE_HERE], 1);
    assert_int_equal(cell->counts[IDEM_LINE_THERE], 1);
}

static void a_difference_is_one_line_of_the_same_columns(void **state)
{
    (void)state;
    struct idem_line here = line_of(CHARGE, 10000, "EUR");
    struct idem_line there = line_of(CHARGE, 9900, "EUR");
    here.order_no = IDEM_STR("=1,\"2\"");
    here.operation = IDEM_STR("01977e3c-5e0a-7cc3-98c4-dc0c0c07398f");
    there.reference = IDEM_STR("pr-1");
    there.first_us = 1000000;
    there.last_us = 1000000;
    const struct idem_merge_pair pair = pair_of(IDEM_MERGE_AMOUNT, &here, &there);
    const struct idem_summary_end end = {
        .result = IDEM_STR("case"),
        .case_kind = IDEM_STR("mismatch"),
    };
    char memory[4096];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_summary_print_head(IDEM_SUMMARY_CSV, &buf);
    idem_summary_print_pair(IDEM_SUMMARY_CSV, &pair, &end, &buf);
    EXPECT_TEXT(idem_buf_str(&buf),
                "record,kind,effect,count_here,sum_here,currency_here,count_there,sum_there,"
                "currency_there,effect_id,operation,order_no,reference,state_here,state_there,"
                "happened,result,case\r\n"
                "difference,amount-differs,charge,1,100.00,EUR,1,99.00,EUR," CHARGE
                ",01977e3c-5e0a-7cc3-98c4-dc0c0c07398f,\"'=1,\"\"2\"\"\",pr-1,succeeded,succeeded,"
                "1970-01-01T00:00:01.000000Z,case,mismatch\r\n");
    idem_buf_reset(&buf);
    idem_summary_print_pair(IDEM_SUMMARY_JSON, &pair, &end, &buf);
    EXPECT_TEXT(idem_buf_str(&buf),
                "{\"record\":\"difference\",\"kind\":\"amount-differs\",\"effect\":\"charge\","
                "\"here\":{\"count\":1,\"amount\":\"100.00\",\"currency\":\"EUR\","
                "\"state\":\"succeeded\"},\"there\":{\"count\":1,\"amount\":\"99.00\","
                "\"currency\":\"EUR\",\"state\":\"succeeded\"},\"effect_id\":\"" CHARGE
                "\",\"operation\":\"01977e3c-5e0a-7cc3-98c4-dc0c0c07398f\","
                "\"order_no\":\"=1,\\\"2\\\"\",\"reference\":\"pr-1\","
                "\"happened\":\"1970-01-01T00:00:01.000000Z\",\"result\":\"case\","
                "\"case\":\"mismatch\"}\n");
    idem_buf_reset(&buf);
    idem_summary_print_pair(IDEM_SUMMARY_TABLE, &pair, &end, &buf);
    EXPECT_TEXT(idem_buf_str(&buf), "amount-differs  " CHARGE
                                    "  =1,\"2\"                    100.00  EUR  succeeded  "
                                    "         99.00  EUR  succeeded  case       mismatch       "
                                    "01977e3c-5e0a-7cc3-98c4-dc0c0c07398f\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_side_is_counted_in_its_own_currency),
        cmocka_unit_test(a_sum_that_does_not_fit_is_refused_whole),
        cmocka_unit_test(a_difference_is_one_line_of_the_same_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
