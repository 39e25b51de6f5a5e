/*
 * act.h - what operators did, kept until whoever writes it down takes it.
 *
 * A ring: when nobody takes them in time, the first stay, and the last says how many were lost.
 */
#ifndef IDEM_API_ACT_H
#define IDEM_API_ACT_H

#include <stddef.h>

#include "api/api.h"

#define IDEM_ACTS_MAX 64

struct idem_acts {
    struct idem_api_act all[IDEM_ACTS_MAX];
    size_t first;
    size_t count;
};

/* Copies it. */
void idem_acts_add(struct idem_acts *acts, const struct idem_api_act *act);

/* Moves at most `max` into `ret`, oldest first; returns how many. */
size_t idem_acts_take(struct idem_acts *acts, struct idem_api_act *ret, size_t max);

#endif /* IDEM_API_ACT_H */
