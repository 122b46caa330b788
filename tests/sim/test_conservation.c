/* Conservation of requests and blocks in random set-ups of every policy, checked at every step.
 *
 * - Every request ends exactly once, rejected or with all its tokens.
 * - Without sharing no block has two owners.
 * - No request computes without its blocks, and every block is free at the end.
 * - A run with promised steps leaves the same records, byte for byte, as one that plans each step.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "flown.h"
#include "random_setup.h"

enum { N_SETUPS = 10000 };

static void check_requests(const struct fixture *f, uint64_t seed)
{
    int64_t n_gaps = 0;
    flown_each_once(f, seed);
    for (size_t i = 0; i < f->capture.n_requests; i++) {
        const struct ifl_request_record *r = &f->capture.requests[i];
        n_gaps += r->output_tokens > 0 ? r->output_tokens - 1 : 0;
        if (r->status != IFL_FINISHED)
            continue;
        cr_assert(r->arrival_ns <= r->first_scheduled_ns &&
                  r->first_scheduled_ns < r->first_token_ns && r->first_token_ns <= r->finish_ns);
        const int64_t stalled_decode_ns = r->stalled_ns - r->stalled_prefill_ns;
        cr_assert(r->stalled_prefill_ns >= 0 &&
                      r->stalled_prefill_ns <= r->first_token_ns - r->first_scheduled_ns,
                  "seed %llu", (unsigned long long)seed);
        cr_assert(stalled_decode_ns >= 0 && stalled_decode_ns <= r->finish_ns - r->first_token_ns,
                  "seed %llu", (unsigned long long)seed);
        cr_assert(r->max_itl_ns <= r->finish_ns - r->first_token_ns);
        cr_assert((r->max_itl_ns < 0) == (r->output_tokens < 2));
    }
    cr_assert_eq(f->capture.n_gaps, n_gaps, "seed %llu: %lld gaps, %lld tokens after the first",
                 (unsigned long long)seed, (long long)f->capture.n_gaps, (long long)n_gaps);
}

/* The steps' preemptions add up to those of the requests. */
static void check_preemptions(const struct fixture *f, uint64_t seed)
{
    int64_t n_of_requests = 0, n_of_steps = 0;
    for (size_t i = 0; i < f->capture.n_requests; i++)
        n_of_requests += f->capture.requests[i].preemptions;
    for (size_t i = 0; i < f->capture.n_steps; i++)
        n_of_steps += f->capture.steps[i].preempted;
    cr_assert_eq(n_of_requests, n_of_steps,
                 "seed %llu: %lld preemptions of requests, %lld in steps", (unsigned long long)seed,
                 (long long)n_of_requests, (long long)n_of_steps);
}

static void check_same(const struct fixture *a, const struct fixture *b, uint64_t seed)
{
    cr_assert_eq(a->capture.gap_sum_ns, b->capture.gap_sum_ns, "seed %llu",
                 (unsigned long long)seed);
    flown_same_steps(a, b, seed);
}

/* A set-up in three ways: with its promised steps, without block lists, on which no record may
 * depend; with each step planned; and with each promise checked. Their records are the same. */
enum { SKIPPING, PLANNING, CHECKING, N_WAYS };
typedef void roll_fn(struct fixture *f, uint64_t seed);

static void fly_each_way(struct fixture way[N_WAYS], roll_fn *roll_one, uint64_t seed)
{
    for (int i = 0; i < N_WAYS; i++)
        roll_one(&way[i], seed);
    way[SKIPPING].check_blocks = false;
    way[PLANNING].no_steady_runs = true;
    way[CHECKING].check_steady = true;
    for (int i = 0; i < N_WAYS; i++)
        flown_well(&way[i], seed);
    check_requests(&way[SKIPPING], seed);
    check_preemptions(&way[SKIPPING], seed);
    check_same(&way[SKIPPING], &way[PLANNING], seed);
    check_same(&way[SKIPPING], &way[CHECKING], seed);
}

static void free_each_way(struct fixture way[N_WAYS])
{
    for (int i = 0; i < N_WAYS; i++)
        fixture_free(&way[i]);
}

static void check_seeds(uint64_t first, uint64_t n)
{
    uint64_t n_preemptions = 0, n_swaps = 0, n_repeats = 0, n_cached = 0, n_at_door = 0;
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct fixture way[N_WAYS];
        const struct fixture *flown = &way[SKIPPING];
        fly_each_way(way, roll_setup, seed);
        n_repeats += flown->n_repeats;
        n_at_door += flown->n_at_door;
        for (size_t i = 0; i < flown->capture.n_requests; i++) {
            n_preemptions += (uint64_t)flown->capture.requests[i].preemptions;
            n_swaps += (uint64_t)flown->capture.requests[i].swap_outs;
            n_cached += flown->capture.requests[i].cached_tokens > 0;
        }
        free_each_way(way);
    }
    /* the set-ups must cover preemptions, swaps, promised steps, cache hits and rejections */
    cr_assert(n_preemptions > n && n_swaps > n / 10 && n_repeats > n && n_cached > n &&
              n_at_door > n);
}

Test(conservation, first_seeds, .timeout = 600)
{
    check_seeds(0, N_SETUPS / 2);
}
Test(conservation, more_seeds, .timeout = 600)
{
    check_seeds(1000000, N_SETUPS / 2);
}

/* ---- adapters ---- */

static void roll_with_adapters(struct fixture *f, uint64_t seed)
{
    roll_setup(f, seed);
    roll_adapters(f, seed);
}

/* Adapters of running requests, each once, are those that the steps count; with slots there are no
 * more of them. Promised steps, planned steps and checked steps are the same. */
static void check_adapters(uint64_t first, uint64_t n)
{
    uint64_t n_repeats = 0, n_loads = 0, n_pool = 0, n_preemptions = 0, most = 0;
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct fixture way[N_WAYS];
        const struct fixture *flown = &way[SKIPPING];
        fly_each_way(way, roll_with_adapters, seed);
        const int32_t slots = flown->limits.max_adapters;
        n_repeats += flown->n_repeats;
        n_pool += flown->adapters_of.in_pool;
        for (size_t i = 0; i < flown->capture.n_requests; i++)
            n_preemptions += (uint64_t)flown->capture.requests[i].preemptions;
        for (size_t i = 0; i < flown->capture.n_steps; i++) {
            const struct ifl_step_record *step = &flown->capture.steps[i];
            n_loads += (uint64_t)step->adapter_loads;
            most = ifl_max(most, (uint64_t)step->adapters);
            cr_assert(slots == 0 || step->adapters <= slots, "seed %llu: %d adapters in %d slots",
                      (unsigned long long)seed, step->adapters, slots);
            cr_assert(step->adapter_loads <= RANDOM_ADAPTERS, "seed %llu",
                      (unsigned long long)seed);
        }
        free_each_way(way);
    }
    cr_assert(n_repeats > n && n_loads > n && n_pool > n / 4 && n_preemptions > n &&
              most == RANDOM_ADAPTERS);
}

Test(conservation, adapters, .timeout = 600)
{
    check_adapters(0, N_SETUPS / 4);
}

/* ---- layers with a window ---- */

static void roll_windows(struct fixture *f, uint64_t seed)
{
    struct dice dice = {seed + (UINT64_C(1) << 43), 0};
    roll_setup(f, seed);
    f->windows = (struct windows_rule){roll(&dice, 1, 3), roll(&dice, 1, 4)};
    f->allocator = KV_PAGED;
}

/* A request holds its own blocks and those of its windows. */
Test(conservation, windows, .timeout = 600)
{
    const uint64_t n = N_SETUPS / 4;
    uint64_t n_repeats = 0, n_preemptions = 0, n_cached = 0;
    for (uint64_t seed = 0; seed < n; seed++) {
        struct fixture way[N_WAYS];
        const struct fixture *flown = &way[SKIPPING];
        fly_each_way(way, roll_windows, seed);
        n_repeats += flown->n_repeats;
        for (size_t i = 0; i < flown->capture.n_requests; i++) {
            n_preemptions += (uint64_t)flown->capture.requests[i].preemptions;
            n_cached += flown->capture.requests[i].cached_tokens > 0;
        }
        free_each_way(way);
    }
    cr_assert(n_repeats > n && n_preemptions > n && n_cached > n / 2);
}

/* ---- K/V that is given up ---- */

static void roll_keep(struct fixture *f, uint64_t seed)
{
    struct dice dice = {seed + (UINT64_C(1) << 41), 0};
    const int32_t window = roll(&dice, 1, 8), method = roll(&dice, KEEP_SNAPKV, KEEP_STREAMING);
    f->keep = (struct keep){.method = (enum keep_method)method,
                            .place = roll(&dice, 0, 2) ? KEEP_GATHERED : KEEP_IN_PLACE,
                            .tables = roll(&dice, 0, 1) ? KEEP_TABLE_OF_ALL : KEEP_TABLE_A_LAYER,
                            .budget_tokens = window + roll(&dice, 1, 40),
                            .window_tokens = window,
                            .sink_tokens = roll(&dice, 0, window),
                            .kernel_tokens = 5,
                            .beta = roll(&dice, 2, 20),
                            .n_layers = roll(&dice, 0, 8)};
    f->max_samples = 1;
    for (size_t i = 0; i < f->trace.n; i++)
        f->trace.samples[i] = 1;
    f->beams.search = false;
    f->allocator = KV_PAGED;
    if (f->prefix_cache == PREFIX_CACHE_RADIX || keep_each_step(&f->keep))
        f->prefix_cache = PREFIX_CACHE_NONE;
}

static void roll_kept(struct fixture *f, uint64_t seed)
{
    roll_setup(f, seed);
    roll_keep(f, seed);
}

static void check_kept(uint64_t first, uint64_t n)
{
    uint64_t n_given_up = 0, n_full = 0, n_repeats = 0, n_cached = 0, n_swaps = 0;
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct fixture way[N_WAYS];
        const struct fixture *flown = &way[SKIPPING];
        fly_each_way(way, roll_kept, seed);
        n_repeats += flown->n_repeats;
        for (size_t i = 0; i < flown->capture.n_steps; i++) {
            n_given_up += (uint64_t)flown->capture.steps[i].kv_given_up_tokens;
            n_full += (uint64_t)flown->capture.steps[i].full_seqs;
        }
        for (size_t i = 0; i < flown->capture.n_requests; i++) {
            n_cached += flown->capture.requests[i].cached_tokens > 0;
            n_swaps += (uint64_t)flown->capture.requests[i].swap_outs;
        }
        free_each_way(way);
    }
    cr_assert(n_given_up > 10 * n && n_full > 10 * n && n_repeats > n && n_cached > n / 10 &&
              n_swaps > n / 10);
}

Test(conservation, kept, .timeout = 600)
{
    check_kept(0, N_SETUPS / 2);
}

/* ---- several steps in flight ---- */

/* The batching module's own parameter of that name, NULL: it has none. */
static void *param_of_batching(const struct fixture *f, const char *name)
{
    const struct module_config *m = &f->modules[IFL_BATCHING];
    for (size_t i = 0; i < m->policy->n_params; i++)
        if (strcmp(m->policy->params[i].name, name) == 0)
            return (char *)m->params + m->policy->params[i].offset;
    return NULL;
}

/* Steps at once are of one engine, and seats are divided in pipelines alone. */
static void roll_batching(struct fixture *f, struct dice *dice)
{
    int32_t *at_once = param_of_batching(f, "num_scheduler_steps");
    bool *split_seqs = param_of_batching(f, "split_seqs");
    if (at_once && f->overlap.depth > 1)
        *at_once = 1;
    if (split_seqs)
        *split_seqs = roll(dice, 0, 2) == 0;
}

static void roll_pipeline(struct fixture *f, uint64_t seed)
{
    struct dice dice = {seed + (UINT64_C(1) << 40), 0}, seats = {seed + (UINT64_C(1) << 42), 0};
    const int32_t n_stages = roll(&dice, 1, 4), request = roll(&dice, 0, 2);
    const int32_t ahead = roll(&dice, n_stages == 1, 2);
    f->overlap = (struct overlap){.depth = n_stages + ahead,
                                  .n_stages = n_stages,
                                  .request = (enum overlap_request)request,
                                  .slots = roll(&dice, 0, 2) == 0,
                                  .waits = roll(&dice, 0, 1),
                                  .seats = (enum overlap_seats)roll(&seats, 0, 1)};
    roll_batching(f, &seats);
    f->beams.search = false;
    f->leave = roll(&dice, 0, 1) ? LEAVE_STEP_END : LEAVE_NEXT_STEP;
    if (roll(&dice, 0, 2) == 0)
        f->patience = (struct patience){.process = PATIENCE_EXPONENTIAL, .mean_s = 20};
}

/* False if the run was ended because prompts preempt one another for ever: blocks that one gives
 * back another takes before the step of a third, which lacks them, has ended. */
static bool fly_pipeline(struct fixture *f, uint64_t seed)
{
    struct ifl_error error = {0};
    const int rc = fixture_fly(f, &error);
    cr_assert_eq(f->complaint[0], '\0', "seed %llu: %s", (unsigned long long)seed, f->complaint);
    if (rc == IFL_E_STALLED && strstr(error.text, "its prompts preempt one another"))
        return false;
    cr_assert_eq(rc, 0, "seed %llu: %s", (unsigned long long)seed, error.text);
    return true;
}

static void check_pipelines(uint64_t first, uint64_t n)
{
    uint64_t n_preemptions = 0, n_left = 0, n_overlaps = 0, n_stalled = 0, n_repeats = 0;
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct fixture f, checking;
        roll_setup(&f, seed);
        roll_setup(&checking, seed);
        roll_pipeline(&f, seed);
        roll_pipeline(&checking, seed);
        checking.check_steady = true;
        f.check_blocks = false;
        const bool ends = fly_pipeline(&f, seed);
        cr_assert_eq(ends, fly_pipeline(&checking, seed), "seed %llu", (unsigned long long)seed);
        n_stalled += !ends;
        n_repeats += f.n_repeats;
        if (ends) {
            check_requests(&f, seed);
            check_preemptions(&f, seed);
            check_same(&f, &checking, seed);
        }
        for (size_t i = 0; i < f.capture.n_requests; i++) {
            n_preemptions += (uint64_t)f.capture.requests[i].preemptions;
            n_left += f.capture.requests[i].status == IFL_ABORTED;
        }
        for (size_t i = 1; i < f.capture.n_steps; i++)
            n_overlaps += f.capture.steps[i].start_ns <
                          f.capture.steps[i - 1].start_ns + f.capture.steps[i - 1].duration_ns;
        fixture_free(&f);
        fixture_free(&checking);
    }
    /* the set-ups must cover preemptions, requests that leave, steps that overlap, and those that
     * begin again without a plan */
    cr_assert(n_preemptions > n && n_left > n / 10 && n_overlaps > 10 * n && n_stalled < n / 500 &&
                  n_repeats > 10 * n,
              "%llu repeats", (unsigned long long)n_repeats);
}

Test(conservation, pipelines, .timeout = 600)
{
    check_pipelines(0, N_SETUPS / 2);
}
Test(conservation, more_pipelines, .timeout = 600)
{
    check_pipelines(1000000, N_SETUPS / 2);
}

/* ---- a request that comes back for nothing ---- */

/* The first request is swapped out in step 1 and comes back in step 2, goes again in step 3 and
 * comes back in step 4, and has no token before step 5. The second one always has. */
static void plan_to_and_fro(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const unsigned all = IFL_IN_WAITING | IFL_IN_SWAPPED | IFL_IN_RUNNING;
    const struct ifl_request *r, *of[2] = {NULL, NULL};
    struct ifl_cursor cursor = {{0}};
    (void)self;
    while ((r = ifl_next(step, all, &cursor)))
        of[r->serial] = r;
    for (int i = 0; i < 2; i++) {
        if (!of[i])
            continue;
        if (of[i]->state == IFL_WAITING)
            ifl_start(step, of[i], ifl_todo(of[i]));
        else if (i == 1 || view->step >= 5)
            ifl_schedule(step, of[i], 1, 0);
        else if (view->step % 2 == 1)
            ifl_preempt(step, of[i], IFL_SWAP, IFL_FRONT);
        else
            ifl_start(step, of[i], 0);
    }
}

Test(conservation, a_stall_lasts_until_a_token_is_scheduled)
{
    static const struct ifl_batching_ops ops = {plan_to_and_fro};
    static const struct ifl_policy to_and_fro = {
        .kind = IFL_BATCHING, .name = "to-and-fro", .doc = "for this test", .ops.batching = &ops};
    struct fixture f = {
        .limits = {.block_tokens = 4, .n_blocks = 9, .n_host_blocks = 9, .max_model_tokens = 20},
        .linear = {.step_s = 1},
        .check_blocks = true};
    struct ifl_error error = {0};
    fixture_vllm(&f, NULL, NULL);
    f.modules[IFL_BATCHING].policy = &to_and_fro;
    fixture_trace(&f, 2);
    for (size_t i = 0; i < 2; i++) {
        f.trace.n_prompt[i] = 4;
        f.trace.n_output[i] = i == 0 ? 2 : 9;
    }
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    const struct ifl_request_record *first = &f.capture.requests[0];
    cr_expect_eq(first->preemptions, 2);
    cr_expect_eq(first->finish_ns, 6 * (int64_t)IFL_NS_PER_S);
    cr_expect_eq(first->stalled_ns, 4 * (int64_t)IFL_NS_PER_S, "from 1 to 5 s, not %lld ns",
                 (long long)first->stalled_ns);
    fixture_free(&f);
}
