/* inflight import: makes a configuration from a server's start-up log, command line and answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/new_file.h"
#include "base/text_file.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "import/import.h"
#include "live/replay_http.h"

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

/* ---- what a running server answers ---- */

enum { ANSWER_BYTES = 8 << 20, MAX_ANSWERS = 260, MANIFEST_MIB = 1 };
#define ANSWER_S 10

struct answers {
    struct import_answer of[MAX_ANSWERS];
    size_t n;
    char urls[3][1100];
};

static void answers_free(struct answers *answers)
{
    for (size_t i = 0; i < answers->n; i++)
        free((char *)(uintptr_t)answers->of[i].text);
}

static int add_file(struct answers *answers, const char *path, struct ifl_error *error)
{
    char *text;
    size_t n;
    if (text_file_read(path, ANSWER_BYTES >> 20, "an answer of a server", &text, &n, error) < 0)
        return error->code;
    answers->of[answers->n++] = (struct import_answer){path, text, n};
    return 0;
}

/* A path that the server does not have says nothing; /metrics it must have. */
static int add_server(struct answers *answers, const char *url, struct ifl_error *error)
{
    static const char *const paths[] = {"/metrics", "/version", "/v1/models"};
    const struct replay_server server = {.url = url};
    int rc = replay_server_check(&server, error);
    for (size_t i = 0; rc == 0 && i < sizeof paths / sizeof *paths; i++) {
        struct replay_got got;
        rc = replay_http_get(&server, paths[i], ANSWER_BYTES, ANSWER_S, &got, error);
        snprintf(answers->urls[i], sizeof answers->urls[i], "%.1000s%s", url, paths[i]);
        if (rc == 0 && got.status != 200 && i == 0)
            rc = ifl_fail(error, IFL_E_DEVICE, "%s: HTTP %ld, expected metrics", answers->urls[i],
                          got.status);
        if (rc == 0 && got.status == 200)
            answers->of[answers->n++] =
                (struct import_answer){answers->urls[i], got.text.of, got.text.n};
        else
            replay_text_free(&got.text);
    }
    return rc;
}

/* ---- files of YAML ---- */

struct manifest {
    const char *path; /* NULL: none */
    char *text;
    char folder[1024];
};

static bool is_yaml(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static int read_manifest(struct manifest *manifest, struct ifl_error *error)
{
    size_t n;
    if (text_file_read(manifest->path, MANIFEST_MIB, "a manifest", &manifest->text, &n, error) < 0)
        return error->code;
    return memchr(manifest->text, '\0', n) == NULL
               ? 0
               : ifl_fail_at(error, manifest->path, 0, 0, "a byte of 0, expected YAML");
}

/* Takes the file of YAML out of the list of logs, if there is one: it stands for the command. */
static int take_manifest(struct text_list *files, struct command_text *command,
                         struct manifest *manifest, struct ifl_error *error)
{
    size_t n_kept = 0;
    for (size_t i = 0; i < files->n; i++) {
        if (!is_yaml(files->of[i])) {
            files->of[n_kept++] = files->of[i];
            continue;
        }
        if (manifest->path || command->text)
            return ifl_fail_at(error, files->of[i], 0, 0, "a second command, the first is %.200s",
                               manifest->path ? manifest->path : "that of --command");
        manifest->path = files->of[i];
    }
    files->n = n_kept;
    if (!manifest->path)
        return 0;
    const char *slash = strrchr(manifest->path, '/');
    snprintf(manifest->folder, sizeof manifest->folder, "%.*s",
             slash ? (int)(slash - manifest->path) : 1, slash ? manifest->path : ".");
    const int rc = read_manifest(manifest, error);
    *command = (struct command_text){manifest->text, manifest->path, manifest->folder};
    return rc;
}

/* ---- the command ---- */

struct request {
    struct text_list logs, answers;
    struct import_sources sources;
    const char *path, *server;
};

static int take_answers(const struct request *request, struct answers *answers,
                        struct ifl_error *error)
{
    int rc = request->server ? add_server(answers, request->server, error) : 0;
    for (size_t i = 0; rc == 0 && i < request->answers.n; i++)
        rc = add_file(answers, request->answers.of[i], error);
    return rc;
}

/* What no line of a report of a hundred may hide. */
static void note_device(const struct facts *facts)
{
    const char *device = import_other_device(facts);
    char text[160];
    if (!device)
        return;
    snprintf(text, sizeof text,
             "%.60s: no CUDA GPU, so neither memory nor kernels here are those of this server",
             device);
    cli_note(NULL, text);
}

static int import(const struct request *request)
{
    struct facts facts = {0};
    struct node *root = NULL;
    struct answers answers = {.n = 0};
    struct ifl_error error;
    struct import_sources sources = request->sources;
    int rc = take_answers(request, &answers, &error);
    sources.answers = answers.of;
    sources.n_answers = answers.n;
    if (rc == 0)
        rc = import_read(&sources, &facts, &root, &error);
    if (rc == 0)
        rc = write_to(request->path, &facts, root, &error);
    if (rc == 0)
        note_device(&facts);
    if (rc == 0 && request->path)
        import_report(&facts, root, "", stdout);
    facts_free(&facts);
    tree_free(root);
    answers_free(&answers);
    return rc < 0 ? cli_fail(&error) : 0;
}

static int run_command(int argc, char **argv)
{
    struct request request = {0};
    struct manifest manifest = {0};
    struct ifl_error error;
    if (options_read(&command_import, &request, argc, argv, &request.logs) < 0)
        return 2;
    if (request.logs.n == 0 && !request.sources.command.text && request.answers.n == 0 &&
        !request.server)
        return usage_fail(&command_import);
    request.sources.command.folder = ".";
    int rc = take_manifest(&request.logs, &request.sources.command, &manifest, &error);
    request.sources.logs = request.logs.of;
    request.sources.n_logs = request.logs.n;
    rc = rc < 0 ? cli_fail(&error) : import(&request);
    free(manifest.text);
    return rc;
}

static const struct option_spec options[] = {
    {"--command", "-c", OPTION_TEXT, offsetof(struct request, sources.command.text), "TEXT",
     "the command line, as \"vllm serve ...\", or the manifest of a container", COMPLETE_NOTHING},
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, path), "CONFIG.yaml",
     "file for the configuration (standard output)", COMPLETE_FILE},
    {"--server", "-s", OPTION_TEXT, offsetof(struct request, server), "URL",
     "running server: ask for its /metrics, /version and /v1/models", COMPLETE_NOTHING},
    {"--answer", NULL, OPTION_LIST, offsetof(struct request, answers), "FILE",
     "file with the answer of a server to one of these", COMPLETE_FILE},
    {"--engine-version", NULL, OPTION_TEXT, offsetof(struct request, sources.version), "VERSION",
     "engine version, if the log lacks it", COMPLETE_NOTHING},
    {"--model", NULL, OPTION_TEXT, offsetof(struct request, sources.model), "NAME",
     "profile, checkpoint or path of the model, if the log lacks it", COMPLETE_MODEL},
    {"--hardware", NULL, OPTION_TEXT, offsetof(struct request, sources.hardware), "NAME",
     "hardware, if the log lacks it", COMPLETE_HARDWARE},
};

const struct command command_import = {
    .name = "import",
    .doc = "write a configuration from a server's log, command line and answers",
    .arguments = "[LOG...]",
    .example = "inflight import server.log -o deployment.yaml",
    .notes = "It reads logs and command lines of vLLM 0.6 to 0.33, SGLang and TensorRT-LLM. It "
             "lists every flag and every line: what it maps to, or that it is harmless, not "
             "modelled or unknown. Several logs count as parts of one server's log. A file that "
             "ends in .yaml is a manifest, the values of a chart, or flags of a server, as the "
             "text of --command may be.",
    .completion = COMPLETE_FILE,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
