/* Whole steps of the engine, an 8B model with random weights: decodes against the copy ceiling,
 * prefills against the product's, swaps against pinned copies, and what the host adds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "inflight/engine.h"
#include "measure.h"

enum { BLOCK_TOKENS = 16, N_BLOCKS = 8192, N_HOST_BLOCKS = 1024, MAX_SEQS = 64, MAX_TOKENS = 8192 };

static struct ifl_engine_options options = {
    .model = {.d_model = 4096,
              .n_q_heads = 32,
              .n_kv_heads = 8,
              .d_head = 128,
              .d_ffn = 14336,
              .n_vocab = 128256},
    .seed = 1,
    .n_threads = 1,
    .block_tokens = BLOCK_TOKENS,
    .n_blocks = N_BLOCKS,
    .n_host_blocks = N_HOST_BLOCKS,
    .max_tokens = MAX_TOKENS,
    .max_step_tokens = MAX_TOKENS,
    .max_step_seqs = MAX_SEQS,
};

static void *self;

/* ---- one step ---- */

static int32_t token_ids[MAX_TOKENS], positions[MAX_TOKENS];
static int32_t first_token[MAX_SEQS + 1], first_block[MAX_SEQS + 1], sampled[MAX_SEQS];
static uint32_t block_ids[N_BLOCKS];
static bool samples[MAX_SEQS];

struct lasted {
    double device_s, wall_s;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct lasted run(struct ifl_engine_step *step)
{
    struct ifl_error error;
    const double from_s = now_s();
    if (ifl_engine_v1.step(self, step, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return (struct lasted){(double)step->device_ns * 1e-9, now_s() - from_s};
}

/* n_seqs sequences with n_new tokens each after n_context; tables disjoint and in no order. */
static struct ifl_engine_step step_of(int32_t n_seqs, int32_t n_context, int32_t n_new)
{
    const int32_t table = (n_context + n_new + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    for (int32_t seq = 0; seq <= n_seqs; seq++) {
        first_token[seq] = seq * n_new;
        first_block[seq] = seq * table;
    }
    for (int32_t i = 0; i < n_seqs * n_new; i++) {
        token_ids[i] = (int32_t)((uint32_t)i * 2654435761u % 128256u);
        positions[i] = n_context + i % n_new;
    }
    for (int32_t i = 0; i < n_seqs * table; i++)
        block_ids[i] = (uint32_t)i * 1021u % N_BLOCKS;
    return (struct ifl_engine_step){.n_seqs = n_seqs,
                                    .n_tokens = n_seqs * n_new,
                                    .token_ids = token_ids,
                                    .positions = positions,
                                    .first_token = first_token,
                                    .first_block = first_block,
                                    .block_ids = block_ids,
                                    .samples = samples,
                                    .sampled = sampled};
}

struct both {
    struct timed device, host; /* host: wall time less device time */
};

static struct both time_step(struct ifl_engine_step *step)
{
    double device_s[MEASURE_RUNS], host_s[MEASURE_RUNS];
    for (int i = -3; i < MEASURE_RUNS; i++) { /* run, captured, replayed once */
        const struct lasted lasted = run(step);
        if (i < 0)
            continue;
        device_s[i] = lasted.device_s;
        host_s[i] = lasted.wall_s - lasted.device_s;
    }
    return (struct both){timed_of(device_s, MEASURE_RUNS), timed_of(host_s, MEASURE_RUNS)};
}

/* ---- what a step moves and computes ---- */

static double layer_weights(void)
{
    const struct ifl_engine_model *m = &options.model;
    const double heads = (2.0 * m->n_q_heads + 2.0 * m->n_kv_heads) * m->d_head;
    return m->n_layers * (double)m->d_model * (heads + 3.0 * m->d_ffn);
}

static double head_weights(void)
{
    return (double)options.model.n_vocab * options.model.d_model;
}

static double kv_token_bytes(void)
{
    const struct ifl_engine_model *m = &options.model;
    return 2.0 * m->n_layers * m->n_kv_heads * m->d_head * 2;
}

static void bench_decode(const struct ceilings *c, int32_t n_seqs, int32_t n_context)
{
    struct ifl_engine_step step = step_of(n_seqs, n_context, 1);
    const double weights = layer_weights() + head_weights();
    const double bytes = 2 * weights + (double)n_seqs * n_context * kv_token_bytes();
    const struct both both = time_step(&step);
    char shape[40];
    snprintf(shape, sizeof shape, "%d sequences of %d", n_seqs, n_context);
    report("step decode", shape, both.device, bytes, 2 * weights * n_seqs, c->copy_bytes_per_s,
           "copy");
    report("step decode host", shape, both.host, 0, 0, 0, "host");
}

static void bench_prefill(const struct ceilings *c, int32_t n_tokens)
{
    const struct ifl_engine_model *m = &options.model;
    struct ifl_engine_step step = step_of(1, 0, n_tokens);
    const double attention =
        2.0 * n_tokens * (n_tokens + 1.0) * m->n_q_heads * m->d_head * m->n_layers;
    const double flops = 2 * layer_weights() * n_tokens + attention + 2 * head_weights();
    const struct both both = time_step(&step);
    char shape[40];
    snprintf(shape, sizeof shape, "%d tokens", n_tokens);
    report("step prefill", shape, both.device, 0, flops, c->flops_per_s, "gemm");
    report("step prefill host", shape, both.host, 0, 0, 0, "host");
}

/* Blocks apart from each other, as a pool in use has them. */
static void bench_swap(const struct ceilings *c, size_t n)
{
    static struct ifl_copy outs[N_HOST_BLOCKS], ins[N_HOST_BLOCKS];
    char shape[40];
    const double bytes = (double)n * (double)ifl_engine_v1.block_bytes(self);
    for (size_t i = 0; i < n; i++) {
        outs[i] =
            (struct ifl_copy){(uint32_t)(i * 7 % N_BLOCKS), (uint32_t)(i * 5 % N_HOST_BLOCKS)};
        ins[i] = (struct ifl_copy){outs[i].to, outs[i].from};
    }
    struct ifl_engine_step out = {.outs = outs, .n_outs = n}, in = {.ins = ins, .n_ins = n};
    snprintf(shape, sizeof shape, "%zu blocks", n);
    report("swap out", shape, time_step(&out).device, bytes, 0, c->down_bytes_per_s, "pinned");
    report("swap in", shape, time_step(&in).device, bytes, 0, c->up_bytes_per_s, "pinned");
}

/* Decodes while blocks that they do not touch go out: nearer to the longer of the two the better.
 */
static void bench_overlap(size_t n)
{
    static struct ifl_copy outs[N_HOST_BLOCKS];
    struct ifl_engine_step step = step_of(16, 1024, 1);
    for (size_t i = 0; i < n; i++)
        outs[i] = (struct ifl_copy){(uint32_t)(N_BLOCKS - 1 - i * 2), (uint32_t)i};
    for (int32_t i = 0; i < first_block[16]; i++)
        block_ids[i] = (uint32_t)i;
    step.outs = outs;
    step.n_outs = n;
    report("step and swap", "16 of 1024 and 64 blocks", time_step(&step).device,
           (double)n * (double)ifl_engine_v1.block_bytes(self), 0, 0, "overlap");
}

void bench_steps(const struct ceilings *c, int n_layers)
{
    struct ifl_error error;
    options.model.n_layers = n_layers;
    for (int32_t i = 0; i < MAX_SEQS; i++)
        samples[i] = true;
    if (ifl_engine_v1.open(&options, &self, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    static const int32_t batches[] = {1, 4, 16, 64};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        bench_decode(c, batches[i], 1024);
    for (int32_t n_tokens = 512; n_tokens <= MAX_TOKENS; n_tokens *= 2)
        bench_prefill(c, n_tokens);
    for (size_t n = 1; n <= N_HOST_BLOCKS; n *= 4)
        bench_swap(c, n);
    bench_overlap(64);
    ifl_engine_v1.close(self);
}
