/*
 * credentials.h - who may call, in memory: the configuration's credentials and the store's.
 *
 * The store is the truth about its own; here stands what counts of it, so that nobody who calls
 * waits for the store. Only what is durable there is put here.
 */
#ifndef IDEM_API_CREDENTIALS_H
#define IDEM_API_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/account.h"
#include "api/api.h"
#include "base/uid.h"
#include "core/credential.h"

/* One of them. */
struct idem_caller {
    struct idem_digest secret_sha256;
    struct idem_uid id; /* Zeros: the configuration's. */
    enum idem_role role;
    struct idem_account *account; /* Its principal. */
    bool every_provider;
    uint32_t providers; /* Bit i: the rules' provider i is granted. */
    int64_t created_us; /* 0: the configuration's. */
    size_t label_len;
    size_t created_by_len;
    char label[IDEM_LABEL_MAX];
    char created_by[IDEM_API_BY_MAX];
};

struct idem_credentials {
    const struct idem_rules *rules;
    struct idem_accounts accounts;
    struct idem_caller *configured; /* One of two, so that a reload that fails changes nothing. */
    size_t configured_count;
    struct idem_caller *spare;
    struct idem_caller *stored;
    size_t stored_count;
    size_t stored_max;
    size_t promised;   /* Places for what is on its way into the store. */
    bool complete;     /* The store's were all read ... */
    bool crowded;      /* ... and did not all fit. */
    bool missed;       /* One did not fit since the reading that goes on began. */
    bool again;        /* There is room for one that did not fit: read them again. */
    uint64_t removals; /* A page that was asked for before the last one is not to be believed. */
    uint16_t *index;   /* By digest: 0 is free, else 1 + place, configured ones first. */
    size_t index_size;
};

/* Empty, but for memory. `requests_max`: how many can hold an account beside the credentials. */
enum idem_err idem_credentials_init(struct idem_credentials *table,
                                    const struct idem_api_options *options,
                                    struct idem_error *reterr) IDEM_MUST_CHECK;
void idem_credentials_free(struct idem_credentials *table);

/* Replaces the configuration's; `bootstrap_sha256` zeros: none. On error nothing has changed. */
enum idem_err idem_credentials_configure(struct idem_credentials *table,
                                         const struct idem_credential *credentials,
                                         size_t count,
                                         struct idem_digest bootstrap_sha256,
                                         struct idem_error *reterr) IDEM_MUST_CHECK;

/* Around the rows of one reading of all that the store has. */
void idem_credentials_read_begin(struct idem_credentials *table);
void idem_credentials_read_end(struct idem_credentials *table);

/* Who has this secret, or NULL. Valid until the table changes. */
const struct idem_caller *idem_credentials_find(const struct idem_credentials *table,
                                                struct idem_digest secret_sha256);

/* Nobody unknown can be refused for good: there may be more in the store. */
bool idem_credentials_may_miss(const struct idem_credentials *table);

/* The store's credential `id`, if it counts, or NULL. */
const struct idem_caller *idem_credentials_by_id(const struct idem_credentials *table,
                                                 struct idem_uid id);

/* Keeps a place for one more; false: there is none. Ends with idem_credentials_forgo(). */
bool idem_credentials_promise(struct idem_credentials *table) IDEM_MUST_CHECK;
void idem_credentials_forgo(struct idem_credentials *table);

/*
 * A durable row counts from now on, if a place is free that was not promised. One that is revoked,
 * here already, or not as anything here writes it changes nothing.
 */
void idem_credentials_put(struct idem_credentials *table, const struct idem_credential_row *row);

/* Does not count any more. */
void idem_credentials_remove(struct idem_credentials *table, struct idem_uid id);

struct idem_str idem_caller_label(const struct idem_caller *caller);
struct idem_str idem_caller_created_by(const struct idem_caller *caller);

#endif /* IDEM_API_CREDENTIALS_H */
