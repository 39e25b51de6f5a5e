/*
 * Buckets grow with the value: below 64 us each has its own, above that a doubling has 64.
 */
#include "bench/histogram.h"

#define SUB_BITS  6
#define SUB_COUNT (UINT64_C(1) << SUB_BITS)

static unsigned bucket_of(uint64_t us)
{
    if (us < SUB_COUNT) {
        return (unsigned)us;
    }
    unsigned shift = 63U - (unsigned)__builtin_clzll(us) - SUB_BITS;
    uint64_t bucket = (shift + 1) * SUB_COUNT + ((us >> shift) - SUB_COUNT);
    return bucket < BENCH_BUCKET_COUNT ? (unsigned)bucket : BENCH_BUCKET_COUNT - 1;
}

/* The middle of a bucket. */
static uint64_t value_of(unsigned bucket)
{
    if (bucket < SUB_COUNT) {
        return bucket;
    }
    unsigned shift = bucket / (unsigned)SUB_COUNT - 1;
    uint64_t low = (SUB_COUNT + bucket % SUB_COUNT) << shift;
    return low + (UINT64_C(1) << shift) / 2;
}

void bench_histogram_reset(struct bench_histogram *histogram)
{
    *histogram = (struct bench_histogram){ .count = 0 };
}

void bench_histogram_add(struct bench_histogram *histogram, uint64_t us)
{
    histogram->buckets[bucket_of(us)] += 1;
    histogram->count += 1;
    if (us > histogram->max_us) {
        histogram->max_us = us;
    }
}

uint64_t bench_histogram_at(const struct bench_histogram *histogram, uint64_t permille)
{
    uint64_t wanted = (histogram->count * permille + 999) / 1000;
    uint64_t seen = 0;
    for (unsigned bucket = 0; bucket < BENCH_BUCKET_COUNT; bucket++) {
        seen += histogram->buckets[bucket];
        if (wanted > 0 && seen >= wanted) {
            return value_of(bucket);
        }
    }
    return 0;
}
