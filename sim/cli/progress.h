/* A progress line, drawn by a thread until it is stopped, in place on a terminal. */
#ifndef SIM_CLI_PROGRESS_H
#define SIM_CLI_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct progress_state {
    double done_frac; /* share of the work that is done; NaN: unknown */
    char text[160];   /* what has been done so far */
};

struct progress {
    /* Fills in the state; called by the thread that draws. */
    void (*look)(void *context, struct progress_state *state);
    void *context;
    bool quiet;
    bool in_lines; /* without a terminal: print lines at intervals */
    /* private */
    bool running, terminal;
    double start_s;
    atomic_bool stopping;
    pthread_t thread;
};

/* Does nothing when quiet, and where there is no terminal unless `in_lines`. */
void progress_start(struct progress *progress);
void progress_stop(struct progress *progress);
/* Returns the text to write before a message so that it begins on a clear line; may be empty. */
const char *progress_erase(void);

#endif
