/*
 * Printed text is in stdio's hands for a while: that the disk is full comes out when it leaves
 * them, which may be long after the last printf.
 */
#include "cli/output.h"

#include <stdio.h>
#include <stdio_ext.h>

void idem_output_forget(void)
{
    __fpurge(stdout);
    clearerr(stdout);
}

enum idem_exit idem_output_end(enum idem_exit status, const char *rest)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        return status;
    }
    (void)fprintf(stderr, "idem: the output could not be written; %s\n", rest);
    idem_output_forget();
    return status == IDEM_EXIT_OK ? IDEM_EXIT_OTHER : status;
}
