/* A progress line about all ranks, drawn by a thread of rank 0 until it is stopped: in place on a
 * terminal; where several ranks write into a pipe, a line of its own now and then. */
#ifndef SIM_CLI_PROGRESS_H
#define SIM_CLI_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct progress {
    atomic_ullong *n_ended, *n_begun; /* requests of this rank's points that are under way */
    size_t n_points;
    bool quiet;
    /* private */
    bool running, terminal;
    double start_s;
    atomic_bool stopping;
    pthread_t thread;
};

/* Does nothing when quiet, or where nobody would look. */
void progress_start(struct progress *progress);
void progress_stop(struct progress *progress);
/* What to write before a message, so that it does not follow a half drawn line: may be nothing. */
const char *progress_erase(void);

#endif
