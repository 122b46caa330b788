/* All of the engine's memory, taken once. */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "host_memory.h"
#include "inflight/minmax.h"
#include "rope.h"

static const double GIB = 1073741824.0;

static int fail_room(const struct cpu_engine *engine, const struct host_memory *host,
                     struct ifl_error *error)
{
    const double block_gib = (double)engine->block_bytes / GIB;
    return ifl_fail(error, IFL_E_NOMEM,
                    "out of memory: in fp32 the engine asks for %.2f GiB of weights, %.2f of KV "
                    "blocks, %.2f of host blocks and %.2f to measure on; it may have %.2f GiB, "
                    "%.2f of them free",
                    (double)weights_count(&engine->limits.model) * sizeof(float) / GIB,
                    engine->limits.n_blocks * block_gib, engine->limits.n_host_blocks * block_gib,
                    (double)engine->limits.bench_bytes / GIB, host->all_bytes / GIB,
                    host->free_bytes / GIB);
}

/* Linux overcommits and kills a process that touches more than there is: this refuses first. */
static bool has_room(const struct cpu_engine *engine, size_t n_weights,
                     const struct host_memory *host)
{
    const double kv_bytes = (double)engine->limits.n_blocks * (double)engine->block_bytes;
    return (double)n_weights * sizeof(float) + kv_bytes + (double)engine->limits.bench_bytes <=
           host->free_bytes;
}

static int take(float **array, size_t n)
{
    *array = malloc((n ? n : 1) * sizeof **array);
    return *array ? 0 : IFL_E_NOMEM;
}

static int take_scratch(struct cpu_engine *engine)
{
    const struct ifl_engine_model *m = &engine->limits.model;
    struct cpu_scratch *s = &engine->scratch;
    const size_t n = (size_t)ifl_min(engine->limits.max_step_tokens, CPU_PASS_TOKENS);
    const size_t d_head = (size_t)m->d_head, q_width = (size_t)m->n_q_heads * d_head;
    const size_t group = (size_t)(m->n_q_heads / m->n_kv_heads);
    if (take(&s->x, n * (size_t)m->d_model) < 0 || take(&s->normed, n * (size_t)m->d_model) < 0 ||
        take(&s->qkv, n * (q_width + 2 * (size_t)m->n_kv_heads * d_head)) < 0 ||
        take(&s->attended, n * q_width) < 0 || take(&s->gate_up, n * 2 * (size_t)m->d_ffn) < 0 ||
        take(&s->activated, n * (size_t)m->d_ffn) < 0 ||
        take(&s->scores, ifl_max(group, CPU_QUERY_ROWS) * (size_t)engine->limits.max_tokens) < 0 ||
        take(&s->tile, CPU_KEY_ROWS * d_head) < 0 ||
        take(&s->span, (size_t)engine->limits.block_tokens * d_head) < 0 ||
        take(&s->logits, CPU_LOGIT_ROWS * (size_t)m->n_vocab) < 0 ||
        take(&s->narrow, n * (size_t)cpu_most_rank(engine)) < 0)
        return IFL_E_NOMEM;
    return 0;
}

/* The host pool is calloc'd: a page that no swap touches takes no memory. */
int cpu_take_memory(struct cpu_engine *engine, struct ifl_error *error)
{
    const struct ifl_engine_options *o = &engine->limits;
    const struct ifl_engine_model *m = &o->model;
    const size_t n_weights = (size_t)weights_count(m);
    const size_t n_angles = (size_t)o->max_tokens * ((size_t)m->d_head / 2);
    struct host_memory host;
    host_memory_read("", &host);
    if (!has_room(engine, n_weights, &host))
        return fail_room(engine, &host, error);
    engine->at = calloc((size_t)m->n_layers, sizeof *engine->at);
    engine->host = calloc((size_t)o->n_host_blocks + 1, engine->block_bytes);
    engine->kv = malloc((size_t)o->n_blocks * engine->block_bytes);
    if (!engine->at || !engine->host || !engine->kv || take(&engine->weights, n_weights) < 0 ||
        take(&engine->bench, o->bench_bytes / sizeof(float)) < 0 ||
        take(&engine->cosines, n_angles) < 0 || take(&engine->sines, n_angles) < 0 ||
        take_scratch(engine) < 0)
        return fail_room(engine, &host, error);
    rope_table(&engine->architecture, o->max_tokens, engine->cosines, engine->sines);
    /* Touched here, so that no step pays for a page fault. */
    memset(engine->kv, 0, (size_t)o->n_blocks * engine->block_bytes);
    for (size_t i = 0; i < o->bench_bytes / sizeof(float); i++)
        engine->bench[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
    return 0;
}

static void give_scratch(const struct cpu_scratch *s)
{
    void *const arrays[] = {s->x,      s->normed, s->qkv,  s->attended, s->gate_up, s->activated,
                            s->scores, s->tile,   s->span, s->logits,   s->narrow};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
}

void cpu_give_memory(struct cpu_engine *engine)
{
    void *const arrays[] = {engine->weights, engine->bench,   engine->at,    engine->kv,
                            engine->host,    engine->cosines, engine->sines, engine->handed};
    give_scratch(&engine->scratch);
    for (int32_t s = 0; engine->stages && s < engine->limits.n_stages; s++)
        give_scratch(&engine->stages[s].scratch);
    free(engine->stages);
    cpu_close_adapters(engine);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
}

/* A page of `handed` that no step has reached takes no memory. */
int cpu_take_stages(struct cpu_engine *engine, const int32_t *layers, struct ifl_error *error)
{
    const struct ifl_engine_options *o = &engine->limits;
    struct cpu_engine *stages = calloc((size_t)o->n_stages, sizeof *stages);
    int32_t first = 0;
    engine->handed = calloc((size_t)o->max_in_flight * (size_t)o->max_step_tokens,
                            (size_t)o->model.d_model * sizeof *engine->handed);
    if (!stages || !engine->handed) {
        free(stages);
        return ifl_fail_nomem(error);
    }
    for (int32_t s = 0; s < o->n_stages; s++) {
        stages[s] = *engine;
        stages[s].scratch = (struct cpu_scratch){0};
        stages[s].first_layer = first;
        stages[s].end_layer = first += layers[s];
    }
    engine->stages = stages;
    for (int32_t s = 0; s < o->n_stages; s++)
        if (take_scratch(&stages[s]) < 0)
            return ifl_fail_nomem(error);
    return 0;
}

/* ---- weights ---- */

struct loading {
    struct cpu_engine *engine;
    const struct weight_source *source;
    float *next;
};

static int load_one(void *context, const struct weight *weight, struct ifl_error *error)
{
    struct loading *loading = context;
    const volatile sig_atomic_t *stop = loading->engine->limits.stop;
    if (stop && *stop)
        return ifl_fail(error, IFL_E_INTERRUPTED, "interrupted");
    loading->engine->at[weight->layer][weight->role] = loading->next;
    const int rc = weight_fill(loading->source, weight, loading->next, error);
    loading->next += weight->n_numbers;
    return rc;
}

int cpu_load_weights(struct cpu_engine *engine, const struct weight_source *source,
                     struct ifl_error *error)
{
    struct loading loading = {engine, source, engine->weights};
    return weights_for_each(&engine->limits.model, load_one, &loading, error);
}
