/* Flies a small hand-made set-up in a test: modules by name, a trace in memory, linear cost. */
#ifndef TESTS_SIM_FIXTURE_H
#define TESTS_SIM_FIXTURE_H

#include "capture.h"
#include "config/config.h"
#include "cost/adapter_cost.h"
#include "cost/cost.h"
#include "run/flight.h"

/* A pool of replicas with limits, costs and modules of its own. */
struct fixture_pool {
    uint32_t n_replicas;
    struct ifl_limits limits;
    struct linear_cost linear;
    const struct module_config *modules; /* NULL: the fixture's */
    enum prefix_cache prefix_cache;
    enum leave leave;
    uint32_t model;
    unsigned roles; /* bits of enum ifl_role; 0: both */
    struct door door;
};

enum { FIXTURE_MAX_POOLS = 4, FIXTURE_MAX_ADAPTERS = 5 };

struct fixture {
    struct module_config modules[N_MODULES];
    struct ifl_limits limits;
    struct linear_cost linear;
    enum kv_allocator allocator;
    enum prefix_cache prefix_cache;
    enum kv_unhashed unhashed;
    enum kv_publish publish;
    enum swap_full swap_full;
    struct keep keep;
    struct windows_rule windows;
    enum leave leave;
    struct overlap overlap; /* in a pipeline of equal stages */
    struct patience patience;
    struct retries retries;
    struct news_options news;
    struct front_end front;
    bool no_steady_runs, check_steady, check_blocks;
    int32_t concurrency;
    uint32_t n_replicas; /* 0: one */
    struct door door;
    struct fixture_pool pools[FIXTURE_MAX_POOLS]; /* [n_pools], in place of n_replicas */
    size_t n_pools;
    struct gateway gateway;
    bool hands_over;
    struct handover_rules handover;
    struct migration_rules migration; /* interval_ns 0: no running request moves */
    struct handover_size moved;
    struct link_spec link;
    bool swaps_apart;
    struct swap_link swap_link;       /* of all pools */
    struct tier_rules tiers[N_TIERS]; /* of the one replica, or shared by those of
                                         the first pool; on false: there is none */
    struct tier_links tier_links;
    uint64_t seed;       /* of the router's draws */
    int32_t max_samples; /* the most in the trace's column */
    struct beam_search beams;
    struct ragged_options speculation;
    struct ifl_speculation_record guesses; /* out */
    struct adapters_options adapters_of;   /* zeroed: there are none */
    struct adapter_cost adapter_cost;
    struct adapter adapters[FIXTURE_MAX_ADAPTERS + 1];
    int32_t adapter_blocks[FIXTURE_MAX_ADAPTERS + 1];
    struct ifl_trace trace; /* sorted by arrival */
    /* out */
    struct capture capture;
    uint64_t n_plans, n_repeats, n_at_door;
    struct refusals refusals;
    char complaint[256]; /* the error found by check_blocks, empty if none */
};

/* params in YAML flow style, "{max_seqs: 4}", or NULL for the defaults. */
void fixture_module(struct fixture *f, enum ifl_kind kind, const char *name, const char *params);
/* Four usual modules: prefill-first, fcfs, prompt-fits, tail. */
void fixture_vllm(struct fixture *f, const char *batching_params, const char *tail_params);
void fixture_trace(struct fixture *f, size_t n);
int fixture_fly(struct fixture *f, struct ifl_error *error);
void fixture_free(struct fixture *f);

#endif
