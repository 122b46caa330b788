/* inflight plot: figures of one or more runs. */
#include <stdio.h>
#include <string.h>

#include "inflight/report.h"

#include "base/data.h"
#include "base/tree.h"
#include "cli/commands.h"
#include "cli/out_dir.h"
#include "cli/usage.h"
#include "config/config.h"

struct plot_request {
    struct text_list dirs, figures;
    const char *out_dir;
    long long columns;
    double rate_rps;
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

static int plot(const struct plot_request *request)
{
    struct ifl_error error;
    char script_dir[512];
    const struct ifl_plot_options options = {
        .n_runs = request->dirs.n,
        .run_dirs = request->dirs.of,
        .drawing = {.out_dir = request->out_dir ? request->out_dir : request->dirs.of[0],
                    .script_dir = script_dir,
                    .columns = (int32_t)request->columns},
        .n_figures = request->figures.n,
        .figures = request->figures.of,
        .rate_rps = request->rate_rps,
        .say = say,
    };
    const int rc = data_plot_scripts(script_dir, &error);
    return rc < 0 || ifl_plot(&options, &error) < 0 ? cli_fail(&error) : 0;
}

static int run_command(int argc, char **argv)
{
    struct plot_request request = {.columns = 1};
    struct ifl_error error;
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
    if (request.out_dir && out_dir_make(request.out_dir, &error) < 0)
        return cli_fail(&error);
    return plot(&request);
}

static const struct option_spec options[] = {
    {"--output", "-o", OPTION_TEXT, offsetof(struct plot_request, out_dir), "DIR",
     "where the figures go (the first DIR)", COMPLETE_FOLDER},
    {"--figure", "-f", OPTION_LIST, offsetof(struct plot_request, figures), "NAME",
     "draw this one, one that `inflight list figures` names", COMPLETE_FIGURE},
    {"--columns", NULL, OPTION_COUNT, offsetof(struct plot_request, columns), "1|2",
     "of the paper that the figure fills (1)", COMPLETE_NOTHING},
    {"--rate", NULL, OPTION_REAL, offsetof(struct plot_request, rate_rps), "RPS",
     "the rate at which figures of one rate are drawn", COMPLETE_NOTHING},
};

const struct command command_plot = {
    .name = "plot",
    .doc = "figures of runs",
    .arguments = "DIR...",
    .example = "inflight plot results/quickstart --figure latency_vs_rate",
    .completion = COMPLETE_FOLDER,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
