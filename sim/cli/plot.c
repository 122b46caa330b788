/* inflight plot: figures of one or more runs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "inflight/report.h"

#include "cli/options.h"
#include "config/config.h"

static void say(void *context, const char *text)
{
    (void)context;
    printf("%s\n", text);
}

int cli_plot(int argc, char **argv)
{
    struct text_list dirs = {0};
    const char *out_dir = NULL;
    const struct option_spec options[] = {{"--output", "-o", OPTION_TEXT, &out_dir}};
    struct ifl_error error;
    char script_dir[512];
    if (options_read("plot", argc, argv, options, 1, &dirs) < 0)
        return 2;
    if (dirs.n == 0) {
        fprintf(stderr, "usage: inflight plot DIR... [-o DIR]\n");
        return 2;
    }
    if (out_dir && mkdir(out_dir, 0777) < 0 && errno != EEXIST) {
        fprintf(stderr, "%s: cannot make the output directory: %s\n", out_dir, strerror(errno));
        return 2;
    }
    if (data_path("reports", script_dir) < 0) {
        fprintf(stderr, "inflight plot: the plot scripts are not installed\n");
        return 1;
    }
    out_dir = out_dir ? out_dir : dirs.of[0];
    const int rc = ifl_plot(dirs.n, dirs.of, out_dir, script_dir, say, NULL, &error);
    return rc < 0 ? cli_fail(&error) : 0;
}
