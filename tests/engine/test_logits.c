/* Logits against Hugging Face transformers, for sequences cut into steps in several ways. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "weights.h"

static const double TOLERANCE = 1e-5;

static uint32_t blocks[4][128]; /* disjoint tables, shuffled */

/* A walk with a stride prime to the number of blocks visits each once, in no order. */
static void shuffle_blocks(void)
{
    for (uint32_t i = 0; i < 4 * 128; i++)
        blocks[i / 128][i % 128] = i * 211 % 512;
}

static void open_fixture(struct driver *driver, struct fixture_model *fixture, const char *name)
{
    shuffle_blocks();
    fixture_model_load(fixture, name);
    const struct ifl_engine_options options = {.model = fixture->model,
                                               .weights_dir = fixture->dir};
    cr_assert_eq(driver_open(driver, &ifl_engine_v1, &options), 0, "%s", driver->error.text);
}

static void expect_row(const struct fixture_model *f, int32_t last, const float *logits,
                       const char *what)
{
    const size_t n = (size_t)f->model.n_vocab;
    const double error = relative_error(logits, f->logits + (size_t)last * n, n);
    cr_expect(error < TOLERANCE, "%s, %s, token %d: relative error %g", f->dir, what, last, error);
}

/* n_new tokens at a time, the logits at the end of each chunk compared. */
static void expect_chunks(struct driver *driver, const struct fixture_model *f, int32_t chunk)
{
    struct driven seq = {.tokens = f->tokens, .blocks = blocks[0]};
    float *logits = calloc((size_t)f->model.n_vocab, sizeof *logits);
    char what[32];
    snprintf(what, sizeof what, "chunks of %d", chunk);
    while (seq.n_computed < f->n_tokens) {
        const int32_t left = f->n_tokens - seq.n_computed;
        const int32_t n_new = left < chunk ? left : chunk;
        cr_assert_eq(driver_step(driver, &seq, &n_new, 1, logits), 0, "%s", driver->error.text);
        expect_row(f, seq.n_computed - 1, logits, what);
    }
    free(logits);
}

Test(logits, agree_with_transformers_at_every_chunk_size)
{
    for (const char *const *name = fixture_names; *name; name++) {
        struct driver driver;
        struct fixture_model fixture;
        open_fixture(&driver, &fixture, *name);
        for (int32_t chunk = 1; chunk <= fixture.n_tokens; chunk++)
            expect_chunks(&driver, &fixture, chunk);
        driver_close(&driver);
        fixture_model_free(&fixture);
    }
}

/* The rows of one pass are those of a token at a time: the last n of a sequence, or all, of several
 * sequences, of more tokens than a pass takes. */
Test(logits, of_several_rows_are_those_of_a_token_at_a_time)
{
    for (const char *const *name = fixture_names; *name; name++) {
        static float alone[80 * 100], rows[8 * 80 * 100];
        const int32_t n_rows[8] = {1, 0, 5, 80, 2, 80, 80, 80};
        struct driver driver;
        struct fixture_model f;
        open_fixture(&driver, &f, *name);
        const size_t n_vocab = (size_t)f.model.n_vocab;
        const int32_t one = 1;
        ifl_require(f.n_tokens == 80 && n_vocab <= 100);
        struct driven seq = {f.tokens, 0, blocks[0]}, seqs[8];
        for (float *row = alone; seq.n_computed < f.n_tokens; row += n_vocab)
            cr_assert_eq(driver_step(&driver, &seq, &one, 1, row), 0, "%s", driver.error.text);
        int32_t n_new[8];
        for (int32_t i = 0; i < 8; i++) {
            seqs[i] = (struct driven){f.tokens, 0, blocks[i / 2] + i % 2 * 64};
            n_new[i] = f.n_tokens;
        }
        driver.step.n_rows = n_rows;
        cr_assert_eq(driver_step(&driver, seqs, n_new, 8, rows), 0, "%s", driver.error.text);
        const float *row = rows;
        const int32_t *sampled = driver.sampled;
        for (int32_t i = 0; i < 8; i++)
            for (int32_t token = f.n_tokens - n_rows[i]; token < f.n_tokens;
                 token++, sampled++, row += n_vocab) {
                const double error = relative_error(row, alone + (size_t)token * n_vocab, n_vocab);
                cr_expect(error < TOLERANCE, "%s, token %d of %d: relative error %g", f.dir, token,
                          i, error);
                expect_row(&f, token, row, "of several rows");
                for (size_t v = 0; v < n_vocab; v++)
                    cr_expect_leq(row[v], row[*sampled]);
            }
        driver_close(&driver);
        fixture_model_free(&f);
    }
}

/* Three copies of the sequence at different places: one decodes, one computes a chunk, one starts;
 * their places in the batch rotate. */
Test(logits, do_not_depend_on_the_batch)
{
    for (const char *const *name = fixture_names; *name; name++) {
        struct driver driver;
        struct fixture_model f;
        open_fixture(&driver, &f, *name);
        struct driven seqs[3] = {
            {f.tokens, 0, blocks[1]}, {f.tokens, 0, blocks[2]}, {f.tokens, 0, blocks[3]}};
        const size_t n_vocab = (size_t)f.model.n_vocab;
        float *logits = calloc(3 * n_vocab, sizeof *logits);
        const int32_t pace[3] = {1, 7, 13};
        for (int32_t round = 0; round < 6; round++) {
            int32_t n_new[3];
            for (int32_t i = 0; i < 3; i++)
                n_new[i] = pace[(i + round) % 3];
            cr_assert_eq(driver_step(&driver, seqs, n_new, 3, logits), 0, "%s", driver.error.text);
            for (int32_t i = 0; i < 3; i++)
                expect_row(&f, seqs[i].n_computed - 1, logits + (size_t)i * n_vocab, "mixed");
        }
        free(logits);
        driver_close(&driver);
        fixture_model_free(&f);
    }
}

Test(logits, survive_recompute)
{
    struct driver driver;
    struct fixture_model f;
    open_fixture(&driver, &f, "llama");
    float *logits = calloc((size_t)f.model.n_vocab, sizeof *logits);
    struct driven seq = {f.tokens, 0, blocks[0]};
    for (int32_t n_new = 20; seq.n_computed < 30; n_new = 1)
        cr_assert_eq(driver_step(&driver, &seq, &n_new, 1, logits), 0);
    /* After a preemption all tokens so far are a prompt again, in other blocks. */
    seq = (struct driven){f.tokens, 0, blocks[3]};
    const int32_t n_new = 31;
    cr_assert_eq(driver_step(&driver, &seq, &n_new, 1, logits), 0);
    expect_row(&f, 30, logits, "after a recompute");
    free(logits);
    driver_close(&driver);
    fixture_model_free(&f);
}

/* A prompt begins in whole blocks that another sequence computed and goes on in its own. */
Test(logits, do_not_depend_on_where_the_prefix_is_from)
{
    for (const char *const *name = fixture_names; *name; name++) {
        struct driver driver;
        struct fixture_model f;
        open_fixture(&driver, &f, *name);
        float *logits = calloc((size_t)f.model.n_vocab, sizeof *logits);
        struct driven first = {f.tokens, 0, blocks[0]};
        cr_assert_eq(driver_step(&driver, &first, &f.n_tokens, 1, NULL), 0);
        for (int32_t n_hit = 4; n_hit < f.n_tokens; n_hit += 4) {
            uint32_t table[128];
            memcpy(table, blocks[1], sizeof table);
            memcpy(table, blocks[0], (size_t)n_hit / 4 * sizeof *table);
            struct driven second = {f.tokens, n_hit, table};
            const int32_t n_new = f.n_tokens - n_hit;
            cr_assert_eq(driver_step(&driver, &second, &n_new, 1, logits), 0);
            expect_row(&f, f.n_tokens - 1, logits, "behind a prefix");
        }
        free(logits);
        driver_close(&driver);
        fixture_model_free(&f);
    }
}

/* ---- a model and contexts large enough for every tile and pass ---- */

static const struct ifl_engine_options wide = {
    .model = {.n_layers = 2,
              .d_model = 48,
              .n_q_heads = 6,
              .n_kv_heads = 2,
              .d_head = 16,
              .d_ffn = 64,
              .n_vocab = 200},
    .seed = 3,
    .n_blocks = 512,
    .block_tokens = 16,
    .max_tokens = 2000,
};

static void run_chunks(struct driver *driver, const int32_t *tokens, int32_t n, int32_t chunk,
                       float *logits)
{
    struct driven seq = {tokens, 0, blocks[chunk % 4]};
    while (seq.n_computed < n) {
        const int32_t left = n - seq.n_computed, n_new = left < chunk ? left : chunk;
        cr_assert_eq(driver_step(driver, &seq, &n_new, 1, logits), 0, "%s", driver->error.text);
    }
}

Test(logits, agree_across_tiles_and_passes)
{
    struct driver driver;
    int32_t tokens[1300];
    float whole[200], cut[200];
    shuffle_blocks();
    for (int32_t i = 0; i < 1300; i++)
        tokens[i] = i * 7919 % 200;
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &wide), 0, "%s", driver.error.text);
    run_chunks(&driver, tokens, 1300, 1300, whole);
    for (int32_t chunk = 1; chunk < 1300; chunk = chunk * 2 + 1) {
        run_chunks(&driver, tokens, 1300, chunk, cut);
        const double error = relative_error(cut, whole, 200);
        cr_expect(error < TOLERANCE, "chunks of %d: relative error %g", chunk, error);
    }
    driver_close(&driver);
}

/* In one layer a token sees only its window, and positions are relative: without the tokens before
 * the last window the logits are the same. */
Test(logits, know_nothing_of_what_lies_before_the_window)
{
    enum { N = 300, WINDOW = 70 };
    struct ifl_engine_options options = wide;
    struct driver driver;
    int32_t tokens[N];
    float all[200], windowed[200], last[200];
    options.model.n_layers = 1;
    shuffle_blocks();
    for (int32_t i = 0; i < N; i++)
        tokens[i] = i * 7919 % 200;
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &options), 0, "%s", driver.error.text);
    run_chunks(&driver, tokens, N, N, all);
    run_chunks(&driver, tokens + N - WINDOW, WINDOW, WINDOW, last);
    driver_close(&driver);
    options.window_tokens = WINDOW;
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &options), 0, "%s", driver.error.text);
    for (int32_t chunk = 1; chunk <= N; chunk = chunk * 3 + 2) {
        run_chunks(&driver, tokens, N, chunk, windowed);
        const double error = relative_error(windowed, last, 200);
        cr_expect(error < TOLERANCE, "chunks of %d: relative error %g", chunk, error);
    }
    cr_expect(relative_error(windowed, all, 200) > 1e-3, "the window changes nothing");
    driver_close(&driver);
}

Test(logits, come_with_the_likeliest_token)
{
    struct driver driver;
    struct fixture_model f;
    open_fixture(&driver, &f, "qwen3");
    float *logits = calloc((size_t)f.model.n_vocab, sizeof *logits);
    struct driven seq = {f.tokens, 0, blocks[0]};
    const int32_t n_new = 33;
    cr_assert_eq(driver_step(&driver, &seq, &n_new, 1, logits), 0);
    for (int32_t i = 0; i < f.model.n_vocab; i++)
        cr_expect_leq(logits[i], logits[driver.sampled[0]]);
    free(logits);
    driver_close(&driver);
    fixture_model_free(&f);
}

/* ---- random weights ---- */

Test(weights, are_the_same_from_any_number_of_threads)
{
    enum { N = 300001 };
    const struct weight weight = {.role = WEIGHT_GATE, .n_rows = N, .n_columns = 1, .n_numbers = N};
    float *one = calloc(N, sizeof *one), *many = calloc(N, sizeof *many);
    struct ifl_error error;
    struct weight_source source = {.seed = 5, .n_threads = 1};
    cr_assert_eq(weight_fill(&source, &weight, one, &error), 0);
    for (source.n_threads = 2; source.n_threads < 100; source.n_threads *= 3) {
        memset(many, 0xff, N * sizeof *many);
        cr_assert_eq(weight_fill(&source, &weight, many, &error), 0);
        cr_expect_eq(memcmp(one, many, N * sizeof *one), 0, "%d threads", source.n_threads);
    }
    free(one);
    free(many);
}
