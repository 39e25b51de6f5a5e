/*
 * Tokens fence one attempt from another, so guessing or repeating one must be impossible: the bytes
 * come from the kernel, and a kernel that gives none stops the process.
 */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>

#include "base/bug.h"

static void system_fill(struct idem_random *random, void *ret_bytes, size_t size)
{
    (void)random; /* The kernel's pool has no state here. */
    char *at = ret_bytes;
    while (size > 0) {
        ssize_t count = getrandom(at, size, 0);
        if (count < 0) {
            IDEM_ASSERT(errno == EINTR);
            continue;
        }
        at += count;
        size -= (size_t)count;
    }
}

static const struct idem_random_ops system_ops = { .fill = system_fill };

void idem_random_fill(struct idem_random *random, void *ret_bytes, size_t size)
{
    random->ops->fill(random, ret_bytes, size);
}

void idem_random_init_system(struct idem_random *random)
{
    *random = (struct idem_random){ .ops = &system_ops };
}
