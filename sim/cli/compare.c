/* inflight compare: paired differences between two runs. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "inflight/compare.h"
#include "inflight/report.h"

#include "cli/commands.h"
#include "cli/out_dir.h"
#include "cli/usage.h"

/* "serving.preset=vllm-v0,sarathi" in its three parts. */
static int read_between(char *between, struct ifl_comparison *comparison)
{
    char *equals = strchr(between, '='), *comma = equals ? strchr(equals, ',') : NULL;
    if (!comma || equals == between || comma == equals + 1 || !comma[1] || strchr(comma + 1, ',')) {
        fprintf(stderr, "inflight compare: --between %s: expected KEY=VALUE,VALUE\n", between);
        return -1;
    }
    *equals = *comma = '\0';
    comparison->key = between;
    comparison->base_value = equals + 1;
    comparison->other_value = comma + 1;
    return 0;
}

struct request {
    struct text_list runs;
    const char *out_dir, *between;
    bool plots;
};

static int run_command(int argc, char **argv)
{
    struct request request = {0};
    const struct text_list *runs = &request.runs;
    const char *given;
    char between[512], path[IFL_PATH_BYTES];
    struct ifl_error error;
    if (options_read(&command_compare, &request, argc, argv, &request.runs) < 0)
        return 2;
    given = request.between;
    if (runs->n != 2 && !(runs->n == 1 && given))
        return usage_fail(&command_compare);
    struct ifl_comparison comparison = {.base_dir = runs->of[0],
                                        .other_dir = runs->of[runs->n - 1],
                                        .out_path = path,
                                        .table = stdout,
                                        .say = cli_note};
    snprintf(between, sizeof between, "%s", given ? given : "");
    if (given && read_between(between, &comparison) < 0)
        return 2;
    snprintf(path, sizeof path, "%s/compare.csv",
             request.out_dir ? request.out_dir : comparison.other_dir);
    int rc = request.out_dir ? out_dir_make(request.out_dir, &error) : 0;
    if (rc == 0)
        rc = ifl_compare(&comparison, &error);
    if (rc == 0 && request.plots)
        rc = ifl_plot_terminal(stdout, runs->n, runs->of, CLI_PLOTTED, &error);
    return rc < 0 ? cli_fail(&error) : 0;
}

static const struct option_spec options[] = {
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, out_dir), "DIR",
     "where compare.csv goes (the last DIR)", COMPLETE_FOLDER},
    {"--between", NULL, OPTION_TEXT, offsetof(struct request, between), "KEY=VALUE,VALUE",
     "compare two values of a swept key within one DIR", COMPLETE_SETTING},
    {"--plot", NULL, OPTION_FLAG, offsetof(struct request, plots), NULL,
     "draw the latency of both against the rate, for a terminal of 80 columns", COMPLETE_NOTHING},
};

const struct command command_compare = {
    .name = "compare",
    .doc = "paired differences of two runs, with intervals",
    .arguments = "DIR DIR, or DIR --between KEY=VALUE,VALUE",
    .example = "inflight compare results/base results/mine",
    .completion = COMPLETE_FOLDER,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
