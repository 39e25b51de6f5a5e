/*
 * Which verdict a state allows, and which member goes with which verdict, is the service's to say.
 */
#include "cli/evidence.h"

#include <stdio.h>

#include "cli/operation_view.h"

#include "base/attr.h"

bool idem_evidence_given(const struct idem_arguments *arguments)
{
    return idem_arguments_own(arguments, IDEM_EVIDENCE_VERDICT) != NULL &&
           idem_arguments_own(arguments, IDEM_EVIDENCE_REASON) != NULL;
}

bool idem_evidence_body(const struct idem_arguments *arguments, struct idem_buf *body)
{
    static const struct {
        const char *name;
        int option;
    } members[] = {
        { "verdict", IDEM_EVIDENCE_VERDICT },     { "reason", IDEM_EVIDENCE_REASON },
        { "amount", IDEM_EVIDENCE_AMOUNT },       { "currency", IDEM_EVIDENCE_CURRENCY },
        { "reference", IDEM_EVIDENCE_REFERENCE },
    };
    idem_buf_add_char(body, '{');
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(members); i++) {
        const char *value = idem_arguments_own(arguments, members[i].option);
        if (!idem_body_member(body, members[i].name, value)) {
            return false;
        }
    }
    idem_buf_add_char(body, '}');
    return true;
}

enum idem_exit idem_evidence_resolve(struct idem_session *session,
                                     const struct idem_arguments *arguments,
                                     const char *things,
                                     const char *help)
{
    char memory[IDEM_SESSION_BODY];
    struct idem_buf body;
    idem_buf_init(&body, memory, sizeof(memory));
    if (arguments->word == NULL || !idem_evidence_given(arguments)) {
        (void)fputs(help, stderr);
        return IDEM_EXIT_USAGE;
    }
    if (!idem_evidence_body(arguments, &body)) {
        return IDEM_EXIT_USAGE;
    }
    enum idem_exit status = idem_command_post(session, things, arguments->word, "resolve", &body);
    return status == IDEM_EXIT_OK ? idem_operation_view_print(session) : status;
}
