/* Units of systemd, and Podman's Quadlets, that start a server. */
#ifndef SIM_IMPORT_UNIT_H
#define SIM_IMPORT_UNIT_H

#include "import/facts.h"

/* *script is a script that sets the unit's variables and starts what it starts; the caller frees
 * it. It is NULL if the text is no unit. Other keys of the unit are findings. Returns 0 or a
 * negative code. */
int unit_read(const char *text, char **script, struct facts *facts, struct ifl_error *error);

#endif
