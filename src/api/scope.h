/*
 * scope.h - the names that follow from (principal, endpoint, key): where the record lies, and what
 * the provider knows the effect by.
 */
#ifndef IDEM_API_SCOPE_H
#define IDEM_API_SCOPE_H

#include "base/digest.h"
#include "base/text.h"
#include "core/intent.h"

#define IDEM_SCOPE_TAIL_LEN (IDEM_EFFECT_ID_LEN - 1)

struct idem_scope_of {
    struct idem_str principal;
    struct idem_str endpoint; /* Empty where a key is one key over all endpoints. */
    struct idem_str key;
};

struct idem_scope_names {
    struct idem_scope scope;
    char tail[IDEM_SCOPE_TAIL_LEN]; /* The effect id without its kind letter. */
};

struct idem_scope_names idem_scope_make(struct idem_digester *digester,
                                        struct idem_str effect_secret,
                                        const struct idem_scope_of *of);

#endif /* IDEM_API_SCOPE_H */
