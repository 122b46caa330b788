#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "inflight/nearest.h"

static const struct command *const commands[] = {
    &command_run,           &command_capacity,       &command_trace_stats,
    &command_trace_convert, &command_trace_generate, &command_trace_tokens,
    &command_model,         &command_calibrate,      &command_fit,
    &command_identify,      &command_serve,          &command_validate,
    &command_replay,        &command_import,         &command_export,
    &command_compare,       &command_plot,           &command_report,
    &command_table,         &command_list,           &command_help};

const struct command *command_at(size_t i)
{
    return i < sizeof commands / sizeof *commands ? commands[i] : NULL;
}

int command_n_words(const struct command *command)
{
    return strchr(command->name, ' ') ? 2 : 1;
}

static bool is_named(const struct command *command, int n_words, const char *const *words)
{
    const char *space = strchr(command->name, ' ');
    if (!space)
        return n_words > 0 && strcmp(command->name, words[0]) == 0;
    return n_words > 1 && command_is_of(command, words[0]) && strcmp(space + 1, words[1]) == 0;
}

const struct command *command_named(int n_words, const char *const *words)
{
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)); i++)
        if (is_named(command, n_words, words))
            return command;
    return NULL;
}

bool command_is_of(const struct command *command, const char *group)
{
    const size_t n_chars = strlen(group);
    return strncmp(command->name, group, n_chars) == 0 &&
           (command->name[n_chars] == '\0' || command->name[n_chars] == ' ');
}

int command_fail_unknown(int n_words, const char *const *words)
{
    const char *names[sizeof commands / sizeof *commands];
    bool is_group = false;
    char name[128];
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        names[i] = commands[i]->name;
        is_group |= command_is_of(commands[i], words[0]);
    }
    snprintf(name, sizeof name, "%s%s%s", words[0], is_group && n_words > 1 ? " " : "",
             is_group && n_words > 1 ? words[1] : "");
    const char *near = ifl_nearest(name, names, sizeof commands / sizeof *commands);
    fprintf(stderr, "inflight: unknown command %s, ", name);
    if (near)
        fprintf(stderr, "did you mean %s?\n", near);
    else
        fprintf(stderr, "expected one of those that `inflight help` lists\n");
    return 2;
}
