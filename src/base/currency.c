/*
 * One sorted table, made from currency.def, searched by halves. The order is part of the table's
 * contract and a test holds it.
 */
#include "base/currency.h"

#include "base/attr.h"

struct currency {
    char code[IDEM_CURRENCY_LEN + 1];
    int exponent;
};

static const struct currency currencies[] = {
#define IDEM_CURRENCY(symbol, decimals) { .code = #symbol, .exponent = (decimals) },
#include "base/currency.def"
#undef IDEM_CURRENCY
};

int idem_currency_exponent(struct idem_str code)
{
    size_t low = 0;
    size_t high = IDEM_ARRAY_COUNT(currencies);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = idem_str_compare(code, idem_currency_at(middle));
        if (order == 0) {
            return currencies[middle].exponent;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return -1;
}

struct idem_str idem_currency_at(size_t index)
{
    if (index >= IDEM_ARRAY_COUNT(currencies)) {
        return (struct idem_str){ .data = NULL, .len = 0 };
    }
    return (struct idem_str){ .data = currencies[index].code, .len = IDEM_CURRENCY_LEN };
}
