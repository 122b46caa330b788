/* Rows of the runs' large files that belong to a figure, each file read once. */
#include <math.h>
#include <unistd.h>

#include "inflight/minmax.h"
#include "plot/figures.h"
#include "tables/scan.h"

size_t figure_n_curves(const struct plot *plot)
{
    return ifl_min(plot->set->n_series, MAX_CURVES);
}

size_t figure_n_replications(const struct plot *plot)
{
    size_t most = 1;
    for (size_t run = 0; run < plot->set->n_runs; run++)
        if (plot->set->runs[run].n_replications > most)
            most = plot->set->runs[run].n_replications;
    return most;
}

static void path_of(const struct plot *plot, size_t run, const char *name, char path[4096])
{
    snprintf(path, 4096, "%s/%s", plot->set->runs[run].dir, name);
}

bool figure_has_file(const struct plot *plot, const char *name)
{
    for (size_t run = 0; run < plot->set->n_runs; run++) {
        char path[4096];
        path_of(plot, run, name, path);
        if (access(path, F_OK))
            return false;
    }
    return true;
}

struct sieve {
    const struct plot *plot;
    size_t run;
    double number; /* of the point of the last row */
    size_t series; /* of that point, or figure_n_curves: none */
    size_t replication;
    figure_row_fn *take;
    void *context;
};

static void find_series(struct sieve *sieve, double number)
{
    const struct plot *plot = sieve->plot;
    const double n_replications = (double)plot->set->runs[sieve->run].n_replications;
    for (sieve->series = 0; sieve->series < figure_n_curves(plot); sieve->series++) {
        const struct series_point *point = &plot->set->points[plot->chosen[sieve->series]];
        const double behind = number - (double)series_number(plot->set, point);
        if (point->run != sieve->run || !(behind >= 0 && behind < n_replications))
            continue;
        sieve->replication = (size_t)behind;
        break;
    }
}

static int take_row(void *context, const double *value, struct ifl_error *error)
{
    struct sieve *sieve = context;
    if (value[0] != sieve->number) {
        sieve->number = value[0];
        find_series(sieve, value[0]);
    }
    return sieve->series < figure_n_curves(sieve->plot)
               ? sieve->take(sieve->context, sieve->series, sieve->replication, value, error)
               : IFL_OK;
}

int figure_scan(const struct plot *plot, const char *name, size_t n, const char *const *columns,
                figure_row_fn *take, void *context, struct ifl_error *error)
{
    return figure_scan_some(plot, name, n, n, columns, take, context, error);
}

static int scan_runs(const struct plot *plot, const char *name, size_t n, size_t n_needed,
                     const char *const *columns, bool sparse, figure_row_fn *take, void *context,
                     struct ifl_error *error)
{
    int code = IFL_OK;
    for (size_t run = 0; run < plot->set->n_runs && !code; run++) {
        struct sieve sieve = {
            .plot = plot, .run = run, .number = (double)NAN, .take = take, .context = context};
        char path[4096];
        path_of(plot, run, name, path);
        if (sparse && access(path, F_OK))
            continue;
        code = sparse ? scan_csv_sparse(path, n, columns, take_row, &sieve, error)
                      : scan_csv_some(path, n, n_needed, columns, take_row, &sieve, error);
    }
    return code;
}

int figure_scan_some(const struct plot *plot, const char *name, size_t n, size_t n_needed,
                     const char *const *columns, figure_row_fn *take, void *context,
                     struct ifl_error *error)
{
    ifl_assert(n > 0 && strcmp(columns[0], "point") == 0);
    return scan_runs(plot, name, n, n_needed, columns, false, take, context, error);
}

int figure_scan_sparse(const struct plot *plot, const char *name, size_t n,
                       const char *const *columns, figure_row_fn *take, void *context,
                       struct ifl_error *error)
{
    ifl_assert(n > 0 && strcmp(columns[0], "point") == 0);
    return scan_runs(plot, name, n, n, columns, true, take, context, error);
}
