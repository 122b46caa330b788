/* Environment variables in front of a server's command. */
#ifndef SIM_IMPORT_ENVIRONMENT_H
#define SIM_IMPORT_ENVIRONMENT_H

#include <stdbool.h>

#include "inflight/error.h"

#include "import/facts.h"

/* True for "NAME=value". */
bool environment_is_variable(const char *word);

/* Adds the finding about a variable, and its fact if the server of `facts` reads one from it. The
 * server must have been noted before: another one does not read the variables of this one. Returns
 * 0 or a negative code. */
int environment_read(const char *variable, struct facts *facts, struct ifl_error *error);

#endif
