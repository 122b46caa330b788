#include "cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/error.h"
#include "inflight/nearest.h"

#include "base/server_flags.h"
#include "cli/progress.h"
#include "cli/terminal.h"

enum { MAX_OPTIONS = 64 };

static const struct option_spec *find(const struct command *command, const char *word)
{
    for (size_t i = 0; i < command->n_options; i++) {
        const struct option_spec *option = &command->options[i];
        if (strcmp(option->name, word) == 0 || (option->alias && strcmp(option->alias, word) == 0))
            return option;
    }
    return NULL;
}

void cli_suggest(const char *word, const char *const *names, size_t n)
{
    const char *near = ifl_nearest(word, names, n);
    if (near)
        fprintf(stderr, "did you mean %s?\n", near);
    else
        for (size_t i = 0; i < n; i++)
            fprintf(stderr, "%s%s%s", i ? ", " : "expected one of ", names[i],
                    i + 1 < n ? "" : "\n");
}

/* One line: the option, and the nearest right one or all of them. */
static int fail_unknown(const struct command *command, const char *word)
{
    const char *names[MAX_OPTIONS] = {0};
    const size_t n = command->n_options;
    ifl_require(n <= MAX_OPTIONS);
    for (size_t i = 0; i < n; i++)
        names[i] = command->options[i].name;
    enum server server;
    const struct server_flag *flag = server_flag_meant(word, &server);
    char text[256];
    fprintf(stderr, "inflight %s: unknown option %s, ", command->name, word);
    if (flag)
        fprintf(stderr, "%s here, a key of the configuration: --set KEY=VALUE\n",
                server_flag_describe(flag, server, text, sizeof text));
    else
        cli_suggest(word, names, n);
    return -1;
}

static bool add(struct text_list *list, const char *text)
{
    if (list->n == sizeof list->of / sizeof *list->of)
        return false;
    list->of[list->n++] = text;
    return true;
}

/* True if `text` is a value of the option's kind. */
static bool store(const struct option_spec *option, void *values, const char *text)
{
    void *target = (char *)values + option->at;
    char *end;
    errno = 0;
    switch (option->kind) {
    case OPTION_TEXT:
        *(const char **)target = text;
        return true;
    case OPTION_LIST:
        return add(target, text);
    case OPTION_COUNT: {
        const long long n = strtoll(text, &end, 10);
        *(long long *)target = n;
        return end != text && !*end && errno == 0 && n >= 0;
    }
    case OPTION_REAL: {
        const double x = strtod(text, &end);
        *(double *)target = x;
        return end != text && !*end && errno == 0 && x - x == 0;
    }
    case OPTION_FLAG:
        break;
    }
    return false;
}

static const char *expected(enum option_kind kind)
{
    return kind == OPTION_COUNT  ? "a whole number from 0 on"
           : kind == OPTION_LIST ? "to be given at most 256 times"
                                 : "a number";
}

/* The short option of a word such as "-j2", "-j" with its value attached; NULL: it is none. */
static const struct option_spec *find_attached(const struct command *command, const char *word)
{
    if (word[0] != '-' || word[1] == '-' || strlen(word) < 3)
        return NULL;
    const char alias[3] = {word[0], word[1], '\0'};
    const struct option_spec *option = find(command, alias);
    return option && option->kind != OPTION_FLAG ? option : NULL;
}

static int fail_value(const char *command, const char *word, const char *value,
                      enum option_kind kind)
{
    fprintf(stderr, "inflight %s: %s %s: expected %s\n", command, word, value, expected(kind));
    return -1;
}

int options_read(const struct command *command, void *values, int argc, char **argv,
                 struct text_list *positional)
{
    for (int i = 0; i < argc; i++) {
        const struct option_spec *option = find(command, argv[i]);
        const struct option_spec *attached = find_attached(command, argv[i]);
        if (!option && attached) {
            if (!store(attached, values, argv[i] + 2))
                return fail_value(command->name, attached->alias, argv[i] + 2, attached->kind);
            continue;
        }
        if (!option && argv[i][0] == '-' && argv[i][1])
            return fail_unknown(command, argv[i]);
        if (!option) {
            if (!add(positional, argv[i])) {
                fprintf(stderr, "inflight %s: more than 256 files\n", command->name);
                return -1;
            }
        } else if (option->kind == OPTION_FLAG) {
            *(bool *)((char *)values + option->at) = true;
        } else if (i + 1 == argc) {
            fprintf(stderr, "inflight %s: %s expects a value\n", command->name, argv[i]);
            return -1;
        } else if (!store(option, values, argv[++i])) {
            return fail_value(command->name, argv[i - 1], argv[i], option->kind);
        }
    }
    return 0;
}

int cli_check_max_record(const char *command, long long mib)
{
    if (mib >= 1 && mib <= 1 << 20)
        return 0;
    fprintf(stderr, "inflight %s: --max-record is %lld, expected MiB from 1 to 1048576\n", command,
            mib);
    return -1;
}

void error_print(const struct ifl_error *error, char *text, size_t n_bytes)
{
    if (error->file[0] && error->column)
        snprintf(text, n_bytes, "%s:%d:%d: %s", error->file, error->line, error->column,
                 error->text);
    else if (error->file[0] && error->line)
        snprintf(text, n_bytes, "%s:%d: %s", error->file, error->line, error->text);
    else if (error->file[0])
        snprintf(text, n_bytes, "%s: %s", error->file, error->text);
    else
        snprintf(text, n_bytes, "%s", error->text);
    /* Control characters of a file's name or contents would break the line. */
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

void cli_note(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%s%snote:%s %s\n", progress_erase(), terminal_style(stderr, STYLE_NOTE),
            terminal_style(stderr, STYLE_NONE), text);
}

int cli_fail(const struct ifl_error *error)
{
    char text[sizeof error->file + sizeof error->text + 32];
    error_print(error, text, sizeof text);
    fprintf(stderr, "%s%s%s%s\n", terminal_style(stderr, STYLE_ERROR),
            error->file[0] ? "" : "inflight: ", text, terminal_style(stderr, STYLE_NONE));
    return error->code == IFL_E_INPUT ? 2 : 1;
}
