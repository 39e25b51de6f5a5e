/*
 * command.h - the caller's arguments within their limits, or refused before a database is asked:
 * in PostgreSQL an error would cost the caller's transaction.
 */
#ifndef IDEM_LOCAL_COMMAND_H
#define IDEM_LOCAL_COMMAND_H

#include "base/attr.h"
#include "idem/idem.h"
#include "local/row.h"

/* Each fills in `*ret_command`, which borrows the arguments. IDEM_LOCAL_E_INVALID says which. */

enum idem_local_err idem_local_command_claim(const struct idem_local_claim *claim,
                                             struct idem_local_command *ret_command,
                                             struct idem_local_error *reterr) IDEM_MUST_CHECK;

/* What the verbs of an attempt share: verb and token. */
enum idem_local_err idem_local_command_attempt(enum idem_local_verb verb,
                                               const struct idem_local_token *token,
                                               struct idem_local_command *ret_command,
                                               struct idem_local_error *reterr) IDEM_MUST_CHECK;

/* And what each has beside it. */
enum idem_local_err idem_local_command_effect(const char *effect,
                                              struct idem_local_command *command,
                                              struct idem_local_error *reterr) IDEM_MUST_CHECK;
enum idem_local_err idem_local_command_lease(int64_t lease_ms,
                                             struct idem_local_command *command,
                                             struct idem_local_error *reterr) IDEM_MUST_CHECK;
enum idem_local_err idem_local_command_step(const struct idem_local_step *step,
                                            struct idem_local_command *command,
                                            struct idem_local_error *reterr) IDEM_MUST_CHECK;
enum idem_local_err idem_local_command_answer(const struct idem_local_answer *answer,
                                              struct idem_local_command *command,
                                              struct idem_local_error *reterr) IDEM_MUST_CHECK;

enum idem_local_err idem_local_command_settle(const struct idem_local_evidence *evidence,
                                              struct idem_local_command *ret_command,
                                              struct idem_local_error *reterr) IDEM_MUST_CHECK;

enum idem_local_err idem_local_command_name(const struct idem_local_name *name,
                                            struct idem_local_scope *ret_scope,
                                            struct idem_local_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_LOCAL_COMMAND_H */
