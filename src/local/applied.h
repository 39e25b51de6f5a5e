/*
 * applied.h - what both databases can do for local.c, and what comes back.
 *
 * Arguments are within their limits (command.h). Everything here is called in a transaction of the
 * caller's, but for looks, and leaves beginning and ending it alone.
 */
#ifndef IDEM_LOCAL_APPLIED_H
#define IDEM_LOCAL_APPLIED_H

#include "base/attr.h"
#include "idem/idem.h"
#include "local/row.h"

/* What a command came to. */
struct idem_local_applied {
    enum idem_local_outcome outcome;
    struct idem_local_record *record; /* Claim: the caller's from now on. Otherwise NULL. */
    char effect_id[IDEM_LOCAL_EFFECT_ID_SIZE]; /* Dispatch: DONE, ALREADY. */
};

struct idem_local_ops {
    enum idem_local_err (*install)(const struct idem_local *local, struct idem_local_error *reterr);
    /* The transaction can be written in. */
    enum idem_local_err (*enter)(const struct idem_local *local, struct idem_local_error *reterr);
    enum idem_local_err (*apply)(const struct idem_local *local,
                                 const struct idem_local_command *command,
                                 struct idem_local_applied *ret_applied,
                                 struct idem_local_error *reterr);
    enum idem_local_err (*lookup)(const struct idem_local *local,
                                  const struct idem_local_scope *scope,
                                  struct idem_local_record **ret_record,
                                  struct idem_local_error *reterr);
    enum idem_local_err (*due)(const struct idem_local *local,
                               int limit,
                               struct idem_local_list **ret_list,
                               struct idem_local_error *reterr);
    enum idem_local_err (*reap)(const struct idem_local *local,
                                int limit,
                                struct idem_local_reaped *ret_reaped,
                                struct idem_local_error *reterr);
};

extern const struct idem_local_ops idem_local_sqlite_ops;
extern const struct idem_local_ops idem_local_postgres_ops; /* Without libpq it refuses all. */

#endif /* IDEM_LOCAL_APPLIED_H */
