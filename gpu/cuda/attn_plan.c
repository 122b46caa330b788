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

/* ---- prefill: tiles ---- */

enum {
    KEY_TOKENS = 64, /* of a block's turn */
    /* What a block's turn takes, in sixteenths of a turn of the tall tile. The low tile reads as
     * many fragments of K and V for half the products (attn_prefill.cuh). */
    TALL_TURN = 16,
    LOW_TURN = 10,
    START_TURNS = 1,   /* what a block takes before its first turn and behind its last */
    CUT_TURNS = 7,     /* what the parts and their merge take */
    CUT_MIN_TURNS = 8, /* of a part: shorter ones cost more than they save */
    FULL_WAVES = 8,    /* with so many blocks a slot no choice leaves slots idle */
};

static int32_t turns_of(const struct attn_prefill_item *item)
{
    return (item->end - item->first_token + KEY_TOKENS - 1) / KEY_TOKENS;
}

/* Heaviest first; among equals in order of sequence, row and token, so that the plan is unique. */
static bool goes_before(struct attn_prefill_item a, struct attn_prefill_item b)
{
    const int32_t a_tokens = a.end - a.first_token, b_tokens = b.end - b.first_token;
    if (a_tokens != b_tokens)
        return a_tokens > b_tokens;
    if (a.seq != b.seq)
        return a.seq < b.seq;
    return a.first_row != b.first_row ? a.first_row < b.first_row : a.first_token < b.first_token;
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

static int32_t sequence_tile(struct attn_prefill_item out[], const struct attn_prefill_batch *batch,
                             int32_t seq, int32_t tile_rows)
{
    const int32_t q_len = batch->q_indptr[seq + 1] - batch->q_indptr[seq];
    const int32_t n_past = batch->kv_len[seq] - q_len, group = batch->group;
    int32_t n = 0;
    for (int32_t row = 0; row < q_len * group; row += tile_rows) {
        const int32_t last_row = ifl_min(row + tile_rows, q_len * group) - 1;
        out[n++] = (struct attn_prefill_item){
            .seq = seq,
            .first_row = row,
            .first_token = first_seen(n_past + row / group + 1, batch->window_tokens),
            .end = n_past + last_row / group + 1,
            .part = -1};
    }
    return n;
}

static void tile(struct attn_prefill_plan *plan, const struct attn_prefill_batch *batch,
                 int32_t tile_rows)
{
    plan->n_items = plan->n_merges = plan->n_parts = 0;
    plan->tile_rows = tile_rows;
    for (int32_t s = 0; s < batch->n_seqs; s++)
        plan->n_items += sequence_tile(plan->items + plan->n_items, batch, s, tile_rows);
    items_sort(plan->items, (size_t)plan->n_items);
}

/* ---- prefill: how long the device takes ---- */

/* A lower bound of any schedule of the sorted items, each of them once a KV head, that the list
 * schedule comes close to: an equal part of the work, or k + 1 blocks of the lightest size among
 * the k slots + 1 heaviest (Graham 1969, "Bounds on multiprocessing timing anomalies"). */
static int64_t span_turns(const struct attn_prefill_plan *plan, int32_t n_heads, int32_t n_slots)
{
    int64_t all = 0, span = 0;
    for (int32_t i = 0; i < plan->n_items; i++)
        all += turns_of(&plan->items[i]) + START_TURNS;
    for (int64_t k = 0; k * n_slots < (int64_t)plan->n_items * n_heads; k++) {
        const int64_t lightest = turns_of(&plan->items[k * n_slots / n_heads]) + START_TURNS;
        span = ifl_max(span, (k + 1) * lightest);
    }
    return ifl_max(span, (all * n_heads + n_slots - 1) / n_slots);
}

/* ---- prefill: cuts ---- */

static int32_t cuts_of(const struct attn_prefill_item *item, int32_t most_turns)
{
    return (turns_of(item) + most_turns - 1) / most_turns;
}

static int64_t n_cut(const struct attn_prefill_plan *plan, int32_t most_turns)
{
    int64_t n = 0;
    for (int32_t i = 0; i < plan->n_items; i++)
        n += cuts_of(&plan->items[i], most_turns);
    return n;
}

/* The shortest parts for which all blocks still run at once. */
static int32_t shortest_parts(const struct attn_prefill_plan *plan, int32_t most_items)
{
    int32_t low = CUT_MIN_TURNS, high = ifl_max(turns_of(&plan->items[0]), CUT_MIN_TURNS);
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (n_cut(plan, middle) <= most_items)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Parts of one item, as equal as turns allow, go to `out`; the first takes the item's place. */
static int32_t item_cut(struct attn_prefill_plan *plan, int32_t i, int32_t n_parts, int32_t at)
{
    const struct attn_prefill_item whole = plan->items[i];
    const int32_t turns = turns_of(&whole);
    plan->merges[plan->n_merges++] =
        (struct attn_tile_merge){whole.seq, whole.first_row, plan->n_parts, n_parts};
    for (int32_t p = 0; p < n_parts; p++) {
        const int32_t from = (int32_t)((int64_t)turns * p / n_parts) * KEY_TOKENS;
        const int32_t to = (int32_t)((int64_t)turns * (p + 1) / n_parts) * KEY_TOKENS;
        plan->items[p == 0 ? i : at++] =
            (struct attn_prefill_item){.seq = whole.seq,
                                       .first_row = whole.first_row,
                                       .first_token = whole.first_token + from,
                                       .end = ifl_min(whole.first_token + to, whole.end),
                                       .part = plan->n_parts++};
    }
    return at;
}

static void cut_contexts(struct attn_prefill_plan *plan, const struct attn_prefill_batch *batch)
{
    const int32_t most = attn_prefill_max_parts(batch->n_kv_heads, batch->slots);
    if (plan->n_items == 0 || plan->n_items >= most)
        return;
    const int32_t longest = turns_of(&plan->items[0]), turns = shortest_parts(plan, most);
    if (turns + CUT_TURNS >= longest)
        return;
    const int32_t n_whole = plan->n_items;
    for (int32_t i = 0; i < n_whole; i++) {
        const int32_t n_parts = cuts_of(&plan->items[i], turns);
        if (n_parts > 1)
            plan->n_items = item_cut(plan, i, n_parts, plan->n_items);
    }
    items_sort(plan->items, (size_t)plan->n_items);
}

/* ---- prefill: the plan ---- */

int32_t attn_prefill_max_parts(int32_t n_kv_heads, struct attn_prefill_slots slots)
{
    ifl_assert(n_kv_heads > 0);
    return slots.low / n_kv_heads;
}

int32_t attn_prefill_max_items(int64_t n_rows, int32_t n_seqs, int32_t n_kv_heads,
                               struct attn_prefill_slots slots)
{
    const int64_t whole = n_rows / ATTN_LOW_TILE + n_seqs;
    return (int32_t)ifl_max(whole, (int64_t)attn_prefill_max_parts(n_kv_heads, slots));
}

void attn_prefill_plan(struct attn_prefill_plan *plan, const struct attn_prefill_batch *batch)
{
    ifl_assert(batch->group > 0 && batch->slots.low > 0 && batch->slots.tall > 0);
    const int32_t n_heads = batch->n_kv_heads;
    tile(plan, batch, ATTN_TALL_TILE);
    if ((int64_t)plan->n_items * n_heads >= (int64_t)FULL_WAVES * batch->slots.tall &&
        plan->n_items > batch->n_seqs)
        return;
    const int64_t tall = span_turns(plan, n_heads, batch->slots.tall) * TALL_TURN;
    tile(plan, batch, ATTN_LOW_TILE);
    if (span_turns(plan, n_heads, batch->slots.low) * LOW_TURN > tall)
        tile(plan, batch, ATTN_TALL_TILE);
    else
        cut_contexts(plan, batch);
}
