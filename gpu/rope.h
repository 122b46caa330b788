/* Rotary position embedding (Su et al. 2021) as a table of angles.
 *
 * Number i of a head's first half and number i of its second half form a pair; position p turns it
 * by p x frequency[i], frequency[i] = theta^(-2 i / d_head). */
#ifndef GPU_ROPE_H
#define GPU_ROPE_H

#include "architecture.h"

/* In radians a token, frequency[d_head / 2]. */
void rope_frequencies(const struct architecture *architecture, float *frequency);

/* cosines and sines [n_tokens][d_head / 2]. */
void rope_table(const struct architecture *architecture, int32_t n_tokens, float *cosines,
                float *sines);

#endif
