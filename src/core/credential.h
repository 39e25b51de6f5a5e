/*
 * credential.h - who may call, as a row: the secret's digest, never the secret.
 *
 * Several credentials may stand for one principal, so that a secret is changed without a gap and no
 * key is lost: keys belong to the principal. A revoked row stays, as history. Pure.
 */
#ifndef IDEM_CORE_CREDENTIAL_H
#define IDEM_CORE_CREDENTIAL_H

#include <stdint.h>

#include "base/digest.h"
#include "base/text.h"
#include "base/uid.h"

/* The values are stored: append only. */
enum idem_role {
    IDEM_ROLE_NONE = 0,
    IDEM_ROLE_MERCHANT, /* Makes and reads its own payments. */
    IDEM_ROLE_OPERATOR, /* Looks after everybody's; makes none. */
    IDEM_ROLE_COUNT
};

struct idem_credential_row {
    int64_t row;        /* The store's handle; 0: absent. */
    struct idem_uid id; /* Chosen by whoever adds it, so that adding is safe to repeat. */
    struct idem_str principal;
    enum idem_role role;
    struct idem_digest secret_sha256; /* Of the bearer token's bytes. */
    struct idem_str providers;        /* Granted entries, each followed by a space; "* ": all. */
    struct idem_str label;            /* What it is for; may be empty. */
    int64_t created_us;
    struct idem_str created_by;
    int64_t revoked_us; /* 0: it counts. */
    struct idem_str revoked_by;
};

const char *idem_role_name(enum idem_role role);     /* "merchant", "operator". */
enum idem_role idem_role_from(struct idem_str name); /* NONE if unknown. */

#endif /* IDEM_CORE_CREDENTIAL_H */
