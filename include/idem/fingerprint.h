/*
 * fingerprint.h - what must be the same in a repeat, in 32 bytes; part of idem.h.
 */
#ifndef IDEM_FINGERPRINT_H
#define IDEM_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "idem/idem_record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IDEM_API __attribute__((visibility("default"))) /* As in client.h. */

struct idem_local_fingerprint {
    uint8_t bytes[32];
};

/*
 * SHA-256 of JSON by its meaning: order of members, white space, escapes and the way a number is
 * written do not matter (1, 1.0 and 1e0 are the same; 9007199254740992 and ...993 are not).
 * IDEM_LOCAL_E_INVALID for what is not strict JSON of at most 1 MiB: duplicate members, for one.
 */
IDEM_API enum idem_local_err idem_local_fingerprint_json(
    const char *text,
    size_t size,
    struct idem_local_fingerprint *ret_fingerprint,
    struct idem_local_error *reterr);

/* SHA-256 of the bytes as they are. */
IDEM_API enum idem_local_err idem_local_fingerprint_bytes(
    const void *bytes,
    size_t size,
    struct idem_local_fingerprint *ret_fingerprint,
    struct idem_local_error *reterr);

#ifdef __cplusplus
}
#endif

#endif /* IDEM_FINGERPRINT_H */
