/*
 * Death at a named place.
 *
 * SIGKILL and not abort(): no atexit handler, no stdio flush, no sanitizer report, no core file
 * stands between the test and what a real crash leaves behind. The countdown is atomic because the
 * writer thread of a store reaches points as well; exactly one thread sees it come to zero.
 */
#include "base/crash.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/text.h"

bool idem_crash_armed;
static char armed_name[IDEM_CRASH_NAME_MAX + 1];
static atomic_llong turns_left;

enum idem_err idem_crash_arm(const char *setting, struct idem_error *reterr)
{
    struct idem_str text = idem_str_from(setting);
    if (text.len == 0) {
        idem_crash_armed = false;
        return IDEM_OK;
    }

    struct idem_str name = idem_str_slice(text, 0, idem_str_find(text, ':'));
    int64_t count = 1;
    bool counted = name.len == text.len ||
                   idem_str_to_i64(idem_str_slice(text, name.len + 1, text.len), &count);
    if (name.len == 0 || name.len > IDEM_CRASH_NAME_MAX || !counted || count == 0) {
        return idem_error_set(reterr, IDEM_E_INVALID, "'%s' is not name or name:count", setting);
    }

    memcpy(armed_name, name.data, name.len);
    armed_name[name.len] = '\0';
    atomic_store(&turns_left, count);
    idem_crash_armed = true;
    return IDEM_OK;
}

void idem_crash_reach(const char *name)
{
    IDEM_ASSERT(idem_crash_armed);
    if (strcmp(name, armed_name) != 0) {
        return;
    }
    if (atomic_fetch_sub(&turns_left, 1) == 1) {
        (void)kill(getpid(), SIGKILL); /* It cannot fail for oneself, */
        for (;;) {                     /* and no line after the point may run. */
            (void)pause();
        }
    }
}
