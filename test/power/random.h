/*
 * random.h - the seed's numbers: the same ones on every machine.
 */
#ifndef IDEM_TEST_POWER_RANDOM_H
#define IDEM_TEST_POWER_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* Steele, Lea and Flood: splitmix64. */
struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = random->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* One of 0 to count - 1. */
static inline uint64_t random_below(struct random *random, uint64_t count)
{
    return count == 0 ? 0 : random_next(random) % count;
}

static inline bool random_percent(struct random *random, uint64_t percent)
{
    return random_below(random, 100) < percent;
}

#endif /* IDEM_TEST_POWER_RANDOM_H */
