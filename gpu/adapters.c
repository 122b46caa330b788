#include "adapters.h"

#include <math.h>

#include "inflight/random.h"
#include "weights.h"

enum { MAX_RANK = 4096 };

struct adapter_matrix adapter_matrix_of(const struct ifl_engine_model *m,
                                        enum adapter_target target)
{
    const int32_t q = m->n_q_heads * m->d_head, kv = m->n_kv_heads * m->d_head;
    switch (target) {
    case ADAPTER_OF_Q:
        return (struct adapter_matrix){m->d_model, q};
    case ADAPTER_OF_K:
    case ADAPTER_OF_V:
        return (struct adapter_matrix){m->d_model, kv};
    case ADAPTER_OF_OUT:
        return (struct adapter_matrix){q, m->d_model};
    case ADAPTER_OF_DOWN:
        return (struct adapter_matrix){m->d_ffn, m->d_model};
    default:
        return (struct adapter_matrix){m->d_model, m->d_ffn};
    }
}

bool adapter_has(enum ifl_engine_adapter_matrices matrices, enum adapter_target target)
{
    if (matrices == IFL_ADAPTER_QV)
        return target == ADAPTER_OF_Q || target == ADAPTER_OF_V;
    return target <= ADAPTER_OF_OUT || matrices == IFL_ADAPTER_ALL;
}

int64_t adapter_count(const struct ifl_engine_options *options, int32_t rank)
{
    int64_t n = 0;
    for (enum adapter_target target = 0; target < N_ADAPTER_TARGETS; target++) {
        const struct adapter_matrix matrix = adapter_matrix_of(&options->model, target);
        if (adapter_has(options->adapter_matrices, target))
            n += (int64_t)rank * (matrix.n_in + matrix.n_out);
    }
    return n * options->model.n_layers;
}

void adapter_fill(const struct ifl_engine_options *options, const struct adapter_place *place,
                  float *numbers)
{
    const struct adapter_matrix matrix = adapter_matrix_of(&options->model, place->target);
    const int32_t rank = options->adapter_ranks[place->adapter - 1];
    const int32_t n_of_layer = 2 * N_ADAPTER_TARGETS;
    const uint64_t at = (uint64_t)place->layer * (uint64_t)n_of_layer +
                        2 * (uint64_t)place->target + (uint64_t)place->is_b;
    const uint64_t role = (uint64_t)N_WEIGHT_ROLES + (uint64_t)place->adapter;
    const struct weight_drawing drawing = {
        .key = ifl_draw(options->seed, IFL_DRAW_WEIGHT, role, at),
        .deviation = place->is_b ? 0.1 / sqrt(rank) : 1 / sqrt(matrix.n_in),
        .n_threads = options->n_threads,
    };
    weights_draw(&drawing, numbers,
                 (size_t)rank * (size_t)(place->is_b ? matrix.n_out : matrix.n_in));
}

int adapters_check(const struct ifl_engine_options *options, struct ifl_error *error)
{
    if (options->n_adapters < 0 || (options->n_adapters > 0 && !options->adapter_ranks))
        return ifl_fail(error, IFL_E_INPUT, "n_adapters is %d, expected 0 or the number of ranks",
                        options->n_adapters);
    for (int32_t i = 0; i < options->n_adapters; i++)
        if (options->adapter_ranks[i] < 1 || options->adapter_ranks[i] > MAX_RANK)
            return ifl_fail(error, IFL_E_INPUT, "adapter %d has rank %d, expected 1 to %d", i + 1,
                            options->adapter_ranks[i], MAX_RANK);
    return 0;
}

int adapters_refuse(const struct ifl_engine_options *options, struct ifl_error *error)
{
    return options->n_adapters == 0
               ? 0
               : ifl_fail(error, IFL_E_INPUT,
                          "n_adapters is %d, expected 0: the engine runs no LoRA adapters",
                          options->n_adapters);
}
