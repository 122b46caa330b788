/* A server as a configuration, and a configuration as a server's command line. */
#ifndef SIM_IMPORT_IMPORT_H
#define SIM_IMPORT_IMPORT_H

#include "base/tree.h"

#include "import/answers.h"
#include "import/facts.h"

struct import_sources {
    const char *command; /* a command line; NULL: none */
    const char *const *logs;
    size_t n_logs; /* parts of the log of one server */
    const struct import_answer *answers;
    size_t n_answers; /* of one server */
    /* What neither of them may say; NULL: nothing. */
    const char *version, *model, *hardware;
};

/* Reads the sources and makes a configuration without a workload, every key of which is valid. The
 * caller owes facts_free, and tree_free of *root on success. */
int import_read(const struct import_sources *sources, struct facts *facts, struct node **root,
                struct ifl_error *error);

/* The findings, a line each, `before` in front of it: what maps to which key with which value, what
 * is a default, harmless, not modelled or unknown. */
void import_report(const struct facts *facts, const struct node *root, const char *before,
                   FILE *out);

/* Prints the command line of a server that is configured so, and its version behind it. What it
 * cannot say goes to the notes. Only vLLM and SGLang have presets that this can be told of. */
int export_server(const char *path, enum server server, FILE *out, const struct ifl_notes *notes,
                  struct ifl_error *error);

/* The configuration with its preset below, read; keys that need a workload have their defaults. The
 * caller owes config_finish on success. */
struct config;
int import_resolve(const struct node *user, struct config *config, struct ifl_error *error);

/* The device of a server that has no CUDA GPU, as its log or its command names it; else NULL. */
const char *import_other_device(const struct facts *facts);

#endif
