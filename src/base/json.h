/*
 * json.h - a strict reader and a bounded writer of JSON (RFC 8259, I-JSON of RFC 7493).
 *
 * Reading makes a tape: an array of tokens in document order, in the caller's memory. Nothing is
 * allocated and nothing recurses. Numbers stay text: 9007199254740992 and ...993 are different
 * numbers here. Refused: duplicate member names (after unescaping, so "\u0062" repeats "b"),
 * invalid UTF-8 (overlong, surrogates, above 10FFFF), lone surrogate escapes, a byte order mark,
 * raw control characters, leading zeros, anything after the value, nesting deeper than
 * IDEM_JSON_DEPTH_MAX, more tokens than the tape has room for. Let through: \u0000, which unescapes
 * to a zero byte, and noncharacters such as U+FFFF. No valid text of n bytes has more than
 * (n + 1) / 2 tokens.
 */
#ifndef IDEM_BASE_JSON_H
#define IDEM_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define IDEM_JSON_DEPTH_MAX   32 /* An array in an array has depth two. */
#define IDEM_JSON_IGNORED_MAX 16 /* Pointers that idem_json_canonical() takes. */

enum idem_json_kind {
    IDEM_JSON_NONE = 0,
    IDEM_JSON_NULL,
    IDEM_JSON_FALSE,
    IDEM_JSON_TRUE,
    IDEM_JSON_NUMBER,
    IDEM_JSON_STRING,
    IDEM_JSON_ARRAY,
    IDEM_JSON_OBJECT,
    IDEM_JSON_COUNT
};

struct idem_json_token {
    enum idem_json_kind kind;
    /*
     * The value as it stands in the document: a string without its quotes, escapes still in it;
     * an array or object from bracket to bracket.
     */
    struct idem_str raw;
    uint32_t count; /* Members of an object, elements of an array. */
    uint32_t next;  /* Index of the token behind this value and all in it. */
    /*
     * The members of an object in the order of their unescaped names, by bytes: in the object the
     * index of the first name, in a name that of the next one. Zero ends.
     */
    uint32_t sorted;
    bool escaped; /* A string that has escapes. */
};

/*
 * In an object the tape holds name, value, name, value; a name is a STRING token whose `next` is
 * its value's index. The root is token 0.
 */
struct idem_json {
    struct idem_json_token *tokens; /* The caller's memory. */
    size_t count;
    size_t max;
};

struct idem_json_fault {
    size_t offset;    /* Of the first byte that is wrong. */
    const char *what; /* A constant sentence part: "duplicate member name". */
};

void idem_json_init(struct idem_json *json, struct idem_json_token *tokens, size_t max);

/* `text` is borrowed as long as the tape is used. False fills `*ret_fault` and empties the tape. */
bool idem_json_parse(struct idem_json *json,
                     struct idem_str text,
                     struct idem_json_fault *ret_fault) IDEM_MUST_CHECK;

/* Index of the value of member `name` (unescaped) of the object at `object`, or 0 if absent. */
size_t idem_json_member(const struct idem_json *json, size_t object, struct idem_str name);

/* Appends the string at `index` with its escapes resolved. */
void idem_json_unescape(const struct idem_json *json, size_t index, struct idem_buf *buf);

/*
 * Canonical form, for comparing by meaning: members sorted by the bytes of their unescaped names,
 * no white space, strings with the fewest escapes, numbers by exact decimal value. Two texts have
 * the same form exactly if they mean the same. A number is written as [-]digits[e[-]exponent]
 * without a point and without trailing zeros: 1, 1.0, 1e0 and 10e-1 are all `1`; 100 is `1e2`;
 * any zero is `0`. Values at the JSON pointers (RFC 6901) in `ignored`, at most
 * IDEM_JSON_IGNORED_MAX, are left out with their names; "" leaves out everything, and a pointer
 * that is malformed or points nowhere leaves out nothing. The form is shorter than twice the text.
 * Fails only by `buf` being full, or when an exponent exceeds 64 bits (returns false).
 */
bool idem_json_canonical(const struct idem_json *json,
                         const struct idem_str *ignored,
                         size_t ignored_count,
                         struct idem_buf *buf) IDEM_MUST_CHECK;

/* Appends `text` as a JSON string with quotes, fewest escapes. `text` must be valid UTF-8. */
void idem_json_add_string(struct idem_buf *buf, struct idem_str text);

/* The value of a Content-Type says JSON: application/json, or anything "+json". No case. */
bool idem_json_is_media_type(struct idem_str value);

/* True if `text` is well-formed UTF-8 (RFC 3629). */
bool idem_utf8_valid(struct idem_str text);

#endif /* IDEM_BASE_JSON_H */
