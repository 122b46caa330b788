/* Batches made up for a measurement: an engine accepts them, and their totals are those by hand. */
#include <criterion/criterion.h>
#include <math.h>

#include "fit/calibrate/batch.h"
#include "step_check.h"

static const struct ifl_engine_options limits = {
    .model = {.n_layers = 1,
              .d_model = 32,
              .n_q_heads = 2,
              .n_kv_heads = 1,
              .d_head = 16,
              .d_ffn = 48,
              .n_vocab = 100},
    .n_threads = 1,
    .block_tokens = 16,
    .n_blocks = 90,
    .max_tokens = 400,
    .max_step_tokens = 300,
    .max_step_seqs = 20,
};

static struct batch batch;
static struct ifl_error error;

static void open_batch(void)
{
    cr_assert_eq(batch_create(&batch, &limits, &error), 0);
}

static void close_batch(void)
{
    batch_finish(&batch);
}

static void expect_taken(void)
{
    cr_expect_eq(step_check(&limits, &batch.step, &error), 0, "%s", error.text);
}

TestSuite(batch, .init = open_batch, .fini = close_batch);

/* Prompts of 30 after 10 and of 50 after none, and a decode after 99. */
Test(batch, totals)
{
    cr_assert(batch_add(&batch, 10, 30) && batch_add(&batch, 0, 50) && batch_add(&batch, 99, 1));
    const struct ifl_step_totals *t = &batch.totals;
    cr_expect_eq(t->n_tokens, 81);
    cr_expect_eq(t->n_prefill_tokens, 80);
    cr_expect_eq(t->n_prefill_seqs, 2);
    cr_expect_eq(t->prefill_q_kv, 300);
    cr_expect_eq(t->prefill_q_q, 900 + 2500);
    cr_expect_eq(t->max_prefill_kv, 50);
    cr_expect_eq(t->n_decode_seqs, 1);
    cr_expect_eq(t->decode_context, 100);
    cr_expect_eq(t->n_sampled, 3);
    cr_expect_eq(batch.kv_tokens, 40 + 50 + 100);
    expect_taken();
}

/* From a quarter to seven quarters, the mean as asked. */
Test(batch, ragged_contexts_have_the_mean)
{
    cr_assert(batch_add_many(&batch, 5, 80, 1, BATCH_RAGGED));
    cr_expect_eq(batch.totals.decode_context, 5 * 81);
    cr_expect_eq(batch.step.positions[0], 20);
    cr_expect_eq(batch.step.positions[4], 140);
    expect_taken();
}

Test(batch, a_block_has_one_owner)
{
    bool owned[90] = {false};
    cr_assert(batch_add_many(&batch, 9, 150, 1, BATCH_EQUAL));
    expect_taken();
    for (int32_t i = 0; i < batch.step.first_block[9]; i++) {
        cr_expect(!owned[batch.step.block_ids[i]]);
        owned[batch.step.block_ids[i]] = true;
    }
}

Test(batch, what_does_not_fit_is_refused_and_leaves_the_rest)
{
    cr_assert(batch_add(&batch, 0, 290));
    cr_expect_not(batch_add(&batch, 0, 11), "tokens of a step");
    cr_expect_not(batch_add(&batch, 400, 1), "tokens of a sequence");
    cr_expect_not(batch_add_many(&batch, 20, 0, 1, BATCH_EQUAL), "sequences");
    batch_clear(&batch);
    cr_assert(batch_add_many(&batch, 3, 399, 1, BATCH_EQUAL));
    cr_expect_not(batch_add_many(&batch, 3, 399, 1, BATCH_EQUAL), "blocks");
    expect_taken();
    cr_expect_leq(batch.step.n_seqs, 5);
}
