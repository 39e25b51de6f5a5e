/*
 * What a request shows for itself.
 *
 * Goal: only one bearer token, in whatever form the header may legally have, has a digest; and the
 * digest is that of the token's bytes and nothing else.
 *
 * Method: a table of Authorization fields, and whose token each holds.
 */
#include "api/credential.h"

#include "request.h"

static struct idem_digester *digester;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(idem_digester_create(&digester, NULL), IDEM_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    idem_digester_destroy(digester);
    return 0;
}

static const char *name_of(struct idem_digest digest)
{
    struct idem_digest alice = idem_digest_sha256(digester, IDEM_STR("token-of-alice"));
    struct idem_digest bob = idem_digest_sha256(digester, IDEM_STR("t0k/en+of_b~o.b=="));
    if (idem_digest_equal(digest, alice)) {
        return "alice";
    }
    return idem_digest_equal(digest, bob) ? "bob" : "another";
}

static void only_one_bearer_token_has_a_digest(void **state)
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
        { "Authorization: Bearer token-of-alic", "another" },
        { "Authorization: Bearer token-of-alicee", "another" },
        { "Authorization: Bearer Token-of-alice", "another" },
        { "Authorization: Bearer token-of-alice=", "another" },
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
        struct idem_digest digest;
        bool found = idem_credential_read(digester, &request, &digest, &fault);
        EXPECT_TEXT(idem_str_from(found ? name_of(digest) : "nobody"), rows[i].expected);
        assert_int_equal(fault.problem, found ? IDEM_PROBLEM_NONE : IDEM_PROBLEM_UNAUTHENTICATED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_one_bearer_token_has_a_digest),
    };
    return cmocka_run_group_tests_name("api/credential", tests, setup, teardown);
}
