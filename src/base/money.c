/*
 * Amounts are read and written digit by digit in 64-bit integers, each step checked for overflow
 * (P10). What is not exactly an amount is refused with the reason that helps most: a text that is
 * no number at all before one with the wrong decimals, before one that is too big, before zero.
 * Nothing is repaired: a second spelling of an amount would be a second meaning for somebody.
 */
#include "base/money.h"

#include "base/bug.h"

#define EXPONENT_MAX 4

static bool is_digits(struct idem_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
    }
    return text.len > 0;
}

/* Writes `digits` behind the decimal digits of `*value`. False on overflow. */
static bool digits_append(struct idem_str digits, int64_t *value)
{
    for (size_t i = 0; i < digits.len; i++) {
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, digits.data[i] - '0', value)) {
            return false;
        }
    }
    return true;
}

enum idem_amount_fault idem_amount_parse(struct idem_str text, int exponent, int64_t *ret_minor)
{
    IDEM_ASSERT(exponent >= 0 && exponent <= EXPONENT_MAX);
    size_t point = idem_str_find(text, '.');
    bool has_point = point < text.len;
    struct idem_str whole = idem_str_slice(text, 0, point);
    struct idem_str fraction = idem_str_slice(text, point + 1, text.len);
    bool leads_with_zero = whole.len > 1 && whole.data[0] == '0';
    if (!is_digits(whole) || leads_with_zero || (has_point && !is_digits(fraction))) {
        return IDEM_AMOUNT_SYNTAX;
    }
    if (fraction.len != (size_t)exponent) {
        return IDEM_AMOUNT_DECIMALS;
    }
    int64_t minor = 0;
    if (!digits_append(whole, &minor) || !digits_append(fraction, &minor)) {
        return IDEM_AMOUNT_RANGE;
    }
    if (minor == 0) {
        return IDEM_AMOUNT_ZERO;
    }
    *ret_minor = minor;
    return IDEM_AMOUNT_OK;
}

void idem_amount_print(int64_t minor, int exponent, struct idem_buf *buf)
{
    IDEM_ASSERT(minor >= 0);
    IDEM_ASSERT(exponent >= 0 && exponent <= EXPONENT_MAX);
    char fraction[EXPONENT_MAX];
    for (int i = exponent; i > 0; i--) {
        fraction[i - 1] = (char)('0' + minor % 10);
        minor /= 10;
    }
    idem_buf_add_i64(buf, minor);
    if (exponent > 0) {
        idem_buf_add_char(buf, '.');
        idem_buf_add_bytes(buf, fraction, (size_t)exponent);
    }
}

bool idem_amount_add(int64_t left, int64_t right, int64_t *ret_sum)
{
    int64_t sum;
    IDEM_ASSERT(left >= 0);
    IDEM_ASSERT(right >= 0);
    if (__builtin_add_overflow(left, right, &sum)) {
        return false;
    }
    *ret_sum = sum;
    return true;
}
