/*
 * Signatures of events over time and body: Stripe's scheme and the bridge protocol's.
 *
 * Goal: what Stripe signs is accepted inside five minutes in both directions, under any of the
 * secrets that are valid; everything else is refused, and says why.
 *
 * Method: vectors that Stripe's own library made (stripe_vectors.def); vectors of our own, made
 * with openssl(1) and not with the code under test; and every byte of a good one changed.
 */
#include "provider/signature.h"

#include "base/clock.h"

#include "lib/test.h"

#define SIGNED_S INT64_C(1764400000)

/* printf '%s' '1764400000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_a */
#define BODY   "{\"id\":\"evt_1\"}"
#define WITH_A "f4406323ffd7b90eee8dc45c3eeaad293f2346742efcbe5d3b6e38f1ebd6e2e6"
/* ... -hmac whsec_b */
#define WITH_B "c397d3bd5b4e375c7b9fca6b66a192cc0ea1bb5cf4caf94f6424b089f7e82369"
/* printf '%s' '1764400000{"id":"evt_1"}' ..., without the point */
#define NO_POINT "89ab592fbe21932b8236759389f2ccd3bab1f7c0f8a84c063f4f94d1051e2ba1"

static struct idem_digester *digester_make(void)
{
    struct idem_digester *digester = NULL;
    struct idem_error error;
    assert_int_equal(idem_digester_create(&digester, &error), IDEM_OK);
    return digester;
}

/* A head of one field, whatever its name is. */
static struct idem_str field_of(const void *head, struct idem_str name)
{
    EXPECT_TEXT(name, "Some-Signature");
    return idem_str_from(head);
}

static enum idem_callback_verdict judge_with(const struct idem_str *secrets,
                                             size_t secret_count,
                                             const struct idem_callback_in *in,
                                             int64_t signed_s)
{
    struct idem_digester *digester = digester_make();
    const struct idem_callback_place place = {
        .digester = digester,
        .secrets = secrets,
        .secret_count = secret_count,
    };
    int64_t told_s = -7;
    enum idem_callback_verdict verdict =
        idem_signature_judge(in, &place, IDEM_STR("Some-Signature"), &told_s);
    assert_int_equal(told_s, verdict == IDEM_CALLBACK_OK ? signed_s : -7);
    idem_digester_destroy(digester);
    return verdict;
}

static enum idem_callback_verdict judge(const char *signature, struct idem_str body, int64_t now_s)
{
    static const struct idem_str secrets[] = {
        { .data = "whsec_old", .len = 9 },
        { .data = "whsec_a", .len = 7 },
    };
    const struct idem_callback_in in = {
        .field = field_of,
        .head = signature,
        .body = body,
        .now_us = now_s * IDEM_US_PER_SECOND + IDEM_US_PER_SECOND - 1,
    };
    return judge_with(secrets, IDEM_ARRAY_COUNT(secrets), &in, SIGNED_S);
}

#define OK     IDEM_CALLBACK_OK
#define FORGED IDEM_CALLBACK_FORGED
#define STALE  IDEM_CALLBACK_STALE
#define FUTURE IDEM_CALLBACK_FUTURE

static void a_signature_is_judged_by_the_table(void **state)
{
    (void)state;
    static const struct {
        const char *signature;
        int64_t later_s; /* Our clock behind the signature's time. */
        enum idem_callback_verdict verdict;
    } rows[] = {
        { "t=1764400000,v1=" WITH_A, 0, OK },
        { "t=1764400000,v1=" WITH_A, 300, OK },
        { "t=1764400000,v1=" WITH_A, 301, STALE },
        { "t=1764400000,v1=" WITH_A, -300, OK },
        { "t=1764400000,v1=" WITH_A, -301, FUTURE },
        { "t=1764400000,v1=" WITH_A, -3600, FUTURE },
        { "t=1764400000,v1=" WITH_B ",v1=" WITH_A, 0, OK }, /* While the secret is changed. */
        { "t=1764400000,v1=" WITH_A ",v1=" WITH_B, 0, OK },
        { "t=1764400000,v0=" WITH_B ",v1=" WITH_A, 0, OK },
        { "v1=" WITH_A ",t=1764400000", 0, OK },
        { "t=1764400000, v1=" WITH_A ",", 0, OK },
        { "t=1764400000,v1=abc,v1=" WITH_A, 0, OK },
        { "t=1764400000,v0=" WITH_A, 0, FORGED }, /* v0 is no scheme for us. */
        { "t=1764400000,v1=" WITH_B, 0, FORGED },
        { "t=1764400000,v1=" WITH_B, 9999, FORGED }, /* Forged comes before late. */
        { "t=1764400000,v1=" NO_POINT, 0, FORGED },
        { "t=1764400001,v1=" WITH_A, 0, FORGED },
        { "t=01764400000,v1=" WITH_A, 0, FORGED }, /* Not the text that was signed. */
        { "t=1764400000,t=1764400000,v1=" WITH_A, 0, FORGED },
        { "t=1764400000,v1=" WITH_A ",t=1764400000", 0, FORGED },
        { "t=,v1=" WITH_A, 0, FORGED },
        { "t=-1,v1=" WITH_A, 0, FORGED },
        { "t=99999999999999999999,v1=" WITH_A, 0, FORGED },
        { "v1=" WITH_A, 0, FORGED },
        { "t=1764400000", 0, FORGED },
        { "t=1764400000,v1=" WITH_A "0", 0, FORGED },
        { "t=1764400000,v1=", 0, FORGED },
        { "t=1764400000;v1=" WITH_A, 0, FORGED },
        { WITH_A, 0, FORGED },
        { "", 0, FORGED },
    };

    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        enum idem_callback_verdict verdict =
            judge(rows[i].signature, IDEM_STR(BODY), SIGNED_S + rows[i].later_s);
        if (verdict != rows[i].verdict) {
            print_error("%s %+lld: expected %d, got %d\n", rows[i].signature,
                        (long long)rows[i].later_s, (int)rows[i].verdict, (int)verdict);
            fail();
        }
    }
}

static void the_body_counts_to_its_last_byte(void **state)
{
    (void)state;
    char body[] = BODY;

    for (size_t i = 0; i + 1 < sizeof(body); i++) {
        body[i] = (char)(body[i] ^ 1);
        struct idem_str text = { .data = body, .len = sizeof(body) - 1 };
        assert_int_equal(judge("t=1764400000,v1=" WITH_A, text, SIGNED_S), FORGED);
        assert_int_equal(
            judge("t=1764400000,v1=" WITH_A, idem_str_slice(IDEM_STR(BODY), 0, i), SIGNED_S),
            FORGED);
        body[i] = (char)(body[i] ^ 1);
    }
    assert_int_equal(judge("t=1764400000,v1=" WITH_A, IDEM_STR(BODY "\n"), SIGNED_S), FORGED);
}

static void every_digit_of_a_signature_counts(void **state)
{
    (void)state;
    char signature[] = "t=1764400000,v1=" WITH_A;

    for (size_t i = strlen("t=1764400000,v1="); i + 1 < sizeof(signature); i++) {
        char digit = signature[i];
        signature[i] = digit == '0' ? '1' : '0';
        assert_int_equal(judge(signature, IDEM_STR(BODY), SIGNED_S), FORGED);
        signature[i] = digit;
    }
}

struct vector {
    const char *secret;
    int64_t signed_s;
    const char *signature;
    const char *body;
};

#define VECTOR(the_secret, the_time, the_signature, the_body) \
    { (the_secret), (the_time), (the_signature), (the_body) },
static const struct vector vectors[] = {
#include "stripe_vectors.def"
};
#undef VECTOR

static enum idem_callback_verdict vector_judge(const struct vector *vector,
                                               struct idem_str secret,
                                               int64_t now_s)
{
    const struct idem_callback_in in = {
        .field = field_of,
        .head = vector->signature,
        .body = idem_str_from(vector->body),
        .now_us = now_s * IDEM_US_PER_SECOND,
    };
    return judge_with(&secret, 1, &in, vector->signed_s);
}

static void what_stripes_library_signs_is_accepted(void **state)
{
    (void)state;
    assert_true(IDEM_ARRAY_COUNT(vectors) >= 7);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(vectors); i++) {
        const struct vector *vector = &vectors[i];
        struct idem_str secret = idem_str_from(vector->secret);
        assert_int_equal(vector_judge(vector, secret, vector->signed_s), OK);
        assert_int_equal(vector_judge(vector, secret, vector->signed_s + 301), STALE);
        assert_int_equal(vector_judge(vector, secret, vector->signed_s - 301), FUTURE);
        assert_int_equal(vector_judge(vector, IDEM_STR("whsec_other"), vector->signed_s), FORGED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_is_judged_by_the_table),
        cmocka_unit_test(the_body_counts_to_its_last_byte),
        cmocka_unit_test(every_digit_of_a_signature_counts),
        cmocka_unit_test(what_stripes_library_signs_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
