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
     "a `role` and of any of model, hardware, dtype, parallel, serving, deployment and cost, laid "
     "over the configuration's own (cluster.pools.NAME.count, cluster.pools.NAME.role, "
     "cluster.pools.NAME.serving.kv.num_blocks, ...). role: prefill, decode or both; where a pool "
     "has one, "
     "a request may be handed over from the replica that computes its prompt to one that decodes"},
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
    CHOICE("order", gateway.order, "arrival|priority|latest|shortest", GATEWAY_BY_ARRIVAL,
           "in which requests leave the gateway; those of a priority by arrival; shortest: the "
           "fewest tokens to compute, as counted when it is first held"),
    TEXT("classes", gateway_classes, "",
         "FROM:QUANTUM,FROM:QUANTUM,...: classes of what is held, by how many tokens of the prompt "
         "are to be computed, from FROM on; they take turns until no request may go, with QUANTUM "
         "tokens of credit a round (Dynamo); default: one class"),
    INT("max_held", gateway.max_held, 0, 0, ANY, "requests",
        "a request is shed that would make more wait at the gateway (more of its class; order: "
        "priority: more of its priority); 0: no limit"),
    REAL("prefill_tokens_s", gateway.prefill_tokens_s, 0, 0, 1e9, "tokens/s",
         "a request with a ttft_slo_s is shed if its prompt, and those that wait where it is "
         "routed to, would take longer at this rate; 0: none is"),
};

const struct key_table gateway_keys = {FIELDS(gateway)};

static const struct ifl_param handover_fields[] = {
    CHOICE("order", handover.order, "pull|push", HANDOVER_PULL,
           "pull: the decode replica gets a request as its prompt is computed, takes blocks for it "
           "and reads its K/V; push: as it arrives, and the prefill replica writes K/V to the "
           "blocks that it has taken by then"),
    CHOICE("first_token", handover.first_token, "prefill|arrival|decode", TOKEN_OF_DECODE,
           "the client has it as the prompt is computed, as the K/V arrives, or once the decode "
           "replica has computed the last token of the prompt again"),
    CHOICE("overlap", handover.overlap, "none|chunk|layer", MOVE_AT_END,
           "push: K/V moves once the prompt is computed; chunk by chunk; layer by layer beside the "
           "step that computes it"),
    BOOL("blocks_destination", handover.blocks_destination, false,
         "the next step of the decode replica waits for the K/V that it loads"),
    TIME("lease_s", handover.lease_ns, 0, 0, A_BILLION,
         "pull: so long the prefill replica keeps K/V for which there are no blocks yet; 0: until "
         "there are"),
    REAL("fail_frac", handover.fail_frac, 0, 0, 1, "of requests",
         "whose K/V is lost as it moves, which is found out when all of it should have come; by "
         "draw"),
    CHOICE("lost", handover.lost, "recompute|fail", LOST_RECOMPUTE,
           "a request with K/V that was not kept, or was lost, is computed anew by the decode "
           "replica (order: pull), or fails"),
};

const struct key_table handover_keys = {FIELDS(handover)};

static const struct ifl_param links_fields[] = {
    TEXT("preset", links.preset, NULL,
         "a link of configs/links, or a path; keys beside it override its own"),
    TIME("latency_s", links.spec.latency_ns, 0, 0, 3600,
         "from the start of a move until its first byte has come; the link is free meanwhile, but "
         "with sharing frozen"),
    REAL(
        "gb_per_s", links.gb_per_s, 0, 0, 1e9, "GB/s",
        "rate of the link out of each replica, and of that into it, of all its GPUs; 0: bytes take "
        "no time"),
    TIME("piece_s", links.spec.piece_ns, 0, 0, 1,
         "that each piece of a move takes beside its bytes"),
    CHOICE("pieces", links.pieces, "merged|blocks|layers", PIECES_MERGED,
           "a move is one piece; one a block; for each block, K and V of each layer and GPU"),
    CHOICE("sharing", links.spec.sharing, "fifo|shared|frozen|unshared", LINK_FIFO,
           "moves on one link go one after the other; share it equally; keep the share that they "
           "began with, of all that have not come (BLIS); do not hinder one another"),
    REAL("token_bytes", links.token_bytes, 0, 0, 1e9, "bytes", "K/V of a token; 0: the model's"),
};

const struct key_table links_keys = {FIELDS(links)};

/* The default is fixed: where cluster.preset names no preset, round-robin. */
static const struct key_by_hand router_by_hand[] = {
    {"policy", "the name of a module, see `inflight list policies`", "round-robin",
     "which replica an arrival goes to; the keys beside it are its parameters"},
};

const struct key_table router_keys = {BY_HAND(router)};
