/*
 * thread.h - starting a thread that signals pass by.
 *
 * The loop's thread alone handles signals. A thread that might be interrupted by one sees system
 * calls fail with EINTR and can hold up a stop.
 */
#ifndef IDEM_BASE_THREAD_H
#define IDEM_BASE_THREAD_H

#include <pthread.h>

#include "base/attr.h"

/*
 * As pthread_create(3), with every signal blocked. `name` (at most 15 bytes) is for people who look
 * at threads; a thread that cannot have it is called as its program. The answer is an errno value,
 * 0 if it runs.
 */
int idem_thread_start(pthread_t *ret_thread,
                      const char *name,
                      void *(*run)(void *argument),
                      void *argument) IDEM_MUST_CHECK;

#endif /* IDEM_BASE_THREAD_H */
