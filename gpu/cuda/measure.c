/* Operations by themselves, timed by events as the forward pass enqueues them. */
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>

#include "engine.h"
#include "inflight/minmax.h"
#include "step_check.h"

static int refuse(const struct cuda_engine *engine, size_t n_bytes, struct ifl_error *error)
{
    return ifl_fail(error, IFL_E_DEVICE,
                    "an operation to measure takes %zu bytes, the engine was opened for %zu",
                    n_bytes, engine->limits.bench_bytes);
}

/* ---- numbers to work on ---- */

/* Random signs and fractions, exponents of -3 and below: products stay finite. Each byte is an e4m3
 * below 2. */
static void make_numbers(uint16_t *numbers, size_t n)
{
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        numbers[i] = (uint16_t)((state & 0x803fu) | (0x3a00u + (state >> 32 & 0x180u)));
    }
}

/* Sends the given numbers once and doubles them on the device until the memory is full. */
static int fill(struct cuda_engine *engine, char *memory, size_t n_bytes, const uint16_t *numbers,
                size_t numbers_bytes, struct ifl_error *error)
{
    size_t filled = ifl_min(numbers_bytes, n_bytes);
    TRY(cuda_send(engine, memory, numbers, filled, error));
    for (size_t n; filled < n_bytes; filled += n) {
        n = ifl_min(filled, n_bytes - filled);
        TRY_CUDA(
            cudaMemcpyAsync(memory + filled, memory, n, cudaMemcpyDeviceToDevice, engine->stream));
    }
    return 0;
}

/* Scratch is filled, too: a measured operation reads there the output of one that did not run. */
static int fill_all(struct cuda_engine *engine, const uint16_t *numbers, size_t n_bytes,
                    struct ifl_error *error)
{
    const struct ifl_engine_model *m = &engine->limits.model;
    const struct cuda_scratch *s = &engine->scratch;
    const size_t rows = (size_t)engine->pass_limits.max_rows * sizeof(uint16_t);
    const size_t heads = (size_t)m->n_q_heads + 2 * (size_t)m->n_kv_heads;
    const size_t kv_bytes = (size_t)engine->limits.n_blocks * engine->block_bytes;
    TRY(fill(engine, engine->bench, engine->limits.bench_bytes, numbers, n_bytes, error));
    TRY(fill(engine, engine->kv, kv_bytes, numbers, n_bytes, error));
    TRY(fill(engine, s->x, rows * (size_t)m->d_model, numbers, n_bytes, error));
    TRY(fill(engine, s->qkv, rows * heads * (size_t)engine->head_width, numbers, n_bytes, error));
    TRY(fill(engine, s->gate_up, rows * 2 * (size_t)m->d_ffn, numbers, n_bytes, error));
    return wait_stream(engine->stream, &engine->is_lost, error);
}

int cuda_fill_bench(struct cuda_engine *engine, struct ifl_error *error)
{
    const size_t n_bytes = (size_t)1 << 20;
    uint16_t *numbers = malloc(n_bytes);
    if (!numbers)
        return ifl_fail_nomem(error);
    make_numbers(numbers, n_bytes / sizeof *numbers);
    const int rc = fill_all(engine, numbers, n_bytes, error);
    free(numbers);
    return rc;
}

/* ---- on the bench ---- */

static int copy(struct cuda_engine *engine, const struct ifl_engine_op *op, struct ifl_error *error)
{
    const size_t host_bytes = (size_t)engine->limits.n_host_blocks * engine->block_bytes;
    const size_t half = engine->limits.bench_bytes / 2;
    const bool within = op->kind == IFL_OP_COPY;
    if (op->n_bytes > half || (!within && op->n_bytes > host_bytes))
        return refuse(engine, 2 * op->n_bytes, error);
    void *const to = op->kind == IFL_OP_COPY_OUT ? engine->host : engine->bench;
    const void *from = within                        ? engine->bench + half
                       : op->kind == IFL_OP_COPY_OUT ? engine->bench
                                                     : engine->host;
    TRY_CUDA(cudaMemcpyAsync(to, from, op->n_bytes, cudaMemcpyDefault, engine->stream));
    return 0;
}

static size_t aligned(size_t n_bytes)
{
    return (n_bytes + 255) & ~(size_t)255;
}

/* The number of weights that the rounds take in turn. In a step all other weights are read between
 * two uses of one, so the copies together have the model's size, as far as they fit. */
static size_t n_weights(const struct cuda_engine *engine, size_t fit, size_t w_bytes)
{
    const size_t n = (engine->weights_bytes + w_bytes - 1) / w_bytes;
    return ifl_min(n, fit);
}

/* x, y, then the weights. */
static int product(struct cuda_engine *engine, const struct ifl_engine_op *op,
                   struct ifl_error *error)
{
    const size_t n = (size_t)op->n, k = (size_t)op->k, rows = (size_t)gemm_rows(op->m);
    const size_t x_bytes = aligned(rows * k * sizeof(uint16_t));
    const size_t y_bytes = aligned(rows * n * sizeof(uint16_t));
    const size_t w_bytes = aligned(n * k * sizeof(uint16_t));
    if (x_bytes + y_bytes + w_bytes > engine->limits.bench_bytes)
        return refuse(engine, x_bytes + y_bytes + w_bytes, error);
    const size_t fit = (engine->limits.bench_bytes - x_bytes - y_bytes) / w_bytes;
    const struct gemm_call call = {
        .x = engine->bench,
        .y = engine->bench + x_bytes,
        .w = engine->bench + x_bytes + y_bytes +
             op->round % n_weights(engine, fit, w_bytes) * w_bytes,
        .n_rows = op->m,
        .n = op->n,
        .k = op->k,
    };
    return gemm_run(&engine->gemm, &call, engine->stream, error);
}

/* ---- on the rows of a step ---- */

static int send_step(struct cuda_engine *engine, const struct ifl_engine_op *op,
                     struct ifl_error *error)
{
    struct pass_cursor cursor = {0};
    int32_t n_rows = 0;
    TRY(step_check(&engine->limits, op->step, error));
    if (!pass_cut(&engine->pass_limits, op->step, &cursor, &engine->pass))
        return ifl_fail(error, IFL_E_DEVICE, "a step to measure has no token");
    for (int32_t i = 0; i < engine->pass.n_pieces; i++)
        n_rows += engine->pass.pieces[i].n;
    if (n_rows < op->step->n_tokens)
        return ifl_fail(error, IFL_E_DEVICE,
                        "a step to measure has %d tokens, of which a pass takes %d",
                        op->step->n_tokens, n_rows);
    TRY(cuda_send_plan(engine, op->step, error));
    return wait_stream(engine->stream, &engine->is_lost,
                       error); /* not a part of what is measured */
}

static int enqueue(struct cuda_engine *engine, const struct ifl_engine_op *op,
                   struct ifl_error *error)
{
    if (op->kind == IFL_OP_GEMM)
        return product(engine, op, error);
    if (op->kind == IFL_OP_COPY || op->kind == IFL_OP_COPY_OUT || op->kind == IFL_OP_COPY_IN)
        return copy(engine, op, error);
    return cuda_run_op(engine, op->kind,
                       (int32_t)(op->round % (uint32_t)engine->limits.model.n_layers), error);
}

/* Keeps the device busy until all measured launches are enqueued: a launch takes the host 5 us, a
 * small kernel runs for 2 us, and the device's wait would be timed. The work is two products of
 * 17 GFLOP, 40 us on the fastest device. */
static int occupy(struct cuda_engine *engine, struct ifl_error *error)
{
    size_t cube = 2048;
    while (cube > 8 && 3 * cube * cube * sizeof(uint16_t) > engine->limits.bench_bytes)
        cube /= 2;
    const int32_t n = (int32_t)cube;
    const struct ifl_engine_op op = {.kind = IFL_OP_GEMM, .m = n, .n = n, .k = n};
    TRY(product(engine, &op, error));
    return product(engine, &op, error);
}

static int time_op(struct cuda_engine *engine, struct ifl_engine_op *op, struct ifl_error *error)
{
    float lasted_ms = 0;
    if (op->kind >= IFL_OP_NORM)
        TRY(send_step(engine, op, error));
    TRY(occupy(engine, error));
    TRY_CUDA(cudaEventRecord(engine->started, engine->stream));
    TRY(enqueue(engine, op, error));
    TRY_CUDA(cudaEventRecord(engine->ended, engine->stream));
    TRY(wait_event(engine->ended, &engine->is_lost, error));
    TRY_CUDA(cudaEventElapsedTime(&lasted_ms, engine->started, engine->ended));
    op->ns = (int64_t)llround((double)lasted_ms * 1e6);
    return 0;
}

int cuda_measure(void *self, struct ifl_engine_op *op, struct ifl_error *error)
{
    const int rc = time_op(self, op, error);
    if (rc < 0)
        cuda_drain(self); /* the caller's arrays may still be read */
    return rc;
}

/* ---- the machine ---- */

int cuda_describe(const void *self, struct ifl_engine_machine *machine, struct ifl_error *error)
{
    const struct cuda_engine *engine = self;
    struct cudaDeviceProp properties;
    int driver = 0, runtime = 0;
    TRY_CUDA(cudaGetDeviceProperties(&properties, 0));
    TRY_CUDA(cudaDriverGetVersion(&driver));
    TRY_CUDA(cudaRuntimeGetVersion(&runtime));
    *machine = (struct ifl_engine_machine){
        .memory_gib = (double)properties.totalGlobalMem / 1073741824.0,
        .n_units = properties.multiProcessorCount,
        .element_bytes = sizeof(uint16_t),
    };
    snprintf(machine->processor, sizeof machine->processor, "%.120s", properties.name);
    snprintf(machine->software, sizeof machine->software,
             "CUDA driver %d.%d, runtime %d.%d, cuBLASLt %zu, %s", driver / 1000,
             driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10, cublasLtGetVersion(),
             engine->element == ELEMENT_BF16 ? "bf16" : "fp16");
    return 0;
}
