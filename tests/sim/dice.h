/* Draws of a random set-up. */
#ifndef TESTS_SIM_DICE_H
#define TESTS_SIM_DICE_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/random.h"

/* Draws of one seed; n: how many have been taken. */
struct dice {
    uint64_t seed, n;
};

/* From low to high, both included. */
static inline int32_t roll(struct dice *dice, int32_t low, int32_t high)
{
    const uint64_t draw = ifl_draw(dice->seed, IFL_DRAW_POLICY, dice->n++, 0);
    return low + (int32_t)(draw % (uint64_t)(high - low + 1));
}

static inline bool one_in(struct dice *dice, int32_t n)
{
    return roll(dice, 1, n) == 1;
}

#endif
