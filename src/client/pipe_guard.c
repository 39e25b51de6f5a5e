/*
 * SIGPIPE of a write is sent to the thread that writes, so blocking and taking it here is enough.
 */
#include "client/pipe_guard.h"

#include <time.h>

#include "base/bug.h"

static sigset_t pipe_set(void)
{
    sigset_t set;
    (void)sigemptyset(&set); /* Neither can fail for a signal that exists. */
    (void)sigaddset(&set, SIGPIPE);
    return set;
}

static bool pipe_is_pending(void)
{
    sigset_t pending;
    (void)sigpending(&pending); /* Fails only for a bad pointer. */
    return sigismember(&pending, SIGPIPE) == 1;
}

void idem_pipe_guard_begin(struct idem_pipe_guard *ret_guard)
{
    sigset_t set = pipe_set();

    ret_guard->pending = pipe_is_pending();
    int rc = pthread_sigmask(SIG_BLOCK, &set, &ret_guard->before);
    IDEM_ASSERT(rc == 0);
}

void idem_pipe_guard_end(const struct idem_pipe_guard *guard)
{
    const struct timespec at_once = { .tv_sec = 0 };
    sigset_t set = pipe_set();

    if (!guard->pending && pipe_is_pending()) {
        (void)sigtimedwait(&set, NULL, &at_once); /* Taken; or somebody else had it already. */
    }
    int rc = pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
    IDEM_ASSERT(rc == 0);
}
