/* 128-bit integer sums: no overflow, no rounding, the same in every order. */
#ifndef INFLIGHT_REPORTS_EXACT_SUM_H
#define INFLIGHT_REPORTS_EXACT_SUM_H

#include <stdint.h>

struct exact_sum {
    __extension__ __int128 of;
};

static inline void exact_add(struct exact_sum *sum, int64_t value, int64_t times)
{
    sum->of += __extension__(__int128) value * times;
}

static inline double exact_value(struct exact_sum sum)
{
    return (double)sum.of;
}

#endif
