#include "plot/axis.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tables/columns.h"
#include "tables/scan.h"
#include "tables/swept.h"

static size_t find_key(const struct series_run *run, const char *name)
{
    size_t key = 0;
    while (key < run->n_keys && !swept_is_named(sheet_header(&run->summary, key), name))
        key++;
    return key < run->n_keys ? key : SHEET_NO_COLUMN;
}

/* ---- the rates of a trace ---- */

/* The arrivals of a point of requests.csv. */
struct arrivals {
    double n, first_s, last_s;
};

struct points {
    struct arrivals *of; /* [n] */
    size_t n;
};

static int take_arrival(void *context, const double *value, struct ifl_error *error)
{
    (void)error;
    struct points *points = context;
    if (!(value[0] >= 0 && value[0] < (double)points->n))
        return IFL_OK;
    struct arrivals *of = &points->of[(size_t)value[0]];
    of->first_s = of->n > 0 ? fmin(of->first_s, value[1]) : value[1];
    of->last_s = of->n > 0 ? fmax(of->last_s, value[1]) : value[1];
    of->n++;
    return IFL_OK;
}

/* Requests over the time between the first and the last, as `inflight trace stats` has it; the mean
 * of a point's replications. */
static void average_rates(struct series_run *run, const struct points *points)
{
    for (size_t row = 0; row < run->summary.n_rows; row++) {
        double sum = 0;
        for (size_t r = 0; r < run->n_replications; r++) {
            const struct arrivals *of = &points->of[row * run->n_replications + r];
            sum += of->n / (of->last_s - of->first_s);
        }
        run->rate_rps[row] = sum / (double)run->n_replications;
    }
}

static int read_rates(struct series_run *run, struct ifl_error *error)
{
    static const char *const columns[] = {"point", "arrival_s"};
    char path[4096];
    struct points points = {.n = run->summary.n_rows * run->n_replications};
    snprintf(path, sizeof path, "%s/requests.csv", run->dir);
    points.of = calloc(points.n + 1, sizeof *points.of);
    run->rate_rps = calloc(run->summary.n_rows + 1, sizeof *run->rate_rps);
    int code = points.of && run->rate_rps ? IFL_OK : ifl_fail_nomem(error);
    if (!code)
        code = scan_csv(path, 2, columns, take_arrival, &points, error);
    if (!code)
        average_rates(run, &points);
    for (size_t row = 0; row < run->summary.n_rows && !code; row++)
        if (!isfinite(run->rate_rps[row]))
            code = ifl_fail_at(error, path, 0, 0,
                               "the requests of row %zu of the summary have no rate, expected two "
                               "arrivals",
                               row);
    free(points.of);
    return code;
}

static bool has_requests(const struct series_run *run)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/requests.csv", run->dir);
    return access(path, F_OK) == 0;
}

/* ---- the key ---- */

/* The first key that is an objective, with numbers: a limit that the capacity depends on. */
static bool find_objective(struct series_set *set)
{
    struct ifl_error none;
    const struct series_run *first = &set->runs[0];
    bool all = false;
    for (size_t k = 0; k < first->n_keys && !all; k++) {
        const char *key = sheet_header(&first->summary, k);
        all = strncmp(key, "slo.", 4) == 0 || strncmp(key, "capacity.", 9) == 0;
        for (size_t i = 0; i < set->n_runs && all; i++) {
            struct series_run *run = &set->runs[i];
            double value;
            run->x = find_key(run, key);
            all = run->x != SHEET_NO_COLUMN;
            for (size_t row = 0; row < run->summary.n_rows && all; row++)
                all = !sheet_number(&run->summary, row, run->x, &value, &none) && !isnan(value);
        }
    }
    return all;
}

/* The rate that is swept, or else the factor on that of a trace. */
static bool find_rates(struct series_set *set)
{
    bool all = set->n_runs > 0;
    for (size_t i = 0; i < set->n_runs; i++) {
        struct series_run *run = &set->runs[i];
        run->x = find_key(run, "rate_rps");
        if (run->x == SHEET_NO_COLUMN && has_requests(run))
            run->x = find_key(run, "speedup");
        all &= run->x != SHEET_NO_COLUMN;
    }
    return all;
}

static int fail_key(const struct series_run *run, const char *key, struct ifl_error *error)
{
    char swept[400] = "";
    for (size_t k = 0; k < run->n_keys; k++) {
        const size_t n = strlen(swept);
        snprintf(swept + n, sizeof swept - n, "%s%s", k ? ", " : "",
                 column_short_key(sheet_header(&run->summary, k)));
    }
    return ifl_fail_at(error, run->summary.path, 1, 0, "%s is not swept, expected one of: %s", key,
                       *swept ? swept : "none, there is no sweep");
}

static int find_asked(struct series_set *set, const char *key, struct ifl_error *error)
{
    for (size_t i = 0; i < set->n_runs; i++) {
        struct series_run *run = &set->runs[i];
        double value;
        run->x = find_key(run, key);
        if (run->x == SHEET_NO_COLUMN)
            return fail_key(run, key, error);
        for (size_t row = 0; row < run->summary.n_rows; row++)
            if (sheet_number(&run->summary, row, run->x, &value, error))
                return error->code;
            else if (isnan(value))
                return ifl_fail_at(error, run->summary.path, (int)row + 2, 0,
                                   "%s is empty, expected a number for the axis", key);
    }
    return IFL_OK;
}

static bool is_named(const struct series_run *run, const char *name)
{
    return strcmp(column_short_key(sheet_header(&run->summary, run->x)), name) == 0;
}

int series_find_axis(struct series_set *set, struct ifl_error *error)
{
    const char *asked = set->options->x;
    if (asked && find_asked(set, asked, error))
        return error->code;
    set->has_x =
        asked || (set->of_capacities ? set->n_runs && find_objective(set) : find_rates(set));
    set->is_rate = set->has_x;
    for (size_t i = 0; i < set->n_runs && set->has_x; i++) {
        struct series_run *run = &set->runs[i];
        const bool is_factor = is_named(run, "speedup") && has_requests(run);
        if (is_factor && read_rates(run, error))
            return error->code;
        set->is_rate &= is_factor || is_named(run, "rate_rps");
    }
    const bool is_other = set->has_x && !set->is_rate;
    snprintf(set->x_name, sizeof set->x_name, "%s",
             is_other ? column_short_key(sheet_header(&set->runs[0].summary, set->runs[0].x))
                      : "rate_rps");
    return IFL_OK;
}
