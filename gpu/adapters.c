#include "adapters.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- files ---- */

#define LAYERS "base_model.model.model.layers."

static const char *const products[N_ADAPTER_TARGETS] = {
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};

static int read_config(struct adapter_source *source, struct ifl_error *error)
{
    const int32_t expected = source->options->adapter_ranks[source->adapter - 1];
    char path[1024];
    json_error_t why;
    snprintf(path, sizeof path, "%s/adapter_config.json", source->dir);
    json_t *config = json_load_file(path, 0, &why);
    const json_t *rank = json_object_get(config, "r");
    const json_t *alpha = json_object_get(config, "lora_alpha");
    int rc = 0;
    if (!config)
        rc = ifl_fail_at(error, path, 0, 0, "%s", why.text);
    else if (!json_is_integer(rank) || json_integer_value(rank) != expected)
        rc = ifl_fail_at(error, path, 0, 0, "r is %lld, expected %d (adapters.ranks)",
                         (long long)json_integer_value(rank), expected);
    else if (!json_is_number(alpha))
        rc = ifl_fail_at(error, path, 0, 0, "there is no number lora_alpha");
    else if (json_is_true(json_object_get(config, "use_rslora")) ||
             json_object_size(json_object_get(config, "alpha_pattern")) > 0)
        rc = ifl_fail_at(error, path, 0, 0, "expected one scale, lora_alpha / r");
    else
        source->scale = (float)(json_number_value(alpha) / expected);
    json_decref(config);
    return rc;
}

static void name_of(const struct adapter_place *place, char *name, size_t size)
{
    snprintf(name, size, LAYERS "%d.%s.lora_%s.weight", place->layer, products[place->target],
             place->is_b ? "B" : "A");
}

/* False for what a layer, a product or a method (DoRA) that the adapters lack puts into a file. */
static bool is_known(const struct ifl_engine_options *options, const char *tensor)
{
    const size_t n = sizeof LAYERS - 1;
    const long layer = strncmp(tensor, LAYERS, n) == 0 ? strtol(tensor + n, NULL, 10) : -1;
    if (layer < 0 || layer >= options->model.n_layers)
        return false;
    for (int i = 0; i < 2 * N_ADAPTER_TARGETS; i++) {
        const struct adapter_place place = {(int32_t)layer, (enum adapter_target)(i / 2), i % 2};
        char name[160];
        name_of(&place, name, sizeof name);
        if (adapter_has(options->adapter_matrices, place.target) && strcmp(name, tensor) == 0)
            return true;
    }
    return false;
}

static int check_tensors(const struct adapter_source *source, struct ifl_error *error)
{
    for (size_t i = 0; i < source->file.n; i++)
        if (!is_known(source->options, source->file.of[i].name))
            return ifl_fail_at(error, source->file.path, 0, 0,
                               "tensor %.200s is no A or B of adapters.matrices in a layer of the "
                               "model",
                               source->file.of[i].name);
    return 0;
}

int adapter_open(const struct ifl_engine_options *options, int32_t adapter,
                 struct adapter_source *source, struct ifl_error *error)
{
    char path[1024];
    *source = (struct adapter_source){
        .options = options,
        .adapter = adapter,
        .file.fd = -1,
        .dir = options->adapter_dirs ? options->adapter_dirs[adapter - 1] : NULL};
    if (!source->dir)
        return 0;
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", source->dir);
    int rc = read_config(source, error);
    if (rc == 0)
        rc = safetensors_open(path, &source->file, error);
    return rc == 0 ? check_tensors(source, error) : rc;
}

void adapter_close(struct adapter_source *source)
{
    if (source->dir)
        safetensors_close(&source->file);
}

static int read_one(const struct adapter_source *source, const struct adapter_place *place,
                    int32_t n_rows, int32_t n_columns, float *numbers, struct ifl_error *error)
{
    const size_t n = (size_t)n_rows * (size_t)n_columns;
    char name[160];
    name_of(place, name, sizeof name);
    const struct tensor *tensor = safetensors_find(&source->file, name);
    if (!tensor) {
        memset(numbers, 0, n * sizeof *numbers);
        return 0;
    }
    if (tensor->n_dims != 2 || tensor->dims[0] != n_rows || tensor->dims[1] != n_columns)
        return ifl_fail_at(error, source->file.path, 0, 0, "tensor %s is not [%d][%d]", name,
                           n_rows, n_columns);
    const int rc = safetensors_read(&source->file, tensor, numbers, n, error);
    for (size_t i = 0; rc == 0 && place->is_b && i < n; i++)
        numbers[i] *= source->scale;
    return rc;
}

int adapter_fill(const struct adapter_source *source, const struct adapter_place *place,
                 float *numbers, struct ifl_error *error)
{
    const struct ifl_engine_options *options = source->options;
    const struct adapter_matrix matrix = adapter_matrix_of(&options->model, place->target);
    const int32_t rank = options->adapter_ranks[source->adapter - 1];
    const int32_t n_rows = place->is_b ? matrix.n_out : rank;
    const int32_t n_columns = place->is_b ? rank : matrix.n_in;
    const uint64_t at = ((uint64_t)place->layer * N_ADAPTER_TARGETS + (uint64_t)place->target) * 2 +
                        (uint64_t)place->is_b;
    const uint64_t role = (uint64_t)N_WEIGHT_ROLES + (uint64_t)source->adapter;
    const struct weight_drawing drawing = {
        .key = ifl_draw(options->seed, IFL_DRAW_WEIGHT, role, at),
        .deviation = place->is_b ? 0.1 / sqrt(rank) : 1 / sqrt(matrix.n_in),
        .n_threads = options->n_threads,
    };
    if (source->dir)
        return read_one(source, place, n_rows, n_columns, numbers, error);
    weights_draw(&drawing, numbers, (size_t)n_rows * (size_t)n_columns);
    return 0;
}

/* ---- what an engine is opened for ---- */

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
