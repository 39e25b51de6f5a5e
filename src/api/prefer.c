/*
 * Preferences may come in several fields and several to a field; parameters behind a semicolon
 * belong to a preference and mean nothing for these two.
 */
#include "api/prefer.h"

#include "api/header.h"

static struct idem_str unquoted(struct idem_str value)
{
    if (value.len >= 2 && value.data[0] == '"' && value.data[value.len - 1] == '"') {
        return idem_str_slice(value, 1, value.len - 2);
    }
    return value;
}

static void wait_take(struct idem_prefer *prefer, struct idem_str value)
{
    int64_t seconds = 0;
    if (!idem_str_to_i64(unquoted(value), &seconds)) {
        return;
    }
    prefer->wait = true;
    prefer->wait_seconds = seconds < IDEM_PREFER_WAIT_MAX ? seconds : IDEM_PREFER_WAIT_MAX;
}

/* `*wait_seen` also for a malformed one: the first counts, whatever it is. */
static void member_take(struct idem_prefer *prefer, struct idem_str member, bool *wait_seen)
{
    struct idem_str rest = idem_str_next(&member, ';');
    struct idem_str name = idem_str_trim(idem_str_next(&rest, '='));
    struct idem_str value = idem_str_trim(rest);
    if (idem_str_equal_nocase(name, IDEM_STR("respond-async")) && value.len == 0) {
        prefer->respond_async = true;
    }
    if (idem_str_equal_nocase(name, IDEM_STR("wait")) && !*wait_seen) {
        *wait_seen = true;
        wait_take(prefer, value);
    }
}

struct idem_prefer idem_prefer_read(const struct idem_net_request *request)
{
    struct idem_prefer prefer = { 0 };
    bool wait_seen = false;
    for (size_t i = 0; i < request->header_count; i++) {
        if (!idem_str_equal_nocase(request->headers[i].name, IDEM_STR("Prefer"))) {
            continue;
        }
        struct idem_str rest = request->headers[i].value;
        struct idem_str member;
        while (idem_header_list_next(&rest, &member)) {
            member_take(&prefer, member, &wait_seen);
        }
    }
    return prefer;
}
