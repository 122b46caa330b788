/* Engines: modules that really compute the steps an executor is told, loaded when a run asks.
 *
 * An engine is one shared object with one exported const symbol:
 *
 *     const struct ifl_engine ifl_engine_v1 = {IFL_ENGINE_ABI, sizeof(struct ifl_engine),
 *                                              sizeof(struct ifl_engine_options),
 *                                              sizeof(struct ifl_engine_step), "cpu", ...};
 *
 * It holds a Llama-style decoder, a paged KV pool and a host pool for swapped blocks, both of
 * the layout [block][layer][K|V][kv_head][token][dim]. All memory is taken by `open`; a step
 * allocates nothing. One thread at a time may call an open engine, not always the same one.
 *
 * `executor: NAME` loads inflight_NAME.so (cpu or cuda); the environment's INFLIGHT_ENGINE_DIR
 * names the folder of one that was built elsewhere, against the installed headers alone.
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

/* Of weights, activations and K/V. AUTO: the engine's own, where it has several the checkpoint's.
 */
enum ifl_engine_dtype { IFL_DTYPE_AUTO, IFL_DTYPE_FP32, IFL_DTYPE_BF16, IFL_DTYPE_FP16 };

struct ifl_engine_options {
    struct ifl_engine_model model;
    enum ifl_engine_dtype dtype; /* one that the engine lacks is IFL_E_INPUT */
    const char *weights_dir;     /* config.json and safetensors of this very shape; NULL: random */
    uint64_t seed;               /* of random weights */
    int32_t window_tokens;       /* random weights: attention sees no further back; 0: everything */
    int32_t n_threads;           /* that compute on the host */
    int32_t block_tokens, n_blocks, n_host_blocks;
    int32_t max_tokens;      /* of a sequence */
    int32_t max_step_tokens; /* new tokens of a step, all sequences together */
    int32_t max_step_seqs;
    size_t bench_bytes; /* of device memory for `measure` to work on; 0: it is never called */
    const volatile sig_atomic_t *stop; /* not 0: open and step soon return IFL_E_INTERRUPTED */
    struct ifl_notes notes; /* `open` tells what is odd about a checkpoint, from its own thread */
};

/* One forward pass over the ragged concatenation of its sequences. In this order: blocks are
 * swapped out, swapped in, copied, spoilt, then tokens are computed. A token's K and V go to slot
 * position % block_tokens of block position / block_tokens of its sequence's table; it attends to
 * its own and to all before it there. Arrays are borrowed until `step` returns. */
struct ifl_engine_step {
    int32_t n_seqs, n_tokens;
    const int32_t *token_ids;          /* [n_tokens] */
    const int32_t *positions;          /* [n_tokens]; those of a sequence rise by one */
    const int32_t *first_token;        /* [n_seqs + 1] where a sequence's tokens begin */
    const int32_t *first_block;        /* [n_seqs + 1] where its block table begins */
    const uint32_t *block_ids;         /* [first_block[n_seqs]] */
    const bool *samples;               /* [n_seqs] its last token yields the next one */
    const struct ifl_copy *outs, *ins; /* device to host, host to device */
    const struct ifl_copy *copies;     /* device to device */
    const uint32_t *spoilt; /* device blocks that nobody owns: filled with NaN, to find readers */
    size_t n_outs, n_ins, n_copies, n_spoilt;
    /* out */
    int32_t *sampled;  /* [n_seqs] the likeliest next token, -1 where the sequence samples none */
    float *logits;     /* NULL, or [sequences that sample][n_vocab] */
    int64_t device_ns; /* of it, time on the device */
};

/* ---- calibration ---- */

struct ifl_engine_machine {
    char processor[128]; /* the CPU's or GPU's name */
    char software[256];  /* driver and libraries, with their versions */
    double memory_gib;   /* of the device */
    int32_t n_units;     /* that work side by side: multiprocessors, threads */
    int32_t element_bytes;
};

/* An operation by itself, as a step of the engine runs it. */
enum ifl_engine_op_kind {
    IFL_OP_COPY,       /* n_bytes within device memory */
    IFL_OP_COPY_OUT,   /* n_bytes from device memory to the host's, of the kind that swaps use */
    IFL_OP_COPY_IN,    /* and back */
    IFL_OP_GEMM,       /* y[m][n] = x[m][k] w[n][k]^T */
    IFL_OP_NORM,       /* from here on: in one layer, on the tokens of `step` */
    IFL_OP_ROTARY,     /* queries and keys turned, K and V written to their blocks */
    IFL_OP_ACTIVATION, /* of the MLP */
    IFL_OP_ATTENTION,
};

struct ifl_engine_op {
    enum ifl_engine_op_kind kind;
    int32_t m, n, k;
    size_t n_bytes;
    const struct ifl_engine_step *step; /* within the limits of `open` */
    uint32_t round; /* from run to run one more: takes other weights, another layer's blocks */
    int64_t ns;     /* out: how long it took on the device */
};

enum ifl_engine_pool { IFL_DEVICE_POOL, IFL_HOST_POOL };

struct ifl_engine {
    uint32_t abi;
    size_t engine_bytes, options_bytes, step_bytes; /* sizes of the three structs */
    const char *name;
    int (*open)(const struct ifl_engine_options *, void **self, struct ifl_error *);
    /* Wrong input (a limit exceeded, a block out of range) is IFL_E_DEVICE and computes nothing. */
    int (*step)(void *self, struct ifl_engine_step *, struct ifl_error *);
    size_t (*block_bytes)(const void *self);
    /* Copies out one block, block_bytes of it, as it is stored. For tests. */
    int (*read_block)(void *self, enum ifl_engine_pool, uint32_t block, void *bytes,
                      struct ifl_error *);
    void (*close)(void *self); /* accepts NULL */
    int (*describe)(const void *self, struct ifl_engine_machine *, struct ifl_error *);
    /* NULL: the engine cannot be calibrated. What does not fit into bench_bytes, or is not within
     * the limits, is IFL_E_DEVICE. Blocks and what was computed before are lost. */
    int (*measure)(void *self, struct ifl_engine_op *, struct ifl_error *);
};

#define IFL_ENGINE_SYMBOL "ifl_engine_v1"
extern const struct ifl_engine ifl_engine_v1;

#endif
