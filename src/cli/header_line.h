/*
 * header_line.h - whether a header line of the command line may be taken.
 *
 * A credential is refused: headers of a request are kept in the journal, and those of a command
 * line are shown to every user of the machine. So is what would end the line in the request.
 */
#ifndef IDEM_CLI_HEADER_LINE_H
#define IDEM_CLI_HEADER_LINE_H

#include <stdbool.h>

#include "base/text.h"

enum idem_header_fault {
    IDEM_HEADER_OK = 0,
    IDEM_HEADER_NO_COLON,
    IDEM_HEADER_NAME,  /* Not a token of RFC 9110. */
    IDEM_HEADER_VALUE, /* A control character in it. */
    IDEM_HEADER_CREDENTIAL
};

/* `credential_name`: the header that the credential goes in beside the usual ones; NULL: none. */
enum idem_header_fault idem_header_check(struct idem_str line, const char *credential_name);

/* A sentence part that says what to do instead. */
const char *idem_header_fault_text(enum idem_header_fault fault);

/* The name of a line: what stands before its first colon. */
struct idem_str idem_header_name(struct idem_str line);

/* Whether `name` is a token of RFC 9110, 5.6.2. */
bool idem_header_name_valid(struct idem_str name);

#endif /* IDEM_CLI_HEADER_LINE_H */
