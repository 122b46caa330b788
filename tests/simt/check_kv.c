#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device.h"
#include "refs.h"

enum { N_POSITIONS = 40, N_LAYERS = 3, LAYER = 1, N_BLOCKS = 13, MAX_TOKENS = 12 };

struct rope_shape {
    enum element element;
    int32_t n_heads, n_kv_heads, head_dim, block_tokens;
    bool has_bias, has_norm;
    bool is_far; /* the pool's blocks lie behind FAR_ELEMENTS */
};

/* base^(-2 i / dim) turns per position, base 10000: the angles of RoFormer, equation 15. */
static float *angles_new(int32_t head_dim)
{
    const int32_t half = head_dim / 2;
    float *angles = malloc((size_t)N_POSITIONS * head_dim * sizeof *angles);
    if (!angles)
        abort();
    for (int32_t p = 0; p < N_POSITIONS; p++) {
        for (int32_t i = 0; i < half; i++) {
            const double angle = p * pow(10000.0, -2.0 * i / head_dim);
            angles[p * head_dim + i] = (float)cos(angle);
            angles[p * head_dim + half + i] = (float)sin(angle);
        }
    }
    return angles;
}

/* The index in the expected pool of the row of (slot, K or V, head). */
static size_t pool_at(const struct rope_shape *s, int32_t slot, int is_v, int32_t kv_head)
{
    const int32_t block = slot / s->block_tokens, offset = slot % s->block_tokens;
    const size_t plane = (size_t)(block * N_LAYERS + LAYER) * 2 + (size_t)is_v;
    return ((plane * s->n_kv_heads + kv_head) * s->block_tokens + offset) * s->head_dim;
}

/* Turns every head by the reference and puts K and V where their slots say. */
static void expect(const struct rope_shape *s, double *qkv, double *pool, const double *bias,
                   const double *const norm[2], const float *angles, const int32_t *position,
                   const int32_t *slot, int32_t n_tokens)
{
    const int32_t n_rotated = s->n_heads + s->n_kv_heads, n_all = n_rotated + s->n_kv_heads;
    for (int32_t t = 0; t < n_tokens; t++) {
        for (int32_t h = 0; h < n_all && slot[t] >= 0; h++) {
            double *head = qkv + ((size_t)t * n_all + h) * s->head_dim;
            double turned[128];
            memcpy(turned, head, (size_t)s->head_dim * sizeof *turned);
            head_ref(turned, s->has_bias ? bias + (size_t)h * s->head_dim : NULL,
                     s->has_norm && h < n_rotated ? norm[h >= s->n_heads] : NULL, 1e-6,
                     h < n_rotated ? angles + (size_t)position[t] * s->head_dim : NULL,
                     s->head_dim);
            double *to = h < s->n_heads ? head
                                        : pool + pool_at(s, slot[t], h >= n_rotated,
                                                         (h - s->n_heads) % s->n_kv_heads);
            memcpy(to, turned, (size_t)s->head_dim * sizeof *turned);
        }
    }
}

static void tokens_draw(int32_t *position, int32_t *slot, int32_t n_tokens, int32_t n_slots)
{
    int32_t order[N_BLOCKS * 64];
    draw_permutation(order, n_slots);
    for (int32_t t = 0; t < n_tokens; t++) {
        position[t] = draw_between(0, N_POSITIONS - 1);
        slot[t] = t % 5 == 3 ? -1 : order[t];
    }
}

static void rope_round(struct rope_shape s)
{
    const int32_t n_tokens = draw_between(5, MAX_TOKENS), n_all = s.n_heads + 2 * s.n_kv_heads;
    const size_t width = (size_t)n_all * s.head_dim;
    const int32_t block_rows = N_LAYERS * 2 * s.n_kv_heads * s.block_tokens;
    struct tensor qkv = tensor_random(s.element, (size_t)n_tokens * width, 1.0);
    struct tensor bias = tensor_random(s.element, width, 0.5);
    struct tensor norm[2] = {tensor_random(s.element, (size_t)s.head_dim, 1.0),
                             tensor_random(s.element, (size_t)s.head_dim, 1.0)};
    struct tensor pool = tensor_random(s.element, (size_t)N_BLOCKS * block_rows * s.head_dim, 1.0);
    float *angles = angles_new(s.head_dim);
    int32_t position[MAX_TOKENS], slot[MAX_TOKENS];
    tokens_draw(position, slot, n_tokens, N_BLOCKS * s.block_tokens);
    tensor_send(&qkv);
    tensor_send(&bias);
    tensor_send(&norm[0]);
    tensor_send(&norm[1]);
    const size_t block_elements = (size_t)block_rows * s.head_dim;
    const size_t n_before = s.is_far ? FAR_ELEMENTS / block_elements + 1 : 0;
    tensor_send_behind(&pool, n_before * block_elements * sizeof *pool.bits);
    const uint16_t *blocks = (const uint16_t *)pool.device - n_before * block_elements;
    int32_t far_slot[MAX_TOKENS];
    for (int32_t t = 0; t < n_tokens; t++)
        far_slot[t] = slot[t] < 0 ? -1 : slot[t] + (int32_t)n_before * s.block_tokens;

    const size_t layer_offset = (size_t)LAYER * 2 * s.n_kv_heads * s.block_tokens * s.head_dim;
    const struct rope_args args = {
        .element = s.element,
        .qkv = qkv.device,
        .bias = s.has_bias ? bias.device : NULL,
        .q_norm = s.has_norm ? norm[0].device : NULL,
        .k_norm = s.has_norm ? norm[1].device : NULL,
        .epsilon = 1e-6f,
        .angles = device_new((size_t)N_POSITIONS * s.head_dim * sizeof *angles, angles),
        .position = device_new(sizeof position, position),
        .slot = device_new(sizeof far_slot, far_slot),
        .n_tokens = n_tokens,
        .n_heads = s.n_heads,
        .kv = {(void *)(uintptr_t)(blocks + layer_offset), s.block_tokens, block_rows, s.n_kv_heads,
               s.head_dim}};
    expect(&s, qkv.value, pool.value, bias.value,
           (const double *const[2]){norm[0].value, norm[1].value}, angles, position, slot,
           n_tokens);
    double *expected_qkv = qkv.value, *expected_pool = pool.value;
    qkv.value = doubles_new(qkv.n);
    pool.value = doubles_new(pool.n);
    device_check(rope_launch(&args, NULL), "rope");
    tensor_fetch(&qkv);
    tensor_fetch(&pool);
    const double q_error = error_of(qkv.value, expected_qkv, qkv.n);
    const double kv_error = error_of(pool.value, expected_pool, pool.n);
    verdict(q_error < error_bound(s.element) && kv_error < error_bound(s.element),
            "rope %s, %d+%d heads of %d, blocks of %d%s%s%s: error of Q %.1e, pool %.1e",
            element_name(s.element), s.n_heads, s.n_kv_heads, s.head_dim, s.block_tokens,
            s.is_far ? " far away" : "", s.has_bias ? ", bias" : "", s.has_norm ? ", norm" : "",
            q_error, kv_error);

    free(expected_qkv);
    free(expected_pool);
    free(angles);
    tensor_free(&qkv);
    tensor_free(&bias);
    tensor_free(&norm[0]);
    tensor_free(&norm[1]);
    tensor_free(&pool);
    device_free_all();
}

void check_rope(void)
{
    draw_seed(5);
    rope_round((struct rope_shape){ELEMENT_BF16, 8, 2, 128, 16, false, false, false});
    rope_round((struct rope_shape){ELEMENT_FP16, 4, 4, 64, 16, true, false, false});
    rope_round((struct rope_shape){ELEMENT_BF16, 7, 1, 64, 1, false, true, false});
    rope_round((struct rope_shape){ELEMENT_FP16, 3, 1, 128, 5, true, true, false});
    rope_round((struct rope_shape){ELEMENT_BF16, 14, 2, 64, 32, true, false, false});
    if (check_far())
        rope_round((struct rope_shape){ELEMENT_BF16, 8, 2, 128, 16, false, false, true});
    const struct rope_args odd = {.n_tokens = 1, .n_heads = 1, .kv = {.head_dim = 96}};
    verdict(rope_launch(&odd, NULL) != 0, "rope refuses a head dim that it has no code for");
}

static void block_copy_round(size_t block_bytes, size_t n_before)
{
    enum { N = 9, N_PAIRS = 4 };
    const size_t block = block_bytes / sizeof(uint16_t);
    struct tensor pool = tensor_random(ELEMENT_BF16, N * block, 1.0);
    int32_t order[N];
    draw_permutation(order, N);
    struct block_pair pairs[N_PAIRS];
    for (int i = 0; i < N_PAIRS; i++)
        pairs[i] = (struct block_pair){order[N_PAIRS + i % 3], order[i]}; /* one is read twice */
    struct block_pair far_pairs[N_PAIRS];
    for (int i = 0; i < N_PAIRS; i++)
        far_pairs[i] =
            (struct block_pair){pairs[i].from + (int32_t)n_before, pairs[i].to + (int32_t)n_before};
    tensor_send_behind(&pool, n_before * block_bytes);
    const struct block_copy_args args = {(char *)pool.device - n_before * block_bytes, block_bytes,
                                         device_new(sizeof far_pairs, far_pairs), N_PAIRS};
    device_check(block_copy_launch(&args, NULL), "block_copy");
    double *expected = doubles_new(pool.n);
    memcpy(expected, pool.value, pool.n * sizeof *expected);
    for (int i = 0; i < N_PAIRS; i++)
        memcpy(expected + (size_t)pairs[i].to * block, pool.value + (size_t)pairs[i].from * block,
               block * sizeof *expected);
    tensor_fetch(&pool);
    verdict(error_of(pool.value, expected, pool.n) == 0.0, "block_copy of %zu bytes%s", block_bytes,
            n_before ? ", far away" : "");
    free(expected);
    tensor_free(&pool);
    device_free_all();
}

void check_block_copy(void)
{
    draw_seed(6);
    block_copy_round(16, 0);
    block_copy_round(4096, 0);
    block_copy_round(16 * 1024 * 3 + 48, 0);
    if (check_far())
        block_copy_round(1 << 14, FAR_ELEMENTS * sizeof(uint16_t) >> 14);
}
