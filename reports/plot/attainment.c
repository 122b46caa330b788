/* SLO attainment against the scale of the SLOs, as in DistServe's Fig. 8 (Zhong et al., OSDI 2024):
 * the share of requests that would meet every SLO if all were so many times as long. */
#include <math.h>

#include "plot/figures.h"

/* Twelve steps an octave from 1/8 to 8. */
enum { N_SCALES = 73, PER_OCTAVE = 12, OCTAVES_DOWN = 3 };

static double scale_at(int i)
{
    return exp2((double)i / PER_OCTAVE - OCTAVES_DOWN);
}

struct attainment {
    bool has_slo;
    double n_requests, n_met[N_SCALES];
};

enum { POINT, TTFT, TPOT, E2E, TTFT_SLO, TPOT_SLO, N_COLUMNS };
static const char *const columns[N_COLUMNS] = {"point", "ttft_s",     "tpot_s",
                                               "e2e_s", "ttft_slo_s", "tpot_slo_s"};

/* The smallest scale at which the latency meets the SLO: 0 where one of them is undefined. */
static double scale_needed(double latency_s, double slo_s)
{
    return isnan(latency_s) || isnan(slo_s) ? 0 : latency_s / slo_s;
}

static int take_request(void *context, size_t series, const double *value, struct ifl_error *error)
{
    (void)error;
    struct attainment *of = (struct attainment *)context + series;
    const double ttft = scale_needed(value[TTFT], value[TTFT_SLO]),
                 tpot = scale_needed(value[TPOT], value[TPOT_SLO]),
                 needed = isnan(value[E2E]) ? (double)INFINITY : fmax(ttft, tpot);
    of->has_slo |= !isnan(value[TTFT_SLO]) || !isnan(value[TPOT_SLO]);
    of->n_requests++;
    for (int i = N_SCALES; i-- > 0 && needed <= scale_at(i);)
        of->n_met[i]++;
    return IFL_OK;
}

const char *attainment_lacks(const struct plot *plot)
{
    return figure_has_file(plot, "requests.csv") ? NULL : "no requests.csv";
}

static int write_curve(struct whole_file *file, const struct plot *plot,
                       const struct series_point *point, const struct attainment *of,
                       struct ifl_error *error)
{
    const struct figure_number number = figure_series_number(point),
                               rate = figure_number(point->rate_rps);
    for (int i = 0; i < N_SCALES; i++) {
        const struct figure_number scale = figure_number(scale_at(i)),
                                   attained = figure_number(of->n_met[i] / of->n_requests);
        const char *const cells[] = {number.text, plot->set->names[point->series], rate.text,
                                     scale.text, attained.text};
        if (figure_write_row(file, cells, sizeof cells / sizeof *cells, error))
            return error->code;
    }
    return IFL_OK;
}

static int write_curves(struct whole_file *file, const struct plot *plot,
                        const struct attainment *of, struct ifl_error *error)
{
    bool any = false;
    int code = whole_write(file, "number,series,rate_rps,slo_scale,attainment_frac\n", error);
    for (size_t i = 0; i < figure_n_curves(plot) && !code; i++) {
        if (of[i].has_slo)
            code = write_curve(file, plot, &plot->set->points[plot->chosen[i]], &of[i], error);
        any |= of[i].has_slo;
    }
    return code || any ? code : FIGURE_EMPTY;
}

int attainment_write(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    struct attainment *of = calloc(figure_n_curves(plot), sizeof *of);
    if (!of)
        return ifl_fail_nomem(error);
    int code = figure_scan(plot, "requests.csv", N_COLUMNS, columns, take_request, of, error);
    if (!code)
        code = write_curves(file, plot, of, error);
    free(of);
    return code;
}
