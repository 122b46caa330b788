/* Low-rank adapters (LoRA; Hu et al. 2021): their matrices, and the source of their numbers.
 *
 *     y = W x + B (A x),   A [rank][inputs], B [outputs][rank]
 *
 * for each of the layer's products that has one; a scale, as alpha / rank, is part of B. */
#ifndef GPU_ADAPTERS_H
#define GPU_ADAPTERS_H

#include "inflight/engine.h"
#include "safetensors.h"

enum adapter_target {
    ADAPTER_OF_Q,
    ADAPTER_OF_K,
    ADAPTER_OF_V,
    ADAPTER_OF_OUT,
    ADAPTER_OF_GATE,
    ADAPTER_OF_UP,
    ADAPTER_OF_DOWN,
    N_ADAPTER_TARGETS
};

struct adapter_matrix {
    int32_t n_in, n_out;
};
struct adapter_matrix adapter_matrix_of(const struct ifl_engine_model *model,
                                        enum adapter_target target);
/* True if adapters of that choice have one for the product. */
bool adapter_has(enum ifl_engine_adapter_matrices matrices, enum adapter_target target);
/* Returns the number of elements of the A and B of an adapter in all layers; 0 for a rank of 0. */
int64_t adapter_count(const struct ifl_engine_options *options, int32_t rank);

/* The source of an adapter's numbers: drawn, or a folder in PEFT's format: adapter_config.json with
 * r and lora_alpha, and adapter_model.safetensors with A and B of each product ("base_model.model."
 * before the product's name, ".lora_A.weight" after it). */
struct adapter_source {
    const struct ifl_engine_options *options;
    int32_t adapter; /* from 1 on */
    const char *dir; /* NULL: drawn */
    struct safetensors file;
    float scale; /* lora_alpha / r, for B */
};

/* Opens an adapter's source. The options are borrowed until adapter_close, which must be called in
 * any case. Returns IFL_E_INPUT for a folder that cannot be read, a rank other than that of the
 * options, and products for which the options have no adapters. */
int adapter_open(const struct ifl_engine_options *options, int32_t adapter,
                 struct adapter_source *source, struct ifl_error *error);
void adapter_close(struct adapter_source *source);

struct adapter_place {
    int32_t layer;
    enum adapter_target target;
    bool is_b;
};
/* Fills an A or a B. Drawn matrices are uniform: A with the variance 1 / inputs, B with 0.01 /
 * rank, so that an adapter adds about a tenth of the product. Each number depends only on the seed,
 * the adapter, its place and its index. A product that a file does not have gets zeros. */
int adapter_fill(const struct adapter_source *source, const struct adapter_place *place,
                 float *numbers, struct ifl_error *error);

/* Checks the adapters of an engine's options: ranks must be at least 1. */
int adapters_check(const struct ifl_engine_options *options, struct ifl_error *error);
/* Refuses adapters, for an engine that does not run them. */
int adapters_refuse(const struct ifl_engine_options *options, struct ifl_error *error);

#endif
