/* The work of each thread block in attention, planned once per step on the host, the same for every
 * layer and KV head.
 *
 * Decode is bound by memory, so the batch's context is cut into shares of equal tokens, one for
 * each resident thread block (and KV head): the tail of one sequence and the head of the next may
 * share a share. The idea is FlashMLA's tile scheduler. Prefill is bound by arithmetic: its tiles
 * are listed heaviest first, and cut along the context where there are too few for the device. */
#ifndef GPU_CUDA_ATTN_PLAN_H
#define GPU_CUDA_ATTN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ATTN_GROUP_ROWS = 16,       /* rows of a decode tile: heads that share K and V */
    ATTN_DECODE_TOKENS = 64,    /* tokens a decode block takes at a time */
    ATTN_DECODE_MIN_SHARE = 128 /* shorter shares cost more in merging than they save */
};

/* One block's stretch of one sequence's context. */
struct attn_segment {
    int32_t seq, first_token, n_tokens;
    int32_t part; /* where the result goes in the workspace; < 0: the sequence is whole, to out */
};

/* A sequence that was cut. */
struct attn_merge {
    int32_t seq, first_part, n_parts;
};

struct attn_decode_plan {
    int32_t *share_indptr;         /* [n_shares + 1] into segments */
    struct attn_segment *segments; /* [n_seqs + n_shares] at most */
    struct attn_merge *merges;     /* [n_shares] at most */
    int32_t *n_merges;             /* [1] */
};

/* Fills the plan's arrays, which lie in host memory and are sized as above. A sequence of length 0
 * is padding and gets no segment. Of the others the last window_tokens are read; window_tokens 0
 * is all. Returns the number of parts, at most 2 * n_shares. */
int32_t attn_decode_plan(struct attn_decode_plan *plan, int32_t n_shares, int32_t window_tokens,
                         const int32_t kv_len[], int32_t n_seqs);

/* Rows are (new token, head of the group) pairs, tokens slowest. A block computes tile_rows rows of
 * one KV head on tokens [first_token, end) of the sequence's context. */
struct attn_prefill_item {
    int32_t seq, first_row, first_token, end;
    int32_t part; /* where the result goes in the workspace; < 0: the context is whole, to out */
};

/* A tile of rows with a context that was cut into parts. */
struct attn_tile_merge {
    int32_t seq, first_row, first_part, n_parts;
};

enum { ATTN_LOW_TILE = 64, ATTN_TALL_TILE = 128 }; /* rows */

/* The device's side of a prefill: blocks of each tile that it works on at a time. */
struct attn_prefill_slots {
    int32_t low, tall;
};

struct attn_prefill_batch {
    const int32_t *q_indptr; /* [n_seqs + 1] new tokens */
    const int32_t *kv_len;   /* [n_seqs] new ones included */
    int32_t n_seqs, group, n_kv_heads;
    int32_t window_tokens; /* 0: all */
    struct attn_prefill_slots slots;
};

struct attn_prefill_plan {
    struct attn_prefill_item *items;
    struct attn_tile_merge *merges;
    int32_t n_items, n_merges, n_parts, tile_rows;
};

/* Most items of a batch with n_rows rows in all, and most parts (as many merges suffice). */
int32_t attn_prefill_max_items(int64_t n_rows, int32_t n_seqs, int32_t n_kv_heads,
                               struct attn_prefill_slots slots);
int32_t attn_prefill_max_parts(int32_t n_kv_heads, struct attn_prefill_slots slots);
/* Fills the plan's arrays, of the sizes above: the tile and the cuts that leave the fewest slots
 * idle, heaviest items first. Contexts are cut in tiles of 64 rows only. */
void attn_prefill_plan(struct attn_prefill_plan *plan, const struct attn_prefill_batch *batch);

#ifdef __cplusplus
}
#endif

#endif
