/*
 * mutate.h - new inputs out of old ones, the same for the same seed on every machine.
 *
 * For where libFuzzer is not: nothing is learned from a run, so it finds less in an hour than
 * libFuzzer in a minute, and costs nothing but the target's own time.
 */
#ifndef IDEM_TEST_FUZZ_MUTATE_H
#define IDEM_TEST_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_MADE_MAX 8192 /* Bytes of an input that is made; a longer original is cut. */

struct fuzz_bytes {
    uint8_t *data;
    size_t size;
};

struct fuzz_pool {
    struct fuzz_bytes *entries;
    size_t count;
};

/*
 * One to four changes to an entry of `corpus`, which has one: bytes flipped and set, words put in,
 * pieces repeated, left out, cut off, or taken from another entry. `dice` is all its chance. The
 * result is in `ret_data`, FUZZ_MADE_MAX bytes; its size is returned.
 */
size_t fuzz_mutate(const struct fuzz_pool *corpus,
                   const struct fuzz_pool *words,
                   uint64_t dice,
                   uint8_t *ret_data);

#endif /* IDEM_TEST_FUZZ_MUTATE_H */
