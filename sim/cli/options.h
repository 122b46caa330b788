/* Command-line options by a table: "--name value", "--name" for flags, "-x" short forms. */
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

struct option_spec {
    const char *name;  /* "--set" */
    const char *alias; /* "-s" or NULL */
    enum option_kind kind;
    void *target;
};

/* Reads argv[0..argc); words that are no options go to `positional`. 0, or -1 after printing one
 * line to stderr that names the command. */
int options_read(const char *command, int argc, char **argv, const struct option_spec *options,
                 size_t n_options, struct text_list *positional);

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

/* Checks the range of --max-record, in MiB. 0, or -1 after printing one line. */
int cli_check_max_record(const char *command, long long mib);

/* What --plot draws: the metric of the papers' first figure. */
#define CLI_PLOTTED "mean_normalized_latency_s"

int cli_capacity(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_calibrate(int argc, char **argv);
int cli_fit(int argc, char **argv);
int cli_identify(int argc, char **argv);
int cli_model(int argc, char **argv);
int cli_trace(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_import(int argc, char **argv);
int cli_validate(int argc, char **argv);
int cli_compare(int argc, char **argv);
int cli_plot(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_table(int argc, char **argv);
int cli_list(int argc, char **argv);

#endif
