/*
 * The first acts are kept and not the latest: whoever wants to hide one must not be able to push it
 * out with others. That some are missing, and how many, always comes out with the last.
 */
#include "api/act.h"

#include "base/bug.h"

void idem_acts_add(struct idem_acts *acts, const struct idem_api_act *act)
{
    IDEM_ASSERT(acts->count <= IDEM_ACTS_MAX);
    if (acts->count == IDEM_ACTS_MAX) {
        acts->all[(acts->first + acts->count - 1) % IDEM_ACTS_MAX].lost += 1;
        return;
    }
    struct idem_api_act *place = &acts->all[(acts->first + acts->count) % IDEM_ACTS_MAX];
    *place = *act;
    place->lost = 0;
    acts->count += 1;
}

size_t idem_acts_take(struct idem_acts *acts, struct idem_api_act *ret, size_t max)
{
    size_t taken = 0;
    while (taken < max && acts->count > 0) {
        ret[taken] = acts->all[acts->first];
        acts->first = (acts->first + 1) % IDEM_ACTS_MAX;
        acts->count -= 1;
        taken += 1;
    }
    return taken;
}

struct idem_str idem_api_act_by(const struct idem_api_act *act)
{
    return (struct idem_str){ .data = act->by, .len = act->by_len };
}
