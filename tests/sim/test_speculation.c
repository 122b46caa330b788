/* Speculation against closed forms, and against a walk over the draws themselves. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "inflight/random.h"

enum { SEED = 7, N_REQUESTS = 60 };

static struct acceptance rates(int32_t depth, const double *of)
{
    struct acceptance accepts = {.depth = depth};
    for (int32_t i = 0; i < depth; i++)
        accepts.below[i] = acceptance_below(of[i]);
    return accepts;
}

static struct acceptance all_alike(double rate)
{
    double of[RAGGED_MAX_DRAFTS];
    for (int32_t i = 0; i < RAGGED_MAX_DRAFTS; i++)
        of[i] = rate;
    return rates(RAGGED_MAX_DRAFTS, of);
}

static void set_up(struct fixture *f, const char *batching, const char *draft,
                   const struct acceptance *accepts)
{
    *f = (struct fixture){
        .limits = {.block_tokens = 16,
                   .n_blocks = 2000,
                   .n_host_blocks = 100,
                   .max_model_tokens = 4096,
                   .n_clients = 1},
        .linear = {.step_s = 0.01, .prefill_token_s = 1e-5, .decode_seq_s = 1e-4},
        .speculation = {.seed = SEED, .lookahead_tokens = 3, .accepts = accepts},
        .capture.keep_steps = true,
    };
    fixture_module(f, IFL_BATCHING, batching, NULL);
    fixture_module(f, IFL_ORDER, "fcfs", NULL);
    fixture_module(f, IFL_ADMIT, "prompt-fits", NULL);
    fixture_module(f, IFL_PREEMPT, "tail", NULL);
    fixture_module(f, IFL_DRAFT, "fixed", draft);
    fixture_trace(f, N_REQUESTS);
    for (size_t i = 0; i < f->trace.n; i++) {
        f->trace.arrival_ns[i] = (int64_t)i * 50000000;
        f->trace.n_prompt[i] = 20 + 37 * (int32_t)(i % 13);
        f->trace.n_output[i] = 200 + 91 * (int32_t)(i % 17);
    }
}

static void fly(struct fixture *f)
{
    struct ifl_error error = {0};
    cr_assert_eq(fixture_fly(f, &error), 0, "%s", error.text);
    cr_assert_eq(f->complaint[0], '\0', "%s", f->complaint);
    cr_assert_eq(f->capture.n_requests, N_REQUESTS);
    for (size_t i = 0; i < f->capture.n_requests; i++)
        cr_assert_eq(f->capture.requests[i].status, IFL_FINISHED);
}

/* Leviathan et al. (ICML 2023), equation 1: with rate p and k guesses a step yields
 * (1 - p^(k+1)) / (1 - p) tokens. Its variance is that of a geometric number cut at k. */
static void check_length(double p, int32_t k)
{
    struct fixture f;
    const struct acceptance accepts = all_alike(p);
    char draft[32];
    double variance = 0;
    const double mean = (1 - pow(p, k + 1)) / (1 - p);
    for (int32_t n = 0; n <= k; n++)
        variance += pow(p, n) * (n < k ? 1 - p : 1) * (n + 1 - mean) * (n + 1 - mean);
    snprintf(draft, sizeof draft, "{tokens: %d}", k);
    set_up(&f, "unified", draft, &accepts);
    fly(&f);
    const double n = (double)f.guesses.n_steps;
    const double length = 1 + (double)f.guesses.n_held / n;
    cr_expect_float_eq(length, mean, 3 * sqrt(variance / n), "p %g, k %d: %g in place of %g", p, k,
                       length, mean);
    cr_expect_eq(f.guesses.n_drafted, k * f.guesses.n_steps);
    fixture_free(&f);
}

Test(speculation, a_step_yields_what_independent_acceptance_says)
{
    for (int32_t k = 1; k <= 7; k += 2) {
        check_length(0.3, k);
        check_length(0.7, k);
        check_length(0.9, k);
    }
}

/* Steps of an answer of n tokens behind the first, from the draws alone. */
static int64_t steps_of(uint64_t serial, int32_t n_output, int32_t k, double p)
{
    int64_t n_steps = 0;
    for (int32_t out = 1; out < n_output; n_steps++) {
        int32_t held = 0;
        while (held < k &&
               ldexp((double)(ifl_draw(SEED, IFL_DRAW_ACCEPT, serial, (uint64_t)(out + held)) >> 1),
                     -63) < p)
            held++;
        out += 1 + held;
    }
    return n_steps;
}

/* Whatever the scheduler and the pool do, a place of an answer has the same luck. */
static void check_luck(const char *batching, int32_t n_blocks, bool cached, int32_t k)
{
    struct fixture f;
    const struct acceptance accepts = all_alike(0.625);
    char draft[32];
    int64_t n_steps = 0;
    snprintf(draft, sizeof draft, "{tokens: %d}", k);
    set_up(&f, batching, draft, &accepts);
    f.limits.n_blocks = n_blocks;
    f.prefix_cache = cached ? PREFIX_CACHE_HASH : PREFIX_CACHE_NONE;
    f.check_blocks = true;
    if (cached)
        fixture_module(&f, IFL_EVICT, "lru", NULL);
    for (size_t i = 0; i < f.trace.n; i++)
        n_steps += steps_of(i, f.trace.n_output[i], k, 0.625);
    fly(&f);
    int64_t n_preempted = 0;
    for (size_t i = 0; i < f.capture.n_requests; i++)
        n_preempted += f.capture.requests[i].preemptions;
    if (n_preempted == 0)
        cr_expect_eq(f.guesses.n_steps, n_steps, "%s, k %d: %lld steps in place of %lld", batching,
                     k, (long long)f.guesses.n_steps, (long long)n_steps);
    else /* the token that ends a prompt computed again needs no step of its own */
        cr_expect(f.guesses.n_steps <= n_steps && f.guesses.n_steps >= n_steps - n_preempted,
                  "%s: %lld steps, %lld preemptions, %lld steps without", batching,
                  (long long)f.guesses.n_steps, (long long)n_preempted, (long long)n_steps);
    fixture_free(&f);
}

Test(speculation, policies_share_their_luck)
{
    check_luck("unified", 4000, false, 3);
    check_luck("unified", 4000, true, 5);
    check_luck("prefill-first", 4000, false, 3);
    check_luck("mixed", 4000, false, 3);
    check_luck("unified", 260, false, 3);
    check_luck("unified", 260, true, 3);
    check_luck("prefill-first", 260, false, 4);
}

/* Each mode gives the same steps: planned one by one, promised, and both with the checks on. */
static void check_modes(const char *batching, const char *draft, const struct acceptance *accepts)
{
    struct fixture f[3];
    for (int mode = 0; mode < 3; mode++) {
        set_up(&f[mode], batching, draft, accepts);
        f[mode].no_steady_runs = mode == 1;
        f[mode].check_steady = mode == 2;
        fly(&f[mode]);
        cr_assert_eq(f[mode].capture.n_steps, f[0].capture.n_steps);
        cr_expect_eq(memcmp(f[mode].capture.steps, f[0].capture.steps,
                            f[0].capture.n_steps * sizeof *f[0].capture.steps),
                     0, "%s, %s, mode %d", batching, draft, mode);
    }
    cr_expect_gt(f[0].n_repeats, f[0].capture.n_steps / 2, "a batch that speculates coasts");
    cr_expect_eq(f[1].n_repeats, 0);
    for (int mode = 0; mode < 3; mode++)
        fixture_free(&f[mode]);
}

Test(speculation, steady_runs_change_no_step)
{
    const struct acceptance drawn = all_alike(0.7), constant = rates(3, (double[]){1, 1, 0});
    check_modes("unified", "{tokens: 3}", &drawn);
    check_modes("unified", "{tokens: 3}", &constant);
    check_modes("prefill-first", "{tokens: 2}", &constant);
}

/* With three tokens a step from two guesses that hold, an answer of 1 + 3 n takes n decodes. */
Test(speculation, constant_emission_adds_up)
{
    struct fixture f;
    const struct acceptance accepts = rates(3, (double[]){1, 1, 0});
    set_up(&f, "unified", "{tokens: 3}", &accepts);
    f.trace.n = 1;
    f.trace.n_output[0] = 1 + 3 * 40;
    struct ifl_error error = {0};
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    cr_expect_eq(f.guesses.n_steps, 40);
    cr_expect_eq(f.guesses.n_drafted, 120);
    cr_expect_eq(f.guesses.n_held, 80);
    cr_expect_eq(f.guesses.n_emitted, 120);
    /* a prompt of 20, then 40 steps of four rows */
    const int64_t end_ns = f.capture.requests[0].finish_ns;
    cr_expect_eq(end_ns, 10000000 + 20 * 10000 + 40 * (10000000 + 4 * 100000));
    fixture_free(&f);
}

Test(speculation, no_guesses_are_no_speculation)
{
    struct fixture f[2];
    const struct acceptance accepts = all_alike(0.7);
    set_up(&f[0], "unified", "{tokens: 0}", &accepts);
    set_up(&f[1], "unified", "{tokens: 0}", &accepts);
    free(f[1].modules[IFL_DRAFT].params);
    f[1].modules[IFL_DRAFT] = (struct module_config){0};
    fly(&f[0]);
    fly(&f[1]);
    cr_assert_eq(f[0].capture.n_steps, f[1].capture.n_steps);
    cr_expect_eq(memcmp(f[0].capture.steps, f[1].capture.steps,
                        f[0].capture.n_steps * sizeof *f[0].capture.steps),
                 0);
    cr_expect_eq(f[0].guesses.n_steps, 0);
    fixture_free(&f[0]);
    fixture_free(&f[1]);
}
