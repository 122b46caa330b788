/* inflight plot: figures of one or more runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/report.h"

#include "base/data.h"
#include "base/tree.h"
#include "cli/commands.h"
#include "cli/out_dir.h"
#include "cli/usage.h"
#include "config/config.h"

struct plot_request {
    struct text_list dirs, figures, y, labels;
    const char *out_dir, *x;
    const char *x_scale, *y_scale, *x_range, *y_range;
    long long columns;
    double rate_rps;
    bool latex;
};

static void say(void *context, const char *text)
{
    (void)context;
    printf("%s\n", text);
}

/* One line for a name that is no figure: the nearest right one, or all of them. */
static int fail_figure(const char *name)
{
    const char *names[64];
    size_t n = 0;
    while (n < 64 && ifl_plot_figure(n).name)
        names[n] = ifl_plot_figure(n).name, n++;
    fprintf(stderr, "inflight plot: there is no figure %s, ", name);
    cli_suggest(name, names, n);
    return 2;
}

static int check_figures(const struct text_list *figures)
{
    for (size_t i = 0; i < figures->n; i++) {
        size_t k = 0;
        while (ifl_plot_figure(k).name && strcmp(ifl_plot_figure(k).name, figures->of[i]) != 0)
            k++;
        if (!ifl_plot_figure(k).name)
            return fail_figure(figures->of[i]);
    }
    return 0;
}

static int read_scale(const char *option, const char *given, enum ifl_plot_scale *scale)
{
    static const char *const names[] = {"linear", "log"};
    *scale = IFL_SCALE_USUAL;
    if (!given)
        return 0;
    *scale = strcmp(given, names[0]) == 0 ? IFL_SCALE_LINEAR : IFL_SCALE_LOG;
    if (strcmp(given, names[0]) == 0 || strcmp(given, names[1]) == 0)
        return 0;
    fprintf(stderr, "inflight plot: %s %s, ", option, given);
    cli_suggest(given, names, 2);
    return -1;
}

/* "LOW,HIGH". On a logarithmic axis, which is that of most latencies, both are above 0. */
static int read_range(const char *option, const char *given, struct ifl_plot_axis *axis)
{
    char *end;
    axis->has_range = given != NULL;
    if (!given)
        return 0;
    axis->low = strtod(given, &end);
    const char *high = *end == ',' && end != given ? end + 1 : "";
    axis->high = strtod(high, &end);
    const bool is_range =
        *high && !*end && axis->high - axis->low > 0 && isfinite(axis->low) && isfinite(axis->high);
    if (is_range && (axis->low > 0 || axis->scale != IFL_SCALE_LOG))
        return 0;
    fprintf(stderr, "inflight plot: %s %s: expected LOW,HIGH, two numbers%s\n", option, given,
            is_range ? " above 0 where the scale is log" : " of which the second is larger");
    return -1;
}

static int read_axes(const struct plot_request *request, struct ifl_plot_options *options)
{
    return read_scale("--x-scale", request->x_scale, &options->x_axis.scale) < 0 ||
                   read_scale("--y-scale", request->y_scale, &options->y_axis.scale) < 0 ||
                   read_range("--x-range", request->x_range, &options->x_axis) < 0 ||
                   read_range("--y-range", request->y_range, &options->y_axis) < 0
               ? -1
               : 0;
}

static int plot(const struct plot_request *request)
{
    struct ifl_error error;
    struct out_dir out = {0};
    char script_dir[512];
    struct ifl_plot_options options = {
        .n_runs = request->dirs.n,
        .run_dirs = request->dirs.of,
        .drawing = {.out_dir = request->out_dir ? request->out_dir : request->dirs.of[0],
                    .script_dir = script_dir,
                    .columns = (int32_t)request->columns,
                    .latex = request->latex},
        .n_figures = request->figures.n,
        .figures = request->figures.of,
        .rate_rps = request->rate_rps,
        .x = request->x,
        .n_y = request->y.n,
        .y = request->y.of,
        .n_labels = request->labels.n,
        .labels = request->labels.of,
        .say = say,
    };
    if (read_axes(request, &options) < 0)
        return 2;
    if (request->out_dir && out_dir_make(&out, request->out_dir, &error) < 0)
        return cli_fail(&error);
    int rc = data_plot_scripts(script_dir, &error);
    if (rc == 0)
        rc = ifl_plot(&options, &error);
    out_dir_tidy(&out);
    return rc < 0 ? cli_fail(&error) : 0;
}

static int run_command(int argc, char **argv)
{
    struct plot_request request = {.columns = 1};
    if (options_read(&command_plot, &request, argc, argv, &request.dirs) < 0)
        return 2;
    if (request.dirs.n == 0)
        return usage_fail(&command_plot);
    if (request.columns < 1 || request.columns > 2) {
        fprintf(stderr, "inflight plot: --columns is %lld, expected 1 or 2\n", request.columns);
        return 2;
    }
    if (check_figures(&request.figures))
        return 2;
    return plot(&request);
}

static const struct option_spec options[] = {
    {"--output", "-o", OPTION_TEXT, offsetof(struct plot_request, out_dir), "DIR",
     "folder for the figures (the first DIR)", COMPLETE_FOLDER},
    {"--figure", "-f", OPTION_LIST, offsetof(struct plot_request, figures), "NAME",
     "draw only this figure, see `inflight list figures`", COMPLETE_FIGURE},
    {"--columns", NULL, OPTION_COUNT, offsetof(struct plot_request, columns), "1|2",
     "width of the figure in columns of a paper (1)", COMPLETE_NOTHING},
    {"--rate", NULL, OPTION_REAL, offsetof(struct plot_request, rate_rps), "RPS",
     "arrival rate, or value of --x, at which figures of one rate are drawn", COMPLETE_NOTHING},
    {"--x", NULL, OPTION_TEXT, offsetof(struct plot_request, x), "KEY",
     "swept key of the x axis (the arrival rate)", COMPLETE_KEY},
    {"--y", NULL, OPTION_LIST, offsetof(struct plot_request, y), "METRIC",
     "draw this column of summary.csv, or of capacity.csv, against the x axis", COMPLETE_NOTHING},
    {"--x-range", NULL, OPTION_TEXT, offsetof(struct plot_request, x_range), "LOW,HIGH",
     "range of the x axis, in figures against the swept key", COMPLETE_NOTHING},
    {"--y-range", NULL, OPTION_TEXT, offsetof(struct plot_request, y_range), "LOW,HIGH",
     "range of the y axis, in the same figures", COMPLETE_NOTHING},
    {"--x-scale", NULL, OPTION_TEXT, offsetof(struct plot_request, x_scale), "linear|log",
     "scale of the x axis, in figures against the swept key (linear)", COMPLETE_NOTHING},
    {"--y-scale", NULL, OPTION_TEXT, offsetof(struct plot_request, y_scale), "linear|log",
     "scale of the y axis, in the same figures", COMPLETE_NOTHING},
    {"--label", NULL, OPTION_LIST, offsetof(struct plot_request, labels), "NAME=TEXT",
     "name a series, a run, a swept key, its value or a metric in the figures", COMPLETE_NOTHING},
    {"--latex", NULL, OPTION_FLAG, offsetof(struct plot_request, latex), NULL,
     "also write FIGURE.tex for \\input, with text set by LaTeX", COMPLETE_NOTHING},
};

const struct command command_plot = {
    .name = "plot",
    .doc = "draw figures of runs and of capacity searches",
    .arguments = "DIR...",
    .example = "inflight plot results/quickstart --figure latency_vs_rate",
    .completion = COMPLETE_FOLDER,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
