/* Measures single operations: the ceilings of the machine, and the time of each class of operations
 * of the cost model. Shapes are not powers of two, since libraries are fastest on those. */
#include "fit/calibrate/bench.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static int run_op(void *context, uint32_t round, struct lasted *lasted, struct ifl_error *error)
{
    struct bench *bench = ((void **)context)[0];
    struct ifl_engine_op *op = ((void **)context)[1];
    op->round = round;
    const int code = bench->engine->measure(bench->self, op, error);
    *lasted = (struct lasted){(double)op->ns * 1e-9, 0};
    return code;
}

static int time_op(struct bench *bench, struct ifl_engine_op *op, struct timed *timed,
                   struct ifl_error *error)
{
    void *context[] = {bench, op};
    struct timings timings;
    const int code = bench_time(bench, run_op, context, &timings, error);
    if (!code)
        *timed = timings.device;
    return code;
}

/* ---- ceilings: the best run counts ---- */

static int find_copy_ceiling(struct bench *bench, enum ifl_engine_op_kind kind, const char *name,
                             enum ceiling of, struct ifl_error *error)
{
    const size_t host_bytes =
        (size_t)bench->limits.n_host_blocks * bench->engine->block_bytes(bench->self);
    struct ifl_engine_op op = {.kind = kind, .n_bytes = bench->limits.bench_bytes / 4};
    if (kind != IFL_OP_COPY && op.n_bytes > host_bytes)
        op.n_bytes = host_bytes;
    /* a copy within device memory reads and writes each byte there */
    struct measurement row = {
        .op = name, .of = of, .bytes = (double)op.n_bytes * (kind == IFL_OP_COPY ? 2 : 1)};
    if (time_op(bench, &op, &row.timed, error))
        return error->code;
    bench->ceilings[of] = row.bytes / row.timed.min_s;
    bench_write(bench, &row);
    return 0;
}

static double product_flops(double m, double n, double k)
{
    return 2 * m * n * k;
}

static double product_bytes(const struct bench *bench, double m, double n, double k)
{
    return (m * k + n * k + m * n) * bench->machine.element_bytes;
}

/* The best of some cubes: what a library reaches, not what the data sheet promises. */
static int find_gemm_ceiling(struct bench *bench, struct ifl_error *error)
{
    for (int32_t cube = 1024; cube <= 8192; cube *= 2) {
        struct ifl_engine_op op = {.kind = IFL_OP_GEMM, .m = cube, .n = cube, .k = cube};
        struct measurement row = {.op = "ceiling_gemm",
                                  .m = cube,
                                  .n = cube,
                                  .k = cube,
                                  .bytes = product_bytes(bench, cube, cube, cube),
                                  .flops = product_flops(cube, cube, cube)};
        if (row.bytes > (double)bench->limits.bench_bytes / 4)
            break;
        if (time_op(bench, &op, &row.timed, error))
            return error->code;
        const double flops_per_s = row.flops / row.timed.min_s;
        if (flops_per_s > bench->ceilings[CEILING_GEMM])
            bench->ceilings[CEILING_GEMM] = flops_per_s;
        bench_write(bench, &row);
    }
    return 0;
}

int bench_ceilings(struct bench *bench, struct ifl_error *error)
{
    if (find_copy_ceiling(bench, IFL_OP_COPY, "ceiling_copy", CEILING_COPY, error) ||
        find_copy_ceiling(bench, IFL_OP_COPY_OUT, "ceiling_copy_out", CEILING_OUT, error) ||
        find_copy_ceiling(bench, IFL_OP_COPY_IN, "ceiling_copy_in", CEILING_IN, error))
        return error->code;
    return find_gemm_ceiling(bench, error);
}

/* ---- matrix products ---- */

static const int32_t product_rows[] = {1,   2,   3,   4,   5,   6,   7,    8,    9,   10, 11,
                                       12,  13,  14,  17,  20,  24,  33,   48,   72,  96, 136,
                                       200, 280, 328, 456, 600, 900, 1300, 2100, 3700};

static bool fits(const struct bench *bench, double m, double n, double k)
{
    const double weights_bytes = n * k * bench->machine.element_bytes;
    return product_bytes(bench, m, n, k) + weights_bytes <= (double)bench->limits.bench_bytes;
}

static int bench_product(struct bench *bench, int32_t n, int32_t k, int32_t max_m,
                         struct ifl_error *error)
{
    for (size_t i = 0; i < LENGTH(product_rows) && product_rows[i] <= max_m; i++) {
        const int32_t m = product_rows[i];
        struct ifl_engine_op op = {.kind = IFL_OP_GEMM, .m = m, .n = n, .k = k};
        struct measurement row = {.op = "gemm",
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .bytes = product_bytes(bench, m, n, k),
                                  .flops = product_flops(m, n, k)};
        if (!fits(bench, m, n, k))
            break;
        if (time_op(bench, &op, &row.timed, error))
            return error->code;
        const bool computes =
            row.flops / bench->ceilings[CEILING_GEMM] > row.bytes / bench->ceilings[CEILING_COPY];
        row.of = computes ? CEILING_GEMM : CEILING_COPY;
        bench_write(bench, &row);
    }
    return 0;
}

/* The four products of a layer, whole and as two and four ranks share them, and the LM head. */
int bench_products(struct bench *bench, struct ifl_error *error)
{
    ifl_assert(bench->ceilings[CEILING_COPY] > 0 && bench->ceilings[CEILING_GEMM] > 0);
    const struct ifl_engine_model *m = &bench->limits.model;
    const int32_t q = m->n_q_heads * m->d_head, kv = m->n_kv_heads * m->d_head;
    const int32_t max_m = bench->limits.max_step_tokens;
    for (int32_t t = 1; t <= 4 && q % (8 * t) == 0 && m->d_ffn % (8 * t) == 0; t *= 2)
        if (bench_product(bench, (q + 2 * kv) / t, m->d_model, max_m, error) ||
            bench_product(bench, m->d_model, q / t, max_m, error) ||
            bench_product(bench, 2 * m->d_ffn / t, m->d_model, max_m, error) ||
            bench_product(bench, m->d_model, m->d_ffn / t, max_m, error))
            return error->code;
    return bench_product(bench, m->n_vocab, m->d_model, bench->limits.max_step_seqs, error);
}

/* ---- element-wise ---- */

/* The operations of a layer besides products and attention, one after the other. */
static int run_elementwise(void *context, uint32_t round, struct lasted *lasted,
                           struct ifl_error *error)
{
    struct bench *bench = context;
    static const enum ifl_engine_op_kind kinds[] = {IFL_OP_NORM, IFL_OP_ROTARY, IFL_OP_NORM,
                                                    IFL_OP_ACTIVATION};
    *lasted = (struct lasted){0, 0};
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct ifl_engine_op op = {kinds[i], .step = &bench->batch.step, .round = round};
        if (bench->engine->measure(bench->self, &op, error))
            return error->code;
        lasted->device_s += (double)op.ns * 1e-9;
    }
    return 0;
}

static int bench_row_op(struct bench *bench, enum ifl_engine_op_kind kind, const char *name,
                        double elements, struct ifl_error *error)
{
    struct ifl_engine_op op = {.kind = kind, .step = &bench->batch.step};
    struct measurement row = {.op = name,
                              .batch = &bench->batch,
                              .of = CEILING_COPY,
                              .bytes = elements * bench->batch.totals.n_tokens *
                                       bench->machine.element_bytes};
    if (time_op(bench, &op, &row.timed, error))
        return error->code;
    bench_write(bench, &row);
    return 0;
}

/* The constants are the elements that each kernel reads and writes for a token. */
static int bench_batch_rows(struct bench *bench, struct ifl_error *error)
{
    const struct ifl_engine_model *m = &bench->limits.model;
    const double norm = 2.0 * m->d_model, activation = 3.0 * m->d_ffn;
    const double rotary = (2.0 * m->n_q_heads + 4.0 * m->n_kv_heads) * m->d_head;
    struct timings timings;
    struct measurement all = {.op = "elementwise",
                              .batch = &bench->batch,
                              .of = CEILING_COPY,
                              .bytes = (2 * norm + rotary + activation) *
                                       bench->batch.totals.n_tokens * bench->machine.element_bytes};
    if (bench_row_op(bench, IFL_OP_NORM, "norm", norm, error) ||
        bench_row_op(bench, IFL_OP_ROTARY, "rotary", rotary, error) ||
        bench_row_op(bench, IFL_OP_ACTIVATION, "activation", activation, error) ||
        bench_time(bench, run_elementwise, bench, &timings, error))
        return error->code;
    all.timed = timings.device;
    bench_write(bench, &all);
    return 0;
}

int bench_rows(struct bench *bench, struct ifl_error *error)
{
    ifl_assert(bench->ceilings[CEILING_COPY] > 0 && bench->ceilings[CEILING_GEMM] > 0);
    static const int32_t decodes[] = {1, 2, 5, 13, 33, 60};
    static const int32_t prompts[] = {40, 100, 200, 330, 600, 900, 2100, 3700};
    for (size_t i = 0; i < LENGTH(decodes); i++) {
        batch_clear(&bench->batch);
        if (batch_add_many(&bench->batch, decodes[i], 100, 1, BATCH_EQUAL) &&
            bench_batch_rows(bench, error))
            return error->code;
    }
    for (size_t i = 0; i < LENGTH(prompts); i++) {
        batch_clear(&bench->batch);
        if (batch_add(&bench->batch, 0, prompts[i]) && bench_batch_rows(bench, error))
            return error->code;
    }
    return 0;
}

/* ---- attention of one layer ---- */

static int bench_batch_attention(struct bench *bench, const char *name, struct ifl_error *error)
{
    const struct ifl_engine_model *m = &bench->limits.model;
    const struct ifl_step_totals *t = &bench->batch.totals;
    const double pairs = (double)t->prefill_q_kv + (double)t->prefill_q_q / 2 +
                         t->n_prefill_tokens / 2.0 + (double)t->decode_context;
    const double elements = 2 * bench->batch.kv_tokens * m->n_kv_heads * m->d_head +
                            2.0 * t->n_tokens * m->n_q_heads * m->d_head;
    struct ifl_engine_op op = {.kind = IFL_OP_ATTENTION, .step = &bench->batch.step};
    struct measurement row = {.op = name,
                              .batch = &bench->batch,
                              .of = t->n_prefill_tokens > 0 ? CEILING_GEMM : CEILING_COPY,
                              .flops = 4.0 * m->n_q_heads * m->d_head * pairs,
                              .bytes = elements * bench->machine.element_bytes};
    if (time_op(bench, &op, &row.timed, error))
        return error->code;
    bench_write(bench, &row);
    return 0;
}

static const int32_t some_seqs[] = {1, 2, 3, 5, 8, 13, 24, 40, 60};
static const int32_t some_contexts[] = {20, 60, 140, 330, 580, 900, 2100, 4000};

static int bench_decodes(struct bench *bench, struct ifl_error *error)
{
    for (size_t i = 0; i < LENGTH(some_contexts); i++)
        for (size_t j = 0; j < LENGTH(some_seqs); j++)
            for (int how = BATCH_EQUAL; how <= (some_seqs[j] > 1 ? BATCH_RAGGED : BATCH_EQUAL);
                 how++) {
                batch_clear(&bench->batch);
                if (batch_add_many(&bench->batch, some_seqs[j], some_contexts[i], 1, how) &&
                    bench_batch_attention(bench, "attention_decode", error))
                    return error->code;
            }
    return 0;
}

static const int32_t some_chunks[] = {12, 20, 40, 70, 120, 200, 330, 500, 900, 2100, 3700};

static int bench_prefills(struct bench *bench, struct ifl_error *error)
{
    static const int32_t before[] = {0, 80, 500, 2000}, n_seqs[] = {1, 3, 8};
    for (size_t i = 0; i < LENGTH(some_chunks); i++)
        for (size_t j = 0; j < LENGTH(before); j++)
            for (size_t k = 0; k < LENGTH(n_seqs); k++) {
                batch_clear(&bench->batch);
                if (batch_add_many(&bench->batch, n_seqs[k], before[j], some_chunks[i],
                                   before[j] > 0 ? BATCH_RAGGED : BATCH_EQUAL) &&
                    bench_batch_attention(bench, "attention_prefill", error))
                    return error->code;
            }
    return 0;
}

static int bench_mixed(struct bench *bench, struct ifl_error *error)
{
    static const int32_t chunks[] = {40, 200, 500, 2100}, n_decodes[] = {3, 13, 40};
    static const int32_t contexts[] = {60, 130, 330, 900, 2100};
    for (size_t i = 0; i < LENGTH(chunks); i++)
        for (size_t j = 0; j < LENGTH(contexts); j++)
            for (size_t k = 0; k < LENGTH(n_decodes); k++) {
                batch_clear(&bench->batch);
                if (batch_add(&bench->batch, 0, chunks[i]) &&
                    batch_add_many(&bench->batch, n_decodes[k], contexts[j], 1, BATCH_RAGGED) &&
                    bench_batch_attention(bench, "attention_mixed", error))
                    return error->code;
            }
    return 0;
}

int bench_attention(struct bench *bench, struct ifl_error *error)
{
    ifl_assert(bench->ceilings[CEILING_COPY] > 0 && bench->ceilings[CEILING_GEMM] > 0);
    if (bench_decodes(bench, error) || bench_prefills(bench, error))
        return error->code;
    return bench_mixed(bench, error);
}
