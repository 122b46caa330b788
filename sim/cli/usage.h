/* How each command is called: one table for `inflight --help`, for `inflight COMMAND --help`, and
 * for whoever calls a command in a way that cannot be meant. */
#ifndef SIM_CLI_USAGE_H
#define SIM_CLI_USAGE_H

#include <stdbool.h>
#include <stdio.h>

/* Every command with a line on what it is for. */
void usage_list(FILE *out);
/* True where the arguments ask for help; it stands on standard output then. */
bool usage_helped(int argc, char **argv);
/* How to call `command` ("run", "trace stats"; "trace": all of its kinds), on standard error.
 * Returns the exit code for that, 2. */
int usage_fail(const char *command);
#endif
