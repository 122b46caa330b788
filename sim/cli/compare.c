/* inflight compare: paired differences between two runs. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "inflight/compare.h"
#include "inflight/report.h"

#include "cli/options.h"
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

int cli_compare(int argc, char **argv)
{
    struct text_list runs = {0};
    const char *out_dir = NULL, *given = NULL;
    bool plots = false;
    char between[512], path[IFL_PATH_BYTES];
    struct ifl_error error;
    const struct option_spec options[] = {
        {"--output", "-o", OPTION_TEXT, &out_dir},
        {"--between", NULL, OPTION_TEXT, &given},
        {"--plot", NULL, OPTION_FLAG, &plots},
    };
    if (options_read("compare", argc, argv, options, sizeof options / sizeof *options, &runs) < 0)
        return 2;
    if (runs.n != 2 && !(runs.n == 1 && given))
        return usage_fail("compare");
    struct ifl_comparison comparison = {.base_dir = runs.of[0],
                                        .other_dir = runs.of[runs.n - 1],
                                        .out_path = path,
                                        .table = stdout,
                                        .say = cli_note};
    snprintf(between, sizeof between, "%s", given ? given : "");
    if (given && read_between(between, &comparison) < 0)
        return 2;
    snprintf(path, sizeof path, "%s/compare.csv", out_dir ? out_dir : comparison.other_dir);
    int rc = out_dir ? out_dir_make(out_dir, &error) : 0;
    if (rc == 0)
        rc = ifl_compare(&comparison, &error);
    if (rc == 0 && plots)
        rc = ifl_plot_terminal(stdout, runs.n, runs.of, CLI_PLOTTED, &error);
    return rc < 0 ? cli_fail(&error) : 0;
}
