/* Differences between runs, or between the values of a swept key: what `inflight compare` finds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/compare.h"
#include "page/run.h"
#include "tables/run_name.h"
#include "tables/swept.h"

enum { MOST_COMPARISONS = 8 };

/* The others are for `inflight compare`. */
static const char *const shown[] = {"request_throughput_rps",
                                    "output_throughput_tok_per_s",
                                    "goodput_rps",
                                    "attainment_frac",
                                    "mean_ttft_s",
                                    "p99_ttft_s",
                                    "mean_tpot_s",
                                    "p99_tpot_s",
                                    "mean_itl_s",
                                    "p99_itl_s",
                                    "mean_e2e_s",
                                    "p99_e2e_s",
                                    "mean_normalized_latency_s",
                                    "preemptions",
                                    "kv_token_frac",
                                    "ttft_s",
                                    "tpot_s",
                                    "e2e_s",
                                    "queue_s",
                                    "normalized_latency_s"};
enum { N_SHOWN = sizeof shown / sizeof *shown };

struct differences {
    const struct page *page;
    json_t *rows;
};

static bool is_shown(const char *metric)
{
    for (size_t i = 0; i < N_SHOWN; i++)
        if (strcmp(shown[i], metric) == 0)
            return true;
    return false;
}

/* [[values], metric, by request, pairs, samples, base, other, difference, half width, p, lower,
 * higher] */
static int take(void *context, const struct ifl_compare_row *row, struct ifl_error *error)
{
    (void)error;
    const struct differences *to = context;
    if (!is_shown(row->metric))
        return IFL_OK;
    json_t *cells = json_array(), *values = json_array();
    int code = page_append(to->page, to->rows, cells);
    if (!code)
        code = page_append(to->page, cells, values);
    for (size_t k = 0; k < row->n_keys && !code; k++)
        code = page_append(to->page, values, page_text(row->values[k]));
    json_t *const rest[] = {json_string(row->metric),
                            json_boolean(row->by_request),
                            json_integer((json_int_t)row->n_pairs),
                            json_integer((json_int_t)row->n_samples),
                            page_number(row->base),
                            page_number(row->other),
                            page_number(row->difference),
                            page_number(row->half_width),
                            page_number(row->p_value),
                            page_number(row->lower_frac),
                            page_number(row->higher_frac)};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        const int appended = page_append(to->page, cells, rest[i]);
        code = code ? code : appended;
    }
    return code;
}

/* Runs that cannot be compared are said to be so, with the reason. */
static int put_comparison(const struct page *page, json_t *all, const struct ifl_comparison *of,
                          const char *base, const char *other, const struct page_run *named_by)
{
    json_t *object = json_object(), *keys = json_array();
    struct differences to = {page, json_array()};
    struct ifl_comparison comparison = *of;
    comparison.take = take;
    comparison.context = &to;
    if (page_append(page, all, object) || page_set(page, object, "base", page_text(base)) ||
        page_set(page, object, "other", page_text(other)) || page_set(page, object, "keys", keys) ||
        page_set(page, object, "rows", to.rows))
        return page->error->code;
    for (size_t k = 0; k < named_by->n_keys; k++) {
        const char *key = sheet_header(&named_by->summary, k);
        if (strcmp(key, "replication") != 0 && (!of->key || strcmp(key, of->key) != 0) &&
            page_append(page, keys, page_text(key)))
            return page->error->code;
    }
    const int code = ifl_compare(&comparison, page->error);
    return code == IFL_E_INPUT ? page_set(page, object, "why", page_text(page->error->text)) : code;
}

/* The next run that is no search for the capacity, from i on; n_runs if there is none. */
static size_t next_run(const struct page *page, size_t i)
{
    while (i < page->n_runs && page->runs[i].is_search)
        i++;
    return i;
}

static int compare_runs(const struct page *page, json_t *all)
{
    const size_t first = next_run(page, 0);
    const struct page_run *base = &page->runs[first];
    int code = IFL_OK, n = 0;
    for (size_t i = next_run(page, first + 1); i < page->n_runs && n < MOST_COMPARISONS && !code;
         i = next_run(page, i + 1)) {
        const struct ifl_comparison of = {.base_dir = base->dir, .other_dir = page->runs[i].dir};
        code = put_comparison(page, all, &of, run_name(base->dir), run_name(of.other_dir), base);
        n++;
    }
    return code;
}

/* ---- one run: the values of a key ---- */

static int compare_values(const struct page *page, json_t *all)
{
    const struct page_run *run = &page->runs[next_run(page, 0)];
    const size_t key = swept_choice(&run->summary, run->n_keys);
    size_t n = 0;
    int code = IFL_OK;
    for (size_t row = 1;
         key != SHEET_NO_COLUMN && row < run->summary.n_rows && n < MOST_COMPARISONS && !code;
         row++) {
        if (!swept_is_new(&run->summary, row, key))
            continue;
        const struct ifl_comparison of = {.base_dir = run->dir,
                                          .other_dir = run->dir,
                                          .key = sheet_header(&run->summary, key),
                                          .base_value = sheet_cell(&run->summary, 0, key),
                                          .other_value = sheet_cell(&run->summary, row, key)};
        code = put_comparison(page, all, &of, of.base_value, of.other_value, run);
        n++;
    }
    return code;
}

int page_put_differences(const struct page *page)
{
    json_t *all = json_array();
    if (page_set(page, page->root, "differences", all))
        return page->error->code;
    const size_t first = next_run(page, 0);
    if (first == page->n_runs)
        return IFL_OK;
    return next_run(page, first + 1) < page->n_runs ? compare_runs(page, all)
                                                    : compare_values(page, all);
}
