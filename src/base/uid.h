/*
 * uid.h - 128-bit identifiers: UUIDv7 (RFC 9562, 5.7) for what is named, random ones for tokens.
 *
 * UUIDv7 begins with the time in milliseconds, so that rows made together lie together in an index.
 */
#ifndef IDEM_BASE_UID_H
#define IDEM_BASE_UID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct idem_random;

struct idem_uid {
    uint8_t bytes[16];
};

#define IDEM_UID_TEXT_LEN 36 /* 8-4-4-4-12 lower-case hexadecimal digits. */

bool idem_uid_equal(struct idem_uid left, struct idem_uid right);
bool idem_uid_is_zero(struct idem_uid uid);

/* A UUIDv7 of this moment. */
struct idem_uid idem_uid_make(int64_t wall_us, struct idem_random *random);

/* The same by the system's clock and randomness, for whoever has no others. */
struct idem_uid idem_uid_make_now(void);

/* 128 random bits. */
struct idem_uid idem_uid_make_token(struct idem_random *random);

void idem_uid_print(struct idem_uid uid, struct idem_buf *buf);

/* Exactly the printed form, either case. False leaves `*ret_uid` alone. */
bool idem_uid_parse(struct idem_str text, struct idem_uid *ret_uid) IDEM_MUST_CHECK;

#endif /* IDEM_BASE_UID_H */
