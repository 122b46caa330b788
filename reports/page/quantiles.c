/* The distributions of latencies, from quantiles.csv. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page/packed.h"
#include "tables/scan.h"

enum { POINT, QUANTILE, N_COLUMNS = 8, N_PACKED = N_COLUMNS - 1 };
static const char *const columns[N_COLUMNS] = {
    "point", "quantile", "ttft_s", "tpot_s", "itl_s", "e2e_s", "normalized_latency_s", "queue_s"};
static const struct packed_column packed[N_PACKED] = {
    {"quantile", 1e4, true}, {"ttft_s", 1e6, true}, {"tpot_s", 1e6, true},
    {"itl_s", 1e6, true},    {"e2e_s", 1e6, true},  {"normalized_latency_s", 1e6, true},
    {"queue_s", 1e6, true}};

/* The rows of the point at hand. */
struct curves {
    const struct page *page;
    const struct page_run *run;
    json_t *points;
    double (*rows)[N_PACKED]; /* [cap], owned */
    size_t n, cap;
    double point; /* NaN: none yet */
};

static int flush(struct curves *curves)
{
    if (curves->n > 0 && curves->point < (double)curves->run->n_points &&
        !packed_put_rows(curves->page, curves->points, (size_t)curves->point, packed, N_PACKED,
                         *curves->rows, curves->n, N_PACKED))
        return curves->page->error->code;
    curves->n = 0;
    return IFL_OK;
}

static int take(void *context, const double *value, struct ifl_error *error)
{
    struct curves *curves = context;
    if (value[POINT] != curves->point && flush(curves))
        return error->code;
    curves->point = value[POINT];
    if (curves->n == curves->cap) {
        const size_t cap = 2 * curves->cap + 256;
        double(*rows)[N_PACKED] = realloc(curves->rows, cap * sizeof *rows);
        if (!rows)
            return ifl_fail_nomem(error);
        curves->rows = rows;
        curves->cap = cap;
    }
    memcpy(curves->rows[curves->n++], value + QUANTILE, sizeof *curves->rows);
    return IFL_OK;
}

int page_put_quantiles(const struct page *page, const struct page_run *run)
{
    char path[4096];
    if (!page_has_file(run, "quantiles.csv", path))
        return IFL_OK;
    json_t *object = json_object();
    struct curves curves = {.page = page, .run = run, .points = json_array(), .point = (double)NAN};
    int code = page_set(page, run->json, "quantiles", object);
    if (!code)
        code = page_set(page, object, "points", curves.points);
    if (!code)
        code = packed_put_names(page, object, packed, N_PACKED);
    if (!code)
        code = scan_csv(path, N_COLUMNS, columns, take, &curves, page->error);
    if (!code)
        code = flush(&curves);
    free(curves.rows);
    return code;
}
