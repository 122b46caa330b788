/* Files of steps, written by hand. */
#include <string.h>
#include <sys/stat.h>

#include "cost/step_log.h"
#include "loading.h"

#define STEPS                                                                                      \
    "point,replica,step,start_s,duration_s,prefill_tokens,prefill_seqs,decode_seqs,context_"       \
    "tokens\n"
#define WORK "point,replica,step,request_id,prefill_tokens,decode_tokens,context_tokens\n"
#define ENGINE "step,start_s,duration_s,request_id,scheduled_tokens,computed_tokens\n"

static char folder[64], files[2][96];

static void write_file(int i, const char *name, const char *text)
{
    snprintf(files[i], sizeof files[i], "%s/%s", folder, name);
    FILE *file = fopen(files[i], "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

/* Files of a folder; NULL: none. */
static int load(const char *name, const char *text, const char *work, struct step_log *log,
                struct ifl_error *error)
{
    snprintf(folder, sizeof folder, "/tmp/inflight-step-log-%ld", (long)getpid());
    cr_assert_eq(mkdir(folder, 0700), 0);
    write_file(0, name, text);
    if (work)
        write_file(1, "work.csv", work);
    *error = (struct ifl_error){0};
    const int rc = step_log_read(folder, log, error);
    remove(files[0]);
    if (work)
        remove(files[1]);
    rmdir(folder);
    return rc;
}

static void refuse(const char *name, const char *text, const char *work, int line,
                   const char *message)
{
    struct step_log log;
    struct ifl_error error;
    cr_expect_lt(load(name, text, work, &log, &error), 0);
    cr_expect(strstr(error.text, message), "\"%s\" is not in \"%s\"", message, error.text);
    cr_expect_eq(error.line, line, "%s: line %d", error.text, error.line);
    cr_expect_null(log.steps);
}

Test(step_log, steps_and_the_work_of_their_requests)
{
    struct step_log log;
    struct ifl_error error;
    cr_assert_eq(load("steps.csv",
                      STEPS "0,0,0,0,0.5,64,2,0,0\n0,1,4,0,0.25,1,1,0,0\n0,0,1,0.5,1,0,0,2,66\n",
                      WORK "0,0,0,9,32,0,0\n0,0,0,3,32,0,0\n0,0,1,3,0,1,32\n0,0,1,9,0,1,32\n"
                           "0,1,4,5,1,0,0\n",
                      &log, &error),
                 0, "%s", error.text);
    cr_expect(log.has_sums && log.has_parts);
    cr_assert_eq(log.n_steps, 3);
    cr_assert_eq(log.n_replicas, 2);
    const struct logged_step *first = &log.steps[log.first[0]];
    cr_assert_eq(first->n_parts, 2);
    cr_expect_eq(log.parts[first->first_part].request_id, 3, "in order of requests");
    const struct logged_step *second = &log.steps[first->next];
    cr_expect_eq(second->end_ns, 1500000000);
    cr_expect_eq(log.parts[second->first_part].n_context, 32);
    cr_expect_eq(second->next, STEP_LOG_END);
    cr_expect_eq(log.steps[log.first[1]].number, 4);
    step_log_free(&log);
}

Test(step_log, files_that_are_no_steps)
{
    refuse("steps.csv", "point,replica\n0,0\n", NULL, 1, "no column step");
    refuse("steps.csv", STEPS "0,0,0,0,0.1,64,2,0,0\n1,0,0,0,0.1,64,2,0,0\n", NULL, 3,
           "point is \"1\", expected one point of a run");
    refuse("steps.csv", STEPS "0,0,0,0,fast,64,2,0,0\n", NULL, 2, "duration_s is \"fast\"");
    refuse("steps.csv", STEPS "0,0,0,0,0.1,6.5,2,0,0\n", NULL, 2, "expected a whole number");
    refuse("steps.csv", STEPS "0,0,1,0,0.1,64,2,0,0\n0,0,1,0,0.1,64,2,0,0\n", NULL, 3,
           "step 1 of replica 0 stands behind step 1, expected rising steps");
    refuse("steps.csv", STEPS "0,0,0,0,0.1,64,2,0,0\n", WORK "0,0,1,9,32,0,0\n", 2,
           "step is \"1\", expected a step that steps.csv has, in its order");
    refuse("other.csv", STEPS "0,0,0,0,0.1,64,2,0,0\n", NULL, 0,
           "has no steps.csv and no step_log.csv");
}

Test(step_log, engine_logs_that_are_wrong)
{
    refuse("step_log.csv", "step,start_s,duration_s,request_id,scheduled_tokens\n0,0,1,7,1\n", NULL,
           1, "no column computed_tokens, expected an engine's log of its steps");
    refuse("step_log.csv", ENGINE "0,0,1,7,1,0\n0,0,2,8,1,0\n", NULL, 3,
           "expected the start_s and duration_s of the step's first row");
    refuse("step_log.csv", ENGINE "1,0,1,7,1,0\n0,1,1,7,1,1\n", NULL, 3, "expected rising steps");
    refuse("step_log.csv", ENGINE "0,0,1,7,0,0\n", NULL, 2, "expected at least one token");
    refuse("step_log.csv", ENGINE "0,0,1,cmpl-7,1,0\n", NULL, 2, "request_id is \"cmpl-7\"");
    refuse("step_log.csv", ENGINE "0,-1,1,7,1,0\n", NULL, 2, "start_s is \"-1\"");
}

Test(step_log, rows_of_a_step_stand_together)
{
    refuse("step_log.csv",
           "replica,step,start_s,duration_s,request_id,scheduled_tokens,computed_tokens\n"
           "0,0,0,1,7,1,0\n1,0,0,1,8,1,0\n0,0,0,1,9,1,0\n",
           NULL, 4, "step 0 goes on behind another step");
}
