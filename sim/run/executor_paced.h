/* The simulating executor in wall time: a step ends when the clock of the source has come to its
 * end. A delay in handing over the end changes no time in the flight; clients only see their tokens
 * later. */
#ifndef SIM_RUN_EXECUTOR_PACED_H
#define SIM_RUN_EXECUTOR_PACED_H

#include "run/executor_sim.h"
#include "run/source.h"

/* What `next` answers where the source has something to say before the next end and until_ns. */
enum { EXECUTOR_SOURCE_SPEAKS = 2 };

struct executor_paced {
    struct executor_sim *sim; /* borrowed */
    const struct source *source;
};

/* It foretells no durations, so that no stretch of steps passes an arrival. */
extern const struct ifl_executor_ops executor_paced_ops;

#endif
