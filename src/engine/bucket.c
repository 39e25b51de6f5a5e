/*
 * A microsecond brings `rate_per_s` millionths of a token, so everything is exact in whole numbers
 * and nothing overflows: no more time is counted than fills the bucket from its lowest level.
 */
#include "engine/bucket.h"

#include "base/bug.h"
#include "base/clock.h"

#define TOKEN INT64_C(1000000)

static int64_t level_max(const struct idem_bucket *bucket)
{
    return bucket->rate_per_s * TOKEN;
}

static int64_t level_at(const struct idem_bucket *bucket, int64_t now_us)
{
    IDEM_ASSERT(now_us >= bucket->at_us);
    int64_t passed_us = now_us - bucket->at_us;
    if (passed_us >= 2 * IDEM_US_PER_SECOND) {
        return level_max(bucket);
    }
    int64_t level = bucket->level + passed_us * bucket->rate_per_s;
    return level < level_max(bucket) ? level : level_max(bucket);
}

static void move_on(struct idem_bucket *bucket, int64_t now_us)
{
    bucket->level = level_at(bucket, now_us);
    bucket->at_us = now_us;
}

void idem_bucket_init(struct idem_bucket *bucket, int64_t rate_per_s, int64_t now_us)
{
    IDEM_ASSERT(rate_per_s >= 0);
    IDEM_ASSERT(rate_per_s <= IDEM_BUCKET_RATE_MAX);
    *bucket = (struct idem_bucket){ .rate_per_s = rate_per_s, .at_us = now_us };
    bucket->level = level_max(bucket);
}

bool idem_bucket_has(struct idem_bucket *bucket, int64_t tokens, int64_t now_us)
{
    IDEM_ASSERT(tokens > 0);
    if (bucket->rate_per_s == 0) {
        return true;
    }
    move_on(bucket, now_us);
    return bucket->level / TOKEN >= tokens;
}

void idem_bucket_take(struct idem_bucket *bucket, int64_t now_us)
{
    move_on(bucket, now_us);
    bucket->level -= TOKEN;
    if (bucket->level < -level_max(bucket)) {
        bucket->level = -level_max(bucket);
    }
}

void idem_bucket_put_back(struct idem_bucket *bucket)
{
    bucket->level += TOKEN;
    if (bucket->level > level_max(bucket)) {
        bucket->level = level_max(bucket);
    }
}

int64_t idem_bucket_tokens(const struct idem_bucket *bucket, int64_t now_us)
{
    int64_t level = level_at(bucket, now_us);
    return level >= 0 ? level / TOKEN : -((-level + TOKEN - 1) / TOKEN);
}

int64_t idem_bucket_next_us(const struct idem_bucket *bucket, int64_t now_us)
{
    if (bucket->rate_per_s == 0) {
        return now_us;
    }
    int64_t missing = TOKEN - level_at(bucket, now_us);
    if (missing <= 0) {
        return now_us;
    }
    return now_us + (missing + bucket->rate_per_s - 1) / bucket->rate_per_s;
}
