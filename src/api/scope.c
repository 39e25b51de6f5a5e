/*
 * One HMAC-SHA-256 under the effect secret over the three fields, each with its length. Its first
 * 128 bits are the scope, its first 130 the 26 characters of the effect id: whoever is told an
 * effect id by a provider finds the record (idem_effect_id_scope()). Derived and not random, so
 * that after yesterday's backup is restored the same key meets the provider's own memory.
 * docs/fingerprint.md has vectors.
 */
#include "api/scope.h"

#include <assert.h>
#include <string.h>

#include "base/bug.h"

static_assert(IDEM_DIGEST_SIZE * 8 >= IDEM_SCOPE_TAIL_LEN * 5,
              "the digest has enough bits for the effect id");

struct idem_scope_names idem_scope_make(struct idem_digester *digester,
                                        struct idem_str effect_secret,
                                        const struct idem_scope_of *of)
{
    struct idem_scope_names names;
    IDEM_ASSERT(of->key.len > 0);
    idem_hmac_begin(digester, effect_secret);
    idem_hmac_add_field(digester, of->principal);
    idem_hmac_add_field(digester, of->endpoint);
    idem_hmac_add_field(digester, of->key);
    struct idem_digest digest = idem_hmac_end(digester);

    memcpy(names.scope.bytes, digest.bytes, sizeof(names.scope.bytes));
    struct idem_buf tail;
    idem_buf_init(&tail, names.tail, sizeof(names.tail));
    idem_base32_print(digest.bytes, IDEM_DIGEST_SIZE, IDEM_SCOPE_TAIL_LEN, &tail);
    IDEM_ASSERT(!tail.full && tail.len == IDEM_SCOPE_TAIL_LEN);
    return names;
}
