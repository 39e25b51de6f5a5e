/*
 * A look-up with a member that is not understood could answer another question than was asked, so
 * everything unknown or doubled is refused. Names of members are never sent back.
 */
#include "api/query.h"

#include "api/percent.h"

#define NAME_MAX_LEN 32

static bool refuse(struct idem_fault *ret_fault, const char *what)
{
    return idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID, "%s", what);
}

bool idem_query_check_empty(struct idem_str query, struct idem_fault *ret_fault)
{
    if (query.len > 0) {
        return refuse(ret_fault, "This resource takes no query.");
    }
    return true;
}

static bool name_is(struct idem_str encoded, struct idem_str name)
{
    char bytes[NAME_MAX_LEN];
    struct idem_buf buf;
    idem_buf_init(&buf, bytes, sizeof(bytes));
    return idem_percent_decode(encoded, &buf) && !buf.full &&
           idem_str_equal(idem_buf_str(&buf), name);
}

bool idem_query_read_one(struct idem_str query,
                         struct idem_str name,
                         struct idem_buf *memory,
                         struct idem_str *ret_value,
                         struct idem_fault *ret_fault)
{
    struct idem_str value = query;
    if (idem_str_find(query, '&') < query.len || !name_is(idem_str_next(&value, '='), name)) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID,
                              "The query must be the member \"%.*s\", once, and nothing else.",
                              (int)name.len, name.data);
    }
    size_t start = memory->len;
    if (!idem_percent_decode(value, memory)) {
        return refuse(ret_fault, "A percent sign is not followed by two hexadecimal digits.");
    }
    struct idem_str decoded = idem_str_slice(idem_buf_str(memory), start, memory->len);
    if (memory->full || decoded.len == 0) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_QUERY_INVALID,
                              "\"%.*s\" is empty or too long.", (int)name.len, name.data);
    }
    *ret_value = decoded;
    return true;
}

static size_t member_find(struct idem_str name, const struct idem_query_members *members)
{
    size_t i = 0;
    while (i < members->count && !name_is(name, members->names[i])) {
        i += 1;
    }
    return i;
}

bool idem_query_read_some(struct idem_str query,
                          const struct idem_query_members *members,
                          struct idem_buf *memory,
                          struct idem_str *ret_values,
                          struct idem_fault *ret_fault)
{
    for (size_t i = 0; i < members->count; i++) {
        ret_values[i] = (struct idem_str){ 0 };
    }
    if (query.len > 0 && query.data[query.len - 1] == '&') {
        return refuse(ret_fault, "The query ends before its last member.");
    }
    struct idem_str rest = query;
    while (rest.len > 0) {
        struct idem_str member = idem_str_next(&rest, '&');
        struct idem_str value = member;
        size_t i = member_find(idem_str_next(&value, '='), members);
        if (i == members->count || ret_values[i].len > 0) {
            return refuse(ret_fault, "The query has a member that is not known here, or twice.");
        }
        if (!idem_query_read_one(member, members->names[i], memory, &ret_values[i], ret_fault)) {
            return false;
        }
    }
    return true;
}
