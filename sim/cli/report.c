/* inflight report: writes runs as one HTML page. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inflight/page.h"
#include "inflight/report.h"

#include "cli/commands.h"
#include "cli/usage.h"

struct request {
    struct text_list runs;
    const char *out_path;
    double from_s;
};

/* A page that goes to standard output is not followed by its name. */
static bool is_standard_output(const char *path)
{
    struct stat file, output;
    return stat(path, &file) == 0 && fstat(STDOUT_FILENO, &output) == 0 &&
           file.st_dev == output.st_dev && file.st_ino == output.st_ino;
}

static int run_command(int argc, char **argv)
{
    struct request request = {0};
    char path[IFL_PATH_BYTES];
    struct ifl_error error;
    if (options_read(&command_report, &request, argc, argv, &request.runs) < 0)
        return 2;
    if (request.runs.n == 0)
        return usage_fail(&command_report);
    snprintf(path, sizeof path, "%s/report.html", request.runs.of[0]);
    const struct ifl_page_options page = {
        .n_runs = request.runs.n,
        .run_dirs = request.runs.of,
        .out_path = request.out_path ? request.out_path : path,
        .version = INFLIGHT_VERSION,
        .from_s = request.from_s,
    };
    if (ifl_page(&page, &error) < 0)
        return cli_fail(&error);
    if (!is_standard_output(page.out_path))
        printf("%s\n", page.out_path);
    return 0;
}

static const struct option_spec options[] = {
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, out_path), "FILE.html",
     "file for the page (report.html in the first DIR)", COMPLETE_FILE},
    {"--from", NULL, OPTION_REAL, offsetof(struct request, from_s), "SECONDS",
     "show single steps from this time on (0)", COMPLETE_NOTHING},
};

const struct command command_report = {
    .name = "report",
    .doc = "write runs as one HTML page, which needs no network",
    .arguments = "DIR...",
    .example = "inflight report results/quickstart",
    .completion = COMPLETE_FOLDER,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
