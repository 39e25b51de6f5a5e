/*
 * A bucket of `burst` requests that fills with `rate` a second. It counts in millionths of a
 * request, so that a microsecond of filling is a whole number at every rate; the product cannot
 * overflow, because what would overfill the bucket is cut off by a division before.
 *
 * A request that the bucket refuses takes nothing from it: who is refused and comes again on time
 * is not punished for having asked.
 *
 * Looks into the store have few places, and a principal that may have a thousand requests inside
 * could keep all of them: one with a limit has half, so that the others' get through.
 */
#include "api/account.h"

#include <assert.h>
#include <string.h>

#include "base/bug.h"

#define REQUEST_DROPS INT64_C(1000000)
#define CROWD_WAIT_US IDEM_US_PER_SECOND
#define FULL_FOR_SURE INT64_MAX /* Of a bucket that nothing was taken from. */

/* So `rate` requests a second are `rate` drops a microsecond. */
static_assert(REQUEST_DROPS == IDEM_US_PER_SECOND, "a second has as many microseconds as that");

struct idem_str idem_account_principal(const struct idem_account *account)
{
    return (struct idem_str){ .data = account->principal, .len = account->principal_len };
}

static bool is_free(const struct idem_account *account)
{
    return account->credentials == 0 && account->inside == 0;
}

struct idem_account *idem_account_take(struct idem_accounts *accounts, struct idem_str principal)
{
    struct idem_account *place = NULL;
    if (principal.len > IDEM_PRINCIPAL_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < accounts->max; i++) {
        struct idem_account *account = &accounts->all[i];
        if (is_free(account)) {
            place = place == NULL ? account : place;
        } else if (idem_str_equal(idem_account_principal(account), principal)) {
            account->credentials += 1;
            return account;
        }
    }
    if (place != NULL) {
        *place = (struct idem_account){
            .credentials = 1,
            .drops = FULL_FOR_SURE,
            .principal_len = principal.len,
        };
        memcpy(place->principal, principal.data, principal.len);
    }
    return place;
}

void idem_account_give(struct idem_account *account)
{
    IDEM_ASSERT(account->credentials > 0);
    account->credentials -= 1;
}

static void fill(struct idem_account *account, const struct idem_api_limits *limits, int64_t now_us)
{
    int64_t burst = limits->principal_burst > 0 ? limits->principal_burst : limits->principal_rate;
    int64_t full = burst * REQUEST_DROPS;
    int64_t passed_us = now_us - account->filled_us;
    account->filled_us = now_us;
    if (account->drops >= full || passed_us > (full - account->drops) / limits->principal_rate) {
        account->drops = full;
        return;
    }
    account->drops += passed_us * limits->principal_rate;
}

bool idem_account_enter(struct idem_account *account,
                        const struct idem_api_limits *limits,
                        int64_t now_us,
                        int64_t *ret_wait_us)
{
    if (limits->principal_requests_max > 0 && account->inside >= limits->principal_requests_max) {
        *ret_wait_us = CROWD_WAIT_US;
        return false;
    }
    if (limits->principal_rate > 0) {
        fill(account, limits, now_us);
        if (account->drops < REQUEST_DROPS) {
            *ret_wait_us = (REQUEST_DROPS - account->drops) / limits->principal_rate + 1;
            return false;
        }
        account->drops -= REQUEST_DROPS;
    }
    account->inside += 1;
    return true;
}

void idem_account_leave(struct idem_account *account)
{
    IDEM_ASSERT(account->inside > 0);
    account->inside -= 1;
}

void idem_account_undo(struct idem_account *account, const struct idem_api_limits *limits)
{
    idem_account_leave(account);
    if (limits->principal_rate > 0) {
        account->drops += REQUEST_DROPS;
    }
}

bool idem_account_may_read(const struct idem_account *account,
                           const struct idem_api_limits *limits,
                           size_t reads_max)
{
    size_t half = reads_max > 1 ? reads_max / 2 : 1;
    return limits->principal_requests_max == 0 || account->reads < half;
}
