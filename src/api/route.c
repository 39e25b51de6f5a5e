/*
 * Paths match whole, segment by segment, after strict decoding; there is no trailing slash, no
 * empty segment, no dot segment, no encoded slash and no prefix match. `{id}` takes a UUID in its
 * printed form and nothing else, so `abandon` is never taken for one; `{name}` takes any segment
 * that a provider entry's name could be.
 *
 * The path goes into the fingerprint as the table spells it: a request sent again with an id in
 * capitals, or with a needless %61, is the same request.
 */
#include "api/route.h"

#include "api/percent.h"
#include "base/bug.h"

struct row {
    struct idem_str method;
    struct idem_str pattern;
    enum idem_route_kind kind;
    enum idem_endpoint endpoint;
};

#define ROW(method_text, pattern_text, kind_name, endpoint_name)                               \
    {                                                                                          \
        .method = { method_text, sizeof(method_text) - 1 },                                    \
        .pattern = { pattern_text, sizeof(pattern_text) - 1 }, .kind = IDEM_ROUTE_##kind_name, \
        .endpoint = IDEM_ENDPOINT_##endpoint_name,                                             \
    }

static const struct row rows[] = {
    ROW("POST", "/v1/payments", KEYED, PAYMENTS_CREATE),
    ROW("GET", "/v1/payments", PAYMENT_BY_ORDER, NONE),
    ROW("GET", "/v1/payments/{id}", PAYMENT, NONE),
    ROW("POST", "/v1/payments/{id}/capture", KEYED, PAYMENTS_CAPTURE),
    ROW("POST", "/v1/payments/{id}/cancel", KEYED, PAYMENTS_CANCEL),
    ROW("POST", "/v1/payments/{id}/refunds", KEYED, REFUNDS_CREATE),
    ROW("GET", "/v1/refunds/{id}", REFUND, NONE),
    ROW("GET", "/v1/operations", OPERATION_BY_KEY, NONE),
    ROW("POST", "/v1/operations/abandon", ABANDON, NONE),
    ROW("GET", "/v1/operations/{id}", OPERATION, NONE),
    ROW("GET", "/healthz", HEALTH, NONE),
    ROW("GET", "/readyz", READY, NONE),
    ROW("GET", "/metrics", METRICS, NONE),
    ROW("POST", "/v1/callbacks/{name}", CALLBACK, NONE),
    ROW("GET", "/v1/admin/operations", ADMIN_LIST, NONE),
    ROW("GET", "/v1/admin/operations/{id}", ADMIN_OPERATION, NONE),
    ROW("POST", "/v1/admin/operations/{id}/resolve", ADMIN_RESOLVE, NONE),
    ROW("POST", "/v1/admin/operations/{id}/erase", ADMIN_ERASE, NONE),
    ROW("GET", "/v1/admin/payments/{id}/operations", ADMIN_OF_PAYMENT, NONE),
    ROW("GET", "/v1/admin/summary", ADMIN_SUMMARY, NONE),
    ROW("GET", "/v1/admin/credentials", ADMIN_CREDENTIALS, NONE),
    ROW("PUT", "/v1/admin/credentials/{id}", ADMIN_CREDENTIAL_PUT, NONE),
    ROW("DELETE", "/v1/admin/credentials/{id}", ADMIN_CREDENTIAL_REVOKE, NONE),
    ROW("GET", "/v1/admin/restored", ADMIN_RESTORED, NONE),
    ROW("POST", "/v1/admin/restored/end", ADMIN_RESTORED_END, NONE),
    ROW("GET", "/v1/admin/cases", ADMIN_CASES, NONE),
    ROW("GET", "/v1/admin/cases/{id}", ADMIN_CASE, NONE),
    ROW("POST", "/v1/admin/cases/{id}/resolve", ADMIN_CASE_RESOLVE, NONE),
    ROW("POST", "/v1/admin/cases/{id}/compensate", ADMIN_CASE_COMPENSATE, NONE),
    ROW("GET", "/v1/admin/webhooks", ADMIN_WEBHOOKS, NONE),
    ROW("PUT", "/v1/admin/webhooks/{id}", ADMIN_WEBHOOK_PUT, NONE),
    ROW("POST", "/v1/admin/webhooks/{id}/rotate", ADMIN_WEBHOOK_ROTATE, NONE),
    ROW("POST", "/v1/admin/webhooks/{id}/disable", ADMIN_WEBHOOK_DISABLE, NONE),
    ROW("POST", "/v1/admin/webhooks/{id}/enable", ADMIN_WEBHOOK_ENABLE, NONE),
    ROW("POST", "/v1/admin/webhooks/{id}/test", ADMIN_WEBHOOK_TEST, NONE),
    ROW("GET", "/v1/admin/deliveries", ADMIN_DELIVERIES, NONE),
    ROW("POST", "/v1/admin/messages/{id}/replay", ADMIN_REPLAY, NONE),
    ROW("GET", "/v1/admin/effects", ADMIN_EFFECTS, NONE),
    ROW("GET", "/v1/admin/listings", ADMIN_LISTINGS, NONE),
    ROW("POST", "/v1/admin/evidence", ADMIN_EVIDENCE, NONE),
};

static const struct idem_str name_slot = { .data = "{name}", .len = 6 };

static bool name_fits(struct idem_str segment)
{
    bool is_dots =
        idem_str_equal(segment, IDEM_STR(".")) || idem_str_equal(segment, IDEM_STR(".."));
    return segment.len > 0 && segment.len <= IDEM_ENTRY_MAX && !is_dots;
}

struct found {
    struct idem_uid id;
    struct idem_str name;
};

/* True if the decoded path is this pattern; gives id or name where the pattern has one. */
static bool pattern_matches(struct idem_str pattern, struct idem_str path, struct found *found)
{
    while (pattern.len > 0 && path.len > 0) {
        struct idem_str expected = idem_str_next(&pattern, '/');
        struct idem_str segment = idem_str_next(&path, '/');
        bool same = idem_str_equal(expected, segment);
        if (idem_str_equal(expected, IDEM_STR("{id}"))) {
            same = idem_uid_parse(segment, &found->id);
        } else if (idem_str_equal(expected, name_slot)) {
            same = name_fits(segment);
            found->name = segment;
        }
        if (!same) {
            return false;
        }
    }
    return pattern.len == 0 && path.len == 0;
}

/* Writes the pattern with the id or the name in it. */
static void path_print(const struct row *row, struct idem_str name, struct idem_route *route)
{
    struct idem_buf buf;
    idem_buf_init(&buf, route->path, sizeof(route->path));
    struct idem_str rest = idem_str_slice(row->pattern, 1, row->pattern.len);
    while (rest.len > 0) {
        struct idem_str segment = idem_str_next(&rest, '/');
        idem_buf_add_char(&buf, '/');
        if (idem_str_equal(segment, IDEM_STR("{id}"))) {
            idem_uid_print(route->id, &buf);
        } else if (idem_str_equal(segment, name_slot)) {
            route->name_at = buf.len;
            route->name_len = name.len;
            idem_buf_add(&buf, name);
        } else {
            idem_buf_add(&buf, segment);
        }
    }
    IDEM_ASSERT(!buf.full);
    route->path_len = buf.len;
}

static void allow_add(struct idem_buf *allow, struct idem_str method)
{
    idem_buf_add(allow, allow->len > 0 ? IDEM_STR(", ") : IDEM_STR(""));
    idem_buf_add(allow, method);
}

static bool row_find(struct idem_str method,
                     struct idem_str path,
                     struct idem_route *ret_route,
                     struct idem_buf *allow)
{
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct found found = { .name = { .len = 0 } };
        if (!pattern_matches(rows[i].pattern, path, &found)) {
            continue;
        }
        if (!idem_str_equal(rows[i].method, method)) {
            allow_add(allow, rows[i].method);
            continue;
        }
        *ret_route = (struct idem_route){
            .kind = rows[i].kind,
            .endpoint = rows[i].endpoint,
            .id = found.id,
        };
        path_print(&rows[i], found.name, ret_route);
        return true;
    }
    return false;
}

static size_t slash_count(struct idem_str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += text.data[i] == '/' ? 1 : 0;
    }
    return count;
}

bool idem_route_find(const struct idem_net_request *request,
                     struct idem_route *ret_route,
                     struct idem_buf *allow,
                     struct idem_fault *ret_fault)
{
    char decoded[IDEM_ROUTE_PATH_MAX + 1];
    struct idem_buf path;
    idem_buf_init(&path, decoded, sizeof(decoded));
    if (!idem_percent_decode(request->path, &path)) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_REQUEST_INVALID,
                              "The path has a percent sign without two hexadecimal digits.");
    }
    bool slash_at_end = path.len > 0 && path.data[path.len - 1] == '/';
    bool slash_encoded = slash_count(idem_buf_str(&path)) != slash_count(request->path);
    if (path.full || slash_at_end || slash_encoded) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_NOT_FOUND, "This path names nothing.");
    }
    if (row_find(request->method, idem_buf_str(&path), ret_route, allow)) {
        return true;
    }
    if (allow->len > 0) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_METHOD_NOT_ALLOWED, "This path takes %.*s.",
                              (int)allow->len, allow->data);
    }
    return idem_fault_set(ret_fault, IDEM_PROBLEM_NOT_FOUND, "This path names nothing.");
}

bool idem_route_is_admin(enum idem_route_kind kind)
{
    return kind >= IDEM_ROUTE_ADMIN_LIST && kind < IDEM_ROUTE_COUNT;
}

struct idem_str idem_route_path(const struct idem_route *route)
{
    return (struct idem_str){ .data = route->path, .len = route->path_len };
}

struct idem_str idem_route_name(const struct idem_route *route)
{
    return idem_str_slice(idem_route_path(route), route->name_at, route->name_len);
}
