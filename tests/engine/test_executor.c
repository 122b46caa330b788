/* The executor's half of the contract, with an engine that only sleeps. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "run/executor_engine.h"
#include "run/token_ids.h"

static const int64_t MS = 1000000;

/* ---- an engine that sleeps ---- */

static atomic_int sleep_ms, fails_at_step, n_steps, n_open;
static int32_t seen_ids[64], n_seen;

static int fake_open(const struct ifl_engine_options *options, void **self, struct ifl_error *error)
{
    (void)options, (void)error;
    *self = &n_open;
    n_open++;
    return 0;
}

static int fake_step(void *self, struct ifl_engine_step *step, struct ifl_error *error)
{
    const struct timespec nap = {.tv_nsec = sleep_ms * MS};
    (void)self;
    nanosleep(&nap, NULL);
    if (++n_steps == fails_at_step)
        return ifl_fail(error, IFL_E_DEVICE, "the fuse blew");
    for (int32_t i = 0; i < step->n_tokens; i++)
        seen_ids[n_seen++ % 64] = step->token_ids[i];
    for (int32_t i = 0; i < step->n_seqs; i++)
        step->sampled[i] = 1000 + n_steps;
    step->device_ns = 7;
    return 0;
}

/* The last of two stages samples. */
static int fake_stage(void *self, int32_t stage, int32_t slot, struct ifl_engine_step *step,
                      struct ifl_error *error)
{
    const struct timespec nap = {.tv_nsec = sleep_ms * MS};
    cr_assert(slot >= 0 && slot < 3);
    if (stage == 1)
        return fake_step(self, step, error);
    nanosleep(&nap, NULL);
    return 0;
}

static size_t fake_block_bytes(const void *self)
{
    (void)self;
    return 1;
}

static int fake_read_block(void *self, enum ifl_engine_pool pool, uint32_t block, void *bytes,
                           struct ifl_error *error)
{
    (void)self, (void)pool, (void)block, (void)bytes, (void)error;
    return 0;
}

static int fake_write_block(void *self, enum ifl_engine_pool pool, uint32_t block,
                            const void *bytes, struct ifl_error *error)
{
    (void)self, (void)pool, (void)block, (void)bytes, (void)error;
    return 0;
}

static void fake_close(void *self)
{
    n_open -= self != NULL;
}

static const struct ifl_engine fake = {IFL_ENGINE_ABI,
                                       sizeof(struct ifl_engine),
                                       sizeof(struct ifl_engine_options),
                                       sizeof(struct ifl_engine_step),
                                       "fake",
                                       fake_open,
                                       fake_step,
                                       fake_block_bytes,
                                       fake_read_block,
                                       fake_write_block,
                                       fake_close,
                                       .stage = fake_stage};

static struct executor_engine *open_stages(int ms, const volatile sig_atomic_t *stop,
                                           int32_t n_stages)
{
    struct ifl_error error;
    const struct executor_engine_options options = {
        .engine = &fake,
        .open = {.model = {.n_vocab = 1000},
                 .stop = stop,
                 .n_stages = n_stages,
                 .max_in_flight = n_stages > 0 ? 3 : 0},
        .token_seed = 1,
        .n_requests = 4,
        .pipeline = 6,
    };
    sleep_ms = ms;
    fails_at_step = n_steps = n_open = n_seen = 0;
    struct executor_engine *x = executor_engine_create(&options, 1, &error);
    cr_assert_not_null(x, "%s", error.text);
    return x;
}

static struct executor_engine *open_fake(int ms, const volatile sig_atomic_t *stop)
{
    return open_stages(ms, stop, 0);
}

/* One sequence of request `serial`: n_new tokens after n_context, of a prompt of 3. */
static int submit(struct executor_engine *x, uint64_t step, struct ifl_request *r, int32_t n_new,
                  int32_t n_context)
{
    struct ifl_error error;
    const uint32_t block = 0;
    const struct ifl_work work = {.request = r,
                                  .n_new = n_new,
                                  .n_context = n_context,
                                  .samples = true,
                                  .blocks = &block,
                                  .n_blocks = 1};
    const struct ifl_step_desc desc = {.step = step, .work = &work, .n_work = 1};
    r->n_prompt = 3;
    return executor_engine_ops.submit(x, &desc, &error);
}

static int next(struct executor_engine *x, int64_t until_ns, struct ifl_done *done)
{
    struct ifl_error error = {0};
    return executor_engine_ops.next(x, until_ns, done, &error);
}

Test(executor, waits_for_the_wall_clock)
{
    struct executor_engine *x = open_fake(1, NULL);
    struct ifl_done done;
    const int64_t until_ns = executor_engine_ops.now(x) + 30 * MS;
    cr_expect_eq(next(x, until_ns, &done), 0);
    cr_expect_geq(executor_engine_ops.now(x), until_ns);
    cr_expect_lt(executor_engine_ops.now(x), until_ns + 2000 * MS);
    executor_engine_destroy(x);
    cr_expect_eq(n_open, 0);
}

Test(executor, tells_no_end_after_the_deadline)
{
    struct executor_engine *x = open_fake(40, NULL);
    struct ifl_request r = {.n_seqs = 1};
    struct ifl_done done = {0};
    const int64_t early_ns = executor_engine_ops.now(x) + 5 * MS;
    cr_assert_eq(submit(x, 5, &r, 3, 0), 0);
    cr_expect_eq(next(x, early_ns, &done), 0, "the step lasts 40 ms");
    cr_expect_eq(next(x, IFL_NEVER, &done), 1);
    cr_expect_eq(done.step, 5);
    cr_expect_geq(done.end_ns - done.start_ns, 40 * MS);
    cr_expect_eq(done.device_ns, 7);
    /* A step that has ended is not reported before the loop asks for its time. */
    const int64_t past_ns = executor_engine_ops.now(x);
    cr_assert_eq(submit(x, 6, &r, 1, 3), 0);
    const struct timespec nap = {.tv_nsec = 80 * MS};
    nanosleep(&nap, NULL);
    cr_expect_eq(next(x, past_ns, &done), 0);
    cr_expect_eq(next(x, IFL_NEVER, &done), 1);
    cr_expect_eq(done.step, 6);
    executor_engine_destroy(x);
}

/* A step that is submitted before the previous one has ended still gets that step's token. */
Test(executor, feeds_tokens_back_in_order)
{
    struct executor_engine *x = open_fake(5, NULL);
    struct ifl_request r = {.serial = 2, .n_seqs = 1};
    struct ifl_done done;
    cr_assert_eq(submit(x, 0, &r, 3, 0), 0);
    cr_assert_eq(submit(x, 1, &r, 1, 3), 0);
    cr_assert_eq(submit(x, 2, &r, 1, 4), 0);
    for (uint64_t step = 0; step < 3; step++) {
        cr_assert_eq(next(x, IFL_NEVER, &done), 1);
        cr_expect_eq(done.step, step);
    }
    cr_expect_eq(seen_ids[3], 1001);
    cr_expect_eq(seen_ids[4], 1002);
    cr_assert_eq(submit(x, 3, &r, 5, 0), 0); /* a recompute */
    cr_assert_eq(next(x, IFL_NEVER, &done), 1);
    cr_expect_eq(memcmp(seen_ids + 5, seen_ids, 5 * sizeof *seen_ids), 0);
    executor_engine_ops.forget(x, 2);
    executor_engine_destroy(x);
}

Test(executor, passes_errors_on_and_takes_no_more_than_it_can)
{
    struct executor_engine *x = open_fake(50, NULL);
    struct ifl_request r = {.n_seqs = 1};
    struct ifl_done done;
    struct ifl_error error = {0};
    fails_at_step = 2;
    for (uint64_t i = 0; i < EXECUTOR_ENGINE_MAX_IN_FLIGHT; i++)
        cr_assert_eq(submit(x, i, &r, 3, 0), 0);
    cr_expect_eq(submit(x, 99, &r, 3, 0), IFL_E_DEVICE);
    cr_expect_eq(next(x, IFL_NEVER, &done), 1);
    cr_expect_eq(executor_engine_ops.next(x, IFL_NEVER, &done, &error), IFL_E_DEVICE);
    cr_expect_str_eq(error.text, "the fuse blew");
    executor_engine_destroy(x); /* with steps under way */
    cr_expect_eq(n_open, 0);
}

Test(executor, a_signal_ends_the_wait)
{
    static volatile sig_atomic_t stop;
    struct executor_engine *x = open_fake(1, &stop);
    struct ifl_done done;
    stop = 1;
    cr_expect_eq(next(x, IFL_NEVER, &done), IFL_E_INTERRUPTED);
    executor_engine_destroy(x);
}

Test(executor, prompts_are_drawn_once_and_shared_by_prefix)
{
    struct token_owner a = {
        .serial = 0, .n_seqs = 1, .n_prompt = 10, .prefix_group = 4, .stream_tokens = 6};
    struct token_owner b = {
        .serial = 1, .n_seqs = 1, .n_prompt = 10, .prefix_group = 4, .stream_tokens = 6};
    struct token_ids ids;
    int32_t n_equal = 0;
    cr_assert_eq(token_ids_create(&ids, 9, 50000, 2), 0);
    for (int32_t i = 0; i < 10; i++) {
        const int32_t x = token_ids_get(&ids, &a, i), y = token_ids_get(&ids, &b, i);
        cr_expect(x >= 0 && x < 50000);
        cr_expect_eq(x, token_ids_get(&ids, &a, i));
        cr_expect(i >= 6 || x == y, "token %d of a shared prefix", i);
        n_equal += x == y;
    }
    cr_expect_lt(n_equal, 8, "the rest is each request's own");
    token_ids_destroy(&ids);
}

Test(executor, retries_have_the_prompt_of_what_they_repeat)
{
    const struct token_owner first = {.serial = 0, .n_seqs = 1, .n_prompt = 100, .repeats = 3};
    const struct token_owner retry = {.serial = 1, .n_seqs = 1, .n_prompt = 100, .repeats = 3};
    const struct token_owner other = {.serial = 2, .n_seqs = 1, .n_prompt = 100, .repeats = 4};
    struct token_ids ids;
    int32_t n_equal = 0;
    cr_assert_eq(token_ids_create(&ids, 9, 50000, 3), 0);
    for (int32_t i = 0; i < 100; i++) {
        cr_expect_eq(token_ids_get(&ids, &first, i), token_ids_get(&ids, &retry, i));
        n_equal += token_ids_get(&ids, &first, i) == token_ids_get(&ids, &other, i);
    }
    cr_expect_lt(n_equal, 5);
    token_ids_destroy(&ids);
}

/* ---- stages ---- */

static struct ifl_stage_time times[3][2];

static void take_times(struct executor_engine *x)
{
    struct ifl_done done;
    for (uint64_t step = 0; step < 3; step++) {
        cr_assert_eq(next(x, IFL_NEVER, &done), 1);
        cr_assert_eq(done.step, step);
        cr_assert_not_null(done.stages);
        cr_expect_eq(done.stages->pipeline, 6);
        cr_assert_eq(done.stages->n, 2);
        memcpy(times[step], done.stages->of, sizeof times[step]);
        cr_expect_eq(done.start_ns, times[step][0].start_ns);
        cr_expect_eq(done.end_ns, times[step][1].end_ns);
        cr_expect_leq(times[step][0].end_ns, times[step][1].start_ns);
    }
}

/* Steps of different requests are in the two stages at the same time. */
Test(executor, stages_overlap)
{
    struct executor_engine *x = open_stages(100, NULL, 2);
    struct ifl_request r[3] = {
        {.n_seqs = 1}, {.serial = 1, .n_seqs = 1}, {.serial = 2, .n_seqs = 1}};
    for (uint64_t i = 0; i < 3; i++)
        cr_assert_eq(submit(x, i, &r[i], 3, 0), 0);
    take_times(x);
    for (int i = 1; i < 3; i++) {
        cr_expect_geq(times[i][0].start_ns, times[i - 1][0].end_ns);
        cr_expect_geq(times[i][1].start_ns, times[i - 1][1].end_ns);
        cr_expect_lt(times[i][0].start_ns, times[i - 1][1].end_ns, "step %d waits for both stages",
                     i);
    }
    executor_engine_destroy(x);
}

/* A step that computes a token enters the first stage when the last has sampled it. */
Test(executor, a_stage_waits_for_tokens)
{
    struct executor_engine *x = open_stages(5, NULL, 2);
    struct ifl_request r = {.serial = 2, .n_seqs = 1};
    cr_assert_eq(submit(x, 0, &r, 3, 0), 0);
    cr_assert_eq(submit(x, 1, &r, 1, 3), 0);
    cr_assert_eq(submit(x, 2, &r, 1, 4), 0);
    take_times(x);
    cr_expect_geq(times[1][0].start_ns, times[0][1].end_ns);
    cr_expect_geq(times[2][0].start_ns, times[1][1].end_ns);
    cr_expect_eq(seen_ids[3], 1001);
    cr_expect_eq(seen_ids[4], 1002);
    executor_engine_destroy(x);
}

/* Behind a step that fails no stage computes. */
Test(executor, stages_end_with_the_first_error)
{
    struct executor_engine *x = open_stages(5, NULL, 2);
    struct ifl_request r = {.serial = 2, .n_seqs = 1};
    struct ifl_error error = {0};
    struct ifl_done done;
    fails_at_step = 1;
    cr_assert_eq(submit(x, 0, &r, 3, 0), 0);
    cr_assert_eq(submit(x, 1, &r, 1, 3), 0);
    cr_expect_eq(executor_engine_ops.next(x, IFL_NEVER, &done, &error), IFL_E_DEVICE);
    cr_expect_str_eq(error.text, "the fuse blew");
    executor_engine_destroy(x);
    cr_expect_eq(n_open, 0);
}
