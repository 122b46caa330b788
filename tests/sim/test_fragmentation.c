/* The use of K/V memory against the vLLM paper (Kwon et al., SOSP 2023).
 *
 * Table 1: OPT-13B on an A100-40GB leaves 12 GB for K/V, 15,728 slots of 800 KiB a token. Orca
 * (Max) reserves 2,048 slots per request from a buddy allocator. That gives 7 requests, as printed
 * in Fig 13 for both workloads, and 1 - 7 x 2048 / 15728 = 8.85% unreserved, as printed (8.9) in
 * Fig 2.
 */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "fixture.h"

static void fly_orca_max(struct fixture *f, int32_t block_tokens, int32_t n_blocks)
{
    struct ifl_error error = {0};
    f->limits = (struct ifl_limits){.block_tokens = block_tokens,
                                    .n_blocks = n_blocks,
                                    .max_model_tokens = 2048,
                                    .n_clients = 1};
    f->linear = (struct linear_cost){.step_s = 0.02};
    f->allocator = KV_BUDDY;
    f->check_blocks = true;
    f->capture.keep_steps = true;
    fixture_module(f, IFL_BATCHING, "mixed", "{max_seqs: 256}");
    fixture_module(f, IFL_ORDER, "fcfs", NULL);
    fixture_module(f, IFL_ADMIT, "reserve", "{for: max-model-len}");
    fixture_module(f, IFL_PREEMPT, "tail", "{fate: never}");
    fixture_trace(f, 40);
    for (size_t i = 0; i < f->trace.n; i++) {
        f->trace.n_prompt[i] = 100 + 13 * (int32_t)(i % 11);
        f->trace.n_output[i] = 60 + 17 * (int32_t)(i % 13);
    }
    cr_assert_eq(fixture_fly(f, &error), 0, "%s", error.text);
    cr_assert_eq(f->complaint[0], '\0', "%s", f->complaint);
}

/* Checks every step with waiting requests. */
static void check_orca_max(int32_t block_tokens, int32_t n_blocks)
{
    struct fixture f = {0};
    size_t n_full = 0;
    fly_orca_max(&f, block_tokens, n_blocks);
    for (size_t i = 0; i < f.capture.n_steps; i++) {
        const struct ifl_step_record *step = &f.capture.steps[i];
        const int64_t given =
            step->kv_token_slots + step->kv_reserved_slots + step->kv_internal_slots;
        if (step->waiting == 0)
            continue;
        n_full++;
        cr_assert_eq(step->running, 7);
        cr_assert_eq(given, 7 * 2048);
        cr_assert_float_eq(1 - (double)given / (double)step->kv_pool_slots, 0.0885, 5e-5);
    }
    cr_assert_gt(n_full, 100);
    fixture_free(&f);
}

Test(fragmentation, orca_max_batches_seven_and_leaves_what_the_paper_prints)
{
    check_orca_max(1, 15728);
    check_orca_max(16, 15728 / 16);
}

/* ---- parallel sampling, Fig 15 (a) ---- */

enum { PROMPT = 161, OUTPUT = 338, BLOCK = 16 }; /* ShareGPT's means, Fig 11 */

static int32_t ceil_div(int32_t a, int32_t b)
{
    return (a + b - 1) / b;
}

static void fly_samples(struct fixture *f, int32_t n)
{
    struct ifl_error error = {0};
    *f = (struct fixture){.limits = {.block_tokens = BLOCK,
                                     .n_blocks = 1000,
                                     .max_model_tokens = 2048,
                                     .n_clients = 1},
                          .linear = {.step_s = 0.02},
                          .check_blocks = true,
                          .max_samples = n};
    f->capture.keep_steps = true;
    fixture_vllm(f, "{max_seqs: 64}", NULL);
    fixture_trace(f, 1);
    f->trace.n_prompt[0] = PROMPT;
    f->trace.n_output[0] = OUTPUT;
    f->trace.samples = calloc(1, sizeof *f->trace.samples);
    f->trace.samples[0] = n;
    cr_assert_eq(fixture_fly(f, &error), 0, "%s", error.text);
    cr_assert_eq(f->complaint[0], '\0', "%s", f->complaint);
}

/* One prompt with n answers: full blocks of the prompt are held once, the others n times. */
static void check_samples(int32_t n)
{
    struct fixture f;
    const int32_t n_shared = PROMPT / BLOCK;
    fly_samples(&f, n);
    cr_assert_eq(f.capture.n_steps, OUTPUT);
    cr_assert_eq(f.capture.steps[0].kv_used_blocks, ceil_div(PROMPT, BLOCK));
    for (int32_t i = 1; i < OUTPUT; i++) {
        const struct ifl_step_record *step = &f.capture.steps[i];
        const int32_t n_tokens = PROMPT + i;
        cr_assert_eq(step->kv_used_blocks, n * ceil_div(n_tokens, BLOCK) - (n - 1) * n_shared);
        cr_assert_eq(step->kv_token_slots, n * n_tokens - (n - 1) * n_shared * BLOCK);
        cr_assert_eq(step->kv_shared_blocks, (n - 1) * n_shared);
        cr_assert_eq(step->decode_tokens, n);
    }
    fixture_free(&f);
}

Test(fragmentation, samples_hold_the_full_blocks_of_their_prompt_once)
{
    check_samples(2);
    check_samples(4);
    check_samples(6);
}
