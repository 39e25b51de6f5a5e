/*
 * fail.h - the client's errors: a code for the program and a sentence for its reader.
 */
#ifndef IDEM_CLIENT_FAIL_H
#define IDEM_CLIENT_FAIL_H

#include "base/attr.h"
#include "idem/client.h"

/* Writes the sentence, if somebody wants it, and returns `err`, which is an error. */
enum idem_client_err idem_client_fail(struct idem_client_error *reterr,
                                      enum idem_client_err err,
                                      const char *format,
                                      ...) IDEM_PRINTF(3, 4);

#endif /* IDEM_CLIENT_FAIL_H */
