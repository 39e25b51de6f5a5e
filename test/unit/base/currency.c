/*
 * The currency table.
 *
 * Goal: a wrong exponent multiplies every amount of a currency by ten or more, so the table is held
 * by a second list.
 *
 * Method: the codes with exponents other than 2 are written here once more, from ISO 4217 and not
 * from the table; all others must have 2, and the number of codes must be that of the edition.
 */
#include "base/currency.h"

#include "lib/test.h"

#define CODES_IN_EDITION 165

static const char without_decimals[] =
    "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
static const char with_three[] = "BHD IQD JOD KWD LYD OMR TND";
static const char with_four[] = "CLF UYW";

static bool is_listed(const char *list, struct idem_str code)
{
    struct idem_str rest = idem_str_from(list);
    while (rest.len > 0) {
        if (idem_str_equal(idem_str_next(&rest, ' '), code)) {
            return true;
        }
    }
    return false;
}

static int exponent_listed(struct idem_str code)
{
    if (is_listed(without_decimals, code)) {
        return 0;
    }
    if (is_listed(with_three, code)) {
        return 3;
    }
    return is_listed(with_four, code) ? 4 : 2;
}

static void exponents_agree_with_the_second_list(void **state)
{
    (void)state;
    size_t counts[5] = { 0 };
    size_t count = 0;
    for (struct idem_str code = idem_currency_at(0); code.len > 0; code = idem_currency_at(count)) {
        int exponent = idem_currency_exponent(code);
        if (exponent != exponent_listed(code)) {
            print_error("%.*s has %d\n", (int)code.len, code.data, exponent);
            fail();
        }
        counts[exponent] += 1;
        count += 1;
    }
    assert_int_equal(count, CODES_IN_EDITION);
    assert_int_equal(counts[0], 17);
    assert_int_equal(counts[3], 7);
    assert_int_equal(counts[4], 2);
    assert_int_equal(idem_currency_at(SIZE_MAX).len, 0);
}

static void codes_are_sorted_upper_case_letters(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODES_IN_EDITION; i++) {
        struct idem_str code = idem_currency_at(i);
        assert_int_equal(code.len, IDEM_CURRENCY_LEN);
        for (size_t j = 0; j < code.len; j++) {
            assert_in_range(code.data[j], 'A', 'Z');
        }
        assert_true(i == 0 || idem_str_compare(idem_currency_at(i - 1), code) < 0);
    }
}

static void what_is_used_every_day_and_what_is_new_is_there(void **state)
{
    (void)state;
    static const char *const codes[] = { "AED", "CNY", "EUR", "GBP", "HUF", "MGA", "MRU",
                                         "SLE", "USD", "VED", "VES", "XCG", "ZMW", "ZWG" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(codes); i++) {
        assert_int_equal(idem_currency_exponent(idem_str_from(codes[i])), 2);
    }
}

static void what_is_no_money_is_not_there(void **state)
{
    (void)state;
    const struct idem_str codes[] = {
        IDEM_STR("XAU"), IDEM_STR("XAG"),   IDEM_STR("XPT"), IDEM_STR("XPD"), IDEM_STR("XXX"),
        IDEM_STR("XTS"), IDEM_STR("XDR"),   IDEM_STR("XSU"), IDEM_STR("XUA"), IDEM_STR("XBA"),
        IDEM_STR("HRK"), IDEM_STR("DEM"),   IDEM_STR("SLL"), IDEM_STR("ZWL"), IDEM_STR("ANG"),
        IDEM_STR("CUC"), IDEM_STR("BGN"),   IDEM_STR("CNH"), IDEM_STR("BTC"), IDEM_STR("RMB"),
        IDEM_STR("usd"), IDEM_STR("Usd"),   IDEM_STR(""),    IDEM_STR("US"),  IDEM_STR("USDX"),
        IDEM_STR("US "), IDEM_STR("USD\0"), IDEM_STR("840"),
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(codes); i++) {
        assert_int_equal(idem_currency_exponent(codes[i]), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponents_agree_with_the_second_list),
        cmocka_unit_test(codes_are_sorted_upper_case_letters),
        cmocka_unit_test(what_is_used_every_day_and_what_is_new_is_there),
        cmocka_unit_test(what_is_no_money_is_not_there),
    };
    return cmocka_run_group_tests_name("base/currency", tests, NULL, NULL);
}
