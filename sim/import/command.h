/* Reads a server's command line into facts and findings (facts.h). */
#ifndef SIM_IMPORT_COMMAND_H
#define SIM_IMPORT_COMMAND_H

#include "import/facts.h"

struct command_text {
    const char *text;
    const char *name;   /* of its file; NULL: it is the command line */
    const char *folder; /* where files are that it names; NULL: none is read */
};

/* Reads "vllm serve MODEL --flag value ...", with what a shell or a container stands in front of
 * it, or a manifest with such a command (manifest.h). A comment behind it may name the version: "#
 * version 0.9.1". */
int command_read(const struct command_text *command, struct facts *facts, struct ifl_error *error);

#endif
