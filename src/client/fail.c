/*
 * The one place where a sentence of an error is written.
 *
 * It is cut where it is too long: cut text is still text, and the code says what to do.
 */
#include "client/fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/bug.h"

enum idem_client_err idem_client_fail(struct idem_client_error *reterr,
                                      enum idem_client_err err,
                                      const char *format,
                                      ...)
{
    IDEM_ASSERT(err != IDEM_CLIENT_OK);
    if (reterr != NULL) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(reterr->text, sizeof(reterr->text), format, arguments);
        va_end(arguments);
    }
    return err;
}
