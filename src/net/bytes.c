/*
 * Growing bytes. The first allocation is exactly what came, since most heads and bodies come in one
 * piece; what comes in several doubles, so that a dripped request costs few copies. The limit
 * bounds both.
 */
#include "net/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"

static bool bytes_reserve(struct idem_bytes *bytes, size_t needed, size_t limit)
{
    if (needed <= bytes->max) {
        return true;
    }
    size_t max = bytes->max * 2;
    if (max < needed) {
        max = needed;
    }
    if (max > limit) {
        max = limit;
    }
    char *data = realloc(bytes->data, max);
    if (data == NULL) {
        return false;
    }
    bytes->data = data;
    bytes->max = max;
    return true;
}

bool idem_bytes_add(struct idem_bytes *bytes, struct idem_str text, size_t limit)
{
    IDEM_ASSERT(bytes->len <= limit);
    IDEM_ASSERT(text.len <= limit - bytes->len);
    if (text.len == 0) {
        return true;
    }
    if (!bytes_reserve(bytes, bytes->len + text.len, limit)) {
        return false;
    }
    memcpy(bytes->data + bytes->len, text.data, text.len);
    bytes->len += text.len;
    return true;
}

void idem_bytes_drop(struct idem_bytes *bytes, size_t len)
{
    IDEM_ASSERT(len <= bytes->len);
    if (len == bytes->len) {
        idem_bytes_free(bytes);
        return;
    }
    memmove(bytes->data, bytes->data + len, bytes->len - len);
    bytes->len -= len;
}

void idem_bytes_free(struct idem_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct idem_bytes){ 0 };
}

struct idem_str idem_bytes_str(const struct idem_bytes *bytes)
{
    return (struct idem_str){ .data = bytes->data, .len = bytes->len };
}
