#include "attn_plan.h"

#include <stdbool.h>

#include "inflight/assert.h"
#include "inflight/minmax.h"

/* ---- decode ---- */

static int32_t tiles_of(int32_t n_tokens)
{
    return (n_tokens + ATTN_DECODE_TOKENS - 1) / ATTN_DECODE_TOKENS;
}

/* The first token that the window lets a row see; window_tokens 0 is no window. */
static int32_t first_seen(int32_t kv_len, int32_t window_tokens)
{
    return window_tokens > 0 && kv_len > window_tokens ? kv_len - window_tokens : 0;
}

/* Tiles of a share: an equal part of the batch, at least ATTN_DECODE_MIN_SHARE tokens. */
static int32_t share_tiles(const int32_t kv_len[], int32_t n_seqs, int32_t window_tokens,
                           int32_t n_shares)
{
    int64_t n_tiles = 0;
    for (int32_t s = 0; s < n_seqs; s++)
        n_tiles += tiles_of(kv_len[s] - first_seen(kv_len[s], window_tokens));
    const int32_t equal = (int32_t)((n_tiles + n_shares - 1) / n_shares);
    const int32_t shortest = ATTN_DECODE_MIN_SHARE / ATTN_DECODE_TOKENS;
    return ifl_max(equal, shortest);
}

struct decode_cut {
    struct attn_decode_plan *plan;
    int32_t share, room_tiles, n_per_share; /* the open share and the tiles it still takes */
    int32_t n_segments, n_parts;
};

static void share_close(struct decode_cut *cut)
{
    cut->plan->share_indptr[++cut->share] = cut->n_segments;
    cut->room_tiles = cut->n_per_share;
}

static void segment_add(struct decode_cut *cut, int32_t seq, int32_t first, int32_t n, int32_t part)
{
    cut->plan->segments[cut->n_segments++] = (struct attn_segment){seq, first, n, part};
    cut->room_tiles -= tiles_of(n);
    if (cut->room_tiles == 0)
        share_close(cut);
}

/* Puts tokens [at, end) of the sequence's context into shares. */
static void sequence_cut(struct decode_cut *cut, int32_t seq, int32_t at, int32_t end)
{
    if (tiles_of(end - at) <= cut->room_tiles) {
        segment_add(cut, seq, at, end - at, -1);
        return;
    }
    const int32_t first_part = cut->n_parts;
    while (at < end) {
        const int32_t n = ifl_min(end - at, cut->room_tiles * ATTN_DECODE_TOKENS);
        segment_add(cut, seq, at, n, cut->n_parts++);
        at += n;
    }
    cut->plan->merges[(*cut->plan->n_merges)++] =
        (struct attn_merge){seq, first_part, cut->n_parts - first_part};
}

int32_t attn_decode_plan(struct attn_decode_plan *plan, int32_t n_shares, int32_t window_tokens,
                         const int32_t kv_len[], int32_t n_seqs)
{
    ifl_assert(n_shares > 0 && window_tokens >= 0);
    const int32_t n_tiles = share_tiles(kv_len, n_seqs, window_tokens, n_shares);
    struct decode_cut cut = {.plan = plan, .room_tiles = n_tiles, .n_per_share = n_tiles};
    plan->share_indptr[0] = 0;
    *plan->n_merges = 0;
    for (int32_t s = 0; s < n_seqs; s++)
        if (kv_len[s] > 0)
            sequence_cut(&cut, s, first_seen(kv_len[s], window_tokens), kv_len[s]);
    while (cut.share < n_shares)
        share_close(&cut);
    return cut.n_parts;
}

/* ---- prefill ---- */

static int64_t rows_of(const int32_t q_indptr[], int32_t seq, int32_t group)
{
    return (int64_t)(q_indptr[seq + 1] - q_indptr[seq]) * group;
}

int32_t attn_prefill_tile_rows(const int32_t q_indptr[], int32_t n_seqs, int32_t group)
{
    ifl_assert(group > 0);
    const int64_t n_rows = (int64_t)(q_indptr[n_seqs] - q_indptr[0]) * group;
    return n_rows > 64 * (int64_t)n_seqs ? 128 : 64;
}

int32_t attn_prefill_n_items(const int32_t q_indptr[], int32_t n_seqs, int32_t group,
                             int32_t tile_rows)
{
    ifl_assert(group > 0 && tile_rows > 0);
    int64_t n_items = 0;
    for (int32_t s = 0; s < n_seqs; s++)
        n_items += (rows_of(q_indptr, s, group) + tile_rows - 1) / tile_rows;
    return (int32_t)n_items;
}

/* Heaviest first; among equals in order of sequence and row, so that the plan is unique. */
static bool goes_before(struct attn_prefill_item a, struct attn_prefill_item b)
{
    if (a.n_visible != b.n_visible)
        return a.n_visible > b.n_visible;
    return a.seq != b.seq ? a.seq < b.seq : a.first_row < b.first_row;
}

static void sift_down(struct attn_prefill_item items[], size_t at, size_t n)
{
    const struct attn_prefill_item item = items[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && goes_before(items[child], items[child + 1]))
            child++;
        if (!goes_before(item, items[child]))
            break;
        items[at] = items[child];
    }
    items[at] = item;
}

/* A heap sort: a step allocates nothing, and glibc's qsort may. */
static void items_sort(struct attn_prefill_item items[], size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(items, i, n);
    for (size_t end = n; end-- > 1;) {
        const struct attn_prefill_item last = items[0];
        items[0] = items[end];
        items[end] = last;
        sift_down(items, 0, end);
    }
}

static size_t sequence_tile(struct attn_prefill_item out[], int32_t seq, int32_t q_len,
                            int32_t kv_len, int32_t group, int32_t tile_rows)
{
    size_t n = 0;
    for (int32_t row = 0; row < q_len * group; row += tile_rows) {
        const int32_t last_row = ifl_min(row + tile_rows, q_len * group) - 1;
        out[n++] = (struct attn_prefill_item){seq, row, kv_len - q_len + last_row / group + 1};
    }
    return n;
}

int32_t attn_prefill_plan(struct attn_prefill_item items[], const int32_t q_indptr[],
                          const int32_t kv_len[], int32_t n_seqs, int32_t group, int32_t tile_rows)
{
    ifl_assert(group > 0 && tile_rows > 0);
    size_t n = 0;
    for (int32_t s = 0; s < n_seqs; s++)
        n +=
            sequence_tile(items + n, s, q_indptr[s + 1] - q_indptr[s], kv_len[s], group, tile_rows);
    items_sort(items, n);
    return (int32_t)n;
}
