#include "compare/matching.h"

#include <math.h>
#include <string.h>

#include "tables/columns.h"
#include "tables/run_dir.h"
#include "tables/swept.h"

const char *matching_dir(const struct ifl_comparison *of, enum run run)
{
    return run == BASE ? of->base_dir : of->other_dir;
}

static int read_summary(struct sheet *sheet, const char *dir, struct ifl_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/summary.csv", dir);
    if (run_dir_check(dir, error))
        return error->code;
    return sheet_read_points(sheet, path, error);
}

/* ---- the keys ---- */

static int fail_compared(const struct sheet *sheet, const char *key, size_t n_swept,
                         struct ifl_error *error)
{
    char swept[400] = "";
    for (size_t c = 0; c < n_swept; c++) {
        const size_t n = strlen(swept);
        snprintf(swept + n, sizeof swept - n, "%s%s", c ? ", " : "",
                 column_short_key(sheet_header(sheet, c)));
    }
    return ifl_fail_at(error, sheet->path, 1, 0, "%s is not swept, expected one of: %s", key,
                       *swept ? swept : "none, there is no sweep");
}

static int find_compared(struct matching *matching, enum run run, size_t n_swept,
                         struct ifl_error *error)
{
    const struct sheet *sheet = &matching->summary[run];
    const char *key = matching->of->key;
    matching->compared[run] = SHEET_NO_COLUMN;
    if (!key)
        return IFL_OK;
    for (size_t c = 0; c < n_swept; c++)
        if (swept_is_named(sheet_header(sheet, c), key))
            matching->compared[run] = c;
    return matching->compared[run] == SHEET_NO_COLUMN ? fail_compared(sheet, key, n_swept, error)
                                                      : IFL_OK;
}

/* The swept keys stand before the first metric. */
static int find_keys(struct matching *matching, size_t n_swept[N_RUNS], struct ifl_error *error)
{
    for (int run = 0; run < N_RUNS; run++)
        if (sheet_require(&matching->summary[run], "requests", &n_swept[run], error) ||
            find_compared(matching, (enum run)run, n_swept[run], error))
            return error->code;
    for (size_t c = 0; c < n_swept[BASE]; c++) {
        if (c == matching->compared[BASE])
            continue;
        if (matching->n_keys == MATCHING_MAX_KEYS)
            return ifl_fail_at(error, matching->summary[BASE].path, 1, 0, "more than %d swept keys",
                               MATCHING_MAX_KEYS);
        matching->column[BASE][matching->n_keys++] = c;
    }
    return IFL_OK;
}

static int fail_key(const struct matching *matching, enum run sweeps, const char *key,
                    struct ifl_error *error)
{
    return ifl_fail_at(error, matching->summary[sweeps].path, 1, 0,
                       "%s is swept here and not in %s: expected the same keys", key,
                       matching->summary[1 - sweeps].path);
}

static int match_keys(struct matching *matching, struct ifl_error *error)
{
    const struct sheet *base = &matching->summary[BASE], *other = &matching->summary[OTHER];
    size_t n_swept[N_RUNS];
    if (find_keys(matching, n_swept, error))
        return error->code;
    for (size_t k = 0; k < matching->n_keys; k++) {
        const char *key = sheet_header(base, matching->column[BASE][k]);
        matching->column[OTHER][k] = sheet_find(other, key);
        if (matching->column[OTHER][k] >= n_swept[OTHER])
            return fail_key(matching, BASE, key, error);
        matching->has_replications = strcmp(key, "replication") == 0;
    }
    for (size_t c = 0; c < n_swept[OTHER]; c++) {
        const char *key = sheet_header(other, c);
        if (c != matching->compared[OTHER] && sheet_find(base, key) >= n_swept[BASE])
            return fail_key(matching, OTHER, key, error);
    }
    return IFL_OK;
}

/* ---- the points ---- */

/* Does the row take part in the comparison? */
static bool is_wanted(const struct matching *matching, enum run run, size_t row)
{
    const struct ifl_comparison *of = matching->of;
    return !of->key ||
           sheet_same_value(sheet_cell(&matching->summary[run], row, matching->compared[run]),
                            run == BASE ? of->base_value : of->other_value);
}

static bool same_point(const struct matching *matching, size_t base_row, size_t other_row)
{
    bool same = is_wanted(matching, OTHER, other_row);
    for (size_t k = 0; k < matching->n_keys && same; k++)
        same = sheet_same_value(
            sheet_cell(&matching->summary[BASE], base_row, matching->column[BASE][k]),
            sheet_cell(&matching->summary[OTHER], other_row, matching->column[OTHER][k]));
    return same;
}

/* The search starts behind the last match: two runs mostly have their points in the same order. */
static bool find_row(const struct matching *matching, size_t base_row, size_t *next, size_t *found)
{
    const size_t n = matching->summary[OTHER].n_rows;
    for (size_t i = 0; i < n; i++) {
        *found = (*next + i) % n;
        if (same_point(matching, base_row, *found)) {
            *next = *found + 1;
            return true;
        }
    }
    return false;
}

static void match_points(struct matching *matching)
{
    size_t next = 0, found;
    for (size_t row = 0; row < matching->summary[BASE].n_rows; row++)
        if (is_wanted(matching, BASE, row) && find_row(matching, row, &next, &found))
            matching->pairs[matching->n_pairs++] = (struct row_pair){{row, found}};
}

static bool same_group(const struct matching *matching, size_t a, size_t b)
{
    const struct sheet *base = &matching->summary[BASE];
    bool same = matching->has_replications;
    for (size_t k = 0; k < matching_n_names(matching) && same; k++) {
        const size_t column = matching->column[BASE][k];
        same = strcmp(sheet_cell(base, matching->pairs[a].row[BASE], column),
                      sheet_cell(base, matching->pairs[b].row[BASE], column)) == 0;
    }
    return same;
}

/* Replications are innermost, so those of a point follow each other. */
static void group_points(struct matching *matching)
{
    for (size_t i = 0; i < matching->n_pairs; i++)
        if (i == 0 || !same_group(matching, i - 1, i))
            matching->first[matching->n_groups++] = i;
    matching->first[matching->n_groups] = matching->n_pairs;
}

static size_t n_wanted(const struct matching *matching, enum run run)
{
    size_t n = 0;
    for (size_t row = 0; row < matching->summary[run].n_rows; row++)
        n += is_wanted(matching, run, row);
    return n;
}

static int fail_unmatched(const struct matching *matching, struct ifl_error *error)
{
    const struct ifl_comparison *of = matching->of;
    for (int run = 0; run < N_RUNS; run++)
        if (of->key && n_wanted(matching, (enum run)run) == 0)
            return ifl_fail_at(error, matching->summary[run].path, 0, 0, "no point has %s %s",
                               of->key, run == BASE ? of->base_value : of->other_value);
    return ifl_fail_at(error, matching->summary[OTHER].path, 0, 0,
                       "no point has the swept values of one in %s", matching->summary[BASE].path);
}

static void tell_of_alone(const struct matching *matching)
{
    const struct ifl_comparison *of = matching->of;
    char text[1024];
    for (int run = 0; run < N_RUNS && of->say; run++) {
        const size_t n = n_wanted(matching, (enum run)run);
        snprintf(text, sizeof text, "%zu of the %zu points in %s are in this run only: left out",
                 n - matching->n_pairs, n, matching->summary[run].path);
        if (n > matching->n_pairs)
            of->say(of->context, text);
    }
}

static int match(struct matching *matching, struct ifl_error *error)
{
    if (match_keys(matching, error))
        return error->code;
    const size_t n = matching->summary[BASE].n_rows;
    matching->pairs = calloc(n + 1, sizeof *matching->pairs);
    matching->first = calloc(n + 1, sizeof *matching->first);
    if (!matching->pairs || !matching->first)
        return ifl_fail_nomem(error);
    match_points(matching);
    group_points(matching);
    if (matching->n_pairs == 0)
        return fail_unmatched(matching, error);
    tell_of_alone(matching);
    return IFL_OK;
}

int matching_read(struct matching *matching, const struct ifl_comparison *of,
                  struct ifl_error *error)
{
    *matching = (struct matching){.of = of};
    int code = read_summary(&matching->summary[BASE], of->base_dir, error);
    if (!code)
        code = read_summary(&matching->summary[OTHER], of->other_dir, error);
    if (!code)
        code = match(matching, error);
    if (code)
        matching_free(matching);
    return code;
}

void matching_free(struct matching *matching)
{
    for (int run = 0; run < N_RUNS; run++)
        sheet_free(&matching->summary[run]);
    free(matching->pairs);
    free(matching->first);
    *matching = (struct matching){0};
}

/* ---- what a point is called ---- */

size_t matching_n_names(const struct matching *matching)
{
    return matching->n_keys - matching->has_replications;
}

const char *matching_name(const struct matching *matching, size_t key)
{
    return sheet_header(&matching->summary[BASE], matching->column[BASE][key]);
}

const char *matching_value(const struct matching *matching, size_t group, size_t key)
{
    return sheet_cell(&matching->summary[BASE], matching->pairs[matching->first[group]].row[BASE],
                      matching->column[BASE][key]);
}
