/* Steps of a recording, written by hand. */
#include <string.h>
#include <sys/stat.h>

#include "cost/cost.h"
#include "loading.h"

#define HEADER                                                                                     \
    "point,replica,step,start_s,duration_s,prefill_tokens,prefill_seqs,decode_seqs,context_"       \
    "tokens\n"

/* Two replicas; the first was idle from 0.3 to 1 s, and its host took 2 ms before the third step.
 */
static const char *const steps = HEADER "0,0,0,0.000000000,0.100000000,64,2,0,0\n"
                                        "0,1,0,0.050000000,0.200000000,10,1,0,0\n"
                                        "0,0,1,0.102000000,0.198000000,0,0,2,66\n"
                                        "0,0,2,1.000000001,0.000000005,7,1,0,0\n";

static const struct ifl_step_totals prompts = {.n_prefill_tokens = 64, .n_prefill_seqs = 2};
static const struct ifl_step_totals other = {.n_prefill_tokens = 10, .n_prefill_seqs = 1};
static const struct ifl_step_totals decodes = {.n_decode_seqs = 2, .decode_context = 66};
static const struct ifl_step_totals late = {.n_prefill_tokens = 7, .n_prefill_seqs = 1};

static struct cost *load(const char *text, struct ifl_error *error)
{
    char dir[64], path[80];
    snprintf(dir, sizeof dir, "/tmp/inflight-recorded-%ld", (long)getpid());
    cr_assert_eq(mkdir(dir, 0700), 0);
    snprintf(path, sizeof path, "%s/steps.csv", dir);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
    struct cost *cost = cost_create_recorded(dir, error);
    remove(path);
    rmdir(dir);
    return cost;
}

static struct cost *must_load(const char *text)
{
    struct ifl_error error;
    struct cost *cost = load(text, &error);
    cr_assert_not_null(cost, "%s", error.text);
    return cost;
}

static void expect_why(struct cost *cost, uint32_t replica, int64_t start_ns,
                       const struct ifl_step_totals *totals, const char *message)
{
    struct ifl_error error;
    cr_assert_lt(cost_step_from_ns(cost, replica, start_ns, totals), 0);
    cr_expect_eq(cost_why_not(cost, totals, &error), IFL_E_INPUT);
    cr_expect(strstr(error.text, message), "\"%s\" is not in \"%s\"", message, error.text);
}

/* A step begins as early as possible and ends with the recorded step: its duration includes the
 * host's 2 ms, but not the idle time before the last step. */
Test(recorded, steps_end_when_they_ended)
{
    struct cost *cost = must_load(steps);
    cr_expect_eq(cost_step_from_ns(cost, 0, 0, &prompts), 100000000);
    cr_expect_eq(cost_step_from_ns(cost, 0, 100000000, &decodes), 200000000);
    cr_expect_eq(cost_step_from_ns(cost, 1, 40000000, &other), 210000000);
    cr_expect_eq(cost_step_from_ns(cost, 0, 1000000001, &late), 5);
    cost_destroy(cost);
}

Test(recorded, another_plan_is_told_apart)
{
    struct cost *cost = must_load(steps);
    cr_assert_eq(cost_step_from_ns(cost, 0, 0, &prompts), 100000000);
    expect_why(cost, 0, 100000000, &late,
               "step 1 of replica 0 has 7 prompt tokens of 1 sequences and decodes 0 with 0 tokens "
               "of context; recorded: 0 of 0, and 2 with 66");
    expect_why(cost, 1, 300000000, &other,
               "step 0 of replica 1 begins at 0.300000000 s, after the recorded one ended at "
               "0.250000000 s");
    expect_why(cost, 2, 0, &other, "replica 2 recorded 0 steps, and this run asks for one more");
    cr_assert_eq(cost_step_from_ns(cost, 1, 0, &other), 250000000);
    expect_why(cost, 1, 250000000, &other, "replica 1 recorded 1 steps, and this run asks for one");
    cost_destroy(cost);
}

Test(recorded, files_that_are_no_steps)
{
    struct ifl_error error;
    cr_assert_null(load("point,replica\n0,0\n", &error));
    cr_expect(strstr(error.text, "no column prefill_tokens"), "%s", error.text);
    cr_assert_null(load(HEADER "0,0,0,0,0.1,64,2,0,0\n1,0,0,0,0.1,64,2,0,0\n", &error));
    cr_expect(strstr(error.text, "point is \"1\", expected one point of a run"), "%s", error.text);
    cr_assert_null(load(HEADER "0,0,0,0,fast,64,2,0,0\n", &error));
    cr_expect_eq(error.line, 2);
    cr_assert_null(cost_create_recorded("/nowhere", &error));
    cr_expect_eq(error.code, IFL_E_INPUT);
}
