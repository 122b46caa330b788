/* The runs of a page, and the JSON that each of its files becomes.
 *
 * The page is one JSON object; reports/page/script/data.js reads it. Numbers of summary.csv stand
 * in it with their nine digits; columns of many rows are packed (pack.h), times in microseconds. */
#ifndef INFLIGHT_REPORTS_PAGE_RUN_H
#define INFLIGHT_REPORTS_PAGE_RUN_H

#include <jansson.h>
#include <stdbool.h>

#include "inflight/page.h"
#include "tables/sheet.h"

struct page_run {
    const char *dir;      /* borrowed */
    struct sheet summary; /* summary.csv; without one, capacity.csv */
    bool is_search;       /* the latter */
    size_t n_keys;        /* swept: the first columns */
    size_t n_points;      /* the first ones, which are shown in detail */
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

/* Sets a member, and takes the value over. A NULL is out of memory. */
int page_set(const struct page *page, json_t *object, const char *name, json_t *value);
/* Appends to an array. */
int page_append(const struct page *page, json_t *array, json_t *value);
/* A text; what is no UTF-8 in it becomes question marks. */
json_t *page_text(const char *text);
/* A number, null where it is NaN. */
json_t *page_number(double value);

/* dir/name; true if there is such a file. */
bool page_has_file(const struct page_run *run, const char *name, char path[4096]);

/* ---- a file each; what a run does not have is left out ---- */

/* config.yaml, and the rows of summary.csv and replications.csv. Fills in n_keys. */
int page_put_summary(const struct page *page, struct page_run *run);
/* The same of a search for the capacity: config.yaml, and the rows of capacity.csv. */
int page_put_capacities(const struct page *page, struct page_run *run);
int page_put_quantiles(const struct page *page, const struct page_run *run);
int page_put_requests(const struct page *page, const struct page_run *run);
/* steps.csv and work.csv. */
int page_put_steps(const struct page *page, const struct page_run *run);
/* What `inflight validate` has written. */
int page_put_recorded(const struct page *page, const struct page_run *run);
/* Of the runs; of a run alone, of the values of its first swept key that is no rate. */
int page_put_differences(const struct page *page);

#endif
