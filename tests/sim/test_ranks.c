/* A list in rank order equals a full sort of its requests, whether plans ask for it always or
 * sometimes, before or after their own starts and preemptions. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "inflight/random.h"

#include "fixture.h"

enum { N_REQUESTS = 200 };

static uint64_t n_draws;
static size_t n_lists, n_ranked, n_wrong;
static bool names_all; /* ifl_rerank is called for requests of the ended step, too */

static uint32_t roll(uint32_t n_sides)
{
    return (uint32_t)(ifl_draw(1, IFL_DRAW_POLICY, 0, (uint32_t)n_draws++) % n_sides);
}

/* ---- an order with keys that change as the contract allows ---- */

static const void *order;

static int64_t *key_of(const struct ifl_request *r)
{
    return ifl_mine(order, r);
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = *key_of(of[i]);
}

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)view;
    order = self;
    *key_of(r) = roll(8);
}

/* Changes keys of requests that are not in the step. */
static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    (void)self;
    (void)view;
    while ((r = ifl_next(step, IFL_IN_RUNNING | IFL_IN_SWAPPED, &cursor)))
        if (!ifl_took_part(step, r) && roll(50) == 0) {
            *key_of(r) = roll(8);
            ifl_rerank(view, r);
        }
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    (void)self;
    const struct ifl_results ran = ifl_results(end);
    for (size_t i = 0; i < ran.n; i++) {
        if (roll(3) > 0)
            continue;
        *key_of(ran.of[i].request) = roll(8);
        if (names_all)
            ifl_rerank(view, ran.of[i].request);
    }
}

static enum ifl_keys named_keys(const void *self, const struct ifl_view *view)
{
    (void)self;
    (void)view;
    return IFL_KEYS_NAMED;
}

static const struct ifl_order_ops own = {.rank = rank, .keys = ifl_own_keys};
static const struct ifl_order_ops named = {.rank = rank, .keys = named_keys};
static const struct ifl_order_ops of_plan = {.rank = rank, .keys = ifl_keys_of_plan};
static const struct ifl_order_ops plain = {.rank = rank};

/* ---- checks of a list ---- */

static bool before(const struct ifl_request *a, const struct ifl_request *b)
{
    if (*key_of(a) != *key_of(b))
        return *key_of(a) < *key_of(b);
    return a->arrival_ns != b->arrival_ns ? a->arrival_ns < b->arrival_ns : a->serial < b->serial;
}

/* The list has the expected number of requests, each once, in rank order. */
static void check_list(struct ifl_step *step, enum ifl_list list, size_t n_expected)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r, *last = NULL;
    size_t n = 0;
    for (; (r = ifl_next(step, list, &cursor)); last = r, n++)
        n_wrong += last && !before(last, r);
    n_wrong += n != n_expected;
    n_ranked += n;
    n_lists++;
}

static void check_lists(struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    size_t n_running = 0, n_prefill = 0;
    for (size_t i = 0; i < running.n; i++) {
        n_running += running.of[i]->state == IFL_RUNNING;
        n_prefill += running.of[i]->state == IFL_RUNNING && !ifl_decodes(running.of[i]);
    }
    check_list(step, IFL_IN_RUNNING, n_running);
    check_list(step, IFL_IN_PREFILL, n_prefill);
    check_list(step, IFL_IN_SWAPPED, (size_t)step->n_swapped);
}

/* ---- random plans ---- */

static void start_some(struct ifl_step *step, uint32_t one_of)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (roll(one_of) == 0 && (r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        (void)ifl_start(step, r, 1 + (int32_t)roll((uint32_t)ifl_todo(r)));
    while (roll(one_of) == 0 && (r = ifl_next(step, IFL_IN_SWAPPED, &cursor)))
        (void)ifl_start(step, r, (int32_t)roll(2));
}

static void move_one(struct ifl_step *step, const struct ifl_request *r)
{
    static const enum ifl_fate fates[] = {IFL_SWAP, IFL_RECOMPUTE};
    const uint32_t face = roll(60);
    if (face < 2)
        (void)ifl_preempt(step, r, fates[face], (enum ifl_place)roll(3));
    else if (face < 8)
        (void)ifl_schedule(step, r, 1 + (int32_t)roll((uint32_t)ifl_todo(r)), 0);
}

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    const uint32_t when = roll(3);
    (void)self;
    (void)view;
    if (when == 0)
        check_lists(step);
    for (size_t i = 0; i < running.n; i++)
        move_one(step, running.of[i]);
    if (when == 1)
        check_lists(step);
    start_some(step, when == 2 ? 1 + roll(2) : 2);
    for (size_t i = 0; step->n_requests == 0 && i < running.n; i++)
        if (running.of[i]->state == IFL_RUNNING)
            (void)ifl_schedule(step, running.of[i], 1, 0);
    if (step->n_requests == 0)
        start_some(step, 1);
}

static const struct ifl_batching_ops batching_ops = {plan};

static const struct ifl_policy batching = {
    .kind = IFL_BATCHING, .name = "anything", .ops.batching = &batching_ops};

static void fly(const struct ifl_order_ops *ops)
{
    const struct ifl_policy fickle = {.kind = IFL_ORDER,
                                      .name = "fickle",
                                      .request_bytes = sizeof(int64_t),
                                      .on_join = on_join,
                                      .on_step_start = on_step_start,
                                      .on_step_end = on_step_end,
                                      .ops.order = ops};
    struct fixture f = {.limits = {.block_tokens = 4,
                                   .n_blocks = 20 * N_REQUESTS,
                                   .n_host_blocks = 20 * N_REQUESTS,
                                   .max_model_tokens = 80},
                        .linear = {.step_s = 0.01}};
    struct ifl_error error;
    fixture_vllm(&f, NULL, NULL);
    f.modules[IFL_BATCHING].policy = &batching;
    f.modules[IFL_ORDER].policy = &fickle;
    fixture_trace(&f, N_REQUESTS);
    for (size_t i = 0; i < N_REQUESTS; i++) {
        f.trace.arrival_ns[i] = (int64_t)(i / 3) * 20000000;
        f.trace.n_prompt[i] = 1 + (int32_t)roll(30);
        f.trace.n_output[i] = 1 + (int32_t)roll(40);
    }
    f.capture.cap_requests = N_REQUESTS + 1;
    f.capture.requests = malloc(f.capture.cap_requests * sizeof *f.capture.requests);
    n_lists = n_ranked = n_wrong = 0;
    names_all = ops == &named;
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    cr_expect_eq(f.capture.n_requests, N_REQUESTS);
    cr_expect_eq(n_wrong, 0, "%zu of %zu", n_wrong, n_lists);
    cr_expect_gt(n_ranked, 10 * n_lists, "%zu requests in %zu lists", n_ranked, n_lists);
    fixture_free(&f);
}

Test(ranks, keys_stand)
{
    fly(&own);
}

Test(ranks, keys_stand_but_of_those_that_the_order_names)
{
    fly(&named);
}

Test(ranks, keys_change_with_every_plan)
{
    fly(&of_plan);
}

Test(ranks, keys_change_with_anything)
{
    fly(&plain);
}
