/* What a checkpoint's config.json says beyond the shapes: norms, positions, windows.
 *
 * Model types llama, mistral, qwen2 and qwen3, keys and defaults as in the configuration classes
 * of Hugging Face transformers, versions 4 (rope_theta, rope_scaling) and 5 (rope_parameters);
 * where these differ, as 5 has it. */
#ifndef GPU_ARCHITECTURE_H
#define GPU_ARCHITECTURE_H

#include "inflight/engine.h"

/* Llama 3.1 slows rotations of a wavelength beyond its original training context (Grattafiori et
 * al. 2024; formulas in rope.c). factor 0: no scaling. */
struct rope_scaling {
    double factor, low_freq_factor, high_freq_factor;
    double original_tokens;
};

struct architecture {
    struct ifl_engine_model model;
    double norm_epsilon, rope_theta;
    struct rope_scaling scaling;
    int32_t window_tokens; /* attention sees no further back; 0: everything */
};

/* The defaults, for random weights. */
void architecture_default(const struct ifl_engine_model *model, struct architecture *architecture);

/* Reads dir/config.json; its shapes must be those of `model`, unless that is NULL. */
int architecture_read(const char *dir, const struct ifl_engine_model *model,
                      struct architecture *architecture, struct ifl_error *error);

/* The architecture of the options' checkpoint or, without one, of random weights. A checkpoint may
 * have biases that no option describes. */
int architecture_of(const struct ifl_engine_options *options, struct architecture *architecture,
                    struct ifl_error *error);

/* An error unless the shapes can be computed and no product of them overflows. */
int architecture_check(const struct ifl_engine_model *model, struct ifl_error *error);

#endif
