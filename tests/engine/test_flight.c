/* Whole flights on the CPU engine: what a request says does not depend on who preempted it.
 *
 * An executor and an engine stand between the loop and the real ones and write down each request's
 * tokens. Blocks that nobody owns hold NaN, so a wrong block table would be heard. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "executor_engine.h"
#include "fixture.h"

enum { N_REQUESTS = 24, MAX_OUTPUT = 40, N_VOCAB = 500 };

/* ---- between the executor and the engine ---- */

static int32_t last_sampled[N_REQUESTS];
static float logits[N_REQUESTS * N_VOCAB];
static size_t n_not_finite;

static int listening_step(void *self, struct ifl_engine_step *step, struct ifl_error *error)
{
    size_t n_sampling = 0;
    for (int32_t i = 0; i < step->n_seqs; i++)
        n_sampling += step->samples[i];
    step->logits = logits;
    const int rc = ifl_engine_v1.step(self, step, error);
    if (rc == 0 && step->n_seqs > 0)
        memcpy(last_sampled, step->sampled, (size_t)step->n_seqs * sizeof *last_sampled);
    for (size_t i = 0; i < n_sampling * N_VOCAB; i++)
        n_not_finite += !isfinite(logits[i]);
    return rc;
}

/* ---- between the loop and the executor ---- */

struct listener {
    struct executor_engine *engine;
    uint64_t serials[N_REQUESTS];
    bool samples[N_REQUESTS];
    size_t n_work;
    int32_t said[N_REQUESTS][MAX_OUTPUT];
    int32_t n_said[N_REQUESTS];
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
        l->samples[i] = desc->work[i].samples;
    }
    return executor_engine_ops.submit(l->engine, desc, error);
}

static int listener_next(void *self, int64_t until_ns, struct ifl_done *done,
                         struct ifl_error *error)
{
    struct listener *l = self;
    const int rc = executor_engine_ops.next(l->engine, until_ns, done, error);
    for (size_t i = 0; rc == 1 && i < l->n_work; i++)
        if (l->samples[i])
            l->said[l->serials[i]][l->n_said[l->serials[i]]++] = last_sampled[i];
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

/* Prompts of three groups that have most of their tokens in common, or hash ids that say so. */
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

static void open_engine(struct listener *l, const struct fixture *f, const struct kv_pool *spoil)
{
    static struct ifl_engine listening;
    struct ifl_error error;
    listening = ifl_engine_v1;
    listening.step = listening_step;
    const struct executor_engine_options options = {
        .engine = &listening,
        .open = {.model = {.n_layers = 2,
                           .d_model = 32,
                           .n_q_heads = 4,
                           .n_kv_heads = 2,
                           .d_head = 8,
                           .d_ffn = 48,
                           .n_vocab = N_VOCAB},
                 .seed = 4,
                 .n_threads = 1,
                 .block_tokens = f->limits.block_tokens,
                 .n_blocks = f->limits.n_blocks,
                 .n_host_blocks = f->limits.n_host_blocks,
                 .max_tokens = 128,
                 .max_step_tokens = 2048,
                 .max_step_seqs = N_REQUESTS},
        .token_seed = 6,
        .n_requests = N_REQUESTS,
        .spoil = spoil,
    };
    *l = (struct listener){.engine = executor_engine_create(&options, &error)};
    cr_assert_not_null(l->engine, "%s", error.text);
}

static uint64_t preemptions(const struct fixture *f)
{
    uint64_t n = 0;
    for (size_t i = 0; i < f->capture.n_requests; i++)
        n += (uint64_t)f->capture.requests[i].preemptions;
    return n;
}

/* What a flight shares, and its cache. */
struct sharing {
    enum prefix_cache cache;
    bool prefixes, by_ids;
    uint64_t n_cached; /* out: tokens */
};

/* The number of preemptions. */
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
    fixture_module(&f, IFL_EVICT, "lru", NULL);
    const struct replica_options options = {.modules = f.modules,
                                            .limits = f.limits,
                                            .prefix_cache = sharing->cache,
                                            .wants_work = true};
    cr_assert_eq(replica_create(&replica, &options, &error), 0);
    cr_assert_eq(workload_create(&workload, &f.trace, 0, &error), 0);
    open_engine(l, &f, spoils ? &replica.kv : NULL);
    n_not_finite = 0;
    struct flight flight = {
        .replicas = &replica,
        .n_replicas = 1,
        .workload = &workload,
        .executor = &listener_ops,
        .executor_self = l,
        .recorder = (struct ifl_recorder *)(void *)&f.capture,
        .steady_runs = true,
    };
    cr_assert_eq(flight_run(&flight, &error), 0, "%s", error.text);
    cr_expect_eq(n_not_finite, 0, "a sampled logit is no number");
    cr_expect_eq(l->n_forgotten, N_REQUESTS);
    for (size_t i = 0; i < N_REQUESTS; i++)
        cr_expect_eq(l->n_said[i], f.trace.n_output[i]);
    const uint64_t n = preemptions(&f);
    for (size_t i = 0; i < f.capture.n_requests; i++)
        sharing->n_cached += (uint64_t)f.capture.requests[i].cached_tokens;
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

/* Blocks that others computed are read, evicted ones are not, and nobody notices. */
static void expect_sharing_unnoticed(bool by_ids)
{
    static const enum prefix_cache caches[] = {PREFIX_CACHE_HASH, PREFIX_CACHE_RADIX};
    struct sharing apart = {.prefixes = true, .by_ids = by_ids};
    cr_expect_eq(fly_sharing(&calm, 1000, "{fate: recompute}", false, &apart), 0);
    for (size_t i = 0; i < 2; i++) {
        struct sharing roomy = {.cache = caches[i], .prefixes = true, .by_ids = by_ids};
        struct sharing tight = roomy;
        fly_sharing(&pressed, 1000, "{fate: recompute}", true, &roomy);
        cr_expect_gt(roomy.n_cached, 100);
        expect_same_words("a prefix cache");
        cr_expect_gt(fly_sharing(&pressed, 60, "{fate: recompute}", true, &tight), 3);
        cr_expect_gt(tight.n_cached, 100);
        expect_same_words("a prefix cache in a small pool");
        fly_sharing(&pressed, 60, "{fate: swap}", true, &tight);
        expect_same_words("a prefix cache and swapping");
    }
}

Test(flight, shared_prefixes_change_no_word)
{
    expect_sharing_unnoticed(false);
    expect_sharing_unnoticed(true);
}
