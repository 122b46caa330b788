#include "run/adapter_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cost/adapter_cost.h"

enum { MAX_RANKS = 256, MAX_RANK = 4096 };

/* K/V slots of an adapter where no model is named: its A and B for queries, keys, values and
 * outputs, each of as many numbers as a token's K and V (S-LoRA, req_queue.py: 4 x rank). */
enum { SLOTS_PER_RANK = 4 };

void adapter_names_keep(struct adapter_names *names, struct ifl_trace *trace)
{
    *names = (struct adapter_names){trace->adapter_names, trace->n_adapters};
    trace->adapter_names = NULL;
    trace->n_adapters = 0;
}

void adapter_names_free(struct adapter_names *names)
{
    for (uint32_t i = 0; i < names->n; i++)
        free(names->of[i]);
    free(names->of);
    *names = (struct adapter_names){0};
}

static int fail_ranks(const struct config *config, const char *found, struct ifl_error *error)
{
    return ifl_fail_at(error, config->path, 0, 0,
                       "adapters.ranks is '%s' from '%s' on, expected up to %d numbers from 1 to "
                       "%d with commas between them",
                       config->adapters.ranks, found, MAX_RANKS, MAX_RANK);
}

static int read_ranks(const struct config *config, int32_t ranks[MAX_RANKS], size_t *n,
                      struct ifl_error *error)
{
    const char *at = config->adapters.ranks;
    for (*n = 0; *n < MAX_RANKS;) {
        char *end;
        errno = 0;
        const long rank = strtol(at, &end, 10);
        if (end == at || errno != 0 || rank < 1 || rank > MAX_RANK)
            return fail_ranks(config, at, error);
        ranks[(*n)++] = (int32_t)rank;
        end += strspn(end, " ");
        if (*end == '\0')
            return 0;
        if (*end != ',')
            return fail_ranks(config, end, error);
        at = end + 1;
    }
    return fail_ranks(config, at, error);
}

/* The number that the name is, or `otherwise` if it is none. */
static uint64_t number_of(const char *name, uint64_t otherwise)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(name, &end, 10);
    const bool digits = *name && strspn(name, "0123456789") == strlen(name);
    return digits && errno == 0 ? number : otherwise;
}

static int64_t slots_of(const struct machine *machine, const struct config *config, int32_t rank)
{
    const struct model *model = &machine->model;
    if (!machine->has_model)
        return (int64_t)SLOTS_PER_RANK * rank;
    const int64_t bytes =
        adapter_bytes(model, (enum adapter_matrices)config->adapters.matrices, rank);
    const int64_t slot_bytes =
        (int64_t)2 * model->layers * model->n_kv_heads * model->d_head * model->kv_bytes;
    return (bytes + slot_bytes - 1) / slot_bytes;
}

static struct adapter describe(const struct machine *machine, const struct config *config,
                               int32_t rank)
{
    const int32_t block_tokens = config->serving.kv.block_tokens;
    const int64_t n_slots = slots_of(machine, config, rank);
    const enum adapter_matrices matrices = (enum adapter_matrices)config->adapters.matrices;
    return (struct adapter){
        .rank = rank,
        .n_blocks = (int32_t)((n_slots + block_tokens - 1) / block_tokens),
        .n_bytes = machine->has_model ? adapter_bytes(&machine->model, matrices, rank) : 0,
    };
}

static int check(const struct config *config, const struct machine *machine, const int32_t *ranks,
                 size_t n_ranks, struct ifl_error *error)
{
    const struct adapter_serving_config *serving = &config->serving.adapters;
    const int32_t most = serving->max_rank;
    if (serving->memory == ADAPTER_POOL && config->serving.kv.allocator == KV_BUDDY)
        return ifl_fail_at(error, config->path, 0, 0,
                           "serving.adapters.memory is pool with serving.kv.allocator buddy, "
                           "expected paged: adapters take single blocks");
    if (serving->max_cpu_loras > 0 && serving->max_cpu_loras < serving->max_loras)
        return ifl_fail_at(error, config->path, 0, 0,
                           "serving.adapters.max_cpu_loras is %d, expected 0 or max_loras (%d) or "
                           "more",
                           serving->max_cpu_loras, serving->max_loras);
    if (config->adapters.matrices == ADAPTER_ALL && machine->has_model &&
        machine->model.n_experts > 0)
        return ifl_fail_at(error, config->path, 0, 0,
                           "adapters.matrices is all, and the model has experts, expected qv or "
                           "qkvo");
    if (machine->has_model && (model_is_latent(&machine->model) || machine->model.q_lora_rank > 0))
        return ifl_fail_at(error, config->path, 0, 0,
                           "adapters on %s are not modelled: its attention is latent "
                           "(kv_lora_rank, q_lora_rank), expected a model with heads of K and V",
                           machine->model.name);
    for (size_t i = 0; i < n_ranks && most > 0; i++)
        if (ranks[i] > most)
            return ifl_fail_at(error, config->path, 0, 0,
                               "adapters.ranks has %d, expected at most serving.adapters.max_rank "
                               "(%d)",
                               ranks[i], most);
    return 0;
}

int adapter_table_make(const struct ifl_trace *trace, const struct config *config,
                       const struct machine *machine, struct adapter_table *table,
                       struct ifl_error *error)
{
    int32_t ranks[MAX_RANKS];
    size_t n_ranks;
    *table = (struct adapter_table){0};
    if (trace->n_adapters == 0)
        return 0;
    if (read_ranks(config, ranks, &n_ranks, error) < 0 ||
        check(config, machine, ranks, n_ranks, error) < 0)
        return error->code;
    const size_t n = (size_t)trace->n_adapters + 1;
    table->of = calloc(n, sizeof *table->of);
    table->blocks = calloc(n, sizeof *table->blocks);
    if (!table->of || !table->blocks)
        return ifl_fail_nomem(error);
    table->n = trace->n_adapters;
    for (uint32_t i = 1; i <= table->n; i++) {
        const uint64_t number = number_of(trace->adapter_names[i - 1], i - 1);
        table->of[i] = describe(machine, config, ranks[number % n_ranks]);
        table->blocks[i] = table->of[i].n_blocks;
    }
    return 0;
}

void adapter_table_free(struct adapter_table *table)
{
    free(table->of);
    free(table->blocks);
    *table = (struct adapter_table){0};
}

void adapter_table_limit(const struct adapter_table *table, const struct config *config,
                         struct ifl_limits *limits)
{
    const struct adapter_serving_config *serving = &config->serving.adapters;
    limits->n_adapters = table->n;
    limits->max_adapters = table->n > 0 ? serving->max_loras : 0;
    limits->adapter_blocks = table->n > 0 && serving->memory == ADAPTER_POOL ? table->blocks : NULL;
}

struct adapters_options adapter_table_options(const struct adapter_table *table,
                                              const struct config *config)
{
    const struct adapter_serving_config *serving = &config->serving.adapters;
    return (struct adapters_options){
        .n = table->n,
        .of = table->of,
        .in_pool = serving->memory == ADAPTER_POOL,
        .device_slots = serving->max_loras,
        .host_slots = serving->max_cpu_loras,
    };
}

int32_t *adapter_table_ranks(const struct adapter_table *table)
{
    int32_t *ranks = calloc((size_t)table->n + 1, sizeof *ranks);
    for (uint32_t i = 0; ranks && i < table->n; i++)
        ranks[i] = table->of[i + 1].rank;
    return ranks;
}

struct adapter_cost adapter_table_cost(const struct machine *machine, const struct config *config)
{
    const struct adapter_serving_config *serving = &config->serving.adapters;
    const struct adapter_cost_options options = {
        .matrices = (enum adapter_matrices)config->adapters.matrices,
        .compute = (enum adapter_compute)serving->compute,
        .padded_rank = serving->max_rank,
        .tensor_parallel = config->tensor_parallel,
        .launch_s = serving->launch_us * 1e-6,
        .load_s = serving->load_s,
        .load_copies = serving->load_copies,
        .host_gb_per_s = serving->host_gb_per_s,
        .disk_gb_per_s = serving->disk_gb_per_s,
    };
    return adapter_cost_of(machine->has_model ? &machine->model : NULL,
                           machine->has_hardware ? &machine->platform.hardware : NULL, &options);
}
