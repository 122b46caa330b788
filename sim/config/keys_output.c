/* The keys of what is written and searched: `slo`, `output`, `capacity`. */
#include "config/key_fields.h"

static const struct ifl_param slo_fields[] = {
    REAL("ttft_s", ttft_slo_s, 0, 0, A_BILLION, "s",
         "the first token of a request without a ttft_slo_s is due so soon: for goodput, and for "
         "policies that know deadlines; 0: no such goal"),
    REAL("tpot_s", tpot_slo_s, 0, 0, A_BILLION, "s",
         "most mean gap between tokens of a request without a tpot_slo_s: for goodput, and for "
         "policies that know deadlines; 0: no such goal"),
};

const struct key_table slo_keys = {FIELDS(slo)};

static const struct ifl_param output_fields[] = {
    TEXT("dir", output.dir, "results", "the folder that receives the reports"),
    BOOL("requests", output.requests, true, "write requests.csv, a row a request"),
    BOOL("steps", output.steps, false, "write steps.csv, a row a step"),
    BOOL("work", output.work, false, "write work.csv, a row for each sequence of each step"),
    BOOL("plots", output.plots, false, "draw figures after the run, where gnuplot is there"),
    BOOL("timeline", output.timeline, false,
         "write timeline.json: steps, queues, blocks and requests, for Perfetto"),
    REAL("timeline_from_s", output.timeline_from_s, 0, 0, A_BILLION, "s",
         "the timeline shows what overlaps the time from here"),
    REAL("timeline_to_s", output.timeline_to_s, 0, 0, A_BILLION, "s", "to here; 0: to the end"),
    INT("timeline_every", output.timeline_every, 1, 1, ANY, "",
        "the timeline shows one step in so many, and one request in so many"),
};

const struct key_table output_keys = {FIELDS(output)};

static const struct ifl_param capacity_fields[] = {
    CHOICE("criterion", capacity.criterion, "sarathi|distserve|goodput|delay|objectives",
           CAPACITY_SARATHI,
           "whose definition of capacity `inflight capacity` searches for; objectives: all of "
           "capacity.objectives hold, the default where one is given"),
    REAL("p99_tbt_s", capacity.p99_tbt_s, 0, 0, A_BILLION, "s",
         "sarathi, which needs it: 99% of the gaps between two tokens are within it"),
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

const struct key_table capacity_keys = {FIELDS(capacity), BY_HAND(capacity)};

static const struct ifl_param placement_fields[] = {
    CHOICE("search", capacity.placement.search, "apart|segments|together", PLACEMENT_APART,
           "apart: prefill and decode replicas each alone, then as many as the target needs "
           "(DistServe, algorithm 1); segments: a pair whose parts share nodes (algorithm 2); "
           "together: every combination of tensor, pipeline and counts of all pools"),
    INT("node_gpus", capacity.placement.node_gpus, 0, 0, 65536, "GPUs",
        "of a node: parallel.tensor stays within it; 0: any number"),
    INT("max_nodes", capacity.placement.max_nodes, 1, 1, 65536, "nodes",
        "that a replica, or with segments a pair, may span"),
    INT("max_gpus", capacity.placement.max_gpus, 0, 0, ANY, "GPUs",
        "of a placement in all; 0: no such budget"),
    REAL("max_usd_per_hour", capacity.placement.max_usd_per_hour, 0, 0, 1e12, "USD/h",
         "of a placement in all, at usd_per_gpu_hour; 0: no such budget"),
};

static const struct key_by_hand placement_by_hand[] = {
    {"tensor", "a list of at most 16 whole numbers", "[1, 2, 4, 8]",
     "values of parallel.tensor that are tried in each pool"},
    {"pipeline", "a list of at most 16 whole numbers", "[1]",
     "values of parallel.pipeline; with segments, of the stages in one node"},
    {"counts", "a list of at most 16 whole numbers", "[1]",
     "together: replicas of each pool; the others find theirs"},
    {"given", "a list of maps", "nothing",
     "keys of a pool that hold at some degrees, such as costs or K/V blocks that were measured: "
     "{pool: NAME, tensor: 2, pipeline: 1, KEY: VALUE, ...}; without pool, tensor or pipeline: of "
     "all"},
};

const struct key_table placement_keys = {FIELDS(placement), BY_HAND(placement)};

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

const struct key_table objectives_keys = {FIELDS(objectives)};
