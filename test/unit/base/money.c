/*
 * Amounts.
 *
 * Goal: exactly one text for one amount, every other text refused for the stated reason, nothing
 * rounded and nothing overflown (P10).
 *
 * Method: a table of texts with currencies' exponents and answers; all amounts from 0.01 to 100.00
 * against text made with integers; sums at the edge of 63 bits.
 */
#include "base/money.h"

#include "lib/test.h"

static const struct {
    const char *text;
    int exponent;
    enum idem_amount_fault fault;
    int64_t minor;
} texts[] = {
    { "100.00", 2, IDEM_AMOUNT_OK, 10000 },
    { "0.01", 2, IDEM_AMOUNT_OK, 1 },
    { "100", 0, IDEM_AMOUNT_OK, 100 },
    { "1.000", 3, IDEM_AMOUNT_OK, 1000 },
    { "0.0001", 4, IDEM_AMOUNT_OK, 1 },
    { "10.50", 2, IDEM_AMOUNT_OK, 1050 },
    { "9223372036854775807", 0, IDEM_AMOUNT_OK, INT64_MAX },
    { "92233720368547758.07", 2, IDEM_AMOUNT_OK, INT64_MAX },
    { "922337203685477.5807", 4, IDEM_AMOUNT_OK, INT64_MAX },
    { "9223372036854775808", 0, IDEM_AMOUNT_RANGE, 0 },
    { "92233720368547758.08", 2, IDEM_AMOUNT_RANGE, 0 },
    { "9223372036854775807.00", 2, IDEM_AMOUNT_RANGE, 0 },
    { "18446744073709551616", 0, IDEM_AMOUNT_RANGE, 0 },
    { "99999999999999999999999999999999999999.99", 2, IDEM_AMOUNT_RANGE, 0 },
    { "0.00", 2, IDEM_AMOUNT_ZERO, 0 },
    { "0", 0, IDEM_AMOUNT_ZERO, 0 },
    { "0.000", 3, IDEM_AMOUNT_ZERO, 0 },
    { "100", 2, IDEM_AMOUNT_DECIMALS, 0 },
    { "0", 2, IDEM_AMOUNT_DECIMALS, 0 },
    { "100.0", 2, IDEM_AMOUNT_DECIMALS, 0 },
    { "100.000", 2, IDEM_AMOUNT_DECIMALS, 0 },
    { "0.001", 2, IDEM_AMOUNT_DECIMALS, 0 },
    { "100.0", 0, IDEM_AMOUNT_DECIMALS, 0 },
    { "1.00", 3, IDEM_AMOUNT_DECIMALS, 0 },
    { "99999999999999999999", 2, IDEM_AMOUNT_DECIMALS, 0 },
    { "", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "-1", 0, IDEM_AMOUNT_SYNTAX, 0 },
    { "-1.00", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "+1", 0, IDEM_AMOUNT_SYNTAX, 0 },
    { "01.00", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "00.00", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "00", 0, IDEM_AMOUNT_SYNTAX, 0 },
    { "1e2", 0, IDEM_AMOUNT_SYNTAX, 0 },
    { "1.0e2", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "1,000.00", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "1 000.00", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "1_000.00", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "1,00", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "\xEF\xBC\x91.00", 2, IDEM_AMOUNT_SYNTAX, 0 },            /* Full-width one. */
    { "1.\xEF\xBC\x90\xEF\xBC\x90", 2, IDEM_AMOUNT_SYNTAX, 0 }, /* Full-width zeros. */
    { "\xD9\xA1", 0, IDEM_AMOUNT_SYNTAX, 0 },                   /* Arabic-Indic one. */
    { " 1.00", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "1.00 ", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "1.00\n", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { ".50", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "1.", 0, IDEM_AMOUNT_SYNTAX, 0 },
    { "1.", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { ".", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "1..00", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "1.0.0", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "1.-1", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "$1.00", 2, IDEM_AMOUNT_SYNTAX, 0 },
    { "0x10", 0, IDEM_AMOUNT_SYNTAX, 0 },
    { "NaN", 0, IDEM_AMOUNT_SYNTAX, 0 },
};

static void texts_are_amounts_or_refused_with_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(texts); i++) {
        int64_t minor = -7;
        enum idem_amount_fault fault =
            idem_amount_parse(idem_str_from(texts[i].text), texts[i].exponent, &minor);
        int64_t expected = texts[i].fault == IDEM_AMOUNT_OK ? texts[i].minor : -7;
        if (fault != texts[i].fault || minor != expected) {
            print_error("\"%s\" with %d decimals: fault %d\n", texts[i].text, texts[i].exponent,
                        (int)fault);
            fail();
        }
    }
}

static void a_zero_byte_is_not_the_end_of_an_amount(void **state)
{
    (void)state;
    int64_t minor;
    assert_int_equal(idem_amount_parse(IDEM_STR("1.00\0"), 2, &minor), IDEM_AMOUNT_SYNTAX);
    assert_int_equal(idem_amount_parse(IDEM_STR("1\0"), 0, &minor), IDEM_AMOUNT_SYNTAX);
}

static void printed_amounts_are_read_back(void **state)
{
    (void)state;
    static const struct {
        int64_t minor;
        int exponent;
        const char *text;
    } rows[] = {
        { 0, 0, "0" },
        { 0, 2, "0.00" },
        { 5, 0, "5" },
        { 5, 2, "0.05" },
        { 1050, 2, "10.50" },
        { 1, 3, "0.001" },
        { 1, 4, "0.0001" },
        { 12345, 4, "1.2345" },
        { INT64_MAX, 0, "9223372036854775807" },
        { INT64_MAX, 2, "92233720368547758.07" },
        { INT64_MAX, 3, "9223372036854775.807" },
        { INT64_MAX, 4, "922337203685477.5807" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_buf buf;
        char memory[IDEM_AMOUNT_TEXT_MAX];
        int64_t minor = 0;
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_amount_print(rows[i].minor, rows[i].exponent, &buf);
        EXPECT_TEXT(idem_buf_str(&buf), rows[i].text);
        enum idem_amount_fault fault =
            idem_amount_parse(idem_buf_str(&buf), rows[i].exponent, &minor);
        assert_int_equal(fault, rows[i].minor == 0 ? IDEM_AMOUNT_ZERO : IDEM_AMOUNT_OK);
        assert_int_equal(minor, rows[i].minor);
    }
}

static void every_cent_up_to_a_hundred_is_exact(void **state)
{
    (void)state;
    for (int cents = 1; cents <= 10000; cents++) {
        char text[IDEM_AMOUNT_TEXT_MAX];
        char memory[IDEM_AMOUNT_TEXT_MAX];
        struct idem_buf buf;
        int64_t minor = 0;
        (void)snprintf(text, sizeof(text), "%d.%02d", cents / 100, cents % 100); /* Fits. */
        assert_int_equal(idem_amount_parse(idem_str_from(text), 2, &minor), IDEM_AMOUNT_OK);
        assert_int_equal(minor, cents);
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_amount_print(minor, 2, &buf);
        EXPECT_TEXT(idem_buf_str(&buf), text);
    }
}

static void sums_are_checked(void **state)
{
    (void)state;
    static const struct {
        int64_t left;
        int64_t right;
        bool fits;
        int64_t sum;
    } rows[] = {
        { 0, 0, true, 0 },
        { 1, 2, true, 3 },
        { INT64_MAX, 0, true, INT64_MAX },
        { INT64_MAX - 1, 1, true, INT64_MAX },
        { INT64_MAX, 1, false, -7 },
        { 1, INT64_MAX, false, -7 },
        { INT64_MAX, INT64_MAX, false, -7 },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        int64_t sum = -7;
        assert_true(idem_amount_add(rows[i].left, rows[i].right, &sum) == rows[i].fits);
        assert_int_equal(sum, rows[i].sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_amounts_or_refused_with_a_reason),
        cmocka_unit_test(a_zero_byte_is_not_the_end_of_an_amount),
        cmocka_unit_test(printed_amounts_are_read_back),
        cmocka_unit_test(every_cent_up_to_a_hundred_is_exact),
        cmocka_unit_test(sums_are_checked),
    };
    return cmocka_run_group_tests_name("base/money", tests, NULL, NULL);
}
