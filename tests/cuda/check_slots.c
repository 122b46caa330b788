#include "check_slots.h"

#include <stdlib.h>
#include <string.h>

#include "dense.h"
#include "must.h"
#include "verdict.h"

/* Rows as in check_engine.c: bf16 keeps 8 bits. */
static const double TOLERANCE = 1e-2;
enum { N = 80, VOCAB = 64, PROMPT = 40, DROPPED = 12, N_SEQS = 3 };

static struct driver *driver;
static struct fixture_model f;
static uint32_t tables[N_SEQS][20];
static float got[N_SEQS * N * VOCAB], expected[N_SEQS * N * VOCAB];

static void start(const char *name)
{
    fixture_model_load(&f, name);
    ifl_require(f.n_tokens == N && f.model.n_vocab == VOCAB);
    const struct ifl_engine_options options = {.model = f.model,
                                               .weights_dir = f.dir,
                                               .dtype = IFL_DTYPE_BF16,
                                               .max_tokens = N,
                                               .max_step_tokens = 128};
    must(driver, driver_open(driver, &ifl_engine_v1, &options));
    for (uint32_t i = 0; i < N_SEQS * 20; i++)
        tables[i / 20][i % 20] = i * 211 % 512;
}

static void end(void)
{
    driver_close(driver);
    fixture_model_free(&f);
}

/* Behind a decode's one row and a prompt's none, the last 33 of a prompt's. */
static void rows_of_a_pass(const char *name)
{
    const int32_t n_rows[N_SEQS] = {1, 0, 33}, n_new[N_SEQS] = {1, 7, N}, before = 20;
    struct driven seqs[N_SEQS];
    start(name);
    for (int32_t i = 0; i < N_SEQS; i++)
        seqs[i] = (struct driven){f.tokens, 0, tables[i]};
    must(driver, driver_step(driver, seqs, &before, 1, NULL));
    driver->step.n_rows = n_rows;
    must(driver, driver_step(driver, seqs, n_new, N_SEQS, got));
    memcpy(expected, f.logits + (size_t)before * VOCAB, VOCAB * sizeof *expected);
    memcpy(expected + VOCAB, f.logits + (size_t)(N - 33) * VOCAB, 33 * VOCAB * sizeof *expected);
    const double error = relative_error(got, expected, 34 * VOCAB);
    verdict(error < TOLERANCE, "%s, several rows a sequence: error %.1e", name, error);
    bool likeliest = true;
    for (size_t row = 0; row < 34; row++)
        for (size_t i = 0; i < VOCAB; i++)
            likeliest = likeliest &&
                        got[row * VOCAB + i] <= got[row * VOCAB + (size_t)driver->sampled[row]];
    verdict(likeliest, "%s, several rows a sequence: the likeliest tokens", name);
    end();
}

/* ---- slots ---- */

/* The first query that no longer sees a key; 0: none. */
static int32_t gone_at[N];

static bool is_there(const void *context, int32_t layer, int32_t kv_head, int32_t query,
                     int32_t key)
{
    (void)context, (void)layer, (void)kv_head;
    return gone_at[key] == 0 || query < gone_at[key];
}

static void step_in_slots(struct driven *seq, int32_t n_new, int32_t first, int32_t n_slots)
{
    int32_t slots[N];
    for (int32_t i = 0; i < n_new; i++)
        slots[i] = i == 0 ? first : n_slots - n_new + i;
    driver->step.slots = slots;
    driver->step.n_slots = &n_slots;
    driver->step.n_rows = &n_new;
    must(driver, driver_step(driver, seq, &n_new, 1, got + (size_t)seq->n_computed * VOCAB));
}

static void expect_dense(int32_t from, const char *name, const char *what)
{
    struct dense dense;
    dense_run(&dense, &f, is_there, NULL);
    const size_t at = (size_t)from * VOCAB, n = (size_t)(N - from) * VOCAB;
    const double error = relative_error(got + at, dense.logits + at, n);
    verdict(error < TOLERANCE, "%s, %s: error %.1e", name, what, error);
    dense_free(&dense);
}

/* Blocks 2, 5 and 6 of the prompt's ten are dropped, the others copied side by side. */
static void slots_of_compacted(const char *name, int32_t chunk)
{
    static const int32_t kept[] = {0, 1, 3, 4, 7, 8, 9};
    struct ifl_copy copies[7];
    struct driven seq = {0};
    const int32_t prompt = PROMPT;
    start(name);
    seq = (struct driven){f.tokens, 0, tables[0]};
    must(driver, driver_step(driver, &seq, &prompt, 1, NULL));
    for (size_t i = 0; i < 7; i++)
        copies[i] = (struct ifl_copy){tables[0][kept[i]], tables[1][i]};
    driver->step.copies = copies;
    driver->step.n_copies = 7;
    seq.blocks = tables[1];
    while (seq.n_computed < N) {
        const int32_t left = N - seq.n_computed, n_new = left < chunk ? left : chunk;
        const int32_t n_slots = seq.n_computed + n_new - DROPPED;
        step_in_slots(&seq, n_new, n_slots - n_new, n_slots);
    }
    memset(gone_at, 0, sizeof gone_at);
    for (int32_t key = 8; key < 28; key += key == 11 ? 9 : 1)
        gone_at[key] = PROMPT;
    expect_dense(PROMPT, name, chunk == 1 ? "compacted, decodes" : "compacted, chunks");
    end();
}

/* Four sinks and a ring of twenty slots, a chunk at the end. */
static void slots_of_overwritten(const char *name)
{
    enum { BUDGET = 24, RING = 20, CHUNK_FROM = 70 };
    const int32_t budget = BUDGET;
    start(name);
    memset(gone_at, 0, sizeof gone_at);
    struct driven seq = {f.tokens, 0, tables[2]};
    must(driver, driver_step(driver, &seq, &budget, 1, NULL));
    for (int32_t p = BUDGET; p < N; p = seq.n_computed) {
        const int32_t n_new = p < CHUNK_FROM ? 1 : N - p;
        step_in_slots(&seq, n_new, 4 + (p - BUDGET) % RING, BUDGET + n_new - 1);
        gone_at[p - RING] = p;
    }
    expect_dense(BUDGET, name, "overwritten");
    end();
}

void check_slots(struct driver *of)
{
    static const char *const names[] = {"qwen2", "qwen3"};
    driver = of;
    for (size_t i = 0; i < 2; i++) {
        rows_of_a_pass(names[i]);
        slots_of_compacted(names[i], 1);
        slots_of_compacted(names[i], 9);
        slots_of_overwritten(names[i]);
    }
}
