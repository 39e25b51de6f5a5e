/*
 * Time passed, as far as anybody can say.
 *
 *   same boot     the larger of what both clocks say. The monotonic clock stands still while a
 *                 virtual machine is paused, and after its snapshot is restored, with the boot's id
 *                 unchanged; the calendar may be set. A calendar that was set forward makes us
 *                 careful and no more; one that was set back does not count.
 *   another boot  the calendar, unless it stands before a time that it has given itself: then it
 *   or none       was set back, and how far is not known. A few minutes are no such thing: clocks
 *                 are corrected, and processes of several machines may share a journal.
 *
 * A monotonic difference below zero cannot be a time that has passed: somebody else's clock, or
 * damage. It is not taken for zero, since zero would mean that a key is as fresh as can be.
 */
#include "client/moment.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bug.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

void idem_moment_boot(char ret_boot[IDEM_BOOT_ID_LEN + 1])
{
    ret_boot[0] = '\0';
    int file = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return;
    }
    ssize_t got = read(file, ret_boot, IDEM_BOOT_ID_LEN);
    ret_boot[got == IDEM_BOOT_ID_LEN ? IDEM_BOOT_ID_LEN : 0] = '\0';
    (void)close(file); /* It was only read. */
}

struct idem_moment idem_moment_now(struct idem_clock *clock, const char *boot)
{
    struct idem_moment now = {
        .wall_us = idem_clock_wall_us(clock),
        .mono_us = idem_clock_mono_us(clock),
    };
    size_t len = strlen(boot);
    IDEM_ASSERT(len <= IDEM_BOOT_ID_LEN);
    memcpy(now.boot, boot, len); /* The rest is zero. */
    return now;
}

static bool is_same_boot(const struct idem_moment *then, const struct idem_moment *now)
{
    return then->boot[0] != '\0' && strcmp(then->boot, now->boot) == 0;
}

static bool elapsed_in_boot(int64_t mono_us, int64_t wall_us, int64_t *ret_us)
{
    if (mono_us < 0) {
        return false;
    }
    *ret_us = mono_us > wall_us ? mono_us : wall_us;
    return true;
}

/* `behind_us`: by how much the calendar stands before the latest time that it gave. */
static bool elapsed_by_calendar(int64_t wall_us, int64_t behind_us, int64_t *ret_us)
{
    if (wall_us < -IDEM_MOMENT_SKEW_US || behind_us > IDEM_MOMENT_SKEW_US) {
        return false;
    }
    *ret_us = wall_us > 0 ? wall_us : 0;
    return true;
}

bool idem_moment_elapsed(const struct idem_moment *then,
                         const struct idem_moment *now,
                         int64_t high_us,
                         int64_t *ret_us)
{
    int64_t mono_us = 0;
    int64_t wall_us = 0;
    int64_t behind_us = 0;
    if (then->wall_us == 0 || now->wall_us == 0 ||
        __builtin_sub_overflow(now->wall_us, then->wall_us, &wall_us)) {
        return false;
    }
    if (is_same_boot(then, now)) {
        return !__builtin_sub_overflow(now->mono_us, then->mono_us, &mono_us) &&
               elapsed_in_boot(mono_us, wall_us, ret_us);
    }
    return !__builtin_sub_overflow(high_us, now->wall_us, &behind_us) &&
           elapsed_by_calendar(wall_us, behind_us, ret_us);
}
