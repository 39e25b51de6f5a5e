/*
 * evidence.h - what a person says about an operation: the options that every resolve has, and the
 * body of its request.
 */
#ifndef IDEM_CLI_EVIDENCE_H
#define IDEM_CLI_EVIDENCE_H

#include <stdbool.h>

#include "base/text.h"
#include "cli/command.h"

/* They are all the options of its own that such a command has. */
enum {
    IDEM_EVIDENCE_VERDICT = IDEM_OPTION_OWN,
    IDEM_EVIDENCE_REASON,
    IDEM_EVIDENCE_AMOUNT,
    IDEM_EVIDENCE_CURRENCY,
    IDEM_EVIDENCE_REFERENCE
};

#define IDEM_EVIDENCE_OPTIONS                                            \
    { "verdict", required_argument, NULL, IDEM_EVIDENCE_VERDICT },       \
        { "reason", required_argument, NULL, IDEM_EVIDENCE_REASON },     \
        { "amount", required_argument, NULL, IDEM_EVIDENCE_AMOUNT },     \
        { "currency", required_argument, NULL, IDEM_EVIDENCE_CURRENCY }, \
    {                                                                    \
        "reference", required_argument, NULL, IDEM_EVIDENCE_REFERENCE    \
    }

#define IDEM_EVIDENCE_HELP                                                                       \
    "      --verdict succeeded     the provider has it: also give --amount and --currency, as\n" \
    "                              read there\n"                                                 \
    "      --verdict failed        it did not happen; refused while it may still arrive\n"       \
    "      --verdict noted         the record is right as it is: closes its cases\n"             \
    "      --reason TEXT           where that was seen; at most 255 bytes\n"                     \
    "      --amount AMOUNT         such as 100.00\n"                                             \
    "      --currency CODE         such as EUR\n"                                                \
    "      --reference TEXT        the provider's transaction number\n"

/* True if what is needed was given. */
bool idem_evidence_given(const struct idem_arguments *arguments);

/* Makes the body; false: it is not UTF-8, and it was said. */
bool idem_evidence_body(const struct idem_arguments *arguments, struct idem_buf *body);

/* Posts it to the thing's "resolve", and shows the operation as it stands then. */
enum idem_exit idem_evidence_resolve(struct idem_session *session,
                                     const struct idem_arguments *arguments,
                                     const char *things,
                                     const char *help);

#endif /* IDEM_CLI_EVIDENCE_H */
