/* The table of figures, and the choice of those that the given runs have the data for. */
#include "inflight/report.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "inflight/nearest.h"
#include "plot/figures.h"
#include "plot/settings.h"

/* More series would need a page longer than gnuplot can draw. */
enum { MAX_SERIES = 64 };

/* The replications of a point that a figure shows. */
enum runs_shown { MEAN_OF_RUNS, FIRST_RUN };

enum figure_axis { OTHER_AXIS, SWEPT_AXIS };

/* Figures in drawing order. Each has a script of its name. */
static const struct figure {
    const char *name;
    figure_lacks_fn *lacks;
    figure_write_fn *write;
    size_t max_series; /* those behind are left out */
    enum runs_shown runs;
    enum figure_axis axis; /* its scale and range may be given, and its key is in the name */
    const char *doc;
} figures[] = {
    {"latency_vs_rate", metrics_lack_curve, metrics_latency_vs_rate, MAX_SERIES, MEAN_OF_RUNS,
     SWEPT_AXIS, "mean normalized latency against the arrival rate"},
    {"latency_by_series", metrics_lack_series, metrics_latency_by_series, MAX_SERIES, MEAN_OF_RUNS,
     OTHER_AXIS, "normalized latency, mean and p99, of each series where no rate is swept"},
    {"percentiles_vs_rate", metrics_lack_curve, metrics_percentiles, MAX_SERIES, MEAN_OF_RUNS,
     SWEPT_AXIS, "p50, p90 and p99 of TTFT and TPOT against the arrival rate"},
    {"throughput_latency", metrics_lack_curve, metrics_throughput, MAX_SERIES, MEAN_OF_RUNS,
     OTHER_AXIS, "normalized latency against output throughput, and the Pareto front"},
    {"attainment_vs_rate", metrics_lack_slo, metrics_attainment, MAX_SERIES, MEAN_OF_RUNS,
     SWEPT_AXIS, "share of requests that meet every SLO, against the arrival rate"},
    {"attainment_vs_slo_scale", attainment_lacks, attainment_write, MAX_CURVES, MEAN_OF_RUNS,
     OTHER_AXIS,
     "share of requests that meet every SLO, against a factor on the SLOs, at one rate"},
    {"ttft_itl_cdf", distributions_lack, distributions_write, MAX_CURVES, MEAN_OF_RUNS, OTHER_AXIS,
     "distributions of TTFT and of the gaps between tokens, at one rate"},
    {"kv_shares", metrics_lack_pool, metrics_kv_shares, MAX_SERIES, MEAN_OF_RUNS, OTHER_AXIS,
     "what the K/V pool held, as stacked bars, at one rate"},
    {"kv_over_time", over_time_lacks, over_time_kv, MAX_CURVES, FIRST_RUN, OTHER_AXIS,
     "what the K/V pool held over time, at one rate; from steps.csv, replication 0"},
    {"batch_over_time", over_time_lacks, over_time_batch, MAX_CURVES, FIRST_RUN, OTHER_AXIS,
     "batch size and queue over time, at one rate; from steps.csv, replication 0"},
    {"outstanding_over_time", replicas_lack, replicas_outstanding, MAX_CURVES, FIRST_RUN,
     OTHER_AXIS,
     "requests that have come and not ended over time, stacked by pool or replica, at one rate; "
     "replication "
     "0 of a cluster"},
    {"load_by_replica", replicas_lack, replicas_load, MAX_CURVES, FIRST_RUN, OTHER_AXIS,
     "the same as a heat map, a row a replica"},
    {"service_over_time", replicas_lack, replicas_shares, MAX_CURVES, FIRST_RUN, OTHER_AXIS,
     "cached share of prompts and share of requests that meet every SLO, by arrival, at one rate; "
     "replication 0 of a cluster"},
    {"slot_grid", slot_grid_lacks, slot_grid_write, MAX_CURVES, FIRST_RUN, OTHER_AXIS,
     "which request runs in which slot, step by step; from work.csv, replication 0, the first 96 "
     "steps"},
    {"capacity_by_series", capacities_lack_series, capacities_write, MAX_SERIES, MEAN_OF_RUNS,
     OTHER_AXIS, "the capacity of each deployment, with its 95% interval; from capacity.csv"},
    {"capacity_vs_slo", capacities_lack_curve, capacities_write, MAX_SERIES, MEAN_OF_RUNS,
     SWEPT_AXIS, "the capacity against a swept objective, or the key of --x; from capacity.csv"},
    {"cost_front", capacities_lack_costs, capacities_costs, MAX_SERIES, MEAN_OF_RUNS, OTHER_AXIS,
     "cost against P90 TTFT and against P99 TBT at capacity, and the fronts; from capacity.csv"},
};
enum { N_FIGURES = sizeof figures / sizeof *figures };

struct ifl_plot_figure ifl_plot_figure(size_t i)
{
    return i < N_FIGURES ? (struct ifl_plot_figure){figures[i].name, figures[i].doc}
                         : (struct ifl_plot_figure){NULL, NULL};
}

IFL_PRINTF(2, 3)
static void say(const struct plot *plot, const char *format, ...)
{
    char text[1024];
    va_list args;
    if (!plot->options->say)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    plot->options->say(plot->options->context, text);
}

/* A column against the axis, for options.y. */
static const struct figure of_column = {"metric_vs_rate", metrics_lack_x, metrics_any, MAX_SERIES,
                                        MEAN_OF_RUNS,     SWEPT_AXIS,     NULL};

/* ---- one figure: its data file, then its script ---- */

static int write_data(const struct figure *figure, const struct plot *plot, const char *name,
                      struct ifl_error *error)
{
    char path[4096];
    struct whole_file file;
    snprintf(path, sizeof path, "%s/%s.csv", plot->options->drawing.out_dir, name);
    if (whole_open(&file, path, error))
        return error->code;
    return whole_finish(&file, figure->write(&file, plot, error), error);
}

/* Notes the series and points that the data leave out, for the figure's note. */
static void note_series(const struct figure *figure, const struct plot *plot)
{
    if (plot->set->n_series > figure->max_series)
        figure_say(plot, "the first %zu of %zu series", figure->max_series, plot->set->n_series);
}

static void note_runs(const struct figure *figure, const struct plot *plot)
{
    const size_t most = figure_n_replications(plot);
    size_t least = most;
    for (size_t run = 0; run < plot->set->n_runs; run++)
        if (plot->set->runs[run].n_replications < least)
            least = plot->set->runs[run].n_replications;
    if (most == 1)
        return;
    if (figure->runs == FIRST_RUN)
        figure_say(plot, "replication 0 of %zu", most);
    else if (least == most)
        figure_say(plot, "means of %zu replications", most);
    else
        figure_say(plot, "means of %zu to %zu replications", least, most);
}

static void say_drawn(const char *name, const struct plot *plot)
{
    const char *note = plot->note->text;
    say(plot, "%s/%s: .pdf, .svg, .png, %sand .csv with what they show%s%s",
        plot->options->drawing.out_dir, name, plot->options->drawing.latex ? ".tex, " : "",
        *note ? ": " : "", note);
}

/* "latency_vs_num_blocks" of "latency_vs_rate" and num_blocks; "p99_ttft_s_vs_rate" of a column. */
static void name_figure(const struct figure *figure, const struct plot *plot, char name[256])
{
    const char *behind = strstr(figure->name, "_vs_"), *key = behind ? behind + 4 : "";
    const bool is_other = figure->axis == SWEPT_AXIS && !plot->set->is_rate && plot->set->has_x &&
                          (plot->options->x || figure == &of_column);
    if (figure->axis == OTHER_AXIS)
        snprintf(name, 256, "%s", figure->name);
    else
        snprintf(name, 256, "%.*s_vs_%s",
                 plot->y ? (int)strlen(plot->y) : (int)(behind - figure->name),
                 plot->y ? plot->y : figure->name, is_other ? plot->set->x_name : key);
    for (char *c = name; *c; c++)
        if (!(*c == '-' || *c == '.' || *c == '_' || (*c >= '0' && *c <= '9') ||
              (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z')))
            *c = '_';
}

static int draw(const struct figure *figure, const struct plot *plot, struct ifl_error *error)
{
    struct ifl_drawing drawing = plot->options->drawing;
    char name[256], *settings;
    name_figure(figure, plot, name);
    *plot->note = (struct figure_note){""};
    note_series(figure, plot);
    note_runs(figure, plot);
    if (settings_make(plot, figure->axis == SWEPT_AXIS, &settings, error))
        return error->code;
    int code = write_data(figure, plot, name, error);
    drawing.note = plot->note->text;
    drawing.settings = settings;
    if (!code)
        code = ifl_figure(&drawing, figure->name, name, error);
    if (code == FIGURE_EMPTY)
        say(plot, "%s: nothing to draw", name);
    else if (!code)
        say_drawn(name, plot);
    free(settings);
    return code < 0 ? code : IFL_OK;
}

/* ---- which ---- */

static int draw_named(const struct plot *plot, const char *name, struct ifl_error *error)
{
    for (size_t i = 0; i < N_FIGURES; i++) {
        if (strcmp(figures[i].name, name) != 0)
            continue;
        const char *lacks = figures[i].lacks(plot);
        if (!lacks && figures[i].axis == OTHER_AXIS && settings_of_axes(plot->options))
            lacks = "it is not against the axis whose scale or range is given";
        return lacks ? ifl_fail(error, IFL_E_INPUT, "cannot draw %s: %s", name, lacks)
                     : draw(&figures[i], plot, error);
    }
    return ifl_fail(error, IFL_E_INPUT, "there is no figure \"%s\"", name);
}

static int draw_all(const struct plot *plot, struct ifl_error *error)
{
    char left_out[512] = "";
    int code = IFL_OK;
    for (size_t i = 0; i < N_FIGURES && !code; i++) {
        const char *lacks = figures[i].lacks(plot);
        const size_t n = strlen(left_out);
        if (figures[i].axis == OTHER_AXIS && settings_of_axes(plot->options))
            continue;
        if (lacks)
            snprintf(left_out + n, sizeof left_out - n, "%s%s (%s)", n ? ", " : "", figures[i].name,
                     lacks);
        else
            code = draw(&figures[i], plot, error);
    }
    if (!code && *left_out)
        say(plot, "left out: %s", left_out);
    return code;
}

/* Columns with numbers, of which one is near the wrong name. */
static int fail_column(const struct plot *plot, const char *column, struct ifl_error *error)
{
    const struct series_run *run = &plot->set->runs[0];
    const char *names[256];
    size_t n = 0;
    for (size_t c = run->n_keys; c < run->summary.n_columns && n < 256; c++)
        if (series_has_numbers(plot->set, sheet_header(&run->summary, c)))
            names[n++] = sheet_header(&run->summary, c);
    const char *near = ifl_nearest(column, names, n);
    return ifl_fail_at(error, run->summary.path, 1, 0, "there is no column %s with numbers%s%s%s",
                       column, near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

static int draw_column(const struct plot *plot, const char *column, struct ifl_error *error)
{
    struct plot with_column = *plot;
    with_column.y = column;
    const char *lacks = of_column.lacks(plot);
    if (lacks)
        return ifl_fail(error, IFL_E_INPUT, "cannot draw %s: %s", column, lacks);
    return series_has_numbers(plot->set, column) ? draw(&of_column, &with_column, error)
                                                 : fail_column(plot, column, error);
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

static int draw_wanted(const struct plot *plot, struct ifl_error *error)
{
    const struct ifl_plot_options *options = plot->options;
    if (!any_finished(plot->set)) {
        say(plot, "no figures: no request has finished");
        return IFL_OK;
    }
    int code = IFL_OK;
    for (size_t i = 0; i < options->n_y && !code; i++)
        code = draw_column(plot, options->y[i], error);
    if (options->n_figures == 0 && options->n_y == 0)
        return draw_all(plot, error);
    for (size_t i = 0; i < options->n_figures && !code; i++)
        code = draw_named(plot, options->figures[i], error);
    return code;
}

/* ---- the runs ---- */

static int plot_series(const struct ifl_plot_options *options, const struct series_set *set,
                       struct ifl_error *error)
{
    if (set->n_series > MAX_SERIES)
        return ifl_fail(error, IFL_E_INPUT,
                        "%zu series, at most %d fit into a figure: sweep fewer keys at a time",
                        set->n_series, MAX_SERIES);
    size_t *chosen = calloc(set->n_series ? set->n_series : 1, sizeof *chosen);
    if (!chosen)
        return ifl_fail_nomem(error);
    struct figure_note note;
    const struct plot plot = {.options = options, .set = set, .note = &note, .chosen = chosen};
    int code = series_choose(set, options->rate_rps, chosen, error);
    if (!code)
        code = draw_wanted(&plot, error);
    free(chosen);
    return code;
}

int ifl_plot(const struct ifl_plot_options *options, struct ifl_error *error)
{
    struct ifl_plot_options with_source = *options;
    const struct series_options axes = {options->x, options->n_labels, options->labels};
    struct series_set set;
    char *source;
    if (ifl_figure_source(&source, options->n_runs, options->run_dirs, error))
        return error->code;
    with_source.drawing.source = source;
    int code = series_read(&set, options->n_runs, options->run_dirs, &axes, error);
    if (!code) {
        code = plot_series(&with_source, &set, error);
        series_free(&set);
    }
    free(source);
    return code;
}
