/* Low-rank adapters: all of a step's, in batches.
 *
 * Rows of one adapter that follow one another, such as those of a prompt, or of neighbours in the
 * batch with the same adapter, are one product with A and one with B. */
#include <stdlib.h>

#include "adapters.h"
#include "blas.h"
#include "engine.h"
#include "inflight/minmax.h"

/* ---- memory and numbers ---- */

int32_t cpu_most_rank(const struct cpu_engine *engine)
{
    const struct ifl_engine_options *o = &engine->limits;
    int32_t most = 0;
    for (int32_t i = 0; i < o->n_adapters; i++)
        most = ifl_max(most, o->adapter_ranks[i]);
    return most;
}

/* The place of an adapter's A in the layer; its B follows. */
static const float **place_of(const struct cpu_engine *engine, int32_t adapter, int32_t layer,
                              enum adapter_target target)
{
    const size_t at = (size_t)(adapter - 1) * (size_t)engine->limits.model.n_layers + (size_t)layer;
    return &engine->adapters.at[(at * N_ADAPTER_TARGETS + (size_t)target) * 2];
}

static int fill(struct cpu_engine *engine, const struct adapter_source *source, int32_t layer,
                enum adapter_target target, float **next, struct ifl_error *error)
{
    const struct adapter_matrix matrix = adapter_matrix_of(&engine->limits.model, target);
    const size_t rank = (size_t)engine->limits.adapter_ranks[source->adapter - 1];
    int rc = 0;
    for (int is_b = 0; rc == 0 && is_b < 2; is_b++) {
        const struct adapter_place place = {layer, target, is_b};
        rc = adapter_fill(source, &place, *next, error);
        place_of(engine, source->adapter, layer, target)[is_b] = *next;
        *next += rank * (size_t)(is_b ? matrix.n_out : matrix.n_in);
    }
    return rc;
}

static int fill_all(struct cpu_engine *engine, int32_t adapter, float **next,
                    struct ifl_error *error)
{
    struct adapter_source source;
    int rc = adapter_open(&engine->limits, adapter, &source, error);
    for (int32_t layer = 0; rc == 0 && layer < engine->limits.model.n_layers; layer++)
        for (enum adapter_target target = 0; rc == 0 && target < N_ADAPTER_TARGETS; target++)
            if (adapter_has(engine->limits.adapter_matrices, target))
                rc = fill(engine, &source, layer, target, next, error);
    adapter_close(&source);
    return rc;
}

int cpu_open_adapters(struct cpu_engine *engine, struct ifl_error *error)
{
    const struct ifl_engine_options *o = &engine->limits;
    const size_t n = (size_t)o->n_adapters, n_layers = (size_t)o->model.n_layers;
    size_t n_numbers = 0;
    if (n == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        n_numbers += (size_t)adapter_count(o, o->adapter_ranks[i]);
    struct cpu_adapters *adapters = &engine->adapters;
    adapters->at = calloc(n * n_layers * N_ADAPTER_TARGETS * 2, sizeof *adapters->at);
    adapters->numbers = malloc((n_numbers ? n_numbers : 1) * sizeof *adapters->numbers);
    adapters->ranks = malloc(n * sizeof *adapters->ranks);
    if (!adapters->at || !adapters->numbers || !adapters->ranks)
        return ifl_fail_nomem(error);
    float *next = adapters->numbers;
    int rc = 0;
    for (int32_t adapter = 1; rc == 0 && adapter <= o->n_adapters; adapter++) {
        adapters->ranks[adapter - 1] = o->adapter_ranks[adapter - 1];
        rc = fill_all(engine, adapter, &next, error);
    }
    return rc;
}

void cpu_close_adapters(struct cpu_engine *engine)
{
    free(engine->adapters.at);
    free(engine->adapters.numbers);
    free(engine->adapters.ranks);
}

/* ---- a pass ---- */

static int32_t adapter_of(const struct cpu_pass *pass, int32_t seq)
{
    return pass->step->adapters[seq];
}

/* Rows [from, to) of the pass have the adapter. */
static void add_rows(const struct cpu_pass *pass, int32_t layer, enum adapter_target target,
                     const struct cpu_adapted *of, int32_t from, int32_t to, int32_t adapter)
{
    const struct cpu_engine *engine = pass->engine;
    const struct adapter_matrix matrix = adapter_matrix_of(&engine->limits.model, target);
    const float *const *at = place_of(engine, adapter, layer, target);
    const int32_t rank = engine->adapters.ranks[adapter - 1], n = to - from;
    const struct matrix x = {of->x + (size_t)from * (size_t)of->x_stride, of->x_stride};
    if (!at[0])
        return;
    blas_multiply_transposed(n, rank, matrix.n_in, 1, x, (struct matrix){at[0], matrix.n_in}, 0,
                             engine->scratch.narrow, rank);
    blas_multiply_transposed(
        n, matrix.n_out, rank, 1, (struct matrix){engine->scratch.narrow, rank},
        (struct matrix){at[1], rank}, 1, of->y + (size_t)from * (size_t)of->y_stride, of->y_stride);
}

void cpu_adapt(const struct cpu_pass *pass, int32_t layer, enum adapter_target target,
               const struct cpu_adapted *of)
{
    const struct ifl_engine_step *step = pass->step;
    if (!step->adapters || pass->engine->limits.n_adapters == 0)
        return;
    const int32_t end = pass->first + pass->n;
    int32_t seq = 0;
    while (step->first_token[seq + 1] <= pass->first)
        seq++;
    for (int32_t row = pass->first; row < end;) {
        const int32_t adapter = adapter_of(pass, seq), from = row;
        for (; row < end && adapter_of(pass, seq) == adapter; seq++)
            row = ifl_min(step->first_token[seq + 1], end);
        if (adapter > 0)
            add_rows(pass, layer, target, of, from - pass->first, row - pass->first, adapter);
    }
}
