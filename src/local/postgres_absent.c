/*
 * In place of PostgreSQL in a build without libpq: the same functions, which refuse.
 */
#include "local/applied.h"
#include "local/fail.h"

static enum idem_local_err refuse(struct idem_local_error *reterr)
{
    return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                           "this library was built without PostgreSQL; nothing was written");
}

static enum idem_local_err enter(const struct idem_local *local, struct idem_local_error *reterr)
{
    (void)local;
    return refuse(reterr);
}

static enum idem_local_err apply(const struct idem_local *local,
                                 const struct idem_local_command *command,
                                 struct idem_local_applied *ret_applied,
                                 struct idem_local_error *reterr)
{
    (void)local;
    (void)command;
    (void)ret_applied;
    return refuse(reterr);
}

static enum idem_local_err lookup(const struct idem_local *local,
                                  const struct idem_local_scope *scope,
                                  struct idem_local_record **ret_record,
                                  struct idem_local_error *reterr)
{
    (void)local;
    (void)scope;
    (void)ret_record;
    return refuse(reterr);
}

static enum idem_local_err due(const struct idem_local *local,
                               int limit,
                               struct idem_local_list **ret_list,
                               struct idem_local_error *reterr)
{
    (void)local;
    (void)limit;
    (void)ret_list;
    return refuse(reterr);
}

static enum idem_local_err reap(const struct idem_local *local,
                                int limit,
                                struct idem_local_reaped *ret_reaped,
                                struct idem_local_error *reterr)
{
    (void)local;
    (void)limit;
    (void)ret_reaped;
    return refuse(reterr);
}

const struct idem_local_ops idem_local_postgres_ops = {
    .install = enter,
    .enter = enter,
    .apply = apply,
    .lookup = lookup,
    .due = due,
    .reap = reap,
};
