/* All commands, in the order in which help lists them. */
#ifndef SIM_CLI_COMMANDS_H
#define SIM_CLI_COMMANDS_H

#include "cli/options.h"

extern const struct command command_run, command_capacity, command_trace_stats,
    command_trace_convert, command_trace_generate, command_trace_tokens, command_model,
    command_calibrate, command_fit, command_identify, command_validate, command_import,
    command_export, command_compare, command_plot, command_replay, command_report, command_serve,
    command_table, command_list, command_help;

/* NULL behind the last. */
const struct command *command_at(size_t i);
/* The command that the first one or two of the words name; NULL if none does. */
const struct command *command_named(int n_words, const char *const *words);
/* True if the command is `group` or one of its kinds: "trace stats" is a "trace". */
bool command_is_of(const struct command *command, const char *group);
/* Number of words in the command's name. */
int command_n_words(const struct command *command);
/* The first one or two of the words name no command: prints a line on standard error with the
 * nearest name. Returns 2. */
int command_fail_unknown(int n_words, const char *const *words);

#endif
