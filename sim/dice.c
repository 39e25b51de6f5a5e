/*
 * splitmix64: 64 bits of state, every seed is a good one, and a few lines that never change. It is
 * not unguessable and need not be: nobody attacks a simulation.
 */
#include "sim/dice.h"

#include <string.h>

#include "base/bug.h"

void sim_dice_init(struct sim_dice *dice, uint64_t seed)
{
    dice->state = seed;
}

uint64_t sim_dice_next(struct sim_dice *dice)
{
    dice->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = dice->state;
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

uint64_t sim_dice_below(struct sim_dice *dice, uint64_t count)
{
    IDEM_ASSERT(count > 0);
    return sim_dice_next(dice) % count;
}

int64_t sim_dice_between(struct sim_dice *dice, int64_t min, int64_t max)
{
    IDEM_ASSERT(min <= max);
    return min + (int64_t)sim_dice_below(dice, (uint64_t)(max - min) + 1);
}

bool sim_dice_chance(struct sim_dice *dice, uint64_t per_mille)
{
    return sim_dice_below(dice, 1000) < per_mille;
}

int64_t sim_dice_delay_us(struct sim_dice *dice, int64_t max_us)
{
    uint64_t shift = sim_dice_below(dice, 16);
    int64_t limit_us = max_us >> shift;
    return sim_dice_between(dice, 0, limit_us);
}

static void random_fill(struct idem_random *random, void *ret_bytes, size_t size)
{
    struct sim_random *own = (struct sim_random *)(void *)random;
    char *at = ret_bytes;
    while (size > 0) {
        uint64_t bits = sim_dice_next(own->dice);
        size_t part = size < sizeof(bits) ? size : sizeof(bits);
        memcpy(at, &bits, part);
        at += part;
        size -= part;
    }
}

static const struct idem_random_ops random_ops = { .fill = random_fill };

void sim_random_init(struct sim_random *random, struct sim_dice *dice)
{
    random->base = (struct idem_random){ .ops = &random_ops };
    random->dice = dice;
}
