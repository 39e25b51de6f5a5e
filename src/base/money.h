/*
 * money.h - amounts as 64-bit minor units, with checked arithmetic, and their decimal text.
 *
 * An amount is text with exactly the currency's number of decimals ("100.00" CNY, "100" JPY,
 * "1.000" KWD): no sign, no exponent, no separators, no leading zero before another digit, ASCII
 * digits only. There is no rounding anywhere and no floating point (P10).
 */
#ifndef IDEM_BASE_MONEY_H
#define IDEM_BASE_MONEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define IDEM_AMOUNT_TEXT_MAX 24 /* 19 digits, a point, a leading zero and room. */

enum idem_amount_fault {
    IDEM_AMOUNT_OK = 0,
    IDEM_AMOUNT_SYNTAX,   /* Not a plain decimal number. */
    IDEM_AMOUNT_DECIMALS, /* Not exactly the currency's decimals. */
    IDEM_AMOUNT_RANGE,    /* Does not fit 63 bits of minor units. */
    IDEM_AMOUNT_ZERO,     /* Zero: there is nothing to move. */
    IDEM_AMOUNT_FAULT_COUNT
};

/* `exponent` is the currency's number of decimals, 0 to 4. The amount is positive on OK. */
enum idem_amount_fault idem_amount_parse(struct idem_str text, int exponent, int64_t *ret_minor);

/* Prints what idem_amount_parse() reads back. `minor` is zero or more. */
void idem_amount_print(int64_t minor, int exponent, struct idem_buf *buf);

/* left + right; false on overflow. Both are zero or more. */
bool idem_amount_add(int64_t left, int64_t right, int64_t *ret_sum) IDEM_MUST_CHECK;

#endif /* IDEM_BASE_MONEY_H */
