/* The keys of `cluster`: replicas, their router and its news. */
#include "config/key_fields.h"

static const struct ifl_param cluster_fields[] = {
    INT("replicas", replicas, 1, 1, 65536, "replicas", "copies of the model that share the load"),
    TEXT("preset", routing, NULL,
         "a published router of configs/routing with its news, or a path; keys beside it override "
         "its own"),
};

static const struct key_by_hand cluster_by_hand[] = {
    {"pools", "a map of names to pools", "no pools",
     "replaces cluster.replicas: pools of different replicas; a pool is a map with `count`, a "
     "`role` and any of model, hardware, dtype, parallel, serving, deployment and cost, which "
     "override the configuration's own (cluster.pools.NAME.count, cluster.pools.NAME.role, "
     "cluster.pools.NAME.serving.kv.num_blocks, ...). role: prefill, decode or both; with roles, a "
     "request may be handed over from the replica that computes its prompt to one that decodes"},
};

const struct key_table cluster_keys = {FIELDS(cluster), BY_HAND(cluster)};

static const struct ifl_param news_fields[] = {
    TIME("interval_s", news.interval_ns, 0, 0, A_BILLION,
         "replica loads are taken for the router at multiples of this; 0: it knows the present "
         "loads"),
    TIME("delay_s", news.delay_ns, 0, 0, 3600, "delay until the router has these loads"),
};

const struct key_table news_keys = {FIELDS(news)};

static const struct ifl_param gateway_fields[] = {
    BOOL("hold", gateway.hold, false,
         "flow control (llm-d): a request waits at the gateway while its candidate replicas are "
         "saturated, i.e. the mean of max(waiting / queue_depth, blocks in use / kv_frac) is at "
         "least 1"),
    INT("queue_depth", gateway.queue_depth, 5, 1, ANY, "requests",
        "number of waiting requests that saturates a replica"),
    REAL("kv_frac", gateway.kv_frac, 0.8, 0.01, 1, "of the blocks",
         "fraction in use that saturates a replica, too"),
    TIME("stale_s", gateway.stale_ns, 0.2, 1e-9, A_BILLION,
         "a replica counts as saturated if its last report (cluster.news) is older"),
    CHOICE("order", gateway.order, "arrival|priority|latest|shortest", GATEWAY_BY_ARRIVAL,
           "order in which requests leave the gateway; priority: equal ones by arrival; shortest: "
           "fewest tokens to compute, counted when first held"),
    TEXT("classes", gateway_classes, "",
         "FROM:QUANTUM,FROM:QUANTUM,...: classes of held requests; a class has prompts with at "
         "least FROM tokens to compute and gets QUANTUM tokens of credit per round; classes take "
         "turns until no request may leave (Dynamo); default: one class"),
    INT("max_held", gateway.max_held, 0, 0, ANY, "requests",
        "most requests held at the gateway (of a class; with order: priority, also of a priority); "
        "one beyond it is shed; 0: no limit"),
    REAL("prefill_tokens_s", gateway.prefill_tokens_s, 0, 0, 1e9, "tokens/s",
         "a request is shed if its prompt and the prompts waiting at its replica would end after "
         "its ttft_slo_s at this rate; 0: none is shed"),
};

const struct key_table gateway_keys = {FIELDS(gateway)};

static const struct ifl_param handover_fields[] = {
    CHOICE("order", handover.order, "pull|push", HANDOVER_PULL,
           "pull: the decode replica gets a request when its prompt is computed, takes blocks and "
           "reads its K/V; push: on arrival; the prefill replica writes K/V to the blocks that are "
           "taken by then"),
    CHOICE("first_token", handover.first_token, "prefill|arrival|decode", TOKEN_OF_DECODE,
           "when the client gets it: when the prompt is computed; when the K/V has arrived; when "
           "the decode replica has computed the last prompt token again"),
    CHOICE("overlap", handover.overlap, "none|chunk|layer", MOVE_AT_END,
           "push: K/V moves after the whole prompt is computed; chunk by chunk; layer by layer "
           "during the step that computes it"),
    BOOL("blocks_destination", handover.blocks_destination, false,
         "the next step of the decode replica waits for the K/V that it loads"),
    TIME("lease_s", handover.lease_ns, 0, 0, A_BILLION,
         "pull: time for which the prefill replica keeps K/V while the decode replica lacks blocks "
         "for it; 0: no limit"),
    REAL("fail_frac", handover.fail_frac, 0, 0, 1, "of requests",
         "fraction, drawn at random, whose K/V is lost in its move; the loss is detected when all "
         "of it should have come"),
    CHOICE("lost", handover.lost, "recompute|fail", LOST_RECOMPUTE,
           "a request whose K/V was lost or not kept is recomputed by the decode replica (order: "
           "pull), or fails"),
};

const struct key_table handover_keys = {FIELDS(handover)};

static const struct ifl_param links_fields[] = {
    TEXT("preset", links.preset, NULL,
         "a link of configs/links, or a path; keys beside it override its own"),
    TIME("latency_s", links.spec.latency_ns, 0, 0, 3600,
         "time from the start of a move until its first byte has come; meanwhile the link is free, "
         "except with sharing frozen"),
    REAL("gb_per_s", links.gb_per_s, 0, 0, 1e9, "GB/s",
         "rate of the link out of each replica and of the link into it, for all its GPUs together; "
         "0: bytes take no time"),
    TIME("piece_s", links.spec.piece_ns, 0, 0, 1,
         "time of each piece of a move in addition to its bytes"),
    CHOICE("pieces", links.pieces, "merged|blocks|layers", PIECES_MERGED,
           "a move has one piece; one per block; or, per block, K and V of each layer and GPU"),
    CHOICE("sharing", links.spec.sharing, "fifo|shared|frozen|unshared", LINK_FIFO,
           "moves on a link run one after the other; share it equally; keep the share that they "
           "got at their start, among the moves under way (BLIS); do not slow each other down"),
    REAL("token_bytes", links.token_bytes, 0, 0, 1e9, "bytes",
         "K/V bytes per token; 0: the model's"),
};

const struct key_table links_keys = {FIELDS(links)};

/* The default is fixed: where cluster.preset names no preset, round-robin. */
static const struct key_by_hand router_by_hand[] = {
    {"policy", "the name of a module, see `inflight list policies`", "round-robin",
     "module that chooses the replica of an arrival; the keys beside it are its parameters"},
};

const struct key_table router_keys = {BY_HAND(router)};
