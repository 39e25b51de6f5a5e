/*
 * The dialects: what each API is sent, and for how long its keys are trusted.
 *
 * Goal: every line is what the API's own documentation says, written here a second time by hand; no
 * window is longer than what was promised, nor as long; keys are neither cut nor changed.
 *
 * Method: a table of what is promised; keys at both ends of every limit and of the alphabet.
 */
#include "client/dialect.h"

#include "base/clock.h"
#include "lib/test.h"

#define MINUTE (60 * IDEM_US_PER_SECOND)
#define HOUR   (60 * MINUTE)

static const struct {
    const char *name;
    const char *line; /* For the key k"1\ */
    size_t key_max;
    int64_t promised_us; /* By the API; 0: nothing is. */
    int64_t window_us;
    const char *replayed;
    const char *should_retry;
    bool echoes_and_has_operations;
} promises[] = {
    { "idem", "Idempotency-Key: \"k\\\"1\\\\\"", 255, 30 * IDEM_US_PER_DAY, 29 * IDEM_US_PER_DAY,
      "Idempotent-Replayed", NULL, true },
    { "ietf", "Idempotency-Key: \"k\\\"1\\\\\"", 255, 0, HOUR, NULL, NULL, false },
    { "stripe", "Idempotency-Key: k\"1\\", 255, 24 * HOUR, 23 * HOUR, "Idempotent-Replayed",
      "Stripe-Should-Retry", false },
    { "adyen", "Idempotency-Key: k\"1\\", 64, 7 * IDEM_US_PER_DAY, 6 * IDEM_US_PER_DAY, NULL,
      "transient-error", false },
    { "paypal", "PayPal-Request-Id: k\"1\\", 108, 3 * HOUR, 150 * MINUTE, NULL, NULL, false },
};

static void expect_same(const char *actual, const char *expected)
{
    if (expected == NULL) {
        assert_null(actual);
        return;
    }
    assert_non_null(actual);
    assert_string_equal(actual, expected);
}

static void every_dialect_is_what_its_api_promises(void **state)
{
    (void)state;
    assert_int_equal(sizeof(promises) / sizeof(promises[0]), IDEM_DIALECT_COUNT - 1);
    for (size_t i = 0; i < sizeof(promises) / sizeof(promises[0]); i++) {
        const struct idem_dialect *dialect = idem_dialect_find(idem_str_from(promises[i].name));
        assert_non_null(dialect);
        assert_string_equal(dialect->name, promises[i].name);
        assert_ptr_equal(dialect, idem_dialect_get(dialect->id));
        assert_int_equal(dialect->key_max, promises[i].key_max);
        assert_int_equal(dialect->window_us, promises[i].window_us);
        assert_true(promises[i].promised_us == 0 || dialect->window_us < promises[i].promised_us);
        expect_same(dialect->replayed, promises[i].replayed);
        expect_same(dialect->should_retry, promises[i].should_retry);
        assert_int_equal(dialect->echoes_key, promises[i].echoes_and_has_operations);
        assert_int_equal(dialect->has_operations, promises[i].echoes_and_has_operations);
        assert_int_not_equal(dialect->shape, IDEM_SHAPE_NONE);
    }
    const struct idem_dialect *idem = idem_dialect_get(IDEM_DIALECT_IDEM);
    assert_string_equal(idem->first_sent, "Repeatability-First-Sent");
    assert_string_equal(idem->expires, "Idempotency-Expires");
}

static void a_key_is_sent_as_the_api_spells_it_and_never_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(promises) / sizeof(promises[0]); i++) {
        const struct idem_dialect *dialect = idem_dialect_find(idem_str_from(promises[i].name));
        char memory[64];
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_dialect_key_line(dialect, IDEM_STR("k\"1\\"), &buf);
        EXPECT_TEXT(idem_buf_str(&buf), promises[i].line);

        char key[257];
        memset(key, 'k', sizeof(key));
        struct idem_str longest = { .data = key, .len = dialect->key_max };
        struct idem_str longer = { .data = key, .len = dialect->key_max + 1 };
        assert_true(idem_dialect_takes_key(dialect, longest));
        assert_false(idem_dialect_takes_key(dialect, longer));
        assert_false(idem_dialect_takes_key(dialect, IDEM_STR("")));
    }
}

static void a_key_is_visible_ascii(void **state)
{
    (void)state;
    const struct idem_dialect *dialect = idem_dialect_get(IDEM_DIALECT_STRIPE);
    for (int byte = 0; byte < 256; byte++) {
        char key[3] = { 'a', (char)byte, 'b' };
        bool takes = idem_dialect_takes_key(dialect, (struct idem_str){ .data = key, .len = 3 });
        assert_int_equal(takes, byte >= 0x21 && byte <= 0x7E);
    }
}

static void a_name_that_is_none_is_not_found(void **state)
{
    (void)state;
    static const char *const names[] = { "", "Stripe", "stripe ", "strip", "any", "none" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_null(idem_dialect_find(idem_str_from(names[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dialect_is_what_its_api_promises),
        cmocka_unit_test(a_key_is_sent_as_the_api_spells_it_and_never_cut),
        cmocka_unit_test(a_key_is_visible_ascii),
        cmocka_unit_test(a_name_that_is_none_is_not_found),
    };
    return cmocka_run_group_tests_name("client/dialect", tests, NULL, NULL);
}
