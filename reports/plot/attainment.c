/* SLO attainment against the scale of the SLOs, as in DistServe's Fig. 8 (Zhong et al., OSDI 2024):
 * the share of requests that would meet every SLO if all were so many times as long. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "plot/figures.h"
#include "scan.h"

/* Twelve steps an octave from 1/8 to 8. */
enum { N_SCALES = 73, PER_OCTAVE = 12, OCTAVES_DOWN = 3 };

static double scale_at(int i)
{
    return exp2((double)i / PER_OCTAVE - OCTAVES_DOWN);
}

struct attainment {
    size_t block, wanted_block; /* points of the file, counted as they come */
    double last_point;
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

static int take(void *context, const double *value, struct ifl_error *error)
{
    (void)error;
    struct attainment *of = context;
    if (!isnan(of->last_point) && value[POINT] != of->last_point)
        of->block++;
    of->last_point = value[POINT];
    if (of->block != of->wanted_block)
        return IFL_OK;
    const double ttft = scale_needed(value[TTFT], value[TTFT_SLO]),
                 tpot = scale_needed(value[TPOT], value[TPOT_SLO]),
                 needed = isnan(value[E2E]) ? (double)INFINITY : fmax(ttft, tpot);
    of->has_slo |= !isnan(value[TTFT_SLO]) || !isnan(value[TPOT_SLO]);
    of->n_requests++;
    for (int i = N_SCALES; i-- > 0 && needed <= scale_at(i);)
        of->n_met[i]++;
    return IFL_OK;
}

static void path_of(const struct plot *plot, const struct series_point *point, char path[4096])
{
    snprintf(path, 4096, "%s/requests.csv", plot->set->runs[point->run].dir);
}

static int count(struct attainment *of, const struct plot *plot, const struct series_point *point,
                 struct ifl_error *error)
{
    char path[4096];
    *of = (struct attainment){.wanted_block = point->row, .last_point = (double)NAN};
    path_of(plot, point, path);
    return scan_csv(path, N_COLUMNS, columns, take, of, error);
}

const char *attainment_lacks(const struct plot *plot)
{
    for (size_t i = 0; i < plot->set->n_series; i++) {
        char path[4096];
        path_of(plot, &plot->set->points[plot->chosen[i]], path);
        if (access(path, F_OK))
            return "no requests.csv";
    }
    return NULL;
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

int attainment_write(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    const size_t n = plot->set->n_series < MAX_CURVES ? plot->set->n_series : MAX_CURVES;
    bool any = false;
    int code = whole_write(file, "number,series,rate_rps,slo_scale,attainment_frac\n", error);
    for (size_t i = 0; i < n && !code; i++) {
        const struct series_point *point = &plot->set->points[plot->chosen[i]];
        struct attainment of;
        code = count(&of, plot, point, error);
        if (!code && of.has_slo)
            code = write_curve(file, plot, point, &of, error);
        any |= of.has_slo;
    }
    return code || any ? code : FIGURE_EMPTY;
}
