/* The keys of `cluster`: replicas, their router and its news. */
#include "config/key_fields.h"

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

const struct key_table cluster_keys = {FIELDS(cluster), BY_HAND(cluster)};

static const struct ifl_param news_fields[] = {
    TIME("interval_s", news.interval_ns, 0, 0, A_BILLION,
         "the router hears of the replicas at its multiples; 0: it knows them as they are"),
    TIME("delay_s", news.delay_ns, 0, 0, 3600, "so long after their loads were taken"),
};

const struct key_table news_keys = {FIELDS(news)};

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

const struct key_table gateway_keys = {FIELDS(gateway)};

/* The default is fixed: where cluster.preset names no preset, round-robin. */
static const struct key_by_hand router_by_hand[] = {
    {"policy", "the name of a module, see `inflight list policies`", "round-robin",
     "which replica an arrival goes to; the keys beside it are its parameters"},
};

const struct key_table router_keys = {BY_HAND(router)};
