/* The keys of what executes the steps: `deployment`, `cost`, `engine`, `parallel`. */
#include "config/key_fields.h"

#include "cost/deployment.h"

static const struct ifl_param cost_fields[] = {
    CHOICE("model", cost.model, "roofline|linear|table|recorded", COST_ROOFLINE,
           "roofline: the hardware profile; linear: the coefficients below; table: lookup tables; "
           "recorded: the measured steps of a run"),
    REAL("step_s", cost.step_s, 0, 0, 1e6, "s", "linear: per step"),
    REAL("prefill_token_s", cost.prefill_token_s, 0, 0, 1e6, "s",
         "linear: per token of a sequence that does not decode yet"),
    REAL("decode_seq_s", cost.decode_seq_s, 0, 0, 1e6, "s", "linear: per decoding sequence"),
    REAL("context_token_s", cost.context_token_s, 0, 0, 1e6, "s",
         "linear: per token whose K/V a decoding sequence reads"),
    REAL("prefill_square_s", cost.prefill_square_s, 0, 0, 1e6, "s",
         "linear: per square of the tokens of a sequence that does not decode yet"),
    REAL("decode_step_s", cost.decode_step_s, 0, 0, 1e6, "s",
         "linear: replaces step_s in steps of decodes alone; 0: step_s"),
    INT("large_batch_seqs", cost.large_batch_seqs, 0, 0, ANY, "sequences",
        "linear: a step of decodes alone with at least this many uses the three coefficients "
        "below; 0: no step does"),
    REAL("large_step_s", cost.large_step_s, 0, 0, 1e6, "s", "linear, large batches: per step"),
    REAL("large_seq_s", cost.large_seq_s, 0, 0, 1e6, "s",
         "linear, large batches: per decoding sequence"),
    REAL("large_context_token_s", cost.large_context_token_s, 0, 0, 1e6, "s",
         "linear, large batches: per token whose K/V a decoding sequence reads"),
    REAL("host_step_s", cost.host_step_s, 0, 0, 1, "s",
         "roofline: added to the deployment's host.step_s; superseded by deployment.host.step_s"),
    REAL("host_seq_s", cost.host_seq_s, 0, 0, 1, "s",
         "roofline: the same for each sequence in the step; superseded by deployment.host.seq_s"),
    REAL("host_floor_s", cost.host_floor_s, 0, 0, 10, "s",
         "roofline: lower limit of the deployment's host.floor_s; superseded by "
         "deployment.host.floor_s"),
    TEXT("dir", cost.dir_name, NULL,
         "table: the directory of its three tables, see sim/cost/cost.h; recorded: a run's folder "
         "or its steps.csv, or an engine's log of its steps"),
    CHOICE("otherwise", cost.otherwise, "fail|recorded|predicted", COST_OTHERWISE_FAIL,
           "recorded: a step planned differently than recorded ends the run (fail), takes the "
           "recorded time, or takes that of the linear coefficients, if any is given, else of the "
           "roofline (predicted); recorded and predicted list such steps in differences.csv"),
    INT("ensemble", cost.ensemble, 0, 0, 10000, "runs",
        "roofline: repeat each point with costs drawn from the errors of their fit, and write 90% "
        "intervals of the summary to intervals.csv; `inflight capacity` widens its interval by "
        "them"),
    REAL("host_error_frac", cost.host_error_frac, 0, 0, 1, "",
         "roofline: median relative error of host times, which are not fitted; cost.ensemble draws "
         "one factor per run"),
    BOOL("other_software", cost.other_software, false,
         "roofline: the engine's kernels are not those of the profile's tables; cost.ensemble also "
         "draws how much software differs on one GPU"),
};

const struct key_table cost_keys = {FIELDS(cost)};

static const struct ifl_param engine_fields[] = {
    TEXT("weights", engine.weights, "random", "executor cpu, cuda: random, or a directory"),
    TEXT("adapters", engine.adapters, "random",
         "executor cpu: random, or a directory with one folder in PEFT's format per adapter, named "
         "like the adapter"),
    TEXT("dtype", engine.dtype_name, "auto",
         "data type of weights, activations and K/V. executor cpu: fp32; cuda: bf16, fp16; auto: "
         "fp32 on cpu; on cuda fp16 if the checkpoint is fp16, else bf16"),
    TEXT("kv_dtype", engine.kv_dtype_name, "auto",
         "data type of K/V: fp8 (e4m3, no scale) or that of engine.dtype; executor sim: also int8, "
         "int4. The simulator, too, uses it: it sets the model's kv_bytes, and so the sizes of "
         "blocks, swaps and attention reads. auto: fp8 if the model's kv_bytes is 1, else that of "
         "engine.dtype"),
    INT("kv_group_elements", engine.kv_group_elements, 0, 0, ANY, "elements",
        "kv_dtype int8, int4: elements of K or V that share a scale; 0: those of one head and "
        "token (LMDeploy; KIVI: 32, FlexGen: 64)"),
    INT("kv_scale_bytes", engine.kv_scale_bytes, 4, 0, 64, "bytes",
        "kv_dtype int8, int4: size of a scale with its zero point; 0: one scale for the whole "
        "tensor (TensorRT-LLM)"),
    COUNT("seed", engine.seed, 0, "", "seed of random weights and of prompt tokens"),
    INT("window_tokens", engine.window_tokens, 0, 0, ANY, "tokens",
        "random weights: attention window; 0: the model's window_tokens. A checkpoint sets its "
        "own"),
    INT("threads", engine.threads, 1, 1, 1024, "threads",
        "executor cpu: threads that compute; cuda: threads that load weights"),
    BOOL("dependent_launch", engine.dependent_launch, true,
         "executor cuda: a kernel may start before the previous kernel has ended (Hopper)"),
    BOOL("graphs", engine.graphs, true,
         "executor cuda: the kernels of a step with only decodes are launched as one graph"),
    BOOL("batched_copies", engine.batched_copies, true,
         "executor cuda: the swaps of a step are one call per direction"),
    BOOL("timed_algorithms", engine.timed_algorithms, true,
         "executor cuda: matrix products of up to 256 rows use the algorithm measured as fastest "
         "when the engine opens; false: the library's first choice, the same in every run"),
    BOOL("spoil_free_blocks", engine.spoil_free_blocks, false,
         "fill KV blocks that no request owns with NaN, to detect reads of them"),
};

const struct key_table engine_keys = {FIELDS(engine)};

static const struct ifl_param parallel_fields[] = {
    INT("tensor", tensor_parallel, 1, 1, 64, "GPUs", "GPUs that share every layer"),
    INT("pipeline", pipeline_parallel, 1, 1, 64, "stages",
        "pipeline stages (serving.in_flight: how many steps are in them)"),
    TEXT("stage_layers", stage_layers, "",
         "layers of each stage, \"10,11,11\"; empty: equal parts, a remainder goes to the stages "
         "before the last"),
    INT("data", data_parallel, 1, 1, 256, "groups",
        "groups of parallel.tensor GPUs that share only the experts; each group has its own "
        "requests and K/V; all groups run their steps in lockstep"),
    INT("expert", expert_parallel, 1, 1, 4096, "GPUs",
        "GPU groups, within tensor x data, over which whole experts are distributed; the GPUs of a "
        "group divide each expert's columns"),
    INT("context", context_parallel, 1, 1, 64, "GPUs",
        "GPUs, of those of tensor with the same KV head, that divide its context; a block then has "
        "this many times kv.block_tokens"),
    BOOL("sequence", sequence_parallel, false,
         "the GPUs of tensor divide norms and residuals; each all-reduce becomes a reduce-scatter "
         "and an all-gather"),
};

const struct key_table parallel_keys = {FIELDS(parallel)};

static const struct key_by_hand deployment_by_hand[] = {
    {"base", "a deployment of configs/deployments, or a path", "the profile's",
     "how the server runs the engine; each key beside it overrides one of its own (a NAME alone "
     "means {base: NAME})"},
    {"intervals", "a map of the keys below to [low, high]", "none",
     "central 90% interval of each of these numbers, from which cost.ensemble draws; correlations: "
     "a list of [number, number, correlation] for the draws"},
};

#define DEPLOYMENT(section)                                                                        \
    .fields = deployment##section##_fields, .n_fields = COUNT_OF(deployment##section##_fields)

const struct key_table deployment_keys = {DEPLOYMENT(), BY_HAND(deployment)};
const struct key_table deployment_host_keys = {DEPLOYMENT(_host)};
const struct key_table deployment_memory_keys = {DEPLOYMENT(_memory)};
const struct key_table deployment_front_end_keys = {DEPLOYMENT(_front_end)};
const struct key_table deployment_all_reduce_keys = {DEPLOYMENT(_all_reduce)};
const struct key_table deployment_exchange_keys = {DEPLOYMENT(_exchange)};
const struct key_table deployment_cache_keys = {DEPLOYMENT(_cache)};
const struct key_table deployment_kernels_keys = {DEPLOYMENT(_kernels)};
