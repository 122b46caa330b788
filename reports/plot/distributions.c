/* Distributions of latencies, from quantiles.csv. */
#include <math.h>

#include "plot/figures.h"

const char *distributions_lack(const struct plot *plot)
{
    for (size_t run = 0; run < plot->set->n_runs; run++)
        if (plot->set->runs[run].quantiles.n_rows == 0)
            return "no quantiles.csv";
    return NULL;
}

static int write_curve(struct whole_file *file, const struct plot *plot,
                       const struct series_point *point, struct ifl_error *error)
{
    const struct sheet *sheet = &plot->set->runs[point->run].quantiles;
    const struct figure_number number = figure_series_number(point),
                               rate = figure_number(point->rate_rps);
    size_t from, to, quantile, ttft, itl;
    if (!series_quantiles(plot->set, point, &from, &to))
        return IFL_OK;
    if (sheet_require(sheet, "quantile", &quantile, error) ||
        sheet_require(sheet, "ttft_s", &ttft, error) || sheet_require(sheet, "itl_s", &itl, error))
        return error->code;
    for (size_t row = from; row < to; row++) {
        const char *const cells[] = {number.text,
                                     plot->set->names[point->series],
                                     rate.text,
                                     sheet_cell(sheet, row, quantile),
                                     sheet_cell(sheet, row, ttft),
                                     sheet_cell(sheet, row, itl)};
        if (figure_write_row(file, cells, sizeof cells / sizeof *cells, error))
            return error->code;
    }
    return IFL_OK;
}

int distributions_write(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    int code = whole_write(file, "number,series,rate_rps,quantile,ttft_s,itl_s\n", error);
    for (size_t i = 0; i < figure_n_curves(plot) && !code; i++)
        code = write_curve(file, plot, &plot->set->points[plot->chosen[i]], error);
    return code;
}
