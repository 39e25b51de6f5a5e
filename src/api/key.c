/*
 * Two keys that differ must never be read as one, since the second intent would then get the first
 * one's answer. So nothing is dropped that could be part of a key: a bare key with a comma, a
 * semicolon, a quote or a backslash is refused and not cut there, and so is one that begins like
 * another kind of structured field (byte sequence, boolean, date, display string, inner list). All
 * of these can be sent quoted. Only behind a closing quote is it certain that parameters are
 * parameters.
 */
#include "api/key.h"

#include "api/header.h"
#include "core/limits.h"

static bool refuse(struct idem_fault *ret_fault, const char *what)
{
    return idem_fault_set(ret_fault, IDEM_PROBLEM_KEY_INVALID, "%s", what);
}

static bool is_key_byte(char byte)
{
    return byte >= 0x21 && byte <= 0x7E;
}

/* A quote or a backslash: what may stand behind a backslash in a structured-field string. */
static bool is_escapable(char byte)
{
    return byte == '"' || byte == '\\';
}

/* Gives the length of a structured-field string with its quotes, or 0 if it is none. */
static size_t quoted_len(struct idem_str text)
{
    size_t at = 1;
    while (at < text.len && text.data[at] != '"') {
        bool escape = text.data[at] == '\\';
        if (escape && (at + 1 == text.len || !is_escapable(text.data[at + 1]))) {
            return 0;
        }
        at += escape ? 2 : 1;
    }
    return at < text.len ? at + 1 : 0;
}

static size_t skip_spaces(struct idem_str text, size_t at)
{
    while (at < text.len && text.data[at] == ' ') {
        at += 1;
    }
    return at;
}

/* Length of one parameter's value: a string, or a run that ends at a separator. */
static size_t parameter_value_len(struct idem_str text)
{
    if (text.len > 0 && text.data[0] == '"') {
        return quoted_len(text);
    }
    size_t len = 0;
    while (len < text.len && is_key_byte(text.data[len]) && text.data[len] != ';' &&
           text.data[len] != ',' && text.data[len] != '"') {
        len += 1;
    }
    return len;
}

static size_t parameter_name_len(struct idem_str text)
{
    size_t len = 0;
    while (len < text.len && text.data[len] != '=' && idem_header_is_token_char(text.data[len])) {
        len += 1;
    }
    return len;
}

/* Length of one parameter, ";" *SP name [ "=" value ], or 0 if it is none. */
static size_t parameter_len(struct idem_str text)
{
    if (text.len == 0 || text.data[0] != ';') {
        return 0;
    }
    size_t at = skip_spaces(text, 1);
    size_t name_len = parameter_name_len(idem_str_slice(text, at, text.len));
    at += name_len;
    if (name_len == 0 || at == text.len || text.data[at] != '=') {
        return name_len == 0 ? 0 : at;
    }
    size_t value_len = parameter_value_len(idem_str_slice(text, at + 1, text.len));
    return value_len == 0 ? 0 : at + 1 + value_len;
}

/* True if `text` is nothing but parameters. */
static bool is_parameters(struct idem_str text)
{
    while (text.len > 0) {
        size_t len = parameter_len(text);
        if (len == 0) {
            return false;
        }
        text = idem_str_slice(text, len, text.len);
    }
    return true;
}

static bool quoted_read(struct idem_str value, struct idem_buf *key, struct idem_fault *ret_fault)
{
    size_t len = quoted_len(value);
    if (len == 0) {
        return refuse(ret_fault, "The quoted Idempotency-Key is not a structured-field string.");
    }
    if (!is_parameters(idem_str_slice(value, len, value.len))) {
        return refuse(ret_fault,
                      "What stands behind the quoted Idempotency-Key is no parameter; "
                      "a list of keys is not taken.");
    }
    for (size_t i = 1; i + 1 < len; i++) {
        i += value.data[i] == '\\' ? 1 : 0;
        if (!is_key_byte(value.data[i])) {
            return refuse(ret_fault, "The Idempotency-Key has a byte outside 0x21-0x7E.");
        }
        idem_buf_add_char(key, value.data[i]);
    }
    return true;
}

static bool bare_read(struct idem_str value, struct idem_buf *key, struct idem_fault *ret_fault)
{
    static const struct idem_str foreign = { .data = ":?@%(", .len = 5 };
    static const struct idem_str separators = { .data = "\",;\\", .len = 4 };
    if (value.len > 0 && idem_str_find(foreign, value.data[0]) < foreign.len) {
        return refuse(ret_fault,
                      "An Idempotency-Key that begins with : ? @ % or ( must be quoted.");
    }
    for (size_t i = 0; i < value.len; i++) {
        if (!is_key_byte(value.data[i])) {
            return refuse(ret_fault, "The Idempotency-Key has a byte outside 0x21-0x7E.");
        }
        if (idem_str_find(separators, value.data[i]) < separators.len) {
            return refuse(ret_fault,
                          "An Idempotency-Key with a quote, comma, semicolon or backslash must be "
                          "sent as one quoted string; a list of keys is not taken.");
        }
    }
    idem_buf_add(key, value);
    return true;
}

bool idem_key_read(const struct idem_net_request *request,
                   struct idem_buf *memory,
                   struct idem_str *ret_key,
                   struct idem_fault *ret_fault)
{
    struct idem_str value;
    size_t count = idem_header_find(request, IDEM_STR("Idempotency-Key"), &value);
    if (count == 0) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_KEY_MISSING,
                              "There is no Idempotency-Key header.");
    }
    if (count > 1) {
        return refuse(ret_fault, "There is more than one Idempotency-Key header.");
    }
    char bytes[IDEM_KEY_MAX];
    struct idem_buf key;
    idem_buf_init(&key, bytes, sizeof(bytes));
    bool read = value.len > 0 && value.data[0] == '"' ? quoted_read(value, &key, ret_fault)
                                                      : bare_read(value, &key, ret_fault);
    if (!read) {
        return false;
    }
    if (key.full || key.len == 0) {
        return refuse(ret_fault, "The Idempotency-Key is not 1 to 255 bytes long.");
    }
    *ret_key = idem_buf_keep(memory, idem_buf_str(&key));
    return true;
}

void idem_key_print(struct idem_str key, struct idem_buf *buf)
{
    idem_buf_add_char(buf, '"');
    for (size_t i = 0; i < key.len; i++) {
        if (is_escapable(key.data[i])) {
            idem_buf_add_char(buf, '\\');
        }
        idem_buf_add_char(buf, key.data[i]);
    }
    idem_buf_add_char(buf, '"');
}
