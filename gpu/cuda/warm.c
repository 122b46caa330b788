/* What the first steps would wait for, done when the engine opens: cuBLASLt's choices and modules,
 * the kernels' modules, and a graph for each number of decodes. */
#include <cuda_runtime_api.h>

#include "engine.h"
#include "inflight/minmax.h"

static bool is_stopped(const struct cuda_engine *engine)
{
    const volatile sig_atomic_t *stop = engine->limits.stop;
    return stop && *stop;
}

/* The greatest bucket first: memory that libraries take for it serves the others. */
static int32_t bucket_below(int32_t n_rows)
{
    int32_t below = n_rows - 1;
    while (below > 0 && gemm_rows(below) == n_rows)
        below--;
    return below;
}

static int warm_products(struct cuda_engine *engine, struct ifl_error *error)
{
    for (int32_t n = gemm_rows(engine->pass_limits.max_rows); n > 0; n = bucket_below(n)) {
        if (is_stopped(engine))
            return ifl_fail(error, IFL_E_INTERRUPTED, "interrupted");
        TRY(cuda_warm_products(engine, n, error));
    }
    return 0;
}

/* A pass of decodes that are all padding. */
static int send_padding(struct cuda_engine *engine, int32_t n_rows, struct ifl_error *error)
{
    const struct ifl_engine_step none = {0};
    struct pass *pass = &engine->pass;
    pass->n_pieces = pass->n_logit_rows = 0;
    pass->prefill.n_items = pass->prefill.n_merges = 0;
    pass->shape = (struct pass_shape){
        .n_rows = n_rows, .n_decodes = n_rows, .n_logit_rows = n_rows, .is_graph = true};
    return cuda_send_plan(engine, &none, error);
}

static int capture_decodes(struct cuda_engine *engine, struct ifl_error *error)
{
    const struct pass_limits *limits = &engine->pass_limits;
    const int32_t n_seqs = ifl_min(limits->max_seqs, limits->max_rows);
    for (int32_t n = gemm_rows(ifl_min(n_seqs, PASS_GRAPH_SEQS)); n > 0; n = bucket_below(n)) {
        if (is_stopped(engine))
            return ifl_fail(error, IFL_E_INTERRUPTED, "interrupted");
        TRY(send_padding(engine, n, error));
        TRY(cuda_capture(engine, error));
    }
    return 0;
}

int cuda_warm(struct cuda_engine *engine, struct ifl_error *error)
{
    engine->gemm.times = !cuda_does_without(engine, IFL_WITHOUT_TIMED_ALGORITHMS);
    TRY(warm_products(engine, error));
    engine->gemm.times = false;
    TRY(send_padding(engine, 1, error)); /* a capture forbids that modules are loaded */
    TRY(cuda_warm_kernels(engine, error));
    if (!cuda_does_without(engine, IFL_WITHOUT_GRAPHS))
        TRY(capture_decodes(engine, error));
    return wait_stream(engine->stream, &engine->is_lost, error);
}
