/*
 * The part of a request's address behind the question mark: "name=value&name=value".
 */
#include "sandbox/sandbox_internal.h"

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* The byte of an escape like %41 at `at`, or -1. */
static int escape_value(struct idem_str text, size_t at)
{
    if (text.len - at < 3) {
        return -1;
    }
    int high = hex_value(text.data[at + 1]);
    int low = hex_value(text.data[at + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Resolves %41 and '+'. False if an escape is broken or the text too long. */
static bool percent_decode(struct idem_str text, struct idem_buf *memory, struct idem_str *ret_text)
{
    size_t start = memory->len;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '%') {
            idem_buf_add_char(memory, (char)(text.data[i] == '+' ? ' ' : text.data[i]));
            continue;
        }
        int value = escape_value(text, i);
        if (value < 0) {
            return false;
        }
        idem_buf_add_bytes(memory, &(uint8_t){ (uint8_t)value }, 1);
        i += 2;
    }
    *ret_text = idem_str_slice(idem_buf_str(memory), start, memory->len);
    return !memory->full;
}

bool idem_sandbox_query_next(struct idem_str *query,
                             struct idem_buf *memory,
                             struct idem_str *ret_name,
                             struct idem_str *ret_value)
{
    struct idem_str value = idem_str_next(query, '&');
    struct idem_str name = idem_str_next(&value, '=');

    *ret_name = name;
    return value.len > 0 && percent_decode(value, memory, ret_value);
}
