/*
 * The system's random bytes.
 *
 * Goal: nobody gets bytes that somebody has had, whatever the sizes asked for, although they are
 * fetched in advance; and what was handed out does not stay behind.
 *
 * Method: many fills of sizes that do not divide the pool, compared as sets of 8 bytes.
 */
#include "base/random.h"

#include <string.h>

#include "lib/test.h"

#define PIECE  8
#define PIECES 4096

static int piece_compare(const void *left, const void *right)
{
    return memcmp(left, right, PIECE);
}

static void no_bytes_are_handed_out_twice(void **state)
{
    (void)state;
    static uint8_t pieces[PIECES][PIECE];
    struct idem_random random;
    idem_random_init_system(&random);
    for (size_t i = 0; i < PIECES; i++) {
        uint8_t between[24];
        idem_random_fill(&random, pieces[i], PIECE);
        idem_random_fill(&random, between, i % sizeof(between));
    }
    qsort(pieces, PIECES, PIECE, piece_compare);
    for (size_t i = 1; i < PIECES; i++) {
        assert_memory_not_equal(pieces[i - 1], pieces[i], PIECE);
    }
}

static void any_size_is_filled_to_its_end_and_no_further(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        PIECE,
        33,
        IDEM_RANDOM_POOL - 1,
        IDEM_RANDOM_POOL,
        IDEM_RANDOM_POOL + 1,
        (size_t)4 * IDEM_RANDOM_POOL,
    };
    uint8_t bytes[4 * IDEM_RANDOM_POOL + PIECE] = { 0 };
    const uint8_t untouched[PIECE] = { 0 };
    struct idem_random random;
    idem_random_init_system(&random);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i];
        idem_random_fill(&random, bytes, size);
        assert_memory_not_equal(bytes + size - PIECE, untouched, PIECE);
        assert_memory_equal(bytes + size, untouched, PIECE);
    }
}

static void what_was_handed_out_is_wiped(void **state)
{
    (void)state;
    static const uint8_t wiped[IDEM_RANDOM_POOL];
    uint8_t bytes[IDEM_RANDOM_POOL];
    struct idem_random random;
    idem_random_init_system(&random);
    idem_random_fill(&random, bytes, 16);
    assert_memory_equal(random.pool + random.left, wiped, 16);
    idem_random_fill(&random, bytes, random.left);
    assert_int_equal(random.left, 0);
    assert_memory_equal(random.pool, wiped, sizeof(wiped));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_are_handed_out_twice),
        cmocka_unit_test(any_size_is_filled_to_its_end_and_no_further),
        cmocka_unit_test(what_was_handed_out_is_wiped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
