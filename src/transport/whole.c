/*
 * How a body shows that it is whole.
 *
 * By its coding: of all that there are only "chunked" marks the end, and only if it is the last one
 * (RFC 9112, 6.3). Any other, "identity" included, ends with the connection, whatever ended that.
 *
 * Or by itself. One JSON object or array is never the beginning of a longer one, nor is a part of
 * it one: cut short, it has a bracket or a string left open. That is all that is looked for, in
 * JSON of any server, however sloppy. Whether it is right inside is the business of whoever reads
 * it: client/json_text.h looks there, for APIs that promise JSON.
 */
#include "transport/client_internal.h"

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static struct idem_str spaces_cut(struct idem_str text)
{
    while (text.len > 0 && is_space(text.data[0])) {
        text = idem_str_slice(text, 1, text.len);
    }
    while (text.len > 0 && is_space(text.data[text.len - 1])) {
        text.len -= 1;
    }
    return text;
}

/* The index behind the string that begins at `index`, which may be behind the text's end. */
static size_t string_skip(struct idem_str text, size_t index)
{
    index += 1;
    while (index < text.len && text.data[index] != '"') {
        index += text.data[index] == '\\' ? 2 : 1;
    }
    return index + 1;
}

bool idem_http_coding_ends(struct idem_str value)
{
    struct idem_str last = idem_str_next(&value, ',');
    while (value.data != NULL) {
        last = idem_str_next(&value, ',');
    }
    return idem_str_equal_nocase(idem_str_trim(last), IDEM_STR("chunked"));
}

bool idem_http_body_whole(struct idem_str body)
{
    struct idem_str text = spaces_cut(body);
    size_t depth = 0;
    size_t index = 0;

    while (index < text.len) {
        char byte = text.data[index];
        if (byte == '"') {
            index = string_skip(text, index);
        } else {
            depth += byte == '{' || byte == '[';
            depth -= depth > 0 && (byte == '}' || byte == ']');
            index += 1;
        }
        if (depth == 0) {
            return index == text.len && (byte == '}' || byte == ']') && index > 1;
        }
    }
    return false;
}
