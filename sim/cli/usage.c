#include "cli/usage.h"

#include <string.h>

#include "cli/terminal.h"

enum { PLAIN_COLUMNS = 100, MOST_COLUMNS = 100, DOC_COLUMN = 28 };

static int width_of(FILE *out)
{
    const int columns = terminal_columns(out);
    return columns == 0 ? PLAIN_COLUMNS : columns > MOST_COLUMNS ? MOST_COLUMNS : columns;
}

static void print_name(FILE *out, int width, const char *name)
{
    fprintf(out, "%s%s%s%*s", terminal_style(out, STYLE_NAME), name,
            terminal_style(out, STYLE_NONE),
            width > (int)strlen(name) ? width - (int)strlen(name) : 0, "");
}

void usage_list(FILE *out)
{
    const struct command *command;
    fprintf(out, "usage: inflight COMMAND ...\n");
    for (size_t i = 0; (command = command_at(i)); i++) {
        fprintf(out, "    ");
        print_name(out, 16, command->name);
        fputc(' ', out);
        terminal_wrap(out, command->doc, 21, 21, width_of(out));
    }
    terminal_wrap(out,
                  "`inflight help COMMAND` says how to call it, `inflight --version` which one "
                  "this is.",
                  0, 0, width_of(out));
}

/* ---- how a command is called ---- */

static void print_call(FILE *out, const char *before, const struct command *command)
{
    fprintf(out, "%s inflight %s %s%s[OPTION]...", before, command->name, command->arguments,
            *command->arguments ? " " : "");
}

static int print_calls(FILE *out, const char *group)
{
    const struct command *command;
    int n = 0;
    for (size_t i = 0; (command = command_at(i)); i++)
        if (command_is_of(command, group)) {
            print_call(out, n++ ? "      " : "usage:", command);
            fputc('\n', out);
        }
    return n > 0 ? 0 : -1;
}

int usage_fail(const struct command *command)
{
    print_call(stderr, "usage:", command);
    fprintf(stderr, " (`inflight help %s` names the options)\n", command->name);
    return 2;
}

int usage_fail_group(const char *group)
{
    return print_calls(stderr, group) < 0 ? -1 : 2;
}

/* ---- help ---- */

const char *usage_option(const struct option_spec *option, char text[USAGE_OPTION_CHARS])
{
    snprintf(text, USAGE_OPTION_CHARS, "%s%s%s%s%s", option->alias ? option->alias : "   ",
             option->alias ? ", " : " ", option->name, option->value ? " " : "",
             option->value ? option->value : "");
    return text;
}

const char *usage_doc(const struct option_spec *option, char text[256])
{
    snprintf(text, 256, "%s%s", option->doc,
             option->kind == OPTION_LIST ? "; any number of times" : "");
    return text;
}

/* The documentation of a long option begins below it. */
static void print_option(const struct option_spec *option)
{
    char name[USAGE_OPTION_CHARS], doc[256];
    usage_option(option, name);
    printf("  ");
    print_name(stdout, DOC_COLUMN - 2, name);
    if ((int)strlen(name) + 4 > DOC_COLUMN)
        printf("\n%*s", DOC_COLUMN, "");
    terminal_wrap(stdout, usage_doc(option, doc), DOC_COLUMN, DOC_COLUMN, width_of(stdout));
}

static void explain(const struct command *command)
{
    static const struct option_spec help = {
        "--help", "-h", OPTION_FLAG, 0, NULL, "print this help", COMPLETE_NOTHING};
    const int columns = width_of(stdout);
    print_call(stdout, "usage:", command);
    printf("\n");
    terminal_wrap(stdout, command->doc, 0, 0, columns);
    printf("\n");
    for (size_t i = 0; i < command->n_options; i++)
        print_option(&command->options[i]);
    print_option(&help);
    printf("\nexample:\n    %s\n", command->example);
    if (!command->notes)
        return;
    printf("\n");
    terminal_wrap(stdout, command->notes, 0, 0, columns);
}

int usage_explain(int n_words, const char *const *words)
{
    const struct command *command = command_named(n_words, words);
    if (n_words == 0)
        usage_list(stdout);
    else if (command)
        explain(command);
    else
        return n_words == 1 ? print_calls(stdout, words[0]) : -1;
    return 0;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

bool usage_helped(int argc, char **argv)
{
    int i = 0;
    while (i < argc && !is_help(argv[i]))
        i++;
    if (i == argc)
        return false;
    if (usage_explain(i, (const char *const *)argv) < 0)
        usage_list(stdout);
    return true;
}
