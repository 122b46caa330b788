/* Commands and their options by tables: "--name value", "--name" for flags, "-x" short forms. */
#ifndef SIM_CLI_OPTIONS_H
#define SIM_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_FLAG,  /* bool */
    OPTION_TEXT,  /* const char * */
    OPTION_COUNT, /* long long, not negative */
    OPTION_REAL,  /* double */
    OPTION_LIST   /* struct text_list, given any number of times */
};

struct text_list {
    const char *of[256];
    size_t n;
};

/* What the shell's completion offers for a value, or for a word that is no option. */
enum completion {
    COMPLETE_NOTHING, /* or the words between bars, if the value is like "cpu|cuda" */
    COMPLETE_FILE,
    COMPLETE_FOLDER,
    COMPLETE_CONFIG,  /* a YAML file, or one that comes with inflight by its name */
    COMPLETE_SETTING, /* KEY=VALUE of a configuration */
    COMPLETE_KEY,
    COMPLETE_MODEL,
    COMPLETE_HARDWARE,
    COMPLETE_FORMAT, /* of traces */
    COMPLETE_FIGURE,
    COMPLETE_COMMAND,
    COMPLETE_TOPIC /* of `inflight list`, then a name of that topic */
};

struct option_spec {
    const char *name;  /* "--set" */
    const char *alias; /* "-s" or NULL */
    enum option_kind kind;
    size_t at;         /* offset of its value in the struct that options_read fills */
    const char *value; /* "KEY=VALUE", as the help has it; NULL for a flag */
    const char *doc;   /* a line, without a full stop; defaults in brackets */
    enum completion completion;
};

/* A command of the program; its help, man page and completion are made from this. */
struct command {
    const char *name;      /* "run", "trace stats" */
    const char *doc;       /* a line */
    const char *arguments; /* the words that are no options, as "CONFIG.yaml" */
    const char *example;   /* a whole command line */
    const char *notes;     /* a paragraph or NULL */
    enum completion completion;
    const struct option_spec *options;
    size_t n_options;
    int (*run)(int argc, char **argv);
};

/* Reads argv[0..argc) into the struct at `values`, at the offsets of the command's options. Words
 * that are no options go to `positional`. 0, or -1 after printing one line to stderr that names the
 * command. */
int options_read(const struct command *command, void *values, int argc, char **argv,
                 struct text_list *positional);

/* ---- what commands share ---- */

struct ifl_error;
/* The error as one line: where, and what. */
void error_print(const struct ifl_error *error, char *text, size_t n_bytes);
/* Prints the error as one line and returns the exit code for it: 2 for wrong input, else 1. */
int cli_fail(const struct ifl_error *error);
/* Ends a line on standard error with the name nearest to a wrong word, or with all of them. */
void cli_suggest(const char *word, const char *const *names, size_t n);
/* Prints "note: TEXT" on standard error; the context is unused. For struct ifl_notes and the like.
 */
void cli_note(void *context, const char *text);

/* Checks that a count has 31 bits. 0, or -1 after printing one line. */
int cli_check_int32(const char *command, const char *option, long long n);
/* Checks the range of --max-record, in MiB. 0, or -1 after printing one line. */
int cli_check_max_record(const char *command, long long mib);

/* The metric that --plot draws: that of the first figure of many papers. */
#define CLI_PLOTTED "mean_normalized_latency_s"

#endif
