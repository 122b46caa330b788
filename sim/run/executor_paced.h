/* The simulating executor at the pace of a source's clock: a step ends when the clock says so, not
 * before. How late the end is handed over changes nothing but when clients see it. */
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
