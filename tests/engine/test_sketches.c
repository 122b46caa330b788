/* The sketches of the engine's contract, flown on the CPU engine: a feature that compiles also
 * works. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "dense.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "../contract/sketches/engine_h2o.c"
#include "../contract/sketches/engine_lmcache.c"
#include "../contract/sketches/engine_lora.c"
#include "../contract/sketches/engine_ngram.c"
#include "../contract/sketches/engine_nixl.c"
#include "../contract/sketches/engine_snapkv.c"
#pragma GCC diagnostic pop

enum { N = 80, LAYERS = 2, HEADS = 2, VOCAB = 64, TABLE = 40, PROMPT = 40 };

static struct driver driver, other;
static struct fixture_model f;
static uint32_t table[TABLE];
static const int32_t tables[] = {0, TABLE}, one = 1, prompt = PROMPT;

/* The first query that no longer sees a key; 0: all queries behind it see it. */
static int32_t gone_at[LAYERS][HEADS][N];

static bool is_there(const void *context, int32_t layer, int32_t kv_head, int32_t query,
                     int32_t key)
{
    const int32_t at = gone_at[layer][kv_head][key];
    (void)context;
    return at == 0 || query < at;
}

static void open_engine(struct driver *d)
{
    const struct ifl_engine_options options = {
        .model = f.model, .weights_dir = f.dir, .n_host_blocks = TABLE};
    cr_assert_eq(driver_open(d, &ifl_engine_v1, &options), 0, "%s", d->error.text);
}

static void start(void)
{
    fixture_model_load(&f, "qwen3");
    ifl_require(f.n_tokens == N && f.model.n_vocab == VOCAB && f.model.n_layers == LAYERS &&
                f.model.n_kv_heads == HEADS);
    open_engine(&driver);
    for (uint32_t i = 0; i < TABLE; i++)
        table[i] = i * 211 % 512;
}

static void end(void)
{
    driver_close(&driver);
    fixture_model_free(&f);
}

static struct ifl_engine_step step_of_table(void)
{
    return (struct ifl_engine_step){.n_seqs = 1, .first_block = tables, .block_ids = table};
}

/* Greedy, a token at a time. */
static void say_plainly(int32_t *tokens, int32_t n_prompt, int32_t n)
{
    struct driven seq = {tokens, 0, table};
    for (int32_t n_new = n_prompt; seq.n_computed < n - 1; n_new = 1) {
        cr_assert_eq(driver_step(&driver, &seq, &n_new, 1, NULL), 0, "%s", driver.error.text);
        tokens[seq.n_computed] = driver.sampled[0];
    }
}

/* A prompt that repeats itself, so that drafts are made from the first step on; most of them are
 * wrong there. */
Test(sketches, speculation_says_the_same_in_fewer_steps)
{
    enum { SAID = 120, BEFORE = 24 };
    int32_t plain[SAID], tokens[SAID + MAX_DRAFTS + 1], n_steps = 0, n_accepted = 0;
    int32_t n_drafted = 0;
    start();
    for (int32_t i = 0; i < BEFORE; i++)
        plain[i] = tokens[i] = f.tokens[i % 9];
    say_plainly(plain, BEFORE, SAID);
    struct ngram_seq seq = {step_of_table(), tokens, BEFORE};
    struct driven before = {tokens, 0, table};
    cr_assert_eq(driver_step(&driver, &before, &(int32_t){BEFORE - 1}, 1, NULL), 0);
    for (; seq.n_tokens < SAID; n_steps++) {
        n_drafted += ngram_draft(&seq);
        const int n = ngram_decode(&ifl_engine_v1, driver.self, &seq, &driver.error);
        cr_assert_geq(n, 0, "%s", driver.error.text);
        n_accepted += n;
    }
    cr_expect_arr_eq(tokens, plain, sizeof plain);
    cr_expect(n_accepted > 10 && n_drafted > n_accepted + 2,
              "%d steps, %d of %d drafts accepted: roll-back and acceptance both happen", n_steps,
              n_accepted, n_drafted);
    end();
}

static int32_t likeliest(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < VOCAB; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* The fixture's tokens, one by one: what was sampled and what was weighed, as the reference has it
 * of what the sketch kept. */
Test(sketches, h2o_keeps_what_the_reference_weighs_most)
{
    enum { BUDGET = 24 };
    static float votes[LAYERS * HEADS * BUDGET];
    int32_t position[BUDGET] = {0}, was[BUDGET], next[N];
    double weight[BUDGET];
    struct dense dense;
    start();
    memset(gone_at, 0, sizeof gone_at);
    struct h2o_seq seq = {step_of_table(), LAYERS * HEADS, BUDGET, 6, weight, position};
    seq.step.votes = votes;
    for (int32_t p = 0; p < N; p++) {
        memcpy(was, position, sizeof was);
        cr_assert_eq(
            h2o_decode(&ifl_engine_v1, driver.self, &seq, f.tokens[p], p, &next[p], &driver.error),
            0, "%s", driver.error.text);
        for (int32_t slot = 0; p >= BUDGET && slot < BUDGET; slot++)
            for (int32_t head = 0; position[slot] != was[slot] && head < LAYERS * HEADS; head++)
                gone_at[head / HEADS][head % HEADS][was[slot]] = p;
    }
    dense_run(&dense, &f, is_there, NULL);
    for (int32_t p = 0; p < N; p++)
        cr_expect_eq(next[p], likeliest(dense.logits + (size_t)p * VOCAB), "token %d", p);
    for (int32_t slot = 0; slot < BUDGET; slot++) {
        double expected = 0;
        for (int32_t head = 0; head < LAYERS * HEADS; head++)
            expected +=
                dense_votes(&dense, head / HEADS, head % HEADS, position[slot], N, position[slot]);
        cr_expect_float_eq(weight[slot], expected, 1e-5 * expected, "slot %d: %g, expected %g",
                           slot, weight[slot], expected);
    }
    dense_free(&dense);
    end();
}

Test(sketches, snapkv_goes_on_with_what_it_kept)
{
    enum { BUDGET = 20, VOTERS = 8 };
    static float votes[LAYERS * HEADS * PROMPT], logits[VOCAB];
    int32_t kept[LAYERS * HEADS][BUDGET];
    struct ifl_engine_step last = step_of_table();
    struct dense dense;
    const int32_t n_voters = VOTERS;
    start();
    struct driven seq = {f.tokens, 0, table};
    driver.step.n_voters = &n_voters;
    driver.step.votes = votes;
    cr_assert_eq(driver_step(&driver, &seq, &prompt, 1, NULL), 0, "%s", driver.error.text);
    last.n_tokens = PROMPT, last.positions = driver.positions, last.n_voters = &n_voters;
    last.votes = votes;
    cr_assert_eq(snapkv_compact(&ifl_engine_v1, driver.self, &f.model, &last, BUDGET, kept[0],
                                &driver.error),
                 0, "%s", driver.error.text);
    for (int32_t head = 0; head < LAYERS * HEADS; head++) {
        for (int32_t key = 0; key < N; key++)
            gone_at[head / HEADS][head % HEADS][key] = key < PROMPT ? PROMPT : 0;
        for (int32_t i = 0; i < BUDGET; i++)
            gone_at[head / HEADS][head % HEADS][kept[head][i]] = 0;
    }
    dense_run(&dense, &f, is_there, NULL);
    for (int32_t slot = BUDGET, n_slots = BUDGET + 1; seq.n_computed < N; slot++, n_slots++) {
        driver.step.slots = &slot;
        driver.step.n_slots = &n_slots;
        cr_assert_eq(driver_step(&driver, &seq, &one, 1, logits), 0, "%s", driver.error.text);
        const double error =
            relative_error(logits, dense.logits + (size_t)(seq.n_computed - 1) * VOCAB, VOCAB);
        cr_expect(error < 1e-5, "token %d: relative error %g", seq.n_computed - 1, error);
    }
    dense_free(&dense);
    end();
}

Test(sketches, nixl_samples_on_the_other_side_what_this_side_would)
{
    uint32_t there[TABLE];
    int32_t sampled;
    start();
    open_engine(&other);
    for (uint32_t i = 0; i < TABLE; i++)
        there[i] = 500 - 3 * i;
    struct driven seq = {f.tokens, 0, table};
    cr_assert_eq(driver_step(&driver, &seq, &prompt, 1, NULL), 0, "%s", driver.error.text);
    void *staging = malloc(ifl_engine_v1.block_bytes(driver.self));
    const struct nixl_side from = {&ifl_engine_v1, driver.self, table},
                           to = {&ifl_engine_v1, other.self, there};
    cr_assert_eq(nixl_pull(&from, &to, PROMPT / 4, staging, &other.error), 0);
    cr_assert_eq(
        nixl_first_token(&to, PROMPT / 4, f.tokens[PROMPT - 1], PROMPT, &sampled, &other.error), 0,
        "%s", other.error.text);
    cr_expect_eq(sampled, driver.sampled[0]);
    cr_expect_eq(sampled, likeliest(f.logits + (size_t)(PROMPT - 1) * VOCAB));
    free(staging);
    driver_close(&other);
    end();
}

/* Out, to a file, back to other host blocks, in to other device blocks. */
Test(sketches, lmcache_brings_back_what_was_swapped_out)
{
    enum { N_BLOCKS = PROMPT / 4 };
    float straight[VOCAB], restored[VOCAB];
    struct ifl_copy outs[N_BLOCKS], ins[N_BLOCKS];
    start();
    struct driven seq = {f.tokens, 0, table}, again = {f.tokens, PROMPT, table + N_BLOCKS};
    cr_assert_eq(driver_step(&driver, &seq, &prompt, 1, NULL), 0, "%s", driver.error.text);
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        outs[i] = (struct ifl_copy){table[i], i};
        ins[i] = (struct ifl_copy){TABLE - 1 - i, table[N_BLOCKS + i]};
    }
    driver.step.outs = outs;
    driver.step.n_outs = N_BLOCKS;
    cr_assert_eq(driver_step(&driver, NULL, NULL, 0, NULL), 0, "%s", driver.error.text);
    const struct lmcache cache = {&ifl_engine_v1, driver.self,
                                  malloc(ifl_engine_v1.block_bytes(driver.self)), tmpfile()};
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        cr_assert_eq(lmcache_store(&cache, i, N_BLOCKS - 1 - (long)i, &driver.error), 0);
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        cr_assert_eq(lmcache_load(&cache, TABLE - 1 - i, N_BLOCKS - 1 - (long)i, &driver.error), 0);
    cr_expect_eq(lmcache_load(&cache, 0, N_BLOCKS, &driver.error), IFL_E_IO);
    cr_assert_eq(driver_step(&driver, &seq, &one, 1, straight), 0, "%s", driver.error.text);
    driver.step.ins = ins;
    driver.step.n_ins = N_BLOCKS;
    cr_assert_eq(driver_step(&driver, &again, &one, 1, restored), 0, "%s", driver.error.text);
    cr_expect_eq(memcmp(straight, restored, sizeof straight), 0);
    free(cache.staging);
    fclose(cache.file);
    end();
}

/* A sequence with an adapter has other logits than one without; an engine that was opened without
 * refuses it. test_adapters.c says what they are. */
Test(sketches, lora_runs)
{
    static const int32_t ranks[] = {8, 16}, traced[] = {0};
    struct ifl_engine_step step = step_of_table();
    const int32_t ends[] = {0, 1}, position = 0;
    int32_t adapters[1], sampled;
    float with[VOCAB], without[VOCAB];
    void *self = NULL;
    start();
    cr_assert_eq(lora_open(&ifl_engine_v1, &driver.options, ranks, 2, &self, &driver.error), 0,
                 "%s", driver.error.text);
    step.n_tokens = 1, step.first_token = ends, step.token_ids = f.tokens;
    step.positions = &position, step.n_rows = &one, step.sampled = &sampled;
    cr_expect_eq(lora_step(&ifl_engine_v1, driver.self, &step, traced, adapters, &driver.error),
                 IFL_E_DEVICE);
    cr_expect_not_null(strstr(driver.error.text, "adapter 1"), "%s", driver.error.text);
    step.logits = with;
    cr_expect_eq(lora_step(&ifl_engine_v1, self, &step, traced, adapters, &driver.error), 0);
    step.logits = without;
    cr_expect_eq(
        lora_step(&ifl_engine_v1, self, &step, (const int32_t[]){-1}, adapters, &driver.error), 0);
    cr_expect_gt(relative_error(with, without, (size_t)f.model.n_vocab), 1e-3);
    ifl_engine_v1.close(self);
    end();
}
