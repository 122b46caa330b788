/* The keys of what is written and searched: `slo`, `output`, `capacity`. */
#include "config/key_fields.h"

static const struct ifl_param slo_fields[] = {
    REAL("ttft_s", ttft_slo_s, 0, 0, A_BILLION, "s",
         "time to the first token required of a request without its own ttft_slo_s, for goodput "
         "and for policies that know deadlines; 0: no objective"),
    REAL("tpot_s", tpot_slo_s, 0, 0, A_BILLION, "s",
         "largest mean gap between tokens allowed for a request without its own tpot_slo_s, for "
         "goodput and for policies that know deadlines; 0: no objective"),
};

const struct key_table slo_keys = {FIELDS(slo)};

static const struct ifl_param output_fields[] = {
    TEXT("dir", output.dir, "results", "the folder that receives the reports"),
    BOOL("requests", output.requests, true, "write requests.csv, one row per request"),
    BOOL("steps", output.steps, false, "write steps.csv, one row per step"),
    BOOL("work", output.work, false, "write work.csv, one row for each sequence of each step"),
    BOOL("plots", output.plots, false, "draw figures after the run, if gnuplot is installed"),
    BOOL("timeline", output.timeline, false,
         "write timeline.json: steps, queues, blocks and requests, for Perfetto"),
    REAL("timeline_from_s", output.timeline_from_s, 0, 0, A_BILLION, "s",
         "start of the time that the timeline shows"),
    REAL("timeline_to_s", output.timeline_to_s, 0, 0, A_BILLION, "s",
         "end of that time; 0: the end of the run"),
    INT("timeline_every", output.timeline_every, 1, 1, ANY, "",
        "the timeline shows every Nth step and every Nth request"),
};

const struct key_table output_keys = {FIELDS(output)};

static const struct ifl_param capacity_fields[] = {
    CHOICE("criterion", capacity.criterion, "sarathi|distserve|goodput|delay|objectives",
           CAPACITY_SARATHI,
           "definition of capacity for which `inflight capacity` searches; objectives: all of "
           "capacity.objectives hold; it is the default if one of them is set"),
    REAL("p99_tbt_s", capacity.p99_tbt_s, 0, 0, A_BILLION, "s",
         "sarathi: limit of the 99th percentile of gaps between tokens; required"),
    REAL("delay_s", capacity.delay_s, 2, SMALL, A_BILLION, "s",
         "limit of the delay before a request is first scheduled; sarathi: of its median; delay: "
         "of its mean"),
    REAL("attainment_frac", capacity.attainment_frac, 0.9, SMALL, 1, "of the requests",
         "distserve: fraction that must meet slo.*"),
    REAL("target_rps", capacity.target_rps, 0, SMALL, 1e9, "requests/s",
         "search for the fewest cluster.replicas that serve this rate; if not set, for the highest "
         "rate"),
    INT("max_replicas", capacity.max_replicas, 1024, 1, 65536, "replicas",
        "with target_rps: most replicas that are tried; the search begins at cluster.replicas"),
    REAL("min_rate_rps", capacity.min_rate_rps, 1e-3, SMALL, 1e9, "requests/s",
         "lowest rate that is tried"),
    REAL("max_rate_rps", capacity.max_rate_rps, 1e4, SMALL, 1e9, "requests/s",
         "highest rate that is tried"),
    REAL("tolerance_frac", capacity.tolerance_frac, 0.01, 1e-5, 0.5, "of the rate",
         "the search ends when its interval is this narrow; it starts at "
         "workload.arrivals.rate_rps"),
};

static const struct key_by_hand capacity_by_hand[] = {
    {"usd_per_gpu_hour", "a number, or a map of hardware names to prices, at most 32", "no prices",
     "GPU prices from which `inflight capacity` computes dollars per token"},
    {"watts_per_gpu", "a number, or a map of hardware names to watts, at most 32",
     "the profile's gpu.tdp_w", "with target_rps: GPU power, to compute energy"},
};

const struct key_table capacity_keys = {FIELDS(capacity), BY_HAND(capacity)};

static const struct ifl_param placement_fields[] = {
    CHOICE(
        "search", capacity.placement.search, "apart|segments|together", PLACEMENT_APART,
        "apart: prefill and decode replicas are searched separately, then multiplied to meet the "
        "target (DistServe, algorithm 1); segments: a pair whose parts share nodes (algorithm 2); "
        "together: every combination of tensor, pipeline and counts of all pools"),
    INT("node_gpus", capacity.placement.node_gpus, 0, 0, 65536, "GPUs",
        "GPUs of a node, the limit of parallel.tensor; 0: no limit"),
    INT("max_nodes", capacity.placement.max_nodes, 1, 1, 65536, "nodes",
        "most nodes that a replica (segments: a pair) may span"),
    INT("max_gpus", capacity.placement.max_gpus, 0, 0, ANY, "GPUs",
        "limit for a whole placement; 0: no limit"),
    REAL("max_usd_per_hour", capacity.placement.max_usd_per_hour, 0, 0, 1e12, "USD/h",
         "limit for a whole placement, at usd_per_gpu_hour; 0: no limit"),
};

static const struct key_by_hand placement_by_hand[] = {
    {"tensor", "a list of at most 16 whole numbers", "[1, 2, 4, 8]",
     "values of parallel.tensor that are tried in each pool"},
    {"pipeline", "a list of at most 16 whole numbers", "[1]",
     "values of parallel.pipeline that are tried; segments: of the stages in one node"},
    {"counts", "a list of at most 16 whole numbers", "[1]",
     "together: replica counts that are tried in each pool; apart and segments compute them"},
    {"given", "a list of maps", "nothing",
     "keys of a pool at certain degrees of parallelism, such as measured costs or K/V blocks: "
     "{pool: NAME, tensor: 2, pipeline: 1, KEY: VALUE, ...}; without pool, tensor or pipeline: at "
     "all of them"},
};

const struct key_table placement_keys = {FIELDS(placement), BY_HAND(placement)};

#define LATENCY_OBJECTIVES(metric, what)                                                           \
    REAL("mean_" #metric, capacity.objectives.metric.mean, 0, SMALL, A_BILLION, "s",               \
         "limit of the mean " what),                                                               \
        REAL("p50_" #metric, capacity.objectives.metric.p50, 0, SMALL, A_BILLION, "s",             \
             "limit of its median"),                                                               \
        REAL("p90_" #metric, capacity.objectives.metric.p90, 0, SMALL, A_BILLION, "s",             \
             "limit of its 90th percentile"),                                                      \
        REAL("p95_" #metric, capacity.objectives.metric.p95, 0, SMALL, A_BILLION, "s",             \
             "limit of its 95th percentile"),                                                      \
        REAL("p99_" #metric, capacity.objectives.metric.p99, 0, SMALL, A_BILLION, "s",             \
             "limit of its 99th percentile")

static const struct ifl_param objectives_fields[] = {
    LATENCY_OBJECTIVES(ttft_s, "time to the first token"),
    LATENCY_OBJECTIVES(tpot_s, "time per output token after the first"),
    LATENCY_OBJECTIVES(tbt_s, "time between two tokens"),
    LATENCY_OBJECTIVES(e2e_s, "time to the last token"),
    LATENCY_OBJECTIVES(queue_s, "delay before a request is first scheduled"),
    REAL("attainment_frac", capacity.objectives.attainment_frac, 0, SMALL, 1, "of the requests",
         "fraction that must meet slo.*"),
    REAL("client_attainment_frac", capacity.objectives.client_attainment_frac, 0, SMALL, 1,
         "of the requests", "the same for each client separately"),
    REAL("finished_frac", capacity.objectives.finished_frac, 0, SMALL, 1, "of the requests",
         "fraction that must finish; latencies are those of finished requests; if not set: 0.99"),
};

const struct key_table objectives_keys = {FIELDS(objectives)};
