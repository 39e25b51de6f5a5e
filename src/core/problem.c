/*
 * The table behind the enum. `new-key` may be said only when the refusal is stored and nothing
 * happened; test/unit/core checks that relation over the whole list.
 */
#include "core/problem.h"

#include "base/bug.h"

static const struct idem_problem_entry entries[IDEM_PROBLEM_COUNT] = {
#define IDEM_PROBLEM(symbol, wire_code, http_status, effect_advice, retry_advice, title_text) \
    [IDEM_PROBLEM_##symbol] = {                                                               \
        .code = (wire_code),                                                                  \
        .title = (title_text),                                                                \
        .status = (http_status),                                                              \
        .effect = IDEM_EFFECT_##effect_advice,                                                \
        .retry = IDEM_RETRY_##retry_advice,                                                   \
    },
#include "core/problem.def" // IWYU pragma: keep
#undef IDEM_PROBLEM
};

const struct idem_problem_entry *idem_problem_entry(enum idem_problem problem)
{
    IDEM_ASSERT(problem > IDEM_PROBLEM_NONE);
    IDEM_ASSERT(problem < IDEM_PROBLEM_COUNT);
    return &entries[problem];
}

const char *idem_advice_effect_name(enum idem_advice_effect effect)
{
    switch (effect) {
    case IDEM_EFFECT_NONE:
        return "none";
    case IDEM_EFFECT_UNKNOWN:
        return "unknown";
    case IDEM_EFFECT_DONE:
        return "done";
    case IDEM_EFFECT_DEPENDS:
        break;
    }
    IDEM_UNREACHABLE();
}

const char *idem_advice_retry_name(enum idem_advice_retry retry)
{
    switch (retry) {
    case IDEM_RETRY_NEVER:
        return "never";
    case IDEM_RETRY_SAME_KEY:
        return "same-key";
    case IDEM_RETRY_NEW_KEY:
        return "new-key";
    case IDEM_RETRY_QUERY:
        return "query";
    }
    IDEM_UNREACHABLE();
}
