/* The keys of a configuration. A name that is not in this table is no key. */
#include "config/keys.h"

#include <math.h>

#include "cost/deployment.h"
#include "cost/model.h"

#define AT(member) offsetof(struct config, member)
#define CAP(member) ((double)sizeof((struct config *)0)->member)
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* name, where it is stored, default, range, unit, one line */
#define INT(key, member, dflt, min, max, unit, doc)                                                \
    {                                                                                              \
        key, IFL_INT, AT(member), dflt, min, max, NULL, unit, doc                                  \
    }
#define COUNT(key, member, dflt, unit, doc)                                                        \
    {                                                                                              \
        key, IFL_COUNT, AT(member), dflt, 0, INFINITY, NULL, unit, doc                             \
    }
#define REAL(key, member, dflt, min, max, unit, doc)                                               \
    {                                                                                              \
        key, IFL_REAL, AT(member), dflt, min, max, NULL, unit, doc                                 \
    }
#define TIME(key, member, dflt, min, max, doc)                                                     \
    {                                                                                              \
        key, IFL_TIME, AT(member), dflt, min, max, NULL, "s", doc                                  \
    }
#define BOOL(key, member, dflt, doc)                                                               \
    {                                                                                              \
        key, IFL_BOOL, AT(member), dflt, 0, 1, NULL, "", doc                                       \
    }
#define CHOICE(key, member, choices, dflt, doc)                                                    \
    {                                                                                              \
        key, IFL_CHOICE, AT(member), dflt, 0, 0, choices, "", doc                                  \
    }
#define TEXT(key, member, dflt, doc)                                                               \
    {                                                                                              \
        key, IFL_TEXT, AT(member), 0, 0, CAP(member), dflt, "", doc                                \
    }
#define TEXT_REQUIRED(key, member, doc)                                                            \
    {                                                                                              \
        key, IFL_TEXT, AT(member), NAN, 0, CAP(member), NULL, "", doc                              \
    }

/* The least rate and the least period: 0 has no meaning for either, and no real one is smaller. */
static const double SMALL = 1e-9;

#define ANY INT32_MAX
#define A_BILLION 1e9 /* seconds: 32 years, still exact to 128 ns as a double */

static const struct ifl_param top_fields[] = {
    TEXT("model", model, NULL,
         "a model of configs/models, or a path; optional with cost linear or recorded"),
    TEXT("hardware", hardware, NULL,
         "a profile of configs/hardware, or a path; optional with cost linear or recorded"),
    CHOICE("dtype", dtype, MODEL_DTYPES, MODEL_DTYPE_AUTO,
           "of the model's weights; fp8, int8, int4: of the layers' matrices, with activations and "
           "K/V of 16 bits; auto: as the model says. An engine's is engine.dtype"),
    CHOICE("executor", executor, "sim|cpu|cuda", EXECUTOR_SIM,
           "a cost model in virtual time, or an engine in wall time"),
    INT("replications", replications, 1, 1, 10000, "runs",
        "fly every point that often, each time with other arrivals and another shuffle"),
    BOOL("steady_state", steady_state, false,
         "the summary leaves out the warm-up, found by MSER-5 (White, Simulation 69:6, 1997)"),
};

static const struct key_by_hand top_by_hand[] = {
    {"sweep", "a map of keys to lists of values, or to maps of names to values", "no sweep",
     "one point for every combination, the first key varying slowest; its key `variants` maps "
     "names "
     "to configurations"},
};

static const struct ifl_param workload_fields[] = {
    TEXT_REQUIRED("trace", workload.trace_name, "the trace file, plain or gzipped"),
    TEXT("format", workload.format, "auto", "its format, see `inflight list traces`"),
    INT("max_record_mib", workload.max_record_mib, IFL_MAX_RECORD_MIB, 1, 1 << 20, "MiB",
        "a longer line or JSON object of the trace is refused: it would fill the memory"),
    COUNT("limit", workload.window.limit, 0, "requests", "keep that many; 0: all"),
    COUNT("skip", workload.window.skip, 0, "requests", "leave out that many at the start"),
    TIME("from_s", workload.window.from_ns, 0, 0, A_BILLION, "keep stamps from then on"),
    TIME("to_s", workload.window.to_ns, 0, 0, A_BILLION, "keep stamps before then; 0: to the end"),
    BOOL("shuffle", workload.window.shuffle, false, "put the rows in a random order"),
    COUNT("shuffle_seed", workload.window.shuffle_seed, 0, "", "of that order"),
    INT("shared_prefix_tokens", workload.shared_prefix_tokens, 0, 0, ANY, "tokens",
        "that all prompts without a prefix group of their own begin with, for the prefix cache"),
    REAL("deadline_s", workload.deadline_s, 0, 0, A_BILLION, "s",
         "after its arrival the server gives up a request that names no deadline; 0: never"),
};

static const struct key_by_hand workload_by_hand[] = {
    {"filter", "none, sharegpt, or a map of the keys below", "none",
     "sharegpt: 4, 4, 1024 and 2048, as vLLM's benchmark samples its data set"},
};

static const struct ifl_param filter_fields[] = {
    INT("min_prompt", workload.window.min_prompt, 0, 0, ANY, "tokens", "shortest prompt kept"),
    INT("min_output", workload.window.min_output, 0, 0, ANY, "tokens", "shortest output kept"),
    INT("max_prompt", workload.window.max_prompt, 0, 0, ANY, "tokens",
        "longest prompt kept; 0: no limit"),
    INT("max_total", workload.window.max_total, 0, 0, ANY, "tokens",
        "longest prompt and output kept; 0: no limit"),
};

static const struct ifl_param arrivals_fields[] = {
    CHOICE("process", workload.arrivals.process, "trace|poisson|gamma|constant|burst|closed",
           IFL_ARRIVE_TRACE, "the trace's own stamps, or drawn anew"),
    REAL("rate_rps", workload.arrivals.rate_rps, 0, 0, 1e9, "requests/s",
         "mean rate of poisson, gamma, constant"),
    REAL("cv", workload.arrivals.cv, 1, 0.01, 50, "", "coefficient of variation of gamma's gaps"),
    REAL("speedup", workload.arrivals.speedup, 1, SMALL, 1e9, "",
         "process trace: stamps are divided by it"),
    INT("concurrency", workload.arrivals.concurrency, 0, 0, ANY, "requests",
        "process closed: requests under way at a time"),
    COUNT("seed", workload.arrivals.seed, 0, "", "of the arrivals"),
    REAL("sine_amplitude_frac", workload.arrivals.sine_amplitude_frac, 0, 0, 1, "of the rate",
         "the rate is multiplied by 1 + amplitude x sin(2 pi (t + phase) / period)"),
    REAL("sine_period_s", workload.arrivals.sine_period_s, 0, 0, A_BILLION, "s",
         "its period; above 0 where there is an amplitude"),
    REAL("sine_phase_s", workload.arrivals.sine_phase_s, 0, -A_BILLION, A_BILLION, "s",
         "its time at the start"),
};

static const struct key_by_hand arrivals_by_hand[] = {
    {"pieces", "a list of pairs [from_s, rate_rps], at most 64", "none",
     "the rate from then on, instead of rate_rps; the first from 0"},
};

static const struct ifl_param predictor_fields[] = {
    CHOICE("model", workload.predictor.model, "none|oracle|lognormal|buckets", PREDICT_ORACLE,
           "what policies are told of output lengths: nothing, the truth, the truth times a "
           "lognormal error, the upper end of its bucket"),
    REAL("sigma", workload.predictor.sigma, 0.5, 0, 10, "",
         "lognormal: standard deviation of the error's logarithm; its median is 1"),
    INT("bucket_tokens", workload.predictor.bucket_tokens, 64, 1, 1 << 20, "tokens",
        "buckets: their width"),
    REAL("miss_frac", workload.predictor.miss_frac, 0, 0, 1, "of requests",
         "buckets: told the bucket below or above the right one"),
    COUNT("seed", workload.predictor.seed, 0, "", "of the errors"),
};

static const struct ifl_param patience_fields[] = {
    CHOICE("process", workload.patience.process, "none|constant|exponential|lognormal",
           PATIENCE_NONE,
           "how long a client waits that names no abort_s: it leaves then, answered or not"),
    REAL("mean_s", workload.patience.mean_s, 60, 0, A_BILLION, "s", "of that time"),
    REAL("cv", workload.patience.cv, 1, 0.01, 50, "", "lognormal: its coefficient of variation"),
    BOOL("until_first_token", workload.patience.until_first_token, false,
         "a client that has its first token stays, one that names an abort_s, too"),
    COUNT("seed", workload.patience.seed, 0, "", "of the draws"),
};

static const struct ifl_param retry_fields[] = {
    INT("most", workload.retries.most, 0, 0, 100, "times",
        "a client sends a request again that was shed, timed out or aborted; OpenAI's client: 2"),
    REAL("backoff_s", workload.retries.backoff_s, 0.5, 0, A_BILLION, "s",
         "before it does so for the first time"),
    REAL("factor", workload.retries.factor, 2, 1, 1000, "", "by which that grows each time"),
    REAL("max_backoff_s", workload.retries.max_backoff_s, 8, 0, A_BILLION, "s", "at most"),
    REAL("jitter_frac", workload.retries.jitter_frac, 0.25, 0, 1, "",
         "share of it, drawn uniformly, by which it is shorter"),
    COUNT("seed", workload.retries.seed, 0, "", "of the draws"),
};

static const struct ifl_param beams_fields[] = {
    BOOL("search", workload.beams.search, false,
         "the samples of a request are the beams of a search, which copy each other; executor sim"),
    REAL("fork_frac", workload.beams.fork_frac, 0.1, 0, 1, "of the beams",
         "go on from a beam drawn at random after a token, the others from themselves"),
    COUNT("seed", workload.beams.seed, 0, "", "of the draws"),
};

static const struct ifl_param serving_fields[] = {
    TEXT("preset", serving.preset, NULL,
         "a published system of configs/serving, or a path; keys beside it override its own"),
    TEXT("engine", serving.engine, NULL,
         "the engine whose scheduler this is: vllm, sglang, trtllm, tgi, lightllm; a summary says "
         "where the profile's kernels are another engine's, and nothing else depends on it"),
    INT("max_model_len", serving.max_model_len, 0, 0, ANY, "tokens",
        "longest prompt and output of a request; 0: the model's (without a model: 2^20)"),
    INT("max_queued_reqs", serving.door.max_queued_reqs, 0, 0, ANY, "sequences",
        "an arrival is shed that would make it more, waiting or running in the cluster, or pool "
        "(vLLM's max_num_queued_reqs); 0: no limit"),
    INT("max_queued_tokens", serving.door.max_queued_tokens, 0, 0, ANY, "tokens",
        "an arrival is shed while prompts without a first token, cached tokens included, are "
        "so long together (vLLM's max_num_queued_tokens); 0: no limit"),
    INT("max_waiting_reqs", serving.door.max_waiting_reqs, 0, 0, ANY, "requests",
        "one is shed when more would wait at a replica (SGLang's max_queued_requests); 0: no "
        "limit"),
    CHOICE("shed", serving.door.shed, "arrival|worst", SHED_ARRIVAL,
           "which one: the arrival, or a waiting request of a worse priority, the worst and of "
           "these the latest (SGLang with priorities)"),
    CHOICE(
        "leave", serving.leave, "step_end|next_step", LEAVE_STEP_END,
        "an aborted or timed out request on the device leaves as the step in flight ends (vLLM), "
        "or as the one behind it ends (SGLang)"),
    BOOL("steady_runs", serving.steady_runs, true, "skip plans that are promised to repeat"),
    BOOL("check_steady", serving.check_steady, false,
         "plan each promised step all the same, and compare"),
};

static const struct key_by_hand module_by_hand[] = {
    {"policy", "the name of a module, see `inflight list policies`", "the preset's",
     "the module that decides; the keys beside it are its parameters (NAME alone: {policy: NAME})"},
};

static const struct key_by_hand admit_by_hand[] = {
    {"policy", "the name of a module, see `inflight list policies`", "the preset's",
     "which requests may start; as above, or a list of modules that are asked in order, of which "
     "serving.admit.0.policy, serving.admit.0.max_rpm, ... are keys of the first"},
};

/* The default is fixed: where cluster.preset names no preset, round-robin. */
static const struct key_by_hand router_by_hand[] = {
    {"policy", "the name of a module, see `inflight list policies`", "round-robin",
     "which replica an arrival goes to; the keys beside it are its parameters"},
};

static const struct ifl_param in_flight_fields[] = {
    INT("ahead", serving.in_flight.ahead, 0, 0, 8, "steps",
        "steps planned before the result of the one in front of them is known, beyond one a stage "
        "of a pipeline (vLLM's async_scheduling, SGLang's overlap, TensorRT-LLM's overlap "
        "scheduler)"),
    BOOL("pipelined", serving.in_flight.pipelined, false,
         "each stage of parallel.pipeline may have a step of its own; false: one step at a time "
         "passes through all stages"),
    CHOICE("request", serving.in_flight.request, "one-step|chunks|tokens", OVERLAP_ONE_STEP,
           "pipelined: a request is in one unfinished step; chunks of its prompt are in several; "
           "decodes, too, as many steps apart as there are stages, on tokens not known yet"),
    CHOICE("batches", serving.in_flight.batches, "shared|slots|engines", OVERLAP_SHARED,
           "pipelined: a step holds any requests; those that decode in its slot, slots taking "
           "turns, and prompts; those of a virtual engine, one a stage, each with its part of the "
           "blocks"),
    BOOL("waits", serving.in_flight.waits, false,
         "pipelined: where nothing can be planned beside the steps in flight, the next plan is "
         "made as the oldest of them ends, whatever arrives"),
};

static const struct ifl_param kv_fields[] = {
    CHOICE("allocator", serving.kv.allocator, "paged|buddy", KV_PAGED,
           "how KV memory is handed out: by the block, or a contiguous run of a power of two of "
           "blocks a request, which cannot grow"),
    INT("block_tokens", serving.kv.block_tokens, 16, 1, 65536, "tokens", "tokens a KV block holds"),
    INT("num_blocks", serving.kv.num_blocks, 0, 0, ANY, "blocks",
        "KV blocks on the device, as the engine's log counts them; 0: as many as its memory holds"),
    INT("null_blocks", serving.kv.null_blocks, 0, 0, 1, "blocks",
        "of num_blocks, blocks that no request ever gets: vLLM's null block"),
    CHOICE("sizing", serving.kv.sizing,
           "memory|whole-requests|free-share|vllm-0.8|vllm-0.9.1|vllm-0.17|vllm-0.20|sglang",
           KV_SIZING_MEMORY,
           "how they are counted: what weights, activations and workspace leave, whole requests of "
           "max_model_len beside the layers' weights (Vidur), a share of what the three leave "
           "(TensorRT-LLM), or as the engine does from that release on (vllm-*: by a step of "
           "batching.max_batched_tokens and max_seqs)"),
    REAL("memory_utilization", serving.kv.memory_utilization, 0.9, 0.01, 1, "",
         "share of the GPU's memory for weights, workspace and KV; free-share: of the rest, KV; "
         "sglang: mem_fraction_static, for weights and KV alone"),
    REAL("swap_gib", serving.kv.swap_gib, 4, 0, 1e6, "GiB", "host memory for swapped blocks"),
    CHOICE("swap_full", serving.kv.swap_full, "recompute|fail", SWAP_FULL_RECOMPUTE,
           "what happens when it is full"),
    CHOICE("prefix_cache", serving.kv.prefix_cache, "none|hash|radix", PREFIX_CACHE_NONE,
           "K/V of prefixes is kept and shared: full blocks by their hash (vLLM), or in a tree "
           "with pages of block_tokens (SGLang)"),
    CHOICE("unhashed", serving.kv.unhashed, "first|in-order", KV_UNHASHED_FIRST,
           "with a prefix cache: free blocks that hold nothing to be found are used before any "
           "cached one is lost, or all in the order in which they became free"),
    CHOICE("publish", serving.kv.publish, "computed|scheduled", KV_PUBLISH_COMPUTED,
           "with prefix_cache hash: a prompt's blocks are found once computed, or by those behind "
           "it in the very step that computes them"),
};

static const struct key_by_hand deployment_by_hand[] = {
    {"base", "a deployment of configs/deployments, or a path", "the profile's",
     "how the server runs the engine; the keys beside it override its own, key by key (NAME alone: "
     "{base: NAME})"},
    {"intervals", "a map of the keys below to [low, high]", "none",
     "the ends of the central 90% of what these numbers may be: cost.ensemble draws from them"},
};

static const struct ifl_param cost_fields[] = {
    CHOICE("model", cost.model, "roofline|linear|table|recorded", COST_ROOFLINE,
           "from the hardware profile, the four coefficients below, lookup tables, or the "
           "measured steps of a run"),
    REAL("step_s", cost.step_s, 0, 0, 1e6, "s", "linear: per step"),
    REAL("prefill_token_s", cost.prefill_token_s, 0, 0, 1e6, "s",
         "linear: per token of a sequence that does not decode yet"),
    REAL("decode_seq_s", cost.decode_seq_s, 0, 0, 1e6, "s", "linear: per decoding sequence"),
    REAL("context_token_s", cost.context_token_s, 0, 0, 1e6, "s",
         "linear: per token whose K/V a decoding sequence reads"),
    REAL(
        "host_step_s", cost.host_step_s, 0, 0, 1, "s",
        "roofline: added to the deployment's host.step_s; older than deployment.host.step_s, which "
        "replaces it"),
    REAL("host_seq_s", cost.host_seq_s, 0, 0, 1, "s",
         "roofline: the same for each sequence in the step; older than deployment.host.seq_s"),
    REAL("host_floor_s", cost.host_floor_s, 0, 0, 10, "s",
         "roofline: the deployment's host.floor_s is at least this; older than "
         "deployment.host.floor_s"),
    TEXT("dir", cost.dir_name, NULL,
         "table: the directory of its three tables, see sim/cost/cost.h; recorded: a run's folder "
         "or its steps.csv, or an engine's log of its steps"),
    CHOICE("otherwise", cost.otherwise, "fail|recorded|predicted", COST_OTHERWISE_FAIL,
           "recorded: a step that is planned otherwise ends the run, takes as long as the recorded "
           "one, or as the linear coefficients say if one is given and else the roofline; the last "
           "two list such steps in differences.csv"),
    INT("ensemble", cost.ensemble, 0, 0, 10000, "runs",
        "roofline: repeat each point with costs drawn from the errors of their fit, and write 90% "
        "intervals of the summary to intervals.csv; inflight capacity widens its interval by them"),
    REAL("host_error_frac", cost.host_error_frac, 0, 0, 1, "",
         "roofline: median relative error of the host's times, which no fit knows; cost.ensemble "
         "draws one factor a run"),
};

static const struct ifl_param engine_fields[] = {
    TEXT("weights", engine.weights, "random", "executor cpu, cuda: random, or a directory"),
    TEXT(
        "dtype", engine.dtype_name, "auto",
        "of weights, activations and K/V. executor cpu: fp32; cuda: bf16, fp16; auto: fp32 on cpu, "
        "on cuda fp16 where the checkpoint is and else bf16"),
    TEXT("kv_dtype", engine.kv_dtype_name, "auto",
         "of K/V: fp8 (e4m3, no scale) or as engine.dtype. Of every executor: for the simulator it "
         "sets the model's kv_bytes, and with them blocks, swaps and the bytes of attention. auto: "
         "fp8 where the model's kv_bytes is 1, else as engine.dtype"),
    COUNT("seed", engine.seed, 0, "", "of random weights and of the prompts' tokens"),
    INT("window_tokens", engine.window_tokens, 0, 0, ANY, "tokens",
        "random weights: attention sees no further back; 0: as far as the model's window_tokens. A "
        "checkpoint says itself"),
    INT("threads", engine.threads, 1, 1, 1024, "threads",
        "executor cpu: threads that compute; cuda: that load weights"),
    BOOL("dependent_launch", engine.dependent_launch, true,
         "executor cuda: a kernel may start beside the end of the one before (Hopper)"),
    BOOL("graphs", engine.graphs, true,
         "executor cuda: the kernels of a step of decodes alone are launched as one graph"),
    BOOL("batched_copies", engine.batched_copies, true,
         "executor cuda: the swaps of a step are one call in each direction"),
    BOOL("timed_algorithms", engine.timed_algorithms, true,
         "executor cuda: matrix products of up to 256 rows take the algorithm that is fastest when "
         "the engine opens; false: the library's first choice, the same in every run"),
    BOOL("spoil_free_blocks", engine.spoil_free_blocks, false,
         "fill KV blocks that no request owns with NaN, to find what reads them"),
};

static const struct ifl_param parallel_fields[] = {
    INT("tensor", tensor_parallel, 1, 1, 64, "GPUs", "GPUs that share every layer"),
    INT("pipeline", pipeline_parallel, 1, 1, 64, "stages",
        "stages that the layers are cut into (serving.in_flight: the steps in them)"),
    TEXT("stage_layers", stage_layers, "",
         "layers of each stage, \"10,11,11\"; empty: equal parts, a rest in front of the last"),
    INT("data", data_parallel, 1, 1, 256, "groups",
        "groups of parallel.tensor GPUs that share the experts alone: each has its own requests "
        "and "
        "K/V, and all run their steps in lockstep"),
    INT("expert", expert_parallel, 1, 1, 4096, "GPUs",
        "GPUs of tensor x data over which experts are dealt out whole; the others divide each "
        "one's "
        "columns"),
    INT("context", context_parallel, 1, 1, 64, "GPUs",
        "GPUs that share the context of a KV head, of those that tensor gives the same head: a "
        "block "
        "then has so many times kv.block_tokens"),
    BOOL("sequence", sequence_parallel, false,
         "norms and residuals are divided among the GPUs of tensor, each all-reduce in two halves"),
};

static const struct ifl_param cluster_fields[] = {
    INT("replicas", replicas, 1, 1, 65536, "replicas", "copies of the model that share the load"),
    TEXT("preset", routing, NULL,
         "a published router of configs/routing, or a path, with its news; keys beside it override "
         "its own"),
};

static const struct key_by_hand cluster_by_hand[] = {
    {"pools", "a map of names to pools", "no pools",
     "in place of cluster.replicas: replicas that differ, by pools; a pool is a map of `count` and "
     "of any of model, hardware, dtype, parallel, serving, deployment and cost, laid over the "
     "configuration's own (cluster.pools.NAME.count, cluster.pools.NAME.serving.kv.num_blocks, "
     "...)"},
};

static const struct ifl_param news_fields[] = {
    TIME("interval_s", news.interval_ns, 0, 0, A_BILLION,
         "the router hears of the replicas at its multiples; 0: it knows them as they are"),
    TIME("delay_s", news.delay_ns, 0, 0, 3600, "so long after their loads were taken"),
};

static const struct ifl_param gateway_fields[] = {
    BOOL("hold", gateway.hold, false,
         "flow control (llm-d): a request waits at the gateway while the replicas that may have it "
         "are saturated, the mean of max(waiting / queue_depth, blocks in use / kv_frac) 1 or "
         "more"),
    INT("queue_depth", gateway.queue_depth, 5, 1, ANY, "requests",
        "waiting requests that saturate a replica"),
    REAL("kv_frac", gateway.kv_frac, 0.8, 0.01, 1, "of the blocks", "in use, saturate it, too"),
    TIME("stale_s", gateway.stale_ns, 0.2, 1e-9, A_BILLION,
         "a replica counts as saturated whose report is older (cluster.news)"),
    CHOICE("order", gateway.order, "arrival|priority", GATEWAY_BY_ARRIVAL,
           "in which requests leave the gateway; those of a priority by arrival"),
    INT("max_held", gateway.max_held, 0, 0, ANY, "requests",
        "one is shed that would make more wait at the gateway (order: priority: more of its "
        "priority); 0: no limit"),
    REAL("prefill_tokens_s", gateway.prefill_tokens_s, 0, 0, 1e9, "tokens/s",
         "a request with a ttft_slo_s is shed if its prompt, and those that wait where it is "
         "routed to, would take longer at this rate; 0: none is"),
};

static const struct ifl_param slo_fields[] = {
    REAL("ttft_s", ttft_slo_s, 0, 0, A_BILLION, "s",
         "the first token of a request without a ttft_slo_s is due so soon: for goodput, and for "
         "policies that know deadlines; 0: no such goal"),
    REAL("tpot_s", tpot_slo_s, 0, 0, A_BILLION, "s",
         "the same for the mean gap between tokens and tpot_slo_s"),
};

static const struct ifl_param output_fields[] = {
    TEXT("dir", output.dir, "results", "the folder that receives the reports"),
    BOOL("requests", output.requests, true, "write requests.csv, a row a request"),
    BOOL("steps", output.steps, false, "write steps.csv, a row a step"),
    BOOL("work", output.work, false, "write work.csv, a row for each request of each step"),
    BOOL("plots", output.plots, false, "draw figures after the run, where gnuplot is there"),
    BOOL("timeline", output.timeline, false,
         "write timeline.json: steps, queues, blocks and requests, for Perfetto"),
    REAL("timeline_from_s", output.timeline_from_s, 0, 0, A_BILLION, "s",
         "the timeline shows what overlaps the time from here"),
    REAL("timeline_to_s", output.timeline_to_s, 0, 0, A_BILLION, "s", "to here; 0: to the end"),
    INT("timeline_every", output.timeline_every, 1, 1, ANY, "",
        "the timeline shows one step in so many, and one request in so many"),
};

static const struct ifl_param capacity_fields[] = {
    CHOICE("criterion", capacity.criterion, "sarathi|distserve|goodput|delay|objectives",
           CAPACITY_SARATHI,
           "whose definition of capacity `inflight capacity` searches for; objectives: all of "
           "capacity.objectives hold, the default where one is given"),
    REAL("p99_tbt_s", capacity.p99_tbt_s, 0, 0, A_BILLION, "s",
         "sarathi: 99% of the gaps between two tokens are within it"),
    REAL("delay_s", capacity.delay_s, 2, SMALL, A_BILLION, "s",
         "most delay before a request is first scheduled; sarathi: its median, delay: its mean"),
    REAL("attainment_frac", capacity.attainment_frac, 0.9, SMALL, 1, "of the requests",
         "distserve: at least so many meet slo.*"),
    REAL("target_rps", capacity.target_rps, 0, SMALL, 1e9, "requests/s",
         "the fewest cluster.replicas that serve this rate are searched, not the highest rate; "
         "left out: the rate"),
    INT("max_replicas", capacity.max_replicas, 1024, 1, 65536, "replicas",
        "with target_rps no more are tried; the search begins at cluster.replicas"),
    REAL("min_rate_rps", capacity.min_rate_rps, 1e-3, SMALL, 1e9, "requests/s",
         "no lower rate is tried"),
    REAL("max_rate_rps", capacity.max_rate_rps, 1e4, SMALL, 1e9, "requests/s",
         "no higher rate is tried"),
    REAL("tolerance_frac", capacity.tolerance_frac, 0.01, 1e-5, 0.5, "of the rate",
         "the search ends there; it starts at workload.arrivals.rate_rps"),
};

static const struct key_by_hand capacity_by_hand[] = {
    {"usd_per_gpu_hour", "a number, or a map of hardware names to prices, at most 32", "no prices",
     "what `inflight capacity` computes dollars per token from"},
    {"watts_per_gpu", "a number, or a map of hardware names to watts, at most 32",
     "the profile's gpu.tdp_w", "with target_rps, what energy is computed from"},
};

#define LATENCY_OBJECTIVES(metric, what)                                                           \
    REAL("mean_" #metric, capacity.objectives.metric.mean, 0, SMALL, A_BILLION, "s",               \
         "most mean " what),                                                                       \
        REAL("p50_" #metric, capacity.objectives.metric.p50, 0, SMALL, A_BILLION, "s",             \
             "most median of it"),                                                                 \
        REAL("p90_" #metric, capacity.objectives.metric.p90, 0, SMALL, A_BILLION, "s",             \
             "most 90th percentile of it"),                                                        \
        REAL("p95_" #metric, capacity.objectives.metric.p95, 0, SMALL, A_BILLION, "s",             \
             "most 95th percentile of it"),                                                        \
        REAL("p99_" #metric, capacity.objectives.metric.p99, 0, SMALL, A_BILLION, "s",             \
             "most 99th percentile of it")

static const struct ifl_param objectives_fields[] = {
    LATENCY_OBJECTIVES(ttft_s, "time to the first token"),
    LATENCY_OBJECTIVES(tpot_s, "time per output token after the first"),
    LATENCY_OBJECTIVES(tbt_s, "time between two tokens"),
    LATENCY_OBJECTIVES(e2e_s, "time to the last token"),
    LATENCY_OBJECTIVES(queue_s, "delay before a request is first scheduled"),
    REAL("attainment_frac", capacity.objectives.attainment_frac, 0, SMALL, 1, "of the requests",
         "at least so many meet slo.*"),
    REAL("client_attainment_frac", capacity.objectives.client_attainment_frac, 0, SMALL, 1,
         "of the requests", "the same of each client by itself"),
    REAL("finished_frac", capacity.objectives.finished_frac, 0, SMALL, 1, "of the requests",
         "at least so many finish: latencies are those of requests that do; left out: 0.99"),
};

#define FIELDS(section) .fields = section##_fields, .n_fields = COUNT_OF(section##_fields)
#define BY_HAND(section) .by_hand = section##_by_hand, .n_by_hand = COUNT_OF(section##_by_hand)
#define DEPLOYMENT(section)                                                                        \
    .fields = deployment##section##_fields, .n_fields = COUNT_OF(deployment##section##_fields),    \
    .is_deployment = true
#define MODULE(of_kind) .is_module = true, .kind = of_kind

const struct key_section key_sections[] = {
    {.where = "", FIELDS(top), BY_HAND(top)},
    {.where = "workload", FIELDS(workload), BY_HAND(workload)},
    {.where = "workload.filter", FIELDS(filter)},
    {.where = "workload.arrivals", FIELDS(arrivals), BY_HAND(arrivals)},
    {.where = "workload.predictor", FIELDS(predictor)},
    {.where = "workload.patience", FIELDS(patience)},
    {.where = "workload.retry", FIELDS(retry)},
    {.where = "workload.beams", FIELDS(beams)},
    {.where = "serving", FIELDS(serving)},
    {.where = "serving.batching", BY_HAND(module), MODULE(IFL_BATCHING)},
    {.where = "serving.order", BY_HAND(module), MODULE(IFL_ORDER)},
    {.where = "serving.admit", BY_HAND(admit), MODULE(IFL_ADMIT), .may_be_list = true},
    {.where = "serving.preempt", BY_HAND(module), MODULE(IFL_PREEMPT)},
    {.where = "serving.evict", BY_HAND(module), MODULE(IFL_EVICT), .dflt_policy = "lru"},
    {.where = "serving.kv", FIELDS(kv)},
    {.where = "serving.in_flight", FIELDS(in_flight)},
    {.where = "deployment", DEPLOYMENT(), BY_HAND(deployment)},
    {.where = "deployment.host", DEPLOYMENT(_host)},
    {.where = "deployment.memory", DEPLOYMENT(_memory)},
    {.where = "deployment.front_end", DEPLOYMENT(_front_end)},
    {.where = "deployment.all_reduce", DEPLOYMENT(_all_reduce)},
    {.where = "deployment.exchange", DEPLOYMENT(_exchange)},
    {.where = "cost", FIELDS(cost)},
    {.where = "engine", FIELDS(engine)},
    {.where = "parallel", FIELDS(parallel)},
    {.where = "cluster", FIELDS(cluster), BY_HAND(cluster)},
    {.where = "cluster.news", FIELDS(news)},
    {.where = "cluster.router", BY_HAND(router), MODULE(IFL_ROUTE), .dflt_policy = "round-robin"},
    {.where = "cluster.gateway", FIELDS(gateway)},
    {.where = "slo", FIELDS(slo)},
    {.where = "output", FIELDS(output)},
    {.where = "capacity", FIELDS(capacity), BY_HAND(capacity)},
    {.where = "capacity.objectives", FIELDS(objectives)},
};
const size_t n_key_sections = COUNT_OF(key_sections);
