/* intervals.csv: quantiles of each metric of the summary over the members of an ensemble. */
#include <math.h>
#include <stdlib.h>

#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>

#include "inflight/minmax.h"
#include "inflight/report.h"
#include "tables/columns.h"
#include "tables/row.h"
#include "tables/whole_file.h"

/* The members that have the metric, ascending. */
static size_t gather(const struct ifl_summary *members, size_t n, const struct column *column,
                     double *value)
{
    size_t n_values = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = column_number(column, &members[i]);
        if (!isnan(v))
            value[n_values++] = v;
    }
    gsl_sort(value, 1, n_values);
    return n_values;
}

/* One more draw lies below the k-th of n in k of n + 1 cases. GSL's and numpy's quantile of a
 * sample has rank 1 + q (n - 1): between its 0.05 and 0.95 of 40 members lie 86% of further draws,
 * of 8 members 70%. Between two equal infinities GSL interpolates to NaN. */
double ifl_ensemble_quantile(const double *ascending, size_t n, double q)
{
    if (n == 0)
        return (double)NAN;
    const double most = (double)(n - 1);
    const double place = fmin(fmax((q * (double)(n + 1) - 1), 0), most);
    const size_t below = (size_t)place, above = ifl_min(below + 1, n - 1);
    const double frac = place - (double)below;
    if (frac == 0 || ascending[below] == ascending[above])
        return ascending[below];
    return (1 - frac) * ascending[below] + frac * ascending[above];
}

static int write_column(struct whole_file *file, const struct ifl_ensemble *ensemble,
                        const struct column *column, double *value, struct ifl_error *error)
{
    const size_t n = gather(ensemble->members, ensemble->n, column, value);
    char *at = whole_room(file, row_text_bytes(column->name) + 8 * (size_t)ROW_REAL_BYTES, error);
    if (!at)
        return error->code;
    at = row_int(at, ensemble->point);
    at = row_word(at, column->name);
    at = row_real(at, column_number(column, ensemble->nominal));
    at = row_uint(at, n);
    at = row_real(at, n ? gsl_stats_mean(value, 1, n) : (double)NAN);
    at = row_real(at, ifl_ensemble_quantile(value, n, 0.05));
    at = row_real(at, ifl_ensemble_quantile(value, n, 0.5));
    at = row_real(at, ifl_ensemble_quantile(value, n, 0.95));
    whole_commit(file, row_end(at));
    return IFL_OK;
}

int ifl_write_intervals(const struct ifl_ensemble *ensemble, const char *path,
                        struct ifl_error *error)
{
    struct whole_file file;
    double *value = malloc((ensemble->n + 1) * sizeof *value);
    if (!value)
        return ifl_fail_nomem(error);
    int rc = whole_open(&file, path, error);
    if (rc == IFL_OK)
        rc = whole_write(&file, "point,metric,value,members,mean,p05,p50,p95\n", error);
    const size_t n_columns = summary_columns_of(ensemble->nominal);
    for (size_t c = 0; rc == IFL_OK && c < n_columns; c++)
        if (column_is_number(&summary_columns[c]) && ensemble->n > 0)
            rc = write_column(&file, ensemble, &summary_columns[c], value, error);
    rc = whole_finish(&file, rc, error);
    free(value);
    return rc;
}
