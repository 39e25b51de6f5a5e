/*
 * output.h - whether what was printed has arrived.
 */
#ifndef IDEM_CLI_OUTPUT_H
#define IDEM_CLI_OUTPUT_H

#include "base/exit.h"

/*
 * A command's end: `status`, if all that it has printed is written. Otherwise says on standard
 * error that it is not, with `rest` behind it, forgets what is left of it, and gives OTHER for OK.
 */
enum idem_exit idem_output_end(enum idem_exit status, const char *rest);

/* Somebody has said already that it could not be written: forgets what is left of it. */
void idem_output_forget(void);

#endif /* IDEM_CLI_OUTPUT_H */
