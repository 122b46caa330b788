/* inflight compare: paired differences between two runs. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "inflight/compare.h"
#include "inflight/report.h"

#include "cli/commands.h"
#include "cli/out_dir.h"
#include "cli/usage.h"

/* What --between says: a key, and of its values none, two or more. */
struct between {
    char text[1024];
    const char *key; /* NULL: not given */
    struct text_list values;
};

/* "serving.preset=vllm-v0,sarathi" in its parts, or "serving.preset" alone. */
static int read_between(const char *given, struct between *between)
{
    if (!given)
        return 0;
    char *equals = NULL;
    if (snprintf(between->text, sizeof between->text, "%s", given) < (int)sizeof between->text)
        equals = strchr(between->text, '=');
    between->key = between->text;
    bool right = *given && *given != '=' && strlen(given) < sizeof between->text;
    if (equals)
        *equals = '\0';
    for (char *value = equals ? equals + 1 : NULL; value && right;) {
        char *comma = strchr(value, ',');
        if (comma)
            *comma = '\0';
        right = *value && between->values.n < sizeof between->values.of / sizeof(char *);
        if (right)
            between->values.of[between->values.n++] = value;
        value = comma ? comma + 1 : NULL;
    }
    if (right && between->values.n != 1)
        return 0;
    fprintf(stderr, "inflight compare: --between %s: expected KEY or KEY=VALUE,VALUE...\n", given);
    return -1;
}

static int compare_pair(const struct text_list *runs, const struct between *between,
                        const char *path, struct ifl_error *error)
{
    const struct ifl_comparison comparison = {.base_dir = runs->of[0],
                                              .other_dir = runs->of[runs->n - 1],
                                              .key = between->key,
                                              .base_value = between->values.of[0],
                                              .other_value = between->values.of[1],
                                              .out_path = path,
                                              .table = stdout,
                                              .say = cli_note};
    return ifl_compare(&comparison, error);
}

static int compare_all(const struct text_list *runs, const struct between *between,
                       const char *path, struct ifl_error *error)
{
    const struct ifl_all_pairs pairs = {.n_runs = runs->n,
                                        .run_dirs = runs->of,
                                        .key = between->key,
                                        .n_values = between->values.n,
                                        .values = between->values.of,
                                        .out_path = path,
                                        .table = stdout};
    return ifl_compare_all_pairs(&pairs, error);
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
    char path[IFL_PATH_BYTES];
    struct between between = {0};
    struct out_dir out = {0};
    struct ifl_error error;
    if (options_read(&command_compare, &request, argc, argv, &request.runs) < 0)
        return 2;
    if (runs->n == 0)
        return usage_fail(&command_compare);
    if (read_between(request.between, &between) < 0)
        return 2;
    const bool is_pair = between.values.n == 2 ? runs->n <= 2 : runs->n == 2 && !between.key;
    if (between.key && runs->n > 1 && !is_pair) {
        fprintf(stderr, "inflight compare: --between %s and %zu folders, expected one\n",
                request.between, runs->n);
        return 2;
    }
    snprintf(path, sizeof path, "%s/compare.csv",
             request.out_dir ? request.out_dir : runs->of[runs->n - 1]);
    int rc = request.out_dir ? out_dir_make(&out, request.out_dir, &error) : 0;
    if (rc == 0)
        rc = (is_pair ? compare_pair : compare_all)(runs, &between, path, &error);
    if (rc == 0 && request.plots)
        rc = ifl_plot_terminal(stdout, runs->n, runs->of, CLI_PLOTTED, &error);
    out_dir_tidy(&out);
    return rc < 0 ? cli_fail(&error) : 0;
}

static const struct option_spec options[] = {
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, out_dir), "DIR",
     "folder for compare.csv (the last DIR)", COMPLETE_FOLDER},
    {"--between", NULL, OPTION_TEXT, offsetof(struct request, between), "KEY[=VALUE,VALUE...]",
     "compare values of a swept key within one DIR (all values of the first key that is no rate)",
     COMPLETE_SETTING},
    {"--plot", NULL, OPTION_FLAG, offsetof(struct request, plots), NULL,
     "draw the latency of all against the rate, for a terminal of 80 columns", COMPLETE_NOTHING},
};

const struct command command_compare = {
    .name = "compare",
    .doc = "compare two runs, or all pairs of several, by paired differences with intervals",
    .arguments = "DIR DIR..., or DIR --between KEY[=VALUE,VALUE...]",
    .example = "inflight compare results/base results/mine",
    .notes = "With more than two runs or values, all pairs are compared; p-values are corrected "
             "for their number (Holm).",
    .completion = COMPLETE_FOLDER,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
