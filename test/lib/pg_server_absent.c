/*
 * In place of pg_server.c, in a build without libpq: there is none.
 */
#include "lib/pg_server.h"

#include "lib/test.h"

void pg_server_init(struct pg_server *server)
{
    (void)server;
    fail_msg("built without libpq");
}

void pg_server_start(struct pg_server *server, const char *const *settings)
{
    (void)server;
    (void)settings;
    fail_msg("built without libpq");
}

void pg_server_stop(struct pg_server *server)
{
    (void)server; /* It never ran. */
}

void pg_server_deinit(struct pg_server *server)
{
    (void)server; /* Likewise. */
}

void pg_server_set_standby(struct pg_server *server, bool standby)
{
    (void)server; /* Likewise. */
    (void)standby;
}

void pg_server_say(struct pg_server *server, const char *sql)
{
    (void)server;
    fail_msg("built without libpq: %s", sql);
}

long long pg_server_number(struct pg_server *server, const char *sql)
{
    (void)server;
    fail_msg("built without libpq: %s", sql);
    return 0;
}
