/* Seconds as libevent takes them. */
#ifndef SIM_LIVE_TIMEVAL_H
#define SIM_LIVE_TIMEVAL_H

#include <sys/time.h>

static inline struct timeval timeval_of_s(double s)
{
    const time_t whole = (time_t)s;
    return (struct timeval){whole, (suseconds_t)((s - (double)whole) * 1e6)};
}

#endif
