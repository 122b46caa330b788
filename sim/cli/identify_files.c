#include "cli/identify_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/report.h"

#include "base/new_file.h"

/* ---- parameters ---- */

/* Of a parameter that stands with another one no range is known. */
static void print_unknown(const struct finding *f, FILE *out)
{
    fprintf(out, "%20s not determined: %s", "", f->why);
    if (f->high > f->low)
        fprintf(out, "; moves the rest by %s %.2g%%",
                f->moves < finding_matters ? "less than" : "up to",
                100 * fmax(f->moves, finding_matters));
    fprintf(out, "\n");
}

static void print_finding(const struct identified *found, enum parameter p, FILE *out)
{
    const struct parameter_row *row = &parameter_rows[p];
    const struct finding *f = &found->of[p];
    const double by = row->shown;
    if (row->is_asked && f->state == GIVEN && f->value == 0)
        return;
    fprintf(out, "%-26s %10.5g %-6s ", row->key, f->value * by, row->unit);
    const char *determined = *found->rival ? "of a wrong model" : "determined";
    if (f->state == FOUND)
        fprintf(out, "%8.5g to %-8.5g %s%s\n", f->low * by, f->high * by,
                *f->why ? "not alone: " : determined, f->why);
    else if (f->state == AT_BOUND)
        fprintf(out, "%8.5g to %-8.5g %s: as small as it can be\n", f->low * by, f->high * by,
                determined);
    else if (f->state == GIVEN)
        fprintf(out, "%20s given: %s\n", "", f->why);
    else
        print_unknown(f, out);
}

static void print_findings(const struct identify_report *report)
{
    const struct identified *found = report->found;
    size_t n_rows = 0;
    for (size_t k = 0; k < report->options->n_recordings; k++)
        n_rows += report->options->recordings[k].n_fit;
    fprintf(report->table, "%zu requests of %zu recorded runs fitted, %zu flights\n\n", n_rows,
            report->options->n_recordings, found->n_flights);
    fprintf(report->table, "%-26s %10s %-6s %-20s\n", "parameter", "value", "", "90% interval");
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        print_finding(found, p, report->table);
}

/* ---- errors ---- */

static void print_judged(FILE *out, const char *when, const struct judged *judged)
{
    fprintf(out, "  %-7s", when);
    for (int l = 0; l < N_LATENCIES; l++)
        fprintf(out, " %+8.1f%%", 100 * judged->mean[l]);
    for (int l = 0; l < N_LATENCIES; l++)
        fprintf(out, " %8.1f%%", 100 * judged->request[l]);
    fprintf(out, "\n");
}

static void print_judged_head(FILE *out, const char *what)
{
    fprintf(out, "\n%-9s %9s %9s %9s %9s %9s %9s\n", what, "TTFT", "TPOT", "E2E", "TTFT", "TPOT",
            "E2E");
    fprintf(out, "%-9s %9s %9s %9s %9s %9s %9s\n", "", "mean", "mean", "mean", "request", "request",
            "request");
}

static int judge_value(const struct identify_report *report, const struct recording *r,
                       const double value[], struct trial *trial, struct judged *judged,
                       struct ifl_error *error)
{
    const size_t from = r->n_fit < r->n ? r->n_fit : 0;
    const int rc = trial_fly(&report->options->setting, r, value, 0, trial, error);
    return rc < 0 ? rc : judge(r, trial, from, r->n, judged, error);
}

/* ---- intervals ---- */

enum { PREDICTION_DRAWS = 40 };

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double mean_of(const double *x, size_t from, size_t n)
{
    double sum = 0;
    size_t m = 0;
    for (size_t i = from; i < n; i++)
        if (!isnan(x[i])) {
            sum += x[i];
            m++;
        }
    return sum / (double)m;
}

/* Means of the draws over requests from.., each latency sorted. */
static int draw_means(const struct identify_report *report, const struct recording *r, size_t from,
                      struct trial *trial, double draws[N_LATENCIES][PREDICTION_DRAWS],
                      struct ifl_error *error)
{
    double value[N_PARAMETERS];
    for (uint64_t d = 0; d < PREDICTION_DRAWS; d++) {
        if (identified_draw(report->found, d + 1, value, error) < 0 ||
            trial_fly(&report->options->setting, r, value, 0, trial, error) < 0)
            return error->code;
        for (int l = 0; l < N_LATENCIES; l++)
            draws[l][d] = mean_of(trial->of[l], from, r->n);
    }
    for (int l = 0; l < N_LATENCIES; l++)
        qsort(draws[l], PREDICTION_DRAWS, sizeof(double), by_size);
    return 0;
}

/* `after`: flown with the found values. */
static int print_intervals(const struct identify_report *report, const struct recording *r,
                           size_t from, const struct trial *after, struct ifl_error *error)
{
    double draws[N_LATENCIES][PREDICTION_DRAWS];
    struct trial trial;
    int rc = trial_open(&trial, r->n, error);
    if (rc == 0)
        rc = draw_means(report, r, from, &trial, draws, error);
    trial_close(&trial);
    for (int l = 0; rc == 0 && l < N_LATENCIES; l++) {
        const double mean = mean_of(after->of[l], from, r->n);
        double low = ifl_ensemble_quantile(draws[l], PREDICTION_DRAWS, 0.05);
        double high = ifl_ensemble_quantile(draws[l], PREDICTION_DRAWS, 0.95);
        judge_widen(l, mean, &low, &high);
        fprintf(report->table, "  mean %-11s %9.4g s, 90%% %.4g to %.4g s, recorded %.4g s\n",
                latency_names[l], mean, low, high, mean_of(r->of[l], from, r->n));
    }
    return rc;
}

/* ---- what was left out, and predictions ---- */

static int judge_recording(const struct identify_report *report, size_t k, struct trial *after,
                           struct ifl_error *error)
{
    const struct recording *r = &report->options->recordings[k];
    struct judged before_errors = {0}, after_errors = {0};
    int rc = trial_open(after, r->n, error);
    if (rc == 0)
        rc = judge_value(report, r, report->found->start, after, &before_errors, error);
    if (rc == 0)
        rc = judge_value(report, r, report->found->value, after, &after_errors, error);
    if (rc < 0)
        return rc;
    fprintf(report->table, "%s: %zu requests %s\n", r->path, after_errors.n,
            r->n_fit < r->n ? "not fitted" : "of the fit itself: none were left out");
    print_judged(report->table, "before", &before_errors);
    print_judged(report->table, "after", &after_errors);
    return r->n_fit < r->n ? print_intervals(report, r, r->n_fit, after, error) : 0;
}

static int judge_all(const struct identify_report *report, struct ifl_error *error)
{
    const size_t n = report->options->n_recordings;
    struct trial *after = calloc(n, sizeof *after);
    int rc = after ? 0 : ifl_fail_nomem(error);
    print_judged_head(report->table, "errors");
    for (size_t k = 0; rc == 0 && k < n; k++)
        rc = judge_recording(report, k, &after[k], error);
    if (rc == 0)
        rc = identify_suspect(report->options, after, report->found, error);
    for (size_t k = 0; after && k < n; k++)
        trial_close(&after[k]);
    free(after);
    return rc;
}

static int predict(const struct identify_report *report, const struct recording *r,
                   struct ifl_error *error)
{
    struct trial trial;
    struct judged before, after;
    int rc = trial_open(&trial, r->n, error);
    if (rc == 0)
        rc = judge_value(report, r, report->found->start, &trial, &before, error);
    if (rc == 0)
        rc = judge_value(report, r, report->found->value, &trial, &after, error);
    if (rc == 0) {
        fprintf(report->table, "%s: %zu requests predicted\n", r->path, r->n);
        print_judged(report->table, "before", &before);
        print_judged(report->table, "after", &after);
        rc = print_intervals(report, r, 0, &trial, error);
    }
    trial_close(&trial);
    return rc;
}

int identify_print(const struct identify_report *report, struct ifl_error *error)
{
    print_findings(report);
    int rc = judge_all(report, error);
    for (size_t i = 0; rc == 0 && i < report->n_predicted; i++) {
        if (i == 0)
            print_judged_head(report->table, "predicted");
        rc = predict(report, &report->predicted[i], error);
    }
    for (size_t i = 0; rc == 0 && i < report->found->n_notices; i++)
        fprintf(report->table, "%s%s\n", i ? "" : "\n", report->found->notices[i]);
    return rc;
}

/* ---- the overlay ---- */

/* "20 blocks": the interval behind a value that was found, or why it was not. */
static const char *remark(void *context, const char *section, const char *field)
{
    static char text[240];
    char key[64];
    const struct identified *found = context;
    snprintf(key, sizeof key, "%s%s%s", section, *section && field ? "." : "", field ? field : "");
    enum parameter p = 0;
    while (p < N_PARAMETERS && strcmp(parameter_field(p, &found->deployment), key) != 0)
        p++;
    if (p == N_PARAMETERS)
        return NULL;
    const struct finding *f = &found->of[p];
    if (f->state == FOUND || f->state == AT_BOUND)
        snprintf(text, sizeof text, "90%%: %.4g to %.4g", f->low, f->high);
    else
        snprintf(text, sizeof text, "not fitted: %s", f->why);
    return text;
}

static void append(char *text, size_t n_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t n_bytes, const char *format, ...)
{
    const size_t at = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + at, n_bytes - at, format, args);
    va_end(args);
}

static void describe(const struct identify_report *report, struct deployment *deployment)
{
    const struct identify_options *options = report->options;
    const struct config *config = options->setting.config;
    const char *before = "";
    deployment->about[0] = deployment->source[0] = deployment->assumed[0] = '\0';
    append(deployment->about, sizeof deployment->about, "%s, %s on %d x %s, as recorded",
           config->serving.preset, config->model, config->tensor_parallel * config->data_parallel,
           config->hardware);
    append(deployment->source, sizeof deployment->source, "inflight identify %s",
           report->config_path);
    for (size_t k = 0; k < options->n_recordings; k++)
        append(deployment->source, sizeof deployment->source, " %s", options->recordings[k].path);
    append(deployment->source, sizeof deployment->source, ": the first %.0f%% of the requests",
           100.0 * (double)options->recordings[0].n_fit / (double)options->recordings[0].n);
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        if (report->found->of[p].state == UNKNOWN) {
            append(deployment->assumed, sizeof deployment->assumed, "%s%s", before,
                   parameter_rows[p].key);
            before = ", ";
        }
    append(deployment->assumed, sizeof deployment->assumed, "%s",
           *before ? " (not determined by these runs)" : "");
    if (*report->found->rival)
        append(deployment->assumed, sizeof deployment->assumed,
               "%sall, of a wrong model: the runs are %s", *before ? "; " : "",
               report->found->rival_is);
}

/* What was found replaces the intervals that the deployment began with. Blocks are whole. */
static void keep_intervals(const struct identified *found, struct deployment *deployment)
{
    for (enum parameter p = 0; p < N_PARAMETERS; p++) {
        const struct finding *f = &found->of[p];
        const double low = fmax(fmin(f->low, found->value[p]), 0),
                     high = fmax(f->high, found->value[p]);
        const bool is_whole = parameter_rows[p].is_whole;
        if (f->state != FOUND && f->state != AT_BOUND)
            continue;
        (void)deployment_set_interval(deployment, parameter_field(p, deployment),
                                      is_whole ? floor(low) : low, is_whole ? ceil(high) : high);
    }
}

/* An inverse grows as its value falls. Small ones are written, too: without them a matrix may be
 * none of correlations. A hundredth less keeps one positive definite that is nearly singular. */
static double correlation_of(const struct identified *found, enum parameter p, enum parameter q)
{
    const double both = sqrt(found->covariance[p][p] * found->covariance[q][q]);
    const double r = both > 0 ? found->covariance[p][q] / both : 0;
    const bool turns = (parameter_rows[p].moved == INVERSE) != (parameter_rows[q].moved == INVERSE);
    return 0.99 * (turns ? -r : r);
}

static void keep_correlations(const struct identified *found, struct deployment *deployment)
{
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        for (enum parameter q = 0; q < p; q++) {
            char a[64], b[64];
            const double r = correlation_of(found, p, q);
            if (found->of[p].state != FOUND || found->of[q].state != FOUND || r == 0)
                continue;
            snprintf(a, sizeof a, "%s", parameter_field(q, deployment));
            snprintf(b, sizeof b, "%s", parameter_field(p, deployment));
            (void)deployment_set_correlation(deployment, a, b, round(1e3 * r) / 1e3);
        }
}

int identify_write_overlay(const struct identify_report *report, const char *path,
                           struct ifl_error *error)
{
    struct new_file file;
    struct identified *found = report->found;
    struct deployment deployment = found->deployment;
    describe(report, &deployment);
    keep_intervals(found, &deployment);
    keep_correlations(found, &deployment);
    int rc = new_file_open(&file, path, error);
    if (rc < 0)
        return rc;
    deployment_write_file(&deployment, remark, found, file.out);
    return new_file_close(&file, 0, error);
}
