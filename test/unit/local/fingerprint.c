/*
 * Fingerprints: the same meaning has the same one, another meaning another one, and what is not
 * JSON has none. The known values are those of sha256sum.
 */
#include "idem/fingerprint.h"

#include "lib/test.h"

static struct idem_local_error error;

static struct idem_local_fingerprint of_json(const char *text)
{
    struct idem_local_fingerprint made = { .bytes = { 0 } };
    if (idem_local_fingerprint_json(text, strlen(text), &made, &error) != IDEM_LOCAL_OK) {
        fail_msg("%s: %s", text, error.text);
    }
    return made;
}

static struct idem_local_fingerprint of_bytes(const char *text)
{
    struct idem_local_fingerprint made = { .bytes = { 0 } };
    assert_int_equal(idem_local_fingerprint_bytes(text, strlen(text), &made, &error),
                     IDEM_LOCAL_OK);
    return made;
}

static void the_same_meaning_is_the_same(void **state)
{
    (void)state;
    static const char *const same[] = {
        "{\"amount\":1,\"to\":\"ab\"}",
        " { \"to\" : \"ab\", \"amount\" : 1.0 } ",
        "{\"\\u0074o\":\"a\\u0062\",\"amount\":10e-1}",
    };
    const struct idem_local_fingerprint first = of_json(same[0]);
    for (size_t i = 1; i < sizeof(same) / sizeof(same[0]); i++) {
        const struct idem_local_fingerprint other = of_json(same[i]);
        assert_memory_equal(&first, &other, sizeof(first));
    }
    /* Known to others: the digest of the canonical form. */
    const struct idem_local_fingerprint form = of_bytes("{\"amount\":1,\"to\":\"ab\"}");
    assert_memory_equal(&first, &form, sizeof(first));
}

static void another_meaning_is_another(void **state)
{
    (void)state;
    static const char *const others[][2] = {
        { "1", "\"1\"" },
        { "9007199254740992", "9007199254740993" },
        { "[1,2]", "[2,1]" },
        { "{\"a\":null}", "{}" },
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const struct idem_local_fingerprint one = of_json(others[i][0]);
        const struct idem_local_fingerprint two = of_json(others[i][1]);
        assert_memory_not_equal(&one, &two, sizeof(one));
    }
}

static void what_is_not_strict_json_has_none(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",    "{\"a\":1,\"a\":2}",     "{\"a\":1,\"\\u0061\":2}", "01", "[1", "\"\xff\"",
        "1 2", "1e99999999999999999999"
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct idem_local_fingerprint made = { .bytes = { 7 } };
        error.text[0] = '\0';
        assert_int_equal(idem_local_fingerprint_json(bad[i], strlen(bad[i]), &made, &error),
                         IDEM_LOCAL_E_INVALID);
        assert_int_equal(made.bytes[0], 7);
        assert_true(error.text[0] != '\0');
    }
    assert_int_equal(idem_local_fingerprint_json(NULL, 0, NULL, NULL), IDEM_LOCAL_E_INVALID);
}

static void the_largest_is_taken_and_no_larger_one(void **state)
{
    (void)state;
    const size_t size = 1048576;
    struct idem_local_fingerprint made;
    char *text = malloc(size + 1);
    assert_non_null(text);
    /* "[1,1,...,1 ]": as many tokens as so many bytes can have. */
    for (size_t i = 1; i < size; i++) {
        text[i] = i % 2 == 1 ? '1' : ',';
    }
    text[0] = '[';
    text[size - 2] = ' ';
    text[size - 1] = ']';
    text[size] = ' ';
    assert_int_equal(idem_local_fingerprint_json(text, size, &made, &error), IDEM_LOCAL_OK);
    assert_int_equal(idem_local_fingerprint_json(text, size + 1, &made, &error),
                     IDEM_LOCAL_E_INVALID);
    free(text);
}

static void bytes_are_what_sha256sum_says(void **state)
{
    (void)state;
    static const uint8_t abc[4] = { 0xba, 0x78, 0x16, 0xbf };
    static const uint8_t none[4] = { 0xe3, 0xb0, 0xc4, 0x42 };
    struct idem_local_fingerprint made = of_bytes("abc");
    assert_memory_equal(made.bytes, abc, sizeof(abc));
    assert_int_equal(idem_local_fingerprint_bytes(NULL, 0, &made, &error), IDEM_LOCAL_OK);
    assert_memory_equal(made.bytes, none, sizeof(none));
    assert_int_equal(idem_local_fingerprint_bytes(NULL, 1, &made, &error), IDEM_LOCAL_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_meaning_is_the_same),
        cmocka_unit_test(another_meaning_is_another),
        cmocka_unit_test(what_is_not_strict_json_has_none),
        cmocka_unit_test(the_largest_is_taken_and_no_larger_one),
        cmocka_unit_test(bytes_are_what_sha256sum_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
