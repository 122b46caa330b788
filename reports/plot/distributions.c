/* Distributions of latencies, from quantiles.csv. With replications a quantile is the mean over the
 * runs' quantiles, like the percentiles in replications.csv. Every run has the same weight,
 * independent of its number of tokens, and the spread of the runs gives an interval. */
#include <math.h>
#include <string.h>

#include "plot/figures.h"

enum { TTFT, ITL, N_LATENCIES };

/* The rows of one point: of each replication that has any. */
struct quantiles {
    const struct sheet *sheet;
    size_t quantile, latency[N_LATENCIES]; /* columns */
    size_t *from;                          /* [n_runs] first row of each */
    double *sample;                        /* [n_runs] */
    size_t n_runs, n_rows;                 /* n_rows: of each run */
};

const char *distributions_lack(const struct plot *plot)
{
    for (size_t run = 0; run < plot->set->n_runs; run++)
        if (plot->set->runs[run].quantiles.n_rows == 0)
            return "no quantiles.csv";
    return NULL;
}

/* Every run has the quantiles of the first, in the same order. */
static int check_grid(const struct quantiles *of, size_t from, size_t n_rows,
                      struct ifl_error *error)
{
    for (size_t i = 0; i < of->n_rows; i++) {
        const char *expected = sheet_cell(of->sheet, of->from[0] + i, of->quantile),
                   *found = i < n_rows ? sheet_cell(of->sheet, from + i, of->quantile) : "missing";
        if (strcmp(found, expected) != 0)
            return ifl_fail_at(error, of->sheet->path, (int)(from + i + 2), 0,
                               "quantile is %s, expected %s as in the first replication", found,
                               expected);
    }
    return IFL_OK;
}

static int find_rows(struct quantiles *of, const struct plot *plot,
                     const struct series_point *point, struct ifl_error *error)
{
    const struct series_run *run = &plot->set->runs[point->run];
    of->sheet = &run->quantiles;
    of->n_runs = of->n_rows = 0;
    if (sheet_require(of->sheet, "quantile", &of->quantile, error) ||
        sheet_require(of->sheet, "ttft_s", &of->latency[TTFT], error) ||
        sheet_require(of->sheet, "itl_s", &of->latency[ITL], error))
        return error->code;
    for (size_t r = 0; r < run->n_replications; r++) {
        size_t from, to;
        if (!series_quantiles(plot->set, point, r, &from, &to))
            continue;
        if (of->n_runs == 0)
            of->n_rows = to - from;
        of->from[of->n_runs++] = from;
        if (check_grid(of, from, to - from, error))
            return error->code;
    }
    return IFL_OK;
}

/* Over the runs in which the latency is defined. */
static int average(const struct quantiles *of, size_t row, size_t latency,
                   struct figure_number cells[2], struct ifl_error *error)
{
    size_t n = 0;
    for (size_t r = 0; r < of->n_runs; r++) {
        double value;
        if (sheet_number(of->sheet, of->from[r] + row, of->latency[latency], &value, error))
            return error->code;
        if (!isnan(value))
            of->sample[n++] = value;
    }
    const struct ifl_interval interval = ifl_interval_95(of->sample, n);
    cells[0] = figure_number(interval.mean);
    cells[1] = figure_number(interval.half_width);
    return IFL_OK;
}

static int write_curve(struct whole_file *file, const struct plot *plot,
                       const struct series_point *point, const struct quantiles *of,
                       struct ifl_error *error)
{
    const struct figure_number number = figure_series_number(point), x = figure_number(point->x);
    for (size_t row = 0; row < of->n_rows; row++) {
        struct figure_number ttft[2], itl[2];
        if (average(of, row, TTFT, ttft, error) || average(of, row, ITL, itl, error))
            return error->code;
        const char *const cells[] = {number.text,
                                     plot->set->names[point->series],
                                     x.text,
                                     figure_saturated(point),
                                     sheet_cell(of->sheet, of->from[0] + row, of->quantile),
                                     ttft[0].text,
                                     ttft[1].text,
                                     itl[0].text,
                                     itl[1].text};
        if (figure_write_row(file, cells, sizeof cells / sizeof *cells, error))
            return error->code;
    }
    return IFL_OK;
}

int distributions_write(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    const size_t n = figure_n_replications(plot);
    struct quantiles of = {.from = calloc(n, sizeof *of.from),
                           .sample = calloc(n, sizeof *of.sample)};
    int code = of.from && of.sample ? IFL_OK : ifl_fail_nomem(error);
    if (!code)
        code = figure_write_head(file, plot, "quantile,ttft_s,ttft_s_ci95,itl_s,itl_s_ci95", error);
    for (size_t i = 0; i < figure_n_curves(plot) && !code; i++) {
        const struct series_point *point = &plot->set->points[plot->chosen[i]];
        code = find_rows(&of, plot, point, error);
        if (!code)
            code = write_curve(file, plot, point, &of, error);
    }
    free(of.sample);
    free(of.from);
    return code;
}
