#include "fit/calibrate/calibrate.h"

#include <string.h>
#include <time.h>

#include "base/engine_module.h"
#include "base/guard.h"
#include "cost/engine_model.h"
#include "fit/calibrate/bench.h"
#include "inflight/minmax.h"

/* The sizes of the measurements on each engine's kind of machine. */
static const struct scale {
    const char *engine;
    int32_t n_blocks, n_host_blocks, max_tokens, max_step_tokens;
    size_t bench_bytes;
} scales[] = {
    {"cpu", 1024, 1024, 1024, 1024, (size_t)512 << 20},
    {"cuda", 8192, 1024, 8192, 4096, (size_t)4 << 30},
};

static const struct scale *scale_of(const char *engine, struct ifl_error *error)
{
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (strcmp(scales[i].engine, engine) == 0)
            return &scales[i];
    ifl_fail(error, IFL_E_INPUT, "--engine is \"%s\", expected cpu or cuda", engine);
    return NULL;
}

static int set_limits(const struct calibration *calibration, struct ifl_engine_options *limits,
                      struct ifl_error *error)
{
    const struct scale *scale = scale_of(calibration->engine, error);
    if (!scale)
        return error->code;
    const int32_t n_blocks = calibration->n_blocks ? calibration->n_blocks : scale->n_blocks;
    const int32_t max_tokens = ifl_min(scale->max_tokens, calibration->model->max_model_len);
    *limits = (struct ifl_engine_options){
        .dtype = calibration->dtype,
        .seed = 1,
        .n_threads = calibration->n_threads,
        .block_tokens = 16,
        .n_blocks = n_blocks,
        .n_host_blocks = ifl_min(scale->n_host_blocks, n_blocks),
        .max_tokens = ifl_min(max_tokens, 16 * n_blocks),
        .max_step_tokens = scale->max_step_tokens,
        .max_step_seqs = 64,
        .bench_bytes = scale->bench_bytes,
        .stop = calibration->stop,
    };
    return engine_describe_model(calibration->model, &limits->model, error);
}

static int open_bench(const struct calibration *calibration, struct bench *bench,
                      struct ifl_error *error)
{
    if (set_limits(calibration, &bench->limits, error))
        return error->code;
    bench->engine = engine_module_load(calibration->engine, error);
    if (!bench->engine)
        return error->code;
    if (!bench->engine->measure || !bench->engine->describe)
        return ifl_fail(error, IFL_E_INPUT, "engine %s cannot be calibrated: it measures nothing",
                        bench->engine->name);
    if (bench->engine->open(&bench->limits, &bench->self, error) ||
        bench->engine->describe(bench->self, &bench->machine, error))
        return error->code;
    return batch_create(&bench->batch, &bench->limits, error);
}

static void write_remarks(const struct calibration *calibration, const struct bench *bench)
{
    char date[16] = "";
    const time_t now = time(NULL);
    struct tm day;
    if (gmtime_r(&now, &day))
        strftime(date, sizeof date, "%Y-%m-%d", &day);
    fprintf(bench->out,
            "# Written by inflight calibrate %s on %s; the columns are explained in "
            "sim/fit/calibrate/calibrate.h.\n"
            "# processor: %s\n# software: %s\n# engine: %s\n# model: %s\n# threads: %d\n"
            "# units: %d\n# memory_gib: %.2f\n",
            INFLIGHT_VERSION, date, bench->machine.processor, bench->machine.software,
            bench->engine->name, calibration->model->name, calibration->n_threads,
            bench->machine.n_units, bench->machine.memory_gib);
}

/* Moves blocks of one layer only. Together with the moves of whole blocks they tell the time of
 * each copy from the time of each byte. */
static int measure_small_moves(struct bench *bench, struct ifl_error *error)
{
    bench->engine->close(bench->self);
    bench->self = NULL;
    bench->limits.model.n_layers = 1;
    bench->limits.bench_bytes = 0;
    if (bench->engine->open(&bench->limits, &bench->self, error))
        return error->code;
    return bench_moves(bench, error);
}

/* Steps come before operations: they leave numbers in the buffers that the operations read. */
static int measure(struct bench *bench, struct ifl_error *error)
{
    if (bench_ceilings(bench, error) || bench_steps(bench, error) || bench_moves(bench, error) ||
        bench_attention(bench, error) || bench_rows(bench, error))
        return error->code;
    return bench_products(bench, error) ? error->code : measure_small_moves(bench, error);
}

static int run_bench(const struct calibration *calibration, FILE *out, struct ifl_error *error)
{
    struct bench bench = {.max_runs = calibration->max_runs, .out = out};
    int code = open_bench(calibration, &bench, error);
    if (!code) {
        write_remarks(calibration, &bench);
        bench_write_head(&bench);
        code = measure(&bench, error);
    }
    if (bench.self)
        bench.engine->close(bench.self);
    batch_finish(&bench.batch);
    return code;
}

int calibrate(const struct calibration *calibration, FILE *out, struct ifl_error *error)
{
    char module[64];
    snprintf(module, sizeof module, "engine %.50s", calibration->engine);
    const struct guard_call call = {module, "calibration"};
    const struct guard_call *before = guard_enter(&call);
    const int code = run_bench(calibration, out, error);
    guard_leave(before);
    return code;
}
