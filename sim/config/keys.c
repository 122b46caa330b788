/* The keys of a configuration. A name that is not in these tables is no key. */
#include "config/key_fields.h"

#include "cost/model.h"

static const struct ifl_param top_fields[] = {
    TEXT("model", model, NULL,
         "a model of configs/models, or a path; optional with cost linear or recorded"),
    TEXT("hardware", hardware, NULL,
         "a profile of configs/hardware, or a path; optional with cost linear or recorded"),
    CHOICE("dtype", dtype, MODEL_DTYPES, MODEL_DTYPE_AUTO,
           "data type of the weights; fp8, int8, int4: of the layers' matrices only, activations "
           "and K/V have 16 bits; auto: the model's. Engines use engine.dtype"),
    CHOICE("executor", executor, "sim|cpu|cuda", EXECUTOR_SIM,
           "sim: a cost model in virtual time; cpu, cuda: an engine in wall time"),
    INT("replications", replications, 1, 1, 10000, "runs",
        "runs of each point, each with other random draws (arrivals, shuffle, patience, routers)"),
    BOOL("steady_state", steady_state, false,
         "the summary leaves out the warm-up, detected by MSER-5 (White, Simulation 69:6, 1997)"),
};

static const struct key_by_hand top_by_hand[] = {
    {"sweep", "a map of keys to lists of values, or to maps of names to values", "no sweep",
     "one point for each combination of values; the first key varies slowest; the key `variants` "
     "maps names to configurations"},
};

static const struct key_table top_keys = {FIELDS(top), BY_HAND(top)};

static const struct key_by_hand module_by_hand[] = {
    {"policy", "the name of a module, see `inflight list policies`", "the preset's",
     "the module used; the keys beside it are its parameters (a NAME alone means {policy: NAME})"},
};

static const struct key_table module_keys = {BY_HAND(module)};

static const struct key_by_hand admit_by_hand[] = {
    {"policy", "the name of a module, see `inflight list policies`", "the preset's",
     "the module that decides which requests may start, or a list of modules, asked in order; "
     "serving.admit.0.policy, serving.admit.0.max_rpm, ... are keys of the first one"},
};

static const struct key_table admit_keys = {BY_HAND(admit)};

#define MODULE(of_kind) .is_module = true, .kind = of_kind

const struct key_section key_sections[] = {
    {.where = "", .keys = &top_keys},
    {.where = "workload", .keys = &workload_keys},
    {.where = "workload.filter", .keys = &filter_keys},
    {.where = "workload.arrivals", .keys = &arrivals_keys},
    {.where = "workload.predictor", .keys = &predictor_keys},
    {.where = "workload.patience", .keys = &patience_keys},
    {.where = "workload.retry", .keys = &retry_keys},
    {.where = "workload.beams", .keys = &beams_keys},
    {.where = "adapters", .keys = &adapters_keys},
    {.where = "serving", .keys = &serving_keys},
    {.where = "serving.batching", .keys = &module_keys, MODULE(IFL_BATCHING)},
    {.where = "serving.order", .keys = &module_keys, MODULE(IFL_ORDER)},
    {.where = "serving.admit", .keys = &admit_keys, MODULE(IFL_ADMIT), .may_be_list = true},
    {.where = "serving.preempt", .keys = &module_keys, MODULE(IFL_PREEMPT)},
    {.where = "serving.evict", .keys = &module_keys, MODULE(IFL_EVICT), .dflt_policy = "lru"},
    {.where = "serving.draft", .keys = &module_keys, MODULE(IFL_DRAFT), .dflt_policy = "none"},
    {.where = "serving.speculation", .keys = &speculation_keys},
    {.where = "serving.kv", .keys = &kv_keys},
    {.where = "serving.kv.keep", .keys = &keep_keys},
    {.where = "serving.kv.tiers", .keys = &tiers_keys},
    {.where = "serving.kv.tiers.host", .keys = &tier_host_keys},
    {.where = "serving.kv.tiers.disk", .keys = &tier_disk_keys},
    {.where = "serving.kv.tiers.store", .keys = &tier_store_keys},
    {.where = "serving.in_flight", .keys = &in_flight_keys},
    {.where = "serving.adapters", .keys = &adapter_serving_keys},
    {.where = "deployment", .keys = &deployment_keys, .is_deployment = true},
    {.where = "deployment.host", .keys = &deployment_host_keys, .is_deployment = true},
    {.where = "deployment.memory", .keys = &deployment_memory_keys, .is_deployment = true},
    {.where = "deployment.front_end", .keys = &deployment_front_end_keys, .is_deployment = true},
    {.where = "deployment.all_reduce", .keys = &deployment_all_reduce_keys, .is_deployment = true},
    {.where = "deployment.exchange", .keys = &deployment_exchange_keys, .is_deployment = true},
    {.where = "deployment.cache", .keys = &deployment_cache_keys, .is_deployment = true},
    {.where = "deployment.kernels", .keys = &deployment_kernels_keys, .is_deployment = true},
    {.where = "cost", .keys = &cost_keys},
    {.where = "engine", .keys = &engine_keys},
    {.where = "parallel", .keys = &parallel_keys},
    {.where = "cluster", .keys = &cluster_keys},
    {.where = "cluster.news", .keys = &news_keys},
    {.where = "cluster.router",
     .keys = &router_keys,
     MODULE(IFL_ROUTE),
     .dflt_policy = "round-robin"},
    {.where = "cluster.gateway", .keys = &gateway_keys},
    {.where = "cluster.handover", .keys = &handover_keys},
    {.where = "cluster.migration", .keys = &migration_keys},
    {.where = "cluster.links", .keys = &links_keys},
    {.where = "slo", .keys = &slo_keys},
    {.where = "output", .keys = &output_keys},
    {.where = "capacity", .keys = &capacity_keys},
    {.where = "capacity.objectives", .keys = &objectives_keys},
    {.where = "capacity.placement", .keys = &placement_keys},
    {.where = "live", .keys = &live_keys},
    {.where = "live.limits", .keys = &live_limits_keys},
    {.where = "live.answers", .keys = &live_answers_keys},
    {.where = "live.chat", .keys = &live_chat_keys},
    {.where = "live.faults", .keys = &live_faults_keys},
};
const size_t n_key_sections = COUNT_OF(key_sections);
