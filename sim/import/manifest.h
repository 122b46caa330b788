/* The command of a server in the manifest of its container: Docker Compose, Kubernetes, or a list
 * of words. */
#ifndef SIM_IMPORT_MANIFEST_H
#define SIM_IMPORT_MANIFEST_H

#include "import/facts.h"

/* Finds the container whose command starts a server. *command is that command, quoted for
 * words_split, behind the variables and the image of the container; the caller frees it. It is NULL
 * if the text is a shell's, and no YAML or JSON. Other keys of the container are findings. No such
 * container, several of them, and text that cannot be read are errors. */
int manifest_read(const char *text, char **command, struct facts *facts, struct ifl_error *error);

#endif
