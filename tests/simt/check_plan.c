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

static void check_prefill_plans(void)
{
    static struct attn_prefill_item items[MAX_ITEMS];
    int n_wrong = 0;
    for (int round = 0; round < 200; round++) {
        const int32_t n_seqs = draw_between(1, 12), group = 1 << draw_between(0, 3);
        int32_t q_indptr[13] = {0}, kv_len[12];
        int64_t n_rows = 0, n_planned = 0;
        for (int32_t s = 0; s < n_seqs; s++) {
            const int32_t q_len = draw_between(0, 300);
            q_indptr[s + 1] = q_indptr[s] + q_len;
            kv_len[s] = q_len + draw_between(0, 1000);
            n_rows += (int64_t)q_len * group;
        }
        const int32_t tile_rows = attn_prefill_tile_rows(q_indptr, n_seqs, group);
        const int32_t n = attn_prefill_plan(items, q_indptr, kv_len, n_seqs, group, tile_rows);
        n_wrong += n != attn_prefill_n_items(q_indptr, n_seqs, group, tile_rows);
        for (int32_t i = 0; i < n; i++) {
            const int32_t rows = (q_indptr[items[i].seq + 1] - q_indptr[items[i].seq]) * group;
            const int32_t left = rows - items[i].first_row;
            n_planned += left < tile_rows ? left : tile_rows;
            n_wrong += i > 0 && items[i].n_visible > items[i - 1].n_visible;
        }
        n_wrong += n_planned != n_rows;
    }
    verdict(n_wrong == 0, "prefill plans hold every row, heaviest first, %d wrong", n_wrong);
}

void check_attn_plan(void)
{
    draw_seed(9);
    check_decode_plans();
    check_prefill_plans();
}
