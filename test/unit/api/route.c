/*
 * Paths and methods.
 *
 * Goal: exactly the API's resources are found, a known path with another method says which methods
 * there are, and one resource has one spelling for the fingerprint.
 *
 * Method: a table of request lines; what was found is written as text.
 */
#include "api/route.h"

#include "request.h"

#define ID       "0197b2f0-1111-7abc-8def-0123456789ab"
#define ID_UPPER "0197B2F0-1111-7ABC-8DEF-0123456789AB"

static const char *const kind_names[IDEM_ROUTE_COUNT] = {
    [IDEM_ROUTE_KEYED] = "keyed",
    [IDEM_ROUTE_PAYMENT] = "payment",
    [IDEM_ROUTE_PAYMENT_BY_ORDER] = "payment-by-order",
    [IDEM_ROUTE_REFUND] = "refund",
    [IDEM_ROUTE_OPERATION] = "operation",
    [IDEM_ROUTE_OPERATION_BY_KEY] = "operation-by-key",
    [IDEM_ROUTE_ABANDON] = "abandon",
    [IDEM_ROUTE_HEALTH] = "health",
    [IDEM_ROUTE_READY] = "ready",
    [IDEM_ROUTE_METRICS] = "metrics",
    [IDEM_ROUTE_ADMIN_LIST] = "admin-list",
    [IDEM_ROUTE_ADMIN_OPERATION] = "admin-operation",
    [IDEM_ROUTE_ADMIN_RESOLVE] = "admin-resolve",
    [IDEM_ROUTE_ADMIN_ERASE] = "admin-erase",
    [IDEM_ROUTE_ADMIN_OF_PAYMENT] = "admin-of-payment",
    [IDEM_ROUTE_ADMIN_SUMMARY] = "admin-summary",
    [IDEM_ROUTE_ADMIN_CREDENTIALS] = "admin-credentials",
    [IDEM_ROUTE_ADMIN_CREDENTIAL_PUT] = "admin-credential-put",
    [IDEM_ROUTE_ADMIN_CREDENTIAL_REVOKE] = "admin-credential-revoke",
    [IDEM_ROUTE_ADMIN_RESTORED] = "admin-restored",
    [IDEM_ROUTE_ADMIN_RESTORED_END] = "admin-restored-end",
    [IDEM_ROUTE_CALLBACK] = "callback",
    [IDEM_ROUTE_ADMIN_CASES] = "admin-cases",
    [IDEM_ROUTE_ADMIN_CASE] = "admin-case",
    [IDEM_ROUTE_ADMIN_CASE_RESOLVE] = "admin-case-resolve",
    [IDEM_ROUTE_ADMIN_CASE_COMPENSATE] = "admin-case-compensate",
    [IDEM_ROUTE_ADMIN_WEBHOOKS] = "admin-webhooks",
    [IDEM_ROUTE_ADMIN_WEBHOOK_PUT] = "admin-webhook-put",
    [IDEM_ROUTE_ADMIN_WEBHOOK_ROTATE] = "admin-webhook-rotate",
    [IDEM_ROUTE_ADMIN_WEBHOOK_DISABLE] = "admin-webhook-disable",
    [IDEM_ROUTE_ADMIN_WEBHOOK_ENABLE] = "admin-webhook-enable",
    [IDEM_ROUTE_ADMIN_WEBHOOK_TEST] = "admin-webhook-test",
    [IDEM_ROUTE_ADMIN_DELIVERIES] = "admin-deliveries",
    [IDEM_ROUTE_ADMIN_REPLAY] = "admin-replay",
    [IDEM_ROUTE_ADMIN_EFFECTS] = "admin-effects",
    [IDEM_ROUTE_ADMIN_LISTINGS] = "admin-listings",
    [IDEM_ROUTE_ADMIN_EVIDENCE] = "admin-evidence",
};

static struct idem_str describe(const char *line)
{
    static char memory[512];
    struct idem_net_request request = request_make(line, "");
    struct idem_route route;
    struct idem_fault fault;
    char methods[32];
    struct idem_buf allow;
    struct idem_buf buf;
    idem_buf_init(&allow, methods, sizeof(methods));
    idem_buf_init(&buf, memory, sizeof(memory));
    if (!idem_route_find(&request, &route, &allow, &fault)) {
        idem_buf_printf(&buf, "%s", idem_problem_entry(fault.problem)->code);
        if (fault.problem == IDEM_PROBLEM_METHOD_NOT_ALLOWED) {
            idem_buf_printf(&buf, " %.*s", (int)allow.len, allow.data);
        }
        return idem_buf_str(&buf);
    }
    idem_buf_printf(&buf, "%s %s %.*s", kind_names[route.kind],
                    route.endpoint == IDEM_ENDPOINT_NONE ? "-" : idem_endpoint_name(route.endpoint),
                    (int)idem_route_path(&route).len, idem_route_path(&route).data);
    return idem_buf_str(&buf);
}

static void every_resource_and_nothing_else(void **state)
{
    static const struct {
        const char *line;
        const char *expected;
    } rows[] = {
        { "POST /v1/payments", "keyed payments.create /v1/payments" },
        { "GET /v1/payments?order_no=1", "payment-by-order - /v1/payments" },
        { "GET /v1/payments/" ID, "payment - /v1/payments/" ID },
        { "POST /v1/payments/" ID "/capture",
          "keyed payments.capture /v1/payments/" ID "/capture" },
        { "POST /v1/payments/" ID "/cancel", "keyed payments.cancel /v1/payments/" ID "/cancel" },
        { "POST /v1/payments/" ID "/refunds", "keyed refunds.create /v1/payments/" ID "/refunds" },
        { "GET /v1/refunds/" ID, "refund - /v1/refunds/" ID },
        { "GET /v1/operations", "operation-by-key - /v1/operations" },
        { "GET /v1/operations/" ID, "operation - /v1/operations/" ID },
        { "POST /v1/operations/abandon", "abandon - /v1/operations/abandon" },
        { "GET /healthz", "health - /healthz" },
        { "GET /readyz", "ready - /readyz" },

        { "POST /v1/payments/" ID_UPPER "/capture",
          "keyed payments.capture /v1/payments/" ID "/capture" },
        { "POST /v1/p%61yments", "keyed payments.create /v1/payments" },

        { "GET /metrics", "metrics - /metrics" },

        { "PUT /v1/payments", "method-not-allowed POST, GET" },
        { "DELETE /v1/payments/" ID, "method-not-allowed GET" },
        { "GET /v1/payments/" ID "/capture", "method-not-allowed POST" },
        { "GET /v1/operations/abandon", "method-not-allowed POST" },
        { "HEAD /healthz", "method-not-allowed GET" },
        { "post /v1/payments", "method-not-allowed POST, GET" },

        { "GET /", "not-found" },
        { "GET /v1", "not-found" },
        { "GET /v1/", "not-found" },
        { "POST /v1/payments/", "not-found" },
        { "POST //v1/payments", "not-found" },
        { "POST /v1//payments", "not-found" },
        { "POST /v1/./payments", "not-found" },
        { "POST /V1/payments", "not-found" },
        { "POST /v1/paymentsx", "not-found" },
        { "POST /v1%2Fpayments", "not-found" },
        { "POST /v1/payments%00", "not-found" },
        { "GET /v1/payments/1", "not-found" },
        { "GET /v1/payments/{id}", "not-found" },
        { "GET /v1/payments/{" ID "}", "not-found" },
        { "GET /v1/payments/0197b2f011117abc8def0123456789ab", "not-found" },
        { "POST /v1/payments/" ID "/capture/x", "not-found" },
        { "POST /v1/payments/" ID "/void", "not-found" },
        { "GET /v1/payments/" ID ID ID, "not-found" },
        { "GET /v1/payments/%zz", "request-invalid" },
        { "GET /v1/payments/%4", "request-invalid" },
        { "GET /v1/payments%", "request-invalid" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].line);
        EXPECT_TEXT(describe(rows[i].line), rows[i].expected);
    }
}

static void operators_have_resources_of_their_own(void **state)
{
    static const struct {
        const char *line;
        const char *expected;
    } rows[] = {
        { "GET /v1/admin/operations", "admin-list - /v1/admin/operations" },
        { "GET /v1/admin/operations/" ID, "admin-operation - /v1/admin/operations/" ID },
        { "POST /v1/admin/operations/" ID_UPPER "/resolve",
          "admin-resolve - /v1/admin/operations/" ID "/resolve" },
        { "POST /v1/admin/operations/" ID "/erase",
          "admin-erase - /v1/admin/operations/" ID "/erase" },
        { "GET /v1/admin/payments/" ID "/operations",
          "admin-of-payment - /v1/admin/payments/" ID "/operations" },
        { "GET /v1/admin/summary", "admin-summary - /v1/admin/summary" },
        { "GET /v1/admin/credentials", "admin-credentials - /v1/admin/credentials" },
        { "PUT /v1/admin/credentials/" ID, "admin-credential-put - /v1/admin/credentials/" ID },
        { "DELETE /v1/admin/credentials/" ID,
          "admin-credential-revoke - /v1/admin/credentials/" ID },
        { "GET /v1/admin/restored", "admin-restored - /v1/admin/restored" },
        { "POST /v1/admin/restored/end", "admin-restored-end - /v1/admin/restored/end" },
        { "POST /v1/admin/credentials/" ID, "method-not-allowed PUT, DELETE" },
        { "GET /v1/admin/cases", "admin-cases - /v1/admin/cases" },
        { "GET /v1/admin/cases/" ID_UPPER, "admin-case - /v1/admin/cases/" ID },
        { "POST /v1/admin/cases/" ID "/resolve",
          "admin-case-resolve - /v1/admin/cases/" ID "/resolve" },
        { "POST /v1/admin/cases/" ID "/compensate",
          "admin-case-compensate - /v1/admin/cases/" ID "/compensate" },
        { "GET /v1/admin/webhooks", "admin-webhooks - /v1/admin/webhooks" },
        { "PUT /v1/admin/webhooks/" ID, "admin-webhook-put - /v1/admin/webhooks/" ID },
        { "POST /v1/admin/webhooks/" ID "/rotate",
          "admin-webhook-rotate - /v1/admin/webhooks/" ID "/rotate" },
        { "POST /v1/admin/webhooks/" ID "/disable",
          "admin-webhook-disable - /v1/admin/webhooks/" ID "/disable" },
        { "POST /v1/admin/webhooks/" ID "/enable",
          "admin-webhook-enable - /v1/admin/webhooks/" ID "/enable" },
        { "POST /v1/admin/webhooks/" ID "/test",
          "admin-webhook-test - /v1/admin/webhooks/" ID "/test" },
        { "GET /v1/admin/deliveries", "admin-deliveries - /v1/admin/deliveries" },
        { "POST /v1/admin/messages/" ID "/replay",
          "admin-replay - /v1/admin/messages/" ID "/replay" },
        { "GET /v1/admin/effects?provider=p", "admin-effects - /v1/admin/effects" },
        { "GET /v1/admin/listings", "admin-listings - /v1/admin/listings" },
        { "POST /v1/admin/evidence", "admin-evidence - /v1/admin/evidence" },
        { "GET /v1/admin/evidence", "method-not-allowed POST" },
        { "GET /v1/admin/webhooks/" ID, "method-not-allowed PUT" },
        { "DELETE /v1/admin/webhooks/" ID, "method-not-allowed PUT" },
        { "GET /v1/admin", "not-found" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].line);
        EXPECT_TEXT(describe(rows[i].line), rows[i].expected);
    }
    assert_true(idem_route_is_admin(IDEM_ROUTE_ADMIN_LIST));
    assert_true(idem_route_is_admin(IDEM_ROUTE_ADMIN_RESTORED_END));
    assert_true(idem_route_is_admin(IDEM_ROUTE_ADMIN_CASES));
    assert_true(idem_route_is_admin(IDEM_ROUTE_ADMIN_REPLAY));
    assert_true(idem_route_is_admin(IDEM_ROUTE_ADMIN_EVIDENCE));
    assert_false(idem_route_is_admin(IDEM_ROUTE_CALLBACK));
    assert_false(idem_route_is_admin(IDEM_ROUTE_METRICS));
    assert_false(idem_route_is_admin(IDEM_ROUTE_KEYED));
}

static void the_id_of_the_path_is_read(void **state)
{
    (void)state;
    struct idem_net_request request = request_make("GET /v1/payments/" ID_UPPER, "");
    struct idem_route route;
    struct idem_fault fault;
    struct idem_buf allow = { 0 };
    struct idem_uid id;
    assert_true(idem_uid_parse(IDEM_STR(ID), &id));
    assert_true(idem_route_find(&request, &route, &allow, &fault));
    assert_true(idem_uid_equal(route.id, id));
}

/* The name of a provider's entry is any segment that could be one. */
static void a_provider_is_named_by_its_entry(void **state)
{
    static const struct {
        const char *line;
        const char *expected;
        const char *name;
    } rows[] = {
        { "POST /v1/callbacks/sandbox", "callback - /v1/callbacks/sandbox", "sandbox" },
        { "POST /v1/callbacks/%73andbox", "callback - /v1/callbacks/sandbox", "sandbox" },
        { "POST /v1/callbacks/stripe-eu?x=1", "callback - /v1/callbacks/stripe-eu", "stripe-eu" },
        { "POST /v1/callbacks/12345678901234567890123456789012",
          "callback - /v1/callbacks/12345678901234567890123456789012",
          "12345678901234567890123456789012" },
        { "POST /v1/callbacks/123456789012345678901234567890123", "not-found", "" },
        { "POST /v1/callbacks/", "not-found", "" },
        { "POST /v1/callbacks", "not-found", "" },
        { "POST /v1/callbacks/..", "not-found", "" },
        { "POST /v1/callbacks/a%2Fb", "not-found", "" },
        { "GET /v1/callbacks/sandbox", "method-not-allowed POST", "" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        char methods[32];
        struct idem_buf allow;
        struct idem_fault fault;
        struct idem_route route;
        struct idem_net_request request = request_make(rows[i].line, "");
        print_message("# %s\n", rows[i].line);
        EXPECT_TEXT(describe(rows[i].line), rows[i].expected);
        idem_buf_init(&allow, methods, sizeof(methods));
        if (idem_route_find(&request, &route, &allow, &fault)) {
            EXPECT_TEXT(idem_route_name(&route), rows[i].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_provider_is_named_by_its_entry),
        cmocka_unit_test(every_resource_and_nothing_else),
        cmocka_unit_test(operators_have_resources_of_their_own),
        cmocka_unit_test(the_id_of_the_path_is_read),
    };
    return cmocka_run_group_tests_name("api/route", tests, NULL, NULL);
}
