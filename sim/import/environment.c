/* The names are those that the servers' sources read: vllm/envs.py up to 0.33,
 * python/sglang/srt/environ.py up to 0.5.23. */
#include "import/environment.h"

#include <stdio.h>
#include <string.h>

#include "base/flag_rows.h"

static const struct place here = {NULL, 0};

/* What LMCache reads, where vLLM's command line starts it. */
static const struct server_flag lmcache[] = {
    DEPENDS("LMCACHE_CHUNK_SIZE", NULL, VALUE, "serving.kv.tiers.host.unit_tokens"),
    DEPENDS("LMCACHE_MAX_LOCAL_CPU_SIZE", NULL, VALUE, "serving.kv.tiers.host.gib"),
};

/* True if `word` is "NAME=value" with this name; one that ends in '*' stands for all that begin so.
 */
static bool has_name(const char *word, const char *name)
{
    const size_t n = strcspn(name, "*");
    return strncmp(word, name, n) == 0 && (name[n] == '*' || word[n] == '=');
}

/* Where a variable of an engine does not set a key. */
struct sense {
    enum finding_kind kind;
    const char *says;
};

#define SAFE                                                                                       \
    {                                                                                              \
        FOUND_HARMLESS, NULL                                                                       \
    }
#define COMPUTES                                                                                   \
    {                                                                                              \
        FOUND_UNMODELLED, KERNELS                                                                  \
    }
#define COMMUNICATES                                                                               \
    {                                                                                              \
        FOUND_UNMODELLED, "communication: all-reduces of the hardware profile count"               \
    }
#define OF_HOST                                                                                    \
    {                                                                                              \
        FOUND_UNMODELLED, "threads of the host"                                                    \
    }
#define SCHEDULES                                                                                  \
    {                                                                                              \
        FOUND_UNMODELLED, "a constant of the scheduler: the preset has that of SGLang's defaults"  \
    }
#define CACHES                                                                                     \
    {                                                                                              \
        FOUND_UNMODELLED, "which cached blocks stay"                                               \
    }
#define STATES                                                                                     \
    {                                                                                              \
        FOUND_UNMODELLED, "the dtype of states: state_bytes of the model's file says it"           \
    }
#define DRAFTS                                                                                     \
    {                                                                                              \
        FOUND_UNMODELLED, "how guesses are made and checked: serving.speculation says it"          \
    }
#define GIVES_UP                                                                                   \
    {                                                                                              \
        FOUND_UNMODELLED, "requests that a server gives up after a time"                           \
    }
#define DETAILS                                                                                    \
    {                                                                                              \
        FOUND_HARMLESS, "a detail of a feature that has a flag of its own"                         \
    }
#define ALLOCATES                                                                                  \
    {                                                                                              \
        FOUND_HARMLESS, "memory is simulated without the allocator's fragments"                    \
    }

/* The first row that fits counts. */
static const struct known {
    const char *name;
    struct sense sense;
} known[] = {
    /* logs, files, addresses, limits of time, what is loaded from where */
    {"VLLM_LOGGING_*", SAFE},
    {"VLLM_CONFIGURE_LOGGING", SAFE},
    {"VLLM_LOG_*", SAFE},
    {"VLLM_CACHE_ROOT", SAFE},
    {"VLLM_ASSETS_CACHE", SAFE},
    {"VLLM_CONFIG_ROOT", SAFE},
    {"VLLM_DISABLE_COMPILE_CACHE", SAFE},
    {"VLLM_USAGE_*", SAFE},
    {"VLLM_NO_USAGE_STATS", SAFE},
    {"VLLM_DO_NOT_TRACK", SAFE},
    {"VLLM_API_KEY", SAFE},
    {"VLLM_HOST_IP", SAFE},
    {"VLLM_PORT", SAFE},
    {"VLLM_RPC_*", SAFE},
    {"VLLM_HTTP_TIMEOUT_KEEP_ALIVE", SAFE},
    {"VLLM_ENGINE_ITERATION_TIMEOUT_S", SAFE},
    {"VLLM_ENGINE_READY_TIMEOUT_S", SAFE},
    {"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", SAFE},
    {"VLLM_IMAGE_FETCH_TIMEOUT", SAFE},
    {"VLLM_VIDEO_FETCH_TIMEOUT", SAFE},
    {"VLLM_AUDIO_FETCH_TIMEOUT", SAFE},
    {"VLLM_USE_MODELSCOPE", SAFE},
    {"VLLM_WORKER_MULTIPROC_METHOD", SAFE},
    {"VLLM_SERVER_DEV_MODE", SAFE},
    {"VLLM_TORCH_PROFILER_DIR", SAFE},
    {"VLLM_NIXL_SIDE_CHANNEL_*", SAFE},
    {"VLLM_ALLOW_LONG_MAX_MODEL_LEN", SAFE},
    {"VLLM_ALLOW_RUNTIME_LORA_UPDATING", SAFE},
    {"SGLANG_LOG_*", SAFE},
    {"SGLANG_PORT", SAFE},
    {"SGLANG_HOST_IP", SAFE},
    {"SGLANG_CACHE_DIR", SAFE},
    {"SGLANG_USE_MODELSCOPE", SAFE},
    {"SGLANG_WARMUP_TIMEOUT", SAFE},
    {"SGLANG_TIMEOUT_KEEP_ALIVE", SAFE},
    {"SGLANG_TORCH_PROFILER_DIR", SAFE},
    {"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION", SAFE},
    {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", SAFE},
    {"SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK", SAFE},
    {"TRTLLM_LOG_*", SAFE},
    {"TLLM_LOG_*", SAFE},
    {"NCCL_DEBUG*", SAFE},
    {"NCCL_SOCKET_IFNAME", SAFE},
    {"CUDA_HOME", SAFE},
    {"CUDA_DEVICE_ORDER", SAFE},
    {"TORCH_CUDA_ARCH_LIST", SAFE},
    {"TORCHINDUCTOR_CACHE_DIR", SAFE},
    {"TORCH_HOME", SAFE},
    {"TRITON_CACHE_DIR", SAFE},
    {"TRITON_PTXAS_PATH", SAFE},
    /* what computes and communicates */
    {"VLLM_ATTENTION_BACKEND", COMPUTES},
    {"VLLM_FLASH_ATTN_VERSION", COMPUTES},
    {"VLLM_FLASHINFER_*", COMPUTES},
    {"VLLM_USE_FLASHINFER_*", COMPUTES},
    {"VLLM_USE_TRITON_*", COMPUTES},
    {"VLLM_USE_DEEP_GEMM*", COMPUTES},
    {"VLLM_MOE_USE_DEEP_GEMM", COMPUTES},
    {"VLLM_MARLIN_*", COMPUTES},
    {"VLLM_MXFP4_*", COMPUTES},
    {"VLLM_NVFP4_*", COMPUTES},
    {"VLLM_DISABLED_KERNELS", COMPUTES},
    {"VLLM_ROCM_*", COMPUTES},
    {"VLLM_ALL2ALL_BACKEND", COMMUNICATES},
    {"VLLM_ALLREDUCE_*", COMMUNICATES},
    {"VLLM_SKIP_P2P_CHECK", COMMUNICATES},
    {"SGLANG_BACKUP_PORT_BASE", SAFE},
    {"SGLANG_CRASH_ON_*", SAFE},
    {"SGLANG_CUDA_COREDUMP*", SAFE},
    {"SGLANG_CUTE_AOT_CACHE_DIR", SAFE},
    {"SGLANG_DEBUG_*", SAFE},
    {"SGLANG_DEFAULT_THINKING", SAFE},
    {"SGLANG_DETECT_SLOW_RANK", SAFE},
    {"SGLANG_DG_CACHE_DIR", SAFE},
    {"SGLANG_DISABLE_OUTLINES_DISK_CACHE", SAFE},
    {"SGLANG_DISABLE_TP_MEMORY_INBALANCE_CHECK", SAFE},
    {"SGLANG_DSV4_REASONING_EFFORT", SAFE},
    {"SGLANG_ENABLE_ASYNC_ASSERT", SAFE},
    {"SGLANG_ENABLE_METRICS_*", SAFE},
    {"SGLANG_ENABLE_NVTX*", SAFE},
    {"SGLANG_ENABLE_REQUEST_*", SAFE},
    {"SGLANG_ENABLE_STRICT_MEM_CHECK_*", SAFE},
    {"SGLANG_ENABLE_THINKING", SAFE},
    {"SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK", SAFE},
    {"SGLANG_EXA_*", SAFE},
    {"SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR", SAFE},
    {"SGLANG_EXPERT_LOCATION_UPDATER_*", SAFE},
    {"SGLANG_EXPOSE_OWN_ENV_VARS", SAFE},
    {"SGLANG_EXTERNAL_*", SAFE},
    {"SGLANG_FORCE_SHUTDOWN", SAFE},
    {"SGLANG_FORWARD_UNKNOWN_TOOLS", SAFE},
    {"SGLANG_GC_LOG", SAFE},
    {"SGLANG_GRPC_*", SAFE},
    {"SGLANG_INVARIANT_CHECK", SAFE},
    {"SGLANG_IS_IN_CI*", SAFE},
    {"SGLANG_JIT_CACHE_*", SAFE},
    {"SGLANG_JIT_DEEPGEMM_*", SAFE},
    {"SGLANG_KILLPG_ON_SCHEDULER_EXCEPTION", SAFE},
    {"SGLANG_KV_CANARY_*", SAFE},
    {"SGLANG_MAX_THINK_TOKENS", SAFE},
    {"SGLANG_OTLP_*", SAFE},
    {"SGLANG_PATCH_TOKENIZER", SAFE},
    {"SGLANG_PREFETCH_BLOCK_SIZE_MB", SAFE},
    {"SGLANG_PROFILE_*", SAFE},
    {"SGLANG_PYSPY_DUMP_BEFORE_CRASH", SAFE},
    {"SGLANG_REASONING_EFFORT", SAFE},
    {"SGLANG_RECORD_STEP_TIME", SAFE},
    {"SGLANG_RUST_*", SAFE},
    {"SGLANG_SORT_WEIGHT_FILES", SAFE},
    {"SGLANG_TCP_STORE_PORT", SAFE},
    {"SGLANG_TEST_*", SAFE},
    {"SGLANG_TOOL_STRICT_LEVEL", SAFE},
    {"SGLANG_TRACE_*", SAFE},
    {"SGLANG_UVICORN_WORKER_HEALTHCHECK_TIMEOUT", SAFE},
    {"SGLANG_WEIGHT_CACHE_*", SAFE},
    {"SGLANG_DISAGGREGATION_*", DETAILS},
    {"SGLANG_DISAGG_*", DETAILS},
    {"SGLANG_ENCODER_*", DETAILS},
    {"SGLANG_GRAMMAR_*", DETAILS},
    {"SGLANG_HICACHE_*", DETAILS},
    {"SGLANG_MM_*", DETAILS},
    {"SGLANG_MOONCAKE_*", DETAILS},
    {"SGLANG_FORWARD_TIMEOUT_MS", GIVES_UP},
    {"SGLANG_QUEUED_TIMEOUT_MS", GIVES_UP},
    {"SGLANG_REQ_RUNNING_TIMEOUT", GIVES_UP},
    {"SGLANG_REQ_WAITING_TIMEOUT", GIVES_UP},
    {"SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION", SCHEDULES},
    {"SGLANG_DATA_PARALLEL_BUDGET_INTERVAL", SCHEDULES},
    {"SGLANG_DISABLE_CONSECUTIVE_PREFILL_OVERLAP", SCHEDULES},
    {"SGLANG_DYNAMIC_CHUNKING_*", SCHEDULES},
    {"SGLANG_INIT_NEW_TOKEN_RATIO", SCHEDULES},
    {"SGLANG_MAX_NEW_TOKENS_LIMIT", SCHEDULES},
    {"SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR", SCHEDULES},
    {"SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS", SCHEDULES},
    {"SGLANG_PP_*", SCHEDULES},
    {"SGLANG_PREFILL_*", SCHEDULES},
    {"SGLANG_RETRACT_DECODE_STEPS", SCHEDULES},
    {"SGLANG_SCHEDULER_DECREASE_PREFILL_IDLE", SCHEDULES},
    {"SGLANG_ENABLE_UNIFIED_RADIX_TREE", CACHES},
    {"SGLANG_EXPERIMENTAL_CPP_RADIX_TREE", CACHES},
    {"SGLANG_RADIX_FORCE_MISS", CACHES},
    {"SGLANG_SWA_EVICTION_INTERVAL", CACHES},
    {"SGLANG_MAMBA_CONV_DTYPE", STATES},
    {"SGLANG_MAMBA_SSM_DTYPE", STATES},
    {"SGLANG_DSPARK_*", DRAFTS},
    {"SGLANG_ENABLE_SPEC_V2", DRAFTS},
    {"SGLANG_RAGGED_VERIFY_MODE", DRAFTS},
    {"SGLANG_SIMULATE_*", DRAFTS},
    {"SGLANG_SPEC_*", DRAFTS},
    {"SGLANG_AITER_*", COMPUTES},
    {"SGLANG_BLACKWELL_*", COMPUTES},
    {"SGLANG_CUTEDSL_*", COMPUTES},
    {"SGLANG_CUTLASS_*", COMPUTES},
    {"SGLANG_DEEPGEMM_*", COMPUTES},
    {"SGLANG_DG_USE_NVRTC", COMPUTES},
    {"SGLANG_DSA_*", COMPUTES},
    {"SGLANG_DSV4_*", COMPUTES},
    {"SGLANG_ENABLE_BF16_SPLITK_GEMM", COMPUTES},
    {"SGLANG_ENABLE_DSA_*", COMPUTES},
    {"SGLANG_ENABLE_GDN_*", COMPUTES},
    {"SGLANG_ENABLE_MOE_*", COMPUTES},
    {"SGLANG_ENABLE_TORCH_COMPILE", COMPUTES},
    {"SGLANG_FLASHINFER_*", COMPUTES},
    {"SGLANG_FORCE_FP8_MARLIN", COMPUTES},
    {"SGLANG_FORCE_FUSED_OP_BACKEND", COMPUTES},
    {"SGLANG_HUMMING_*", COMPUTES},
    {"SGLANG_K3_*", COMPUTES},
    {"SGLANG_MASKED_GEMM_FAST_ACT", COMPUTES},
    {"SGLANG_MINIMAX_*", COMPUTES},
    {"SGLANG_MOE_*", COMPUTES},
    {"SGLANG_NPU_*", COMPUTES},
    {"SGLANG_NSA_*", COMPUTES},
    {"SGLANG_NVFP4_*", COMPUTES},
    {"SGLANG_OPT_*", COMPUTES},
    {"SGLANG_PER_TOKEN_GROUP_QUANT_8BIT_V2", COMPUTES},
    {"SGLANG_ROCM_*", COMPUTES},
    {"SGLANG_SHARED_EXPERT_TP1", COMPUTES},
    {"SGLANG_SKIP_SOFTMAX_*", COMPUTES},
    {"SGLANG_SM120_*", COMPUTES},
    {"SGLANG_TRITON_*", COMPUTES},
    {"SGLANG_TRTLLM_*", COMPUTES},
    {"SGLANG_USE_DEEPGEMM_BMM", COMPUTES},
    {"SGLANG_USE_DYNAMIC_MXFP4_LINEAR", COMPUTES},
    {"SGLANG_USE_SGL_FA3_KERNEL", COMPUTES},
    {"SGLANG_VIT_*", COMPUTES},
    {"SGLANG_CHUNKED_PREFIX_CACHE_THRESHOLD", COMPUTES},
    {"SGLANG_CUSTOM_ALL_REDUCE_*", COMMUNICATES},
    {"SGLANG_DEEPEP_*", COMMUNICATES},
    {"SGLANG_DP_USE_*", COMMUNICATES},
    {"SGLANG_ENABLE_DP_GATHER_FP8", COMMUNICATES},
    {"SGLANG_ENABLE_EMBED_REPLICATION", COMMUNICATES},
    {"SGLANG_EPLB_*", COMMUNICATES},
    {"SGLANG_FORCE_CUSTOM_ALL_REDUCE_*", COMMUNICATES},
    {"SGLANG_MORI_*", COMMUNICATES},
    {"SGLANG_NCCL_*", COMMUNICATES},
    {"SGLANG_NIXL_EP_*", COMMUNICATES},
    {"SGLANG_PPLX_*", COMMUNICATES},
    {"SGLANG_SCHEDULER_SKIP_ALL_GATHER", COMMUNICATES},
    {"SGLANG_SYMM_MEM_*", COMMUNICATES},
    {"SGLANG_USE_1STAGE_ALLREDUCE", COMMUNICATES},
    {"SGLANG_USE_JIT_ALL_REDUCE", COMMUNICATES},
    {"SGLANG_AUTO_NUMA_BIND", OF_HOST},
    {"SGLANG_EAGER_INPUT_NO_COPY", OF_HOST},
    {"SGLANG_ENABLE_DELAY_SAMPLE", OF_HOST},
    {"SGLANG_ENABLE_METADATA_GLUE_GRAPH", OF_HOST},
    {"SGLANG_ENABLE_OVERLAP_PLAN_STREAM", OF_HOST},
    {"SGLANG_FORCE_STREAM_INTERVAL", OF_HOST},
    {"SGLANG_NUMA_BIND_V2", OF_HOST},
    {"SGLANG_SCHEDULER_MAX_RECV_PER_POLL", OF_HOST},
    {"SGLANG_SCHEDULER_RECV_SKIPPER_*", OF_HOST},
    {"SGLANG_SET_CPU_AFFINITY", OF_HOST},
    {"SGLANG_USE_MESSAGE_QUEUE_BROADCASTER", OF_HOST},
    {"SGLANG_USE_PICKLE_IPC", OF_HOST},
    {"SGLANG_ENABLE_JIT_DEEPGEMM", COMPUTES},
    {"SGL_ENABLE_JIT_DEEPGEMM", COMPUTES},
    {"SGLANG_USE_AITER*", COMPUTES},
    {"NCCL_*", COMMUNICATES},
    {"OMP_NUM_THREADS", OF_HOST},
    {"PYTORCH_CUDA_ALLOC_CONF", ALLOCATES},
    {"PYTORCH_ALLOC_CONF", ALLOCATES},
};

/* Variables by what they begin with, and the server that reads them; N_SERVERS: a library that all
 * of them use. */
static const struct family {
    const char *start;
    enum server server;
} families[] = {
    {"VLLM_", SERVER_VLLM},     {"SGLANG_", SERVER_SGLANG}, {"SGL_", SERVER_SGLANG},
    {"TRTLLM_", SERVER_TRTLLM}, {"TLLM_", SERVER_TRTLLM},   {"NCCL_", N_SERVERS},
    {"CUDA_", N_SERVERS},       {"TORCH", N_SERVERS},       {"PYTORCH_", N_SERVERS},
    {"LMCACHE_", N_SERVERS},    {"TRITON", N_SERVERS},      {"CUBLAS", N_SERVERS},
    {"OMP_", N_SERVERS},
};

static const struct family *family_of(const char *word)
{
    if (has_name(word, "CUDA_VISIBLE_DEVICES"))
        return NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strncmp(word, families[i].start, strlen(families[i].start)) == 0)
            return &families[i];
    return NULL;
}

/* Names that no server reads behind its prefix, up to the releases above. People give them to what
 * their scripts and manifests put into the command: SGLANG_MODEL. The command that was read has the
 * values that count. */
static bool is_of_script(const char *behind_prefix)
{
    static const char names[] =
        " MODEL MODEL_ID MODEL_NAME MODEL_PATH MODEL_DIR SERVED_MODEL_NAME TOKENIZER TP TP_SIZE"
        " TENSOR_PARALLEL_SIZE DTYPE QUANTIZATION KV_CACHE_DTYPE MAX_MODEL_LEN CONTEXT_LENGTH"
        " MAX_NUM_SEQS MAX_RUNNING_REQUESTS MAX_NUM_BATCHED_TOKENS CHUNKED_PREFILL_SIZE"
        " GPU_MEMORY_UTILIZATION GPU_MEM_UTIL MEM_FRACTION_STATIC MEM_FRACTION HOST IMAGE IMAGE_TAG"
        " TAG VERSION CONTAINER CONTAINER_NAME ARGS EXTRA_ARGS ADDITIONAL_ARGS FLAGS CMD COMMAND ";
    char name[64];
    snprintf(name, sizeof name, " %.*s ", (int)strcspn(behind_prefix, "="), behind_prefix);
    return strstr(names, name);
}

static struct sense sense_of(const char *word, enum server server)
{
    static const char *const others[] = {[SERVER_VLLM] = "vLLM does not read it",
                                         [SERVER_SGLANG] = "SGLang does not read it",
                                         [SERVER_TRTLLM] = "TensorRT-LLM does not read it"};
    const struct family *family = family_of(word);
    if (!family)
        return (struct sense)SAFE;
    if (family->server != N_SERVERS && family->server != server)
        return (struct sense){FOUND_HARMLESS, others[server]};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (has_name(word, known[i].name))
            return known[i].sense;
    if (family->server != N_SERVERS && is_of_script(word + strlen(family->start)))
        return (struct sense){FOUND_HARMLESS, others[server]};
    return (struct sense){FOUND_UNKNOWN, NULL};
}

bool environment_is_variable(const char *word)
{
    const size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n > 0 && word[n] == '=' && !(word[0] >= '0' && word[0] <= '9');
}

/* A variable that stands for a key. */
static int take(const char *word, const char *fact, const char *value, const char *key,
                struct facts *facts, struct ifl_error *error)
{
    const int code = facts_say(facts, fact, value, here, false, error);
    return code < 0 ? code : facts_find(facts, FOUND_MAPS, here, word, key, NULL, error);
}

int environment_read(const char *variable, struct facts *facts, struct ifl_error *error)
{
    const char *value = strchr(variable, '=') + 1;
    const bool is_zero = strcmp(value, "0") == 0, is_vllm = facts->server == SERVER_VLLM;
    if (is_vllm && has_name(variable, "VLLM_USE_V1"))
        return take(variable, "engine", is_zero ? "V0" : "V1", "serving.preset", facts, error);
    if (is_vllm && has_name(variable, "VLLM_USE_FLASHINFER_SAMPLER"))
        return take(variable, "flashinfer_sampler", is_zero ? "False" : "True",
                    "serving.kv.flashinfer_sampler", facts, error);
    for (size_t i = 0; i < sizeof lmcache / sizeof *lmcache; i++)
        if (has_name(variable, lmcache[i].name))
            return facts_argument(facts, &lmcache[i], value, variable, here, false, error);
    const struct sense sense = sense_of(variable, facts->server);
    return facts_find(facts, sense.kind, here, variable, NULL, sense.says, error);
}
