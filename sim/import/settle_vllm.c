/* vLLM 0.6 to 0.33, engines V0 and V1. Defaults: vllm/engine/arg_utils.py and vllm/config of each.
 */
#include <stdlib.h>
#include <string.h>

#include "cost/model.h"
#include "import/names.h"
#include "import/settle_vllm.h"

enum { FIRST_VERSION = 600, LAST_VERSION = 3399, NEWEST = 3300 };

/* ---- version and engine ---- */

static void assume(struct vllm *v, const char *what, const char *says)
{
    settle_find(v->s, FOUND_ASSUMED, (struct place){0}, what, NULL, says);
}

static void read_version(struct vllm *v)
{
    const char *text = facts_text(v->s->facts, "version");
    int major = -1, minor = 0, patch = 0;
    if (!text && v->s->from_log) {
        settle_fail(v->s, NULL,
                    "no line says which version of vLLM this is: give --engine-version");
        return;
    }
    v->version = NEWEST;
    if (!text) {
        assume(v, "vLLM 0.33", "no version is named: the newest that is known");
        return;
    }
    if (sscanf(text, "%d.%d.%d", &major, &minor, &patch) < 2 || major != 0 || minor > 99 ||
        patch > 99 || minor * 100 + patch < FIRST_VERSION || minor * 100 + patch > LAST_VERSION)
        settle_fail(v->s, "version",
                    "vLLM %.60s is not known, expected 0.6 to 0.33: give the nearest one as "
                    "--engine-version",
                    text);
    v->version = minor * 100 + patch;
}

/* V1 is the default from 0.8 on, and alone from 0.11 on. */
static void read_engine(struct vllm *v)
{
    const char *engine = facts_text(v->s->facts, "engine");
    v->v1 = engine ? strcmp(engine, "V1") == 0 : v->version >= 800;
    if (!v->v1 && v->version >= 1100)
        settle_fail(v->s, "engine", "engine V0 in vLLM 0.%d%s, expected V1 from 0.11 on",
                    v->version / 100,
                    facts_get(v->s->facts, "version") ? ""
                                                      : " (no version is named: give "
                                                        "--engine-version)");
}

/* ---- memory ---- */

static const char *sizing_of_v0(int version)
{
    return version < 604 ? "vllm-0.3.1" : version < 605 ? "vllm-0.6.4" : "vllm-0.6.5";
}

/* The rule of memory of a release; the preset has that of its own time, or, of V0, none. */
static void settle_sizing(struct vllm *v)
{
    settle_put(v->s, "serving.kv.sizing", "%s",
               !v->v1              ? sizing_of_v0(v->version)
               : v->version < 800  ? "vllm-0.7"
               : v->version < 901  ? "vllm-0.8"
               : v->version < 1200 ? "vllm-0.9.1"
               : v->version < 1400 ? "vllm-0.12"
               : v->version < 1700 ? "vllm-0.14"
               : v->version < 2000 ? "vllm-0.17"
                                   : "vllm-0.20");
    if (v->v1 && v->version >= 800 && v->version < 1700 &&
        facts_true(v->s->facts, "flashinfer_sampler", false))
        settle_put(v->s, "serving.kv.flashinfer_sampler", "true");
}

/* Those of the log or, where it names none, those that were asked for; 0: it is not known. */
static long long count_blocks(struct vllm *v, long long asked)
{
    struct settled *s = v->s;
    const long long logged = vllm_logged_blocks(v), blocks = logged > 0 ? logged : asked;
    if (asked > 0 && logged > 0 && asked != logged)
        settle_fail(s, "num_gpu_blocks_override",
                    "num_gpu_blocks_override is %lld, but the log says %lld blocks of %lld tokens",
                    asked, logged, v->block_size);
    if (blocks == 0 && facts_get(s->facts, "unread_tokens"))
        settle_fail(s, "unread_tokens",
                    "the K/V has a size of %.40s tokens, expected a whole number of tokens, as in "
                    "38,944",
                    facts_text(s->facts, "unread_tokens"));
    else if (blocks == 0 && s->from_log)
        settle_fail(s, NULL,
                    "no line says how many K/V blocks there are (\"GPU KV cache size\", \"# GPU "
                    "blocks\"): the log ends too early");
    return blocks;
}

/* V1 keeps one of its blocks as a null block (block_pool.py) since 0.8.3, as its presets say. */
static void put_blocks(struct vllm *v, long long blocks)
{
    struct settled *s = v->s;
    char size[32];
    if (blocks > 0)
        settle_put(s, "serving.kv.num_blocks", "%lld", blocks);
    if (blocks > 0 && v->v1 && v->version < 803)
        settle_put(s, "serving.kv.null_blocks", "0");
    snprintf(size, sizeof size, "%lld", v->block_size);
    if (facts_get(s->facts, "block_size"))
        settle_put(s, "serving.kv.block_tokens", "%s", size);
    else if (blocks > 0 && !tree_at(s->root, "serving.kv.block_tokens"))
        settle_assume(s, "serving.kv.block_tokens", size,
                      v->block_size == 16 ? "vLLM's default"
                                          : "what count and concurrency of the log give");
}

/* What blocks are counted from, where they have not been counted. */
static void put_memory(struct vllm *v, bool is_counted)
{
    struct settled *s = v->s;
    settle_sparse_kv(s);
    settle_kv_scales(s, v->v1 && v->version >= 1400, v->v1 && v->version >= 1500);
    if (!is_counted && v->version >= 900)
        settle_latent_blocks(s);
    if (!is_counted)
        settle_sizing(v);
    settle_real(s, "gpu_memory_utilization", "serving.kv.memory_utilization");
    if (v->version < 2000 && !is_counted && !facts_get(s->facts, "gpu_memory_utilization"))
        settle_assume(s, "serving.kv.memory_utilization", "0.9", "vLLM's default before 0.20");
}

static void settle_kv(struct vllm *v)
{
    struct settled *s = v->s;
    const long long asked = settle_number(s, "num_gpu_blocks_override", 0);
    v->block_size = settle_number(s, "block_size", v->block_size > 0 ? v->block_size : 16);
    if (v->block_size < 1)
        settle_fail(s, "block_size", "block_size is %lld, expected at least 1", v->block_size);
    if (s->code < 0)
        return;
    const long long blocks = count_blocks(v, asked);
    put_blocks(v, blocks);
    put_memory(v, blocks > 0);
    if (facts_text(s->facts, "enable_prefix_caching"))
        settle_put(s, "serving.kv.prefix_cache", "%s",
                   facts_true(s->facts, "enable_prefix_caching", v->v1) ? "hash" : "none");
}

/* ---- budget and seats ---- */

enum gpu_class { GPU_UNNAMED, GPU_SMALL, GPU_LARGE, GPU_HUGE };

/* _set_default_max_num_seqs_and_batched_tokens_args: from 70 GiB on, A100 left out since 0.9, and
 * from 160 GiB on since 0.28; up to 0.8.4 H100 and H200 by their names. */
static enum gpu_class class_of_gpu(const struct vllm *v)
{
    const char *said = facts_text(v->s->facts, "gpu_gib");
    const struct gpu_name *gpu = settle_gpu(v->s);
    const double gib = gpu ? gpu->memory_gib : said ? strtod(said, NULL) : 0;
    if (v->version < 805)
        return !gpu                                                     ? GPU_UNNAMED
               : gpu_name_has(gpu, "H100") || gpu_name_has(gpu, "H200") ? GPU_LARGE
                                                                        : GPU_SMALL;
    if (!(gib > 0) || (!gpu && gib >= 70 && v->version >= 900))
        return GPU_UNNAMED;
    if (gib < 70 || (gpu && gpu_name_has(gpu, "A100") && v->version >= 900))
        return GPU_SMALL;
    return gib >= 160 && v->version >= 2800 ? GPU_HUGE : GPU_LARGE;
}

/* vllm/entrypoints/llm.py logs; a server does not. */
static bool is_library(const struct vllm *v)
{
    return facts_get(v->s->facts, "library") && !facts_get(v->s->facts, "api_server");
}

/* A budget that is the default of one class alone: a library has other defaults than a server. */
static enum gpu_class class_of_budget(const struct vllm *v, long long budget)
{
    const bool server = !v->s->from_log || facts_get(v->s->facts, "api_server");
    if (facts_get(v->s->facts, "max_num_batched_tokens"))
        return GPU_UNNAMED;
    return budget == 2048                    ? GPU_SMALL
           : budget == 8192 && server        ? GPU_LARGE
           : budget == 8192 && is_library(v) ? GPU_SMALL
           : budget == 16384                 ? GPU_LARGE
                                             : GPU_UNNAMED;
}

static void settle_seats_v1(struct vllm *v, enum gpu_class class)
{
    if (settle_at_least_1(v->s, "max_num_seqs", 0) > 0)
        settle_count(v->s, "max_num_seqs", "serving.batching.max_seqs");
    else if (v->version <= 800)
        settle_assume(v->s, "serving.batching.max_seqs", "1024", "V1's default up to 0.8.0");
    else if (v->version < 804 && class == GPU_SMALL)
        settle_assume(v->s, "serving.batching.max_seqs", "256",
                      "its default on this GPU between 0.8.0 (1024) and 0.8.4 (256) is not known: "
                      "give it in --command if more requests than that run at once");
    else if (class == GPU_UNNAMED)
        settle_fail(v->s, NULL,
                    "max_num_seqs is not said, and its default goes by the GPU, which is not "
                    "named: give --hardware, or --max-num-seqs in --command");
    else
        settle_assume(v->s, "serving.batching.max_seqs", class == GPU_SMALL ? "256" : "1024",
                      "vLLM's default on this GPU, or where the budget is the default");
}

/* The last end of the ranges that the engine compiles for is its budget, but where guesses have
 * tokens of their own beside it (config/vllm.py, _set_compile_ranges). */
static const struct fact *compiled_end(const struct vllm *v)
{
    const struct fact *last = NULL;
    long long most = 0, tokens;
    if (facts_get(v->s->facts, "speculative_config"))
        return NULL;
    for (size_t i = 0; i < v->s->facts->n; i++) {
        const struct fact *fact = &v->s->facts->of[i];
        if (strcmp(fact->name, "compiled_tokens") != 0 || !count_read(fact->value, &tokens) ||
            tokens <= most)
            continue;
        most = tokens;
        last = fact;
    }
    return last;
}

/* The budget that only those ranges say; 0: they do not. */
static long long budget_compiled(struct vllm *v)
{
    const struct fact *end = compiled_end(v);
    char what[96];
    if (!end)
        return 0;
    snprintf(what, sizeof what, "ranges that end at %.40s tokens", end->value);
    settle_find(v->s, FOUND_ASSUMED, end->at, what, "serving.batching.max_batched_tokens",
                "the engine compiles for ranges of tokens, and the last one ends at its budget");
    return strtoll(end->value, NULL, 10);
}

static long long budget_said(struct vllm *v)
{
    const long long asked = settle_at_least_1(v->s, "max_num_batched_tokens", 0);
    const long long said = settle_at_least_1(v->s, "token_budget", 0);
    if (asked > 0 && said > 0 && asked != said)
        settle_fail(v->s, "token_budget", "max_num_batched_tokens is %lld, but %lld was asked for",
                    said, asked);
    if (said > 0 || asked > 0)
        facts_decide(v->s->facts, "compiled_tokens", FOUND_HARMLESS, NULL, NULL);
    return said > 0 ? said : asked > 0 ? asked : budget_compiled(v);
}

static void settle_limits_v1(struct vllm *v)
{
    static const char *const of_server[] = {"", "2048", "8192", "16384"};
    static const char *const of_library[] = {"", "8192", "16384", "16384"};
    const long long scheduled = settle_at_least_1(v->s, "scheduled_tokens", 0);
    long long budget = budget_said(v);
    enum gpu_class class = class_of_gpu(v);
    if (class == GPU_UNNAMED)
        class = class_of_budget(v, budget);
    budget = scheduled > 0 ? scheduled : budget;
    if (budget > 0)
        settle_put(v->s, "serving.batching.max_batched_tokens", "%lld", budget);
    else if (class != GPU_UNNAMED)
        settle_assume(v->s, "serving.batching.max_batched_tokens",
                      is_library(v) ? of_library[class] : of_server[class],
                      is_library(v) ? "the default of a library on this GPU"
                                    : "the default of a server on this GPU");
    else
        settle_fail(v->s, NULL,
                    "max_num_batched_tokens is not said, and its default goes by the GPU, which "
                    "is not named: give --hardware, or the flag in --command");
    settle_seats_v1(v, class);
}

/* ---- engine V1 ---- */

/* By the changes that the presets name: the full-prompt reservation is in 0.19, unhashed blocks
 * first in 0.23, the limit of long prompts that spares those alone in 0.31, the walk in 0.33. */
static void settle_preset_v1(struct vllm *v)
{
    const char *date = v->version < 1900   ? "2025-05"
                       : v->version < 2300 ? "2026-04"
                       : v->version < 3100 ? "2026-08"
                                           : "2026-11";
    settle_put(v->s, "serving.preset", "vllm-v1-%s", date);
    if (v->version >= 3100 && v->version < 3300)
        settle_put(v->s, "serving.batching.walks_on", "false");
}

/* In the source of 0.33, but for numbers of guesses that follow the batch. */
static void settle_newcomers(struct vllm *v)
{
    const char *policy = tree_text(tree_at(v->s->root, "serving.draft.policy"));
    if (v->v1 && v->version >= 3100 && policy && strcmp(policy, "none") != 0 &&
        strcmp(policy, "by-batch") != 0)
        settle_put(v->s, "serving.batching.pads_newcomers", "true");
}

/* Asynchronous by default since 0.14, but for pipelines and some guesses (config/vllm.py). */
static void settle_ahead(struct vllm *v)
{
    const bool dflt = v->version >= 1400 && settle_number(v->s, "pipeline_parallel_size", 1) <= 1 &&
                      drafts_go_ahead(v->s);
    if (facts_get(v->s->facts, "async_scheduling")) {
        settle_put(v->s, "serving.in_flight.ahead", "%s",
                   facts_true(v->s->facts, "async_scheduling", dflt) ? "1" : "0");
        facts_decide(v->s->facts, "async_scheduling", FOUND_MAPS, "serving.in_flight.ahead", NULL);
    } else if (v->version >= 1400)
        settle_assume(
            v->s, "serving.in_flight.ahead", dflt ? "1" : "0",
            "asynchronous scheduling by default, but for pipelines and for guesses of n-grams, "
            "Medusa and draft models");
}

static void settle_order_v1(struct vllm *v)
{
    const char *policy = facts_text(v->s->facts, "scheduling_policy");
    if (!policy || strcmp(policy, "fcfs") == 0)
        return;
    settle_put(v->s, "serving.order.policy", "%s", policy);
    settle_put(v->s, "serving.preempt",
               "{policy: tail, of: ranked, place: in-order, scheduled: undo}");
}

/* The line of the flag, or, where a log says it, one of its own: `what`. */
static void find_unmodelled(struct vllm *v, const char *flag, const char *what, const char *why)
{
    if (!facts_decide(v->s->facts, flag, FOUND_UNMODELLED, NULL, why))
        settle_find(v->s, FOUND_UNMODELLED, facts_get(v->s->facts, flag)->at, what, NULL, why);
}

/* A count above 1, its default, of an engine that has no such thing here. */
static void refuse_count(struct vllm *v, const char *flag, const char *why)
{
    if (facts_get(v->s->facts, flag) && settle_number(v->s, flag, 1) > 1)
        find_unmodelled(v, flag, flag, why);
}

/* Adapters beyond max_loras are passed over, before blocks are asked about. */
static void settle_lora(struct vllm *v)
{
    struct settled *s = v->s;
    const char *room = tree_text(tree_at(s->root, "serving.admit.room_for"));
    const char *watermark = tree_text(tree_at(s->root, "serving.admit.watermark_frac"));
    if (s->code < 0 || !facts_true(s->facts, "enable_lora", false))
        return;
    const long long max_loras = settle_number(s, "max_loras", 1);
    settle_put(s, "serving.admit",
               "[{policy: adapter-slots}, {policy: chunk-fits, room_for: %s, watermark_frac: %s}]",
               room                ? room
               : v->version < 1900 ? "chunk"
                                   : "prompt",
               watermark ? watermark : "0");
    settle_put(s, "serving.adapters.max_loras", "%lld", max_loras);
    settle_put(s, "serving.adapters.max_cpu_loras", "%lld",
               settle_number(s, "max_cpu_loras", max_loras));
    settle_put(s, "serving.adapters.max_rank", "%lld", settle_number(s, "max_lora_rank", 16));
}

static void settle_v1(struct vllm *v)
{
    struct settled *s = v->s;
    refuse_count(v, "num_scheduler_steps", "engine V1 schedules each step");
    refuse_count(v, "max_num_partial_prefills", "engine V1 has no such limit");
    refuse_count(v, "max_long_partial_prefills", "engine V1 has no such limit");
    settle_preset_v1(v);
    settle_limits_v1(v);
    settle_ahead(v);
    settle_order_v1(v);
    settle_count(s, "long_prefill_token_threshold", "serving.batching.long_prefill_tokens");
    settle_count(s, "max_num_active_seqs", "serving.batching.max_active_seqs");
    settle_count(s, "max_num_queued_reqs", "serving.max_queued_reqs");
    settle_count(s, "max_num_queued_tokens", "serving.max_queued_tokens");
    settle_real(s, "watermark", "serving.admit.watermark_frac");
    if (facts_true(s->facts, "long_prefill_token_threshold_adaptive", false))
        settle_put(s, "serving.batching.long_prefill_adapts", "true");
    if (facts_get(s->facts, "scheduler_reserve_full_isl"))
        settle_put(s, "serving.admit.room_for", "%s",
                   facts_true(s->facts, "scheduler_reserve_full_isl", true) ? "prompt" : "chunk");
    settle_lora(v);
    if (!facts_true(s->facts, "enable_chunked_prefill", true))
        find_unmodelled(v, "enable_chunked_prefill", "enable_chunked_prefill=False",
                        "engine V1 without chunks");
}

/* ---- engine V0 ---- */

/* Chunks are the default for long contexts (_set_default_args_v0). */
static void read_chunked(struct vllm *v)
{
    const bool dflt = v->max_model_len > 32768;
    v->chunked = facts_true(v->s->facts, "enable_chunked_prefill",
                            dflt || facts_get(v->s->facts, "token_budget"));
    if (!facts_get(v->s->facts, "enable_chunked_prefill") && dflt)
        assume(v, "enable_chunked_prefill=True", "engine V0's default beyond 32768 tokens");
}

static void settle_preset_v0(struct vllm *v)
{
    struct settled *s = v->s;
    const char *policy = facts_text(s->facts, "scheduling_policy");
    const char *mode = facts_text(s->facts, "preemption_mode");
    const bool priority = policy && strcmp(policy, "priority") == 0;
    const bool swap = mode && strcmp(mode, "swap") == 0;
    settle_put(s, "serving.preset", "%s",
               v->chunked ? "vllm-v0-chunked"
               : priority ? "vllm-v0-priority"
               : swap     ? "vllm-v0-swap"
                          : "vllm-v0");
    if (mode && (v->chunked || priority || !swap))
        settle_put(s, "serving.preempt.fate", "%s", mode);
    if (priority && v->chunked) {
        settle_put(s, "serving.order.policy", "priority");
        settle_find(s, FOUND_UNMODELLED, facts_get(s->facts, "scheduling_policy")->at,
                    "scheduling_policy=priority", NULL,
                    "priorities with chunks: they order the queue alone");
    }
    /* Block manager v1 is gone in 0.6.4. */
    if (!v->chunked && !priority &&
        (v->version >= 604 || facts_true(s->facts, "use_v2_block_manager", false)))
        settle_put(s, "serving.batching.append_rule", "touched");
}

/* Without chunks several steps at a time, with them several prompts. */
static void settle_several_v0(struct vllm *v)
{
    struct settled *s = v->s;
    if (!v->chunked) {
        if (settle_number(s, "num_scheduler_steps", 1) > 1)
            settle_count(s, "num_scheduler_steps", "serving.batching.num_scheduler_steps");
        return;
    }
    refuse_count(v, "num_scheduler_steps", "several steps at once with chunks");
    if (settle_number(s, "max_num_partial_prefills", 1) <= 1)
        return;
    settle_count(s, "max_num_partial_prefills", "serving.batching.max_partial_prefills");
    if (settle_number(s, "max_long_partial_prefills", 1) > 1)
        settle_count(s, "max_long_partial_prefills", "serving.batching.max_long_partial_prefills");
    if (settle_number(s, "long_prefill_token_threshold", 0) > 0)
        settle_count(s, "long_prefill_token_threshold", "serving.batching.long_prefill_tokens");
}

static void settle_v0(struct vllm *v)
{
    struct settled *s = v->s;
    if (facts_true(s->facts, "enable_lora", false))
        settle_find(s, FOUND_UNMODELLED, facts_get(s->facts, "enable_lora")->at, "enable_lora",
                    NULL, "adapters of engine V0");
    read_chunked(v);
    settle_preset_v0(v);
    const long long budget = budget_said(v);
    if (budget > 0)
        settle_put(
            s, v->chunked ? "serving.batching.chunk_tokens" : "serving.batching.max_batched_tokens",
            "%lld", budget);
    else if (v->chunked)
        settle_assume(s, "serving.batching.chunk_tokens", v->version < 605 ? "512" : "2048",
                      "vLLM's default with chunks: 512 before 0.6.5, then 2048");
    settle_count_or(s, "max_num_seqs", "serving.batching.max_seqs", "256", "engine V0's default");
    if (!v->chunked)
        settle_real(s, "scheduler_delay_factor", "serving.batching.delay_factor");
    settle_real(s, "swap_space", "serving.kv.swap_gib");
    settle_several_v0(v);
}

/* Data-parallel ranks share the experts and are no replicas, unless the model has none. */
static void settle_experts(struct settled *s)
{
    struct model model;
    const bool none = settle_known_model(s, &model) && model.n_experts == 0;
    const long long ranks = settle_at_least_1(s, "data_parallel_size", 1);
    const long long experts_ranks = settle_number(s, "tensor_parallel_size", 1) * ranks;
    if (ranks > 1)
        settle_count(s, "data_parallel_size", none ? "cluster.replicas" : "parallel.data");
    if (none)
        facts_decide(s->facts, "enable_expert_parallel", FOUND_HARMLESS, NULL,
                     "the model has no experts");
    else if (experts_ranks > 1)
        settle_put(s, "parallel.expert", "%lld", experts_ranks);
}

static void settle_parallel(struct settled *s)
{
    const bool experts = facts_true(s->facts, "enable_expert_parallel", false);
    settle_common(s, "tensor_parallel_size", "pipeline_parallel_size",
                  experts ? "no such fact" : "data_parallel_size");
    if (experts)
        settle_experts(s);
    if (settle_number(s, "decode_context_parallel_size", 1) > 1)
        settle_count(s, "decode_context_parallel_size", "parallel.context");
}

/* Engine V0 plans, samples and detokenises between two steps, V1 plans and samples; asynchronous
 * scheduling hides it. */
static void settle_host(const struct vllm *v)
{
    const char *ahead = tree_text(tree_at(v->s->root, "serving.in_flight.ahead"));
    if (!v->v1)
        settle_deployment(v->s, "vllm-0.6", "the host of engine V0, as measured in 2024");
    else if (ahead && strcmp(ahead, "1") == 0)
        settle_deployment(v->s, "vllm-0.20",
                          v->version < 1700
                              ? "the host under asynchronous scheduling, as measured with 0.20; "
                                "with answers sampled by top-p or top-k it is vllm-0.11-sampled"
                              : "the host under asynchronous scheduling, as measured with 0.20");
    else
        settle_deployment(v->s, "vllm-0.8",
                          "the host without asynchronous scheduling, as measured with 0.11");
}

/* A draft model has a length of its own; without one, two lengths are of two servers. */
static void check_lengths(struct settled *s)
{
    const long long length = settle_number(s, "max_model_len", 0);
    const bool has_draft =
        facts_get(s->facts, "speculative_config") || facts_get(s->facts, "speculative_model");
    for (size_t i = 0; i < s->facts->n && s->code == 0 && !has_draft; i++) {
        const struct fact *fact = &s->facts->of[i];
        long long other;
        if (strcmp(fact->name, "other_model_len") == 0 &&
            (!count_read(fact->value, &other) || other != length))
            s->code = facts_fail(fact->at, s->error,
                                 "max_model_len is %.40s, but %lld before, and no argument names a "
                                 "draft model",
                                 fact->value, length);
    }
}

void settle_vllm(struct settled *s)
{
    struct vllm v = {.s = s};
    const struct rank_names ranks = tensor_ranks("tensor_parallel_size");
    settle_started(s);
    settle_ranks(s, &ranks);
    check_lengths(s);
    read_version(&v);
    if (s->code == 0)
        read_engine(&v);
    v.max_model_len = settle_number(s, "max_model_len", settle_checkpoint_len(s));
    v.world =
        settle_number(s, "tensor_parallel_size", 1) * settle_number(s, "pipeline_parallel_size", 1);
    if (s->code < 0)
        return;
    if (v.v1)
        settle_v1(&v);
    else
        settle_v0(&v);
    settle_drafts_vllm(s, v.v1);
    settle_newcomers(&v);
    settle_parallel(s);
    settle_host(&v);
    settle_length(s, "max_model_len");
    vllm_settle_windows(&v);
    vllm_settle_encoder(&v);
    settle_kv(&v);
    settle_tiers_vllm(s, v.v1);
    settle_role_vllm(s, v.v1);
}
