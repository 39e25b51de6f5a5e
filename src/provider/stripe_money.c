/*
 * Amounts as Stripe counts them.
 *
 * Stripe takes whole numbers in a currency's smallest unit. Mostly that is the minor unit of ISO
 * 4217; here is what differs (docs.stripe.com/currencies):
 *
 *   no decimals at either        as they are, and only those that Stripe lists
 *   MGA                          two decimals in ISO 4217, none at Stripe: only whole ariary
 *   ISK                          none in ISO 4217, and yet times 100 at Stripe
 *   BHD JOD KWD OMR TND          three decimals, the last of which must be 0
 *   UGX                          listed without decimals, and described as times 100: refused
 *   other three and four decimals, other currencies without: not described, so refused
 *
 * A wrong factor is a payment of a hundredth or a hundredfold, so what is in doubt is refused.
 */
#include "provider/stripe_internal.h"

#include "base/attr.h"
#include "base/currency.h"

struct exception {
    const char *code;
    int64_t multiply; /* Of minor units; 0: refused. */
    int64_t divide;
    int64_t unit; /* Minor units must be a multiple. */
};

static const struct exception exceptions[] = {
    { "BHD", 1, 1, 10 }, { "BIF", 1, 1, 1 },   { "CLP", 1, 1, 1 },  { "DJF", 1, 1, 1 },
    { "GNF", 1, 1, 1 },  { "ISK", 100, 1, 1 }, { "JOD", 1, 1, 10 }, { "JPY", 1, 1, 1 },
    { "KMF", 1, 1, 1 },  { "KRW", 1, 1, 1 },   { "KWD", 1, 1, 10 }, { "MGA", 1, 100, 100 },
    { "OMR", 1, 1, 10 }, { "PYG", 1, 1, 1 },   { "RWF", 1, 1, 1 },  { "TND", 1, 1, 10 },
    { "UGX", 0, 1, 1 },  { "VND", 1, 1, 1 },   { "VUV", 1, 1, 1 },  { "XAF", 1, 1, 1 },
    { "XOF", 1, 1, 1 },  { "XPF", 1, 1, 1 },
};

/* How `currency` is counted, or NULL: refused. */
static const struct exception *counting_find(struct idem_str currency)
{
    static const struct exception plain = { "", 1, 1, 1 };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(exceptions); i++) {
        if (idem_str_equal(idem_str_from(exceptions[i].code), currency)) {
            return exceptions[i].multiply == 0 ? NULL : &exceptions[i];
        }
    }
    return idem_currency_exponent(currency) == 2 ? &plain : NULL;
}

bool idem_stripe_amount_to_wire(struct idem_str currency, int64_t minor, int64_t *ret_wire)
{
    const struct exception *counting = counting_find(currency);

    if (counting == NULL || minor <= 0 || minor % counting->unit != 0 ||
        minor > INT64_MAX / counting->multiply) {
        return false;
    }
    *ret_wire = minor * counting->multiply / counting->divide;
    return true;
}

bool idem_stripe_amount_from_wire(struct idem_str currency, int64_t wire, int64_t *ret_minor)
{
    const struct exception *counting = counting_find(currency);

    if (counting == NULL || wire < 0 || wire % counting->multiply != 0 ||
        wire > INT64_MAX / counting->divide) {
        return false;
    }
    *ret_minor = wire * counting->divide / counting->multiply;
    return true;
}
