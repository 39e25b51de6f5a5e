/*
 * The server has checked the fields' syntax; what they mean is read here. A comma inside a quoted
 * string does not separate, and a backslash inside one hides the byte behind it.
 */
#include "api/header.h"

size_t idem_header_find(const struct idem_net_request *request,
                        struct idem_str name,
                        struct idem_str *ret_value)
{
    size_t count = 0;
    struct idem_str value = { 0 };
    for (size_t i = 0; i < request->header_count; i++) {
        if (idem_str_equal_nocase(request->headers[i].name, name)) {
            value = count == 0 ? request->headers[i].value : value;
            count += 1;
        }
    }
    *ret_value = value;
    return count;
}

bool idem_header_is_token_char(char byte)
{
    if ((byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
        (byte >= 'A' && byte <= 'Z')) {
        return true;
    }
    static const struct idem_str others = { .data = "!#$%&'*+-.^_`|~", .len = 15 };
    return idem_str_find(others, byte) < others.len;
}

bool idem_header_list_next(struct idem_str *text, struct idem_str *ret_member)
{
    if (text->len == 0) {
        return false;
    }
    bool quoted = false;
    size_t end = 0;
    while (end < text->len && (quoted || text->data[end] != ',')) {
        if (text->data[end] == '"') {
            quoted = !quoted;
        }
        end += quoted && text->data[end] == '\\' ? 2 : 1;
    }
    end = end < text->len ? end : text->len;
    *ret_member = idem_str_trim(idem_str_slice(*text, 0, end));
    *text = end < text->len ? idem_str_slice(*text, end + 1, text->len)
                            : (struct idem_str){ .data = NULL };
    return true;
}
