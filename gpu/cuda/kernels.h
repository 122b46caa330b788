/* The engine's kernels, as C calls them: one record of arguments and one launcher each.
 *
 * A launcher enqueues on the stream, allocates nothing and returns a cudaError_t as int: 0, the
 * launch's error, or cudaErrorInvalidValue for a shape outside the limits stated here. All
 * pointers are device memory, arrays of elements aligned to 16 bytes, widths multiples of 8
 * elements. Counts that change from step to step and that a captured graph must not freeze are
 * read from device memory; those are pointers. */
#ifndef GPU_CUDA_KERNELS_H
#define GPU_CUDA_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

enum element { ELEMENT_BF16, ELEMENT_FP16, ELEMENT_E4M3 /* of K and V alone */ };

/* ---- rows ---- */

/* out[i] = table[index[i]]; a row of zeros where the index is outside [0, n_table). Embedding:
 * index is the token. Last-row gather: index is the sequence's last row. */
struct gather_args {
    enum element element;
    void *out;            /* [n_rows][width] */
    const void *table;    /* [n_table][width] */
    const int32_t *index; /* [n_rows] */
    int32_t n_rows, n_table, width;
};
int gather_launch(const struct gather_args *args, struct CUstream_st *stream);

/* hidden += delta (when there is one, rounded to the element), then
 * out = hidden / sqrt(mean(hidden^2) + epsilon) * weight. Width at most 16384. */
struct norm_args {
    enum element element;
    void *out;          /* [n_rows][width] */
    void *hidden;       /* [n_rows][width] */
    const void *delta;  /* [n_rows][width] or NULL */
    const void *weight; /* [width] */
    float epsilon;
    int32_t n_rows, width;
};
int norm_launch(const struct norm_args *args, struct CUstream_st *stream);

/* out = silu(gate) * up, silu(x) = x / (1 + exp(-x)). */
struct swiglu_args {
    enum element element;
    void *out;           /* [n_rows][width] */
    const void *gate_up; /* [n_rows][2 * width], gate first */
    int32_t n_rows, width;
};
int swiglu_launch(const struct swiglu_args *args, struct CUstream_st *stream);

/* The index of each row's largest logit, the smallest such index among equals. NaN is smaller
 * than any number; a row of NaN gives 0. A row is cut into argmax_parts(n_vocab) parts. */
struct argmax_args {
    int32_t *token;      /* [n_rows] */
    const float *logits; /* [n_rows][stride], stride a multiple of 4 */
    int32_t n_rows, n_vocab, stride;
    uint64_t *part_keys; /* [n_rows][parts] */
    uint32_t *n_done;    /* [n_rows] 0 before the first launch, and after each */
};
enum { ARGMAX_PART = 4096 /* logits */ };
static inline int32_t argmax_parts(int32_t n_vocab)
{
    return (n_vocab + ARGMAX_PART - 1) / ARGMAX_PART;
}
int argmax_launch(const struct argmax_args *args, struct CUstream_st *stream);

/* ---- the paged KV pool ----
 *
 * [block][layer][K|V][kv_head][token][dim], seen as rows of head_dim elements. One layer: */
struct kv_layer {
    void *rows;           /* the pool, offset to this layer of block 0 */
    int32_t block_tokens; /* tokens in a block, any number */
    int32_t block_rows;   /* rows from one block to the next: n_layers * 2 * n_kv_heads * tokens */
    int32_t n_kv_heads, head_dim;
    bool is_e4m3; /* K and V are e4m3 (float_bits.h) and Q is fp16; else all are of the element */
};

/* For each token: adds the bias to its Q, K and V, normalises each head of Q and K (Qwen3), turns
 * Q and K by the position's angles, leaves Q in place and writes K and V to the pool. Beside K and
 * V in e4m3, Q is left in fp16, whatever the element, so that products are fp16's. Dimensions i and
 * i + head_dim / 2 form a pair, as in Hugging Face checkpoints. Head dim 64 or 128. */
struct rope_args {
    enum element element;
    void *qkv;                   /* [n_tokens][n_heads + 2 n_kv_heads][head_dim] */
    const void *bias;            /* [n_heads + 2 n_kv_heads][head_dim] or NULL */
    const void *q_norm, *k_norm; /* [head_dim] each, both or neither */
    float epsilon;
    const float *angles;     /* [n_positions][2][head_dim / 2]: cosines, sines */
    const int32_t *position; /* [n_tokens] */
    const int32_t *slot;     /* [n_tokens] block * block_tokens + offset; < 0: padding */
    int32_t n_tokens, n_heads;
    struct kv_layer kv;
};
int rope_launch(const struct rope_args *args, struct CUstream_st *stream);

struct block_pair {
    int32_t from, to;
};

/* Copies whole blocks within a pool. No block is written twice, or read and written. */
struct block_copy_args {
    void *pool;
    size_t block_bytes;             /* a multiple of 16 */
    const struct block_pair *pairs; /* [n_pairs] */
    int32_t n_pairs;
};
int block_copy_launch(const struct block_copy_args *args, struct CUstream_st *stream);

/* In each of n_layers layers and each KV head of a table: slot kept[i] to slot i; kept[i] is at
 * least i. No two tables have a block in common. */
struct keep_table {
    int32_t block;  /* of block_id: where the table begins */
    int32_t n_kept; /* slots */
    int32_t at;     /* of kept: [n_layers][n_kv_heads][n_kept] */
};
struct keep_slots_args {
    void *rows;       /* the pool, offset to the first of the layers of block 0 */
    size_t row_bytes; /* a multiple of 16 up to 4096 */
    int32_t block_tokens, block_rows, n_kv_heads, n_layers;
    const int32_t *block_id;
    const struct keep_table *tables; /* [n_tables] */
    int32_t n_tables;
    const int32_t *kept;
};
int keep_slots_launch(const struct keep_slots_args *args, struct CUstream_st *stream);

/* ---- attention ----
 *
 * out[row][head] = softmax(scale * q k^T) v over the row's visible tokens; head h reads KV head
 * h / (n_heads / n_kv_heads). Head dim 64 or 128, K and V of the row's own token already in the
 * pool. What the pool holds beyond a sequence's length, or before every window, is never used, be
 * it NaN. */
struct attn_args {
    enum element element;
    void *out;     /* [row][n_heads][head_dim] */
    const void *q; /* [row], q_stride elements apart: [n_heads][head_dim]; fp16 if kv.is_e4m3 */
    int32_t q_stride, n_heads;
    float scale;
    struct kv_layer kv;
    int32_t window_tokens;       /* a row sees no more than its last so many; 0: everything */
    const int32_t *kv_len;       /* [seq] tokens in the pool, this step's included */
    const int32_t *block_indptr; /* [seq + 1] into block_id */
    const int32_t *block_id;
};

/* Sequences with several new tokens: token i of a sequence's q_len sees its first
 * kv_len - q_len + i + 1 tokens, or the window's end of them. Tiles with a context that the plan
 * cuts leave their parts in the workspace; the merge then writes their rows. */
struct attn_prefill_args {
    struct attn_args attn;
    const int32_t *q_indptr;               /* [seq + 1] rows of q and out */
    const struct attn_prefill_item *items; /* [n_items] from attn_prefill_plan */
    const struct attn_tile_merge *merges;  /* [n_merges] */
    int32_t n_items, n_merges, tile_rows;
    float *parts;       /* [part][n_kv_heads][ATTN_LOW_TILE][head_dim] */
    float *part_logsum; /* [part][n_kv_heads][ATTN_LOW_TILE] */
};
int attn_prefill_launch(const struct attn_prefill_args *args, struct CUstream_st *stream);
int attn_prefill_merge_launch(const struct attn_prefill_args *args, struct CUstream_st *stream);
/* Blocks of each tile that the current device works on at a time. */
int attn_prefill_slots(const struct attn_args *attn, struct attn_prefill_slots *slots);

/* Sequences with one new token: row r is sequence r. The plan has the windows in it. Sequences cut
 * by the plan leave their parts in the workspace; the merge then writes their rows. */
struct attn_decode_args {
    struct attn_args attn;
    struct attn_decode_plan plan; /* every pointer in it device memory */
    int32_t n_shares;             /* size of the grid: attn_decode_shares() */
    float *parts;                 /* [part][n_heads][head_dim] */
    float *part_logsum;           /* [part][n_heads] */
};
int attn_decode_launch(const struct attn_decode_args *args, struct CUstream_st *stream);
int attn_merge_launch(const struct attn_decode_args *args, struct CUstream_st *stream);
/* Into how many equal shares the current device best cuts a batch's context. */
int attn_decode_shares(const struct attn_args *attn, int32_t *n_shares);

/* ---- votes ----
 *
 * Of each piece, rows of one sequence: softmax(scale * q k^T), summed over the rows and over the
 * query heads of a KV head. Row i sees n_seen + i slots; slots beyond get 0. Q is as attention
 * reads it. */
struct vote_piece {
    int32_t row, n_rows; /* of q */
    int32_t n_seen, n_slots;
    int32_t block; /* of block_id: where the sequence's table begins */
    int32_t at;    /* of votes: [n_kv_heads][n_slots] */
};
struct vote_args {
    enum element element;
    const void *q; /* fp16 if kv.is_e4m3 */
    int32_t q_stride, n_heads;
    float scale;
    struct kv_layer kv;
    const int32_t *block_id;
    const struct vote_piece *pieces; /* [n_pieces] */
    int32_t n_pieces, max_rows, max_slots;
    float *logsum; /* [row of q][n_heads] */
    float *votes;
};
int vote_launch(const struct vote_args *args, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
