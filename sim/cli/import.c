/* inflight import: a server's start-up log and command line as a configuration. */
#include <stdio.h>

#include "base/new_file.h"
#include "cli/options.h"
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

int cli_import(int argc, char **argv)
{
    struct text_list logs = {0};
    struct import_sources sources = {0};
    const char *path = NULL;
    struct facts facts;
    struct node *root;
    struct ifl_error error;
    const struct option_spec options[] = {{"--command", "-c", OPTION_TEXT, &sources.command},
                                          {"--output", "-o", OPTION_TEXT, &path},
                                          {"--engine-version", NULL, OPTION_TEXT, &sources.version},
                                          {"--model", NULL, OPTION_TEXT, &sources.model},
                                          {"--hardware", NULL, OPTION_TEXT, &sources.hardware}};
    if (options_read("import", argc, argv, options, 5, &logs) < 0)
        return 2;
    if (logs.n == 0 && !sources.command)
        return usage_fail("import");
    sources.logs = logs.of;
    sources.n_logs = logs.n;
    int rc = import_read(&sources, &facts, &root, &error);
    if (rc == 0)
        rc = write_to(path, &facts, root, &error);
    if (rc == 0 && path)
        import_report(&facts, root, "", stdout);
    facts_free(&facts);
    tree_free(rc == 0 ? root : NULL);
    return rc < 0 ? cli_fail(&error) : 0;
}
