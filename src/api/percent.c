/*
 * Decoded once and never twice: what comes out is compared as it is.
 */
#include "api/percent.h"

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    if (byte >= 'A' && byte <= 'F') {
        return byte - 'A' + 10;
    }
    return -1;
}

bool idem_percent_decode(struct idem_str text, struct idem_buf *buf)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '%') {
            idem_buf_add_char(buf, text.data[i]);
            continue;
        }
        int high = text.len - i > 2 ? hex_digit(text.data[i + 1]) : -1;
        int low = text.len - i > 2 ? hex_digit(text.data[i + 2]) : -1;
        if (high < 0 || low < 0) {
            return false;
        }
        idem_buf_add_char(buf, (char)(high * 16 + low));
        i += 2;
    }
    return true;
}
