/* Engines: shared objects that compute steps for an executor, loaded when a run names one.
 *
 * An engine is one shared object with one exported const symbol:
 *
 *     const struct ifl_engine ifl_engine_v1 = {IFL_ENGINE_ABI, sizeof(struct ifl_engine),
 *                                              sizeof(struct ifl_engine_options),
 *                                              sizeof(struct ifl_engine_step), "cpu", ...};
 *
 * It holds a Llama-style decoder, a paged KV pool and a host pool for swapped blocks. Both pools
 * have the layout [block][layer][K|V][kv_head][token][dim]. `open` takes all memory; a step
 * allocates nothing. Calls to an open engine come from one thread at a time, which may change.
 *
 * `executor: NAME` loads inflight_NAME.so (cpu or cuda). An engine built elsewhere, against the
 * installed headers alone, is found in the folder that the environment's INFLIGHT_ENGINE_DIR names.
 *
 * ABI 2 added `describe` and `measure`, for calibration; ABI 3 the choice of a data type,
 * ABI 4 windows of attention for random weights, ABI 5 notes. */
#ifndef INFLIGHT_ENGINE_H
#define INFLIGHT_ENGINE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "inflight/executor.h"

#define IFL_ENGINE_ABI 5u

/* RMSNorm, rotary positions, gated MLP with SiLU. */
struct ifl_engine_model {
    int32_t n_layers, d_model, n_q_heads, n_kv_heads, d_head, d_ffn, n_vocab;
    bool qkv_bias, out_bias, mlp_bias;
    bool qk_norm;         /* an RMSNorm over d_head on queries and one on keys */
    bool tied_embeddings; /* the LM head is the embedding */
};

/* Data type of weights, activations and K/V. AUTO: the engine's only one, or the checkpoint's if
 * the engine has several. */
enum ifl_engine_dtype { IFL_DTYPE_AUTO, IFL_DTYPE_FP32, IFL_DTYPE_BF16, IFL_DTYPE_FP16 };

struct ifl_engine_options {
    struct ifl_engine_model model;
    enum ifl_engine_dtype dtype; /* one that the engine lacks is IFL_E_INPUT */
    const char *weights_dir;     /* config.json and safetensors of this very shape; NULL: random */
    uint64_t seed;               /* of random weights */
    int32_t window_tokens;       /* random weights: attention reads so many tokens back; 0: all */
    int32_t n_threads;           /* that compute on the host */
    int32_t block_tokens, n_blocks, n_host_blocks;
    int32_t max_tokens;      /* of a sequence */
    int32_t max_step_tokens; /* new tokens of a step, all sequences together */
    int32_t max_step_seqs;
    size_t bench_bytes; /* of device memory for `measure` to work on; 0: `measure` is not called */
    const volatile sig_atomic_t *stop; /* not 0: open and step soon return IFL_E_INTERRUPTED */
    struct ifl_notes notes; /* `open` notes what is odd about a checkpoint, in the calling thread */
};

/* One forward pass over the ragged concatenation of its sequences. Blocks are swapped out, swapped
 * in, copied and spoilt, in this order; then tokens are computed. K and V of a token go to block
 * position / block_tokens of its sequence's block table, slot position % block_tokens. The token
 * attends to itself and to all earlier positions of its sequence. Arrays are borrowed until `step`
 * returns. */
struct ifl_engine_step {
    int32_t n_seqs, n_tokens;
    const int32_t *token_ids;          /* [n_tokens] */
    const int32_t *positions;          /* [n_tokens]; within a sequence each is one more */
    const int32_t *first_token;        /* [n_seqs + 1] where a sequence's tokens begin */
    const int32_t *first_block;        /* [n_seqs + 1] where its block table begins */
    const uint32_t *block_ids;         /* [first_block[n_seqs]] */
    const bool *samples;               /* [n_seqs] a token is sampled after its last one */
    const struct ifl_copy *outs, *ins; /* device to host, host to device */
    const struct ifl_copy *copies;     /* device to device */
    const uint32_t *spoilt; /* freed device blocks: filled with NaN, so that a stray read shows */
    size_t n_outs, n_ins, n_copies, n_spoilt;
    /* out */
    int32_t *sampled;  /* [n_seqs] the likeliest next token, -1 where the sequence samples none */
    float *logits;     /* NULL, or [sequences that sample][n_vocab] */
    int64_t device_ns; /* time of the step on the device */
};

/* ---- calibration ---- */

struct ifl_engine_machine {
    char processor[128]; /* the CPU's or GPU's name */
    char software[256];  /* driver and libraries, with their versions */
    double memory_gib;   /* of the device */
    int32_t n_units;     /* parallel units: multiprocessors, threads */
    int32_t element_bytes;
};

/* One operation of the engine's step, run alone. */
enum ifl_engine_op_kind {
    IFL_OP_COPY,       /* n_bytes within device memory */
    IFL_OP_COPY_OUT,   /* n_bytes from device memory to host memory as swaps use it */
    IFL_OP_COPY_IN,    /* n_bytes from that host memory to device memory */
    IFL_OP_GEMM,       /* y[m][n] = x[m][k] w[n][k]^T */
    IFL_OP_NORM,       /* this and those below: one layer, on the tokens of `step` */
    IFL_OP_ROTARY,     /* rotates queries and keys, writes K and V to their blocks */
    IFL_OP_ACTIVATION, /* of the MLP */
    IFL_OP_ATTENTION,
};

struct ifl_engine_op {
    enum ifl_engine_op_kind kind;
    int32_t m, n, k;
    size_t n_bytes;
    const struct ifl_engine_step *step; /* within the limits of `open` */
    uint32_t round; /* number of the repetition: each uses other weights, another layer's blocks */
    int64_t ns;     /* out: time on the device */
};

enum ifl_engine_pool { IFL_DEVICE_POOL, IFL_HOST_POOL };

struct ifl_engine {
    uint32_t abi;
    size_t engine_bytes, options_bytes, step_bytes; /* sizes of the three structs */
    const char *name;
    int (*open)(const struct ifl_engine_options *, void **self, struct ifl_error *);
    /* Wrong input (a limit exceeded, a block out of range) is IFL_E_DEVICE; nothing is computed. */
    int (*step)(void *self, struct ifl_engine_step *, struct ifl_error *);
    size_t (*block_bytes)(const void *self);
    /* For tests. Copies one block, block_bytes(self) bytes in the pool's layout, to `bytes`. */
    int (*read_block)(void *self, enum ifl_engine_pool, uint32_t block, void *bytes,
                      struct ifl_error *);
    void (*close)(void *self); /* accepts NULL */
    int (*describe)(const void *self, struct ifl_engine_machine *, struct ifl_error *);
    /* Runs one operation and sets its `ns`. The contents of all blocks are lost. An operation that
     * does not fit into bench_bytes, or exceeds the limits, is IFL_E_DEVICE. NULL: the engine
     * cannot be calibrated. */
    int (*measure)(void *self, struct ifl_engine_op *, struct ifl_error *);
};

#define IFL_ENGINE_SYMBOL "ifl_engine_v1"
extern const struct ifl_engine ifl_engine_v1;

#endif
