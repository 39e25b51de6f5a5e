/*
 * The system's clock behind the table.
 *
 * CLOCK_BOOTTIME counts suspension and is not stepped. Deriving wall time from it keeps leases and
 * windows right when somebody sets the clock during the day; a restart takes the new wall time, but
 * never one that lies before what the store already holds (idem_clock_raise).
 */
#include "base/clock.h"

#include <time.h>

#include "base/bug.h"

static int64_t read_us(clockid_t id)
{
    struct timespec now;
    int rc = clock_gettime(id, &now);
    IDEM_ASSERT(rc == 0);
    return (int64_t)now.tv_sec * IDEM_US_PER_SECOND + now.tv_nsec / 1000;
}

static int64_t system_mono_us(struct idem_clock *clock)
{
    (void)clock; /* The system has only one. */
    return read_us(CLOCK_BOOTTIME);
}

static int64_t system_wall_us(struct idem_clock *clock)
{
    return clock->wall_base_us + (system_mono_us(clock) - clock->mono_base_us);
}

static const struct idem_clock_ops system_ops = {
    .wall_us = system_wall_us,
    .mono_us = system_mono_us,
};

int64_t idem_clock_wall_us(struct idem_clock *clock)
{
    return clock->ops->wall_us(clock);
}

int64_t idem_clock_mono_us(struct idem_clock *clock)
{
    return clock->ops->mono_us(clock);
}

void idem_clock_init_system(struct idem_clock *clock)
{
    *clock = (struct idem_clock){
        .ops = &system_ops,
        .wall_base_us = read_us(CLOCK_REALTIME),
        .mono_base_us = read_us(CLOCK_BOOTTIME),
    };
}

void idem_clock_raise(struct idem_clock *clock, int64_t floor_us)
{
    int64_t now_us = idem_clock_wall_us(clock);
    if (now_us < floor_us) {
        clock->wall_base_us += floor_us - now_us;
    }
}
