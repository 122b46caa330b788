/* TensorRT-LLM. The presets are of 2024-09. */
#include <stdlib.h>
#include <string.h>

#include "import/settle.h"

static void settle_capacity(struct settled *s)
{
    static const char *const presets[][2] = {{"GUARANTEED_NO_EVICT", "trtllm-no-evict"},
                                             {"guaranteed_no_evict", "trtllm-no-evict"},
                                             {"MAX_UTILIZATION", "trtllm-max-utilization"},
                                             {"max_utilization", "trtllm-max-utilization"},
                                             {"STATIC_BATCH", "trtllm-static"}};
    const char *policy = facts_text(s->facts, "capacity_scheduler_policy");
    for (size_t i = 0; policy && i < sizeof presets / sizeof *presets; i++)
        if (strcmp(policy, presets[i][0]) == 0) {
            settle_put(s, "serving.preset", "%s", presets[i][1]);
            return;
        }
    if (policy)
        settle_fail(s, "capacity_scheduler_policy",
                    "the capacity scheduler's policy is %.60s, expected GUARANTEED_NO_EVICT, "
                    "MAX_UTILIZATION or STATIC_BATCH",
                    policy);
    else
        settle_assume(s, "serving.preset", "trtllm-no-evict", "TensorRT-LLM's default");
}

static void settle_chunking(struct settled *s)
{
    const char *policy = facts_text(s->facts, "context_chunking_policy");
    if (policy && strcmp(policy, "EQUAL_PROGRESS") == 0)
        settle_put(s, "serving.batching.chunking", "equal-progress");
    else if (policy ? strcmp(policy, "FIRST_COME_FIRST_SERVED") == 0
                    : facts_true(s->facts, "enable_chunked_prefill", false))
        settle_put(s, "serving.batching.chunking", "first-come");
}

/* The processes of a server share the model, in some way that no line says. */
static void settle_world(struct settled *s)
{
    const long long world = settle_number(s, "world_size", 1);
    const long long known =
        settle_number(s, "tensor_parallel_size", 1) * settle_number(s, "pipeline_parallel_size", 1);
    if (known > 1 && world > 1 && known != world)
        settle_fail(s, "world_size", "%lld processes, but the command line asks for %lld", world,
                    known);
    if (known == 1 && world > 1) {
        char text[32];
        snprintf(text, sizeof text, "%lld", world);
        settle_assume(s, "parallel.tensor", text, "as many processes share the model");
    }
}

static const struct pool_names pool = {
    .block = "tokens_per_block",
    .dflt = 64,
    .dflt_is = "the preset's",
    .tokens = "max_tokens_in_paged_kv_cache",
    .rounds_up = true,
    .missing = "no line says how many K/V blocks there are (\"KV cache primary pool\", \"max "
               "tokens in paged KV cache\")",
};

void settle_trtllm(struct settled *s)
{
    settle_capacity(s);
    settle_chunking(s);
    settle_common(s, "tensor_parallel_size", "pipeline_parallel_size", "no such fact");
    settle_world(s);
    settle_count(s, "max_seq_len", "serving.max_model_len");
    settle_count_or(s, "max_batch_size", "serving.batching.max_seqs", "2048",
                    "TensorRT-LLM's default");
    settle_count_or(s, "max_num_tokens", "serving.batching.max_batched_tokens", "8192",
                    "TensorRT-LLM's default");
    settle_pool(s, &pool);
    settle_real(s, "free_gpu_memory_fraction", "serving.kv.memory_utilization");
}
