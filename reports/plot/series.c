#include "plot/series.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "inflight/nearest.h"
#include "plot/axis.h"
#include "tables/columns.h"
#include "tables/run_dir.h"
#include "tables/run_name.h"

/* ---- reading the runs ---- */

static char *joined_path(const char *dir, const char *name)
{
    const size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);
    if (path)
        snprintf(path, n, "%s/%s", dir, name);
    return path;
}

enum presence { SHEET_NEEDED, SHEET_OPTIONAL };

static int read_sheet(struct sheet *sheet, const char *dir, const char *name,
                      enum presence presence, struct ifl_error *error)
{
    char *path = joined_path(dir, name);
    if (!path)
        return ifl_fail_nomem(error);
    int code = IFL_OK;
    if (presence == SHEET_NEEDED || access(path, F_OK) == 0)
        code = sheet_read(sheet, path, error);
    free(path);
    return code;
}

/* With replications the rows of replications.csv, means with intervals, are the points. Its column
 * behind the keys is the number of runs of each point; the other files have a row for each run. */
static int read_replications(struct series_run *run, const char *dir, struct ifl_error *error)
{
    struct sheet means = {0};
    if (read_sheet(&means, dir, "replications.csv", SHEET_OPTIONAL, error))
        return error->code;
    if (means.n_rows == 0) {
        sheet_free(&means);
        return sheet_require(&run->summary, "requests", &run->n_keys, error);
    }
    run->n_replications = run->summary.n_rows / means.n_rows;
    sheet_free(&run->summary);
    run->summary = means;
    return sheet_require(&run->summary, "runs", &run->n_keys, error);
}

static bool holds_text(const char *header)
{
    static const char *const of_capacities[] = {"status",      "binding",    "cheapest",
                                                "pareto_ttft", "pareto_tbt", "error"};
    for (size_t i = 0; i < sizeof of_capacities / sizeof *of_capacities; i++)
        if (strcmp(of_capacities[i], header) == 0)
            return true;
    for (size_t i = 0; i < n_summary_columns; i++)
        if (strcmp(summary_columns[i].name, header) == 0)
            return summary_columns[i].type == COLUMN_TEXT || summary_columns[i].type == COLUMN_FLAG;
    return false;
}

/* Checks the cells from that column on: gnuplot gives no clear error for a cell that is no number.
 */
static int check_numbers(const struct sheet *sheet, size_t from, struct ifl_error *error)
{
    double value;
    for (size_t column = from; column < sheet->n_columns; column++) {
        const size_t n_rows = holds_text(sheet_header(sheet, column)) ? 0 : sheet->n_rows;
        for (size_t row = 0; row < n_rows; row++)
            if (sheet_number(sheet, row, column, &value, error))
                return error->code;
    }
    return IFL_OK;
}

static int read_capacities(struct series_run *run, const char *dir, struct ifl_error *error)
{
    *run = (struct series_run){.dir = dir, .x = SHEET_NO_COLUMN, .n_replications = 1};
    if (read_sheet(&run->summary, dir, "capacity.csv", SHEET_NEEDED, error) ||
        sheet_require(&run->summary, "status", &run->n_keys, error))
        return error->code;
    return check_numbers(&run->summary, run->n_keys, error);
}

static int read_run(struct series_run *run, const char *dir, struct ifl_error *error)
{
    *run = (struct series_run){.dir = dir, .x = SHEET_NO_COLUMN, .n_replications = 1};
    if (run_dir_check(dir, error) ||
        read_sheet(&run->summary, dir, "summary.csv", SHEET_NEEDED, error) ||
        read_sheet(&run->quantiles, dir, "quantiles.csv", SHEET_OPTIONAL, error) ||
        read_sheet(&run->pools, dir, "pools.csv", SHEET_OPTIONAL, error) ||
        read_replications(run, dir, error) || check_numbers(&run->summary, run->n_keys, error) ||
        check_numbers(&run->quantiles, 0, error))
        return error->code;
    return IFL_OK;
}

/* ---- labels ---- */

static bool is_label_of(const char *label, const char *name)
{
    const size_t n_chars = strlen(name);
    return strncmp(label, name, n_chars) == 0 && label[n_chars] == '=';
}

const char *series_label(const struct series_set *set, const char *name)
{
    for (size_t i = 0; i < set->options->n_labels; i++)
        if (is_label_of(set->options->labels[i], name)) {
            set->label_used[i] = true;
            return set->options->labels[i] + strlen(name) + 1;
        }
    return name;
}

/* ---- naming the series ---- */

/* The name of a preset, a model, a GPU or a variant needs no key in a label; any other value does.
 */
static bool speaks_for_itself(const char *key)
{
    return strcmp(column_short_key(key), "preset") == 0 || strcmp(key, "model") == 0 ||
           strcmp(key, "hardware") == 0 || strcmp(key, "variant") == 0;
}

static void print_key(FILE *to, const struct series_set *set, const struct series_run *run,
                      size_t row, size_t key)
{
    const char *name = sheet_header(&run->summary, key),
               *value = sheet_cell(&run->summary, row, key), *label = series_label(set, value);
    if (ftell(to) > 0)
        fputs(" / ", to);
    if (!speaks_for_itself(name) && label == value)
        fprintf(to, "%s ", series_label(set, column_short_key(name)));
    fputs(label, to);
}

/* Runs of the same name in different folders are told apart by the whole path. */
static const char *unique_name(const struct series_set *set, const struct series_run *run)
{
    const char *name = run_name(run->dir);
    for (size_t i = 0; i < set->n_runs; i++)
        if (&set->runs[i] != run && strcmp(run_name(set->runs[i].dir), name) == 0)
            return run->dir;
    return name;
}

static void print_name(FILE *to, const struct series_set *set, const struct series_run *run,
                       size_t row)
{
    if (set->n_runs > 1)
        fputs(series_label(set, unique_name(set, run)), to);
    for (size_t key = 0; key < run->n_keys; key++)
        if (!set->has_x || key != run->x)
            print_key(to, set, run, row, key);
    if (ftell(to) == 0)
        fputs(series_label(set, run_name(run->dir)), to);
}

/* gnuplot reads a backslash in a cell as the beginning of an escape, and ends a name at a comma or
 * a quote, quoted or not: these go to it as octal escapes. A name has one line. */
static void print_escaped(FILE *to, const char *name)
{
    for (const char *c = name; *c; c++)
        if (strchr(",\"\\", *c))
            fprintf(to, "\\%03o", (unsigned)*c);
        else
            putc((unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c, to);
}

static char *name_of(const struct series_set *set, const struct series_run *run, size_t row)
{
    char *name = NULL, *escaped = NULL;
    size_t n;
    FILE *to = open_memstream(&name, &n);
    if (to)
        print_name(to, set, run, row);
    const bool named = to && fclose(to) == 0;
    to = named ? open_memstream(&escaped, &n) : NULL;
    if (to)
        print_escaped(to, series_label(set, name));
    free(name);
    if (to && fclose(to) == 0)
        return escaped;
    free(escaped);
    return NULL;
}

/* The index of the name in the set; a new name is appended, a known one is freed. */
static size_t number_of(struct series_set *set, char *name)
{
    for (size_t i = 0; i < set->n_series; i++)
        if (strcmp(set->names[i], name) == 0) {
            free(name);
            return i;
        }
    set->names[set->n_series] = name;
    return set->n_series++;
}

/* ---- the points ---- */

/* A point of replications is saturated if most of them are. */
static int read_saturated(const struct sheet *summary, size_t row, bool *saturated,
                          struct ifl_error *error)
{
    size_t column, runs;
    double n_saturated, n_runs;
    if (sheet_find(summary, "saturated_runs") == SHEET_NO_COLUMN) {
        if (sheet_require(summary, "saturated", &column, error))
            return error->code;
        *saturated = strcmp(sheet_cell(summary, row, column), "true") == 0;
        return IFL_OK;
    }
    if (sheet_require(summary, "saturated_runs", &column, error) ||
        sheet_require(summary, "runs", &runs, error) ||
        sheet_number(summary, row, column, &n_saturated, error) ||
        sheet_number(summary, row, runs, &n_runs, error))
        return error->code;
    *saturated = 2 * n_saturated > n_runs;
    return IFL_OK;
}

static int add_point(struct series_set *set, size_t run, size_t row, struct ifl_error *error)
{
    const struct series_run *of = &set->runs[run];
    struct series_point *point = &set->points[set->n_points];
    *point = (struct series_point){.run = run, .row = row, .x = (double)NAN};
    if (set->of_capacities)
        point->saturated = strcmp(sheet_cell(&of->summary, row, of->n_keys), "unbounded") == 0;
    else if (read_saturated(&of->summary, row, &point->saturated, error))
        return error->code;
    if (of->rate_rps)
        point->x = of->rate_rps[row];
    else if (set->has_x && sheet_number(&of->summary, row, of->x, &point->x, error))
        return error->code;
    char *name = name_of(set, of, row);
    if (!name)
        return ifl_fail_nomem(error);
    point->series = number_of(set, name);
    set->n_points++;
    return IFL_OK;
}

static int by_series_then_x(const void *left, const void *right)
{
    const struct series_point *a = left, *b = right;
    if (a->series != b->series)
        return a->series < b->series ? -1 : 1;
    if (a->x < b->x || a->x > b->x)
        return a->x < b->x ? -1 : 1;
    if (a->run != b->run)
        return a->run < b->run ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int add_points(struct series_set *set, struct ifl_error *error)
{
    size_t n = 0;
    for (size_t run = 0; run < set->n_runs; run++)
        n += set->runs[run].summary.n_rows;
    set->points = calloc(n ? n : 1, sizeof *set->points);
    set->names = calloc(n ? n : 1, sizeof *set->names);
    if (!set->points || !set->names)
        return ifl_fail_nomem(error);
    for (size_t run = 0; run < set->n_runs; run++)
        for (size_t row = 0; row < set->runs[run].summary.n_rows; row++)
            if (add_point(set, run, row, error))
                return error->code;
    qsort(set->points, set->n_points, sizeof *set->points, by_series_then_x);
    return IFL_OK;
}

/* A label that has named no series may name an axis. */
static bool is_of_axis(const struct series_set *set, const char *label)
{
    bool used = is_label_of(label, set->x_name);
    for (size_t r = 0; r < set->n_runs && !used; r++) {
        const struct sheet *summary = &set->runs[r].summary;
        for (size_t c = 0; c < summary->n_columns && !used; c++)
            used = is_label_of(label, column_short_key(sheet_header(summary, c)));
    }
    return used;
}

static int fail_label(const struct series_set *set, const char *label, struct ifl_error *error)
{
    const char *names[64 + 1];
    char name[256];
    size_t n = 0;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(label, "="), label);
    for (; n < set->n_series && n < 64; n++)
        names[n] = set->names[n];
    const char *near = ifl_nearest(name, names, n);
    if (near)
        return ifl_fail(error, IFL_E_INPUT, "--label %s: there is no %s, did you mean %s?", label,
                        name, near);
    return ifl_fail(error, IFL_E_INPUT,
                    "--label %s: there is no %s, expected a series, a run, a swept key or one of "
                    "its values, or a column of summary.csv",
                    label, name);
}

static int check_labels(const struct series_set *set, struct ifl_error *error)
{
    for (size_t i = 0; i < set->options->n_labels; i++) {
        const char *label = set->options->labels[i], *equals = strchr(label, '=');
        if (!equals || equals == label || !equals[1])
            return ifl_fail(error, IFL_E_INPUT, "--label %s: expected NAME=TEXT", label);
        if (!set->label_used[i] && !is_of_axis(set, label))
            return fail_label(set, label, error);
    }
    return IFL_OK;
}

/* A folder of both kinds counts as one of a run. */
static bool is_of_capacities(const char *dir)
{
    char *summary = joined_path(dir, "summary.csv"), *capacity = joined_path(dir, "capacity.csv");
    const bool is = summary && capacity && access(summary, F_OK) && access(capacity, F_OK) == 0;
    free(summary);
    free(capacity);
    return is;
}

static int read_all(struct series_set *set, const char *const *run_dirs, struct ifl_error *error)
{
    set->of_capacities = set->n_runs && is_of_capacities(run_dirs[0]);
    for (size_t run = 0; run < set->n_runs; run++)
        if ((set->of_capacities ? read_capacities : read_run)(&set->runs[run], run_dirs[run],
                                                              error))
            return error->code;
    if (series_find_axis(set, error) || add_points(set, error))
        return error->code;
    return check_labels(set, error);
}

int series_read(struct series_set *set, size_t n_runs, const char *const *run_dirs,
                const struct series_options *options, struct ifl_error *error)
{
    static const struct series_options usual = {0};
    *set = (struct series_set){.runs = calloc(n_runs ? n_runs : 1, sizeof *set->runs),
                               .n_runs = n_runs,
                               .options = options ? options : &usual};
    set->label_used = calloc(set->options->n_labels + 1, sizeof *set->label_used);
    const int code =
        set->runs && set->label_used ? read_all(set, run_dirs, error) : ifl_fail_nomem(error);
    if (code)
        series_free(set);
    return code;
}

void series_free(struct series_set *set)
{
    for (size_t run = 0; set->runs && run < set->n_runs; run++) {
        sheet_free(&set->runs[run].summary);
        sheet_free(&set->runs[run].quantiles);
        sheet_free(&set->runs[run].pools);
        free(set->runs[run].rate_rps);
    }
    for (size_t i = 0; i < set->n_series; i++)
        free(set->names[i]);
    free(set->runs);
    free(set->label_used);
    free(set->points);
    free(set->names);
    *set = (struct series_set){0};
}

/* ---- the middle ---- */

static size_t first_of(const struct series_set *set, size_t series)
{
    size_t i = 0;
    while (set->points[i].series != series)
        i++;
    return i;
}

static size_t end_of(const struct series_set *set, size_t first)
{
    size_t i = first;
    while (i < set->n_points && set->points[i].series == set->points[first].series)
        i++;
    return i;
}

static size_t find_x(const struct series_set *set, size_t series, double x)
{
    const size_t first = first_of(set, series), end = end_of(set, first);
    for (size_t i = first; i < end; i++)
        if (set->points[i].x == x)
            return i;
    return set->n_points;
}

static bool shared(const struct series_set *set, double x)
{
    for (size_t series = 0; series < set->n_series; series++)
        if (find_x(set, series, x) == set->n_points)
            return false;
    return true;
}

/* The k-th value of the axis that every series has, counted from 0; NaN where there are fewer. */
static double shared_x(const struct series_set *set, size_t k)
{
    const size_t end = end_of(set, 0);
    for (size_t i = 0; i < end; i++)
        if (shared(set, set->points[i].x) && k-- == 0)
            return set->points[i].x;
    return (double)NAN;
}

static void choose_middle(const struct series_set *set, size_t *chosen)
{
    size_t n_shared = 0;
    while (!isnan(shared_x(set, n_shared)))
        n_shared++;
    const double middle = n_shared ? shared_x(set, (n_shared - 1) / 2) : (double)NAN;
    for (size_t series = 0; series < set->n_series; series++) {
        const size_t first = first_of(set, series), end = end_of(set, first);
        chosen[series] =
            isnan(middle) ? first + (end - first - 1) / 2 : find_x(set, series, middle);
    }
}

int series_choose(const struct series_set *set, double x, size_t *chosen, struct ifl_error *error)
{
    if (set->n_points == 0)
        return IFL_OK;
    if (x <= 0) {
        choose_middle(set, chosen);
        return IFL_OK;
    }
    for (size_t series = 0; series < set->n_series; series++) {
        chosen[series] = find_x(set, series, x);
        if (chosen[series] == set->n_points)
            return set->is_rate
                       ? ifl_fail(error, IFL_E_INPUT, "%s has no point at %g requests/s",
                                  set->names[series], x)
                       : ifl_fail(error, IFL_E_INPUT, "%s has no point at %s %g",
                                  set->names[series], set->has_x ? set->x_name : "a rate of", x);
    }
    return IFL_OK;
}

size_t series_number(const struct series_set *set, const struct series_point *point)
{
    return point->row * set->runs[point->run].n_replications;
}

bool series_quantiles(const struct series_set *set, const struct series_point *point,
                      size_t replication, size_t *from, size_t *to)
{
    const struct sheet *sheet = &set->runs[point->run].quantiles;
    const size_t column = sheet->n_columns ? sheet_find(sheet, "point") : SHEET_NO_COLUMN;
    char number[32];
    snprintf(number, sizeof number, "%zu", series_number(set, point) + replication);
    if (column == SHEET_NO_COLUMN)
        return false;
    for (*from = 0; *from < sheet->n_rows; ++*from)
        if (strcmp(sheet_cell(sheet, *from, column), number) == 0)
            break;
    for (*to = *from; *to < sheet->n_rows; ++*to)
        if (strcmp(sheet_cell(sheet, *to, column), number) != 0)
            break;
    return *to > *from;
}

bool series_has_numbers(const struct series_set *set, const char *column)
{
    bool has = !holds_text(column);
    for (size_t run = 0; run < set->n_runs && has; run++) {
        const size_t at = sheet_find(&set->runs[run].summary, column);
        has = at != SHEET_NO_COLUMN && at >= set->runs[run].n_keys;
    }
    return has;
}
