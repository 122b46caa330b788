/* The simulating executor: virtual time jumps to the end of the step that a cost model predicts. */
#ifndef SIM_EXECUTOR_SIM_H
#define SIM_EXECUTOR_SIM_H

#include "inflight/executor.h"

#include "cost/cost.h"

enum { EXECUTOR_SIM_MAX_IN_FLIGHT = 64 };

struct executor_sim {
    struct cost *cost; /* borrowed */
    int64_t now_ns;
    struct ifl_done pending[EXECUTOR_SIM_MAX_IN_FLIGHT]; /* a ring, oldest at first */
    unsigned first, n;
};

extern const struct ifl_executor_ops executor_sim_ops;

#endif
