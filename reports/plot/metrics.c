/* Figures that need summary.csv alone. */
#include <math.h>
#include <string.h>

#include "plot/figures.h"

enum { N_LABELS = 4, MAX_METRICS = 6, MAX_CELLS = N_LABELS + 2 * MAX_METRICS + 1 };

/* ---- what is missing ---- */

const char *metrics_lack_x(const struct plot *plot)
{
    return plot->set->has_x ? NULL : "no rate is swept, expected the key of the axis, --x KEY";
}

const char *metrics_lack_curve(const struct plot *plot)
{
    if (plot->set->of_capacities)
        return "no summary.csv";
    return plot->set->has_x && plot->set->n_points > plot->set->n_series ? NULL : "no swept rate";
}

const char *metrics_lack_series(const struct plot *plot)
{
    if (plot->set->of_capacities)
        return "no summary.csv";
    return plot->set->n_series > 1 && metrics_lack_curve(plot) ? NULL : "for series without a rate";
}

static const struct sheet *summary_of(const struct plot *plot, const struct series_point *point)
{
    return &plot->set->runs[point->run].summary;
}

static const char *cell_of(const struct plot *plot, const struct series_point *point,
                           const char *column)
{
    const struct sheet *summary = summary_of(plot, point);
    const size_t at = sheet_find(summary, column);
    return at == SHEET_NO_COLUMN ? "" : sheet_cell(summary, point->row, at);
}

/* The names of more bars would overlap. */
enum { MAX_BARS = 16 };

const char *metrics_lack_pool(const struct plot *plot)
{
    if (plot->set->of_capacities)
        return "no summary.csv";
    if (plot->set->n_series > MAX_BARS)
        return "for 16 series at most";
    for (size_t i = 0; i < plot->set->n_points; i++)
        if (*cell_of(plot, &plot->set->points[i], "kv_token_frac"))
            return NULL;
    return "no step has run";
}

/* Without SLOs attainment equals the share of finished requests; the figure would show nothing. */
const char *metrics_lack_slo(const struct plot *plot)
{
    const char *without_curve = metrics_lack_curve(plot);
    if (without_curve)
        return without_curve;
    for (size_t i = 0; i < plot->set->n_points; i++) {
        const struct series_point *point = &plot->set->points[i];
        const double finished = strtod(cell_of(plot, point, "finished"), NULL),
                     requests = strtod(cell_of(plot, point, "requests"), NULL),
                     attainment = strtod(cell_of(plot, point, "attainment_frac"), NULL);
        if (requests > 0 && fabs(attainment - finished / requests) > 1e-9)
            return NULL;
    }
    return "every finished request meets its SLOs";
}

/* ---- against the axis ---- */

static int require_metrics(const struct plot *plot, const char *const *metrics, size_t n,
                           struct ifl_error *error)
{
    size_t column;
    for (size_t run = 0; run < plot->set->n_runs; run++)
        for (size_t i = 0; i < n; i++)
            if (sheet_require(&plot->set->runs[run].summary, metrics[i], &column, error))
                return error->code;
    return IFL_OK;
}

/* `last`: one more column, or NULL. */
static int write_header(struct whole_file *file, const struct plot *plot,
                        const char *const *metrics, size_t n, const char *last,
                        struct ifl_error *error)
{
    char interval[MAX_METRICS][64];
    const char *cells[MAX_CELLS] = {"number", "series", plot->set->x_name, "saturated"};
    size_t n_cells = N_LABELS;
    ifl_require(n <= MAX_METRICS);
    if (require_metrics(plot, metrics, n, error))
        return error->code;
    for (size_t i = 0; i < n; i++) {
        snprintf(interval[i], sizeof interval[i], "%s_ci95", metrics[i]);
        cells[n_cells++] = metrics[i];
        cells[n_cells++] = interval[i];
    }
    if (last)
        cells[n_cells++] = last;
    return figure_write_row(file, cells, n_cells, error);
}

/* A swept value as the run wrote it; a metric with its half-width if replications give one. `made`
 * holds a rate that is no swept value. */
static size_t fill_cells(const char *cells[MAX_CELLS], const struct plot *plot,
                         const struct series_point *point, const char *const *metrics, size_t n,
                         struct figure_number *made)
{
    const struct series_run *run = &plot->set->runs[point->run];
    size_t n_cells = 1;
    cells[n_cells++] = plot->set->names[point->series];
    *made = figure_number(point->x);
    cells[n_cells++] = run->rate_rps || !plot->set->has_x
                           ? made->text
                           : sheet_cell(&run->summary, point->row, run->x);
    cells[n_cells++] = figure_saturated(point);
    for (size_t i = 0; i < n; i++) {
        char interval[64];
        snprintf(interval, sizeof interval, "%s_ci95", metrics[i]);
        cells[n_cells++] = cell_of(plot, point, metrics[i]);
        cells[n_cells++] = cell_of(plot, point, interval);
    }
    return n_cells;
}

/* One more column: its name, and what it says of point i. */
struct last_column {
    const char *name;
    const char *(*say)(const struct plot *plot, size_t i);
};

/* `last` may be NULL. */
static int write_metrics_and(struct whole_file *file, const struct plot *plot,
                             const char *const *metrics, size_t n, const struct last_column *last,
                             struct ifl_error *error)
{
    if (write_header(file, plot, metrics, n, last ? last->name : NULL, error))
        return error->code;
    for (size_t i = 0; i < plot->set->n_points; i++) {
        const struct series_point *point = &plot->set->points[i];
        const struct figure_number number = figure_series_number(point);
        const char *cells[MAX_CELLS] = {number.text};
        struct figure_number made;
        size_t n_cells = fill_cells(cells, plot, point, metrics, n, &made);
        if (last)
            cells[n_cells++] = last->say(plot, i);
        if (figure_write_row(file, cells, n_cells, error))
            return error->code;
    }
    return IFL_OK;
}

static int write_metrics(struct whole_file *file, const struct plot *plot,
                         const char *const *metrics, size_t n, struct ifl_error *error)
{
    return write_metrics_and(file, plot, metrics, n, NULL, error);
}

int metrics_latency_vs_rate(struct whole_file *file, const struct plot *plot,
                            struct ifl_error *error)
{
    static const char *const metrics[] = {"mean_normalized_latency_s"};
    return write_metrics(file, plot, metrics, 1, error);
}

int metrics_latency_by_series(struct whole_file *file, const struct plot *plot,
                              struct ifl_error *error)
{
    static const char *const metrics[] = {"mean_normalized_latency_s", "p99_normalized_latency_s"};
    return write_metrics(file, plot, metrics, 2, error);
}

int metrics_percentiles(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    static const char *const metrics[] = {"p50_ttft_s", "p90_ttft_s", "p99_ttft_s",
                                          "p50_tpot_s", "p90_tpot_s", "p99_tpot_s"};
    return write_metrics(file, plot, metrics, 6, error);
}

int metrics_any(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    return write_metrics(file, plot, &plot->y, 1, error);
}

int metrics_attainment(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    static const char *const metrics[] = {"attainment_frac"};
    return write_metrics(file, plot, metrics, 1, error);
}

/* ---- throughput and latency ---- */

static const char *const trade_off[] = {"output_throughput_tok_per_s", "mean_normalized_latency_s"};

/* Whether no other point is as good in both metrics and better in one. */
static const char *on_front(const struct plot *plot, size_t i)
{
    const struct series_set *set = plot->set;
    const double throughput = strtod(cell_of(plot, &set->points[i], trade_off[0]), NULL),
                 latency = strtod(cell_of(plot, &set->points[i], trade_off[1]), NULL);
    for (size_t k = 0; k < set->n_points; k++) {
        const double other = strtod(cell_of(plot, &set->points[k], trade_off[0]), NULL),
                     its_latency = strtod(cell_of(plot, &set->points[k], trade_off[1]), NULL);
        if (other >= throughput && its_latency <= latency &&
            (other > throughput || its_latency < latency))
            return "false";
    }
    return "true";
}

int metrics_throughput(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    static const struct last_column front = {"front", on_front};
    return write_metrics_and(file, plot, trade_off, 2, &front, error);
}

/* ---- shares of the KV pool ---- */

int metrics_kv_shares(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    const char *const header[] = {"number",           "series",           plot->set->x_name,
                                  "kv_token_frac",    "kv_reserved_frac", "kv_internal_frac",
                                  "kv_external_frac", "saturated"};
    enum { N = sizeof header / sizeof *header };
    if (figure_write_row(file, header, N, error))
        return error->code;
    for (size_t i = 0; i < plot->set->n_series; i++) {
        const struct series_point *point = &plot->set->points[plot->chosen[i]];
        const struct figure_number number = figure_series_number(point),
                                   x = figure_number(point->x);
        const char *cells[N] = {number.text, plot->set->names[point->series], x.text};
        for (size_t c = 3; c < N - 1; c++)
            cells[c] = cell_of(plot, point, header[c]);
        cells[N - 1] = figure_saturated(point);
        if (figure_write_row(file, cells, N, error))
            return error->code;
    }
    return IFL_OK;
}
