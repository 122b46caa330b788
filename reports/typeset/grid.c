#include "typeset/grid.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "inflight/nearest.h"
#include "tables/columns.h"
#include "tables/run_dir.h"
#include "tables/run_name.h"
#include "tables/swept.h"

static const char *const usual[] = {"output_throughput_tok_per_s", "mean_ttft_s", "p99_ttft_s",
                                    "mean_tpot_s", "mean_normalized_latency_s"};
enum { N_USUAL = sizeof usual / sizeof *usual };

/* ---- the runs and their keys ---- */

static int read_sheet(struct grid_run *run, struct ifl_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/replications.csv", run->dir);
    const bool replicated = access(path, F_OK) == 0;
    if (!replicated)
        snprintf(path, sizeof path, "%s/summary.csv", run->dir);
    if (run_dir_check(run->dir, error) || sheet_read_points(&run->sheet, path, error))
        return error->code;
    return sheet_require(&run->sheet, replicated ? "runs" : "requests", &run->n_keys, error);
}

static int add_key(struct grid *grid, const char *key, struct ifl_error *error)
{
    for (size_t k = 0; k < grid->n_keys; k++)
        if (strcmp(grid->keys[k], key) == 0)
            return IFL_OK;
    if (grid->n_keys == GRID_MAX_KEYS)
        return ifl_fail(error, IFL_E_INPUT, "more than %d swept keys", GRID_MAX_KEYS - 1);
    grid->keys[grid->n_keys++] = key;
    return IFL_OK;
}

static const char *name_of(const struct grid *grid, const struct grid_run *run)
{
    for (size_t i = 0; i < grid->of->n_runs; i++)
        if (&grid->runs[i] != run &&
            strcmp(run_name(grid->of->run_dirs[i]), run_name(run->dir)) == 0)
            return run->dir;
    return run_name(run->dir);
}

static int read_runs(struct grid *grid, struct ifl_error *error)
{
    grid->runs = calloc(grid->of->n_runs, sizeof *grid->runs);
    if (!grid->runs)
        return ifl_fail_nomem(error);
    if (grid->of->n_runs > 1)
        grid->keys[grid->n_keys++] = "run";
    for (size_t i = 0; i < grid->of->n_runs; i++) {
        struct grid_run *run = &grid->runs[i];
        run->dir = grid->of->run_dirs[i];
        run->name = name_of(grid, run);
        if (read_sheet(run, error))
            return error->code;
        for (size_t k = 0; k < run->n_keys; k++)
            if (add_key(grid, sheet_header(&run->sheet, k), error))
                return error->code;
    }
    return IFL_OK;
}

/* ---- names given by the caller ---- */

static int key_called(const struct grid *grid, const char *name)
{
    for (size_t k = 0; k < grid->n_keys; k++)
        if (swept_is_named(grid->keys[k], name))
            return (int)k;
    return GRID_NO_KEY;
}

static bool holds_number(const char *header)
{
    const size_t n = strlen(header);
    for (size_t i = 0; i < n_summary_columns; i++)
        if (strcmp(summary_columns[i].name, header) == 0)
            return summary_columns[i].type == COLUMN_COUNT ||
                   summary_columns[i].type == COLUMN_REAL;
    return n < 5 || strcmp(header + n - 5, "_ci95") != 0;
}

static bool is_metric(const struct grid_run *run, const char *name)
{
    const size_t column = sheet_find(&run->sheet, name);
    return column != SHEET_NO_COLUMN && column >= run->n_keys && holds_number(name);
}

/* Keys, and metrics where they are allowed, of which one is near the wrong name. */
static int fail_name(const struct grid *grid, const char *name, bool metrics,
                     struct ifl_error *error)
{
    const char *names[GRID_MAX_KEYS * 2 + 256];
    size_t n = 0;
    for (size_t k = 0; k < grid->n_keys; k++) {
        names[n++] = column_short_key(grid->keys[k]);
        names[n++] = grid->keys[k];
    }
    const struct grid_run *run = &grid->runs[0];
    for (size_t c = run->n_keys; metrics && c < run->sheet.n_columns && n < 256; c++)
        if (is_metric(run, sheet_header(&run->sheet, c)))
            names[n++] = sheet_header(&run->sheet, c);
    const char *near = ifl_nearest(name, names, n);
    if (near)
        return ifl_fail(error, IFL_E_INPUT, "%s is no %s of these runs, did you mean %s?", name,
                        metrics ? "metric or swept key" : "swept key", near);
    char swept[400] = "";
    for (size_t k = 0; k < grid->n_keys; k++) {
        const size_t used = strlen(swept);
        snprintf(swept + used, sizeof swept - used, "%s%s", k ? ", " : "",
                 column_short_key(grid->keys[k]));
    }
    return ifl_fail(error, IFL_E_INPUT, "%s is no swept key%s, expected one of: %s", name,
                    metrics ? " and no column of summary.csv" : "",
                    *swept ? swept : "none, there is no sweep");
}

static int add_metric(struct grid *grid, const char *column, struct ifl_error *error)
{
    if (grid->n_metrics == GRID_MAX_METRICS)
        return ifl_fail(error, IFL_E_INPUT, "more than %d metrics", GRID_MAX_METRICS);
    grid->columns[grid->n_metrics] = column;
    grid->metrics[grid->n_metrics++] = metric_of(column);
    return IFL_OK;
}

static int read_columns(struct grid *grid, struct ifl_error *error)
{
    grid->pivot = GRID_NO_KEY;
    for (size_t i = 0; i < grid->of->n_columns; i++) {
        const char *name = grid->of->columns[i];
        const int key = key_called(grid, name);
        if (key == GRID_NO_KEY && !is_metric(&grid->runs[0], name))
            return fail_name(grid, name, true, error);
        if (key == GRID_NO_KEY ? add_metric(grid, name, error) : IFL_OK)
            return error->code;
        if (key != GRID_NO_KEY && grid->pivot != GRID_NO_KEY)
            return ifl_fail(error, IFL_E_INPUT, "columns of two keys, %s and %s, expected one",
                            column_short_key(grid->keys[grid->pivot]), name);
        if (key != GRID_NO_KEY)
            grid->pivot = key;
    }
    const bool none_given = grid->n_metrics == 0;
    for (size_t i = 0; none_given && i < N_USUAL; i++)
        if (add_metric(grid, usual[i], error))
            return error->code;
    return IFL_OK;
}

static int read_heads(struct grid *grid, struct ifl_error *error)
{
    for (size_t i = 0; i < grid->of->n_rows; i++) {
        const int key = key_called(grid, grid->of->rows[i]);
        if (key == GRID_NO_KEY)
            return fail_name(grid, grid->of->rows[i], false, error);
        if (key == grid->pivot)
            return ifl_fail(error, IFL_E_INPUT, "%s is given for rows and for columns",
                            grid->of->rows[i]);
        grid->heads[grid->n_heads++] = key;
    }
    return IFL_OK;
}

/* ---- the points ---- */

/* A row of a run. */
struct entry {
    size_t run, row;
};

static const char *value_of(const struct grid *grid, struct entry entry, int key)
{
    const struct grid_run *run = &grid->runs[entry.run];
    if (grid->of->n_runs > 1 && key == 0)
        return run->name;
    const size_t column = sheet_find(&run->sheet, grid->keys[key]);
    return column < run->n_keys ? sheet_cell(&run->sheet, entry.row, column) : "";
}

struct entries {
    struct entry *of; /* owned */
    size_t n;
};

static int list_entries(const struct grid *grid, struct entries *entries, struct ifl_error *error)
{
    size_t n = 0;
    for (size_t i = 0; i < grid->of->n_runs; i++)
        n += grid->runs[i].sheet.n_rows;
    entries->of = calloc(n + 1, sizeof *entries->of);
    if (!entries->of)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < grid->of->n_runs; i++)
        for (size_t row = 0; row < grid->runs[i].sheet.n_rows; row++)
            entries->of[entries->n++] = (struct entry){i, row};
    return IFL_OK;
}

/* The nearest value that there is; of numbers, which have no near ones, all. */
static int fail_value(const struct grid *grid, const struct entries *entries, int key,
                      const char *value, struct ifl_error *error)
{
    const char *values[GRID_MAX_GROUPS], *name = column_short_key(grid->keys[key]);
    char *end, all[300] = "";
    size_t n = 0;
    for (size_t i = 0; i < entries->n && n < GRID_MAX_GROUPS; i++) {
        const char *here = value_of(grid, entries->of[i], key);
        bool is_new = true;
        for (size_t k = 0; k < n; k++)
            is_new &= strcmp(values[k], here) != 0;
        if (!is_new)
            continue;
        values[n++] = here;
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", here);
    }
    (void)strtod(value, &end);
    const char *near = *end ? ifl_nearest(value, values, n) : NULL;
    return near ? ifl_fail(error, IFL_E_INPUT, "no point has %s %s, did you mean %s?", name, value,
                           near)
                : ifl_fail(error, IFL_E_INPUT, "no point has %s %s, expected one of: %s", name,
                           value, all);
}

/* Leaves the points with that value. */
static int filter(const struct grid *grid, struct entries *entries, const char *where,
                  struct ifl_error *error)
{
    char name[256];
    const char *equals = strchr(where, '=');
    const size_t n_chars = equals ? (size_t)(equals - where) : 0;
    if (n_chars == 0 || n_chars >= sizeof name)
        return ifl_fail(error, IFL_E_INPUT, "--where %s: expected KEY=VALUE", where);
    snprintf(name, sizeof name, "%.*s", (int)n_chars, where);
    const int key = key_called(grid, name);
    if (key == GRID_NO_KEY)
        return fail_name(grid, name, false, error);
    size_t n_left = 0;
    for (size_t i = 0; i < entries->n; i++)
        if (sheet_same_value(value_of(grid, entries->of[i], key), equals + 1))
            n_left++;
    if (n_left == 0)
        return fail_value(grid, entries, key, equals + 1, error);
    n_left = 0;
    for (size_t i = 0; i < entries->n; i++)
        if (sheet_same_value(value_of(grid, entries->of[i], key), equals + 1))
            entries->of[n_left++] = entries->of[i];
    entries->n = n_left;
    return IFL_OK;
}

static bool has_one_value(const struct grid *grid, const struct entries *entries, int key)
{
    for (size_t i = 1; i < entries->n; i++)
        if (strcmp(value_of(grid, entries->of[0], key), value_of(grid, entries->of[i], key)) != 0)
            return false;
    return true;
}

static bool is_head(const struct grid *grid, int key)
{
    for (size_t h = 0; h < grid->n_heads; h++)
        if (grid->heads[h] == key)
            return true;
    return false;
}

/* Without rows given, each key with several values that is no column; else all such keys must be
 * there. */
static int settle_heads(struct grid *grid, const struct entries *entries, struct ifl_error *error)
{
    for (size_t k = 0; k < grid->n_keys; k++) {
        if ((int)k == grid->pivot || is_head(grid, (int)k) || has_one_value(grid, entries, (int)k))
            continue;
        const char *name = column_short_key(grid->keys[k]);
        if (grid->of->n_rows > 0)
            return ifl_fail(error, IFL_E_INPUT,
                            "points differ in %s: expected it in --rows or --columns, or a value, "
                            "--where %s=VALUE",
                            name, name);
        grid->heads[grid->n_heads++] = (int)k;
    }
    return IFL_OK;
}

static bool same_line(const struct grid *grid, size_t line, struct entry entry)
{
    for (size_t h = 0; h < grid->n_heads; h++)
        if (strcmp(grid->names[line * grid->n_heads + h], value_of(grid, entry, grid->heads[h])) !=
            0)
            return false;
    return true;
}

static size_t line_of(struct grid *grid, struct entry entry)
{
    size_t line = 0;
    while (line < grid->n_lines && !same_line(grid, line, entry))
        line++;
    if (line == grid->n_lines) {
        grid->n_lines++;
        for (size_t h = 0; h < grid->n_heads; h++)
            grid->names[line * grid->n_heads + h] = value_of(grid, entry, grid->heads[h]);
    }
    return line;
}

static size_t group_of(const struct grid *grid, struct entry entry)
{
    size_t group = 0;
    while (grid->pivot != GRID_NO_KEY && group < grid->n_groups &&
           strcmp(grid->groups[group], value_of(grid, entry, grid->pivot)) != 0)
        group++;
    return group;
}

static int list_groups(struct grid *grid, const struct entries *entries, struct ifl_error *error)
{
    grid->n_groups = grid->pivot == GRID_NO_KEY;
    for (size_t i = 0; grid->pivot != GRID_NO_KEY && i < entries->n; i++) {
        if (group_of(grid, entries->of[i]) < grid->n_groups)
            continue;
        if (grid->n_groups == GRID_MAX_GROUPS)
            return ifl_fail(error, IFL_E_INPUT, "%s has more than %d values, too many columns",
                            column_short_key(grid->keys[grid->pivot]), GRID_MAX_GROUPS);
        grid->groups[grid->n_groups++] = value_of(grid, entries->of[i], grid->pivot);
    }
    return IFL_OK;
}

/* ---- the cells ---- */

static int read_cell(struct grid *grid, struct entry entry, size_t metric, struct grid_cell *cell,
                     struct ifl_error *error)
{
    const struct sheet *sheet = &grid->runs[entry.run].sheet;
    char interval[128];
    snprintf(interval, sizeof interval, "%s_ci95", grid->columns[metric]);
    const size_t column = sheet_find(sheet, grid->columns[metric]),
                 half = sheet_find(sheet, interval);
    if (column == SHEET_NO_COLUMN)
        return IFL_OK; /* of another version */
    if (sheet_number(sheet, entry.row, column, &cell->value, error) ||
        (half != SHEET_NO_COLUMN && sheet_number(sheet, entry.row, half, &cell->half_width, error)))
        return error->code;
    grid->has_intervals |= !isnan(cell->half_width);
    if (grid->of->format != IFL_TABLE_CSV) {
        cell->value *= grid->metrics[metric].scale;
        cell->half_width *= grid->metrics[metric].scale;
    }
    return IFL_OK;
}

static int fill(struct grid *grid, const struct entries *entries, struct ifl_error *error)
{
    grid->n_lines = 0;
    grid->names = calloc(entries->n * grid->n_heads + 1, sizeof *grid->names);
    grid->cells = malloc((entries->n * grid->n_groups * grid->n_metrics + 1) * sizeof *grid->cells);
    if (!grid->names || !grid->cells)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < entries->n * grid->n_groups * grid->n_metrics; i++)
        grid->cells[i] = (struct grid_cell){(double)NAN, (double)NAN, false};
    for (size_t i = 0; i < entries->n; i++) {
        const size_t line = line_of(grid, entries->of[i]), group = group_of(grid, entries->of[i]);
        for (size_t m = 0; m < grid->n_metrics; m++)
            if (read_cell(grid, entries->of[i], m, grid_cell(grid, line, group, m), error))
                return error->code;
    }
    return IFL_OK;
}

/* The rate among the row's keys, or -1. */
static int rate_head(const struct grid *grid)
{
    for (size_t h = 0; h < grid->n_heads; h++)
        if (strcmp(column_short_key(grid->keys[grid->heads[h]]), "rate_rps") == 0)
            return (int)h;
    return -1;
}

/* More load is worse whatever the system: values are compared at the same rate. */
static bool are_rivals(const struct grid *grid, int rate, size_t line, size_t other)
{
    return rate < 0 || sheet_same_value(grid->names[line * grid->n_heads + (size_t)rate],
                                        grid->names[other * grid->n_heads + (size_t)rate]);
}

/* Marks a cell that no rival beats and that beats one. */
static void mark_if_best(struct grid *grid, size_t line, size_t group, size_t metric)
{
    const int better = grid->metrics[metric].better, rate = rate_head(grid);
    struct grid_cell *cell = grid_cell(grid, line, group, metric);
    bool beaten = false, beats = false;
    for (size_t other = 0; better && other < grid->n_lines; other++) {
        const double value = better * grid_cell(grid, other, group, metric)->value;
        if (!are_rivals(grid, rate, line, other))
            continue;
        beaten |= value > better * cell->value;
        beats |= value < better * cell->value;
    }
    cell->is_best = beats && !beaten;
}

static int arrange(struct grid *grid, struct entries *entries, struct ifl_error *error)
{
    if (read_columns(grid, error) || read_heads(grid, error) || list_entries(grid, entries, error))
        return error->code;
    for (size_t i = 0; i < grid->of->n_where; i++)
        if (filter(grid, entries, grid->of->where[i], error))
            return error->code;
    if (settle_heads(grid, entries, error) || list_groups(grid, entries, error) ||
        fill(grid, entries, error))
        return error->code;
    for (size_t line = 0; line < grid->n_lines; line++)
        for (size_t i = 0; i < grid->n_groups * grid->n_metrics; i++)
            mark_if_best(grid, line, i / grid->n_metrics, i % grid->n_metrics);
    return IFL_OK;
}

int grid_read(struct grid *grid, const struct ifl_table *of, struct ifl_error *error)
{
    struct entries entries = {0};
    *grid = (struct grid){.of = of};
    int code = read_runs(grid, error);
    if (!code)
        code = arrange(grid, &entries, error);
    free(entries.of);
    if (code)
        grid_free(grid);
    return code;
}

void grid_free(struct grid *grid)
{
    for (size_t i = 0; grid->runs && i < grid->of->n_runs; i++)
        sheet_free(&grid->runs[i].sheet);
    free(grid->runs);
    free(grid->names);
    free(grid->cells);
    *grid = (struct grid){0};
}
