#include "fit/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/nearest.h"

/* The rows of one operation while it is fitted. */
struct job {
    const struct form *form;
    const struct fit_options *options;
    const struct fit_sample **rows; /* [n] */
    int *fold;                      /* [n] in which a row is held out, or -1 */
    const struct fit_sample **some; /* [n] scratch for the rows of a fold */
    double *predicted_s;            /* [n] */
    size_t n;
};

/* ---- one form on some rows ---- */

enum { MAX_SWITCHES = 40, LEAST_PER_LINE = 4 };

static int by_bytes(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Candidate sizes at which the second line may begin: at most MAX_SWITCHES + 1, with at least
 * LEAST_PER_LINE sizes left to each line. */
static size_t switches(const struct fit_sample *const *rows, size_t n, double candidates[],
                       struct ifl_error *error)
{
    double *sizes = malloc(n * sizeof *sizes);
    size_t n_sizes = 0, n_candidates = 0;
    if (!sizes) {
        ifl_fail_nomem(error);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        sizes[i] = rows[i]->bytes;
    qsort(sizes, n, sizeof *sizes, by_bytes);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || sizes[i] != sizes[n_sizes - 1])
            sizes[n_sizes++] = sizes[i];
    const size_t stride = n_sizes / MAX_SWITCHES + 1;
    for (size_t i = LEAST_PER_LINE; i + LEAST_PER_LINE <= n_sizes; i += stride)
        candidates[n_candidates++] = sizes[i];
    free(sizes);
    return n_candidates;
}

/* Fits both lines for each candidate size at which the second may begin, and keeps the best. */
static int solve_lines(const struct form *form, const struct fit_sample *const *rows, size_t n,
                       enum solve_demand demand, struct platform *platform,
                       struct solution *solution, struct ifl_error *error)
{
    double candidates[MAX_SWITCHES + 1], best_from = 0, best_cost = INFINITY;
    double *from = (double *)((char *)platform + form->switch_offset);
    const size_t n_candidates = switches(rows, n, candidates, error);
    if (n_candidates == 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "%zu rows do not determine %s.bulk_from_bytes, expected at least %d "
                        "different sizes",
                        n, form->section, 2 * LEAST_PER_LINE);
    for (size_t i = 0; i < n_candidates; i++) {
        *from = candidates[i];
        if (solve(form, rows, n, SOLVE_ROUGHLY, platform, solution, error))
            return error->code;
        if (solution->cost < best_cost) {
            best_cost = solution->cost;
            best_from = candidates[i];
        }
    }
    *from = best_from;
    return solve(form, rows, n, demand, platform, solution, error);
}

static int solve_form(const struct form *form, const struct fit_sample *const *rows, size_t n,
                      enum solve_demand demand, struct platform *platform,
                      struct solution *solution, struct ifl_error *error)
{
    return form->switch_offset ? solve_lines(form, rows, n, demand, platform, solution, error)
                               : solve(form, rows, n, demand, platform, solution, error);
}

/* ---- which rows are held out ---- */

static bool is_named(const struct fit_options *options, const char *group)
{
    for (size_t i = 0; i < options->n_train; i++)
        if (strcmp(options->train[i], group) == 0)
            return true;
    return false;
}

/* True if --train names a group of this operation. Then fold 0 has the rows of all other groups. */
static bool deal_by_name(struct job *job)
{
    bool any = false;
    for (size_t i = 0; i < job->n; i++) {
        const bool trains = is_named(job->options, job->rows[i]->group);
        job->fold[i] = trains ? -1 : 0;
        any |= trains;
    }
    return any;
}

/* Assigns the groups, in the order in which they first appear, to the folds in turn. */
static int deal_round(struct job *job, int *n_folds, struct ifl_error *error)
{
    const char **groups = malloc(job->n * sizeof *groups);
    size_t n_groups = 0;
    if (!groups)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < job->n; i++) {
        size_t g = n_groups;
        while (g > 0 && strcmp(groups[g - 1], job->rows[i]->group) != 0)
            g--;
        if (g == 0)
            groups[g = n_groups++] = job->rows[i]->group;
        else
            g--;
        job->fold[i] = (int)(g % (size_t)job->form->n_folds);
    }
    *n_folds = n_groups < (size_t)job->form->n_folds ? (int)n_groups : job->form->n_folds;
    free(groups);
    return 0;
}

/* ---- one operation ---- */

/* Rows that are fitted while `fold` is held out. */
static size_t keep_others(struct job *job, int fold)
{
    size_t n = 0;
    for (size_t i = 0; i < job->n; i++)
        if (job->fold[i] != fold)
            job->some[n++] = job->rows[i];
    return n;
}

static int hold_out(struct job *job, int fold, const struct platform *peaks,
                    struct solution *solution, struct platform *fitted, enum solve_demand demand,
                    struct ifl_error *error)
{
    const size_t n = keep_others(job, fold);
    *fitted = *peaks;
    if (solve_form(job->form, job->some, n, demand, fitted, solution, error))
        return error->code;
    for (size_t i = 0; i < job->n; i++)
        if (job->fold[i] == fold)
            job->predicted_s[i] = job->form->predict_s(fitted, job->rows[i]);
    return 0;
}

static int summarise(const struct job *job, struct fit_op_report *report, struct ifl_error *error)
{
    const struct predictions of = {job->rows, job->predicted_s, job->n};
    int code = errors_of_rows(&of, &report->held_out, error);
    if (!code)
        code = errors_of_layers(&of, &report->held_out_layers, error);
    if (!code)
        code = errors_of_shapes(&of, &report->held_out_shapes, error);
    return code;
}

static int summarise_fit(struct job *job, const struct platform *platform,
                         struct fit_op_report *report, struct ifl_error *error)
{
    for (size_t i = 0; i < job->n; i++)
        job->predicted_s[i] = job->form->predict_s(platform, job->rows[i]);
    const struct predictions of = {job->rows, job->predicted_s, job->n};
    return errors_of_rows(&of, &report->fitted, error);
}

static int fit_by_name(struct job *job, struct platform *platform, struct fit_op_report *report,
                       struct ifl_error *error)
{
    struct platform fitted;
    if (hold_out(job, 0, platform, &report->solution, &fitted, SOLVE_DETERMINED, error) ||
        summarise(job, report, error))
        return error->code;
    *platform = fitted;
    for (size_t i = 0; i < job->n; i++)
        job->predicted_s[i] =
            job->fold[i] == 0 ? NAN : job->form->predict_s(platform, job->rows[i]);
    const struct predictions of = {job->rows, job->predicted_s, job->n};
    return errors_of_rows(&of, &report->fitted, error);
}

static int fit_in_folds(struct job *job, struct platform *platform, struct fit_op_report *report,
                        struct ifl_error *error)
{
    struct platform fitted = *platform;
    int n_folds = 0;
    if (solve_form(job->form, job->rows, job->n, SOLVE_DETERMINED, &fitted, &report->solution,
                   error) ||
        deal_round(job, &n_folds, error))
        return error->code;
    for (int fold = 0; fold < n_folds && n_folds > 1; fold++) {
        struct platform without;
        struct solution solution;
        if (hold_out(job, fold, platform, &solution, &without, SOLVE_ROUGHLY, error))
            return error->code;
    }
    *platform = fitted;
    const int code = summarise(job, report, error);
    return code ? code : summarise_fit(job, platform, report, error);
}

static int run_job(struct job *job, struct platform *platform, struct fit_op_report *report,
                   struct ifl_error *error)
{
    for (size_t i = 0; i < job->n; i++)
        job->predicted_s[i] = NAN;
    report->form = job->form;
    return deal_by_name(job) ? fit_by_name(job, platform, report, error)
                             : fit_in_folds(job, platform, report, error);
}

static void free_job(struct job *job)
{
    free(job->rows);
    free(job->fold);
    free(job->some);
    free(job->predicted_s);
}

/* ---- parameters that the caller fixes ---- */

static bool is_held(const struct fit_hold *hold, const char *section,
                    const struct form_parameter *of)
{
    char name[sizeof hold->name];
    snprintf(name, sizeof name, "%s.%s", section, of->name);
    return strcmp(name, hold->name) == 0;
}

static void take_out(const struct fit_hold *hold, struct form *form, struct platform *platform)
{
    int n = 0;
    for (int i = 0; i < form->n_parameters; i++) {
        if (is_held(hold, form->section, &form->parameters[i]))
            *form_parameter_at(platform, &form->parameters[i]) = hold->value;
        else
            form->parameters[n++] = form->parameters[i];
    }
    form->n_parameters = n;
}

enum { MAX_NAMES = FIT_OPS * FORM_MAX_PARAMETERS };

static int check_hold(const struct fit_hold *hold, struct ifl_error *error)
{
    char texts[MAX_NAMES][sizeof hold->name];
    const char *names[MAX_NAMES];
    size_t n = 0;
    for (int op = FIT_GEMM; op < FIT_OPS; op++)
        for (int i = 0; i < form_of(op)->n_parameters; i++) {
            const struct form *form = form_of(op);
            if (is_held(hold, form->section, &form->parameters[i]))
                return 0;
            snprintf(texts[n], sizeof texts[n], "%s.%s", form->section, form->parameters[i].name);
            names[n] = texts[n];
            n++;
        }
    const char *near = ifl_nearest(hold->name, names, n);
    return near ? ifl_fail(error, IFL_E_INPUT, "--hold %s: no such parameter, did you mean %s?",
                           hold->name, near)
                : ifl_fail(error, IFL_E_INPUT,
                           "--hold %s: no such parameter, expected one such as gemm.wave_frac",
                           hold->name);
}

static int check_holds(const struct fit_options *options, struct ifl_error *error)
{
    for (size_t i = 0; i < options->n_hold; i++)
        if (check_hold(&options->hold[i], error))
            return error->code;
    return 0;
}

static int fit_op(const struct fit_data *data, const struct fit_options *options, enum fit_op op,
                  struct platform *platform, struct fit_op_report *report, struct ifl_error *error)
{
    struct job job = {.form = &report->free_form, .options = options};
    report->free_form = *form_of(op);
    for (size_t i = 0; i < options->n_hold; i++)
        take_out(&options->hold[i], &report->free_form, platform);
    job.rows = malloc((data->n + 1) * sizeof *job.rows);
    job.some = malloc((data->n + 1) * sizeof *job.some);
    job.fold = malloc((data->n + 1) * sizeof *job.fold);
    job.predicted_s = malloc((data->n + 1) * sizeof *job.predicted_s);
    int code = 0;
    if (!job.rows || !job.some || !job.fold || !job.predicted_s)
        code = ifl_fail_nomem(error);
    for (size_t i = 0; i < data->n && !code; i++)
        if (data->samples[i].op == op)
            job.rows[job.n++] = &data->samples[i];
    if (!code && job.n > 0)
        code = run_job(&job, platform, report, error);
    if (options->n_fitted)
        atomic_fetch_add(options->n_fitted, job.n);
    free_job(&job);
    return code;
}

/* ---- all of them ---- */

static int check_train(const struct fit_data *data, const struct fit_options *options,
                       struct ifl_error *error)
{
    for (size_t t = 0; t < options->n_train; t++) {
        size_t i = 0;
        while (i < data->n && strcmp(data->samples[i].group, options->train[t]) != 0)
            i++;
        if (i == data->n)
            return ifl_fail(error, IFL_E_INPUT,
                            "--train %s: no row belongs to it, expected a group of the tables such "
                            "as %s",
                            options->train[t], data->samples[0].group);
    }
    return 0;
}

static int predict_all(const struct fit_data *data, const struct platform *platform,
                       struct fit_report *report, struct ifl_error *error)
{
    report->rows = malloc((data->n + 1) * sizeof *report->rows);
    report->predicted_s = malloc((data->n + 1) * sizeof *report->predicted_s);
    if (!report->rows || !report->predicted_s)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < data->n; i++) {
        const struct fit_sample *sample = &data->samples[i];
        if (sample->op == FIT_NONE)
            continue;
        report->rows[report->n] = sample;
        report->predicted_s[report->n++] = form_of(sample->op)->predict_s(platform, sample);
    }
    return 0;
}

int fit_profile(const struct fit_data *data, const struct fit_options *options,
                struct platform *platform, struct fit_report *report, struct ifl_error *error)
{
    *report = (struct fit_report){.n = 0};
    platform->hardware.corrections_path[0] = '\0'; /* corrections of the old numbers */
    platform->hardware.corrections.n_of = 0;
    int code = check_train(data, options, error);
    if (!code)
        code = check_holds(options, error);
    for (int op = FIT_GEMM; op < FIT_OPS && !code; op++)
        code = fit_op(data, options, op, platform, &report->of[op], error);
    if (!code)
        code = predict_all(data, platform, report, error);
    if (code)
        fit_report_free(report);
    return code;
}

int fit_host_again(const struct fit_data *data, const struct fit_options *options,
                   struct platform *platform, struct fit_report *report, struct ifl_error *error)
{
    const int code = fit_op(data, options, FIT_HOST, platform, &report->of[FIT_HOST], error);
    fit_report_free(report);
    return code ? code : predict_all(data, platform, report, error);
}

void fit_report_free(struct fit_report *report)
{
    free(report->rows);
    free(report->predicted_s);
    report->rows = NULL;
    report->predicted_s = NULL;
    report->n = 0;
}
