/*
 * A bug stops the process. Whatever was acknowledged is durable, whatever was not is found again at
 * the next start; going on with broken invariants is the only way to lose money here.
 */
#include "base/bug.h"

#include <stdio.h>
#include <stdlib.h>

void idem_bug(const char *file, int line, const char *condition)
{
    (void)fprintf(stderr, "idem: bug at %s:%d: %s\n", file, line, condition); /* Aborts anyway. */
    abort();
}
