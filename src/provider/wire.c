/*
 * Small pieces of requests and answers that every adapter writes and reads alike.
 */
#include "provider/wire.h"

#include "base/attr.h"
#include "base/bug.h"

void idem_wire_header_add(struct idem_wire_request *request,
                          struct idem_buf *buf,
                          const char *name,
                          struct idem_str value)
{
    size_t start = buf->len;

    IDEM_ASSERT(request->header_count < IDEM_ARRAY_COUNT(request->headers));
    idem_buf_add(buf, idem_str_from(name));
    idem_buf_add(buf, value);
    request->headers[request->header_count] = idem_str_slice(idem_buf_str(buf), start, SIZE_MAX);
    request->header_count += 1;
}

bool idem_wire_text_read(const struct idem_json *json,
                         size_t index,
                         struct idem_buf *buf,
                         struct idem_str *ret_text)
{
    if (index == 0 || json->tokens[index].kind == IDEM_JSON_NULL) {
        return true;
    }
    if (json->tokens[index].kind != IDEM_JSON_STRING) {
        return false;
    }
    size_t start = buf->len;
    idem_json_unescape(json, index, buf);
    struct idem_str text = idem_str_slice(idem_buf_str(buf), start, SIZE_MAX);
    *ret_text = text;
    return !buf->full && idem_str_find(text, '\0') == text.len;
}

struct idem_str idem_wire_text_cut(struct idem_str text, size_t max)
{
    if (text.len <= max) {
        return text;
    }
    size_t len = max;
    while (len > 0 && ((unsigned char)text.data[len] & 0xC0U) == 0x80U) {
        len -= 1;
    }
    return idem_str_slice(text, 0, len);
}
