/* What a request meets, by its closed form, and an identification that is short of memory. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdlib.h>

#include "identify/identify.h"
#include "identify/load.h"

static void must(int rc, const struct ifl_error *error)
{
    cr_assert(rc == 0, "%s: %s", error->file, error->text);
}

/* By hand: 0 to 4, 1 to 3, 2 to 6, one that is empty and one that is not there. */
Test(load, of_three_spans)
{
    const double from_s[] = {2, 0, 1, 5, (double)NAN}, to_s[] = {6, 4, 3, 5, 7};
    const double expected[] = {7.0 / 4, 8.0 / 4, 5.0 / 2, 1, 1};
    double load[5];
    struct ifl_error error;
    must(load_over(from_s, to_s, 5, load, &error), &error);
    for (int i = 0; i < 5; i++)
        cr_expect_float_eq(load[i], expected[i], 1e-12, "span %d: %g", i, load[i]);
}

/* A span a second, each of w seconds: one in the middle meets w, as 1 + 2 (w - 1) w / 2 / w is. A
 * look at each pair would take minutes. */
Test(load, of_a_long_run, .timeout = 20)
{
    enum { N = 400000, W = 30 };
    double *from_s = malloc(N * sizeof *from_s), *to_s = malloc(N * sizeof *to_s);
    double *load = malloc(N * sizeof *load);
    struct ifl_error error;
    cr_assert(from_s && to_s && load);
    for (int i = 0; i < N; i++) {
        from_s[i] = i;
        to_s[i] = i + W;
    }
    must(load_over(from_s, to_s, N, load, &error), &error);
    for (int i = W; i < N - W; i += 997)
        cr_expect_float_eq(load[i], W, 1e-9, "span %d: %g", i, load[i]);
    free(from_s);
    free(to_s);
    free(load);
}

/* ---- GSL's allocations, of which one fails ---- */

static long until_failure = -1;

static bool fails(void)
{
    return until_failure >= 0 && until_failure-- == 0;
}

/* The library's function behind the one of that name here. */
static void *behind(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    cr_assert(found, "%s: %s", name, dlerror());
    return found;
}

#define ALLOCATE(type, name, parameters, ...)                                                      \
    type *name parameters;                                                                         \
    type *name parameters                                                                          \
    {                                                                                              \
        type *(*really)parameters;                                                                 \
        *(void **)&really = behind(#name);                                                         \
        return fails() ? NULL : really(__VA_ARGS__);                                               \
    }

ALLOCATE(gsl_matrix, gsl_matrix_alloc, (const size_t a, const size_t b), a, b)
ALLOCATE(gsl_matrix, gsl_matrix_calloc, (const size_t a, const size_t b), a, b)
ALLOCATE(gsl_vector, gsl_vector_alloc, (const size_t n), n)
ALLOCATE(gsl_vector, gsl_vector_calloc, (const size_t n), n)
ALLOCATE(gsl_permutation, gsl_permutation_alloc, (const size_t n), n)
ALLOCATE(gsl_multifit_nlinear_workspace, gsl_multifit_nlinear_alloc,
         (const gsl_multifit_nlinear_type *t, const gsl_multifit_nlinear_parameters *how,
          const size_t n, const size_t p),
         t, how, n, p)

struct run {
    struct study *study;
    struct config config;
    struct trace_shelf traces;
    struct profile_shelf profiles;
    struct recording recording;
};

static void open_run(struct run *run)
{
    const struct study_options options = {"configs/validation/llmservingsim-rtx-pro-6000.yaml"};
    struct ifl_error error;
    must(study_load(&options, &run->study, &error), &error);
    must(study_read(run->study, 0, &run->config, &error), &error);
    trace_shelf_init(&run->traces, (struct ifl_notes){0});
    profile_shelf_init(&run->profiles);
    must(recording_read(
             &run->recording, "traces/data/recorded/llmservingsim-rtx-pro-6000.jsonl.gz",
             &(struct recording_options){.config = &run->config, .format = "auto", .fit_frac = 0.5},
             &error),
         &error);
}

/* The first, and some of those behind it: all say so, and free what they hold. */
Test(memory, that_gsl_does_not_have_is_said, .timeout = 300)
{
    static struct run run;
    static struct identified found;
    struct ifl_error error = {0};
    int rc = IFL_E_NOMEM;
    gsl_set_error_handler_off();
    open_run(&run);
    const struct identify_options options = {
        .setting = {.config = &run.config, .traces = &run.traces, .profiles = &run.profiles},
        .recordings = &run.recording,
        .n_recordings = 1};
    for (long k = 0; k < 28; k++) {
        until_failure = k;
        rc = identify(&options, &found, &error);
        cr_expect(rc == IFL_E_NOMEM, "allocation %ld fails: %d", k, rc);
    }
    until_failure = -1;
    must(identify(&options, &found, &error), &error);
    until_failure = 0;
    double value[N_PARAMETERS];
    cr_expect(identified_draw(&found, 1, value, &error) == IFL_E_NOMEM);
    recording_free(&run.recording);
    trace_shelf_finish(&run.traces);
    profile_shelf_finish(&run.profiles);
    study_free(run.study);
}
