/* Several runs of each point: means with confidence intervals. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/report.h"
#include "tables/columns.h"
#include "tables/row.h"
#include "tables/whole_file.h"

struct ifl_interval ifl_interval_95(const double *sample, size_t n)
{
    const double nan = (double)NAN;
    if (n == 0)
        return (struct ifl_interval){nan, nan};
    const double mean = gsl_stats_mean(sample, 1, n);
    if (n == 1)
        return (struct ifl_interval){mean, nan};
    const double standard_error = gsl_stats_sd_m(sample, 1, n, mean) / sqrt((double)n);
    return (struct ifl_interval){mean, gsl_cdf_tdist_Pinv(0.975, (double)n - 1) * standard_error};
}

/* ---- the runs of one point ---- */

struct group {
    size_t n, n_flown, n_saturated;
    struct ifl_summary *runs; /* [n], the successful runs first */
    double *sample;           /* [n] */
    const char **values;      /* [n_keys of the runs] */
    char error[256];          /* of the first run that failed */
};

static int group_create(struct group *group, const struct ifl_replications *of,
                        struct ifl_error *error)
{
    *group = (struct group){.n = of->n,
                            .runs = calloc(of->n, sizeof *group->runs),
                            .sample = calloc(of->n, sizeof *group->sample),
                            .values = calloc(of->runs->n_keys + 1, sizeof *group->values)};
    return group->runs && group->sample && group->values ? IFL_OK : ifl_fail_nomem(error);
}

static void group_destroy(struct group *group)
{
    free(group->runs);
    free(group->sample);
    free(group->values);
}

static int group_read(struct group *group, const struct ifl_replications *of, size_t point,
                      struct ifl_error *error)
{
    group->n_flown = group->n_saturated = 0;
    group->error[0] = '\0';
    for (size_t i = 0; i < of->n; i++) {
        struct ifl_summary *summary = &group->runs[group->n_flown];
        if (of->runs->at(of->runs->context, point * of->n + i, group->values, summary, error))
            return error->code;
        if (summary->error[0] && !group->error[0])
            memcpy(group->error, summary->error, sizeof group->error);
        group->n_saturated += !summary->error[0] && summary->saturated;
        group->n_flown += !summary->error[0];
    }
    return IFL_OK;
}

/* Mean and interval over the runs in which the metric is defined. */
static struct ifl_interval estimate(const struct group *group, const struct column *column)
{
    size_t n = 0;
    for (size_t i = 0; i < group->n_flown; i++) {
        const double x = column_number(column, &group->runs[i]);
        if (!isnan(x))
            group->sample[n++] = x;
    }
    return ifl_interval_95(group->sample, n);
}

/* ---- the means as a summary ---- */

static void average(const struct group *group, struct ifl_summary *summary)
{
    *summary = (struct ifl_summary){.saturated = 2 * group->n_saturated > group->n_flown};
    if (group->n_flown > 0)
        memcpy(summary->assumed, group->runs[0].assumed, sizeof summary->assumed);
    for (size_t i = 0; i < n_summary_columns; i++) {
        const struct column *column = &summary_columns[i];
        char *field = (char *)summary + column->offset;
        if (!column_is_number(column))
            continue;
        const double mean = estimate(group, column).mean;
        const uint64_t count = mean >= 0 ? (uint64_t)(mean + 0.5) : 0;
        if (column->type == COLUMN_COUNT)
            memcpy(field, &count, sizeof count);
        else
            memcpy(field, &mean, sizeof mean);
    }
    if (group->n_flown == 0)
        memcpy(summary->error, group->error, sizeof summary->error);
}

int ifl_mean_of_runs(void *context, size_t point, const char **values, struct ifl_summary *summary,
                     struct ifl_error *error)
{
    const struct ifl_replications *of = context;
    ifl_assert(of->n > 0 && of->runs->n_keys > 0);
    ifl_assert(point < of->runs->n_points / of->n);
    struct group group;
    int code = group_create(&group, of, error);
    if (!code)
        code = group_read(&group, of, point, error);
    for (size_t i = 0; !code && values && i + 1 < of->runs->n_keys; i++)
        values[i] = group.values[i];
    if (!code && summary)
        average(&group, summary);
    group_destroy(&group);
    return code;
}

/* ---- replications.csv ---- */

static int write_head(struct whole_file *file, const struct ifl_points *runs, size_t n_columns,
                      struct ifl_error *error)
{
    size_t n_bytes = 64;
    for (size_t key = 0; key + 1 < runs->n_keys; key++)
        n_bytes += row_text_bytes(runs->keys[key]);
    for (size_t i = 0; i < n_columns; i++)
        n_bytes += 2 * strlen(summary_columns[i].name) + 16;
    char *at = whole_room(file, n_bytes, error);
    if (!at)
        return error->code;
    for (size_t key = 0; key + 1 < runs->n_keys; key++)
        at = row_text(at, runs->keys[key]);
    at = row_word(row_word(at, "runs"), "saturated_runs");
    for (size_t i = 0; i < n_columns; i++) {
        char name[64];
        if (!column_is_number(&summary_columns[i]))
            continue;
        snprintf(name, sizeof name, "%s_ci95", summary_columns[i].name);
        at = row_word(row_word(at, summary_columns[i].name), name);
    }
    whole_commit(file, row_end(at));
    return IFL_OK;
}

static int write_group(struct whole_file *file, const struct group *group, size_t n_keys,
                       size_t n_columns, struct ifl_error *error)
{
    size_t n_bytes = 2 * ROW_NUMBER_BYTES + 2 * n_columns * ROW_REAL_BYTES;
    for (size_t key = 0; key < n_keys; key++)
        n_bytes += row_text_bytes(group->values[key]);
    char *at = whole_room(file, n_bytes, error);
    if (!at)
        return error->code;
    for (size_t key = 0; key < n_keys; key++)
        at = row_text(at, group->values[key]);
    at = row_uint(row_uint(at, group->n_flown), group->n_saturated);
    for (size_t i = 0; i < n_columns; i++) {
        if (!column_is_number(&summary_columns[i]))
            continue;
        const struct ifl_interval of = estimate(group, &summary_columns[i]);
        at = row_real(row_real(at, of.mean), of.half_width);
    }
    whole_commit(file, row_end(at));
    return IFL_OK;
}

static int write_groups(struct whole_file *file, const struct ifl_replications *of,
                        struct ifl_error *error)
{
    struct group group;
    size_t n_columns = 0;
    int code = group_create(&group, of, error);
    if (!code)
        code = summary_columns_of_points(of->runs, &n_columns, error);
    if (!code)
        code = write_head(file, of->runs, n_columns, error);
    for (size_t point = 0; point < of->runs->n_points / of->n && !code; point++) {
        code = group_read(&group, of, point, error);
        if (!code)
            code = write_group(file, &group, of->runs->n_keys - 1, n_columns, error);
    }
    group_destroy(&group);
    return code;
}

int ifl_write_replications(const char *path, const struct ifl_replications *of,
                           struct ifl_error *error)
{
    ifl_assert(of->n > 0 && of->runs->n_keys > 0);
    ifl_assert(of->runs->n_points % of->n == 0);
    struct whole_file file;
    if (whole_open(&file, path, error))
        return error->code;
    return whole_finish(&file, write_groups(&file, of, error), error);
}
