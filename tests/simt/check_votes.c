#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device.h"

/* ---- votes ---- */

enum { N_PIECES = 3, LAYERS_BEHIND = 1 };

struct vote_shape {
    enum element element;
    bool is_e4m3;
    int32_t n_heads, n_kv_heads, head_dim, block_tokens;
};

/* A piece: rows of q, slots, and a table of its own. */
struct asked {
    struct vote_piece of[N_PIECES];
    int32_t n_rows, n_numbers, n_blocks;
};

static struct asked pieces_of(const struct vote_shape *s)
{
    struct asked a = {.n_rows = 2};
    for (int32_t i = 0; i < N_PIECES; i++) {
        const int32_t n_rows = i == 1 ? 1 : draw_between(2, 6);
        const int32_t n_seen = i == 1 ? 1 : draw_between(1, 90);
        const int32_t n_slots = n_seen + n_rows - 1 + draw_between(0, 3);
        a.of[i] = (struct vote_piece){a.n_rows, n_rows, n_seen, n_slots, a.n_blocks, a.n_numbers};
        a.n_rows += n_rows;
        a.n_numbers += n_slots * s->n_kv_heads;
        a.n_blocks += (n_slots + s->block_tokens - 1) / s->block_tokens;
    }
    return a;
}

/* softmax(scale q k) of a row and head over what it sees, added to `votes`. */
static void vote_ref(const struct vote_shape *s, const double *q, const double *pool,
                     const int32_t *table, int32_t kv_head, int32_t n_seen, double *votes)
{
    double *weight = doubles_new((size_t)n_seen), most = -INFINITY, sum = 0;
    const size_t block_rows = (size_t)(2 * (1 + LAYERS_BEHIND) * s->n_kv_heads * s->block_tokens);
    for (int32_t slot = 0; slot < n_seen; slot++) {
        const size_t row = (size_t)table[slot / s->block_tokens] * block_rows +
                           (size_t)(kv_head * s->block_tokens + slot % s->block_tokens);
        double dot = 0;
        for (int32_t d = 0; d < s->head_dim; d++)
            dot += q[d] * pool[row * (size_t)s->head_dim + (size_t)d];
        weight[slot] = dot / sqrt(s->head_dim);
        most = fmax(most, weight[slot]);
    }
    for (int32_t slot = 0; slot < n_seen; slot++)
        sum += weight[slot] = exp(weight[slot] - most);
    for (int32_t slot = 0; slot < n_seen; slot++)
        votes[slot] += weight[slot] / sum;
    free(weight);
}

static double *votes_ref(const struct vote_shape *s, const struct asked *a, const struct tensor *q,
                         const struct tensor *pool, const int32_t *table)
{
    double *votes = doubles_new((size_t)a->n_numbers);
    const int32_t group = s->n_heads / s->n_kv_heads;
    memset(votes, 0, (size_t)a->n_numbers * sizeof *votes);
    for (int32_t i = 0; i < N_PIECES; i++)
        for (int32_t row = 0; row < a->of[i].n_rows; row++)
            for (int32_t head = 0; head < s->n_heads; head++) {
                const size_t at =
                    ((size_t)(a->of[i].row + row) * (size_t)s->n_heads + (size_t)head) *
                    (size_t)s->head_dim;
                vote_ref(s, q->value + at, pool->value, table + a->of[i].block, head / group,
                         a->of[i].n_seen + row,
                         votes + a->of[i].at + head / group * a->of[i].n_slots);
            }
    return votes;
}

/* Slots that no row sees hold NaN in the pool's last blocks. */
static void spoil_unseen(const struct vote_shape *s, const struct asked *a, struct tensor *pool,
                         const int32_t *table)
{
    const size_t block_rows = (size_t)(2 * (1 + LAYERS_BEHIND) * s->n_kv_heads * s->block_tokens);
    for (int32_t i = 0; i < N_PIECES; i++)
        for (int32_t slot = a->of[i].n_seen + a->of[i].n_rows - 1; slot < a->of[i].n_slots; slot++)
            for (int32_t head = 0; head < s->n_kv_heads; head++) {
                const int32_t block = table[a->of[i].block + slot / s->block_tokens];
                const size_t row = (size_t)block * block_rows +
                                   (size_t)(head * s->block_tokens + slot % s->block_tokens);
                tensor_set(pool, row * (size_t)s->head_dim, NAN);
            }
}

static void vote_round(struct vote_shape s)
{
    const struct asked a = pieces_of(&s);
    const enum element kv = s.is_e4m3 ? ELEMENT_E4M3 : s.element;
    const int32_t block_rows = 2 * (1 + LAYERS_BEHIND) * s.n_kv_heads * s.block_tokens;
    struct tensor q = tensor_random(s.is_e4m3 ? ELEMENT_FP16 : s.element,
                                    (size_t)a.n_rows * (size_t)(s.n_heads * s.head_dim), 1.0);
    struct tensor pool =
        tensor_random(kv, (size_t)a.n_blocks * (size_t)block_rows * (size_t)s.head_dim, 1.0);
    int32_t *table = calloc((size_t)a.n_blocks, sizeof *table), max_rows = 0, max_slots = 0;
    draw_permutation(table, a.n_blocks);
    double *expected = votes_ref(&s, &a, &q, &pool, table);
    spoil_unseen(&s, &a, &pool, table);
    tensor_send(&q);
    tensor_send(&pool);
    for (int32_t i = 0; i < N_PIECES; i++) {
        max_rows = a.of[i].n_rows > max_rows ? a.of[i].n_rows : max_rows;
        max_slots = a.of[i].n_slots > max_slots ? a.of[i].n_slots : max_slots;
    }
    const size_t n_bytes = (size_t)a.n_numbers * sizeof(float);
    float *got = malloc(n_bytes);
    memset(got, 0xff, n_bytes);
    const struct vote_args args = {
        .element = s.element,
        .q = q.device,
        .q_stride = s.n_heads * s.head_dim,
        .n_heads = s.n_heads,
        .scale = (float)(1 / sqrt(s.head_dim)),
        .kv = {pool.device, s.block_tokens, block_rows, s.n_kv_heads, s.head_dim, s.is_e4m3},
        .block_id = device_new((size_t)a.n_blocks * sizeof *table, table),
        .pieces = device_new(sizeof a.of, a.of),
        .n_pieces = N_PIECES,
        .max_rows = max_rows,
        .max_slots = max_slots,
        .logsum = device_new((size_t)(a.n_rows * s.n_heads) * sizeof(float), NULL),
        .votes = device_new(n_bytes, got)};
    device_check(vote_launch(&args, NULL), "vote");
    device_read(got, args.votes, n_bytes);
    double *wide = doubles_new((size_t)a.n_numbers);
    for (int32_t i = 0; i < a.n_numbers; i++)
        wide[i] = (double)got[i];
    const double error = error_of(wide, expected, (size_t)a.n_numbers);
    verdict(error < 1e-5, "votes in %s%s, %d heads of %d, %d KV heads, blocks of %d: error %.1e",
            element_name(s.element), s.is_e4m3 ? " and e4m3" : "", s.n_heads, s.head_dim,
            s.n_kv_heads, s.block_tokens, error);
    free(wide);
    free(got);
    free(expected);
    free(table);
    tensor_free(&q);
    tensor_free(&pool);
    device_free_all();
}

void check_vote(void)
{
    draw_seed(21);
    vote_round((struct vote_shape){ELEMENT_BF16, false, 4, 2, 64, 16});
    vote_round((struct vote_shape){ELEMENT_FP16, true, 3, 1, 128, 5});
    if (check_is_small)
        return;
    vote_round((struct vote_shape){ELEMENT_FP16, false, 8, 2, 128, 1});
    vote_round((struct vote_shape){ELEMENT_BF16, true, 2, 2, 64, 7});
}

/* ---- slots that are kept ---- */

static void keep_round(enum element element, int32_t head_dim, int32_t block_tokens)
{
    enum { LAYERS = 2, HEADS = 2, BLOCKS = 24, TABLES = 2 };
    const int32_t block_rows = LAYERS * 2 * HEADS * block_tokens, n_each = BLOCKS / TABLES;
    const int32_t n_slots = n_each * block_tokens, n_kept[TABLES] = {n_slots / 3, n_slots - 1};
    const size_t row = (size_t)head_dim;
    struct tensor pool = tensor_random(element, (size_t)(BLOCKS * block_rows) * row, 1.0);
    double *expected = doubles_new(pool.n);
    int32_t blocks[BLOCKS], at = 0;
    int32_t *kept = calloc((size_t)(LAYERS * HEADS * 2 * n_slots), sizeof *kept);
    struct keep_table tables[TABLES];
    draw_permutation(blocks, BLOCKS);
    memcpy(expected, pool.value, pool.n * sizeof *expected);
    for (int32_t t = 0; t < TABLES; t++) {
        tables[t] = (struct keep_table){t * n_each, n_kept[t], at};
        for (int32_t head = 0; head < LAYERS * HEADS; head++)
            for (int32_t i = 0; i < n_kept[t]; i++, at++) {
                const int32_t most = n_slots - 1;
                kept[at] = draw_between(i, i + 40 < most ? i + 40 : most);
                for (int32_t k_or_v = 0; k_or_v < 2; k_or_v++) {
                    const int32_t in_block =
                        ((head / HEADS * 2 + k_or_v) * HEADS + head % HEADS) * block_tokens;
                    const int32_t to = blocks[t * n_each + i / block_tokens] * block_rows +
                                       in_block + i % block_tokens;
                    const int32_t from = blocks[t * n_each + kept[at] / block_tokens] * block_rows +
                                         in_block + kept[at] % block_tokens;
                    memcpy(expected + (size_t)to * row, pool.value + (size_t)from * row,
                           row * sizeof *expected);
                }
            }
    }
    tensor_send(&pool);
    const struct keep_slots_args args = {.rows = pool.device,
                                         .row_bytes = row * element_bytes(element),
                                         .block_tokens = block_tokens,
                                         .block_rows = block_rows,
                                         .n_kv_heads = HEADS,
                                         .n_layers = LAYERS,
                                         .block_id = device_new(sizeof blocks, blocks),
                                         .tables = device_new(sizeof tables, tables),
                                         .n_tables = TABLES,
                                         .kept = device_new((size_t)at * sizeof *kept, kept)};
    device_check(keep_slots_launch(&args, NULL), "keep_slots");
    tensor_fetch(&pool);
    verdict(error_of(pool.value, expected, pool.n) == 0.0,
            "slots of %d bytes are kept, blocks of %d", (int)args.row_bytes, block_tokens);
    free(kept);
    free(expected);
    tensor_free(&pool);
    device_free_all();
}

void check_keep_slots(void)
{
    draw_seed(22);
    keep_round(ELEMENT_BF16, 64, 4);
    keep_round(ELEMENT_E4M3, 64, 3);
    if (check_is_small)
        return;
    keep_round(ELEMENT_FP16, 128, 16);
    keep_round(ELEMENT_E4M3, 128, 1);
}
