/* An engine with stages of layers: steps that overlap give what the engine gives without stages.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "driver.h"

enum { N_NEW = SMALL_PROMPT };

/* A prompt in some blocks, as a step of its own. */
struct alone {
    struct ifl_engine_step step;
    int32_t positions[N_NEW], first_token[2], first_block[2], n_rows, sampled;
    float logits[SMALL_VOCAB];
};

static void make(struct alone *alone, const uint32_t blocks[SMALL_HOME])
{
    *alone = (struct alone){.first_token = {0, N_NEW}, .first_block = {0, SMALL_HOME}, .n_rows = 1};
    for (int32_t i = 0; i < N_NEW; i++)
        alone->positions[i] = i;
    alone->step = (struct ifl_engine_step){.n_seqs = 1,
                                           .n_tokens = N_NEW,
                                           .token_ids = small_tokens(),
                                           .positions = alone->positions,
                                           .first_token = alone->first_token,
                                           .first_block = alone->first_block,
                                           .block_ids = blocks,
                                           .n_rows = &alone->n_rows,
                                           .sampled = &alone->sampled,
                                           .logits = alone->logits};
}

static void open_stages(struct driver *driver, const int32_t *layers, int32_t n)
{
    struct ifl_engine_options options = small_options;
    options.n_stages = n;
    options.stage_layers = layers;
    options.max_in_flight = 2;
    cr_assert_eq(driver_open(driver, &ifl_engine_v1, &options), 0, "%s", driver->error.text);
}

static void pass(struct driver *driver, int32_t stage, int32_t slot, struct alone *alone)
{
    cr_assert_eq(driver->engine->stage(driver->self, stage, slot, &alone->step, &driver->error), 0,
                 "%s", driver->error.text);
}

/* The logits of the prompt from an engine without stages. */
static void whole(float logits[SMALL_VOCAB])
{
    struct driver driver;
    struct driven seq;
    cr_assert_eq(small_open(&driver, &ifl_engine_v1, &seq, logits), 0);
    driver_close(&driver);
}

/* The second step copies the blocks of the first away and spoils them while the first has computed
 * one stage alone: what a stage does to blocks, it does to its layers. */
static void overlap(const int32_t *layers, int32_t n)
{
    struct driver driver;
    struct alone first, second;
    struct ifl_copy outs[SMALL_HOME];
    float expected[SMALL_VOCAB];
    whole(expected);
    open_stages(&driver, layers, n);
    make(&first, small_home);
    make(&second, small_other_home);
    for (uint32_t i = 0; i < SMALL_HOME; i++)
        outs[i] = (struct ifl_copy){small_home[i], i};
    second.step.outs = outs;
    second.step.n_outs = SMALL_HOME;
    second.step.spoilt = small_home;
    second.step.n_spoilt = SMALL_HOME;
    for (int32_t turn = 0; turn <= n; turn++) {
        if (turn < n)
            pass(&driver, turn, 0, &first);
        if (turn > 0)
            pass(&driver, turn - 1, 1, &second);
    }
    cr_expect_eq(memcmp(first.logits, expected, sizeof expected), 0);
    cr_expect_eq(memcmp(second.logits, expected, sizeof expected), 0);
    /* the blocks of the first are whole on the host: one more token from there */
    struct driven seq = {small_tokens(), SMALL_PROMPT - 1, small_home};
    const int32_t one = 1;
    float again[SMALL_VOCAB];
    for (uint32_t i = 0; i < SMALL_HOME; i++)
        outs[i] = (struct ifl_copy){i, small_home[i]};
    driver.step = (struct ifl_engine_step){.ins = outs, .n_ins = SMALL_HOME};
    cr_assert_eq(driver_step(&driver, &seq, &one, 1, again), 0, "%s", driver.error.text);
    cr_expect(relative_error(again, expected, SMALL_VOCAB) < 1e-5);
    driver_close(&driver);
}

Test(stages, overlap_without_a_trace)
{
    overlap((const int32_t[]){1, 1, 1}, 3);
    overlap((const int32_t[]){1, 2}, 2);
    overlap((const int32_t[]){2, 1}, 2);
    overlap((const int32_t[]){3}, 1);
}

Test(stages, have_all_layers)
{
    struct driver driver;
    struct ifl_engine_options options = small_options;
    options.n_stages = 2;
    options.max_in_flight = 1;
    options.stage_layers = (const int32_t[]){1, 1};
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    cr_expect_not_null(strstr(driver.error.text, "2 layers, expected the model's 3"), "%s",
                       driver.error.text);
    options.stage_layers = (const int32_t[]){3, 0};
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
    options.stage_layers = (const int32_t[]){2, 1};
    options.max_in_flight = 0;
    cr_expect_eq(driver_open(&driver, &ifl_engine_v1, &options), IFL_E_INPUT);
}
