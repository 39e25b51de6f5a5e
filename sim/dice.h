/*
 * dice.h - the one source of chance in a run: the same seed gives the same throws.
 *
 * Threads: one.
 */
#ifndef IDEM_SIM_DICE_H
#define IDEM_SIM_DICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

struct sim_dice {
    uint64_t state;
};

/* The random bytes of a process, thrown by the run's dice. */
struct sim_random {
    struct idem_random base; /* First. */
    struct sim_dice *dice;   /* Borrowed. */
};

void sim_dice_init(struct sim_dice *dice, uint64_t seed);

uint64_t sim_dice_next(struct sim_dice *dice);

/* 0 to `count` - 1. */
uint64_t sim_dice_below(struct sim_dice *dice, uint64_t count);

/* From `min` to `max`, both among them. */
int64_t sim_dice_between(struct sim_dice *dice, int64_t min, int64_t max);

/* As often as `per_mille` times in a thousand. */
bool sim_dice_chance(struct sim_dice *dice, uint64_t per_mille);

/* 0 to `max`; short ones are as frequent as long ones. */
int64_t sim_dice_delay_us(struct sim_dice *dice, int64_t max_us);

void sim_random_init(struct sim_random *random, struct sim_dice *dice);

#endif /* IDEM_SIM_DICE_H */
