/* Conservation in random fleets: mixed pools, routers, limits, gateways, news, clients that leave
 * and try again. Every request ends once, tokens of requests add up to those of steps over all
 * retries, and no step holds more K/V than its pool has. Steady runs do not show. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"

#include "config/registry.h"
#include "dice.h"
#include "fixture.h"

enum { N_FLEETS = 10000, MAX_REQUESTS = 24, MAX_RETRIES = 3, N_MODELS = 2 };

/* ---- the fleet ---- */

static const char *const orders[] = {"fcfs", "sjf", "priority"};

struct recipe {
    const char *batching, *params, *admit;
};

static const struct recipe recipes[] = {
    {"prefill-first", "{max_seqs: 4}", "prompt-fits"},
    {"prefill-first", NULL, "prompt-fits"},
    {"mixed", "{max_seqs: 3}", "prompt-fits"},
    {"unified", "{max_seqs: 5, max_batched_tokens: 24}", "chunk-fits"},
};

static bool answers_two(const char *router)
{
    static const char *const names[] = {"pair", "conditional", "conductor", "mixed-pools"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(router, names[i]) == 0)
            return true;
    return false;
}

/* ---- a router that asks for the first by some count, and walks over all as well ---- */

static uint64_t n_compared, n_held; /* answers; those with cached tokens */

static int64_t requests_at(const struct ifl_fleet *fleet, size_t i)
{
    return ifl_outstanding_and_sent(ifl_load_of(fleet, i));
}

/* The first of those that may have the request, in order of number. */
static struct ifl_route compare_with_walk(const void *self, const struct ifl_fleet *fleet)
{
    const size_t n = ifl_up(fleet, IFL_PREFILLS), of_0 = ifl_nth(fleet, IFL_PREFILLS, 0);
    size_t least = of_0, most = of_0, routed = of_0, holder = fleet->n;
    int32_t n_tokens, n_most_tokens = 0;
    (void)self;
    for (size_t k = 0; k < n; k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
        const int32_t n_cached = ifl_cached_tokens(fleet, i);
        least = requests_at(fleet, i) < requests_at(fleet, least) ? i : least;
        most = requests_at(fleet, i) > requests_at(fleet, most) ? i : most;
        routed =
            ifl_load_of(fleet, i)->n_routed < ifl_load_of(fleet, routed)->n_routed ? i : routed;
        holder = n_cached > n_most_tokens ? i : holder;
        n_most_tokens = n_cached > n_most_tokens ? n_cached : n_most_tokens;
    }
    cr_assert_eq(ifl_least(fleet, IFL_PREFILLS), least);
    cr_assert_eq(ifl_most(fleet, IFL_PREFILLS), most);
    cr_assert_eq(ifl_least_routed(fleet, IFL_PREFILLS), routed);
    cr_assert_eq(ifl_longest_cached(fleet, IFL_PREFILLS, &n_tokens), holder);
    cr_assert_eq(n_tokens, n_most_tokens);
    n_compared++;
    n_held += n_tokens > 0;
    return ifl_send(ifl_nth(fleet, IFL_PREFILLS, (size_t)(ifl_fleet_draw(fleet, 0) % n)));
}

static const struct ifl_route_ops comparing_ops = {.pick = compare_with_walk};
static const struct ifl_policy comparing = {
    .kind = IFL_ROUTE, .name = "comparing", .doc = "for this test", .ops.route = &comparing_ops};

/* That router, or any of those that are built in, but for those of requests with two replicas
 * (test_handover.c). */
static void roll_router(struct fixture *f, struct dice *dice)
{
    const struct ifl_policy *policy, *of[64];
    int32_t n = 0;
    for (size_t i = 0; (policy = registry_at(i)); i++)
        if (policy->kind == IFL_ROUTE && !answers_two(policy->name) && n < 64)
            of[n++] = policy;
    if (one_in(dice, 4))
        f->modules[IFL_ROUTE].policy = &comparing;
    else
        fixture_module(f, IFL_ROUTE, of[roll(dice, 0, n - 1)]->name, NULL);
}

/* Modules of a pool are those of a fixture that is never flown. */
static void roll_modules(struct fixture *kitchen, struct dice *dice)
{
    const struct recipe *recipe = &recipes[roll(dice, 0, 3)];
    fixture_module(kitchen, IFL_BATCHING, recipe->batching, recipe->params);
    fixture_module(kitchen, IFL_ORDER, orders[roll(dice, 0, 2)], NULL);
    fixture_module(kitchen, IFL_ADMIT, recipe->admit, NULL);
    fixture_module(kitchen, IFL_PREEMPT, "tail", NULL);
    fixture_module(kitchen, IFL_EVICT, "lru", NULL);
}

static struct door roll_door(struct dice *dice)
{
    struct door door = {.shed = one_in(dice, 2) ? SHED_WORST : SHED_ARRIVAL};
    door.max_queued_reqs = one_in(dice, 4) ? roll(dice, 1, 12) : 0;
    door.max_queued_tokens = one_in(dice, 4) ? roll(dice, 10, 200) : 0;
    door.max_waiting_reqs = one_in(dice, 3) ? roll(dice, 1, 4) : 0;
    return door;
}

static void roll_pool(struct fixture_pool *pool, const struct fixture *kitchen, struct dice *dice)
{
    *pool = (struct fixture_pool){
        .n_replicas = (uint32_t)roll(dice, 1, 3),
        .limits = {.block_tokens = roll(dice, 1, 8),
                   .n_blocks = roll(dice, 12, one_in(dice, 2) ? 40 : 400),
                   .max_model_tokens = roll(dice, 40, 90),
                   .n_clients = 1},
        .linear = {.step_s = 0.01 * roll(dice, 1, 10),
                   .prefill_token_s = 0.0001 * roll(dice, 0, 9)},
        .modules = kitchen->modules,
        .prefix_cache = one_in(dice, 2) ? PREFIX_CACHE_HASH : PREFIX_CACHE_NONE,
        .leave = one_in(dice, 2) ? LEAVE_NEXT_STEP : LEAVE_STEP_END,
        .model = (uint32_t)roll(dice, 0, N_MODELS),
        .door = roll_door(dice),
    };
}

static void roll_gateway(struct fixture *f, struct dice *dice)
{
    if (one_in(dice, 3))
        f->news = (struct news_options){10000000 * roll(dice, 1, 30), 10000000 * roll(dice, 0, 8)};
    f->gateway = (struct gateway){.hold = one_in(dice, 2),
                                  .queue_depth = roll(dice, 1, 4),
                                  .kv_frac = 0.1 * roll(dice, 3, 10),
                                  .stale_ns = 100000000 + 10000000 * roll(dice, 0, 20),
                                  .order = (enum gateway_order)roll(dice, 0, 3),
                                  .max_held = one_in(dice, 2) ? roll(dice, 1, 5) : 0,
                                  .prefill_tokens_s = one_in(dice, 3) ? roll(dice, 10, 1000) : 0};
    if (one_in(dice, 2))
        f->gateway.classes = (struct classes){
            .n = 2, .from_tokens = {0, roll(dice, 1, 60)}, .quantum_tokens = {30, 10}};
}

/* ---- requests ---- */

static void create_columns(struct ifl_trace *trace)
{
    trace->abort_ns = calloc(trace->n, sizeof *trace->abort_ns);
    trace->deadline_ns = calloc(trace->n, sizeof *trace->deadline_ns);
    trace->ttft_slo_ns = calloc(trace->n, sizeof *trace->ttft_slo_ns);
    trace->model = calloc(trace->n, sizeof *trace->model);
    trace->retry_of = calloc(trace->n, sizeof *trace->retry_of);
    trace->session = calloc(trace->n, sizeof *trace->session);
}

static int64_t after(struct dice *dice, int32_t n)
{
    return one_in(dice, n) ? 10000000 * (int64_t)roll(dice, 0, 200) : IFL_NEVER;
}

static void roll_request(struct ifl_trace *trace, struct dice *dice, size_t i)
{
    const bool retries = i > 0 && one_in(dice, 5);
    trace->retry_of[i] = retries ? roll(dice, 0, (int32_t)i - 1) : -1;
    trace->n_prompt[i] = retries ? trace->n_prompt[trace->retry_of[i]] : roll(dice, 1, 60);
    trace->n_output[i] = roll(dice, 1, 30);
    trace->priority[i] = roll(dice, 0, 3);
    trace->abort_ns[i] = after(dice, 4);
    trace->deadline_ns[i] = after(dice, 6);
    trace->ttft_slo_ns[i] = after(dice, 3);
    trace->model[i] = one_in(dice, 2) ? (uint32_t)roll(dice, 0, N_MODELS) : 0;
    trace->session[i] = (uint32_t)roll(dice, 0, 3);
}

static void roll_requests(struct fixture *f, struct dice *dice)
{
    const int32_t gap = roll(dice, 0, 20);
    int64_t at_ns = 0;
    fixture_trace(f, (size_t)roll(dice, 1, MAX_REQUESTS));
    create_columns(&f->trace);
    for (size_t i = 0; i < f->trace.n; i++) {
        at_ns += 10000000 * (int64_t)roll(dice, 0, gap);
        f->trace.arrival_ns[i] = at_ns;
        roll_request(&f->trace, dice, i);
    }
    if (one_in(dice, 3))
        f->patience = (struct patience){.process = PATIENCE_EXPONENTIAL,
                                        .mean_s = 0.1 * roll(dice, 1, 30),
                                        .until_first_token = one_in(dice, 2),
                                        .seed = dice->seed};
    if (one_in(dice, 2))
        f->retries = (struct retries){.most = roll(dice, 1, MAX_RETRIES),
                                      .backoff_s = 0.05 * roll(dice, 0, 10),
                                      .factor = 2,
                                      .max_backoff_s = 8,
                                      .jitter_frac = 0.25,
                                      .seed = dice->seed};
}

struct fleet {
    struct fixture f;
    struct fixture kitchen[FIXTURE_MAX_POOLS];
};

static void roll_fleet(struct fleet *fleet, uint64_t seed)
{
    struct dice dice = {seed, 0};
    struct fixture *f = &fleet->f;
    memset(fleet, 0, sizeof *fleet);
    f->n_pools = (size_t)roll(&dice, 1, FIXTURE_MAX_POOLS);
    f->max_samples = 1;
    f->seed = seed;
    for (size_t i = 0; i < f->n_pools; i++) {
        roll_modules(&fleet->kitchen[i], &dice);
        roll_pool(&f->pools[i], &fleet->kitchen[i], &dice);
    }
    f->limits = f->pools[0].limits; /* of the router */
    roll_router(f, &dice);
    roll_gateway(f, &dice);
    roll_requests(f, &dice);
    f->capture.keep_steps = true;
}

static void free_fleet(struct fleet *fleet)
{
    fixture_free(&fleet->f);
    for (size_t i = 0; i < FIXTURE_MAX_POOLS; i++)
        fixture_free(&fleet->kitchen[i]);
}

static const struct fixture_pool *pool_of(const struct fixture *f, int32_t replica)
{
    const struct fixture_pool *pool = f->pools;
    for (; replica >= (int32_t)pool->n_replicas; pool++)
        replica -= (int32_t)pool->n_replicas;
    return pool;
}

/* ---- every request ends once ---- */

/* Attempt k > 0 at row i has the id n + (k - 1) n + i, since rows name no ids. */
static size_t row_of(const struct fixture *f, const struct ifl_request_record *r, int32_t *attempt)
{
    *attempt = (int32_t)(r->request_id / f->trace.n);
    return r->request_id % f->trace.n;
}

static bool is_tried_again(enum ifl_status status)
{
    return status == IFL_SHED || status == IFL_TIMED_OUT || status == IFL_ABORTED;
}

static void check_ends(const struct fixture *f, uint64_t seed)
{
    enum ifl_status as[MAX_REQUESTS][MAX_RETRIES + 1];
    bool ended[MAX_REQUESTS][MAX_RETRIES + 1] = {{false}};
    for (size_t i = 0; i < f->capture.n_requests; i++) {
        int32_t attempt;
        const size_t row = row_of(f, &f->capture.requests[i], &attempt);
        cr_assert(attempt <= f->retries.most && !ended[row][attempt],
                  "seed %lu: row %zu ends twice", (unsigned long)seed, row);
        ended[row][attempt] = true;
        as[row][attempt] = f->capture.requests[i].status;
    }
    for (size_t row = 0; row < f->trace.n; row++)
        for (int32_t k = 0; k <= f->retries.most; k++) {
            const bool comes = k == 0 || (ended[row][k - 1] && is_tried_again(as[row][k - 1]));
            cr_assert_eq(ended[row][k], comes, "seed %lu: attempt %d at row %zu",
                         (unsigned long)seed, k, row);
        }
}

/* A request comes to a replica of its model that is large enough; turned away it came to none. */
static void check_place(const struct fixture *f, const struct ifl_request_record *r, uint64_t seed)
{
    int32_t attempt;
    const size_t row = row_of(f, r, &attempt);
    const uint32_t model = f->trace.model[row];
    if (r->replica < 0) {
        cr_assert(r->status != IFL_FINISHED && r->wasted_tokens == 0);
        return;
    }
    const struct fixture_pool *pool = pool_of(f, r->replica);
    cr_assert(model == 0 || pool->model == 0 || pool->model == model, "seed %lu: row %zu",
              (unsigned long)seed, row);
    cr_assert_leq(f->trace.n_prompt[row] + f->trace.n_output[row], pool->limits.max_model_tokens);
    cr_assert_eq(r->is_retry, attempt > 0 || f->trace.retry_of[row] >= 0);
    if (r->status == IFL_FINISHED)
        cr_assert_eq(r->output_tokens, f->trace.n_output[row]);
}

/* ---- tokens and blocks ---- */

enum { MAX_REPLICAS = 3 * FIXTURE_MAX_POOLS };

struct sums {
    int64_t steps, requests; /* tokens computed */
    int64_t n_preempted, n_left;
};

/* Tokens computed for a request, but for those that preemptions dropped; the last one is not. */
static int64_t computed_for(const struct ifl_request_record *r)
{
    return r->status == IFL_FINISHED ? r->prompt_tokens - r->cached_tokens + r->output_tokens - 1
                                     : r->wasted_tokens;
}

static void add_requests(const struct fixture *f, struct sums of[MAX_REPLICAS])
{
    for (size_t i = 0; i < f->capture.n_requests; i++) {
        const struct ifl_request_record *r = &f->capture.requests[i];
        if (r->replica < 0)
            continue;
        of[r->replica].requests += computed_for(r);
        of[r->replica].n_preempted += r->preemptions;
        of[r->replica].n_left += r->status != IFL_FINISHED;
    }
}

static void add_steps(const struct fixture *f, struct sums of[MAX_REPLICAS], uint64_t seed)
{
    for (size_t i = 0; i < f->capture.n_steps; i++) {
        const struct ifl_step_record *s = &f->capture.steps[i];
        const struct ifl_limits *limits = &pool_of(f, s->replica)->limits;
        of[s->replica].steps += s->prefill_tokens + s->decode_tokens;
        cr_assert(s->kv_used_blocks >= 0 && s->kv_used_blocks <= limits->n_blocks,
                  "seed %lu: step %zu uses %d of %d blocks", (unsigned long)seed, i,
                  s->kv_used_blocks, limits->n_blocks);
        cr_assert_eq(s->kv_total_blocks, limits->n_blocks);
        cr_assert_leq(s->kv_token_slots + s->kv_reserved_slots + s->kv_internal_slots,
                      (int64_t)limits->n_blocks * limits->block_tokens);
    }
}

/* At each replica. A request that leaves as a step ends has a token of it computed that it does not
 * count, or two (LEAVE_NEXT_STEP). */
static void check_tokens(const struct fixture *f, struct sums of[MAX_REPLICAS], uint64_t seed)
{
    add_requests(f, of);
    add_steps(f, of, seed);
    for (size_t i = 0; i < MAX_REPLICAS; i++) {
        cr_assert_geq(of[i].steps, of[i].requests,
                      "seed %lu: replica %zu computed %ld of %ld tokens", (unsigned long)seed, i,
                      (long)of[i].steps, (long)of[i].requests);
        cr_assert(of[i].n_preempted > 0 || of[i].steps <= of[i].requests + 2 * of[i].n_left,
                  "seed %lu: replica %zu computed %ld for %ld tokens", (unsigned long)seed, i,
                  (long)of[i].steps, (long)of[i].requests);
    }
}

/* ---- all ---- */

struct seen {
    uint64_t n_of[IFL_N_STATUSES], n_retries, n_preempted, n_cached, n_exact;
};

static void see(const struct fixture *f, const struct sums of[MAX_REPLICAS], struct seen *seen)
{
    for (size_t i = 0; i < f->capture.n_requests; i++) {
        const struct ifl_request_record *r = &f->capture.requests[i];
        seen->n_of[r->status]++;
        seen->n_retries += r->is_retry;
        seen->n_cached += r->cached_tokens > 0;
        seen->n_preempted += (uint64_t)r->preemptions;
    }
    for (size_t i = 0; i < MAX_REPLICAS; i++)
        seen->n_exact += of[i].steps > 0 && of[i].steps == of[i].requests;
}

static void check_same(const struct fixture *a, const struct fixture *b, uint64_t seed)
{
    cr_assert(a->capture.n_requests == b->capture.n_requests &&
                  a->capture.n_steps == b->capture.n_steps,
              "seed %lu: steady runs show", (unsigned long)seed);
    for (size_t i = 0; i < a->capture.n_requests; i++)
        cr_assert(memcmp(&a->capture.requests[i], &b->capture.requests[i],
                         offsetof(struct ifl_request_record, status)) == 0,
                  "seed %lu: steady runs show in record %zu", (unsigned long)seed, i);
}

static void fly_planning(const struct fixture *steady, uint64_t seed)
{
    struct fleet fleet;
    struct ifl_error error = {0};
    roll_fleet(&fleet, seed);
    fleet.f.no_steady_runs = true;
    cr_assert_eq(fixture_fly(&fleet.f, &error), 0, "seed %lu: %s", (unsigned long)seed, error.text);
    check_same(steady, &fleet.f, seed);
    free_fleet(&fleet);
}

static void check_fleets(uint64_t first, uint64_t n)
{
    struct seen seen = {{0}};
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct fleet fleet;
        struct ifl_error error = {0};
        struct sums of[MAX_REPLICAS] = {{0}};
        roll_fleet(&fleet, seed);
        cr_assert_eq(fixture_fly(&fleet.f, &error), 0, "seed %lu: %s", (unsigned long)seed,
                     error.text);
        check_ends(&fleet.f, seed);
        for (size_t i = 0; i < fleet.f.capture.n_requests; i++)
            check_place(&fleet.f, &fleet.f.capture.requests[i], seed);
        check_tokens(&fleet.f, of, seed);
        see(&fleet.f, of, &seen);
        if (seed % 8 == 0)
            fly_planning(&fleet.f, seed);
        free_fleet(&fleet);
    }
    for (int status = 0; status < IFL_N_STATUSES; status++) /* none fails where memory is enough */
        cr_expect(status == IFL_FAILED || seen.n_of[status] > n / 20, "%lu are %s",
                  (unsigned long)seen.n_of[status], ifl_status_names[status]);
    cr_expect(seen.n_retries > n && seen.n_preempted > n / 10 && seen.n_cached > n / 10 &&
                  seen.n_exact > n / 4,
              "%lu retries, %lu preemptions, %lu hits, %lu replicas without loss",
              (unsigned long)seen.n_retries, (unsigned long)seen.n_preempted,
              (unsigned long)seen.n_cached, (unsigned long)seen.n_exact);
}

Test(fleets, first_half, .timeout = 300)
{
    check_fleets(0, N_FLEETS / 2);
    cr_expect(n_compared > 1000 && n_held > 100,
              "%lu answers, %lu of them a replica that holds some", (unsigned long)n_compared,
              (unsigned long)n_held);
}
Test(fleets, second_half, .timeout = 300)
{
    check_fleets(1000000, N_FLEETS / 2);
}
