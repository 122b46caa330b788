/* Conservation in random clusters that hand requests over, or move running ones: every order, both
 * roles and mixed ones, links of every sharing, small pools, prefix caches, clients that leave in
 * the middle of a move, K/V that is lost in one. Every request ends once, with all its tokens or as
 * one that left; both replicas are left empty; steady runs do not show. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "fixture.h"
#include "flown.h"

enum { N_CLUSTERS = 10000, MAX_REQUESTS = 24 };

/* ---- the cluster ---- */

struct recipe {
    const char *batching, *params, *admit, *preempt;
};

static const struct recipe recipes[] = {
    {"prefill-first", "{max_seqs: 4}", "prompt-fits", NULL},
    {"prefill-first", NULL, "prompt-fits", "{fate: swap}"},
    {"mixed", "{max_seqs: 3, chunk_tokens: 20}", "prompt-fits", NULL},
    {"unified", "{max_seqs: 5, max_batched_tokens: 24}", "chunk-fits", NULL},
    {"unified", "{max_seqs: 5, max_batched_tokens: 100}", "chunk-fits", NULL},
    {"retracting", "{max_seqs: 6, max_prefill_tokens: 100}", "discounted", "-"},
    {"alternate", "{max_seqs: 6, chunk_tokens: 30}", "prompt-fits", NULL},
    {"capacity", "{max_seqs: 6, max_batched_tokens: 100}", "reserve", "{fate: never}"},
    {"pausing", "{max_reqs: 5, max_batched_tokens: 30, max_missed: 2}", "prompt-fits", NULL},
    {"pausing", "{max_batched_tokens: 3}", "reserve", "{fate: never}"},
};

static void roll_modules(struct fixture *kitchen, struct dice *dice)
{
    static const char *const orders[] = {"fcfs", "sjf", "priority"};
    const struct recipe *recipe =
        &recipes[roll(dice, 0, (int32_t)(sizeof recipes / sizeof *recipes) - 1)];
    const bool retracts = strcmp(recipe->batching, "retracting") == 0;
    const bool fcfs = retracts || strcmp(recipe->batching, "capacity") == 0;
    fixture_module(kitchen, IFL_BATCHING, recipe->batching, recipe->params);
    fixture_module(kitchen, IFL_ORDER, orders[fcfs ? 0 : roll(dice, 0, 2)], NULL);
    fixture_module(kitchen, IFL_ADMIT, recipe->admit, NULL);
    fixture_module(kitchen, IFL_PREEMPT, retracts ? "shortest-output" : "tail",
                   retracts ? NULL : recipe->preempt);
    fixture_module(kitchen, IFL_EVICT, "lru", NULL);
}

static void roll_pool(struct fixture_pool *pool, const struct fixture *kitchen, unsigned roles,
                      struct dice *dice)
{
    *pool = (struct fixture_pool){
        .n_replicas = (uint32_t)roll(dice, 1, 3),
        .limits = {.block_tokens = roll(dice, 1, 8),
                   .n_blocks = roll(dice, 12, one_in(dice, 2) ? 40 : 400),
                   .n_host_blocks = roll(dice, 0, 1) * 400,
                   .max_model_tokens = roll(dice, 90, 120),
                   .n_clients = 1},
        .linear = {.step_s = 0.01 * roll(dice, 1, 10),
                   .prefill_token_s = 0.0001 * roll(dice, 0, 9)},
        .modules = kitchen->modules,
        .prefix_cache = (enum prefix_cache)roll(dice, 0, 2),
        .leave = one_in(dice, 2) ? LEAVE_NEXT_STEP : LEAVE_STEP_END,
        .roles = roles,
    };
}

static void roll_links(struct fixture *f, struct dice *dice)
{
    f->link = (struct link_spec){.latency_ns = roll(dice, 0, 1) * 1000000 * roll(dice, 0, 30),
                                 .bytes_per_s = roll(dice, 0, 3) * 300.0,
                                 .piece_ns = roll(dice, 0, 1) * 100000,
                                 .sharing = (enum link_sharing)roll(dice, 0, 3)};
    f->moved = (struct handover_size){
        .token_bytes = 1, .block_pieces = roll(dice, 0, 2), .n_layers = roll(dice, 1, 4)};
}

static void roll_rules(struct fixture *f, struct dice *dice)
{
    struct handover_rules *rules = &f->handover;
    rules->order = one_in(dice, 2) ? HANDOVER_PUSH : HANDOVER_PULL;
    rules->first_token = (enum handover_token)roll(dice, 0, 2);
    rules->overlap =
        rules->order == HANDOVER_PUSH ? (enum handover_overlap)roll(dice, 0, 2) : MOVE_AT_END;
    rules->blocks_destination = rules->order == HANDOVER_PULL && one_in(dice, 3);
    if (rules->order == HANDOVER_PULL && one_in(dice, 3))
        rules->lease_ns = 10000000 * (int64_t)roll(dice, 0, 30) + 1;
    rules->lost = one_in(dice, 3) ? LOST_FAIL : LOST_RECOMPUTE;
    f->hands_over = true;
}

/* Some of what moves is lost. What is pushed is not computed anew. */
static void roll_failures(struct handover_rules *rules, uint64_t seed)
{
    struct dice dice = {seed + (UINT64_C(1) << 41), 0};
    if (!one_in(&dice, 4))
        return;
    rules->fail_frac = 0.1 * roll(&dice, 1, 10);
    if (rules->order == HANDOVER_PUSH)
        rules->lost = LOST_FAIL;
}

/* Half of the clusters plan a step before they know how the one in front of it ends. */
static void roll_ahead(struct fixture *f, uint64_t seed)
{
    struct dice dice = {seed + (UINT64_C(1) << 42), 0};
    f->overlap.hindsight = one_in(&dice, 2);
}

static void roll_migration(struct fixture *f, struct dice *dice)
{
    static const char *const routers[] = {"round-robin", "least-outstanding", "remaining-steps",
                                          "random"};
    f->migration =
        (struct migration_rules){.interval_ns = 10000000 * (int64_t)roll(dice, 1, 30),
                                 .threshold = roll(dice, 0, 30) - 3,
                                 .pairs = one_in(dice, 3) ? PAIRS_BALANCED : PAIRS_DEFRAG,
                                 .request = (enum migration_request)roll(dice, 0, 3),
                                 .awaited = one_in(dice, 2) ? AWAITED_OF_FIRST : AWAITED_OF_ALL,
                                 .max_stages = roll(dice, 1, 4),
                                 .last_stage_blocks = roll(dice, 1, 8),
                                 .max_moves = roll(dice, 1, 3),
                                 .watermark_frac = 0.1 * roll(dice, 0, 2)};
    fixture_module(f, IFL_ROUTE, routers[roll(dice, 0, 3)], NULL);
}

static int64_t after(struct dice *dice, int32_t n)
{
    return one_in(dice, n) ? 10000000 * (int64_t)roll(dice, 0, 200) : IFL_NEVER;
}

static void roll_requests(struct fixture *f, struct dice *dice)
{
    const int32_t gap = roll(dice, 0, 20);
    const bool leave = one_in(dice, 2);
    int64_t at_ns = 0;
    fixture_trace(f, (size_t)roll(dice, 1, MAX_REQUESTS));
    f->trace.abort_ns = calloc(f->trace.n, sizeof *f->trace.abort_ns);
    f->trace.deadline_ns = calloc(f->trace.n, sizeof *f->trace.deadline_ns);
    f->trace.prefix_group = calloc(f->trace.n, sizeof *f->trace.prefix_group);
    f->trace.prefix_tokens = calloc(f->trace.n, sizeof *f->trace.prefix_tokens);
    for (size_t i = 0; i < f->trace.n; i++) {
        at_ns += 10000000 * (int64_t)roll(dice, 0, gap);
        f->trace.arrival_ns[i] = at_ns;
        f->trace.n_prompt[i] = roll(dice, 1, 60);
        f->trace.n_output[i] = roll(dice, 1, 30);
        f->trace.priority[i] = roll(dice, 0, 3);
        f->trace.abort_ns[i] = leave ? after(dice, 4) : IFL_NEVER;
        f->trace.deadline_ns[i] = leave ? after(dice, 6) : IFL_NEVER;
        f->trace.prefix_group[i] = (uint32_t)roll(dice, 0, 2);
        if (f->trace.prefix_group[i] > 0)
            f->trace.prefix_tokens[i] = roll(dice, 1, f->trace.n_prompt[i]);
    }
}

static void roll_router(struct fixture *f, struct dice *dice, uint64_t seed)
{
    static const char *const routers[][2] = {
        {"pair", NULL},
        {"pair", "{prefill: turns, decode: blocks}"},
        {"conductor", NULL},
        {"conductor", "{balancing: 2, transfer_token_s: 0.0001}"},
        {"conductor", "{reject: early, tbt_s: 1, decode_token_s: 0.01, ttft_s: 0.01, max_reqs: 4}"},
        {"conductor", "{reject: predicted, tbt_s: 1, decode_token_s: 0.01, decode_s: 0.5}"},
        {"mixed-pools", "{long_queue_tokens: 60}"},
    };
    const int32_t of_pairs = one_in(dice, 2) ? 0 : 1;
    const int32_t i = seed % 2 ? of_pairs : (int32_t)(2 + seed / 2 % 5);
    fixture_module(f, IFL_ROUTE, routers[i][0], routers[i][1]);
}

/* A store that the replicas of the first pool share, which computes prompts alone. */
static void roll_store(struct fixture *f, uint64_t seed)
{
    struct dice dice = {seed + (UINT64_C(1) << 40), 0};
    const struct fixture_pool *pool = &f->pools[0];
    if (one_in(&dice, 2) || pool->roles != IFL_PREFILLS || pool->prefix_cache == PREFIX_CACHE_NONE)
        return;
    struct tier_rules *tier = &f->tiers[TIER_STORE];
    *tier = (struct tier_rules){.on = true,
                                .n_units = roll(&dice, 1, 60),
                                .unit_blocks = roll(&dice, 1, 3),
                                .store_after = 1,
                                .stores = TIER_STORES_COMPUTED,
                                .loads = (enum tier_load)roll(&dice, 1, 2),
                                .keeps = roll(&dice, 0, 1),
                                .linked = roll(&dice, 0, 3),
                                .hit_frac = one_in(&dice, 2) ? 0.4 : 0};
    f->tier_links.block_bytes = 1;
    f->tier_links.n_layers = roll(&dice, 1, 4);
    f->tier_links.spec[TIER_STORE] =
        (struct link_spec){.latency_ns = tier->linked ? 20000000 : 0,
                           .bytes_per_s = 100 * roll(&dice, 0, 1),
                           .sharing = (enum link_sharing)roll(&dice, 0, 3)};
}

struct cluster {
    struct fixture f;
    struct fixture kitchen[FIXTURE_MAX_POOLS];
};

static void roll_cluster(struct cluster *cluster, uint64_t seed)
{
    struct dice dice = {seed, 0};
    struct fixture *f = &cluster->f;
    memset(cluster, 0, sizeof *cluster);
    f->n_pools = (size_t)roll(&dice, 2, 3);
    f->max_samples = 1;
    f->seed = seed;
    const bool mixed = one_in(&dice, 4);
    for (size_t i = 0; i < f->n_pools; i++) {
        const unsigned role = i % 2 ? IFL_DECODES : IFL_PREFILLS;
        roll_modules(&cluster->kitchen[i], &dice);
        roll_pool(&f->pools[i], &cluster->kitchen[i], mixed ? 0 : role, &dice);
    }
    f->limits = f->pools[0].limits;
    roll_store(f, seed);
    roll_router(f, &dice, seed);
    roll_links(f, &dice);
    roll_rules(f, &dice);
    roll_failures(&f->handover, seed);
    roll_ahead(f, seed);
    roll_requests(f, &dice);
    f->capture.keep_steps = true;
}

/* Clusters in pipelines, with roles. A request is in one step, or chunks of its prompt are in
 * several; batches are shared, or slots take turns. */
static void roll_pipeline(struct fixture *f, uint64_t seed)
{
    struct dice dice = {seed ^ UINT64_C(0x9e3779b97f4a7c15), 0};
    const int32_t n_stages = roll(&dice, 2, 4);
    f->overlap = (struct overlap){.depth = n_stages + roll(&dice, 0, 1),
                                  .n_stages = n_stages,
                                  .request = one_in(&dice, 2) ? OVERLAP_ONE_STEP : OVERLAP_CHUNKS,
                                  .slots = one_in(&dice, 2),
                                  .waits = one_in(&dice, 2)};
}

/* Host memory below the devices, from which requests load beside steps or in front of one. */
static void roll_host(struct fixture *f, struct dice *dice)
{
    for (size_t i = 0; i < f->n_pools; i++)
        if (f->pools[i].prefix_cache == PREFIX_CACHE_NONE)
            return;
    if (f->swaps_apart || one_in(dice, 2))
        return;
    f->tiers[TIER_HOST] = (struct tier_rules){.on = true,
                                              .n_units = roll(dice, 1, 60),
                                              .unit_blocks = 1,
                                              .store_after = 1,
                                              .stores = TIER_STORES_COMPUTED,
                                              .loads = (enum tier_load)roll(dice, 0, 2),
                                              .linked = true};
    f->tier_links.block_bytes = 1;
    f->tier_links.n_layers = 1;
    f->tier_links.spec[TIER_HOST] = (struct link_spec){.latency_ns = 20000000};
}

/* Its pools have no roles, and running requests move between their replicas. */
static void roll_migrating(struct cluster *cluster, uint64_t seed)
{
    struct dice dice = {seed, 0};
    struct fixture *f = &cluster->f;
    memset(cluster, 0, sizeof *cluster);
    f->n_pools = (size_t)roll(&dice, 1, 2);
    f->max_samples = 1;
    f->seed = seed;
    for (size_t i = 0; i < f->n_pools; i++) {
        roll_modules(&cluster->kitchen[i], &dice);
        roll_pool(&f->pools[i], &cluster->kitchen[i], 0, &dice);
        f->pools[i].n_replicas++;
    }
    f->limits = f->pools[0].limits;
    roll_links(f, &dice);
    roll_migration(f, &dice);
    f->swaps_apart = one_in(&dice, 2);
    for (size_t i = 0; i < f->n_pools; i++)
        f->swaps_apart &=
            strcmp(f->pools[i].modules[IFL_BATCHING].policy->name, "prefill-first") == 0;
    f->swap_link.out_ns = 1000000 * (int64_t)roll(&dice, 0, 30);
    f->swap_link.in_ns = 1000000 * (int64_t)roll(&dice, 0, 30);
    roll_host(f, &dice);
    roll_requests(f, &dice);
    f->capture.keep_steps = true;
}

static void free_cluster(struct cluster *cluster)
{
    fixture_free(&cluster->f);
    for (size_t i = 0; i < FIXTURE_MAX_POOLS; i++)
        fixture_free(&cluster->kitchen[i]);
}

/* ---- what must hold ---- */

static void check_requests(const struct fixture *f, uint64_t seed)
{
    flown_each_once(f, seed);
    for (size_t i = 0; i < f->capture.n_requests; i++) {
        const struct ifl_request_record *r = &f->capture.requests[i];
        if (r->status != IFL_FINISHED)
            continue;
        cr_assert(r->arrival_ns <= r->first_scheduled_ns &&
                  r->first_scheduled_ns < r->first_token_ns && r->first_token_ns <= r->finish_ns);
        if (r->has_two_replicas && r->move_end_ns != IFL_NEVER)
            cr_assert(r->first_scheduled_ns < r->prefilled_ns &&
                      r->prefilled_ns <= r->move_end_ns && r->move_end_ns <= r->finish_ns &&
                      r->moving_hidden_ns >= 0 && r->moving_hidden_ns <= r->moving_ns);
    }
}

static void check_same(const struct fixture *a, const struct fixture *b, uint64_t seed)
{
    cr_assert_eq(a->capture.n_moves, b->capture.n_moves, "seed %llu", (unsigned long long)seed);
    flown_same_requests(a, b, seed);
}

struct counts {
    uint64_t n, n_moves, n_left, n_finished, n_hidden, n_found, n_migrations, n_left_moved;
    uint64_t n_computed_anew, n_failed;
};

/* Its K/V moved, and was lost. */
static bool was_lost(const struct ifl_request_record *r)
{
    return r->has_two_replicas && r->move_start_ns != IFL_NEVER && r->move_end_ns == IFL_NEVER;
}

static void count(const struct fixture *f, struct counts *counts)
{
    counts->n_moves += f->capture.n_moves;
    for (size_t i = 0; i < f->capture.n_requests; i++) {
        const struct ifl_request_record *r = &f->capture.requests[i];
        const bool left = r->status == IFL_ABORTED || r->status == IFL_TIMED_OUT;
        counts->n_left += left;
        counts->n_finished += r->status == IFL_FINISHED;
        counts->n_hidden += r->moving_hidden_ns > 0;
        counts->n_found += r->tier_tokens[TIER_STORE] > 0;
        counts->n_migrations += (uint64_t)r->n_migrations;
        counts->n_left_moved += left && r->n_migrations > 0;
        counts->n_computed_anew += r->status == IFL_FINISHED && was_lost(r);
        counts->n_failed += r->status == IFL_FAILED && was_lost(r);
    }
}

static struct counts fly_many(void (*roll_one)(struct cluster *cluster, uint64_t seed))
{
    const uint64_t n = getenv("CLUSTERS") ? strtoull(getenv("CLUSTERS"), NULL, 10) : N_CLUSTERS;
    const uint64_t first = getenv("FIRST") ? strtoull(getenv("FIRST"), NULL, 10) : 0;
    struct counts counts = {.n = n};
    for (uint64_t seed = first; seed < first + n; seed++) {
        static struct cluster skipping, planning, checking;
        roll_one(&skipping, seed);
        roll_one(&planning, seed);
        roll_one(&checking, seed);
        planning.f.no_steady_runs = true;
        checking.f.check_steady = true;
        flown_well(&skipping.f, seed);
        flown_well(&planning.f, seed);
        flown_well(&checking.f, seed);
        check_requests(&skipping.f, seed);
        check_same(&skipping.f, &planning.f, seed);
        check_same(&skipping.f, &checking.f, seed);
        count(&skipping.f, &counts);
        free_cluster(&skipping);
        free_cluster(&planning);
        free_cluster(&checking);
    }
    return counts;
}

Test(handover, random_clusters_lose_nothing, .timeout = 600)
{
    const struct counts of = fly_many(roll_cluster);
    if (of.n == N_CLUSTERS)
        cr_assert(of.n_moves > 4 * of.n && of.n_left > of.n && of.n_finished > 4 * of.n &&
                      of.n_hidden > of.n / 10 && of.n_found > of.n / 10 &&
                      of.n_computed_anew > of.n / 10 && of.n_failed > of.n / 10,
                  "%llu moves, %llu left, %llu finished, %llu hidden, %llu found in a store, "
                  "%llu lost and computed anew, %llu lost and failed",
                  (unsigned long long)of.n_moves, (unsigned long long)of.n_left,
                  (unsigned long long)of.n_finished, (unsigned long long)of.n_hidden,
                  (unsigned long long)of.n_found, (unsigned long long)of.n_computed_anew,
                  (unsigned long long)of.n_failed);
}

static void roll_cluster_of_pipelines(struct cluster *cluster, uint64_t seed)
{
    roll_cluster(cluster, seed);
    roll_pipeline(&cluster->f, seed);
    cluster->f.tiers[TIER_STORE].on = false; /* there are none in pipelines */
}

Test(handover, random_pipelines_lose_nothing, .timeout = 600)
{
    const struct counts of = fly_many(roll_cluster_of_pipelines);
    if (of.n == N_CLUSTERS)
        cr_assert(of.n_moves > 4 * of.n && of.n_left > of.n / 2 && of.n_finished > 4 * of.n,
                  "%llu moves, %llu left, %llu finished", (unsigned long long)of.n_moves,
                  (unsigned long long)of.n_left, (unsigned long long)of.n_finished);
}

Test(handover, running_requests_move_and_nothing_is_lost, .timeout = 600)
{
    const struct counts of = fly_many(roll_migrating);
    if (of.n == N_CLUSTERS)
        cr_assert(of.n_moves > 2 * of.n_migrations && of.n_migrations > of.n &&
                      of.n_left_moved > of.n / 50,
                  "%llu stages, %llu migrations, %llu moved and left",
                  (unsigned long long)of.n_moves, (unsigned long long)of.n_migrations,
                  (unsigned long long)of.n_left_moved);
}

/* ---- a router that names the decode replica as the prompt is done ---- */

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    (void)self;
    return ifl_send_pair(ifl_nth(fleet, IFL_PREFILLS, 0), ifl_nth(fleet, IFL_DECODES, 0));
}

static size_t pick_decode(const void *self, const struct ifl_fleet *fleet)
{
    (void)self;
    return ifl_least(fleet, IFL_DECODES);
}

/* Both arrive when the decode replicas have nothing. As the second prompt is done, replica 1
 * decodes the first request. */
Test(handover, the_decode_replica_is_named_as_the_prompt_ends)
{
    static const struct ifl_route_ops ops = {.pick = pick, .pick_decode = pick_decode};
    static const struct ifl_policy late = {
        .kind = IFL_ROUTE, .name = "late", .doc = "for this test", .ops.route = &ops};
    const struct ifl_limits limits = {
        .block_tokens = 16, .n_blocks = 100, .max_model_tokens = 2000, .n_clients = 1};
    struct fixture f = {.n_pools = 2, .hands_over = true, .max_samples = 1, .limits = limits};
    fixture_vllm(&f, "{max_batched_tokens: 150}", NULL);
    f.modules[IFL_ROUTE].policy = &late;
    f.pools[0] = (struct fixture_pool){
        .n_replicas = 1, .limits = limits, .linear = {.step_s = 1}, .roles = IFL_PREFILLS};
    f.pools[1] = (struct fixture_pool){
        .n_replicas = 2, .limits = limits, .linear = {.step_s = 1}, .roles = IFL_DECODES};
    fixture_trace(&f, 2);
    for (size_t i = 0; i < 2; i++) {
        f.trace.n_prompt[i] = 100;
        f.trace.n_output[i] = 10;
    }
    flown_well(&f, 0);
    cr_assert_eq(f.capture.n_requests, 2);
    cr_assert_eq(f.capture.requests[0].replica, 1);
    cr_assert_eq(f.capture.requests[1].replica, 2);
    fixture_free(&f);
}

/* ---- layers move beside the step that computes them ---- */

/* A prompt of ten blocks of 16 tokens, each a piece and a byte a token, is computed in one step of
 * 1 s, in four layers. */
static void check_layers(struct link_spec link, int64_t arrives_ns, int64_t hidden_ns)
{
    const struct ifl_limits limits = {
        .block_tokens = 16, .n_blocks = 100, .max_model_tokens = 2000, .n_clients = 1};
    struct fixture f = {.n_pools = 2,
                        .hands_over = true,
                        .handover = {.order = HANDOVER_PUSH,
                                     .first_token = TOKEN_ON_ARRIVAL,
                                     .overlap = MOVE_BY_LAYER},
                        .link = link,
                        .moved = {.token_bytes = 1, .block_pieces = 1, .n_layers = 4},
                        .max_samples = 1,
                        .limits = limits};
    fixture_vllm(&f, NULL, NULL);
    fixture_module(&f, IFL_ROUTE, "pair", NULL);
    for (size_t i = 0; i < 2; i++)
        f.pools[i] = (struct fixture_pool){.n_replicas = 1,
                                           .limits = limits,
                                           .linear = {.step_s = 1},
                                           .roles = i ? IFL_DECODES : IFL_PREFILLS};
    fixture_trace(&f, 1);
    f.trace.n_prompt[0] = 160;
    f.trace.n_output[0] = 2;
    flown_well(&f, 0);
    cr_assert_eq(f.capture.requests[0].first_token_ns, arrives_ns, "%lld",
                 (long long)f.capture.requests[0].first_token_ns);
    cr_assert_eq(f.capture.requests[0].moving_hidden_ns, hidden_ns, "%lld",
                 (long long)f.capture.requests[0].moving_hidden_ns);
    fixture_free(&f);
}

/* max(T + x / L, T / L + x), Splitwise, section 4.2: x 0.4 s, max(1.1, 0.65); x 2 s,
 * max(1.5, 2.25); bytes or pieces. The latency follows the last byte. */
Test(handover, layers_move_beside_their_step)
{
    check_layers((struct link_spec){.bytes_per_s = 400}, 1100000000, 300000000);
    check_layers((struct link_spec){.bytes_per_s = 80}, 2250000000, 750000000);
    check_layers((struct link_spec){.piece_ns = 40000000}, 1100000000, 300000000);
    check_layers((struct link_spec){.latency_ns = 2000000000}, 3000000000, 0);
    check_layers((struct link_spec){1000000000, 320, 50000000, LINK_FIFO}, 2250000000, 750000000);
}
