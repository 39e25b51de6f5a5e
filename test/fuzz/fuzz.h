/*
 * fuzz.h - what a fuzz target is.
 *
 * A target is a program with one function that takes any bytes and calls abort() if a property does
 * not hold. With libFuzzer the bytes are made up; without it replay.c reads them from files.
 */
#ifndef IDEM_TEST_FUZZ_FUZZ_H
#define IDEM_TEST_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* `data` has exactly `size` bytes. Always returns 0. */
// NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Says which property does not hold for the input, and stops as a crash does. */
#define FUZZ_EXPECT(condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))

static inline void fuzz_fail(const char *file, int line, const char *condition)
{
    (void)fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition); /* Dying anyway. */
    abort();
}

#endif /* IDEM_TEST_FUZZ_FUZZ_H */
