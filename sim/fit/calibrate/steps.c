/* Measures whole steps, as a replay runs them, and the operations of a step on blocks. */
#include <time.h>

#include "fit/calibrate/bench.h"
#include "inflight/minmax.h"

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
    static const int32_t n_seqs[] = {1, 2, 3, 5, 7, 10, 14, 20, 33, 60};
    static const int32_t contexts[] = {40, 130, 330, 900, 2100};
    for (size_t i = 0; i < LENGTH(n_seqs); i++)
        for (size_t j = 0; j < LENGTH(contexts); j++) {
            batch_clear(&bench->batch);
            if (batch_add_many(&bench->batch, n_seqs[i], contexts[j], 1, BATCH_RAGGED) &&
                bench_batch(bench, error))
                return error->code;
        }
    return 0;
}

/* A prompt by itself, and with decodes beside it. */
static int bench_prompts(struct bench *bench, struct ifl_error *error)
{
    static const int32_t chunks[] = {20, 50, 90, 200, 450, 900, 2100, 3700};
    static const int32_t n_seqs[] = {0, 4, 20};
    for (size_t i = 0; i < LENGTH(chunks); i++)
        for (size_t j = 0; j < LENGTH(n_seqs); j++) {
            batch_clear(&bench->batch);
            if (batch_add(&bench->batch, 0, chunks[i]) &&
                batch_add_many(&bench->batch, n_seqs[j], 100, 1, BATCH_RAGGED) &&
                bench_batch(bench, error))
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

struct moves {
    struct bench *bench;
    size_t n;
    const char *op;
    enum ceiling of;
};

/* Each round moves other blocks, so that caches do not hold them. Device blocks lie apart from each
 * other, as in a pool in use; host blocks are in order, as the host pool hands them out. */
static void choose_blocks(const struct moves *moves, uint32_t round, struct ifl_copy chosen[])
{
    const struct bench *bench = moves->bench;
    const uint32_t n = (uint32_t)moves->n, n_device = (uint32_t)bench->limits.n_blocks;
    const uint32_t n_host = (uint32_t)bench->limits.n_host_blocks, half = n_device / 2;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = round % 1024 * n + i;
        const uint32_t device = batch_block(&bench->batch, at % n_device), host = at % n_host;
        if (moves->of == CEILING_OUT)
            chosen[i] = (struct ifl_copy){device, host};
        else if (moves->of == CEILING_IN)
            chosen[i] = (struct ifl_copy){host, device};
        else
            chosen[i] = (struct ifl_copy){at % half, half + at % half};
    }
}

static int run_moves(void *context, uint32_t round, struct lasted *lasted, struct ifl_error *error)
{
    static struct ifl_copy chosen[MAX_MOVES];
    const struct moves *moves = context;
    struct ifl_engine_step *step = &moves->bench->batch.step;
    choose_blocks(moves, round, chosen);
    batch_clear(&moves->bench->batch);
    if (moves->of == CEILING_OUT) {
        step->outs = chosen;
        step->n_outs = moves->n;
    } else if (moves->of == CEILING_IN) {
        step->ins = chosen;
        step->n_ins = moves->n;
    } else {
        step->copies = chosen;
        step->n_copies = moves->n;
    }
    return run_step(moves->bench, round, lasted, error);
}

static int bench_n_moves(struct moves *moves, struct ifl_error *error)
{
    struct timings timings;
    struct measurement row = {.op = moves->op, .n_blocks = (double)moves->n, .of = moves->of};
    row.bytes = row.n_blocks * (double)moves->bench->engine->block_bytes(moves->bench->self);
    if (moves->of == CEILING_COPY) /* read and written */
        row.bytes *= 2;
    if (bench_time(moves->bench, run_moves, moves, &timings, error))
        return error->code;
    row.timed = timings.device;
    bench_write(moves->bench, &row);
    return 0;
}

/* Copies into each host block once before the measurement: the first copy into a block may have to
 * wait for its memory, which a replay, with a small pool in constant use, does not see. */
static int touch_host_blocks(struct bench *bench, struct ifl_error *error)
{
    const int32_t n = bench->limits.n_host_blocks;
    struct moves moves = {bench, (size_t)ifl_min(n, MAX_MOVES), NULL, CEILING_OUT};
    struct lasted lasted;
    return moves.n > 0 ? run_moves(&moves, 0, &lasted, error) : 0;
}

int bench_moves(struct bench *bench, struct ifl_error *error)
{
    if (touch_host_blocks(bench, error))
        return error->code;
    const struct moves kinds[] = {{bench, 0, "swap_out", CEILING_OUT},
                                  {bench, 0, "swap_in", CEILING_IN},
                                  {bench, 0, "block_copy", CEILING_COPY}};
    const size_t n_host = (size_t)bench->limits.n_host_blocks;
    const size_t half = (size_t)bench->limits.n_blocks / 2;
    for (size_t i = 0; i < LENGTH(kinds); i++)
        for (size_t n = 1; n <= MAX_MOVES && n <= (i < 2 ? n_host : half); n *= 2) {
            struct moves moves = kinds[i];
            moves.n = n;
            if (bench_n_moves(&moves, error))
                return error->code;
        }
    return 0;
}
