/* Causal attention over paged K/V. A token sees the first n slots of its sequence (step_slots.h),
 * or only the last window_tokens of them.
 *
 * A few new tokens (decoding, small chunks) walk the block table, one query after the other, so
 * that each K and V is read once for all query heads that share it. Longer chunks go by tiles:
 * CPU_KEY_ROWS keys are gathered from their blocks, and two matrix products do the rest. */
#include <math.h>
#include <string.h>

#include "blas.h"
#include "engine.h"
#include "inflight/minmax.h"
#include "step_slots.h"

struct piece { /* some new tokens of one sequence, in one layer */
    const struct cpu_engine *engine;
    const uint32_t *blocks;
    int32_t layer, n_seen; /* slots that the first token sees */
    const float *qkv;      /* [n][qkv_width] */
    float *out;            /* [n][out_width] */
    size_t qkv_width, out_width, d_head;
    int32_t group; /* query heads that share a KV head */
    float scale;
    float *votes; /* [n_kv_heads][n_slots] of the layer, or NULL */
    int32_t first_voter, n_slots;
};

static int32_t first_seen(const struct piece *piece, int32_t n_seen)
{
    const int32_t window = piece->engine->architecture.window_tokens;
    return window > 0 && n_seen > window ? n_seen - window : 0;
}

/* Adds token i's probabilities of n slots from `from` on to the votes. */
static void vote(const struct piece *piece, int32_t i, int32_t kv_head, int32_t from,
                 const float *probabilities, size_t n)
{
    if (!piece->votes || i < piece->first_voter)
        return;
    const size_t at = (size_t)kv_head * (size_t)piece->n_slots + (size_t)from;
    cpu_add_scaled(piece->votes + at, probabilities, 1, n);
}

/* ---- a query at a time ---- */

/* K or V of the slots of one block that lie in [from, to); of e4m3 until the next span is asked
 * for. */
struct span {
    const float *rows;
    int32_t first, n; /* slot, slots */
};

static struct span span_at(const struct piece *piece, int32_t k_or_v, int32_t kv_head, int32_t slot,
                           int32_t to)
{
    const int32_t block_tokens = piece->engine->limits.block_tokens;
    const int32_t within = slot % block_tokens;
    const int32_t n = ifl_min(to - slot, block_tokens - within);
    const uint32_t block = piece->blocks[slot / block_tokens];
    const void *rows = cpu_block_row(piece->engine, block, piece->layer, k_or_v, kv_head, within);
    if (cpu_has_e4m3(piece->engine)) {
        float *wide = piece->engine->scratch.span;
        cpu_widen(piece->engine->widened, rows, (size_t)n * piece->d_head, wide);
        rows = wide;
    }
    return (struct span){rows, slot, n};
}

static void attend_query(const struct piece *piece, int32_t i, int32_t kv_head)
{
    const int32_t to = piece->n_seen + i, from = first_seen(piece, to);
    const size_t n_keys = (size_t)(to - from), d = piece->d_head;
    const size_t heads_at = (size_t)kv_head * (size_t)piece->group * d;
    const float *q = piece->qkv + (size_t)i * piece->qkv_width + heads_at;
    float *out = piece->out + (size_t)i * piece->out_width + heads_at;
    float *scores = piece->engine->scratch.scores;
    const size_t group = (size_t)piece->group;
    for (struct span k = {.first = from}; (k.first += k.n) < to;) {
        k = span_at(piece, 0, kv_head, k.first, to);
        for (size_t t = 0; t < (size_t)k.n; t++)
            for (size_t g = 0; g < group; g++)
                scores[g * n_keys + (size_t)(k.first - from) + t] =
                    piece->scale * cpu_dot(q + g * d, k.rows + t * d, d);
    }
    for (size_t g = 0; g < group; g++) {
        cpu_softmax(scores + g * n_keys, n_keys);
        vote(piece, i, kv_head, from, scores + g * n_keys, n_keys);
    }
    memset(out, 0, group * d * sizeof *out);
    for (struct span v = {.first = from}; (v.first += v.n) < to;) {
        v = span_at(piece, 1, kv_head, v.first, to);
        for (size_t t = 0; t < (size_t)v.n; t++)
            for (size_t g = 0; g < group; g++)
                cpu_add_scaled(out + g * d, v.rows + t * d,
                               scores[g * n_keys + (size_t)(v.first - from) + t], d);
    }
}

/* ---- tiles of queries ---- */

static const float *gather(const struct piece *piece, int32_t k_or_v, int32_t kv_head, int32_t from,
                           int32_t to)
{
    float *tile = piece->engine->scratch.tile, *at = tile;
    for (struct span s = {.first = from}; (s.first += s.n) < to;) {
        s = span_at(piece, k_or_v, kv_head, s.first, to);
        memcpy(at, s.rows, (size_t)s.n * piece->d_head * sizeof *at);
        at += (size_t)s.n * piece->d_head;
    }
    return tile;
}

/* Row i of the tile sees one key less than row i + 1. A key that it does not see gets weight 0. */
static void mask_and_normalise(const struct piece *piece, int32_t i, int32_t from, size_t n_keys,
                               float *row)
{
    const int32_t n_seen = piece->n_seen + i;
    const int32_t first = first_seen(piece, n_seen);
    const size_t skip = (size_t)(first > from ? first - from : 0);
    const size_t seen = (size_t)(n_seen - from);
    memset(row, 0, skip * sizeof *row);
    cpu_softmax(row + skip, seen - skip);
    memset(row + seen, 0, (n_keys - seen) * sizeof *row);
}

static void attend_tile(const struct piece *piece, int32_t i, int32_t n, int32_t head)
{
    const int32_t kv_head = head / piece->group, d = (int32_t)piece->d_head;
    const int32_t to = piece->n_seen + i + n - 1, from = first_seen(piece, piece->n_seen + i);
    const int32_t n_keys = to - from;
    const float *q = piece->qkv + (size_t)i * piece->qkv_width + (size_t)head * piece->d_head;
    float *out = piece->out + (size_t)i * piece->out_width + (size_t)head * piece->d_head;
    float *scores = piece->engine->scratch.scores;
    for (int32_t key = from; key < to; key += CPU_KEY_ROWS) {
        const int32_t end = to - key < CPU_KEY_ROWS ? to : key + CPU_KEY_ROWS;
        const float *k = gather(piece, 0, kv_head, key, end);
        blas_multiply_transposed(n, end - key, d, piece->scale,
                                 (struct matrix){q, (int32_t)piece->qkv_width},
                                 (struct matrix){k, d}, 0, scores + (key - from), n_keys);
    }
    for (int32_t row = 0; row < n; row++) {
        float *of_row = scores + (size_t)row * (size_t)n_keys;
        mask_and_normalise(piece, i + row, from, (size_t)n_keys, of_row);
        vote(piece, i + row, kv_head, from, of_row, (size_t)n_keys);
    }
    for (int32_t key = from; key < to; key += CPU_KEY_ROWS) {
        const int32_t end = to - key < CPU_KEY_ROWS ? to : key + CPU_KEY_ROWS;
        const float *v = gather(piece, 1, kv_head, key, end);
        blas_multiply(n, d, end - key, (struct matrix){scores + (key - from), n_keys},
                      (struct matrix){v, d}, key > from, out, (int32_t)piece->out_width);
    }
}

/* ---- both ---- */

static float *votes_of(const struct cpu_pass *pass, int32_t layer, int32_t seq)
{
    const struct ifl_engine_model *m = &pass->engine->limits.model;
    const struct ifl_engine_step *step = pass->step;
    if (!pass->votes || step_first_voter(step, seq) == step->first_token[seq + 1])
        return NULL;
    return pass->votes + step_votes_before(step, m, seq) +
           (size_t)layer * (size_t)m->n_kv_heads * (size_t)step_n_slots(step, seq);
}

static struct piece piece_of(const struct cpu_pass *pass, int32_t layer, int32_t seq, int32_t first)
{
    const struct cpu_engine *engine = pass->engine;
    const struct ifl_engine_step *step = pass->step;
    const struct ifl_engine_model *m = &engine->limits.model;
    const size_t d = (size_t)m->d_head, row = (size_t)(first - pass->first);
    const size_t qkv_width = (size_t)(m->n_q_heads + 2 * m->n_kv_heads) * d;
    const size_t out_width = (size_t)m->n_q_heads * d;
    return (struct piece){
        .engine = engine,
        .blocks = step->block_ids + step->first_block[seq],
        .layer = layer,
        .n_seen = step_n_seen(step, seq, first),
        .qkv = engine->scratch.qkv + row * qkv_width,
        .out = engine->scratch.attended + row * out_width,
        .qkv_width = qkv_width,
        .out_width = out_width,
        .d_head = d,
        .group = m->n_q_heads / m->n_kv_heads,
        .scale = (float)(1 / sqrt((double)d)),
        .votes = votes_of(pass, layer, seq),
        .first_voter = step_first_voter(step, seq) - first,
        .n_slots = step_n_slots(step, seq),
    };
}

void cpu_attend_seq(const struct cpu_pass *pass, int32_t layer, int32_t seq, int32_t first,
                    int32_t n)
{
    ifl_assert(n > 0 && first >= pass->first && first + n <= pass->first + pass->n);
    ifl_assert(pass->step->first_token[seq] <= first &&
               first + n <= pass->step->first_token[seq + 1]);
    const struct ifl_engine_model *m = &pass->engine->limits.model;
    const struct piece piece = piece_of(pass, layer, seq, first);
    if (n < CPU_FEW_ROWS) {
        for (int32_t i = 0; i < n; i++)
            for (int32_t kv_head = 0; kv_head < m->n_kv_heads; kv_head++)
                attend_query(&piece, i, kv_head);
        return;
    }
    for (int32_t i = 0; i < n; i += CPU_QUERY_ROWS)
        for (int32_t head = 0; head < m->n_q_heads; head++)
            attend_tile(&piece, i, ifl_min(n - i, CPU_QUERY_ROWS), head);
}
