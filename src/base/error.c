/*
 * Error details live in the caller's memory, so that reporting an error cannot fail.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/bug.h"

enum idem_err idem_error_set(struct idem_error *reterr, enum idem_err err, const char *format, ...)
{
    IDEM_ASSERT(err != IDEM_OK);
    if (reterr == NULL) {
        return err;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reterr->text, sizeof(reterr->text), format, args); /* Cut text is still text. */
    va_end(args);
    return err;
}
