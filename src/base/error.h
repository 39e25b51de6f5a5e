/*
 * error.h - operating errors: what can go wrong outside the program's own logic.
 *
 * A domain outcome (declined, replayed, conflict) is not an error: it is a value in the answer.
 * What a caller over HTTP may be told is in core/problem.def.
 */
#ifndef IDEM_BASE_ERROR_H
#define IDEM_BASE_ERROR_H

#include "base/attr.h"

enum idem_err {
    IDEM_OK = 0,
    IDEM_E_INVALID, /* What came in cannot be understood; trying again will not help. */
    IDEM_E_LIMIT,   /* A stated limit is reached; later it may work. */
    IDEM_E_SYSTEM,  /* The operating system refused (file, socket, memory). */
    IDEM_E_STORE,   /* The store could not be opened or is not one of ours. */
    IDEM_E_COUNT
};

#define IDEM_ERROR_TEXT_MAX 512

/* Details for a person. Untouched on success. */
struct idem_error {
    char text[IDEM_ERROR_TEXT_MAX];
};

/* Writes the details, if somebody wants them (`reterr` may be NULL), and returns `err`. */
enum idem_err idem_error_set(struct idem_error *reterr, enum idem_err err, const char *format, ...)
    IDEM_PRINTF(3, 4);

#endif /* IDEM_BASE_ERROR_H */
