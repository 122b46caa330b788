/* The threads of all ranks simulate the points of a study. Each thread claims the next unclaimed
 * point, by its number, until no point is left. */
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
    /* Returns true if nothing is left to do for the point. */
    bool (*done)(void *context, size_t point);
    /* Simulates the point. A negative code ends the study on all ranks. */
    int (*fly)(void *context, size_t point, struct ifl_error *error);
    /* For the progress line, if the number of points is no measure: returns the share of the work
     * that is done, NaN if unknown, and writes to `text` what to add to the line. NULL: the share
     * of points is shown. */
    double (*share)(void *context, size_t n_done, char text[80]);
    /* For the progress line: requests ended and begun by points under way in this process. */
    atomic_ullong n_ended, n_begun;
};

/* Simulates the points; returns when all points of all ranks are done: 0, or the error of the
 * lowest rank that has one. From the call on SIGINT and SIGTERM stop the study (interrupt.h). */
int crew_work(struct crew *crew, struct ifl_error *error);

#endif
