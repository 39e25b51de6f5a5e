/*
 * url.h - what a database's URL says, before anything is opened.
 *
 * Whoever prints a URL might print a password, so nobody does: messages and logs have the label.
 * What libpq takes from elsewhere (PGPASSWORD, a service file) is not looked at.
 */
#ifndef IDEM_STORE_POSTGRES_URL_H
#define IDEM_STORE_POSTGRES_URL_H

#include <stdbool.h>

#include "base/error.h"

#define IDEM_POSTGRES_URL_MAX   1024
#define IDEM_POSTGRES_LABEL_MAX 160

struct idem_postgres_url {
    char label[IDEM_POSTGRES_LABEL_MAX]; /* "postgres://HOST:PORT,.../DATABASE", cut if long. */
    char hosts[IDEM_POSTGRES_URL_MAX];   /* With commas between; empty: libpq's default. */
    bool has_password;                   /* The URL itself holds a secret. */
    bool has_service;                    /* A service file says more. */
    bool encrypts;                       /* No connection without TLS. */
    bool finds_primary;                  /* Of several hosts the one that can be written to. */
};

/* True if `text` begins as a URL of PostgreSQL does. */
bool idem_postgres_url_is(const char *text);

/* IDEM_E_INVALID: it cannot be understood; the message repeats nothing of it. */
enum idem_err idem_postgres_url_read(const char *text,
                                     struct idem_postgres_url *ret_url,
                                     struct idem_error *reterr) IDEM_MUST_CHECK;

#endif /* IDEM_STORE_POSTGRES_URL_H */
