/* inflight import: a server's start-up log and command line as a configuration. */
#include <stdio.h>

#include "base/new_file.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "import/import.h"

static int write_config(const struct facts *facts, const struct node *root, FILE *out,
                        struct ifl_error *error)
{
    fprintf(out, "# Imported from %s; a workload is missing: --set workload.trace=FILE.\n#\n",
            server_name(facts->server));
    import_report(facts, root, "# ", out);
    return tree_print(root, out, error);
}

static int write_to(const char *path, const struct facts *facts, const struct node *root,
                    struct ifl_error *error)
{
    struct new_file file;
    if (!path)
        return write_config(facts, root, stdout, error);
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    return new_file_close(&file, write_config(facts, root, file.out, error), error);
}

struct request {
    struct text_list logs;
    struct import_sources sources;
    const char *path;
};

static int import(struct import_sources *sources, const char *path)
{
    struct facts facts;
    struct node *root;
    struct ifl_error error;
    int rc = import_read(sources, &facts, &root, &error);
    if (rc == 0)
        rc = write_to(path, &facts, root, &error);
    if (rc == 0 && path)
        import_report(&facts, root, "", stdout);
    facts_free(&facts);
    tree_free(rc == 0 ? root : NULL);
    return rc < 0 ? cli_fail(&error) : 0;
}

static int run_command(int argc, char **argv)
{
    struct request request = {0};
    if (options_read(&command_import, &request, argc, argv, &request.logs) < 0)
        return 2;
    if (request.logs.n == 0 && !request.sources.command)
        return usage_fail(&command_import);
    request.sources.logs = request.logs.of;
    request.sources.n_logs = request.logs.n;
    return import(&request.sources, request.path);
}

static const struct option_spec options[] = {
    {"--command", "-c", OPTION_TEXT, offsetof(struct request, sources.command), "TEXT",
     "the command line, as \"vllm serve ...\"", COMPLETE_NOTHING},
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, path), "CONFIG.yaml",
     "where the configuration goes (standard output)", COMPLETE_FILE},
    {"--engine-version", NULL, OPTION_TEXT, offsetof(struct request, sources.version), "VERSION",
     "where the log does not say it", COMPLETE_NOTHING},
    {"--model", NULL, OPTION_TEXT, offsetof(struct request, sources.model), "NAME",
     "where the log does not say it", COMPLETE_MODEL},
    {"--hardware", NULL, OPTION_TEXT, offsetof(struct request, sources.hardware), "NAME",
     "where the log does not say it", COMPLETE_HARDWARE},
};

const struct command command_import = {
    .name = "import",
    .doc = "a server's start-up log and command line as a configuration",
    .arguments = "[LOG...]",
    .example = "inflight import server.log -o deployment.yaml",
    .notes = "Logs and command lines of vLLM 0.6 to 0.33, SGLang and TensorRT-LLM. Every flag and "
             "every line is listed: what it maps to, or that it is harmless, not modelled or "
             "unknown. Several logs are parts of the log of one server.",
    .completion = COMPLETE_FILE,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
