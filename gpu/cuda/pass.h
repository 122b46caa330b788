/* A pass: the part of a step that fits into scratch memory, laid out for the kernels.
 *
 * A step's tokens are computed in passes over stretches of its ragged concatenation; a later pass
 * reads the K/V that an earlier one wrote. Within a pass the sequences with one token go first
 * (decode attention), then the others (prefill attention): rows are in that order, not the step's.
 *
 * The plan is one stretch of memory, written on the host and copied to the device as it is:
 *
 *     token_id[rows] position[rows] slot[rows]
 *     kv_len[seqs] block_indptr[seqs + 1] q_indptr[prefills + 1] logit_row[logit_rows]
 *     share_indptr[shares + 1] segments[decodes + shares] merges[shares] n_merges[1]
 *     items[items] tile_merges[tile_merges]
 *     block_id[...]
 *
 * Each array is aligned to 16 bytes, and its offset depends on the shape alone: a captured graph
 * finds the numbers of every later pass of the same shape at the same addresses. */
#ifndef GPU_CUDA_PASS_H
#define GPU_CUDA_PASS_H

#include "attn_plan.h"
#include "inflight/engine.h"

enum {
    PASS_MAX_TOKENS = 4096,
    PASS_MAX_SEQS = 1024,
    PASS_MAX_BLOCKS = 1 << 20, /* of all block tables together, unless one alone is longer */
    PASS_GRAPH_SEQS = 256      /* passes of up to so many decodes alone are captured */
};

/* Limits that never change after opening. */
struct pass_limits {
    int32_t max_rows, max_seqs, max_blocks;
    int32_t block_tokens, n_shares, group, n_kv_heads; /* group: query heads of a KV head */
    int32_t window_tokens;                             /* of attention; 0: none */
    struct attn_prefill_slots slots;
};

struct pass_shape {
    int32_t n_rows, n_decodes, n_prefills, n_logit_rows, n_items, n_tile_merges, tile_rows;
    bool is_graph; /* decodes alone, their number rounded up */
};

/* Rows [first, first + n) of the step, all of one sequence. */
struct pass_piece {
    int32_t seq, first, n;
    int32_t n_logit_rows; /* its last so many rows have logits */
};

struct pass_cursor { /* start with {0} */
    int32_t seq, row;
};

struct pass_arrays {
    int32_t *token_id, *position, *slot;
    int32_t *kv_len, *block_indptr, *q_indptr, *logit_row;
    struct attn_decode_plan decode;
    struct attn_prefill_item *items;
    struct attn_tile_merge *tile_merges;
    int32_t *block_id;
};

struct pass {
    struct pass_shape shape;
    struct pass_piece *pieces; /* [max_seqs] */
    int32_t n_pieces, n_logit_rows;
    int32_t n_merges;                 /* merges of decodes, set by pass_write */
    int32_t *row_of;                  /* [max_seqs] a piece's first row in the pass */
    int32_t *q_indptr;                /* [max_seqs + 1] first rows of the prefills, and the end */
    int32_t *kv_len;                  /* [max_seqs] of the prefills */
    struct attn_prefill_plan prefill; /* arrays of pass_max_items and of as many parts as it says */
};

void pass_limits_set(struct pass_limits *limits, const struct ifl_engine_options *options,
                     int32_t window_tokens, int32_t n_shares, struct attn_prefill_slots slots);
/* Most items of prefill attention in a pass. */
int32_t pass_max_items(const struct pass_limits *limits);
/* Bytes that any pass's plan fits into. */
size_t pass_max_bytes(const struct pass_limits *limits);

/* Fills in the array addresses of a plan at `base`, which may be NULL. Returns the bytes before
 * block_id. */
size_t pass_lay_out(const struct pass_limits *limits, const struct pass_shape *shape, void *base,
                    struct pass_arrays *arrays);

/* Takes the step's next pieces; false when there are none left. */
bool pass_cut(const struct pass_limits *limits, const struct ifl_engine_step *step,
              struct pass_cursor *cursor, struct pass *pass);
/* Writes the plan to host memory; returns its bytes. */
size_t pass_write(const struct pass_limits *limits, const struct ifl_engine_step *step,
                  struct pass *pass, void *base);

#endif
