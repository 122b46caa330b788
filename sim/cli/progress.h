/* A progress line on the terminal, drawn by a thread of its own until it is stopped. */
#ifndef SIM_CLI_PROGRESS_H
#define SIM_CLI_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct progress {
    atomic_ullong *n_ended, *n_requests, *n_points_done;
    size_t n_points;
    bool quiet;
    /* private */
    bool running;
    atomic_bool stopping;
    pthread_t thread;
};

/* Does nothing when quiet or when stderr is no terminal. */
void progress_start(struct progress *progress);
void progress_stop(struct progress *progress);

#endif
