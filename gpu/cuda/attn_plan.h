/* The work of each thread block in attention, planned once per step on the host, the same for every
 * layer and KV head.
 *
 * Decode is bound by memory, so the batch's context is cut into shares of equal tokens, one for
 * each resident thread block (and KV head): the tail of one sequence and the head of the next may
 * share a share. The idea is FlashMLA's tile scheduler. Prefill is bound by arithmetic and has
 * work for all: its tiles are listed heaviest first. */
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

/* Rows are (new token, head of the group) pairs, tokens slowest. */
struct attn_prefill_item {
    int32_t seq, first_row;
    int32_t n_visible; /* tokens that the tile's last row sees */
};

/* 128 rows a tile when the sequences fill them, else 64. */
int32_t attn_prefill_tile_rows(const int32_t q_indptr[], int32_t n_seqs, int32_t group);
/* How many items a plan has. */
int32_t attn_prefill_n_items(const int32_t q_indptr[], int32_t n_seqs, int32_t group,
                             int32_t tile_rows);
/* Fills items, heaviest first, and returns how many. */
int32_t attn_prefill_plan(struct attn_prefill_item items[], const int32_t q_indptr[],
                          const int32_t kv_len[], int32_t n_seqs, int32_t group, int32_t tile_rows);

#ifdef __cplusplus
}
#endif

#endif
