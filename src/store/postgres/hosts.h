/*
 * hosts.h - the hosts of a URL, one at a time.
 *
 * libpq tries the hosts of a URL one after the other, but a connection that is made without
 * blocking has no time limit for each: one machine that is gone without a word would hold up the
 * way to the next for as long as we wait at all. So each host is tried alone, with a time of its
 * own.
 */
#ifndef IDEM_STORE_POSTGRES_HOSTS_H
#define IDEM_STORE_POSTGRES_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

#define IDEM_POSTGRES_HOSTS_MAX 8

struct pg_conn;
struct _PQconninfoOption;

struct idem_postgres_hosts {
    struct _PQconninfoOption *options;
    size_t count; /* At least 1; more than IDEM_POSTGRES_HOSTS_MAX are left to libpq as one. */
};

/* False: the URL cannot be read. Otherwise close it. */
bool idem_postgres_hosts_open(struct idem_postgres_hosts *hosts, const char *url) IDEM_MUST_CHECK;
void idem_postgres_hosts_close(struct idem_postgres_hosts *hosts);

/* As PQconnectStart() to one of them. NULL: there is no memory. */
struct pg_conn *idem_postgres_hosts_start(const struct idem_postgres_hosts *hosts, size_t index);

#endif /* IDEM_STORE_POSTGRES_HOSTS_H */
