/*
 * Who calls.
 *
 * Goal: only a token whose digest is configured names an account, in whatever form the header may
 * legally have, and only granted provider entries may be used.
 *
 * Method: two configured accounts, a table of Authorization fields, and who was found.
 */
#include "api/credential.h"

#include "request.h"

static const struct idem_str alice_entries[] = { { "bridge", 6 }, { "sandbox", 7 } };

static struct idem_digester *digester;
static struct idem_credential credentials[2];
static struct idem_api_options options;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(idem_digester_create(&digester, NULL), IDEM_OK);
    credentials[0] = (struct idem_credential){
        .secret_sha256 = idem_digest_sha256(digester, IDEM_STR("token-of-alice")),
        .principal = IDEM_STR("alice"),
        .providers = alice_entries,
        .provider_count = IDEM_ARRAY_COUNT(alice_entries),
    };
    credentials[1] = (struct idem_credential){
        .secret_sha256 = idem_digest_sha256(digester, IDEM_STR("t0k/en+of_b~o.b==")),
        .principal = IDEM_STR("bob"),
    };
    options = (struct idem_api_options){ .credentials = credentials, .credential_count = 2 };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    idem_digester_destroy(digester);
    return 0;
}

static void only_a_configured_token_is_somebody(void **state)
{
    static const struct {
        const char *fields;
        const char *expected;
    } rows[] = {
        { "Authorization: Bearer token-of-alice", "alice" },
        { "authorization: bearer token-of-alice", "alice" },
        { "Authorization: Bearer  token-of-alice", "alice" },
        { "Authorization: Bearer t0k/en+of_b~o.b==", "bob" },
        { "", "nobody" },
        { "Authorization: ", "nobody" },
        { "Authorization: Bearer", "nobody" },
        { "Authorization: Bearer ", "nobody" },
        { "Authorization: token-of-alice", "nobody" },
        { "Authorization: Basic token-of-alice", "nobody" },
        { "Authorization: Bearer token-of-alic", "nobody" },
        { "Authorization: Bearer token-of-alicee", "nobody" },
        { "Authorization: Bearer Token-of-alice", "nobody" },
        { "Authorization: Bearer token-of-alice=", "nobody" },
        { "Authorization: Bearer token-of-alice x", "nobody" },
        { "Authorization: Bearer token-of-alice, Bearer token-of-alice", "nobody" },
        { "Authorization: Bearer token-of-alice\nAuthorization: Bearer token-of-alice", "nobody" },
        { "Authorization: Bearer ==", "nobody" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].fields);
        struct idem_net_request request = request_make("GET /", rows[i].fields);
        struct idem_fault fault = { 0 };
        const struct idem_credential *found =
            idem_credential_find(&options, digester, &request, &fault);
        EXPECT_TEXT(found == NULL ? IDEM_STR("nobody") : found->principal, rows[i].expected);
        assert_int_equal(fault.problem,
                         found == NULL ? IDEM_PROBLEM_UNAUTHENTICATED : IDEM_PROBLEM_NONE);
    }
}

static void provider_entries_are_granted_by_name(void **state)
{
    (void)state;
    assert_true(idem_credential_grants(&credentials[0], IDEM_STR("bridge")));
    assert_true(idem_credential_grants(&credentials[0], IDEM_STR("sandbox")));
    assert_false(idem_credential_grants(&credentials[0], IDEM_STR("sand")));
    assert_false(idem_credential_grants(&credentials[0], IDEM_STR("")));
    assert_false(idem_credential_grants(&credentials[1], IDEM_STR("bridge")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_configured_token_is_somebody),
        cmocka_unit_test(provider_entries_are_granted_by_name),
    };
    return cmocka_run_group_tests_name("api/credential", tests, setup, teardown);
}
