/*
 * json_internal.h - what the files of the JSON reader and writer share. Nothing else includes it.
 */
#ifndef IDEM_BASE_JSON_INTERNAL_H
#define IDEM_BASE_JSON_INTERNAL_H

#include "base/json.h"

/* A string read byte by byte with its escapes resolved. */
struct idem_json_unescaping {
    struct idem_str rest;
    char character[4]; /* What the last escape stands for, */
    size_t size;       /* how many bytes that is, */
    size_t used;       /* and how many of them were read. */
};

/* The next byte, or -1 at the end. */
int idem_json_unescaping_next(struct idem_json_unescaping *string);

/* Size of the well-formed character at the start of `text` (RFC 3629, 4), or 0. */
size_t idem_utf8_size(struct idem_str text);

/* The value of \uXXXX at `at`, or -1 if that is not what stands there. */
int32_t idem_json_unit_at(struct idem_str text, size_t at);

bool idem_json_unit_is_high(int32_t unit); /* The first half of a surrogate pair. */
bool idem_json_unit_is_low(int32_t unit);  /* The second half. */

/* Appends the string `token` with quotes and the fewest escapes. */
void idem_json_add_token(struct idem_buf *buf, const struct idem_json_token *token);

#endif /* IDEM_BASE_JSON_INTERNAL_H */
