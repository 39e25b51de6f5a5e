/*
 * The text inside JSON strings: which bytes may stand there, what they stand for, and how to write
 * them with the fewest escapes. The reader checks before anything here takes a string apart, so an
 * escape that makes no sense is a bug and not an answer.
 */
#include "base/json.h"

#include <string.h>

#include "base/bug.h"
#include "base/json_internal.h"

static bool byte_within(struct idem_str text, size_t index, unsigned low, unsigned high)
{
    return index < text.len && (unsigned char)text.data[index] >= low &&
           (unsigned char)text.data[index] <= high;
}

size_t idem_utf8_size(struct idem_str text)
{
    static const struct {
        unsigned char lead_low;
        unsigned char lead_high;
        unsigned char second_low; /* Narrower than 80..BF: overlong, surrogates, above 10FFFF. */
        unsigned char second_high;
        unsigned char size;
    } rows[] = {
        { 0xC2, 0xDF, 0x80, 0xBF, 2 }, { 0xE0, 0xE0, 0xA0, 0xBF, 3 }, { 0xE1, 0xEC, 0x80, 0xBF, 3 },
        { 0xED, 0xED, 0x80, 0x9F, 3 }, { 0xEE, 0xEF, 0x80, 0xBF, 3 }, { 0xF0, 0xF0, 0x90, 0xBF, 4 },
        { 0xF1, 0xF3, 0x80, 0xBF, 4 }, { 0xF4, 0xF4, 0x80, 0x8F, 4 },
    };
    if (byte_within(text, 0, 0x00, 0x7F)) {
        return 1;
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        if (byte_within(text, 0, rows[i].lead_low, rows[i].lead_high)) {
            bool fits = byte_within(text, 1, rows[i].second_low, rows[i].second_high) &&
                        (rows[i].size < 3 || byte_within(text, 2, 0x80, 0xBF)) &&
                        (rows[i].size < 4 || byte_within(text, 3, 0x80, 0xBF));
            return fits ? rows[i].size : 0;
        }
    }
    return 0;
}

bool idem_utf8_valid(struct idem_str text)
{
    size_t at = 0;
    while (at < text.len) {
        size_t size = idem_utf8_size(idem_str_slice(text, at, text.len));
        if (size == 0) {
            return false;
        }
        at += size;
    }
    return true;
}

static int hex_value(int byte)
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

int32_t idem_json_unit_at(struct idem_str text, size_t at)
{
    if (at > text.len || text.len - at < 6 || text.data[at] != '\\' || text.data[at + 1] != 'u') {
        return -1;
    }
    int32_t unit = 0;
    for (size_t i = at + 2; i < at + 6; i++) {
        int digit = hex_value((unsigned char)text.data[i]);
        if (digit < 0) {
            return -1;
        }
        unit = unit * 16 + digit;
    }
    return unit;
}

bool idem_json_unit_is_high(int32_t unit)
{
    return unit >= 0xD800 && unit <= 0xDBFF;
}

bool idem_json_unit_is_low(int32_t unit)
{
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

static size_t utf8_encode(uint32_t scalar, char ret_bytes[4])
{
    if (scalar < 0x80) {
        ret_bytes[0] = (char)scalar;
        return 1;
    }
    if (scalar < 0x800) {
        ret_bytes[0] = (char)(0xC0 | scalar >> 6);
        ret_bytes[1] = (char)(0x80 | (scalar & 0x3F));
        return 2;
    }
    if (scalar < 0x10000) {
        ret_bytes[0] = (char)(0xE0 | scalar >> 12);
        ret_bytes[1] = (char)(0x80 | (scalar >> 6 & 0x3F));
        ret_bytes[2] = (char)(0x80 | (scalar & 0x3F));
        return 3;
    }
    ret_bytes[0] = (char)(0xF0 | scalar >> 18);
    ret_bytes[1] = (char)(0x80 | (scalar >> 12 & 0x3F));
    ret_bytes[2] = (char)(0x80 | (scalar >> 6 & 0x3F));
    ret_bytes[3] = (char)(0x80 | (scalar & 0x3F));
    return 4;
}

/* Takes the escape at the start of `rest` and gives the bytes it stands for. */
static size_t escape_take(struct idem_str *rest, char ret_bytes[4])
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    int32_t unit = idem_json_unit_at(*rest, 0);
    if (unit < 0) {
        const char *letter = memchr(letters, rest->data[1], sizeof(letters) - 1);
        IDEM_ASSERT(letter != NULL); /* The reader let nothing else through. */
        ret_bytes[0] = meanings[letter - letters];
        *rest = idem_str_slice(*rest, 2, rest->len);
        return 1;
    }
    uint32_t scalar = (uint32_t)unit;
    size_t taken = 6;
    if (idem_json_unit_is_high(unit)) {
        int32_t low = idem_json_unit_at(*rest, 6);
        IDEM_ASSERT(idem_json_unit_is_low(low));
        scalar = 0x10000 + ((scalar - 0xD800) << 10) + (uint32_t)(low - 0xDC00);
        taken = 12;
    }
    *rest = idem_str_slice(*rest, taken, rest->len);
    return utf8_encode(scalar, ret_bytes);
}

int idem_json_unescaping_next(struct idem_json_unescaping *string)
{
    if (string->used < string->size) {
        string->used += 1;
        return (unsigned char)string->character[string->used - 1];
    }
    if (string->rest.len == 0) {
        return -1;
    }
    if (string->rest.data[0] == '\\') {
        string->size = escape_take(&string->rest, string->character);
        string->used = 1;
        return (unsigned char)string->character[0];
    }
    int byte = (unsigned char)string->rest.data[0];
    string->rest = idem_str_slice(string->rest, 1, string->rest.len);
    return byte;
}

void idem_json_unescape(const struct idem_json *json, size_t index, struct idem_buf *buf)
{
    IDEM_ASSERT(index < json->count);
    const struct idem_json_token *token = &json->tokens[index];
    IDEM_ASSERT(token->kind == IDEM_JSON_STRING);
    struct idem_str rest = token->raw;
    while (rest.len > 0) {
        size_t plain = token->escaped ? idem_str_find(rest, '\\') : rest.len;
        idem_buf_add_bytes(buf, rest.data, plain);
        rest = idem_str_slice(rest, plain, rest.len);
        if (rest.len > 0) {
            char character[4];
            idem_buf_add_bytes(buf, character, escape_take(&rest, character));
        }
    }
}

/* One byte of a string. Escaped is what must be (RFC 8259, 7), as short as it can be. */
static void add_string_byte(struct idem_buf *buf, unsigned char byte)
{
    static const char controls[] = "\b\f\n\r\t\"\\";
    static const char letters[] = "bfnrt\"\\";
    const char *control = memchr(controls, byte, sizeof(controls) - 1);
    if (control != NULL) {
        char escape[2] = { '\\', letters[control - controls] };
        idem_buf_add_bytes(buf, escape, sizeof(escape));
        return;
    }
    if (byte < 0x20) {
        idem_buf_add(buf, IDEM_STR("\\u00"));
        idem_buf_add_hex(buf, &byte, 1);
        return;
    }
    idem_buf_add_char(buf, (char)byte);
}

void idem_json_add_string(struct idem_buf *buf, struct idem_str text)
{
    idem_buf_add_char(buf, '"');
    size_t from = 0; /* Of bytes that stand for themselves: they are added together. */
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if (byte < 0x20 || byte == '"' || byte == '\\') {
            idem_buf_add(buf, idem_str_slice(text, from, i - from));
            add_string_byte(buf, byte);
            from = i + 1;
        }
    }
    idem_buf_add(buf, idem_str_slice(text, from, text.len));
    idem_buf_add_char(buf, '"');
}

void idem_json_add_token(struct idem_buf *buf, const struct idem_json_token *token)
{
    idem_buf_add_char(buf, '"');
    if (token->escaped) {
        struct idem_json_unescaping string = { .rest = token->raw };
        for (int byte = idem_json_unescaping_next(&string); byte >= 0;
             byte = idem_json_unescaping_next(&string)) {
            add_string_byte(buf, (unsigned char)byte);
        }
    } else {
        idem_buf_add(buf, token->raw); /* Without escapes there is nothing that needs one. */
    }
    idem_buf_add_char(buf, '"');
}
