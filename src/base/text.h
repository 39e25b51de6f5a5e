/*
 * text.h - borrowed text and bounded buffers.
 *
 * `struct idem_str` is a pointer and a length: borrowed, never terminated, bytes may be anything.
 * `struct idem_buf` writes into memory of its caller and never past `max`. A write that does not
 * fit writes nothing and sets `full`, which stays set: a chain of appends needs one check at its
 * end.
 */
#ifndef IDEM_BASE_TEXT_H
#define IDEM_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct idem_str {
    const char *data;
    size_t len;
};

struct idem_buf {
    char *data; /* The caller's memory. */
    size_t len;
    size_t max;
    bool full; /* Something did not fit; what is here is not to be used. */
};

/* A literal as text: IDEM_STR("abc"). */
#define IDEM_STR(literal) ((struct idem_str){ .data = (literal), .len = sizeof(literal) - 1 })

/* A terminated string as text; NULL is empty. */
struct idem_str idem_str_from(const char *terminated);

bool idem_str_equal(struct idem_str left, struct idem_str right);

/* ASCII letters compare without case, as HTTP field names and media types do (RFC 9110, 5.1). */
bool idem_str_equal_nocase(struct idem_str left, struct idem_str right);

bool idem_str_starts(struct idem_str text, struct idem_str prefix);

/* Below zero, zero or above, by bytes and then by length. */
int idem_str_compare(struct idem_str left, struct idem_str right);

/* The part from `from` on, at most `len` bytes; outside is empty. */
struct idem_str idem_str_slice(struct idem_str text, size_t from, size_t len);

/* Only bytes 0x21 to 0x7E, as ids, numbers and names are; no bytes at all count as such, too. */
bool idem_str_is_visible(struct idem_str text);

/* Index of the first `byte`, or text.len. */
size_t idem_str_find(struct idem_str text, char byte);

/* Without spaces and tabs at both ends (RFC 9110 calls them OWS). */
struct idem_str idem_str_trim(struct idem_str text);

/*
 * Splits at the first `separator`: returns what stands before it and leaves in `*text` what stands
 * behind. Without a separator returns all and leaves `*text` empty with data NULL.
 */
struct idem_str idem_str_next(struct idem_str *text, char separator);

/* Decimal digits only, no sign, no space. False leaves `*ret_value` alone (also on overflow). */
bool idem_str_to_i64(struct idem_str text, int64_t *ret_value) IDEM_MUST_CHECK;

void idem_buf_init(struct idem_buf *buf, char *memory, size_t max);
void idem_buf_reset(struct idem_buf *buf);
struct idem_str idem_buf_str(const struct idem_buf *buf);

void idem_buf_add(struct idem_buf *buf, struct idem_str text);
void idem_buf_add_bytes(struct idem_buf *buf, const void *data, size_t size);
void idem_buf_add_char(struct idem_buf *buf, char byte);
void idem_buf_add_i64(struct idem_buf *buf, int64_t value);
void idem_buf_add_hex(struct idem_buf *buf, const uint8_t *data, size_t size);

/* For edges and messages; the core uses the functions above. */
void idem_buf_printf(struct idem_buf *buf, const char *format, ...) IDEM_PRINTF(2, 3);

/*
 * Copies `text` into the buffer and returns the copy, which lives as long as the buffer's memory
 * and content. On overflow sets `full` and returns empty text.
 */
struct idem_str idem_buf_keep(struct idem_buf *buf, struct idem_str text);

#endif /* IDEM_BASE_TEXT_H */
