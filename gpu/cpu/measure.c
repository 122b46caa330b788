/* Operations by themselves, timed as the forward pass runs them. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "blas.h"
#include "engine.h"
#include "inflight/minmax.h"
#include "step_check.h"

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- on the bench ---- */

static int refuse(const struct cpu_engine *engine, size_t n_bytes, struct ifl_error *error)
{
    return ifl_fail(error, IFL_E_DEVICE,
                    "an operation to measure takes %zu bytes, the engine was opened for %zu",
                    n_bytes, engine->limits.bench_bytes);
}

/* Out, in, within: host memory to host memory. */
static int copy(struct cpu_engine *engine, struct ifl_engine_op *op, struct ifl_error *error)
{
    float *half = engine->bench + engine->limits.bench_bytes / 2 / sizeof(float);
    if (op->n_bytes > engine->limits.bench_bytes / 2)
        return refuse(engine, 2 * op->n_bytes, error);
    const int64_t start_ns = clock_ns();
    memcpy(half, engine->bench, op->n_bytes);
    op->ns = clock_ns() - start_ns;
    return 0;
}

/* The number of weights that the rounds take in turn. In a step all other weights are read between
 * two uses of one, so the copies together have the model's size, as far as they fit. */
static size_t n_weights(const struct cpu_engine *engine, size_t fit, size_t n_numbers)
{
    const size_t n = ((size_t)weights_count(&engine->limits.model) + n_numbers - 1) / n_numbers;
    return ifl_min(n, fit);
}

/* x, y, then the weights. */
static int product(struct cpu_engine *engine, struct ifl_engine_op *op, struct ifl_error *error)
{
    const size_t n = (size_t)op->n, k = (size_t)op->k, n_rows = (size_t)op->m;
    const size_t has = engine->limits.bench_bytes / sizeof(float), x_y = n_rows * (n + k);
    if (x_y + n * k > has)
        return refuse(engine, (x_y + n * k) * sizeof(float), error);
    float *x = engine->bench, *y = x + n_rows * k, *w = y + n_rows * n;
    w += op->round % n_weights(engine, (has - x_y) / (n * k), n * k) * n * k;
    const int64_t start_ns = clock_ns();
    for (int32_t row = 0, m; row < op->m; row += m) {
        m = ifl_min(op->m - row, CPU_PASS_TOKENS);
        cpu_multiply(m, x + (size_t)row * k, w, n, k, y + (size_t)row * n);
    }
    op->ns = clock_ns() - start_ns;
    return 0;
}

/* ---- on the rows of a step ---- */

static void run_on(const struct cpu_pass *pass, enum ifl_engine_op_kind kind, int32_t layer)
{
    if (kind == IFL_OP_NORM)
        cpu_normalise(pass, pass->engine->at[layer][WEIGHT_NORM_IN]);
    else if (kind == IFL_OP_ROTARY)
        cpu_place(pass, layer);
    else if (kind == IFL_OP_ACTIVATION)
        cpu_activate(pass);
    else
        cpu_attend(pass, layer);
}

static int on_rows(struct cpu_engine *engine, struct ifl_engine_op *op, struct ifl_error *error)
{
    const int32_t layer = (int32_t)(op->round % (uint32_t)engine->limits.model.n_layers);
    if (step_check(&engine->limits, op->step, error) < 0)
        return error->code;
    const int64_t start_ns = clock_ns();
    for (int32_t row = 0, n; row < op->step->n_tokens; row += n) {
        const int32_t left = op->step->n_tokens - row;
        n = ifl_min(left, CPU_PASS_TOKENS);
        const struct cpu_pass pass = {engine, op->step, row, n, NULL};
        run_on(&pass, op->kind, layer);
    }
    op->ns = clock_ns() - start_ns;
    return 0;
}

int cpu_measure(void *self, struct ifl_engine_op *op, struct ifl_error *error)
{
    switch (op->kind) {
    case IFL_OP_COPY:
    case IFL_OP_COPY_OUT:
    case IFL_OP_COPY_IN:
        return copy(self, op, error);
    case IFL_OP_GEMM:
        return product(self, op, error);
    case IFL_OP_NORM:
    case IFL_OP_ROTARY:
    case IFL_OP_ACTIVATION:
    case IFL_OP_ATTENTION:
        return on_rows(self, op, error);
    }
    return ifl_fail(error, IFL_E_DEVICE, "there is no operation %d to measure", (int)op->kind);
}

/* ---- the machine ---- */

static void read_processor(char *name, size_t n_bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    snprintf(name, n_bytes, "unknown CPU");
    while (file && fgets(line, sizeof line, file)) {
        const char *is = strchr(line, ':');
        if (strncmp(line, "model name", strlen("model name")) != 0 || !is)
            continue;
        snprintf(name, n_bytes, "%.*s", (int)strcspn(is + 2, "\n"), is + 2);
        break;
    }
    if (file)
        fclose(file);
}

int cpu_describe(const void *self, struct ifl_engine_machine *machine, struct ifl_error *error)
{
    const struct cpu_engine *engine = self;
    const double page_bytes = (double)sysconf(_SC_PAGESIZE);
    (void)error;
    *machine = (struct ifl_engine_machine){
        .memory_gib = (double)sysconf(_SC_PHYS_PAGES) * page_bytes / 1073741824.0,
        .n_units = engine->limits.n_threads,
        .element_bytes = sizeof(float),
    };
    read_processor(machine->processor, sizeof machine->processor);
    blas_describe(machine->software, sizeof machine->software);
    return 0;
}
