/* The system's monotonic clock, CLOCK_MONOTONIC. */
#ifndef SIM_BASE_CLOCK_H
#define SIM_BASE_CLOCK_H

#include <time.h>

#include "inflight/time.h"

static inline int64_t clock_steady_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * IFL_NS_PER_S + now.tv_nsec;
}

static inline double clock_steady_s(void)
{
    return ifl_s_from_ns(clock_steady_ns());
}

#endif
