/* SLO attainment against the scale of the SLOs, as in DistServe's Fig. 8 (Zhong et al., OSDI 2024):
 * the share of requests that meet every SLO when all SLOs are multiplied by the scale. */
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

/* Of each replication of each series. */
struct curves {
    struct attainment *of; /* [n_series x n_replications] */
    double *sample;        /* [n_replications] */
    size_t n_replications;
};

static struct attainment *curve_of(const struct curves *curves, size_t series, size_t replication)
{
    return &curves->of[series * curves->n_replications + replication];
}

enum { POINT, TTFT, TPOT, E2E, TTFT_SLO, TPOT_SLO, N_COLUMNS };
static const char *const columns[N_COLUMNS] = {"point", "ttft_s",     "tpot_s",
                                               "e2e_s", "ttft_slo_s", "tpot_slo_s"};

/* The smallest scale at which the latency meets the SLO; 0 if one of the two is undefined. */
static double scale_needed(double latency_s, double slo_s)
{
    return isnan(latency_s) || isnan(slo_s) ? 0 : latency_s / slo_s;
}

static int take_request(void *context, size_t series, size_t replication, const double *value,
                        struct ifl_error *error)
{
    (void)error;
    struct attainment *of = curve_of(context, series, replication);
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

/* The mean over the replications that have requests. */
static struct ifl_interval attained(const struct curves *curves, size_t series, int scale)
{
    size_t n = 0;
    for (size_t r = 0; r < curves->n_replications; r++) {
        const struct attainment *of = curve_of(curves, series, r);
        if (of->n_requests > 0)
            curves->sample[n++] = of->n_met[scale] / of->n_requests;
    }
    return ifl_interval_95(curves->sample, n);
}

static bool has_slo(const struct curves *curves, size_t series)
{
    bool any = false;
    for (size_t r = 0; r < curves->n_replications; r++)
        any |= curve_of(curves, series, r)->has_slo;
    return any;
}

static int write_curve(struct whole_file *file, const struct plot *plot,
                       const struct curves *curves, size_t series, struct ifl_error *error)
{
    const struct series_point *point = &plot->set->points[plot->chosen[series]];
    const struct figure_number number = figure_series_number(point), x = figure_number(point->x);
    for (int i = 0; i < N_SCALES; i++) {
        const struct ifl_interval of = attained(curves, series, i);
        const struct figure_number scale = figure_number(scale_at(i)),
                                   mean = figure_number(of.mean),
                                   half_width = figure_number(of.half_width);
        const char *const cells[] = {
            number.text, plot->set->names[series], x.text, figure_saturated(point), scale.text,
            mean.text,   half_width.text};
        if (figure_write_row(file, cells, sizeof cells / sizeof *cells, error))
            return error->code;
    }
    return IFL_OK;
}

static int write_curves(struct whole_file *file, const struct plot *plot,
                        const struct curves *curves, struct ifl_error *error)
{
    bool any = false;
    int code =
        figure_write_head(file, plot, "slo_scale,attainment_frac,attainment_frac_ci95", error);
    for (size_t i = 0; i < figure_n_curves(plot) && !code; i++) {
        if (!has_slo(curves, i))
            continue;
        code = write_curve(file, plot, curves, i, error);
        any = true;
    }
    return code || any ? code : FIGURE_EMPTY;
}

int attainment_write(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    const size_t n_replications = figure_n_replications(plot);
    struct curves curves = {.of = calloc(figure_n_curves(plot) * n_replications, sizeof *curves.of),
                            .sample = calloc(n_replications, sizeof *curves.sample),
                            .n_replications = n_replications};
    int code = curves.of && curves.sample ? IFL_OK : ifl_fail_nomem(error);
    if (!code)
        code = figure_scan(plot, "requests.csv", N_COLUMNS, columns, take_request, &curves, error);
    if (!code)
        code = write_curves(file, plot, &curves, error);
    free(curves.sample);
    free(curves.of);
    return code;
}
