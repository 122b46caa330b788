/* How much of the K/V memory is used for what, against the vLLM paper (Kwon et al., SOSP 2023).
 *
 * Table 1: OPT-13B on an A100-40GB leaves 12 GB for K/V, 15,728 slots of 800 KiB a token. Orca
 * (Max) reserves 2,048 slots for everyone from a buddy allocator: 7 requests, as printed in Fig 13
 * for both workloads, and 1 - 7 x 2048 / 15728 = 8.85% given to nobody, as printed (8.9) in Fig 2.
 */
#include <criterion/criterion.h>

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

/* Every step that leaves somebody waiting. */
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
