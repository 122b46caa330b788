#include "cli/options.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/error.h"
#include "inflight/nearest.h"

#include "base/server_flags.h"
#include "cli/progress.h"
#include "cli/terminal.h"

enum { MAX_OPTIONS = 64 };

static bool is(const char *name, const char *word, size_t n)
{
    return name && strlen(name) == n && strncmp(name, word, n) == 0;
}

/* By the first n letters of the word. */
static const struct option_spec *find(const struct command *command, const char *word, size_t n)
{
    for (size_t i = 0; i < command->n_options; i++) {
        const struct option_spec *option = &command->options[i];
        if (is(option->name, word, n) || is(option->alias, word, n))
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

/* What a word such as "--jobs", "--jobs=2", "-j" or "-j2" says. */
struct typed {
    const struct option_spec *option; /* NULL: none of the command's */
    char name[64];                    /* as it was typed, cut where it is longer */
    const char *value;                /* NULL: the word has none */
};

static struct typed read_word(const struct command *command, const char *word)
{
    const bool is_long = word[0] == '-' && word[1] == '-';
    const size_t n = is_long ? strcspn(word, "=") : strnlen(word, 2);
    struct typed typed = {.option = word[0] == '-' ? find(command, word, n) : NULL};
    snprintf(typed.name, sizeof typed.name, "%.*s", (int)n, word);
    if (word[n])
        typed.value = is_long ? word + n + 1 : word + n;
    if (!is_long && typed.value && typed.option && typed.option->kind == OPTION_FLAG)
        typed.option = NULL; /* "-qx" */
    return typed;
}

static int fail_value(const char *command, const char *word, const char *value,
                      enum option_kind kind)
{
    fprintf(stderr, "inflight %s: %s %s: expected %s\n", command, word, value, expected(kind));
    return -1;
}

static int fail_plain(const char *command, const char *what, const char *why)
{
    fprintf(stderr, "inflight %s: %s%s\n", command, what, why);
    return -1;
}

static int store_typed(const struct command *command, const struct typed *typed, void *values)
{
    const struct option_spec *option = typed->option;
    if (option->kind == OPTION_FLAG) {
        *(bool *)((char *)values + option->at) = true;
        return typed->value ? fail_plain(command->name, typed->name, " takes no value") : 0;
    }
    return store(option, values, typed->value)
               ? 0
               : fail_value(command->name, typed->name, typed->value, option->kind);
}

int options_read(const struct command *command, void *values, int argc, char **argv,
                 struct text_list *positional)
{
    int rc = 0;
    for (int i = 0; i < argc && rc == 0; i++) {
        struct typed typed = read_word(command, argv[i]);
        if (!typed.option && argv[i][0] == '-' && argv[i][1])
            return fail_unknown(command, typed.name[1] == '-' ? typed.name : argv[i]);
        if (typed.option && typed.option->kind != OPTION_FLAG && !typed.value) {
            if (i + 1 == argc)
                return fail_plain(command->name, typed.name, " expects a value");
            typed.value = argv[++i];
        }
        if (typed.option)
            rc = store_typed(command, &typed, values);
        else if (!add(positional, argv[i]))
            rc = fail_plain(command->name, "", "more than 256 files");
    }
    return rc;
}

int cli_check_int32(const char *command, const char *option, long long n)
{
    if (n <= INT32_MAX)
        return 0;
    fprintf(stderr, "inflight %s: %s %lld: expected a whole number of at most %d\n", command,
            option, n, INT32_MAX);
    return -1;
}

int cli_check_max_record(const char *command, long long mib)
{
    if (mib >= 1 && mib <= 1 << 20)
        return 0;
    fprintf(stderr, "inflight %s: --max-record is %lld, expected MiB from 1 to 1048576\n", command,
            mib);
    return -1;
}

/* Control characters of a file's name or contents, or of a module's words, would break the line. */
static void keep_on_line(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
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
    keep_on_line(text);
}

void cli_note(void *context, const char *text)
{
    (void)context;
    char *line = strdup(text);
    if (line)
        keep_on_line(line);
    fprintf(stderr, "%s%snote:%s %s\n", progress_erase(), terminal_style(stderr, STYLE_NOTE),
            terminal_style(stderr, STYLE_NONE), line ? line : text);
    free(line);
}

int cli_fail(const struct ifl_error *error)
{
    char text[sizeof error->file + sizeof error->text + 32];
    error_print(error, text, sizeof text);
    fprintf(stderr, "%s%s%s%s\n", terminal_style(stderr, STYLE_ERROR),
            error->file[0] ? "" : "inflight: ", text, terminal_style(stderr, STYLE_NONE));
    return error->code == IFL_E_INPUT ? 2 : 1;
}
