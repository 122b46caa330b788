/* A request that can never progress is refused with a module and its reason; all others finish. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "config/registry.h"
#include "fixture.h"

enum { MOST = 8 };

struct row {
    int32_t at_s, n_prompt, n_output, n_samples; /* n_samples 0: end of the list */
};

struct module_text {
    const char *name, *params;
};

struct set_up {
    const char *what;
    struct module_text batching, order, admit, preempt;
    int32_t n_blocks, block_tokens, n_host_blocks;
    enum kv_allocator allocator;
    struct row rows[MOST];
    /* expected; `by` is NULL if no request is refused */
    int32_t n_finished, n_rejected, n_failed;
    const char *by, *why;
};

static void fill_trace(struct fixture *f, const struct row *rows)
{
    size_t n = 0;
    while (n < MOST && rows[n].n_samples > 0)
        n++;
    fixture_trace(f, n);
    f->trace.samples = calloc(n, sizeof *f->trace.samples);
    for (size_t i = 0; i < n; i++) {
        f->trace.arrival_ns[i] = rows[i].at_s * (int64_t)IFL_NS_PER_S;
        f->trace.n_prompt[i] = rows[i].n_prompt;
        f->trace.n_output[i] = rows[i].n_output;
        f->trace.samples[i] = rows[i].n_samples;
        if (rows[i].n_samples > f->max_samples)
            f->max_samples = rows[i].n_samples;
    }
}

static void make(struct fixture *f, const struct set_up *s)
{
    *f = (struct fixture){
        .limits = {.block_tokens = s->block_tokens,
                   .n_blocks = s->n_blocks,
                   .n_host_blocks = s->n_host_blocks,
                   .max_model_tokens = 256,
                   .n_clients = 1},
        .linear = {.step_s = 0.1},
        .allocator = s->allocator,
        .check_blocks = true,
    };
    f->capture.keep_steps = true;
    fixture_module(f, IFL_BATCHING, s->batching.name, s->batching.params);
    fixture_module(f, IFL_ORDER, s->order.name ? s->order.name : "fcfs", s->order.params);
    fixture_module(f, IFL_ADMIT, s->admit.name, s->admit.params);
    fixture_module(f, IFL_PREEMPT, s->preempt.name, s->preempt.params);
    fill_trace(f, s->rows);
}

static void check_reason(const struct fixture *f, const struct set_up *s)
{
    const struct refusal_count *first = &f->refusals.of[0];
    cr_expect_eq(f->refusals.n, s->by ? 1 : 0, "%s: %zu reasons", s->what, f->refusals.n);
    if (!s->by || f->refusals.n == 0)
        return;
    cr_expect_str_eq(module_kind_name(first->by->kind), s->by, "%s: by %s", s->what,
                     module_kind_name(first->by->kind));
    cr_expect(strstr(first->why, s->why), "%s: %s", s->what, first->why);
    cr_expect_eq(first->n_rejected, (uint64_t)s->n_rejected);
    cr_expect_eq(first->n_failed, (uint64_t)s->n_failed);
}

static void check(const struct set_up *s)
{
    struct fixture f;
    struct ifl_error error = {0};
    int32_t n[IFL_FAILED + 1] = {0};
    make(&f, s);
    cr_expect_eq(fixture_fly(&f, &error), 0, "%s: %s", s->what, error.text);
    cr_expect_str_eq(f.complaint, "", "%s: %s", s->what, f.complaint);
    for (size_t i = 0; i < f.capture.n_requests; i++)
        n[f.capture.requests[i].status]++;
    cr_expect(n[IFL_FINISHED] == s->n_finished && n[IFL_REJECTED] == s->n_rejected &&
                  n[IFL_FAILED] == s->n_failed,
              "%s: %d finished, %d rejected, %d failed", s->what, n[IFL_FINISHED], n[IFL_REJECTED],
              n[IFL_FAILED]);
    check_reason(&f, s);
    fixture_free(&f);
}

/* ---- groups and seats ---- */

static bool has_seats(const struct ifl_policy *policy)
{
    for (size_t i = 0; i < policy->n_params; i++)
        if (strcmp(policy->params[i].name, "max_seqs") == 0)
            return true;
    return false;
}

/* A group of three answers with two seats, under each batching module that has seats; the other
 * requests finish. */
Test(refusals, a_group_wider_than_the_seats)
{
    const struct ifl_policy *policy;
    struct set_up s = {
        .admit = {"prompt-fits"},
        .preempt = {"tail"},
        .n_blocks = 100,
        .block_tokens = 16,
        .rows = {{0, 10, 5, 1}, {1, 10, 5, 3}, {1, 10, 5, 2}},
        .n_finished = 2,
        .n_rejected = 1,
        .by = "batching",
        .why = "more sequences than max_seqs",
    };
    int32_t n = 0;
    for (size_t i = 0; (policy = registry_at(i)); i++) {
        if (policy->kind != IFL_BATCHING || !has_seats(policy))
            continue;
        s.what = policy->name;
        s.batching = (struct module_text){policy->name, "{max_seqs: 2}"};
        check(&s);
        n++;
    }
    cr_expect_geq(n, 11);
}

/* ---- requests that never fit on an empty replica ---- */

Test(refusals, what_is_never_admitted)
{
    /* its length is reserved, 256 tokens of the pool's 160 */
    check(&(struct set_up){.what = "a request that is passed over is refused where no other is",
                           .batching = {"best-that-fit"},
                           .admit = {"reserve"},
                           .preempt = {"tail"},
                           .n_blocks = 10,
                           .block_tokens = 16,
                           .rows = {{0, 10, 5, 1}, {0, 20, 5, 1}},
                           .n_rejected = 2,
                           .by = "admit",
                           .why = "never fits"});
    /* five simultaneous requests, each dropped by a separate plan: 7 + 5 of 10 blocks */
    check(&(struct set_up){.what = "a plan for each that is dropped at one instant",
                           .batching = {"best-that-fit", "{watermark_frac: 0.5}"},
                           .admit = {"prompt-fits", "{watermark_frac: 0}"},
                           .preempt = {"tail"},
                           .n_blocks = 10,
                           .block_tokens = 16,
                           .rows = {{0, 100, 5, 1},
                                    {0, 100, 5, 1},
                                    {0, 100, 5, 1},
                                    {0, 100, 5, 1},
                                    {0, 100, 5, 1},
                                    {0, 10, 5, 1},
                                    {0, 10, 5, 1}},
                           .n_finished = 2,
                           .n_rejected = 5,
                           .by = "batching",
                           .why = "watermark_frac"});
    check(&(struct set_up){.what = "no unit of a prompt finds tokens",
                           .batching = {"capacity", "{chunking: equal-progress, "
                                                    "max_batched_tokens: 8}"},
                           .admit = {"prompt-fits"},
                           .preempt = {"tail"},
                           .n_blocks = 10,
                           .block_tokens = 16,
                           .rows = {{0, 20, 5, 1}, {0, 8, 5, 1}},
                           .n_finished = 1,
                           .n_rejected = 1,
                           .by = "batching",
                           .why = "longer than max_batched_tokens"});
}

/* ---- no victim ---- */

Test(refusals, none_gives_way)
{
    /* two answers fill the pool of 40 slots to the last, and each needs one more */
    check(&(struct set_up){.what = "the one that started last fails, the other finishes",
                           .batching = {"mixed"},
                           .admit = {"discounted", "{most_new_tokens: 0}"},
                           .preempt = {"tail", "{fate: never}"},
                           .n_blocks = 40,
                           .block_tokens = 1,
                           .rows = {{0, 10, 30, 1}, {0, 10, 30, 1}},
                           .n_finished = 1,
                           .n_failed = 1,
                           .by = "preempt",
                           .why = "no request gives way"});
    /* 33 tokens fill two blocks of 32, and no token of the answer needs a third */
    check(&(struct set_up){.what = "a spare block is not to be had alone on the device",
                           .batching = {"prefill-first", "{append_rule: one-free}"},
                           .admit = {"prompt-fits", "{watermark_frac: 0}"},
                           .preempt = {"shortest-output"},
                           .n_blocks = 2,
                           .block_tokens = 32,
                           .rows = {{0, 33, 5, 1}},
                           .n_finished = 1});
    check(&(struct set_up){.what = "a prompt that is cut does not hold up the only decode",
                           .batching = {"alternate", "{chunk_tokens: 2}"},
                           .admit = {"chunk-fits", "{room_for: chunk}"},
                           .preempt = {"shortest-output"},
                           .n_blocks = 3,
                           .block_tokens = 32,
                           .rows = {{0, 5, 9, 2}, {0, 7, 9, 3}},
                           .n_finished = 2});
    /* the shorter job waits for 4 blocks, of which the longer one leaves 2 */
    check(&(struct set_up){
        .what = "a waiting request does not decode, so that the only decode gives way",
        .batching = {"ranked"},
        .order = {"sjf"},
        .admit = {"reserve", "{for: declared}"},
        .preempt = {"shortest-output"},
        .n_blocks = 10,
        .block_tokens = 16,
        .rows = {{0, 100, 20, 1}, {1, 40, 10, 1}},
        .n_finished = 2});
    /* the prompt takes 16 of 64 contiguous tokens, the answer more */
    check(&(struct set_up){.what = "what is contiguous starts over with more",
                           .batching = {"mixed"},
                           .admit = {"prompt-fits"},
                           .preempt = {"shortest-output"},
                           .n_blocks = 8,
                           .block_tokens = 8,
                           .allocator = KV_BUDDY,
                           .rows = {{0, 16, 20, 1}, {0, 16, 20, 1}},
                           .n_finished = 2});
}

/* ---- requests that can progress do ---- */

Test(refusals, a_request_that_can_go_on_does)
{
    /* 160 tokens in chunks of 51 fill ten of ten blocks */
    check(&(struct set_up){.what = "a prompt alone on the device keeps its blocks",
                           .batching = {"best-that-fit", "{max_batched_tokens: 51}"},
                           .admit = {"prompt-fits", "{watermark_frac: 0}"},
                           .preempt = {"shortest-output"},
                           .n_blocks = 10,
                           .block_tokens = 16,
                           .rows = {{0, 160, 1, 1}},
                           .n_finished = 1});
    /* the third gives way with 19 tokens, comes first, and finds 18 left beside the two that decode
     */
    check(&(struct set_up){.what = "those on the device go on behind one that finds no tokens",
                           .batching = {"capacity", "{max_batched_tokens: 20}"},
                           .order = {"longest-output"},
                           .admit = {"prompt-fits", "{watermark_frac: 0}"},
                           .preempt = {"tail", "{place: in-order}"},
                           .n_blocks = 53,
                           .block_tokens = 1,
                           .rows = {{0, 5, 20, 1}, {0, 5, 20, 1}, {1, 17, 35, 1}},
                           .n_finished = 3});
    /* groups of two go to the host, single ones compute again and stand first in line */
    check(&(struct set_up){.what = "those on the host return to an idle engine",
                           .batching = {"capacity", "{join: when-idle}"},
                           .admit = {"prompt-fits", "{watermark_frac: 0}"},
                           .preempt = {"tail", "{fate: swap-groups}"},
                           .n_blocks = 9,
                           .block_tokens = 4,
                           .n_host_blocks = 40,
                           .rows = {{0, 4, 12, 1}, {0, 4, 12, 2}, {0, 4, 12, 2}, {0, 4, 12, 1}},
                           .n_finished = 4});
}

/* Quanta of 0.1 s, one step each; prompts of five chunks, and room for three prompts. Every request
 * is preempted before its prompt is complete, and no host memory keeps its K/V. */
Test(refusals, livelock_ends_the_run)
{
    struct fixture f = {
        .limits = {.block_tokens = 4, .n_blocks = 37, .max_model_tokens = 90, .n_clients = 1},
        .linear = {.step_s = 0.1, .prefill_token_s = 0.001},
    };
    struct ifl_error error = {0};
    fixture_module(&f, IFL_BATCHING, "best-that-fit", "{max_batched_tokens: 13}");
    fixture_module(&f, IFL_ORDER, "mlfq",
                   "{quantum_s: 0.1, starve_steps: 5, starve_s: 1, prefill_token_s: 0.01}");
    fixture_module(&f, IFL_ADMIT, "chunk-fits", NULL);
    fixture_module(&f, IFL_PREEMPT, "proactive", "{keep_free_blocks: 8}");
    fixture_trace(&f, 50);
    for (size_t i = 0; i < f.trace.n; i++) {
        f.trace.n_prompt[i] = 60;
        f.trace.n_output[i] = 10;
    }
    cr_expect_eq(fixture_fly(&f, &error), IFL_E_STALLED);
    cr_expect(strstr(error.text, "policy best-that-fit has run 1297 steps without a token"), "%s",
              error.text);
    fixture_free(&f);
}

/* Simultaneous prompts with answers of 2, 4, 6 and 8 tokens. The prompts and one step of decodes
 * are planned; six more steps follow from the promise, although a request finishes in every other
 * one. */
Test(promises, a_run_goes_on_over_a_finish)
{
    struct fixture f = {
        .limits = {.block_tokens = 4, .n_blocks = 99, .max_model_tokens = 90, .n_clients = 1},
        .linear = {.step_s = 0.1},
    };
    struct ifl_error error = {0};
    fixture_vllm(&f, NULL, NULL);
    fixture_trace(&f, 4);
    for (size_t i = 0; i < f.trace.n; i++) {
        f.trace.n_prompt[i] = 10;
        f.trace.n_output[i] = 2 + 2 * (int32_t)i;
    }
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    cr_expect_eq(f.n_plans, 2);
    cr_expect_eq(f.n_repeats, 6);
    fixture_free(&f);
}
