/*
 * problem.h - the catalogue of problem.def as an enum and a table.
 */
#ifndef IDEM_CORE_PROBLEM_H
#define IDEM_CORE_PROBLEM_H

#include <stdint.h>

enum idem_problem {
    IDEM_PROBLEM_NONE = 0,
#define IDEM_PROBLEM(symbol, code, status, effect, retry, title) IDEM_PROBLEM_##symbol,
#include "core/problem.def" // IWYU pragma: keep
#undef IDEM_PROBLEM
    IDEM_PROBLEM_COUNT
};

/* Did anything happen? */
enum idem_advice_effect {
    IDEM_EFFECT_NONE = 0,
    IDEM_EFFECT_UNKNOWN,
    IDEM_EFFECT_DONE,
    IDEM_EFFECT_DEPENDS /* Never on the wire: whoever answers knows the intent and says which. */
};

/* What should the caller do? */
enum idem_advice_retry {
    IDEM_RETRY_NEVER = 0, /* These bytes will never succeed. */
    IDEM_RETRY_SAME_KEY,  /* The same request, later, under the same key. */
    IDEM_RETRY_NEW_KEY,   /* A new intent under a new key; the old one is over and nothing moved. */
    IDEM_RETRY_QUERY      /* Ask; do not send. */
};

struct idem_problem_entry {
    const char *code; /* Last part of the problem type URI; stable. */
    const char *title;
    uint16_t status;
    enum idem_advice_effect effect;
    enum idem_advice_retry retry;
};

/* Never NULL; `problem` is not NONE. */
const struct idem_problem_entry *idem_problem_entry(enum idem_problem problem);

/* "none", "unknown", "done". Not for DEPENDS. */
const char *idem_advice_effect_name(enum idem_advice_effect effect);

/* "never", "same-key", "new-key", "query". */
const char *idem_advice_retry_name(enum idem_advice_retry retry);

#endif /* IDEM_CORE_PROBLEM_H */
