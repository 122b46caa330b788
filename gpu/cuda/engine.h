/* The CUDA engine: bf16 or fp16 with sums in fp32, cuBLASLt for every matrix product, the
 * kernels of kernels.h for the rest. K and V are stored in the same type, or in e4m3.
 *
 * Heads are stored 64 or 128 dims wide, whatever the model's: the kernels know no other. A head of
 * d dims keeps dims i and i + d / 2 a rotary pair, at i and i + width / 2, zeros between.
 *
 * One stream computes, one swaps blocks out, one swaps them in; events order the streams where they
 * touch the same blocks. Steps are synchronous: no work is pending between calls. Two more copy
 * blocks to other engines and tiers, and from there, beside the steps. */
#ifndef GPU_CUDA_ENGINE_H
#define GPU_CUDA_ENGINE_H

#include "architecture.h"
#include "gemm.h"
#include "kernels.h"
#include "pass.h"
#include "wait.h"
#include "weights.h"

enum {
    CUDA_LOGIT_ROWS = 256,       /* rows of logits at a time; no fewer than PASS_GRAPH_SEQS */
    CUDA_MOVES = 512,            /* stretches of blocks in one batched copy */
    CUDA_PAIRS = 256,            /* block copies in one launch */
    CUDA_BESIDE_BYTES = 8 << 20, /* pinned for a half of a copy beside steps, or a block */
    CUDA_N_GRAPHS = 36           /* buckets of gemm_rows up to PASS_GRAPH_SEQS */
};

/* Left free on the device: modules that the driver loads late, and graphs. */
static const size_t CUDA_LEFT_BYTES = (size_t)512 << 20;

struct cuda_scratch {               /* n: rows of a pass; all on the device */
    void *x, *normed;               /* [n][d_model] */
    void *qkv;                      /* [n][(n_q_heads + 2 n_kv_heads) width] */
    void *attended;                 /* [n][n_q_heads width] */
    void *gate_up, *activated;      /* [n][2 d_ffn], [n][d_ffn] */
    void *last, *last_normed;       /* [CUDA_LOGIT_ROWS][d_model] */
    float *logits;                  /* [CUDA_LOGIT_ROWS][logit_stride] */
    int32_t *sampled;               /* [n] */
    uint64_t *argmax_keys;          /* [CUDA_LOGIT_ROWS][argmax_parts] */
    uint32_t *argmax_done;          /* [CUDA_LOGIT_ROWS] */
    float *parts, *part_logsum;     /* [2 n_shares][n_q_heads][width], [2 n_shares][n_q_heads] */
    float *tile_parts;              /* [slots.low][ATTN_LOW_TILE][width] */
    float *tile_logsum;             /* [slots.low][ATTN_LOW_TILE] */
    struct block_pair *pairs;       /* [CUDA_PAIRS] */
    void *ballot;                   /* as on the host */
    struct vote_piece *vote_pieces; /* [max_seqs] */
    float *vote_logsum;             /* [n][n_q_heads] */
};

/* Votes of a pass, and slots that a step keeps (ballot.c). */
struct cuda_ballot {
    char *host; /* pinned: numbers, then tables and their blocks */
    const struct ifl_engine_step *step;
    struct vote_piece *pieces_host;        /* [max_seqs] pinned */
    int32_t *seqs;                         /* sequences of the pieces */
    int32_t n_pieces, max_rows, max_slots; /* of the pass that was last sent */
    size_t layer_numbers;                  /* votes of a layer of that pass */
    int32_t first_layer;                   /* first layer with votes that are only on the device */
};

/* Copies beside the steps, in one direction (beside.c). */
struct cuda_beside {
    cudaStream_t stream;
    cudaEvent_t done[2];
    char *pinned; /* two halves of half_blocks blocks */
    size_t half_blocks;
};

/* Swaps, copies and spoiling of blocks. A stamp is the number of the last step that used the block
 * in the way of the array's name. */
struct cuda_moves {
    cudaStream_t out, in;
    cudaEvent_t out_done, in_done, pairs_copied;
    uint64_t step;
    uint64_t *leaving, *arriving, *read, *written; /* [n_blocks] */
    uint64_t *landing;                             /* [n_host_blocks] */
    void *to[CUDA_MOVES];
    const void *from[CUDA_MOVES];
    size_t bytes[CUDA_MOVES];
    struct block_pair *pairs; /* [CUDA_PAIRS] pinned */
};

struct cuda_engine {
    struct ifl_engine_options limits; /* weights_dir is not kept */
    struct architecture architecture;
    enum element element;
    int32_t head_width; /* 64 or 128 */
    int32_t logit_stride;
    size_t kv_element_bytes, block_bytes, weights_bytes;
    size_t layer_bytes;                /* from a layer's weight to the next layer's */
    char *weights, *kv;                /* device; kv: [blocks][block_bytes] */
    char *bench;                       /* device, [limits.bench_bytes] what measure works on */
    char *host;                        /* pinned, [host blocks][block_bytes] */
    void *scratch_memory;              /* what scratch points into */
    const void *(*at)[N_WEIGHT_ROLES]; /* [n_layers]; weights outside layers are in at[0] */
    float *angles;                     /* device, [max_tokens][2][head_width / 2] */
    struct cuda_scratch scratch;
    struct gemm gemm;
    struct pass_limits pass_limits;
    struct pass pass;
    char *plan_host, *plan; /* pinned, device: pass_max_bytes each */
    int32_t *sampled_host;  /* pinned, [max_step_tokens] */
    struct cuda_moves moves;
    struct cuda_ballot ballot;
    struct cuda_beside sending, receiving;
    cudaGraphExec_t graphs[CUDA_N_GRAPHS][2]; /* without and with the merge of cut sequences */
    cudaStream_t stream;
    cudaEvent_t started, ended, plan_copied;
    atomic_bool is_lost; /* the device no longer answers: nothing may wait for it */
};

static inline bool cuda_does_without(const struct cuda_engine *engine, enum ifl_engine_without what)
{
    return (engine->limits.without & (uint32_t)what) != 0;
}

/* K and V in e4m3: the kernels then keep queries in fp16. */
static inline bool cuda_has_e4m3(const struct cuda_engine *engine)
{
    return engine->limits.kv_dtype == IFL_DTYPE_FP8;
}

/* ---- warm.c ---- */

/* Chooses algorithms, loads modules and captures graphs for passes of every size, so that no step
 * pays for them. */
int cuda_warm(struct cuda_engine *engine, struct ifl_error *error);

/* ---- memory.c ---- */

int cuda_take_memory(struct cuda_engine *engine, struct ifl_error *error);
void cuda_give_memory(struct cuda_engine *engine);
/* Copies from any host memory to the device; on return every stream sees the bytes. */
int cuda_send(struct cuda_engine *engine, void *to, const void *from, size_t n_bytes,
              struct ifl_error *error);

/* ---- engine.c ---- */

/* Waits for all streams, whatever fails. */
void cuda_drain(struct cuda_engine *engine);
/* Sends the plan of engine->pass to the device. */
int cuda_send_plan(struct cuda_engine *engine, const struct ifl_engine_step *step,
                   struct ifl_error *error);

/* ---- load.c ---- */

/* Bytes of all weights as stored, alignment included. */
size_t cuda_weights_bytes(const struct cuda_engine *engine);
int cuda_load_weights(struct cuda_engine *engine, const struct weight_source *source,
                      struct ifl_error *error);
int cuda_load_angles(struct cuda_engine *engine, struct ifl_error *error);

/* ---- moves.c ---- */

/* Swaps, copies and spoils; the compute stream waits where it must. */
int cuda_move_blocks(struct cuda_engine *engine, const struct ifl_engine_step *step,
                     struct ifl_error *error);

/* ---- beside.c ---- */

int cuda_send_blocks(void *self, const uint32_t *blocks, size_t n, void *bytes,
                     struct ifl_error *error);
int cuda_receive_blocks(void *self, const uint32_t *blocks, size_t n, const void *bytes,
                        struct ifl_error *error);

/* ---- ballot.c ---- */

/* Number of votes of a layer: one per KV head and slot of the pool. Bytes of a ballot. */
size_t cuda_ballot_numbers(const struct cuda_engine *engine);
size_t cuda_ballot_bytes(const struct cuda_engine *engine);
/* Clears the step's votes. */
int cuda_open_votes(const struct cuda_engine *engine, const struct ifl_engine_step *step,
                    struct ifl_error *error);
/* Sends which rows vote in the pass that was last sent. */
int cuda_open_ballot(struct cuda_engine *engine, const struct ifl_engine_step *step,
                     struct ifl_error *error);
/* Computes the votes of these rows in one layer. */
int cuda_vote(struct cuda_engine *engine, const struct attn_args *attn, int32_t layer,
              struct ifl_error *error);
int cuda_keep_slots(struct cuda_engine *engine, const struct ifl_engine_step *step,
                    struct ifl_error *error);

/* ---- forward.c ---- */

/* Runs the pass that was last sent to the device, from embedding to sampled tokens. `logits` (host)
 * is NULL or receives the pass's rows of logits. */
int cuda_forward(struct cuda_engine *engine, float *logits, struct ifl_error *error);

/* Products of layer 0 and of the head on n_rows rows of scratch: chooses their algorithms. */
int cuda_warm_products(struct cuda_engine *engine, int32_t n_rows, struct ifl_error *error);
/* Loads all kernels by running them, one after the other, on the pass that was last sent. */
int cuda_warm_kernels(struct cuda_engine *engine, struct ifl_error *error);
/* Captures the pass that was last sent, with and without merges. */
int cuda_capture(struct cuda_engine *engine, struct ifl_error *error);

/* Runs one operation of one layer of the pass that was last sent to the device. */
int cuda_run_op(struct cuda_engine *engine, enum ifl_engine_op_kind kind, int32_t layer,
                struct ifl_error *error);

/* ---- measure.c ---- */

int cuda_describe(const void *self, struct ifl_engine_machine *machine, struct ifl_error *error);
int cuda_measure(void *self, struct ifl_engine_op *op, struct ifl_error *error);
/* Fills the memory that measured operations read with small random numbers. */
int cuda_fill_bench(struct cuda_engine *engine, struct ifl_error *error);

#endif
