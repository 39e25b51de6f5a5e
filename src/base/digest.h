/*
 * digest.h - SHA-256 and HMAC-SHA-256 (FIPS 180-4, RFC 2104), through libcrypto.
 *
 * Algorithms are fetched once at init; fetching for each digest costs as much as the digest.
 * A `struct idem_digester` belongs to one thread.
 */
#ifndef IDEM_BASE_DIGEST_H
#define IDEM_BASE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define IDEM_DIGEST_SIZE 32

struct idem_digest {
    uint8_t bytes[IDEM_DIGEST_SIZE];
};

struct idem_digester;

/* Gives a digester; destroy it with idem_digester_destroy(). */
enum idem_err idem_digester_create(struct idem_digester **ret_digester,
                                   struct idem_error *reterr) IDEM_MUST_CHECK;
void idem_digester_destroy(struct idem_digester *digester);

struct idem_digest idem_digest_sha256(struct idem_digester *digester, struct idem_str text);

/* Begins an HMAC with `key`; then any number of adds, then one end. */
void idem_hmac_begin(struct idem_digester *digester, struct idem_str key);
void idem_hmac_add(struct idem_digester *digester, struct idem_str text);
/* Adds the length as eight bytes, then the text, so that ("ab","c") and ("a","bc") differ. */
void idem_hmac_add_field(struct idem_digester *digester, struct idem_str text);
struct idem_digest idem_hmac_end(struct idem_digester *digester);

/* In a time that does not depend on where they differ. */
bool idem_digest_equal(struct idem_digest left, struct idem_digest right);

/*
 * Lower-case base32 without padding, digits then letters without i l o u (Crockford), `len`
 * characters.
 */
void idem_base32_print(const uint8_t *data, size_t size, size_t len, struct idem_buf *buf);

/* The first `size` bytes that such text stands for; false: too short, or not of that alphabet. */
bool idem_base32_read(struct idem_str text, uint8_t *ret_data, size_t size);

#endif /* IDEM_BASE_DIGEST_H */
