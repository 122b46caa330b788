#include "plot/series.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tables/columns.h"
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

static int read_run(struct series_run *run, const char *dir, struct ifl_error *error)
{
    *run = (struct series_run){.dir = dir, .rate = SHEET_NO_COLUMN, .n_replications = 1};
    if (read_sheet(&run->summary, dir, "summary.csv", SHEET_NEEDED, error) ||
        read_sheet(&run->quantiles, dir, "quantiles.csv", SHEET_OPTIONAL, error) ||
        read_replications(run, dir, error) || check_numbers(&run->summary, run->n_keys, error) ||
        check_numbers(&run->quantiles, 0, error))
        return error->code;
    for (size_t key = 0; key < run->n_keys; key++)
        if (strcmp(column_short_key(sheet_header(&run->summary, key)), "rate_rps") == 0)
            run->rate = key;
    return IFL_OK;
}

/* ---- naming the series ---- */

/* The name of a preset, a model or a GPU needs no key in a label; any other value does. */
static bool speaks_for_itself(const char *key)
{
    return strcmp(column_short_key(key), "preset") == 0 || strcmp(key, "model") == 0 ||
           strcmp(key, "hardware") == 0;
}

static void print_key(FILE *to, const struct series_run *run, size_t row, size_t key)
{
    const char *name = sheet_header(&run->summary, key);
    if (ftell(to) > 0)
        fputs(" / ", to);
    if (!speaks_for_itself(name))
        fprintf(to, "%s ", column_short_key(name));
    fputs(sheet_cell(&run->summary, row, key), to);
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
        fputs(unique_name(set, run), to);
    for (size_t key = 0; key < run->n_keys; key++)
        if (!set->has_rate || key != run->rate)
            print_key(to, run, row, key);
    if (ftell(to) == 0)
        fputs(run_name(run->dir), to);
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
        print_escaped(to, name);
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
    *point = (struct series_point){.run = run, .row = row, .rate_rps = (double)NAN};
    if (read_saturated(&of->summary, row, &point->saturated, error))
        return error->code;
    if (set->has_rate && sheet_number(&of->summary, row, of->rate, &point->rate_rps, error))
        return error->code;
    char *name = name_of(set, of, row);
    if (!name)
        return ifl_fail_nomem(error);
    point->series = number_of(set, name);
    set->n_points++;
    return IFL_OK;
}

static int by_series_then_rate(const void *left, const void *right)
{
    const struct series_point *a = left, *b = right;
    if (a->series != b->series)
        return a->series < b->series ? -1 : 1;
    if (a->rate_rps < b->rate_rps || a->rate_rps > b->rate_rps)
        return a->rate_rps < b->rate_rps ? -1 : 1;
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
    qsort(set->points, set->n_points, sizeof *set->points, by_series_then_rate);
    return IFL_OK;
}

static int read_all(struct series_set *set, const char *const *run_dirs, struct ifl_error *error)
{
    for (size_t run = 0; run < set->n_runs; run++) {
        if (read_run(&set->runs[run], run_dirs[run], error))
            return error->code;
        set->has_rate = (run == 0 || set->has_rate) && set->runs[run].rate != SHEET_NO_COLUMN;
    }
    return add_points(set, error);
}

int series_read(struct series_set *set, size_t n_runs, const char *const *run_dirs,
                struct ifl_error *error)
{
    *set = (struct series_set){.runs = calloc(n_runs ? n_runs : 1, sizeof *set->runs),
                               .n_runs = n_runs};
    if (!set->runs)
        return ifl_fail_nomem(error);
    const int code = read_all(set, run_dirs, error);
    if (code)
        series_free(set);
    return code;
}

void series_free(struct series_set *set)
{
    for (size_t run = 0; set->runs && run < set->n_runs; run++) {
        sheet_free(&set->runs[run].summary);
        sheet_free(&set->runs[run].quantiles);
    }
    for (size_t i = 0; i < set->n_series; i++)
        free(set->names[i]);
    free(set->runs);
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

static size_t find_rate(const struct series_set *set, size_t series, double rate_rps)
{
    const size_t first = first_of(set, series), end = end_of(set, first);
    for (size_t i = first; i < end; i++)
        if (set->points[i].rate_rps == rate_rps)
            return i;
    return set->n_points;
}

static bool shared(const struct series_set *set, double rate_rps)
{
    for (size_t series = 0; series < set->n_series; series++)
        if (find_rate(set, series, rate_rps) == set->n_points)
            return false;
    return true;
}

/* The k-th rate that every series has, counted from 0; NaN where there are fewer. */
static double shared_rate(const struct series_set *set, size_t k)
{
    const size_t end = end_of(set, 0);
    for (size_t i = 0; i < end; i++)
        if (shared(set, set->points[i].rate_rps) && k-- == 0)
            return set->points[i].rate_rps;
    return (double)NAN;
}

static void choose_middle(const struct series_set *set, size_t *chosen)
{
    size_t n_shared = 0;
    while (!isnan(shared_rate(set, n_shared)))
        n_shared++;
    const double middle = n_shared ? shared_rate(set, (n_shared - 1) / 2) : (double)NAN;
    for (size_t series = 0; series < set->n_series; series++) {
        const size_t first = first_of(set, series), end = end_of(set, first);
        chosen[series] =
            isnan(middle) ? first + (end - first - 1) / 2 : find_rate(set, series, middle);
    }
}

int series_choose(const struct series_set *set, double rate_rps, size_t *chosen,
                  struct ifl_error *error)
{
    if (set->n_points == 0)
        return IFL_OK;
    if (rate_rps <= 0) {
        choose_middle(set, chosen);
        return IFL_OK;
    }
    for (size_t series = 0; series < set->n_series; series++) {
        chosen[series] = find_rate(set, series, rate_rps);
        if (chosen[series] == set->n_points)
            return ifl_fail(error, IFL_E_INPUT, "%s has no point at %g requests/s",
                            set->names[series], rate_rps);
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
