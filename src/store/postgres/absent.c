/*
 * In place of the store, in a build without libpq: opening says so.
 */
#include "store/postgres/migrate.h"
#include "store/postgres/postgres.h"
#include "store/postgres/url.h"

#define ABSENT "this idem was built without PostgreSQL"

enum idem_err idem_postgres_has_store(const struct idem_postgres_settings *settings,
                                      bool *ret_there,
                                      struct idem_error *reterr)
{
    (void)settings; /* There is nothing to look with. */
    (void)ret_there;
    return idem_error_set(reterr, IDEM_E_STORE, ABSENT);
}

enum idem_err idem_postgres_url_read(const char *text,
                                     struct idem_postgres_url *ret_url,
                                     struct idem_error *reterr)
{
    (void)text; /* There is nothing to read it with. */
    (void)ret_url;
    return idem_error_set(reterr, IDEM_E_INVALID, ABSENT);
}

enum idem_err idem_postgres_open(const struct idem_postgres_settings *settings,
                                 const struct idem_store_options *options,
                                 struct idem_store **ret_store,
                                 struct idem_error *reterr)
{
    (void)settings; /* There is nothing to open it with. */
    (void)options;
    (void)ret_store;
    return idem_error_set(reterr, IDEM_E_STORE, ABSENT);
}

enum idem_err idem_postgres_migrate(const struct idem_postgres_settings *settings,
                                    struct idem_postgres_migrated *ret_migrated,
                                    struct idem_error *reterr)
{
    (void)settings; /* There is nothing to migrate it with. */
    (void)ret_migrated;
    return idem_error_set(reterr, IDEM_E_STORE, ABSENT);
}
