/*
 * Fingerprints.
 *
 * Goal: the fingerprint is what docs/fingerprint.md says, for ever: a record of today must compare
 * with a request of next year.
 *
 * Method: the vectors of that page, which were made by an independent program; then the order in
 * which a command gets its fingerprints.
 */
#include "api/fingerprint.h"

#include "api/body.h"
#include "api/content.h"
#include "lib/test.h"

#define PAYMENTS "/v1/payments"
#define CAPTURE  "/v1/payments/0197b2f0-1111-7abc-8def-0123456789ab/capture"
#define BODY_A                                                           \
    "{\"order_no\":\"A-17\",\"amount\":\"100.00\",\"currency\":\"CNY\"," \
    "\"provider\":\"sandbox\"}"
#define DIGEST_A "b48e81db603e4e66fbaa831207ecc9510a46fdef134cc7da06234d286cef006c"

static const struct idem_secret secrets[] = {
    { .id = 1, .bytes = { "fingerprint-secret-1-0123456789a", 32 } },
    { .id = 7, .bytes = { "fingerprint-secret-7-0123456789a", 32 } },
};

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

static struct idem_fingerprint_of request_of(const char *path, const char *body)
{
    static struct idem_body json;
    static char canonical_memory[1024];
    struct idem_fault fault;
    struct idem_buf canonical;
    idem_buf_init(&canonical, canonical_memory, sizeof(canonical_memory));
    assert_true(idem_body_parse(&json, idem_str_from(body), &fault));
    assert_true(idem_json_canonical(&json.json, NULL, 0, &canonical));
    return (struct idem_fingerprint_of){
        .method = IDEM_STR("POST"),
        .path = idem_str_from(path),
        .media_type = IDEM_CONTENT_JSON,
        .body = {
            [IDEM_FINGERPRINT_RULE_JSON] = idem_buf_str(&canonical),
            [IDEM_FINGERPRINT_RULE_RAW] = idem_str_from(body),
        },
    };
}

static struct idem_str hex(const struct idem_fingerprint *fingerprint)
{
    static char memory[2 * IDEM_DIGEST_SIZE];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add_hex(&buf, fingerprint->digest.bytes, sizeof(fingerprint->digest.bytes));
    return idem_buf_str(&buf);
}

static void the_vectors_of_the_page_hold(void **state)
{
    static const struct {
        enum idem_fingerprint_rule rule;
        size_t secret;
        const char *path;
        const char *body;
        const char *expected;
    } rows[] = {
        { IDEM_FINGERPRINT_RULE_JSON, 0, PAYMENTS, BODY_A, DIGEST_A },
        { IDEM_FINGERPRINT_RULE_JSON, 0, PAYMENTS,
          "{ \"provider\": \"sandbox\", \"currency\": \"CNY\",\r\n \"amount\": \"100.00\", "
          "\"order_no\": \"\\u0041-17\" }",
          DIGEST_A },
        { IDEM_FINGERPRINT_RULE_RAW, 0, PAYMENTS, BODY_A,
          "a46b11305075ea3328b102841449147f4381bfaff6e411b6612a67cf1e37b4ef" },
        { IDEM_FINGERPRINT_RULE_JSON, 1, PAYMENTS, BODY_A,
          "e8795fdd244dba4611854c17cdd5e3e9e4439db67c03776c1eb06ec9c9f18d8b" },
        { IDEM_FINGERPRINT_RULE_JSON, 0, CAPTURE, "{}",
          "59874688a998009de4a240972ae241cbe9ec4bf74e40826c6c89fafcdd5db369" },
        { IDEM_FINGERPRINT_RULE_JSON, 0, CAPTURE, "{\"amount\":\"60.00\"}",
          "8f2229f20bb35e0317c5a399d7eed3e9fb18d8fedd412a575018b70cc345af14" },
        { IDEM_FINGERPRINT_RULE_JSON, 0, PAYMENTS,
          "{\"metadata\":{\"n\":[1.50,1e2,0.0,-0.25],\"t\":\"\xC3\xA9\\n\"}}",
          "c77eb9bf89904d1069c0d0586d2081d846ef54e3f8348fb2b543b20ebe712dc1" },
        { IDEM_FINGERPRINT_RULE_JSON, 0, PAYMENTS, "{\"metadata\":{\"n\":9007199254740992}}",
          "3abd9bef98ca9041ab304de5d96c3e9010e14e0aaaeabedbf8a072670782764e" },
        { IDEM_FINGERPRINT_RULE_JSON, 0, PAYMENTS, "{\"metadata\":{\"n\":9007199254740993}}",
          "43c215e46c6fed93cb9b8e5c54077de35e00e1e0cbf397f2b6c60ad32c3a9206" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s %s\n", rows[i].path, rows[i].body);
        struct idem_fingerprint_of of = request_of(rows[i].path, rows[i].body);
        struct idem_fingerprint fingerprint =
            idem_fingerprint_make(digester, rows[i].rule, &secrets[rows[i].secret], &of);
        EXPECT_TEXT(hex(&fingerprint), rows[i].expected);
        assert_int_equal(fingerprint.rule_id, rows[i].rule);
        assert_int_equal(fingerprint.secret_id, secrets[rows[i].secret].id);
    }
}

/* Moving a byte from one field to its neighbour, or changing one, makes another fingerprint. */
static void every_field_counts(void **state)
{
    (void)state;
    const struct idem_fingerprint_of of = request_of(PAYMENTS, "{}");
    struct idem_fingerprint_of others[6] = { of, of, of, of, of, of };
    others[0].method = IDEM_STR("PUT");
    others[1].path = IDEM_STR("/v1/payment");
    others[2].query = IDEM_STR("x");
    others[3].media_type = IDEM_STR("application/jso");
    others[4].body[IDEM_FINGERPRINT_RULE_JSON] = IDEM_STR("{ }");
    others[5].path = IDEM_STR("/v1/payment");
    others[5].query = IDEM_STR("s");
    struct idem_digest digest =
        idem_fingerprint_make(digester, IDEM_FINGERPRINT_RULE_JSON, &secrets[0], &of).digest;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(others); i++) {
        struct idem_digest other =
            idem_fingerprint_make(digester, IDEM_FINGERPRINT_RULE_JSON, &secrets[0], &others[i])
                .digest;
        assert_false(idem_digest_equal(digest, other));
    }
}

static void the_current_rule_and_secret_come_first(void **state)
{
    (void)state;
    const struct idem_api_options options = {
        .fingerprint_secrets = secrets,
        .fingerprint_secret_count = IDEM_ARRAY_COUNT(secrets),
    };
    const struct idem_fingerprint_of of = request_of(PAYMENTS, "{}");
    for (enum idem_fingerprint_rule current = IDEM_FINGERPRINT_RULE_JSON;
         current < IDEM_FINGERPRINT_RULE_COUNT; current++) {
        enum idem_fingerprint_rule other = IDEM_FINGERPRINT_RULE_COUNT - current;
        struct idem_accept accept = { 0 };
        idem_fingerprint_fill(digester, &options, current, &of, &accept);
        assert_int_equal(accept.fingerprint_count, 4);
        const struct idem_fingerprint *made = accept.fingerprints;
        assert_true(made[0].rule_id == current && made[0].secret_id == 1);
        assert_true(made[1].rule_id == current && made[1].secret_id == 7);
        assert_true(made[2].rule_id == other && made[2].secret_id == 1);
        assert_true(made[3].rule_id == other && made[3].secret_id == 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_page_hold),
        cmocka_unit_test(every_field_counts),
        cmocka_unit_test(the_current_rule_and_secret_come_first),
    };
    return cmocka_run_group_tests_name("api/fingerprint", tests, setup, teardown);
}
