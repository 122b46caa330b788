#include "histogram.h"

#include <stdlib.h>

#include "quantile.h"

static const struct scale scale = {.origin = 0, .bits = HISTOGRAM_BITS};

void histogram_finish(struct histogram *histogram)
{
    for (size_t row = 0; row < HISTOGRAM_MAX_ROWS; row++) {
        free(histogram->low[row]);
        free(histogram->high[row]);
    }
    *histogram = (struct histogram){0};
}

int histogram_open_row(struct histogram *histogram, size_t row, struct ifl_error *error)
{
    histogram->low[row] = calloc(HISTOGRAM_ROW, sizeof *histogram->low[row]);
    return histogram->low[row] ? IFL_OK : ifl_fail_nomem(error);
}

int histogram_carry(struct histogram *histogram, size_t row, size_t at, uint32_t carry,
                    struct ifl_error *error)
{
    if (!histogram->high[row])
        histogram->high[row] = calloc(HISTOGRAM_ROW, sizeof *histogram->high[row]);
    if (!histogram->high[row])
        return ifl_fail_nomem(error);
    histogram->high[row][at] += carry;
    return IFL_OK;
}

/* As many of n values as lie in the row of the first, `taken`; that one is there. */
static int add_in_row(struct histogram *histogram, size_t row, const int64_t *value, size_t n,
                      uint32_t times, size_t *taken, struct ifl_error *error)
{
    const uint64_t least = (uint64_t)scale_least(scale, row * HISTOGRAM_ROW);
    const int width_bits = scale_width_bits(scale, row * HISTOGRAM_ROW);
    for (*taken = 0; *taken < n; ++*taken) {
        const size_t at = ((uint64_t)value[*taken] - least) >> width_bits;
        if (at >= HISTOGRAM_ROW)
            return IFL_OK;
        if (histogram_count(histogram, row, at, times, error))
            return error->code;
    }
    return IFL_OK;
}

int histogram_add_all(struct histogram *histogram, const int64_t *value, size_t n, uint32_t times,
                      struct ifl_error *error)
{
    for (size_t i = 0, taken; i < n; i += taken) {
        const size_t row = scale_bin(scale, value[i]) / HISTOGRAM_ROW;
        if (!histogram->low[row] && histogram_open_row(histogram, row, error))
            return error->code;
        if (add_in_row(histogram, row, value + i, n - i, times, &taken, error))
            return error->code;
    }
    return IFL_OK;
}

static uint64_t times_of(const struct histogram *histogram, size_t row, size_t at)
{
    const uint64_t high = histogram->high[row] ? histogram->high[row][at] : 0;
    return high << 16 | histogram->low[row][at];
}

static int64_t middle_of(size_t bin)
{
    const int64_t width = INT64_C(1) << scale_width_bits(scale, bin);
    return scale_least(scale, bin) + (width - 1) / 2;
}

static size_t count_samples(const struct histogram *histogram, size_t row)
{
    size_t n = 0;
    for (size_t at = 0; at < HISTOGRAM_ROW; at++)
        n += quantile_parts(times_of(histogram, row, at));
    return n;
}

static size_t put_row(const struct histogram *histogram, size_t row, int64_t *value,
                      uint32_t *count, size_t n)
{
    for (size_t at = 0; at < HISTOGRAM_ROW; at++) {
        const uint64_t times = times_of(histogram, row, at);
        if (times > 0)
            n = quantile_put(value, count, n, middle_of(row * HISTOGRAM_ROW + at), times);
    }
    return n;
}

int histogram_list(const struct histogram *histogram, int64_t **value, uint32_t **count, size_t *n,
                   struct ifl_error *error)
{
    size_t cap = 0;
    for (size_t row = 0; row < HISTOGRAM_MAX_ROWS; row++)
        cap += histogram->low[row] ? count_samples(histogram, row) : 0;
    *n = 0;
    *value = malloc((cap ? cap : 1) * sizeof **value);
    *count = malloc((cap ? cap : 1) * sizeof **count);
    if (!*value || !*count)
        return ifl_fail_nomem(error);
    for (size_t row = 0; row < HISTOGRAM_MAX_ROWS; row++)
        if (histogram->low[row])
            *n = put_row(histogram, row, *value, *count, *n);
    return IFL_OK;
}
