/*
 * dialect.h - how the known APIs spell idempotency keys.
 *
 * One line of dialect.def each. What their answers mean is meaning.def.
 */
#ifndef IDEM_CLIENT_DIALECT_H
#define IDEM_CLIENT_DIALECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum idem_dialect_id {
    IDEM_DIALECT_ANY = 0, /* In rules: whoever answers. */
    IDEM_DIALECT_IDEM,
    IDEM_DIALECT_IETF, /* draft-ietf-httpapi-idempotency-key-header */
    IDEM_DIALECT_STRIPE,
    IDEM_DIALECT_ADYEN,
    IDEM_DIALECT_PAYPAL,
    IDEM_DIALECT_COUNT
};

/* Where in an error's body its code stands. */
enum idem_error_shape {
    IDEM_SHAPE_NONE = 0,
    IDEM_SHAPE_PROBLEM, /* RFC 9457: the last part of `type`, behind its last ':' or '/'. */
    IDEM_SHAPE_STRIPE,  /* error.type if "idempotency_error", else error.code, else error.type */
    IDEM_SHAPE_ADYEN,   /* errorCode, text or number */
    IDEM_SHAPE_PAYPAL   /* details[0].issue, else name */
};

struct idem_dialect {
    enum idem_dialect_id id;
    const char *name;
    const char *key_header;
    size_t key_max;           /* Bytes. */
    const char *first_sent;   /* Header that says when the first try was; NULL: none. */
    const char *replayed;     /* Header that marks a replay; NULL: none. */
    const char *expires;      /* Header that says when the key is forgotten; NULL: none. */
    const char *should_retry; /* Header with "true" or "false"; NULL: none. */
    enum idem_error_shape shape;
    bool key_quoted;     /* As a String of RFC 9651. */
    bool echoes_key;     /* A 2xx without the key is not that API's. */
    bool has_operations; /* The outcome can be asked for: inquiry.h. */
    int64_t window_us;   /* From the first send on a key is known for certain; margin taken off. */
};

/* NULL: no dialect has this name. */
const struct idem_dialect *idem_dialect_find(struct idem_str name);

/* Not ANY, not COUNT; never NULL. */
const struct idem_dialect *idem_dialect_get(enum idem_dialect_id id);

/* Whether `key` can be used: 1 to key_max bytes of 0x21-0x7E. */
bool idem_dialect_takes_key(const struct idem_dialect *dialect, struct idem_str key);

/* Appends "Header: value" with the key as the dialect spells it. */
void idem_dialect_key_line(const struct idem_dialect *dialect,
                           struct idem_str key,
                           struct idem_buf *buf);

#endif /* IDEM_CLIENT_DIALECT_H */
