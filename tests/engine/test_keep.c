/* What requests keep on the CPU engine, against the published rules on the dense reference: the
 * same positions in each KV head of each layer, and the logits of a decoder that sees these alone.
 *
 * The rules are spelt out here once more, in double precision and without heaps or slots: SnapKV's
 * update_kv (e216ddc; for several query heads a KV head as KVCache-Factory c97f9d7, which ranks by
 * their mean), H2OKVCache_LayerWise (ac75c2a), StartRecentKVCache (2e50426; positions stay). */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dense.h"
#include "run/engine_keep.h"

enum { N = 80, PROMPT = 44, LAYERS = 2, HEADS = 2, TABLE = 40, BLOCK = 4, MAX_CHUNKS = 3 };

static struct driver driver;
static struct fixture_model f;
static struct engine_keep k;
static struct kept_job job;
static uint32_t table[TABLE];

/* The first query that no longer sees a key; 0: all queries behind it see it. */
static int32_t gone_at[LAYERS][HEADS][N];

static bool is_there(const void *context, int32_t layer, int32_t kv_head, int32_t query,
                     int32_t key)
{
    const int32_t at = gone_at[layer][kv_head][key];
    (void)context;
    return at == 0 || query < at;
}

static void start(const struct keep *keep)
{
    fixture_model_load(&f, "qwen3");
    ifl_require(f.n_tokens == N && f.model.n_layers == LAYERS && f.model.n_kv_heads == HEADS);
    ifl_require(f.model.n_q_heads > HEADS);
    const struct ifl_engine_options options = {.model = f.model, .weights_dir = f.dir};
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &options), 0, "%s", driver.error.text);
    engine_keep_create(&k, keep, &f.model, BLOCK);
    memset(gone_at, 0, sizeof gone_at);
    for (uint32_t i = 0; i < TABLE; i++)
        table[i] = i * 211 % 512;
}

static void end(void)
{
    kept_job_finish(&job);
    engine_keep_destroy(&k);
    driver_close(&driver);
    fixture_model_free(&f);
}

/* Computes n_new tokens behind n_context, and gives up what the rule says. */
static void step(int32_t n_context, int32_t n_new, int32_t n_dropped, float *logits)
{
    const struct ifl_request request = {
        .n_prefill = PROMPT, .n_seqs = 1, .stale = {.n_dropped = n_dropped}};
    const struct ifl_work work = {.request = &request,
                                  .n_new = n_new,
                                  .n_context = n_context,
                                  .samples = n_context + n_new >= PROMPT};
    const struct ifl_step_desc desc = {.work = &work, .n_work = 1};
    struct ifl_engine_step asked = {.n_seqs = 1, .n_tokens = n_new};
    struct driven seq = {f.tokens, n_context, table};
    cr_assert_eq(engine_keep_write(&k, &job, &desc, &asked), 0);
    driver.step.slots = asked.slots;
    driver.step.n_slots = asked.n_slots;
    driver.step.n_voters = asked.n_voters;
    driver.step.votes = asked.votes;
    cr_assert_eq(driver_step(&driver, &seq, &n_new, 1, logits), 0, "%s", driver.error.text);
    asked.positions = driver.positions;
    asked.first_token = driver.first_token;
    asked.first_block = driver.first_block;
    asked.block_ids = driver.block_ids;
    const size_t n_keeps = engine_keep_choose(&k, &job, &asked);
    struct ifl_engine_keep keep = {.n_kept = 0};
    if (n_keeps > 0)
        keep = job.keeps[0];
    keep.block_ids = table;
    keep.n_blocks = TABLE;
    driver.step.keeps = &keep;
    driver.step.n_keeps = n_keeps;
    if (n_keeps > 0)
        cr_assert_eq(driver_step(&driver, NULL, NULL, 0, NULL), 0, "%s", driver.error.text);
}

static void compute_prompt(const int32_t *chunks)
{
    for (int32_t i = 0, n = 0; i < MAX_CHUNKS && chunks[i] > 0; n += chunks[i++])
        step(n, chunks[i], 0, NULL);
}

/* ---- the rules once more ---- */

static double vote(const struct dense *dense, int32_t head, int32_t first, int32_t last,
                   int32_t key)
{
    return dense_votes(dense, head / HEADS, head % HEADS, first, last, key);
}

/* Sum of the window's attention, pooled over the kernel. */
static double snapkv_score(const struct dense *dense, int32_t head, int32_t key)
{
    const struct keep *keep = &k.keep;
    const int32_t n_before = PROMPT - keep->window_tokens;
    double sum = 0, most = 0;
    for (int32_t off = -(keep->kernel_tokens / 2); off <= keep->kernel_tokens / 2; off++) {
        if (key + off < 0 || key + off >= n_before)
            continue;
        const double one = vote(dense, head, n_before, PROMPT, key + off);
        sum += one;
        most = fmax(most, one);
    }
    return keep->pooling == KEEP_POOL_MAX ? most : sum / keep->kernel_tokens;
}

static double score(const struct dense *dense, int32_t head, int32_t key)
{
    return k.keep.method == KEEP_SNAPKV ? snapkv_score(dense, head, key)
                                        : vote(dense, head, 0, PROMPT, key);
}

/* True if at least n_others of the tokens before the window have a higher score. */
static bool is_outvoted(const struct dense *dense, int32_t head, int32_t key, int32_t n_others)
{
    const double own = score(dense, head, key);
    int32_t n_higher = 0;
    for (int32_t other = 0; other < PROMPT - k.keep.window_tokens; other++) {
        const double its = score(dense, head, other);
        n_higher += its > own || (its == own && other < key);
    }
    return n_higher >= n_others;
}

static bool stays(const struct dense *dense, int32_t head, int32_t key)
{
    const struct keep *keep = &k.keep;
    if (keep->method == KEEP_STREAMING)
        return key < keep->sink_tokens || key >= PROMPT - (keep->budget_tokens - keep->sink_tokens);
    return key >= PROMPT - keep->window_tokens ||
           !is_outvoted(dense, head, key, keep->budget_tokens - keep->window_tokens);
}

static void give_up_prompt(const struct dense *dense)
{
    for (int32_t head = 0; head < LAYERS * HEADS; head++)
        for (int32_t key = 0; key < PROMPT; key++)
            if (!stays(dense, head, key))
                gone_at[head / HEADS][head % HEADS][key] = PROMPT;
}

/* As the step of token t ends: the lightest of those before the window, or the oldest but for the
 * sinks. */
static void give_up_one(const struct dense *dense, int32_t head, int32_t t)
{
    const struct keep *keep = &k.keep;
    int32_t *gone = gone_at[head / HEADS][head % HEADS], victim = -1;
    double least = INFINITY;
    for (int32_t key = 0; key <= t; key++) {
        const bool streams = keep->method == KEEP_STREAMING;
        if (gone[key] || (streams ? key < keep->sink_tokens : key > t - keep->window_tokens))
            continue;
        const double one = streams ? key : vote(dense, head, 0, t + 1, key);
        if (one < least) {
            least = one;
            victim = key;
        }
    }
    gone[victim] = t + 1;
}

/* ---- comparing ---- */

/* The engine has the positions that the rule keeps for the query behind token t, in any order. */
static void expect_kept(int32_t t)
{
    const struct kept_seq *seq = k.of[0];
    for (int32_t head = 0; head < LAYERS * HEADS; head++) {
        bool has[N] = {false};
        for (int32_t slot = 0; slot < seq->n_slots; slot++)
            has[seq->positions[head * seq->cap + slot]] = true;
        for (int32_t key = 0; key <= t; key++)
            cr_assert_eq(has[key], is_there(NULL, head / HEADS, head % HEADS, t + 1, key),
                         "behind token %d, head %d: token %d is %s", t, head, key,
                         has[key] ? "kept" : "given up");
    }
}

static void expect_logits(const struct dense *dense, const float *logits, int32_t t)
{
    const size_t n_vocab = (size_t)f.model.n_vocab;
    const double error = relative_error(logits, dense->logits + (size_t)t * n_vocab, n_vocab);
    cr_expect(error < 1e-5, "token %d: relative error %g", t, error);
}

static void check(const struct keep *keep, const int32_t *chunks)
{
    struct dense dense;
    start(keep);
    float *logits = malloc((size_t)f.model.n_vocab * sizeof *logits);
    compute_prompt(chunks);
    dense_run(&dense, &f, is_there, NULL);
    give_up_prompt(&dense);
    expect_kept(PROMPT - 1);
    const bool each_step = keep_each_step(keep);
    int32_t n_dropped = PROMPT - keep->budget_tokens;
    for (int32_t t = PROMPT; t < N; t++) {
        step(t, 1, n_dropped, logits);
        dense_free(&dense);
        dense_run(&dense, &f, is_there, NULL);
        expect_logits(&dense, logits, t);
        for (int32_t head = 0; each_step && head < LAYERS * HEADS; head++)
            give_up_one(&dense, head, t);
        n_dropped += each_step;
        expect_kept(t);
    }
    dense_free(&dense);
    free(logits);
    end();
}

static const int32_t whole[MAX_CHUNKS] = {PROMPT};
static const int32_t within_window[MAX_CHUNKS] = {30, 10, 4};

Test(keep, snapkv)
{
    const struct keep mean = {
        .method = KEEP_SNAPKV, .budget_tokens = 20, .window_tokens = 8, .kernel_tokens = 5};
    struct keep most = mean;
    most.pooling = KEEP_POOL_MAX;
    most.kernel_tokens = 7;
    check(&mean, whole);
    check(&mean, within_window);
    check(&most, whole);
}

Test(keep, h2o)
{
    const struct keep keep = {.method = KEEP_H2O, .budget_tokens = 18, .window_tokens = 6};
    check(&keep, whole);
    check(&keep, within_window);
}

Test(keep, streaming_llm)
{
    const struct keep keep = {.method = KEEP_STREAMING, .budget_tokens = 17, .sink_tokens = 3};
    check(&keep, whole);
    check(&keep, within_window);
}
