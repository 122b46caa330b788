/* Speculation on the CPU engine: verified really, it says what greedy decoding says, token by
 * token, whatever guesses and however scarce blocks are. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "fixture.h"
#include "run/executor_engine.h"

enum { N_REQUESTS = 16, MAX_OUTPUT = 80, N_VOCAB = 60, MAX_ROWS = 4096 };

/* ---- between the executor and the engine: what was fed and sampled last ---- */

static int32_t fed[MAX_ROWS], sampled[MAX_ROWS];

static int listening_step(void *self, struct ifl_engine_step *step, struct ifl_error *error)
{
    const int rc = ifl_engine_v1.step(self, step, error);
    int32_t n_rows = 0;
    for (int32_t i = 0; i < step->n_seqs; i++)
        n_rows += step->n_rows[i];
    cr_assert(n_rows <= MAX_ROWS && step->n_tokens <= MAX_ROWS);
    memcpy(fed, step->token_ids, (size_t)step->n_tokens * sizeof *fed);
    memcpy(sampled, step->sampled, (size_t)n_rows * sizeof *sampled);
    return rc;
}

/* ---- between the loop and the executor: what each request has said ---- */

struct listener {
    struct executor_engine *engine;
    struct ifl_work work[N_REQUESTS];
    uint64_t serials[N_REQUESTS];
    size_t n_work;
    int32_t said[N_REQUESTS][MAX_OUTPUT + 8];
    int32_t n_said[N_REQUESTS];
    int64_t n_drafted, n_held;
};

static int64_t listener_now(void *self)
{
    return executor_engine_ops.now(((struct listener *)self)->engine);
}

static int listener_submit(void *self, const struct ifl_step_desc *desc, struct ifl_error *error)
{
    struct listener *l = self;
    l->n_work = desc->n_work;
    memcpy(l->work, desc->work, desc->n_work * sizeof *l->work);
    for (size_t i = 0; i < desc->n_work; i++)
        l->serials[i] = desc->work[i].request->serial;
    return executor_engine_ops.submit(l->engine, desc, error);
}

/* Guesses that hold, which were fed, and the token sampled behind them. */
static void hear(struct listener *l, size_t i, int32_t n_held, const int32_t *of_fed,
                 const int32_t *of_sampled)
{
    const struct ifl_work *w = &l->work[i];
    const uint64_t serial = l->serials[i];
    for (int32_t k = 0; k <= n_held && l->n_said[serial] < MAX_OUTPUT; k++)
        l->said[serial][l->n_said[serial]++] =
            k < n_held ? of_fed[w->n_new - w->n_draft + k] : of_sampled[n_held];
    l->n_drafted += w->n_draft;
    l->n_held += n_held;
}

static int listener_next(void *self, int64_t until_ns, struct ifl_done *done,
                         struct ifl_error *error)
{
    struct listener *l = self;
    const int rc = executor_engine_ops.next(l->engine, until_ns, done, error);
    const int32_t *of_fed = fed, *of_sampled = sampled;
    for (size_t i = 0; rc == 1 && i < l->n_work; i++) {
        const struct ifl_work *w = &l->work[i];
        if (w->samples) {
            hear(l, i, done->n_accepted ? done->n_accepted[i] : w->n_holds, of_fed, of_sampled);
            of_sampled += 1 + w->n_draft;
        }
        of_fed += w->n_new;
    }
    return rc;
}

static void listener_forget(void *self, uint64_t serial)
{
    executor_engine_ops.forget(((struct listener *)self)->engine, serial);
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

enum guesser { NOTHING, BY_LOOKUP, BY_TWIN, BY_SMALLER };

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
    .block_tokens = 4,
    .n_host_blocks = 400,
    .max_tokens = 256,
    .max_step_tokens = MAX_ROWS,
    .max_step_seqs = N_REQUESTS,
};

static void open_engine(struct listener *l, enum guesser guesser, bool verifies,
                        const struct replica *replica)
{
    static struct ifl_engine listening;
    struct ifl_error error;
    listening = ifl_engine_v1;
    listening.step = listening_step;
    struct executor_engine_options options = {
        .engine = &listening,
        .open = engine_options,
        .token_seed = 6,
        .n_requests = N_REQUESTS,
        .spoil = &replica->kv.device,
        .guesses = guesser != NOTHING,
        .verifies = verifies,
        .proposer = {.open = engine_options,
                     .longest_match = 4,
                     .shortest_match = 2,
                     .n_requests = N_REQUESTS},
    };
    options.open.n_blocks = options.proposer.open.n_blocks = replica->fixed.limits.n_blocks;
    options.proposer.engine = guesser == BY_TWIN || guesser == BY_SMALLER ? &ifl_engine_v1 : NULL;
    if (guesser == BY_SMALLER)
        options.proposer.open.model.n_layers = 1;
    *l = (struct listener){.engine = executor_engine_create(&options, 1, &error)};
    cr_assert_not_null(l->engine, "%s", error.text);
}

static void set_up(struct fixture *f, int32_t n_blocks, const char *fate, int32_t k)
{
    char draft[32];
    *f = (struct fixture){.limits = {.block_tokens = 4,
                                     .n_blocks = n_blocks,
                                     .n_host_blocks = 400,
                                     .max_model_tokens = 256,
                                     .n_clients = 1}};
    snprintf(draft, sizeof draft, "{tokens: %d}", k);
    fixture_vllm(f, "{max_seqs: 16}", fate);
    fixture_module(f, IFL_DRAFT, "fixed", draft);
    fixture_module(f, IFL_EVICT, "lru", NULL);
    fixture_trace(f, N_REQUESTS);
    for (int32_t i = 0; i < N_REQUESTS; i++) {
        f->trace.n_prompt[i] = 5 + i * 7 % 40;
        f->trace.n_output[i] = 30 + i * 11 % (MAX_OUTPUT - 30);
    }
}

struct course {
    enum guesser guesser;
    bool drawn, cached;
    int32_t n_blocks;
    const char *fate;
    uint64_t n_preempted; /* out */
};

static void fly(struct listener *l, struct course *how)
{
    struct fixture f;
    struct replica replica = {0};
    struct workload workload = {0};
    struct ifl_error error;
    struct acceptance accepts = {.depth = 2,
                                 .below = {acceptance_below(0.6), acceptance_below(0.5)}};
    set_up(&f, how->n_blocks, how->fate, how->guesser == NOTHING ? 0 : 3);
    const struct replica_options options = {.modules = f.modules,
                                            .limits = f.limits,
                                            .prefix_cache =
                                                how->cached ? PREFIX_CACHE_HASH : PREFIX_CACHE_NONE,
                                            .max_samples = 1,
                                            .wants_work = true,
                                            .speculation = {.seed = 3, .accepts = &accepts}};
    cr_assert_eq(replica_create(&replica, &options, &error), 0);
    cr_assert_eq(workload_create(&workload, &f.trace, 0, &error), 0);
    open_engine(l, how->guesser, how->guesser != NOTHING && !how->drawn, &replica);
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
    for (size_t i = 0; i < f.capture.n_requests; i++) {
        how->n_preempted += (uint64_t)f.capture.requests[i].preemptions;
        cr_expect_eq(f.capture.requests[i].status, IFL_FINISHED);
    }
    for (size_t i = 0; i < N_REQUESTS; i++)
        cr_expect_geq(l->n_said[i], f.trace.n_output[i]);
    executor_engine_destroy(l->engine);
    workload_destroy(&workload);
    replica_destroy(&replica);
    fixture_free(&f);
}

static struct listener greedy, guessed;

/* A last step may have said more than the answer: the rest is left out. */
static void expect_same_words(const char *what)
{
    for (int32_t i = 0; i < N_REQUESTS; i++)
        cr_expect_eq(memcmp(greedy.said[i], guessed.said[i],
                            (size_t)(30 + i * 11 % (MAX_OUTPUT - 30)) * sizeof(int32_t)),
                     0, "%s: request %d says something else", what, i);
}

static void check_words(struct course how, const char *what, bool preempts)
{
    struct course plain = {.n_blocks = 2000, .fate = "{fate: recompute}"};
    fly(&greedy, &plain);
    fly(&guessed, &how);
    expect_same_words(what);
    cr_expect_gt(guessed.n_drafted, 100);
    cr_expect_eq(how.n_preempted > 0, preempts, "%s: %llu preemptions", what,
                 (unsigned long long)how.n_preempted);
}

Test(speculation, look_up_says_what_greedy_decoding_says)
{
    check_words((struct course){BY_LOOKUP, .n_blocks = 2000, .fate = "{fate: recompute}"}, "calm",
                false);
    cr_expect_gt(guessed.n_held, guessed.n_drafted / 20, "random weights repeat themselves");
    cr_expect_lt(guessed.n_held, guessed.n_drafted, "and not always");
    check_words((struct course){BY_LOOKUP, .n_blocks = 120, .fate = "{fate: recompute}"},
                "recompute", true);
    check_words((struct course){BY_LOOKUP, .n_blocks = 120, .fate = "{fate: swap}"}, "swap", true);
    check_words(
        (struct course){BY_LOOKUP, .cached = true, .n_blocks = 120, .fate = "{fate: recompute}"},
        "cached", true);
}

/* A draft model that is the target's twin guesses all: where it does not, its K/V is wrong. */
Test(speculation, the_twin_of_the_target_guesses_all)
{
    const char *const fates[] = {"{fate: recompute}", "{fate: swap}"};
    check_words((struct course){BY_TWIN, .n_blocks = 2000, .fate = fates[0]}, "calm", false);
    cr_expect_eq(guessed.n_held, guessed.n_drafted);
    for (int i = 0; i < 2; i++) {
        check_words((struct course){BY_TWIN, .n_blocks = 120, .fate = fates[i]}, fates[i], true);
        cr_expect_eq(guessed.n_held, guessed.n_drafted, "%s: %lld of %lld", fates[i],
                     (long long)guessed.n_held, (long long)guessed.n_drafted);
    }
}

Test(speculation, a_smaller_model_says_what_greedy_decoding_says)
{
    check_words((struct course){BY_SMALLER, .n_blocks = 2000, .fate = "{fate: recompute}"}, "calm",
                false);
    cr_expect_lt(guessed.n_held, guessed.n_drafted);
    check_words((struct course){BY_SMALLER, .n_blocks = 120, .fate = "{fate: swap}"}, "swap", true);
}

/* Replayed, as many guesses hold as were drawn, whatever the engine says of them. */
Test(speculation, the_drawn_count_is_kept)
{
    struct course model = {BY_SMALLER, .drawn = true, .n_blocks = 2000,
                           .fate = "{fate: recompute}"};
    struct course lookup = {BY_LOOKUP, .drawn = true, .n_blocks = 120, .fate = "{fate: recompute}"};
    fly(&guessed, &model);
    fly(&greedy, &lookup);
    cr_expect_eq(memcmp(guessed.n_said, greedy.n_said, sizeof guessed.n_said), 0);
    /* of three guesses 0.6 and 0.6 x 0.5 hold: 0.9 of 3 */
    cr_expect_float_eq((double)guessed.n_held / (double)guessed.n_drafted, 0.3, 0.05);
}
