/*
 * Text without terminators and without a heap.
 *
 * Every append checks the room first and writes all or nothing, so a buffer is never left with half
 * a token. The sticky `full` replaces an error check on each of many appends by one at the end.
 */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bug.h"

static char lower(char byte)
{
    if (byte >= 'A' && byte <= 'Z') {
        return (char)(byte - 'A' + 'a');
    }
    return byte;
}

struct idem_str idem_str_from(const char *terminated)
{
    if (terminated == NULL) {
        return (struct idem_str){ .data = NULL, .len = 0 };
    }
    return (struct idem_str){ .data = terminated, .len = strlen(terminated) };
}

bool idem_str_equal(struct idem_str left, struct idem_str right)
{
    if (left.len != right.len) {
        return false;
    }
    return left.len == 0 || memcmp(left.data, right.data, left.len) == 0;
}

bool idem_str_equal_nocase(struct idem_str left, struct idem_str right)
{
    if (left.len != right.len) {
        return false;
    }
    for (size_t i = 0; i < left.len; i++) {
        if (lower(left.data[i]) != lower(right.data[i])) {
            return false;
        }
    }
    return true;
}

bool idem_str_starts(struct idem_str text, struct idem_str prefix)
{
    return text.len >= prefix.len && idem_str_equal(idem_str_slice(text, 0, prefix.len), prefix);
}

int idem_str_compare(struct idem_str left, struct idem_str right)
{
    size_t shared = left.len < right.len ? left.len : right.len;
    int order = shared == 0 ? 0 : memcmp(left.data, right.data, shared);
    if (order != 0) {
        return order;
    }
    return (left.len > right.len) - (left.len < right.len);
}

struct idem_str idem_str_slice(struct idem_str text, size_t from, size_t len)
{
    if (from >= text.len) {
        return (struct idem_str){ .data = NULL, .len = 0 };
    }
    size_t rest = text.len - from;
    return (struct idem_str){ .data = text.data + from, .len = len < rest ? len : rest };
}

bool idem_str_is_visible(struct idem_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < 0x21 || text.data[i] > 0x7E) {
            return false;
        }
    }
    return true;
}

size_t idem_str_find(struct idem_str text, char byte)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == byte) {
            return i;
        }
    }
    return text.len;
}

struct idem_str idem_str_trim(struct idem_str text)
{
    while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data += 1;
        text.len -= 1;
    }
    while (text.len > 0 && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t')) {
        text.len -= 1;
    }
    return text;
}

struct idem_str idem_str_next(struct idem_str *text, char separator)
{
    size_t at = idem_str_find(*text, separator);
    struct idem_str first = { .data = text->data, .len = at };
    *text = idem_str_slice(*text, at + 1, text->len);
    return first;
}

bool idem_str_to_i64(struct idem_str text, int64_t *ret_value)
{
    if (text.len == 0) {
        return false;
    }
    int64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        int64_t digit = text.data[i] - '0';
        if (value > (INT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

static void buf_check(const struct idem_buf *buf)
{
    IDEM_ASSERT(buf->data != NULL || buf->max == 0);
    IDEM_ASSERT(buf->len <= buf->max);
}

void idem_buf_init(struct idem_buf *buf, char *memory, size_t max)
{
    *buf = (struct idem_buf){ .data = memory, .max = max };
    buf_check(buf);
}

void idem_buf_reset(struct idem_buf *buf)
{
    buf->len = 0;
    buf->full = false;
    buf_check(buf);
}

struct idem_str idem_buf_str(const struct idem_buf *buf)
{
    return (struct idem_str){ .data = buf->data, .len = buf->len };
}

void idem_buf_add_bytes(struct idem_buf *buf, const void *data, size_t size)
{
    buf_check(buf);
    if (buf->full || size > buf->max - buf->len) {
        buf->full = true;
        return;
    }
    if (size > 0) {
        memcpy(buf->data + buf->len, data, size);
        buf->len += size;
    }
}

void idem_buf_add(struct idem_buf *buf, struct idem_str text)
{
    idem_buf_add_bytes(buf, text.data, text.len);
}

void idem_buf_add_char(struct idem_buf *buf, char byte)
{
    idem_buf_add_bytes(buf, &byte, 1);
}

void idem_buf_add_i64(struct idem_buf *buf, int64_t value)
{
    char digits[20]; /* 19 digits of 2^63 and a sign. */
    size_t from = sizeof(digits);
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        from -= 1;
        digits[from] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        IDEM_ASSERT(from > 0);
        from -= 1;
        digits[from] = '-';
    }
    idem_buf_add_bytes(buf, digits + from, sizeof(digits) - from);
}

void idem_buf_add_hex(struct idem_buf *buf, const uint8_t *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        idem_buf_add_char(buf, digits[data[i] >> 4]);
        idem_buf_add_char(buf, digits[data[i] & 15]);
    }
}

void idem_buf_printf(struct idem_buf *buf, const char *format, ...)
{
    buf_check(buf);
    if (buf->full) {
        return;
    }
    size_t room = buf->max - buf->len;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(buf->data + buf->len, room, format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= room) { /* The terminator needs a byte as well. */
        buf->full = true;
        return;
    }
    buf->len += (size_t)len;
}

struct idem_str idem_buf_keep(struct idem_buf *buf, struct idem_str text)
{
    size_t from = buf->len;
    idem_buf_add(buf, text);
    if (buf->full) {
        return (struct idem_str){ .data = NULL, .len = 0 };
    }
    return (struct idem_str){ .data = buf->data + from, .len = text.len };
}
