#include "import/settle.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "import/names.h"

void settle_put(struct settled *s, const char *key, const char *format, ...)
{
    char yaml[1024];
    struct node *value;
    va_list args;
    if (s->code < 0)
        return;
    va_start(args, format);
    vsnprintf(yaml, sizeof yaml, format, args);
    va_end(args);
    s->code = tree_parse(yaml, strlen(yaml), key, &value, s->error);
    if (s->code == 0)
        s->code = tree_put(s->root, key, value, s->error);
    tree_free(value);
}

void settle_find(struct settled *s, enum finding_kind kind, struct place at, const char *what,
                 const char *key, const char *says)
{
    if (s->code == 0)
        s->code = facts_find(s->facts, kind, at, what, key, says, s->error);
}

void settle_assume(struct settled *s, const char *key, const char *value, const char *says)
{
    settle_put(s, key, "%s", value);
    settle_find(s, FOUND_ASSUMED, (struct place){0}, "", key, says);
}

void settle_fail(struct settled *s, const char *name, const char *format, ...)
{
    const struct fact *fact = name ? facts_get(s->facts, name) : NULL;
    const char *file = s->log ? s->log : s->facts->server_at.file;
    const struct place at = fact ? fact->at : (struct place){file, 0};
    char text[512];
    va_list args;
    if (s->code < 0)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->code = facts_fail(at, s->error, "%s", text);
}

long long settle_number(struct settled *s, const char *name, long long dflt)
{
    const char *text = facts_text(s->facts, name);
    long long count = dflt;
    if (text && !count_read(text, &count))
        settle_fail(s, name, "%s is %.100s, expected a whole number of at most 2^30", name, text);
    return count;
}

long long settle_at_least_1(struct settled *s, const char *name, long long dflt)
{
    const long long count = settle_number(s, name, dflt);
    if (facts_get(s->facts, name) && count < 1)
        settle_fail(s, name, "%s is %lld, expected at least 1", name, count);
    return count;
}

void settle_count(struct settled *s, const char *name, const char *key)
{
    const long long count = settle_number(s, name, 0);
    if (count > 0)
        settle_put(s, key, "%lld", count);
}

void settle_count_or(struct settled *s, const char *name, const char *key, const char *dflt,
                     const char *says)
{
    if (settle_at_least_1(s, name, 0) > 0)
        settle_count(s, name, key);
    else
        settle_assume(s, key, dflt, says);
}

double settle_real_or(struct settled *s, const char *name, double dflt)
{
    const char *text = facts_text(s->facts, name);
    char *end = NULL;
    const double x = text ? strtod(text, &end) : dflt;
    if (text && (end == text || *end || x - x != 0))
        settle_fail(s, name, "%s is %.100s, expected a number", name, text);
    return x;
}

void settle_real(struct settled *s, const char *name, const char *key)
{
    const double x = settle_real_or(s, name, 0);
    if (facts_text(s->facts, name))
        settle_put(s, key, "%.15g", x);
}

void settle_decide(struct settled *s, const char *const *names, enum finding_kind kind,
                   const char *key, const char *says)
{
    for (; *names; names++)
        facts_decide(s->facts, *names, kind, key, says);
}

const struct gpu_name *settle_gpu(const struct settled *s)
{
    const char *name = facts_text(s->facts, "gpu");
    const struct gpu_name *gpu = name ? gpu_name_find(name) : NULL;
    return gpu ? gpu : s->profile.memory_gib > 0 ? &s->profile : NULL;
}

static void settle_hardware(struct settled *s)
{
    const char *name = facts_text(s->facts, "gpu");
    const struct gpu_name *gpu = name ? gpu_name_find(name) : NULL;
    const char *chosen = facts_text(s->facts, "chosen_hardware");
    if (chosen || (gpu && gpu->profile))
        settle_put(s, "hardware", "%s", chosen ? chosen : gpu->profile);
    else
        settle_find(s, FOUND_UNKNOWN, s->facts->server_at, name ? name : "no GPU is named", NULL,
                    "no profile of configs/hardware has this name: set hardware");
}

/* auto is the checkpoint's; engine.dtype has the same word. */
static void settle_dtype(struct settled *s, const char *name, const char *key)
{
    static const char *const names[][2] = {
        {"bfloat16", "bf16"}, {"bf16", "bf16"},    {"float16", "fp16"}, {"half", "fp16"},
        {"fp16", "fp16"},     {"float32", "fp32"}, {"float", "fp32"},   {"fp32", "fp32"},
        {"fp8", "fp8"},       {"fp8_e4m3", "fp8"}, {"FP8", "fp8"},      {"fp8_ds_mla", "fp8"}};
    const char *dtype = facts_text(s->facts, name);
    for (size_t i = 0; dtype && i < sizeof names / sizeof *names; i++)
        if (strcmp(dtype, names[i][0]) == 0)
            settle_put(s, key, "%s", names[i][1]);
}

void settle_common(struct settled *s, const char *tensor, const char *pipeline,
                   const char *replicas)
{
    settle_model(s);
    settle_weights(s);
    settle_width(s);
    settle_hardware(s);
    settle_dtype(s, "dtype", "engine.dtype");
    settle_dtype(s, "kv_cache_dtype", "engine.kv_dtype");
    if (settle_at_least_1(s, tensor, 1) > 1)
        settle_count(s, tensor, "parallel.tensor");
    if (settle_at_least_1(s, pipeline, 1) > 1)
        settle_count(s, pipeline, "parallel.pipeline");
    if (settle_at_least_1(s, replicas, 1) > 1)
        settle_count(s, replicas, "cluster.replicas");
}

struct rank_names tensor_ranks(const char *argument)
{
    return (struct rank_names){"tp_ranks", "TP", argument, "parallel.tensor",
                               "no argument says how many GPUs share the model: as many ranks log "
                               "here, on one node"};
}

/* The highest number of several logs; NULL: none says it. */
static const struct fact *most_ranks(const struct facts *facts, const char *name)
{
    const struct fact *most = NULL;
    for (size_t i = 0; i < facts->n; i++)
        if (strcmp(facts->of[i].name, name) == 0 &&
            (!most || atol(facts->of[i].value) > atol(most->value)))
            most = &facts->of[i];
    return most;
}

void settle_ranks(struct settled *s, const struct rank_names *names)
{
    const struct fact *fact = most_ranks(s->facts, names->fact);
    const long n_ranks = fact ? atol(fact->value) : 0;
    const long long asked = settle_at_least_1(s, names->argument, n_ranks);
    const struct place at = fact ? fact->at : (struct place){0};
    char value[32];
    if (s->code < 0 || !fact)
        return;
    if (n_ranks > asked)
        s->code = facts_fail(at, s->error, "rank %s%ld logs, but %s is %lld", names->name,
                             n_ranks - 1, names->argument, asked);
    if (s->code < 0 || facts_get(s->facts, names->argument))
        return;
    snprintf(value, sizeof value, "%ld", n_ranks);
    s->code = facts_also(s->facts, names->argument, value, at, s->error);
    settle_find(s, FOUND_ASSUMED, at, "", names->key, names->says);
}

static bool has_pool(const struct facts *facts)
{
    static const char *const names[] = {"num_gpu_blocks", "kv_tokens", "unread_tokens",
                                        "num_tokens", "pool_tokens"};
    bool has = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        has = has || facts_get(facts, names[i]);
    return has;
}

void settle_started(struct settled *s)
{
    const struct fact *failed = facts_get(s->facts, "start_failed");
    const struct fact *memory = facts_get(s->facts, "memory_lacks");
    const struct fact *fact = failed ? failed : memory;
    char more[512] = "";
    /* TensorRT-LLM has a pool for the run that measures memory, and says so only while it starts */
    const bool starts = failed && s->facts->server == SERVER_TRTLLM;
    if (s->code < 0 || !fact || (has_pool(s->facts) && !starts))
        return;
    if (failed && memory)
        snprintf(more, sizeof more, " (line %ld of %.200s: %.200s)", memory->at.line,
                 memory->at.file, memory->value);
    s->code = facts_fail(fact->at, s->error,
                         "the server did not start: %.200s%s, expected the log of one that did",
                         fact->value, more);
}

/* tokens / block_tokens blocks where `num_gpu_blocks` is not said; 0: neither is said. */
static long long count_blocks(struct settled *s, long long block_tokens)
{
    const long long tokens = settle_at_least_1(s, "num_tokens", 0);
    const long long blocks = settle_at_least_1(s, "num_gpu_blocks", 0);
    if (tokens > 0 && blocks > 0 && tokens != blocks * block_tokens)
        settle_fail(s, "num_tokens", "%lld tokens of K/V are not %lld blocks of %lld", tokens,
                    blocks, block_tokens);
    if (tokens > 0 && tokens % block_tokens != 0)
        settle_fail(s, "num_tokens", "%lld tokens of K/V, expected a multiple of a block's %lld",
                    tokens, block_tokens);
    return blocks > 0 ? blocks : tokens / block_tokens;
}

void settle_pool(struct settled *s, const struct pool_names *names)
{
    const long long block = settle_number(s, names->block, names->dflt);
    const long long asked = settle_number(s, names->tokens, 0);
    char dflt[32];
    if (block < 1)
        settle_fail(s, names->block, "%s is %lld, expected at least 1", names->block, block);
    if (s->code < 0)
        return;
    /* A block of vLLM's log is of all ranks that share a context. */
    const long long n_sharing = settle_number(s, "decode_context_parallel_size", 1);
    const long long blocks = count_blocks(s, block * n_sharing);
    if (blocks == 0 && s->from_log)
        settle_fail(s, NULL, "%s: the log ends too early", names->missing);
    snprintf(dflt, sizeof dflt, "%lld", names->dflt);
    if (facts_get(s->facts, names->block))
        settle_put(s, "serving.kv.block_tokens", "%lld", block);
    else
        settle_assume(s, "serving.kv.block_tokens", dflt, names->dflt_is);
    const long long rounding = names->rounds_up ? block - 1 : 0;
    if (blocks > 0 || asked > 0)
        settle_put(s, "serving.kv.num_blocks", "%lld",
                   blocks > 0 ? blocks : (asked + rounding) / block);
}
