/* Sets serving.kv.tiers.host, K/V in host memory, as the presets vllm-v1-offload, vllm-v1-lmcache,
 * sglang-hicache and trtllm-host-cache do. */
#include <stdlib.h>
#include <string.h>

#include "import/objects.h"
#include "import/settle.h"

#define LINK "latency_s: 0.00002, gb_per_s: 25, sharing: fifo"
static const double gib = 1024.0 * 1024.0 * 1024.0;

static double real_said(struct settled *s, const char *name, double dflt)
{
    const double x = settle_real_or(s, name, dflt);
    if (!(x >= 0))
        settle_fail(s, name, "%s is %.100s, expected a number", name, facts_text(s->facts, name));
    return x;
}

/* Why there can be no tiers; NULL: there can. config/check_tiers.c asks the same of keys. */
static const char *tiers_refused(const struct settled *s)
{
    const char *cache = tree_text(tree_at(s->root, "serving.kv.prefix_cache"));
    if (cache && strcmp(cache, "none") == 0)
        return "K/V outside the GPU without a prefix cache";
    if (tree_at(s->root, "serving.draft"))
        return "K/V outside the GPU beside speculative decoding";
    if (tree_at(s->root, "parallel.pipeline"))
        return "K/V outside the GPU in a pipeline";
    if (tree_at(s->root, "parallel.data"))
        return "K/V outside the GPU with parallel.data";
    return NULL;
}

/* The link's speed is nowhere said. */
static void put_host(struct settled *s, const char *size, double amount, const char *rest)
{
    settle_put(s, "serving.kv.tiers.host", "{%s: %.15g, %s, " LINK "}", size, amount, rest);
    settle_find(s, FOUND_ASSUMED, (struct place){0}, "", "serving.kv.tiers.host.gb_per_s",
                "PCIe 4.0, as the presets have it: set the link's latency_s and gb_per_s");
}

static void put_unit(struct settled *s, double tokens)
{
    if (tokens > 0)
        settle_put(s, "serving.kv.tiers.host.unit_tokens", "%.15g", tokens);
}

/* ---- vLLM (v1/kv_offload, config/vllm.py; lmcache/v1/config.py) ---- */

static const char *const vllm_names[] = {"kv_offloading_size", "kv_offloading_backend",
                                         "kv_transfer_config", "LMCACHE_MAX_LOCAL_CPU_SIZE",
                                         "LMCACHE_CHUNK_SIZE", NULL};

/* LMCache counts the GiB of a worker. */
static void put_lmcache(struct settled *s, const json_t *extra, double offloading_gib)
{
    const double workers = (double)(settle_number(s, "tensor_parallel_size", 1) *
                                    settle_number(s, "pipeline_parallel_size", 1));
    const double each = object_number(extra, "lmcache.max_local_cpu_size",
                                      real_said(s, "LMCACHE_MAX_LOCAL_CPU_SIZE", 5));
    const double chunk =
        object_number(extra, "lmcache.chunk_size", real_said(s, "LMCACHE_CHUNK_SIZE", 256));
    put_host(s, "gib", offloading_gib > 0 ? offloading_gib : each * workers,
             "stores: computed, begin_first: true, loads: before");
    put_unit(s, chunk);
    if (!(offloading_gib > 0) && !json_object_get(extra, "lmcache.max_local_cpu_size") &&
        !facts_get(s->facts, "LMCACHE_MAX_LOCAL_CPU_SIZE"))
        settle_find(s, FOUND_ASSUMED, (struct place){0}, "", "serving.kv.tiers.host.gib",
                    "LMCache's default, 5 GiB a GPU");
    if (object_text(extra, "lmcache.local_disk") || object_text(extra, "lmcache.remote_url"))
        settle_find(s, FOUND_UNMODELLED, facts_get(s->facts, "kv_transfer_config")->at,
                    "kv_transfer_config: lmcache.local_disk, lmcache.remote_url", NULL,
                    "their size and speed are nowhere said: the tiers disk and store");
}

static void put_offloading(struct settled *s, const json_t *extra, double offloading_gib)
{
    const double bytes = object_number(extra, "cpu_bytes_to_use", 0);
    const double unit = object_number(extra, "block_size", 0);
    const double block = (double)settle_number(s, "block_size", 16);
    const double blocks = object_number(extra, "num_cpu_blocks", 0);
    const double stores = object_number(extra, "store_threshold", 0);
    if (offloading_gib > 0 || bytes > 0)
        put_host(s, "gib", offloading_gib > 0 ? offloading_gib : bytes / gib,
                 "stores: computed, loads: apart");
    else
        put_host(s, "blocks", unit > block ? blocks * unit / block : blocks,
                 "stores: computed, loads: apart");
    if (unit > block)
        put_unit(s, unit);
    if (stores > 1)
        settle_put(s, "serving.kv.tiers.host.store_after", "%.15g", stores);
}

/* What keeps the connector's tier away; NULL: nothing. */
static const char *vllm_against(const struct settled *s, const json_t *config, bool is_lmcache,
                                double offloading_gib, bool v1)
{
    const json_t *extra = json_object_get(config, "kv_connector_extra_config");
    const char *role = object_text(config, "kv_role");
    if (!v1)
        return "K/V outside the GPU with engine V0";
    if (is_lmcache && role && strcmp(role, "kv_both") != 0)
        return "K/V that LMCache moves between servers";
    if (!is_lmcache && !(offloading_gib > 0) &&
        !(object_number(extra, "cpu_bytes_to_use", 0) > 0) &&
        !(object_number(extra, "num_cpu_blocks", 0) > 0))
        return "K/V outside the GPU: its size is missing (cpu_bytes_to_use)";
    return tiers_refused(s);
}

static bool is_offloading(const char *connector)
{
    return strcmp(connector, "OffloadingConnector") == 0 ||
           strncmp(connector, "LMCacheConnector", strlen("LMCacheConnector")) == 0;
}

static void settle_connector(struct settled *s, const json_t *config, const char *connector,
                             double offloading_gib, bool v1)
{
    const json_t *extra = json_object_get(config, "kv_connector_extra_config");
    const bool is_lmcache = strncmp(connector, "LMCache", 7) == 0;
    const char *against = vllm_against(s, config, is_lmcache, offloading_gib, v1);
    if (against) {
        settle_decide(s, vllm_names, FOUND_UNMODELLED, NULL, against);
        return;
    }
    settle_decide(s, vllm_names, FOUND_MAPS, "serving.kv.tiers.host.gib", NULL);
    facts_decide(s->facts, "kv_offloading_backend", FOUND_MAPS, "serving.kv.tiers.host.loads",
                 NULL);
    facts_decide(s->facts, "LMCACHE_CHUNK_SIZE", FOUND_MAPS, "serving.kv.tiers.host.unit_tokens",
                 NULL);
    if (is_lmcache)
        put_lmcache(s, extra, offloading_gib);
    else
        put_offloading(s, extra, offloading_gib);
}

void settle_tiers_vllm(struct settled *s, bool v1)
{
    const double offloading_gib = real_said(s, "kv_offloading_size", 0);
    const char *backend = facts_text(s->facts, "kv_offloading_backend");
    json_t *config = object_of(s->facts, "kv_transfer_config");
    const char *connector = object_text(config, "kv_connector");
    if (offloading_gib > 0)
        connector = backend && strcmp(backend, "lmcache") == 0 ? "LMCacheConnectorV1"
                                                               : "OffloadingConnector";
    if (s->code == 0 && connector && is_offloading(connector))
        settle_connector(s, config, connector, offloading_gib, v1);
    else if (s->code == 0) {
        settle_decide(s, vllm_names, FOUND_HARMLESS, NULL, NULL);
        facts_decide(s->facts, "kv_transfer_config", FOUND_UNMODELLED, NULL,
                     "K/V that moves between servers in a way that no cluster.preset has");
    }
    json_decref(config);
}

/* ---- SGLang (mem_cache/hiradix_cache.py, memory_pool_host.py) ---- */

static const char *const sglang_names[] = {"enable_hierarchical_cache", "hicache_ratio",
                                           "hicache_size", "hicache_write_policy", NULL};

/* A size is in GB of each GPU, and counts in place of a ratio. */
static void put_hicache(struct settled *s)
{
    const char *policy = facts_text(s->facts, "hicache_write_policy");
    const double size_gb = real_said(s, "hicache_size", 0);
    const double gpus = (double)settle_number(s, "tp_size", 1);
    const bool is_back = policy && strcmp(policy, "write_back") == 0;
    const char *rest = is_back ? "min_tokens: 10, stores: evicted, loads: layers"
                               : "min_tokens: 10, stores: computed, answers: true, loads: layers";
    if (policy && !is_back && strcmp(policy, "write_through") != 0 &&
        strcmp(policy, "write_through_selective") != 0)
        settle_fail(s, "hicache_write_policy",
                    "hicache_write_policy is %.60s, expected write_back, write_through or "
                    "write_through_selective",
                    policy);
    if (size_gb > 0)
        put_host(s, "gib", size_gb * 1e9 * gpus / gib, rest);
    else
        put_host(s, "device_ratio", real_said(s, "hicache_ratio", 2), rest);
    if (policy && strcmp(policy, "write_through_selective") == 0)
        settle_put(s, "serving.kv.tiers.host.store_after", "2");
    if (!facts_get(s->facts, "hicache_ratio") && !(size_gb > 0))
        settle_find(s, FOUND_ASSUMED, (struct place){0}, "", "serving.kv.tiers.host.device_ratio",
                    "SGLang's default");
    settle_decide(s, (const char *const[]){size_gb > 0 ? "hicache_ratio" : "hicache_size", NULL},
                  FOUND_HARMLESS, NULL, NULL);
}

void settle_tiers_sglang(struct settled *s)
{
    const bool is_on = facts_true(s->facts, "enable_hierarchical_cache", false);
    const char *against = is_on ? tiers_refused(s) : NULL;
    if (!is_on || against)
        settle_decide(s, sglang_names, is_on ? FOUND_UNMODELLED : FOUND_HARMLESS, NULL, against);
    else
        put_hicache(s);
}

/* ---- TensorRT-LLM (batch_manager/kvCacheManager.cpp) ---- */

/* A secondary pool keeps blocks for prompts to come: it is of use where blocks are found again. */
void settle_tiers_trtllm(struct settled *s, double gpus)
{
    const double bytes = real_said(s, "kv_cache_host_memory_bytes", 0);
    const char *against = bytes > 0 ? tiers_refused(s) : NULL;
    if (!(bytes > 0) || against) {
        facts_decide(s->facts, "kv_cache_host_memory_bytes",
                     against ? FOUND_UNMODELLED : FOUND_HARMLESS, NULL, against);
        return;
    }
    settle_assume(s, "serving.kv.prefix_cache", "hash",
                  "blocks are found again, else a host cache is of no use");
    put_host(s, "gib", bytes * gpus / gib, "stores: evicted, keeps: false, loads: before");
}
