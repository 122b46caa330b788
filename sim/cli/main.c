/* inflight: a flight simulator for LLM serving policies. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

static const struct command {
    const char *name, *usage;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"run",
     "run CONFIG.yaml [--set path.to.key=value]... [--plugin FILE.so]... [-o DIR] [-j N] "
     "[--resume] [--quiet]",
     cli_run},
    {"capacity",
     "capacity CONFIG.yaml [...]                           the highest rate within the SLOs",
     cli_capacity},
    {"trace",
     "trace stats|convert FILE... or trace generate ...   look at, convert, synthesise traces",
     cli_trace},
    {"model",
     "model NAME|config.json [--hardware NAME] [--batch N] [--length N] ... [-o DIR]   a model on "
     "a "
     "GPU",
     cli_model},
    {"calibrate",
     "calibrate --engine cpu|cuda -o FILE.csv ...          what this machine takes for an engine's "
     "operations",
     cli_calibrate},
    {"fit",
     "fit FILE... [--like PROFILE] [-o OUT.yaml] | fit --evaluate PROFILE FILE...   costs from "
     "measurements",
     cli_fit},
    {"validate",
     "validate SIM_DIR REAL [-o DIR] [--format NAME] [--part K/N] [--no-plots]   simulated against "
     "recorded",
     cli_validate},
    {"export", "export DIR [-o FILE.json]   a run in the JSON of vllm bench serve", cli_export},
    {"compare",
     "compare DIR DIR [-o DIR] | compare DIR --between KEY=VALUE,VALUE   paired differences of two "
     "runs",
     cli_compare},
    {"plot", "plot DIR                                             figures of a run", cli_plot},
    {"list", "list policies|presets|models|hardware|traces|keys", cli_list},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *out)
{
    fprintf(out, "usage:\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "    inflight %s\n", commands[i].usage);
    fprintf(out, "    inflight --version | --help\n");
}

static int dispatch(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        printf("inflight %s\n", INFLIGHT_VERSION);
        return 0;
    }
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_usage(stdout);
        return 0;
    }
    for (size_t i = 0; argc >= 2 && i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 2, argv + 2);
    if (argc >= 2)
        fprintf(stderr, "inflight: unknown command %s\n", argv[1]);
    print_usage(stderr);
    return 2;
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
