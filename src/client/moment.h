/*
 * moment.h - a point in time that can be written down and compared after a restart.
 *
 * Within one boot of the machine no less time has passed than either clock says: a calendar can be
 * set back, and the monotonic clock stands still while a virtual machine is paused. Across boots
 * only the calendar is left, and a calendar that stands well before something that it has itself
 * dated cannot be believed.
 */
#ifndef IDEM_CLIENT_MOMENT_H
#define IDEM_CLIENT_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define IDEM_BOOT_ID_LEN 36

/* By how much a calendar may be behind without having been set back. */
#define IDEM_MOMENT_SKEW_US (300 * IDEM_US_PER_SECOND)

struct idem_moment {
    int64_t wall_us;                 /* Since 1970; 0: no moment. */
    int64_t mono_us;                 /* Counts suspension (CLOCK_BOOTTIME). */
    char boot[IDEM_BOOT_ID_LEN + 1]; /* The kernel's id of this boot; empty if it has none. */
};

/* The id of this boot, from the system; empty if it has none. It stays for a process's life. */
void idem_moment_boot(char ret_boot[IDEM_BOOT_ID_LEN + 1]);

/* Now, in that boot. */
struct idem_moment idem_moment_now(struct idem_clock *clock, const char *boot);

/*
 * Microseconds from `then` to `now`, never below zero. False: nobody can say. Within one boot that
 * is so if the monotonic clock went backwards; across boots if the calendar did by more than
 * IDEM_MOMENT_SKEW_US: before `then`, or before `high_us`, the latest wall time that was ever
 * written down.
 */
bool idem_moment_elapsed(const struct idem_moment *then,
                         const struct idem_moment *now,
                         int64_t high_us,
                         int64_t *ret_us);

#endif /* IDEM_CLIENT_MOMENT_H */
