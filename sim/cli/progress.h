/* A progress line about all ranks, drawn by a thread of rank 0 until it is stopped. On a terminal
 * it is drawn in place. With several ranks and no terminal a new line is written at intervals. */
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

/* Does nothing
 *   - when quiet;
 *   - on any rank but 0;
 *   - with a single rank and no terminal. */
void progress_start(struct progress *progress);
void progress_stop(struct progress *progress);
/* What to write before a message so that it begins on a clear line; may be empty. */
const char *progress_erase(void);

#endif
