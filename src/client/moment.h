/*
 * moment.h - a point in time that can be written down and compared after a restart.
 *
 * Within one boot of the machine the monotonic clock tells how much time has passed, whatever was
 * done to the calendar. Across boots only the calendar is left, and a calendar that stands before
 * something it has itself dated cannot be believed.
 */
#ifndef IDEM_CLIENT_MOMENT_H
#define IDEM_CLIENT_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define IDEM_BOOT_ID_LEN 36

struct idem_moment {
    int64_t wall_us;                 /* Since 1970; 0: no moment. */
    int64_t mono_us;                 /* Counts suspension (CLOCK_BOOTTIME). */
    char boot[IDEM_BOOT_ID_LEN + 1]; /* The kernel's id of this boot; empty if it has none. */
};

/* Now. The boot's id is read from the system; empty if that fails. */
struct idem_moment idem_moment_now(struct idem_clock *clock);

/*
 * Microseconds from `then` to `now`. False: nobody can say, because the calendar went backwards:
 * before `then`, or before `high_us`, the latest wall time that was ever written down.
 */
bool idem_moment_elapsed(const struct idem_moment *then,
                         const struct idem_moment *now,
                         int64_t high_us,
                         int64_t *ret_us);

#endif /* IDEM_CLIENT_MOMENT_H */
