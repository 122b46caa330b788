/* Requests, every k-th row of requests.csv, where k is a power of two. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "inflight/report.h"
#include "page/packed.h"
#include "tables/scan.h"

enum { POINT, QUEUE = 4, TTFT, PREFILL = 7, N_COLUMNS = 15, N_PACKED = N_COLUMNS - 1 };
static const char *const columns[N_COLUMNS] = {
    "point",         "request_id",    "replica",       "arrival_s",   "queue_s",
    "ttft_s",        "e2e_s",         "prefill_s",     "stalled_s",   "max_itl_s",
    "prompt_tokens", "output_tokens", "cached_tokens", "preemptions", "status"};
static const struct packed_column packed[N_PACKED] = {
    {"request_id", 1, true},       {"replica", 1, false},       {"arrival_s", 1e6, true},
    {"queue_s", 1e6, false},       {"ttft_s", 1e6, false},      {"e2e_s", 1e6, false},
    {"prefill_more_us", 1, false}, {"stalled_s", 1e6, false},   {"max_itl_s", 1e6, false},
    {"prompt_tokens", 1, false},   {"output_tokens", 1, false}, {"cached_tokens", 1, false},
    {"preemptions", 1, false},     {"status", 1, false}};

typedef double row[N_COLUMNS];

/* Of the rows seen, those with a number that `every` divides, in order. */
struct sample {
    const struct page_run *run;
    row *rows; /* [most + 1], owned */
    size_t n, most, every, n_seen;
};

/* Keeps every other row. */
static void thin(struct sample *sample)
{
    for (size_t i = 0; 2 * i < sample->n; i++)
        memcpy(sample->rows[i], sample->rows[2 * i], sizeof(row));
    sample->n = (sample->n + 1) / 2;
    sample->every *= 2;
}

/* Without a stall prefill_s is ttft_s - queue_s, so the difference packs into one letter. In whole
 * microseconds, so that the page has prefill_s as exactly as the others. */
static void take_prefill_off(double *value)
{
    const double expected_us = round(value[TTFT] * 1e6) - round(value[QUEUE] * 1e6);
    value[PREFILL] = round(value[PREFILL] * 1e6) - expected_us;
}

static int take(void *context, const double *value, struct ifl_error *error)
{
    (void)error;
    struct sample *sample = context;
    if (value[POINT] >= (double)sample->run->n_points || sample->n_seen++ % sample->every != 0)
        return IFL_OK;
    memcpy(sample->rows[sample->n], value, sizeof(row));
    take_prefill_off(sample->rows[sample->n++]);
    if (sample->n > sample->most)
        thin(sample);
    return IFL_OK;
}

static int put_points(const struct page *page, const struct sample *sample, json_t *points)
{
    for (size_t from = 0, to; from < sample->n; from = to) {
        for (to = from; to < sample->n && sample->rows[to][POINT] == sample->rows[from][POINT];)
            to++;
        if (!packed_put_rows(page, points, (size_t)sample->rows[from][POINT], packed, N_PACKED,
                             &sample->rows[from][POINT + 1], to - from, N_COLUMNS))
            return page->error->code;
    }
    return IFL_OK;
}

/* What the numbers in the column `status` stand for. */
static int put_statuses(const struct page *page, json_t *object)
{
    json_t *names = json_array();
    int code = page_set(page, object, "statuses", names);
    for (size_t i = 0; i < IFL_N_STATUSES && !code; i++)
        code = page_append(page, names, json_string(ifl_status_names[i]));
    return code;
}

static int put_sample(const struct page *page, const struct page_run *run,
                      const struct sample *sample)
{
    json_t *object = json_object(), *points = json_array();
    int code = page_set(page, run->json, "requests", object);
    if (!code)
        code = page_set(page, object, "points", points);
    if (!code)
        code = packed_put_names(page, object, packed, N_PACKED);
    if (!code)
        code = put_statuses(page, object);
    if (!code)
        code = page_set(page, object, "every", json_integer((json_int_t)sample->every));
    if (!code)
        code = page_set(page, object, "n_all", json_integer((json_int_t)sample->n_seen));
    return code ? code : put_points(page, sample, points);
}

int page_put_requests(const struct page *page, const struct page_run *run)
{
    char path[4096];
    struct sample sample = {
        .run = run, .every = 1, .most = ifl_max(IFL_PAGE_REQUESTS / page->n_runs, 1)};
    if (!page_has_file(run, "requests.csv", path))
        return IFL_OK;
    sample.rows = malloc((sample.most + 1) * sizeof *sample.rows);
    if (!sample.rows)
        return ifl_fail_nomem(page->error);
    int code = scan_csv_words(path, N_COLUMNS, columns, ifl_status_names, IFL_N_STATUSES, take,
                              &sample, page->error);
    if (!code)
        code = put_sample(page, run, &sample);
    free(sample.rows);
    return code;
}
