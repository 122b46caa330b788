/* The input files of points, apart from the configuration. Their checksums are part of a point's
 * record. A file is read once, before the first point that needs it is simulated. */
#ifndef SIM_CLI_INPUTS_H
#define SIM_CLI_INPUTS_H

#include <pthread.h>
#include <time.h>

#include "cli/checksum.h"
#include "config/config.h"

enum input_kind {
    INPUT_TRACE,
    INPUT_TOKENIZER, /* tokenizer of the trace's texts; of a folder, all files */
    INPUT_MODEL,
    INPUT_HARDWARE,   /* hardware profile, with its corrections and deployment */
    INPUT_DEPLOYMENT, /* the deployment that the configuration names */
    INPUT_COST,       /* the tables of cost.dir */
    INPUT_PLUGINS,    /* all of them */
    N_INPUTS
};

struct input_sums {
    struct checksum of[N_INPUTS];
};

struct known_input {
    char *path;
    struct checksum sum;
};

struct inputs {
    const char *const *plugins; /* [n_plugins] borrowed */
    size_t n_plugins;
    /* private */
    struct checksum plugin_sum;
    pthread_mutex_t lock;
    struct known_input *of;
    size_t n;
    struct timespec newest; /* latest modification time of these files */
    char newest_path[1024];
};

/* Call it before the plug-ins are loaded. */
void inputs_init(struct inputs *inputs, const char *const *plugins, size_t n_plugins);
void inputs_finish(struct inputs *inputs); /* zeroed memory is valid */

/* Fills the checksums of a point's inputs. Any thread may call it. Returns a negative code only if
 * memory is short; a missing file counts as empty. */
int inputs_sum(struct inputs *inputs, const struct config *config, struct input_sums *sums,
               struct ifl_error *error);
/* Notes all input files, so that no output replaces one of them (inflight/inputs.h). */
void inputs_note(const struct config *config);
/* "trace three.csv" */
void inputs_describe(const struct inputs *inputs, const struct config *config, enum input_kind kind,
                     char text[640]);
/* True if a plug-in, or an input that was summed so far, has changed after `when`. */
bool inputs_newer_than(const struct inputs *inputs, const struct timespec *when);

#endif
