#include "tables/time_bins.h"

#include <math.h>
#include <stdlib.h>

#include "inflight/minmax.h"

static const double first_width_s = 1.0 / 1024;

int time_bins_make(struct time_bins *bins, size_t cap_bins, size_t n_values,
                   struct ifl_error *error)
{
    ifl_assert(cap_bins > 0 && cap_bins % 2 == 0);
    *bins = (struct time_bins){.cap_bins = cap_bins,
                               .n_values = n_values,
                               .sum = calloc(cap_bins * n_values, sizeof *bins->sum)};
    return bins->sum ? IFL_OK : ifl_fail_nomem(error);
}

void time_bins_free(struct time_bins *bins)
{
    free(bins->sum);
    *bins = (struct time_bins){0};
}

static void merge_bins(struct time_bins *bins)
{
    const size_t n = bins->n_values;
    for (size_t i = 0; i < bins->cap_bins; i++)
        for (size_t which = 0; which < n; which++)
            bins->sum[i * n + which] =
                i < bins->cap_bins / 2
                    ? bins->sum[2 * i * n + which] + bins->sum[(2 * i + 1) * n + which]
                    : 0;
    bins->width_s *= 2;
    bins->n_bins = (bins->n_bins + 1) / 2;
}

/* From begin to end, seconds behind the origin. */
static void add_span(struct time_bins *bins, double begin_s, double end_s, const double *value)
{
    while (end_s > bins->width_s * (double)bins->cap_bins)
        merge_bins(bins);
    for (size_t i = (size_t)(begin_s / bins->width_s); i < bins->cap_bins; i++) {
        const double from_s = fmax(begin_s, (double)i * bins->width_s),
                     to_s = fmin(end_s, (double)(i + 1) * bins->width_s);
        if (to_s <= from_s)
            break;
        for (size_t which = 0; which < bins->n_values; which++)
            bins->sum[i * bins->n_values + which] += value[which] * (to_s - from_s);
        bins->n_bins = ifl_max(bins->n_bins, i + 1);
    }
}

void time_bins_add(struct time_bins *bins, double begin_s, double duration_s, const double *value)
{
    if (bins->width_s == 0) {
        bins->origin_s = begin_s;
        bins->width_s = first_width_s;
    }
    const double begun_s = fmax(begin_s - bins->origin_s, 0);
    add_span(bins, begun_s, begun_s + duration_s, value);
}
