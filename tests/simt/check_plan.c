#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { MAX_SEQS = 40, MAX_SHARES = 60, MAX_ITEMS = 4000 };

struct decode_case {
    int32_t n_seqs, n_shares, window_tokens, kv_len[MAX_SEQS];
    int32_t share_indptr[MAX_SHARES + 1], n_merges;
    struct attn_segment segments[MAX_SEQS + MAX_SHARES];
    struct attn_merge merges[MAX_SHARES];
};

static int32_t tiles_of(int32_t n_tokens)
{
    return (n_tokens + ATTN_DECODE_TOKENS - 1) / ATTN_DECODE_TOKENS;
}

/* Tokens of a sequence that lie in the window. */
static int32_t n_seen(const struct decode_case *c, int32_t seq)
{
    const bool is_cut = c->window_tokens > 0 && c->kv_len[seq] > c->window_tokens;
    return is_cut ? c->window_tokens : c->kv_len[seq];
}

/* Every token occurs once and in order; whole sequences have no part, the parts of cut sequences
 * are merged. */
static bool covers(const struct decode_case *c, int32_t n_parts)
{
    int32_t next[MAX_SEQS] = {0}, n_cuts[MAX_SEQS] = {0}, part = 0;
    for (int32_t s = 0; s < c->n_seqs; s++)
        next[s] = c->kv_len[s] - n_seen(c, s);
    for (int32_t i = 0; i < c->share_indptr[c->n_shares]; i++) {
        const struct attn_segment s = c->segments[i];
        if (s.first_token != next[s.seq] || s.n_tokens <= 0)
            return false;
        if (s.part >= 0 ? s.part != part++ : s.n_tokens != n_seen(c, s.seq))
            return false;
        next[s.seq] += s.n_tokens;
        n_cuts[s.seq] += s.part >= 0;
    }
    int32_t first_part = 0;
    for (int32_t i = 0; i < c->n_merges; i++) {
        const struct attn_merge m = c->merges[i];
        if (m.first_part != first_part || m.n_parts < 2 || m.n_parts != n_cuts[m.seq])
            return false;
        first_part += m.n_parts;
    }
    return !memcmp(next, c->kv_len, (size_t)c->n_seqs * sizeof *next) && first_part == n_parts &&
           n_parts <= 2 * c->n_shares;
}

/* No share exceeds an equal part, rounded up to tiles and to the shortest useful share. */
static bool is_balanced(const struct decode_case *c)
{
    int64_t n_tiles = 0;
    for (int32_t s = 0; s < c->n_seqs; s++)
        n_tiles += tiles_of(n_seen(c, s));
    int64_t most = (n_tiles + c->n_shares - 1) / c->n_shares;
    if (most < ATTN_DECODE_MIN_SHARE / ATTN_DECODE_TOKENS)
        most = ATTN_DECODE_MIN_SHARE / ATTN_DECODE_TOKENS;
    for (int32_t share = 0; share < c->n_shares; share++) {
        int64_t mine = 0;
        for (int32_t i = c->share_indptr[share]; i < c->share_indptr[share + 1]; i++)
            mine += tiles_of(c->segments[i].n_tokens);
        if (mine > most)
            return false;
    }
    return true;
}

static void check_decode_plans(void)
{
    static struct decode_case c;
    int n_wrong = 0;
    for (int round = 0; round < 500; round++) {
        c.n_seqs = draw_between(0, MAX_SEQS);
        c.n_shares = draw_between(1, MAX_SHARES);
        c.window_tokens = round % 2 ? draw_between(1, 3000) : 0;
        for (int32_t s = 0; s < c.n_seqs; s++)
            c.kv_len[s] = draw_between(0, 7) ? draw_between(1, 1 << draw_between(0, 14)) : 0;
        struct attn_decode_plan plan = {c.share_indptr, c.segments, c.merges, &c.n_merges};
        const int32_t n_parts =
            attn_decode_plan(&plan, c.n_shares, c.window_tokens, c.kv_len, c.n_seqs);
        n_wrong += !covers(&c, n_parts) || !is_balanced(&c);
    }
    verdict(n_wrong == 0, "decode plans cover every token once in equal shares, %d wrong", n_wrong);
}

/* ---- prefill ---- */

enum { MAX_PREFILLS = 12 };

struct prefill_case {
    int32_t q_indptr[MAX_PREFILLS + 1], kv_len[MAX_PREFILLS];
    struct attn_prefill_batch batch;
    struct attn_prefill_item items[MAX_ITEMS];
    struct attn_tile_merge merges[MAX_ITEMS];
    struct attn_prefill_plan plan;
};

static void prefill_draw(struct prefill_case *c)
{
    const int32_t n_seqs = draw_between(1, MAX_PREFILLS);
    for (int32_t s = 0; s < n_seqs; s++) {
        const int32_t q_len = draw_between(0, draw_between(0, 1) ? 20 : 300);
        c->q_indptr[s + 1] = c->q_indptr[s] + q_len;
        c->kv_len[s] = q_len + draw_between(0, 1 << draw_between(0, 14));
    }
    c->batch = (struct attn_prefill_batch){
        .n_seqs = n_seqs,
        .group = 1 << draw_between(0, 3),
        .n_kv_heads = draw_between(1, 8),
        .window_tokens = draw_between(0, 1) ? draw_between(1, 3000) : 0,
        .slots = {draw_between(1, 300), draw_between(1, 300)},
    };
}

static void prefill_plan(struct prefill_case *c)
{
    c->batch.q_indptr = c->q_indptr;
    c->batch.kv_len = c->kv_len;
    c->plan = (struct attn_prefill_plan){.items = c->items, .merges = c->merges};
    attn_prefill_plan(&c->plan, &c->batch);
}

/* Every tile has its window's tokens once: by one whole item, or by a merge's parts in order. */
static bool tile_is_covered(const struct prefill_case *c, int32_t seq, int32_t row)
{
    const int32_t q_len = c->q_indptr[seq + 1] - c->q_indptr[seq], group = c->batch.group;
    const int32_t end_row = row + c->plan.tile_rows, n_rows = q_len * group;
    const int32_t past = c->kv_len[seq] - q_len, window = c->batch.window_tokens;
    const int32_t seen = past + row / group + 1;
    const int32_t end = past + ((end_row < n_rows ? end_row : n_rows) - 1) / group + 1;
    int32_t at = window && seen > window ? seen - window : 0, n_parts = 0, first_part = 0;
    for (int32_t part = -1; at < end; part++) {
        bool found = false;
        for (int32_t i = 0; i < c->plan.n_items && !found; i++) {
            const struct attn_prefill_item *item = &c->items[i];
            if (item->seq != seq || item->first_row != row || item->first_token != at ||
                item->end <= at || item->end > end)
                continue;
            found = true;
            at = item->end;
            if (item->part < 0)
                return at == end && n_parts == 0;
            first_part = n_parts++ ? first_part : item->part;
            if (item->part != first_part + n_parts - 1)
                return false;
        }
        if (!found)
            return false;
    }
    for (int32_t i = 0; i < c->plan.n_merges; i++)
        if (c->merges[i].seq == seq && c->merges[i].first_row == row)
            return c->merges[i].first_part == first_part && c->merges[i].n_parts == n_parts &&
                   n_parts > 1;
    return false;
}

static bool prefill_is_right(const struct prefill_case *c)
{
    const struct attn_prefill_batch *b = &c->batch;
    int32_t n_tiles = 0, n_cut = 0;
    for (int32_t s = 0; s < b->n_seqs; s++) {
        const int32_t n_rows = (c->q_indptr[s + 1] - c->q_indptr[s]) * b->group;
        for (int32_t row = 0; row < n_rows; row += c->plan.tile_rows, n_tiles++)
            if (!tile_is_covered(c, s, row))
                return false;
    }
    for (int32_t i = 0; i < c->plan.n_merges; i++)
        n_cut += c->merges[i].n_parts - 1;
    for (int32_t i = 1; i < c->plan.n_items; i++)
        if (c->items[i].end - c->items[i].first_token >
            c->items[i - 1].end - c->items[i - 1].first_token)
            return false;
    const int64_t n_rows = (int64_t)c->q_indptr[b->n_seqs] * b->group;
    return c->plan.n_items == n_tiles + n_cut &&
           c->plan.n_parts <= attn_prefill_max_parts(b->n_kv_heads, b->slots) &&
           (n_cut == 0 || c->plan.tile_rows == ATTN_LOW_TILE) &&
           c->plan.n_items <= attn_prefill_max_items(n_rows, b->n_seqs, b->n_kv_heads, b->slots);
}

static void check_prefill_plans(void)
{
    static struct prefill_case c;
    int n_wrong = 0, n_cut = 0, n_tall = 0;
    for (int round = 0; round < 400; round++) {
        prefill_draw(&c);
        prefill_plan(&c);
        n_wrong += !prefill_is_right(&c);
        n_cut += c.plan.n_merges > 0;
        n_tall += c.plan.tile_rows == ATTN_TALL_TILE;
    }
    verdict(n_wrong == 0 && n_cut > 20 && n_tall > 20,
            "prefill plans hold every row and token, heaviest first, %d wrong; %d with cuts, %d of "
            "tall tiles",
            n_wrong, n_cut, n_tall);
}

/* The share of time that a list schedule of the plan keeps the device's slots busy, KV heads
 * fastest. */
static double plan_busy(const struct prefill_case *c)
{
    static int64_t ends[300];
    const bool is_tall = c->plan.tile_rows == ATTN_TALL_TILE;
    const int32_t n_slots = is_tall ? c->batch.slots.tall : c->batch.slots.low;
    int64_t all = 0, last = 0;
    memset(ends, 0, sizeof ends);
    for (int32_t i = 0; i < c->plan.n_items * c->batch.n_kv_heads; i++) {
        const struct attn_prefill_item *item = &c->items[i / c->batch.n_kv_heads];
        int32_t first = 0;
        for (int32_t s = 1; s < n_slots; s++)
            first = ends[s] < ends[first] ? s : first;
        ends[first] += item->end - item->first_token;
        all += item->end - item->first_token;
        last = ends[first] > last ? ends[first] : last;
    }
    return (double)all / ((double)last * n_slots);
}

/* A model of 32 heads, 8 of them KV heads, on a device of 132 multiprocessors of two blocks each.
 */
static void expect_busy(int32_t n_seqs, int32_t q_len, int32_t n_past, double least)
{
    static struct prefill_case c;
    for (int32_t s = 0; s < n_seqs; s++) {
        c.q_indptr[s + 1] = c.q_indptr[s] + q_len;
        c.kv_len[s] = q_len + n_past;
    }
    c.batch = (struct attn_prefill_batch){
        .n_seqs = n_seqs, .group = 4, .n_kv_heads = 8, .slots = {264, 264}};
    prefill_plan(&c);
    const double busy = plan_busy(&c);
    verdict(busy >= least && prefill_is_right(&c),
            "%d x %d tokens behind %d: tiles of %d, %d cuts, slots busy %.2f, at least %.2f",
            n_seqs, q_len, n_past, c.plan.tile_rows, c.plan.n_merges, busy, least);
}

static void check_prefill_fills_the_device(void)
{
    expect_busy(1, 2048, 0, 0.95);
    expect_busy(1, 4096, 0, 0.95);
    expect_busy(4, 1000, 0, 0.9);
    expect_busy(1, 512, 8192, 0.9);
    expect_busy(1, 256, 4096, 0.9);
    expect_busy(1, 64, 16384, 0.9);
    expect_busy(3, 20, 9000, 0.85);
}

void check_attn_plan(void)
{
    draw_seed(9);
    check_decode_plans();
    check_prefill_plans();
    check_prefill_fills_the_device();
}
