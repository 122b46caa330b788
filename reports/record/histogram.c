#include "record/histogram.h"

#include <stdlib.h>

#include "record/quantile.h"
#include "record/scale.h"

static const struct scale scale = {0, ((uint64_t)2 << HISTOGRAM_BITS) - 1, HISTOGRAM_BITS};

void histogram_finish(struct histogram *histogram)
{
    free(histogram->low);
    free(histogram->high);
    *histogram = (struct histogram){0};
}

static int open_low(struct histogram *histogram, struct ifl_error *error)
{
    histogram->low = calloc(HISTOGRAM_ROWS * HISTOGRAM_ROW, sizeof *histogram->low);
    return histogram->low ? IFL_OK : ifl_fail_nomem(error);
}

static int carry(struct histogram *histogram, size_t bin, uint64_t times, struct ifl_error *error)
{
    if (!histogram->high)
        histogram->high = calloc(HISTOGRAM_ROWS * HISTOGRAM_ROW, sizeof *histogram->high);
    if (!histogram->high)
        return ifl_fail_nomem(error);
    histogram->high[bin] += times;
    return IFL_OK;
}

IFL_APART int histogram_add(struct histogram *histogram, const int64_t *value, size_t n,
                            const uint32_t *times, size_t apart, struct ifl_error *error)
{
    ifl_assert(apart <= 1);
    if (!histogram->low && open_low(histogram, error))
        return error->code;
    uint16_t *const low = histogram->low;
    for (size_t i = 0; i < n; i++) {
        const size_t bin = scale_bin(scale, value[i]);
        const uint64_t before = low[bin], sum = before + times[i * apart];
        low[bin] = (uint16_t)sum;
        if (before == 0)
            histogram->has_row[bin / HISTOGRAM_ROW] = true;
        if (sum > UINT16_MAX && carry(histogram, bin, sum >> 16, error))
            return error->code;
    }
    return IFL_OK;
}

static uint64_t times_of(const struct histogram *histogram, size_t bin)
{
    const uint64_t high = histogram->high ? histogram->high[bin] : 0;
    return high << 16 | histogram->low[bin];
}

static int64_t middle_of(size_t bin)
{
    const int64_t width = INT64_C(1) << scale_width_bits(scale, bin);
    return scale_least(scale, bin) + (width - 1) / 2;
}

static size_t count_samples(const struct histogram *histogram, size_t row)
{
    size_t n = 0;
    for (size_t bin = row * HISTOGRAM_ROW; bin < (row + 1) * HISTOGRAM_ROW; bin++)
        n += quantile_parts(times_of(histogram, bin));
    return n;
}

static size_t put_row(const struct histogram *histogram, size_t row, int64_t *value,
                      uint32_t *count, size_t n)
{
    for (size_t bin = row * HISTOGRAM_ROW; bin < (row + 1) * HISTOGRAM_ROW; bin++) {
        const uint64_t times = times_of(histogram, bin);
        if (times > 0)
            n = quantile_put(value, count, n, middle_of(bin), times);
    }
    return n;
}

int histogram_list(const struct histogram *histogram, int64_t **value, uint32_t **count, size_t *n,
                   struct ifl_error *error)
{
    size_t cap = 0;
    for (size_t row = 0; row < HISTOGRAM_ROWS; row++)
        cap += histogram->has_row[row] ? count_samples(histogram, row) : 0;
    *n = 0;
    *value = malloc((cap ? cap : 1) * sizeof **value);
    *count = malloc((cap ? cap : 1) * sizeof **count);
    if (!*value || !*count)
        return ifl_fail_nomem(error);
    for (size_t row = 0; row < HISTOGRAM_ROWS; row++)
        if (histogram->has_row[row])
            *n = put_row(histogram, row, *value, *count, *n);
    return IFL_OK;
}
