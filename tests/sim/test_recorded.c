/* Steps of a recording, written by hand, and the durations that a replay gives to plans. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "replica/live_request.h"
#include "run/recorded.h"

#define HEADER                                                                                     \
    "point,replica,step,start_s,duration_s,prefill_tokens,prefill_seqs,decode_seqs,context_"       \
    "tokens\n"
#define ENGINE "step,start_s,duration_s,request_id,scheduled_tokens,computed_tokens\n"

/* Two replicas; the first was idle from 0.3 to 1 s, and its host took 2 ms before the third step.
 */
static const char *const steps = HEADER "0,0,0,0.000000000,0.100000000,64,2,0,0\n"
                                        "0,1,0,0.050000000,0.200000000,10,1,0,0\n"
                                        "0,0,1,0.102000000,0.198000000,0,0,2,66\n"
                                        "0,0,2,1.000000001,0.000000005,7,1,0,0\n";

/* Request 7 has a prompt of 30 tokens, computed as 20 and 10; 8 arrives behind it. */
static const char *const engine = ENGINE "0,0.0,0.1,7,20,0\n"
                                         "1,0.1,0.2,7,10,20\n"
                                         "1,0.1,0.2,8,5,0\n"
                                         "2,0.3,0.3,7,1,30\n"
                                         "2,0.3,0.3,8,1,5\n"
                                         "3,0.6,0.4,8,1,6\n";

static const struct ifl_step_totals prompts = {.n_prefill_tokens = 64, .n_prefill_seqs = 2};
static const struct ifl_step_totals other = {.n_prefill_tokens = 10, .n_prefill_seqs = 1};
static const struct ifl_step_totals decodes = {.n_decode_seqs = 2, .decode_context = 66};
static const struct ifl_step_totals late = {.n_prefill_tokens = 7, .n_prefill_seqs = 1};

/* Rows of the trace are its requests 7 and 8. */
static const uint64_t ids[] = {7, 8};
static const struct ifl_trace trace = {.n = 2, .request_id = (uint64_t *)(uintptr_t)ids};
static struct live_request requests[] = {{.row = 0}, {.row = 1}};
static struct capture told;

static struct recorded *create(const char *file, const char *text,
                               enum recorded_otherwise otherwise, struct cost *predictor,
                               struct ifl_error *error)
{
    char dir[64], path[96];
    snprintf(dir, sizeof dir, "/tmp/inflight-recorded-%ld", (long)getpid());
    cr_assert_eq(mkdir(dir, 0700), 0);
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fputs(text, out);
    cr_assert_eq(fclose(out), 0);
    const struct recorded_options options = {
        .name = dir,
        .otherwise = otherwise,
        .predictor = predictor,
        .trace = &trace,
        .recorder = (struct ifl_recorder *)(void *)&told,
    };
    struct recorded *run = recorded_create(&options, error);
    remove(path);
    rmdir(dir);
    return run;
}

static struct recorded *must_create(const char *file, const char *text,
                                    enum recorded_otherwise otherwise, struct cost *predictor)
{
    struct ifl_error error;
    struct recorded *run = create(file, text, otherwise, predictor, &error);
    cr_assert_not_null(run, "%s", error.text);
    return run;
}

/* The end of the step in seconds; negative: refused. */
static int64_t end_of(struct recorded *run, const struct ifl_step_desc *desc, int64_t earliest_ns,
                      struct ifl_error *error)
{
    int64_t start_ns, duration_ns;
    return recorded_step(run, desc, earliest_ns, &start_ns, &duration_ns, error) < 0
               ? error->code
               : start_ns + duration_ns;
}

static void expect_end(struct recorded *run, uint32_t replica, int64_t earliest_ns,
                       const struct ifl_step_totals *totals, int64_t end_ns)
{
    struct ifl_error error = {0};
    const struct ifl_step_desc desc = {.replica = replica, .totals = *totals};
    cr_expect_eq(end_of(run, &desc, earliest_ns, &error), end_ns, "%s", error.text);
}

static void expect_why(struct recorded *run, uint32_t replica, int64_t earliest_ns,
                       const struct ifl_step_totals *totals, const char *message)
{
    struct ifl_error error = {0};
    const struct ifl_step_desc desc = {.replica = replica, .totals = *totals};
    cr_expect_eq(end_of(run, &desc, earliest_ns, &error), IFL_E_INPUT);
    cr_expect(strstr(error.text, message), "\"%s\" is not in \"%s\"", message, error.text);
}

/* A step begins as early as possible and ends with the recorded step: its duration includes the
 * host's 2 ms, but not the idle time before the last step. */
Test(recorded, steps_end_when_they_ended)
{
    for (int otherwise = OTHERWISE_FAIL; otherwise <= OTHERWISE_RECORDED; otherwise++) {
        struct recorded *run =
            must_create("steps.csv", steps, (enum recorded_otherwise)otherwise, NULL);
        expect_end(run, 0, 0, &prompts, 100000000);
        expect_end(run, 0, 100000000, &decodes, 300000000);
        expect_end(run, 1, 40000000, &other, 250000000);
        expect_end(run, 0, 300000000, &late, 1000000006);
        cr_expect_eq(recorded_counts(run).n_otherwise, 0);
        recorded_destroy(run);
    }
    cr_expect_eq(told.n_differences, 0);
}

Test(recorded, another_plan_is_told_apart)
{
    struct recorded *run = must_create("steps.csv", steps, OTHERWISE_FAIL, NULL);
    expect_end(run, 0, 0, &prompts, 100000000);
    expect_why(run, 0, 100000000, &late,
               "step 1 of replica 0 has 7 prompt tokens of 1 sequences and decodes 0 with 0 tokens "
               "of context; recorded: 0 of 0, and 2 with 66");
    expect_why(run, 1, 300000000, &other,
               "step 0 of replica 1 begins at 0.300000000 s, after the recorded one ended at "
               "0.250000000 s");
    expect_why(run, 2, 0, &other, "replica 2 recorded 0 steps, and this run asks for one more");
    expect_end(run, 1, 0, &other, 250000000);
    expect_why(run, 1, 250000000, &other, "replica 1 recorded 1 steps, and this run asks for one");
    recorded_destroy(run);
}

/* ---- an engine's log names requests ---- */

struct plan {
    int64_t earliest_ns;
    int row[2], n_new[2], n_context[2], n;
};

static int64_t fly(struct recorded *run, const struct plan *plan, uint64_t step,
                   const struct ifl_step_totals *totals, struct ifl_error *error)
{
    struct ifl_work work[2];
    for (int i = 0; i < plan->n; i++)
        work[i] = (struct ifl_work){.request = &requests[plan->row[i]].pub,
                                    .n_new = plan->n_new[i],
                                    .n_context = plan->n_context[i]};
    const struct ifl_step_desc desc = {
        .step = step, .totals = *totals, .work = work, .n_work = (size_t)plan->n};
    return end_of(run, &desc, plan->earliest_ns, error);
}

static const struct ifl_step_totals no_totals;

static void expect_ends(struct recorded *run, const struct plan *plans, const int64_t *ends_ns,
                        size_t n, const struct ifl_step_totals *totals)
{
    struct ifl_error error = {0};
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(fly(run, &plans[i], i, totals, &error), ends_ns[i], "step %zu: %s", i,
                     error.text);
}

/* The order of requests within a step does not matter. */
Test(recorded, an_engine_log_is_replayed)
{
    const struct plan plans[] = {
        {0, {0}, {20}, {0}, 1},
        {100000000, {1, 0}, {5, 10}, {0, 20}, 2},
        {300000000, {0, 1}, {1, 1}, {30, 5}, 2},
        {600000000, {1}, {1}, {6}, 1},
    };
    const int64_t ends_ns[] = {100000000, 300000000, 600000000, 1000000000};
    struct recorded *run = must_create("step_log.csv", engine, OTHERWISE_FAIL, NULL);
    expect_ends(run, plans, ends_ns, 4, &no_totals);
    struct ifl_error error = {0};
    cr_expect_lt(fly(run, &plans[3], 4, &no_totals, &error), 0);
    recorded_destroy(run);
    run = must_create("step_log.csv", engine, OTHERWISE_FAIL, NULL);
    cr_expect_lt(fly(run, &plans[1], 0, &no_totals, &error), 0);
    cr_expect(strstr(error.text, "step 0 of replica 0 has, at place 0 of 2, 10 tokens of request 7 "
                                 "behind 20; recorded, of 1: 20 tokens of request 7 behind 0"),
              "%s", error.text);
    recorded_destroy(run);
}

static void expect_told(size_t i, struct ifl_difference_record is)
{
    cr_assert_lt(i, told.n_differences);
    const struct ifl_difference_record *was = &told.differences[i];
    cr_expect(was->step == is.step && was->recorded_step == is.recorded_step &&
                  was->request_id == is.request_id && was->planned_tokens == is.planned_tokens &&
                  was->recorded_tokens == is.recorded_tokens &&
                  was->planned_context == is.planned_context &&
                  was->recorded_context == is.recorded_context,
              "difference %zu", i);
}

/* Request 8 is not taken into step 1, but into step 2, which no recorded step equals; step 3 then
 * has its first decode, which was recorded as part of step 2; then both go on alike. */
static const struct plan otherwise_plans[] = {
    {0, {0}, {20}, {0}, 1},
    {100000000, {0}, {10}, {20}, 1},
    {300000000, {0, 1}, {1, 5}, {30, 0}, 2},
    {600000000, {1}, {1}, {5}, 1},
    {900000000, {1}, {1}, {6}, 1},
};

static void expect_differences(struct recorded *run)
{
    cr_assert_eq(told.n_differences, 3);
    expect_told(0, (struct ifl_difference_record){.step = 1,
                                                  .recorded_step = 1,
                                                  .request_id = 8,
                                                  .planned_tokens = -1,
                                                  .recorded_tokens = 5,
                                                  .planned_context = -1,
                                                  .recorded_context = 0});
    expect_told(1, (struct ifl_difference_record){.step = 2,
                                                  .recorded_step = 2,
                                                  .request_id = 8,
                                                  .planned_tokens = 5,
                                                  .recorded_tokens = 1,
                                                  .planned_context = 0,
                                                  .recorded_context = 5});
    expect_told(2, (struct ifl_difference_record){.step = 3,
                                                  .recorded_step = -1,
                                                  .request_id = 8,
                                                  .planned_tokens = 1,
                                                  .recorded_tokens = -1,
                                                  .planned_context = 5,
                                                  .recorded_context = -1});
    const struct recorded_counts counts = recorded_counts(run);
    cr_expect_eq(counts.n_steps, 5);
    cr_expect_eq(counts.n_otherwise, 3);
    cr_expect_eq(counts.n_unplanned, 0);
    cr_expect_eq(counts.n_left, 0);
}

/* Step 3 is extra: as long as the next recorded one, 0.4 s. The last one began at 0.9 s, before its
 * equal ended. */
Test(recorded, goes_on_with_recorded_durations)
{
    const int64_t ends_ns[] = {100000000, 300000000, 600000000, 1000000000, 1000000000};
    struct recorded *run = must_create("step_log.csv", engine, OTHERWISE_RECORDED, NULL);
    expect_ends(run, otherwise_plans, ends_ns, 5, &no_totals);
    expect_differences(run);
    recorded_destroy(run);
}

/* Steps planned otherwise take 0.05 s. */
Test(recorded, goes_on_with_predicted_durations)
{
    const struct linear_cost linear = {.step_s = 0.05};
    const struct ifl_step_totals totals = {.n_tokens = 1, .n_decode_seqs = 1};
    struct ifl_error error;
    struct cost *cost = cost_create_linear(&linear, &error);
    const int64_t ends_ns[] = {100000000, 150000000, 350000000, 650000000, 1000000000};
    struct recorded *run = must_create("step_log.csv", engine, OTHERWISE_PREDICTED, cost);
    expect_ends(run, otherwise_plans, ends_ns, 5, &totals);
    expect_differences(run);
    recorded_destroy(run);
    cost_destroy(cost);
}

/* Request 8 never runs beside 7: two recorded steps have no equal, and one is not reached. */
Test(recorded, counts_steps_that_were_recorded_alone)
{
    const struct plan plans[] = {{0, {0}, {20}, {0}, 1}, {100000000, {0, 1}, {1, 1}, {30, 5}, 2}};
    const int64_t ends_ns[] = {100000000, 600000000};
    struct recorded *run = must_create("step_log.csv", engine, OTHERWISE_RECORDED, NULL);
    expect_ends(run, plans, ends_ns, 2, &no_totals);
    cr_expect_eq(told.n_differences, 2);
    const struct recorded_counts counts = recorded_counts(run);
    cr_expect_eq(counts.n_otherwise, 0);
    cr_expect_eq(counts.n_unplanned, 1);
    cr_expect_eq(counts.n_left, 1);
    recorded_destroy(run);
}

/* Sums alone: the replay goes on, too, and lists the step as a whole. */
Test(recorded, sums_that_differ)
{
    struct recorded *run = must_create("steps.csv", steps, OTHERWISE_RECORDED, NULL);
    expect_end(run, 0, 0, &other, 100000000);
    expect_end(run, 0, 100000000, &decodes, 300000000);
    cr_assert_eq(told.n_differences, 1);
    cr_expect(told.differences[0].of_all);
    cr_expect_eq(told.differences[0].planned_tokens, 10);
    cr_expect_eq(told.differences[0].recorded_tokens, 64);
    recorded_destroy(run);
}
