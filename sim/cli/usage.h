/* How each command is called, from its row of the table of commands: for `inflight --help`, for
 * `inflight COMMAND --help`, and for the message after a call with wrong arguments. */
#ifndef SIM_CLI_USAGE_H
#define SIM_CLI_USAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/commands.h"

enum { USAGE_OPTION_CHARS = 64 };

/* "-o, --output DIR" */
const char *usage_option(const struct option_spec *option, char text[USAGE_OPTION_CHARS]);
/* Describes the option, and says so if it may be given several times. */
const char *usage_doc(const struct option_spec *option, char text[256]);

/* Every command with a line on what it is for. */
void usage_list(FILE *out);
/* Prints the help of the command that the words name, or of all kinds of "trace"; of no words, the
 * list of commands. Negative if there is no such command; then nothing is printed. */
int usage_explain(int n_words, const char *const *words);
/* If the arguments ask for help, prints it on standard output and returns true. */
bool usage_helped(int argc, char **argv);
/* Prints how to call the command on standard error. Returns 2, the exit code for wrong arguments.
 */
int usage_fail(const struct command *command);
/* As usage_fail, for a word that begins the names of several commands, such as "trace". Returns a
 * negative value if there are none. */
int usage_fail_group(const char *group);

#endif
