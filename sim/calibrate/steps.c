/* Whole steps, as a replay runs them, and what a step does to blocks. */
#include <time.h>

#include "calibrate/bench.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- steps that compute ---- */

static int run_step(void *context, uint32_t round, struct lasted *lasted, struct ifl_error *error)
{
    struct bench *bench = context;
    const double from_s = now_s();
    (void)round;
    const int code = bench->engine->step(bench->self, &bench->batch.step, error);
    *lasted = (struct lasted){(double)bench->batch.step.device_ns * 1e-9, now_s() - from_s};
    return code;
}

static double layer_weights(const struct ifl_engine_model *m)
{
    return (double)m->d_model *
           ((2.0 * m->n_q_heads + 2.0 * m->n_kv_heads) * m->d_head + 3.0 * m->d_ffn);
}

static void count_work(const struct bench *bench, struct measurement *row)
{
    const struct ifl_engine_model *m = &bench->limits.model;
    const struct ifl_step_totals *t = &bench->batch.totals;
    const double layers = m->n_layers, head = (double)m->n_vocab * m->d_model;
    const double pairs = (double)t->prefill_q_kv + (double)t->prefill_q_q / 2 +
                         t->n_prefill_tokens / 2.0 + (double)t->decode_context;
    const double kv = 2 * bench->batch.kv_tokens * m->n_kv_heads * m->d_head;
    row->bytes = (layers * (layer_weights(m) + kv) + head) * bench->machine.element_bytes;
    row->flops = 2 * (layers * layer_weights(m) * t->n_tokens + head * t->n_sampled) +
                 layers * 4.0 * m->n_q_heads * m->d_head * pairs;
}

static int bench_batch(struct bench *bench, struct ifl_error *error)
{
    struct timings timings;
    struct measurement row = {.op = "step", .batch = &bench->batch};
    count_work(bench, &row);
    const bool computes =
        row.flops / bench->ceilings[CEILING_GEMM] > row.bytes / bench->ceilings[CEILING_COPY];
    row.of = computes ? CEILING_GEMM : CEILING_COPY;
    if (bench_time(bench, run_step, bench, &timings, error))
        return error->code;
    row.timed = timings.wall;
    bench_write(bench, &row);
    const struct measurement host = {
        .op = "step_host", .batch = &bench->batch, .timed = timings.host};
    bench_write(bench, &host);
    return 0;
}

static int bench_decodes(struct bench *bench, struct ifl_error *error)
{
    static const int32_t n_seqs[] = {1, 2, 3, 5, 8, 12, 20, 33, 60};
    static const int32_t contexts[] = {75, 300, 900, 2100};
    for (size_t i = 0; i < LENGTH(n_seqs); i++)
        for (size_t j = 0; j < LENGTH(contexts); j++) {
            batch_clear(&bench->batch);
            if (batch_add_many(&bench->batch, n_seqs[i], contexts[j], 1, true) &&
                bench_batch(bench, error))
                return error->code;
        }
    return 0;
}

/* A prompt by itself, and with decodes beside it. */
static int bench_prompts(struct bench *bench, struct ifl_error *error)
{
    static const int32_t chunks[] = {20, 50, 120, 300, 500, 900, 2100};
    static const int32_t n_seqs[] = {0, 4, 20};
    for (size_t i = 0; i < LENGTH(chunks); i++)
        for (size_t j = 0; j < LENGTH(n_seqs); j++) {
            batch_clear(&bench->batch);
            if (batch_add(&bench->batch, 0, chunks[i]) &&
                batch_add_many(&bench->batch, n_seqs[j], 200, 1, true) && bench_batch(bench, error))
                return error->code;
        }
    return 0;
}

int bench_steps(struct bench *bench, struct ifl_error *error)
{
    return bench_decodes(bench, error) ? error->code : bench_prompts(bench, error);
}

/* ---- steps that move blocks ---- */

enum { MAX_MOVES = 1024 };

static int bench_move(struct bench *bench, struct measurement *row, struct ifl_error *error)
{
    row->bytes = row->n_blocks * (double)bench->engine->block_bytes(bench->self);
    if (row->of == CEILING_COPY) /* read and written */
        row->bytes *= 2;
    struct timings timings;
    if (bench_time(bench, run_step, bench, &timings, error))
        return error->code;
    row->timed = timings.device;
    bench_write(bench, row);
    return 0;
}

/* Blocks apart from each other on the device; the host's come in the order it gives them out. */
static int bench_n_moves(struct bench *bench, size_t n, struct ifl_error *error)
{
    static struct ifl_copy outs[MAX_MOVES], ins[MAX_MOVES], copies[MAX_MOVES];
    const uint32_t half = (uint32_t)bench->limits.n_blocks / 2;
    for (uint32_t i = 0; i < n; i++) {
        outs[i] = (struct ifl_copy){batch_block(&bench->batch, i), i};
        ins[i] = (struct ifl_copy){i, batch_block(&bench->batch, i)};
        copies[i] = (struct ifl_copy){i, half + i};
    }
    struct ifl_engine_step *step = &bench->batch.step;
    struct measurement out = {.op = "swap_out", .n_blocks = (double)n, .of = CEILING_OUT},
                       in = {.op = "swap_in", .n_blocks = (double)n, .of = CEILING_IN},
                       copy = {.op = "block_copy", .n_blocks = (double)n, .of = CEILING_COPY};
    batch_clear(&bench->batch);
    step->outs = outs;
    step->n_outs = n;
    if (bench_move(bench, &out, error))
        return error->code;
    batch_clear(&bench->batch);
    step->ins = ins;
    step->n_ins = n;
    if (bench_move(bench, &in, error))
        return error->code;
    batch_clear(&bench->batch);
    step->copies = copies;
    step->n_copies = n;
    return n <= half ? bench_move(bench, &copy, error) : 0;
}

int bench_moves(struct bench *bench, struct ifl_error *error)
{
    for (size_t n = 1; n <= MAX_MOVES && n <= (size_t)bench->limits.n_host_blocks; n *= 2)
        if (bench_n_moves(bench, n, error))
            return error->code;
    return 0;
}
