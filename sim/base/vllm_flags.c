#include "base/vllm_flags.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Arguments of vLLM 0.33 (vllm/engine/arg_utils.py), then those of 0.8.5 that 0.33 does not have
 * (https://docs.vllm.ai/en/v0.8.5/serving/engine_args.html), then those of `vllm bench serve`. */
static const struct vllm_flag flags[] = {
    {"max_model_len", "serving.max_model_len", ""},
    {"max_num_seqs", "serving.batching.max_seqs", ""},
    {"max_num_batched_tokens", "serving.batching.max_batched_tokens", ""},
    {"long_prefill_token_threshold", "serving.batching.long_prefill_tokens", ""},
    {"scheduling_policy", "serving.order.policy", ""},
    {"enable_chunked_prefill", "serving.preset", "=vllm-v0-chunked, or any vllm-v1"},
    {"no_enable_chunked_prefill", "serving.preset", "=vllm-v0"},
    {"async_scheduling", "serving.preset", "=vllm-v1"},
    {"no_async_scheduling", "serving.preset", "=vllm-v1-sync"},
    {"max_num_active_seqs", "serving.batching.max_active_seqs", ""},
    {"max_num_queued_reqs", "serving.max_queued_reqs", ""},
    {"max_num_queued_tokens", "serving.max_queued_tokens", ""},
    {"preemption_mode", "serving.preempt.fate", ""},
    {"block_size", "serving.kv.block_tokens", ""},
    {"gpu_memory_utilization", "serving.kv.memory_utilization", ""},
    {"num_gpu_blocks_override", "serving.kv.num_blocks", ""},
    {"swap_space", "serving.kv.swap_gib", ""},
    {"enable_prefix_caching", "serving.kv.prefix_cache", "=hash"},
    {"no_enable_prefix_caching", "serving.kv.prefix_cache", "=none"},
    {"tensor_parallel_size", "parallel.tensor", ""},
    {"tp", "parallel.tensor", ""},
    {"pipeline_parallel_size", "parallel.pipeline", ""},
    {"pp", "parallel.pipeline", ""},
    {"data_parallel_size", "cluster.replicas", ""},
    {"dp", "cluster.replicas", ""},
    {"dtype", "engine.dtype", ""},
    {"load_format", "engine.weights", ""},
    {"request_rate", "workload.arrivals.rate_rps", ""},
    {"max_concurrency", "workload.arrivals.concurrency", ""},
    {"num_prompts", "workload.limit", ""},
};
enum { N_FLAGS = sizeof flags / sizeof *flags };

static bool same(const char *word, const char *name)
{
    while (*word && (*word == *name || (*word == '-' && *name == '_')))
        word++, name++;
    return !*word && !*name;
}

const struct vllm_flag *vllm_flag_at(size_t i)
{
    return i < N_FLAGS ? &flags[i] : NULL;
}

const struct vllm_flag *vllm_flag_find(const char *word)
{
    const char *dot = strrchr(word, '.'), *name = dot ? dot + 1 : word;
    name += strspn(name, "-");
    for (size_t i = 0; i < N_FLAGS; i++)
        if (same(name, flags[i].name))
            return &flags[i];
    return NULL;
}

const char *vllm_flag_describe(const struct vllm_flag *flag, char *text, size_t n_bytes)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", strlen(flag->name) > 2 ? "--" : "-", flag->name);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
    snprintf(text, n_bytes, "vLLM's %s is %s%s", name, flag->key, flag->value);
    return text;
}
