/* The configuration of one point: every key resolved, typed and checked.
 *
 * A configuration file is a tree (base/tree.h). The table of keys (keys.c) declares each key once;
 * it parses, validates, documents and writes the tree back. A file names a preset for its `serving`
 * part, which lies under the file's own keys; a sweep lays its axes' values over both. */
#ifndef SIM_CONFIG_CONFIG_H
#define SIM_CONFIG_CONFIG_H

#include "inflight/engine.h"
#include "inflight/policy.h"
#include "inflight/trace.h"

#include "cost/memory_encoder.h"
#include "fleet/clients.h"
#include "fleet/gateway.h"
#include "fleet/handover.h"
#include "fleet/migration.h"
#include "fleet/news.h"
#include "fleet/pools.h"
#include "fleet/swap_link.h"
#include "fleet/tier_links.h"
#include "replica/kv/beams.h"
#include "replica/kv/keep.h"
#include "replica/kv/pool.h"
#include "replica/leaving.h"
#include "replica/module.h"
#include "replica/overlap.h"
#include "replica/predictor.h"
#include "replica/windows.h"

struct node;

enum adapter_memory { ADAPTER_SLOTS, ADAPTER_POOL };
enum executor_kind { EXECUTOR_SIM, EXECUTOR_CPU, EXECUTOR_CUDA };
enum cost_kind { COST_ROOFLINE, COST_LINEAR, COST_TABLE, COST_RECORDED };
enum cost_otherwise { COST_OTHERWISE_FAIL, COST_OTHERWISE_RECORDED, COST_OTHERWISE_PREDICTED };
/* Values from KV_SIZING_ENGINE on are those of enum memory_rule (cost/memory_engine.h). */
enum kv_sizing {
    KV_SIZING_MEMORY,
    KV_SIZING_WHOLE_REQUESTS,
    KV_SIZING_FREE_SHARE,
    KV_SIZING_ENGINE
};

struct workload_config {
    char trace[512];      /* the file, in the working directory or the installed data */
    char trace_name[512]; /* as the configuration writes it */
    char format[32];
    int32_t max_record_mib;
    char tokenizer[512];      /* the file, or a folder; empty: none */
    char tokenizer_name[512]; /* as the configuration writes it */
    char prompt_template[512];
    struct ifl_trace_window window; /* workload.limit, skip, from_s, to_s, shuffle, filter.* */
    int32_t shared_prefix_tokens;   /* tokens with which every prompt begins */
    struct ifl_arrivals arrivals;
    struct predictor predictor;
    struct patience patience;
    struct retries retries;
    double deadline_s; /* deadline of requests without one of their own; 0: none */
    struct beam_search beams;
};

/* A tier below the device (replica/kv/tier.h). */
struct tier_config {
    int32_t blocks;
    double gib, device_ratio; /* in place of blocks */
    struct link_spec link;
    double gb_per_s; /* bytes per second of the link, in GB */
    int32_t pieces;  /* enum link_pieces */
    int32_t unit_tokens, min_tokens, store_after;
    int32_t stores, loads, evicts; /* enum tier_store, tier_load, tier_evict */
    bool answers, keeps, begin_first;
    int32_t prefetch, prefetch_tokens; /* enum tier_prefetch */
    int64_t prefetch_timeout_ns;
    double prefetch_token_s;
    double hit_frac;
};

static inline bool tier_is_there(const struct tier_config *tier)
{
    return tier->blocks > 0 || tier->gib > 0 || tier->device_ratio > 0 || tier->hit_frac > 0;
}
static inline bool tier_has_link(const struct tier_config *tier)
{
    return tier->gb_per_s > 0 || tier->link.latency_ns > 0 || tier->link.piece_ns > 0;
}

struct kv_config {
    enum kv_allocator allocator;
    enum prefix_cache prefix_cache;
    enum kv_unhashed unhashed;
    enum kv_publish publish;
    enum kv_windows windows;
    int32_t block_tokens;
    int32_t num_blocks;         /* as the engine counts; 0: computed from memory */
    int32_t null_blocks;        /* of num_blocks, those that no request gets */
    enum kv_sizing sizing;      /* the rule by which num_blocks is computed */
    bool flashinfer_sampler;    /* read by some sizing rules of vLLM */
    struct encoder_run encoder; /* read by sizing rules that count an image encoder */
    double memory_utilization;  /* share of the memory; KV_SIZING_FREE_SHARE: of its free part */
    double swap_gib;
    enum swap_full swap_full;
    struct keep keep; /* n_layers: 0 */
    struct tier_config tiers[N_TIERS];
};

/* How steps follow one another in a pipeline (replica/overlap.h). */
struct in_flight_config {
    bool pipelined;           /* false: one step at a time */
    int32_t ahead;            /* steps in flight beyond one per stage */
    int32_t request, batches; /* enum overlap_request, overlap_batches */
    int32_t seats;            /* enum overlap_seats */
    bool waits;
};

/* On an engine: guesses hold as drawn, or as the engine's own sampling accepts them. */
enum verify { VERIFY_DRAWN, VERIFY_REAL };

/* What guesses tokens, and how many guesses hold (replica/ragged.h, run/speculation.h). */
struct speculation_config {
    char acceptance[256]; /* rates by place */
    char clients[1024];   /* rates of some clients */
    enum verify verify;
    char weights[512]; /* weights of an engine's draft model: "random", or a directory */
    int32_t longest_match, shortest_match;
    int32_t proposer; /* enum proposer_kind, cost/draft.h */
    char model[512];  /* PROPOSER_MODEL */
    int32_t layers;   /* PROPOSER_HEAD */
    int32_t passes;   /* 0: as many as guesses */
    int32_t width;
    double pass_s, seq_s, step_s, lm_head_frac;
    int32_t lookahead_tokens; /* -1: as many as the draft module guesses at most */
    bool prompts_look_ahead;
};

/* The adapters of the trace. */
struct adapters_config {
    char ranks[512];  /* numbers with commas, dealt out in turn */
    int32_t matrices; /* enum adapter_matrices (cost/adapter_cost.h) */
};

/* How the server stores and computes adapters. */
struct adapter_serving_config {
    int32_t memory;                   /* enum adapter_memory */
    int32_t max_loras, max_cpu_loras; /* 0: a slot for every adapter */
    int32_t max_rank;                 /* 0: each adapter has its own rank */
    int32_t compute;                  /* enum adapter_compute (cost/adapter_cost.h) */
    double launch_us, load_s, host_gb_per_s, disk_gb_per_s;
    int32_t load_copies;
};

struct serving_config {
    char preset[512];
    char engine[32];       /* engine with this scheduler, as profiles name it; or empty */
    int32_t max_model_len; /* 0: the model's */
    struct door door;
    struct module_config modules[N_MODULES]; /* the cluster's router included */
    struct kv_config kv;
    enum leave leave;
    int32_t swap;          /* enum swap_way, fleet/swap_link.h */
    int64_t swap_block_ns; /* SWAP_OVERLAP: 0: as the hardware's profile says */
    struct in_flight_config in_flight;
    struct speculation_config speculation;
    struct adapter_serving_config adapters;
    bool steady_runs;  /* skip plans that are promised to repeat */
    bool check_steady; /* plan each promised step anyway and compare */
};

/* The i-th admit module in the order of asking. Behind the last one the policy is NULL. */
static inline struct module_config *serving_admit(const struct serving_config *serving, size_t i)
{
    ifl_assert(i <= MAX_MORE_ADMITS);
    const size_t at = i == 0 ? IFL_ADMIT : IFL_N_KINDS + i - 1;
    return (struct module_config *)(uintptr_t)&serving->modules[at];
}

struct cost_config {
    enum cost_kind model;
    double step_s, prefill_token_s, decode_seq_s, context_token_s; /* linear */
    double prefill_square_s, decode_step_s;                        /* the same */
    double large_step_s, large_seq_s, large_context_token_s;       /* the same */
    int32_t large_batch_seqs;
    double host_step_s, host_seq_s; /* roofline: added to the deployment's */
    double host_floor_s;            /* roofline: in place of the deployment's if it is above */
    enum cost_otherwise otherwise;  /* recorded: of steps that are planned otherwise */
    char dir[512];          /* table, recorded: in the working directory or the installed data */
    char dir_name[512];     /* as the configuration writes it */
    int32_t ensemble;       /* runs with drawn costs beside the nominal one */
    double host_error_frac; /* in these runs: median relative error of the host's times */
    bool other_software;    /* in these runs: kernels differ from those in the profile's tables */
};

/* Returns the cost model that computes durations of steps; COST_RECORDED: none is computed. */
static inline enum cost_kind cost_computed(const struct cost_config *cost)
{
    const double linear_s =
        cost->step_s + cost->prefill_token_s + cost->decode_seq_s + cost->context_token_s;
    if (cost->model != COST_RECORDED || cost->otherwise != COST_OTHERWISE_PREDICTED)
        return cost->model;
    return linear_s > 0 ? COST_LINEAR : COST_ROOFLINE;
}

struct engine_config {  /* for the executors cpu and cuda */
    char weights[512];  /* "random", or a directory */
    char adapters[512]; /* "random", or a directory with one for each adapter */
    char dtype_name[16];
    enum ifl_engine_dtype dtype; /* of that name */
    char kv_dtype_name[16];
    enum ifl_engine_dtype kv_dtype; /* of that name; AUTO: as wide as the model's kv_bytes, or
                                       integers of kv_bits */
    int32_t kv_bits;                /* 0: no integers */
    int32_t kv_group_elements;      /* elements that share a scale; 0: those of a head of a token */
    int32_t kv_scale_bytes;
    uint64_t seed;
    int32_t window_tokens; /* window of a model with random weights; 0: the model's */
    int32_t threads;
    bool dependent_launch, graphs, batched_copies, timed_algorithms; /* see ifl_engine_without */
    bool spoil_free_blocks;
};

struct output_config {
    char dir[512];
    bool requests, steps, work;
    bool plots; /* figures after the run, if gnuplot is there */
    bool timeline;
    double timeline_from_s, timeline_to_s; /* timeline_to_s 0: to the end of the run */
    int32_t timeline_every;
};

enum capacity_criterion {
    CAPACITY_SARATHI,
    CAPACITY_DISTSERVE,
    CAPACITY_GOODPUT,
    CAPACITY_DELAY,
    CAPACITY_OBJECTIVES
};

/* A number per GPU, by hardware: {a100-80gb-sxm: 2.1, ...}, or one number for all. */
enum { MAX_RATES = 32 };
struct gpu_rates {
    size_t n;
    char hardware[MAX_RATES][64]; /* "" for all */
    double of[MAX_RATES];
};

/* The limits of capacity.objectives; 0: left out. */
struct latency_objectives {
    double mean, p50, p90, p95, p99; /* at most */
};
struct objectives {
    struct latency_objectives ttft_s, tpot_s, tbt_s, e2e_s, queue_s;
    double attainment_frac, client_attainment_frac, finished_frac; /* at least */
};

/* capacity.placement: which deployments of the pools are tried (placement.h). */
enum placement_search { PLACEMENT_APART, PLACEMENT_SEGMENTS, PLACEMENT_TOGETHER };
enum { MAX_DEGREES = 16 };
struct degrees {
    int32_t n, of[MAX_DEGREES];
};
struct placement_config {
    bool on;
    int32_t search; /* enum placement_search */
    struct degrees tensor, pipeline, counts;
    int32_t node_gpus, max_nodes; /* 0: any number of GPUs in a node */
    int32_t max_gpus;             /* 0: no such budget */
    double max_usd_per_hour;      /* 0: no such budget */
};

struct capacity_config {
    enum capacity_criterion criterion;
    double p99_tbt_s, delay_s, attainment_frac;
    double min_rate_rps, max_rate_rps, tolerance_frac;
    struct objectives objectives;
    double target_rps; /* 0: none, the rate itself is searched */
    int32_t max_replicas;
    struct gpu_rates usd_per_gpu_hour, watts_per_gpu;
    struct placement_config placement;
};

/* What `inflight serve` adds to a configuration. */
enum live_metrics { LIVE_METRICS_VLLM, LIVE_METRICS_SGLANG, LIVE_METRICS_BOTH };
enum live_law { LIVE_LIMIT, LIVE_FIXED, LIVE_UNIFORM, LIVE_LOGNORMAL };

struct live_limits {
    int32_t body_kib, header_kib, unsent_kib, bodies_mib;
    int32_t connections, in_flight, recorded, samples, clients;
    double idle_s;
};

/* The length of an answer that its request does not fix. */
struct live_answers {
    int32_t law; /* enum live_law */
    double mean_tokens, cv;
    int32_t min_tokens, max_tokens;
};

struct live_faults {
    double error_frac, drop_frac; /* shares of the requests */
    double start_s;               /* time after which the server is ready */
    double stall_every_s, stall_s;
    int32_t dead_replica; /* -1: none */
    double dead_from_s;
};

struct live_chat { /* how messages of a chat are written as one text */
    char begin[256], message[512], turn[256];
};

struct live_config {
    char host[64], api_key[256], model_name[128];
    int32_t port;
    double speed;
    int32_t metrics; /* enum live_metrics */
    struct live_limits limits;
    struct live_answers answers;
    struct live_chat chat;
    struct live_faults faults;
};

/* Returns the rate of the hardware; NaN if the configuration has none. */
double gpu_rate_of(const struct gpu_rates *rates, const char *hardware);

/* Pieces in which K/V moves: one; one per block; for each block one per layer and GPU, K and V
 * separately. */
enum link_pieces { PIECES_MERGED, PIECES_BLOCKS, PIECES_LAYERS };

struct links_config { /* links out of each replica of the cluster and into it */
    char preset[512]; /* of configs/links, or empty */
    struct link_spec spec;
    double gb_per_s; /* of spec */
    int32_t pieces;
    double token_bytes; /* bytes of K/V per token; 0: those of the model */
};

struct config;

enum { MAX_POOLS = 64, MAX_POOL_NAME = 48 };

/* UNSAID: both roles; no pool of the cluster has a role, and nothing is handed over. */
enum pool_role { POOL_UNSAID, POOL_PREFILLS, POOL_DECODES, POOL_BOTH };

/* Replicas of a cluster that are alike. */
struct pool_config {
    char name[MAX_POOL_NAME];
    int32_t count;         /* replicas of parallel.data ranks each */
    int32_t role;          /* enum pool_role */
    struct config *config; /* owned: the point's, overridden by the pool's keys */
};

struct config {
    char path[512];
    uint64_t said, there; /* keys that need another key; those that have it (check_company.h) */
    int32_t replications;
    bool steady_state;
    char model[512], hardware[512];
    int32_t dtype; /* enum model_dtype (cost/model.h) */
    enum executor_kind executor;
    struct workload_config workload;
    struct adapters_config adapters;
    struct serving_config serving;
    struct node *deployment; /* owned: overrides that of the profile (deployment.h); or NULL */
    struct cost_config cost;
    struct engine_config engine;
    int32_t tensor_parallel;
    int32_t pipeline_parallel;
    char stage_layers[512];
    int32_t data_parallel, expert_parallel, context_parallel;
    bool sequence_parallel;
    int32_t replicas; /* replicas of a cluster without pools */
    /* cluster.pools, in the order of the file; n_pools 0: there are no named pools. Keys that a
     * pool may have are, in this configuration, those of the first pool. */
    struct pool_config *pools; /* [n_pools], owned */
    size_t n_pools;
    char routing[512]; /* a preset of the router and its news, or empty */
    struct news_options news;
    struct gateway gateway;
    char gateway_classes[256]; /* gateway.classes as it is written */
    struct handover_rules handover;
    struct migration_rules migration;
    struct links_config links;
    double ttft_slo_s, tpot_slo_s;
    struct output_config output;
    struct capacity_config capacity;
    struct live_config live;
};

/* The number of pools. A cluster without pools has one pool, without a name, described by the
 * configuration itself. */
static inline size_t config_n_pools(const struct config *config)
{
    return config->n_pools > 0 ? config->n_pools : 1;
}
static inline const struct config *config_of_pool(const struct config *config, size_t i)
{
    ifl_assert(i < config_n_pools(config));
    return config->n_pools > 0 ? config->pools[i].config : config;
}
/* True if requests may be handed over from one replica to another. */
static inline bool config_hands_over(const struct config *config)
{
    for (size_t i = 0; i < config->n_pools; i++)
        if (config->pools[i].role != POOL_UNSAID)
            return true;
    return false;
}

/* True if running requests may move from one replica to another. */
static inline bool config_migrates(const struct config *config)
{
    return config->migration.interval_ns > 0;
}

/* True if K/V is swapped while steps run: in the configuration of a pool; in some pool. */
static inline bool config_swaps_apart(const struct config *config)
{
    return config->serving.swap == SWAP_OVERLAP;
}
static inline bool config_swaps_apart_anywhere(const struct config *config)
{
    for (size_t i = 0; i < config_n_pools(config); i++)
        if (config_swaps_apart(config_of_pool(config, i)))
            return true;
    return false;
}

/* True if a pool has tiers below its devices: in the configuration of a pool; in some pool. */
static inline bool config_has_tiers(const struct config *config)
{
    for (int i = 0; i < N_TIERS; i++)
        if (tier_is_there(&config->serving.kv.tiers[i]))
            return true;
    return false;
}
static inline bool config_has_tiers_anywhere(const struct config *config)
{
    for (size_t i = 0; i < config_n_pools(config); i++)
        if (config_has_tiers(config_of_pool(config, i)))
            return true;
    return false;
}

/* Number of replicas (virtual engines) that share the stages of one pipeline. */
static inline uint32_t config_engines(const struct config *config)
{
    const struct in_flight_config *in_flight = &config->serving.in_flight;
    return in_flight->pipelined && in_flight->batches == OVERLAP_ENGINES
               ? (uint32_t)config->pipeline_parallel
               : 1;
}

/* Largest number of tokens that are guessed for a request in a step; 0: none. */
int32_t config_max_drafts(const struct config *config);
static inline bool config_speculates(const struct config *config)
{
    return config_max_drafts(config) > 0;
}

static inline bool config_speculates_anywhere(const struct config *config)
{
    for (size_t i = 0; i < config_n_pools(config); i++)
        if (config_speculates(config_of_pool(config, i)))
            return true;
    return false;
}

/* True if each stage of the pipeline may have a step of its own. */
static inline bool config_pipelines(const struct config *config)
{
    return config->serving.in_flight.pipelined && config->pipeline_parallel > 1;
}

/* Number of replicas of pool i; each rank of parallel.data and each virtual engine counts. */
static inline uint32_t config_pool_replicas(const struct config *config, size_t i)
{
    const int32_t count = config->n_pools > 0 ? config->pools[i].count : config->replicas;
    const struct config *of = config_of_pool(config, i);
    return (uint32_t)(count * of->data_parallel) * config_engines(of);
}

/* Number of GPUs of all replicas of pool i. */
static inline int32_t config_pool_gpus(const struct config *config, size_t i)
{
    const struct config *of = config_of_pool(config, i);
    return (int32_t)(config_pool_replicas(config, i) / config_engines(of)) * of->tensor_parallel *
           of->pipeline_parallel;
}

/* Largest number of tokens, prompt and output, of a request. model_len: that of the model, 0 if no
 * model is named. */
static inline int32_t config_max_tokens(const struct config *config, int32_t model_len)
{
    enum { WITHOUT_MODEL = 1 << 20 };
    const int32_t max_tokens = config->serving.max_model_len;
    return max_tokens > 0 ? max_tokens : model_len > 0 ? model_len : WITHOUT_MODEL;
}

/* True if the requests of some replica may give up K/V. May load a model: one that cannot be read
 * counts as if none were named, and the run says what is wrong with it. */
bool config_gives_up_anywhere(const struct config *config);
/* All degrees of parallelism (cost/model.h). */
struct parallel config_parallel(const struct config *config);

/* True if a run writes differences.csv. */
static inline bool config_lists_differences(const struct config *config)
{
    return config->executor == EXECUTOR_SIM && config->cost.model == COST_RECORDED &&
           config->cost.otherwise != COST_OTHERWISE_FAIL;
}

/* The steps that a replica may have in flight. */
static inline struct overlap config_overlap(const struct config *config)
{
    const struct in_flight_config *in_flight = &config->serving.in_flight;
    const int32_t n_stages = config->pipeline_parallel;
    if (!config_pipelines(config) || config_engines(config) > 1)
        return (struct overlap){.hindsight = in_flight->ahead > 0};
    return (struct overlap){.depth = n_stages + in_flight->ahead,
                            .n_stages = n_stages,
                            .request = (enum overlap_request)in_flight->request,
                            .slots = in_flight->batches == OVERLAP_SLOTS,
                            .seats = (enum overlap_seats)in_flight->seats,
                            .waits = in_flight->waits};
}

/* ---- a study: the file, its --set edits and the points of its sweep ---- */

struct study;

struct study_options {
    const char *path;
    const char *const *sets; /* "path.to.key=value", value in YAML */
    size_t n_sets;
    bool places; /* capacity.placement, if given, defines the sweep (placement.h) */
};

/* Loads, edits, expands the sweep and checks every point. */
int study_load(const struct study_options *options, struct study **study, struct ifl_error *error);
void study_free(struct study *study);

/* Points are numbered by combinations of the swept values. The first axis varies slowest, the
 * replication fastest; several replications count as an axis, too. */
size_t study_n_points(const struct study *study);
size_t study_n_replications(const struct study *study);
size_t study_n_axes(const struct study *study);
const char *study_axis(const struct study *study, size_t axis);
/* The value of an axis at a point, as YAML text, or its name where the value is a map or was given
 * one. */
const char *study_value(const struct study *study, size_t point, size_t axis);
/* The configuration of the first point, for keys that all points share (output, replications). The
 * study owns it. */
const struct config *study_first(const struct study *study);
/* True if the sweep sets this key at some point. */
bool study_sweeps(const struct study *study, const char *dotted);
/* Features that some point of the study has. Reports have the same columns at all points. */
struct study_traits {
    bool flies_engine; /* runs on an engine, in wall time */
    bool gives_up;     /* requests give up a part of their K/V */
    bool hands_over;   /* requests are handed over between replicas */
    bool migrates;     /* running requests move between replicas */
    bool swaps_apart;  /* K/V is swapped while steps run */
    bool has_tiers;    /* there are tiers below the device */
    bool speculates;
    bool may_leave; /* requests may leave early; also true if the trace is swept */
};
struct study_traits study_any(const struct study *study);
/* Reads the configuration of a point. On success the caller must call config_finish. Several
 * threads may call it at the same time. */
int study_read(const struct study *study, size_t point, struct config *config,
               struct ifl_error *error);
void config_finish(struct config *config);

/* The resolved study as YAML with version and seed: running it again gives the same bytes. */
int study_write(const struct study *study, FILE *out, struct ifl_error *error);
/* As study_write, into a file that is either complete or not there. */
int study_write_file(const struct study *study, const char *path, struct ifl_error *error);
/* The text of study_write, made once. Studies with the same hash, which also covers the presets,
 * have the same reports, provided that the other files they name are the same (cli/inputs.h). */
struct study_text {
    char *text; /* owned; the presets are behind it */
    size_t n_bytes;
    uint64_t hash;
};
/* Returns 0, IFL_E_NOMEM, or as study_write; after an error nothing must be freed. */
int study_text_make(struct study_text *made, const struct study *study, struct ifl_error *error);
void study_text_drop(struct study_text *text);
/* As study_write_file. */
int study_text_save(const struct study_text *text, const char *path, struct ifl_error *error);

/* Fills the gateway with its classes; returns the code of `error` if the classes are not valid. */
static inline int config_gateway(const struct config *config, struct gateway *gateway,
                                 struct ifl_error *error)
{
    *gateway = config->gateway;
    return classes_read(&gateway->classes, config->gateway_classes, error);
}

#endif
