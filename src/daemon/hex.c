/*
 * Upper case is refused so that one secret has one spelling, and two files can be compared.
 */
#include "daemon/hex.h"

static int digit_value(char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

bool idem_hex_parse(struct idem_str text, uint8_t *ret_bytes, size_t size)
{
    if (text.len != 2 * size) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        int high = digit_value(text.data[2 * i]);
        int low = digit_value(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        ret_bytes[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}
