#include "engine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "blas.h"
#include "float_bits.h"
#include "inflight/minmax.h"
#include "step_check.h"
#include "step_slots.h"

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- opening ---- */

/* The checkpoint is opened first: the number of weights depends on whether embeddings are tied. */
static int load(struct cpu_engine *engine, struct weight_source *source, struct ifl_error *error)
{
    int rc = weights_settle_tie(source, &engine->limits.model, error);
    if (rc == 0)
        rc = cpu_take_memory(engine, error);
    return rc == 0 ? cpu_load_weights(engine, source, error) : rc;
}

static int open_and_load(struct cpu_engine *engine, struct ifl_error *error)
{
    const struct ifl_engine_options *o = &engine->limits;
    struct checkpoint checkpoint = {0};
    struct weight_source source = {.seed = o->seed, .n_threads = o->n_threads, .notes = o->notes};
    int rc = 0;
    if (o->weights_dir) {
        rc = checkpoint_open(o->weights_dir, &checkpoint, error);
        source.checkpoint = &checkpoint;
    }
    if (rc == 0)
        rc = load(engine, &source, error);
    checkpoint_close(&checkpoint);
    return rc;
}

static void cpu_close(void *self)
{
    if (self)
        cpu_give_memory(self);
    free(self);
}

static void set_elements(struct cpu_engine *engine)
{
    const struct ifl_engine_options *o = &engine->limits;
    const struct ifl_engine_model *m = &o->model;
    engine->element_bytes = cpu_has_e4m3(engine) ? 1 : sizeof(float);
    engine->block_bytes = 2 * (size_t)m->n_layers * (size_t)m->n_kv_heads *
                          (size_t)o->block_tokens * (size_t)m->d_head * engine->element_bytes;
    for (int code = 0; code < 256; code++)
        engine->widened[code] = float_from_e4m3((uint8_t)code);
}

static int cpu_open(const struct ifl_engine_options *options, void **self, struct ifl_error *error)
{
    *self = NULL;
    if (limits_check(options, error) < 0 ||
        dtype_check("dtype", options->dtype, IFL_DTYPE_FP32, IFL_DTYPE_FP32, "cpu", error) < 0 ||
        dtype_check("kv_dtype", options->kv_dtype, IFL_DTYPE_FP32, IFL_DTYPE_FP8, "cpu", error) < 0)
        return error->code;
    struct cpu_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return ifl_fail_nomem(error);
    engine->limits = *options;
    int rc = architecture_of(options, &engine->architecture, error);
    engine->limits.model = engine->architecture.model;
    engine->limits.window_tokens = engine->architecture.window_tokens;
    engine->end_layer = engine->limits.model.n_layers;
    set_elements(engine);
    if (rc == 0)
        rc = open_and_load(engine, error);
    if (rc == 0)
        rc = cpu_open_adapters(engine, error);
    if (rc == 0 && options->n_stages > 0)
        rc = cpu_take_stages(engine, options->stage_layers, error);
    engine->limits.weights_dir = NULL;
    engine->limits.stage_layers = NULL;
    engine->limits.adapter_ranks = NULL;
    engine->limits.adapter_dirs = NULL;
    blas_set_threads(options->n_stages > 0 ? ifl_max(1, options->n_threads / options->n_stages)
                                           : options->n_threads);
    if (rc < 0)
        cpu_close(engine);
    else
        *self = engine;
    return rc;
}

/* ---- a step ---- */

/* The layers of a stage lie side by side in a block. */
struct layer_bytes {
    size_t first, n;
};

static struct layer_bytes layer_bytes(const struct cpu_engine *engine)
{
    const size_t of_layer = engine->block_bytes / (size_t)engine->limits.model.n_layers;
    return (struct layer_bytes){(size_t)engine->first_layer * of_layer,
                                (size_t)(engine->end_layer - engine->first_layer) * of_layer};
}

static void copy_blocks(const struct cpu_engine *engine, const unsigned char *from,
                        unsigned char *to, const struct ifl_copy *copies, size_t n)
{
    const size_t n_bytes = engine->block_bytes;
    const struct layer_bytes part = layer_bytes(engine);
    for (size_t i = 0; i < n; i++)
        memmove(to + copies[i].to * n_bytes + part.first,
                from + copies[i].from * n_bytes + part.first, part.n);
}

static void keep_head(const struct cpu_engine *engine, const struct ifl_engine_keep *keep,
                      int32_t layer, int32_t kv_head, const int32_t *kept)
{
    const int32_t block_tokens = engine->limits.block_tokens;
    const size_t row_bytes = (size_t)engine->limits.model.d_head * engine->element_bytes;
    for (int32_t k_or_v = 0; k_or_v < 2; k_or_v++)
        for (int32_t to = 0; to < keep->n_kept; to++) { /* rising: no slot is read once written */
            const int32_t from = kept[to];
            memmove(cpu_block_row(engine, keep->block_ids[to / block_tokens], layer, k_or_v,
                                  kv_head, to % block_tokens),
                    cpu_block_row(engine, keep->block_ids[from / block_tokens], layer, k_or_v,
                                  kv_head, from % block_tokens),
                    row_bytes);
        }
}

static void keep_slots(const struct cpu_engine *engine, const struct ifl_engine_keep *keep)
{
    const struct ifl_engine_model *m = &engine->limits.model;
    const int32_t *kept =
        keep->kept + (size_t)engine->first_layer * (size_t)m->n_kv_heads * (size_t)keep->n_kept;
    for (int32_t layer = engine->first_layer; layer < engine->end_layer; layer++)
        for (int32_t head = 0; head < m->n_kv_heads; head++, kept += keep->n_kept)
            keep_head(engine, keep, layer, head, kept);
}

static void move_blocks(struct cpu_engine *engine, const struct ifl_engine_step *step)
{
    copy_blocks(engine, engine->kv, engine->host, step->outs, step->n_outs);
    copy_blocks(engine, engine->host, engine->kv, step->ins, step->n_ins);
    copy_blocks(engine, engine->kv, engine->kv, step->copies, step->n_copies);
    for (size_t i = 0; i < step->n_keeps; i++)
        keep_slots(engine, &step->keeps[i]);
    const struct layer_bytes part = layer_bytes(engine);
    for (size_t i = 0; i < step->n_spoilt; i++) /* all bits set: NaN */
        memset(engine->kv + step->spoilt[i] * engine->block_bytes + part.first, 0xff, part.n);
}

/* The engine's layers of a step, or a stage's. */
static int compute(struct cpu_engine *engine, struct ifl_engine_step *step, float *handed,
                   struct ifl_error *error)
{
    const volatile sig_atomic_t *stop = engine->limits.stop;
    float *logits = step->logits;
    int32_t *sampled = step->sampled;
    move_blocks(engine, step);
    for (int32_t row = 0; row < step->n_tokens; row += CPU_PASS_TOKENS) {
        const int32_t left = step->n_tokens - row;
        const struct cpu_pass pass = {engine,      step,  row, ifl_min(left, CPU_PASS_TOKENS),
                                      step->votes, handed};
        const int32_t n_rows = cpu_forward(&pass, sampled, logits);
        if (n_rows > 0)
            sampled += n_rows;
        if (logits)
            logits += (size_t)n_rows * (size_t)engine->limits.model.n_vocab;
        if (stop && *stop)
            return ifl_fail(error, IFL_E_INTERRUPTED, "interrupted");
    }
    return 0;
}

static int cpu_step(void *self, struct ifl_engine_step *step, struct ifl_error *error)
{
    struct cpu_engine *engine = self;
    const int64_t start_ns = clock_ns();
    if (step_check(&engine->limits, step, error) < 0)
        return error->code;
    step_clear_votes(step, &engine->limits.model);
    const int rc = compute(engine, step, NULL, error);
    step->device_ns = clock_ns() - start_ns;
    return rc;
}

static int cpu_stage(void *self, int32_t stage, int32_t slot, struct ifl_engine_step *step,
                     struct ifl_error *error)
{
    struct cpu_engine *engine = self;
    const struct ifl_engine_options *o = &engine->limits;
    const int64_t start_ns = clock_ns();
    ifl_require(stage >= 0 && stage < o->n_stages && slot >= 0 && slot < o->max_in_flight);
    if (stage == 0) {
        if (step_check(o, step, error) < 0)
            return error->code;
        step_clear_votes(step, &engine->limits.model);
        step->device_ns = 0;
    }
    float *handed =
        engine->handed + (size_t)slot * (size_t)o->max_step_tokens * (size_t)o->model.d_model;
    const int rc = compute(&engine->stages[stage], step, handed, error);
    step->device_ns += clock_ns() - start_ns;
    return rc;
}

/* ---- blocks in and out ---- */

static size_t cpu_block_bytes(const void *self)
{
    const struct cpu_engine *engine = self;
    return engine->block_bytes;
}

static unsigned char *block_at(const struct cpu_engine *engine, enum ifl_engine_pool pool,
                               uint32_t block)
{
    return (pool == IFL_DEVICE_POOL ? engine->kv : engine->host) + block * engine->block_bytes;
}

static int cpu_read_block(void *self, enum ifl_engine_pool pool, uint32_t block, void *bytes,
                          struct ifl_error *error)
{
    if (block_check(&((struct cpu_engine *)self)->limits, pool, block, error) < 0)
        return error->code;
    memcpy(bytes, block_at(self, pool, block), cpu_block_bytes(self));
    return 0;
}

static int cpu_write_block(void *self, enum ifl_engine_pool pool, uint32_t block, const void *bytes,
                           struct ifl_error *error)
{
    if (block_check(&((struct cpu_engine *)self)->limits, pool, block, error) < 0)
        return error->code;
    memcpy(block_at(self, pool, block), bytes, cpu_block_bytes(self));
    return 0;
}

static int cpu_send_blocks(void *self, const uint32_t *blocks, size_t n, void *bytes,
                           struct ifl_error *error)
{
    const struct cpu_engine *engine = self;
    if (blocks_check(&engine->limits, blocks, n, error) < 0)
        return error->code;
    for (size_t i = 0; i < n; i++)
        memcpy((unsigned char *)bytes + i * engine->block_bytes,
               block_at(engine, IFL_DEVICE_POOL, blocks[i]), engine->block_bytes);
    return 0;
}

static int cpu_receive_blocks(void *self, const uint32_t *blocks, size_t n, const void *bytes,
                              struct ifl_error *error)
{
    const struct cpu_engine *engine = self;
    if (blocks_check(&engine->limits, blocks, n, error) < 0)
        return error->code;
    for (size_t i = 0; i < n; i++)
        memcpy(block_at(engine, IFL_DEVICE_POOL, blocks[i]),
               (const unsigned char *)bytes + i * engine->block_bytes, engine->block_bytes);
    return 0;
}

const struct ifl_engine ifl_engine_v1
#if defined(__GNUC__)
    __attribute__((visibility("default")))
#endif
    = {
        .abi = IFL_ENGINE_ABI,
        .engine_bytes = sizeof(struct ifl_engine),
        .options_bytes = sizeof(struct ifl_engine_options),
        .step_bytes = sizeof(struct ifl_engine_step),
        .name = "cpu",
        .open = cpu_open,
        .step = cpu_step,
        .block_bytes = cpu_block_bytes,
        .read_block = cpu_read_block,
        .write_block = cpu_write_block,
        .close = cpu_close,
        .describe = cpu_describe,
        .measure = cpu_measure,
        .stage = cpu_stage,
        .send_blocks = cpu_send_blocks,
        .receive_blocks = cpu_receive_blocks,
};
