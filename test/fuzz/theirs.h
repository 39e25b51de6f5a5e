/*
 * theirs.h - JSON as a second reader understands it: jansson.
 *
 * A target that compares what we read with these functions has two readers that share no line.
 */
#ifndef IDEM_TEST_FUZZ_THEIRS_H
#define IDEM_TEST_FUZZ_THEIRS_H

#include <jansson.h>

#include "base/text.h"

/* NULL: jansson does not read it. json_decref() it. */
static inline json_t *theirs_load(struct idem_str text)
{
    return json_loadb(text.len == 0 ? "" : text.data, text.len,
                      JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

/* A string's text; data NULL for everything else, NULL included. */
static inline struct idem_str theirs_str(const json_t *value)
{
    if (!json_is_string(value)) {
        return (struct idem_str){ .data = NULL };
    }
    return (struct idem_str){ .data = json_string_value(value), .len = json_string_length(value) };
}

static inline struct idem_str theirs_text(const json_t *object, const char *name)
{
    return theirs_str(json_object_get(object, name));
}

static inline bool theirs_is(const json_t *object, const char *name, const char *expected)
{
    struct idem_str text = theirs_text(object, name);
    return text.data != NULL && idem_str_equal(text, idem_str_from(expected));
}

#endif /* IDEM_TEST_FUZZ_THEIRS_H */
