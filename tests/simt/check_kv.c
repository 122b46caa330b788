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
    bool is_e4m3;
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
            for (int32_t i = 0; s->is_e4m3 && h >= s->n_heads && i < s->head_dim; i++)
                turned[i] = e4m3_nearest(turned[i]);
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

/* Beside K and V in e4m3 the Q of every token with a slot is fp16, all else is as it was. */
static void fetch_qkv(struct tensor *qkv, const struct rope_shape *s, const int32_t *slot)
{
    const size_t n_all = (size_t)s->n_heads + 2 * (size_t)s->n_kv_heads;
    const size_t width = n_all * (size_t)s->head_dim, q_width = (size_t)(s->n_heads * s->head_dim);
    tensor_fetch(qkv);
    if (!s->is_e4m3)
        return;
    double *own = qkv->value;
    qkv->value = doubles_new(qkv->n);
    tensor_fetch_as(qkv, ELEMENT_FP16);
    for (size_t i = 0; i < qkv->n; i++)
        if (slot[i / width] < 0 || i % width >= q_width)
            qkv->value[i] = own[i];
    free(own);
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
    const enum element kv_element = s.is_e4m3 ? ELEMENT_E4M3 : s.element;
    struct tensor pool = tensor_random(kv_element, (size_t)N_BLOCKS * block_rows * s.head_dim, 1.0);
    float *angles = angles_new(s.head_dim);
    int32_t position[MAX_TOKENS], slot[MAX_TOKENS];
    tokens_draw(position, slot, n_tokens, N_BLOCKS * s.block_tokens);
    tensor_send(&qkv);
    tensor_send(&bias);
    tensor_send(&norm[0]);
    tensor_send(&norm[1]);
    const size_t block_elements = (size_t)block_rows * s.head_dim;
    const size_t n_before = s.is_far ? FAR_ELEMENTS / block_elements + 1 : 0;
    tensor_send_behind(&pool, n_before * block_elements * element_bytes(kv_element));
    const char *blocks =
        (const char *)pool.device - n_before * block_elements * element_bytes(kv_element);
    int32_t far_slot[MAX_TOKENS];
    for (int32_t t = 0; t < n_tokens; t++)
        far_slot[t] = slot[t] < 0 ? -1 : slot[t] + (int32_t)n_before * s.block_tokens;

    const size_t layer_offset =
        (size_t)LAYER * 2 * s.n_kv_heads * s.block_tokens * s.head_dim * element_bytes(kv_element);
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
               s.head_dim, s.is_e4m3}};
    expect(&s, qkv.value, pool.value, bias.value,
           (const double *const[2]){norm[0].value, norm[1].value}, angles, position, slot,
           n_tokens);
    double *expected_qkv = qkv.value, *expected_pool = pool.value;
    qkv.value = doubles_new(qkv.n);
    pool.value = doubles_new(pool.n);
    device_check(rope_launch(&args, NULL), "rope");
    fetch_qkv(&qkv, &s, slot);
    tensor_fetch(&pool);
    const double q_error = error_of(qkv.value, expected_qkv, qkv.n);
    const double kv_error = error_of(pool.value, expected_pool, pool.n);
    verdict(q_error < error_bound(s.element) && kv_error < error_bound(s.element),
            "rope %s%s, %d+%d heads of %d, blocks of %d%s%s%s: error of Q %.1e, pool %.1e",
            element_name(s.element), s.is_e4m3 ? " to e4m3" : "", s.n_heads, s.n_kv_heads,
            s.head_dim, s.block_tokens, s.is_far ? " far away" : "", s.has_bias ? ", bias" : "",
            s.has_norm ? ", norm" : "", q_error, kv_error);

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
    rope_round((struct rope_shape){ELEMENT_BF16, 8, 2, 128, 16, false, false, false, false});
    rope_round((struct rope_shape){ELEMENT_FP16, 4, 4, 64, 16, true, false, false, false});
    rope_round((struct rope_shape){ELEMENT_BF16, 7, 1, 64, 1, false, true, false, false});
    rope_round((struct rope_shape){ELEMENT_FP16, 3, 1, 128, 5, true, true, false, false});
    rope_round((struct rope_shape){ELEMENT_BF16, 14, 2, 64, 32, true, false, false, false});
    if (check_far())
        rope_round((struct rope_shape){ELEMENT_BF16, 8, 2, 128, 16, false, false, true, false});
    const struct rope_args odd = {.n_tokens = 1, .n_heads = 1, .kv = {.head_dim = 96}};
    verdict(rope_launch(&odd, NULL) != 0, "rope refuses a head dim that it has no code for");
}

enum { ALL = 1 << 16, ALL_HEADS = 8, ALL_TOKENS = ALL / (ALL_HEADS * 128) };

static double clamped(double number, double most)
{
    return number > most ? most : number < -most ? -most : number;
}

/* Every number of the element as a value of V, and as one of Q at position 0, where nothing turns:
 * V becomes the nearest e4m3, Q the nearest fp16. NaN becomes NaN. */
static void every_number_is_written(enum element element)
{
    const size_t n_all = 3 * ALL_HEADS, width = n_all * 128;
    const int32_t block_rows = 2 * ALL_HEADS * 16;
    struct tensor qkv = tensor_poison(element, ALL_TOKENS * width);
    struct tensor pool = tensor_poison(ELEMENT_E4M3, (size_t)ALL_TOKENS / 16 * block_rows * 128);
    int32_t position[ALL_TOKENS] = {0}, slot[ALL_TOKENS];
    for (size_t i = 0; i < ALL; i++) {
        const size_t at = i / (ALL_HEADS * 128) * width + i % (ALL_HEADS * 128);
        const uint16_t bits = (uint16_t)i;
        uint16_t *to = qkv.bits;
        memcpy(to + at + (size_t)2 * ALL_HEADS * 128, &bits, sizeof bits);
        to[at + (size_t)ALL_HEADS * 128] = 0;
        to[at] = (bits & 0x7c00) == 0x7c00 && element == ELEMENT_FP16   ? 0
                 : (bits & 0x7f80) == 0x7f80 && element == ELEMENT_BF16 ? 0
                                                                        : bits;
    }
    for (int32_t t = 0; t < ALL_TOKENS; t++)
        slot[t] = t;
    tensor_send(&qkv);
    tensor_send(&pool);
    tensor_fetch(&qkv);
    double *before = qkv.value;
    float *angles = angles_new(128);
    const struct rope_args args = {
        .element = element,
        .qkv = qkv.device,
        .angles = device_new((size_t)N_POSITIONS * 128 * sizeof *angles, angles),
        .position = device_new(sizeof position, position),
        .slot = device_new(sizeof slot, slot),
        .n_tokens = ALL_TOKENS,
        .n_heads = ALL_HEADS,
        .kv = {pool.device, 16, block_rows, ALL_HEADS, 128, true}};
    device_check(rope_launch(&args, NULL), "rope");
    qkv.value = doubles_new(qkv.n);
    tensor_fetch_as(&qkv, ELEMENT_FP16);
    tensor_fetch(&pool);
    int n_wrong_v = 0, n_wrong_q = 0;
    for (size_t i = 0; i < ALL; i++) {
        const size_t token = i / (ALL_HEADS * 128), head = i / 128 % ALL_HEADS, dim = i % 128;
        const size_t at = token * width + i % (ALL_HEADS * 128);
        const double v = e4m3_nearest(before[at + (size_t)2 * ALL_HEADS * 128]);
        const double got = pool.value[((token / 16 * 2 + 1) * ALL_HEADS + head) * 16 * 128 +
                                      token % 16 * 128 + dim];
        const double q = clamped(before[at], 65504.0);
        n_wrong_v += isnan(v) ? !isnan(got) : got != v;
        n_wrong_q += fabs(qkv.value[at] - q) > fmax(fabs(q) * 0x1p-11, 0x1p-25);
    }
    verdict(n_wrong_v == 0 && n_wrong_q == 0,
            "every %s is written to e4m3 and fp16, %d and %d wrong", element_name(element),
            n_wrong_v, n_wrong_q);
    free(before);
    free(angles);
    tensor_free(&qkv);
    tensor_free(&pool);
    device_free_all();
}

void check_e4m3_write(void)
{
    draw_seed(11);
    rope_round((struct rope_shape){ELEMENT_BF16, 8, 2, 128, 16, false, false, false, true});
    rope_round((struct rope_shape){ELEMENT_FP16, 3, 1, 64, 5, true, true, false, true});
    if (check_is_small)
        return;
    if (check_far())
        rope_round((struct rope_shape){ELEMENT_BF16, 8, 2, 128, 16, false, false, true, true});
    every_number_is_written(ELEMENT_FP16);
    every_number_is_written(ELEMENT_BF16);
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
