/* Who flies the points of a study: the threads of this process, and of all ranks. Each takes the
 * next number that nobody has, until none is left. */
#ifndef SIM_CLI_CREW_H
#define SIM_CLI_CREW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "inflight/error.h"

struct crew {
    size_t n_points;
    long long n_threads;
    bool quiet;
    void *context;
    /* Is there nothing left to do for the point? */
    bool (*done)(void *context, size_t point);
    /* Flies it. A negative code ends the study for all. */
    int (*fly)(void *context, size_t point, struct ifl_error *error);
    /* For the progress line: requests ended and begun by points that are under way here. */
    atomic_ullong n_ended, n_begun;
};

/* SIGINT and SIGTERM stop it from here on (interrupt.h). Returns when all points of all ranks are
 * done, or the error of the lowest rank that has one. */
int crew_work(struct crew *crew, struct ifl_error *error);

#endif
