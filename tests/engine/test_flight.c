/* Whole flights on the CPU engine: the tokens of a request do not depend on preemptions.
 *
 * A wrapper of the executor and one of the engine record each request's tokens. Free blocks hold
 * NaN, so a wrong block table gives logits that are not finite. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "fixture.h"
#include "run/executor_engine.h"
#include "run/token_ids.h"

enum { N_REQUESTS = 24, MAX_SAMPLES = 3, MAX_OUTPUT = 40, N_VOCAB = 500, TOKEN_SEED = 6 };
enum { MAX_WORK = N_REQUESTS * MAX_SAMPLES };

/* ---- between the executor and the engine ---- */

static int32_t last_sampled[MAX_WORK];
static float logits[MAX_WORK * N_VOCAB];
static size_t n_not_finite, n_copied;

static int listening_step(void *self, struct ifl_engine_step *step, struct ifl_error *error)
{
    size_t n_sampling = 0;
    for (int32_t i = 0; i < step->n_seqs; i++)
        n_sampling += (size_t)step->n_rows[i];
    n_copied += step->n_copies;
    step->logits = logits;
    const int rc = ifl_engine_v1.step(self, step, error);
    if (rc == 0 && n_sampling > 0)
        memcpy(last_sampled, step->sampled, n_sampling * sizeof *last_sampled);
    for (size_t i = 0; i < n_sampling * N_VOCAB; i++)
        n_not_finite += !isfinite(logits[i]);
    return rc;
}

/* ---- between the loop and the executor ---- */

struct listener {
    struct executor_engine *engine;
    uint64_t serials[MAX_WORK];
    int32_t seqs[MAX_WORK];
    bool samples[MAX_WORK];
    size_t n_work;
    int32_t said[N_REQUESTS][MAX_SAMPLES][MAX_OUTPUT];
    int32_t n_said[N_REQUESTS][MAX_SAMPLES];
    size_t n_forgotten, n_swapped_blocks;
};

static int64_t listener_now(void *self)
{
    return executor_engine_ops.now(((struct listener *)self)->engine);
}

static int listener_submit(void *self, const struct ifl_step_desc *desc, struct ifl_error *error)
{
    struct listener *l = self;
    l->n_work = desc->n_work;
    l->n_swapped_blocks += desc->n_outs;
    for (size_t i = 0; i < desc->n_work; i++) {
        l->serials[i] = desc->work[i].request->serial;
        l->seqs[i] = desc->work[i].seq;
        l->samples[i] = desc->work[i].samples;
    }
    return executor_engine_ops.submit(l->engine, desc, error);
}

static int listener_next(void *self, int64_t until_ns, struct ifl_done *done,
                         struct ifl_error *error)
{
    struct listener *l = self;
    const int rc = executor_engine_ops.next(l->engine, until_ns, done, error);
    const int32_t *sampled = last_sampled;
    for (size_t i = 0; rc == 1 && i < l->n_work; i++)
        if (l->samples[i]) {
            const uint64_t serial = l->serials[i];
            const int32_t seq = l->seqs[i];
            l->said[serial][seq][l->n_said[serial][seq]++] = *sampled++;
        }
    return rc;
}

static void listener_forget(void *self, uint64_t serial)
{
    struct listener *l = self;
    l->n_forgotten++;
    executor_engine_ops.forget(l->engine, serial);
}

static const struct ifl_executor_ops listener_ops = {
    .size_bytes = sizeof(struct ifl_executor_ops),
    .name = "listener",
    .wants_work = true,
    .now = listener_now,
    .submit = listener_submit,
    .next = listener_next,
    .forget = listener_forget,
};

/* ---- flying ---- */

/* Prompts of three groups share most of their tokens, by prefix_group or by hash ids. */
static void share_prefixes(struct fixture *f, bool by_ids)
{
    enum { N_GROUPS = 3, ID_TOKENS = 6, IDS_EACH = 6 };
    struct ifl_trace *trace = &f->trace;
    trace->prefix_group = calloc(N_REQUESTS, sizeof *trace->prefix_group);
    trace->prefix_tokens = calloc(N_REQUESTS, sizeof *trace->prefix_tokens);
    trace->hash_at = calloc(N_REQUESTS + 1, sizeof *trace->hash_at);
    trace->hash_id = calloc((size_t)N_REQUESTS * IDS_EACH, sizeof *trace->hash_id);
    trace->hash_block_tokens = ID_TOKENS;
    for (int32_t i = 0; i < N_REQUESTS; i++) {
        const uint32_t group = 1 + (uint32_t)i % N_GROUPS;
        const int32_t n = trace->n_prompt[i] * 4 / 5;
        trace->prefix_group[i] = by_ids ? 0 : group;
        trace->prefix_tokens[i] = by_ids ? 0 : n;
        trace->hash_at[i + 1] = trace->hash_at[i];
        for (int32_t k = 0; by_ids && k < IDS_EACH && (k + 1) * ID_TOKENS <= n; k++)
            trace->hash_id[trace->hash_at[i + 1]++] = group * 100 + (uint32_t)k;
    }
}

/* Concurrent conversations: the prompt of a turn repeats the previous prompt and answer. */
enum { N_TALKS = 6, ANSWER = 24, NEW_TEXT = 4 };

static int32_t turn_tokens(int32_t talk, int32_t turn)
{
    return 6 + talk + turn * (ANSWER + NEW_TEXT);
}

/* The same conversations, described by one hash id per token. */
static void name_tokens(struct ifl_trace *trace)
{
    trace->hash_block_tokens = 1;
    trace->hash_at = calloc(N_REQUESTS + 1, sizeof *trace->hash_at);
    trace->hash_id = calloc((size_t)N_REQUESTS * 128, sizeof *trace->hash_id);
    for (int32_t i = 0; i < N_REQUESTS; i++) {
        trace->hash_at[i + 1] = trace->hash_at[i];
        for (int32_t k = 0; k < trace->n_prompt[i]; k++)
            trace->hash_id[trace->hash_at[i + 1]++] = trace->session[i] * 1000 + (uint32_t)k;
        trace->prefix_group[i] = 0;
        trace->prefix_tokens[i] = 0;
    }
}

static void converse(struct fixture *f, bool by_ids)
{
    struct ifl_trace *trace = &f->trace;
    trace->session = calloc(N_REQUESTS, sizeof *trace->session);
    trace->prefix_group = calloc(N_REQUESTS, sizeof *trace->prefix_group);
    trace->prefix_tokens = calloc(N_REQUESTS, sizeof *trace->prefix_tokens);
    for (int32_t i = 0; i < N_REQUESTS; i++) {
        const int32_t talk = i % N_TALKS;
        trace->session[i] = trace->prefix_group[i] = (uint32_t)talk + 1;
        trace->n_prompt[i] = turn_tokens(talk, i / N_TALKS);
        trace->n_output[i] = ANSWER;
        trace->prefix_tokens[i] = trace->n_prompt[i];
    }
    if (by_ids)
        name_tokens(trace);
}

static void set_up(struct fixture *f, int32_t n_blocks, const char *fate)
{
    *f = (struct fixture){.limits = {.block_tokens = 4,
                                     .n_blocks = n_blocks,
                                     .n_host_blocks = 200,
                                     .max_model_tokens = 128}};
    fixture_vllm(f, "{max_seqs: 16}", fate);
    fixture_trace(f, N_REQUESTS);
    for (int32_t i = 0; i < N_REQUESTS; i++) {
        f->trace.n_prompt[i] = 5 + i * 7 % 40;
        f->trace.n_output[i] = 10 + i * 11 % (MAX_OUTPUT - 10);
    }
}

static const struct ifl_engine_options engine_options = {
    .model = {.n_layers = 2,
              .d_model = 32,
              .n_q_heads = 4,
              .n_kv_heads = 2,
              .d_head = 8,
              .d_ffn = 48,
              .n_vocab = N_VOCAB},
    .seed = 4,
    .n_threads = 1,
    .max_tokens = 128,
    .max_step_tokens = 2048,
    .max_step_seqs = MAX_WORK,
};

static void open_engine(struct listener *l, const struct fixture *f, const struct kv_pool *spoil)
{
    static struct ifl_engine listening;
    struct ifl_error error;
    listening = ifl_engine_v1;
    listening.step = listening_step;
    struct executor_engine_options options = {
        .engine = &listening,
        .open = engine_options,
        .token_seed = TOKEN_SEED,
        .n_requests = N_REQUESTS,
        .spoil = spoil,
    };
    options.open.block_tokens = f->limits.block_tokens;
    options.open.n_blocks = f->limits.n_blocks;
    options.open.n_host_blocks = f->limits.n_host_blocks;
    *l = (struct listener){.engine = executor_engine_create(&options, 1, &error)};
    cr_assert_not_null(l->engine, "%s", error.text);
}

static uint64_t preemptions(const struct fixture *f)
{
    uint64_t n = 0;
    for (size_t i = 0; i < f->capture.n_requests; i++)
        n += (uint64_t)f->capture.requests[i].preemptions;
    return n;
}

/* The shared tokens of a flight, and its cache. */
struct sharing {
    enum prefix_cache cache;
    enum kv_publish publish;
    bool prefixes, by_ids, samples, talks;
    int32_t concurrency; /* 0: all come at once */
    struct front_end front;
    uint64_t n_cached;                        /* out: tokens */
    int64_t least_queue_ns, least_prefill_ns; /* out */
};

/* Requests have one, two and three sequences in turn. */
static void ask_for_samples(struct fixture *f)
{
    f->trace.samples = calloc(N_REQUESTS, sizeof *f->trace.samples);
    for (int32_t i = 0; i < N_REQUESTS; i++)
        f->trace.samples[i] = 1 + i % MAX_SAMPLES;
}

/* Every sequence has produced all its tokens; in samples after the first, the first token is drawn
 * at random and not counted. */
static void expect_all_said(const struct listener *l, const struct ifl_trace *trace)
{
    cr_expect_eq(l->n_forgotten, N_REQUESTS);
    for (size_t i = 0; i < N_REQUESTS; i++)
        for (int32_t seq = 0; seq < (trace->samples ? trace->samples[i] : 1); seq++)
            cr_expect_eq(l->n_said[i][seq], trace->n_output[i] - (seq > 0));
}

/* Flies the trace; returns the number of preemptions. */
static uint64_t fly_sharing(struct listener *l, int32_t n_blocks, const char *fate, bool spoils,
                            struct sharing *sharing)
{
    struct fixture f;
    struct replica replica = {0};
    struct workload workload = {0};
    struct ifl_error error;
    set_up(&f, n_blocks, fate);
    if (sharing->prefixes)
        share_prefixes(&f, sharing->by_ids);
    if (sharing->talks)
        converse(&f, sharing->by_ids);
    if (sharing->samples)
        ask_for_samples(&f);
    fixture_module(&f, IFL_EVICT, "lru", NULL);
    const struct replica_options options = {.modules = f.modules,
                                            .limits = f.limits,
                                            .prefix_cache = sharing->cache,
                                            .publish = sharing->publish,
                                            .max_samples = sharing->samples ? MAX_SAMPLES : 1,
                                            .wants_work = true};
    cr_assert_eq(replica_create(&replica, &options, &error), 0);
    cr_assert_eq(workload_create(&workload, &f.trace, sharing->concurrency, &error), 0);
    cr_assert_eq(workload_go_through(&workload, &sharing->front, &error), 0);
    open_engine(l, &f, spoils ? &replica.kv.device : NULL);
    n_not_finite = n_copied = 0;
    const struct fleet_pool pool = {.n = 1};
    struct flight flight = {
        .replicas = &replica,
        .n_replicas = 1,
        .pools = &pool,
        .n_pools = 1,
        .workload = &workload,
        .executor = &listener_ops,
        .executor_self = l,
        .recorder = (struct ifl_recorder *)(void *)&f.capture,
        .steady_runs = true,
    };
    cr_assert_eq(flight_run(&flight, &error), 0, "%s", error.text);
    cr_expect_eq(n_not_finite, 0, "a sampled logit is no number");
    expect_all_said(l, &f.trace);
    const uint64_t n = preemptions(&f);
    sharing->least_queue_ns = sharing->least_prefill_ns = IFL_NEVER;
    for (size_t i = 0; i < f.capture.n_requests; i++) {
        const struct ifl_request_record *r = &f.capture.requests[i];
        const int64_t queue_ns = r->first_scheduled_ns - r->arrival_ns,
                      prefill_ns = r->first_token_ns - r->first_scheduled_ns;
        sharing->n_cached += (uint64_t)r->cached_tokens;
        sharing->least_queue_ns = ifl_min(sharing->least_queue_ns, queue_ns);
        sharing->least_prefill_ns = ifl_min(sharing->least_prefill_ns, prefill_ns);
    }
    executor_engine_destroy(l->engine);
    workload_destroy(&workload);
    replica_destroy(&replica);
    fixture_free(&f);
    return n;
}

static uint64_t fly(struct listener *l, int32_t n_blocks, const char *fate, bool spoils)
{
    struct sharing nothing = {0};
    return fly_sharing(l, n_blocks, fate, spoils, &nothing);
}

static struct listener calm, pressed;

static void expect_same_words(const char *what)
{
    for (size_t i = 0; i < N_REQUESTS; i++)
        cr_expect_eq(memcmp(calm.said[i], pressed.said[i], sizeof calm.said[i]), 0,
                     "%s: request %zu says something else", what, i);
}

Test(flight, preemption_changes_no_word)
{
    cr_expect_eq(fly(&calm, 1000, "{fate: recompute}", false), 0);
    cr_expect_neq(memcmp(calm.said[0], calm.said[1], 5 * sizeof(int32_t)), 0, "prompts differ");
    cr_expect_gt(fly(&pressed, 60, "{fate: recompute}", true), 5);
    cr_expect_eq(pressed.n_swapped_blocks, 0);
    expect_same_words("recompute");
    cr_expect_gt(fly(&pressed, 60, "{fate: swap}", true), 5);
    cr_expect_gt(pressed.n_swapped_blocks, 20);
    expect_same_words("swap");
    fly(&pressed, 1000, "{fate: recompute}", true);
    expect_same_words("spoilt blocks");
}

/* The loop waits for the wall's clock, and words stay what they are. */
Test(flight, a_front_end_takes_its_time)
{
    struct sharing through = {.front = {.request_s = 0.05, .token_s = 0.2}};
    fly(&calm, 1000, "{fate: recompute}", false);
    fly_sharing(&pressed, 1000, "{fate: recompute}", false, &through);
    cr_expect_geq(through.least_queue_ns, 50000000);
    cr_expect_geq(through.least_prefill_ns, 200000000);
    expect_same_words("front end");
}

/* Flies with a cache in a large and in a small pool: tokens stay the same whether cached blocks are
 * read or evicted. Returns the number of cached tokens in the large pool. */
static uint64_t expect_unnoticed(struct sharing roomy)
{
    struct sharing tight = roomy;
    fly_sharing(&pressed, 1000, "{fate: recompute}", true, &roomy);
    cr_expect_gt(roomy.n_cached, 100);
    expect_same_words("a prefix cache");
    cr_expect_gt(fly_sharing(&pressed, 60, "{fate: recompute}", true, &tight), 3);
    cr_expect_gt(tight.n_cached, 100);
    expect_same_words("a prefix cache in a small pool");
    fly_sharing(&pressed, 60, "{fate: swap}", true, &tight);
    expect_same_words("a prefix cache and swapping");
    return roomy.n_cached;
}

/* All requests arrive at once. If plans are published, a request hits blocks that an earlier
 * request of the same step computes. */
static void expect_sharing_unnoticed(bool by_ids)
{
    struct sharing sharing = {.prefixes = true, .by_ids = by_ids};
    cr_expect_eq(fly_sharing(&calm, 1000, "{fate: recompute}", false, &sharing), 0);
    sharing.cache = PREFIX_CACHE_RADIX;
    expect_unnoticed(sharing);
    sharing.cache = PREFIX_CACHE_HASH;
    const uint64_t n_computed = expect_unnoticed(sharing);
    sharing.publish = KV_PUBLISH_SCHEDULED;
    cr_expect_gt(expect_unnoticed(sharing), n_computed);
}

Test(flight, shared_prefixes_change_no_word)
{
    expect_sharing_unnoticed(false);
    expect_sharing_unnoticed(true);
}

/* A turn hits the full blocks of the previous prompt and answer, without the answer's last token,
 * which has no K/V. The tokens are the same as without a cache. */
static void expect_answers_unnoticed(bool by_ids)
{
    struct sharing sharing = {.talks = true, .by_ids = by_ids, .concurrency = 6};
    uint64_t n_before = 0;
    fly_sharing(&calm, 1000, "{fate: recompute}", false, &sharing);
    sharing.cache = PREFIX_CACHE_RADIX;
    expect_unnoticed(sharing);
    sharing.cache = PREFIX_CACHE_HASH;
    expect_unnoticed(sharing);
    sharing.concurrency = 1;
    for (int32_t i = 0; i < N_REQUESTS - N_TALKS; i++)
        n_before += (uint64_t)(turn_tokens(i % N_TALKS, i / N_TALKS) + ANSWER - 1) / 4 * 4;
    fly_sharing(&pressed, 1000, "{fate: recompute}", true, &sharing);
    cr_expect_eq(sharing.n_cached, n_before);
    expect_same_words("answers found one by one");
}

Test(flight, found_answers_change_no_word)
{
    expect_answers_unnoticed(false);
    expect_answers_unnoticed(true);
}

/* ---- parallel sampling ---- */

/* The tokens of a sequence are those that it gets alone on the engine. */
static void expect_said_alone(const struct fixture *f, uint64_t serial, int32_t seq)
{
    static struct driver driver;
    static uint32_t blocks[DRIVER_MAX_BLOCKS];
    int32_t tokens[128], n_new = f->trace.n_prompt[serial] + (seq > 0), n_said = 0;
    struct token_ids ids;
    struct driven alone = {tokens, 0, blocks};
    const struct token_owner owner = {
        .serial = serial, .seq = seq, .n_seqs = 1, .n_prompt = f->trace.n_prompt[serial]};
    cr_assert_eq(token_ids_create(&ids, TOKEN_SEED, N_VOCAB, N_REQUESTS), 0);
    for (int32_t i = 0; i < n_new; i++)
        tokens[i] = token_ids_get(&ids, &owner, i);
    for (uint32_t i = 0; i < DRIVER_MAX_BLOCKS; i++)
        blocks[i] = i;
    struct ifl_engine_options options = engine_options;
    options.max_step_seqs = DRIVER_MAX_SEQS;
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &options), 0, "%s", driver.error.text);
    for (; n_said < calm.n_said[serial][seq]; n_said++, n_new = 1) {
        cr_assert_eq(driver_step(&driver, &alone, &n_new, 1, NULL), 0, "%s", driver.error.text);
        tokens[alone.n_computed] = driver.sampled[0];
        cr_expect_eq(driver.sampled[0], calm.said[serial][seq][n_said],
                     "sample %d of request %d: token %d", seq, (int)serial, n_said);
    }
    driver_close(&driver);
    token_ids_destroy(&ids);
}

/* Samples share the full blocks of the prompt and copy its last block; a write into another
 * sample's block would change that sample's tokens. */
Test(flight, samples_say_what_they_would_alone)
{
    struct fixture f;
    struct sharing samples = {.samples = true};
    cr_expect_eq(fly_sharing(&calm, 1000, "{fate: recompute}", true, &samples), 0);
    cr_expect_gt(n_copied, 10);
    set_up(&f, 1000, "{fate: recompute}");
    for (uint64_t serial = 0; serial < 6; serial++)
        for (int32_t seq = 0; seq < 1 + (int32_t)serial % MAX_SAMPLES; seq++)
            expect_said_alone(&f, serial, seq);
    fixture_free(&f);
    cr_expect_gt(fly_sharing(&pressed, 60, "{fate: recompute}", true, &samples), 5);
    expect_same_words("samples, recomputed");
    cr_expect_gt(fly_sharing(&pressed, 60, "{fate: swap}", true, &samples), 5);
    cr_expect_gt(pressed.n_swapped_blocks, 20);
    expect_same_words("samples, swapped");
}
