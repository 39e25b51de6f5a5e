/*
 * HMAC and not a plain hash: amounts and order numbers have little entropy, and whoever reads a
 * copy of the store should not be able to guess bodies against their fingerprints. Every field goes
 * in with its length, so that no two requests share their bytes by shifting a border.
 */
#include "api/fingerprint.h"

#include <assert.h>

#include "base/bug.h"

static_assert(IDEM_API_SECRETS_MAX * (IDEM_FINGERPRINT_RULE_COUNT - 1) <= IDEM_FINGERPRINTS_MAX,
              "a command has room for every rule under every secret");

struct idem_fingerprint idem_fingerprint_make(struct idem_digester *digester,
                                              enum idem_fingerprint_rule rule,
                                              const struct idem_secret *secret,
                                              const struct idem_fingerprint_of *of)
{
    IDEM_ASSERT(rule > IDEM_FINGERPRINT_RULE_NONE);
    IDEM_ASSERT(rule < IDEM_FINGERPRINT_RULE_COUNT);
    char digits[24];
    struct idem_buf number;
    idem_buf_init(&number, digits, sizeof(digits));
    idem_buf_add_i64(&number, rule);

    idem_hmac_begin(digester, secret->bytes);
    idem_hmac_add_field(digester, idem_buf_str(&number));
    idem_hmac_add_field(digester, of->method);
    idem_hmac_add_field(digester, of->path);
    idem_hmac_add_field(digester, of->query);
    idem_hmac_add_field(digester, of->media_type);
    idem_hmac_add_field(digester, of->body[rule]);
    return (struct idem_fingerprint){
        .rule_id = rule,
        .secret_id = secret->id,
        .digest = idem_hmac_end(digester),
    };
}

void idem_fingerprint_fill(struct idem_digester *digester,
                           const struct idem_api_options *options,
                           enum idem_fingerprint_rule current,
                           const struct idem_fingerprint_of *of,
                           struct idem_accept *accept)
{
    enum idem_fingerprint_rule other = current == IDEM_FINGERPRINT_RULE_JSON
                                           ? IDEM_FINGERPRINT_RULE_RAW
                                           : IDEM_FINGERPRINT_RULE_JSON;
    const enum idem_fingerprint_rule rules[] = { current, other };
    uint32_t count = 0;
    for (size_t r = 0; r < IDEM_ARRAY_COUNT(rules); r++) {
        for (size_t s = 0; s < options->fingerprint_secret_count; s++) {
            accept->fingerprints[count] =
                idem_fingerprint_make(digester, rules[r], &options->fingerprint_secrets[s], of);
            count += 1;
        }
    }
    accept->fingerprint_count = count;
}
