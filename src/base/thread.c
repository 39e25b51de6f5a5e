/*
 * A thread inherits the mask of the one that starts it: all is blocked before, and put back after.
 */
#include "base/thread.h"

#include <signal.h>

int idem_thread_start(pthread_t *ret_thread,
                      const char *name,
                      void *(*run)(void *argument),
                      void *argument)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    int rc = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (rc != 0) {
        return rc;
    }
    rc = pthread_create(ret_thread, NULL, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* It was the mask a moment ago. */
    if (rc == 0) {
        (void)pthread_setname_np(*ret_thread, name);
    }
    return rc;
}
