/*
 * fuzz.h - what a fuzz target is.
 *
 * A target is a program with one function that takes any bytes and calls abort() if a property does
 * not hold. With libFuzzer the bytes are made up; without it replay.c reads them from files.
 */
#ifndef IDEM_TEST_FUZZ_FUZZ_H
#define IDEM_TEST_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* `data` has exactly `size` bytes. Always returns 0. */
// NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Says which property does not hold for the input, and stops as a crash does. */
#define FUZZ_EXPECT(condition) fuzz_expect((condition), __FILE__, __LINE__, #condition)

static inline void fuzz_expect(bool holds, const char *file, int line, const char *condition)
{
    if (!holds) {
        (void)fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
        abort();
    }
}

/* `value` with one more decimal digit behind it; UINT64_MAX once that does not fit. */
static inline uint64_t fuzz_digit_add(uint64_t value, char digit)
{
    uint64_t added = (uint64_t)(digit - '0');
    return value > (UINT64_MAX - added) / 10 ? UINT64_MAX : value * 10 + added;
}

#endif /* IDEM_TEST_FUZZ_FUZZ_H */
