/*
 * Sentences that do not fit are cut: the beginning says what happened.
 */
#include "local/fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/bug.h"

enum idem_local_err idem_local_fail(struct idem_local_error *reterr,
                                    enum idem_local_err err,
                                    const char *format,
                                    ...)
{
    IDEM_ASSERT(err != IDEM_LOCAL_OK);
    if (reterr != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(reterr->text, sizeof(reterr->text), format, args);
        va_end(args);
    }
    return err;
}
