/*
 * Tokens fence one attempt from another, so guessing or repeating one must be impossible: the bytes
 * come from the kernel, and a kernel that gives none stops the process.
 *
 * They are fetched in advance, some ids' worth at once: a call of the kernel for each costs more
 * than all else that makes a command. What has been handed out is wiped here. A process that forked
 * would hand the same bytes out twice; this program does not.
 */
#include "base/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/bug.h"

static void kernel_fill(void *ret_bytes, size_t size)
{
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

static void system_fill(struct idem_random *random, void *ret_bytes, size_t size)
{
    if (size > sizeof(random->pool)) {
        kernel_fill(ret_bytes, size);
        return;
    }
    if (size > random->left) {
        kernel_fill(random->pool, sizeof(random->pool));
        random->left = sizeof(random->pool);
    }
    random->left -= size;
    memcpy(ret_bytes, random->pool + random->left, size);
    explicit_bzero(random->pool + random->left, size);
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
