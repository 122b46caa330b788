/* Attention alone: decode by batch and context, prefill by prompt and chunk, with the engine's
 * block-major K/V and with one layer of all blocks side by side, and block-major in e4m3. A row is
 * what was reached in TB/s and TFLOP/s, as shares of a copy and of a matrix product measured in the
 * same run, and what the model of gpu/README.md predicts.
 *
 * Usage: bench_attn [--small]. A model of 32 layers, 32 heads, 8 KV heads of 128; CSV on standard
 * output. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/gemm.h"
#include "cuda/kernels.h"
#include "inflight/minmax.h"

enum { HEADS = 32, KV_HEADS = 8, DIM = 128, GROUP = HEADS / KV_HEADS, BLOCK = 16 };

static int32_t layers = 32, n_runs = 10;
static size_t copy_bytes = (size_t)1 << 30;
static int32_t cube = 8192;
static cudaStream_t stream;
static cudaEvent_t began, ended;
static struct ifl_error error;
static double copy_tb_s, gemm_tflop_s;

static void must(int failed, const char *what)
{
    if (!failed)
        return;
    fprintf(stderr, "%s: %s\n", what,
            failed < 0 ? error.text : cudaGetErrorString((cudaError_t)failed));
    exit(1);
}

static void *take(size_t n_bytes)
{
    void *memory = NULL;
    must(cudaMalloc(&memory, n_bytes), "cudaMalloc");
    return memory;
}

/* Small random numbers, in bf16 and each byte in e4m3: zeros would be multiplied faster. */
static void fill(char *memory, size_t n_bytes)
{
    static uint16_t numbers[1 << 16];
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        numbers[i] = (uint16_t)((state & 0x803fu) | (0x3a00u + (state >> 32 & 0x180u)));
    }
    for (size_t at = 0, n; at < n_bytes; at += n) {
        n = ifl_min(sizeof numbers, n_bytes - at);
        must(cudaMemcpyAsync(memory + at, numbers, n, cudaMemcpyHostToDevice, stream), "a copy");
    }
    must(cudaStreamSynchronize(stream), "filling memory");
}

static void *take_filled(size_t n_bytes)
{
    void *memory = take(n_bytes);
    fill(memory, n_bytes);
    return memory;
}

static void *send(const void *from, size_t n_bytes)
{
    void *memory = take(n_bytes ? n_bytes : 1);
    must(cudaMemcpyAsync(memory, from, n_bytes, cudaMemcpyHostToDevice, stream), "a plan");
    must(cudaStreamSynchronize(stream), "a plan");
    return memory;
}

/* ---- time ---- */

struct work {
    int (*run)(const struct work *, int32_t round);
    const void *args;
};

/* The least of n_runs, microseconds: the device alone is measured, other programs only add to it.
 */
static double least_us(const struct work *work)
{
    double least = 0;
    for (int32_t i = 0; i < n_runs; i++) {
        float ms = 0;
        must(work->run(work, i), "warming up");
        must(cudaEventRecord(began, stream), "cudaEventRecord");
        must(work->run(work, i + 1), "a run");
        must(cudaEventRecord(ended, stream), "cudaEventRecord");
        must(cudaEventSynchronize(ended), "a run");
        must(cudaEventElapsedTime(&ms, began, ended), "cudaEventElapsedTime");
        const double us = (double)ms * 1e3;
        least = i == 0 || us < least ? us : least;
    }
    return least;
}

/* ---- ceilings ---- */

static int copy_run(const struct work *work, int32_t round)
{
    char *memory = (char *)(uintptr_t)work->args;
    (void)round;
    return cudaMemcpyAsync(memory, memory + copy_bytes, copy_bytes, cudaMemcpyDeviceToDevice,
                           stream);
}

static struct gemm gemm;

static int gemm_of(const struct work *work, int32_t round)
{
    (void)round;
    return gemm_run(&gemm, work->args, stream, &error);
}

static void measure_ceilings(void)
{
    static atomic_bool is_lost;
    const size_t n_bytes = (size_t)cube * (size_t)cube * 2;
    char *memory = take_filled(2 * copy_bytes);
    const double copy_us = least_us(&(struct work){copy_run, memory});
    copy_tb_s = 2 * (double)copy_bytes / copy_us * 1e-6;
    must(cudaFree(memory), "cudaFree");
    gemm.is_lost = &is_lost;
    must(gemm_create(&gemm, ELEMENT_BF16, &error), "cuBLAS");
    gemm.workspace = take(GEMM_WORKSPACE_BYTES);
    const struct gemm_call call = {.x = take_filled(n_bytes),
                                   .w = take_filled(n_bytes),
                                   .y = take(n_bytes),
                                   .n_rows = cube,
                                   .n = cube,
                                   .k = cube};
    const double gemm_us = least_us(&(struct work){gemm_of, &call});
    gemm_tflop_s = 2.0 * cube * (double)cube * cube / gemm_us * 1e-6;
    must(cudaFree((void *)(uintptr_t)call.x), "cudaFree");
    must(cudaFree((void *)(uintptr_t)call.w), "cudaFree");
    must(cudaFree(call.y), "cudaFree");
    printf("# copy %.3f TB/s, product %.1f TFLOP/s\n", copy_tb_s, gemm_tflop_s);
}

/* ---- a batch ---- */

struct storage { /* of K and V */
    bool is_block_major, is_e4m3;
};

struct bench {
    struct attn_args attn;
    char *pool;
    size_t layer_rows, layer_stride; /* rows from one layer to the next */
    int32_t n_seqs, n_new, context, n_blocks;
    struct storage storage;
    int32_t *kv_len, *q_indptr;
};

static size_t kv_element_bytes(const struct bench *b)
{
    return b->storage.is_e4m3 ? 1 : 2;
}

static void bench_open(struct bench *b, int32_t n_seqs, int32_t n_new, int32_t context,
                       struct storage storage)
{
    const bool is_block_major = storage.is_block_major;
    const int32_t each = (context + BLOCK - 1) / BLOCK, block_rows = 2 * KV_HEADS * BLOCK;
    *b = (struct bench){.n_seqs = n_seqs,
                        .n_new = n_new,
                        .context = context,
                        .n_blocks = n_seqs * each,
                        .storage = storage};
    int32_t *table = malloc((size_t)b->n_blocks * sizeof *table),
            *indptr = malloc((size_t)(n_seqs + 1) * sizeof *indptr);
    b->kv_len = malloc((size_t)n_seqs * sizeof *b->kv_len);
    b->q_indptr = malloc((size_t)(n_seqs + 1) * sizeof *b->q_indptr);
    if (!table || !indptr || !b->kv_len || !b->q_indptr)
        must(cudaErrorMemoryAllocation, "host memory");
    for (int32_t i = 0; i < b->n_blocks;
         i++) /* an odd step visits each block once of a prime's worth */
        table[i] = (int32_t)((int64_t)i * 7919 % b->n_blocks);
    if (b->n_blocks % 7919 == 0)
        for (int32_t i = 0; i < b->n_blocks; i++)
            table[i] = i;
    for (int32_t s = 0; s <= n_seqs; s++) {
        indptr[s] = s * each;
        b->q_indptr[s] = s * n_new;
        if (s < n_seqs)
            b->kv_len[s] = context;
    }
    const size_t pool_rows = (size_t)b->n_blocks * (size_t)block_rows * (size_t)layers;
    b->pool = take_filled(pool_rows * DIM * kv_element_bytes(b));
    b->layer_stride =
        is_block_major ? (size_t)block_rows : (size_t)block_rows * (size_t)b->n_blocks;
    const size_t n_rows = (size_t)n_seqs * (size_t)n_new;
    b->attn = (struct attn_args){
        .element = ELEMENT_BF16,
        .out = take(n_rows * HEADS * DIM * 2),
        .q = take_filled(n_rows * (HEADS + 2 * KV_HEADS) * DIM * 2),
        .q_stride = (HEADS + 2 * KV_HEADS) * DIM,
        .n_heads = HEADS,
        .scale = 0.088388f,
        .kv = {.block_tokens = BLOCK,
               .block_rows = is_block_major ? block_rows * layers : block_rows,
               .n_kv_heads = KV_HEADS,
               .head_dim = DIM,
               .is_e4m3 = storage.is_e4m3},
        .kv_len = send(b->kv_len, (size_t)n_seqs * sizeof *b->kv_len),
        .block_indptr = send(indptr, (size_t)(n_seqs + 1) * sizeof *indptr),
        .block_id = send(table, (size_t)b->n_blocks * sizeof *table),
    };
    free(table);
    free(indptr);
}

static void give(const void *memory)
{
    must(cudaFree((void *)(uintptr_t)memory), "cudaFree");
}

static void bench_close(struct bench *b)
{
    give(b->pool), give(b->attn.out), give(b->attn.q);
    give(b->attn.kv_len), give(b->attn.block_indptr), give(b->attn.block_id);
    free(b->kv_len);
    free(b->q_indptr);
}

/* Each round reads another layer, as a step does: the last one's K/V is not in the cache. */
static struct attn_args layer_of(const struct bench *b, int32_t round)
{
    struct attn_args attn = b->attn;
    attn.kv.rows = b->pool + (size_t)(round % layers) * b->layer_stride * DIM * kv_element_bytes(b);
    return attn;
}

static void row(const struct bench *b, const char *kind, double us, double n_bytes, double flop,
                double predicted_us)
{
    const double tb_s = n_bytes / us * 1e-6, tflop_s = flop / us * 1e-6;
    printf("%s,%d,%d,%d,%s,%s,%.2f,%.3f,%.3f,%.3g,%.3g,%.2f,%.2f\n", kind, b->n_seqs, b->n_new,
           b->context, b->storage.is_block_major ? "block" : "layer",
           b->storage.is_e4m3 ? "e4m3" : "bf16", us, tb_s, tb_s / copy_tb_s, tflop_s,
           tflop_s / gemm_tflop_s, predicted_us, predicted_us / us);
    fflush(stdout);
}

/* ---- decode ---- */

struct decode {
    const struct bench *b;
    struct attn_decode_args args;
    bool merges;
};

static int decode_run(const struct work *work, int32_t round)
{
    const struct decode *d = work->args;
    struct attn_decode_args args = d->args;
    args.attn = layer_of(d->b, round);
    const int failed = attn_decode_launch(&args, stream);
    return failed || !d->merges ? failed : attn_merge_launch(&args, stream);
}

static void decode(int32_t batch, int32_t context, struct storage storage)
{
    struct bench b;
    struct decode d = {.b = &b};
    int32_t n_shares = 0, n_merges = 0;
    bench_open(&b, batch, 1, context, storage);
    must(attn_decode_shares(&b.attn, &n_shares), "attn_decode_shares");
    struct attn_decode_plan plan = {
        malloc((size_t)(n_shares + 1) * sizeof(int32_t)),
        malloc((size_t)(n_shares + batch) * sizeof(struct attn_segment)),
        malloc((size_t)n_shares * sizeof(struct attn_merge)), &n_merges};
    if (!plan.share_indptr || !plan.segments || !plan.merges)
        must(cudaErrorMemoryAllocation, "host memory");
    attn_decode_plan(&plan, n_shares, 0, b.kv_len, batch);
    d.merges = n_merges > 0;
    d.args = (struct attn_decode_args){
        .plan = {send(plan.share_indptr, (size_t)(n_shares + 1) * sizeof(int32_t)),
                 send(plan.segments, (size_t)(n_shares + batch) * sizeof(struct attn_segment)),
                 send(plan.merges, (size_t)n_shares * sizeof(struct attn_merge)),
                 send(&n_merges, sizeof n_merges)},
        .n_shares = n_shares,
        .parts = take((size_t)n_shares * 2 * HEADS * DIM * sizeof(float)),
        .part_logsum = take((size_t)n_shares * 2 * HEADS * sizeof(float))};
    const double us = least_us(&(struct work){decode_run, &d});
    const double n_bytes =
        (double)batch * context * 2 * KV_HEADS * DIM * (double)kv_element_bytes(&b);
    row(&b, "decode", us, n_bytes, 4.0 * batch * (double)context * HEADS * DIM,
        n_bytes / (0.85 * copy_tb_s) * 1e-6 + 5);
    give(d.args.plan.share_indptr), give(d.args.plan.segments), give(d.args.plan.merges),
        give(d.args.plan.n_merges);
    give(d.args.parts), give(d.args.part_logsum);
    free(plan.share_indptr);
    free(plan.segments);
    free(plan.merges);
    bench_close(&b);
}

/* ---- prefill ---- */

struct prefill {
    const struct bench *b;
    struct attn_prefill_args args;
};

static int prefill_run(const struct work *work, int32_t round)
{
    const struct prefill *p = work->args;
    struct attn_prefill_args args = p->args;
    args.attn = layer_of(p->b, round);
    const int failed = attn_prefill_launch(&args, stream);
    return failed || args.n_merges == 0 ? failed : attn_prefill_merge_launch(&args, stream);
}

/* The last `chunk` tokens of a prompt. */
static void prefill(int32_t prompt, int32_t chunk, struct storage storage)
{
    struct bench b;
    bench_open(&b, 1, chunk, prompt, storage);
    struct attn_prefill_batch batch = {.q_indptr = b.q_indptr,
                                       .kv_len = b.kv_len,
                                       .n_seqs = 1,
                                       .group = GROUP,
                                       .n_kv_heads = KV_HEADS};
    must(attn_prefill_slots(&b.attn, &batch.slots), "attn_prefill_slots");
    const size_t n_items =
        (size_t)attn_prefill_max_items((int64_t)chunk * GROUP, 1, KV_HEADS, batch.slots);
    const size_t n_parts = (size_t)attn_prefill_max_parts(KV_HEADS, batch.slots) + 1;
    struct attn_prefill_plan plan = {.items = malloc(n_items * sizeof *plan.items),
                                     .merges = malloc(n_parts * sizeof *plan.merges)};
    if (!plan.items || !plan.merges)
        must(cudaErrorMemoryAllocation, "host memory");
    attn_prefill_plan(&plan, &batch);
    struct prefill p = {&b,
                        {.q_indptr = send(b.q_indptr, 2 * sizeof *b.q_indptr),
                         .items = send(plan.items, (size_t)plan.n_items * sizeof *plan.items),
                         .merges = send(plan.merges, (size_t)plan.n_merges * sizeof *plan.merges),
                         .n_items = plan.n_items,
                         .n_merges = plan.n_merges,
                         .tile_rows = plan.tile_rows,
                         .parts = take(n_parts * KV_HEADS * ATTN_LOW_TILE * DIM * sizeof(float)),
                         .part_logsum = take(n_parts * KV_HEADS * ATTN_LOW_TILE * sizeof(float))}};
    const double us = least_us(&(struct work){prefill_run, &p});
    const double pairs = (double)chunk * (prompt - chunk) + (double)chunk * (chunk + 1) / 2;
    const double flop = 4 * pairs * HEADS * DIM;
    const double kv_bytes = (double)prompt * 2 * KV_HEADS * DIM * (double)kv_element_bytes(&b);
    row(&b, "prefill", us, kv_bytes + (double)chunk * 2 * HEADS * DIM * 2, flop,
        flop / (0.38 * gemm_tflop_s) * 1e-6);
    give(p.args.q_indptr), give(p.args.items), give(p.args.merges), give(p.args.parts),
        give(p.args.part_logsum);
    free(plan.items);
    free(plan.merges);
    bench_close(&b);
}

int main(int argc, char *argv[])
{
    static const int32_t batches[] = {1, 16, 64, 256}, contexts[] = {1024, 8192, 32768};
    static const int32_t prompts[] = {2048, 8192, 32768}, chunks[] = {256, 512, 2048, 32768};
    const bool is_small = argc > 1 && strcmp(argv[1], "--small") == 0;
    const size_t most_tokens = is_small ? 300 : (size_t)160 << 10; /* of K/V: 20 GiB in 32 layers */
    if (is_small)
        layers = 2, n_runs = 1, copy_bytes = 1 << 14, cube = 32;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cudaEventCreateWithFlags(&began, cudaEventDefault), "cudaEventCreate");
    must(cudaEventCreateWithFlags(&ended, cudaEventDefault), "cudaEventCreate");
    measure_ceilings();
    printf(
        "kind,batch,new_tokens,context,layout,kv,us,tb_s,copy_share,tflop_s,gemm_share,predicted_"
        "us,predicted_share\n");
    static const struct storage storages[] = {{true, false}, {false, false}, {true, true}};
    for (size_t s = 0; s < sizeof storages / sizeof *storages; s++) {
        for (size_t i = 0; i < 4; i++)
            for (size_t j = 0; j < 3; j++) {
                const int32_t context = is_small ? contexts[j] / 256 : contexts[j];
                if ((size_t)batches[i] * (size_t)context <= most_tokens)
                    decode(batches[i], context, storages[s]);
            }
        for (size_t i = 0; i < 3; i++)
            for (size_t j = 0; j < 4; j++) {
                const int32_t prompt = is_small ? prompts[i] / 512 : prompts[i];
                const int32_t chunk = is_small ? chunks[j] / 512 + 1 : chunks[j];
                if (chunk <= prompt && (size_t)prompt <= most_tokens)
                    prefill(prompt, chunk, storages[s]);
            }
    }
    gemm_finish(&gemm);
    return 0;
}
