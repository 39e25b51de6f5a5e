/*
 * One bucket for each power of two.
 */
#include "base/histogram.h"

#include "base/bug.h"

static size_t bucket_of(uint64_t value)
{
    size_t bucket = 0;
    while (bucket < IDEM_HISTOGRAM_BUCKETS - 1 && value > (uint64_t)1 << bucket) {
        bucket += 1;
    }
    return bucket;
}

void idem_histogram_add(struct idem_histogram *histogram, int64_t value)
{
    uint64_t size = value > 0 ? (uint64_t)value : 0;
    histogram->counts[bucket_of(size)] += 1;
    histogram->count += 1;
    histogram->sum += size;
}

uint64_t idem_histogram_up_to(const struct idem_histogram *histogram, size_t bucket)
{
    IDEM_ASSERT(bucket < IDEM_HISTOGRAM_BUCKETS);
    uint64_t count = 0;
    for (size_t i = 0; i <= bucket; i++) {
        count += histogram->counts[i];
    }
    return count;
}
