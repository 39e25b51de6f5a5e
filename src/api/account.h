/*
 * account.h - principals as the edge counts them: how many requests each has inside, and how fast
 * they come.
 *
 * A principal is here as long as a credential stands for it or a request of its is inside, so what
 * a visit holds is valid until it ends, whatever happens to the credential.
 */
#ifndef IDEM_API_ACCOUNT_H
#define IDEM_API_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "base/text.h"
#include "core/limits.h"

struct idem_account {
    size_t credentials; /* That stand for it. */
    size_t inside;      /* Requests. */
    size_t reads;       /* Of these, how many look into the store. */
    int64_t drops;      /* In the bucket, in millionths of a request. */
    int64_t filled_us;  /* Monotonic, when `drops` was right. */
    size_t principal_len;
    char principal[IDEM_PRINCIPAL_MAX];
};

struct idem_accounts {
    struct idem_account *all;
    size_t max;
};

struct idem_str idem_account_principal(const struct idem_account *account);

/* The principal's account, for one more credential; NULL: no room, or it is too long for one. */
struct idem_account *idem_account_take(struct idem_accounts *accounts, struct idem_str principal);

/* One credential less. */
void idem_account_give(struct idem_account *account);

/*
 * One more request, if the limits allow it at `now_us` (monotonic). False: `*ret_wait_us` says when
 * to try again.
 */
bool idem_account_enter(struct idem_account *account,
                        const struct idem_api_limits *limits,
                        int64_t now_us,
                        int64_t *ret_wait_us) IDEM_MUST_CHECK;

/* The request has its answer. */
void idem_account_leave(struct idem_account *account);

/* Likewise, but it was not served at all: as if it had never come. Right behind the entering. */
void idem_account_undo(struct idem_account *account, const struct idem_api_limits *limits);

/* One more of its requests may look into the store, which has `reads_max` places for that. */
bool idem_account_may_read(const struct idem_account *account,
                           const struct idem_api_limits *limits,
                           size_t reads_max) IDEM_MUST_CHECK;

#endif /* IDEM_API_ACCOUNT_H */
