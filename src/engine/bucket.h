/*
 * bucket.h - so many a second: a token bucket.
 *
 * Full at first, it holds what one second brings. What must wait for its turn takes a token only
 * if there is one; what must not wait takes one anyway, and whoever waits pays for it: the level
 * may fall as far below zero as it may rise above.
 *
 * Pure: monotonic time comes in with every call and may stand still, never go back.
 */
#ifndef IDEM_ENGINE_BUCKET_H
#define IDEM_ENGINE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct idem_bucket {
    int64_t rate_per_s; /* 0: no limit. */
    int64_t level;      /* In millionths of a token. */
    int64_t at_us;      /* When the level was that. */
};

#define IDEM_BUCKET_RATE_MAX 1000000

/* `rate_per_s`: 0 to IDEM_BUCKET_RATE_MAX. */
void idem_bucket_init(struct idem_bucket *bucket, int64_t rate_per_s, int64_t now_us);

/* There are so many whole tokens. */
bool idem_bucket_has(struct idem_bucket *bucket, int64_t tokens, int64_t now_us);

/* Takes one, also where there is none. */
void idem_bucket_take(struct idem_bucket *bucket, int64_t now_us);

/* One that was taken was not needed. */
void idem_bucket_put_back(struct idem_bucket *bucket);

/* Whole tokens now; below zero: what was taken in advance. */
int64_t idem_bucket_tokens(const struct idem_bucket *bucket, int64_t now_us);

/* When there will be a whole token, if nobody takes one: `now_us` if there is. */
int64_t idem_bucket_next_us(const struct idem_bucket *bucket, int64_t now_us);

#endif /* IDEM_ENGINE_BUCKET_H */
