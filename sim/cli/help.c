/* inflight help: how each command is called. */
#include <stdio.h>
#include <string.h>

#include "base/new_file.h"
#include "cli/commands.h"
#include "cli/manual.h"
#include "cli/out_dir.h"
#include "cli/usage.h"

struct request {
    struct text_list words;
    const char *dir;
};

/* ---- files for other programs ---- */

static int write_page(const char *dir, const struct command *command, struct ifl_error *error)
{
    char path[512];
    struct new_file file;
    snprintf(path, sizeof path, "%.400s/inflight%s%s.1", dir, command ? "-" : "",
             command ? command->name : "");
    for (char *c = path + strlen(dir); *c; c++)
        if (*c == ' ')
            *c = '-';
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    manual_write(file.out, command);
    return new_file_close(&file, 0, error);
}

static int write_completion(const char *dir, const char *name, void (*write)(FILE *out),
                            struct ifl_error *error)
{
    char path[512];
    struct new_file file;
    snprintf(path, sizeof path, "%.400s/%s", dir, name);
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    write(file.out);
    return new_file_close(&file, 0, error);
}

static int write_all(const char *dir)
{
    struct ifl_error error;
    struct out_dir out;
    int rc = out_dir_make(&out, dir, &error);
    if (rc == 0)
        rc = write_page(dir, NULL, &error);
    for (size_t i = 0; rc == 0 && command_at(i); i++)
        rc = write_page(dir, command_at(i), &error);
    if (rc == 0)
        rc = write_completion(dir, "inflight.bash", completion_write_bash, &error);
    if (rc == 0)
        rc = write_completion(dir, "_inflight", completion_write_zsh, &error);
    if (rc == 0)
        rc = write_completion(dir, "inflight.fish", completion_write_fish, &error);
    out_dir_tidy(&out);
    return rc < 0 ? cli_fail(&error) : 0;
}

/* ---- the command ---- */

static int run_command(int argc, char **argv)
{
    struct request request = {0};
    const struct text_list *words = &request.words;
    if (options_read(&command_help, &request, argc, argv, &request.words) < 0)
        return 2;
    if (request.dir)
        return words->n == 0 ? write_all(request.dir) : usage_fail(&command_help);
    if (usage_explain((int)words->n, words->of) == 0)
        return 0;
    return command_fail_unknown((int)words->n, words->of);
}

static const struct option_spec options[] = {
    {"--write", NULL, OPTION_TEXT, offsetof(struct request, dir), "DIR",
     "write the man pages, and what bash, zsh and fish complete, into this folder instead",
     COMPLETE_FOLDER},
};

const struct command command_help = {
    .name = "help",
    .doc = "print how a command is called",
    .arguments = "[COMMAND]",
    .example = "inflight help run",
    .completion = COMPLETE_COMMAND,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
