/*
 * Version 00 is 00-{32}-{16}-{2} in lower-case hexadecimal digits; ids of zeros only are none. A
 * trace is no part of what a request means: the fingerprint never sees it.
 */
#include "api/trace.h"

#include <assert.h>

#include "api/header.h"
#include "base/bug.h"
#include "core/limits.h"

static_assert(IDEM_TRACE_MAX == 2 + 1 + 32 + 1 + 16 + 1 + 2, "a traceparent of version 00");

static bool is_hex(struct idem_str text, bool zeros_allowed)
{
    bool zeros = true;
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.data[i];
        bool hex = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
        if (!hex) {
            return false;
        }
        zeros = zeros && byte == '0';
    }
    return zeros_allowed || !zeros;
}

struct idem_str idem_trace_read(const struct idem_net_request *request)
{
    struct idem_str value;
    size_t count = idem_header_find(request, IDEM_STR("traceparent"), &value);
    if (count != 1 || value.len != IDEM_TRACE_MAX) {
        return IDEM_STR("");
    }
    struct idem_str rest = value;
    struct idem_str version = idem_str_next(&rest, '-');
    struct idem_str trace_id = idem_str_next(&rest, '-');
    struct idem_str parent_id = idem_str_next(&rest, '-');
    bool lengths = version.len == 2 && trace_id.len == 32 && parent_id.len == 16 && rest.len == 2;
    bool good = lengths && idem_str_equal(version, IDEM_STR("00")) && is_hex(trace_id, false) &&
                is_hex(parent_id, false) && is_hex(rest, true);
    return good ? value : IDEM_STR("");
}
