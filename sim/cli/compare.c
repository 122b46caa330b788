/* inflight compare: paired differences between two runs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "inflight/compare.h"
#include "inflight/report.h"

#include "cli/options.h"

static const char usage[] =
    "usage: inflight compare DIR DIR [-o DIR], or one DIR with --between KEY=VALUE,VALUE\n";

static void say(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "note: %s\n", text);
}

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

static int make_dir(const char *dir, struct ifl_error *error)
{
    return mkdir(dir, 0777) == 0 || errno == EEXIST
               ? 0
               : ifl_fail_at(error, dir, 0, 0, "cannot make the output directory: %s",
                             strerror(errno));
}

int cli_compare(int argc, char **argv)
{
    struct text_list runs = {0};
    const char *out_dir = NULL, *given = NULL;
    char between[512], path[IFL_PATH_BYTES];
    struct ifl_error error;
    const struct option_spec options[] = {
        {"--output", "-o", OPTION_TEXT, &out_dir},
        {"--between", NULL, OPTION_TEXT, &given},
    };
    if (options_read("compare", argc, argv, options, sizeof options / sizeof *options, &runs) < 0)
        return 2;
    if (runs.n != 2 && !(runs.n == 1 && given)) {
        fputs(usage, stderr);
        return 2;
    }
    struct ifl_comparison comparison = {.base_dir = runs.of[0],
                                        .other_dir = runs.of[runs.n - 1],
                                        .out_path = path,
                                        .table = stdout,
                                        .say = say};
    snprintf(between, sizeof between, "%s", given ? given : "");
    if (given && read_between(between, &comparison) < 0)
        return 2;
    out_dir = out_dir ? out_dir : comparison.other_dir;
    snprintf(path, sizeof path, "%s/compare.csv", out_dir);
    const int rc = make_dir(out_dir, &error);
    return rc < 0 || ifl_compare(&comparison, &error) < 0 ? cli_fail(&error) : 0;
}
