/* Files about the program for other programs, written from the table of commands: man pages, and
 * scripts by which shells complete a command line. */
#ifndef SIM_CLI_MANUAL_H
#define SIM_CLI_MANUAL_H

#include <stdio.h>

#include "cli/options.h"

/* A page in roff (man(7)) about a command, or with NULL about all of them. */
void manual_write(FILE *out, const struct command *command);

void completion_write_bash(FILE *out);
void completion_write_zsh(FILE *out);
void completion_write_fish(FILE *out);

#endif
