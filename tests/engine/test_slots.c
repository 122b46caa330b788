/* K/V that is dropped, overwritten, voted on and carried away, against the dense reference. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "dense.h"

enum { N = 80, MAX_LAYERS = 2, MAX_HEADS = 4, MAX_VOCAB = 64, TABLE = 20 };
static const double TOLERANCE = 1e-5;

static struct driver driver;
static struct fixture_model f;
static struct dense dense;
static float logits[8 * N * MAX_VOCAB];
static uint32_t tables[8][TABLE];

/* The first query that no longer sees a key; 0: all queries behind it see it. */
static int32_t gone_at[MAX_LAYERS][MAX_HEADS][N];

static bool is_there(const void *context, int32_t layer, int32_t kv_head, int32_t query,
                     int32_t key)
{
    const int32_t at = gone_at[layer][kv_head][key];
    (void)context;
    return at == 0 || query < at;
}

static bool is_in_window(const void *context, int32_t layer, int32_t kv_head, int32_t query,
                         int32_t key)
{
    (void)context, (void)layer, (void)kv_head;
    return key > query - 24;
}

static void drop(int32_t key, int32_t at)
{
    for (int32_t layer = 0; layer < MAX_LAYERS; layer++)
        for (int32_t head = 0; head < MAX_HEADS; head++)
            gone_at[layer][head][key] = at;
}

static void start(const char *name)
{
    fixture_model_load(&f, name);
    const struct ifl_engine_options options = {
        .model = f.model, .weights_dir = f.dir, .n_host_blocks = TABLE};
    ifl_require(f.n_tokens == N && f.model.n_vocab == MAX_VOCAB);
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &options), 0, "%s", driver.error.text);
    memset(gone_at, 0, sizeof gone_at);
    for (uint32_t i = 0; i < 8 * TABLE; i++)
        tables[i / TABLE][i % TABLE] = i * 211 % 512;
}

static void end(void)
{
    dense_free(&dense);
    driver_close(&driver);
    fixture_model_free(&f);
}

/* A step of one sequence that must work; what the driver's step says beforehand stands. */
static void step(struct driven *seq, int32_t n_new)
{
    cr_assert_eq(driver_step(&driver, seq, &n_new, 1, logits), 0, "%s", driver.error.text);
}

/* n_new tokens, each with a row of logits: the first in slot `first`, the others in the last ones.
 */
static void step_in_slots(struct driven *seq, int32_t n_new, int32_t first, int32_t n_slots)
{
    int32_t slots[N];
    for (int32_t i = 0; i < n_new; i++)
        slots[i] = i == 0 ? first : n_slots - n_new + i;
    driver.step.slots = slots;
    driver.step.n_slots = &n_slots;
    driver.step.n_rows = &n_new;
    step(seq, n_new);
}

/* The rows of the last n tokens of `seq`. */
static void expect_rows(const struct driven *seq, int32_t n, const char *what)
{
    for (int32_t i = 0; i < n; i++) {
        const int32_t token = seq->n_computed - n + i;
        const double error = relative_error(logits + (size_t)i * MAX_VOCAB,
                                            dense.logits + (size_t)token * MAX_VOCAB, MAX_VOCAB);
        cr_expect(error < TOLERANCE, "%s, %s, token %d: relative error %g", f.dir, what, token,
                  error);
    }
}

static const char *const plain[] = {"qwen2", "qwen3"};

Test(slots, the_reference_agrees_with_transformers)
{
    for (size_t m = 0; m < 2; m++) {
        start(plain[m]);
        dense_run(&dense, &f, NULL, NULL);
        const double error = relative_error(dense.logits, f.logits, (size_t)N * MAX_VOCAB);
        cr_expect(error < TOLERANCE, "%s: relative error %g", f.dir, error);
        end();
    }
}

/* ---- K/V that goes ---- */

enum { PROMPT = 40, DROPPED = 12 };

/* Blocks 2, 5 and 6 of the prompt's ten are dropped, the others copied side by side. */
static void expect_compacted(int32_t chunk)
{
    static const int32_t kept[] = {0, 1, 3, 4, 7, 8, 9};
    struct ifl_copy copies[7];
    struct driven seq = {f.tokens, 0, tables[0]};
    char what[32];
    step(&seq, PROMPT);
    for (size_t i = 0; i < 7; i++)
        copies[i] = (struct ifl_copy){tables[0][kept[i]], tables[1][i]};
    driver.step.copies = copies;
    driver.step.n_copies = 7;
    seq.blocks = tables[1];
    snprintf(what, sizeof what, "chunks of %d", chunk);
    while (seq.n_computed < N) {
        const int32_t left = N - seq.n_computed, n_new = left < chunk ? left : chunk;
        const int32_t n_slots = seq.n_computed + n_new - DROPPED;
        step_in_slots(&seq, n_new, n_slots - n_new, n_slots);
        expect_rows(&seq, n_new, what);
    }
}

Test(slots, compacted_attend_to_what_is_kept)
{
    static const int32_t chunks[] = {1, 3, 7, 13, 40};
    for (size_t m = 0; m < 2; m++) {
        start(plain[m]);
        for (int32_t block = 2; block < 7; block += block == 2 ? 3 : 1)
            for (int32_t i = 0; i < 4; i++)
                drop(block * 4 + i, PROMPT);
        dense_run(&dense, &f, is_there, NULL);
        for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
            expect_compacted(chunks[i]);
        end();
    }
}

/* StreamingLLM's four sinks, and twenty slots in which each token takes the oldest's. Later chunks
 * begin in such a slot and go on behind the last one. */
Test(slots, overwritten_attend_to_what_is_left)
{
    enum { BUDGET = 24, RING = 20, CHUNKS_FROM = 60 };
    static const int32_t chunks[] = {3, 9, 8};
    for (size_t m = 0; m < 2; m++) {
        start(plain[m]);
        for (int32_t p = BUDGET; p < CHUNKS_FROM; p++)
            drop(p - RING, p);
        for (int32_t p = CHUNKS_FROM, i = 0; i < 3; p += chunks[i++])
            drop(CHUNKS_FROM - RING + i, p);
        dense_run(&dense, &f, is_there, NULL);
        struct driven seq = {f.tokens, 0, tables[0]};
        step(&seq, BUDGET);
        for (int32_t p = BUDGET; p < CHUNKS_FROM; p++) {
            step_in_slots(&seq, 1, 4 + (p - BUDGET) % RING, BUDGET);
            expect_rows(&seq, 1, "overwritten");
        }
        for (int32_t i = 0, n_slots = BUDGET; i < 3; i++) {
            n_slots += chunks[i] - 1;
            step_in_slots(&seq, chunks[i], 4 + (CHUNKS_FROM - BUDGET + i) % RING, n_slots);
            expect_rows(&seq, chunks[i], "overwritten by a chunk's first");
        }
        end();
    }
}

/* ---- votes ---- */

static float votes[8 * MAX_LAYERS * MAX_HEADS * N];

/* Of the last n_voters of the n_slots first tokens; returns where the next sequence's begin. */
static const float *expect_votes(const float *got, int32_t n_slots, int32_t n_voters)
{
    float expected[N];
    for (int32_t layer = 0; layer < f.model.n_layers; layer++)
        for (int32_t head = 0; head < f.model.n_kv_heads; head++, got += n_slots) {
            for (int32_t key = 0; key < n_slots; key++)
                expected[key] =
                    (float)dense_votes(&dense, layer, head, n_slots - n_voters, n_slots, key);
            const double error = relative_error(got, expected, (size_t)n_slots);
            cr_expect(error < TOLERANCE, "%s, %d of %d vote, layer %d, head %d: error %g", f.dir,
                      n_voters, n_slots, layer, head, error);
        }
    return got;
}

Test(slots, votes_are_sums_of_probabilities)
{
    static const char *const names[] = {"qwen2", "mistral"};
    for (size_t m = 0; m < 2; m++) {
        start(names[m]);
        dense_run(&dense, &f, m == 1 ? is_in_window : NULL, NULL);
        struct driven seqs[3] = {
            {f.tokens, 0, tables[0]}, {f.tokens, 0, tables[1]}, {f.tokens, 0, tables[2]}};
        driver.step.n_voters = (const int32_t[]){0, 11, 5};
        driver.step.votes = votes;
        cr_assert_eq(driver_step(&driver, seqs, (const int32_t[]){9, 50, 5}, 3, NULL), 0, "%s",
                     driver.error.text);
        expect_votes(expect_votes(votes, 50, 11), 5, 5);
        driver.step.n_voters = (const int32_t[]){3, 0, 1}; /* few rows: a query at a time */
        driver.step.votes = votes;
        cr_assert_eq(driver_step(&driver, seqs, (const int32_t[]){6, 1, 1}, 3, NULL), 0, "%s",
                     driver.error.text);
        expect_votes(expect_votes(votes, 15, 3), 6, 1);
        end();
    }
}

/* Rows 512 and on are of the next pass: the seventh sequence has voters in both. */
Test(slots, votes_add_up_over_passes)
{
    const int32_t n_new[8] = {N, N, N, N, N, N, N, N}, n_voters[8] = {[6] = 60, [7] = N};
    struct driven seqs[8];
    start("qwen3");
    dense_run(&dense, &f, NULL, NULL);
    for (size_t i = 0; i < 8; i++)
        seqs[i] = (struct driven){f.tokens, 0, tables[i]};
    driver.step.n_voters = n_voters;
    driver.step.votes = votes;
    cr_assert_eq(driver_step(&driver, seqs, n_new, 8, NULL), 0, "%s", driver.error.text);
    expect_votes(expect_votes(votes, N, 60), N, N);
    end();
}

/* What is off leaves every bit as it is: slots that say what positions do, votes beside. */
Test(slots, and_votes_change_no_bit)
{
    static float without[N * MAX_VOCAB];
    const int32_t n = 33;
    start("qwen3");
    dense = (struct dense){0};
    for (int32_t chunk = 1; chunk <= n; chunk += 16) {
        struct driven seq = {f.tokens, 0, tables[0]}, same = {f.tokens, 0, tables[1]};
        driver.step.n_rows = &chunk;
        step(&seq, chunk);
        memcpy(without, logits, sizeof without);
        driver.step.n_voters = &chunk;
        driver.step.votes = votes;
        step_in_slots(&same, chunk, 0, chunk);
        cr_expect_eq(memcmp(without, logits, (size_t)chunk * MAX_VOCAB * sizeof *logits), 0);
    }
    end();
}

/* ---- what each head keeps ---- */

enum { KEPT = 22 };

/* Each head of each layer keeps its own 22 of the prompt's 40: rising, or its last ones in the
 * places of those that go. */
static void choose(int32_t kept[KEPT], int32_t layer, int32_t head, bool rising)
{
    int32_t n = 0, last = PROMPT;
    bool keeps[PROMPT];
    for (int32_t key = 0; key < PROMPT; key++) {
        const int32_t left = PROMPT - key, wanted = KEPT - n;
        keeps[key] = (key * 7 + layer * 5 + head * 3) % left < wanted;
        n += keeps[key];
        if (!keeps[key])
            gone_at[layer][head][key] = PROMPT;
    }
    ifl_require(n == KEPT);
    for (int32_t i = 0, key = 0; i < KEPT; i++, key++) {
        if (rising)
            while (!keeps[key])
                key++;
        kept[i] = key;
        if (rising || keeps[i])
            continue;
        while (!keeps[--last])
            ;
        kept[i] = last;
    }
}

static void expect_kept(bool rising)
{
    static const int32_t chunks[] = {1, 2, 12, 1, 24};
    int32_t kept[MAX_LAYERS][2][KEPT];
    memset(gone_at, 0, sizeof gone_at);
    for (int32_t layer = 0; layer < f.model.n_layers; layer++)
        for (int32_t head = 0; head < 2; head++)
            choose(kept[layer][head], layer, head, rising);
    dense_run(&dense, &f, is_there, NULL);
    const struct ifl_engine_keep keep = {tables[0], PROMPT / 4, KEPT, kept[0][0]};
    struct driven seq = {f.tokens, 0, tables[0]};
    step(&seq, PROMPT);
    driver.step.keeps = &keep;
    driver.step.n_keeps = 1;
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        const int32_t at = seq.n_computed - PROMPT + KEPT;
        step_in_slots(&seq, chunks[i], at, at + chunks[i]);
        expect_rows(&seq, chunks[i], rising ? "kept in order" : "kept in place");
    }
    dense_free(&dense);
}

Test(slots, of_each_head_are_kept)
{
    for (size_t m = 0; m < 2; m++) {
        start(plain[m]);
        ifl_require(f.model.n_kv_heads == 2 && f.model.n_layers <= MAX_LAYERS);
        expect_kept(true);
        expect_kept(false);
        dense = (struct dense){0};
        end();
    }
}

/* ---- blocks carried away ---- */

static void carry(struct driver *from, enum ifl_engine_pool from_pool, uint32_t from_block,
                  struct driver *to, enum ifl_engine_pool to_pool, uint32_t to_block)
{
    void *bytes = malloc(from->engine->block_bytes(from->self));
    cr_assert_eq(from->engine->read_block(from->self, from_pool, from_block, bytes, &from->error),
                 0);
    cr_assert_eq(to->engine->write_block(to->self, to_pool, to_block, bytes, &to->error), 0);
    free(bytes);
}

/* To the device pool of another engine, and to its host pool, from where they are swapped in. */
Test(slots, carried_to_another_engine_give_equal_logits)
{
    enum { N_CARRIED = PROMPT / 4 };
    static struct driver other;
    static float here[MAX_VOCAB];
    struct ifl_copy ins[N_CARRIED];
    start("qwen2");
    dense = (struct dense){0};
    cr_assert_eq(driver_open(&other, &ifl_engine_v1, &driver.options), 0, "%s", other.error.text);
    struct driven seq = {f.tokens, 0, tables[0]};
    step(&seq, PROMPT);
    for (uint32_t i = 0; i < N_CARRIED; i++) {
        carry(&driver, IFL_DEVICE_POOL, tables[0][i], &other, IFL_DEVICE_POOL, tables[3][i]);
        carry(&driver, IFL_DEVICE_POOL, tables[0][i], &other, IFL_HOST_POOL, N_CARRIED - i);
        ins[i] = (struct ifl_copy){N_CARRIED - i, tables[5][i]};
    }
    step(&seq, 1);
    memcpy(here, logits, sizeof here);
    struct driven there = {f.tokens, PROMPT, tables[3]}, swapped = {f.tokens, PROMPT, tables[5]};
    cr_assert_eq(driver_step(&other, &there, &(int32_t){1}, 1, logits), 0, "%s", other.error.text);
    cr_expect_eq(memcmp(here, logits, sizeof here), 0, "written to the device pool");
    other.step.ins = ins;
    other.step.n_ins = N_CARRIED;
    cr_assert_eq(driver_step(&other, &swapped, &(int32_t){1}, 1, logits), 0, "%s",
                 other.error.text);
    cr_expect_eq(memcmp(here, logits, sizeof here), 0, "written to the host pool");
    driver_close(&other);
    end();
}
