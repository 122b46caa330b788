/* Engines: shared objects that compute steps for an executor, loaded when a run names one.
 *
 * An engine is one shared object with one exported const symbol:
 *
 *     const struct ifl_engine ifl_engine_v1 = {IFL_ENGINE_ABI, sizeof(struct ifl_engine),
 *                                              sizeof(struct ifl_engine_options),
 *                                              sizeof(struct ifl_engine_step), "cpu", ...};
 *
 * It holds a Llama-style decoder, a paged KV pool and a host pool for swapped blocks. Both pools
 * have the layout [block][layer][K|V][kv_head][token][dim]. `open` allocates all memory; a step
 * allocates nothing. Calls to an open engine come from one thread at a time, which may change;
 * stages, send_blocks and receive_blocks run concurrently.
 *
 * `executor: NAME` loads inflight_NAME.so (cpu or cuda). An engine that was built elsewhere,
 * against the installed headers alone, is searched for in the folder that the environment variable
 * INFLIGHT_ENGINE_DIR names.
 *
 * Options and steps start zeroed: a field that is 0 or NULL turns its feature off. An engine
 * refuses a feature that it lacks with one line. At `open` that is IFL_E_INPUT; at `step` it is
 * IFL_E_DEVICE, and nothing is computed.
 *
 * ABI 2 added `describe` and `measure`, for calibration; ABI 3 the choice of a data type; ABI 4
 * windows of attention for random weights; ABI 5 notes, K/V slots, rows of logits, votes, kept K/V,
 * the data type of K/V, adapters, write_block, stages, send_blocks and receive_blocks. */
#ifndef INFLIGHT_ENGINE_H
#define INFLIGHT_ENGINE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "inflight/executor.h"

#define IFL_ENGINE_ABI 5u

/* No product of shapes within these overflows int64_t. */
enum {
    IFL_MODEL_MAX_LAYERS = 1000,
    IFL_MODEL_MAX_HEADS = 4096,
    IFL_MODEL_MAX_D_HEAD = 4096,
    IFL_MODEL_MAX_D_MODEL = 1 << 20,
    IFL_MODEL_MAX_D_FFN = 1 << 22,
    IFL_MODEL_MAX_VOCAB = 1 << 24,
    IFL_MODEL_MAX_TOKENS = 1 << 28,
};

/* RMSNorm, rotary positions, gated MLP with SiLU. */
struct ifl_engine_model {
    int32_t n_layers, d_model, n_q_heads, n_kv_heads, d_head, d_ffn, n_vocab;
    bool qkv_bias, out_bias, mlp_bias;
    bool qk_norm;         /* an RMSNorm over d_head on queries and one on keys */
    bool tied_embeddings; /* the LM head is the embedding */
};

/* Data type. AUTO: the engine's only one, or the checkpoint's if the engine has several. Later
 * types get later numbers; an engine refuses a number that it does not know. */
enum ifl_engine_dtype {
    IFL_DTYPE_AUTO,
    IFL_DTYPE_FP32,
    IFL_DTYPE_BF16,
    IFL_DTYPE_FP16,
    IFL_DTYPE_FP8, /* e4m3, only for K and V; no scale: numbers beyond 448 become 448 */
};

/* Optimisations of an engine that can be switched off one by one: if a wrong result disappears
 * without one of them, it is the cause. An engine without an optimisation ignores its bit. */
enum ifl_engine_without {
    IFL_WITHOUT_DEPENDENT_LAUNCH = 1, /* a kernel starts while the previous one ends */
    IFL_WITHOUT_GRAPHS = 2,           /* kernels of a step are captured and launched at once */
    IFL_WITHOUT_BATCHED_COPIES = 4,   /* many swaps are one call */
    IFL_WITHOUT_TIMED_ALGORITHMS = 8, /* the fastest algorithm of a matrix product is measured */
};

/* Which products of a layer an adapter changes. */
enum ifl_engine_adapter_matrices {
    IFL_ADAPTER_QV,   /* query and value */
    IFL_ADAPTER_QKVO, /* also key and output */
    IFL_ADAPTER_ALL   /* also those of the MLP */
};

struct ifl_engine_options {
    struct ifl_engine_model model;
    enum ifl_engine_dtype dtype;    /* of weights and activations */
    enum ifl_engine_dtype kv_dtype; /* of K and V in their blocks; AUTO: that of activations */
    const char *weights_dir;      /* config.json and safetensors of this very shape; NULL: random */
    uint64_t seed;                /* of random weights */
    int32_t window_tokens;        /* random weights: length of the attention window; 0: all */
    int32_t n_adapters;           /* LoRA adapters (Hu et al. 2021) */
    const int32_t *adapter_ranks; /* [n_adapters] borrowed until `open` returns */
    int32_t n_threads;            /* that compute on the host */
    int32_t block_tokens, n_blocks, n_host_blocks;
    int32_t max_tokens;      /* of a sequence: its positions and its K/V slots are below it */
    int32_t max_step_tokens; /* new tokens of a step, all sequences together */
    int32_t max_step_seqs;
    uint32_t without;   /* of enum ifl_engine_without */
    size_t bench_bytes; /* of device memory for `measure` to work on; 0: `measure` is not called */
    const volatile sig_atomic_t *stop; /* not 0: open and step soon return IFL_E_INTERRUPTED */
    struct ifl_notes notes; /* `open` notes oddities of a checkpoint, in the calling thread */
    /* A pipeline: each stage has some layers, the first also the embedding, the last the rows of
     * logits. 0 stages: there is no pipeline, and `stage` is not called. */
    int32_t n_stages;
    const int32_t *stage_layers; /* [n_stages] 1 or more each; borrowed until `open` returns */
    int32_t max_in_flight;       /* steps between the first stage and the last */
    enum ifl_engine_adapter_matrices adapter_matrices; /* of all adapters */
    const char *const *adapter_dirs; /* [n_adapters] borrowed until `open` returns: folders as PEFT
                                        writes them; NULL: random */
};

/* The part of a sequence's K/V that is kept, as in SnapKV and H2O: in each layer and KV head, slot
 * kept[i] is copied to slot i. The sequence then has n_kept slots. */
struct ifl_engine_keep {
    const uint32_t *block_ids; /* [n_blocks] the sequence's block table */
    int32_t n_blocks, n_kept;
    const int32_t *kept; /* [n_layers][n_kv_heads][n_kept] slots; kept[i] is at least i */
};

/* One forward pass over the ragged concatenation of its sequences. Blocks are swapped out, swapped
 * in, copied, compacted to what is kept and spoilt, in this order; then tokens are computed. Arrays
 * are borrowed until `step` returns.
 *
 * Slot s of a sequence is token s % block_tokens of block s / block_tokens of its block table.
 * - Without `slots`, K and V of a token go to the slot of its position. The token attends to the
 *   slots up to its own.
 * - With `slots`, the last new token of a sequence attends to its first n_slots slots, the token
 *   before it to one slot fewer, and so on. A token's slot is the last slot that it attends to,
 *   except that the first new token may have any of its slots, where it replaces the token.
 * - Positions rotate queries and keys; a rotated key may be in any slot.
 * - A model with a window of attention must have no slots, since slots do not give distances. */
struct ifl_engine_step {
    int32_t n_seqs, n_tokens;
    const int32_t *token_ids;            /* [n_tokens] */
    const int32_t *positions;            /* [n_tokens]; within a sequence each is one more */
    const int32_t *slots;                /* [n_tokens]; NULL: the positions */
    const int32_t *n_slots;              /* [n_seqs] with slots; else not read */
    const int32_t *first_token;          /* [n_seqs + 1] where a sequence's tokens begin */
    const int32_t *first_block;          /* [n_seqs + 1] where its block table begins */
    const uint32_t *block_ids;           /* [first_block[n_seqs]] */
    const int32_t *n_rows;               /* [n_seqs] last tokens with a row of logits; NULL: 0 */
    const int32_t *n_voters;             /* [n_seqs] last tokens that vote; NULL: 0 */
    const int32_t *adapters;             /* [n_seqs] 1 to n_adapters, 0: none; NULL: 0 */
    const struct ifl_copy *outs, *ins;   /* device to host, host to device */
    const struct ifl_copy *copies;       /* device to device */
    const struct ifl_engine_keep *keeps; /* no two of them with a block in common */
    const uint32_t *spoilt; /* freed device blocks, filled with NaN to reveal stray reads */
    size_t n_outs, n_ins, n_copies, n_keeps, n_spoilt;
    /* out; rows: the sum of n_rows, in the order of sequences and of their tokens */
    int32_t *sampled; /* [rows] the likeliest token after the row's token */
    float *logits;    /* [rows][n_vocab] or NULL */
    /* For each sequence with voters, in order, [n_layers][n_kv_heads][slots its last token attends
     * to]: attention probabilities, summed over its voters and the query heads of the KV head. */
    float *votes;
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
    /* The functions describe, measure, stage, send_blocks and receive_blocks may be NULL; an engine
     * that lacks any other function is refused when it is loaded. Functions with an error return 0,
     * or a negative code with the error filled in. */
    const char *name; /* names the engine to the user */
    /* Opens an engine and sets *self, which is passed to all other functions. The options and what
     * they point to are borrowed until it returns, except `stop`, which is borrowed until `close`.
     * The limits (block_tokens to max_step_seqs, and n_threads) are 1 or more, n_host_blocks is 0
     * or more; any other number, an unreadable checkpoint and too little memory are errors. After
     * an error *self is NULL and everything is freed. */
    int (*open)(const struct ifl_engine_options *, void **self, struct ifl_error *);
    /* Computes the step and returns when it has ended, with its `out` members filled in. Steps come
     * one at a time. n_seqs, n_tokens and counts of blocks may be 0. Every sequence has at least
     * one token, n_rows and n_voters at most its tokens, and a block table for all its slots. An
     * array may be NULL if its count is 0. Wrong input (a limit exceeded, a block out of range) is
     * IFL_E_DEVICE; nothing is computed. After IFL_E_INTERRUPTED, or a failure of the device, the
     * contents of the blocks are undefined. */
    int (*step)(void *self, struct ifl_engine_step *, struct ifl_error *);
    /* Bytes of one block of all layers, the same in both pools; does not change after `open`. */
    size_t (*block_bytes)(const void *self);
    /* Copy one block of either pool: read_block from the pool to `bytes`, write_block from `bytes`
     * to the pool. `bytes` holds block_bytes(self) bytes in the pool's layout and is not kept. A
     * block number beyond the pool is IFL_E_DEVICE, and nothing is copied. The bytes are valid in
     * every engine of the same name that was opened with the same model, data types and
     * block_tokens. */
    int (*read_block)(void *self, enum ifl_engine_pool, uint32_t block, void *bytes,
                      struct ifl_error *);
    int (*write_block)(void *self, enum ifl_engine_pool, uint32_t block, const void *bytes,
                       struct ifl_error *);
    void (*close)(void *self); /* frees everything; accepts NULL */
    /* Fills in the machine that the engine runs on; texts are cut to their arrays. NULL: the engine
     * cannot be calibrated. */
    int (*describe)(const void *self, struct ifl_engine_machine *, struct ifl_error *);
    /* Runs one operation, waits for its end and sets its `ns`. It reads those of m, n, k, n_bytes
     * and `step` that the comment of its kind names; `step` is borrowed until it returns. The
     * contents of all blocks are lost. An operation that does not fit into bench_bytes, or exceeds
     * the limits, is IFL_E_DEVICE. NULL: the engine cannot be calibrated. */
    int (*measure)(void *self, struct ifl_engine_op *, struct ifl_error *);
    /* Computes one stage of the step, in place of `step`: copies of blocks and tokens, for the K/V
     * of its layers alone. Every stage gets all steps, one at a time, all stages in the same order.
     * A step comes to a stage when the previous stage has returned. Different stages are called at
     * the same time, each by a thread of its own. `slot`, below max_in_flight, belongs to the step
     * until its last stage returns. Each stage adds its time to device_ns. NULL: the engine has no
     * stages, and is not opened with any. */
    int (*stage)(void *self, int32_t stage, int32_t slot, struct ifl_engine_step *,
                 struct ifl_error *);
    /* send_blocks copies n blocks of the device's pool to `bytes`, receive_blocks from `bytes` to
     * the pool, in the pool's layout: [n][block_bytes]. Each is called by one thread at a time,
     * while the other, a step or its stages may run; these write none of the blocks that are sent
     * and touch none of those that are received. They return when the bytes have been copied: a
     * step that is called then sees them. A block number beyond the pool is IFL_E_DEVICE, and
     * nothing is copied. The bytes are valid in the same engines as those of read_block. Both NULL:
     * the engine cannot copy K/V while steps run. */
    int (*send_blocks)(void *self, const uint32_t *blocks, size_t n, void *bytes,
                       struct ifl_error *);
    int (*receive_blocks)(void *self, const uint32_t *blocks, size_t n, const void *bytes,
                          struct ifl_error *);
};

#define IFL_ENGINE_SYMBOL "ifl_engine_v1"
extern const struct ifl_engine ifl_engine_v1;

#endif
