/*
 * Amounts as Stripe counts them.
 *
 * Goal: every currency of ISO 4217 is counted as docs/stripe.md says or refused, and what is sent
 * reads back as what was meant.
 *
 * Method: the exceptions by hand; the rest of ISO 4217 by its rule; a walk over all currencies and
 * awkward amounts, there and back.
 */
#include "provider/stripe_internal.h"

#include "base/currency.h"
#include "lib/test.h"

#define REFUSED (-1)

static int64_t wire_of(const char *currency, int64_t minor)
{
    int64_t wire = 0;
    return idem_stripe_amount_to_wire(idem_str_from(currency), minor, &wire) ? wire : REFUSED;
}

static void exceptions_are_counted_as_written(void **state)
{
    (void)state;
    static const struct {
        const char *currency;
        int64_t minor;
        int64_t wire;
    } rows[] = {
        { "EUR", 10000, 10000 },
        { "CNY", 1, 1 },
        { "HUF", 101, 101 },
        { "TWD", 101, 101 },
        { "JPY", 500, 500 },
        { "BIF", 1, 1 },
        { "CLP", 1, 1 },
        { "DJF", 1, 1 },
        { "GNF", 1, 1 },
        { "KMF", 1, 1 },
        { "KRW", 1, 1 },
        { "PYG", 1, 1 },
        { "RWF", 1, 1 },
        { "VND", 1, 1 },
        { "VUV", 1, 1 },
        { "XAF", 1, 1 },
        { "XOF", 1, 1 },
        { "XPF", 1, 1 },
        { "ISK", 5, 500 },
        { "MGA", 30000, 300 },
        { "MGA", 30001, REFUSED },
        { "MGA", 99, REFUSED },
        { "KWD", 1230, 1230 },
        { "KWD", 1234, REFUSED },
        { "BHD", 10, 10 },
        { "BHD", 1, REFUSED },
        { "JOD", 1, REFUSED },
        { "OMR", 1, REFUSED },
        { "TND", 1, REFUSED },
        { "UGX", 5000, REFUSED },
        { "UGX", 5, REFUSED },
        { "IQD", 1000, REFUSED },
        { "LYD", 1000, REFUSED },
        { "CLF", 10000, REFUSED },
        { "UYW", 10000, REFUSED },
        { "UYI", 1, REFUSED },
        { "XXX", 100, REFUSED },
        { "eur", 100, REFUSED },
        { "", 100, REFUSED },
        { "EUR", 0, REFUSED },
        { "EUR", -1, REFUSED },
        { "EUR", INT64_MAX, INT64_MAX },
        { "ISK", INT64_MAX, REFUSED },
    };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        if (wire_of(rows[i].currency, rows[i].minor) != rows[i].wire) {
            print_error("%s %lld\n", rows[i].currency, (long long)rows[i].minor);
            fail();
        }
    }
}

/* How many of the amounts are sent. */
static unsigned there_and_back(struct idem_str currency)
{
    static const int64_t amounts[] = { 1, 9, 10, 99, 100, 101, 1000, 12345, 999999900, INT64_MAX };
    unsigned sent = 0;

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(amounts); i++) {
        int64_t wire = 0;
        int64_t back = 0;
        if (idem_stripe_amount_to_wire(currency, amounts[i], &wire)) {
            assert_true(idem_stripe_amount_from_wire(currency, wire, &back));
            assert_int_equal(back, amounts[i]);
            sent += 1;
        }
    }
    return sent;
}

static void what_is_sent_reads_back_as_what_was_meant(void **state)
{
    (void)state;
    unsigned sent = 0;

    for (size_t i = 0; idem_currency_at(i).len > 0; i++) {
        sent += there_and_back(idem_currency_at(i));
    }
    assert_true(sent > 1000);
}

static void what_stripe_says_is_not_rounded(void **state)
{
    (void)state;
    int64_t minor = 7;

    assert_false(idem_stripe_amount_from_wire(IDEM_STR("ISK"), 550, &minor));
    assert_false(idem_stripe_amount_from_wire(IDEM_STR("MGA"), INT64_MAX, &minor));
    assert_false(idem_stripe_amount_from_wire(IDEM_STR("UGX"), 500, &minor));
    assert_false(idem_stripe_amount_from_wire(IDEM_STR("EUR"), -1, &minor));
    assert_int_equal(minor, 7);
    assert_true(idem_stripe_amount_from_wire(IDEM_STR("KWD"), 1234, &minor)); /* Shown as it is. */
    assert_int_equal(minor, 1234);
    assert_true(idem_stripe_amount_from_wire(IDEM_STR("EUR"), 0, &minor));
    assert_int_equal(minor, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exceptions_are_counted_as_written),
        cmocka_unit_test(what_is_sent_reads_back_as_what_was_meant),
        cmocka_unit_test(what_stripe_says_is_not_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
