/*
 * The names of states, which are the service's own words where it has one.
 */
#include "reconcile/line.h"

#include "base/attr.h"
#include "base/bug.h"

const char *idem_line_state_name(enum idem_line_state state)
{
    static const char *const names[IDEM_LINE_STATE_COUNT] = {
        [IDEM_LINE_NONE] = "",
        [IDEM_LINE_SUCCEEDED] = "succeeded",
        [IDEM_LINE_FAILED] = "failed",
        [IDEM_LINE_REVERSED] = "reversed",
        [IDEM_LINE_RELEASED] = "released",
        [IDEM_LINE_OPEN] = "open",
        [IDEM_LINE_PARKED] = "parked",
    };
    IDEM_ASSERT(state < IDEM_LINE_STATE_COUNT);
    return names[state];
}

struct word {
    const char *name;
    enum idem_line_state state;
};

static enum idem_line_state word_find(const struct word *words, size_t count, struct idem_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (idem_str_equal(name, idem_str_from(words[i].name))) {
            return words[i].state;
        }
    }
    return IDEM_LINE_NONE;
}

enum idem_line_state idem_line_state_here(struct idem_str name)
{
    static const struct word words[] = {
        { "succeeded", IDEM_LINE_SUCCEEDED }, { "failed", IDEM_LINE_FAILED },
        { "released", IDEM_LINE_RELEASED },   { "processing", IDEM_LINE_OPEN },
        { "unknown", IDEM_LINE_OPEN },        { "parked", IDEM_LINE_PARKED },
    };
    return word_find(words, IDEM_ARRAY_COUNT(words), name);
}

enum idem_line_state idem_line_state_there(struct idem_str name)
{
    static const struct word words[] = {
        { "succeeded", IDEM_LINE_SUCCEEDED },
        { "failed", IDEM_LINE_FAILED },
        { "reversed", IDEM_LINE_REVERSED },
    };
    return word_find(words, IDEM_ARRAY_COUNT(words), name);
}
