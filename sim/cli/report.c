/* inflight report: runs as one HTML page. */
#include <stdio.h>

#include "inflight/page.h"
#include "inflight/report.h"

#include "cli/options.h"
#include "cli/usage.h"

int cli_report(int argc, char **argv)
{
    struct text_list runs = {0};
    const char *out_path = NULL;
    char path[IFL_PATH_BYTES];
    double from_s = 0;
    struct ifl_error error;
    const struct option_spec options[] = {
        {"--output", "-o", OPTION_TEXT, &out_path},
        {"--from", NULL, OPTION_REAL, &from_s},
    };
    if (options_read("report", argc, argv, options, sizeof options / sizeof *options, &runs) < 0)
        return 2;
    if (runs.n == 0)
        return usage_fail("report");
    snprintf(path, sizeof path, "%s/report.html", runs.of[0]);
    const struct ifl_page_options page = {
        .n_runs = runs.n,
        .run_dirs = runs.of,
        .out_path = out_path ? out_path : path,
        .version = INFLIGHT_VERSION,
        .from_s = from_s,
    };
    if (ifl_page(&page, &error) < 0)
        return cli_fail(&error);
    printf("%s\n", page.out_path);
    return 0;
}
