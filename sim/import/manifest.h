/* The command of a server in YAML or JSON: the manifest of its container (Docker Compose,
 * Kubernetes), a list of words, values of a chart and the like. */
#ifndef SIM_IMPORT_MANIFEST_H
#define SIM_IMPORT_MANIFEST_H

#include "import/facts.h"

/* Finds the container whose command starts a server, a map that says by keys how one is started
 * (recipe.h), or the flags of one alone. *command is its command, quoted for words_split, behind
 * the variables and the image of the container; the caller frees it. It is NULL if the text is a
 * shell's, and no YAML or JSON. Other keys of the container are findings. No such container,
 * several of them, and text that cannot be read are errors. `name` is that of the text's file,
 * NULL: it is the command line. */
int manifest_read(const char *text, const char *name, char **command, struct facts *facts,
                  struct ifl_error *error);

#endif
