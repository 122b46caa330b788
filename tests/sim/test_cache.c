/* Prefix caches against known results: a shared prefix counted by hand, the hits of published
 * traces, and a theorem. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/random.h"

#include "dice.h"
#include "fixture.h"

static void set_up(struct fixture *f, enum prefix_cache cache, int32_t block_tokens,
                   int32_t n_blocks)
{
    *f = (struct fixture){.limits = {.block_tokens = block_tokens,
                                     .n_blocks = n_blocks,
                                     .max_model_tokens = 1 << 20,
                                     .n_clients = 1},
                          .linear = {.step_s = 0.01},
                          .prefix_cache = cache};
    fixture_vllm(f, "{max_seqs: 128, max_batched_tokens: 1000000}", NULL);
    fixture_module(f, IFL_ADMIT, "prompt-fits", "{watermark_frac: 0}");
    fixture_module(f, IFL_EVICT, "lru", NULL);
}

static void must_fly(struct fixture *f)
{
    struct ifl_error error = {0};
    cr_assert_eq(fixture_fly(f, &error), 0, "%s", error.text);
    cr_assert_eq(f->complaint[0], '\0', "%s", f->complaint);
    for (size_t i = 0; i < f->capture.n_requests; i++)
        cr_assert_eq(f->capture.requests[i].status, IFL_FINISHED);
}

static int64_t cached_tokens(const struct fixture *f)
{
    int64_t n = 0;
    for (size_t i = 0; i < f->capture.n_requests; i++)
        n += f->capture.requests[i].cached_tokens;
    return n;
}

/* ---- a hundred requests with a prefix of 1000 tokens ---- */

enum { N_SHARING = 100, PREFIX_TOKENS = 1000, BLOCK_TOKENS = 16 };

/* Blocks in use when all requests run; the first computes the prefix before the others arrive. */
static int32_t blocks_in_use(enum prefix_cache cache)
{
    struct fixture f;
    int32_t most = 0;
    set_up(&f, cache, BLOCK_TOKENS, 10000);
    f.check_blocks = f.capture.keep_steps = true;
    fixture_trace(&f, N_SHARING);
    f.trace.prefix_group = calloc(N_SHARING, sizeof *f.trace.prefix_group);
    f.trace.prefix_tokens = calloc(N_SHARING, sizeof *f.trace.prefix_tokens);
    for (size_t i = 0; i < N_SHARING; i++) {
        f.trace.arrival_ns[i] = i > 0 ? 20000000 : 0;
        f.trace.n_prompt[i] = PREFIX_TOKENS + 8;
        f.trace.n_output[i] = 30;
        f.trace.prefix_group[i] = 1;
        f.trace.prefix_tokens[i] = PREFIX_TOKENS;
    }
    must_fly(&f);
    for (size_t i = 0; i < f.capture.n_steps; i++)
        if (f.capture.steps[i].kv_used_blocks > most)
            most = f.capture.steps[i].kv_used_blocks;
    fixture_free(&f);
    return most;
}

Test(cache, a_shared_prefix_is_held_once)
{
    const int32_t n_full = PREFIX_TOKENS / BLOCK_TOKENS; /* blocks of the prefix, a request */
    const int32_t apart = blocks_in_use(PREFIX_CACHE_NONE);
    cr_expect_eq(apart - blocks_in_use(PREFIX_CACHE_HASH), (N_SHARING - 1) * n_full,
                 "99 of 100 copies are saved");
    cr_expect_eq(apart - blocks_in_use(PREFIX_CACHE_RADIX), (N_SHARING - 1) * n_full);
}

/* ---- published traces, with unlimited memory ---- */

/* Full blocks that an earlier prompt had; at least one token of each prompt is left to compute. */
static int64_t full_blocks_seen(const struct ifl_trace *trace)
{
    uint64_t last_id = 0;
    int64_t n = 0;
    for (size_t i = 0; i < trace->hash_at[trace->n]; i++)
        last_id = trace->hash_id[i] > last_id ? trace->hash_id[i] : last_id;
    bool *seen = calloc(last_id + 1, sizeof *seen);
    for (size_t i = 0; i < trace->n; i++) {
        const uint64_t *ids = &trace->hash_id[trace->hash_at[i]];
        const int32_t n_full = trace->n_prompt[i] / trace->hash_block_tokens;
        const int32_t most = (trace->n_prompt[i] - 1) / trace->hash_block_tokens;
        for (int32_t k = 0; k < most && seen[ids[k]]; k++)
            n++;
        for (int32_t k = 0; k < n_full; k++)
            seen[ids[k]] = true;
    }
    free(seen);
    return n;
}

/* Flies one request at a time, of one output token, so that all earlier prompts are computed. */
static int64_t blocks_hit(const char *path, enum prefix_cache cache, bool whole, int64_t *expected)
{
    struct fixture f;
    struct ifl_error error;
    set_up(&f, cache, 512, 300000);
    cr_assert_eq(ifl_trace_read(&(struct ifl_trace_file){path, "auto", 0}, &(struct ifl_notes){0},
                                &f.trace, &error),
                 0);
    memset(f.trace.arrival_ns, 0, f.trace.n * sizeof *f.trace.arrival_ns);
    f.concurrency = 1;
    for (size_t i = 0; i < f.trace.n; i++) {
        const size_t n_ids = f.trace.hash_at[i + 1] - f.trace.hash_at[i];
        f.trace.n_output[i] = 1;
        if (whole)
            f.trace.n_prompt[i] = (int32_t)n_ids * 512 + 1;
    }
    if (expected)
        *expected = full_blocks_seen(&f.trace);
    must_fly(&f);
    const int64_t n = cached_tokens(&f);
    cr_expect_eq(n % 512, 0);
    fixture_free(&f);
    return n / 512;
}

/* Qin et al., Mooncake, FAST 2025: ids seen before, the partial last one counted as a block. */
Test(cache, finds_what_the_published_traces_share)
{
    static const char *const conversation = "traces/data/mooncake-conversation.jsonl.gz";
    static const char *const synthetic = "traces/data/mooncake-synthetic.jsonl.gz";
    cr_expect_eq(blocks_hit(conversation, PREFIX_CACHE_HASH, true, NULL), 105710);
    cr_expect_eq(blocks_hit(synthetic, PREFIX_CACHE_HASH, true, NULL), 77953);
    cr_expect_eq(blocks_hit(conversation, PREFIX_CACHE_RADIX, true, NULL), 105710);
    cr_expect_eq(blocks_hit(synthetic, PREFIX_CACHE_RADIX, true, NULL), 77953);
}

Test(cache, finds_the_full_blocks_of_real_lengths)
{
    int64_t expected;
    const int64_t found = blocks_hit("traces/data/mooncake-conversation.jsonl.gz",
                                     PREFIX_CACHE_HASH, false, &expected);
    cr_expect(found == expected && found < 105710);
}

/* ---- conversations ---- */

/* A turn of 160 tokens, its answer of 160, and the next turn of 352. */
struct talk {
    enum prefix_cache cache;
    int32_t block_tokens;
    int32_t prefix_tokens[2]; /* in the conversation's stream */
    int32_t n_samples;        /* of the first turn */
    int32_t n_output;
    uint32_t sessions[2], groups[2];
    int32_t found; /* cached tokens of the second turn */
};

/* The same conversation, described by one hash id per token. */
static void say_by_ids(struct ifl_trace *trace)
{
    trace->hash_block_tokens = 1;
    trace->hash_at = calloc(3, sizeof *trace->hash_at);
    trace->hash_id = calloc(2 * 352, sizeof *trace->hash_id);
    for (int i = 0; i < 2; i++) {
        trace->hash_at[i + 1] = trace->hash_at[i];
        for (int32_t k = 0; k < trace->prefix_tokens[i]; k++)
            trace->hash_id[trace->hash_at[i + 1]++] = trace->prefix_group[i] * 1000 + (uint32_t)k;
        trace->prefix_group[i] = 0;
        trace->prefix_tokens[i] = 0;
    }
}

static void expect_found(const struct talk *talk, bool by_ids)
{
    struct fixture f;
    struct ifl_error error = {0};
    set_up(&f, talk->cache, talk->block_tokens, 10000);
    f.check_blocks = true;
    f.max_samples = 2;
    fixture_trace(&f, 2);
    f.trace.session = calloc(2, sizeof *f.trace.session);
    f.trace.think_ns = calloc(2, sizeof *f.trace.think_ns);
    f.trace.samples = calloc(2, sizeof *f.trace.samples);
    f.trace.prefix_group = calloc(2, sizeof *f.trace.prefix_group);
    f.trace.prefix_tokens = calloc(2, sizeof *f.trace.prefix_tokens);
    for (int i = 0; i < 2; i++) {
        f.trace.n_prompt[i] = i == 0 ? 160 : 352;
        f.trace.n_output[i] = i == 0 ? talk->n_output : 1;
        f.trace.samples[i] = i == 0 ? talk->n_samples : 1;
        f.trace.arrival_ns[i] =
            i * 10000000000; /* unless the turn waits for the end of the first */
        f.trace.think_ns[i] = talk->sessions[0] == talk->sessions[1] ? 500000000 : -1;
        f.trace.session[i] = talk->sessions[i];
        f.trace.prefix_group[i] = talk->groups[i];
        f.trace.prefix_tokens[i] = talk->prefix_tokens[i];
    }
    if (by_ids)
        say_by_ids(&f.trace);
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    cr_assert_eq(f.complaint[0], '\0', "%s", f.complaint);
    cr_assert_eq(f.capture.requests[1].status, IFL_FINISHED);
    cr_expect_eq(f.capture.requests[1].cached_tokens, talk->found, "%d found, expected %d",
                 f.capture.requests[1].cached_tokens, talk->found);
    fixture_free(&f);
}

/* vLLM hashes full blocks of generated tokens (kv_cache_manager.py, allocate_slots). SGLang inserts
 * all computed tokens (radix_cache.py, cache_finished_req). The last token is never computed. */
Test(cache, the_next_turn_finds_the_answer)
{
    const struct talk talks[] = {
        {PREFIX_CACHE_HASH, 16, {160, 352}, 1, 160, {1, 1}, {1, 1}, 304},
        {PREFIX_CACHE_RADIX, 1, {160, 352}, 1, 160, {1, 1}, {1, 1}, 319},
        /* the next turn repeats a part of the answer */
        {PREFIX_CACHE_HASH, 16, {160, 200}, 1, 160, {1, 1}, {1, 1}, 192},
        {PREFIX_CACHE_RADIX, 1, {160, 200}, 1, 160, {1, 1}, {1, 1}, 200},
        /* the next turn repeats a part of the prompt */
        {PREFIX_CACHE_RADIX, 1, {160, 100}, 1, 160, {1, 1}, {1, 1}, 100},
        /* the first prompt was only in part of the stream */
        {PREFIX_CACHE_RADIX, 1, {150, 352}, 1, 160, {1, 1}, {1, 1}, 150},
        /* several answers: the trace does not tell which one the next turn repeats */
        {PREFIX_CACHE_HASH, 16, {160, 352}, 2, 160, {1, 1}, {1, 1}, 160},
        /* a common prefix without a common session is no conversation */
        {PREFIX_CACHE_RADIX, 1, {160, 352}, 1, 160, {1, 2}, {1, 1}, 160},
        {PREFIX_CACHE_RADIX, 1, {160, 352}, 1, 160, {0, 0}, {1, 1}, 160},
        {PREFIX_CACHE_RADIX, 1, {160, 352}, 1, 160, {1, 1}, {1, 2}, 0},
        /* the first was rejected: there is no answer */
        {PREFIX_CACHE_RADIX, 1, {160, 352}, 1, 1 << 20, {1, 1}, {1, 1}, 0},
    };
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++) {
        expect_found(&talks[i], false);
        expect_found(&talks[i], true);
    }
}

/* ---- token ids ---- */

/* Five prompts of 40 tokens. The second begins with 25 tokens of the first; the third has all but
 * the first token; the fourth has no ids; the fifth equals the first, and its last token is
 * computed. */
Test(cache, finds_the_tokens_that_prompts_begin_with)
{
    static const int32_t found[][5] = {
        [PREFIX_CACHE_HASH] = {0, 16, 0, 0, 32}, [PREFIX_CACHE_RADIX] = {0, 25, 0, 0, 39}};
    for (enum prefix_cache cache = PREFIX_CACHE_HASH; cache <= PREFIX_CACHE_RADIX; cache++) {
        struct fixture f;
        struct ifl_error error;
        set_up(&f, cache, cache == PREFIX_CACHE_HASH ? 16 : 1, 10000);
        cr_assert_eq(ifl_trace_read(
                         &(struct ifl_trace_file){"tests/traces/fixtures/token-ids.csv", "auto", 0},
                         &(struct ifl_notes){0}, &f.trace, &error),
                     0);
        f.concurrency = 1;
        f.check_blocks = true;
        must_fly(&f);
        for (size_t i = 0; i < f.trace.n; i++)
            cr_expect_eq(f.capture.requests[i].cached_tokens, found[cache][i]);
        fixture_free(&f);
    }
}

/* ---- SGLang's theorem ---- */

/* Zheng et al., SGLang, NeurIPS 2024, theorem 3.1: with a cache at least as large as the longest
 * request, depth-first order computes every edge of the radix tree of the prompts once. */

enum { MAX_PROMPTS = 40, MAX_LENGTH = 64 };

struct forest {
    struct dice dice;
    uint64_t n_ids;
    struct ifl_trace *trace;
    uint64_t path[MAX_LENGTH];
    int32_t n_edge_tokens, longest;
};

/* A prompt is a path from the root and one token of its own. */
static void add_prompt(struct forest *forest, int32_t length)
{
    struct ifl_trace *trace = forest->trace;
    const size_t i = trace->n++;
    trace->n_prompt[i] = length + 1;
    trace->n_output[i] = 1;
    memcpy(trace->hash_id + trace->hash_at[i], forest->path, (size_t)length * sizeof *forest->path);
    trace->hash_at[i + 1] = trace->hash_at[i] + (size_t)length;
    forest->n_edge_tokens++;
    forest->longest = length + 1 > forest->longest ? length + 1 : forest->longest;
}

/* Depth first: an edge of some tokens, prompts that end here, and the edges below. */
static void grow(struct forest *forest, int32_t length, int depth)
{
    const int32_t edge = roll(&forest->dice, 1, 8);
    for (int32_t i = 0; i < edge; i++)
        forest->path[length++] = forest->n_ids++;
    forest->n_edge_tokens += edge;
    bool used = false;
    for (int32_t n = roll(&forest->dice, 0, 2); n > 0 && forest->trace->n < MAX_PROMPTS; n--) {
        add_prompt(forest, length);
        used = true;
    }
    for (int32_t n = depth < 6 ? roll(&forest->dice, 0, 3) : 0;
         n > 0 && forest->trace->n < MAX_PROMPTS - 8; n--) {
        grow(forest, length, depth + 1);
        used = true;
    }
    if (!used)
        add_prompt(forest, length);
}

static void shuffle(struct forest *forest)
{
    struct ifl_trace *trace = forest->trace;
    uint64_t *ids = calloc(MAX_PROMPTS * MAX_LENGTH, sizeof *ids);
    size_t order[MAX_PROMPTS], n = 0;
    for (size_t i = 0; i < trace->n; i++) {
        const size_t k = (size_t)roll(&forest->dice, 0, (int32_t)i);
        order[i] = order[k];
        order[k] = i;
    }
    size_t at[MAX_PROMPTS + 1] = {0};
    int32_t n_prompt[MAX_PROMPTS];
    for (size_t i = 0; i < trace->n; i++) {
        for (size_t k = trace->hash_at[order[i]]; k < trace->hash_at[order[i] + 1]; k++)
            ids[n++] = trace->hash_id[k];
        at[i + 1] = n;
        n_prompt[i] = trace->n_prompt[order[i]];
    }
    memcpy(trace->hash_at, at, (trace->n + 1) * sizeof *at);
    memcpy(trace->n_prompt, n_prompt, trace->n * sizeof *n_prompt);
    free(trace->hash_id);
    trace->hash_id = ids;
}

static void plant(struct forest *forest, struct fixture *f, bool shuffled)
{
    fixture_trace(f, MAX_PROMPTS);
    f->trace.hash_at = calloc(MAX_PROMPTS + 1, sizeof *f->trace.hash_at);
    f->trace.hash_id = calloc(MAX_PROMPTS * MAX_LENGTH, sizeof *f->trace.hash_id);
    f->trace.hash_block_tokens = 1;
    f->trace.n = 0;
    forest->trace = &f->trace;
    while (f->trace.n < MAX_PROMPTS / 2)
        grow(forest, 0, 0);
    if (shuffled)
        shuffle(forest);
}

/* Tokens computed beyond one for each token of an edge. */
static int64_t computed_again(uint64_t seed, bool shuffled)
{
    struct fixture f;
    struct forest forest = {.dice = {seed, 0}};
    int64_t n_prompt = 0;
    set_up(&f, PREFIX_CACHE_RADIX, 1, 1);
    plant(&forest, &f, shuffled);
    f.limits.n_blocks = forest.longest;
    f.concurrency = 1;
    f.check_blocks = true;
    for (size_t i = 0; i < f.trace.n; i++)
        n_prompt += f.trace.n_prompt[i];
    must_fly(&f);
    const int64_t n_computed = n_prompt - cached_tokens(&f);
    fixture_free(&f);
    return n_computed - forest.n_edge_tokens;
}

Test(cache, depth_first_order_computes_every_edge_once)
{
    int64_t in_any_order = 0;
    for (uint64_t seed = 0; seed < 500; seed++) {
        const int64_t again = computed_again(seed, false);
        cr_assert_eq(again, 0, "seed %llu: %lld tokens twice", (unsigned long long)seed,
                     (long long)again);
        in_any_order += computed_again(seed, true);
    }
    cr_expect_gt(in_any_order, 500 * 10, "another order must lose something");
}

/* ---- blocks that stand for themselves, and in runs ---- */

enum { N_CROWD = 30 };

/* A pool for a few requests, many of which end at the same time. Some prompts begin alike, others
 * are their own: no lookup asks for their blocks. */
static void crowd(struct fixture *f, uint64_t seed, bool each_block)
{
    struct dice dice = {seed, 0};
    const enum prefix_cache cache = one_in(&dice, 2) ? PREFIX_CACHE_HASH : PREFIX_CACHE_RADIX;
    set_up(f, cache, cache == PREFIX_CACHE_HASH ? 4 : 1, roll(&dice, 1, 3) * 48);
    fixture_module(f, IFL_EVICT, "lru", one_in(&dice, 3) ? NULL : "{by: time}");
    f->check_blocks = each_block;
    f->capture.keep_steps = true;
    fixture_trace(f, N_CROWD);
    f->trace.prefix_group = calloc(N_CROWD, sizeof *f->trace.prefix_group);
    f->trace.prefix_tokens = calloc(N_CROWD, sizeof *f->trace.prefix_tokens);
    for (size_t i = 0; i < N_CROWD; i++) {
        f->trace.arrival_ns[i] = (int64_t)(i / 3) * 20000000;
        f->trace.n_prompt[i] = roll(&dice, 1, 40);
        f->trace.n_output[i] = roll(&dice, 1, 3);
        f->trace.prefix_group[i] = (uint32_t)roll(&dice, 0, 2);
        f->trace.prefix_tokens[i] =
            f->trace.prefix_group[i] ? roll(&dice, 1, f->trace.n_prompt[i]) : 0;
    }
}

/* Where rows of work are wanted each block has a number; else runs of blocks have one entry. That
 * changes neither what is evicted nor what is found. */
Test(cache, runs_are_evicted_as_their_blocks_would_be)
{
    int64_t n_found = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct fixture apart, runs;
        crowd(&apart, seed, true);
        crowd(&runs, seed, false);
        must_fly(&apart);
        must_fly(&runs);
        for (size_t i = 0; i < N_CROWD; i++)
            cr_assert_eq(apart.capture.requests[i].cached_tokens,
                         runs.capture.requests[i].cached_tokens, "seed %llu: %d and %d found",
                         (unsigned long long)seed, apart.capture.requests[i].cached_tokens,
                         runs.capture.requests[i].cached_tokens);
        n_found += cached_tokens(&apart);
        fixture_free(&apart);
        fixture_free(&runs);
    }
    cr_expect_gt(n_found, 100000, "%lld tokens found", (long long)n_found);
}
