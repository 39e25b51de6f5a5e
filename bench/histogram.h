/*
 * histogram.h - how long things took: counts by microseconds, within 1.6 % of the truth.
 */
#ifndef IDEM_BENCH_HISTOGRAM_H
#define IDEM_BENCH_HISTOGRAM_H

#include <stdint.h>

/* 64 buckets for every doubling, up to an hour. */
#define BENCH_BUCKET_COUNT 2048

struct bench_histogram {
    uint64_t buckets[BENCH_BUCKET_COUNT];
    uint64_t count;
    uint64_t max_us;
};

void bench_histogram_reset(struct bench_histogram *histogram);
void bench_histogram_add(struct bench_histogram *histogram, uint64_t us);

/* The time within which `permille` of a thousand were done; 0 if nothing was counted. */
uint64_t bench_histogram_at(const struct bench_histogram *histogram, uint64_t permille);

#endif /* IDEM_BENCH_HISTOGRAM_H */
