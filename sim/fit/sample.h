/* One measured operation, with the arguments of the cost model's functions. */
#ifndef SIM_FIT_SAMPLE_H
#define SIM_FIT_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "cost/model.h"
#include "inflight/executor.h"

enum fit_op {
    FIT_NONE, /* the cost model has no operation for the row */
    FIT_GEMM,
    FIT_GEMM_FP8,
    FIT_PREFILL,
    FIT_DECODE,
    FIT_DECODE_MIXED, /* decodes with prefill in the same step */
    FIT_ELEMENTWISE,
    FIT_ALLREDUCE_2,
    FIT_ALLREDUCE_4,
    FIT_ALLREDUCE_8,
    FIT_ALLREDUCE_2_EAGER,
    FIT_ALLREDUCE_4_EAGER,
    FIT_ALLREDUCE_8_EAGER,
    FIT_SEND_RECV,
    FIT_SWAP_OUT, /* swap of n_seqs blocks of `bytes` each */
    FIT_SWAP_IN,
    FIT_BLOCK_COPY,
    FIT_HOST, /* a whole forward pass, of which all except the host's part is known */
    FIT_STEP, /* a whole forward pass, with all of the above in it */
    FIT_EXPERTS,
    FIT_EXPERTS_FP8,
    FIT_LATENT, /* attention with latents in one layer */
    FIT_EXPERTS_MXFP4,
    FIT_DELTA, /* the gated delta rule of prompts, or with new_tokens 0 of decodes */
    FIT_GEMM_NVFP4,
    FIT_EXPERTS_NVFP4,
    FIT_SPARSE, /* attention to the tokens that an indexer picks, in one layer */
    FIT_OPS
};

struct fit_sample {
    enum fit_op op;
    double m, n, k;                              /* products; for experts: m tokens with n elements
                                                    by k columns */
    double n_experts, experts_per_token;         /* experts of a layer */
    double n_seqs, new_tokens, context_tokens;   /* attention, of sequences of equal length */
    double n_decode_seqs, decode_context_tokens; /* the decodes of a mixed step */
    double longest_kv; /* longest context of the prefill sequences if they differ; or 0 */
    double q_heads, kv_heads, d_head, element_bytes;
    double n_layers, d_model, d_ffn, n_vocab; /* with the heads: a model, for FIT_HOST */
    double n_launches;                        /* element-wise; 0: one */
    double bytes;                             /* element-wise: bytes moved; collectives: bytes of a
                                                 message */
    const struct model *model; /* steps: the model that ran; borrowed, of static storage */
    int32_t tensor_parallel;
    struct ifl_step_totals totals;
    double weight; /* number of rows that this one counts for; 0: one */
    double measured_s;
    char group[48]; /* rows of a group, as a model or a shape, are held out together */
    char layer[64]; /* products of one layer and one number of rows, or empty */
    size_t table, row;
};

#endif
