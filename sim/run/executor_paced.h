/* The simulating executor in wall time: `next` returns a step when the clock of the source reaches
 * the simulated end of the step. If it returns late, times in the flight stay the same; clients
 * only see their tokens later. */
#ifndef SIM_RUN_EXECUTOR_PACED_H
#define SIM_RUN_EXECUTOR_PACED_H

#include "run/executor_sim.h"
#include "run/source.h"

/* Returned by `next` if the source has something to say before the next end and before until_ns. */
enum { EXECUTOR_SOURCE_SPEAKS = 2 };

struct executor_paced {
    struct executor_sim *sim; /* borrowed */
    const struct source *source;
};

/* This executor predicts no durations, so that no stretch of steps passes an arrival. */
extern const struct ifl_executor_ops executor_paced_ops;

#endif
