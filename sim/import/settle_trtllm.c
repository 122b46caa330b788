/* TensorRT-LLM: presets of 2024-09 for the C++ executor, of 1.2 for the PyTorch one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "import/settle.h"

/* The PyTorch executor plans a step ahead. trtllm-serve takes it since 1.0
 * (tensorrt_llm/commands/serve.py), unless it is told --backend tensorrt; trtllm-build builds for
 * the other one. A log without a version is of the C++ executor's time. */
bool trtllm_is_pytorch(const struct facts *facts, bool from_log)
{
    const char *backend = facts_text(facts, "backend");
    const char *logged = facts_text(facts, "llm_backend");
    const char *version = facts_text(facts, "version");
    if (backend || logged)
        return strcasecmp(logged ? logged : backend, "pytorch") == 0;
    if (facts_get(facts, "memory_measured"))
        return true; /* the PyTorch backend alone measures memory by a run */
    return version ? strtol(version, NULL, 10) >= 1 : !from_log;
}

static bool is_pytorch(const struct settled *s)
{
    return trtllm_is_pytorch(s->facts, s->from_log);
}

/* The newest release with a preset of its scheduler. */
enum { NEWEST_MAJOR = 1, NEWEST_MINOR = 2 };

static void check_version(struct settled *s)
{
    const struct fact *version = facts_get(s->facts, "version");
    int major = -1, minor = 0;
    if (!version)
        return;
    const bool is_read = sscanf(version->value, "%d.%d", &major, &minor) == 2 && major >= 0;
    char what[96];
    snprintf(what, sizeof what, "TensorRT-LLM %.60s", version->value);
    if (!is_read || major > NEWEST_MAJOR || (major == NEWEST_MAJOR && minor > NEWEST_MINOR))
        settle_find(s, FOUND_ASSUMED, version->at, what, NULL,
                    is_pytorch(s) ? "this release is not known: its scheduler is that of 1.2 here"
                                  : "this release is not known: its scheduler is that of 2024-09 "
                                    "here, the C++ executor's");
}

static void settle_capacity(struct settled *s)
{
    static const char *const presets[][3] = {
        {"GUARANTEED_NO_EVICT", "trtllm-no-evict", "trtllm-1.2-no-evict"},
        {"MAX_UTILIZATION", "trtllm-max-utilization", "trtllm-1.2-max-utilization"},
        {"STATIC_BATCH", "trtllm-static", "trtllm-static"}};
    const char *policy = facts_text(s->facts, "capacity_scheduler_policy");
    const int executor = is_pytorch(s) ? 2 : 1;
    for (size_t i = 0; policy && i < sizeof presets / sizeof *presets; i++)
        if (strcasecmp(policy, presets[i][0]) == 0) {
            settle_put(s, "serving.preset", "%s", presets[i][executor]);
            return;
        }
    if (policy)
        settle_fail(s, "capacity_scheduler_policy",
                    "the capacity scheduler's policy is %.60s, expected GUARANTEED_NO_EVICT, "
                    "MAX_UTILIZATION or STATIC_BATCH",
                    policy);
    else
        settle_assume(s, "serving.preset", presets[0][executor], "TensorRT-LLM's default");
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

/* gptSession.cpp, createKvCacheManager: a block that is not full counts. */
static void settle_session(struct settled *s)
{
    const long long tokens = settle_at_least_1(s, "session_tokens", 0);
    const long long block = settle_number(s, "tokens_per_block", is_pytorch(s) ? 32 : 64);
    char text[32];
    if (tokens == 0 || block < 1 || s->code < 0 || facts_get(s->facts, "num_tokens") ||
        facts_get(s->facts, "num_gpu_blocks"))
        return;
    snprintf(text, sizeof text, "%lld", (tokens + block - 1) / block);
    s->code = facts_also(s->facts, "num_gpu_blocks", text,
                         facts_get(s->facts, "session_tokens")->at, s->error);
}

static void settle_blocks(struct settled *s)
{
    settle_session(s);
    if (facts_get(s->facts, "measures_memory") && !facts_get(s->facts, "memory_measured"))
        settle_fail(s, "measures_memory",
                    "the K/V blocks of this run are those of a run that measures memory, and no "
                    "line says what it found (\"Estimated max\"): the log ends too early");
    settle_pool(s, &(struct pool_names){
                       .block = "tokens_per_block",
                       .dflt = is_pytorch(s) ? 32 : 64,
                       .dflt_is = "the preset's",
                       .tokens = "max_tokens_in_paged_kv_cache",
                       .rounds_up = true,
                       .missing = "no line says how many K/V blocks there are (\"KV cache primary "
                                  "pool\", \"max tokens in paged KV cache\")",
                   });
}

void settle_trtllm(struct settled *s)
{
    settle_started(s);
    check_version(s);
    settle_capacity(s);
    settle_chunking(s);
    settle_common(s, "tensor_parallel_size", "pipeline_parallel_size", "no such fact");
    settle_world(s);
    settle_kv_scales(s, is_pytorch(s), false);
    if (is_pytorch(s))
        settle_deployment(s, "trtllm-1.2", "the PyTorch executor's host, as measured with 1.2");
    if (settle_number(s, "moe_expert_parallel_size", 1) > 1)
        settle_count(s, "moe_expert_parallel_size", "parallel.expert");
    settle_length(s, "max_seq_len");
    settle_count_or(s, "max_batch_size", "serving.batching.max_seqs", "2048",
                    "TensorRT-LLM's default");
    settle_count_or(s, "max_num_tokens", "serving.batching.max_batched_tokens", "8192",
                    "TensorRT-LLM's default");
    settle_blocks(s);
    settle_real(s, "free_gpu_memory_fraction", "serving.kv.memory_utilization");
    const long long asked =
        settle_number(s, "tensor_parallel_size", 1) * settle_number(s, "pipeline_parallel_size", 1);
    const long long world = settle_number(s, "world_size", 1);
    settle_tiers_trtllm(s, (double)(asked > world ? asked : world));
}
