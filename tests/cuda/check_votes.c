#include "check_votes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dense.h"
#include "must.h"
#include "verdict.h"

enum { N = 80, PROMPT = 60, MAX_HEADS = 8, WINDOW = 8, BUDGET = 24, KERNEL = 5, BLOCK = 4 };

static struct driver *driver;
static struct fixture_model f;
static struct dense dense;
static int32_t n_heads; /* KV heads of all layers */
static uint32_t tables[3][N / BLOCK];
static float votes[3][MAX_HEADS * N], logits[N * 64];

static void start(const char *name, enum ifl_engine_dtype dtype, enum ifl_engine_dtype kv_dtype)
{
    fixture_model_load(&f, name);
    n_heads = f.model.n_layers * f.model.n_kv_heads;
    ifl_require(f.n_tokens == N && f.model.n_vocab == 64 && n_heads <= MAX_HEADS);
    const struct ifl_engine_options options = {.model = f.model,
                                               .weights_dir = f.dir,
                                               .dtype = dtype,
                                               .kv_dtype = kv_dtype,
                                               .block_tokens = BLOCK,
                                               .n_blocks = 3 * N / BLOCK,
                                               .max_tokens = N,
                                               .max_step_tokens = 3 * N};
    must(driver, driver_open(driver, &ifl_engine_v1, &options));
    for (uint32_t i = 0; i < 3 * N / BLOCK; i++)
        tables[i / (N / BLOCK)][i % (N / BLOCK)] = i * 7 % (3 * N / BLOCK);
}

static void end(void)
{
    driver_close(driver);
    fixture_model_free(&f);
}

/* Votes of rows [first, end) on n_slots slots, as the reference has them. */
static void expect(float *expected, int32_t first, int32_t end_row, int32_t n_slots)
{
    for (int32_t head = 0; head < n_heads; head++)
        for (int32_t key = 0; key < n_slots; key++)
            *expected++ = (float)dense_votes(&dense, head / f.model.n_kv_heads,
                                             head % f.model.n_kv_heads, first, end_row, key);
}

/* Three sequences in each step, at different places, and with different numbers of voters: all new
 * tokens of the first, the last ones of the second, none of the third. */
static void votes_are_counted(const char *name, double tolerance, const char *how)
{
    static const int32_t paces[][3] = {{33, 1, 5}, {1, 40, 7}, {1, 1, 1}, {17, 1, 1}, {1, 20, 1}};
    struct driven seqs[3];
    static float expected[5 * 2 * MAX_HEADS * N], heard[5 * 2 * MAX_HEADS * N];
    double worst = 0;
    size_t n_heard = 0;
    for (int32_t i = 0; i < 3; i++)
        seqs[i] = (struct driven){f.tokens, 0, tables[i]};
    for (size_t round = 0; round < sizeof paces / sizeof *paces; round++) {
        const int32_t *n_new = paces[round];
        const int32_t n_voters[3] = {n_new[0], n_new[1] < 6 ? n_new[1] : 6, 0};
        size_t n = 0;
        for (int32_t i = 0; i < 2; i++) {
            const int32_t n_slots = seqs[i].n_computed + n_new[i];
            expect(expected + n_heard + n, n_slots - n_voters[i], n_slots, n_slots);
            n += (size_t)n_heads * (size_t)n_slots;
        }
        driver->step.n_voters = n_voters;
        driver->step.votes = votes[0];
        memset(votes, 0xff, sizeof votes);
        must(driver, driver_step(driver, seqs, n_new, 3, logits));
        worst = fmax(worst, relative_error(votes[0], expected + n_heard, n));
        memcpy(heard + n_heard, votes[0], n * sizeof *heard);
        n_heard += n;
    }
    const double error = relative_error(heard, expected, n_heard);
    verdict(error < tolerance && worst < 2 * tolerance && n_heard > 1000,
            "%s, %s: %zu votes, error %.1e, of a step at most %.1e", name, how, n_heard, error,
            worst);
}

/* ---- what SnapKV keeps ---- */

/* Of the tokens before the window those with the highest scores, pooled over neighbours; of equal
 * ones the earlier. */
static void choose(const double *score, bool *kept)
{
    for (int32_t i = 0; i < PROMPT - WINDOW; i++) {
        int32_t n_higher = 0;
        for (int32_t k = 0; k < PROMPT - WINDOW; k++)
            n_higher += score[k] > score[i] || (score[k] == score[i] && k < i);
        kept[i] = n_higher < BUDGET - WINDOW;
    }
}

static void pool(const float *heard, double *score)
{
    for (int32_t i = 0; i < PROMPT - WINDOW; i++) {
        score[i] = 0;
        for (int32_t k = i - KERNEL / 2; k <= i + KERNEL / 2; k++)
            score[i] += k >= 0 && k < PROMPT - WINDOW ? (double)heard[k] : 0;
    }
}

/* By the engine's votes and by the reference's. A token that one keeps and the other does not has
 * nearly the score of the last one that is kept. */
static void positions_are_kept(const char *name, double tolerance, const char *how)
{
    static float expected[MAX_HEADS * N];
    struct driven seq = {f.tokens, 0, tables[1]};
    const int32_t prompt = PROMPT, window = WINDOW;
    int32_t n_same = 0, n_apart = 0;
    driver->step.n_voters = &window;
    driver->step.votes = votes[0];
    must(driver, driver_step(driver, &seq, &prompt, 1, NULL));
    expect(expected, PROMPT - WINDOW, PROMPT, PROMPT);
    for (int32_t head = 0; head < n_heads; head++) {
        bool by_engine[PROMPT], by_reference[PROMPT];
        double heard[PROMPT], score[PROMPT], last = INFINITY;
        pool(votes[0] + (size_t)head * PROMPT, heard);
        pool(expected + (size_t)head * PROMPT, score);
        choose(heard, by_engine);
        choose(score, by_reference);
        for (int32_t i = 0; i < PROMPT - WINDOW; i++)
            last = by_reference[i] ? fmin(last, score[i]) : last;
        for (int32_t i = 0; i < PROMPT - WINDOW; i++) {
            n_same += by_engine[i] && by_reference[i];
            n_apart += by_engine[i] != by_reference[i] && fabs(score[i] - last) > tolerance * last;
        }
    }
    verdict(n_apart == 0 && n_same >= n_heads * (BUDGET - WINDOW) - 2,
            "%s, %s: %d of %d positions are the reference's, %d others by more than rounding", name,
            how, n_same, n_heads * (BUDGET - WINDOW), n_apart);
}

/* ---- the gather ---- */

static char *read_table(const uint32_t *table, size_t n_bytes)
{
    char *bytes = calloc(N / BLOCK, n_bytes);
    ifl_require(bytes);
    for (size_t i = 0; i < N / BLOCK; i++)
        must(driver, driver->engine->read_block(driver->self, IFL_DEVICE_POOL, table[i],
                                                bytes + i * n_bytes, &driver->error));
    return bytes;
}

/* Bytes of a slot of a head, K or V, in what read_table returned. */
static size_t row_at(int32_t layer, int32_t k_or_v, int32_t kv_head, int32_t slot, size_t n_bytes)
{
    const struct ifl_engine_model *m = &f.model;
    const size_t row_bytes =
        n_bytes / (size_t)(2 * m->n_layers * m->n_kv_heads * BLOCK); /* of a head's width */
    const size_t head = (size_t)((layer * 2 + k_or_v) * m->n_kv_heads + kv_head);
    return (size_t)(slot / BLOCK) * n_bytes + (head * BLOCK + (size_t)(slot % BLOCK)) * row_bytes;
}

/* Each head keeps others; the bits are those of the slots that are kept. One table keeps few, the
 * other all but one, with a token of the end in the place of one before it. */
static void slots_are_kept(const char *name, const char *how)
{
    enum { FEW = 19, MANY = PROMPT - 1 };
    static int32_t kept[2][MAX_HEADS * N];
    const int32_t prompt[2] = {PROMPT, PROMPT};
    struct driven seqs[2] = {{f.tokens, 0, tables[0]}, {f.tokens, 0, tables[2]}};
    must(driver, driver_step(driver, seqs, prompt, 2, NULL));
    const size_t n_bytes = driver->engine->block_bytes(driver->self);
    const struct ifl_engine_keep keeps[2] = {{tables[0], N / BLOCK, FEW, kept[0]},
                                             {tables[2], N / BLOCK, MANY, kept[1]}};
    for (int32_t head = 0; head < n_heads; head++) {
        for (int32_t i = 0; i < FEW; i++)
            kept[0][head * FEW + i] = i + (i > 3) * (head + 1) + (i > 9) * 29;
        for (int32_t i = 0; i < MANY; i++)
            kept[1][head * MANY + i] = i == 11 + head ? PROMPT - 1 : i;
    }
    char *before[2], *after[2];
    for (size_t t = 0; t < 2; t++)
        before[t] = read_table(keeps[t].block_ids, n_bytes);
    driver->step = (struct ifl_engine_step){.keeps = keeps, .n_keeps = 2};
    must(driver, driver_step(driver, NULL, NULL, 0, NULL));
    bool ok = true;
    for (size_t t = 0; t < 2; t++) {
        after[t] = read_table(keeps[t].block_ids, n_bytes);
        const size_t row_bytes = row_at(0, 0, 0, 1, n_bytes);
        for (int32_t row = 0; row < 2 * n_heads * keeps[t].n_kept; row++) {
            const int32_t k_or_v = row % 2, slot = row / 2 % keeps[t].n_kept;
            const int32_t head = row / 2 / keeps[t].n_kept;
            const int32_t layer = head / f.model.n_kv_heads, kv_head = head % f.model.n_kv_heads;
            const int32_t from = keeps[t].kept[head * keeps[t].n_kept + slot];
            ok = ok &&
                 memcmp(after[t] + row_at(layer, k_or_v, kv_head, slot, n_bytes),
                        before[t] + row_at(layer, k_or_v, kv_head, from, n_bytes), row_bytes) == 0;
        }
        free(before[t]);
        free(after[t]);
    }
    verdict(ok, "%s, %s: slots are kept bit for bit", name, how);
    const struct ifl_engine_keep twice[2] = {keeps[1], keeps[1]};
    struct ifl_engine_keep many[8];
    for (size_t i = 0; i < 8; i++)
        many[i] = twice[i % 2];
    driver->step = (struct ifl_engine_step){.keeps = many, .n_keeps = 8};
    verdict(driver_step(driver, NULL, NULL, 0, NULL) == IFL_E_DEVICE, "refused: %s",
            driver->error.text);
}

/* Tolerances are those of logits: over all votes, and twice as much of a step. */
void check_votes(struct driver *of)
{
    static const char *const names[] = {"qwen2", "qwen3"};
    static const struct {
        enum ifl_engine_dtype dtype, kv_dtype;
        double tolerance;
        const char *how;
    } kinds[] = {{IFL_DTYPE_BF16, IFL_DTYPE_AUTO, 1e-2, "bf16"},
                 {IFL_DTYPE_FP16, IFL_DTYPE_AUTO, 2e-3, "fp16"},
                 {IFL_DTYPE_FP16, IFL_DTYPE_FP8, 3e-2, "fp8"}};
    driver = of;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            start(names[i], kinds[k].dtype, kinds[k].kv_dtype);
            dense_run(&dense, &f, NULL, NULL);
            votes_are_counted(names[i], kinds[k].tolerance, kinds[k].how);
            if (kinds[k].kv_dtype == IFL_DTYPE_AUTO)
                positions_are_kept(names[i], kinds[k].tolerance, kinds[k].how);
            slots_are_kept(names[i], kinds[k].how);
            dense_free(&dense);
            end();
        }
}
