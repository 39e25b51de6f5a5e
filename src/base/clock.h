/*
 * clock.h - time as a value that somebody hands in.
 *
 * Two readings. `wall_us` is microseconds since 1970 UTC, for what is stored and shown. `mono_us`
 * counts suspension and never steps, for deadlines. Both are read through a table, so that a
 * simulator can own them. Nothing but the daemon and tests names a concrete clock.
 */
#ifndef IDEM_BASE_CLOCK_H
#define IDEM_BASE_CLOCK_H

#include <stdint.h>

#define IDEM_US_PER_MS     INT64_C(1000)
#define IDEM_US_PER_SECOND INT64_C(1000000)
#define IDEM_US_PER_DAY    (INT64_C(86400) * IDEM_US_PER_SECOND)

struct idem_clock;

struct idem_clock_ops {
    int64_t (*wall_us)(struct idem_clock *clock);
    int64_t (*mono_us)(struct idem_clock *clock);
};

struct idem_clock {
    const struct idem_clock_ops *ops;
    int64_t wall_base_us; /* Wall time at mono_base_us. */
    int64_t mono_base_us;
};

int64_t idem_clock_wall_us(struct idem_clock *clock);
int64_t idem_clock_mono_us(struct idem_clock *clock);

/*
 * The operating system's clocks. The wall clock is read once, here; from then on wall time advances
 * with CLOCK_BOOTTIME, so a step of the system's clock moves no lease and no window of this
 * process.
 */
void idem_clock_init_system(struct idem_clock *clock);

/*
 * Time that was stored once must not be met again: moves wall time forward to `floor_us` if
 * behind.
 */
void idem_clock_raise(struct idem_clock *clock, int64_t floor_us);

#endif /* IDEM_BASE_CLOCK_H */
