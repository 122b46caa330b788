/* How each command is called: one table for `inflight --help`, for `inflight COMMAND --help`, and
 * for the message after a call with wrong arguments. */
#ifndef SIM_CLI_USAGE_H
#define SIM_CLI_USAGE_H

#include <stdbool.h>
#include <stdio.h>

/* Every command with a line on what it is for. */
void usage_list(FILE *out);
/* If the arguments ask for help, prints it on standard output and returns true. */
bool usage_helped(int argc, char **argv);
/* Prints how to call `command` ("run", "trace stats"; "trace": all of its kinds) on standard error.
 * Returns 2, the exit code for wrong arguments. */
int usage_fail(const char *command);
#endif
