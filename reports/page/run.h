/* The runs of a page, and the JSON that is made from each file of a run.
 *
 * The page is one JSON object; reports/page/script/data.js reads it. Numbers of summary.csv keep
 * their nine digits; columns of many rows are packed (pack.h), with times in microseconds. */
#ifndef INFLIGHT_REPORTS_PAGE_RUN_H
#define INFLIGHT_REPORTS_PAGE_RUN_H

#include <jansson.h>
#include <stdbool.h>

#include "inflight/page.h"
#include "tables/sheet.h"

struct page_run {
    const char *dir;      /* borrowed */
    struct sheet summary; /* summary.csv; without one, capacity.csv */
    bool is_search;       /* the sheet is capacity.csv */
    size_t n_keys;        /* swept keys: the first columns */
    size_t n_points;      /* leading points, which are shown in detail */
    json_t *json;         /* borrowed from the page's root */
};

struct page {
    const struct ifl_page_options *options;
    struct page_run *runs; /* [n_runs] */
    size_t n_runs;
    size_t n_points; /* of all runs, shown in detail */
    json_t *root;
    struct ifl_error *error;
};

/* ---- JSON: a function that runs out of memory says so in the page's error ---- */

/* Sets a member and takes ownership of the value. A NULL value means that memory ran out. */
int page_set(const struct page *page, json_t *object, const char *name, json_t *value);
/* Appends to an array. */
int page_append(const struct page *page, json_t *array, json_t *value);
/* A text; bytes that are no UTF-8 become question marks. */
json_t *page_text(const char *text);
/* A number, null where it is NaN. */
json_t *page_number(double value);

/* Writes dir/name to `path`; returns true if the file exists. */
bool page_has_file(const struct page_run *run, const char *name, char path[4096]);

/* ---- one function per file; files that a run does not have are left out ---- */

/* Adds config.yaml and the rows of summary.csv and replications.csv. Sets n_keys. */
int page_put_summary(const struct page *page, struct page_run *run);
/* As page_put_summary, for a search for the capacity: config.yaml and the rows of capacity.csv. */
int page_put_capacities(const struct page *page, struct page_run *run);
int page_put_quantiles(const struct page *page, const struct page_run *run);
int page_put_requests(const struct page *page, const struct page_run *run);
/* Adds steps.csv and work.csv. */
int page_put_steps(const struct page *page, const struct page_run *run);
/* Adds the files that `inflight validate` has written. */
int page_put_recorded(const struct page *page, const struct page_run *run);
/* Adds the differences between the runs; with a single run, between the values of its first swept
 * key that is no rate. */
int page_put_differences(const struct page *page);

#endif
