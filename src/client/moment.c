/*
 * Time passed, as far as anybody can say.
 *
 *   same boot     the monotonic clock, whatever the calendar did meanwhile;
 *   another boot  the calendar, unless it stands before a time that it has given itself: then it
 *   or none       was set back, and how far is not known.
 *
 * A difference below zero cannot be a time that has passed: somebody else's clock, or damage. It is
 * not taken for zero, since zero would mean that a key is as fresh as can be.
 */
#include "client/moment.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bug.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

static void boot_read(char ret_boot[IDEM_BOOT_ID_LEN + 1])
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

struct idem_moment idem_moment_now(struct idem_clock *clock)
{
    struct idem_moment now = {
        .wall_us = idem_clock_wall_us(clock),
        .mono_us = idem_clock_mono_us(clock),
    };
    boot_read(now.boot);
    IDEM_ASSERT(strlen(now.boot) == IDEM_BOOT_ID_LEN || now.boot[0] == '\0');
    return now;
}

static bool is_same_boot(const struct idem_moment *then, const struct idem_moment *now)
{
    return then->boot[0] != '\0' && strcmp(then->boot, now->boot) == 0;
}

/* now - then; false: that is no time. */
static bool difference(int64_t then_us, int64_t now_us, int64_t *ret_us)
{
    int64_t passed_us = 0;
    if (__builtin_sub_overflow(now_us, then_us, &passed_us) || passed_us < 0) {
        return false;
    }
    *ret_us = passed_us;
    return true;
}

bool idem_moment_elapsed(const struct idem_moment *then,
                         const struct idem_moment *now,
                         int64_t high_us,
                         int64_t *ret_us)
{
    if (then->wall_us == 0 || now->wall_us == 0) {
        return false;
    }
    if (is_same_boot(then, now)) {
        return difference(then->mono_us, now->mono_us, ret_us);
    }
    return now->wall_us >= high_us && difference(then->wall_us, now->wall_us, ret_us);
}
