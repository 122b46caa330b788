#include "validate/distance.h"

#include <math.h>

#include "inflight/assert.h"
#include "inflight/minmax.h"
#include "record/exact_sum.h"

double distance_ks(const int64_t *a, const int64_t *b, size_t n)
{
    ifl_assert(ifl_ascends(a, n));
    ifl_assert(ifl_ascends(b, n));
    double largest = 0;
    for (size_t i = 0, k = 0; i < n && k < n;) {
        const int64_t at = ifl_min(a[i], b[k]);
        while (i < n && a[i] == at)
            i++;
        while (k < n && b[k] == at)
            k++;
        largest = fmax(largest, fabs((double)i - (double)k) / (double)n);
    }
    return largest;
}

double distance_wasserstein(const int64_t *a, const int64_t *b, size_t n)
{
    ifl_assert(ifl_ascends(a, n));
    ifl_assert(ifl_ascends(b, n));
    struct exact_sum sum = {0};
    for (size_t i = 0; i < n; i++)
        exact_add(&sum, a[i] < b[i] ? b[i] - a[i] : a[i] - b[i], 1);
    return n ? exact_value(sum) / (double)n : 0;
}
