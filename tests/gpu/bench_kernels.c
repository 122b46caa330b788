/* Each class of kernels alone, at the shapes of an 8B model, on more memory than caches hold. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/kernels.h"
#include "measure.h"

enum {
    N_ROWS = 4096,
    D_MODEL = 4096,
    D_FFN = 14336,
    N_HEADS = 32,
    N_KV_HEADS = 8,
    WIDTH = 128,
    BLOCK_TOKENS = 16,
    N_VOCAB = 128256,
    QKV_WIDTH = (N_HEADS + 2 * N_KV_HEADS) * WIDTH
};
static const double ELEMENT_BYTES = 2;

/* ---- rows ---- */

#define BENCH_LAUNCH(name)                                                                         \
    static int name##_run(void *context, cudaStream_t stream)                                      \
    {                                                                                              \
        return name##_launch(context, stream);                                                     \
    }
BENCH_LAUNCH(norm)
BENCH_LAUNCH(swiglu)
BENCH_LAUNCH(argmax)
BENCH_LAUNCH(gather)
BENCH_LAUNCH(rope)
BENCH_LAUNCH(block_copy)
BENCH_LAUNCH(attn_prefill)

static void *elements(double n)
{
    return device_random((size_t)(n * ELEMENT_BYTES));
}

static int32_t *device_ints(int32_t n, int32_t first, int32_t step)
{
    int32_t *numbers = malloc((size_t)n * sizeof *numbers);
    must(!numbers, "malloc");
    for (int32_t i = 0; i < n; i++)
        numbers[i] = first + i * step;
    int32_t *device = device_copy(numbers, (size_t)n * sizeof *numbers);
    free(numbers);
    return device;
}

static void bench_rows(const struct ceilings *c)
{
    const double rows = N_ROWS;
    struct norm_args norm = {.out = elements(rows * D_MODEL),
                             .hidden = elements(rows * D_MODEL),
                             .weight = elements(D_MODEL),
                             .epsilon = 1e-5f,
                             .n_rows = N_ROWS,
                             .width = D_MODEL};
    struct swiglu_args swiglu = {.out = elements(rows * D_FFN),
                                 .gate_up = elements(rows * 2 * D_FFN),
                                 .n_rows = N_ROWS,
                                 .width = D_FFN};
    struct gather_args gather = {.out = norm.out,
                                 .table = elements((double)N_VOCAB * D_MODEL),
                                 .index = device_ints(N_ROWS, 0, 31),
                                 .n_rows = N_ROWS,
                                 .n_table = N_VOCAB,
                                 .width = D_MODEL};
    struct argmax_args argmax = {.token = device_ints(256, 0, 0),
                                 .logits = elements(2.0 * 256 * N_VOCAB),
                                 .n_rows = 256,
                                 .n_vocab = N_VOCAB,
                                 .stride = N_VOCAB};
    report("norm", "4096 x 4096", measure(norm_run, &norm), 2 * rows * D_MODEL * ELEMENT_BYTES, 0,
           c->copy_bytes_per_s, "copy");
    report("swiglu", "4096 x 14336", measure(swiglu_run, &swiglu), 3 * rows * D_FFN * ELEMENT_BYTES,
           0, c->copy_bytes_per_s, "copy");
    report("gather", "4096 x 4096", measure(gather_run, &gather),
           2 * rows * D_MODEL * ELEMENT_BYTES, 0, c->copy_bytes_per_s, "copy");
    report("argmax", "256 x 128256", measure(argmax_run, &argmax), 256.0 * N_VOCAB * 4, 0,
           c->copy_bytes_per_s, "copy");
}

/* ---- the pool of one layer ---- */

static struct kv_layer pool_of(int32_t n_blocks)
{
    const double rows = (double)n_blocks * 2 * N_KV_HEADS * BLOCK_TOKENS;
    return (struct kv_layer){.rows = elements(rows * WIDTH),
                             .block_tokens = BLOCK_TOKENS,
                             .block_rows = 2 * N_KV_HEADS * BLOCK_TOKENS,
                             .n_kv_heads = N_KV_HEADS,
                             .head_dim = WIDTH};
}

static void bench_rope(const struct ceilings *c)
{
    struct rope_args rope = {.qkv = elements((double)N_ROWS * QKV_WIDTH),
                             .angles = device_random((size_t)N_ROWS * WIDTH * sizeof(float)),
                             .position = device_ints(N_ROWS, 0, 1),
                             .slot = device_ints(N_ROWS, 0, 1),
                             .n_tokens = N_ROWS,
                             .n_heads = N_HEADS,
                             .kv = pool_of(N_ROWS / BLOCK_TOKENS)};
    const double bytes = N_ROWS * (2.0 * QKV_WIDTH * ELEMENT_BYTES + WIDTH * sizeof(float));
    report("rope", "4096 tokens", measure(rope_run, &rope), bytes, 0, c->copy_bytes_per_s, "copy");
}

static void bench_block_copy(const struct ceilings *c)
{
    enum { N_PAIRS = 128, BLOCK_BYTES = 2 << 20 };
    struct block_pair pairs[N_PAIRS];
    for (int32_t i = 0; i < N_PAIRS; i++)
        pairs[i] = (struct block_pair){2 * i, 2 * i + 1};
    struct block_copy_args args = {.pool = device_random((size_t)2 * N_PAIRS * BLOCK_BYTES),
                                   .block_bytes = BLOCK_BYTES,
                                   .pairs = device_copy(pairs, sizeof pairs),
                                   .n_pairs = N_PAIRS};
    report("block copy", "128 x 2 MiB", measure(block_copy_run, &args), 2.0 * N_PAIRS * BLOCK_BYTES,
           0, c->copy_bytes_per_s, "copy");
    must(cudaFree(args.pool), "cudaFree");
}

/* ---- attention: sequences of equal length ---- */

static struct attn_args attention_of(int32_t n_rows, int32_t n_seqs, int32_t kv_len)
{
    const int32_t table = (kv_len + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    return (struct attn_args){.out = elements((double)n_rows * N_HEADS * WIDTH),
                              .q = elements((double)n_rows * QKV_WIDTH),
                              .q_stride = QKV_WIDTH,
                              .n_heads = N_HEADS,
                              .scale = 1 / sqrtf(WIDTH),
                              .kv = pool_of(n_seqs * table),
                              .kv_len = device_ints(n_seqs, kv_len, 0),
                              .block_indptr = device_ints(n_seqs + 1, 0, table),
                              .block_id = device_ints(n_seqs * table, 0, 1)};
}

static int attn_decode_run(void *context, cudaStream_t stream)
{
    const int failed = attn_decode_launch(context, stream);
    return failed ? failed : attn_merge_launch(context, stream);
}

static void plan_decode(struct attn_decode_args *args, int32_t n_seqs, int32_t kv_len)
{
    const size_t n_shares = (size_t)args->n_shares, n = (size_t)n_seqs;
    int32_t *lengths = malloc(n * sizeof *lengths), n_merges = 0;
    struct attn_decode_plan host = {malloc((n_shares + 1) * sizeof(int32_t)),
                                    malloc((n + n_shares) * sizeof *host.segments),
                                    malloc(n_shares * sizeof *host.merges), &n_merges};
    must(!lengths || !host.share_indptr || !host.segments || !host.merges, "malloc");
    for (size_t i = 0; i < n; i++)
        lengths[i] = kv_len;
    attn_decode_plan(&host, args->n_shares, lengths, n_seqs);
    args->plan = (struct attn_decode_plan){
        device_copy(host.share_indptr, (n_shares + 1) * sizeof(int32_t)),
        device_copy(host.segments, (n + n_shares) * sizeof *host.segments),
        device_copy(host.merges, n_shares * sizeof *host.merges),
        device_copy(&n_merges, sizeof n_merges)};
    free(lengths);
    free(host.share_indptr);
    free(host.segments);
    free(host.merges);
}

static void bench_decode(const struct ceilings *c, int32_t n_seqs, int32_t kv_len)
{
    struct attn_decode_args args = {.attn = attention_of(n_seqs, n_seqs, kv_len)};
    char shape[40];
    must(attn_decode_shares(&args.attn, &args.n_shares), "attn_decode_shares");
    const size_t n_parts = 2 * (size_t)args.n_shares * N_HEADS;
    args.parts = device_random(n_parts * WIDTH * sizeof(float));
    args.part_logsum = device_random(n_parts * sizeof(float));
    plan_decode(&args, n_seqs, kv_len);
    snprintf(shape, sizeof shape, "%d sequences of %d", n_seqs, kv_len);
    const double kv_bytes = 2.0 * n_seqs * kv_len * N_KV_HEADS * WIDTH * ELEMENT_BYTES;
    const double q_bytes = 2.0 * n_seqs * N_HEADS * WIDTH * ELEMENT_BYTES;
    report("attention decode", shape, measure(attn_decode_run, &args), kv_bytes + q_bytes,
           4.0 * n_seqs * kv_len * N_HEADS * WIDTH, c->copy_bytes_per_s, "copy");
}

static void bench_prefill(const struct ceilings *c, int32_t n_seqs, int32_t n_tokens)
{
    const int32_t n_rows = n_seqs * n_tokens, group = N_HEADS / N_KV_HEADS;
    int32_t q_indptr[64], kv_len[64];
    char shape[40];
    for (int32_t i = 0; i <= n_seqs; i++)
        q_indptr[i] = i * n_tokens, kv_len[i] = n_tokens;
    struct attn_prefill_args args = {.attn = attention_of(n_rows, n_seqs, n_tokens),
                                     .q_indptr = device_ints(n_seqs + 1, 0, n_tokens)};
    args.tile_rows = attn_prefill_tile_rows(q_indptr, n_seqs, group);
    args.n_items = attn_prefill_n_items(q_indptr, n_seqs, group, args.tile_rows);
    struct attn_prefill_item *items = malloc((size_t)args.n_items * sizeof *items);
    must(!items, "malloc");
    attn_prefill_plan(items, q_indptr, kv_len, n_seqs, group, args.tile_rows);
    args.items = device_copy(items, (size_t)args.n_items * sizeof *items);
    free(items);
    snprintf(shape, sizeof shape, "%d prompts of %d", n_seqs, n_tokens);
    const double flops = 2.0 * n_seqs * n_tokens * (n_tokens + 1.0) * N_HEADS * WIDTH;
    report("attention prefill", shape, measure(attn_prefill_run, &args),
           2.0 * n_rows * QKV_WIDTH * ELEMENT_BYTES, flops, c->flops_per_s, "gemm");
}

void bench_kernels(const struct ceilings *c)
{
    bench_rows(c);
    bench_rope(c);
    bench_block_copy(c);
    bench_decode(c, 1, 8192);
    bench_decode(c, 16, 2048);
    bench_decode(c, 64, 2048);
    bench_decode(c, 256, 1024);
    bench_prefill(c, 1, 4096);
    bench_prefill(c, 8, 512);
    bench_prefill(c, 1, 16384);
}
