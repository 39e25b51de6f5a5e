/*
 * fail.h - the errors of idem.h: a code for the program and a sentence for its reader.
 */
#ifndef IDEM_LOCAL_FAIL_H
#define IDEM_LOCAL_FAIL_H

#include "base/attr.h"
#include "idem/idem_record.h"

/* Writes the sentence, if somebody wants it, and returns `err`, which is an error. */
enum idem_local_err idem_local_fail(struct idem_local_error *reterr,
                                    enum idem_local_err err,
                                    const char *format,
                                    ...) IDEM_PRINTF(3, 4);

#endif /* IDEM_LOCAL_FAIL_H */
