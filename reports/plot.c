#include <math.h>
#include <string.h>

#include "gnuplot.h"
#include "inflight/report.h"
#include "row.h"
#include "series.h"
#include "whole_file.h"

#define MAX_CURVES 6 /* more distributions in one panel cannot be told apart */

struct plot {
    const struct series_set *set;
    const char *out_dir, *script_dir;
    ifl_plot_note_fn *say;
    void *context;
};

IFL_PRINTF(2, 3)
static void say(const struct plot *plot, const char *format, ...)
{
    char text[512];
    va_list args;
    if (!plot->say)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    plot->say(plot->context, text);
}

/* ---- one figure: its data file, then its script ---- */

struct figure {
    const char *name, *header;
    int (*write)(struct whole_file *, const struct plot *, struct ifl_error *);
};

static int write_row(struct whole_file *file, const char *const *cells, size_t n,
                     struct ifl_error *error)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        n_bytes += row_text_bytes(cells[i]);
    char *at = whole_room(file, n_bytes, error);
    if (!at)
        return error->code;
    for (size_t i = 0; i < n; i++)
        at = row_text(at, cells[i]);
    whole_commit(file, row_end(at));
    return IFL_OK;
}

static int write_data(const struct figure *figure, const struct plot *plot, struct ifl_error *error)
{
    char path[4096];
    struct whole_file file;
    snprintf(path, sizeof path, "%s/%s.csv", plot->out_dir, figure->name);
    if (whole_open(&file, path, error))
        return error->code;
    int code = whole_write(&file, figure->header, error);
    if (!code)
        code = figure->write(&file, plot, error);
    if (!code)
        code = whole_close(&file, error);
    if (!code)
        code = whole_publish(&file, error);
    whole_discard(&file);
    return code;
}

static int draw(const struct figure *figure, const struct plot *plot, struct ifl_error *error)
{
    char script[64];
    snprintf(script, sizeof script, "%s.gp", figure->name);
    if (write_data(figure, plot, error) ||
        gnuplot_run(plot->script_dir, script, plot->out_dir, error))
        return error->code;
    say(plot, "%s/%s: .pdf, .svg, .png, and .csv with what they show", plot->out_dir, figure->name);
    return IFL_OK;
}

/* ---- latency against rate, or by series where no rate was swept ---- */

static int write_latency(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    for (size_t i = 0; i < plot->set->n_points; i++) {
        const struct series_point *point = &plot->set->points[i];
        const struct series_run *run = &plot->set->runs[point->run];
        const struct sheet *summary = &run->summary;
        size_t mean, p99;
        char number[24];
        if (sheet_require(summary, "mean_normalized_latency_s", &mean, error) ||
            sheet_require(summary, "p99_normalized_latency_s", &p99, error))
            return error->code;
        snprintf(number, sizeof number, "%zu", point->series + 1);
        const char *const cells[] = {
            number,
            plot->set->names[point->series],
            plot->set->has_rate ? sheet_cell(summary, point->row, run->rate) : "",
            sheet_cell(summary, point->row, mean),
            sheet_cell(summary, point->row, p99),
            point->saturated ? "true" : "false",
        };
        if (write_row(file, cells, sizeof cells / sizeof *cells, error))
            return error->code;
    }
    return IFL_OK;
}

static const char latency_header[] =
    "number,series,rate_rps,mean_latency_s_per_tok,p99_latency_s_per_tok,saturated\n";

static const struct figure latency_vs_rate = {"latency_vs_rate", latency_header, write_latency};
static const struct figure latency_by_series = {"latency_by_series", latency_header, write_latency};

static bool shows_a_curve(const struct series_set *set)
{
    return set->has_rate && set->n_points > set->n_series;
}

static int draw_latency(const struct plot *plot, struct ifl_error *error)
{
    if (shows_a_curve(plot->set))
        return draw(&latency_vs_rate, plot, error);
    if (plot->set->n_series > 1)
        return draw(&latency_by_series, plot, error);
    say(plot, "no latency figure: there is one point, and nothing to compare it with");
    return IFL_OK;
}

/* ---- distributions ---- */

static int write_curve(struct whole_file *file, const struct plot *plot,
                       const struct series_point *point, struct ifl_error *error)
{
    const struct sheet *sheet = &plot->set->runs[point->run].quantiles;
    size_t from, to, quantile, ttft, itl;
    char number[24], rate[24] = "";
    if (!series_quantiles(plot->set, point, &from, &to))
        return IFL_OK;
    if (sheet_require(sheet, "quantile", &quantile, error) ||
        sheet_require(sheet, "ttft_s", &ttft, error) || sheet_require(sheet, "itl_s", &itl, error))
        return error->code;
    snprintf(number, sizeof number, "%zu", point->series + 1);
    if (!isnan(point->rate_rps))
        snprintf(rate, sizeof rate, "%.9g", point->rate_rps);
    for (size_t row = from; row < to; row++) {
        const char *const cells[] = {number,
                                     plot->set->names[point->series],
                                     rate,
                                     sheet_cell(sheet, row, quantile),
                                     sheet_cell(sheet, row, ttft),
                                     sheet_cell(sheet, row, itl)};
        if (write_row(file, cells, sizeof cells / sizeof *cells, error))
            return error->code;
    }
    return IFL_OK;
}

static int write_curves(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    const struct series_set *set = plot->set;
    const size_t n = set->n_series < MAX_CURVES ? set->n_series : MAX_CURVES;
    size_t *chosen = malloc(set->n_series * sizeof *chosen);
    if (!chosen)
        return ifl_fail_nomem(error);
    series_middle(set, chosen);
    int code = IFL_OK;
    for (size_t i = 0; i < n && !code; i++)
        code = write_curve(file, plot, &set->points[chosen[i]], error);
    free(chosen);
    return code;
}

static const struct figure distributions = {
    "ttft_itl_cdf", "number,series,rate_rps,quantile,ttft_s,itl_s\n", write_curves};

static bool have_quantiles(const struct series_set *set)
{
    for (size_t run = 0; run < set->n_runs; run++)
        if (set->runs[run].quantiles.n_rows == 0)
            return false;
    return true;
}

static int draw_distributions(const struct plot *plot, struct ifl_error *error)
{
    if (!have_quantiles(plot->set)) {
        say(plot, "no distribution figure: a run has no quantiles.csv");
        return IFL_OK;
    }
    if (plot->set->n_series > MAX_CURVES)
        say(plot, "the distribution figure shows the first %d of %zu series", MAX_CURVES,
            plot->set->n_series);
    return draw(&distributions, plot, error);
}

static bool any_finished(const struct series_set *set)
{
    for (size_t i = 0; i < set->n_points; i++) {
        const struct sheet *summary = &set->runs[set->points[i].run].summary;
        const size_t mean = sheet_find(summary, "mean_normalized_latency_s");
        if (mean == SHEET_NO_COLUMN || *sheet_cell(summary, set->points[i].row, mean))
            return true; /* a missing column is for the figure to name */
    }
    return false;
}

static int draw_all(const struct plot *plot, struct ifl_error *error)
{
    if (!any_finished(plot->set)) {
        say(plot, "no figures: no request has finished");
        return IFL_OK;
    }
    const int code = draw_latency(plot, error);
    return code ? code : draw_distributions(plot, error);
}

int ifl_plot(size_t n_runs, const char *const *run_dirs, const char *out_dir,
             const char *script_dir, ifl_plot_note_fn *note, void *context, struct ifl_error *error)
{
    struct series_set set;
    if (series_read(&set, n_runs, run_dirs, error))
        return error->code;
    const struct plot plot = {
        .set = &set, .out_dir = out_dir, .script_dir = script_dir, .say = note, .context = context};
    const int code = draw_all(&plot, error);
    series_free(&set);
    return code;
}
