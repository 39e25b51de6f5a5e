/*
 * currency.h - the ISO 4217 currencies and the number of decimals each has.
 *
 * The table is currency.def: active codes of ISO 4217 (list one), exponents 0, 2, 3 and 4. Codes
 * without an exponent (metals, XXX, XTS, drawing rights) are not money that can be charged and are
 * not in it. What a provider counts differently is a table of that provider's adapter.
 */
#ifndef IDEM_BASE_CURRENCY_H
#define IDEM_BASE_CURRENCY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define IDEM_CURRENCY_LEN 3

/* Decimals of `code` (three upper-case letters), or -1 if ISO 4217 has no such money. */
int idem_currency_exponent(struct idem_str code);

/* Walks the table: the code at `index`, or empty text behind the last. */
struct idem_str idem_currency_at(size_t index);

#endif /* IDEM_BASE_CURRENCY_H */
