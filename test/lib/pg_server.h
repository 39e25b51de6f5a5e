/*
 * pg_server.h - a private PostgreSQL server in a temporary directory, for the time of a test.
 *
 * It listens on a Unix socket in that directory and on 127.0.0.1, trusts everybody, and flushes
 * what it acknowledges (fsync is on). It ends with the program that started it. Its programs are
 * those of $IDEM_PG_BIN, or the newest that Debian's packages have put on the machine. As root it
 * runs as an unprivileged user, since PostgreSQL refuses to be root.
 */
#ifndef IDEM_TEST_LIB_PG_SERVER_H
#define IDEM_TEST_LIB_PG_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#define PG_SETTINGS_MAX 8

struct pg_server {
    char directory[64];
    char url[160]; /* For libpq: the role owns everything. */
    int port;
    pid_t pid; /* 0: it does not run. */
};

/* Makes the directory and an empty cluster. These fail the test if they cannot. */
void pg_server_init(struct pg_server *server);
/* `settings` are "name=value", up to a NULL; NULL: none. Waits until it answers. */
void pg_server_start(struct pg_server *server, const char *const *settings);
/* With everything that runs on it. */
void pg_server_stop(struct pg_server *server);
/* Stops it, removes the directory. */
void pg_server_deinit(struct pg_server *server);

/* The next start is one as a standby, or not any more. */
void pg_server_set_standby(struct pg_server *server, bool standby);

/* Runs SQL that must work. */
void pg_server_say(struct pg_server *server, const char *sql);
/* The first value of the first row as a number; no row is 0. */
long long pg_server_number(struct pg_server *server, const char *sql);

#endif /* IDEM_TEST_LIB_PG_SERVER_H */
