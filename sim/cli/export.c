/* inflight export: writes a run as the JSON of `vllm bench serve`, or a configuration as a server's
 * command line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/export.h"

#include "base/data.h"
#include "base/new_file.h"
#include "base/tree.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "import/import.h"

/* ---- the load, from the run's config.yaml ---- */

static double number_at(const struct node *root, const char *key)
{
    const char *text = tree_text(tree_at(root, key));
    return text ? strtod(text, NULL) : (double)NAN;
}

/* Burstiness is the shape of the gamma distribution of gaps, 1 / cv^2. It is infinite for constant
 * gaps, and JSON has no infinity. */
static void describe_load(const struct node *root, struct ifl_bench_export *export)
{
    const char *process = tree_text(tree_at(root, "workload.arrivals.process"));
    export->model = tree_text(tree_at(root, "model"));
    export->rate_rps = export->burstiness = NAN;
    if (!process)
        return;
    if (strcmp(process, "burst") == 0 || strcmp(process, "closed") == 0)
        export->rate_rps = INFINITY;
    if (strcmp(process, "closed") == 0)
        export->concurrency = (int32_t)number_at(root, "workload.arrivals.concurrency");
    if (strcmp(process, "poisson") == 0 || strcmp(process, "gamma") == 0 ||
        strcmp(process, "constant") == 0)
        export->rate_rps = number_at(root, "workload.arrivals.rate_rps");
    if (strcmp(process, "poisson") == 0)
        export->burstiness = 1;
    if (strcmp(process, "gamma") == 0)
        export->burstiness = pow(number_at(root, "workload.arrivals.cv"), -2);
}

static int export_run(const char *dir, const char *path, struct ifl_error *error)
{
    struct ifl_trace trace = {0};
    struct node *root = NULL;
    char requests[4096], config[4096], beside[4096];
    snprintf(requests, sizeof requests, "%s/requests.csv", dir);
    snprintf(config, sizeof config, "%s/config.yaml", dir);
    snprintf(beside, sizeof beside, "%s/bench.json", dir);
    struct ifl_bench_export export = {.trace = &trace, .dir = dir};
    int rc = ifl_trace_read(&(struct ifl_trace_file){requests, "requests", 0}, NULL, &trace, error);
    if (rc == 0)
        rc = tree_load(config, &root, error);
    if (rc == 0)
        describe_load(root, &export);
    if (rc == 0)
        rc = ifl_export_bench(&export, path ? path : beside, error);
    if (rc == 0)
        fprintf(stderr,
                "note: %s: itls repeats the mean gap of each request; percentiles of ITL have "
                "separate keys\n",
                path ? path : beside);
    tree_free(root);
    ifl_trace_free(&trace);
    return rc;
}

/* ---- a configuration as a command line ---- */

static int fail_server(const char *name)
{
    fprintf(stderr, "inflight export: --server is %s, expected vllm or sglang\n", name);
    return 2;
}

static int export_command(const char *name, enum server server, const char *path,
                          struct ifl_error *error)
{
    static const struct ifl_notes notes = {cli_note, NULL};
    struct new_file file;
    char config[512];
    if (data_find_config(name, config, error) < 0)
        return error->code;
    if (!path)
        return export_server(config, server, stdout, &notes, error);
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    return new_file_close(&file, export_server(config, server, file.out, &notes, error), error);
}

struct request {
    struct text_list from;
    const char *path, *server;
};

static int run_command(int argc, char **argv)
{
    struct request request = {0};
    struct ifl_error error;
    if (options_read(&command_export, &request, argc, argv, &request.from) < 0)
        return 2;
    if (request.from.n != 1)
        return usage_fail(&command_export);
    const char *from = request.from.of[0], *server = request.server;
    const bool vllm = server && strcmp(server, "vllm") == 0;
    if (server && !vllm && strcmp(server, "sglang") != 0)
        return fail_server(server);
    const int rc =
        server ? export_command(from, vllm ? SERVER_VLLM : SERVER_SGLANG, request.path, &error)
               : export_run(from, request.path, &error);
    return rc < 0 ? cli_fail(&error) : 0;
}

static const struct option_spec options[] = {
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, path), "FILE",
     "file for the JSON (a file in DIR) or the command line (standard output)", COMPLETE_FILE},
    {"--server", NULL, OPTION_TEXT, offsetof(struct request, server), "vllm|sglang",
     "write CONFIG.yaml as the command line of this server", COMPLETE_NOTHING},
};

const struct command command_export = {
    .name = "export",
    .doc = "write a run as JSON of vllm bench serve, or a configuration as a server's command line",
    .arguments = "DIR|CONFIG.yaml",
    .example = "inflight export --server vllm deployment.yaml",
    .completion = COMPLETE_CONFIG,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
