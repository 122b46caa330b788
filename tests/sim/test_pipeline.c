/* Steps in the stages of a pipeline: flow shops, saturation, and planning ahead. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cost/kind.h"
#include "inflight/minmax.h"
#include "inflight/random.h"
#include "run/executor_sim.h"

#include "fixture.h"

/* ---- flow shops of two stages ---- */

enum { N_JOBS = 6, N_SHOPS = 3 };

struct job { /* milliseconds in each stage */
    int32_t first, second;
};

/* A cost that takes a job's times from the totals. */
static void job_s(struct cost *cost, const struct ifl_step_totals *totals,
                  const struct stages *stages, double *s, double *hop_s)
{
    (void)cost;
    cr_assert_eq(stages->n, 2);
    s[0] = totals->n_prefill_tokens * 1e-3;
    s[1] = totals->n_decode_seqs * 1e-3;
    *hop_s = 0;
}

/* When the last of the jobs, submitted together in that order, leaves the second stage. */
static int32_t makespan(const struct job *jobs, const int32_t *order)
{
    struct cost cost = {.stages_s = job_s};
    struct executor_sim sim;
    struct ifl_error error = {0};
    struct ifl_done done = {0};
    struct stages stages;
    stages_cut_evenly(&stages, 2);
    cr_assert_eq(executor_sim_create(&sim, &cost, 1, &error), 0);
    cr_assert_eq(executor_sim_pipeline(&sim, &stages, 0, 1, 1, N_JOBS, &error), 0);
    for (int32_t i = 0; i < N_JOBS; i++) {
        const struct job *job = &jobs[order[i]];
        const struct ifl_step_desc desc = {
            .step = (uint64_t)i,
            .totals = {.n_prefill_tokens = job->first, .n_decode_seqs = job->second}};
        cr_assert_eq(executor_sim_ops.submit(&sim, &desc, &error), 0, "%s", error.text);
    }
    for (int32_t i = 0; i < N_JOBS; i++) {
        cr_assert_eq(executor_sim_ops.next(&sim, IFL_LAST_NS, &done, &error), 1);
        cr_assert_eq(done.step, (uint64_t)i);
    }
    executor_sim_destroy(&sim);
    return (int32_t)(done.end_ns / 1000000);
}

/* max over k of the first stage's work up to job k and the second one's from it on. */
static int32_t longest_path(const struct job *jobs, const int32_t *order)
{
    int32_t longest = 0;
    for (int32_t k = 0; k < N_JOBS; k++) {
        int32_t length = 0;
        for (int32_t i = 0; i < N_JOBS; i++)
            length += (i <= k ? jobs[order[i]].first : 0) + (i >= k ? jobs[order[i]].second : 0);
        longest = ifl_max(longest, length);
    }
    return longest;
}

/* S. M. Johnson, Optimal two- and three-stage production schedules, 1954: first the jobs that are
 * shorter in the first stage, by rising times there; then the others, by falling times in the
 * second. */
static bool goes_first(const struct job *a, const struct job *b)
{
    const bool a_early = a->first < a->second, b_early = b->first < b->second;
    if (a_early != b_early)
        return a_early;
    return a_early ? a->first < b->first : a->second > b->second;
}

static void order_by_johnson(const struct job *jobs, int32_t *order)
{
    for (int32_t i = 0; i < N_JOBS; i++) {
        int32_t at = i;
        for (; at > 0 && goes_first(&jobs[i], &jobs[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* No order of the jobs is done earlier than Johnson's, and each takes as long as its longest path.
 */
static int32_t least_of_all(const struct job *jobs, int32_t *order, int32_t n)
{
    if (n == N_JOBS) {
        const int32_t ms = makespan(jobs, order);
        cr_assert_eq(ms, longest_path(jobs, order));
        return ms;
    }
    int32_t least = INT32_MAX;
    for (int32_t i = n; i < N_JOBS; i++) {
        const int32_t picked = order[i];
        order[i] = order[n];
        order[n] = picked;
        const int32_t ms = least_of_all(jobs, order, n + 1);
        least = ifl_min(least, ms);
        order[n] = order[i];
        order[i] = picked;
    }
    return least;
}

Test(pipeline, two_stages_against_johnsons_rule)
{
    for (uint64_t shop = 0; shop < N_SHOPS; shop++) {
        struct job jobs[N_JOBS];
        int32_t order[N_JOBS], best[N_JOBS];
        for (int32_t i = 0; i < N_JOBS; i++) {
            const uint64_t draw = ifl_draw(shop, IFL_DRAW_POLICY, (uint64_t)i, 0);
            jobs[i] = (struct job){1 + (int32_t)(draw % 20), 1 + (int32_t)((draw >> 20) % 20)};
            order[i] = i;
        }
        order_by_johnson(jobs, best);
        cr_expect_eq(least_of_all(jobs, order, 0), makespan(jobs, best), "shop %llu",
                     (unsigned long long)shop);
    }
}

/* ---- saturation ---- */

static void make_prompts(struct fixture *f, size_t n, int32_t n_prompt, int32_t n_output)
{
    fixture_trace(f, n);
    for (size_t i = 0; i < n; i++) {
        f->trace.n_prompt[i] = n_prompt;
        f->trace.n_output[i] = n_output;
    }
}

static struct fixture vllm(const char *batching)
{
    struct fixture f = {
        .limits = {.block_tokens = 4, .n_blocks = 4000, .max_model_tokens = 400, .n_clients = 1},
        .linear = {.step_s = 0.12},
        .check_blocks = true,
    };
    f.capture.keep_steps = true;
    fixture_module(&f, IFL_BATCHING, "unified", batching);
    fixture_module(&f, IFL_ORDER, "fcfs", NULL);
    fixture_module(&f, IFL_ADMIT, "chunk-fits", NULL);
    fixture_module(&f, IFL_PREEMPT, "tail", NULL);
    return f;
}

static int64_t last_end_ns(const struct fixture *f)
{
    int64_t last_ns = 0;
    for (size_t i = 0; i < f->capture.n_requests; i++)
        last_ns = ifl_max(last_ns, f->capture.requests[i].finish_ns);
    return last_ns;
}

static void fly(struct fixture *f)
{
    struct ifl_error error = {0};
    cr_assert_eq(fixture_fly(f, &error), 0, "%s", error.text);
    cr_assert_eq(f->complaint[0], '\0', "%s", f->complaint);
}

/* n steps of d in p equal stages take (n + p - 1) d / p; one after the other, n d. */
Test(pipeline, p_stages_are_p_times_as_fast_less_the_bubbles)
{
    enum { N = 200 };
    const int64_t step_ns = 120000000;
    for (int32_t p = 2; p <= 4; p++) {
        struct fixture alone = vllm("{max_batched_tokens: 4, max_seqs: 64}");
        struct fixture piped = vllm("{max_batched_tokens: 4, max_seqs: 64}");
        make_prompts(&alone, N, 4, 1);
        make_prompts(&piped, N, 4, 1);
        piped.overlap =
            (struct overlap){.depth = p, .n_stages = p, .request = OVERLAP_CHUNKS, .waits = true};
        fly(&alone);
        fly(&piped);
        cr_expect_eq(last_end_ns(&alone), N * step_ns);
        cr_expect_eq(last_end_ns(&piped), (N + p - 1) * step_ns / p, "%d stages", p);
        cr_expect_eq(piped.capture.stage_ns, N * step_ns);
        fixture_free(&alone);
        fixture_free(&piped);
    }
}

/* ---- planning ahead: in hindsight, and as it happens ---- */

static void roll_trace(struct fixture *f, uint64_t seed)
{
    enum { N = 40 };
    int64_t at_ns = 0;
    make_prompts(f, N, 1, 1);
    if (seed % 2)
        f->trace.max_tokens = calloc(N, sizeof *f->trace.max_tokens);
    for (size_t i = 0; i < N; i++) {
        const uint64_t draw = ifl_draw(seed, IFL_DRAW_POLICY, i, 0);
        f->trace.n_prompt[i] = 1 + (int32_t)(draw % 60);
        f->trace.n_output[i] = 1 + (int32_t)((draw >> 10) % 30);
        if (seed % 2) /* then ends are a surprise */
            f->trace.max_tokens[i] = f->trace.n_output[i] + (int32_t)((draw >> 40) % 4);
        f->trace.arrival_ns[i] = at_ns += (int64_t)((draw >> 20) % 900) * 1000000 + 1;
    }
}

/* One stage, a step planned as the one in front of it begins: planned when that one ends, with what
 * was known as it began, it is the step that two steps in flight have, to the token. (Not compared:
 * preemptions of requests with their last token in flight, which are in the reports of the second
 * run alone.) */
Test(pipeline, a_step_in_hindsight_is_the_step_planned_ahead)
{
    int64_t n_preemptions = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct fixture late = vllm("{max_batched_tokens: 16, max_seqs: 8}");
        struct fixture early = vllm("{max_batched_tokens: 16, max_seqs: 8}");
        roll_trace(&late, seed);
        roll_trace(&early, seed);
        late.limits.n_blocks = early.limits.n_blocks = 40;
        late.overlap.hindsight = true;
        early.overlap =
            (struct overlap){.depth = 2, .n_stages = 1, .request = OVERLAP_TOKENS, .waits = true};
        fly(&late);
        fly(&early);
        cr_assert_eq(late.capture.n_requests, early.capture.n_requests);
        cr_assert_eq(early.n_plans, early.capture.n_steps, "seed %llu: plans that led to no step",
                     (unsigned long long)seed);
        for (size_t i = 0; i < late.capture.n_requests; i++) {
            const struct ifl_request_record *a = &late.capture.requests[i];
            const struct ifl_request_record *b = &early.capture.requests[i];
            cr_assert(a->request_id == b->request_id && a->first_token_ns == b->first_token_ns &&
                          a->finish_ns == b->finish_ns && a->max_itl_ns == b->max_itl_ns,
                      "seed %llu, request %llu: %lld %lld, %lld %lld", (unsigned long long)seed,
                      (unsigned long long)a->request_id, (long long)a->first_token_ns,
                      (long long)a->finish_ns, (long long)b->first_token_ns,
                      (long long)b->finish_ns);
            n_preemptions += b->preemptions;
        }
        fixture_free(&late);
        fixture_free(&early);
    }
    cr_assert(n_preemptions > 200);
}

/* Three answers of 4, 12 and 3 tokens, of which more were asked for, so that their ends are no news
 * to the step behind them, and the third request arrives within step 5. Planned are step 0, which
 * computes two prompts, and the decodes of step 1; what follows an end, and step 6, which does not
 * know of the arrival, is as promised; step 7 computes the third prompt, step 8 decodes; step 12
 * computes for a request that has ended alone. */
static struct fixture fly_three(bool no_steady_runs, bool check_steady)
{
    static const int32_t n_output[] = {4, 12, 3};
    struct fixture f = vllm("{max_batched_tokens: 64, max_seqs: 8}");
    make_prompts(&f, 3, 10, 0);
    f.trace.max_tokens = calloc(3, sizeof *f.trace.max_tokens);
    for (size_t i = 0; i < 3; i++) {
        f.trace.n_output[i] = n_output[i];
        f.trace.max_tokens[i] = n_output[i] + 20;
    }
    f.linear = (struct linear_cost){.step_s = 0.1, .decode_seq_s = 0.01};
    f.trace.arrival_ns[2] = 635000000; /* step 5 begins at 0.1 + 4 x 0.12 s */
    f.overlap.hindsight = true;
    f.no_steady_runs = no_steady_runs;
    f.check_steady = check_steady;
    fly(&f);
    return f;
}

Test(pipeline, a_promise_outlasts_what_a_plan_made_ahead_does_not_know)
{
    struct fixture run = fly_three(false, false), planned = fly_three(true, false);
    struct fixture checked = fly_three(false, true);
    cr_assert_eq(run.capture.n_steps, 13);
    cr_expect_eq(run.n_plans, 5);
    cr_expect_eq(run.n_repeats, 8);
    cr_expect_eq(planned.n_repeats, 0);
    cr_assert_eq(planned.capture.n_steps, 13);
    cr_assert_eq(checked.capture.n_steps, 13);
    for (size_t i = 0; i < 13; i++)
        cr_expect(memcmp(&run.capture.steps[i], &planned.capture.steps[i],
                         sizeof *run.capture.steps) == 0,
                  "step %zu", i);
    cr_expect_eq(run.capture.steps[4].duration_ns, 120000000); /* for one that decodes, one ended */
    cr_expect_eq(run.capture.steps[5].duration_ns, 110000000);
    cr_expect_eq(run.capture.steps[5].waiting, 0);
    cr_expect_eq(run.capture.steps[6].waiting, 1);
    cr_expect_eq(run.capture.steps[7].prefill_tokens, 10);
    fixture_free(&run);
    fixture_free(&planned);
    fixture_free(&checked);
}

/* Two answers that fill blocks of 4 in the same steps, of 20 and 8 tokens, where more were asked
 * for. The plan behind the end of the second one, which is made without knowing of it, wants a
 * block for each, and one is free: it cannot be the plan that was promised. The last step computes
 * for the first one, which has ended. */
static struct fixture fly_full(bool no_steady_runs, bool check_steady)
{
    struct fixture f = vllm("{max_batched_tokens: 64, max_seqs: 8}");
    make_prompts(&f, 2, 5, 20);
    f.trace.max_tokens = calloc(2, sizeof *f.trace.max_tokens);
    f.trace.n_prompt[1] = 9;
    f.trace.n_output[1] = 8;
    f.trace.max_tokens[0] = f.trace.max_tokens[1] = 40;
    f.limits.n_blocks = 8; /* behind 7 decodes 12 and 16 tokens hold 3 and 4 */
    f.overlap.hindsight = true;
    f.no_steady_runs = no_steady_runs;
    f.check_steady = check_steady;
    fly(&f);
    return f;
}

Test(pipeline, a_promise_ends_where_a_request_that_has_ended_would_lack_a_block)
{
    struct fixture run = fly_full(false, false), planned = fly_full(true, false);
    struct fixture checked = fly_full(false, true);
    cr_expect_gt(run.n_repeats, 0);
    cr_assert_eq(run.capture.n_steps, 21);
    cr_assert_eq(planned.capture.n_steps, 21);
    cr_assert_eq(checked.capture.n_steps, 21);
    for (size_t i = 0; i < 21; i++) {
        const struct ifl_step_record *step = &planned.capture.steps[i];
        cr_expect(memcmp(&run.capture.steps[i], step, sizeof *step) == 0, "step %zu", i);
        cr_expect(memcmp(&checked.capture.steps[i], step, sizeof *step) == 0, "step %zu", i);
    }
    cr_expect_eq(planned.capture.steps[7].decode_tokens, 2);
    cr_expect_eq(planned.capture.steps[8].decode_tokens, 1);
    fixture_free(&run);
    fixture_free(&planned);
    fixture_free(&checked);
}
