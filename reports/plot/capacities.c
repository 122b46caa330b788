/* Figures of capacity.csv: what each deployment serves, and what that costs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot/figures.h"

static const char *cell_of(const struct plot *plot, const struct series_point *point,
                           const char *column)
{
    const struct sheet *sheet = &plot->set->runs[point->run].summary;
    const size_t at = sheet_find(sheet, column);
    return at == SHEET_NO_COLUMN ? "" : sheet_cell(sheet, point->row, at);
}

/* ---- what is missing ---- */

static bool has_curve(const struct plot *plot)
{
    return plot->set->has_x && plot->set->n_points > plot->set->n_series;
}

static bool any_has(const struct plot *plot, const char *column)
{
    for (size_t i = 0; i < plot->set->n_points; i++)
        if (*cell_of(plot, &plot->set->points[i], column))
            return true;
    return false;
}

static const char *lack_capacities(const struct plot *plot)
{
    if (!plot->set->of_capacities)
        return "no capacity.csv";
    return any_has(plot, "capacity_rps") ? NULL : "no capacity was found";
}

const char *capacities_lack_series(const struct plot *plot)
{
    const char *lacks = lack_capacities(plot);
    return lacks ? lacks : has_curve(plot) ? "for deployments without a swept objective" : NULL;
}

const char *capacities_lack_curve(const struct plot *plot)
{
    const char *lacks = lack_capacities(plot);
    return lacks ? lacks : has_curve(plot) ? NULL : "no swept objective";
}

const char *capacities_lack_costs(const struct plot *plot)
{
    const char *lacks = lack_capacities(plot);
    return lacks ? lacks : plot->set->n_points > 1 ? NULL : "for two deployments or more";
}

/* ---- capacities ---- */

/* Deployments without a number are left out, and the note says how many, and why. */
static void note_left_out(const struct plot *plot, size_t n_without, const char *why)
{
    if (n_without)
        figure_say(plot, "%zu of %zu %s", n_without, plot->set->n_points, why);
}

static int write_point(struct whole_file *file, const struct plot *plot,
                       const struct series_point *point, const char *const *columns, size_t n,
                       struct ifl_error *error)
{
    const struct figure_number number = figure_series_number(point), x = figure_number(point->x);
    const char *cells[16] = {number.text, plot->set->names[point->series], x.text,
                             figure_saturated(point)};
    ifl_require(n + 4 <= sizeof cells / sizeof *cells);
    for (size_t i = 0; i < n; i++)
        cells[4 + i] = cell_of(plot, point, columns[i]);
    return figure_write_row(file, cells, 4 + n, error);
}

int capacities_write(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    static const char *const columns[] = {"capacity_rps", "capacity_low_rps", "capacity_high_rps"};
    size_t n_without = 0;
    int code =
        figure_write_head(file, plot, "capacity_rps,capacity_low_rps,capacity_high_rps", error);
    for (size_t i = 0; i < plot->set->n_points && !code; i++) {
        const struct series_point *point = &plot->set->points[i];
        const bool has = *cell_of(plot, point, "capacity_rps");
        n_without += !has;
        if (has)
            code = write_point(file, plot, point, columns, 3, error);
    }
    note_left_out(plot, n_without, "without a capacity are left out");
    return code;
}

/* ---- costs ---- */

static bool has_price(const struct plot *plot, const struct series_point *point)
{
    return *cell_of(plot, point, "usd_per_million_output_tokens");
}

/* USD a million output tokens; without prices GPU seconds for as many. */
static double cost_of(const struct plot *plot, const struct series_point *point, bool priced)
{
    const double gpus = strtod(cell_of(plot, point, "gpus"), NULL),
                 tok_per_s = strtod(cell_of(plot, point, "output_throughput_tok_per_s"), NULL);
    if (priced)
        return has_price(plot, point)
                   ? strtod(cell_of(plot, point, "usd_per_million_output_tokens"), NULL)
                   : (double)NAN;
    return tok_per_s > 0 ? gpus / tok_per_s * 1e6 : (double)NAN;
}

/* A deployment with its cost, and its latencies at capacity. */
struct costing {
    const struct series_point *point;
    double cost, latency_s[2];
};

static const char *const latencies[2] = {"p90_ttft_s", "p99_itl_s"};

/* Those with a cost and both latencies. */
static size_t gather_costs(const struct plot *plot, bool priced, struct costing *costings)
{
    size_t n = 0;
    for (size_t i = 0; i < plot->set->n_points; i++) {
        const struct series_point *point = &plot->set->points[i];
        struct costing *of = &costings[n];
        *of = (struct costing){.point = point, .cost = cost_of(plot, point, priced)};
        bool has = !isnan(of->cost);
        for (int l = 0; l < 2; l++) {
            has &= *cell_of(plot, point, latencies[l]) != '\0';
            of->latency_s[l] = strtod(cell_of(plot, point, latencies[l]), NULL);
        }
        n += has;
    }
    return n;
}

/* Whether no other is as good in cost and in the latency and better in one. */
static const char *is_on_front(const struct costing *costings, size_t n, size_t which, int latency)
{
    const struct costing *of = &costings[which];
    for (size_t i = 0; i < n; i++) {
        const double cost = costings[i].cost, latency_s = costings[i].latency_s[latency];
        if (cost <= of->cost && latency_s <= of->latency_s[latency] &&
            (cost < of->cost || latency_s < of->latency_s[latency]))
            return "false";
    }
    return "true";
}

static int write_costs(struct whole_file *file, const struct plot *plot,
                       const struct costing *costings, size_t n, struct ifl_error *error)
{
    for (size_t i = 0; i < n; i++) {
        const struct series_point *point = costings[i].point;
        const struct figure_number number = figure_series_number(point),
                                   x = figure_number(point->x),
                                   cost = figure_number(costings[i].cost);
        const char *const cells[] = {number.text,
                                     plot->set->names[point->series],
                                     x.text,
                                     figure_saturated(point),
                                     cost.text,
                                     cell_of(plot, point, latencies[0]),
                                     cell_of(plot, point, latencies[1]),
                                     is_on_front(costings, n, i, 0),
                                     is_on_front(costings, n, i, 1)};
        if (figure_write_row(file, cells, sizeof cells / sizeof *cells, error))
            return error->code;
    }
    return IFL_OK;
}

int capacities_costs(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    bool priced = false;
    struct costing *costings = calloc(plot->set->n_points + 1, sizeof *costings);
    if (!costings)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < plot->set->n_points; i++)
        priced |= has_price(plot, &plot->set->points[i]);
    const size_t n = gather_costs(plot, priced, costings);
    int code = figure_write_head(file, plot,
                                 priced ? "usd_per_million_output_tokens,p90_ttft_s,p99_itl_s,"
                                          "front_ttft,front_tbt"
                                        : "gpu_s_per_million_output_tokens,p90_ttft_s,p99_itl_s,"
                                          "front_ttft,front_tbt",
                                 error);
    if (!code)
        code = write_costs(file, plot, costings, n, error);
    free(costings);
    note_left_out(plot, plot->set->n_points - n,
                  priced ? "without a price or a capacity are left out"
                         : "without a capacity are left out");
    return code || n > 0 ? code : FIGURE_EMPTY;
}
