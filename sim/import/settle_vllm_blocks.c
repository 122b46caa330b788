/* The blocks of K/V by vLLM's log: a count, a size in tokens, and how many requests of
 * max_model_len fit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/model.h"

#include "import/names.h"
#include "import/settle_vllm.h"

/* Of what the workers say the least: all take as many blocks as the poorest. */
static const struct fact *least_kv(struct vllm *v, const struct fact **other)
{
    const struct facts *facts = v->s->facts;
    const struct fact *least = NULL;
    long long of_least = 0, count, n = 0;
    *other = NULL;
    for (size_t i = 0; i < facts->n; i++) {
        const struct fact *fact = &facts->of[i];
        if (strcmp(fact->name, "kv_tokens") != 0)
            continue;
        if ((!count_read(fact->value, &count) || count < 1) && v->s->code == 0)
            v->s->code = facts_fail(fact->at, v->s->error,
                                    "K/V of %.40s tokens, expected a whole number from 1 to 2^30",
                                    fact->value);
        if (v->s->code < 0)
            return NULL;
        n++;
        if (least && count != of_least)
            *other = count < of_least ? least : fact;
        if (!least || count < of_least) {
            least = fact;
            of_least = count;
        }
    }
    if (n <= v->world)
        *other = NULL;
    return least;
}

static long long least_tokens(struct vllm *v)
{
    const struct fact *other, *least = least_kv(v, &other);
    long long count = 0;
    if (other && v->s->code == 0)
        v->s->code = facts_fail(other->at, v->s->error,
                                "K/V of %.40s tokens, but line %ld of %.200s says %.40s, expected "
                                "one size of all replicas",
                                other->value, least->at.line, least->at.file, least->value);
    if (least)
        count_read(least->value, &count);
    return count;
}

static double least_concurrency(const struct facts *facts)
{
    double least = 0;
    for (size_t i = 0; i < facts->n; i++)
        if (strcmp(facts->of[i].name, "max_concurrency") == 0) {
            const double x = strtod(facts->of[i].value, NULL);
            least = !(least > 0) || x < least ? x : least;
        }
    return least;
}

static long long blocks_a_request(const struct vllm *v)
{
    return (v->max_model_len + v->block_size - 1) / v->block_size;
}

/* Since 0.21, the size is int(blocks / blocks a request * max_model_len). */
static long long blocks_of(const struct vllm *v, long long tokens)
{
    if (v->version < 2100 || v->max_model_len == 0)
        return tokens % v->block_size == 0 ? tokens / v->block_size : 0;
    const long long a_request = blocks_a_request(v);
    const long long blocks = (tokens * a_request + v->max_model_len - 1) / v->max_model_len;
    return blocks * v->max_model_len / a_request - tokens <= 1 ? blocks : 0;
}

/* What the log says of concurrency, to two decimals, is that of the blocks. */
static bool agrees(const struct vllm *v, long long blocks, double concurrency)
{
    if (v->max_model_len == 0 || !(concurrency > 0))
        return true;
    const double by_tokens = (double)(blocks * v->block_size) / (double)v->max_model_len;
    const double by_blocks = (double)blocks / (double)blocks_a_request(v);
    return fabs(by_tokens - concurrency) < 0.0051 || fabs(by_blocks - concurrency) < 0.0051;
}

/* A size of blocks that no line names, but that count and concurrency give. */
static void guess_block_size(struct vllm *v, long long blocks, double concurrency)
{
    const long long said = v->block_size;
    if (facts_get(v->s->facts, "block_size") || agrees(v, blocks, concurrency))
        return;
    for (v->block_size = 1; v->block_size <= 1024; v->block_size *= 2)
        if (agrees(v, blocks, concurrency))
            return;
    v->block_size = said;
}

/* Blocks for as many tokens as fit in requests of max_model_len: since 0.21 the logged size is that
 * of them, before it is that of one kind of layers, and the concurrency says how many requests.
 * Layers with windows or states take blocks of the same pool (kv_cache_utils.py,
 * get_max_concurrency_for_kv_cache_config). */
static long long blocks_of_kinds(struct vllm *v, long long tokens, double concurrency)
{
    const char *name = tokens > 0 ? "kv_tokens" : "num_gpu_blocks";
    const double fit =
        v->version >= 2100 && tokens > 0 ? (double)tokens : concurrency * (double)v->max_model_len;
    const long long blocks = (long long)fmin(fit, MOST_COUNT) / v->block_size;
    if (blocks < 1)
        settle_fail(v->s, name,
                    "the size of the K/V and the concurrency of %.4g do not fit blocks of %lld "
                    "tokens",
                    concurrency, v->block_size);
    const struct fact *fact = facts_get(v->s->facts, name);
    settle_find(v->s, FOUND_UNMODELLED, fact->at, "several kinds of K/V layers", NULL,
                "size and concurrency are not those of one kind. There are as many blocks here as "
                "requests of max_model_len fill by the log; layers with a window or a state give "
                "a shorter one more of the pool than it takes here");
    return blocks;
}

/* The size of K/V, in tokens, of so many blocks of one kind of layers, as the log has it. */
static bool is_size_of(const struct vllm *v, long long tokens, long long blocks)
{
    if (v->version < 2100 || v->max_model_len == 0)
        return tokens == blocks * v->block_size;
    return llabs(blocks * v->max_model_len / blocks_a_request(v) - tokens) <= 1;
}

/* True if the log is of a model that has one kind of K/V layers, without a window. */
static bool has_one_kind(const struct vllm *v)
{
    const struct facts *facts = v->s->facts;
    const struct fact *name = facts_checkpoint(facts);
    const char *profile = name ? model_profile(name->value) : NULL;
    struct ifl_error wrong;
    struct model model;
    return profile && !facts_get(facts, "speculative_config") &&
           !facts_get(facts, "speculative_model") && model_load(profile, &model, &wrong) == 0 &&
           model.window_tokens == 0;
}

/* Numbers of one log that cannot all be of one kind of layers, where it has but one: the model is
 * known, or the concurrency is that of the count. */
static void check_blocks(struct vllm *v, long long counted, long long tokens, double concurrency)
{
    struct settled *s = v->s;
    const long long blocks = counted > 0 ? counted : blocks_of(v, tokens);
    const bool is_same = counted == 0 || tokens == 0 || is_size_of(v, tokens, counted);
    const bool is_agreed = blocks == 0 || agrees(v, blocks, concurrency);
    const bool has_size = facts_get(s->facts, "block_size") || concurrency > 0;
    const bool is_known = has_one_kind(v);
    if (s->code < 0 || !has_size || (is_same && is_agreed))
        return;
    if (!is_same && (is_known || (concurrency > 0 && v->max_model_len > 0 && is_agreed)))
        settle_fail(s, "num_gpu_blocks",
                    "num_gpu_blocks is %lld, but line %ld says K/V of %lld tokens, in blocks of "
                    "%lld",
                    counted, facts_get(s->facts, "kv_tokens")->at.line, tokens, v->block_size);
    else if (!is_agreed && is_known)
        settle_fail(s, "max_concurrency",
                    "%.2f requests of %lld tokens, but there are %lld blocks of %lld tokens",
                    concurrency, v->max_model_len, blocks, v->block_size);
}

/* ---- layers with a window ---- */

/* The flag that keeps the engine from groups of layers (end of VllmConfig.__post_init__ in
 * config/vllm.py), or NULL. */
static const char *turns_groups_off(const struct vllm *v)
{
    const struct facts *facts = v->s->facts;
    if (facts_true(facts, "disable_hybrid_kv_cache_manager", false))
        return "disable_hybrid_kv_cache_manager";
    if (v->version < 2300 && facts_get(facts, "kv_transfer_config"))
        return "kv_transfer_config";
    if (v->version < 2300 && facts_get(facts, "kv_offloading_size"))
        return "kv_offloading_size";
    return v->version < 2000 && facts_get(facts, "kv_events_config") ? "kv_events_config" : NULL;
}

/* Of how many tokens a kernel of attention takes blocks: those of FlashInfer for wide heads on
 * Blackwell since 0.11.1 (flashinfer, issue 1993), and those of latent attention. */
static int32_t kernel_tokens(const struct vllm *v, const struct model *model)
{
    const struct gpu_name *gpu = settle_gpu(v->s);
    const bool is_blackwell = gpu && (gpu_name_has(gpu, "B200") || gpu_name_has(gpu, "B300"));
    const bool is_chosen = facts_get(v->s->facts, "attention_backend") != NULL;
    if (model_is_latent(model))
        return 64;
    return is_blackwell && !is_chosen && model->d_head == 256 && v->version >= 1101 ? 32 : 16;
}

/* Blocks are as large as a state (HybridAttentionMambaModelConfig.verify_and_update_config), and a
 * prefix's state is not kept unless prefix caching is asked for (is_prefix_caching_supported). */
static void settle_states(struct vllm *v, const struct model *checkpoint)
{
    const char *kv_dtype = tree_text(tree_at(v->s->root, "engine.kv_dtype"));
    struct model served = *checkpoint, *model = &served;
    if (kv_dtype && strcmp(kv_dtype, "fp8") == 0)
        served.kv_bytes = 1; /* so that more tokens are as large as a state */
    const int32_t n_gpus = (int32_t)settle_number(v->s, "tensor_parallel_size", 1);
    char text[32];
    if (model_check_parallel(model, n_gpus, &(struct ifl_error){0}) < 0)
        return;
    facts_decide(v->s->facts, "attention_block", FOUND_MAPS, "serving.kv.block_tokens", NULL);
    if (!facts_get(v->s->facts, "block_size")) {
        const int32_t piece = kernel_tokens(v, model);
        v->block_size = piece * (long long)ceil(model_state_tokens(model, n_gpus) / piece);
        snprintf(text, sizeof text, "%lld", v->block_size);
        settle_assume(v->s, "serving.kv.block_tokens", text,
                      "blocks as large as the state of a layer");
    }
    if (!facts_get(v->s->facts, "enable_prefix_caching"))
        settle_assume(v->s, "serving.kv.prefix_cache", "none",
                      "vLLM's default for models with states");
}

static void put_windows(struct vllm *v, bool has_groups)
{
    const char *off = turns_groups_off(v);
    if (has_groups)
        settle_assume(v->s, "serving.kv.windows", "groups",
                      "vLLM's default from 0.9.1 on where layers have a window or a state");
    else if (off && strcmp(off, "disable_hybrid_kv_cache_manager") == 0)
        settle_put(v->s, "serving.kv.windows", "hold");
    else
        settle_assume(v->s, "serving.kv.windows", "hold",
                      off ? "a connector turns groups of layers off before 0.23"
                          : "there are no groups of layers before 0.9.1, nor in engine V0");
}

/* What the flag says to a model without windows, or to one that is not known. */
static void decide_flag(struct vllm *v, bool is_known)
{
    facts_decide(v->s->facts, "disable_hybrid_kv_cache_manager",
                 is_known ? FOUND_HARMLESS : FOUND_UNMODELLED, NULL,
                 is_known ? NULL : "models with several kinds of K/V layers");
}

void vllm_settle_windows(struct vllm *v)
{
    struct model model;
    if (v->s->code < 0)
        return;
    const bool is_known = settle_known_model(v->s, &model);
    const struct model_groups groups =
        is_known ? model_kv_groups(&model) : (struct model_groups){0};
    const bool has_groups = v->v1 && v->version >= 901 && !turns_groups_off(v);
    if (groups.n_window == 0) {
        decide_flag(v, is_known);
        return;
    }
    if (model.state_layers > 0)
        settle_states(v, &model);
    v->n_window_groups = has_groups ? groups.n_window : 0;
    v->window_tokens = model.window_tokens;
    put_windows(v, has_groups);
}

/* Of the longest request, in all groups (kv_cache_interface.py, max_memory_usage_bytes). */
static double group_blocks_a_request(const struct vllm *v)
{
    const char *budget = tree_text(tree_at(v->s->root, "serving.batching.max_batched_tokens"));
    const double batched = budget ? strtod(budget, NULL) : 8192;
    const double longest = (double)v->max_model_len, size = (double)v->block_size;
    const double seen = fmin((double)v->window_tokens - 1 + batched, longest);
    const double of_group = v->window_tokens > 0 ? ceil(seen / size) + 1 : 1; /* or a state */
    return ceil(longest / size) + v->n_window_groups * of_group;
}

/* Of all groups. Up to 0.20 the size is that of one group's share, since then that of the longest
 * requests that fit (kv_cache_utils.py, get_kv_cache_configs). */
static long long blocks_of_groups(struct vllm *v, long long counted, long long tokens)
{
    if (counted > 0 || tokens == 0)
        return counted;
    if (v->version < 2100)
        return tokens / v->block_size * (1 + v->n_window_groups);
    if (v->max_model_len == 0)
        settle_fail(v->s, "kv_tokens",
                    "K/V of %lld tokens is that of the longest requests that fit, expected "
                    "max_model_len beside it",
                    tokens);
    const double longest = v->max_model_len > 0 ? (double)v->max_model_len : 1;
    return (long long)fmin((double)tokens / longest * group_blocks_a_request(v), MOST_COUNT);
}

/* The budget is often the engine's own default, and is not in the line: what is far off alone is
 * said. */
static void doubt_concurrency(struct vllm *v, long long blocks, double concurrency)
{
    const double fit = (double)blocks / group_blocks_a_request(v);
    if (blocks > 0 && v->max_model_len > 0 && concurrency > 0 && fabs(concurrency / fit - 1) > 0.05)
        settle_find(v->s, FOUND_UNMODELLED, facts_get(v->s->facts, "max_concurrency")->at,
                    "requests of max_model_len that fit", NULL,
                    "the log's number is not that of its blocks, by more than 5%");
}

long long vllm_logged_blocks(struct vllm *v)
{
    const double concurrency = least_concurrency(v->s->facts);
    const long long tokens = least_tokens(v);
    long long blocks = settle_at_least_1(v->s, "num_gpu_blocks", 0);
    if (settle_number(v->s, "cp_world_size", 1) > 1)
        settle_fail(v->s, "cp_world_size",
                    "context parallelism is not modelled: its blocks hold more tokens");
    if (v->n_window_groups > 0 && v->s->code == 0) {
        blocks = blocks_of_groups(v, blocks, tokens);
        doubt_concurrency(v, blocks, concurrency);
    }
    if (v->n_window_groups > 0)
        return v->s->code < 0 ? 0 : blocks;
    if (blocks > 0)
        guess_block_size(v, blocks, concurrency);
    check_blocks(v, blocks, tokens, concurrency);
    if (blocks == 0 && tokens > 0)
        blocks = blocks_of(v, tokens);
    if (v->s->code < 0)
        return 0;
    if ((tokens > 0 && blocks == 0) || (blocks > 0 && !agrees(v, blocks, concurrency)))
        return blocks_of_kinds(v, tokens, concurrency);
    return blocks;
}
