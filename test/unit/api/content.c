/*
 * What the headers say about the body.
 *
 * Goal: a body is taken only as application/json in UTF-8 and only if it is the one that its digest
 * was made of.
 *
 * Method: tables of fields with the problem that they cause. The digests are those of RFC 9530's
 * example body and were made with another program (sha256sum, sha512sum, base64).
 */
#include "api/content.h"

#include "request.h"

#define BODY   "{\"hello\": \"world\"}\n"
#define SHA256 "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
#define SHA512                                  \
    "YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHToh" \
    "q4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg=="
#define EMPTY_SHA256 "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

struct row {
    const char *fields;
    const char *body;
    enum idem_problem problem; /* NONE: taken. */
};

static void media_types(void **state)
{
    static const struct row rows[] = {
        { "Content-Type: application/json", BODY, IDEM_PROBLEM_NONE },
        { "content-type: Application/JSON", BODY, IDEM_PROBLEM_NONE },
        { "Content-Type: application/json; charset=utf-8", BODY, IDEM_PROBLEM_NONE },
        { "Content-Type: application/json;charset=\"UTF-8\"", BODY, IDEM_PROBLEM_NONE },
        { "Content-Type: application/json\nContent-Encoding: identity", BODY, IDEM_PROBLEM_NONE },
        { "", "", IDEM_PROBLEM_NONE },
        { "", BODY, IDEM_PROBLEM_MEDIA_TYPE },
        { "Content-Type: ", BODY, IDEM_PROBLEM_MEDIA_TYPE },
        { "Content-Type: text/plain", "", IDEM_PROBLEM_MEDIA_TYPE },
        { "Content-Type: text/plain", BODY, IDEM_PROBLEM_MEDIA_TYPE },
        { "Content-Type: application/json5", BODY, IDEM_PROBLEM_MEDIA_TYPE },
        { "Content-Type: application/problem+json", BODY, IDEM_PROBLEM_MEDIA_TYPE },
        { "Content-Type: application/json; charset=latin1", BODY, IDEM_PROBLEM_MEDIA_TYPE },
        { "Content-Type: application/json; profile=x", BODY, IDEM_PROBLEM_MEDIA_TYPE },
        { "Content-Type: application/json, text/plain", BODY, IDEM_PROBLEM_MEDIA_TYPE },
        { "Content-Type: application/json\nContent-Type: application/json", BODY,
          IDEM_PROBLEM_MEDIA_TYPE },
        { "Content-Type: application/json\nContent-Encoding: gzip", BODY, IDEM_PROBLEM_MEDIA_TYPE },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].fields);
        struct idem_net_request request = request_make("POST /", rows[i].fields);
        request.body = idem_str_from(rows[i].body);
        struct idem_fault fault = { 0 };
        bool taken = idem_content_type_check(&request, &fault);
        assert_true(taken == (rows[i].problem == IDEM_PROBLEM_NONE));
        assert_int_equal(fault.problem, rows[i].problem);
    }
}

#define DIGEST "Content-Digest: "

static void digests(void **state)
{
    static const struct row rows[] = {
        { "", BODY, IDEM_PROBLEM_NONE },
        { DIGEST "sha-256=:" SHA256 ":", BODY, IDEM_PROBLEM_NONE },
        { DIGEST "sha-512=:" SHA512 ":", BODY, IDEM_PROBLEM_NONE },
        { DIGEST "sha-256=:" SHA256 ":, sha-512=:" SHA512 ":", BODY, IDEM_PROBLEM_NONE },
        { DIGEST "sha-256=:" SHA256 ":\n" DIGEST "sha-512=:" SHA512 ":", BODY, IDEM_PROBLEM_NONE },
        { DIGEST "sha-256=:" SHA256 ":;q=1", BODY, IDEM_PROBLEM_NONE },
        { DIGEST "sha-256=:" EMPTY_SHA256 ":", "", IDEM_PROBLEM_NONE },
        { DIGEST "md5=:AAAA:", BODY, IDEM_PROBLEM_NONE },
        { DIGEST "md5=:AAAA:, sha-256=:" SHA256 ":", BODY, IDEM_PROBLEM_NONE },
        { DIGEST "sha-256=:" EMPTY_SHA256 ":", BODY, IDEM_PROBLEM_DIGEST_MISMATCH },
        { DIGEST "sha-256=:" SHA512 ":", BODY, IDEM_PROBLEM_DIGEST_MISMATCH },
        { DIGEST "sha-512=:" SHA256 ":", BODY, IDEM_PROBLEM_DIGEST_MISMATCH },
        { DIGEST "sha-256=::", BODY, IDEM_PROBLEM_DIGEST_MISMATCH },
        { DIGEST "sha-512=:" SHA512 ":, sha-256=:" EMPTY_SHA256 ":", BODY,
          IDEM_PROBLEM_DIGEST_MISMATCH },
        { DIGEST "sha-256=" SHA256, BODY, IDEM_PROBLEM_HEADER_INVALID },
        { DIGEST "sha-256=\"" SHA256 "\"", BODY, IDEM_PROBLEM_HEADER_INVALID },
        { DIGEST "sha-256", BODY, IDEM_PROBLEM_HEADER_INVALID },
        { DIGEST "sha-256=:", BODY, IDEM_PROBLEM_HEADER_INVALID },
        { DIGEST "=:AAAA:", BODY, IDEM_PROBLEM_HEADER_INVALID },
        { DIGEST, BODY, IDEM_PROBLEM_NONE }, /* An empty list. */
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].fields);
        struct idem_net_request request = request_make("POST /", rows[i].fields);
        request.body = idem_str_from(rows[i].body);
        struct idem_fault fault = { 0 };
        bool taken = idem_content_digest_check(&request, &fault);
        assert_true(taken == (rows[i].problem == IDEM_PROBLEM_NONE));
        assert_int_equal(fault.problem, rows[i].problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(media_types),
        cmocka_unit_test(digests),
    };
    return cmocka_run_group_tests_name("api/content", tests, NULL, NULL);
}
