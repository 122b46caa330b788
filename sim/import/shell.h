/* Scripts as a shell reads them, as far as the values of variables go. */
#ifndef SIM_IMPORT_SHELL_H
#define SIM_IMPORT_SHELL_H

#include "import/expand.h"

/* Writes the script to *expanded, which the caller frees, with the values of variables in their
 * places: those of `variables`, and those that it sets itself before (NAME=value, export, lists
 * NAME=(...), -e NAME=value of a container), which are left in `variables`. A variable that it sets
 * under a condition or in a loop has no value from there on. */
int shell_expand(const char *script, struct variables *variables, char **expanded,
                 struct ifl_error *error);

/* How many characters the assignments NAME=value have that a text begins with, one a line, with
 * comments and empty lines between them (.env in front of a manifest). */
size_t shell_settings(const char *text);

#endif
