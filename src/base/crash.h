/*
 * crash.h - named places at which a test lets the process die.
 *
 * A crash test starts the real program with IDEM_CRASH_POINT=name[:count] in its environment; the
 * process then kills itself with SIGKILL when the point `name` is reached for the count-th time.
 * Nothing is flushed and no handler runs: for everybody else it is a power cut of this process.
 *
 * One documented exception to "no globals": a point must cost nothing where it stands and must not
 * need an argument through every layer. The state is set once, by main before a thread exists, and
 * only read afterwards (the countdown is atomic). The core has no points: nothing happens there.
 *
 * Threads: idem_crash_point() any; idem_crash_arm() before there are threads.
 */
#ifndef IDEM_BASE_CRASH_H
#define IDEM_BASE_CRASH_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

#define IDEM_CRASH_NAME_MAX 63

extern bool idem_crash_armed;

/* "name" or "name:count"; NULL or empty arms nothing. IDEM_E_INVALID if it cannot be read. */
enum idem_err idem_crash_arm(const char *setting, struct idem_error *reterr) IDEM_MUST_CHECK;

/* Dies if `name` is the armed point and its turn has come. */
void idem_crash_reach(const char *name);

/* Marks a point: idem_crash_point("accept-before-commit"). */
static inline void idem_crash_point(const char *name)
{
    if (__builtin_expect(idem_crash_armed, false)) {
        idem_crash_reach(name);
    }
}

#endif /* IDEM_BASE_CRASH_H */
