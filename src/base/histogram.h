/*
 * histogram.h - how often which size: counts in buckets whose bounds are powers of two.
 *
 * Fixed size, no allocation, one addition a value. What it loses is resolution: a quantile is known
 * to within a factor of two.
 *
 * Threads: its owner's.
 */
#ifndef IDEM_BASE_HISTOGRAM_H
#define IDEM_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define IDEM_HISTOGRAM_BUCKETS 40

struct idem_histogram {
    uint64_t
        counts[IDEM_HISTOGRAM_BUCKETS]; /* Bucket i: values above 2^(i-1) up to 2^i; 0: <= 1. */
    uint64_t count;
    uint64_t sum;
};

/* Negative values count as zero; what is above the last bound counts in the last bucket. */
void idem_histogram_add(struct idem_histogram *histogram, int64_t value);

/* How many were at most 2^`bucket`. */
uint64_t idem_histogram_up_to(const struct idem_histogram *histogram, size_t bucket);

#endif /* IDEM_BASE_HISTOGRAM_H */
