/*
 * Identifiers.
 *
 * Goal: a UUIDv7 has the bits of RFC 9562, 5.7, with the time first, and reads back as printed; a
 * token is what the random source gave.
 *
 * Method: a random source whose bytes are known; the RFC's own example (A.6).
 */
#include "base/uid.h"

#include "base/clock.h"
#include "base/random.h"
#include "lib/test.h"

static void fill_ones(struct idem_random *random, void *ret_bytes, size_t size)
{
    (void)random;
    memset(ret_bytes, 0xFF, size);
}

static void fill_zeros(struct idem_random *random, void *ret_bytes, size_t size)
{
    (void)random;
    memset(ret_bytes, 0, size);
}

/* The random bits of the example in RFC 9562, A.6, where they fall. */
static void fill_example(struct idem_random *random, void *ret_bytes, size_t size)
{
    static const uint8_t bytes[] = { 0,    0,    0,    0,    0,    0,    0x0C, 0xC3,
                                     0x18, 0xC4, 0xDC, 0x0C, 0x0C, 0x07, 0x39, 0x8F };
    (void)random;
    assert_int_equal(size, sizeof(bytes));
    memcpy(ret_bytes, bytes, sizeof(bytes));
}

static const struct idem_random_ops ones_ops = { .fill = fill_ones };
static const struct idem_random_ops zeros_ops = { .fill = fill_zeros };
static const struct idem_random_ops example_ops = { .fill = fill_example };

static void identifiers_have_the_bits_of_version_7(void **state)
{
    (void)state;
    static const struct {
        int64_t wall_us;
        const struct idem_random_ops *ops;
        const char *text;
    } rows[] = {
        { INT64_C(1645557742000) * 1000 + 999, &example_ops,
          "017f22e2-79b0-7cc3-98c4-dc0c0c07398f" },
        { 0, &zeros_ops, "00000000-0000-7000-8000-000000000000" },
        { 0, &ones_ops, "00000000-0000-7fff-bfff-ffffffffffff" },
        { INT64_C(0x010203040506) * 1000, &zeros_ops, "01020304-0506-7000-8000-000000000000" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_random random = { .ops = rows[i].ops };
        struct idem_buf buf;
        char memory[IDEM_UID_TEXT_LEN];
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_uid_print(idem_uid_make(rows[i].wall_us, &random), &buf);
        EXPECT_TEXT(idem_buf_str(&buf), rows[i].text);
    }
}

static void now_is_the_systems_time(void **state)
{
    (void)state;
    struct idem_clock clock;
    idem_clock_init_system(&clock);
    int64_t before_ms = idem_clock_wall_us(&clock) / IDEM_US_PER_MS;
    struct idem_uid uid = idem_uid_make_now();
    int64_t after_ms = idem_clock_wall_us(&clock) / IDEM_US_PER_MS;
    int64_t said_ms = 0;
    for (size_t i = 0; i < 6; i++) {
        said_ms = said_ms << 8 | uid.bytes[i];
    }
    assert_in_range(said_ms, before_ms, after_ms);
    assert_false(idem_uid_equal(uid, idem_uid_make_now()));
}

static void tokens_are_all_random(void **state)
{
    (void)state;
    struct idem_random random = { .ops = &ones_ops };
    struct idem_uid token = idem_uid_make_token(&random);
    for (size_t i = 0; i < sizeof(token.bytes); i++) {
        assert_int_equal(token.bytes[i], 0xFF);
    }
    idem_random_init_system(&random);
    assert_false(idem_uid_equal(idem_uid_make_token(&random), idem_uid_make_token(&random)));
}

static void only_the_printed_form_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {
        { "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", true },
        { "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", true },
        { "00000000-0000-0000-0000-000000000000", true },
        { "", false },
        { "017f22e279b07cc398c4dc0c0c07398f", false },
        { "017f22e2-79b0-7cc3-98c4-dc0c0c07398", false },
        { "017f22e2-79b0-7cc3-98c4-dc0c0c07398f0", false },
        { "{17f22e2-79b0-7cc3-98c4-dc0c0c07398}", false },
        { "017f22e2-79b0-7cc3-98c4-dc0c0c07398g", false },
        { "017f22e2-79b0-7cc3-98c4+dc0c0c07398f", false },
        { "017f22e-279b0-7cc3-98c4-dc0c0c07398f", false },
        { " 17f22e2-79b0-7cc3-98c4-dc0c0c07398f", false },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_uid uid = { .bytes = { 7 } };
        bool valid = idem_uid_parse(idem_str_from(rows[i].text), &uid);
        assert_true(valid == rows[i].valid);
        if (!valid) {
            assert_int_equal(uid.bytes[0], 7);
            continue;
        }
        struct idem_buf buf;
        char memory[IDEM_UID_TEXT_LEN];
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_uid_print(uid, &buf);
        assert_true(idem_str_equal_nocase(idem_buf_str(&buf), idem_str_from(rows[i].text)));
    }
}

static void zero_is_told_from_the_rest(void **state)
{
    (void)state;
    assert_true(idem_uid_is_zero((struct idem_uid){ .bytes = { 0 } }));
    assert_false(idem_uid_is_zero((struct idem_uid){ .bytes = { [15] = 1 } }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identifiers_have_the_bits_of_version_7),
        cmocka_unit_test(now_is_the_systems_time),
        cmocka_unit_test(tokens_are_all_random),
        cmocka_unit_test(only_the_printed_form_is_read),
        cmocka_unit_test(zero_is_told_from_the_rest),
    };
    return cmocka_run_group_tests_name("base/uid", tests, NULL, NULL);
}
