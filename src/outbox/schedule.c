/*
 * A table; jitter is drawn in parts of a million of a tenth.
 */
#include "outbox/schedule.h"

#include "base/attr.h"
#include "base/bug.h"

#define SECOND IDEM_US_PER_SECOND
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

static const int64_t pauses_us[IDEM_ATTEMPTS_MAX - 1] = {
    5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR,  5 * HOUR,
    10 * HOUR,  14 * HOUR,  20 * HOUR,   24 * HOUR,
};

int64_t idem_schedule_pause_us(uint32_t attempt, int64_t retry_after_us, uint64_t noise)
{
    IDEM_ASSERT(attempt > 0);
    if (attempt > IDEM_ARRAY_COUNT(pauses_us)) {
        return 0;
    }
    int64_t pause_us = pauses_us[attempt - 1];
    pause_us += pause_us / 10 * (int64_t)(noise % 1000000) / 1000000;
    int64_t wish_us =
        retry_after_us < IDEM_RETRY_AFTER_MAX_US ? retry_after_us : IDEM_RETRY_AFTER_MAX_US;
    return wish_us > pause_us ? wish_us : pause_us;
}
