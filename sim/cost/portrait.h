/* A model's shapes, memory and roofline on a GPU, without a simulation. */
#ifndef SIM_COST_PORTRAIT_H
#define SIM_COST_PORTRAIT_H

#include "cost/memory.h"
#include "cost/pass.h"

struct portrait_options {
    const char *model, *hardware; /* names, as model_load and hardware_load take them */
    enum model_dtype dtype;
    int32_t tensor_parallel, block_tokens;
    int32_t batch, length;   /* sequences, and tokens of each */
    double utilization;      /* of the GPU's memory */
    double usd_per_gpu_hour; /* 0: no prices */
};

/* A phase on one rank, against the data sheet's roofline. */
struct portrait_phase {
    struct pass_part parts[PASS_PARTS], sum;
    double intensity;         /* FLOPs a byte */
    double attainable_tflops; /* the roof above that intensity */
    double step_s, tflops;    /* by the calibrated cost model, host included */
    double bound_s;           /* least time by the data sheet's peaks: no kernel is faster */
    double tok_per_s, usd_per_million_tokens; /* throughput and cost of the whole tensor-parallel
                                                 group */
    bool memory_bound;
};

enum { PORTRAIT_MAX_BATCHES = 24 };

struct portrait_batch {
    int32_t batch;
    bool fits;
    struct portrait_phase decode;
};

struct portrait {
    struct portrait_options options;
    struct model model;
    struct platform platform;
    int64_t parameters, weight_bytes, kv_bytes_per_token; /* the bytes of one rank */
    int64_t held_bytes;    /* K/V of a sequence of `length` on a rank, in whole blocks */
    int64_t grouped_bytes; /* the same with serving.kv.windows: groups; 0: one group */
    double ridge_flops_per_byte;
    double training_flops; /* of a step over batch x length tokens, the whole model */
    double forward_flops;  /* of the forward pass of that step, with logits for every token */
    struct portrait_phase prefill, decode;
    bool fits;
    char misfit[768]; /* why the model does not fit; "": it does */
    struct memory_plan memory;
    int64_t largest_batch, longest_context; /* largest batch of sequences of `length`; longest
                                               context of one sequence */
    struct portrait_batch batches[PORTRAIT_MAX_BATCHES];
    size_t n_batches;
};

int portrait_make(const struct portrait_options *options, struct portrait *portrait,
                  struct ifl_error *error);

#endif
