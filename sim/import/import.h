/* Makes a configuration from a server's settings, and a server's command line from a configuration.
 */
#ifndef SIM_IMPORT_IMPORT_H
#define SIM_IMPORT_IMPORT_H

#include "base/tree.h"

#include "import/answers.h"
#include "import/command.h"
#include "import/facts.h"

struct import_sources {
    struct command_text command; /* a command line or a manifest; its text is NULL: none */
    const char *const *logs;
    size_t n_logs; /* files, parts of the log of one server */
    const struct import_answer *answers;
    size_t n_answers; /* answers of one server */
    /* Given by the caller if the sources do not say it; NULL: not given. */
    const char *version, *model, *hardware;
};

/* Reads the sources and makes a configuration without a workload, in which every key is valid. The
 * caller must call facts_free, and on success tree_free of *root. */
int import_read(const struct import_sources *sources, struct facts *facts, struct node **root,
                struct ifl_error *error);

/* Prints the findings, one per line, with `before` in front: what maps to which key with which
 * value, and what is a default, harmless, not modelled or unknown. */
void import_report(const struct facts *facts, const struct node *root, const char *before,
                   FILE *out);

/* Prints the command line of a server with this configuration, followed by its version. Keys that
 * it cannot express go to the notes. Only vLLM and SGLang have presets for which this is possible.
 */
int export_server(const char *path, enum server server, FILE *out, const struct ifl_notes *notes,
                  struct ifl_error *error);

/* Reads the configuration merged over its preset; keys that need a workload have their defaults. On
 * success the caller must call config_finish. */
struct config;
int import_resolve(const struct node *user, struct config *config, struct ifl_error *error);

/* The device of a server that has no CUDA GPU, as its log or its command names it; else NULL. */
const char *import_other_device(const struct facts *facts);

#endif
