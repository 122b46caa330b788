#include "engine.h"
#include "adapters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "overlap.h"
#include "step_check.h"

/* ---- opening ---- */

static int check_shapes(const struct cuda_engine *engine, struct ifl_error *error)
{
    const struct ifl_engine_model *m = &engine->limits.model;
    if (m->d_head > 128)
        return ifl_fail(error, IFL_E_INPUT, "d_head is %d, executor cuda expects at most 128",
                        m->d_head);
    if (m->d_model % 8 || m->d_model > 16384)
        return ifl_fail(error, IFL_E_INPUT,
                        "d_model is %d, executor cuda expects a multiple of 8 up to 16384",
                        m->d_model);
    if (m->d_ffn % 8)
        return ifl_fail(error, IFL_E_INPUT, "d_ffn is %d, executor cuda expects a multiple of 8",
                        m->d_ffn);
    return 0;
}

/* Kernels number the pool's rows, one a token, head and layer of K or V, in 32 bits. */
static int check_pool(const struct cuda_engine *engine, struct ifl_error *error)
{
    const struct ifl_engine_options *o = &engine->limits;
    const size_t row_bytes = (size_t)engine->head_width * engine->kv_element_bytes;
    const size_t block_rows = engine->block_bytes / row_bytes;
    const double n_rows = (double)o->n_blocks * (double)block_rows;
    if (n_rows > INT32_MAX)
        return ifl_fail(error, IFL_E_INPUT,
                        "%d KV blocks hold %.0f keys and values, executor cuda expects at most %d",
                        o->n_blocks, n_rows, INT32_MAX);
    return 0;
}

/* A driver that is too old for this build is not the same as none: the machine has a device. */
static int count_devices(struct ifl_error *error)
{
    int n_devices = 0, driver = 0;
    const cudaError_t failed = cudaGetDeviceCount(&n_devices);
    if (failed == cudaErrorInsufficientDriver && !cudaDriverGetVersion(&driver) && driver > 0)
        return ifl_fail(error, IFL_E_DEVICE,
                        "the driver supports CUDA %d.%d, this build needs %d.%d: update the "
                        "driver, or build with an older toolkit",
                        driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                        CUDART_VERSION % 1000 / 10);
    if (failed || n_devices == 0)
        return ifl_fail(error, IFL_E_DEVICE, "no CUDA device: %s",
                        failed ? cudaGetErrorString(failed) : "none found");
    return 0;
}

/* The first call that needs a context; CUDA_VISIBLE_DEVICES chooses the device. */
static int take_device(const struct cudaDeviceProp *device, struct ifl_error *error)
{
    int mode = cudaComputeModeDefault;
    TRY_CUDA(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, 0));
    if (mode == cudaComputeModeProhibited)
        return ifl_fail(error, IFL_E_DEVICE,
                        "%.120s is in compute mode prohibited, expected default or exclusive "
                        "(nvidia-smi -c 0)",
                        device->name);
    cudaError_t failed = cudaSetDevice(0);
    if (!failed)
        failed = cudaFree(NULL);
    if (failed == cudaErrorDevicesUnavailable && mode == cudaComputeModeExclusiveProcess)
        return ifl_fail(error, IFL_E_DEVICE,
                        "%.120s is in exclusive mode and another process has it: wait for that "
                        "process, or choose another device (CUDA_VISIBLE_DEVICES)",
                        device->name);
    if (failed == cudaErrorDevicesUnavailable)
        return ifl_fail(error, IFL_E_DEVICE,
                        "%.120s is busy or unavailable: end what uses it, or choose another device "
                        "(CUDA_VISIBLE_DEVICES)",
                        device->name);
    return failed ? cuda_fail(error, "cudaSetDevice", failed) : 0;
}

static int find_device(struct ifl_error *error)
{
    TRY(count_devices(error));
    struct cudaDeviceProp device;
    TRY_CUDA(cudaGetDeviceProperties(&device, 0));
    if (device.major < 8)
        return ifl_fail(error, IFL_E_DEVICE,
                        "%.120s has compute capability %d.%d, executor cuda expects 8.0 or more",
                        device.name, device.major, device.minor);
    return take_device(&device, error);
}

/* Attention cuts a batch into as many pieces as the device works on at a time. */
static int set_pass_limits(struct cuda_engine *engine, struct ifl_error *error)
{
    const struct ifl_engine_model *m = &engine->limits.model;
    const struct attn_args attn = {
        .element = engine->element,
        .n_heads = m->n_q_heads,
        .kv = {.n_kv_heads = m->n_kv_heads,
               .head_dim = engine->head_width,
               .is_e4m3 = cuda_has_e4m3(engine)},
    };
    struct attn_prefill_slots slots;
    int32_t n_shares;
    TRY_CUDA(attn_decode_shares(&attn, &n_shares));
    TRY_CUDA(attn_prefill_slots(&attn, &slots));
    pass_limits_set(&engine->pass_limits, &engine->limits, engine->architecture.window_tokens,
                    n_shares, slots);
    return 0;
}

static enum element element_of(enum ifl_engine_dtype dtype, const struct checkpoint *checkpoint)
{
    const char *name = "model.embed_tokens.weight";
    if (checkpoint && !checkpoint_has(checkpoint, name))
        name = "lm_head.weight";
    const bool is_fp16 = checkpoint && checkpoint_type(checkpoint, name) == TENSOR_F16;
    if (dtype == IFL_DTYPE_AUTO)
        return is_fp16 ? ELEMENT_FP16 : ELEMENT_BF16;
    return dtype == IFL_DTYPE_FP16 ? ELEMENT_FP16 : ELEMENT_BF16;
}

static int set_up(struct cuda_engine *engine, const struct checkpoint *checkpoint,
                  struct ifl_error *error)
{
    const struct ifl_engine_model *m = &engine->limits.model;
    engine->element = element_of(engine->limits.dtype, checkpoint);
    const enum ifl_engine_dtype own =
        engine->element == ELEMENT_BF16 ? IFL_DTYPE_BF16 : IFL_DTYPE_FP16;
    TRY(dtype_check("kv_dtype", engine->limits.kv_dtype, own, IFL_DTYPE_FP8, "cuda", error));
    struct weight_source source = {.checkpoint = checkpoint,
                                   .seed = engine->limits.seed,
                                   .n_threads = engine->limits.n_threads,
                                   .greatest = engine->element == ELEMENT_FP16 ? 65504 : 0,
                                   .notes = engine->limits.notes};
    TRY(weights_settle_tie(&source, &engine->limits.model, error));
    engine->head_width = m->d_head <= 64 ? 64 : 128;
    engine->kv_element_bytes = cuda_has_e4m3(engine) ? sizeof(uint8_t) : sizeof(uint16_t);
    engine->logit_stride = (m->n_vocab + 7) / 8 * 8;
    engine->block_bytes = 2 * (size_t)m->n_layers * (size_t)m->n_kv_heads *
                          (size_t)engine->limits.block_tokens * (size_t)engine->head_width *
                          engine->kv_element_bytes;
    TRY(check_shapes(engine, error));
    TRY(check_pool(engine, error));
    TRY(find_device(error));
    TRY(set_pass_limits(engine, error));
    engine->gemm.is_lost = &engine->is_lost;
    TRY(gemm_create(&engine->gemm, engine->element, error));
    TRY(cuda_take_memory(engine, error));
    TRY(cuda_load_angles(engine, error));
    if (engine->limits.bench_bytes > 0)
        TRY(cuda_fill_bench(engine, error));
    TRY(cuda_load_weights(engine, &source, error));
    if (m->n_layers > 1)
        engine->layer_bytes = (size_t)((const char *)engine->at[1][WEIGHT_NORM_IN] -
                                       (const char *)engine->at[0][WEIGHT_NORM_IN]);
    return cuda_warm(engine, error);
}

static int open_checkpoint_and_set_up(struct cuda_engine *engine, struct ifl_error *error)
{
    struct checkpoint checkpoint = {0};
    const char *dir = engine->limits.weights_dir;
    int rc = architecture_of(&engine->limits, &engine->architecture, error);
    engine->limits.model = engine->architecture.model;
    engine->limits.window_tokens = engine->architecture.window_tokens;
    if (rc == 0 && dir)
        rc = checkpoint_open(dir, &checkpoint, error);
    if (rc == 0)
        rc = set_up(engine, dir ? &checkpoint : NULL, error);
    checkpoint_close(&checkpoint);
    engine->limits.weights_dir = NULL;
    return rc;
}

void cuda_drain(struct cuda_engine *engine)
{
    const cudaStream_t streams[] = {engine->stream, engine->moves.out, engine->moves.in};
    struct ifl_error dropped;
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (streams[i] && !engine->is_lost)
            (void)wait_stream(streams[i], &engine->is_lost, &dropped);
}

static void engine_close(void *self)
{
    struct cuda_engine *engine = self;
    if (!engine)
        return;
    cuda_drain(engine);
    if (!engine->is_lost) { /* CUDA waits before it frees; a lost one's memory stays */
        cuda_give_memory(engine);
        gemm_finish(&engine->gemm);
    }
    free(engine);
}

static int engine_open(const struct ifl_engine_options *options, void **self,
                       struct ifl_error *error)
{
    *self = NULL;
    if (limits_check(options, error) < 0 || adapters_refuse(options, error) < 0 ||
        dtype_check("dtype", options->dtype, IFL_DTYPE_BF16, IFL_DTYPE_FP16, "cuda", error) < 0)
        return error->code;
    struct cuda_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return ifl_fail_nomem(error);
    engine->limits = *options;
    launches_may_overlap = !cuda_does_without(engine, IFL_WITHOUT_DEPENDENT_LAUNCH);
    const int rc = open_checkpoint_and_set_up(engine, error);
    if (rc < 0)
        engine_close(engine);
    else
        *self = engine;
    return rc;
}

/* ---- a step ---- */

/* The plan's pinned memory is written anew once the pass before has been sent. */
int cuda_send_plan(struct cuda_engine *engine, const struct ifl_engine_step *step,
                   struct ifl_error *error)
{
    TRY(wait_event(engine->plan_copied, &engine->is_lost, error));
    const size_t n_bytes = pass_write(&engine->pass_limits, step, &engine->pass, engine->plan_host);
    TRY_CUDA(cudaMemcpyAsync(engine->plan, engine->plan_host, n_bytes, cudaMemcpyHostToDevice,
                             engine->stream));
    TRY_CUDA(cudaEventRecord(engine->plan_copied, engine->stream));
    return 0;
}

/* *n_rows is the number of rows of logits so far. */
static int run_pass(struct cuda_engine *engine, const struct ifl_engine_step *step, int32_t *n_rows,
                    struct ifl_error *error)
{
    const size_t at = (size_t)*n_rows, n_vocab = (size_t)engine->limits.model.n_vocab;
    const int32_t n = engine->pass.n_logit_rows;
    TRY(cuda_send_plan(engine, step, error));
    TRY(cuda_open_ballot(engine, step, error));
    TRY(cuda_forward(engine, step->logits ? step->logits + at * n_vocab : NULL, error));
    if (n > 0)
        TRY_CUDA(cudaMemcpyAsync(engine->sampled_host + at, engine->scratch.sampled,
                                 (size_t)n * sizeof *engine->sampled_host, cudaMemcpyDeviceToHost,
                                 engine->stream));
    *n_rows += n;
    return 0;
}

static int compute(struct cuda_engine *engine, const struct ifl_engine_step *step, int32_t *n_rows,
                   struct ifl_error *error)
{
    const volatile sig_atomic_t *stop = engine->limits.stop;
    struct pass_cursor cursor = {0};
    while (pass_cut(&engine->pass_limits, step, &cursor, &engine->pass)) {
        if (stop && *stop)
            return ifl_fail(error, IFL_E_INTERRUPTED, "interrupted");
        TRY(run_pass(engine, step, n_rows, error));
    }
    return 0;
}

/* All work that is enqueued when the end event is recorded belongs to the step. */
static int enqueue(struct cuda_engine *engine, const struct ifl_engine_step *step, int32_t *n_rows,
                   struct ifl_error *error)
{
    TRY_CUDA(cudaEventRecord(engine->started, engine->stream));
    TRY(cuda_move_blocks(engine, step, error));
    TRY(compute(engine, step, n_rows, error));
    if (step->n_outs > 0)
        TRY_CUDA(cudaStreamWaitEvent(engine->stream, engine->moves.out_done, 0));
    if (step->n_ins > 0)
        TRY_CUDA(cudaStreamWaitEvent(engine->stream, engine->moves.in_done, 0));
    TRY_CUDA(cudaEventRecord(engine->ended, engine->stream));
    return wait_event(engine->ended, &engine->is_lost, error);
}

static int engine_step(void *self, struct ifl_engine_step *step, struct ifl_error *error)
{
    struct cuda_engine *engine = self;
    int32_t n_rows = 0;
    float lasted_ms = 0;
    TRY(step_check(&engine->limits, step, error));
    TRY(cuda_open_votes(engine, step, error));
    const int rc = enqueue(engine, step, &n_rows, error);
    if (rc < 0) {
        cuda_drain(engine); /* the caller's arrays may still be read */
        return rc;
    }
    if (n_rows > 0)
        memcpy(step->sampled, engine->sampled_host, (size_t)n_rows * sizeof *step->sampled);
    TRY_CUDA(cudaEventElapsedTime(&lasted_ms, engine->started, engine->ended));
    step->device_ns = (int64_t)llround((double)lasted_ms * 1e6);
    return 0;
}

/* ---- blocks in and out ---- */

static size_t engine_block_bytes(const void *self)
{
    const struct cuda_engine *engine = self;
    return engine->block_bytes;
}

static char *block_at(const struct cuda_engine *engine, enum ifl_engine_pool pool, uint32_t block)
{
    return (pool == IFL_DEVICE_POOL ? engine->kv : engine->host) + block * engine->block_bytes;
}

static int engine_read_block(void *self, enum ifl_engine_pool pool, uint32_t block, void *bytes,
                             struct ifl_error *error)
{
    struct cuda_engine *engine = self;
    TRY(block_check(&engine->limits, pool, block, error));
    const char *from = block_at(engine, pool, block);
    if (pool == IFL_DEVICE_POOL) {
        TRY_CUDA(cudaMemcpyAsync(bytes, from, engine->block_bytes, cudaMemcpyDeviceToHost,
                                 engine->stream));
        return wait_stream(engine->stream, &engine->is_lost, error);
    }
    memcpy(bytes, from, engine->block_bytes);
    return 0;
}

static int engine_write_block(void *self, enum ifl_engine_pool pool, uint32_t block,
                              const void *bytes, struct ifl_error *error)
{
    struct cuda_engine *engine = self;
    TRY(block_check(&engine->limits, pool, block, error));
    char *to = block_at(engine, pool, block);
    if (pool == IFL_DEVICE_POOL)
        return cuda_send(engine, to, bytes, engine->block_bytes, error);
    memcpy(to, bytes, engine->block_bytes);
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
        .name = "cuda",
        .open = engine_open,
        .step = engine_step,
        .block_bytes = engine_block_bytes,
        .read_block = engine_read_block,
        .write_block = engine_write_block,
        .close = engine_close,
        .describe = cuda_describe,
        .measure = cuda_measure,
        .send_blocks = cuda_send_blocks,
        .receive_blocks = cuda_receive_blocks,
};
