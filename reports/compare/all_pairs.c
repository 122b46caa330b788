/* All pairs of several runs, or of the values of a key: the comparison of each pair, and over all
 * of them the p-values corrected for their number. */
#include "inflight/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/findings.h"
#include "compare/holm.h"
#include "inflight/minmax.h"
#include "tables/columns.h"
#include "tables/row.h"
#include "tables/run_name.h"
#include "tables/swept.h"
#include "tables/whole_file.h"

enum { MAX_SIDES = 64 };

struct side {
    const char *dir, *value; /* borrowed; value NULL: all points of the run */
    const char *name;
};

/* A row of a pair's comparison. */
struct kept {
    size_t base, other, point; /* sides; the point counts from 0 within the pair */
    size_t values;             /* offset in `texts` of the values, each ended by a NUL */
    const char *metric;        /* in `texts` once all rows are there */
    size_t metric_at;
    struct ifl_compare_row row; /* without keys, values and metric */
    double p_holm;              /* NaN where p_value is */
    size_t n_family;            /* tests that it was corrected for; 0: none */
};

struct comparing {
    const struct ifl_all_pairs *of;
    struct sheet summary; /* of the first run */
    const char *key;      /* full name of the key compared, or NULL */
    struct side sides[MAX_SIDES];
    size_t n_sides;
    size_t base, other; /* the pair at hand */
    size_t n_keys;
    const char *keys[MATCHING_MAX_KEYS]; /* of a point, without the key compared */
    struct kept *rows;                   /* [n_rows], owned */
    size_t n_rows, cap_rows;
    struct kept last; /* row */
    char *texts;      /* owned */
    size_t n_texts, cap_texts;
};

/* ---- the sides ---- */

static int add_side(struct comparing *c, const char *dir, const char *value, const char *name,
                    struct ifl_error *error)
{
    if (c->n_sides == MAX_SIDES)
        return ifl_fail(error, IFL_E_INPUT,
                        "%s is one run or value too many to compare, expected at most %d",
                        value ? value : dir, MAX_SIDES);
    c->sides[c->n_sides++] = (struct side){dir, value, name};
    return IFL_OK;
}

/* Runs of the same name in different folders are told apart by the whole path. */
static const char *unique_name(const struct ifl_all_pairs *of, size_t run)
{
    const char *name = run_name(of->run_dirs[run]);
    for (size_t i = 0; i < of->n_runs; i++)
        if (i != run && strcmp(run_name(of->run_dirs[i]), name) == 0)
            return of->run_dirs[run];
    return name;
}

static int fail_no_key(const struct comparing *c, size_t n_keys, struct ifl_error *error)
{
    char swept[400] = "";
    for (size_t k = 0; k < n_keys; k++) {
        const size_t n = strlen(swept);
        snprintf(swept + n, sizeof swept - n, "%s%s", k ? ", " : "",
                 column_short_key(sheet_header(&c->summary, k)));
    }
    if (c->of->key)
        return ifl_fail_at(error, c->summary.path, 1, 0, "%s is not swept, expected one of: %s",
                           c->of->key, *swept ? swept : "none, there is no sweep");
    return ifl_fail_at(error, c->summary.path, 1, 0,
                       "no key but a rate is swept, expected one whose values are compared, or "
                       "several runs");
}

static int find_key(struct comparing *c, size_t n_keys, size_t *key, struct ifl_error *error)
{
    *key = c->of->key ? 0 : swept_choice(&c->summary, n_keys);
    while (c->of->key && *key < n_keys &&
           !swept_is_named(sheet_header(&c->summary, *key), c->of->key))
        ++*key;
    if (*key >= n_keys)
        return fail_no_key(c, n_keys, error);
    c->key = sheet_header(&c->summary, *key);
    return IFL_OK;
}

static int list_values(struct comparing *c, size_t n_keys, struct ifl_error *error)
{
    const struct ifl_all_pairs *of = c->of;
    size_t key;
    int code = find_key(c, n_keys, &key, error);
    for (size_t i = 0; i < of->n_values && !code; i++)
        code = add_side(c, of->run_dirs[0], of->values[i], of->values[i], error);
    for (size_t row = 0; of->n_values == 0 && row < c->summary.n_rows && !code; row++) {
        const char *value = sheet_cell(&c->summary, row, key);
        if (swept_is_new(&c->summary, row, key))
            code = add_side(c, of->run_dirs[0], value, value, error);
    }
    return code;
}

static int list_sides(struct comparing *c, struct ifl_error *error)
{
    char path[4096];
    size_t n_keys;
    snprintf(path, sizeof path, "%s/summary.csv", c->of->run_dirs[0]);
    if (sheet_read(&c->summary, path, error) ||
        sheet_require(&c->summary, "requests", &n_keys, error))
        return error->code;
    int code = c->of->n_runs == 1 ? list_values(c, n_keys, error) : IFL_OK;
    for (size_t i = 0; c->of->n_runs > 1 && i < c->of->n_runs && !code; i++)
        code = add_side(c, c->of->run_dirs[i], NULL, unique_name(c->of, i), error);
    for (size_t k = 0; k < n_keys && !code; k++) {
        const char *key = sheet_header(&c->summary, k);
        if (strcmp(key, "replication") == 0 || (c->key && strcmp(key, c->key) == 0))
            continue;
        if (c->n_keys == MATCHING_MAX_KEYS)
            return ifl_fail_at(error, path, 1, 0, "more than %d swept keys", MATCHING_MAX_KEYS);
        c->keys[c->n_keys++] = key;
    }
    return code;
}

/* ---- the rows of all pairs ---- */

static int keep_text(struct comparing *c, const char *text, struct ifl_error *error)
{
    const size_t n = strlen(text) + 1;
    if (c->cap_texts - c->n_texts < n) {
        const size_t cap = 2 * c->cap_texts + n + 4096;
        char *texts = realloc(c->texts, cap);
        if (!texts)
            return ifl_fail_nomem(error);
        c->texts = texts;
        c->cap_texts = cap;
    }
    memcpy(c->texts + c->n_texts, text, n);
    c->n_texts += n;
    return IFL_OK;
}

/* Runs may sweep their keys in different orders. */
static const char *value_of(const struct comparing *c, const struct ifl_compare_row *row,
                            size_t key)
{
    for (size_t k = 0; k < row->n_keys; k++)
        if (strcmp(row->keys[k], c->keys[key]) == 0)
            return row->values[k];
    return "";
}

static bool same_point(const struct comparing *c, const struct kept *kept,
                       const struct ifl_compare_row *row)
{
    const char *value = c->texts + kept->values;
    bool same = kept->base == c->base && kept->other == c->other;
    for (size_t k = 0; k < c->n_keys && same; k++, value += strlen(value) + 1)
        same = strcmp(value, value_of(c, row, k)) == 0;
    return same;
}

static int keep_row(void *context, const struct ifl_compare_row *row, struct ifl_error *error)
{
    struct comparing *c = context;
    if (!c->rows || c->n_rows == c->cap_rows) {
        const size_t cap = 2 * c->cap_rows + 256;
        struct kept *rows = realloc(c->rows, cap * sizeof *rows);
        if (!rows)
            return ifl_fail_nomem(error);
        c->rows = rows;
        c->cap_rows = cap;
    }
    const struct kept *last = c->n_rows ? &c->last : NULL;
    const bool goes_on = last && same_point(c, last, row);
    struct kept kept = {.base = c->base, .other = c->other, .row = *row, .p_holm = (double)NAN};
    kept.point = goes_on                                                    ? last->point
                 : last && last->base == c->base && last->other == c->other ? last->point + 1
                                                                            : 0;
    kept.values = goes_on ? last->values : c->n_texts;
    for (size_t k = 0; k < c->n_keys && !goes_on; k++)
        if (keep_text(c, value_of(c, row, k), error))
            return error->code;
    kept.metric_at = c->n_texts;
    if (keep_text(c, row->metric, error))
        return error->code;
    c->last = kept;
    c->rows[c->n_rows++] = kept;
    return IFL_OK;
}

static int compare_pair(struct comparing *c, struct ifl_error *error)
{
    const struct side *base = &c->sides[c->base], *other = &c->sides[c->other];
    const struct ifl_comparison pair = {.base_dir = base->dir,
                                        .other_dir = other->dir,
                                        .key = c->key,
                                        .base_value = base->value,
                                        .other_value = other->value,
                                        .take = keep_row,
                                        .context = c};
    return ifl_compare(&pair, error);
}

static int compare_all(struct comparing *c, struct ifl_error *error)
{
    int code = IFL_OK;
    for (c->base = 0; c->base < c->n_sides && !code; c->base++)
        for (c->other = c->base + 1; c->other < c->n_sides && !code; c->other++)
            code = compare_pair(c, error);
    for (size_t i = 0; i < c->n_rows; i++)
        c->rows[i].metric = c->texts + c->rows[i].metric_at;
    return code;
}

/* ---- the families: a metric, and what it was paired by ---- */

static bool same_family(const struct kept *a, const struct kept *b)
{
    return a->row.by_request == b->row.by_request && strcmp(a->metric, b->metric) == 0;
}

static bool is_first(const struct comparing *c, size_t row)
{
    for (size_t before = 0; before < row; before++)
        if (same_family(&c->rows[before], &c->rows[row]))
            return false;
    return true;
}

static void correct_family(struct comparing *c, size_t first, struct holm_test *tests)
{
    size_t n = 0;
    for (size_t i = first; i < c->n_rows; i++)
        if (same_family(&c->rows[first], &c->rows[i]) && !isnan(c->rows[i].row.p_value))
            tests[n++] = (struct holm_test){i, c->rows[i].row.p_value};
    holm_correct(tests, n);
    for (size_t i = 0; i < n; i++) {
        c->rows[tests[i].row].p_holm = tests[i].p;
        c->rows[tests[i].row].n_family = n;
    }
}

/* A family has its first row in the first point of a pair, among as many rows as there are metrics:
 * the search for it ends there, except for metrics that no pair before had. */
static int correct(struct comparing *c, struct ifl_error *error)
{
    struct holm_test *tests = calloc(c->n_rows + 1, sizeof *tests);
    if (!tests)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < c->n_rows; i++)
        if (c->rows[i].point == 0 && is_first(c, i))
            correct_family(c, i, tests);
    free(tests);
    return IFL_OK;
}

/* ---- the CSV file ---- */

static const char *const columns[] = {
    "base_run", "other_run",  "paired_by",   "metric",     "pairs",
    "samples",  "base",       "other",       "difference", "difference_ci95",
    "p_value",  "lower_frac", "higher_frac", "p_holm",     "comparisons",
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static int write_head(const struct comparing *c, struct whole_file *file, struct ifl_error *error)
{
    size_t n_bytes = (size_t)N_COLUMNS * 24;
    for (size_t k = 0; k < c->n_keys; k++)
        n_bytes += row_text_bytes(c->keys[k]);
    char *at = whole_room(file, n_bytes, error);
    if (!at)
        return error->code;
    for (size_t k = 0; k < c->n_keys; k++)
        at = row_text(at, c->keys[k]);
    for (size_t i = 0; i < N_COLUMNS; i++)
        at = row_word(at, columns[i]);
    whole_commit(file, row_end(at));
    return IFL_OK;
}

static int write_row(const struct comparing *c, struct whole_file *file, const struct kept *kept,
                     struct ifl_error *error)
{
    const struct ifl_compare_row *row = &kept->row;
    const char *value = c->texts + kept->values, *base = c->sides[kept->base].name,
               *other = c->sides[kept->other].name;
    size_t n_bytes = 64 + strlen(kept->metric) + (size_t)N_COLUMNS * ROW_REAL_BYTES +
                     row_text_bytes(base) + row_text_bytes(other);
    for (size_t k = 0; k < c->n_keys; k++, value += strlen(value) + 1)
        n_bytes += row_text_bytes(value);
    char *at = whole_room(file, n_bytes, error);
    if (!at)
        return error->code;
    value = c->texts + kept->values;
    for (size_t k = 0; k < c->n_keys; k++, value += strlen(value) + 1)
        at = row_text(at, value);
    at = row_text(row_text(at, base), other);
    at = row_word(row_word(at, row->by_request ? "request" : "replication"), kept->metric);
    at = row_uint(row_uint(at, row->n_pairs), row->n_samples);
    at = row_real(row_real(at, row->base), row->other);
    at = row_real(row_real(at, row->difference), row->half_width);
    at = row_real(at, row->p_value);
    at = row_real(row_real(at, row->lower_frac), row->higher_frac);
    at = row_uint(row_real(at, kept->p_holm), kept->n_family);
    whole_commit(file, row_end(at));
    return IFL_OK;
}

static int write_csv(const struct comparing *c, struct ifl_error *error)
{
    struct whole_file file;
    if (!c->of->out_path)
        return IFL_OK;
    if (whole_open(&file, c->of->out_path, error))
        return error->code;
    int code = write_head(c, &file, error);
    for (size_t i = 0; i < c->n_rows && !code; i++)
        code = write_row(c, &file, &c->rows[i], error);
    return whole_finish(&file, code, error);
}

/* ---- the table ---- */

static int widest_value(const struct comparing *c, size_t key)
{
    size_t most = strlen(column_short_key(c->keys[key]));
    for (size_t i = 0; i < c->n_rows; i++) {
        const char *value = c->texts + c->rows[i].values;
        for (size_t k = 0; k < key; k++)
            value += strlen(value) + 1;
        most = ifl_max(most, strlen(value));
    }
    return (int)ifl_min(most, (size_t)COMPARE_KEY_CHARS);
}

static int widest_side(const struct comparing *c)
{
    size_t most = strlen("other");
    for (size_t i = 0; i < c->n_sides; i++)
        most = ifl_max(most, strlen(c->sides[i].name));
    return (int)ifl_min(most, (size_t)COMPARE_KEY_CHARS);
}

static void print_word(FILE *out, int width, const char *word)
{
    fprintf(out, "%-*.*s  ", width, width, word);
}

static void print_head(FILE *out, const struct comparing *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_rows; i++)
        n = ifl_max(n, c->rows[i].n_family);
    fprintf(out,
            "other - base, +- half the width of the 95%% interval; * where p < 0.05 by Holm's "
            "correction for %zu\ncomparisons of a metric\n\n",
            n);
    for (size_t k = 0; k < c->n_keys; k++)
        print_word(out, widest_value(c, k), column_short_key(c->keys[k]));
    print_word(out, widest_side(c), "base");
    print_word(out, widest_side(c), "other");
    compare_print_titles(out);
}

static const struct kept *find_kept(const struct comparing *c, size_t first, size_t end,
                                    const char *metric, bool by_request)
{
    for (size_t i = first; metric && i < end; i++)
        if (c->rows[i].row.by_request == by_request && strcmp(c->rows[i].metric, metric) == 0)
            return c->rows[i].row.n_samples ? &c->rows[i] : NULL;
    return NULL;
}

static void print_point(FILE *out, const struct comparing *c, size_t first, size_t end)
{
    const struct kept *at = &c->rows[first];
    const char *value = c->texts + at->values, *column, *latency;
    for (size_t k = 0; k < c->n_keys; k++, value += strlen(value) + 1)
        print_word(out, widest_value(c, k), value);
    print_word(out, widest_side(c), c->sides[at->base].name);
    print_word(out, widest_side(c), c->sides[at->other].name);
    for (size_t m = 0; compare_shown(m, &column, &latency); m++) {
        const struct kept *found = find_kept(c, first, end, latency, true);
        if (!found)
            found = find_kept(c, first, end, column, false);
        compare_print_cell(out, m, found ? found->row.difference : (double)NAN,
                           found ? found->row.half_width : (double)NAN,
                           found && found->p_holm < 0.05);
    }
    fputc('\n', out);
}

static void print_table(FILE *out, const struct comparing *c)
{
    print_head(out, c);
    for (size_t first = 0, end; first < c->n_rows; first = end) {
        for (end = first; end < c->n_rows && c->rows[end].values == c->rows[first].values &&
                          c->rows[end].base == c->rows[first].base &&
                          c->rows[end].other == c->rows[first].other &&
                          c->rows[end].point == c->rows[first].point;)
            end++;
        print_point(out, c, first, end);
    }
}

/* ---- the whole ---- */

int ifl_compare_all_pairs(const struct ifl_all_pairs *of, struct ifl_error *error)
{
    ifl_assert(of->n_runs > 0 && (of->n_runs == 1 || !of->key));
    struct comparing c = {.of = of};
    int code = list_sides(&c, error);
    if (!code)
        code = compare_all(&c, error);
    if (!code)
        code = correct(&c, error);
    if (!code)
        code = write_csv(&c, error);
    if (!code && of->table)
        print_table(of->table, &c);
    sheet_free(&c.summary);
    free(c.rows);
    free(c.texts);
    return code;
}
