/* Compares two runs: a row of the CSV for every point and metric that both have. */
#include "inflight/compare.h"

#include <stdlib.h>

#include "compare/findings.h"
#include "tables/columns.h"
#include "tables/row.h"
#include "tables/whole_file.h"

struct comparing {
    struct matching matching;
    struct request_pairs requests;
    struct samples scratch;
    struct finding *findings; /* [n] of the group at hand */
    size_t n;
    struct whole_file file;
};

/* ---- a point's differences ---- */

static int find_metric(struct comparing *c, size_t group, const char *metric,
                       struct ifl_error *error)
{
    size_t column[N_RUNS];
    for (int run = 0; run < N_RUNS; run++) {
        column[run] = sheet_find(&c->matching.summary[run], metric);
        if (column[run] == SHEET_NO_COLUMN)
            return IFL_OK; /* of another version */
    }
    struct finding *finding = &c->findings[c->n++];
    *finding = (struct finding){.metric = metric};
    return difference_of_replications(&c->matching, group, column, &c->scratch,
                                      &finding->difference, error);
}

static int find_all(struct comparing *c, size_t group, struct ifl_error *error)
{
    int code = IFL_OK;
    c->n = 0;
    for (size_t i = 0; i < n_summary_columns && !code; i++)
        if (column_is_number(&summary_columns[i]))
            code = find_metric(c, group, summary_columns[i].name, error);
    for (int latency = 0; latency < N_LATENCIES && c->requests.n > 0; latency++) {
        struct finding *finding = &c->findings[c->n++];
        *finding = (struct finding){.metric = latency_name[latency], .paired_by = BY_REQUEST};
        difference_of_requests(&c->matching, &c->requests, group, (enum latency)latency,
                               &c->scratch, &finding->difference);
    }
    return code;
}

/* ---- the CSV file ---- */

static const char *const columns[] = {
    "paired_by",  "metric",          "pairs",   "samples",    "base",        "other",
    "difference", "difference_ci95", "p_value", "lower_frac", "higher_frac",
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static int write_head(struct comparing *c, struct ifl_error *error)
{
    size_t n_bytes = (size_t)N_COLUMNS * 24;
    for (size_t k = 0; k < matching_n_names(&c->matching); k++)
        n_bytes += row_text_bytes(matching_name(&c->matching, k));
    char *at = whole_room(&c->file, n_bytes, error);
    if (!at)
        return error->code;
    for (size_t k = 0; k < matching_n_names(&c->matching); k++)
        at = row_text(at, matching_name(&c->matching, k));
    for (size_t i = 0; i < N_COLUMNS; i++)
        at = row_word(at, columns[i]);
    whole_commit(&c->file, row_end(at));
    return IFL_OK;
}

static char *put_difference(char *at, const struct difference *of)
{
    at = row_uint(row_uint(at, of->n_pairs), of->n_samples);
    at = row_real(row_real(at, of->base), of->other);
    at = row_real(row_real(at, of->of.mean), of->of.half_width);
    at = row_real(at, of->p_value);
    return row_real(row_real(at, of->lower_frac), of->higher_frac);
}

static int write_finding(struct comparing *c, size_t group, const struct finding *finding,
                         struct ifl_error *error)
{
    size_t n_bytes = 64 + N_COLUMNS * ROW_REAL_BYTES;
    for (size_t k = 0; k < matching_n_names(&c->matching); k++)
        n_bytes += row_text_bytes(matching_value(&c->matching, group, k));
    char *at = whole_room(&c->file, n_bytes, error);
    if (!at)
        return error->code;
    for (size_t k = 0; k < matching_n_names(&c->matching); k++)
        at = row_text(at, matching_value(&c->matching, group, k));
    at = row_word(at, finding->paired_by == BY_REQUEST ? "request" : "replication");
    at = put_difference(row_word(at, finding->metric), &finding->difference);
    whole_commit(&c->file, row_end(at));
    return IFL_OK;
}

static int hand_on(const struct comparing *c, size_t group, const struct finding *finding,
                   struct ifl_error *error)
{
    const struct ifl_comparison *of = c->matching.of;
    const struct difference *d = &finding->difference;
    const char *keys[MATCHING_MAX_KEYS], *values[MATCHING_MAX_KEYS];
    const size_t n_keys = matching_n_names(&c->matching);
    for (size_t k = 0; k < n_keys; k++) {
        keys[k] = matching_name(&c->matching, k);
        values[k] = matching_value(&c->matching, group, k);
    }
    const struct ifl_compare_row row = {
        .n_keys = n_keys,
        .keys = keys,
        .values = values,
        .metric = finding->metric,
        .by_request = finding->paired_by == BY_REQUEST,
        .n_pairs = d->n_pairs,
        .n_samples = d->n_samples,
        .base = d->base,
        .other = d->other,
        .difference = d->of.mean,
        .half_width = d->of.half_width,
        .p_value = d->p_value,
        .lower_frac = d->lower_frac,
        .higher_frac = d->higher_frac,
    };
    return of->take(of->context, &row, error);
}

static int put_finding(struct comparing *c, size_t group, const struct finding *finding,
                       struct ifl_error *error)
{
    const struct ifl_comparison *of = c->matching.of;
    int code = of->out_path ? write_finding(c, group, finding, error) : IFL_OK;
    return code || !of->take ? code : hand_on(c, group, finding, error);
}

static int write_group(struct comparing *c, size_t group, struct ifl_error *error)
{
    int code = find_all(c, group, error);
    for (size_t i = 0; i < c->n && !code; i++)
        if (c->findings[i].difference.n_pairs > 0)
            code = put_finding(c, group, &c->findings[i], error);
    if (!code && c->matching.of->table)
        compare_print_row(c->matching.of->table, &c->matching, group, c->findings, c->n);
    return code;
}

static int write_all(struct comparing *c, struct ifl_error *error)
{
    const char *path = c->matching.of->out_path;
    int code = path ? whole_open(&c->file, path, error) : IFL_OK;
    if (code)
        return code;
    code = path ? write_head(c, error) : IFL_OK;
    if (!code && c->matching.of->table)
        compare_print_head(c->matching.of->table, &c->matching);
    for (size_t group = 0; group < c->matching.n_groups && !code; group++)
        code = write_group(c, group, error);
    return whole_finish(&c->file, code, error);
}

/* ---- the whole ---- */

static int compare(struct comparing *c, struct ifl_error *error)
{
    c->findings = calloc(n_summary_columns + N_LATENCIES, sizeof *c->findings);
    if (!c->findings)
        return ifl_fail_nomem(error);
    int code = samples_make(&c->scratch, c->matching.n_pairs, error);
    if (!code)
        code = request_pairs_read(&c->requests, &c->matching, error);
    return code ? code : write_all(c, error);
}

int ifl_compare(const struct ifl_comparison *of, struct ifl_error *error)
{
    ifl_assert(!of->key || (of->base_value && of->other_value));
    struct comparing comparing = {0};
    if (matching_read(&comparing.matching, of, error))
        return error->code;
    const int code = compare(&comparing, error);
    free(comparing.findings);
    samples_free(&comparing.scratch);
    request_pairs_free(&comparing.requests);
    matching_free(&comparing.matching);
    return code;
}
