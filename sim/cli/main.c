/* inflight: a flight simulator for LLM serving policies. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "inflight/nearest.h"

#include "base/tree.h"
#include "cli/options.h"
#include "cli/usage.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"run", cli_run},           {"capacity", cli_capacity},   {"trace", cli_trace},
                {"model", cli_model},       {"calibrate", cli_calibrate}, {"fit", cli_fit},
                {"identify", cli_identify}, {"validate", cli_validate},   {"import", cli_import},
                {"export", cli_export},     {"compare", cli_compare},     {"plot", cli_plot},
                {"report", cli_report},     {"table", cli_table},         {"list", cli_list}};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int fail_unknown(const char *word)
{
    const char *names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].name;
    const char *near = ifl_nearest(word, names, N_COMMANDS);
    fprintf(stderr, "inflight: unknown command %s, ", word);
    if (near)
        fprintf(stderr, "did you mean %s?\n", near);
    else
        fprintf(stderr, "expected one of those that `inflight --help` lists\n");
    return 2;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        usage_list(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("inflight %s\n", INFLIGHT_VERSION);
        return 0;
    }
    if (usage_helped(argc - 1, argv + 1))
        return 0;
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 2, argv + 2);
    return fail_unknown(argv[1]);
}

int main(int argc, char **argv)
{
    const int rc = dispatch(argc, argv);
    if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout))) {
        fprintf(stderr, "inflight: cannot write to standard output: %s\n", strerror(errno));
        return 1;
    }
    return rc;
}
