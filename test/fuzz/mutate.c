/*
 * Every change is one replacement: `cut` bytes at a place give way to others. So there is one place
 * that moves bytes, and what does not fit into an input is left off there.
 */
#include "fuzz/mutate.h"

#include <string.h>

#define CHANGES_MAX 4
#define RUN_MAX     64
#define REPEATS_MAX 8

struct made {
    uint64_t state; /* Of the dice. */
    uint8_t *data;
    size_t size;
};

/* SplitMix64. */
static uint64_t roll(struct made *made)
{
    made->state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t value = made->state;
    value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
    return value ^ value >> 31;
}

/* 0 to `max`. */
static size_t pick(struct made *made, size_t max)
{
    return (size_t)(roll(made) % (max + 1));
}

static size_t smaller(size_t left, size_t right)
{
    return left < right ? left : right;
}

static void replace(struct made *made, size_t at, size_t cut, struct fuzz_bytes with)
{
    cut = smaller(cut, made->size - at);
    with.size = smaller(with.size, FUZZ_MADE_MAX - at);
    size_t rest = smaller(made->size - at - cut, FUZZ_MADE_MAX - at - with.size);
    memmove(made->data + at + with.size, made->data + at + cut, rest);
    if (with.size > 0) {
        memcpy(made->data + at, with.data, with.size);
    }
    made->size = at + with.size + rest;
}

/* A piece of an entry, from anywhere to anywhere, or to its end. */
static struct fuzz_bytes piece(struct made *made, struct fuzz_bytes of, size_t to_end)
{
    size_t from = pick(made, of.size);
    size_t size = to_end ? of.size - from : pick(made, of.size - from);
    return (struct fuzz_bytes){ .data = of.data + from, .size = size };
}

static struct fuzz_bytes entry(struct made *made, const struct fuzz_pool *pool)
{
    return pool->entries[pick(made, pool->count - 1)];
}

/* ---- what a change may be ---- */

static void bit_flip(struct made *made, size_t at)
{
    if (at < made->size) {
        made->data[at] ^= (uint8_t)(1U << pick(made, 7));
    }
}

/* Marks and numbers' ends are where readers decide. */
static void byte_set(struct made *made, size_t at)
{
    static const char marks[] = "\"\\{}[]:,;=%&/?#.-+ \t\r\n0919eE\x7F\x80\xC0\xED\xF4\xFF";
    uint8_t byte = (uint8_t)roll(made);
    if (pick(made, 1) == 0) {
        byte = (uint8_t)marks[pick(made, sizeof(marks) - 1)]; /* The zero byte is one, too. */
    }
    replace(made, at, pick(made, 1), (struct fuzz_bytes){ .data = &byte, .size = 1 });
}

static void word_put(struct made *made, size_t at, const struct fuzz_pool *words)
{
    if (words->count > 0) {
        struct fuzz_bytes word = entry(made, words);
        replace(made, at, pick(made, 1) == 0 ? 0 : word.size, word);
    }
}

static void run_put(struct made *made, size_t at)
{
    uint8_t run[RUN_MAX];
    memset(run, at < made->size ? made->data[at] : (int)pick(made, UINT8_MAX), sizeof(run));
    replace(made, at, 0, (struct fuzz_bytes){ .data = run, .size = pick(made, RUN_MAX) });
}

static void piece_repeat(struct made *made, size_t at)
{
    uint8_t copy[FUZZ_MADE_MAX];
    size_t size = pick(made, made->size - at);
    size_t count = 1 + pick(made, REPEATS_MAX - 1);
    if (size > 0) {
        memcpy(copy, made->data + at, size);
    }
    for (size_t i = 0; i < count && made->size + size <= FUZZ_MADE_MAX; i++) {
        replace(made, at, 0, (struct fuzz_bytes){ .data = copy, .size = size });
    }
}

static void change(struct made *made, const struct fuzz_pool *corpus, const struct fuzz_pool *words)
{
    static const struct fuzz_bytes nothing = { .data = NULL };
    size_t at = pick(made, made->size);
    switch (pick(made, 9)) {
    case 0:
        bit_flip(made, at);
        return;
    case 1:
    case 2:
        byte_set(made, at);
        return;
    case 3:
    case 4:
        word_put(made, at, words);
        return;
    case 5:
        run_put(made, at);
        return;
    case 6:
        piece_repeat(made, at);
        return;
    case 7:
        replace(made, at, pick(made, 1) == 0 ? SIZE_MAX : pick(made, RUN_MAX), nothing);
        return;
    case 8: /* Two entries, spliced. */
        replace(made, at, SIZE_MAX, piece(made, entry(made, corpus), 1));
        return;
    default:
        replace(made, at, pick(made, RUN_MAX), piece(made, entry(made, corpus), 0));
        return;
    }
}

size_t fuzz_mutate(const struct fuzz_pool *corpus,
                   const struct fuzz_pool *words,
                   uint64_t dice,
                   uint8_t *ret_data)
{
    struct made made = { .state = dice, .data = ret_data };
    replace(&made, 0, 0, entry(&made, corpus));
    size_t count = 1 + pick(&made, CHANGES_MAX - 1);
    for (size_t i = 0; i < count; i++) {
        change(&made, corpus, words);
    }
    return made.size;
}
