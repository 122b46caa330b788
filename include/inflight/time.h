/* Time: int64_t nanoseconds since the start of the run, simulated and wall alike.
 *
 * Sums of integers are exact and independent of their order, so that a run gives the same bytes on
 * every machine. Seconds are doubles, used only at the edges, such as configuration and CSV files;
 * the functions below are the only conversions. */
#ifndef INFLIGHT_TIME_H
#define INFLIGHT_TIME_H

#include <stdint.h>

#include "inflight/assert.h"
#include "inflight/minmax.h"

#define IFL_NEVER INT64_MAX /* it has not happened, or will not: later than everything */
/* No simulated step or arrival is later than this, 291 years: sums of times stay in int64_t. */
#define IFL_LAST_NS 9200000000000000000LL
#define IFL_NS_PER_S 1000000000LL

/* Nearest nanosecond, halves away from 0. From 9.2e9 s on (IFL_LAST_NS) it is IFL_NEVER, down from
 * -9.2e9 s it is -IFL_NEVER. `s` may be infinite, and must not be NaN. */
static inline int64_t ifl_ns_from_s(double s)
{
    ifl_assert(s == s);
    const double ns = s * 1e9;
    if (ns >= 9.2e18)
        return IFL_NEVER;
    if (ns <= -9.2e18)
        return -IFL_NEVER;
    return (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
}

/* Nearest nanosecond for 0 <= s < IFL_SHORT_S: in 32 bits, because processors convert several
 * doubles to 32-bit integers at once. */
#define IFL_SHORT_S 2
static inline int32_t ifl_short_ns_from_s(double s)
{
    ifl_assert(s >= 0 && s < IFL_SHORT_S);
    return (int32_t)(s * 1e9 + 0.5);
}

/* The next two round and saturate as ifl_ns_from_s. */
static inline int64_t ifl_ns_from_us(double us)
{
    return ifl_ns_from_s(us * 1e-6);
}

static inline int64_t ifl_ns_from_ms(double ms)
{
    return ifl_ns_from_s(ms * 1e-3);
}

/* at_ns + by_ns, at most IFL_LAST_NS. at_ns is at most IFL_LAST_NS; by_ns may be IFL_NEVER. */
static inline int64_t ifl_later_ns(int64_t at_ns, int64_t by_ns)
{
    return at_ns + ifl_min(by_ns, IFL_LAST_NS - at_ns);
}

/* IFL_NEVER is no special number here: 9.2e9 s. */
static inline double ifl_s_from_ns(int64_t ns)
{
    return (double)ns * 1e-9;
}

#endif
