/*
 * In place of the store, in a build without libpq: opening says so.
 */
#include "store/postgres/postgres.h"

struct idem_postgres_settings idem_postgres_settings_default(const char *url)
{
    return (struct idem_postgres_settings){ .url = url };
}

enum idem_err idem_postgres_open(const struct idem_postgres_settings *settings,
                                 const struct idem_store_options *options,
                                 struct idem_store **ret_store,
                                 struct idem_error *reterr)
{
    (void)settings; /* There is nothing to open it with. */
    (void)options;
    (void)ret_store;
    return idem_error_set(reterr, IDEM_E_STORE, "this idem was built without PostgreSQL");
}
